package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// real is a gateway with a real node behind it, and the room's own figures.
type real struct {
	*world
	room *node.Room
}

// runNode returns a node that serves rooms until stop or the end of the context, and its store.
func runNode(ctx context.Context, t *testing.T, rooms ...anteroom.Room) (n *node.Node, link cluster.Link, stop func()) {
	t.Helper()
	link = memlink.New()
	ctx, cancel := context.WithCancel(ctx)
	n, err := node.New(ctx, node.Config{Link: link})
	if err == nil {
		err = n.Apply(ctx, rooms)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	return n, link, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func newReal(t *testing.T, origin http.HandlerFunc, edit func(*anteroom.Room), more ...func(*Config)) real {
	t.Helper()
	rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}, EnabledOriginCommands: []string{anteroom.CommandRevoke},
		Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 10_000, Refresh: time.Second, Unpaced: true}}
	if edit != nil {
		edit(&rm)
	}
	rm = rm.WithDefaults()
	n, link, stop := runNode(context.Background(), t, rm)
	w := &world{t: t, keys: ticket.NewKeyring(time.Now()), origin: newRecorder(t, origin)}
	cfg := Config{
		Sites: []Site{{Hosts: []string{"*"}, Origins: []*url.URL{parse(t, w.origin.URL)}, PreserveHost: true}},
		Rooms: []anteroom.Room{rm}, Node: n, Keys: w.keys, Proof: testSigner(t),
	}
	for _, f := range more {
		f(&cfg)
	}
	var err error
	if w.gw, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	w.front = httptest.NewUnstartedServer(w.gw)
	start(w.front, w.gw.Server(nil), false)
	t.Cleanup(func() {
		w.gw.Drain(context.Background())
		w.front.Close()
		stop()
		link.Close()
	})
	return real{world: w, room: n.Room(rm.ID)}
}

// visitor keeps the newest ticket, as a browser does.
type visitor struct {
	real
	cookie string
}

func (r real) visitor() *visitor { return &visitor{real: r} }

// get asks for a path and reports whether the origin answered.
func (v *visitor) get(target string, headers ...string) (inside bool, res *http.Response, body string) {
	v.t.Helper()
	res, body = v.do("GET", target, func(r *http.Request) {
		header(headers...)(r)
		if v.cookie != "" {
			r.Header.Set("Cookie", v.cookie)
		}
	})
	v.keep(res)
	return res.Header.Get("X-Origin") != "", res, body
}

func (v *visitor) keep(res *http.Response) {
	for _, line := range res.Header["Set-Cookie"] {
		pair, rest, _ := strings.Cut(line, ";")
		if v.cookie = pair; strings.Contains(rest, "Max-Age=0") {
			v.cookie = ""
		}
	}
}

// awaitTurn holds a stream until the turn has come.
func (v *visitor) awaitTurn() { v.t.Helper(); v.awaitAt("/") }

func (v *visitor) awaitAt(path string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		r, _ := http.NewRequestWithContext(ctx, "GET", v.front.URL+path+"?__anteroom=stream", nil)
		r.Host = testHost
		r.Header.Set("Cookie", v.cookie)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			v.t.Fatal(err)
		}
		v.keep(res)
		in := bufio.NewScanner(res.Body)
		for in.Scan() {
			if in.Text() == "event: go" {
				res.Body.Close()
				return
			}
		}
		res.Body.Close()
	}
	v.t.Fatal("the turn did not come")
}

// shop is an origin that marks its answers and ends the session at /logout.
func shop(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("X-Origin", "shop")
	if strings.HasSuffix(r.URL.Path, "/logout") {
		rw.Header().Set("Cf-Waiting-Room-Command", "revoke")
	}
	io.WriteString(rw, "inside")
}

func TestWaitAndGetIn(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newReal(t, shop, nil)
	a, b := w.visitor(), w.visitor()
	if in, _, _ := a.get("/"); !in {
		t.Fatal("the first visitor waits")
	}
	in, res, body := b.get("/cart")
	if in || res.StatusCode != 200 || !strings.Contains(body, "Waiting Room powered by Anteroom") {
		t.Fatalf("the second visitor: %d %.100q", res.StatusCode, body)
	}
	if in, _, _ := a.get("/again"); !in {
		t.Error("a session waits")
	}
	if _, _, body := b.get("/cart?__anteroom=status", "Sec-Fetch-Dest", "empty"); !strings.Contains(body, `"admitted":false`) {
		t.Errorf("status: %s", body)
	}
	held := a.cookie
	if in, _, _ := a.get("/logout"); !in || a.cookie != "" {
		t.Errorf("inside %v, cookie %q after logging out", in, a.cookie)
	}
	b.awaitTurn()
	if in, _, _ := b.get("/cart"); !in {
		t.Error("at the turn the visitor still waits")
	}
	// The revoked session does not come back, and waits behind.
	a.cookie = held
	if in, _, _ := a.get("/"); in {
		t.Error("a revoked session was let in")
	}
}

