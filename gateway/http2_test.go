package gateway

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/anteroom/anteroom"
)

// frames speaks HTTP/2 with every liberty that the protocol forbids.
type frames struct {
	t    *testing.T
	conn *tls.Conn
	fr   *http2.Framer
	enc  *hpack.Encoder
	buf  bytes.Buffer
}

func (w *world) tlsFront() *httptest.Server {
	s := httptest.NewUnstartedServer(w.gw)
	s.EnableHTTP2 = true
	start(s, w.gw.Server(nil), true)
	w.t.Cleanup(s.Close)
	return s
}

func newFrames(t *testing.T, addr string) *frames {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(5 * time.Second))
	f := &frames{t: t, conn: c, fr: http2.NewFramer(c, c)}
	f.fr.AllowIllegalWrites = true
	f.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	io.WriteString(c, http2.ClientPreface)
	f.fr.WriteSettings()
	return f
}

// block encodes names and values. It is good until the next one.
func (f *frames) block(fields ...string) []byte {
	if f.enc == nil {
		f.enc = hpack.NewEncoder(&f.buf)
	}
	f.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return f.buf.Bytes()
}

// send sends a request on stream 1 and returns its status, or 0 when the stream or the
// connection was reset.
func (f *frames) send(stream uint32, body string, fields ...string) string {
	f.t.Helper()
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.block(fields...), EndHeaders: true, EndStream: body == ""})
	if body != "" {
		f.fr.WriteData(stream, true, []byte(body))
	}
	for {
		frame, err := f.fr.ReadFrame()
		if err != nil {
			if _, ok := errors.AsType[http2.StreamError](err); ok {
				return "reset"
			}
			return "closed"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "reset"
			}
		case *http2.GoAwayFrame:
			return "closed"
		}
	}
}

func TestIllegalHTTP2(t *testing.T) {
	const shop = testHost
	get := func(path string, more ...string) []string {
		return append([]string{":method", "GET", ":scheme", "https", ":authority", shop, ":path", path}, more...)
	}
	for _, c := range []struct {
		name   string
		fields []string
		body   string
		want   string // statuses or "reset" or "closed", any of them
		passes bool
	}{
		{"plain", get("/"), "", "200", true},
		{"the same host twice", get("/", "host", shop), "", "200", true},
		{"another host", get("/", "host", "other.example.com"), "", "400 reset", false},
		{"path in authority", []string{":method", "GET", ":scheme", "https", ":authority", shop + "/x", ":path", "/"}, "", "400 reset", false},
		{"no authority", []string{":method", "GET", ":scheme", "https", ":path", "/"}, "", "400 reset", false},
		{"unknown authority", []string{":method", "GET", ":scheme", "https", ":authority", "other.example.com", ":path", "/"}, "", "421", false},
		{"absolute path", get("https://other.example.com/t"), "", "400 reset", false},
		{"path without slash", get("tickets"), "", "400 reset", false},
		{"path *", get("*"), "", "400 reset", false},
		{"control byte in the path", get("/a\x01"), "", "400 reset closed", false},
		{"encoded control byte", get("/a%00"), "", "400", false},
		{"space in the path", get("/a HTTP/1.1"), "", "400", false},
		{"space in the query", get("/a?b c"), "", "400", false},
		{"two lengths", []string{":method", "POST", ":scheme", "https", ":authority", shop, ":path", "/", "content-length", "1", "content-length", "2"}, "ab", "400 reset", false},
		{"Transfer-Encoding", get("/", "transfer-encoding", "chunked"), "", "400 reset", false},
		{"Connection", get("/", "connection", "x-forwarded-for"), "", "400 reset", false},
		{"Upgrade", get("/", "upgrade", "websocket"), "", "400 reset", false},
		{"CONNECT", []string{":method", "CONNECT", ":authority", shop + ":443"}, "", "405", false},
		{"extended CONNECT", []string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":authority", shop, ":path", "/"}, "", "400 405 reset closed", false},
		{"TRACE", []string{":method", "TRACE", ":scheme", "https", ":authority", shop, ":path", "/"}, "", "405", false},
		{"lower-case method", []string{":method", "get", ":scheme", "https", ":authority", shop, ":path", "/"}, "", "405", false},
		{"many lines", get("/", strings.Split(strings.Repeat("a,b,", 101), ",")[:202]...), "", "431", false},
		{"many cookies", get("/", strings.Split(strings.Repeat("cookie,a=b,", 151), ",")[:302]...), "", "431", false},
		{"long path", get("/" + strings.Repeat("a", 9<<10)), "", "414", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit)
			f := newFrames(t, w.tlsFront().Listener.Addr().String())
			got := f.send(1, c.body, c.fields...)
			if !strings.Contains(c.want, got) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if n := len(w.origin.requests()); (n > 0) != c.passes {
				t.Errorf("the origin saw %d requests", n)
			}
		})
	}
}

