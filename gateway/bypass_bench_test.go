package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
)

// path is our own part of a request, ready to be measured: the gate with a real gateway
// around it, without net/http's part and the origin's.
type path struct {
	h       http.Handler
	w       *nowhere
	r       *http.Request
	cookies []string
	hosts   []string
	turn    int
}

// newPath is a gateway with so many rooms, each with a host of its own and these rules, whose
// requests go through the rooms in turn, as many as visited.
func newPath(b *testing.B, rooms, visited int, expressions ...string) *path {
	b.Helper()
	cfg := Config{Keys: ticket.NewKeyring(time.Now()), Proof: roleSigner()}
	for i := range rooms {
		cfg.Rooms = append(cfg.Rooms, anteroom.Room{Name: fmt.Sprintf("room-%d", i), Routes: []anteroom.Route{{Host: fmt.Sprintf("shop-%d.example.com", i)}}})
	}
	if len(expressions) > 0 {
		ruled(b, expressions...)(&cfg)
	}
	g := newGateway()
	s, err := newSetup(cfg, nil, doors{now: testNow, of: func(anteroom.RoomID) door { return answering{decide: admit} }})
	if err != nil {
		b.Fatal(err)
	}
	g.put(s)
	p := &path{w: &nowhere{h: make(http.Header)}}
	served := 0
	p.h = g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for i := range visited {
		rm := s.rooms[i*(rooms/visited)]
		p.hosts = append(p.hosts, rm.Routes[0].Host)
		p.cookies = append(p.cookies, rm.scope.Name+"="+string(rm.sealer.Seal(nil, session())))
	}
	p.r = httptest.NewRequest("GET", "/products?page=2", nil)
	if p.serve(); served != 1 {
		b.Fatal("the request did not get through")
	}
	return p
}

func (p *path) serve() {
	i := p.turn % len(p.hosts)
	p.turn++
	clear(p.w.h)
	clear(p.r.Header)
	p.r.Host = p.hosts[i]
	p.r.Header["Cookie"] = []string{p.cookies[i]}
	p.r.Header["Accept"] = valueTextHTML
	p.r.Header["User-Agent"] = valueAgent
	p.h.ServeHTTP(p.w, p.r)
}

var valueAgent = []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}

// sideBySide measures the paths in turns, so that what else the machine does meets all of
// them, and returns for each the median of its ratios to the first.
func sideBySide(paths []*path) []float64 {
	const rounds, requests = 301, 400
	took := make([][]time.Duration, len(paths))
	for range rounds {
		for i, p := range paths {
			start := time.Now()
			for range requests {
				p.serve()
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	out := make([]float64, len(paths))
	for i := range paths {
		ratios := make([]float64, rounds)
		for j := range ratios {
			ratios[j] = float64(took[i][j]) / float64(took[0][j])
		}
		slices.Sort(ratios)
		out[i] = ratios[rounds/2]
	}
	return out
}

// BenchmarkRules reports the price of a room's rules, none of which matches, as a ratio to the
// same path without any.
func BenchmarkRules(b *testing.B) {
	var paths []*path
	counts := []int{0, 1, 10}
	for _, n := range counts {
		paths = append(paths, newPath(b, 1, 1, typicalRules(n)...))
	}
	for b.Loop() {
		for i, ratio := range sideBySide(paths)[1:] {
			b.ReportMetric(ratio, fmt.Sprintf("%d-rules/none", counts[i+1]))
		}
	}
}

// BenchmarkBypass is the request path by what the rules say of it.
func BenchmarkBypass(b *testing.B) {
	for name, expressions := range map[string][]string{"no-rules": nil, "1-rule": typicalRules(1), "10-rules": typicalRules(10), "matched": {`http.request.uri.path eq "/products"`}} {
		b.Run(name, func(b *testing.B) {
			p := newPath(b, 1, 1, expressions...)
			b.ReportAllocs()
			for b.Loop() {
				p.serve()
			}
		})
	}
}

// BenchmarkTenThousandRoomsServed reports requests per processor second, through net/http and
// to an origin, with a node and everything that it does beside: of a process with 10,000 rooms
// and visitors in a hundred of them, to one with one room (budget: at least 0.95).
func BenchmarkTenThousandRoomsServed(b *testing.B) {
	origin := startRole(b, "origin").addr
	roles := map[string]role{}
	for name, rooms := range map[string]int{"one": 1, "many": anteroom.MaxRooms} {
		r := startRole(b, fmt.Sprintf("rooms %d %s", rooms, origin))
		r.hosts = roleHosts(rooms)
		roles[name] = r
	}
	for b.Loop() {
		rounds(b, 3000, 100, roles).ratio(b, "10000/1", "many", "one")
	}
}

// BenchmarkTenThousandRooms reports our own part of the request path in a process of 10,000 rooms as a ratio to
// the same with one (budget: at most 1.05), for visitors of one of the rooms; and for visitors
// of a thousand of them in turn, which is the price of what the processor's caches do not hold.
func BenchmarkTenThousandRooms(b *testing.B) {
	paths := []*path{newPath(b, 1, 1), newPath(b, anteroom.MaxRooms, 1), newPath(b, anteroom.MaxRooms, 1000),
		newPath(b, 1, 1, typicalRules(10)...), newPath(b, anteroom.MaxRooms, 1, typicalRules(10)...)}
	for b.Loop() {
		ratios := sideBySide(paths)
		b.ReportMetric(ratios[1], "10000-rooms/1")
		b.ReportMetric(ratios[2], "1000-visited/1")
		b.ReportMetric(ratios[4]/ratios[3], "10000-ruled/1")
	}
}

var _ rules.Geo = places{}
