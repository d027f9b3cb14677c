// Package gateway is the HTTP face of a node: it takes a visitor's request through the gate and on to the origin, or
// answers with the waiting page at the same address.
//
// The life of a request, in the order of the code:
//
//  1. [Gateway.ServeHTTP] refuses what must never pass (hygiene.go): CONNECT, unknown methods, targets and headers
//     beyond their bounds. It removes headers that only Anteroom or a trusted proxy may send (reserved.go), and
//     Upgrades to other protocols.
//  2. route.Table finds the room that covers the target, by any interpretation of it.
//  3. A verified crawler, if the zone lets crawlers bypass rooms, and a request that matches a rule of the room by
//     every interpretation of its path bypass the room (bypass.go): they go to the origin as if there were no room,
//     whatever state it is in. Requests of their waiting pages are answered with "go" and not forwarded, and their
//     preflights are not bounded.
//  4. Requests of the waiting page (ask.go) take the next two steps and are always answered here. A CORS preflight
//     goes on without them, with a bound per address.
//  5. Every ticket among the cookies is opened, and the best one counts (gate.go).
//  6. node.Room decides. It is the only place where admission is decided. The networks that use a session are counted; beyond
//     the room's bound they are an alarm, are asked a challenge, or end it (networks.go).
//  7. If admitted, the request goes to the origin with a signed proof (proxy.go, pass.go), as a tunnel for
//     WebSockets (tunnel.go). Otherwise the visitor gets the waiting page or its JSON (respond.go).
//  8. The origin's response passes back. The ticket is added, and the origin's command to revoke is obeyed and
//     removed (answer.go).
//
// [Gateway.Middleware] does the same with a handler of the caller in place of the origin. [Gateway.ForwardAuth] does it for
// a proxy that asks about a request: the verdict stands in place of the origin, and in place of every other answer (verdict.go).
//
// An origin sees the visitor's request with these changes: our tickets are cut out of the Cookie header (other cookies
// stay byte for byte), forwarding headers are ours, the proof is added, and trailers of the request are dropped. Path
// and query do not change.
//
// No client can cause a 5xx, except for the 501 of net/http for a transfer coding that it does not know (RFC 9112
// §6.1). 502 and 504 are about the origin, 503 about our own bounds on requests in flight, 508 about a loop in the
// operator's configuration.
package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/account"
	"github.com/anteroom/anteroom/ticket/proof"
)