// TestConnectPoisoning is threats §0.1: the body of an HTTP/2 CONNECT must not come near a
// pooled socket, where the next visitor would read the answer to it.
func TestConnectPoisoning(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Path == "/smuggled" {
			http.SetCookie(rw, &http.Cookie{Name: "poison", Value: "1"})
		}
		io.WriteString(rw, r.URL.Path)
	}))
	front := w.tlsFront()
	client := front.Client()
	for i := range 5 {
		f := newFrames(t, front.Listener.Addr().String())
		if got := f.send(1, "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", ":method", "CONNECT", ":authority", testHost+":443"); got != "405" {
			t.Errorf("CONNECT: %s", got)
		}
		r, _ := http.NewRequest("GET", front.URL+"/victim", nil)
		r.Host = testHost
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "/victim" || strings.Contains(strings.Join(res.Header["Set-Cookie"], " "), "poison") {
			t.Errorf("victim %d got %q %q", i, body, res.Header["Set-Cookie"])
		}
	}
	for _, r := range w.origin.requests() {
		if r.Method == http.MethodConnect || r.URL.Path == "/smuggled" {
			t.Errorf("the origin saw %s %s", r.Method, r.URL.Path)
		}
	}
}

// TestHTTP2Newcomers: parallel requests of one browser on one connection are one visitor.
func TestHTTP2Newcomers(t *testing.T) {
	w := newWorld(t, line)
	f := newFrames(t, w.tlsFront().Listener.Addr().String())
	for stream := uint32(1); stream < 20; stream += 2 {
		f.send(stream, "", ":method", "GET", ":scheme", "https", ":authority", testHost, ":path", "/")
	}
	v := w.door.seen()
	for _, one := range v {
		if one.Ticket.ID != v[0].Ticket.ID {
			t.Fatalf("%d visits of more than one identity", len(v))
		}
	}
	if len(v) != 10 {
		t.Errorf("%d visits", len(v))
	}
}

// TestHTTP2Trailers: a forged proof in the trailers stays outside.
func TestHTTP2Trailers(t *testing.T) {
	w := newWorld(t, admit)
	f := newFrames(t, w.tlsFront().Listener.Addr().String())
	for i, block := range [][]string{
		{":method", "POST", ":scheme", "https", ":authority", testHost, ":path", "/", "trailer", "x-anteroom-assertion"},
		{"x-anteroom-assertion", "forged"},
	} {
		f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.block(block...), EndHeaders: true, EndStream: i == 1})
	}
	if got := f.send(3, "", ":method", "GET", ":scheme", "https", ":authority", testHost, ":path", "/"); got != "200" {
		t.Errorf("status %s", got)
	}
	for _, r := range w.origin.requests() {
		if len(r.Trailer) != 0 || r.Header.Get("X-Anteroom-Assertion") != "" || r.Header.Get("Trailer") != "" {
			t.Errorf("the origin saw %q, trailer %q", r.Header, r.Trailer)
		}
	}
}

// TestHTTP2Floods: streams that are reset as soon as they are opened (CVE-2023-39325) and
// headers without end (CVE-2023-45288) end their own connection and harm nobody.
func TestHTTP2Floods(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	block := func(f *frames, more ...string) []byte {
		return f.block(append([]string{":method", "GET", ":scheme", "https", ":authority", testHost, ":path", "/"}, more...)...)
	}
	for name, flood := range map[string]func(f *frames) error{
		"resets": func(f *frames) error {
			for stream := uint32(1); stream < 100_000; stream += 2 {
				if err := f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(f), EndHeaders: true, EndStream: true}); err != nil {
					return err
				}
				if err := f.fr.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
					return err
				}
			}
			return nil
		},
		"headers": func(f *frames) error {
			err := f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(f), EndStream: true})
			for range 100_000 {
				if err != nil {
					return err
				}
				err = f.fr.WriteContinuation(1, false, []byte("\x00\x01a\x7f\x81\x07"+strings.Repeat("b", 262)))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			slow := make(chan struct{}) // nothing is answered before the flood is over
			w := newWorld(t, func(v anteroom.Visit) anteroom.Decision { <-slow; return line(v) })
			front := w.tlsFront()
			f := newFrames(t, front.Listener.Addr().String())
			ended := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, f.conn); ended <- err }()
			// What was written last may stand in buffers; that the connection is closed counts.
			if flood(f) == nil {
				f.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the flood was taken to its end, and the connection lives")
				}
			}
			if n := w.gw.Stats().InFlight; n > 100 {
				t.Errorf("%d requests of one connection in flight", n)
			}
			close(slow)
			r, _ := http.NewRequest("GET", front.URL+"/", nil)
			r.Host = testHost
			res, err := front.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 200 {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
}

// TestAnswersWithoutABodyHaveNoLength: some applications say one with 204, and with 304 the length of the body that is left out.
// Clients of HTTP/2 then miss the bytes.
func TestAnswersWithoutABodyHaveNoLength(t *testing.T) {
	for _, status := range []string{"204 No Content", "304 Not Modified"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			c, _, _ := http.NewResponseController(rw).Hijack()
			io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 500\r\nETag: \"a\"\r\nConnection: close\r\n\r\n")
			c.Close()
		}))
		w := newWorld(t, admit, withConfig(func(c *Config) { c.Sites[0].Origins[0] = parse(t, "http://"+l.Addr().String()) }))
		front := w.tlsFront()
		for _, method := range []string{"GET", "POST"} {
			r, _ := http.NewRequest(method, front.URL, nil)
			r.Host = testHost
			res, err := front.Client().Do(r)
			if err != nil {
				t.Errorf("%s, %s: %v", method, status, err)
				continue
			}
			_, err = io.ReadAll(res.Body)
			if res.Body.Close(); err != nil || res.ProtoMajor != 2 || !strings.HasPrefix(status, strconv.Itoa(res.StatusCode)) || res.Header.Get("Etag") == "" || res.Header["Content-Length"] != nil {
				t.Errorf("%s, %s: %s %v %v", method, status, res.Status, res.Header, err)
			}
		}
	}
}
