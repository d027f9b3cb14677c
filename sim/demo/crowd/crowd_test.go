package crowd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// wire is a network in memory, so that whole evenings of waiting pass in milliseconds.
type wire struct {
	conns chan net.Conn
	once  sync.Once
	down  chan struct{}
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), down: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.down:
		return nil, net.ErrClosed
	}
}
func (w *wire) Close() error   { w.once.Do(func() { close(w.down) }); return nil }
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "wire"} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-w.down:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// meet lets a crowd loose on a handler in virtual time.
func meet(t *testing.T, h http.Handler, cfg crowd.Config, limit time.Duration) (crowd.Result, time.Duration) {
	t.Helper()
	var r crowd.Result
	var took time.Duration
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		srv := &http.Server{Handler: h}
		var serving sync.WaitGroup
		serving.Go(func() { srv.Serve(w) })
		cfg.Target, cfg.Dial, cfg.Record = "http://shop.test", w.dial, !cfg.Repeat
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begin := time.Now()
		var err error
		if r, err = crowd.Run(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		took = time.Since(begin)
		srv.Close()
		serving.Wait()
	})
	return r, took
}

// gate is programmed by its tests. It counts the requests of every visitor.
type gate struct {
	mu     sync.Mutex
	asked  map[string]int
	ticket map[string]int // requests that carried a ticket
	answer func(g *gate, w http.ResponseWriter, r *http.Request, visitor string, n int)
}

func program(answer func(g *gate, w http.ResponseWriter, r *http.Request, visitor string, n int)) *gate {
	return &gate{asked: map[string]int{}, ticket: map[string]int{}, answer: answer}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := r.Header.Get(shop.VisitorHeader)
	g.asked[v]++
	if c, err := r.Cookie("__cfwaitingroom"); err == nil && c.Value == "ticket-of-"+v {
		g.ticket[v]++
	}
	g.answer(g, w, r, v, g.asked[v])
}

func (g *gate) wait(w http.ResponseWriter, v string, seconds string) {
	w.Header().Set("Set-Cookie", "__cfwaitingroom=ticket-of-"+v+"; Path=/; HttpOnly")
	if seconds != "" {
		w.Header().Set("Refresh", seconds)
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "please wait")
}

func (g *gate) status(w http.ResponseWriter, v string, fields string) {
	w.Header().Set("Set-Cookie", "__cfwaitingroom=ticket-of-"+v+"; Path=/; HttpOnly")
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{"+fields+"}")
}

func (g *gate) in(w http.ResponseWriter) { w.Header().Set(shop.Mark, "1"); fmt.Fprint(w, "shop") }

func one() []crowd.Arrivals { return []crowd.Arrivals{{Visitors: 1}} }

func TestPlainVisitorFollowsTheRefreshHeader(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		if n <= 3 {
			g.wait(w, v, "30; url=/")
			return
		}
		g.in(w)
	})
	r, took := meet(t, g, crowd.Config{Arrivals: one(), Mix: crowd.Mix{Plain: 1}, Pages: 1}, time.Hour)
	v := r.Visitors[0]
	if took < 90*time.Second || took > 92*time.Second {
		t.Errorf("three intervals of 30 s took %v", took)
	}
	if len(v.Polls) != 3 || v.End != crowd.Done || v.Admitted == 0 || v.Asked < 90_000_000 || v.Kind != crowd.Patient || v.Way != crowd.Plain {
		t.Errorf("his story: %+v", v)
	}
	if g.ticket["1"] != 3 {
		t.Errorf("%d requests carried the ticket, want 3", g.ticket["1"])
	}
	if s := r.Stats; s.Arrived != 1 || s.Admitted != 1 || s.Done != 1 || s.Waiting != 0 || s.Inside != 0 || s.Requests != 4 || s.Failures != 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestAppFollowsTheInterval(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		if r.Header.Get("Accept") != "application/json" {
			t.Errorf("an app asks for %q", r.Header.Get("Accept"))
		}
		if n <= 2 {
			g.status(w, v, `"cfWaitingRoom":{"inWaitingRoom":true,"refreshIntervalSeconds":45}`)
			return
		}
		g.in(w)
	})
	if _, took := meet(t, g, crowd.Config{Arrivals: one(), Mix: crowd.Mix{Apps: 1}, Pages: 1}, time.Hour); took < 90*time.Second || took > 91*time.Second {
		t.Errorf("two intervals of 45 s took %v", took)
	}
}

