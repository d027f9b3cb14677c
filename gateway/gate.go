package gateway

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// gate asks the room about the request and does what it says, unless the request bypasses the
// room.
func (x *exchange) gate() {
	r, rm := x.r, x.room
	ask, seen := askOf(r.URL.RawQuery)
	if ask != askReceipt { // which is about a draw that was, whoever may pass now
		if reason, yes := x.passes(ask); yes {
			if ask != askNone {
				x.answerPassing(ask)
				return
			}
			x.bypass(reason)
			return
		}
		if ask != askNone && rm.Shadow { // the page is from before
			x.answerPassing(ask)
			return
		}
	}
	if ask == askNone && isPreflight(r) {
		if !x.s.preflight.spend(x.client, x.s.now()) {
			x.g.refuse(x.w, r, refusal{http.StatusTooManyRequests, "Too many preflight requests", false})
			return
		}
		x.g.count.preflights.Add(1)
		x.forward()
		return
	}
	if rm.session != nil {
		x.gateSession()
		return
	}
	v := x.visit()
	if rm.accounts != nil && x.account(&v, ask) {
		return
	}
	if x.moved && v.Fresh && x.tellMoved(ask) {
		return
	}
	v.Lane = max(v.Lane, x.laneOf(&v, ask))
	v.Uninvited = rm.invited && !rm.mark.Has(v.Ticket.ID)
	if ask != askNone {
		if t := &v.Ticket; rm.LotteryPercent == 0 && seen >= 0 && !v.Fresh && !t.Accepted() && (t.Told == 0 || uint32(seen) < t.Told-1) {
			t.Told = uint32(seen) + 1
		}
		x.answerAsk(ask, v, v.Fresh && seen != seenNothing)
		return
	}
	x.decide(v)
	if !x.signed.former.ID.IsZero() && !v.NoJoin && !v.NoClaim {
		x.merge(v)
		x.clock = time.Time{}
	}
	switch x.decision.Verdict {
	case anteroom.Admit, anteroom.Pass:
		x.forward()
	case anteroom.Wait, anteroom.Refuse:
		if rm.Shadow {
			x.bypass(analytics.InShadow)
			return
		}
		if rm.isUninvited(&x.decision) {
			is := page.Uninvited
			if v.Ticket.Accepted() { // an invitation is for one session
				is = page.UninvitedAgain
			}
			x.askCode("", is, false)
			return
		}
		x.turnAway(rm, false)
	}
}

// decide asks the door and books the answer.
func (x *exchange) decide(v anteroom.Visit) anteroom.Decision {
	ctx := x.r.Context()
	if x.span != nil {
		ctx = node.WithHeld(ctx, func(d time.Duration) { x.held = d })
	}
	x.decision = x.room.door.Decide(ctx, v)
	x.keepMoved(&v)
	x.countNetworks(&v)
	x.kept(&v)
	x.decided()
	return x.decision
}

// keepMoved gives the ticket back what no site is told of.
func (x *exchange) keepMoved(v *anteroom.Visit) {
	if t := &x.decision.Ticket; t.ID == v.Ticket.ID {
		t.Moved = v.Ticket.Moved
	}
}

func (x *exchange) decided() {
	x.keepPlace()
	took := time.Since(x.start) // half of time.Now, which reads two clocks
	x.clock = x.start.Add(took)
	x.g.count.gate.Observe(took)
	if v := x.verdict(); v != nil {
		v.decided(x.decision.Verdict)
	}
	if x.span != nil {
		x.traceGate(took)
	}
	x.logDecision()
}

