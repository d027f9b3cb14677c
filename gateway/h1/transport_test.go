package h1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestAnswersBothRead: what a visitor gets of an answer that no recipient could misread.
func TestAnswersBothRead(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, c := range []struct {
		name, method, answer string
		status               int
		body                 string
		length               int64
	}{
		{"length", "GET", ok, 200, "ok", 2},
		{"equal lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok", 2},
		{"no body", "GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "", 0},
		{"no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, "ok", 2},
		{"long body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + long, 200, long, 70000},
		{"long head", "GET", "HTTP/1.1 200 OK\r\nX-Long: " + long + "\r\nContent-Length: 2\r\n\r\nok", 200, "ok", 2},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, "abc", -1},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 200, "", 2},
		{"HEAD of chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", -1},
		{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0},
		{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304, "", 0},
		{"bytes beyond ASCII", "GET", "HTTP/1.1 200 OK\r\nX-Name: \xe9t\xe9\r\nContent-Length: 2\r\n\r\nok", 200, "ok", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			over(t, func(t *testing.T, way http.RoundTripper) {
				o := answering(t, c.answer)
				for range 3 {
					res, body, err := send(way, o.request(c.method, nil))
					if err != nil || res.StatusCode != c.status || body != c.body || res.ContentLength != c.length || res.Close {
						t.Fatalf("%v, length %d, %.80q, %v", res, res.ContentLength, body, err)
					}
				}
				if n := o.conns.Load(); n != 1 {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// TestAnswersToTheEnd: answers after which the connection cannot carry another one.
func TestAnswersToTheEnd(t *testing.T) {
	for name, answer := range map[string]string{
		"no length":      "HTTP/1.1 200 OK\r\n\r\nok",
		"Connection":     "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0":       "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chunks, closed": "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			over(t, func(t *testing.T, way http.RoundTripper) {
				o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
					readRequest(in)
					io.WriteString(c, answer)
				})
				for range 3 {
					if res, body, err := send(way, o.request("POST", nil)); err != nil || body != "ok" || !res.Close {
						t.Fatalf("%q, %v", body, err)
					}
				}
				if n := o.conns.Load(); n != 3 {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// TestAnswersRefused: answers that are wrong, or that somebody might read in another way than we do.
func TestAnswersRefused(t *testing.T) {
	const line, end = "HTTP/1.1 200 OK\r\n", "Content-Length: 2\r\n\r\nok"
	for name, answer := range map[string]string{
		"nonsense":             "nonsense\r\n\r\n",
		"nothing":              "",
		"half a head":          "HTTP/1.1 200 OK\r\nContent-",
		"half a body":          "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok",
		"half a chunk":         line + "Transfer-Encoding: chunked\r\n\r\n4\r\nok",
		"no last chunk":        line + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"no end of trailer":    line + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
		"HTTP/2":               "HTTP/2.0 200 OK\r\n" + end,
		"status":               "HTTP/1.1 20 OK\r\n" + end,
		"status 099":           "HTTP/1.1 099 OK\r\n" + end,
		"status glued":         "HTTP/1.1 2000K\r\n" + end,
		"bare LF":              "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"bare LF in the head":  line + "X: y\n" + end,
		"CR in a value":        line + "X: a\rb\r\n" + end,
		"NUL in a value":       line + "X: a\x00b\r\n" + end,
		"folded":               line + "X: a\r\n b\r\n" + end,
		"space before colon":   line + "X : a\r\n" + end,
		"no colon":             line + "X\r\n" + end,
		"no name":              line + ": x\r\n" + end,
		"two lengths":          line + "Content-Length: 3\r\n" + end,
		"list of lengths":      line + "Content-Length: 2, 2\r\n\r\nok",
		"signed length":        line + "Content-Length: +2\r\n\r\nok",
		"empty length":         line + "Content-Length:\r\n\r\nok",
		"immense length":       line + "Content-Length: 99999999999999999999\r\n\r\nok",
		"length and chunks":    line + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"gzip":                 line + "Transfer-Encoding: gzip\r\n\r\nok",
		"gzip, chunked":        line + "Transfer-Encoding: gzip, chunked\r\n\r\nok",
		"chunked twice":        line + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks in HTTP/1.0":   "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"chunk of nonsense":    line + "Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
		"chunk with bare LF":   line + "Transfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
		"trailer that frames":  line + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 5\r\n\r\n",
		"trailer announced so": line + "Transfer-Encoding: chunked\r\nTrailer: X, content-length\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"trailer too long":     line + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n",
		"head too long":        line + "X: " + strings.Repeat("x", 300_000) + "\r\n" + end,
		"too many fields":      line + strings.Repeat("X: y\r\n", maxFields) + end,
		"switched unasked":     "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"too many interim":     strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInterim) + ok,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
				readRequest(in)
				io.WriteString(c, answer)
			})
			way := Over(newBase())
			if res, body, err := send(way, o.request("GET", nil)); err == nil {
				t.Errorf("%v %q", res, body)
			}
			for _, p := range way.pools {
				if len(p.idle) != 0 {
					t.Error("the connection was kept")
				}
			}
		})
	}
}

// TestWhatTheOriginGets is the same over both, but for the order of the fields.
func TestWhatTheOriginGets(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(r *http.Request)
	}{
		{"GET", func(r *http.Request) {}},
		{"query", func(r *http.Request) { r.URL.RawQuery = "a=1;b&c" }},
		{"forced query", func(r *http.Request) { r.URL.ForceQuery = true }},
		{"opaque", func(r *http.Request) { r.URL.Opaque, r.URL.RawQuery = "/a/%2e%2E/b|c", "x" }},
		{"two slashes", func(r *http.Request) { r.URL.Path = "//a" }},
		{"escaped", func(r *http.Request) { r.URL.Path = "/ü b" }},
		{"no path", func(r *http.Request) { r.URL.Path = "" }},
		{"host", func(r *http.Request) { r.Host = "shop.example.com:8080" }},
		{"IPv6", func(r *http.Request) { r.Host = "[::1]:80" }},
		{"odd host", func(r *http.Request) { r.Host = "bücher.example" }},
		{"bad host", func(r *http.Request) { r.Host = "a b" }},
		{"fields", func(r *http.Request) {
			r.Header = http.Header{"User-Agent": {"x"}, "Cookie": {"a=1", "b=2"}, "X-Odd": {"  spaced\t"}, "x-lower": {"y"}, "Empty": {""}, "Host": {"other"},
				"Content-Length": {"7"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"}}
		}},
		{"empty agent", func(r *http.Request) { r.Header = http.Header{"User-Agent": {""}} }},
		{"PUT without a body", func(r *http.Request) { r.Method = "PUT" }},
		{"DELETE", func(r *http.Request) { r.Method = "DELETE" }},
		{"short body", func(r *http.Request) { withBody(r, "POST", "hello", 5) }},
		{"DELETE with a body", func(r *http.Request) { withBody(r, "DELETE", "hello", 5) }},
		{"long body", func(r *http.Request) { withBody(r, "POST", strings.Repeat("x", 100_000), 100_000) }},
		{"chunked body", func(r *http.Request) { withBody(r, "POST", strings.Repeat("x", 100_000), -1) }},
		{"empty chunked body", func(r *http.Request) { withBody(r, "POST", "", -1) }},
		{"GET that may have a body", func(r *http.Request) { withBody(r, "GET", "hello", -1) }},
		{"last on its connection", func(r *http.Request) { r.Close = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]string{}
			over(t, func(t *testing.T, way http.RoundTripper) {
				seen := make(chan string, 1)
				o := newOrigin(t, func(_ int, conn net.Conn, in *bufio.Reader) {
					for {
						r := readRequest(in)
						if r == nil {
							return
						}
						b, _ := io.ReadAll(r.Body)
						r.Header["Close"] = []string{fmt.Sprint(r.Close)}
						seen <- fmt.Sprint(r.Method, r.RequestURI, strings.ReplaceAll(r.Host, conn.LocalAddr().String(), "own"), r.Header, r.ContentLength, r.TransferEncoding, len(b))
						io.WriteString(conn, ok)
					}
				})
				r := o.request("GET", nil)
				r.Header = http.Header{"User-Agent": {"test"}}
				c.edit(r)
				if _, body, err := send(way, r); err != nil || body != "ok" {
					t.Fatalf("%q, %v", body, err)
				}
				got[t.Name()[strings.LastIndex(t.Name(), "/"):]] = <-seen
			})
			if len(got) != 2 || got["/h1"] != got["/http"] {
				t.Errorf("ours     %.900q\nnet/http %.900q", got["/h1"], got["/http"])
			}
		})
	}
}

func withBody(r *http.Request, method, body string, length int64) {
	r.Method, r.Body, r.ContentLength = method, io.NopCloser(strings.NewReader(body)), length
}

// TestRequestsRefused: what would be read as something else never leaves.
func TestRequestsRefused(t *testing.T) {
	o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) { t.Error("a connection") })
	way := Over(newBase())
	for name, edit := range map[string]func(r *http.Request){
		"space in the target": func(r *http.Request) { r.URL.Opaque = "/a b" },
		"CRLF in the target":  func(r *http.Request) { r.URL.Opaque = "/a\r\nX: y" },
		"CRLF in the query":   func(r *http.Request) { r.URL.RawQuery = "\r\n" },
		"name":                func(r *http.Request) { r.Header["X y"] = []string{"z"} },
		"value":               func(r *http.Request) { r.Header["X"] = []string{"y\r\nZ: z"} },
		"short body too short": func(r *http.Request) {
			withBody(r, "POST", "x", 5)
		},
	} {
		r := o.request("GET", nil)
		edit(r)
		closed := &closing{ReadCloser: r.Body}
		if r.Body != nil {
			r.Body = closed
		}
		if _, _, err := send(way, r); err == nil {
			t.Errorf("%s: no error", name)
		}
		if r.Body != nil && !closed.closed {
			t.Errorf("%s: the body is open", name)
		}
	}
}

type closing struct {
	io.ReadCloser
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return c.ReadCloser.Close()
}

// TestUnaskedAnswer: what an origin says beyond its answer is not the answer to the next request.
func TestUnaskedAnswer(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for _, late := range []bool{false, true} {
		for _, first := range []string{ok, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"} {
			said, now := make(chan bool), make(chan bool)
			o := newOrigin(t, func(number int, c net.Conn, in *bufio.Reader) {
				readRequest(in)
				switch {
				case number > 0:
					io.WriteString(c, ok)
				case late:
					io.WriteString(c, first)
					<-now
					io.WriteString(c, poison)
				default:
					io.WriteString(c, first+poison)
				}
				if number == 0 {
					close(said)
				}
				in.ReadByte()
			})
			way := Over(newBase())
			if _, _, err := send(way, o.request("GET", nil)); err != nil {
				t.Fatal(err)
			}
			close(now)
			<-said
			if _, body, err := send(way, o.request("POST", nil)); err != nil || body != "ok" {
				t.Errorf("late %v, %.20q: %q, %v", late, first, body, err)
			}
			way.CloseIdleConnections()
		}
	}
}

// TestClosedWhileIdle: a connection that the origin has closed is not used, whatever the method.
func TestClosedWhileIdle(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		closed := make(chan bool, 10)
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, ok)
			c.Close()
			closed <- true
		})
		way := Over(newBase())
		for range 3 {
			if _, body, err := send(way, o.request(method, nil)); err != nil || body != "ok" {
				t.Errorf("%s: %q, %v", method, body, err)
			}
			<-closed
		}
	}
}

