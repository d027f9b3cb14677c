package page

import (
	"time"

	"github.com/anteroom/anteroom"
)

// state is what the visitor is told in the first place: heading and lead of the page.
type state uint8

const (
	inLine    state = iota // in order of arrival; place and wait where known
	inDraw                 // everybody waiting has the same chance
	held                   // the operator lets nobody in for the moment
	longLine               // the forecast exceeds a day
	lineFull               // no place in line was to be had
	closed                 // nobody new is admitted; the page does not come back
	prequeue               // an event is about to start; the order of arrival counts then
	shuffle                // an event is about to start; chance decides then
	drained                // nobody new gets into the line; those in it are let in
	broken                 // admitted, and the origin does not answer; the page comes back by its header alone
	soldOut                // nothing is left of what visitors wait for
	chances                // there is no line; each visitor has a chance, again and again
	rejected               // nobody is admitted, and the places of those in line are kept; the page comes back
	numStates = iota
)

var stateWords = [numStates]string{"line", "draw", "held", "long", "full", "closed", "prequeue", "shuffle", "drained", "origin", "sold", "lottery", "rejected"}

// static reports whether the page says nothing that changes.
func (st state) static() bool { return st == closed || st == drained || st == broken || st == soldOut }

// waitsForStart reports whether the page counts down to the start of an event.
func (st state) waitsForStart() bool { return st == prequeue || st == shuffle }

func stateOf(d *anteroom.Decision) state {
	h := happeningOf(d)
	switch {
	case d.InForce != nil && d.InForce.SoldOut() && d.Verdict == anteroom.Refuse:
		return soldOut
	case d.Reason == anteroom.ReasonDraining:
		return drained
	case d.Reason == anteroom.ReasonOrigin && d.Ticket.Accepted():
		return broken
	case d.Method == anteroom.ByLottery:
		return chances
	case d.QueueAll, d.Reason == anteroom.ReasonOrigin:
		return held
	case h.prequeueing && d.Reason != anteroom.ReasonLineFull:
		if h.shuffle || d.Method == anteroom.Random {
			return shuffle
		}
		return prequeue
	case d.Method == anteroom.Reject && d.Verdict == anteroom.Refuse && d.Refresh > 0:
		return rejected
	case d.Method == anteroom.Reject:
		return closed
	case d.Reason == anteroom.ReasonLineFull:
		return lineFull
	case d.QueueIsFull:
		return longLine
	case d.Method == anteroom.Random:
		return inDraw
	}
	return inLine
}

// at returns the wall clock at a moment of room time.
func (v *View) at(t anteroom.Time) time.Time {
	if v.Now.IsZero() {
		return t.Std()
	}
	// The time between decision and page differs from request to request, which must not move the
	// same moment: how far the clocks are apart is rounded up.
	const step = 10 * time.Millisecond
	apart := v.Now.Sub(v.Decision.At.Std())
	return t.Std().Add((apart + step - 1).Truncate(step)).UTC()
}

// updated is the last counted attempt; an early check-in does not move it. It is rounded up, so
// that the next attempt is not early for a client that adds the interval to what it reads.
func (v *View) updated() time.Time {
	t := v.Decision.Ticket.Counted()
	if t == 0 {
		t = v.Decision.At
	}
	return v.at(t).Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// intervalSeconds is how long after the last counted attempt the next one counts. Unlike
// [refreshSeconds], it does not shrink when a visitor asks early. A room that rejects has none, as published: only the built-in
// page comes back.
func intervalSeconds(d *anteroom.Decision) int {
	if d.Verdict == anteroom.Refuse {
		return 0
	}
	if t := &d.Ticket; d.Refresh > 0 && stateOf(d) != soldOut && t.Counted() != 0 && t.Next > t.Counted() {
		return int((t.Next.Sub(t.Counted()) + time.Second - 1) / time.Second)
	}
	return refreshSeconds(d)
}

func refreshSeconds(d *anteroom.Decision) int {
	if stateOf(d) == soldOut {
		return 0 // nothing is left to come back for
	}
	return int((max(d.Refresh, 0) + time.Second - 1) / time.Second)
}

// minutes rounds up.
func minutes(d time.Duration) int64 {
	return int64((max(d, 0) + time.Minute - 1) / time.Minute)
}

// oneDay is the longest wait that is shown as a number, in minutes.
const oneDay = 24 * 60

// waitRange returns the bounds between which the wait is shown, in minutes; false when it
// is not known. For Random they are the quartiles. For an order they surround the forecast
// by a seventh below and a quarter above: waits turn out longer more often than shorter.
// Both are rounded so that they do not pretend precision: outwards below three hours, to
// the nearest hour above. A low of 0 reads "less than high".
//
// While there is no forecast they are what the limits say, where that is something: a high of 0 reads
// "at least low". People ahead may leave, so that the least is shown a seventh shorter too.
func waitRange(d *anteroom.Decision) (low, high int64, known bool) {
	random := d.Method == anteroom.Random
	if random && !d.WaitKnown || d.QueueAll || d.QueueIsFull || happeningOf(d).prequeueing || d.Verdict == anteroom.Refuse || d.Verdict == anteroom.Admit || d.Verdict == anteroom.Pass {
		return 0, 0, false
	}
	lo, hi := d.Wait25, d.Wait75
	switch {
	case random:
	case d.WaitKnown:
		lo, hi = d.WaitTime-d.WaitTime/7, d.WaitTime+d.WaitTime/4
	default:
		// A minute by the rate is a minute, though it began some moments ago.
		if lo > 0 {
			lo += 10*time.Second - lo/7
		}
		if minutes(hi) > oneDay {
			hi = 0
		}
	}
	low, high = int64(max(lo, 0)/time.Minute), minutes(hi)
	if d.WaitKnown {
		high = max(high, 1)
	}
	step := int64(1)
	switch most := max(low, high); {
	case most > 180:
		low, high = low+30, max(high-29, 0)
		step = 60
	case most > 60:
		step = 15
	case most > 20:
		step = 5
	}
	low, high = low/step*step, (high+step-1)/step*step
	if high == 0 {
		return low, 0, low > 0
	}
	if low < oneDay {
		high = min(high, oneDay) // beyond it the page says so in words
	}
	return min(low, high), high, true
}

// remaining is how many are left of what the visitor waits for; false where nobody has said, and while a page waits for a start.
func remaining(d *anteroom.Decision, st state) (n int, told bool) {
	if d.InForce == nil || st.static() || st.waitsForStart() {
		return 0, false
	}
	return d.InForce.Remaining.Count, d.InForce.Remaining.Told
}

// unlikely says that more people are ahead of the visitor than are left.
func unlikely(d *anteroom.Decision, left int) bool { return aheadKnown(d) && d.Ahead > left }