func TestScriptAsksForTheStatusAndSeesItsPlace(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		// A question says which place was shown last.
		want := map[int]string{2: "__anteroom=status", 3: "__anteroom=status.7", 4: "__anteroom=status.5", 5: "__anteroom=status.5"}[n]
		if r.URL.RawQuery != want {
			t.Errorf("request %d: query %q", n, r.URL.RawQuery)
		}
		switch n {
		case 1:
			g.wait(w, v, "10")
		case 2, 3, 4:
			g.status(w, v, fmt.Sprintf(`"admitted":false,"ahead":%d,"refresh":10,"reason":"waiting"`, []int{7, 5, 6}[n-2]))
		case 5:
			g.status(w, v, `"admitted":true,"ahead":null,"refresh":0,"reason":"turn"`)
		default:
			g.in(w)
		}
	})
	r, _ := meet(t, g, crowd.Config{Arrivals: one(), Pages: 1}, time.Hour)
	v := r.Visitors[0]
	if v.End != crowd.Done || len(v.Polls) != 4 || v.Polls[1].Ahead != 7 || v.Polls[0].Ahead != -1 {
		t.Errorf("his story: %+v", v)
	}
	if len(v.Worse) != 1 || v.Worse[0].From != 5 || v.Worse[0].To != 6 {
		t.Errorf("a place that moved from 5 to 6 was noted as %+v", v.Worse)
	}
}

func TestStatusThatPromisedAndDidNotKeepIt(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		switch n {
		case 2:
			g.status(w, v, `"admitted":true,"refresh":0`)
		case 4:
			g.in(w)
		default:
			g.wait(w, v, "5")
		}
	})
	r, _ := meet(t, g, crowd.Config{Arrivals: one(), Pages: 1, Mix: crowd.Mix{}}, 10*time.Minute)
	if v := r.Visitors[0]; len(v.Thrown) != 1 || v.Thrown[0].Last == 0 {
		t.Errorf("thrown: %+v", v.Thrown)
	}
}

// The script of a page asks as soon as the page is there, also of one that is shown again to a visitor who was told to load it.
func TestThePageIsAskedAboutAtOnce(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		switch n {
		case 1, 4:
			g.wait(w, v, "100")
		case 2, 5:
			g.status(w, v, `"admitted":false,"ahead":3,"refresh":10`)
		case 3, 6:
			g.status(w, v, `"admitted":true,"refresh":0`)
		default:
			g.in(w)
		}
	})
	r, took := meet(t, g, crowd.Config{Arrivals: one(), Pages: 1, Prompt: true}, time.Hour)
	if v := r.Visitors[0]; v.End != crowd.Done || took < 20*time.Second || took > 21*time.Second {
		t.Errorf("in after %v, twice ten seconds were told: %+v", took, v)
	}
}

func TestStreamLetsInAtOnce(t *testing.T) {
	var opened time.Duration
	h := http.NewServeMux()
	begin := time.Now()
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		switch n {
		case 1:
			begin = time.Now()
			g.wait(w, v, "10")
		case 2:
			g.status(w, v, `"admitted":false,"ahead":3,"refresh":60,"stream":true`)
		default:
			g.in(w)
		}
	})
	h.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.RawQuery, "__anteroom=stream") {
			g.ServeHTTP(w, r)
			return
		}
		opened = time.Since(begin)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "event: beat\ndata: {}\n\nevent: place\ndata: {\"admitted\":false,\"ahead\":%d,\"refresh\":60}\n\n", 2-i)
			http.NewResponseController(w).Flush()
			time.Sleep(2 * time.Second)
		}
		fmt.Fprint(w, "event: go\ndata: {}\n\n")
	})
	r, took := meet(t, h, crowd.Config{Arrivals: one(), Pages: 1, Streams: 1}, time.Hour)
	v := r.Visitors[0]
	if opened < 10*time.Second || opened > 11*time.Second || took > 17*time.Second || v.End != crowd.Done {
		t.Errorf("opened after %v, in after %v: %+v", opened, took, v)
	}
	last := v.Polls[len(v.Polls)-1]
	if !last.Stream || last.Ahead != 0 || last.Answered-last.Sent < 5_900_000 {
		t.Errorf("the stream's record: %+v", last)
	}
	if r.Stats.Streams != 0 {
		t.Errorf("%d streams are still counted", r.Stats.Streams)
	}
}

func TestRefusedStreamIsNoReasonToHurry(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		switch r.URL.RawQuery {
		case "__anteroom=stream":
			w.WriteHeader(http.StatusNoContent)
		case "":
			g.wait(w, v, "10")
		default:
			g.status(w, v, `"admitted":false,"ahead":3,"refresh":30,"stream":true`)
		}
	})
	r, _ := meet(t, g, crowd.Config{Arrivals: one(), Streams: 1}, 10*time.Minute)
	if n := r.Stats.Requests; n > 45 || r.Stats.Failures != 0 {
		t.Errorf("%d requests in ten minutes, %d failures", n, r.Stats.Failures)
	}
	for _, p := range r.Visitors[0].Polls {
		if p.Stream {
			t.Fatalf("a stream that never was is recorded: %+v", p)
		}
	}
}