// TestClosedUnanswered: an origin closes a connection that was idle when the request has left. What can be repeated is,
// once, on a new connection.
func TestClosedUnanswered(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*http.Request)
		want bool
	}{
		{"GET", func(r *http.Request) {}, true},
		{"POST", func(r *http.Request) { r.Method = "POST" }, false},
		{"POST with a key", func(r *http.Request) { r.Method, r.Header = "POST", http.Header{"Idempotency-Key": {"1"}} }, true},
		{"PUT with a body", func(r *http.Request) { withBody(r, "PUT", "x", 1) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			over(t, func(t *testing.T, way http.RoundTripper) {
				o := newOrigin(t, func(number int, c net.Conn, in *bufio.Reader) {
					for n := 0; readRequest(in) != nil; n++ {
						if number == 0 && n == 1 {
							return
						}
						io.WriteString(c, ok)
					}
				})
				send(way, o.request("GET", nil))
				r := o.request("GET", nil)
				c.edit(r)
				_, body, err := send(way, r)
				if got := err == nil && body == "ok"; got != c.want {
					t.Errorf("%q, %v", body, err)
				}
				if n := o.conns.Load(); (n == 2) != c.want {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// TestNeverAnswered: an origin that never answers is asked once.
func TestNeverAnswered(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) { readRequest(in) })
		if _, _, err := send(way, o.request("GET", nil)); err == nil || o.conns.Load() != 1 {
			t.Errorf("%d connections, %v", o.conns.Load(), err)
		}
	})
}

func TestTrailers(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		o := answering(t, "HTTP/1.1 200 OK\r\nTrailer: X-Sum, x-other\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 42\r\nX-More: 1\r\nX-More: 2\r\n\r\n")
		for range 2 {
			res, err := way.RoundTrip(o.request("GET", nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := res.Trailer["X-Sum"]; !ok || len(res.Trailer) != 2 || res.Header["Trailer"] != nil {
				t.Errorf("announced %v", res.Trailer)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.Trailer.Get("X-Sum") != "42" || fmt.Sprint(res.Trailer["X-More"]) != "[1 2]" {
				t.Errorf("trailer %v", res.Trailer)
			}
		}
		if o.conns.Load() != 1 {
			t.Error("the connection was not kept")
		}
	})
}

func TestInterimAnswers(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		o := answering(t, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"+ok)
		var got []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h.Get("Link")))
			if len(got) > 2 {
				return errors.New("enough")
			}
			return nil
		}}
		r := o.request("GET", nil)
		if _, body, err := send(way, r.WithContext(httptrace.WithClientTrace(t.Context(), trace))); err != nil || body != "ok" || fmt.Sprint(got) != "[102 103</style.css>]" {
			t.Errorf("%q, %q, %v", got, body, err)
		}
		if _, _, err := send(way, r.WithContext(httptrace.WithClientTrace(t.Context(), trace))); err == nil {
			t.Error("the error of the trace was ignored")
		}
	})
}

