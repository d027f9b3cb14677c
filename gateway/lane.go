package gateway

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
)

// Bounds on requests to the origin that wait because too many others are under way.
const (
	// laneTime is how long a request waits, at most, from its start.
	laneTime = 5 * time.Second
	// laneWaiting and laneLeast are how many wait: so many times as may be under way, and at least
	// so many. A browser's hundred parallel requests, or a class that opens a page together, wait
	// for moments instead of failing.
	laneWaiting = 4
	laneLeast   = 500
)

// lane is what is under way for one address, session or origin, and what waits behind it, in
// order.
type lane struct {
	under   int
	waiting []chan struct{} // closed when the turn has come
}

// patience is how long a request waits in lanes.
type patience struct {
	by    time.Time
	gone  <-chan struct{} // the visitor has left
	count *atomic.Int64   // of all requests that wait
}

// enter is called with mu held and returns without it. It reports whether the caller may go on,
// and then has to leave.
func (l *lane) enter(mu *sync.Mutex, most int, p patience) bool {
	if l.under < most {
		l.under++
		mu.Unlock()
		return true
	}
	if len(l.waiting) >= max(laneLeast, laneWaiting*most) {
		mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	mu.Unlock()
	p.count.Add(1)
	defer p.count.Add(-1)
	late := time.NewTimer(time.Until(p.by))
	defer late.Stop()
	select {
	case <-turn:
		return true
	case <-late.C:
	case <-p.gone:
	}
	mu.Lock()
	defer mu.Unlock()
	for i, one := range l.waiting {
		if one == turn {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return false
		}
	}
	return true // the turn came in the same moment
}

// leave is called with the lock held.
func (l *lane) leave() {
	if len(l.waiting) == 0 {
		l.under--
		return
	}
	close(l.waiting[0])
	l.waiting = l.waiting[1:]
}

func (l *lane) isEmpty() bool { return l.under == 0 && len(l.waiting) == 0 }

// lanes are those of all addresses, or of all sessions. There are as many as requests are in
// flight, at most.
type lanes[K comparable] struct {
	seed  maphash.Seed
	parts [64]struct {
		mu    sync.Mutex
		open  map[K]*lane
		spare []*lane
	}
}

func newLanes[K comparable]() *lanes[K] {
	l := &lanes[K]{seed: maphash.MakeSeed()}
	for i := range l.parts {
		l.parts[i].open = make(map[K]*lane)
	}
	return l
}

// enter is that of the key's lane.
func (l *lanes[K]) enter(key K, most int, wait patience) bool {
	p := &l.parts[maphash.Comparable(l.seed, key)%uint64(len(l.parts))]
	p.mu.Lock()
	one := p.open[key]
	if one == nil {
		if n := len(p.spare); n > 0 {
			one, p.spare = p.spare[n-1], p.spare[:n-1]
		} else {
			one = new(lane)
		}
		p.open[key] = one
	}
	return one.enter(&p.mu, most, wait)
}

func (l *lanes[K]) leave(key K) {
	p := &l.parts[maphash.Comparable(l.seed, key)%uint64(len(l.parts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.open[key]
	if one.leave(); one.isEmpty() {
		delete(p.open, key)
		one.waiting = nil
		p.spare = append(p.spare, one)
	}
}

// inLanes is what an exchange has entered.
type inLanes struct {
	address   netip.Addr // the zero one: none
	session   anteroom.ID
	bySession bool
	origin    *origin
}

// enterLanes waits until address, session and origin have room for one more request. When they
// do not in time, it answers the visitor, who keeps the place, and returns false.
func (x *exchange) enterLanes() bool {
	s, wait := x.s, x.patience(x.start.Add(laneTime))
	// A trusted proxy that names no client stands for many.
	if s.MaxPerAddress > 0 && x.client.IsValid() && !(x.trusted && x.client == x.peer) {
		key := addressKey(x.client)
		if !x.g.addresses.enter(key, s.MaxPerAddress, wait) {
			return x.turnBack(refusal{http.StatusTooManyRequests, "Too many requests from your address are under way; please try again", false})
		}
		x.in.address = key
	}
	if s.MaxPerSession > 0 && x.room != nil && x.decision.Verdict == anteroom.Admit {
		key := x.decision.Ticket.ID
		if !x.g.sessions.enter(key, s.MaxPerSession, wait) {
			return x.turnBack(refusal{http.StatusTooManyRequests, "Too many of your requests are under way; please try again", false})
		}
		x.in.session, x.in.bySession = key, true
	}
	if x.next == nil && !x.enterOrigin(wait) {
		return x.turnBack(refusal{http.StatusServiceUnavailable, "The website is busy right now; please try again", false})
	}
	return true
}

func (x *exchange) patience(by time.Time) patience {
	return patience{by, x.r.Context().Done(), &x.g.count.waiting}
}

// enterOrigin waits, in the lane of x.origin, for one of the site's connections to it, and
// leaves the lane in which the exchange was.
func (x *exchange) enterOrigin(wait patience) bool {
	x.leaveOrigin()
	most := x.site.maxConnections
	if most == 0 {
		return true
	}
	x.origin.mu.Lock()
	if !x.origin.lane.enter(&x.origin.mu, most, wait) {
		return false
	}
	x.in.origin = x.origin
	return true
}

func (x *exchange) leaveOrigin() {
	if o := x.in.origin; o != nil {
		o.mu.Lock()
		o.lane.leave()
		o.mu.Unlock()
		x.in.origin = nil
	}
}

func (x *exchange) leaveLanes() {
	x.leaveOrigin()
	if x.in.bySession {
		x.g.sessions.leave(x.in.session)
	}
	if x.in.address.IsValid() {
		x.g.addresses.leave(x.in.address)
	}
	x.in = inLanes{}
}

// turnBack refuses an admitted request that must wait too long.
func (x *exchange) turnBack(no refusal) bool {
	x.spareBody()
	h := x.neverStored()
	if x.room != nil && x.decision.Verdict == anteroom.Admit {
		x.giveTicket(h)
	}
	x.g.refuse(x.w, x.r, no)
	return false
}
