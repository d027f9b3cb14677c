package pass

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// edgeOf is a Handler between an application and a toy of Anteroom with some keys. Both answer what they are.
type edgeOf struct {
	t *testing.T
	*Handler
	keys    *Keys
	fetched int
	down    bool
	now     time.Time
	seen    *http.Request // by either
}

func newEdgeOf(t *testing.T) *edgeOf {
	e := &edgeOf{t: t, keys: keysOf(t, keyA), now: morning}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/anteroom/jwks.json" {
			e.fetched++
			if e.down || r.Host != zone {
				http.NotFound(w, r)
				return
			}
			w.Write(e.keys.JWKS())
			return
		}
		e.seen = r
		io.WriteString(w, "Anteroom")
	}))
	t.Cleanup(s.Close)
	address := must(url.Parse(s.URL))(t)
	e.Handler = &Handler{Anteroom: address, Want: Want{Audience: zone, Room: shop}, Ends: []string{"/checkout/done"}, Now: func() time.Time { return e.now },
		Origin: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.seen = r
			w.Header().Set("Cf-Waiting-Room-Command", "revoke")
			io.WriteString(w, "origin")
		})}
	return e
}

// asks sends a request with headers, and returns the answer.
func (e *edgeOf) asks(target string, headers ...string) *httptest.ResponseRecorder {
	e.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://"+zone+target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header[headers[i]] = append(r.Header[headers[i]], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// pass is a Cookie header with a pass that was issued at a moment.
func (e *edgeOf) pass(keys *Keys, at time.Time) string {
	e.t.Helper()
	return Cookie + "=" + must(issuerOf(e.t, keys, "").Issue(sid, at, half))(e.t)
}

func TestHandlerSendsRequestsWhereTheyBelong(t *testing.T) {
	e := newEdgeOf(t)
	good, late := e.pass(e.keys, morning), e.pass(e.keys, morning.Add(-20*time.Second))
	for name, c := range map[string]struct {
		target  string
		headers []string
		want    string
	}{
		"a good pass":                       {"/", []string{"Cookie", good}, "origin"},
		"no pass":                           {"/", nil, "Anteroom"},
		"a pass that has ended":             {"/", []string{"Cookie", e.pass(e.keys, morning.Add(-time.Minute))}, "Anteroom"},
		"two cookies":                       {"/", []string{"Cookie", good, "Cookie", good}, "Anteroom"},
		"a page in the second half":         {"/", []string{"Cookie", late, "Sec-Fetch-Mode", "navigate"}, "Anteroom"},
		"data in the second half":           {"/", []string{"Cookie", late, "Sec-Fetch-Mode", "cors"}, "origin"},
		"a page in the first half":          {"/", []string{"Cookie", good, "Sec-Fetch-Mode", "navigate"}, "origin"},
		"a WebSocket":                       {"/", []string{"Cookie", good, "Upgrade", "websocket"}, "Anteroom"},
		"a question of the page":            {"/?__anteroom=json", []string{"Cookie", good}, "Anteroom"},
		"a path of Anteroom":                {"/.well-known/anteroom/pass", []string{"Cookie", good}, "Anteroom"},
		"where sessions end":                {"/checkout/done", []string{"Cookie", good}, "Anteroom"},
		"below where sessions end":          {"/checkout/done/x", []string{"Cookie", good}, "Anteroom"},
		"beside where sessions end":         {"/checkout/doner", []string{"Cookie", good}, "origin"},
		"a pass of a key that nobody knows": {"/", []string{"Cookie", e.pass(keysOf(t, keyB), morning)}, "Anteroom"},
	} {
		if got := e.asks(c.target, c.headers...); got.Body.String() != c.want {
			t.Errorf("%s: answered by %q, want %q", name, got.Body, c.want)
		}
	}
}

// The application sees nothing that visitors may not send or that is Anteroom's, and visitors see nothing that is for Anteroom.
func TestHandlerRemovesWhatIsNotForTheOther(t *testing.T) {
	e := newEdgeOf(t)
	got := e.asks("/", "Cookie", "a=1; "+e.pass(e.keys, morning)+"; __cfwaitingroom_x=2", "Cookie", "b=3", "X-Anteroom-Assertion", "forged", "X_anteroom_assertion", "forged")
	if got.Body.String() != "origin" || got.Header().Get("Cf-Waiting-Room-Command") != "" {
		t.Errorf("%q %v", got.Body, got.Header())
	}
	if text := fmt.Sprint(e.seen.Header); text != "map[Cookie:[a=1; b=3]]" {
		t.Errorf("the application sees %s", text)
	}
	e.asks("/a%2Fb?x=1;y", "X-Anteroom-Assertion", "forged", "Cookie", "__cfwaitingroom=1", "X-Forwarded-For", "192.0.2.9")
	if e.seen.RequestURI != "/a%2Fb?x=1;y" || e.seen.Host != zone || e.seen.Header.Get("Cookie") != "__cfwaitingroom=1" || e.seen.Header.Get("X-Anteroom-Assertion") != "" ||
		!strings.HasPrefix(e.seen.Header.Get("X-Forwarded-For"), "192.0.2.9, ") {
		t.Errorf("Anteroom sees %s %s %v", e.seen.Host, e.seen.RequestURI, e.seen.Header)
	}
}

// Keys are fetched when a pass names one that is not known, at most every ten seconds, and every five minutes.
func TestHandlerFetchesKeys(t *testing.T) {
	e := newEdgeOf(t)
	e.down = true
	old := e.pass(e.keys, morning)
	if got := e.asks("/", "Cookie", old); got.Body.String() != "Anteroom" || e.fetched != 1 {
		t.Errorf("without keys: %q after %d fetches", got.Body, e.fetched)
	}
	e.down = false
	e.now = morning.Add(9 * time.Second)
	if got := e.asks("/", "Cookie", old); got.Body.String() != "Anteroom" || e.fetched != 1 {
		t.Errorf("too soon: %q after %d fetches", got.Body, e.fetched)
	}
	e.now = morning.Add(10 * time.Second)
	if got := e.asks("/", "Cookie", old); got.Body.String() != "origin" || e.fetched != 2 {
		t.Errorf("again: %q after %d fetches", got.Body, e.fetched)
	}
	e.keys, e.now = keysOf(t, keyB, keyA), morning.Add(20*time.Second)
	if got := e.asks("/", "Cookie", e.pass(e.keys, e.now)); got.Body.String() != "origin" || e.fetched != 3 {
		t.Errorf("after a rotation: %q after %d fetches", got.Body, e.fetched)
	}
	e.down, e.now = true, e.now.Add(5*time.Minute)
	if got := e.asks("/", "Cookie", e.pass(e.keys, e.now)); got.Body.String() != "origin" || e.fetched != 4 {
		t.Errorf("old keys are good while there are no others: %q after %d fetches", got.Body, e.fetched)
	}
}

// Without zone and room, nothing is a good pass; without Anteroom, visitors get 502.
func TestHandlerFailsClosed(t *testing.T) {
	e := newEdgeOf(t)
	e.Want.Room = ""
	if got := e.asks("/", "Cookie", e.pass(e.keys, morning)); got.Body.String() != "Anteroom" {
		t.Errorf("without a room: %q", got.Body)
	}
	e = newEdgeOf(t)
	e.Anteroom = must(url.Parse("http://127.0.0.1:1"))(t)
	if got := e.asks("/", "Cookie", e.pass(e.keys, morning)); got.Code != http.StatusBadGateway {
		t.Errorf("without Anteroom: %d", got.Code)
	}
}