// TestExpectContinue: the body leaves when the origin wants it, or does not say for a while.
func TestExpectContinue(t *testing.T) {
	for _, c := range []struct{ name, first, answer, body string }{
		{"wanted", "HTTP/1.1 100 Continue\r\n\r\n", ok, "hello"},
		{"not said", "", ok, "hello"},
		{"refused", "HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, base := range map[string]*http.Transport{"h1": newBase(), "net/http": newBase()} {
				var way http.RoundTripper = base
				base.ExpectContinueTimeout = 20 * time.Millisecond
				if c.name != "not said" {
					base.ExpectContinueTimeout = time.Minute
				}
				if name == "h1" {
					way = Over(base)
				}
				got := make(chan string, 1)
				o := newOrigin(t, func(_ int, conn net.Conn, in *bufio.Reader) {
					head, _ := http.ReadRequest(in)
					io.WriteString(conn, c.first)
					if c.answer == "" {
						conn.(*net.TCPConn).CloseWrite()
					}
					b, _ := io.ReadAll(head.Body)
					got <- string(b)
					io.WriteString(conn, c.answer)
				})
				r := o.request("POST", strings.NewReader("hello"))
				r.Header.Set("Expect", "100-Continue")
				if res, _, err := send(way, r); err != nil || c.answer == "" && res.StatusCode != 417 {
					t.Errorf("%s: %v", name, err)
				}
				if b := <-got; b != c.body {
					t.Errorf("%s: the origin got %q", name, b)
				}
			}
		})
	}
}

