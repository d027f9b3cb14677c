package h1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// serving serves a handler until the test ends and returns its address. Fast is a Server, otherwise net/http alone.
func serving(t testing.TB, fast bool, h http.Handler, edit func(*http.Server)) string {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	if edit != nil {
		edit(srv)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	if fast {
		s := NewServer(srv)
		go func() { done <- s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-done })
	} else {
		go func() { done <- srv.Serve(l) }()
		t.Cleanup(func() { srv.Close(); <-done })
	}
	return l.Addr().String()
}

// conversation sends requests over one connection, closes that direction and returns what comes back.
func conversation(t testing.TB, address, requests string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, requests); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c)
	return string(b)
}

// various answers as its path asks.
func various(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = []string{"now"}
	switch path, n, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); path {
	case "echo":
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q %q %v %v", r.Method, r.RequestURI, r.Host, r.URL.Path, b, err, r.ContentLength)
	case "fields":
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			fmt.Fprintf(w, "%s=%q;", name, r.Header[name])
		}
	case "status":
		code, _ := strconv.Atoi(n)
		w.WriteHeader(code)
	case "large":
		w.Write(bytes.Repeat([]byte("a"), 10_000))
	case "known":
		w.Header().Set("Content-Length", "10000")
		w.Write(bytes.Repeat([]byte("a"), 10_000))
	case "short":
		w.Header().Set("Content-Length", "10")
		w.Write([]byte("abc"))
	case "long":
		w.Header().Set("Content-Length", "3")
		w.Write([]byte("abc"))
		w.Write([]byte("def"))
	case "parts":
		for range 3 {
			w.Write([]byte("part;"))
			http.NewResponseController(w).Flush()
		}
	case "early":
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(103)
		w.Write([]byte("then"))
	case "trailer":
		w.Header().Set("Trailer", "X-Sum")
		w.Write([]byte("body"))
		w.Header().Set("X-Sum", "4")
	case "more":
		w.Write([]byte("body"))
		http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+"X-More", "5")
	case "close":
		w.Header().Set("Connection", "close")
		w.Write([]byte("last"))
	case "split":
		w.Header()["X-A"] = []string{"one\r\nX-B: two"}
		w.Header()["bad name"] = []string{"three"}
	case "typed":
		w.Header()["Content-Type"] = nil
		w.Write([]byte("<html>"))
	case "zipped":
		w.Header().Set("Content-Encoding", "gzip")
		w.Write([]byte("<html>"))
	case "panic":
		panic(http.ErrAbortHandler)
	default:
		w.Write([]byte("<html>hello"))
	}
}

