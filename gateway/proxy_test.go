package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/internal/freeport"
)

func TestTargetIsKept(t *testing.T) {
	var target string
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan string, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			seen <- strings.TrimSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1\r\n")
			io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			c.Close()
		}
	}()
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Sites[0].Origins[0] = parse(t, "http://"+l.Addr().String()) }))
	for _, target = range []string{
		"/", "/a/../t", "/a/%2e%2e/t", "/a/..%2ft", "/a/..;/t", "/t;v=1", "/%74ickets", "/%252e", "//t", "/TICKETS", "/a%2Fb%2fc",
		"/?a=1;room=x&b=2", "/?", "/?%zz", "/a?b?c", "/\"quoted\"", "/a\\..\\t", "/ü", "/a|b", "/?q=\"ü\"", "/%E2%82%ac",
	} {
		if got := w.rawOne("GET " + target + " HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"); got != 204 {
			t.Errorf("%q: status %d", target, got)
			continue
		}
		if got := <-seen; got != target {
			t.Errorf("sent %q, the origin saw %q", target, got)
		}
	}
}

func TestHostOfTheOrigin(t *testing.T) {
	for _, preserve := range []bool{true, false} {
		w := newWorld(t, admit, withConfig(func(c *Config) { c.Sites[0].PreserveHost = preserve }))
		w.do("GET", "/", nil)
		want := strings.TrimPrefix(w.origin.URL, "http://")
		if preserve {
			want = testHost
		}
		if got := w.origin.last(t).Host; got != want {
			t.Errorf("preserve %v: Host %q, want %q", preserve, got, want)
		}
	}
}

// TestStreaming: parts of an answer arrive before its end, with and without a type of stream.
func TestStreaming(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "application/octet-stream"} {
		release := make(chan struct{})
		w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", contentType)
			io.WriteString(rw, "first\n")
			http.NewResponseController(rw).Flush()
			<-release
			io.WriteString(rw, "second\n")
		}))
		r, _ := http.NewRequest("GET", w.front.URL, nil)
		r.Host = testHost
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(res.Body)
		if line, err := br.ReadString('\n'); line != "first\n" {
			t.Errorf("%s: %q, %v", contentType, line, err)
		}
		close(release)
		if line, err := br.ReadString('\n'); line != "second\n" {
			t.Errorf("%s: %q, %v", contentType, line, err)
		}
		res.Body.Close()
	}
}

func TestTrailersAndEarlyHints(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", "</style.css>; rel=preload")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.Header().Set("Trailer", "X-Sum")
		io.WriteString(rw, "body")
		rw.Header().Set("X-Sum", "42")
	}))
	hints := 0
	r, _ := http.NewRequest("GET", w.front.URL, nil)
	r.Host = testHost
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints++
		if code != 103 || h.Get("Link") == "" || h.Get("Set-Cookie") != "" {
			t.Errorf("early answer %d %q", code, h)
		}
		return nil
	}}))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if hints != 1 || res.Trailer.Get("X-Sum") != "42" || len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("%d early answers, trailer %q, cookies %q", hints, res.Trailer, res.Header["Set-Cookie"])
	}
}

func TestExpectContinue(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {}))
	got := raw(t, w.addr(), "POST / HTTP/1.1\nHost: shop.example.com\nContent-Length: 5\nExpect: 100-continue\nConnection: close\n\nhello")
	if len(got) < 1 || got[0].StatusCode != 100 || got[len(got)-1].StatusCode != 200 {
		t.Fatalf("answers %v", got)
	}
	if b := w.origin.bodies[0]; b != "hello" {
		t.Errorf("body %q", b)
	}
}

func TestHopByHopHeadersOfTheOrigin(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		c, _, _ := http.NewResponseController(rw).Hijack()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: x-own, keep-alive\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nProxy-Authenticate: x\r\nContent-Length: 2\r\n\r\nok")
		c.Close()
	}))
	res, body := w.do("GET", "/", nil)
	if body != "ok" {
		t.Errorf("body %q", body)
	}
	for _, name := range []string{"X-Own", "Keep-Alive", "Upgrade", "Proxy-Authenticate", "Transfer-Encoding"} {
		if v, ok := res.Header[name]; ok {
			t.Errorf("%s: %q", name, v)
		}
	}
}