// TestEarlyAnswer: an answer passes before the origin has all of the body, and the exchange ends without it.
func TestEarlyAnswer(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
			io.Copy(io.Discard, in)
		})
		pr, pw := io.Pipe()
		go pw.Write(make([]byte, 10))
		r := o.request("POST", pr)
		r.ContentLength = 1 << 30
		if res, body, err := send(way, r); err != nil || res.StatusCode != 413 || body != "no" {
			t.Errorf("%q, %v", body, err)
		}
		pr.Close() // as httputil.ReverseProxy does when the answer has passed
		if _, err := pw.Write(make([]byte, 10)); err == nil {
			t.Error("the rest of the body is still being taken")
		}
	})
}

// TestEcho: bodies arrive whole in both directions at the same time, in the clear and over TLS, and the connection is
// used again.
func TestEcho(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		if r.ContentLength >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(r.ContentLength))
		}
		io.Copy(w, r.Body)
	})
	plain, secure := httptest.NewUnstartedServer(h), httptest.NewUnstartedServer(h)
	var made atomic.Int32
	for _, s := range []*httptest.Server{plain, secure} {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				made.Add(1)
			}
		}
	}
	plain.Start()
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for _, s := range []*httptest.Server{plain, secure} {
		base := newBase()
		base.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
		way := Over(base)
		for _, size := range []int{1, 100, maxShort, maxShort + 1, 64 << 10, 1 << 20} {
			for _, length := range []int64{int64(size), -1} {
				sent := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				r, _ := http.NewRequest("POST", s.URL, io.NopCloser(bytes.NewReader(sent)))
				r.ContentLength = length
				res, body, err := send(way, r)
				if err != nil || body != string(sent) || res.ProtoMajor != 1 || (res.TLS != nil) != (s == secure) {
					t.Errorf("%s, %d bytes, length %d: got %d, %v", s.URL, size, length, len(body), err)
				}
			}
		}
		// An upload may notice that it has sent everything when the next request has already dialed.
		for idle(way) != int(made.Load()) {
			runtime.Gosched()
		}
		made.Store(0)
		way.CloseIdleConnections()
	}
}

