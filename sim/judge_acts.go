package sim

// What operators do by hand, as visitors see it.

import (
	"fmt"
	"math"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// shuffled is the order that anybody can compute after a shuffle.
type shuffled struct {
	from  anteroom.Time // when the places were given
	heard anteroom.Time // when everybody knows, in room time
	ahead time.Duration // how far that is ahead of the time here
	place map[int32]int
}

// shuffleHeard is how long it takes until everybody has heard of a shuffle.
const shuffleHeard = 3 * time.Second

// shuffles takes what is published of a shuffle.
func (j *judge) shuffles(now anteroom.Time, d *draw) {
	j.shuffled = &shuffled{from: j.w.now, heard: now.Add(shuffleHeard), ahead: now.Sub(j.w.now), place: map[int32]int{}}
	for place, i := range engine.Order(engine.ShuffleKey(d.seed, engine.Entries(d.sh.IDs)), d.sh.IDs) {
		who, ok := j.w.byID[d.sh.IDs[i]]
		if _, again := j.shuffled.place[who]; ok && !again { // whoever has lost a cookie may have two: the better one counts
			j.shuffled.place[who] = place
			j.w.trace.end(appendNumber(appendNumber(j.w.trace.line(j.w.now, "shuffled"), "v", int64(who)), "place ", int64(place)))
		}
	}
	for i := j.touch.next(0); i >= 0 && j.flows(); i = j.touch.next(i + 1) {
		p := &j.w.people[i]
		if p.marks&listening != 0 && j.w.now.Sub(p.stream) > settles && p.pending == 0 {
			_, took := j.shuffled.place[i]
			j.look(checkOrder, took, func() string { return fmt.Sprintf("visitor %d waits with a stream and is not in the shuffle", i) })
		}
	}
}

// placeOf is a visitor's place by the shuffle; whoever did not take part is behind all who did.
func (s *shuffled) placeOf(who int32) int {
	if place, took := s.place[who]; took {
		return place
	}
	return math.MaxInt
}

// before says that a visitor has a better place by the shuffle than another one, or neither has one and it came before.
func (s *shuffled) before(who, other int32, people []person) bool {
	a, b := s.placeOf(who), s.placeOf(other)
	return a < b || a == b && max(people[who].arrived, s.from).Add(time.Second) < max(people[other].arrived, s.from)
}

// seesPlace holds what somebody who took part is shown to the order: nobody is further back, nor before those who are in front and
// have been here all the time.
func (j *judge) seesPlace(who int32, d *anteroom.Decision) {
	s, w := j.shuffled, j.w
	if s == nil || !d.AheadKnown || j.disturbs || !j.flows() || w.now.Sub(s.from) < 5*time.Second || j.set.QueueingMethod != anteroom.FIFO {
		return
	}
	place, took := s.place[who]
	if p := &w.people[who]; !took || p.entered != 0 || p.ticket.ID != d.Ticket.ID || p.marks&(anew|forgetful) != 0 {
		return
	}
	j.look(checkOrder, d.Ahead <= place, func() string {
		return fmt.Sprintf("visitor %d has place %d by the shuffle, and sees %d people ahead", who, place, d.Ahead)
	})
	ahead := 0
	for i := j.touch.next(0); i >= 0; i = j.touch.next(i + 1) {
		if o := &w.people[i]; o.habits&^streams == 0 && o.marks&listening != 0 && o.stream < s.from && s.before(i, who, w.people) {
			ahead++
		}
	}
	j.look(checkOrder, d.Ahead >= ahead, func() string {
		return fmt.Sprintf("visitor %d sees %d people ahead, and %d with better places by the shuffle wait with a stream", who, d.Ahead, ahead)
	})
}

// givesUp notes who gives up the place, and holds later answers to that: a copy of the ticket is of no use.
func (j *judge) givesUp(who int32, q *request, d *anteroom.Decision) {
	if d.Verdict == anteroom.Admit && d.Reason != anteroom.ReasonSession && d.Reason != anteroom.ReasonAdopted {
		j.notLeft(d.Ticket.ID, "somebody is let in by")
	}
	if d.Reason == anteroom.ReasonLeft && j.flows() && j.w.system.silence(q.node) < time.Second { // a node that is out of touch can tell nobody
		j.void[q.visit.Ticket.ID] = voided{j.w.now, j.w.nodes[q.node].site}
	}
}

// voided is when a place ended before its turn, and the site where it was given up; -1: it was reset.
type voided struct {
	at   anteroom.Time
	site int16
}

// notLeft says that a ticket's place has not been given up or reset, but perhaps a moment ago.
func (j *judge) notLeft(id anteroom.ID, what string) {
	if v, left := j.void[id]; left && j.flows() && (v.site < 0 || j.forgot[v.site] < v.at) {
		j.look(checkBooks, j.w.now.Sub(v.at) < time.Second, func() string {
			return fmt.Sprintf("%s a ticket (%s) whose place was given up or reset %v ago", what, id.Reference(), j.w.now.Sub(v.at))
		})
	}
}

// copiedElsewhere says that a ticket is used at another site than the one where its place was given up. Doors believe a cookie of
// somebody far back in line, so that the place seems to be there until its visitor comes to the front.
func (j *judge) copiedElsewhere(id anteroom.ID) bool {
	v, left := j.void[id]
	who, used := j.w.byID[id]
	return left && used && v.site >= 0 && (j.w.people[who].site != v.site || j.w.people[who].marks&shared != 0)
}

// resets notes that nobody who waits has a place any more. Which one they get by coming back is not looked at.
func (j *judge) resets() {
	clear(j.backs)
	for who := range j.w.people {
		if p := &j.w.people[who]; p.state == coming || p.state == waiting {
			j.comesLate(int32(who))
		}
	}
	for id, who := range j.w.byID {
		if j.w.people[who].state == waiting && j.flows() {
			j.void[id] = voided{j.w.now, -1}
		}
	}
}

// calls notes turns that the operator gives.
func (j *judge) calls(ids []anteroom.ID) {
	for _, id := range ids {
		j.byHand[id] = j.w.now
	}
}

// losesTurn holds a site that withdraws a turn to that: one that the operator gave stands while its visitor is there.
func (j *judge) losesTurn(d engine.Departure) {
	who, ok := j.w.byID[d.ID]
	if _, called := j.byHand[d.ID]; ok && called && d.Why == engine.Declined && j.set.QueueAll && j.flows() {
		p := &j.w.people[who]
		j.look(checkOrder, p.habits&^streams != 0 || p.marks&listening == 0, func() string {
			return fmt.Sprintf("visitor %d is called by the operator, and the turn is withdrawn", who)
		})
	}
}

// keepsTurn holds an answer to a turn that the operator gave: it stands until its visitor comes, also while the room is shut.
// A place that goes to another site goes there without the turn.
func (j *judge) keepsTurn(who int32, q *request, d *anteroom.Decision) {
	at, called := j.byHand[q.visit.Ticket.ID]
	if p := &j.w.people[who]; called && p.habits&roams == 0 && p.marks&shared == 0 && j.flows() && j.set.QueueAll && q.at.Sub(at) > 2*time.Second && d.Ticket.ID == q.visit.Ticket.ID {
		j.look(checkOrder, false, func() string {
			return fmt.Sprintf("visitor %d waits (%v) %v after the operator called", who, d.Reason, j.w.now.Sub(at))
		})
	}
}

// holds notes that nobody new may be let in, as nothing can be recorded, or may again.
func (j *judge) holds(on bool) {
	j.settle()
	j.onHold = on
	if j.shutAt = 0; on || shut(j.set) {
		j.shutAt = j.w.now
	}
	j.level()
}
