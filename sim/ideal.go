package sim

import (
	"time"

	"slices"

	"github.com/anteroom/anteroom"
)

// ideal knows everything at once, everywhere: the moment a slot comes free the first in
// line is inside. It cannot be built; it shows what there is to gain.
type ideal struct {
	w    *world
	turn anteroom.ID // of the visitor who is being let in
	// again are people who wait once more after their session, in the order of coming back:
	// the judge's order is that of the first arrival.
	again []int32
}

func newIdeal(w *world) *ideal { return &ideal{w: w} }

func (x *ideal) request(r uint32) {
	w := x.w
	j := w.judge
	j.settle()
	q := &w.requests[r]
	t := q.visit.Ticket
	d := anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonSession, At: w.now, Ticket: t, SetCookie: true}
	_, alive := j.sessions[t.ID]
	_, again := j.used[t.ID]
	if !alive && again { // its session is over: a newcomer
		t = anteroom.Ticket{ID: q.visit.NewID}
		d.Ticket = t
	}
	switch {
	case alive:
	case j.slots() > 0 && (t.ID == x.turn || j.waitingNow == 0):
		d.Reason = anteroom.ReasonFreeSlot
		d.Ticket.AcceptedAt = w.now
	default:
		if !j.touch.has(q.person) && !slices.Contains(x.again, q.person) {
			x.again = append(x.again, q.person)
		}
		d.Verdict, d.Reason, d.Stream, d.Refresh = anteroom.Wait, anteroom.ReasonLine, true, idealRefresh
		d.Ticket.Arrival, d.Ticket.Next = w.now, w.now.Add(idealRefresh)
		d.Method = j.set.QueueingMethod
	}
	w.answered(r, d, false)
}

const idealRefresh = retryAfter * 10

func (x *ideal) closed(int32, int32)                     {}
func (x *ideal) revoke(int32, anteroom.ID) bool          { return false }
func (x *ideal) reported(int32, anteroom.Ticket, func()) {}
func (x *ideal) silence(int32) time.Duration             { return 0 }
func (x *ideal) roomTime(int32) (anteroom.Time, bool)    { return x.w.now, true }
func (x *ideal) event(event)                             {}
func (x *ideal) configure(anteroom.Settings)             {}
func (x *ideal) finish(*Numbers)                         {}
func (x *ideal) act(Act)                                 {}
func (x *ideal) inLine(anteroom.ID) bool                 { return true }
func (x *ideal) settled() bool                           { return true }

// next is when the next seat or rate slot comes free.
func (x *ideal) next() (at anteroom.Time, ok bool) {
	j := x.w.judge
	if j.touch.n == 0 && len(x.again) == 0 {
		return 0, false
	}
	if j.slots() > 0 {
		return x.w.now, true
	}
	if len(j.expiry) > 0 {
		at, ok = j.expiry[0].at, true
	}
	if j.recent.n > 0 {
		if t := j.recent.first().Add(rateWindow); !ok || t < at {
			at, ok = t, true
		}
	}
	return at, ok
}

func (x *ideal) advance() {
	w := x.w
	j := w.judge
	j.settle()
	for j.slots() > 0 && (j.touch.n > 0 || len(x.again) > 0) {
		var who int32
		switch {
		case j.touch.n == 0:
			who, x.again = x.again[0], x.again[1:]
		case j.set.QueueingMethod == anteroom.Random:
			who = j.alive.kth(int32(w.chance.IntN(j.touch.n)))
		default:
			who = j.touch.next(0)
		}
		p := &w.people[who]
		if p.state == waiting && p.marks&asleep == 0 && !p.ticket.ID.IsZero() {
			x.turn = p.ticket.ID
			w.send(who, true)
			x.turn = anteroom.ID{}
		}
		if w.people[who].state != inside { // asleep, or without a cookie: nobody can be told
			j.inTouch(who, false)
		}
	}
}
