package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/ticket"
)

// programmed is a door that decides what a test tells it to, and remembers what it was
// asked.
type programmed struct {
	mu       sync.Mutex
	decide   func(v anteroom.Visit) anteroom.Decision
	watch    func(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision)
	best     func([]anteroom.Ticket) int
	recorder *analytics.Recorder
	visits   []anteroom.Visit
	touched  chan struct{} // one value for each Touch, as far as it holds them
	revoked  []anteroom.ID
	reported []anteroom.Ticket
	asked    int    // how often for these
	partly   bool   // they are not all
	asking   func() // called first
	ended    chan struct{}
	facts    []engine.OriginFacts
	told     chan engine.OriginFacts // those that differ from the one before
	in       anteroom.Settings
	shuffle  func(event anteroom.EventID, number int) (*anteroom.Shuffle, bool)
}

func (p *programmed) Shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shuffle == nil {
		return nil, false
	}
	return p.shuffle(event, number)
}

func (p *programmed) Recorder() *analytics.Recorder { return p.recorder }

func (p *programmed) Decide(_ context.Context, v anteroom.Visit) anteroom.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = append(p.visits, v)
	return p.decide(v)
}

func (p *programmed) Best(ts []anteroom.Ticket) int {
	if p.best != nil {
		return p.best(ts)
	}
	for i, t := range ts {
		if t.Accepted() {
			return i
		}
	}
	return 0
}

func (p *programmed) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = append(p.visits, v)
	return p.watch(ctx, v)
}

func (p *programmed) Touch(anteroom.ID) bool {
	select {
	case p.touched <- struct{}{}:
	default:
	}
	return true
}

func (p *programmed) Reported(t anteroom.Ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reported = append(p.reported, t)
	return !slices.Contains(p.revoked, t.ID)
}

func (p *programmed) Revoke(id anteroom.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revoked = append(p.revoked, id)
	return true
}

func (p *programmed) Revoked(context.Context) ([]anteroom.ID, bool) {
	if p.asking != nil {
		p.asking()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.revoked, !p.partly
}

func (p *programmed) Ended(context.Context, anteroom.ID) <-chan struct{} { return p.ended }

func (p *programmed) Settings() anteroom.Settings { return p.in }

func (p *programmed) Origin(f engine.OriginFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told != nil && (len(p.facts) == 0 || p.facts[len(p.facts)-1] != f) {
		p.told <- f
	}
	p.facts = append(p.facts, f)
}

// seen returns the visits so far.
func (p *programmed) seen() []anteroom.Visit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]anteroom.Visit(nil), p.visits...)
}

func (p *programmed) program(f func(v anteroom.Visit) anteroom.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = f
}

// testNow is room time in tests; it moves with the real clock.
func testNow() anteroom.Time { return anteroom.TimeOf(time.Now()) }

// admit lets everybody in, with a fresh session when there is none.
func admit(v anteroom.Visit) anteroom.Decision {
	now := testNow()
	d := anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonSession, Ticket: v.Ticket, At: now}
	if !v.Ticket.Accepted() {
		d.Reason, d.SetCookie = anteroom.ReasonFreeSlot, true
		d.Ticket.Arrival, d.Ticket.AcceptedAt, d.Ticket.LastCheckIn = now, now, now
	}
	return d
}

// line keeps everybody waiting; sub-resources and prefetches do not join.
func line(v anteroom.Visit) anteroom.Decision {
	now := testNow()
	d := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonWaiting, Ticket: v.Ticket, At: now, SetCookie: true,
		Method: anteroom.FIFO, Ahead: 41, AheadKnown: true, Waiting: 99, WaitTime: 3 * time.Minute, WaitKnown: true,
		Refresh: 20 * time.Second, KeptUntil: now.Add(5 * time.Minute), Stream: true}
	if v.Fresh {
		if v.NoJoin || v.NoClaim {
			return anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonNotJoining, At: now}
		}
		d.Reason = anteroom.ReasonLine
		d.Ticket.Arrival = now
	}
	d.Ticket.LastCheckIn, d.Ticket.Next, d.Ticket.Refresh = now, now.Add(20*time.Second), 20*time.Second
	return d
}

// world is a gateway with an origin and one room for shop.example in front of all.
type world struct {
	t      *testing.T
	gw     *Gateway
	door   *programmed
	room   anteroom.Room
	keys   *ticket.Keyring
	origin *recorder
	front  *httptest.Server
}

// recorder is an origin that remembers every request.
type recorder struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []*http.Request
	bodies  []string
	handler http.HandlerFunc // after recording; nil answers "origin"
}

