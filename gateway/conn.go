package gateway

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

type connKey struct{}

// conn is what a gateway remembers of a connection.
type conn struct {
	peer    netip.Addr
	written string // peer as text

	mu      sync.Mutex
	fresh   anteroom.ID   // given to the newcomer on this connection
	freshAt anteroom.Time // when; zero before the first
	agent   string        // User-Agent of that newcomer
	waiting bool          // the last answer was to somebody who waits
	closer  *time.Timer   // closes the connection while it is idle after such an answer
}

// waits remembers whether the connection's visitor waits. c may be nil.
func (c *conn) waits(yes bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.waiting = yes
	c.mu.Unlock()
}

// connections closes those that are idle with somebody who waits earlier than net/http
// does, whose bound is the same for all.
type connections struct {
	g    *Gateway
	open sync.Map // net.Conn → *conn
}

// opened is an http.Server's ConnContext, changed its ConnState.
func (k *connections) opened(ctx context.Context, nc net.Conn) context.Context {
	ctx = k.g.ConnContext(ctx, nc)
	k.open.Store(nc, ctx.Value(connKey{}))
	return ctx
}

func (k *connections) changed(nc net.Conn, state http.ConnState) {
	v, known := k.open.Load(nc)
	if !known {
		return
	}
	c := v.(*conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closer != nil {
		c.closer.Stop()
		c.closer = nil
	}
	switch state {
	case http.StateIdle:
		if c.waiting {
			c.closer = time.AfterFunc(k.g.live.Load().Timeouts.IdleWaiting, func() { nc.Close() })
		}
	case http.StateClosed, http.StateHijacked:
		k.open.Delete(nc)
	}
}

// freshFor is how long newcomers on one connection are one visitor: a browser opens a page
// and asks for its parts before the first Set-Cookie has arrived.
const freshFor = anteroom.Time(2e6)

// ConnContext is for [http.Server.ConnContext]: it lets requests that arrive without a
// ticket on one connection, within two seconds, share one new ticket. Without it every
// such request is a visitor of its own.
func (g *Gateway) ConnContext(ctx context.Context, c net.Conn) context.Context {
	peer := peerOf(c.RemoteAddr().String())
	return context.WithValue(ctx, connKey{}, &conn{peer: peer, written: addrString(peer)})
}

// newcomer returns the identity for a request without a ticket. The User-Agent has to agree
// because a proxy that nobody told us of carries many visitors on one connection; the
// caller leaves out connections that show signs of one.
func (c *conn) newcomer(now anteroom.Time, agent string, id anteroom.ID) anteroom.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freshAt == 0 || now-c.freshAt > freshFor || c.agent != agent {
		c.fresh, c.freshAt, c.agent = id, now, agent
	}
	return c.fresh
}
