package h1

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/anteroom/anteroom/gateway/socket"
)

type poolKey struct{ scheme, host string }

// pool holds the idle connections to one origin, the one used last at the end.
type pool struct {
	address string
	secure  bool    // by TLS
	idle    []*conn // guarded by the transport's mu
}

// conn is a connection to an origin.
type conn struct {
	net.Conn                      // what requests are written to
	pool     *pool                // where it belongs
	state    *tls.ConnectionState // nil: no TLS
	abort    func()               // closes it, whatever anybody is doing with it

	sock *socket.Conn // of the TCP connection; nil: unknown

	since  time.Time // when its last exchange began, or it was dialed
	readBy time.Time // the read deadline; zero: none
}

// sweepEvery is how often the idle connections are looked at: those that are idle for too long or that the origin has
// closed are closed.
const sweepEvery = 5 * time.Second

// poolOf returns the pool for a request's origin.
func (t *Transport) poolOf(r *http.Request) *pool {
	key := poolKey{r.URL.Scheme, r.URL.Host}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pools[key]
	if p == nil {
		p = newPool(r.URL)
		t.pools[key] = p
	}
	return p
}

func newPool(to *url.URL) *pool {
	port := to.Port()
	switch {
	case port != "":
	case to.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return &pool{address: net.JoinHostPort(to.Hostname(), port), secure: to.Scheme != "http"}
}

// dial makes a connection.
func (t *Transport) dial(ctx context.Context, p *pool) (*conn, error) {
	dial := t.base.DialContext
	if p.secure {
		dial = t.base.DialTLSContext
	}
	nc, err := dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, pool: p, abort: func() { nc.Close() }, since: time.Now()}
	if secure, ok := nc.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.state, c.sock = &state, socket.Of(secure.NetConn())
		// Not the end of TLS, which would wait for whoever is writing.
		c.abort = func() { secure.NetConn().Close() }
	} else if c.sock = socket.Of(nc); c.sock != nil {
		c.Conn = c.sock
	}
	return c, nil
}

// dialTLS returns a DialTLSContext for base. Where the handshake fails, no connection was made and nothing of a request has left: the error is
// that of a dialer.
func dialTLS(base *http.Transport) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := base.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		cfg := &tls.Config{}
		if base.TLSClientConfig != nil {
			cfg = base.TLSClientConfig.Clone()
		}
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(address)
		}
		cfg.NextProtos = []string{"http/1.1"}
		if d := base.TLSHandshakeTimeout; d > 0 {
			within, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			ctx = within
		}
		secure := tls.Client(socket.Wrap(nc), cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Addr: nc.RemoteAddr(), Err: err}
		}
		return secure, nil
	}
}

// take returns an idle connection on which the origin has said nothing, not even that it has closed it; nil if there
// is none. What an origin says unasked must never be taken for the answer to somebody's request.
func (t *Transport) take(p *pool, now time.Time) *conn {
	for {
		t.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			t.mu.Unlock()
			return nil
		}
		c := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		t.mu.Unlock()
		if t.isUsable(c, now) {
			return c
		}
		c.abort()
	}
}

func (t *Transport) isUsable(c *conn, now time.Time) bool {
	if d := t.base.IdleConnTimeout; d > 0 && now.Sub(c.since) > d {
		return false
	}
	return c.silent()
}

// silent reports whether the connection is open and nothing has come on it. On one with TLS anything in the socket
// counts, also what would turn out to be nothing for us; and a record that came with the last answer may be read already.
func (c *conn) silent() bool {
	if c.sock == nil {
		return false
	}
	if _, quiet := c.sock.Look(); !quiet {
		return false
	}
	if c.state == nil {
		return true
	}
	var b [1]byte
	c.readBy = time.Time{}
	c.SetReadDeadline(longAgo)
	_, err := c.Read(b[:])
	c.SetReadDeadline(c.readBy)
	return err != nil && isTimeout(err)
}

var longAgo = time.Unix(1, 0)

// leave takes a connection back from an exchange, or closes it if it cannot be used again.
func (t *Transport) leave(c *conn, keep bool) {
	if !keep || !t.put(c) {
		c.abort()
	}
}

func (t *Transport) put(c *conn) bool {
	most := t.base.MaxIdleConnsPerHost
	if most == 0 {
		most = http.DefaultMaxIdleConnsPerHost
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(c.pool.idle) >= most {
		return false
	}
	c.pool.idle = append(c.pool.idle, c)
	if t.timer == nil {
		t.timer = time.AfterFunc(sweepEvery, t.sweep)
	}
	return true
}

// sweep closes idle connections that cannot be used, and comes back while there are others.
func (t *Transport) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, left := time.Now(), 0
	for _, p := range t.pools {
		p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
			if t.isUsable(c, now) {
				return false
			}
			c.abort()
			return true
		})
		left += len(p.idle)
	}
	t.timer = nil
	if left > 0 {
		t.timer = time.AfterFunc(sweepEvery, t.sweep)
	}
}

// CloseIdleConnections closes the connections that are idle, and every other one when its exchange is over. Those of
// the transport below are not touched.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	t.closed = true
	for _, p := range t.pools {
		for _, c := range p.idle {
			c.abort()
		}
		p.idle = nil
	}
	t.mu.Unlock()
}

// expect sets the read deadline to d from now, or up to a quarter of d later, so that a busy connection does not pay for
// it with every request; no deadline if d is not positive or longer than a day.
func (c *conn) expect(d time.Duration, now time.Time) {
	if d <= 0 || d > 24*time.Hour {
		if !c.readBy.IsZero() {
			c.readBy = time.Time{}
			c.SetReadDeadline(c.readBy)
		}
		return
	}
	if by := now.Add(d); c.readBy.Before(by) {
		c.readBy = by.Add(d / 4)
		c.SetReadDeadline(c.readBy)
	}
}
