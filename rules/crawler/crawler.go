// Package crawler tells real search-engine crawlers from clients that only claim to be one.
//
// What a crawler says about itself is a claim. The proof is in the DNS, as search engines publish it: the reverse name
// of the address lies in a domain of the engine, and that name resolves to the address. The owner of the address
// controls the first, the engine controls the second, so both together cannot be forged. Names are looked up in the
// background and never while a request waits: until there is an answer, and whenever there is none, the client is a
// visitor like any other.
package crawler

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds and times of a verifier.
const (
	// maxVerified and maxImpostors are the addresses that are remembered as crawlers and as
	// those that are none. They are apart, so that a flood of the latter pushes out nobody.
	maxVerified  = 8_192
	maxImpostors = 8_192
	// maxPending are the addresses whose names are being looked up or wait for it, and
	// maxPendingPerNetwork those of one network: a /24 of IPv4, a /48 of IPv6.
	maxPending           = 256
	maxPendingPerNetwork = 4

	workers = 4
	// maxNames bounds the reverse names of one address that are looked up.
	maxNames = 4
	// lookupTime is for all look-ups about one address together.
	lookupTime = 5 * time.Second

	verifiedFor = 24 * time.Hour // at most, when it cannot be confirmed again
	confirmedIn = 6 * time.Hour  // from then on it is confirmed again, in the background
	impostorFor = 30 * time.Minute
	unknownFor  = time.Minute // the DNS did not answer
)

// Resolver asks the DNS. [net.Resolver] is one.
type Resolver interface {
	// LookupAddr returns the reverse names of an address. Those that it returns beside an
	// error count.
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	// LookupNetIP returns the addresses of a name. The network is "ip4" or "ip6".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Verifier remembers which addresses are crawlers. Make it with [New]; safe for concurrent
// use.
type Verifier struct {
	resolver Resolver
	queue    chan claim

	mu       sync.Mutex
	verified memory
	rejected memory // shown to be somebody else, or not answered a moment ago
	pending  map[claim]struct{}
	networks map[netip.Prefix]int // how many of pending are from there
	stats    Stats
}

// claim is an address that says it is an engine's.
type claim struct {
	addr   netip.Addr
	engine *engine
}

// Stats are a verifier's figures.
type Stats struct {
	Confirmed uint64 // look-ups that showed a crawler
	Refuted   uint64 // look-ups that showed somebody else
	Failed    uint64 // look-ups that the DNS did not answer
	Dropped   uint64 // claims that were not looked up because too many were
	Verified  int    // addresses known as crawlers
}

// New returns a verifier that asks r; nil means the resolver of the system. It looks names
// up while [Verifier.Run] does.
func New(r Resolver) *Verifier {
	if r == nil {
		r = net.DefaultResolver
	}
	return &Verifier{
		resolver: r, queue: make(chan claim, maxPending),
		verified: newMemory(maxVerified), rejected: newMemory(maxImpostors),
		pending: make(map[claim]struct{}), networks: make(map[netip.Prefix]int),
	}
}

// Verified reports whether the address is known to be a crawler of the search engine that
// the user agent names. It never waits. When nothing is known yet it says no and has the
// names looked up.
func (v *Verifier) Verified(addr netip.Addr, userAgent string) bool {
	e := claimed(userAgent)
	if e == nil || !isPublic(addr) {
		return false
	}
	c := claim{addr.Unmap().WithZone(""), e}
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	until := v.verified.until[c]
	known := now.Before(until)
	if !known || until.Sub(now) <= verifiedFor-confirmedIn {
		if !now.Before(v.rejected.until[c]) {
			v.look(c)
		}
	}
	return known
}

// isPublic reports whether the address can be that of a crawler. For private ones the DNS has
// nothing that an engine wrote.
func isPublic(a netip.Addr) bool { return a.IsGlobalUnicast() && !a.IsPrivate() }

// look has the names of an address looked up, unless they are already or there is too much to
// do. The caller holds the lock.
func (v *Verifier) look(c claim) {
	if _, ok := v.pending[c]; ok {
		return
	}
	n := networkOf(c.addr)
	if len(v.pending) >= maxPending || v.networks[n] >= maxPendingPerNetwork {
		v.stats.Dropped++
		return
	}
	v.pending[c] = struct{}{}
	v.networks[n]++
	v.queue <- c // has room: it is as large as pending can be
}

// networkOf is what one owner has.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits) // a is valid, and bits fit it
	return p
}

// Run looks names up until ctx ends. It does not wait for lookups in progress, which end within seconds: the system's
// resolver does not cancel a question without an answer.
func (v *Verifier) Run(ctx context.Context) {
	for range workers {
		go v.work(ctx)
	}
	<-ctx.Done()
}

func (v *Verifier) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-v.queue:
			v.settle(c, v.confirm(ctx, c))
		}
	}
}

// settle remembers what came of a look-up.
func (v *Verifier) settle(c claim, found answer) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.pending, c)
	if n := networkOf(c.addr); v.networks[n] > 1 {
		v.networks[n]--
	} else {
		delete(v.networks, n)
	}
	switch found {
	case confirmed:
		v.stats.Confirmed++
		v.rejected.drop(c)
		v.verified.put(c, now.Add(verifiedFor))
	case refuted:
		v.stats.Refuted++
		v.verified.drop(c)
		v.rejected.put(c, now.Add(impostorFor))
	case unanswered:
		// Who was a crawler stays one until that lapses.
		v.stats.Failed++
		v.rejected.put(c, now.Add(unknownFor))
	}
}

// Stats returns the figures.
func (v *Verifier) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats
	s.Verified = len(v.verified.until)
	return s
}

// memory remembers claims until a time, the newest so many.
type memory struct {
	until map[claim]time.Time
	order []claim // a ring, the oldest at next once it is full
	next  int
	most  int
}

func newMemory(most int) memory {
	return memory{until: make(map[claim]time.Time), most: most}
}

func (m *memory) put(c claim, until time.Time) {
	if _, known := m.until[c]; !known {
		if len(m.order) < m.most {
			m.order = append(m.order, c)
		} else {
			delete(m.until, m.order[m.next])
			m.order[m.next] = c
			m.next = (m.next + 1) % m.most
		}
	}
	m.until[c] = until
}

// drop forgets a claim. Its place in the ring stays, and may drop a later entry of the same
// claim early: then the names are looked up once more.
func (m *memory) drop(c claim) { delete(m.until, c) }

// answer is what the DNS says about a claim.
type answer int

const (
	unanswered answer = iota
	refuted
	confirmed
)

// confirm asks for the reverse names of the address and for the addresses of those names
// that lie in a domain of the engine.
func (v *Verifier) confirm(ctx context.Context, c claim) answer {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	names, err := v.resolver.LookupAddr(ctx, c.addr.String())
	found := answerOf(err)
	asked := 0
	for _, name := range names {
		name, ok := c.engine.owns(name)
		if !ok {
			continue
		}
		if asked++; asked > maxNames {
			break
		}
		network := "ip6"
		if c.addr.Is4() {
			network = "ip4"
		}
		addrs, err := v.resolver.LookupNetIP(ctx, network, name)
		for _, a := range addrs {
			if a.Unmap() == c.addr {
				return confirmed
			}
		}
		found = min(found, answerOf(err))
	}
	return found
}

// answerOf says what a look-up that confirmed nothing means: the DNS has answered, or has not.
func answerOf(err error) answer {
	if err == nil {
		return refuted
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return refuted
	}
	return unanswered
}