// conversations are requests over one connection, by what is about them.
func conversations() map[string]string {
	const host = " HTTP/1.1\r\nHost: a.test\r\n"
	get := func(path string, fields ...string) string {
		return "GET " + path + host + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	}
	return map[string]string{
		"one":                       get("/"),
		"three in a row":            get("/") + get("/echo?a=b&c") + get("/fields", "A: b", "a: c", "X-Y:  d \t"),
		"lines before":              "\r\n" + get("/"),
		"names in lower case":       get("/fields", "accept-language: de", "cookie: a=b", "x_y: 1", "if-none-match: \"a\""),
		"pragma":                    get("/fields", "Pragma: no-cache"),
		"an encoded path":           get("/echo/%41%2f?%zz") + get("/echo/%zz"),
		"two slashes":               get("//echo/a"),
		"a path with signs":         get("/echo/a;b,c=d@e:f!$&'()*+"),
		"a question mark":           get("/echo?") + get("/echo??"),
		"a body":                    "POST /echo" + host + "Content-Length: 5\r\n\r\nhello" + get("/"),
		"a body nobody reads":       "POST /" + host + "Content-Length: 5\r\n\r\nhello" + get("/"),
		"a large body nobody reads": "POST /" + host + "Content-Length: 300000\r\n\r\n" + strings.Repeat("x", 300000) + get("/"),
		"a body that is cut":        "POST /echo" + host + "Content-Length: 50\r\n\r\nhello",
		"no body":                   "POST /echo" + host + "Content-Length: 0\r\n\r\n" + get("/"),
		"chunks":                    "POST /echo" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get("/"),
		"chunks after a request":    get("/") + "POST /echo" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get("/"),
		"chunks and a length":       "POST /echo" + host + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get("/"),
		"two lengths":               "POST /echo" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + get("/"),
		"a length twice":            "POST /echo" + host + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + get("/"),
		"a signed length":           "POST /echo" + host + "Content-Length: +5\r\n\r\nhello" + get("/"),
		"expect":                    "POST /echo" + host + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello" + get("/"),
		"HEAD":                      "HEAD /" + host + "\r\n" + "HEAD /known" + host + "\r\n" + get("/"),
		"OPTIONS":                   "OPTIONS /echo" + host + "\r\n" + "OPTIONS *" + host + "\r\n",
		"an unknown method":         "BREW /echo" + host + "\r\n",
		"no method":                 " /echo" + host + "\r\n",
		"HTTP/1.0":                  "GET /echo HTTP/1.0\r\n\r\n" + get("/"),
		"HTTP/1.0 kept":             "GET /known HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/"),
		"HTTP/3.0":                  "GET /echo HTTP/3.0\r\nHost: a.test\r\n\r\n",
		"no host":                   "GET /echo HTTP/1.1\r\n\r\n",
		"two hosts":                 get("/echo", "Host: b.test"),
		"an empty host":             "GET /echo HTTP/1.1\r\nHost:\r\n\r\n",
		"a strange host":            "GET /echo HTTP/1.1\r\nHost: a.test/b\r\n\r\n",
		"an absolute target":        "GET http://b.test/echo" + host + "\r\n",
		"close":                     get("/", "Connection: close") + get("/"),
		"Close":                     get("/", "connection: Close") + get("/"),
		"keep-alive":                get("/", "Connection: keep-alive") + get("/"),
		"a connection list":         get("/fields", "Connection: close, X-A", "X-A: 1") + get("/"),
		"a folded line":             get("/fields", "X-A: 1", "  2"),
		"a bare line end":           "GET /echo HTTP/1.1\nHost: a.test\n\n",
		"one bare line end":         "GET /echo HTTP/1.1\r\nHost: a.test\nX-A: 1\r\n\r\n",
		"a space before a colon":    get("/fields", "X-A : 1"),
		"a line without a colon":    get("/fields", "X-A"),
		"a control character":       get("/fields", "X-A: \x01"),
		"beyond ASCII":              get("/fields", "X-A: é") + get("/echo/é"),
		"a long head":               get("/fields", "X-A: "+strings.Repeat("a", 9000)) + get("/"),
		"a head too long":           get("/fields", "X-A: "+strings.Repeat("a", 2<<20)),
		"parts":                     get("/parts") + get("/"),
		"large":                     get("/large") + get("/known") + get("/"),
		"a length not kept":         get("/short") + get("/"),
		"a length exceeded":         get("/long") + get("/"),
		"early hints":               get("/early") + get("/"),
		"a trailer":                 get("/trailer") + get("/more") + get("/"),
		"the handler closes":        get("/close") + get("/"),
		"split values":              get("/split") + get("/"),
		"no type":                   get("/typed"),
		"an encoding":               get("/zipped"),
		"204":                       get("/status/204") + get("/"),
		"304":                       get("/status/304") + get("/"),
		"404":                       get("/status/404") + get("/"),
		"599":                       get("/status/599") + get("/"),
		"a handler that gives up":   get("/panic") + get("/"),
		"nothing":                   "",
		"half a head":               "GET / HTTP/1.1\r\nHo",
	}
}