// Config says what a gateway serves. Node and Keys are required.
type Config struct {
	// Sites are the applications behind the gateway. A request for a host without a site is
	// answered with 421. [Gateway.Middleware] needs none.
	Sites []Site
	// Rooms that have passed [anteroom.Room.Check] and that Node serves.
	Rooms []anteroom.Room
	// Rules are the compiled rules by room; a room that is not there has none.
	Rules map[anteroom.RoomID]*rules.Set
	// Lanes are the compiled expressions of lanes by room; one that is not there has none.
	Lanes map[anteroom.RoomID]*rules.Lanes
	// Unbounded are networks whose first requests have no bound, by room.
	Unbounded map[anteroom.RoomID]*rules.Networks
	// Geo knows where addresses are, for rules and lists of ASNs. Nil: nothing is known.
	Geo rules.Geo
	// Crawlers verifies search-engine crawlers, for CrawlerBypass and for rules. If nil, no client counts as one.
	Crawlers Crawlers
	// CrawlerBypass are the zones, by name, whose rooms verified crawlers pass.
	CrawlerBypass map[string]bool
	// Templates are the compiled custom pages by room; a room that is not there shows the
	// built-in page.
	Templates map[anteroom.RoomID]*page.Template
	// EventTemplates are the compiled custom pages of events. They are shown while their event
	// is active; one that is not there shows the room's page.
	EventTemplates map[EventKey]*page.Template
	// Sessions finds sessions in a header, by room. A room that is there admits nobody who has none.
	Sessions map[anteroom.RoomID]FindSession
	// Former finds, by room, the place that another waiting room has given to a visitor without a ticket.
	Former map[anteroom.RoomID]Former
	// Redeem takes uses of invite codes; nil: there are none.
	Redeem Redeem
	// LaneCodes reports whether there are codes for lanes of a room; nil: there are none.
	LaneCodes func(anteroom.RoomID) bool
	// Accounts keep the places of accounts, and AccountKeys the keys of their issuers, for rooms with accounts.
	Accounts    account.Places
	AccountKeys *account.Sources
	// Push keeps what visitors want to be told by web push, in rooms with web_push; the zero value: nothing.
	Push Push
	// Node decides.
	Node *node.Node
	// Keys seal the tickets.
	Keys *ticket.Keyring
	// Challenge is asked of visitors who wait; the zero one asks nothing.
	Challenge Challenge
	// Proof signs what admitted requests carry to the origin; nil means no proof.
	Proof *proof.Signer
	// ProofHeader carries it; empty means X-Anteroom-Assertion.
	ProofHeader string
	// Issuer is the "iss" of passes, at most 256 bytes; empty means pass.DefaultIssuer.
	Issuer string
	// CookieName is the cookie of tickets without the room's suffix; empty means route.DefaultCookieName. Anteroom owns
	// this name and every name that begins with it and "_": origins neither see nor set such cookies. Gateways with keys or
	// rooms of their own on one host need different ones, of which none begins with another.
	CookieName string
	// TrustedProxies are the peers that may report the client's address. By default there are none, and forwarding
	// headers are ignored.
	TrustedProxies []netip.Prefix
	// ForwardAuthPeers are the proxies that may ask [Gateway.ForwardAuth]. Nil means this machine's.
	ForwardAuthPeers []netip.Prefix
	// MaxInFlight bounds the requests in flight, including streams and tunnels; further ones get 503. Zero means
	// 50,000.
	MaxInFlight int
	// BodyRate is the least average, in bytes per second, at which a request body has to arrive
	// after its first 20 s of waiting for the visitor. Zero means 500, a negative one no bound.
	BodyRate int
	// MaxPerAddress and MaxPerSession bound the requests under way to the origin, of one address
	// (an IPv6 /64) and of one session. Further ones wait, for 5 s at most, then get 429. Zero
	// means no bound.
	MaxPerAddress, MaxPerSession int
	// PreflightsPerSecond bounds the CORS preflights of one address that bypass a room. Zero means 50. Bursts of four
	// times as many are allowed.
	PreflightsPerSecond int
	// Timeouts of the origins' side.
	Timeouts Timeouts
	// NoFastPath leaves all connections to net/http. Otherwise package h1 serves the plain requests of visitors, and
	// those to origins.
	NoFastPath bool
	// Log gets one line per decision that is news, and one in a hundred of the others, at
	// most 200 a second. Nil means none. No line holds a ticket, a cookie or a query.
	Log *slog.Logger
	// Tracer records traces of requests. Nil means none, and leaves what visitors send of traces as
	// it is.
	Tracer Tracer
}

// EventKey names an event among those of all rooms.
type EventKey struct {
	Room  anteroom.RoomID
	Event anteroom.EventID
}

// Site is one application: the hosts that it answers for and the servers it runs on.
type Site struct {
	// Hosts are names without port, or "*" for every host that no other site names.
	Hosts []string
	// OpenHosts makes "*" serve every host even if rooms name hosts. Without it, a request for a
	// host that neither a site nor a room names is then answered with 421 unless a room for "*"
	// covers it.
	OpenHosts bool
	// Origins are http or https URLs with a host and nothing else.
	Origins []*url.URL
	// MaxConnections bounds the requests, streams and tunnels under way to each origin, which are
	// as many connections. Further ones wait, for 5 s at most, then get 503. Zero means no bound.
	MaxConnections int
	// PreserveHost sends the visitor's Host to the origin instead of the origin's own name.
	PreserveHost bool
	// Health of the origins; the zero value means that only failures to connect count.
	Health Health
}

