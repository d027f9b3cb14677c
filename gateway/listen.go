package gateway

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/gateway/socket"
)

// Server returns an HTTP server for visitors around g, with the bounds that face
// strangers: 5 s for the headers, 60 s of idleness (Timeouts.IdleWaiting for those who wait), 32 KiB of headers, 100 streams per HTTP/2
// connection. It has no bound on writing: streams last, and every write has its own
// deadline. Log gets what net/http complains of, at debug level; nil means nowhere.
// Give it the TLS configuration before serving.
//
// Plain requests of HTTP/1.1 do not pass net/http: see [h1.Server].
func (g *Gateway) Server(log *slog.Logger) *h1.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	open := &connections{g: g}
	srv := h1.NewServer(&http.Server{
		Handler:           g,
		ConnContext:       open.opened,
		ConnState:         open.changed,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    anteroom.MaxHeaderBytes,
		Protocols:         &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     30 * time.Second,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	})
	srv.Off = func() bool { return g.live.Load().NoFastPath }
	return srv
}

// ConnectionsPerAddress is the usual bound for [Limit].
const ConnectionsPerAddress = 200

// Limit bounds the open connections of one address (an IPv6 /64) at l; more are closed at
// once. Peers in exempt, the trusted proxies, are not counted. Most of zero means
// ConnectionsPerAddress, a negative one no bound.
func Limit(l net.Listener, most int, exempt []netip.Prefix) net.Listener {
	if most < 0 {
		return l
	}
	if most == 0 {
		most = ConnectionsPerAddress
	}
	return &limited{Listener: l, most: most, exempt: exempt, open: make(map[netip.Addr]int)}
}

type limited struct {
	net.Listener
	most   int
	exempt []netip.Prefix

	mu   sync.Mutex
	open map[netip.Addr]int // as many entries as there are open connections, at most
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c = socket.Wrap(c)
		addr := peerOf(c.RemoteAddr().String())
		if !addr.IsValid() || l.isExempt(addr) {
			return &visitorConn{Conn: c}, nil
		}
		key := addressKey(addr)
		if l.take(key) {
			return &visitorConn{Conn: c, done: sync.OnceFunc(func() { l.give(key) })}, nil
		}
		c.Close()
	}
}

func (l *limited) isExempt(a netip.Addr) bool {
	for _, p := range l.exempt {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (l *limited) take(key netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key] >= l.most {
		return false
	}
	l.open[key]++
	return true
}

func (l *limited) give(key netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key]--; l.open[key] <= 0 {
		delete(l.open, key)
	}
}

// visitorConn is a connection that [Limit] has accepted.
type visitorConn struct {
	net.Conn
	about *conn
	done  func() // gives back the place in the count; nil when it is not counted
}

// NetConn returns the connection of the listener below.
func (c *visitorConn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn.
func (c *visitorConn) Close() error {
	if c.done != nil {
		c.done()
	}
	return c.Conn.Close()
}

// CloseWrite lets net/http and tunnels close one direction.
func (c *visitorConn) CloseWrite() error { return socket.CloseWrite(c.Conn) }
