package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// Origin is the application behind the room: a server that answers so many requests per second,
// one after the other, and lets the others wait. The zero value answers everything at once, and
// nobody looks at it.
type Origin struct {
	PerSecond float64       // requests that it answers; 0: there is no such model
	Latency   time.Duration // of an answer that need not wait
	Timeout   time.Duration // after so long a request has failed; 0: 10 s
	Faults    []OriginFault
}

// OriginFault is a time in which the origin is not itself.
type OriginFault struct {
	At, For time.Duration
	What    string // one of originFaults
}

// originFaults are what can happen to an origin: it refuses connections; it answers half of what it
// does otherwise; it answers every other request with an error; it refuses connections and answers by turns
// of flapEvery.
var originFaults = []string{"dead", "slow", "failing", "flapping"}

const (
	// flapEvery is a turn of an origin that flaps.
	flapEvery = 7 * time.Second
	slowness  = 2

	// As the gateway does it (gateway/origins.go, origin_watch.go, proxy.go).
	ejectAfter  = 3
	probeEvery  = time.Second
	retryLeast  = 4 * time.Second
	retryMost   = 9 * time.Second
	inFlight    = 2 * time.Second
	originGives = 10 * time.Second // Origin.Timeout by default
)

// OriginNumbers are the outcome for the origin.
type OriginNumbers struct {
	Requests, Failed int
	// AdmittedDead are visitors who were admitted while it refused connections; Late are those of
	// them who were so more than a second after it had begun to.
	AdmittedDead, AdmittedDeadLate int
	// Recovered is how long after the end of the last fault the room admitted as many as its limit
	// again; negative when it never did.
	Recovered time.Duration
	// Back are visitors who left because it failed and had to wait when they came again, and BackWait is how long half
	// of them waited at most until they were admitted.
	Back     int
	BackWait time.Duration
}

// origin is the model of a run.
type origin struct {
	Origin
	w       *world
	backlog float64 // requests that wait at it
	at      anteroom.Time
	other   bool // of every two requests to one that fails
	nodes   []originSeen
	reduced bool // the room admits fewer on its account
	mixed   bool // some sites reach it, others do not
	numbers OriginNumbers
	pace    int
	over    anteroom.Time           // the end of the last fault; 0: there is none
	backAt  map[int32]anteroom.Time // when visitors who had left came again and had to wait
	waits   []time.Duration

	// since the last point
	took             []time.Duration
	requests, failed int
}

// originSeen is what a node's gateway saw.
type originSeen struct {
	inRow            int // connections that failed, since one succeeded
	requests, failed uint32
	took             []time.Duration
	looked, probed   anteroom.Time
	ejected          anteroom.Time // when inRow had become ejectAfter
	facts            engine.OriginFacts
}

func newOrigin(w *world) *origin {
	if w.sc.Origin.PerSecond == 0 {
		return nil
	}
	o := &origin{Origin: w.sc.Origin, w: w, at: epoch, nodes: make([]originSeen, len(w.nodes)), pace: w.sc.NewUsersPerMinute}
	o.Timeout = cmp.Or(o.Timeout, originGives)
	for _, f := range o.Faults {
		o.over = max(o.over, epoch.Add(f.At+f.For))
	}
	o.numbers.Recovered, o.backAt = -1, map[int32]anteroom.Time{}
	return o
}

// now is what happens to the origin, and since when.
func (o *origin) now() (what string, since anteroom.Time) {
	for _, f := range o.Faults {
		from := epoch.Add(f.At)
		if d := o.w.now.Sub(from); d >= 0 && d < f.For {
			if f.What == "flapping" {
				if d/flapEvery%2 == 1 {
					return "", 0
				}
				return "dead", from.Add(d / flapEvery * flapEvery)
			}
			return f.What, from
		}
	}
	return "", 0
}

// serve takes a request from a node, and returns how long the answer takes and whether it is one.
func (o *origin) serve(node int32) (took time.Duration, ok bool) {
	what, _ := o.now()
	speed := o.PerSecond
	if what == "slow" {
		speed /= slowness
	}
	o.backlog = max(0, o.backlog-speed*o.w.now.Sub(o.at).Seconds())
	o.at = o.w.now
	seen := &o.nodes[node]
	seen.requests++
	o.requests++
	o.numbers.Requests++
	ok = what != "dead"
	if ok {
		seen.inRow = 0
		o.backlog = min(o.backlog+1, o.Timeout.Seconds()*speed) // nobody waits any more for what is beyond
		took = o.Latency + time.Duration(o.backlog/speed*float64(time.Second))
		o.other = !o.other
		ok = took < o.Timeout && !(what == "failing" && o.other)
		seen.took, o.took = append(seen.took, took), append(o.took, took)
	} else {
		if seen.inRow++; seen.inRow == ejectAfter {
			seen.ejected = o.w.now
		}
		o.backlog = 0
	}
	if !ok {
		seen.failed++
		o.failed++
		o.numbers.Failed++
	}
	return took, ok
}