// Health is an active check: an origin that does not answer it with 2xx or 3xx gets no
// requests while another one does.
type Health struct {
	// Path to GET, like "/healthz"; empty means no active check.
	Path string
	// Host to send; empty means the origin's.
	Host string
	// Interval between checks; zero means 5 s.
	Interval time.Duration
	// Timeout of one; zero means 2 s.
	Timeout time.Duration
}

// Gateway serves visitors. Make it with [New]. Safe for concurrent use.
type Gateway struct {
	live      atomic.Pointer[setup]
	swapping  sync.Mutex
	swapped   chan struct{} // holds one value after a Swap that Run has not seen
	count     counters
	edges     seenEdges
	exchanges sync.Pool
	buffers   copyBuffers
	lines     logBound
	draws     draws
	addresses *limiters[netip.Addr]
	sessions  *limiters[anteroom.ID]
	crowds    *crowds
	unlisted  atomic.Pointer[unlistedProxy]
	alarms    logBound
	token     string // names this process in hopHeader
	drain     chan struct{}
	drainOnce sync.Once
	closing   chan struct{}
	closeOnce sync.Once
}

// New returns a gateway that serves cfg. Errors are of kind Invalid and name every fault.
// Health checks work while [Gateway.Run] does.
func New(cfg Config) (*Gateway, error) {
	g := newGateway()
	if err := g.Swap(cfg); err != nil {
		return nil, err
	}
	return g, nil
}

func newGateway() *Gateway {
	var id [8]byte
	rand.Read(id[:])
	g := &Gateway{
		swapped:   make(chan struct{}, 1),
		draws:     newDraws(),
		addresses: newLimiters[netip.Addr](),
		sessions:  newLimiters[anteroom.ID](),
		crowds:    newCrowds(),
		token:     "anteroom-" + hex.EncodeToString(id[:]),
		drain:     make(chan struct{}),
		closing:   make(chan struct{}),
	}
	g.exchanges.New = func() any { return newExchange(g) }
	return g
}

// Swap puts another configuration in force from the next request on; requests in flight finish with the old one. After
// an error nothing has changed.
func (g *Gateway) Swap(cfg Config) error {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	put, err := g.Prepare(cfg)
	if err == nil {
		put()
	}
	return err
}

// Prepare does everything in Swap that can fail, and returns a function that does the rest. A caller with work in
// between must prevent another Swap there.
func (g *Gateway) Prepare(cfg Config) (put func(), err error) {
	s, err := newSetup(cfg, g.live.Load(), nodeDoors(cfg.Node))
	if err != nil {
		return nil, err
	}
	return func() { g.put(s) }, nil
}

// NamedHostsOnly reports whether a site for "*" serves no host beyond those that sites and rooms
// name; see [Site.OpenHosts].
func (g *Gateway) NamedHostsOnly() bool { return g.live.Load().table.Closed() }

func (g *Gateway) put(s *setup) {
	old := g.live.Swap(s)
	if s.log != nil && s.table.Closed() && (old == nil || !old.table.Closed()) {
		s.log.Warn("rooms name hosts: other hosts get 421, although a site has hosts \"*\"; set open_hosts to serve them without a room")
	}
	if old != nil && old.void != s.void {
		close(old.void)
	}
	if old != nil && old.transport != s.transport {
		old.transport.CloseIdleConnections()
		old.fast.CloseIdleConnections()
	}
	select {
	case g.swapped <- struct{}{}:
	default:
	}
}

// ServeHTTP serves one request of a visitor.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.serve(w, r, nil) }