// TestOriginFailures: what the visitor gets, and that the session is not lost with it.
func TestOriginFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		origin http.HandlerFunc
		url    string
		status int
		kind   int
	}{
		{"refuses connections", nil, "http://" + freeport.Address(t, 1), 502, originUnreachable},
		{"takes too long", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", 504, originTimeout},
		{"speaks nonsense", func(rw http.ResponseWriter, r *http.Request) {
			c, _, _ := http.NewResponseController(rw).Hijack()
			io.WriteString(c, "nonsense\r\n\r\n")
			c.Close()
		}, "", 502, originBroken},
		{"hangs up", func(rw http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "", 502, originBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit, withOrigin(c.origin), withConfig(func(cfg *Config) {
				if c.status == http.StatusGatewayTimeout {
					cfg.Timeouts.ResponseHeader = 100 * time.Millisecond
				}
				if c.url != "" {
					cfg.Sites[0].Origins[0] = parse(t, c.url)
				}
			}))
			res, body := w.do("POST", "/", nil)
			if res.StatusCode != c.status || !strings.Contains(body, "Please try again") || res.Header.Get("Cache-Control") != "private, no-store, max-age=0" {
				t.Errorf("%d %q %q", res.StatusCode, body, res.Header)
			}
			if len(res.Header["Set-Cookie"]) != 1 {
				t.Errorf("the new session's cookie: %q", res.Header["Set-Cookie"])
			}
			if n := w.gw.Stats().OriginErrors[c.kind]; n != 1 {
				t.Errorf("counted %v", w.gw.Stats().OriginErrors)
			}
		})
	}
}

// TestBrokenAnswer: an answer that breaks off must not look complete.
func TestBrokenAnswer(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100")
		io.WriteString(rw, "half")
	}))
	r, _ := http.NewRequest("GET", w.front.URL, nil)
	r.Host = testHost
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return // it broke off before its header was sent
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("no error at the end")
	}
}

func TestBodies(t *testing.T) {
	w := newWorld(t, admit)
	const head = "POST / HTTP/1.1\nHost: shop.example.com\nConnection: close\n"
	for _, c := range []struct {
		name, bytes string
		status      int
	}{
		{"a length", head + "Content-Length: 10\n\n0123456789", 200},
		{"chunks", head + "Transfer-Encoding: chunked\n\na\n0123456789\n0\n\n", 200},
		{"a broken chunk is the client's fault", head + "Transfer-Encoding: chunked\n\nzz\nx\n", 400},
	} {
		if got := w.rawOne(c.bytes); got != c.status {
			t.Errorf("%s: status %d, want %d", c.name, got, c.status)
		}
	}
}

func TestStalledBody(t *testing.T) {
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Timeouts.Stall = 50 * time.Millisecond }))
	if got := w.rawOne("POST / HTTP/1.1\nHost: shop.example.com\nContent-Length: 10\n\nhalf"); got != 400 {
		t.Errorf("status %d", got)
	}
}

// TestStalledVisitor: who stops reading is cut off, and the origin's answer with it, however it says where it ends.
func TestStalledVisitor(t *testing.T) {
	for _, length := range []string{"", "1000000000"} {
		t.Run("length "+length, func(t *testing.T) {
			gone := make(chan struct{})
			w := newWorld(t, admit, withConfig(func(c *Config) { c.Timeouts.Write = 50 * time.Millisecond }),
				withOrigin(func(rw http.ResponseWriter, r *http.Request) {
					defer close(gone)
					if length != "" {
						rw.Header().Set("Content-Length", length)
					}
					part := make([]byte, 1<<20)
					for {
						if _, err := rw.Write(part); err != nil {
							return
						}
					}
				}))
			c, err := net.Dial("tcp", w.addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
			select {
			case <-gone:
			case <-time.After(5 * time.Second):
				t.Error("the origin is still writing")
			}
		})
	}
}

// TestLargeAnswers: large bodies of a known length arrive byte for byte, also when the origin and the visitor take turns waiting for
// each other; one that the origin cuts short does not look whole.
func TestLargeAnswers(t *testing.T) {
	const size = 3 << 20
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * i >> 7)
	}
	more := make(chan int) // how much the origin writes next; negative: it breaks off
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(size))
		if r.Method == http.MethodHead {
			return
		}
		for at := 0; at < size; {
			n := <-more
			if n < 0 {
				panic(http.ErrAbortHandler)
			}
			end := min(at+n, size)
			rw.Write(body[at:end])
			http.NewResponseController(rw).Flush()
			at = end
		}
	}))
	c, err := net.Dial("tcp", w.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	get := func(method string) *http.Response {
		t.Helper()
		io.WriteString(c, method+" / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const kept = 8 << 10 // what the way may keep back until more comes
	for _, step := range []int{size, 10_000, 50_000, 700_000} {
		go func() { more <- step }()
		res := get("GET")
		got := make([]byte, size)
		for at, sent := 0, step; at < size; {
			end := size
			if sent < size {
				end = sent - kept
			}
			if _, err := io.ReadFull(res.Body, got[at:end]); err != nil {
				t.Fatalf("step %d, at %d: %v", step, at, err)
			}
			if at = end; at < size {
				more <- step // only now that the visitor has what came before
				sent += step
			}
		}
		if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("step %d: %d bytes more, %v", step, n, err)
		}
		if !bytes.Equal(got, body) {
			t.Errorf("step %d: other bytes came", step)
		}
	}
	if res := get("HEAD"); res.ContentLength != size {
		t.Errorf("HEAD: %d bytes", res.ContentLength)
	}
	go func() { more <- 1_000_000; more <- -1 }()
	if n, err := io.Copy(io.Discard, get("GET").Body); n >= size || err == nil {
		t.Errorf("cut short: %d bytes, %v", n, err)
	}
}

// TestSlowOrigin: the deadline of a request's body does not end the wait for the answer.
func TestSlowOrigin(t *testing.T) {
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Timeouts.Stall = 20 * time.Millisecond }),
		withOrigin(func(rw http.ResponseWriter, r *http.Request) {
			<-time.After(100 * time.Millisecond)
			io.WriteString(rw, "late")
		}))
	if got := w.rawOne("POST / HTTP/1.1\nHost: shop.example.com\nContent-Length: 4\nConnection: close\n\nfull"); got != 200 {
		t.Errorf("status %d", got)
	}
}

