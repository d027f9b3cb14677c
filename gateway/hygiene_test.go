package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// TestRawRequests holds the table of threats: bytes on a socket, and what becomes of them.
// Status 0 means that the connection was closed without an answer.
func TestRawRequests(t *testing.T) {
	const end = "Host: shop.example.com\nConnection: close\n\n"
	cookies := func(n int) string { return "Cookie: " + strings.Repeat("a=b; ", n-1) + "a=b\n" }
	for _, c := range []struct {
		name   string
		bytes  string
		status int
		passes bool // the origin sees it
	}{
		{"plain", "GET / HTTP/1.1\n" + end, 200, true},
		{"CONNECT", "CONNECT shop.example.com:443 HTTP/1.1\nHost: shop.example.com:443\n\n", 405, false},
		{"CONNECT with a body", "CONNECT shop.example.com:443 HTTP/1.1\nHost: shop.example.com:443\nContent-Length: 5\n\nhello", 405, false},
		{"CONNECT with a path", "CONNECT / HTTP/1.1\n" + end, 405, false},
		{"TRACE", "TRACE / HTTP/1.1\n" + end, 405, false},
		{"TRACK", "TRACK / HTTP/1.1\n" + end, 405, false},
		{"DEBUG", "DEBUG / HTTP/1.1\n" + end, 405, false},
		{"lower-case get", "get / HTTP/1.1\n" + end, 405, false},
		{"unknown method", "BREW / HTTP/1.1\n" + end, 405, false},
		{"HTTP/2 preface", "PRI * HTTP/2.0\n\nSM\n\n", 405, false},
		{"GET *", "GET * HTTP/1.1\n" + end, 400, false},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\n" + end, 200, false},
		{"HTTP/1.2", "GET / HTTP/1.2\n" + end, 200, true},

		{"HTTP/1.0 without Host", "GET / HTTP/1.0\n\n", 400, false},
		{"HTTP/1.0 with Host", "GET / HTTP/1.0\nHost: shop.example.com\n\n", 200, true},
		{"empty Host", "GET / HTTP/1.1\nHost:\nConnection: close\n\n", 400, false},
		{"two Host lines", "GET / HTTP/1.1\nHost: shop.example.com\n" + end, 400, false},
		{"user in Host", "GET / HTTP/1.1\nHost: x@shop.example.com\nConnection: close\n\n", 400, false},
		{"path in Host", "GET / HTTP/1.1\nHost: shop.example.com/x\nConnection: close\n\n", 400, false},
		{"port that is none", "GET / HTTP/1.1\nHost: shop.example.com:abc\nConnection: close\n\n", 400, false},
		{"list of hosts", "GET / HTTP/1.1\nHost: shop.example.com,b.example.com\nConnection: close\n\n", 400, false},
		{"encoded host", "GET / HTTP/1.1\nHost: sh%6fp.example.com\nConnection: close\n\n", 400, false},
		{"upper case, dot and port", "GET / HTTP/1.1\nHost: SHOP.example.com.:80\nConnection: close\n\n", 200, true},
		{"unknown host", "GET / HTTP/1.1\nHost: other.example.com\nConnection: close\n\n", 421, false},
		{"absolute target wins over Host", "GET http://other.example.com/ HTTP/1.1\n" + end, 421, false},
		{"absolute target served", "GET http://shop.example.com/ HTTP/1.1\nHost: other.example.com\nConnection: close\n\n", 200, true},
		{"absolute target of another scheme", "GET ftp://shop.example.com/ HTTP/1.1\n" + end, 400, false},

		{"8 KiB of target", "GET /" + strings.Repeat("a", 8<<10-1) + " HTTP/1.1\n" + end, 200, true},
		{"more of it", "GET /" + strings.Repeat("a", 8<<10) + " HTTP/1.1\n" + end, 414, false},
		{"16 KiB of query", "GET /?" + strings.Repeat("a", 16<<10) + " HTTP/1.1\n" + end, 414, false},
		{"more of it by a question", "GET /" + strings.Repeat("a", 8<<10-1) + "?__anteroom=status.5000000 HTTP/1.1\n" + end, 200, false},
		{"more of a query by a question", "GET /?" + strings.Repeat("a", 8<<10-2) + "&__anteroom=status.5000000 HTTP/1.1\n" + end, 200, false},
		{"more than a question", "GET /?" + strings.Repeat("a", 8<<10-1) + "&__anteroom=status HTTP/1.1\n" + end, 414, false},
		{"a question of 1 KiB", "GET /" + strings.Repeat("a", 8<<10-1) + "?__anteroom=status." + strings.Repeat("0", 1<<10) + " HTTP/1.1\n" + end, 414, false},
		{"zero byte", "GET /t%00 HTTP/1.1\n" + end, 400, false},
		{"line break in the path", "GET /t%0d%0aX:1 HTTP/1.1\n" + end, 400, false},
		{"DEL in the path", "GET /t%7f HTTP/1.1\n" + end, 400, false},
		{"bad encoding", "GET /%zz HTTP/1.1\n" + end, 400, false},

		{"100 header lines", "GET / HTTP/1.1\n" + strings.Repeat("A: b\n", 99) + end, 200, true},
		{"101 header lines", "GET / HTTP/1.1\n" + strings.Repeat("A: b\n", 100) + end, 431, false},
		{"64 KiB of headers", "GET / HTTP/1.1\nA: " + strings.Repeat("b", 64<<10) + "\n" + end, 431, false},
		{"33 KiB of headers", "GET / HTTP/1.1\nA: " + strings.Repeat("b", 33<<10) + "\n" + end, 431, false},
		{"150 cookies", "GET / HTTP/1.1\n" + cookies(150) + end, 200, true},
		{"151 cookies", "GET / HTTP/1.1\n" + cookies(151) + end, 431, false},
		{"cookies over lines", "GET / HTTP/1.1\n" + strings.Repeat(cookies(20), 8) + end, 431, false},
		{"4000 cookies", "GET / HTTP/1.1\n" + cookies(4000) + end, 431, false},

		{"Content-Length twice", "POST / HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n" + end + "ab", 400, false},
		{"Transfer-Encoding unknown", "POST / HTTP/1.1\nTransfer-Encoding: xchunked\n" + end, 501, false},
		{"Content-Length with a sign", "POST / HTTP/1.1\nContent-Length: +1\n" + end + "a", 400, false},
		{"Transfer-Encoding twice", "POST / HTTP/1.1\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n" + end + "0\n\n", 501, false},
		{"Transfer-Encoding chunked and more", "POST / HTTP/1.1\nTransfer-Encoding: chunked, identity\n" + end + "0\n\n", 501, false},
		{"folded line", "GET / HTTP/1.1\nA: b\n c\n" + end, 200, true},
		{"zero byte in a header", "GET / HTTP/1.1\nA: b\x00c\n" + end, 400, false},
		{"carriage return in a header", "GET / HTTP/1.1\nA: b\rc\n" + end, 400, false},
		{"header without a name", "GET / HTTP/1.1\n: b\n" + end, 400, false},
		{"header without a colon", "GET / HTTP/1.1\nab\n" + end, 400, false},
		{"name with a space", "GET / HTTP/1.1\nA : b\n" + end, 400, false},
		{"Expect that is unknown", "GET / HTTP/1.1\nExpect: x\n" + end, 417, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit)
			if got := w.rawOne(c.bytes); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
			if got := len(w.origin.requests()); (got > 0) != c.passes {
				t.Errorf("the origin saw %d requests", got)
			}
		})
	}
}