// Middleware returns a handler that serves the rooms of g before next: waiting visitors
// see the page, admitted requests and those outside every room go to next, with the proof
// in their header. Sites are not used and every host is served. Paths below /.well-known/anteroom/ have to come here, too.
// Give the server [Gateway.ConnContext], or requests that a new visitor sends at once are visitors of their own.
//
// The session of a WebSocket is renewed until the handler closes the connection that it has hijacked, or returns without one. When
// the session ends before, the context of the request ends, and the connection is closed. [Gateway.Drain] waits for WebSockets, and
// closes those that remain.
//
// A request that has passed g once passes it again as it is. Another gateway behind g needs another [Config.CookieName].
func (g *Gateway) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for before := handWriterIn(w); before != nil; before = handWriterIn(before.ResponseWriter) {
			if before.g == g {
				next.ServeHTTP(w, r)
				return
			}
			if isNamed(g.live.Load().cookieName, before.g.live.Load().cookieName) { // it has taken our tickets out of the request
				g.refuse(w, r, refusal{http.StatusLoopDetected, "Another gateway in front of this one owns its cookies: give this one a CookieName that does not begin with the other's", false})
				return
			}
		}
		g.serve(w, r, next)
	})
}

// serve takes a request as far as the gate. Next is nil for the reverse proxy.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s := g.live.Load()
	g.count.requests.Add(1)
	defer g.count.inFlight.Add(-1)
	if !g.enter(s, w, r) {
		return
	}
	if no := s.checkTarget(r); no.status != 0 {
		g.refuse(w, r, no)
		return
	}
	if t := g.exchange(s, w, r, next); t != nil {
		forget(w)
		t.begin()
		for t.step() {
		}
		t.end()
	}
}

// enter counts a request in flight, and refuses it if there are too many. The caller takes it back either way.
func (g *Gateway) enter(s *setup, w http.ResponseWriter, r *http.Request) bool {
	if g.count.inFlight.Add(1) <= s.maxInFlight {
		return true
	}
	g.refuse(w, r, refusal{http.StatusServiceUnavailable, "Too many requests right now; please try again", false})
	return false
}

// exchange takes the request through the gate. It returns the stream that has been opened, if one has.
func (g *Gateway) exchange(s *setup, w http.ResponseWriter, r *http.Request, next http.Handler) *stream {
	x := g.exchanges.Get().(*exchange)
	defer g.release(x)
	x.begin(s, w, r, next)
	if no := x.prepare(); no.status != 0 {
		g.refuse(w, r, no)
		return nil
	}
	if strings.HasPrefix(r.URL.Path, wellKnown) && x.serveWellKnown() {
		return nil
	}
	if x.room == nil {
		g.count.uncovered.Add(1)
		x.forward()
		return nil
	}
	x.gate()
	return x.stream
}

// forget tells the fast path that nobody looks at request and header any more. A server of others does not hear of it, nor
// does one whose writer somebody has wrapped.
func forget(w http.ResponseWriter) {
	if f, ok := w.(interface{ Forget() }); ok {
		f.Forget()
	}
}

// prepare makes the request fit to be looked at and finds its room and site.
func (x *exchange) prepare() refusal {
	s, r := x.s, x.r
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		x.conn, x.peer = c, c.peer
	} else {
		x.peer = peerOf(r.RemoteAddr)
	}
	x.trusted = len(s.trusted) > 0 && s.isTrusted(x.peer)
	no, foreign := x.checkHeaders()
	if no.status != 0 {
		return no
	}
	if foreign {
		x.g.count.foreignHops.Add(1)
		x.noteProxy()
	}
	x.client = x.peer
	if x.trusted {
		x.client = s.clientOf(r.Header, x.peer)
	}
	x.https = isHTTPS(r, x.trusted)
	for _, hops := range r.Header[hopHeader] {
		foreign = true
		if strings.Contains(hops, x.g.token) {
			return refusal{http.StatusLoopDetected, "Request loop: an origin of this gateway leads back to the gateway", false}
		}
	}
	x.shared = foreign || x.trusted || len(r.Header["Via"]) > 0
	fixFraming(x.w, r)
	x.websocket = fixUpgrade(r)
	if s.Tracer != nil {
		x.trace()
	}
	return s.find(x)
}

func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, no refusal) {
	g.count.refuse(no.status)
	if no.status == http.StatusMethodNotAllowed && w.Header()["Allow"] == nil {
		w.Header()["Allow"] = []string{strings.Join(methods, ", ")}
	}
	g.boundAnswer(w, r)
	no.answer(w, r)
}
