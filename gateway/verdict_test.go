package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// asking are the headers by which a proxy says what the visitor asks for.
func asking(name, method, host, target string) []string {
	switch dialects[name].prefix {
	case "X-Original-":
		return []string{"Host", host, "X-Original-Method", method, "X-Original-Host", host, "X-Original-Uri", target, "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.7"}
	case "X-Forwarded-":
		if name == "traefik" {
			return []string{"Host", "anteroom:8082", "X-Forwarded-Method", method, "X-Forwarded-Host", host, "X-Forwarded-Uri", target, "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.7"}
		}
		return []string{"Host", host, "X-Forwarded-Method", method, "X-Forwarded-Host", host, "X-Forwarded-Uri", target, "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.7"}
	}
	return []string{"Host", host, "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.7"}
}

// question is that of a proxy about a visitor's request. More are the visitor's headers.
func question(name, method, host, target string, more ...string) *http.Request {
	own, path := "GET", "/check/"+name
	if dialects[name].prefix == "" {
		own, path = method, path+target
	}
	q := httptest.NewRequest(own, "/", nil)
	q.RequestURI = path
	q.RemoteAddr = "127.0.0.1:5000"
	q.Header.Set("Accept", "text/html")
	pairs := append(asking(name, method, host, target), more...)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "Host" {
			q.Host = pairs[i+1]
			continue
		}
		q.Header.Add(pairs[i], pairs[i+1])
	}
	return q
}

// asks puts a question to the world's gateway.
func (w *world) asks(q *http.Request) *http.Response {
	rec := httptest.NewRecorder()
	w.gw.ForwardAuth().ServeHTTP(rec, q)
	return rec.Result()
}

// says fails unless the answer is this verdict, with the status that goes with it.
func says(t *testing.T, res *http.Response, want string) {
	t.Helper()
	status := http.StatusUnauthorized
	if want == "admit" || want == "pass" {
		status = http.StatusOK
	}
	if got := res.Header.Get(verdictHeader); got != want || res.StatusCode != status {
		t.Errorf("%q with %d, want %q with %d", got, res.StatusCode, want, status)
	}
}

func everyDialect(t *testing.T, f func(t *testing.T, name string)) {
	for name := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, name)
		})
	}
}

func TestVerdictAdmits(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, admit, withProof(t))
		res := w.asks(question(name, "POST", testHost, "/cart?x=1;y", "X-Anteroom-Assertion", "forged", "X-Anteroom-Verdict", "admit"))
		says(t, res, "admit")
		cookies := res.Header["Set-Cookie"]
		if len(cookies) != 1 || !strings.Contains(cookies[0], "; Secure") || res.Header.Get(ticketHeader) != cookies[0] {
			t.Errorf("Set-Cookie %q, and alone %q", cookies, res.Header[ticketHeader])
		}
		if p := res.Header["X-Anteroom-Assertion"]; len(p) != 1 || p[0] == "forged" || strings.Count(p[0], ".") != 2 {
			t.Errorf("the proof is %q", p)
		}
		if v := w.door.seen(); len(v) != 1 || !v[0].Fresh || !v[0].NoHold {
			t.Errorf("the room saw %+v", v)
		}
		if n := len(w.origin.requests()); n != 0 {
			t.Errorf("the origin saw %d requests", n)
		}
		for i, n := range w.gw.Stats().Questions {
			if (n == 1) != (EdgeKinds[i] == name) {
				t.Errorf("%d questions of %s are counted", n, EdgeKinds[i])
			}
		}
	})
}

// A session that needs no new cookie gets none, and no empty header of it.
func TestVerdictOfASession(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, admit)
		for _, size := range []int{0, 8 << 10} {
			res := w.asks(question(name, "GET", testHost, "/", "Cookie", "big="+strings.Repeat("x", size), "Cookie", w.seal(session())))
			says(t, res, "admit")
			if len(res.Header["Set-Cookie"])+len(res.Header[ticketHeader]) > 0 {
				t.Errorf("cookies %q", res.Header)
			}
			if !strings.Contains(res.Header.Get("Cache-Control"), "no-store") {
				t.Error("the verdict may be stored")
			}
		}
		if v := w.door.seen(); v[0].Fresh || v[1].Fresh {
			t.Error("the ticket was not found")
		}
		says(t, w.asks(question(name, "GET", testHost, "/", "Cookie", strings.Repeat("a=1;", anteroom.MaxCookies+1)+w.seal(session()))), "refuse")
	})
}

