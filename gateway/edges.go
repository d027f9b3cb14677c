package gateway

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxEdges is how many edges a process remembers.
	maxEdges = 100
	// KindPass is the kind of edges that verify passes, beside EdgeKinds.
	KindPass = "pass"
)

// EdgeStatus is what a gateway has seen of an edge. Requests that an edge sends straight to the origin are not seen here.
type EdgeStatus struct {
	Kind string     // one of EdgeKinds, or KindPass
	Zone string     // whose passes it verifies
	Name string     // pass_edge of the rooms; empty for edges that verify with the public keys
	Peer netip.Addr // who asks; of passes it is not noted, because a CDN has too many addresses
	Seen time.Time
	// Questions of the last minute.
	Questions uint64
	// Passes are the requests of the last minute that came with a pass; index with the Pass constants.
	Passes [passStates]uint64
	// ClockOffset is how far its clock is ahead of ours; nil unless it said its time in the last minute. Only Envoy does, by gRPC.
	ClockOffset *time.Duration
}

// edgeKey is what tells edges apart.
type edgeKey struct {
	kind, zone, name string
	peer             netip.Addr
}

// seenEdges are those that were seen. Requests look theirs up without a lock.
type seenEdges struct {
	known atomic.Pointer[map[edgeKey]*edge] // replaced, never changed
	mu    sync.Mutex                        // held to replace it
	full  atomic.Int64                      // there was no place for another in this second
}

// edge counts what comes of one, and takes a glance at the counters every glanceEvery, as sight does.
type edge struct {
	counted [passStates + 1]atomic.Uint64 // passes by what was left, and questions
	second  atomic.Int64                  // when it was seen last
	due     atomic.Int64                  // the second of the next glance
	ahead   atomic.Int64                  // the largest offset of the clock since the last glance, or unknownOffset

	mu   sync.Mutex
	past []edgeGlance // of a little more than the last minute, the oldest first; guarded by mu
}

type edgeGlance struct {
	until   int64 // the second of the last thing that is counted in it
	counted [passStates + 1]uint64
	ahead   int64 // since the glance before
}

const (
	edgeQuestion  = passStates
	edgeMinute    = int64(time.Minute / time.Second)
	unknownOffset = math.MinInt64
)

// saw counts one thing that came of an edge: edgeQuestion, or what was left of a pass.
func (l *seenEdges) saw(key edgeKey, what int, at time.Time) *edge {
	now := at.Unix()
	e := l.find(key, now)
	if e == nil {
		return nil
	}
	if due := e.due.Load(); now >= due && e.due.CompareAndSwap(due, now+int64(glanceEvery/time.Second)) {
		e.glance(now)
	}
	if e.second.Load() < now {
		e.second.Store(now)
	}
	e.counted[what].Add(1)
	return e
}

// find returns an edge. Where there is no place for a new one, it takes that of the edge that was seen last of all, if that is more
// than a minute ago; otherwise it is nil, and nobody looks again in this second: else a thousand proxies would wait for each other here.
func (l *seenEdges) find(key edgeKey, now int64) *edge {
	if e := l.of(key); e != nil || l.full.Load() == now {
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.of(key); e != nil {
		return e
	}
	next := map[edgeKey]*edge{}
	if old := l.known.Load(); old != nil {
		next = maps.Clone(*old)
	}
	if len(next) >= maxEdges {
		oldest, since := edgeKey{}, now-edgeMinute
		for k, e := range next {
			if s := e.second.Load(); s < since {
				oldest, since = k, s
			}
		}
		if oldest == (edgeKey{}) {
			l.full.Store(now)
			return nil
		}
		delete(next, oldest)
	}
	e := &edge{}
	e.second.Store(now)
	e.ahead.Store(unknownOffset)
	next[key] = e
	l.known.Store(&next)
	return e
}

func (l *seenEdges) of(key edgeKey) *edge {
	if m := l.known.Load(); m != nil {
		return (*m)[key]
	}
	return nil
}

// glance notes the counters, before what comes now is counted.
func (e *edge) glance(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := edgeGlance{until: e.second.Load(), ahead: e.ahead.Swap(unknownOffset)}
	for i := range g.counted {
		g.counted[i] = e.counted[i].Load()
	}
	e.past = append(e.past, g)
	for len(e.past) > 1 && e.past[1].until <= now-edgeMinute { // the first is the one to count from
		e.past = slices.Delete(e.past, 0, 1)
	}
}

// said notes the time that an edge says it is. What it says arrives late and is never early, by a slow visitor above all: so
// the largest offset is the one that is least wrong.
func (e *edge) said(theirs, ours time.Time) {
	if e == nil || theirs.IsZero() {
		return
	}
	ahead := int64(theirs.Sub(ours))
	for old := e.ahead.Load(); ahead > old && !e.ahead.CompareAndSwap(old, ahead); {
		old = e.ahead.Load()
	}
}

// status is what came in the last minute, give or take glanceEvery.
func (e *edge) status(key edgeKey, now int64) EdgeStatus {
	s := EdgeStatus{Kind: key.kind, Zone: key.zone, Name: key.name, Peer: key.peer, Seen: time.Unix(e.second.Load(), 0)}
	if e.second.Load() <= now-edgeMinute {
		return s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var from edgeGlance
	ahead := e.ahead.Load()
	for i, g := range e.past {
		if i == 0 || g.until <= now-edgeMinute {
			from = g
		} else {
			ahead = max(ahead, g.ahead)
		}
	}
	for i := range s.Passes {
		s.Passes[i] = e.counted[i].Load() - from.counted[i]
	}
	s.Questions = e.counted[edgeQuestion].Load() - from.counted[edgeQuestion]
	if ahead != unknownOffset {
		s.ClockOffset = new(time.Duration(ahead))
	}
	return s
}

// Edges returns the edges that this process has seen since it was made, at most maxEdges.
func (g *Gateway) Edges() []EdgeStatus { return g.edges.all(time.Now()) }

func (l *seenEdges) all(at time.Time) []EdgeStatus {
	out := []EdgeStatus{}
	if m := l.known.Load(); m != nil {
		for key, e := range *m {
			out = append(out, e.status(key, at.Unix()))
		}
	}
	slices.SortFunc(out, func(a, b EdgeStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Name, b.Name), a.Peer.Compare(b.Peer))
	})
	return out
}
