package gateway

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func (a answering) Decide(_ context.Context, v anteroom.Visit) anteroom.Decision { return a.decide(v) }
func (a answering) Best([]anteroom.Ticket) int                                   { return 0 }
func (a answering) Watch(context.Context, anteroom.Visit) (anteroom.Decision, <-chan anteroom.Decision) {
	return anteroom.Decision{}, nil
}
func (a answering) Touch(anteroom.ID) bool                             { return true }
func (a answering) Revoke(anteroom.ID) bool                            { return true }
func (a answering) Ended(context.Context, anteroom.ID) <-chan struct{} { return nil }
func (a answering) Settings() anteroom.Settings                        { return a.in }

// rounds alternates between the roles, so that what else the machine does meets all of
// them, and returns the median processor time of a request for each.
func rounds(b *testing.B, n, connections int, headers map[string]string, roles map[string]role) map[string]time.Duration {
	took := make(map[string][]time.Duration)
	for name, r := range roles {
		r.drive(b, n/4, connections, headers[name]) // warm up
	}
	for range 7 {
		for name, r := range roles {
			took[name] = append(took[name], r.drive(b, n, connections, headers[name]))
		}
	}
	out := make(map[string]time.Duration)
	for name, list := range took {
		slices.Sort(list)
		out[name] = list[len(list)/2]
		b.ReportMetric(float64(out[name])/1e3, name+"-µs")
	}
	return out
}

// BenchmarkProxy reports requests per processor second as ratios: ours without a room to
// httputil.ReverseProxy as it comes (budget: at least 2.5), with 64 visitors at once; and ours with a room and a proof to
// ours without (at least 0.95). The role "plain" is httputil.ReverseProxy with nothing but
// our transport and buffers: what it saves over "room-off" is the price of the hygiene.
func BenchmarkProxy(b *testing.B) {
	origin := startRole(b, "origin").addr
	roles := make(map[string]role)
	for _, name := range []string{"untuned", "plain", "room-off", "room-on"} {
		roles[name] = startRole(b, name+" "+origin)
	}
	// The same request for all: the cookie is part of it with the room on and with it off.
	for name, r := range roles {
		r.cookie = roles["room-on"].cookie
		roles[name] = r
	}
	for b.Loop() {
		m := rounds(b, 4000, 64, nil, roles)
		b.ReportMetric(float64(m["untuned"])/float64(m["room-off"]), "tuned/untuned")
		b.ReportMetric(float64(m["room-off"])/float64(m["room-on"]), "on/off")
	}
}

// BenchmarkQueued reports requests per processor second of waiting visitors as ratios to a
// bare net/http handler with an answer of the same kind: page (budget: at least 0.65) and
// JSON (at least 0.75).
func BenchmarkQueued(b *testing.B) {
	roles := make(map[string]role)
	for _, name := range []string{"bare", "bare-json", "queued", "queued-json"} {
		roles[name] = startRole(b, name)
	}
	for name, r := range roles {
		r.cookie = roles["queued"].cookie // the same request for all
		if name == "queued-json" {
			continue
		}
		roles[name] = r
	}
	headers := map[string]string{"queued-json": "Accept: application/json\r\n", "bare-json": "Accept: application/json\r\n"}
	for b.Loop() {
		m := rounds(b, 20000, 32, headers, roles)
		b.ReportMetric(float64(m["bare"])/float64(m["queued"]), "page/bare")
		b.ReportMetric(float64(m["bare-json"])/float64(m["queued-json"]), "json/bare")
	}
}
