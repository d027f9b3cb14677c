package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/freeport"
)

// TestOriginFigures: what requests showed of an origin in the last minute.
func TestOriginFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sight
		s.look(time.Now())
		for i := range 100 {
			took, status := 10*time.Millisecond, 200
			if i >= 90 {
				took, status = time.Second, 503
			}
			s.answered(took, status)
		}
		s.unanswered.Add(25)
		about := func(what string, got, want time.Duration) {
			if got < want || got > want*110/100 {
				t.Errorf("%s is %v, want %v or up to a tenth more", what, got, want)
			}
		}
		m := s.minute(time.Now())
		if m.requests() != 125 || m.failed() != 35 {
			t.Errorf("%d requests, %d failed; want 125 and 35", m.requests(), m.failed())
		}
		about("p50", m.took.Quantile(0.5), 10*time.Millisecond)
		about("p95", m.took.Quantile(0.95), time.Second)
		for range 13 {
			time.Sleep(glanceEvery)
			if !s.look(time.Now()) || s.look(time.Now()) {
				t.Fatal("a glance is taken once in glanceEvery")
			}
		}
		if m := s.minute(time.Now()); m.requests() != 0 || m.took.Quantile(0.95) != 0 {
			t.Errorf("%d requests after more than a minute", m.requests())
		}
		s.answered(time.Millisecond, 200)
		time.Sleep(glanceEvery)
		s.look(time.Now())
		if m := s.latest(); m.requests() != 1 {
			t.Errorf("%d requests between the last two glances", m.requests())
		}
	})
}

// TestRoomHearsOfItsOrigin: a room that protects its origin hears at once when it dies, and when it
// is back, although no visitor asks for it any more.
func TestRoomHearsOfItsOrigin(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "shop") }))
	address := origin.Listener.Addr().String()
	w := newWorld(t, admit, withRoom(func(r *anteroom.Room) { r.Protect = true }), withConfig(func(c *Config) {
		c.Sites[0].Origins = []*url.URL{parse(t, "http://"+address)}
	}))
	w.door.told = make(chan engine.OriginFacts, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- w.gw.Run(ctx) }()
	hears := func(what string, ok func(engine.OriginFacts) bool) {
		t.Helper()
		for {
			select {
			case f := <-w.door.told:
				if ok(f) {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("the room never heard %s", what)
			}
		}
	}
	hears("that the origin is well", func(f engine.OriginFacts) bool { return f.Known && !f.Down })
	origin.Listener.Close()
	for range ejectAfter {
		res, body := w.do("GET", "/cart", header("Cookie", w.seal(session())))
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Refresh") == "" || res.Header.Get("Retry-After") == "" {
			t.Fatalf("status %d, Refresh %q, Retry-After %q", res.StatusCode, res.Header.Get("Refresh"), res.Header.Get("Retry-After"))
		}
		if !strings.Contains(body, "The site is not responding") || strings.Contains(body, `id="waitTime"`) {
			t.Fatalf("the page: %s", body)
		}
	}
	hears("that the origin is down", func(f engine.OriginFacts) bool { return f.Known && f.Down })
	if sites := w.gw.Origins(); sites[0].Origins[0].Healthy || sites[0].Origins[0].Failed != ejectAfter {
		t.Errorf("origins are shown as %+v", sites)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hears("that the origin is back", func(f engine.OriginFacts) bool { return !f.Down })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRetryPageIsForPages: scripts, forms and rooms that do not protect their origin get the bare
// answer as before, and a ticket that is due for it comes with every one of them.
func TestRetryPageIsForPages(t *testing.T) {
	for _, c := range []struct {
		name    string
		protect bool
		method  string
		edit    func(*http.Request)
		status  int
	}{
		{"page", true, "GET", nil, 503},
		{"unprotected", false, "GET", nil, 502},
		{"form", true, "POST", nil, 502},
		{"script", true, "GET", header("Sec-Fetch-Dest", "script"), 502},
	} {
		w := newWorld(t, admit, withRoom(func(r *anteroom.Room) { r.Protect = c.protect }), withConfig(func(cfg *Config) {
			cfg.Sites[0].Origins = []*url.URL{parse(t, "http://"+freeport.Address(t, 1))}
		}))
		res, _ := w.do(c.method, "/", c.edit)
		if res.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", c.name, res.StatusCode, c.status)
		}
		if len(res.Cookies()) != 1 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: cookies %v, Retry-After %q", c.name, res.Cookies(), res.Header.Get("Retry-After"))
		}
	}
}