func idle(t *Transport) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pools {
		n += len(p.idle)
	}
	return n
}

// TestTimeouts are errors that say so.
func TestTimeouts(t *testing.T) {
	over(t, func(t *testing.T, _ http.RoundTripper) {
		base := newBase()
		base.ResponseHeaderTimeout, base.TLSHandshakeTimeout = 50*time.Millisecond, 50*time.Millisecond
		way := http.RoundTripper(base)
		if strings.HasSuffix(t.Name(), "h1") {
			way = Over(base)
		}
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
		head := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			in.ReadByte()
		})
		secure := *o.url
		secure.Scheme = "https"
		for name, r := range map[string]*http.Request{
			"GET":       o.request("GET", nil),
			"POST":      o.request("POST", strings.NewReader("x")),
			"long POST": o.request("POST", bytes.NewReader(make([]byte, 20_000))),
			"half head": head.request("GET", nil),
			"TLS":       {Method: "GET", URL: &secure, Header: http.Header{}},
		} {
			if _, _, err := send(way, r); err == nil || !isTimeout(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestSlowBody: the bound on the wait for an answer is none on its body, on a connection whose earlier request had it.
func TestSlowBody(t *testing.T) {
	over(t, func(t *testing.T, _ http.RoundTripper) {
		base := newBase()
		base.ResponseHeaderTimeout = 50 * time.Millisecond
		way := http.RoundTripper(base)
		if strings.HasSuffix(t.Name(), "h1") {
			way = Over(base)
		}
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
			for readRequest(in) != nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
				<-time.After(100 * time.Millisecond)
				io.WriteString(c, "k")
			}
		})
		for range 2 {
			if _, body, err := send(way, o.request("GET", nil)); err != nil || body != "ok" {
				t.Errorf("%q, %v", body, err)
			}
		}
	})
}