// smuggled are the published ways to have two readers disagree about where a request ends: each is followed by one that
// must not be read as another.
func smuggled() map[string]string {
	const head, next = "POST /echo HTTP/1.1\r\nHost: a.test\r\n", "GET /hidden HTTP/1.1\r\nHost: a.test\r\n\r\n"
	const chunks = "0\r\n\r\n"
	all := map[string]string{
		"CL.TE":                      head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "X",
		"TE.CL":                      head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n" + next + chunks,
		"CL.0":                       head + "Content-Length: " + strconv.Itoa(len(next)) + "\r\n\r\n" + next,
		"0.CL":                       "GET /echo HTTP/1.1\r\nHost: a.test\r\nContent-Length: " + strconv.Itoa(len(next)) + "\r\n\r\n" + next,
		"CL.CL":                      head + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
		"TE.TE":                      head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunks,
		"expect":                     head + "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n" + chunks,
		"expect, odd":                head + "Expect: y 100-continue\r\nContent-Length: 4\r\n\r\n" + chunks,
		"HTTP/0.9":                   "GET /echo\r\n\r\n",
		"HTTP/1.2":                   "GET /echo HTTP/1.2\r\nHost: a.test\r\n\r\n",
		"http/1.1":                   "GET /echo http/1.1\r\nHost: a.test\r\n\r\n",
		"HTTP/1.1 and a space":       "GET /echo HTTP/1.1 \r\nHost: a.test\r\n\r\n",
		"two spaces":                 "GET  /echo HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a space in the target":      "GET /echo x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a tab in the line":          "GET\t/echo HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a CR alone":                 "GET /echo HTTP/1.1\rHost: a.test\r\n\r\n",
		"the first field is folded":  "GET /echo HTTP/1.1\r\n Host: a.test\r\nHost: b.test\r\n\r\n",
		"a space before the fields":  "GET /echo HTTP/1.1\r\n X: y\r\nHost: a.test\r\n\r\n",
		"Host in the target as well": "GET http://b.test/echo HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"Host with a user":           "GET /echo HTTP/1.1\r\nHost: b.test@a.test\r\n\r\n",
		"Host folded":                "GET /echo HTTP/1.1\r\nHost: a.test\r\n b.test\r\n\r\n",
	}
	for _, field := range []string{"Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked",
		"Transfer-Encoding:\x0bchunked", "Transfer-Encoding: \x00chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked",
		"Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding:\r\n chunked", "X: x\nTransfer-Encoding: chunked", "X: x\rTransfer-Encoding: chunked",
		"Transfer-Encoding: ", "Transfer_Encoding: chunked", "transfer-encoding: CHUNKED", "Transfer-Encod\xc4\xb1ng: chunked", "Foo: bar\r\n\rTransfer-Encoding: chunked",
		"Content-Length: 0x5", "Content-Length: 5,5", "Content-Length: 5 5", "Content-Length: -5", "Content-Length: 5\x0b", "Content-Length: \t5", "Content-Length : 5",
		"Content-Length: 00005", "Content-Length: 99999999999999999999", "Content-Length: ", "Content_Length: 5", "Content-Length\x00: 5", ": 5", "Content-Length: \r\n 5",
		"Connection: Content-Length\r\nContent-Length: 5", "Connection: close\r\nConnection: keep-alive", "Te: trailers", "Trailer: Content-Length", "Upgrade: h2c\r\nHttp2-Settings: AAMAAABkAAQAAP__",
		"Keep-Alive: timeout=5", "Proxy-Connection: close", "Host: b.test", "host : b.test", "Content-Length: 5\r\n\r\r\n"} {
		all[field] = head + field + "\r\n\r\n" + chunks
	}
	for name := range all {
		all[name] += next
	}
	return all
}