func TestTooManyInFlight(t *testing.T) {
	hold, in := make(chan struct{}), make(chan struct{})
	w := newWorld(t, admit, withConfig(func(c *Config) { c.MaxInFlight = 1 }),
		withOrigin(func(http.ResponseWriter, *http.Request) { close(in); <-hold }))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.do("GET", "/", nil)
	}()
	<-in
	if res, _ := w.do("GET", "/", nil); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	close(hold)
	<-done
	if n := w.gw.Stats().InFlight; n > 1 {
		t.Errorf("%d in flight", n)
	}
}

func TestCookiesOfTheOrigin(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["Set-Cookie"] = []string{"a=1; Path=/", "__cfwaitingroom=forged", " __cfwaitingroom_x = forged", "__cfwaitingroomy=kept"}
	}))
	own := w.seal(session())
	for _, c := range []struct{ sent, want string }{
		{own, ""},
		{"a=1; " + own + "; b=\"2;  3\"", "a=1; b=\"2;  3\""},
		{own + ";a=1;  b", "a=1;  b"},
		{"a=1;" + own, "a=1"},
		{"a=__cfwaitingroom=1; __cfwaitingroomy=2", "a=__cfwaitingroom=1; __cfwaitingroomy=2"},
		{"__cfwaitingroom_other=1; a=b", "a=b"},
		{"a=b;; c=d ;", "a=b;; c=d ;"},
	} {
		res, _ := w.do("GET", "/", header("Cookie", c.sent))
		if got := strings.Join(w.origin.last(t).Header["Cookie"], "|"); got != c.want {
			t.Errorf("sent %q, the origin saw %q, want %q", c.sent, got, c.want)
		}
		kept := 0
		for _, line := range res.Header["Set-Cookie"] {
			if strings.Contains(line, "forged") {
				t.Errorf("Set-Cookie %q", line)
			}
			if line == "a=1; Path=/" || line == "__cfwaitingroomy=kept" {
				kept++
			}
		}
		if kept != 2 {
			t.Errorf("Set-Cookie %q", res.Header["Set-Cookie"])
		}
	}
	w.do("GET", "/", func(r *http.Request) { r.Header["Cookie"] = []string{own, "a=1", "b=2; " + own} })
	if got := w.origin.last(t).Header["Cookie"]; fmt.Sprint(got) != "[a=1 b=2]" {
		t.Errorf("three lines: %q", got)
	}
}

