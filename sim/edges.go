package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// edges are proxies in front of the nodes of a room that issues passes, one for each site: with a good pass they send a request
// straight to the origin, and the room does not hear of it, or only from a report that comes later or never. They know nothing but the
// time, by clocks that are off.
type edges struct {
	behind []time.Duration // clocks, by site; negative: ahead
	held   time.Duration
	lag    *rand.Rand
	lost   []float64 // where edges report: the share of an edge's reports that do not arrive, by site

	// passes are the newest of each ticket. Whoever has a copy of the cookie has one of the pass.
	passes map[anteroom.ID]pass
	valid  map[anteroom.ID]anteroom.Time // until when, at the edge whose clock is furthest behind; also of passes that no browser got
	spent  map[anteroom.ID]bool          // of those, whose session was revoked
	seats  []heldSeat                    // that are held still, in the order in which they come free
	ends   eventHeap                     // of valid; who indexes ids
	ids    []anteroom.ID
}

type pass struct{ issued, expires anteroom.Time }

// newEdges returns nil for a scenario whose room never issues passes.
func newEdges(w *world, seed uint64) *edges {
	held := heldMore(w.sc.Settings)
	for _, c := range w.sc.Changes {
		held = max(held, heldMore(c.Settings))
	}
	if held == 0 {
		return nil
	}
	e := &edges{held: held, lag: rand.New(rand.NewPCG(seed, 5)), passes: map[anteroom.ID]pass{}, valid: map[anteroom.ID]anteroom.Time{}, spent: map[anteroom.ID]bool{}}
	for range w.sc.Sites {
		e.behind = append(e.behind, time.Duration((2*e.lag.Float64()-1)*float64(anteroom.PassSkew)))
	}
	if w.sc.PassReported {
		for range w.sc.Sites {
			e.lost = append(e.lost, []float64{0, 0.2, 1}[e.lag.IntN(3)])
		}
	}
	return e
}

// heldMore is how much longer than the session that the origin sees a seat may be held. Where edges report, that is for as long as a
// report takes, and for the passes of a session that was revoked.
func heldMore(s anteroom.Settings) time.Duration {
	more := s.SeatDuration() - s.SessionDuration
	if s.PassReported && s.PassLife() > 0 && !s.DisableSessionRenewal {
		more = max(more, anteroom.MaxTouchAge, s.PassLife()+anteroom.PassSkew)
	}
	return more
}

// heldSeat is the seat of a session that is over for all that the origin sees. It is held for a pass that may still be used, and
// nobody else can have it.
type heldSeat struct {
	id    anteroom.ID
	until anteroom.Time
}

// hold notes that the origin sees a session no more.
func (e *edges) hold(id anteroom.ID, over anteroom.Time) {
	if e == nil || e.held == 0 {
		return
	}
	until := over.Add(e.held)
	if n := len(e.seats); n > 0 {
		until = max(until, e.seats[n-1].until)
	}
	e.seats = append(e.seats, heldSeat{id, until})
}

// resume notes that the session goes on: its seat was held for that, and no other has become fewer.
func (e *edges) resume(id anteroom.ID) {
	if e == nil {
		return
	}
	if i := slices.IndexFunc(e.seats, func(s heldSeat) bool { return s.id == id }); i >= 0 {
		e.seats = slices.Delete(e.seats, i, i+1)
	}
}

// holds is how many seats are held for passes.
func (e *edges) holds() int {
	if e == nil {
		return 0
	}
	return len(e.seats)
}

// frees is when the next of these seats comes free.
func (e *edges) frees() (at anteroom.Time, ok bool) {
	if e.holds() == 0 {
		return 0, false
	}
	return e.seats[0].until, true
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
	w.edges.report(w, p)
	if w.origin != nil {
		w.origin.serve(w.nodeOf(p.site))
	}
	return true
}

// report has the person's edge tell a node of the request, after a while, if it tells anybody.
func (e *edges) report(w *world, p *person) {
	if e.lost == nil || e.lag.Float64() < e.lost[p.site] {
		return
	}
	t, at, site := p.ticket, w.now, p.site
	w.later(time.Duration(e.lag.Float64()*float64(anteroom.MaxTouchAge)), func() {
		w.system.reported(w.nodeOf(site), t, func() { w.judge.reported(&t, at) })
	})
}