// TestAnswersAsNetHTTP: over a loop of its own, and when the connection is handed over, requests get the answers that
// net/http gives.
func TestAnswersAsNetHTTP(t *testing.T) {
	cases := conversations()
	maps.Copy(cases, smuggled())
	edit := func(s *http.Server) { s.MaxHeaderBytes = 32 << 10 }
	ours, theirs := serving(t, true, http.HandlerFunc(various), edit), serving(t, false, http.HandlerFunc(various), edit)
	for name, requests := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := inOrder(conversation(t, ours, requests)), inOrder(conversation(t, theirs, requests))
			if got != want {
				t.Errorf("%q\nis answered with\n%.3000q\nby net/http with\n%.3000q", requests[:min(len(requests), 200)], got, want)
			}
		})
	}
}

// inOrder sorts the fields of answers, whose order says nothing.
func inOrder(answers string) string {
	var out strings.Builder
	for _, part := range strings.SplitAfter(answers, "\r\n\r\n") {
		at := strings.LastIndex(part, "HTTP/1.1 ")
		if at < 0 {
			out.WriteString(part)
			continue
		}
		lines := strings.Split(strings.TrimSuffix(part[at:], "\r\n\r\n"), "\r\n")
		slices.Sort(lines[1:])
		out.WriteString(part[:at] + strings.Join(lines, "\r\n") + "\r\n\r\n")
	}
	return out.String()
}

// TestHandedOver: what the loop does not serve works as it does in net/http, after plain requests on the connection too.
func TestHandedOver(t *testing.T) {
	const plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	var contexts atomic.Int32
	address := serving(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			various(w, r)
			return
		}
		nc, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(nc, rw)
	}), func(s *http.Server) {
		s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			contexts.Add(1)
			return ctx
		}
	})
	got := conversation(t, address, plain+"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
	if !strings.HasSuffix(got, "Upgrade: echo\r\n\r\nhello") || strings.Count(got, "HTTP/1.1 ") != 2 {
		t.Errorf("answered %q", got)
	}
	if n := contexts.Load(); n != 2 {
		t.Errorf("%d contexts for a connection that was handed over, 2 expected", n)
	}
}

// TestWholeTimesAreNetHTTPs: a server that bounds whole requests or answers keeps its bounds, in net/http.
func TestWholeTimesAreNetHTTPs(t *testing.T) {
	for name, edit := range map[string]func(*http.Server){
		"none": nil, "read": func(s *http.Server) { s.ReadTimeout = time.Minute }, "write": func(s *http.Server) { s.WriteTimeout = time.Minute },
	} {
		address := serving(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, loop := w.(*reply)
			fmt.Fprintf(w, "loop=%v", loop)
		}), edit)
		if got, want := conversation(t, address, short), fmt.Sprintf("loop=%v", name == "none"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

// TestServerTLS: over TLS the loop serves HTTP/1.1 and leaves HTTP/2 to net/http; a handler sees which.
func TestServerTLS(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	srv := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, loop := w.(*reply)
		fmt.Fprintf(w, "%s tls=%v loop=%v", r.Proto, r.TLS != nil && r.TLS.HandshakeComplete, loop)
	}), ErrorLog: log.New(io.Discard, "", 0)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(srv)
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(tls.NewListener(l, &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}))
	}()
	defer func() { s.Close(); <-done }()
	ask := func(h2 bool, body io.Reader) string {
		tr := cert.Client().Transport.(*http.Transport).Clone()
		var p http.Protocols
		p.SetHTTP1(!h2)
		p.SetHTTP2(h2)
		tr.Protocols = &p
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequest("POST", "https://"+l.Addr().String(), body)
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	for want, got := range map[string]string{
		"HTTP/1.1 tls=true loop=true":  ask(false, strings.NewReader("x")),
		"HTTP/1.1 tls=true loop=false": ask(false, io.MultiReader(strings.NewReader("chunks"))),
		"HTTP/2.0 tls=true loop=false": ask(true, nil),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := conversation(t, l.Addr().String(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(got, "HTTP request to an HTTPS server") {
		t.Errorf("a request without TLS: %q", got)
	}
}

// piped is a listener of connections without a network, so that time is the test's.
type piped struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p piped) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// inTime serves a handler over pipes, with 5 s for heads and 60 s of idleness.
func inTime(t *testing.T, h http.HandlerFunc, f func(s *Server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(&http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)})
		l := piped{make(chan net.Conn), make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		f(s, func() net.Conn {
			here, there := net.Pipe()
			l.conns <- there
			return here
		})
		s.Close()
		l.Close()
		<-done
		synctest.Wait()
	})
}

