package server

import (
	"context"
	"os"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/manage"
)

// clusterStatus is what operators see of the cluster.
func (s *Server) clusterStatus(context.Context) (manage.ClusterStatus, error) {
	st := manage.ClusterStatus{Site: "local", Roles: []manage.ClusterRole{}, Sites: []manage.ClusterSite{}, Findings: []manage.ClusterFinding{}}
	st.Node, _ = os.Hostname()
	st.Nodes = []manage.ClusterNode{{Node: st.Node, Version: s.opts.Version, Core: true, Started: s.started}}
	h := s.link.Health()
	st.Store = manage.ClusterStore{Site: touchOf(h.Site), Shared: touchOf(h.Shared)}
	return st, nil
}

func touchOf(t cluster.Touch) manage.ClusterTouch {
	out := manage.ClusterTouch{OK: t.OK, Lag: t.Lag.Seconds(), Detail: t.Detail}
	if !t.Since.IsZero() {
		since := t.Since.UTC()
		out.Since = &since
	}
	return out
}