// TestCancelled: a visitor who leaves ends the exchange, at whatever point it is.
func TestCancelled(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		gone := errors.New("gone")
		for _, first := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"} {
			for _, body := range []string{"", strings.Repeat("x", 20_000)} {
				asked, closed := make(chan bool), make(chan bool)
				o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
					readRequest(in)
					io.WriteString(c, first)
					close(asked)
					in.ReadByte()
					close(closed)
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					<-asked
					cancel(gone)
				}()
				r := o.request("POST", strings.NewReader(body))
				if _, _, err := send(way, r.WithContext(ctx)); err != gone {
					t.Errorf("%q, body of %d: %v", first, len(body), err)
				}
				<-closed
			}
		}
	})
}

// TestBodyOfTheVisitor: what reading it brings is the error, not what it does to the connection.
func TestBodyOfTheVisitor(t *testing.T) {
	broken := errors.New("broken")
	over(t, func(t *testing.T, way http.RoundTripper) {
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
		for _, length := range []int64{10, 100_000, -1} {
			r := o.request("POST", io.MultiReader(strings.NewReader("half"), failing{broken}))
			r.ContentLength = length
			if _, _, err := send(way, r); !errors.Is(err, broken) {
				t.Errorf("length %d: %v", length, err)
			}
		}
	})
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// TestClose: a body that is closed before its end takes the connection with it, also when somebody is reading.
func TestClose(t *testing.T) {
	over(t, func(t *testing.T, way http.RoundTripper) {
		closed := make(chan bool, 2)
		o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
			in.ReadByte()
			closed <- true
		})
		for _, reading := range []bool{false, true} {
			res, err := way.RoundTrip(o.request("GET", nil))
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			if reading {
				half := make([]byte, 4)
				io.ReadFull(res.Body, half)
				go func() {
					_, err := res.Body.Read(half)
					over <- err
				}()
			} else {
				over <- io.EOF
			}
			res.Body.Close()
			if err := <-over; err == nil {
				t.Error("the reader goes on")
			}
			if _, err := res.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
				t.Errorf("read after Close: %v", err)
			}
			<-closed
		}
	})
}

// TestUpgrade is net/http's.
func TestUpgrade(t *testing.T) {
	o := newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
		readRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, in)
	})
	r := o.request("GET", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	res, err := Over(newBase()).RoundTrip(r)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(err)
	}
	c := res.Body.(io.ReadWriteCloser)
	defer c.Close()
	io.WriteString(c, "hello")
	b := make([]byte, 5)
	if io.ReadFull(c, b); string(b) != "hello" {
		t.Errorf("heard %q", b)
	}
}