// ended returns how long it takes until the connection ends, nothing else coming from it.
func ended(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	begun := time.Now()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
	}
	return time.Since(begun)
}

const short = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// asks sends a request and reads its answer.
func asks(t *testing.T, c net.Conn, request string) *http.Response {
	t.Helper()
	io.WriteString(c, request)
	res, err := http.ReadResponse(bufio.NewReaderSize(c, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	return res
}

// TestTimeBounds: a head has five seconds from its first byte, or from the connection's beginning, and an idle
// connection a minute.
func TestTimeBounds(t *testing.T) {
	inTime(t, various, func(s *Server, dial func() net.Conn) {
		silent := dial()
		if d := ended(t, silent); d != 5*time.Second {
			t.Errorf("a connection without a byte lasts %v", d)
		}
		slow := dial()
		go func() {
			for _, b := range []byte(short) {
				if _, err := slow.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		if d := ended(t, slow); d != 5*time.Second {
			t.Errorf("a head of a byte a second lasts %v", d)
		}
		kept := dial()
		asks(t, kept, short)
		time.Sleep(50 * time.Second)
		asks(t, kept, short)
		if d := ended(t, kept); d < 58*time.Second || d > time.Minute {
			t.Errorf("an idle connection lasts %v", d)
		}
		half := dial()
		asks(t, half, short)
		time.Sleep(30 * time.Second)
		io.WriteString(half, short[:10])
		if d := ended(t, half); d != 5*time.Second {
			t.Errorf("half a head on a connection that was kept lasts %v", d)
		}
	})
}

// TestVisitorLeaves: a handler hears of a visitor who leaves while it works, and not of one who stays.
func TestVisitorLeaves(t *testing.T) {
	var left chan time.Duration
	inTime(t, func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			left <- time.Since(begun)
		case <-time.After(10 * time.Second):
		}
		w.Write([]byte("hello"))
	}, func(s *Server, dial func() net.Conn) {
		left = make(chan time.Duration, 1)
		for _, request := range []string{short, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"} {
			c := dial()
			io.WriteString(c, request)
			time.Sleep(time.Second)
			c.Close()
			if d := <-left; d != time.Second {
				t.Errorf("a visitor who leaves after 1 s is missed after %v", d)
			}
			early := dial()
			io.WriteString(early, request)
			early.Close()
			if d := <-left; d > 2*leftTime {
				t.Errorf("a visitor who leaves at once is missed after %v", d)
			}
		}
		stays := dial()
		for range 3 {
			if res := asks(t, stays, short); res.StatusCode != 200 {
				t.Errorf("a visitor who stays gets %d", res.StatusCode)
			}
		}
		// The next request comes while this one is being worked on.
		go io.WriteString(stays, short)
		go func() {
			time.Sleep(time.Second)
			io.WriteString(stays, short)
		}()
		in := bufio.NewReader(stays)
		for range 2 {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
		}
		stays.Close()
		select {
		case d := <-left:
			t.Errorf("a visitor who stayed is missed after %v", d)
		default:
		}
	})
}

// TestShutdown: requests in progress are answered, and the connections close with them; idle ones close at once.
func TestShutdown(t *testing.T) {
	inTime(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		w.Write([]byte("hello"))
	}, func(s *Server, dial func() net.Conn) {
		idles, works := dial(), dial()
		asks(t, idles, short)
		answered := make(chan *http.Response)
		go func() { answered <- asks(t, works, short) }()
		time.Sleep(500 * time.Millisecond)
		down := make(chan error)
		begun := time.Now()
		go func() { down <- s.Shutdown(context.Background()) }()
		if d := ended(t, idles); d != 0 {
			t.Errorf("an idle connection ends after %v", d)
		}
		if res := <-answered; res.StatusCode != 200 || !res.Close {
			t.Errorf("the request in progress got %d, close %v", res.StatusCode, res.Close)
		}
		if err := <-down; err != nil || time.Since(begun) > 600*time.Millisecond {
			t.Errorf("shutdown: %v after %v", err, time.Since(begun))
		}
	})
}

// FuzzPlain: what the loop serves net/http reads in the same way: every field, and where the body begins and ends.
func FuzzPlain(f *testing.F) {
	for _, all := range []map[string]string{conversations(), smuggled()} {
		for _, requests := range all {
			f.Add([]byte(requests[:min(len(requests), 4096)]))
		}
	}
	f.Add([]byte("POST /a%20b?c#d HTTP/1.1\r\nHost: [::1]:80\r\ncontent-length: 12\r\nCookie: a=b; c=d\r\ncookie: e\r\nPragma: no-cache\r\nConnection: close\r\n\r\nhello"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		end, _, err := headEnd(raw, 0)
		if err != nil || end == 0 {
			return
		}
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		v := &visitor{nc: there}
		v.asked.init(t.Context(), v)
		if !v.plain(raw[:end]) {
			return
		}
		got := v.asked.request()
		in := bufio.NewReader(bytes.NewReader(raw))
		want, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("served, and refused by net/http: %v\n%q", err, raw)
		}
		if got.Method != want.Method || got.RequestURI != want.RequestURI || got.Host != want.Host || got.Proto != want.Proto ||
			got.ContentLength != want.ContentLength || got.Close != want.Close || len(want.TransferEncoding) > 0 || want.Trailer != nil {
			t.Fatalf("served as\n%+v\nread by net/http as\n%+v\n%q", got, want, raw)
		}
		if !reflect.DeepEqual(got.URL, want.URL) {
			t.Fatalf("address %#v, by net/http %#v", got.URL, want.URL)
		}
		if !reflect.DeepEqual(got.Header, want.Header) {
			t.Fatalf("fields %q, by net/http %q", got.Header, want.Header)
		}
		body, err := io.ReadAll(want.Body)
		rest, _ := io.ReadAll(in)
		have := raw[end:]
		if int64(len(have)) >= got.ContentLength {
			if err != nil || !bytes.Equal(body, have[:got.ContentLength]) || !bytes.Equal(rest, have[got.ContentLength:]) {
				t.Fatalf("body %q, %v, rest %q of %q", body, err, rest, raw)
			}
		} else if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("body %q, %v", body, err)
		}
	})
}

