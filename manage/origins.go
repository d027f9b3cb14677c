package manage

import (
	"slices"

	"github.com/anteroom/anteroom"
)

// ProxiedSite is the hosts of a proxied site with their origins, as the node that answers sees them.
type ProxiedSite struct {
	Hosts   []string `json:"hosts" doc:"Host names of the site; * is every host that no other site names."`
	Origins []Origin `json:"origins"`
}

// Origin is a server of a proxied site.
type Origin struct {
	URL        string   `json:"url,omitempty" doc:"Its URL; left out for tokens that may not read everything."`
	Healthy    bool     `json:"healthy" doc:"Whether it passes its health check; without one, whether it can be reached."`
	Requests   uint64   `json:"requests_last_minute" doc:"Requests sent to it in the last minute."`
	ErrorShare float64  `json:"error_share" min:"0" max:"1" doc:"Share of these that failed: no connection, no answer, or a status of 500 or above."`
	P50        *float64 `json:"p50_seconds" min:"0" doc:"Median time to its response headers in the last minute; null without an answer."`
	P95        *float64 `json:"p95_seconds" min:"0" doc:"95th percentile of the time to its response headers in the last minute; null without an answer."`
	InFlight   int64    `json:"in_flight" doc:"Requests that it is working on."`
}

// Origins returns the proxied sites with their origins. It needs the permission to read everything.
func (m *Manager) Origins(by Caller) ([]ProxiedSite, error) {
	if err := by.need(Read, "", ""); err != nil {
		return nil, err
	}
	return m.origins(), nil
}

func (m *Manager) origins() []ProxiedSite {
	if m.cfg.Origins == nil {
		return []ProxiedSite{}
	}
	return m.cfg.Origins()
}

// OriginsOf returns the origins of a room's hosts, for a caller who may read the room.
func (m *Manager) OriginsOf(by Caller, room anteroom.Room) []Origin {
	out := []Origin{}
	for _, site := range m.origins() {
		if slices.ContainsFunc(room.Routes, func(rt anteroom.Route) bool { return site.Serves(rt.Host) }) {
			out = append(out, site.Origins...)
		}
	}
	if by.need(Read, "", "") != nil {
		out = slices.Clone(out)
		for i := range out {
			out[i].URL = ""
		}
	}
	return out
}

// Serves reports whether requests for a host of a room go to the site.
func (s ProxiedSite) Serves(host string) bool {
	return host == "*" || slices.Contains(s.Hosts, host) || slices.Contains(s.Hosts, "*")
}