func TestKinds(t *testing.T) {
	forever := func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) { g.wait(w, v, "20") }
	crowdOf := func(m crowd.Mix) crowd.Config {
		m.Plain = 1
		return crowd.Config{Arrivals: []crowd.Arrivals{{Visitors: 50, Over: time.Second}}, Mix: m, Patience: time.Minute}
	}
	t.Run("leaving", func(t *testing.T) {
		r, took := meet(t, program(forever), crowdOf(crowd.Mix{Leaving: 1}), 24*time.Hour)
		if r.Stats.GaveUp != 50 || r.Stats.Waiting != 0 || took < time.Minute || took > 20*time.Minute {
			t.Errorf("after %v: %+v", took, r.Stats)
		}
	})
	t.Run("early", func(t *testing.T) {
		r, _ := meet(t, program(forever), crowdOf(crowd.Mix{Early: 1}), 10*time.Minute)
		if n := r.Stats.Requests; n < 50*32 || r.Stats.Waiting != 50 {
			t.Errorf("%d requests in 10 minutes by 50 who reload early: %+v", n, r.Stats)
		}
		for _, v := range r.Visitors {
			if v.End != crowd.Still {
				t.Fatalf("ended: %+v", v)
			}
		}
	})
	t.Run("parallel", func(t *testing.T) {
		g := program(forever)
		meet(t, g, crowdOf(crowd.Mix{Parallel: 1}), 50*time.Second)
		if g.asked["1"] != 1+2*6 || g.ticket["1"] != 2*6 {
			t.Errorf("%d requests, %d with the ticket", g.asked["1"], g.ticket["1"])
		}
	})
	t.Run("bot", func(t *testing.T) {
		g := program(forever)
		r, _ := meet(t, g, crowdOf(crowd.Mix{Bots: 1}), 2*time.Minute)
		if g.asked["1"] < 7 || g.ticket["1"] != 0 || r.Visitors[0].Anew != g.asked["1"]-1 {
			t.Errorf("%d requests, %d with a ticket, %d anew", g.asked["1"], g.ticket["1"], r.Visitors[0].Anew)
		}
	})
	t.Run("lost cookies", func(t *testing.T) {
		cfg := crowdOf(crowd.Mix{})
		cfg.LoseCookie = 0.5
		r, _ := meet(t, program(forever), cfg, 10*time.Minute)
		lost, anew := 0, 0
		for _, v := range r.Visitors {
			lost, anew = lost+v.Lost, anew+v.Anew
		}
		if lost < 500 || lost > 1000 || anew == 0 || anew > 100 {
			t.Errorf("%d of 1500 cookies lost, %d began anew", lost, anew)
		}
	})
}

func TestThrownOut(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		if n == 1 || n == 3 {
			g.wait(w, v, "20")
			return
		}
		g.in(w)
	})
	r, _ := meet(t, g, crowd.Config{Arrivals: one(), Mix: crowd.Mix{Plain: 1}, Pages: 50}, time.Hour)
	v := r.Visitors[0]
	if v.End != crowd.Removed || len(v.Thrown) != 1 || v.Thrown[0].Last != v.Asked {
		t.Errorf("his story: %+v", v)
	}
}

func TestFailuresAreRetriedAndListed(t *testing.T) {
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		switch n {
		case 1:
			http.Error(w, "oops", http.StatusBadGateway)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			g.wait(w, v, "20")
		case 4:
			g.status(w, v, `"cfWaitingRoom":`)
		default:
			g.in(w)
		}
	})
	r, took := meet(t, g, crowd.Config{Arrivals: one(), Mix: crowd.Mix{Apps: 1}, Pages: 1}, time.Hour)
	if r.Stats.Failures != 3 || len(r.Failures) != 3 || !strings.Contains(r.Failures[0].What, "502") || !strings.Contains(r.Failures[2].What, "cfWaitingRoom") {
		t.Errorf("failures: %+v", r.Failures)
	}
	if v := r.Visitors[0]; v.End != crowd.Done || v.Anew != 0 || took > 30*time.Second {
		t.Errorf("after %v: %+v", took, v)
	}
}

