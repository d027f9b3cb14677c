package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom"
)

// edges are proxies in front of the nodes of a room that issues passes, one for each site: with a good pass they send a request
// straight to the origin, and the room does not hear of it. They know nothing but the time, by clocks that are off.
type edges struct {
	behind []time.Duration // clocks, by site; negative: ahead
	held   time.Duration
	lag    *rand.Rand

	// passes are the newest of each ticket. Whoever has a copy of the cookie has one of the pass.
	passes map[anteroom.ID]pass
	valid  map[anteroom.ID]anteroom.Time // until when, at the edge whose clock is furthest behind; also of passes that no browser got
	spent  map[anteroom.ID]bool          // of those, whose session was revoked
	ends   eventHeap                     // of valid; who indexes ids
	ids    []anteroom.ID
}

type pass struct{ issued, expires anteroom.Time }

// newEdges returns nil for a scenario whose room never issues passes.
func newEdges(w *world, seed uint64) *edges {
	held := w.sc.SeatDuration() - w.sc.SessionDuration
	for _, c := range w.sc.Changes {
		held = max(held, c.Settings.SeatDuration()-c.Settings.SessionDuration)
	}
	if held == 0 {
		return nil
	}
	e := &edges{held: held, lag: rand.New(rand.NewPCG(seed, 5)), passes: map[anteroom.ID]pass{}, valid: map[anteroom.ID]anteroom.Time{}, spent: map[anteroom.ID]bool{}}
	for range w.sc.Sites {
		e.behind = append(e.behind, time.Duration((2*e.lag.Float64()-1)*float64(anteroom.PassSkew)))
	}
	return e
}

// holds is how much longer than the session that the origin sees a seat may be held, for a pass that nobody uses.
func (e *edges) holds() time.Duration {
	if e == nil {
		return 0
	}
	return e.held
}

// lets says that the person's edge sends a request to the origin. In the second half of a pass pages are loaded through the
// room, which issues the next one.
func (e *edges) lets(w *world, p *person, page bool) bool {
	if e == nil {
		return false
	}
	if w.sc.Redeem > 0 { // the application lets in whoever has a token, and all that come here are those who get another one
		return false
	}
	one, ok := e.passes[p.ticket.ID]
	now := w.now.Add(-e.behind[p.site])
	if page && now.Sub(one.issued) >= one.expires.Sub(one.issued)/2 {
		return false
	}
	return ok && now < one.expires
}

// issue gives a visitor a pass with an answer, as the gateway does: within a session that is no longer on probation, when
// there is none or half of it is over. The time is that of the request.
func (e *edges) issue(w *world, q *request, d *anteroom.Decision) {
	t, set := &q.visit.Ticket, w.judge.set
	id := d.Ticket.ID
	if e == nil || d.Verdict != anteroom.Admit || q.visit.Fresh || !t.Accepted() || t.ID != id {
		return
	}
	life := set.PassLife()
	one, ok := e.passes[id]
	if life < time.Second || ok && set.Redeem == 0 && q.at.Sub(one.issued) < one.expires.Sub(one.issued)/2 {
		return
	}
	one = pass{q.at, anteroom.TimeOf(q.at.Add(life).Std().Truncate(time.Second))}
	w.judge.passIssued(id, one.expires)
	if lost := w.sc.Visitors.LostCookies; lost == 0 || e.lag.Float64() >= lost {
		e.passes[id] = one
	}
}

// byEdge lets a person's request through an edge, and says whether it went to the origin.
func (w *world) byEdge(who int32, page bool) bool {
	p := &w.people[who]
	if !w.edges.lets(w, p, page) {
		return false
	}
	w.judge.passed(who)
	if w.origin != nil {
		w.origin.serve(w.nodeOf(p.site))
	}
	return true
}

// passIssued counts the passes that are valid at any edge: each was issued for a session, so there are never more than sessions
// may be.
func (j *judge) passIssued(id anteroom.ID, expires anteroom.Time) {
	e := j.w.edges
	until := expires.Add(anteroom.PassSkew)
	if e.valid[id] < until {
		e.valid[id] = until
		e.ids = append(e.ids, id)
		e.ends.push(event{at: until, seq: uint64(len(e.ids)), who: int32(len(e.ids) - 1)})
	}
	e.expire(j.w.now)
	most := j.cap
	if j.loose() {
		most = max(most, j.looseCap)
	}
	j.look(checkCap, len(e.valid) <= most, func() string {
		return fmt.Sprintf("%d passes are valid, %d visitors may be active", len(e.valid), j.set.TotalActiveUsers)
	})
}

func (e *edges) expire(now anteroom.Time) {
	for len(e.ends) > 0 && e.ends[0].at <= now {
		over := e.ends.pop()
		if id := e.ids[over.who]; e.valid[id] == over.at {
			delete(e.valid, id)
			delete(e.spent, id)
		}
	}
}

// logsOut is the share of those who end their sessions when they leave.
const logsOut = 0.3

// logOut lets some visitors end their sessions: the origin revokes them, and an edge goes on accepting the pass. Tickets that
// another client has are left out: it may be let in once more by a door that has yet to hear of the end. So are the tokens of a bridge,
// for which such a door would not have a seat.
func (e *edges) logOut(w *world, who int32) {
	p := &w.people[who]
	if e == nil || w.sc.Redeem > 0 || p.state != inside || p.habits&(clone|clones|replays|parallel|noCookies) != 0 || p.marks&shared != 0 || p.pending > 0 || e.lag.Float64() >= logsOut {
		return
	}
	if id := p.ticket.ID; w.system.revoke(w.nodeOf(p.site), id) {
		w.judge.revoked(id)
	}
}

// seats is how many seats the origin may see used: by sessions, and by passes of those that were revoked.
func (j *judge) seats() int {
	if j.w.edges == nil {
		return j.active
	}
	j.w.edges.expire(j.w.now)
	return j.active + len(j.w.edges.spent)
}

// revoked ends a session.
func (j *judge) revoked(id anteroom.ID) {
	j.settle()
	i, alive := j.sessions[id]
	if !alive {
		return
	}
	e := j.w.edges
	if e.expire(j.w.now); e.valid[id] != 0 {
		e.spent[id] = true // before the session ends: its seat stays used
	}
	j.book[i].last = j.w.now.Add(-j.set.SessionDuration)
	all := j.expiry
	j.expiry = nil
	for _, one := range all {
		if one.who == i {
			one.at = j.w.now
		}
		j.expiry.push(one)
	}
	j.settle()
	j.level()
}

// passed notes a request that an edge has let in. The origin sees a session, whatever the room knows.
func (j *judge) passed(who int32) {
	j.settle()
	w := j.w
	id := w.people[who].ticket.ID
	if i, alive := j.sessions[id]; alive {
		j.book[i].last = w.now
	} else if was, used := j.used[id]; used {
		j.open(id, was.site, w.people[who].node, w.people[who].ticket.AcceptedAt, w.now)
	}
	j.capHolds()
	j.level()
}
