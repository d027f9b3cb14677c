package load

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// toy is the smallest waiting room that keeps its promises: everything under one lock, the
// whole line walked for every request. Its faults can be switched on one by one.
type toy struct {
	active, perMinute int
	stay              time.Duration

	tooMany   int  // admits so many above the active limit
	tooFast   int  // and so many above the rate
	unfair    bool // the last come first
	forgetful bool // loses everything when killed
	rude      bool // throws every tenth admitted request out
	leaky     bool // lets every hundredth request through without a decision

	mu       sync.Mutex
	line     []*ticket
	tickets  map[string]*ticket
	admitted []time.Time
	issued   int
	asked    int

	origin http.Handler
	wire   *wire
	server *http.Server
	served chan struct{}
}

type ticket struct {
	id      string
	arrival time.Time
	due     time.Time
	told    int
	last    time.Time // of the session; zero while waiting
	stream  bool
}

func (g *toy) open(_ context.Context, origin http.Handler) (string, error) {
	g.origin = origin
	g.tickets = map[string]*ticket{}
	g.start()
	return "http://toy.test", nil
}

func (g *toy) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wire = &wire{conns: make(chan net.Conn), down: make(chan struct{})}
	g.server = &http.Server{Handler: g}
	g.served = make(chan struct{})
	go func(s *http.Server, w *wire, done chan struct{}) { s.Serve(w); close(done) }(g.server, g.wire, g.served)
}

func (g *toy) after(context.Context) error { return nil }

func (g *toy) disaster(context.Context) (time.Time, error) {
	ended := time.Now()
	g.server.Close()
	<-g.served
	if g.forgetful {
		g.mu.Lock()
		g.tickets, g.line, g.admitted = map[string]*ticket{}, nil, nil
		g.mu.Unlock()
	}
	return ended, nil
}

func (g *toy) restart(context.Context) error { g.start(); return nil }

func (g *toy) close() (time.Duration, error) {
	g.server.Close()
	<-g.served
	return 0, nil
}

func (g *toy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	w := g.wire
	g.mu.Unlock()
	return w.dial(ctx)
}

func (g *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	now := time.Now()
	g.forget(now)
	g.asked++
	if g.leaky && g.asked%100 == 0 {
		g.mu.Unlock()
		g.origin.ServeHTTP(w, r)
		return
	}
	var t *ticket
	if c, err := r.Cookie("__cfwaitingroom"); err == nil {
		t = g.tickets[c.Value]
	}
	if t == nil {
		g.issued++
		t = &ticket{id: fmt.Sprintf("t%d", g.issued), arrival: now, told: 1 << 30}
		g.tickets[t.id] = t
		g.line = append(g.line, t)
	}
	t.due = now.Add(refreshAt(g.ahead(t)))
	if t.last.IsZero() && g.turn(t, now) {
		g.admit(t, now)
	}
	ahead, inside := g.ahead(t), !t.last.IsZero()
	if inside {
		t.last = now
	}
	t.told = min(t.told, ahead)
	told := t.told
	thrown := inside && g.rude && g.asked%10 == 0
	g.mu.Unlock()

	w.Header().Set("Set-Cookie", "__cfwaitingroom="+t.id+"; Path=/; HttpOnly")
	refresh := strconv.Itoa(int(refreshAt(ahead) / time.Second))
	switch query := r.URL.RawQuery; {
	case strings.HasPrefix(query, "__anteroom=stream"):
		g.stream(w, r, t)
	case strings.HasPrefix(query, "__anteroom=status"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"admitted":%t,"ahead":%d,"refresh":%s,"stream":%t,"reason":"waiting"}`, inside, told, refresh, ahead < 20)
	case inside && !thrown:
		r.Header.Set("X-Anteroom-Assertion", "e30."+base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+t.id+`"}`))+".c2ln")
		g.origin.ServeHTTP(w, r)
	case r.Header.Get("Accept") == "application/json":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"cfWaitingRoom":{"inWaitingRoom":true,"refreshIntervalSeconds":%s}}`, refresh)
	default:
		w.Header().Set("Refresh", refresh)
		fmt.Fprint(w, "please wait")
	}
}

// stream tells the visitor when the turn has come.
func (g *toy) stream(w http.ResponseWriter, r *http.Request, t *ticket) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	set := func(open bool) { g.mu.Lock(); t.stream = open; g.mu.Unlock() }
	set(true)
	defer set(false)
	for {
		g.mu.Lock()
		now := time.Now()
		g.forget(now)
		t.due = now.Add(time.Second)
		turn := !t.last.IsZero() || g.turn(t, now)
		g.mu.Unlock()
		if turn {
			fmt.Fprint(w, "event: go\ndata: {}\n\n")
			return
		}
		fmt.Fprint(w, ": still here\n\n")
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// forget ends sessions and drops those who have not asked for a minute.
func (g *toy) forget(now time.Time) {
	for id, t := range g.tickets {
		if !t.last.IsZero() && now.Sub(t.last) >= g.stay+time.Millisecond {
			delete(g.tickets, id)
		}
	}
	g.line = slices.DeleteFunc(g.line, func(t *ticket) bool {
		gone := now.Sub(t.due) > time.Minute
		if gone {
			delete(g.tickets, t.id)
		}
		return gone
	})
	g.admitted = slices.DeleteFunc(g.admitted, func(at time.Time) bool { return now.Sub(at) >= 60*time.Second+time.Millisecond })
}

// turn reports whether a slot is left for t after all who are before it and in touch.
func (g *toy) turn(t *ticket, now time.Time) bool {
	inside := 0
	for _, x := range g.tickets {
		if !x.last.IsZero() {
			inside++
		}
	}
	free := min(g.active+g.tooMany-inside, g.perMinute+g.tooFast-len(g.admitted))
	for _, x := range g.line {
		if x == t {
			return free > 0
		}
		if x.due.Sub(now) <= 4*time.Second && now.Sub(x.due) <= time.Second {
			free--
		}
	}
	return false
}

func (g *toy) admit(t *ticket, now time.Time) {
	t.last = now
	g.admitted = append(g.admitted, now)
	g.line = slices.DeleteFunc(g.line, func(x *ticket) bool { return x == t })
}

func (g *toy) ahead(t *ticket) int {
	if g.unfair {
		slices.SortStableFunc(g.line, func(a, b *ticket) int { return cmp.Compare(b.arrival.UnixNano(), a.arrival.UnixNano()) })
	}
	return max(0, slices.Index(g.line, t))
}

func refreshAt(ahead int) time.Duration {
	return min(2+time.Duration(ahead)/10, 60) * time.Second
}

// wire is a network in memory.
type wire struct {
	conns chan net.Conn
	once  sync.Once
	down  chan struct{}
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.down:
		return nil, net.ErrClosed
	}
}
func (w *wire) Close() error   { w.once.Do(func() { close(w.down) }); return nil }
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "toy"} }

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-w.down:
		return nil, fmt.Errorf("connection refused: %w", net.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
