package sim

// Who comes back first after the origin has failed, and nobody else.

import (
	"fmt"
	"reflect"
	"time"

	"github.com/anteroom/anteroom"
)

// credits says that a visitor who left because the origin failed has to come back first, for the first time: at the site of the
// session, while the room gives credit, in a world in which nothing else goes wrong.
func (j *judge) credits(who int32, q *request, d *anteroom.Decision) bool {
	p, set := &j.w.people[who], j.set
	was, used := j.used[q.visit.Ticket.ID]
	busy := j.w.sc.Origin.PerSecond >= 100 // else few requests fail at a site, which may not notice
	return busy && j.undisturbed() && q.visit.Ticket.Lane != anteroom.LaneBack && d.Reason == anteroom.ReasonSessionOver &&
		p.habits&^streams == 0 && set.Protect && set.ProtectReturn > 0 && used && q.visit.Ticket.Arrival >= set.ResetAt &&
		was.site == j.w.nodes[q.node].site && j.w.now.Sub(j.w.origin.over) < set.ProtectReturn-time.Minute
}

// undisturbed says that nothing goes wrong in the world but with its origin. Roles may change hands.
func (j *judge) undisturbed() bool {
	faults := j.w.sc.Faults
	faults.Handovers = nil
	return len(j.w.sc.Changes) == 0 && reflect.ValueOf(faults).IsZero()
}

// credited looks at an answer: only a ticket that had a session when the origin failed comes back first.
func (j *judge) credited(who int32, q *request, d *anteroom.Decision) {
	// A waiting ticket may be of before the answer that said it has come back.
	if t := &q.visit.Ticket; d.Ticket.Lane == anteroom.LaneBack && t.Lane != anteroom.LaneBack && (q.visit.Fresh || t.Accepted() && j.undisturbed()) {
		was, used := j.used[q.visit.Ticket.ID]
		j.look(checkOrder, used && j.w.origin.failedSince(was.from), func() string {
			return fmt.Sprintf("visitor %d comes back first, and was not inside while the origin failed", who)
		})
	}
}

// comesBack looks at a turn: who comes back first lets nobody else pass.
func (j *judge) comesBack(who int32) {
	w := j.w
	p := &w.people[who]
	// The answer that admits brings the ticket of somebody who was inside.
	if p.ticket.Lane == anteroom.LaneBack || p.ticket.Accepted() || len(j.backs) == 0 || !j.ordered() {
		return
	}
	passed := int32(-1)
	for one, since := range j.backs {
		if q := &w.people[one]; w.now.Sub(since) > time.Second && q.marks&released == 0 && w.present(q) {
			passed = max(passed, one)
		}
	}
	j.look(checkOrder, passed < 0, func() string {
		return fmt.Sprintf("visitor %d gets a turn before visitor %d, who left because the origin failed", who, passed)
	})
}