// Whatever a room says to visitors who wait, the proxy hears that they do.
func TestNoStatusOfThePageIsAVerdict(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		for _, status := range []int{200, 202, 429} {
			w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.QueueingStatusCode, r.JSONResponse = status, true }))
			for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
				for _, accept := range []string{"text/html", "application/json", "image/png"} {
					q := question(name, method, testHost, "/x")
					q.Header.Set("Accept", accept)
					res := w.asks(q)
					if res.StatusCode != http.StatusUnauthorized || len(res.Header[verdictHeader]) != 1 || res.Header.Get(verdictHeader) == "admit" {
						t.Errorf("%d, %s, %s: %d %q", status, method, accept, res.StatusCode, res.Header[verdictHeader])
					}
				}
			}
		}
	})
}

// Proxies that pass the answer on get the page with its cookie. The others send the request to Anteroom, where the visitor
// joins the queue: once.
func TestPageComesOnce(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, line)
		res := w.asks(question(name, "GET", testHost, "/"))
		body := readAll(t, res)
		if v := w.door.seen(); v[0].NoJoin == dialects[name].page {
			t.Errorf("joins: %v", !v[0].NoJoin)
		}
		if !dialects[name].page {
			says(t, res, "refuse")
			again := w.asks(question(name, "GET", testHost, "/", "Cookie", w.seal(waiting())))
			says(t, again, "wait")
			if body+readAll(t, again) != "" || len(res.Header["Set-Cookie"])+len(again.Header["Set-Cookie"])+len(again.Header[ticketHeader]) > 0 {
				t.Errorf("the answer has %d bytes and cookies: %q, %q", len(body), res.Header, again.Header)
			}
			return
		}
		says(t, res, "wait")
		if !strings.Contains(body, "<html") || len(res.Header["Set-Cookie"]) != 1 || res.Header.Get("Refresh") == "" {
			t.Errorf("the page: %.100s %q", body, res.Header)
		}
		head := w.asks(question(name, "HEAD", testHost, "/"))
		says(t, head, "wait")
		if readAll(t, head) != "" || head.Header.Get("Content-Length") != "" {
			t.Errorf("to HEAD: %q", head.Header)
		}
	})
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A question that does not say what the visitor asks for, or says it twice, gets 400 and a line in the log.
func TestQuestionsWithoutAnOriginal(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }))
	bad := func(what string, q *http.Request, problem string) {
		t.Helper()
		log.Reset()
		res := w.asks(q)
		if res.StatusCode != http.StatusBadRequest || res.Header.Get(verdictHeader) != "refuse" {
			t.Errorf("%s: %d %q", what, res.StatusCode, res.Header.Get(verdictHeader))
		}
		if !strings.Contains(log.String(), problem) || !strings.Contains(log.String(), "peer=127.0.0.1") {
			t.Errorf("%s: the log says %q", what, log.String())
		}
	}
	for name, d := range dialects {
		part := []string{"X-Forwarded-Proto"}
		if d.prefix != "" {
			part = append(part, d.prefix+"Method", d.prefix+"Host", d.prefix+"Uri")
		}
		for _, h := range part {
			q := question(name, "GET", testHost, "/")
			q.Header.Del(h)
			bad(name+" without "+h, q, h+" is missing")
			q = question(name, "GET", testHost, "/")
			q.Header.Set(h, "")
			bad(name+" with an empty "+h, q, h+" is missing")
			q = question(name, "GET", testHost, "/")
			q.Header.Add(h, q.Header.Get(h))
			bad(name+" with two of "+h, q, h+" is there more than once")
		}
		q := question(name, "GET", testHost, "/")
		q.Header.Set("X-Forwarded-Proto", "https, http")
		bad(name+" with two schemes", q, "neither http nor https")
		if d.prefix != "" {
			q = question(name, "GET", testHost, "/")
			q.Method = "POST"
			bad(name+" that asks with another method", q, "the method is neither GET nor")
			q = question(name, "GET", testHost, "/")
			q.RequestURI += "/tickets"
			bad(name+" with more behind its path", q, "the path is not")
		}
		if d.hosted {
			q = question(name, "GET", testHost, "/")
			q.Host = "open.example.com"
			bad(name+" with two hosts", q, "Host differ")
		}
	}
	for _, path := range []string{"/", "/check", "/check/", "/check/apache", "/nginx", "/rooms/shop", "/rooms//check/nginx", "/check/nginx%20"} {
		q := question("nginx", "GET", testHost, "/")
		q.RequestURI = path
		bad(path, q, "the path is not")
	}
	if n := len(w.door.seen()); n != 0 {
		t.Errorf("the room was asked %d times", n)
	}
}

