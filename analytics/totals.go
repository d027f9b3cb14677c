package analytics

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
)

// Totals is what a process has seen of a room since its recorder was made, for monitoring. They only
// grow.
type Totals struct {
	Reasons        [mostReasons]int64 // decisions, by anteroom.Reason
	Bypassed       [bypasses]int64    // by Bypass
	TicketRefusals map[string]int64   // by their words
	// Spans are the distributions; InQueue and BetweenRefreshes are not kept here and empty.
	Spans  [Spans]BucketCounts
	counts [Metrics - gauges]int64
}

// Count returns one of the counts of the site: NewUsers, Joined, Abandoned, NoShows, Overtakes or Revoked.
func (t *Totals) Count(c Metric) int64 { return t.counts[c-gauges] }

// totals is what a Recorder keeps for Totals. What requests count is in the minutes, and is added
// here when a minute is forgotten, so that a request costs no more.
type totals struct {
	counts [Metrics - gauges]atomic.Int64
	spans  [Spans]atomic.Pointer[Buckets]

	forgotten *forgotten // guarded by the recorder's lock; nil until a minute was forgotten
}

// forgotten is what minutes that were forgotten had counted.
type forgotten struct {
	reasons  [mostReasons]int64
	bypassed [bypasses]int64
	refusals map[string]int64
}

func (t *totals) observe(s Span, all []time.Duration) {
	b := t.spans[s].Load()
	if b == nil {
		t.spans[s].CompareAndSwap(nil, new(Buckets))
		b = t.spans[s].Load()
	}
	for _, d := range all {
		b.Observe(d)
	}
}

// fold adds a minute that is forgotten. The caller holds the recorder's lock.
func (t *totals) fold(m *open) {
	if t.forgotten == nil {
		t.forgotten = &forgotten{}
	}
	t.forgotten.add(m)
}

func (t *forgotten) add(m *open) {
	for i := range m.reasons {
		t.reasons[i] += m.reasons[i].Load()
	}
	for i := range m.bypassed {
		t.bypassed[i] += m.bypassed[i].Load()
	}
	m.mu.Lock()
	t.refusals = added(t.refusals, m.refusals)
	m.mu.Unlock()
}

// Totals returns what was recorded so far; the zero Totals for a nil recorder.
func (r *Recorder) Totals() (out Totals) {
	if r == nil {
		return out
	}
	for i := range out.counts {
		out.counts[i] = r.totals.counts[i].Load()
	}
	for s := range out.Spans {
		out.Spans[s] = r.totals.spans[s].Load().Counts()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum forgotten
	if f := r.totals.forgotten; f != nil {
		sum = forgotten{f.reasons, f.bypassed, maps.Clone(f.refusals)}
	}
	for _, m := range r.open {
		sum.add(m)
	}
	out.Reasons, out.Bypassed, out.TicketRefusals = sum.reasons, sum.bypassed, sum.refusals
	return out
}

// Decisions is how many decisions had a reason.
func (t *Totals) Decisions(reason anteroom.Reason) int64 {
	if reason < mostReasons {
		return t.Reasons[reason]
	}
	return 0
}