// TestConnectionEnds holds what must be the last request on its connection.
func TestConnectionEnds(t *testing.T) {
	const follow = "GET /follow HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"
	for _, c := range []struct {
		name    string
		bytes   string
		answers int
	}{
		{"keep-alive", "GET / HTTP/1.1\nHost: shop.example.com\n\n", 2},
		{"a body of known length", "POST / HTTP/1.1\nHost: shop.example.com\nContent-Length: 2\n\nab", 2},
		{"chunked", "POST / HTTP/1.1\nHost: shop.example.com\nTransfer-Encoding: chunked\n\n2\nab\n0\n\n", 1},
		{"chunked beside a length", "POST / HTTP/1.1\nHost: shop.example.com\nContent-Length: 7\nTransfer-Encoding: chunked\n\n2\nab\n0\n\n", 1},
		{"HTTP/1.0 kept alive", "GET / HTTP/1.0\nHost: shop.example.com\nConnection: keep-alive\n\n", 1},
		{"HTTP/1.0 with Transfer-Encoding", "POST / HTTP/1.0\nHost: shop.example.com\nConnection: keep-alive\nTransfer-Encoding: chunked\n\n", 1},
		{"refused", "TRACE / HTTP/1.1\nHost: shop.example.com\n\n", 1},
	} {
		for where, decide := range map[string]func(anteroom.Visit) anteroom.Decision{"inside": admit, "in line": line} {
			t.Run(c.name+", "+where, func(t *testing.T) {
				w := newWorld(t, decide)
				if got := len(raw(t, w.addr(), c.bytes+follow)); got != c.answers {
					t.Errorf("%d answers, want %d", got, c.answers)
				}
				for _, r := range w.origin.requests() {
					if c.answers == 1 && r.URL.Path == "/follow" {
						t.Error("what followed reached the origin")
					}
				}
				if n := len(w.door.seen()); c.answers == 1 && n > 1 {
					t.Errorf("the room was asked %d times", n)
				}
			})
		}
	}
}

func TestQueuedBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const host = "Host: shop.example.com\n"
	const follow = "GET /follow HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"
	for _, c := range []struct {
		name    string
		bytes   string
		answers []int
	}{
		{"a small form keeps the connection", "POST / HTTP/1.1\n" + host + "Content-Length: 5\n\na=b&c" + follow, []int{429, 200}},
		{"ten megabytes are not awaited", "POST / HTTP/1.1\n" + host + "Content-Length: 10000000\n\nbeginning", []int{429}},
		{"nor a hundred kilobytes", "POST / HTTP/1.1\n" + host + "Content-Length: 100000\n\nbeginning", []int{429}},
		{"nor chunks", "POST / HTTP/1.1\n" + host + "Transfer-Encoding: chunked\n\n5\nbegin\n", []int{429}},
		{"a waiting client is not told to go on", "POST / HTTP/1.1\n" + host + "Content-Length: 5\nExpect: 100-continue\n\n", []int{429}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, line)
			var got []int
			for _, res := range raw(t, w.addr(), c.bytes) {
				got = append(got, res.StatusCode)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.answers) {
				t.Errorf("answers %v, want %v", got, c.answers)
			}
			if n := len(w.origin.requests()); n != 0 {
				t.Errorf("the origin saw %d requests", n)
			}
		})
	}
}

// TestUpgradeTunnelling is threats §0.2: a tunnel for any token but websocket would carry
// requests past the gate.
func TestUpgradeTunnelling(t *testing.T) {
	for _, token := range []string{"h2c", "foo", "TLS/1.0", "websocket, h2c", "websocket/13", " "} {
		w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
			if up := r.Header.Get("Upgrade"); up != "" {
				rw.Header().Set("Connection", "Upgrade")
				rw.Header().Set("Upgrade", up)
				rw.WriteHeader(http.StatusSwitchingProtocols)
			}
		}))
		answers := raw(t, w.addr(), "GET / HTTP/1.1\nHost: shop.example.com\nConnection: Upgrade, HTTP2-Settings\nUpgrade: "+token+
			"\nHTTP2-Settings: AAMAAABkAAQAAP__\n\nGET /tickets/after-101 HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n")
		if len(answers) != 2 || answers[0].StatusCode != 200 || answers[1].StatusCode != 200 {
			t.Errorf("%q: %d answers", token, len(answers))
		}
		for _, r := range w.origin.requests() {
			if r.Header.Get("Upgrade") != "" || r.Header.Get("Http2-Settings") != "" {
				t.Errorf("%q: the origin saw Upgrade %q, HTTP2-Settings %q", token, r.Header.Get("Upgrade"), r.Header.Get("Http2-Settings"))
			}
			if r.Header.Get(hopHeader) == "" {
				t.Errorf("%q: %s reached the origin around the gate", token, r.URL.Path)
			}
		}
		if n := len(w.door.seen()); n != 2 {
			t.Errorf("%q: the door was asked %d times", token, n)
		}
	}
}

