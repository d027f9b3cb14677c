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
	// limiterTime is how long a request waits, at most, from its start.
	limiterTime = 5 * time.Second
	// limiterLeast is how many wait, or as many as may be under way if that is more. A browser's hundred parallel requests, or a class
	// that opens a page together, wait for moments instead of failing; one address does not take half of all that a process serves.
	limiterLeast = 500
)

// limiter is what is under way for one address, session or origin, and what waits behind it, in
// order.
type limiter struct {
	under   int
	waiting []chan struct{} // closed when the turn has come
}

// patience is how long a request waits at limiters.
type patience struct {
	by    time.Time
	gone  <-chan struct{} // the visitor has left
	count *atomic.Int64   // of all requests that wait
	clock *time.Time      // a reading that is old after a wait, and becomes zero; nil: there is none
}

// enter is called with mu held and returns without it. It reports whether the caller may go on,
// and then has to leave.
func (l *limiter) enter(mu *sync.Mutex, most int, p patience) bool {
	if l.under < most {
		l.under++
		mu.Unlock()
		return true
	}
	if len(l.waiting) >= max(limiterLeast, most) {
		mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	mu.Unlock()
	if p.clock != nil {
		*p.clock = time.Time{}
	}
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
func (l *limiter) leave() {
	if len(l.waiting) == 0 {
		l.under--
		return
	}
	close(l.waiting[0])
	l.waiting = l.waiting[1:]
}

func (l *limiter) isEmpty() bool { return l.under == 0 && len(l.waiting) == 0 }

// limiters are those of all addresses, or of all sessions. There are as many as requests are in
// flight, at most.
type limiters[K comparable] struct {
	seed  maphash.Seed
	parts [64]struct {
		mu    sync.Mutex
		open  map[K]*limiter
		spare []*limiter
	}
}

func newLimiters[K comparable]() *limiters[K] {
	l := &limiters[K]{seed: maphash.MakeSeed()}
	for i := range l.parts {
		l.parts[i].open = make(map[K]*limiter)
	}
	return l
}

// enter is that of the key's limiter.
func (l *limiters[K]) enter(key K, most int, wait patience) bool {
	p := &l.parts[maphash.Comparable(l.seed, key)%uint64(len(l.parts))]
	p.mu.Lock()
	one := p.open[key]
	if one == nil {
		if n := len(p.spare); n > 0 {
			one, p.spare = p.spare[n-1], p.spare[:n-1]
		} else {
			one = new(limiter)
		}
		p.open[key] = one
	}
	return one.enter(&p.mu, most, wait)
}

func (l *limiters[K]) leave(key K) {
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

// inLimiters is what an exchange has entered.
type inLimiters struct {
	address   netip.Addr // the zero one: none
	session   anteroom.ID
	bySession bool
	origin    *origin
}

// clientIsMany reports whether the client's address is that of a trusted proxy that names no client: it stands for many.
func (x *exchange) clientIsMany() bool { return x.trusted && x.client == x.peer }

// enterLimiters waits until address, session and origin have room for one more request. When they
// do not in time, it answers the visitor, who keeps the place, and returns false.
func (x *exchange) enterLimiters() bool {
	s, wait := x.s, x.patience(x.start.Add(limiterTime))
	if s.MaxPerAddress > 0 && x.client.IsValid() && !x.clientIsMany() {
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
	return patience{by, x.r.Context().Done(), &x.g.count.waiting, &x.clock}
}

// enterOrigin waits, at the limiter of x.origin, for one of the site's connections to it, and
// leaves the one at which the exchange was.
func (x *exchange) enterOrigin(wait patience) bool {
	x.leaveOrigin()
	most := x.site.maxConnections
	if most == 0 {
		return true
	}
	x.origin.mu.Lock()
	if !x.origin.limiter.enter(&x.origin.mu, most, wait) {
		return false
	}
	x.in.origin = x.origin
	return true
}

func (x *exchange) leaveOrigin() {
	if o := x.in.origin; o != nil {
		o.mu.Lock()
		o.limiter.leave()
		o.mu.Unlock()
		x.in.origin = nil
	}
}

func (x *exchange) leaveLimiters() {
	x.leaveOrigin()
	if x.in.bySession {
		x.g.sessions.leave(x.in.session)
	}
	if x.in.address.IsValid() {
		x.g.addresses.leave(x.in.address)
	}
	x.in = inLimiters{}
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