// entered counts a new visitor.
func (o *origin) entered() {
	if what, since := o.now(); what == "dead" {
		o.numbers.AdmittedDead++
		if o.w.now.Sub(since) > time.Second {
			o.numbers.AdmittedDeadLate++
		}
	}
}

// comesAgain notes that a visitor who had left because of an error has to wait.
func (o *origin) comesAgain(who int32) { o.backAt[who] = o.w.now }

// back notes that such a visitor has been admitted.
func (o *origin) back(who int32) {
	if at, waited := o.backAt[who]; waited {
		delete(o.backAt, who)
		o.waits = append(o.waits, o.w.now.Sub(at))
		slices.Sort(o.waits)
		o.numbers.Back, o.numbers.BackWait = len(o.waits), o.waits[len(o.waits)/2]
	}
}

// failedSince says that the origin has failed, so that rooms may notice, at some moment from one on.
func (o *origin) failedSince(since anteroom.Time) bool {
	return o != nil && slices.ContainsFunc(o.Faults, func(f OriginFault) bool {
		from := epoch.Add(f.At)
		return f.What != "slow" && o.w.now >= from && since <= from.Add(f.For+2*engine.PaceEvery+inFlight)
	})
}

// gaveUp is since when no node of a site has an origin that answers; 0: one has.
func (o *origin) gaveUp(site int16) (since anteroom.Time) {
	for i, n := range o.w.nodes {
		if n.site != site {
			continue
		}
		if o.nodes[i].inRow < ejectAfter {
			return 0
		}
		since = max(since, o.nodes[i].ejected)
	}
	return since
}

// sees is what a node's gateway tells the room. Call it ten times a second.
func (o *origin) sees(node int) engine.OriginFacts {
	s, now := &o.nodes[node], o.w.now
	if what, _ := o.now(); s.inRow >= ejectAfter && now.Sub(s.probed) >= probeEvery {
		s.probed = now
		if what != "dead" {
			s.inRow = 0
		}
	}
	if now.Sub(s.looked) >= engine.PaceEvery {
		s.looked = now
		s.facts = engine.OriginFacts{Requests: s.requests, Failed: s.failed, P95: tail(s.took)}
		s.requests, s.failed, s.took = 0, 0, s.took[:0]
	}
	s.facts.Known, s.facts.Down = true, s.inRow >= ejectAfter
	return s.facts
}

// tail is what one in twenty exceeds.
func tail(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*95/100]
}

// follows takes what the coordinator says. While its pace is below the limit, slots stay free on purpose;
// while some sites reach the origin and others do not, those who wait at the latter are passed over, and some calls
// are under way when that is over.
func (o *origin) follows(c *engine.Coordinator, at anteroom.Time) {
	j, now := o.w.judge, o.w.now
	pace, why := c.Pace()
	down, sites := c.OriginsDown(at)
	switch mixed := down > 0 && down < sites; {
	case mixed && !o.mixed:
		o.mixed = true
		j.order.faults++
	case !mixed && o.mixed:
		o.mixed = false
		j.order.faults--
		j.order.from = max(j.order.from, now.Add(inFlight))
	}
	o.pace = pace
	switch reduced := why != anteroom.PaceLimits; {
	case reduced && !o.reduced:
		o.reduced = true
		j.flow.faults++
	case !reduced && o.reduced:
		o.reduced = false
		j.flow.faults--
		j.flow.from, j.charged = max(j.flow.from, now.Add(settles)), now
	}
	if o.over != 0 && now >= o.over && !o.reduced && o.numbers.Recovered < 0 {
		o.numbers.Recovered = now.Sub(o.over)
	}
}

// point is what happened since the one before.
func (o *origin) point(p *Point) {
	if o == nil {
		return
	}
	p.Pace, p.Took, p.Failed = o.pace, tail(o.took), share(o.failed, o.requests)
	o.took, o.requests, o.failed = o.took[:0], 0, 0
}

func (o Origin) check(sc Scenario) error {
	if !fine(o.PerSecond) || o.Latency < 0 || o.Timeout < 0 || o.PerSecond == 0 && len(o.Faults) > 0 {
		return fmt.Errorf("scenario: an origin with faults answers more than 0 requests a second, and its times are not below 0")
	}
	for _, f := range o.Faults {
		if !slices.Contains(originFaults, f.What) || f.At < 0 || f.For < 0 || f.At > sc.Length {
			return fmt.Errorf("scenario: a fault %q of the origin at %v", f.What, f.At)
		}
	}
	return nil
}