// TestTicketOnTheAnswer: when an admitted answer carries a cookie, and what becomes of its
// Cache-Control.
func TestTicketOnTheAnswer(t *testing.T) {
	renew := func(v anteroom.Visit) anteroom.Decision {
		d := admit(v)
		d.SetCookie = true
		d.Ticket.LastCheckIn = d.At
		return d
	}
	fresh := func() anteroom.Ticket { return anteroom.Ticket{} }
	old := func(age time.Duration) func() anteroom.Ticket {
		return func() anteroom.Ticket {
			s := session()
			s.LastCheckIn = s.LastCheckIn.Add(-age)
			return s
		}
	}
	const public = "public, max-age=600"
	for _, c := range []struct {
		name    string
		ticket  func() anteroom.Ticket
		headers []string
		cache   string // of the origin's answer
		cookie  bool
		want    string
	}{
		{"new session", fresh, nil, "", true, "private"},
		{"new session, private answer", fresh, nil, "private, max-age=5", true, "private, max-age=5"},
		{"new session, public answer", fresh, nil, public, true, "private, no-store"},
		{"new session, shared by lifetime", fresh, nil, "max-age=600", true, "private, no-store"},
		{"new session, no-cache", fresh, nil, "no-cache", true, "no-cache"},
		{"new session by fetch", fresh, []string{"Sec-Fetch-Mode", "cors"}, "", true, "private"},
		{"renewal by navigation", old(3 * time.Minute), []string{"Sec-Fetch-Mode", "navigate"}, "no-store", true, "no-store"},
		{"renewal by a client that says nothing", old(3 * time.Minute), nil, "", true, "private"},
		{"renewal by fetch waits", old(3 * time.Minute), []string{"Sec-Fetch-Mode", "cors"}, "", false, ""},
		{"renewal on a public answer waits", old(3 * time.Minute), nil, public, false, public},
		{"renewal on s-maxage waits", old(3 * time.Minute), nil, "s-maxage=1", false, "s-maxage=1"},
		{"overdue renewal by fetch", old(6 * time.Minute), []string{"Sec-Fetch-Mode", "cors"}, "", true, "private"},
		{"overdue renewal on a public answer", old(6 * time.Minute), nil, public, true, "private, no-store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, renew, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
				if c.cache != "" {
					rw.Header().Set("Cache-Control", c.cache)
				}
			}))
			res, _ := w.do("GET", "/", func(r *http.Request) {
				header(c.headers...)(r)
				if tk := c.ticket(); !tk.ID.IsZero() {
					r.Header.Set("Cookie", w.seal(tk))
				}
			})
			if got := len(res.Header["Set-Cookie"]) == 1; got != c.cookie {
				t.Errorf("Set-Cookie %q", res.Header["Set-Cookie"])
			}
			if got := res.Header.Get("Cache-Control"); got != c.want {
				t.Errorf("Cache-Control %q, want %q", got, c.want)
			}
		})
	}
}

func TestCookieAttributes(t *testing.T) {
	for _, c := range []struct {
		samesite, secure string
		plain, tls       string
	}{
		{"auto", "auto", "; Path=/; HttpOnly; SameSite=Lax", "; Path=/; HttpOnly; SameSite=Lax; Secure"},
		{"", "", "; Path=/; HttpOnly; SameSite=Lax", "; Path=/; HttpOnly; SameSite=Lax; Secure"},
		{"strict", "never", "; Path=/; HttpOnly; SameSite=Strict", "; Path=/; HttpOnly; SameSite=Strict"},
		{"lax", "always", "; Path=/; HttpOnly; SameSite=Lax; Secure", "; Path=/; HttpOnly; SameSite=Lax; Secure"},
		{"none", "auto", "; Path=/; HttpOnly; SameSite=Lax", "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"},
		{"none", "always", "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned", "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"},
	} {
		got := tailOf(anteroom.CookieAttributes{SameSite: c.samesite, Secure: c.secure}, route.Scope{}, "")
		if got.plain != c.plain || got.tls != c.tls {
			t.Errorf("%s, %s: %+v", c.samesite, c.secure, got)
		}
	}
	w := newWorld(t, line, withConfig(func(c *Config) { c.TrustedProxies = prefixes("127.0.0.0/8") }))
	res, _ := w.do("GET", "/", header("X-Forwarded-Proto", "https"))
	if c := res.Header.Get("Set-Cookie"); !strings.HasSuffix(c, "; Secure") {
		t.Errorf("behind a proxy with TLS: %q", c)
	}
}

func TestOriginCommand(t *testing.T) {
	for _, c := range []struct {
		name    string
		enabled bool
		command string
		revoked bool
	}{
		{"enabled", true, "revoke", true},
		{"in other case", true, "Revoke", true},
		{"among others", true, "x, revoke", true},
		{"unknown", true, "eject", false},
		{"disabled", false, "revoke", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("cf-waiting-room-command", c.command)
				rw.Header().Set("Cache-Control", "public, max-age=9")
				io.WriteString(rw, "bye")
			}), withRoom(func(r *anteroom.Room) {
				if c.enabled {
					r.EnabledOriginCommands = []string{anteroom.CommandRevoke}
				}
			}))
			s := session()
			res, body := w.do("GET", "/", header("Cookie", w.seal(s)))
			if body != "bye" || res.Header.Get("Cf-Waiting-Room-Command") != "" {
				t.Errorf("body %q, command %q", body, res.Header.Get("Cf-Waiting-Room-Command"))
			}
			cookie := res.Header.Get("Set-Cookie")
			if c.revoked && (len(w.door.revoked) != 1 || w.door.revoked[0] != s.ID || !strings.Contains(cookie, "=; Max-Age=0; Path=/") ||
				res.Header.Get("Cache-Control") != "private, no-store") {
				t.Errorf("revoked %v, cookie %q, Cache-Control %q", w.door.revoked, cookie, res.Header.Get("Cache-Control"))
			}
			if !c.revoked && (len(w.door.revoked) != 0 || cookie != "") {
				t.Errorf("revoked %v, cookie %q", w.door.revoked, cookie)
			}
		})
	}
}