// TestFactsOfARoom: those of all origins of its hosts, and of no others.
func TestFactsOfARoom(t *testing.T) {
	w := newWorld(t, admit, withConfig(func(c *Config) {
		c.Sites = append(c.Sites, Site{Hosts: []string{"other.example.com"}, Origins: []*url.URL{parse(t, "http://127.0.0.1:1")}},
			Site{Hosts: []string{"*"}, Origins: []*url.URL{parse(t, "http://127.0.0.1:2"), parse(t, "http://127.0.0.1:3")}})
	}))
	s := w.gw.live.Load()
	room := func(hosts ...string) *room {
		one := *s.rooms[0]
		one.Routes = nil
		for _, h := range hosts {
			one.Routes = append(one.Routes, anteroom.Route{Host: h, Path: "/"})
		}
		return &one
	}
	s.inOrder[1].origins[0].sick.Store(true)
	s.inOrder[2].origins[1].failed.Store(ejectAfter)
	for _, c := range []struct {
		hosts []string
		down  bool
	}{
		{[]string{testHost}, false}, {[]string{"other.example.com"}, true}, {[]string{"other.example.com", testHost}, false},
		{[]string{"elsewhere.example"}, false}, {[]string{"*"}, false},
	} {
		if f := s.factsOf(room(c.hosts...)); !f.Known || f.Down != c.down {
			t.Errorf("%v: %+v, want down: %v", c.hosts, f, c.down)
		}
	}
	s.inOrder[2].origins[0].failed.Store(ejectAfter)
	if f := s.factsOf(room("elsewhere.example")); !f.Down {
		t.Error("no origin of the site for all other hosts is healthy, and it does not count as down")
	}
	if f := (&setup{}).factsOf(room(testHost)); f != (engine.OriginFacts{}) {
		t.Errorf("a gateway without sites sees %+v", f)
	}
}

// TestOriginWithAWrongCertificate: where no handshake succeeds, no connection was made. The request goes to the other origin, and
// whoever asks for the origins, or tries this one again, sees that it is gone.
func TestOriginWithAWrongCertificate(t *testing.T) {
	for _, slow := range []bool{false, true} {
		origin := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "shop") }))
		defer origin.Close()
		good := parse(t, origin.URL)
		wrong := parse(t, "https://localhost:"+good.Port()) // the certificate is for 127.0.0.1
		plain := parse(t, strings.Replace(newRecorder(t, nil).URL, "http:", "https:", 1))
		var log strings.Builder
		world := func(urls ...*url.URL) *world {
			w := newWorld(t, admit, withConfig(func(c *Config) {
				c.NoFastPath, c.Sites[0].Origins = slow, urls
				c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			}))
			w.gw.live.Load().transport.TLSClientConfig = origin.Client().Transport.(*http.Transport).TLSClientConfig
			return w
		}
		for _, bad := range []*url.URL{wrong, plain} {
			log.Reset()
			w := world(bad, good)
			for range 2 * ejectAfter {
				if res, body := w.do("GET", "/", nil); res.StatusCode != 200 || body != "shop" {
					t.Errorf("slow %v, beside %v: %d %s", slow, bad, res.StatusCode, body)
				}
			}
			if o := w.gw.Origins()[0].Origins[0]; o.Healthy {
				t.Errorf("slow %v: %v is healthy, and has answered nothing", slow, bad)
			}
			if n := strings.Count(log.String(), "unreachable error=\"dial tcp"); n != ejectAfter || !strings.Contains(log.String(), "tls: ") {
				t.Errorf("slow %v, %v: the log has %d lines: %s", slow, bad, n, &log)
			}
		}
		w := world(wrong)
		w.gw.LookAtOrigins(t.Context())
		if o := w.gw.Origins()[0].Origins[0]; o.Healthy {
			t.Errorf("slow %v: an origin with another's certificate is healthy", slow)
		}
		w = world(good)
		w.gw.LookAtOrigins(t.Context())
		if o := w.gw.Origins()[0].Origins[0]; !o.Healthy {
			t.Errorf("slow %v: the origin is not healthy", slow)
		}
	}
}