func TestArrivalsFollowTheCurve(t *testing.T) {
	var mu sync.Mutex
	var came []time.Duration
	var begin time.Time
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if begin.IsZero() {
			begin = time.Now()
		}
		came = append(came, time.Since(begin))
		w.Header().Set(shop.Mark, "1")
	})
	curve := []crowd.Arrivals{{Visitors: 40}, {Visitors: 60, Over: time.Minute}, {Over: time.Minute}, {Visitors: 10, Over: time.Minute}}
	r, _ := meet(t, h, crowd.Config{Arrivals: curve, Pages: 1}, time.Hour)
	count := func(from, to time.Duration) (n int) {
		for _, c := range came {
			if c >= from && c < to {
				n++
			}
		}
		return n
	}
	if a, b, c, d := count(0, time.Millisecond), count(time.Millisecond, time.Minute), count(time.Minute, 2*time.Minute), count(2*time.Minute, 3*time.Minute); a < 40 || a > 41 || a+b != 100 || c != 0 || d != 10 {
		t.Errorf("%d at once, %d, %d, %d in the minutes; want 40, 60, 0, 10", a, b, c, d)
	}
	if r.Stats.Done != 110 || len(r.Visitors) != 110 || r.Visitors[109].Number != 110 {
		t.Errorf("stats: %+v", r.Stats)
	}
}

func TestEndlessCrowdReportsProgress(t *testing.T) {
	reports := 0
	var last crowd.Stats
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) { g.in(w) })
	r, took := meet(t, g, crowd.Config{
		Arrivals: []crowd.Arrivals{{Visitors: 2, Over: time.Second}}, Repeat: true, Pages: 1,
		Progress: func(s crowd.Stats) { reports++; last = s },
	}, 100*time.Second)
	if took != 100*time.Second || r.Stats.Arrived < 199 || r.Stats.Arrived > 202 || reports < 100 || last.Arrived != r.Stats.Arrived {
		t.Errorf("after %v: %+v, %d reports", took, r.Stats, reports)
	}
}

func TestManyVisitorsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		if n < 4 {
			g.wait(w, v, "20")
			return
		}
		g.in(w)
	})
	mix := crowd.Mix{Leaving: 0.1, Early: 0.1, Parallel: 0.05, Bots: 0.05, Plain: 1}
	r, _ := meet(t, g, crowd.Config{Arrivals: []crowd.Arrivals{{Visitors: 3000}}, Mix: mix, Pages: 2}, 10*time.Minute)
	if s := r.Stats; s.Arrived != 3000 || s.Done+s.GaveUp != 3000 || s.Waiting != 0 || s.Inside != 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestConfigFaults(t *testing.T) {
	good := crowd.Config{Target: "http://127.0.0.1:1", Arrivals: one()}
	for _, c := range []struct {
		change func(*crowd.Config)
		fault  string
	}{
		{func(c *crowd.Config) { c.Target = "shop" }, "http://127.0.0.1:8080"},
		{func(c *crowd.Config) { c.Arrivals = nil }, "nobody arrives"},
		{func(c *crowd.Config) { c.Arrivals[0].Over = -1 }, "arrivals[0]"},
		{func(c *crowd.Config) { c.Arrivals[0].Visitors = 20_000_000 }, "at most"},
		{func(c *crowd.Config) { c.Repeat = true }, "all at once"},
		{func(c *crowd.Config) { c.Repeat, c.Record, c.Arrivals[0].Over = true, true, time.Second }, "recorded"},
		{func(c *crowd.Config) { c.Mix.Early, c.Mix.Bots = 0.6, 0.6 }, "together at most 1"},
		{func(c *crowd.Config) { c.LoseCookie = 2 }, "lost cookies"},
	} {
		cfg := good
		cfg.Arrivals = one()
		c.change(&cfg)
		if _, err := crowd.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%v, want %q", err, c.fault)
		}
	}
}

func TestPollsAsJSON(t *testing.T) {
	in := crowd.Poll{Sent: 1, Answered: 2, Refresh: 3, Ahead: -1, Stream: true}
	b, err := json.Marshal(in)
	if err != nil || string(b) != "[1,2,3,-1,1]" {
		t.Fatalf("%s, %v", b, err)
	}
	var out crowd.Poll
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("%+v, %v", out, err)
	}
}

// Of several gateways, each request goes where Route says; the name of the site stays.
func TestRouteAndFirst(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	g := program(func(g *gate, w http.ResponseWriter, r *http.Request, v string, n int) {
		if r.Host != "shop.test" {
			t.Errorf("asked for %q", r.Host)
		}
		g.in(w)
	})
	turn := 0
	r, _ := meet(t, g, crowd.Config{Arrivals: []crowd.Arrivals{{Visitors: 3}}, Pages: 4, First: 100, Route: func(visitor int) string {
		mu.Lock()
		defer mu.Unlock()
		turn++
		to := fmt.Sprintf("node%d.test:80", turn%2)
		asked[to]++
		return to
	}}, time.Minute)
	if len(r.Visitors) != 3 || r.Visitors[0].Number != 101 || g.asked["103"] == 0 {
		t.Errorf("numbers: %+v", r.Visitors)
	}
	if asked["node0.test:80"] == 0 || asked["node1.test:80"] == 0 {
		t.Errorf("asked: %v", asked)
	}
}
