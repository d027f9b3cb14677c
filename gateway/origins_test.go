package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
)

func poolOf(n int) *pool {
	p := &pool{epoch: time.Now()}
	for range n {
		p.origins = append(p.origins, &origin{url: &url.URL{}})
	}
	return p
}

func TestPickSpreads(t *testing.T) {
	p := poolOf(3)
	for range 30 {
		p.pick(nil)
	}
	for i, o := range p.origins {
		if n := o.pending.Load(); n != 10 {
			t.Errorf("origin %d has %d of 30 requests", i, n)
		}
	}
	p.origins[1].pending.Store(0)
	if o := p.pick(nil); o != p.origins[1] {
		t.Error("the idle origin was not picked")
	}
}

func TestPickAvoids(t *testing.T) {
	p := poolOf(3)
	p.health.Path = "/"
	p.origins[0].sick.Store(true)
	for range ejectAfter {
		p.report(p.origins[1], false)
	}
	for range 10 {
		if o := p.pick(nil); o != p.origins[2] {
			t.Fatal("an origin that is not well was picked")
		}
	}
	if o := p.pick(p.origins[2]); o == p.origins[2] {
		t.Error("the origin that just failed was picked again")
	}
	p.report(p.origins[1], true)
	if !p.isWell(p.origins[1]) {
		t.Error("an origin that answers is still out")
	}
	p.origins[1].downUntil.Store(p.now() - 1)
	if !p.isWell(p.origins[1]) {
		t.Error("an ejected origin gets no other chance")
	}
}

// TestNextOrigin: what can be repeated goes to another origin when none of it has left.
func TestNextOrigin(t *testing.T) {
	dead := "http://" + freeport.Address(t, 1)
	for _, c := range []struct {
		method string
		want   map[int]bool
	}{{"GET", map[int]bool{200: true}}, {"POST", map[int]bool{200: true, 502: true}}} {
		w := newWorld(t, admit, withConfig(func(cfg *Config) {
			cfg.Sites[0].Origins = append([]*url.URL{parse(t, dead)}, cfg.Sites[0].Origins...)
		}))
		seen := make(map[int]bool)
		for range 4 {
			res, _ := w.do(c.method, "/", nil)
			seen[res.StatusCode] = true
		}
		for status := range seen {
			if !c.want[status] {
				t.Errorf("%s: status %d", c.method, status)
			}
		}
		if len(seen) != len(c.want) {
			t.Errorf("%s: statuses %v", c.method, seen)
		}
		for _, o := range w.gw.live.Load().inOrder[0].origins {
			if n := o.pending.Load(); n > 1 {
				t.Errorf("%s: %d requests pending at %v", c.method, n, o.url)
			}
		}
	}
}

// After one visitor who could not reach the origin, no other one has to try before it counts as unhealthy.
func TestOneFailureIsLookedInto(t *testing.T) {
	origin := httptest.NewServer(http.NotFoundHandler())
	p := poolOf(1)
	o := p.origins[0]
	o.url = parse(t, origin.URL)
	turns := 0
	p.turned = func() { turns++ }
	rt := &http.Transport{DialContext: (&net.Dialer{}).DialContext}
	p.checkOne(t.Context(), rt, o)
	p.report(o, false)
	p.checkOne(t.Context(), rt, o)
	if o.failed.Load() != 0 {
		t.Error("an origin that answers has failed")
	}
	origin.Close()
	p.checkOne(t.Context(), rt, o)
	if o.failed.Load() != 0 {
		t.Error("an origin that nobody missed was dialed")
	}
	p.report(o, false)
	for range ejectAfter - 1 {
		p.checkOne(t.Context(), rt, o)
	}
	if o.isHealthy() || turns != 1 {
		t.Errorf("healthy: %v, told %d times", o.isHealthy(), turns)
	}
}

func TestHealthCheck(t *testing.T) {
	ill := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(500) }))
	defer ill.Close()
	asked := make(chan string, 100)
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			asked <- r.Host
		}
		io.WriteString(rw, "origin")
	}), withConfig(func(c *Config) {
		c.Sites[0].Origins = append(c.Sites[0].Origins, parse(t, ill.URL))
		c.Sites[0].Health = Health{Path: "/healthz", Interval: 5 * time.Millisecond, Host: "check.example"}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.gw.Run(ctx) }()
	for range 2 {
		if host := <-asked; host != "check.example" {
			t.Errorf("Host %q", host)
		}
	}
	// Run goes on with what a swap brings.
	w.gw.put(w.again(w.config()))
	for range 2 {
		<-asked
	}
	for range 6 {
		if _, body := w.do("GET", "/", nil); body != "origin" {
			t.Errorf("an ill origin answered: %q", body)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