func TestStaleKeyIsRenewed(t *testing.T) {
	w := newWorld(t, admit)
	cookie := w.seal(session())
	ring, err := w.keys.Rotate(time.Now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg := w.config()
	cfg.Keys = ring
	w.gw.put(w.again(cfg))
	res, _ := w.do("GET", "/", header("Cookie", cookie))
	if len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("Set-Cookie %q", res.Header["Set-Cookie"])
	}
}

// again builds another setup with the world's door.
func (w *world) again(cfg Config) *setup {
	w.t.Helper()
	s, err := newSetup(cfg, w.gw.live.Load(), doors{now: testNow, of: func(anteroom.RoomID) door { return w.door }})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestSwapLetsRequestsFinish(t *testing.T) {
	in, hold := make(chan struct{}), make(chan struct{})
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		close(in)
		<-hold
		io.WriteString(rw, "old")
	}))
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "new") }))
	defer other.Close()
	first := make(chan string)
	go func() {
		_, body := w.do("GET", "/", nil)
		first <- body
	}()
	<-in
	cfg := w.config()
	cfg.Sites = []Site{{Hosts: []string{"*"}, Origins: []*url.URL{parse(t, other.URL)}}}
	w.gw.put(w.again(cfg))
	if _, body := w.do("GET", "/", nil); body != "new" {
		t.Errorf("after the swap: %q", body)
	}
	close(hold)
	if body := <-first; body != "old" {
		t.Errorf("under way: %q", body)
	}
}

func TestConfigFaults(t *testing.T) {
	w := newWorld(t, admit)
	good := w.config()
	for name, c := range map[string]struct {
		edit func(*Config)
		want string
	}{
		"no keys":    {func(c *Config) { c.Keys = nil }, "keys: are missing"},
		"no origin":  {func(c *Config) { c.Sites[0].Origins = nil }, "sites[0].origins: are missing"},
		"no request": {func(c *Config) { c.MaxInFlight = -1 }, "max_in_flight: is negative"},
		"no time":    {func(c *Config) { c.Timeouts.Write = -1 }, "timeouts.Write: is negative"},
		"no hosts":   {func(c *Config) { c.Sites[0].Hosts = nil }, "sites[0].hosts: are missing"},
		"scheme":     {func(c *Config) { c.Sites[0].Origins = []*url.URL{parse(t, "ftp://x")} }, "sites[0].origins[0]: is not an http"},
		"path":       {func(c *Config) { c.Sites[0].Origins = []*url.URL{parse(t, "http://x/y")} }, "sites[0].origins[0]: has more than"},
		"host":       {func(c *Config) { c.Sites[0].Hosts = []string{"a b"} }, "sites[0].hosts[0]: \"a b\" is not a host name"},
		"host twice": {func(c *Config) { c.Sites[0].Hosts = []string{"a.example", "A.example."} }, "already belongs to another proxied site"},
		"health":     {func(c *Config) { c.Sites[0].Health.Path = "x" }, "sites[0].health.path"},
		"room unknown": {func(c *Config) {
			c.Rooms = append(c.Rooms[:1:1], anteroom.Room{Name: "b", Routes: []anteroom.Route{{Host: "b.example.com"}}})
		}, "rooms[1]: is not served by the node"},
		"rooms that collide": {func(c *Config) { c.Rooms = append(c.Rooms[:1:1], c.Rooms[0]) }, "routes"},
	} {
		cfg := good
		cfg.Sites = append([]Site(nil), good.Sites...)
		c.edit(&cfg)
		_, err := newSetup(cfg, nil, doors{now: testNow, of: func(id anteroom.RoomID) door {
			if id == w.room.ID {
				return w.door
			}
			return nil
		}})
		if err == nil || !strings.Contains(err.Error(), c.want) || anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "node: is missing") || !strings.Contains(err.Error(), "keys: are missing") {
		t.Errorf("New: %v", err)
	}
}
