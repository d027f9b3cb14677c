package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/proof"
)

func testSigner(t testing.TB) *proof.Signer {
	t.Helper()
	s, err := proof.New(proof.Config{Keys: []proof.Key{{ID: "k1", Seed: proof.Seed{1}}}, SubjectKey: proof.Seed{2}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func withProof(t testing.TB) option {
	return withConfig(func(c *Config) { c.Proof = testSigner(t) })
}

// TestProof: admitted requests carry it, others do not, and the key set verifies it.
func TestProof(t *testing.T) {
	w := newWorld(t, admit, withProof(t))
	s := session()
	w.do("GET", "/", header("Cookie", w.seal(s), "X-Anteroom-Assertion", "forged"))
	got := w.origin.last(t).Header["X-Anteroom-Assertion"]
	if len(got) != 1 {
		t.Fatalf("proofs %q", got)
	}
	res, keys := w.do("GET", jwksPath, nil)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/jwk-set+json" || len(res.Header["Set-Cookie"]) != 0 {
		t.Errorf("key set: %d %q", res.StatusCode, res.Header)
	}
	v, err := proof.NewVerifier([]byte(keys), "", w.room.Zone)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := v.Verify(got[0], time.Now())
	if err != nil || claims.Room != string(w.room.ID) || strings.Contains(got[0], s.ID.Reference()) {
		t.Errorf("claims %+v, %v", claims, err)
	}
	if res, _ := w.do("POST", jwksPath, nil); res.StatusCode != 405 {
		t.Errorf("POST: %d", res.StatusCode)
	}
	w.door.program(func(v anteroom.Visit) anteroom.Decision {
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended}
	})
	w.do("GET", "/", header("X-Anteroom-Assertion", "forged"))
	w.do("GET", "/", func(r *http.Request) { r.Host = "open.example.com"; r.Header.Set("X-Anteroom-Assertion", "forged") })
	all := w.origin.requests()
	for _, r := range all[len(all)-2:] {
		if p, ok := r.Header["X-Anteroom-Assertion"]; ok {
			t.Errorf("%s without admission: %q", r.Host, p)
		}
	}
}

func TestProofHeaderOfTheOperator(t *testing.T) {
	w := newWorld(t, admit, withProof(t), withConfig(func(c *Config) { c.ProofHeader = "x-passed" }))
	w.rawOne("GET / HTTP/1.1\nHost: shop.example.com\nX_Passed: forged\nX.PASSED: forged\nConnection: close\n\n")
	h := w.origin.last(t).Header
	if !strings.HasPrefix(h.Get("X-Passed"), "ey") || len(h["X_passed"]) != 0 || len(h["X.passed"]) != 0 {
		t.Errorf("%q", h)
	}
}

func TestMiddleware(t *testing.T) {
	w := newWorld(t, admit, withProof(t))
	cfg := w.config()
	cfg.Sites = nil
	w.gw.put(w.again(cfg))
	front := httptest.NewServer(w.gw.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cf-Waiting-Room-Command", "revoke")
		rw.Header().Add("Set-Cookie", "__cfwaitingroom=forged")
		rw.Header().Add("Set-Cookie", "a=1")
		json.NewEncoder(rw).Encode(r.Header)
	})))
	defer front.Close()
	get := func(host string) (*http.Response, string) {
		r, _ := http.NewRequest("GET", front.URL+"/", nil)
		r.Host = host
		r.Header.Set("X-Forwarded-For", "6.6.6.6")
		r.Header.Set("Cookie", "a=1; "+w.seal(session()))
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res, string(b)
	}
	res, body := get(testHost)
	if res.StatusCode != 200 || !strings.Contains(body, "X-Anteroom-Assertion") || strings.Contains(body, "6.6.6.6") || strings.Contains(body, "__cfwaitingroom") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if c := res.Header["Set-Cookie"]; len(c) != 1 || c[0] != "a=1" || res.Header.Get("Cf-Waiting-Room-Command") != "" {
		t.Errorf("headers %q", res.Header)
	}
	if res, body = get("elsewhere.example.com"); res.StatusCode != 200 || strings.Contains(body, "Assertion") {
		t.Errorf("outside: %d %s", res.StatusCode, body)
	}
	w.door.program(line)
	if res, body = get(testHost); !strings.Contains(body, "<html") || len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("waiting: %d %.80s", res.StatusCode, body)
	}
}

// TestMiddlewareForms: whichever way a handler begins its answer, the ticket is on it.
func TestMiddlewareForms(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"nothing at all": func(http.ResponseWriter, *http.Request) {},
		"a status":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"a body":         func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) },
		"a flush":        func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"a controller":   func(w http.ResponseWriter, _ *http.Request) { http.NewResponseController(w).Flush() },
		"hints first": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(200)
		},
	} {
		w := newWorld(t, admit)
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://"+testHost+"/", nil)
		w.gw.Middleware(h).ServeHTTP(rec, r)
		if c := rec.Result().Header["Set-Cookie"]; name != "hints first" && len(c) != 1 {
			t.Errorf("%s: Set-Cookie %q", name, c)
		}
		if c := rec.Header()["Set-Cookie"]; len(c) != 1 {
			t.Errorf("%s: Set-Cookie %q", name, c)
		}
	}
}

