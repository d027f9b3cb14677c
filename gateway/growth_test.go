package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

// TestClientDataFillsNoMemory: nothing here is keyed by what a client says. A hundred
// thousand names, addresses, agents and tickets leave the heap as it was.
func TestClientDataFillsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const requests = 100_000
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}}.WithDefaults()
	door := &programmed{in: room.Settings}
	door.program(func(v anteroom.Visit) anteroom.Decision {
		door.visits = door.visits[:0]
		return line(v)
	})
	g := build(t, Config{Rooms: []anteroom.Room{room}, Keys: ticket.NewKeyring(time.Now())}, map[anteroom.RoomID]*programmed{room.ID: door})
	every := g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(i int, edit func(r *http.Request)) {
		r := httptest.NewRequest("GET", "/", nil)
		edit(r)
		rec := httptest.NewRecorder()
		every.ServeHTTP(rec, r)
		if rec.Code >= 500 {
			t.Fatalf("request %d: %d", i, rec.Code)
		}
	}
	kinds := map[string]func(i int, r *http.Request){
		"hosts":       func(i int, r *http.Request) { r.Host = fmt.Sprintf("h%d.example.com", i) },
		"no hosts":    func(i int, r *http.Request) { r.Host = fmt.Sprintf("h%d/x", i) },
		"paths":       func(i int, r *http.Request) { r.URL.Path = fmt.Sprintf("/%d/..;/%d", i, i); r.RequestURI = r.URL.Path },
		"questions":   func(i int, r *http.Request) { r.URL.RawQuery = fmt.Sprintf("__anteroom=%d", i) },
		"agents":      func(i int, r *http.Request) { r.Header.Set("User-Agent", fmt.Sprint("agent ", i)) },
		"headers":     func(i int, r *http.Request) { r.Header.Set(fmt.Sprint("X-Forwarded-", i), "x") },
		"tickets":     func(i int, r *http.Request) { r.Header.Set("Cookie", fmt.Sprint("__cfwaitingroom=", i)) },
		"cookies":     func(i int, r *http.Request) { r.Header.Set("Cookie", fmt.Sprint("__cfwaitingroom_", i, "=x")) },
		"peers":       func(i int, r *http.Request) { r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:80", i>>16, i&0xffff) },
		"methods":     func(i int, r *http.Request) { r.Method = fmt.Sprint("M", i) },
		"subresource": func(i int, r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "image"); r.Host = fmt.Sprint("h", i) },
		"preflights": func(i int, r *http.Request) {
			r.Method, r.RemoteAddr = "OPTIONS", fmt.Sprintf("[2001:db8:%x:%x::1]:80", i>>16, i&0xffff)
			r.Header.Set("Origin", "https://x.example")
			r.Header.Set("Access-Control-Request-Method", "POST")
		},
	}
	run := func(n int) {
		for _, kind := range kinds {
			for i := range n / len(kinds) {
				send(i, func(r *http.Request) { kind(i, r) })
			}
		}
	}
	run(1200)
	before := heap()
	run(requests)
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over %d requests", grown, requests)
	}
}

// TestConnectionsLeaveNothing: what is remembered of a connection goes with it.
func TestConnectionsLeaveNothing(t *testing.T) {
	w := newWorld(t, line)
	open := &connections{g: w.gw}
	srv := w.gw.Server(nil)
	srv.ConnContext, srv.ConnState = open.opened, open.changed
	front := httptest.NewUnstartedServer(w.gw)
	start(front, srv, false)
	w.front.Close()
	w.front = front
	for range 50 {
		w.do("GET", "/", nil)
	}
	front.Close()
	n := 0
	open.open.Range(func(any, any) bool { n++; return true })
	if n != 0 {
		t.Errorf("%d connections are remembered after all have closed", n)
	}
	if s := w.gw.Stats(); s.InFlight != 0 || s.Streams != 0 || s.Tunnels != 0 {
		t.Errorf("%+v", s)
	}
}