// Only proxies that the operator has named may ask: they say who the visitor is and what is asked for.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peers string
		from  string
		may   bool
	}{
		{"", "127.0.0.1:1", true},
		{"", "127.8.8.8:1", true},
		{"", "[::1]:1", true},
		{"", "10.0.0.3:1", false},
		{"", "[2001:db8::1]:1", false},
		{"", "@", false},
		{"10.0.0.0/24", "10.0.0.3:1", true},
		{"10.0.0.0/24", "[::ffff:10.0.0.3]:1", true},
		{"10.0.0.0/24", "10.0.1.3:1", false},
		{"10.0.0.0/24", "127.0.0.1:1", false},
	} {
		var log bytes.Buffer
		w := newWorld(t, admit, withConfig(func(cfg *Config) {
			cfg.TrustedProxies = prefixes("10.0.1.0/24")
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			if c.peers != "" {
				cfg.ForwardAuthPeers = prefixes(c.peers)
			}
		}))
		q := question("nginx", "GET", testHost, "/")
		q.RemoteAddr = c.from
		res := w.asks(q)
		if c.may {
			says(t, res, "admit")
			continue
		}
		if res.StatusCode != http.StatusForbidden || res.Header.Get(verdictHeader) != "refuse" || len(w.door.seen()) > 0 {
			t.Errorf("%s with peers %q: %d %q", c.from, c.peers, res.StatusCode, res.Header)
		}
		if !strings.Contains(log.String(), "not in forward_auth.peers") {
			t.Errorf("%s: the log says %q", c.from, log.String())
		}
	}
}

// What the proxy matched and what Anteroom decides about can differ. Then the request is not admitted, or belongs to the
// room by one of its readings.
func TestProxyAndAnteroomReadTheSame(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Routes[0].Path = "/tickets" }))
		for target, want := range map[string]string{
			"/":                   "pass",
			"/other?/tickets":     "pass",
			"/tickets":            "wait",
			"//tickets":           "wait",
			"/%74ickets":          "wait",
			"/%2574ickets":        "wait",
			"/x/..%2ftickets":     "wait",
			"/x/..;/tickets":      "wait",
			"/x%5C..%5Ctickets":   "wait",
			"/TICKETS":            "wait",
			"/tickets;x=1":        "wait",
			"/tickets%2F?a=1;b=2": "wait",
			"/other#/tickets":     "refuse",
			"/tickets#x":          "refuse",
			"/%zz":                "refuse",
			"/tickets%00":         "refuse",
			"tickets":             "refuse",
			"http://x/tickets":    "refuse",
			"*":                   "refuse",
		} {
			if name == "envoy" && target[0] != '/' {
				continue // there it would be another path of the question
			}
			res := w.asks(question(name, "GET", testHost, target, "Cookie", w.seal(waiting())))
			if got := res.Header.Get(verdictHeader); got != want {
				t.Errorf("%s: %s, want %s", target, got, want)
			}
			says(t, res, res.Header.Get(verdictHeader))
			// A proxy that has matched the room's location says so, and nothing outside the room gets by.
			q := question(name, "GET", testHost, target, "Cookie", w.seal(waiting()))
			q.RequestURI = "/rooms/shop" + q.RequestURI
			if res := w.asks(q); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s in the room: %d %s", target, res.StatusCode, res.Header.Get(verdictHeader))
			}
		}
		for host, want := range map[string]string{"SHOP.example.com.:443": "wait", "unknown.example.com": "refuse", "a, " + testHost: "refuse", "sh%6fp.example.com": "refuse"} {
			if got := w.asks(question(name, "GET", host, "/tickets", "Cookie", w.seal(waiting()))).Header.Get(verdictHeader); got != want {
				t.Errorf("host %s: %s, want %s", host, got, want)
			}
		}
		for _, method := range []string{"CONNECT", "TRACE", "get", "GET, POST"} {
			if name != "envoy" || !strings.Contains(method, " ") {
				res := w.asks(question(name, method, testHost, "/"))
				says(t, res, "refuse")
				if c := res.Header.Get("Connection"); c != "" { // which is the proxy's, and carries others' questions
					t.Errorf("%s: Connection: %s", method, c)
				}
			}
		}
	})
}

// With the room in the question's path, the request belongs to that room or is refused.
func TestQuestionNamesTheRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, admit)
	for path, want := range map[string]string{"/rooms/shop/check/nginx": "admit", "/rooms/other/check/nginx": "refuse", "/rooms/SHOP/check/nginx": "refuse"} {
		q := question("nginx", "GET", testHost, "/")
		q.RequestURI = path
		says(t, w.asks(q), want)
	}
	if n := len(w.door.seen()); n != 1 {
		t.Errorf("the room was asked %d times", n)
	}
}

