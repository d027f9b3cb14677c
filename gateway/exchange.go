package gateway

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
)

// exchange is one request on its way: what has been learnt about it and what its answer
// will need. Exchanges are reused; each has its reverse proxy bound to itself once, so
// that a request costs neither closures nor a context.
type exchange struct {
	g     *Gateway
	proxy httputil.ReverseProxy
	told  func(status int, h http.Header) error // interim
	request

	tickets  []anteroom.Ticket // those that opened
	buf      []byte            // for what we write ourselves
	ids      ticket.IDs
	tested   rules.Request // as rules see it
	readings []string      // of its path
	slow     limit         // of writes that the connection's limit does not bound
}

// request is the part of an exchange that is forgotten with the request.
type request struct {
	s    *setup
	w    http.ResponseWriter
	r    *http.Request
	next http.Handler // nil: the site's origins
	room *room        // nil: no room covers the request
	site *site        // nil when next is not

	conn      *conn // nil without ConnContext
	peer      netip.Addr
	client    netip.Addr
	trusted   bool // the peer is one of the operator's proxies
	shared    bool // the connection carries, or may carry, more than one visitor
	https     bool
	websocket bool
	cookies   []string // lines of the request's header
	start     time.Time
	clock     time.Time // the last reading of the clock; zero if there is none, or the request has waited since

	solved    bool            // the challenge, by this request
	moved     bool            // a ticket that came was left behind: its place is at another device
	stale     bool            // the ticket in use was sealed by an old key
	presented anteroom.Ticket // the ticket in use; zero when there is none
	passLeft  time.Duration   // of the pass, as far as it says
	signed    signed          // the account that the request comes with; zero: none
	decision  anteroom.Decision

	values []string      // free ones, see value
	span   Span          // of the request; nil when it is not traced
	held   time.Duration // for the decision; known when it is traced
	stream *stream       // goes on when the exchange is over; nil: none does
	out    stallWriter
	reset  bool // by resetSlow
	origin *origin
	in     inLimiters
	ask    Span        // of the request to the origin
	body   *bodyReader // nil without a body

	fast    bool         // the way to the origin is [h1.Transport]
	inPlace bool         // the origin's answer has its fields where our own has them, if fast
	sent    http.Request // what the origin sees, if fast
	sentURL url.URL
}

func newExchange(g *Gateway) *exchange {
	x := &exchange{g: g}
	x.told = x.interim
	x.proxy = httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x,
		ModifyResponse: x.modify,
		ErrorHandler:   x.failed,
		BufferPool:     &g.buffers,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	return x
}

func (x *exchange) begin(s *setup, w http.ResponseWriter, r *http.Request, next http.Handler) {
	x.s, x.w, x.r, x.next, x.start = s, w, r, next, time.Now()
}

// release makes the exchange forget the request and keeps it for another.
func (g *Gateway) release(x *exchange) {
	x.leaveLimiters()
	if x.origin != nil {
		x.origin.pending.Add(-1)
	}
	if x.span != nil {
		x.span.End(time.Now())
	}
	if len(x.readings) > 0 {
		x.tested.Reset()
		clear(x.readings)
		x.readings = x.readings[:0]
	}
	x.request = request{}
	x.tickets, x.buf = x.tickets[:0], x.buf[:0]
	if cap(x.buf) > 64<<10 {
		x.buf = nil
	}
	if cap(x.tickets) > 16 {
		x.tickets = nil
	}
	g.exchanges.Put(x)
}

// copyBuffer is the size of the buffers between origin and visitor, in bytes.
const copyBuffer = 32 << 10

// copyBuffers is an httputil.BufferPool. It holds pointers to arrays so that giving one back
// allocates nothing.
type copyBuffers struct{ pool sync.Pool }

func (c *copyBuffers) Get() []byte {
	if b, ok := c.pool.Get().(*[copyBuffer]byte); ok {
		return b[:]
	}
	return make([]byte, copyBuffer)
}

func (c *copyBuffers) Put(b []byte) {
	if len(b) == copyBuffer {
		c.pool.Put((*[copyBuffer]byte)(b))
	}
}