// TestBankedTicket is T5 and T6: a kept waiting ticket does not bring anybody in a second
// time, and its copies bring in one.
func TestBankedTicket(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newReal(t, shop, nil)
	a, b := w.visitor(), w.visitor()
	a.get("/")
	b.get("/")
	banked := b.cookie
	a.get("/logout")
	b.awaitTurn()

	var all sync.WaitGroup
	var mu sync.Mutex
	sessions := make(map[string]bool)
	inside := 0
	for range 20 {
		all.Go(func() {
			clone := &visitor{real: w, cookie: b.cookie}
			in, _, _ := clone.get("/")
			mu.Lock()
			defer mu.Unlock()
			if in {
				inside++
			}
		})
	}
	all.Wait()
	for _, r := range w.origin.requests() {
		if r.URL.Path == "/" {
			sessions[r.Header.Get("X-Anteroom-Assertion")] = true
		}
	}
	if n := w.room.Status().ActiveUsers; n != 1 || inside == 0 {
		t.Errorf("%d active users, %d of 20 copies inside", n, inside)
	}
	b.get("/logout")
	late := &visitor{real: w, cookie: banked}
	c := w.visitor()
	c.get("/") // takes the seat, or the line is empty and late may have it as a newcomer
	if in, _, _ := late.get("/"); in {
		t.Error("the banked ticket was good for a second session")
	}
}

// TestPartsTakeNoPlace is T20 and T21.
func TestPartsTakeNoPlace(t *testing.T) {
	w := newReal(t, shop, nil)
	w.visitor().get("/")
	for i := range 50 {
		v := w.visitor()
		in, res, _ := v.get(fmt.Sprintf("/%d.png", i), "Sec-Fetch-Dest", "image")
		if in || res.StatusCode != 429 || v.cookie != "" {
			t.Fatalf("image: inside %v, %d, cookie %q", in, res.StatusCode, v.cookie)
		}
		if in, _, _ := w.visitor().get("/", "Sec-Purpose", "prefetch;prerender"); in {
			t.Fatal("a prefetch got in")
		}
		v = w.visitor()
		if in, res, _ := v.get("/report.pdf", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "navigate"); in || res.StatusCode != 429 || v.cookie != "" {
			t.Fatalf("download: inside %v, %d, cookie %q", in, res.StatusCode, v.cookie)
		}
	}
	if s := w.room.Status(); s.Waiting != 0 || s.ActiveUsers != 1 {
		t.Errorf("%+v", s)
	}
}

// TestBestOfTwoTickets is T14 and T15: a worse ticket of the same name beside one's own
// changes nothing.
func TestBestOfTwoTickets(t *testing.T) {
	w := newReal(t, shop, nil)
	a, b := w.visitor(), w.visitor()
	a.get("/")
	b.get("/")
	mixed := &visitor{real: w, cookie: b.cookie + "; " + a.cookie}
	if in, _, _ := mixed.get("/"); !in {
		t.Error("the session was not found behind a waiting ticket")
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*anteroom.Room)
		inside  bool
		cookie  bool
		refresh bool
	}{
		{"suspended", func(r *anteroom.Room) { r.Suspended = true }, true, false, false},
		{"passthrough", func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough }, true, true, false},
		{"reject", func(r *anteroom.Room) { r.QueueingMethod = anteroom.Reject }, false, false, false},
		{"queue all", func(r *anteroom.Room) { r.QueueAll = true }, false, true, true},
		{"random", func(r *anteroom.Room) { r.QueueingMethod, r.TotalActiveUsers = anteroom.Random, 0 }, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newReal(t, shop, c.edit)
			v := w.visitor()
			in, res, _ := v.get("/")
			if in != c.inside || c.cookie != (v.cookie != "") || c.refresh != (res.Header.Get("Refresh") != "") {
				t.Errorf("inside %v, cookie %q, refresh %q", in, v.cookie, res.Header.Get("Refresh"))
			}
		})
	}
}

func TestTunnelEndsWithItsSession(t *testing.T) {
	w := newReal(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			echo(rw, r)
			return
		}
		shop(rw, r)
	}, nil)
	a, b := w.visitor(), w.visitor()
	a.get("/")
	b.get("/")
	if _, _, res := dialWebSocket(t, w.addr(), "Cookie: "+b.cookie+"\r\n"); res.StatusCode != 429 {
		t.Errorf("waiting: %d", res.StatusCode)
	}
	c, br, res := dialWebSocket(t, w.addr(), "Cookie: "+a.cookie+"\r\n")
	if res.StatusCode != 101 {
		t.Fatalf("inside: %d", res.StatusCode)
	}
	io.WriteString(c, "hello\n")
	if line, _ := br.ReadString('\n'); line != "hello\n" {
		t.Errorf("heard %q", line)
	}
	start := time.Now()
	a.get("/logout")
	if !isClosed(br) || time.Since(start) > 2*time.Second {
		t.Errorf("closed after %v", time.Since(start))
	}
}