// TestPool: what was used last is used first, no more is kept than the bound, and what is idle for too long is closed.
func TestPool(t *testing.T) {
	o := answering(t, ok)
	base := newBase()
	base.MaxIdleConnsPerHost = 2
	way := Over(base)
	var open []*http.Response
	for range 3 {
		res, err := way.RoundTrip(o.request("GET", nil))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, res)
	}
	for _, res := range open {
		io.Copy(io.Discard, res.Body)
	}
	// The answers were short, so their connections were free before their bodies were read.
	if n, m := idle(way), o.conns.Load(); n != 1 || m != 1 {
		t.Fatalf("%d idle connections of %d", n, m)
	}
	p := way.poolOf(o.request("GET", nil))
	var taken []*conn
	for range 3 {
		c, err := way.dial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, c)
	}
	for _, c := range taken {
		way.leave(c, true)
	}
	if n := idle(way); n != 2 {
		t.Fatalf("%d idle connections, the bound is 2", n)
	}
	if c := way.take(p, time.Now()); c != taken[0] {
		t.Error("the connection that was used last is not the first")
	} else {
		way.leave(c, true)
	}
	p.idle[0].since = time.Now().Add(-2 * base.IdleConnTimeout)
	way.sweep()
	if n := idle(way); n != 1 || way.timer == nil {
		t.Errorf("%d idle connections after one was idle for too long", n)
	}
	way.CloseIdleConnections()
	way.sweep()
	if n := idle(way); n != 0 || way.timer != nil {
		t.Errorf("%d idle connections after they were closed", n)
	}
	if _, body, err := send(way, o.request("GET", nil)); err != nil || body != "ok" || idle(way) != 0 {
		t.Errorf("afterwards: %q, %v, %d idle", body, err, idle(way))
	}
}

// TestDialErrors are the dialer's, by which a gateway knows that nothing has left.
func TestDialErrors(t *testing.T) {
	nobody := freeport.Address(t, 1)
	over(t, func(t *testing.T, way http.RoundTripper) {
		r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: nobody}, Header: http.Header{}}
		_, _, err := send(way, r)
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			t.Errorf("%v", err)
		}
	})
}

// TestTLS: the name is verified, and HTTP/2 is not offered.
func TestTLS(t *testing.T) {
	offered := make(chan []string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		offered <- h.SupportedProtos
		return nil, nil
	}}
	s.StartTLS()
	defer s.Close()
	ask := func(cfg *tls.Config) error {
		base := newBase()
		base.TLSClientConfig = cfg
		way := Over(base)
		defer way.CloseIdleConnections()
		r, _ := http.NewRequest("GET", s.URL, nil)
		_, _, err := send(way, r)
		return err
	}
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.NextProtos = []string{"h2"}
	if err := ask(trusting); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(<-offered); got != "[http/1.1]" {
		t.Errorf("offered %s", got)
	}
	if err := ask(nil); err == nil {
		t.Error("an unknown authority is trusted")
	}
	<-offered
	trusting.ServerName = "other.example"
	if err := ask(trusting); err == nil {
		t.Error("another name is accepted")
	}
}

// TestUnaskedRecord is TestUnaskedAnswer over TLS, where what was said unasked may have left the socket and wait in a
// record that nobody has opened.
func TestUnaskedRecord(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	cert := s.TLS.Certificates
	o := newOrigin(t, func(number int, c net.Conn, _ *bufio.Reader) {
		together := &gathering{Conn: c}
		secure := tls.Server(together, &tls.Config{Certificates: cert})
		in := bufio.NewReader(secure)
		for readRequest(in) != nil {
			together.gather = true
			io.WriteString(secure, ok)
			if number == 0 {
				io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
			}
			together.gather = false
			c.Write(together.bytes)
			together.bytes = nil
		}
	})
	o.url.Scheme = "https"
	base := newBase()
	base.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	way := Over(base)
	defer way.CloseIdleConnections()
	for range 4 {
		if _, body, err := send(way, o.request("GET", nil)); err != nil || body != "ok" {
			t.Errorf("%q, %v", body, err)
		}
	}
	if n := o.conns.Load(); n != 2 {
		t.Errorf("%d connections: the second one is in order", n)
	}
}

// gathering is a connection that holds back what is written while it gathers.
type gathering struct {
	net.Conn
	gather bool
	bytes  []byte
}

func (g *gathering) Write(p []byte) (int, error) {
	if g.gather {
		g.bytes = append(g.bytes, p...)
		return len(p), nil
	}
	return g.Conn.Write(p)
}
