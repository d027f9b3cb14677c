package own

import "github.com/anteroom/anteroom/api"

// getCluster tells how the nodes that serve the rooms stand together.
func (f *face) getCluster(r *api.Request) (api.Answer, error) {
	st, err := f.manage.Cluster(r.Context(), r.By)
	return api.Answer{Result: st}, err
}

// removeNode removes a core that is gone for good.
func (f *face) removeNode(r *api.Request) (api.Answer, error) {
	node := r.Param("node")
	return deleted(node), f.manage.RemoveNode(r.Context(), r.By, node)
}