// What bypasses the room passes without a proof, which the proxy has to remove.
func TestVerdictPasses(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, line, withProof(t), withConfig(ruled(t, `http.request.uri.path eq "/free" and ip.src eq 192.0.2.7 and ssl and cf.edge.server_port eq 443`)))
		for target, want := range map[string]string{"/free": "pass", "/dear": "wait"} {
			res := w.asks(question(name, "GET", testHost, target, "Cookie", w.seal(waiting()), "X-Anteroom-Assertion", "forged"))
			says(t, res, want)
			if len(res.Header["X-Anteroom-Assertion"]) > 0 {
				t.Errorf("%s: a proof", target)
			}
			if removes := res.Header.Get("X-Envoy-Auth-Headers-To-Remove"); removes != "" != (name == "envoy" && want == "pass") {
				t.Errorf("%s: removes %q", target, removes)
			}
		}
		says(t, w.asks(question(name, "OPTIONS", testHost, "/dear", "Origin", "https://x.example", "Access-Control-Request-Method", "PUT")), "pass")
		says(t, w.asks(question(name, "GET", "open.example.com", "/")), "pass")
	})
}

// The client is who the proxy says, past the operator's other proxies. If it says nothing, nobody is known.
func TestClientOfAQuestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ chain, want string }{
		{"192.0.2.7", "192.0.2.7"},
		{"203.0.113.9, 192.0.2.7", "192.0.2.7"},
		{"192.0.2.7, 10.0.0.1", "192.0.2.7"},
		{"", "unknown"},
		{"garbage", "unknown"},
	} {
		var log bytes.Buffer
		w := newWorld(t, admit, withConfig(func(cfg *Config) {
			cfg.TrustedProxies = prefixes("10.0.0.0/8")
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		}))
		q := question("nginx", "GET", testHost, "/", "X-Real-Ip", "198.51.100.1", "X_Forwarded_For", "198.51.100.2")
		q.Header.Set("X-Forwarded-For", c.chain)
		says(t, w.asks(q), "admit")
		if !strings.Contains(log.String(), "client="+c.want+" ") {
			t.Errorf("%q: want %s: %s", c.chain, c.want, log.String())
		}
		if n := w.gw.Stats().ForeignHops; n != 0 {
			t.Errorf("%d forwarding headers count as foreign", n)
		}
	}
}

// The questions of the waiting page are for Anteroom itself: the proxy must not let them through, and streams would never
// end.
func TestPagesQuestionsAreNotDecided(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, admit)
		for _, target := range []string{"/?__anteroom=status", "/x?a=1&__anteroom=stream.12", "/?%5F_anteroom=hold", "/?__anteroom=other", "/.well-known/anteroom/jwks.json", "/.well-known/anteroom/x"} {
			says(t, w.asks(question(name, "GET", testHost, target)), "wait")
		}
		if n := len(w.door.seen()); n != 0 {
			t.Errorf("the room was asked %d times", n)
		}
	})
}

// A WebSocket's handshake arrives without its Upgrade. It takes a free seat and never joins the queue, and is not switched.
func TestQuestionAboutAWebSocket(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, line)
		handshake := []string{"Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version", "13"}
		says(t, w.asks(question(name, "GET", testHost, "/ws", handshake...)), "refuse")
		w.door.program(admit)
		says(t, w.asks(question(name, "GET", testHost, "/ws", append(handshake, "Upgrade", "websocket", "Connection", "Upgrade")...)), "admit")
		for _, v := range w.door.seen() {
			if !v.NoJoin {
				t.Error("it may join the queue")
			}
		}
	})
}

// Too many requests in flight: the proxy does not let them through either.
func TestVerdictUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, admit, withConfig(func(c *Config) { c.MaxInFlight = 1 }))
	w.gw.count.inFlight.Add(1)
	says(t, w.asks(question("traefik", "GET", testHost, "/")), "refuse")
}

// Proxies keep their connections; a page on one of them does not end it later.
func TestQuestionsShareAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, line, withConfig(func(c *Config) { c.Timeouts.Page = time.Millisecond }))
	front := httptest.NewServer(w.gw.ForwardAuth())
	t.Cleanup(front.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for i, decide := range []func(anteroom.Visit) anteroom.Decision{line, admit, line, admit} {
		w.door.program(decide)
		q := question("traefik", "GET", testHost, "/")
		req, err := http.NewRequestWithContext(t.Context(), "GET", front.URL+"/check/traefik", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = q.Header
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, res)
		res.Body.Close()
		says(t, res, []string{"wait", "admit"}[i%2])
	}
}
