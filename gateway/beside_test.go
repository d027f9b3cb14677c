package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/anteroom/anteroom"
)

// ways are those on which a request comes to a handler on a listener of the gateway.
var ways = []string{"the loop", "net/http", "HTTP/2"}

// piped is a visitor at the other end of a pipe in memory, so that a test's clock can be that of synctest.
type piped struct {
	net.Conn
	t      *testing.T
	in     *bufio.Reader
	frames *frames // in HTTP/2
	way    string
	gw     *Gateway
}

// onEachWay runs a test with a visitor of the handler that made returns.
func onEachWay(t *testing.T, made func(*Gateway) http.Handler, test func(c *piped)) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer here.Close()
				l := make(one, 1)
				l <- there
				g, _ := roleGateway("127.0.0.1:9", anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}}.WithDefaults(), admit, true)
				srv := g.Server(nil)
				srv.Handler = made(g)
				srv.Protocols.SetUnencryptedHTTP2(true)
				if way == "net/http" {
					srv.Off = func() bool { return true }
				}
				go srv.Serve(l)
				defer srv.Close()
				defer close(l)
				here.SetDeadline(time.Now().Add(time.Hour))
				c := &piped{Conn: here, t: t, in: bufio.NewReader(here), way: way, gw: g}
				test(c)
			})
		})
	}
}

// hello begins to speak HTTP/2, with a window for the bytes of an answer.
func (c *piped) hello(window uint32) {
	c.frames = &frames{t: c.t, fr: http2.NewFramer(c, c.in)}
	io.WriteString(c, http2.ClientPreface)
	c.frames.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	c.frames.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
}

// post begins a request of a thousand bytes, with one of them.
func (c *piped) post() {
	if c.way != "HTTP/2" {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: "+testHost+"\r\nContent-Length: 1000\r\n\r\n{")
		return
	}
	c.hello(1 << 16)
	c.frames.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true,
		BlockFragment: c.frames.block(":method", "POST", ":scheme", "http", ":authority", testHost, ":path", "/", "content-length", "1000")})
	c.frames.fr.WriteData(1, false, []byte("{"))
}

// over waits for the end of the connection, or in HTTP/2 of the stream. It returns the status of the answer.
func (c *piped) over() (status string) {
	if c.way != "HTTP/2" {
		all, err := io.ReadAll(c.in)
		if err != nil {
			c.t.Errorf("the connection is open: %v", err)
		}
		return strings.TrimPrefix(string(all[:min(len(all), 12)]), "HTTP/1.1 ")
	}
	for {
		frame, err := c.frames.fr.ReadFrame()
		if err != nil {
			c.t.Errorf("the stream is open: %v", err)
			return status
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status = frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return status
		}
	}
}

func TestBodiesBesideTheGatewayArriveInTime(t *testing.T) {
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "invalid body", http.StatusBadRequest)
		}
	})
	onEachWay(t, func(g *Gateway) http.Handler { return g.Beside(read) }, func(c *piped) {
		began := time.Now()
		c.post()
		<-time.After(bodyTime / 2)
		if n := c.gw.Stats().InFlight; n != 1 {
			c.t.Errorf("%d requests in flight", n)
		}
		if status := c.over(); status != "400" {
			c.t.Errorf("status %s", status)
		}
		if took := time.Since(began); took > bodyTime+time.Second {
			c.t.Errorf("open for %v", took)
		}
	})
}

// handlers are those whose answers are short.
var handlers = map[string]func(*Gateway) http.Handler{
	"a refusal": func(g *Gateway) http.Handler { return g },
	"beside the gateway": func(g *Gateway) http.Handler {
		return g.Beside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "short") }))
	},
}

func TestShortAnswersThatNobodyTakesEnd(t *testing.T) {
	for name, made := range handlers {
		t.Run(name, func(t *testing.T) {
			onEachWay(t, made, func(c *piped) {
				began := time.Now()
				if c.way != "HTTP/2" {
					io.WriteString(c, "GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n")
					c.Read(make([]byte, 1))                 // nobody takes the rest of the answer
					io.WriteString(c, "GET / HTTP/1.1\r\n") // until the connection ends
				} else {
					c.hello(0)
					c.frames.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true,
						BlockFragment: c.frames.block(":method", "GET", ":scheme", "http", ":authority", "other.example.com", ":path", "/")})
					c.over()
				}
				if took := time.Since(began); took > answerTime+2*time.Second {
					c.t.Errorf("open for %v", took)
				}
				if n := c.gw.Stats().InFlight; n != 0 {
					c.t.Errorf("%d requests in flight", n)
				}
			})
		})
	}
}

func TestBoundOfAShortAnswerIsTakenBack(t *testing.T) {
	mixed := func(g *Gateway) http.Handler {
		long := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				io.WriteString(w, "long")
				http.NewResponseController(w).Flush()
				<-time.After(answerTime)
			}
		})
		short := handlers["beside the gateway"](g)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/long" {
				long.ServeHTTP(w, r)
				return
			}
			short.ServeHTTP(w, r)
		})
	}
	bodies := map[string]string{"/short": "short", "/long": "longlonglong"}
	onEachWay(t, mixed, func(c *piped) {
		if c.way == "HTTP/2" { // where the bound is the stream's
			return
		}
		for _, path := range []string{"/short", "/long", "/short", "/long"} {
			io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+testHost+"\r\n\r\n")
			res, err := http.ReadResponse(c.in, nil)
			if err != nil {
				c.t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); string(body) != bodies[path] || err != nil {
				c.t.Errorf("%s: %q %v", path, body, err)
			}
		}
	})
}