func newRecorder(t *testing.T, h http.HandlerFunc) *recorder {
	rec := &recorder{handler: h}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := ""
		if r.Header.Get("Upgrade") == "" {
			b, _ := io.ReadAll(r.Body)
			body = string(b)
		}
		rec.mu.Lock()
		rec.seen = append(rec.seen, r)
		rec.bodies = append(rec.bodies, body)
		rec.mu.Unlock()
		if rec.handler != nil {
			rec.handler(w, r)
			return
		}
		io.WriteString(w, "origin")
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (rec *recorder) requests() []*http.Request {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return append([]*http.Request(nil), rec.seen...)
}

func (rec *recorder) last(t *testing.T) *http.Request {
	t.Helper()
	all := rec.requests()
	if len(all) == 0 {
		t.Fatal("the origin saw no request")
	}
	return all[len(all)-1]
}

type option func(*world, *Config)

func withOrigin(h http.HandlerFunc) option { return func(w *world, _ *Config) { w.origin.handler = h } }
func withConfig(f func(*Config)) option    { return func(_ *world, c *Config) { f(c) } }
func withRoom(f func(*anteroom.Room)) option {
	return func(w *world, c *Config) { f(&w.room); c.Rooms = []anteroom.Room{w.room} }
}

const testHost = "shop.example.com"

func newWorld(t *testing.T, decide func(anteroom.Visit) anteroom.Decision, opts ...option) *world {
	t.Helper()
	w := &world{t: t, keys: ticket.NewKeyring(time.Now()), origin: newRecorder(t, nil)}
	w.room = anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost, Path: "/"}}}
	cfg := Config{
		Sites: []Site{{Hosts: []string{testHost, "open.example.com"}, Origins: []*url.URL{parse(t, w.origin.URL)}, PreserveHost: true}},
		Rooms: []anteroom.Room{w.room},
		Keys:  w.keys,

		NoFastPath: isOverNetHTTP(t),
	}
	for _, o := range opts {
		o(w, &cfg)
	}
	w.room = cfg.Rooms[0].WithDefaults()
	w.door = &programmed{decide: decide, ended: make(chan struct{}), touched: make(chan struct{}, 8), in: w.room.Settings,
		recorder: analytics.NewRecorder(w.room.ID, 1, func() anteroom.Time { return anteroom.TimeOf(time.Now()) })}
	by := map[anteroom.RoomID]*programmed{w.room.ID: w.door}
	for _, r := range cfg.Rooms[1:] {
		r = r.WithDefaults()
		by[r.ID] = &programmed{decide: decide, in: r.Settings}
	}
	w.gw = build(t, cfg, by)
	w.front = httptest.NewUnstartedServer(w.gw)
	w.front.EnableHTTP2 = true
	start(w.front, w.gw.Server(nil), false)
	t.Cleanup(w.front.Close)
	return w
}

// start has a test's server serve as srv does.
func start(front *httptest.Server, srv *h1.Server, secure bool) {
	real, done := front.Listener, make(chan struct{})
	front.Config, front.Listener = srv.Server, silent{real, done, new(sync.Once)}
	if secure {
		front.StartTLS()
		real = tls.NewListener(real, front.TLS)
	} else {
		front.Start()
	}
	go srv.Serve(real)
}

// silent is a listener whose connections another server accepts.
type silent struct {
	net.Listener
	done chan struct{}
	once *sync.Once
}

func (s silent) Accept() (net.Conn, error) {
	<-s.done
	return nil, net.ErrClosed
}

func (s silent) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.Listener.Close()
}

func build(t testing.TB, cfg Config, by map[anteroom.RoomID]*programmed) *Gateway {
	t.Helper()
	g := newGateway()
	s, err := newSetup(cfg, nil, doors{now: testNow, of: func(id anteroom.RoomID) door {
		if d := by[id]; d != nil {
			return d
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.put(s)
	return g
}

func parse(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// config is what the world's gateway was made with.
func (w *world) config() Config {
	live := w.gw.live.Load()
	cfg := live.Config
	for _, m := range live.table.Rooms() {
		cfg.Rooms = append(cfg.Rooms, *m.Room)
	}
	return cfg
}

// seal returns the cookie pair of a ticket of the world's room.
func (w *world) seal(tk anteroom.Ticket) string {
	rm := w.gw.live.Load().rooms[0]
	return rm.scope.Name + "=" + string(rm.sealer.Seal(nil, tk))
}

// session is an accepted ticket.
func session() anteroom.Ticket {
	now := testNow()
	return anteroom.Ticket{ID: ticket.NewID(), Arrival: now, AcceptedAt: now, LastCheckIn: now}
}

func waiting() anteroom.Ticket {
	now := testNow()
	return anteroom.Ticket{ID: ticket.NewID(), Arrival: now, LastCheckIn: now, Next: now, Refresh: 20 * time.Second}
}

// do sends a request for testHost and returns the answer with its body.
func (w *world) do(method, target string, edit func(*http.Request)) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.front.URL+target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Host = testHost
	if edit != nil {
		edit(r)
	}
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

func header(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

// raw sends bytes as they are and returns the answers that came until the connection
// closed or wait ran out, whichever was first.
func raw(t *testing.T, addr, bytes string) []*http.Response {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	// The other side may close before it has read all: that is one of the answers.
	go io.WriteString(c, strings.ReplaceAll(bytes, "\n", "\r\n"))
	var out []*http.Response
	br := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			return out
		}
		io.Copy(io.Discard, res.Body)
		out = append(out, res)
		if res.Close {
			return out
		}
	}
}

func (w *world) addr() string { return w.front.Listener.Addr().String() }

// rawOne is raw for a request that asks for the connection to be closed.
func (w *world) rawOne(bytes string) int {
	w.t.Helper()
	all := raw(w.t, w.addr(), bytes)
	if len(all) == 0 {
		return 0
	}
	return all[0].StatusCode
}

// recorded is what the room has counted.
func (w *world) recorded() *analytics.Totals {
	total := w.gw.live.Load().rooms[0].door.Recorder().Totals()
	return &total
}
