package own

import (
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// getCluster tells how the nodes that serve the rooms stand together.
func (f *face) getCluster(r *api.Request) (manage.ClusterStatus, error) {
	return f.manage.Cluster(r.Context(), r.By)
}

// listOrigins tells how the origins do.
func (f *face) listOrigins(r *api.Request) ([]manage.ProxiedSite, error) {
	return f.manage.Origins(r.By)
}

// removeNode removes a core that is gone for good.
func (f *face) removeNode(r *api.Request) (schema.Removed, error) {
	node := r.Param("node")
	return schema.Removed{ID: node}, f.manage.RemoveNode(r.Context(), r.By, node)
}
