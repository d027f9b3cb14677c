package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
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

// begin begins a request of a thousand bytes, with one of them. In HTTP/2, where a visitor's window is that of the stream, no request comes before it.
func (c *piped) begin(window uint32) {
	if c.way != "HTTP/2" {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: "+testHost+"\r\nContent-Length: 1000\r\n\r\n{")
		return
	}
	c.frames = &frames{t: c.t, fr: http2.NewFramer(c, c.in)}
	io.WriteString(c, http2.ClientPreface)
	c.frames.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	c.frames.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true,
		BlockFragment: c.frames.block(":method", "POST", ":scheme", "http", ":authority", testHost, ":path", "/", "content-length", "1000")})
	c.frames.fr.WriteData(1, false, []byte("{"))
}

// answered returns the status of the answer when all of it has come, and the connection, or in HTTP/2 the stream, is over.
func (c *piped) answered() (status string) {
	if c.frames == nil {
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := io.ReadAll(c.in); err != nil {
			c.t.Errorf("the connection is open: %v", err)
		}
		return res.Status[:3]
	}
	c.frames.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := c.frames.fr.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
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
	read := func(*Gateway) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, "invalid body", http.StatusBadRequest)
			}
		})
	}
	onEachWay(t, func(g *Gateway) http.Handler { return g.Beside(read(g)) }, func(c *piped) {
		began := time.Now()
		c.begin(1 << 16)
		time.Sleep(bodyTime / 2)
		if n := c.gw.Stats().InFlight; n != 1 {
			c.t.Errorf("%d requests in flight", n)
		}
		if status := c.answered(); status != "400" {
			c.t.Errorf("status %s", status)
		}
		if took := time.Since(began); took > bodyTime+time.Second {
			c.t.Errorf("open for %v", took)
		}
	})
}
