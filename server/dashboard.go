package server

import (
	"net/http"
	"time"

	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
	"github.com/anteroom/anteroom/dashboard"
	"github.com/anteroom/anteroom/manage"
)

// newDashboard is the operators' pages over the APIs of the listener.
func (s *Server) newDashboard(apis http.Handler) *dashboard.Dashboard {
	return dashboard.New(dashboard.Config{
		API: apis, APIs: []string{rest.Prefix, own.Prefix}, Authenticate: s.manage.Authenticate, Version: s.opts.Version, Log: s.log,
		Live: func(by manage.Caller) ([]dashboard.Room, error) {
			rooms, err := own.Live(s.manage, by, time.Now())
			out := make([]dashboard.Room, len(rooms))
			for i, r := range rooms {
				out[i] = dashboard.Room{ID: r.ID, Value: r}
			}
			return out, err
		},
	})
}