// TestUnaskedSwitch: an origin that switches protocols without being asked gets no tunnel.
func TestUnaskedSwitch(t *testing.T) {
	for _, answer := range []string{"\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"} {
		w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(rw).Hijack()
			if err == nil {
				c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n" + answer))
				c.Close()
			}
		}))
		if got := w.rawOne("GET / HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"); got != 502 {
			t.Errorf("%q: status %d", answer, got)
		}
	}
}

func TestReservedHeaders(t *testing.T) {
	const proofHeader = "X-Anteroom-Assertion"
	names := []string{proofHeader, "X_Anteroom_Assertion", "X.Anteroom.Assertion", "x-anteroom_assertion", "X-Anteroom-Anything", "X_ANTEROOM_" + strings.Repeat("LONG", 30),
		"X-Forwarded-Prefix", "X_Forwarded_For", "X.Forwarded.For", "X-Forwarded_Host", "Forwarded", "X-Forwarded", "X-Real-Ip", "X_Real_IP", "X-Original-Url", "X-Original-Uri",
		"X-Rewrite-Url", "X-Http-Method-Override", "X_HTTP_Method_Override", "X-Http-Method", "True-Client-Ip", "Cf-Connecting-Ip", "Client-Ip", "Fastly-Client-Ip", "X-Client-Ip",
		"Content_Length", "Transfer_Encoding", "Content.Length", "X_Custom", "Any~Thing", "Proxy", "HTTP_X_FORWARDED_FOR", "Http-Client-Ip", "Wl-Proxy-Client-Ip", "Proxy-Client-Ip",
		"Remote-User", "Remote-Addr", "X-Remote-User", "Cf-Ipcountry", "Cf-Anything", "X-Vendor-Ip", "Ip", "X-Ssl-Client-Dn"}
	ours := map[string]bool{"X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Real-Ip": true, hopHeader: true}
	states := []struct {
		name   string
		decide func(anteroom.Visit) anteroom.Decision
		host   string
	}{
		{"admitted", admit, testHost},
		{"passed", func(v anteroom.Visit) anteroom.Decision {
			return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: testNow()}
		}, testHost},
		{"without a room", line, "open.example.com"},
	}
	values := map[string][]string{"empty": {""}, "a value": {"6.6.6.6"}, "twice": {"6.6.6.6", "7.7.7.7"}}
	for _, s := range states {
		w := newWorld(t, s.decide)
		for _, name := range names {
			for form, vs := range values {
				var b strings.Builder
				for _, v := range vs {
					b.WriteString(name + ": " + v + "\n")
				}
				if got := w.rawOne("GET / HTTP/1.1\nHost: " + s.host + "\n" + b.String() + "Connection: close, " + name + "\n\n"); got != 200 {
					t.Fatalf("%s, %s, %s: status %d", s.name, name, form, got)
				}
				for have, v := range w.origin.last(t).Header {
					if ours[have] {
						if strings.Contains(strings.Join(v, ","), "6.6.6.6") {
							t.Errorf("%s, %s, %s: the origin saw %s: %q", s.name, name, form, have, v)
						}
						continue
					}
					if f := fold(have); strings.HasPrefix(f, "x-anteroom") || f == fold(name) {
						t.Errorf("%s, %s, %s: the origin saw %s: %q", s.name, name, form, have, v)
					}
				}
			}
		}
	}
}

func TestConnectionTokensCannotRemoveOurs(t *testing.T) {
	w := newWorld(t, admit)
	got := w.rawOne("GET / HTTP/1.1\nHost: shop.example.com\nConnection: close, x-forwarded-for\nConnection: X-FORWARDED-HOST, Via, X-Forwarded-Proto, accept\nAccept: a\n\n")
	h := w.origin.last(t).Header
	if got != 200 || h.Get("X-Forwarded-For") != "127.0.0.1" || h.Get("X-Forwarded-Host") == "" || h.Get(hopHeader) == "" || h.Get("X-Forwarded-Proto") == "" {
		t.Errorf("status %d, headers %q", got, h)
	}
	if h.Get("Accept") != "" {
		t.Error("a hop-by-hop header of the client's choice was passed on")
	}
}