// visit opens the tickets and says what admission has to know of the request.
func (x *exchange) visit() anteroom.Visit {
	s, r, rm := x.s, x.r, x.room
	old := uint64(0) // bit i: tickets[i] was sealed by an old key
	eachCookie(x.cookies, rm.scope.Name, func(value string) {
		t, stale, result := x.open(value)
		if result != ticket.OK {
			if result != ticket.Absent {
				rm.door.Recorder().RefusedTicket(result.String())
			}
			return
		}
		if x.leftBehind(&t) {
			x.moved = true
			return
		}
		if i := len(x.tickets); stale && i < 64 {
			old |= 1 << i
		}
		x.tickets = append(x.tickets, t)
	})
	if rm.passes != nil {
		x.readPass()
	}
	v := anteroom.Visit{
		NewID:   x.ids.Next(),
		NoHold:  r.Method != http.MethodGet && r.Method != http.MethodHead || rm.Shadow,
		NoClaim: isPrefetch(r),
		NoJoin:  x.websocket || isSubresource(r) || x.pageElsewhere(),
	}
	if rm.bind {
		v.Bind = s.Keys.BindAddr(x.client)
	}
	switch len(x.tickets) {
	case 0:
		if t, ok := x.formerPlace(); ok && !x.moved && !x.leftBehind(&t) {
			t.Bind, v.Ticket, v.Networks = v.Bind, t, x.networks()
			x.askedOf(&v)
			return v
		}
		v.Fresh = true
		v.Ticket = anteroom.Ticket{ID: x.newcomer(v.NewID), Bind: v.Bind}
		v.Networks = x.networks()
		x.askedOf(&v)
		return v
	case 1:
		x.presented = x.tickets[0]
		x.stale = old != 0
	default:
		// None usable: any of them says why, and the first is as good as another.
		i := max(rm.door.Best(x.tickets), 0)
		x.presented = x.tickets[i]
		x.stale = i < 64 && old>>i&1 != 0
	}
	v.Ticket = x.presented
	if !v.Ticket.Accepted() || rm.bind { // it may turn out to be worth nothing
		v.Networks = x.networks()
	}
	x.askedOf(&v)
	return v
}

// networks are those of the client, by which first requests are bounded; none where they are not: of a proxy that has not said whose
// request it is, and of clients in the room's list.
func (x *exchange) networks() (none anteroom.Networks) {
	if x.room.unbounded.Has(x.client, x.s.Geo) {
		return none
	}
	return x.s.networks(x.client)
}

func (s *setup) networks(client netip.Addr) (none anteroom.Networks) {
	if s.isTrusted(client) {
		return none
	}
	return s.Keys.Networks(client)
}

// Client returns the address of the client that sent a request, as a trusted proxy names it.
func (g *Gateway) Client(r *http.Request) netip.Addr {
	s, client := g.live.Load(), peerOf(r.RemoteAddr)
	if s.isTrusted(client) {
		client = s.clientOf(r.Header, client)
	}
	return client
}

// Networks returns the networks of the client that sent a request: none behind a trusted proxy that has not named it.
func (g *Gateway) Networks(r *http.Request) anteroom.Networks {
	return g.live.Load().networks(g.Client(r))
}

// open opens a cookie, or remembers what came of it on this connection. Only sessions are
// remembered: who waits brings another value each time.
func (x *exchange) open(value string) (t anteroom.Ticket, stale bool, result ticket.Result) {
	by := x.room.sealer
	if o := x.conn.opened(by, value); o != nil {
		return o.ticket, o.stale, ticket.OK
	}
	t, result = by.Open(value)
	if result == ticket.OK && t.Accepted() {
		// A waiting ticket is sealed anew at every check-in anyway.
		stale = by.Stale(value)
		if !x.shared {
			x.conn.remember(openedTicket{sealer: by, value: value, ticket: t, stale: stale})
		}
	}
	return t, stale, result
}

// newcomer returns the identity of a visitor without a ticket: id, or that of a request
// on the same connection a moment ago.
func (x *exchange) newcomer(id anteroom.ID) anteroom.ID {
	if x.conn == nil || x.shared {
		return id
	}
	id, many := x.conn.newcomer(x.s.now(), x.userAgent(), id)
	if many {
		x.noteProxy()
	}
	return id
}
