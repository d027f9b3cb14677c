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

// removeNode removes a core.
func (f *face) removeNode(r *api.Request) (schema.Removed, error) {
	node := r.PathValue("node")
	return schema.Removed{ID: node}, f.manage.RemoveNode(r.Context(), r.By, node, r.Query.Get("force") == "true")
}

// replaceNode removes a core whose place another has taken.
func (f *face) replaceNode(r *api.Request, b schema.Replacement) (schema.Replaced, error) {
	node := r.PathValue("node")
	complete, err := f.manage.ReplaceNode(r.Context(), r.By, node, b.By, b.Force)
	return schema.Replaced{ID: node, By: b.By, Complete: complete}, err
}

// addCores makes the process one of several cores.
func (f *face) addCores(r *api.Request) (manage.AddedCores, error) {
	return f.manage.AddCores(r.Context(), r.By)
}

// shrinkCores makes the core the only one of its site.
func (f *face) shrinkCores(r *api.Request) (schema.None, error) {
	return nil, f.manage.ShrinkCores(r.Context(), r.By)
}

// forgetSite writes off a site.
func (f *face) forgetSite(r *api.Request) (manage.ForgottenSite, error) {
	return f.manage.ForgetSite(r.Context(), r.By, r.PathValue("site"))
}