// TestMiddlewareWebSocket: however a handler serves a WebSocket, it counts as a tunnel, renews its session, and ends with it.
func TestMiddlewareWebSocket(t *testing.T) {
	take := func(t *testing.T, rw http.ResponseWriter) net.Conn {
		c, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return nil
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
		return c
	}
	for name, serve := range map[string]func(c net.Conn, r *http.Request){
		"waits for the context": func(c net.Conn, r *http.Request) {
			defer c.Close()
			<-r.Context().Done()
		},
		"reads": func(c net.Conn, _ *http.Request) {
			defer c.Close()
			io.Copy(io.Discard, c)
		},
		"returns, and its goroutine reads": func(c net.Conn, _ *http.Request) {
			go func() {
				defer c.Close()
				io.Copy(io.Discard, c)
			}()
		},
	} {
		for _, end := range []string{"session", "process", "visitor"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				w := newWorld(t, admit, withRoom(func(r *anteroom.Room) { r.SessionDuration = time.Second }))
				front := httptest.NewServer(w.gw.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if c := take(t, rw); c != nil {
						serve(c, r)
					}
				})))
				defer front.Close()
				c, br, res := dialWebSocket(t, front.Listener.Addr().String(), "")
				if line, _ := br.ReadString('\n'); res.StatusCode != 101 || line != "hello\n" {
					t.Errorf("%d %q", res.StatusCode, line)
				}
				select {
				case <-w.door.touched:
				case <-time.After(5 * time.Second):
					t.Fatal("the session is not renewed")
				}
				if n := w.gw.Stats(); n.Tunnels != 1 || n.InFlight != 1 {
					t.Errorf("%d tunnels, %d requests in flight", n.Tunnels, n.InFlight)
				}
				switch end {
				case "session":
					close(w.door.ended)
				case "process":
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					w.gw.Drain(ctx)
				case "visitor":
					if name == "waits for the context" {
						close(w.door.ended) // it does not hear of the visitor
					}
					c.(*net.TCPConn).CloseWrite()
				}
				if !isClosed(br) {
					t.Error("the connection outlives it")
				}
				w.gw.Drain(t.Context()) // returns when there is no tunnel
			})
		}
	}
}

// TestMiddlewareHalfClose: a handler that is a reverse proxy itself closes one direction, and the other goes on.
func TestMiddlewareHalfClose(t *testing.T) {
	heard := make(chan string, 1)
	app := newRecorder(t, func(rw http.ResponseWriter, r *http.Request) {
		c, brw, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbye")
		c.(interface{ CloseWrite() error }).CloseWrite()
		b, _ := io.ReadAll(brw)
		heard <- string(b)
	})
	w := newWorld(t, admit)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(parse(t, app.URL)) }}
	front := httptest.NewServer(w.gw.Middleware(proxy))
	defer front.Close()
	c, br, _ := dialWebSocket(t, front.Listener.Addr().String(), "")
	if b, err := io.ReadAll(br); string(b) != "bye" || err != nil {
		t.Errorf("heard %q, %v", b, err)
	}
	io.WriteString(c, "until then")
	c.(*net.TCPConn).CloseWrite()
	if got := <-heard; got != "until then" {
		t.Errorf("the application heard %q", got)
	}
}

// wrapped is the writer of another middleware.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func wrapping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(wrapped{w}, r) })
}

// TestMiddlewareOfOthersBetween: a handler hears how its request was admitted.
func TestMiddlewareOfOthersBetween(t *testing.T) {
	w := newWorld(t, admit)
	var got Admission
	shop := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { got = AdmissionOf(rw) })
	w.gw.Middleware(wrapping(wrapping(shop))).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+testHost+"/", nil))
	if got.Verdict != anteroom.Admit {
		t.Errorf("heard %+v", got)
	}
}

// TestMiddlewareTwice: a request that passes one gateway twice is decided once; another gateway behind it needs another cookie.
func TestMiddlewareTwice(t *testing.T) {
	w := newWorld(t, admit)
	served := 0
	shop := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
	get := func(h http.Handler) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "http://"+testHost+"/", nil))
		return rec
	}
	twice := get(w.gw.Middleware(wrapping(w.gw.Middleware(shop))))
	if n := len(w.door.seen()); twice.Code != 200 || served != 1 || n != 1 || len(twice.Header()["Set-Cookie"]) != 1 {
		t.Errorf("%d, %d decisions, cookies %q", twice.Code, n, twice.Header()["Set-Cookie"])
	}
	other := newWorld(t, admit)
	behind := w.gw.Middleware(wrapping(other.gw.Middleware(shop)))
	if rec := get(behind); rec.Code != http.StatusLoopDetected || !strings.Contains(rec.Body.String(), "CookieName") || served != 1 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	cfg := other.config()
	cfg.CookieName = "__cfwaitingroom_inner" // the one in front owns every name that begins so
	other.gw.put(other.again(cfg))
	if rec := get(behind); rec.Code != http.StatusLoopDetected || served != 1 {
		t.Errorf("%d, served %d times", rec.Code, served)
	}
	cfg.CookieName = "inner"
	other.gw.put(other.again(cfg))
	if rec := get(behind); rec.Code != 200 || served != 2 || len(rec.Header()["Set-Cookie"]) != 2 {
		t.Errorf("%d, cookies %q", rec.Code, rec.Header()["Set-Cookie"])
	}
	before := len(w.door.seen())
	around := w.gw.Middleware(other.gw.Middleware(w.gw.Middleware(shop)))
	if rec := get(around); rec.Code != 200 || served != 3 || len(w.door.seen()) != before+1 {
		t.Errorf("%d, served %d times, %d decisions", rec.Code, served, len(w.door.seen())-before)
	}
}
