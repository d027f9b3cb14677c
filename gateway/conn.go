package gateway

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/ticket"
)

type connKey struct{}

// conn is what a gateway remembers of a connection.
type conn struct {
	peer    netip.Addr
	written string   // peer as text
	nc      net.Conn // nil when [connections] does not hear of its states

	mu      sync.Mutex
	fresh   anteroom.ID                  // given to the newcomer on this connection
	freshAt anteroom.Time                // when; zero before the first
	agent   string                       // User-Agent of that newcomer
	many    bool                         // newcomers of several User-Agents came
	waiting bool                         // the last answer was to somebody who waits
	last    atomic.Pointer[openedTicket] // of a session; what it points to never changes
	known   atomic.Pointer[anteroom.ID]  // session whose networks have this client's among them; nil before the first

	limit limit // at which it is closed; ends nothing when nobody hears of its states
}

// openedTicket is what came of opening a cookie. The same value opens to the same ticket for
// as long as the sealer lives, so a browser that sends its session's cookie with a hundred
// requests has it opened once for each connection.
type openedTicket struct {
	sealer *ticket.Sealer
	value  string
	ticket anteroom.Ticket
	stale  bool // sealed by an old key
}

// opened returns the session's ticket that the connection brought before in the same value.
// c may be nil.
func (c *conn) opened(by *ticket.Sealer, value string) *openedTicket {
	if c == nil {
		return nil
	}
	if o := c.last.Load(); o != nil && o.sealer == by && o.value == value {
		return o
	}
	return nil
}

// remember keeps a session's opened ticket. c may be nil.
func (c *conn) remember(o openedTicket) {
	if c == nil {
		return
	}
	o.value = strings.Clone(o.value) // not the whole header
	c.last.Store(&o)
}

// counted reports whether the client's network has been counted for the session.
func (c *conn) counted(id anteroom.ID) bool {
	known := c.known.Load()
	return known != nil && *known == id
}

func (c *conn) count(id anteroom.ID) { c.known.Store(&id) }

// waits remembers whether the connection's visitor waits. c may be nil.
func (c *conn) waits(yes bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.waiting = yes
	c.mu.Unlock()
}

func (c *conn) isWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// closeAt closes the connection at a moment, unless its state changes before. It reports
// whether it can; c may be nil.
func (c *conn) closeAt(at time.Time) bool { return c != nil && c.limit.until(at) }

// connections closes those that are idle with somebody who waits earlier than net/http
// does, whose bound is the same for all, and those that take too long to receive a page.
type connections struct {
	g    *Gateway
	open sync.Map // net.Conn → *conn, of those that do not know theirs
}

// opened is an http.Server's ConnContext, changed its ConnState.
func (k *connections) opened(ctx context.Context, nc net.Conn) context.Context {
	if h, ok := nc.(*h1.Handed); ok { // it was known already
		ctx = context.WithValue(ctx, connKey{}, h.Context.Value(connKey{}))
	} else {
		ctx = k.g.ConnContext(ctx, nc)
	}
	c := ctx.Value(connKey{}).(*conn)
	c.nc = nc
	c.limit.calls(func() time.Duration { nc.Close(); return 0 })
	if v, ok := nc.(*visitorConn); ok {
		v.about = c
	} else {
		k.open.Store(nc, c)
	}
	return ctx
}

func (k *connections) find(nc net.Conn) *conn {
	if v, ok := nc.(*visitorConn); ok {
		return v.about
	}
	c, _ := k.open.Load(nc)
	known, _ := c.(*conn)
	return known
}

func (k *connections) changed(nc net.Conn, state http.ConnState) {
	c := k.find(nc)
	if c == nil {
		return
	}
	c.limit.lift()
	switch state {
	case http.StateIdle:
		if c.isWaiting() {
			c.closeAt(time.Now().Add(k.g.live.Load().Timeouts.IdleWaiting))
		}
	case http.StateClosed, http.StateHijacked:
		k.open.Delete(nc)
		c.limit.end()
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

// newcomer returns the identity for a request without a ticket, and whether many visitors come on this connection: a proxy
// that nobody told us of brings those of several browsers. The caller leaves out connections that show other signs of one.
func (c *conn) newcomer(now anteroom.Time, agent string, id anteroom.ID) (_ anteroom.ID, many bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.many = c.many || c.freshAt != 0 && c.agent != agent; c.many {
		return id, true
	}
	if c.freshAt == 0 || now-c.freshAt > freshFor || c.agent != agent {
		c.fresh, c.freshAt, c.agent = id, now, agent
	}
	return c.fresh, false
}
