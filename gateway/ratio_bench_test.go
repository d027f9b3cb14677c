package gateway

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/engine"
)

func (a answering) Decide(_ context.Context, v anteroom.Visit) anteroom.Decision { return a.decide(v) }
func (a answering) Best([]anteroom.Ticket) int                                   { return 0 }
func (a answering) Watch(context.Context, anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
	return anteroom.Decision{}, nil
}
func (a answering) Touch(anteroom.ID) bool                                { return true }
func (a answering) Reported(anteroom.Ticket) bool                         { return true }
func (a answering) Revoke(anteroom.ID) bool                               { return true }
func (answering) Revoked(context.Context) ([]anteroom.ID, bool)           { return nil, true }
func (a answering) Ended(context.Context, anteroom.ID) <-chan struct{}    { return nil }
func (a answering) Settings() anteroom.Settings                           { return a.in }
func (answering) Origin(engine.OriginFacts)                               {}
func (answering) Recorder() *analytics.Recorder                           { return nil }
func (answering) Shuffle(anteroom.EventID, int) (*anteroom.Shuffle, bool) { return nil, false }

// measured is what a request needed, by role and round.
type measured map[string][]usage

// of returns the processor times of a role, by round.
func (m measured) of(role string) (out []time.Duration) {
	for _, u := range m[role] {
		out = append(out, u.cpu)
	}
	return out
}

// rounds alternates between the roles, so that what else the machine does meets all of
// them. It reports the median of each role.
func rounds(b *testing.B, n, connections int, roles map[string]role) measured {
	const many = 25
	took := make(measured)
	clients := make(map[string][]client)
	for name, r := range roles {
		clients[name] = r.clients(b, connections)
		r.drive(b, n, clients[name]) // warm up
	}
	for range many {
		for name, r := range roles {
			took[name] = append(took[name], r.drive(b, n, clients[name]))
		}
	}
	for name, list := range took {
		b.ReportMetric(float64(slices.Sorted(slices.Values(took.of(name)))[many/2])/1e3, name+"-µs")
		b.ReportMetric(float64(list[many-1].mallocs), name+"-allocs")
	}
	return took
}

// ratio reports how many requests of role a a processor serves in the time of one of role
// other: the median of the rounds, and in the log its spread, and what comes of the fastest
// fifth of each role's rounds, which other work on the machine has disturbed least.
func (m measured) ratio(b *testing.B, name, a, other string) {
	var list []float64
	for i, t := range m.of(a) {
		list = append(list, float64(m[other][i].cpu)/float64(t))
	}
	slices.Sort(list)
	b.ReportMetric(list[len(list)/2], name)
	fast := func(role string) float64 {
		return float64(slices.Sorted(slices.Values(m.of(role)))[len(m[role])/5])
	}
	b.Logf("%s: median %.3f, half of the rounds within %.3f to %.3f, all within %.3f to %.3f; fast rounds %.3f",
		name, list[len(list)/2], list[len(list)/4], list[len(list)-1-len(list)/4], list[0], list[len(list)-1], fast(other)/fast(a))
}

// BenchmarkProxy reports requests per processor second as ratios, with 64 visitors at once.
//
//   - on/off: with a room and a proof to without (budget: at least 0.95).
//
//   - tuned/untuned: without a room to httputil.ReverseProxy as it comes, whose transport
//     keeps two idle connections (budget: at least 2.5).
//
//   - on/nethttp: with a room and a proof, over the fast path to over net/http's transport.
//
// The roles "plain" and "plain-fast" are httputil.ReverseProxy with nothing but our buffers and net/http's transport or
// ours: what they save over "off" is the price of the hygiene.
func BenchmarkProxy(b *testing.B) {
	origin := startRole(b, "origin").addr
	roles := map[string]role{"on": startRole(b, "room-on "+origin)}
	for name, played := range map[string]string{"untuned": "untuned ", "plain": "plain ", "plain-fast": "plain-fast ", "off": "room-off "} {
		r := startRole(b, played+origin)
		r.cookies = roles["on"].cookies // the same requests for all
		roles[name] = r
	}
	roles["nethttp"] = startRole(b, "room-on-nethttp "+origin)
	for b.Loop() {
		m := rounds(b, 3200, 64, roles)
		m.ratio(b, "tuned/untuned", "off", "untuned")
		m.ratio(b, "on/off", "on", "off")
		m.ratio(b, "on/nethttp", "on", "nethttp")
		m.ratio(b, "plain-fast/plain", "plain-fast", "plain")
		m.ratio(b, "plain/untuned", "plain", "untuned")
	}
}

// BenchmarkQueued reports requests per processor second of visitors in a line of 20,000,
// each a check-in that counts, as ratios to a bare net/http handler: page (budget: at
// least 0.65) and JSON (at least 0.75) to one that writes a body of the same size, which is
// how the budgets were found, and to one that writes twelve bytes.
func BenchmarkQueued(b *testing.B) {
	for kind, headers := range map[string]string{"page": "", "json": "Accept: application/json\r\n"} {
		b.Run(kind, func(b *testing.B) {
			queued := startRole(b, "queued")
			queued.headers = headers
			res := queued.answer(b, 0)
			if res.Header.Get("Refresh") == "" || res.Header.Get("Set-Cookie") == "" {
				b.Fatalf("no check-in that counts: %v", res.Header)
			}
			roles := map[string]role{kind: queued}
			for name, size := range map[string]int64{"bare": res.ContentLength, "tiny": 12} {
				r := startRole(b, fmt.Sprint("bare ", size))
				r.cookies, r.headers = queued.cookies, headers // the same requests for all
				roles[name] = r
			}
			b.ReportMetric(float64(res.ContentLength), "bytes")
			for b.Loop() {
				m := rounds(b, 6400, 32, roles)
				m.ratio(b, kind+"/bare", kind, "bare")
				m.ratio(b, kind+"/tiny", kind, "tiny")
			}
		})
	}
}

// BenchmarkNewcomers reports the processor time of a request that joins the queue beside that of a check-in, in alternating rounds at one
// server: new/poll (budget: 1.2). With a disk, its place is recorded by a journal there. There are fewer new visitors than may have a place
// before they come back.
func BenchmarkNewcomers(b *testing.B) {
	for kind, headers := range map[string]string{"page": "", "json": "Accept: application/json\r\n"} {
		for _, where := range []string{"memory", "disk"} {
			b.Run(kind+"-"+where, func(b *testing.B) {
				played := "queued"
				if where == "disk" {
					played += " " + b.TempDir()
				}
				poll := startRole(b, played)
				poll.headers = headers
				fresh := poll
				fresh.cookies, fresh.headers = nil, headers+someAddress
				for b.Loop() {
					m := rounds(b, 3200, 64, map[string]role{"poll": poll, "new": fresh})
					m.ratio(b, "new/poll", "poll", "new")
				}
			})
		}
	}
}
