package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anteroom/anteroom"
)

// nowhere is a ResponseWriter that keeps nothing but its headers' map.
type nowhere struct{ h http.Header }

func (n *nowhere) Header() http.Header         { return n.h }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// BenchmarkGate is our own part of a request, without net/http's and the origin's.
func BenchmarkGate(b *testing.B) {
	for _, c := range []struct {
		name   string
		decide func(anteroom.Visit) anteroom.Decision
		ticket anteroom.Ticket
		accept string
	}{
		{"page", line, waiting(), "text/html"},
		{"json", line, waiting(), "application/json"},
		{"admitted", admit, session(), "text/html"},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, g, cookie := benchGateway(b, c.decide, c.ticket)
			h := g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r := httptest.NewRequest("GET", "http://"+testHost+"/products?page=2", nil)
			w := &nowhere{h: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				clear(r.Header)
				r.Header["Cookie"] = cookie
				r.Header["Accept-Encoding"] = []string{"gzip, deflate, br"}
				r.Header["Accept"] = []string{c.accept}
				r.Header["User-Agent"] = valueTextHTML
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkVerdict is our own part of a proxy's question about a request of an active user.
func BenchmarkVerdict(b *testing.B) {
	_, g, cookie := benchGateway(b, admit, session())
	h := g.ForwardAuth()
	r := httptest.NewRequest("GET", "/check/nginx", nil)
	r.Host, r.RemoteAddr = testHost, "127.0.0.1:5000"
	w := &nowhere{h: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		clear(r.Header)
		r.Header["Cookie"] = cookie
		r.Header["X-Original-Method"], r.Header["X-Original-Host"], r.Header["X-Original-Uri"] = []string{"GET"}, []string{testHost}, []string{"/products?page=2"}
		r.Header["X-Forwarded-Proto"], r.Header["X-Forwarded-For"] = []string{"http"}, []string{"192.0.2.7"}
		h.ServeHTTP(w, r)
	}
}

func benchGateway(b *testing.B, decide func(anteroom.Visit) anteroom.Decision, t anteroom.Ticket) (*setup, *Gateway, []string) {
	b.Helper()
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}, JSONResponse: true}.WithDefaults()
	g, s := roleGateway("127.0.0.1:9", room, decide, true)
	rm := s.rooms[0]
	return s, g, []string{"theme=dark; " + rm.scope.Name + "=" + string(rm.sealer.Seal(nil, t))}
}