// TestForget is an answer whose handler gives request and header back before the body: it ends as it would have, and the
// next request on the connection is read anew.
func TestForget(t *testing.T) {
	address := serving(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.RequestURI
		io.WriteString(w, "of "+r.Header.Get("Who")+" ")
		if asked == "/early" {
			w.(interface{ Forget() }).Forget() // nothing has left yet: it has to be there
		}
		w.(http.Flusher).Flush()
		w.(interface{ Forget() }).Forget()
		if r.Header != nil || r.RequestURI != "" || w.Header() != nil {
			t.Errorf("%s: still there: %v %q %v", asked, r.Header, r.RequestURI, w.Header())
		}
		io.WriteString(w, asked)
	}), nil)
	got := conversation(t, address, "GET /one HTTP/1.1\r\nHost: a\r\nWho: ann\r\n\r\nGET /early HTTP/1.1\r\nHost: a\r\nWho: bob\r\n\r\n")
	in := bufio.NewReader(strings.NewReader(got))
	for _, want := range []string{"of ann /one", "of bob /early"} {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, got)
		}
		if b, err := io.ReadAll(res.Body); string(b) != want || err != nil || len(res.Header["Date"]) != 1 {
			t.Errorf("got %q %v %v, want %q", b, err, res.Header, want)
		}
	}
}
