package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestMiddlewareWebSocket(t *testing.T) {
	w := newWorld(t, admit)
	front := httptest.NewServer(w.gw.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
		<-r.Context().Done()
	})))
	defer front.Close()
	_, br, res := dialWebSocket(t, front.Listener.Addr().String(), "")
	if line, _ := br.ReadString('\n'); res.StatusCode != 101 || line != "hello\n" {
		t.Errorf("%d %q", res.StatusCode, line)
	}
	close(w.door.ended)
	if !isClosed(br) {
		t.Error("the connection outlives its session")
	}
}