// reported notes a report that was taken: the room knows of the request now.
func (j *judge) reported(t *anteroom.Ticket, at anteroom.Time) {
	j.settle()
	i, alive := j.sessions[t.ID]
	if older, two := j.twins[t.ID]; two && j.book[older].accepted == t.AcceptedAt {
		i = older
	}
	if alive {
		j.book[i].last = max(j.book[i].last, at)
	}
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

// edgeLogsOut is the share of those who end their sessions when they leave, where edges let visitors in.
const edgeLogsOut = 0.3

// logOut lets some visitors end their sessions: the origin revokes them, and an edge goes on accepting the pass. Tickets that
// another client has are left out: it may be let in once more by a door that has yet to hear of the end. So are the tokens of a bridge,
// for which such a door would not have a seat. Where there are no edges, the cookie is used again later.
func (w *world) logOut(who int32) {
	p, e := &w.people[who], w.edges
	if p.state != inside || p.habits&(clone|clones|replays|parallel|noCookies) != 0 || p.marks&shared != 0 || p.pending > 0 {
		return
	}
	if e == nil && p.habits&logsOut == 0 || e != nil && (w.sc.Redeem > 0 || e.lag.Float64() >= edgeLogsOut) {
		return
	}
	node, t := w.nodeOf(p.site), p.ticket
	if !w.system.revoke(node, t.ID) {
		return
	}
	w.judge.revoked(t.ID, node)
	if e == nil {
		w.later(w.between(time.Second, 20*time.Second), func() { w.copied(who, t) })
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

// ending is where and when a session was revoked.
type ending struct {
	at   anteroom.Time
	node int32
}

// revoked ends a session, as a node was told to.
func (j *judge) revoked(id anteroom.ID, node int32) {
	j.settle()
	j.ended[id] = ending{j.w.now, node}
	i, alive := j.sessions[id]
	if !alive {
		return
	}
	if e := j.w.edges; e != nil {
		if e.expire(j.w.now); e.valid[id] != 0 {
			e.spent[id] = true // before the session ends: its seat stays used
		}
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

// hears is how long a door may not have heard that a session was revoked.
const hears = time.Second

// justEnded says that a door may not know yet that a session was revoked.
func (j *judge) justEnded(id anteroom.ID) bool {
	end, over := j.ended[id]
	return over && j.w.now.Sub(end.at) < hears
}

// goesOn says that a request is let in within a session that was revoked: by a door that has not heard of that. One that was told to end it
// has, unless its process has ended since, and when nothing is wrong all have.
func (j *judge) goesOn(who int32, q *request, d *anteroom.Decision) bool {
	end, over := j.ended[d.Ticket.ID]
	if !over || d.Reason != anteroom.ReasonSession {
		return false
	}
	knows := end.node == q.node && len(j.w.sc.Faults.Deaths) == 0 && j.w.sc.Faults.NodeLife == 0
	j.look(checkOnce, !knows && (!j.flows() || j.justEnded(d.Ticket.ID)), func() string {
		return fmt.Sprintf("visitor %d goes on with a session that was ended %v ago", who, j.w.now.Sub(end.at))
	})
	return true
}

// passed notes a request that an edge has let in. The origin sees a session, whatever the room knows. Where edges report, the session
// does not last longer before the report has been taken: it is the one that the room knows, and outlasts its passes.
func (j *judge) passed(who int32) {
	j.settle()
	w := j.w
	id := w.people[who].ticket.ID
	i, alive := j.sessions[id]
	was, used := j.used[id]
	switch reports := w.edges.lost != nil; {
	case alive && !reports:
		j.book[i].last = w.now
	case !alive && used:
		last := w.now
		if reports {
			j.look(checkCap, len(w.sc.Changes) > 0, func() string { return "an edge lets in a visitor whose seat has been free" })
			last = w.edges.valid[id].Add(-j.set.SessionDuration)
		}
		j.resume(id, was.site, w.people[who].node, &w.people[who].ticket, last)
	}
	j.capHolds()
	j.level()
}
