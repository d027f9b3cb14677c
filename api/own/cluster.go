package own

import "github.com/anteroom/anteroom/api"

// getCluster tells how the nodes that serve the rooms stand together.
func (f *face) getCluster(r *api.Request) (api.Answer, error) {
	st, err := f.manage.Cluster(r.Context(), r.By)
	return api.Answer{Result: st}, err
}