func TestReservedNamesByTrust(t *testing.T) {
	s := &setup{proofFolded: "x-proof"}
	for _, c := range []struct {
		name               string
		untrusted, trusted bool
	}{
		{"X-Proof", true, true}, {"X_proof", true, true}, {"X-Anteroom-X", true, true},
		{"X-Forwarded-For", true, false}, {"X_forwarded_for", true, true}, {"X-Real-Ip", true, false},
		{"X-Requested-With", false, false}, {"X_custom", true, true}, {"Content-Type", false, false}, {"Cookie", false, false},
		{"X-Api.key", true, true}, {"Cf-Waiting-Room-Command", true, true}, {"X", false, false}, {"Te", false, false},
		{"Content_length", true, true}, {"Proxy", true, true}, {"Cf-Ipcountry", true, false}, {"Wl-Proxy-Client-Ip", true, false}, {"Remote-User", true, false},
		{"Http-X-Real-Ip", true, false}, {"X-Vendor-Ip", true, false}, {"X-Shipping", false, false}, {"X-Api-Key", false, false}, {"Authorization", false, false},
		{"X-Forwarded-" + strings.Repeat("a", 100), true, false}, {strings.Repeat("a", 100) + "_", true, true}, {strings.Repeat("a", 100), false, false},
	} {
		if got := s.reserved(c.name, false); got != c.untrusted {
			t.Errorf("%s from anybody: %v", c.name, got)
		}
		if got := s.reserved(c.name, true); got != c.trusted {
			t.Errorf("%s from a proxy: %v", c.name, got)
		}
	}
}

func TestRequestTrailersStay(t *testing.T) {
	w := newWorld(t, admit)
	got := w.rawOne("POST / HTTP/1.1\nHost: shop.example.com\nTransfer-Encoding: chunked\nTrailer: X-Anteroom-Assertion, X-T\nConnection: close\n\n2\nab\n0\nX-Anteroom-Assertion: forged\nX-T: 1\n\n")
	r := w.origin.last(t)
	if got != 200 || len(r.Trailer) != 0 || r.Header.Get("Trailer") != "" {
		t.Errorf("status %d, trailer %q, announced %q", got, r.Trailer, r.Header.Get("Trailer"))
	}
}

func TestLoop(t *testing.T) {
	w := newWorld(t, admit)
	w.do("GET", "/", nil)
	hop := w.origin.last(t).Header.Get(hopHeader)
	other := "anteroom-0000000000000000"
	for v, want := range map[string]int{hop: 508, other + ", " + hop: 508, other: 200} {
		if res, _ := w.do("GET", "/", header(hopHeader, v)); res.StatusCode != want {
			t.Errorf("%q: %d", v, res.StatusCode)
		}
	}
	w.do("GET", "/", header(hopHeader, other, "Via", "1.0 fred"))
	got := w.origin.last(t).Header
	if hops := got.Get(hopHeader); !strings.HasPrefix(hops, other+", anteroom-") {
		t.Errorf("hops %q", hops)
	}
	// nginx answers uncompressed to whoever sends a Via.
	if via := got.Values("Via"); len(via) != 1 || via[0] != "1.0 fred" {
		t.Errorf("Via %q, want the visitor's own", via)
	}
}

func TestMethods(t *testing.T) {
	w := newWorld(t, admit)
	for method, want := range map[string]int{"PATCH": 200, "PROPFIND": 405, "TRACE": 405} {
		if res, _ := w.do(method, "/", nil); res.StatusCode != want {
			t.Errorf("%s: %d", method, res.StatusCode)
		} else if allow := res.Header.Get("Allow"); want == 405 && allow != "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" {
			t.Errorf("%s: Allow %q", method, allow)
		}
	}
}
