package sim

// What an answer to a request may be.

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// decided holds a decision against the promises.
func (j *judge) decided(who int32, q *request, d *anteroom.Decision, outside bool) {
	j.settle()
	w := j.w
	b := w.trace.line(w.now, d.Verdict.String())
	b = appendNumber(b, "v", int64(who))
	b = appendNumber(b, "n", int64(q.node))
	b = append(b, ' ')
	b = append(b, d.Reason.String()...)
	b = append(b, ' ')
	b = appendReference(b, &d.Ticket.ID)
	if d.AheadKnown {
		b = appendNumber(b, "ahead ", int64(d.Ahead))
	}
	if d.WaitKnown {
		b = appendNumber(b, "wait ", int64(d.WaitTime/time.Second))
	}
	w.trace.end(b)

	j.decisions++
	j.held.add(w.now.Sub(q.at))
	if outside {
		j.wentOut++
	}
	j.credited(who, q, d)
	j.together(who, q, d)
	j.givesUp(who, q, d)
	switch d.Verdict {
	case anteroom.Admit:
		if !j.goesOn(who, q, d) {
			j.letIn(who, q, d)
		}
	case anteroom.Wait, anteroom.Refuse:
		j.turnedAway(who, q, d)
	case anteroom.Pass: // uncounted, like every request while the room is off
	}
	j.level()
}

// together looks at requests that were sent at once with a used ticket: they go on as one visitor.
func (j *judge) together(who int32, q *request, d *anteroom.Decision) {
	id := q.visit.Ticket.ID
	if p := &j.w.people[who]; p.habits&parallel == 0 || q.visit.Fresh || d.Ticket.ID == id || d.Ticket.ID.IsZero() {
		return
	}
	first, again := j.next[id]
	if !again || first.at != q.at {
		j.next[id] = successor{q.at, d.Ticket.ID}
		return
	}
	if j.flows() {
		j.look(checkOnce, d.Ticket.ID == first.id, func() string {
			return fmt.Sprintf("visitor %d has got two tickets for one that was used, for requests sent at once", who)
		})
	}
}

func (j *judge) letIn(who int32, q *request, d *anteroom.Decision) {
	w, id := j.w, d.Ticket.ID
	p := &w.people[who]
	site := w.nodes[q.node].site
	i, alive := j.sessions[id]
	if older, two := j.twins[id]; two && j.book[older].accepted == d.Ticket.AcceptedAt {
		i = older
	}
	was, again := j.used[id]
	first := q.visit.Fresh && d.Ticket.LastCheckIn < d.Ticket.AcceptedAt // one of several first requests: on probation
	// Of several requests at once the one that began the session may be answered last.
	if again && (d.Reason == anteroom.ReasonSession || d.Reason == anteroom.ReasonAdopted) {
		if alive && !first {
			j.book[i].last = w.now
		} else if !alive {
			if j.cap > j.set.TotalActiveUsers {
				j.cap++ // the cap was lowered with it
			}
			j.resume(id, was.site, q.node, &d.Ticket, w.now) // the room holds a session a moment longer than the origin sees it
		}
		j.capHolds()
		return
	}
	apart := again && was.site != site && !(was.calm && j.flows())
	if alive && apart {
		// A waiting cookie of two clients: across a cut link each may enter, and each has a seat. Any other
		// session is at its home alone.
		j.twins[id], alive = j.sessions[id], false
	}
	if alive && j.book[i].accepted == d.Ticket.AcceptedAt { // another request of the same admission
		if !first {
			j.book[i].last = w.now
		}
		return
	}
	// That a ticket has been used is known where that was, unless the memory was lost since.
	unknown := again && (apart || j.forgot[was.site] >= was.from)
	if d.Reason != anteroom.ReasonPassthrough && (alive || !unknown) {
		j.look(checkOnce, !alive && !again, func() string {
			if alive {
				return fmt.Sprintf("visitor %d (%v) got a second session while the first lasts", who, d.Reason)
			}
			return fmt.Sprintf("visitor %d (%v) got a second session with a used ticket", who, d.Reason)
		})
	}
	if alive {
		return
	}
	_, byHand := j.byHand[id]
	delete(j.byHand, id)
	given := w.now // the answer may have been long on its way
	if now, known := w.system.roomTime(q.node); known {
		given = given.Add(-max(0, now.Sub(d.Ticket.AcceptedAt)))
	}
	j.look(checkCap, byHand || j.onHold && d.Reason == anteroom.ReasonTurn || j.shutAt == 0 || given.Sub(j.shutAt) < j.shuts(), func() string {
		return fmt.Sprintf("visitor %d (%v) is let in, and the room had been shut for %v", who, d.Reason, given.Sub(j.shutAt))
	})
	if o := w.origin; o != nil && j.set.Protect && j.flows() {
		since := o.gaveUp(site)
		j.look(checkCap, since == 0 || w.now.Sub(since) < notices, func() string {
			return fmt.Sprintf("visitor %d is let in, and no node has had an origin that answers for %v", who, w.now.Sub(since))
		})
	}
	if p.marks&released == 0 {
		j.release(who)
	}
	j.takes(who)
	j.used[id] = past{site: site, calm: j.flows() && !unknown, from: w.now}
	j.taken()
	last := w.now
	if t := &d.Ticket; t.LastCheckIn < t.AcceptedAt { // on probation: the session ends early
		last = last.Add(j.set.SeatDuration() - j.set.SessionDuration - t.AcceptedAt.Sub(t.LastCheckIn))
	}
	j.open(id, site, q.node, &d.Ticket, last)
	j.reserves(d.Ticket.Lane)
	j.recent.push(w.now)
	j.admitted++
	if m := int64(w.now) / 60e6; m != j.minute {
		j.minute, j.inMinute = m, 0
	}
	j.inMinute++
	j.capHolds()
	rate := j.rate
	if j.loose() {
		rate = max(rate, j.looseRate)
	}
	j.look(checkRate, j.recent.n <= rate, func() string {
		return fmt.Sprintf("%d entered within 60 s, %d may", j.recent.n, j.rate)
	})
	n := &j.numbers
	n.PeakPerMinute = max(n.PeakPerMinute, j.recent.n)
	if !j.loose() && j.rate > 0 && j.rate < math.MaxInt {
		n.OverAnyMinute = max(n.OverAnyMinute, float64(j.recent.n)/float64(j.rate)-1)
		n.OverMinute = max(n.OverMinute, float64(j.inMinute)/float64(j.rate)-1)
	}
}

// notices is how long visitors may be let in after all nodes of their site have found no origin that answers.
const notices = 2 * time.Second

// shuts is how long an answer may be under way that was given before the room was shut.
func (j *judge) shuts() time.Duration {
	if j.flows() {
		return time.Second
	}
	return 15 * time.Second // a journal stalls, or a process that is stopped has the message
}

func (j *judge) capHolds() {
	n := &j.numbers
	n.PeakActive = max(n.PeakActive, j.active)
	most := j.cap
	if j.loose() {
		most = max(most, j.looseCap)
	}
	seats := j.seats()
	if seats > most {
		j.overdue()
		seats = j.seats()
	}
	j.look(checkCap, seats <= most, func() string { return fmt.Sprintf("%d are active, %d may be", seats, j.set.TotalActiveUsers) })
	if most == j.set.TotalActiveUsers && most > 0 {
		n.OverActive = max(n.OverActive, float64(j.active)/float64(most)-1)
	}
}

// resume has a session go on that was over.
func (j *judge) resume(id anteroom.ID, site int16, node int32, t *anteroom.Ticket, last anteroom.Time) {
	j.w.edges.resume(id)
	j.open(id, site, node, t, last)
}

func (j *judge) open(id anteroom.ID, site int16, node int32, t *anteroom.Ticket, last anteroom.Time) {
	var i int32
	if n := len(j.free); n > 0 {
		i, j.free = j.free[n-1], j.free[:n-1]
	} else {
		j.book = append(j.book, session{})
		i = int32(len(j.book) - 1)
	}
	j.book[i] = session{id: id, last: last, from: j.w.now, site: site, node: node, lane: t.Lane, accepted: t.AcceptedAt}
	j.sessions[id] = i
	j.watch(event{at: j.ends(&j.book[i]), who: i})
	j.active++
	j.bySite[site]++
	j.byLane[t.Lane]++
}

// turnedAway holds a page or a refusal against the promises.
func (j *judge) turnedAway(who int32, q *request, d *anteroom.Decision) {
	w := j.w
	p := &w.people[who]
	if !q.visit.Fresh && (p.entered != 0 || p.habits&clone != 0 || w.sc.Visitors.Clones > 0) {
		j.overdue()
		i, alive := j.sessions[q.visit.Ticket.ID]
		// A session is where it began. Other sites have to ask there.
		was := j.used[q.visit.Ticket.ID]
		away := was.site != w.nodes[q.node].site || p.habits&(clone|clones) != 0
		// One that has not been used for two session durations proves nothing: the other client's
		// cookie was renewed, and this one is not asked about.
		if now, known := w.system.roomTime(q.node); p.habits&(clone|clones) != 0 && (!known || now.Sub(q.visit.Ticket.LastCheckIn) >= 2*j.set.SessionDuration) {
			alive = false
		}
		// That the other client's turn has just come elsewhere is not known here yet.
		if p.habits&(clone|clones) != 0 && was.site != w.nodes[q.node].site && w.now.Sub(was.from) < time.Second {
			alive = false
		}
		// Doors believe a waiting cookie of somebody far back in line, also when the other client has entered elsewhere.
		if far := d.Reason == anteroom.ReasonWaiting && d.Ahead > 20; p.habits&(clone|clones) != 0 && far && !q.visit.Ticket.Accepted() {
			alive = false
		}
		// A site that has lost its memory since cannot tell the one where the other client waits.
		if p.habits&(clone|clones) != 0 && was.site != w.nodes[q.node].site && j.forgot[was.site] >= was.from {
			alive = false
		}
		// A site that does not know the time lets sessions go on that are not renewed, and its next process ends them: their time is over.
		if j.set.DisableSessionRenewal && w.now.Sub(was.from) >= j.set.SessionDuration {
			alive = false
		}
		stays := !alive || d.Reason == anteroom.ReasonBound || j.outage(q) || away && !(was.calm && j.flows())
		j.look(checkStay, stays, func() string {
			return fmt.Sprintf("visitor %d has a session, last seen %v ago, and is told to wait (%v)", who, w.now.Sub(j.book[i].last), d.Reason)
		})
		if alive && p.state == inside {
			p.marks |= sentBack
		}
	}
	j.keepsPlace(who, q, d)
	j.keepsTurn(who, q, d)
	switch d.Reason {
	case anteroom.ReasonPlaceLost, anteroom.ReasonSessionOver, anteroom.ReasonUsed, anteroom.ReasonBound:
		p.marks |= anew
	default: // the visitor keeps the place
	}
	if q.visit.Fresh && (p.requests > 1 || p.entered != 0) && p.habits&parallel == 0 || d.Verdict == anteroom.Wait && d.Ticket.ID.IsZero() {
		p.marks |= anew
	}
	if p.marks&anew != 0 {
		j.inTouch(who, false)
	}
	switch {
	case !q.visit.Fresh && p.marks&proven == 0:
		p.answered = w.now // by whichever tab: the room hears of it no sooner
		j.proves(who)
	case q.visit.Fresh && p.marks&proven == 0 && j.set.QueueingMethod == anteroom.Random:
		j.inTouch(who, false) // who was told to come back and has not yet is not drawn from
	}
	if p.habits&clone != 0 {
		return
	}
	if p.state == inside && q.primary && d.Verdict == anteroom.Wait { // its session is over: it waits again
		j.inside--
		j.outside++
		if p.habits&noCookies == 0 {
			p.marks |= inLine
			j.waitingNow++
		}
		if p.marks&interrupted != 0 {
			w.origin.comesAgain(who)
			if j.credits(who, q, d) && !j.strangers[d.Ticket.ID] { // else it is called, while its request was held
				j.backs[who] = w.now
			}
		}
	}
	if p.state != coming || d.Verdict != anteroom.Wait {
		j.hears(p, d)
		return
	}
	if _, known := w.system.roomTime(q.node); !known {
		p.marks |= undated
	}
	j.numbers.Queued++
	if p.marks&inLine == 0 {
		return
	}
	j.comingNow--
	if j.slots() > j.waitingNow+j.comingNow {
		j.premature++
		b := appendNumber(j.w.trace.line(j.w.now, "premature"), "v", int64(who))
		b = appendNumber(appendNumber(appendNumber(b, "slots ", int64(j.slots())), "waiting ", int64(j.waitingNow)), "coming ", int64(j.comingNow))
		j.w.trace.end(b)
	}
	j.waitingNow++
	j.numbers.PeakWaiting = max(j.numbers.PeakWaiting, j.waitingNow)
	j.hears(p, d)
}

// keepsPlace holds an answer to what the cookie of a visitor who waits says: the place is kept until the moment that was told, and
// nobody is ever further back.
func (j *judge) keepsPlace(who int32, q *request, d *anteroom.Decision) {
	w, t := j.w, &q.visit.Ticket
	now, known := w.system.roomTime(q.node)
	if !known && (q.visit.Fresh || d.Ticket.ID != t.ID) {
		j.undated[d.Ticket.ID] = true
	}
	j.seesPlace(who, d)
	if q.visit.Fresh || t.Accepted() || t.ID.IsZero() {
		return
	}
	reordered := j.shuffled != nil && (t.LastCheckIn <= j.shuffled.heard || !j.flows())
	if !reordered && d.Ticket.ID == t.ID && t.Told != 0 && d.AheadKnown && d.Ticket.Lane == t.Lane {
		j.look(checkBooks, d.Ahead < int(t.Told), func() string {
			return fmt.Sprintf("visitor %d has seen %d people ahead, and sees %d now", who, t.Told-1, d.Ahead)
		})
	}
	if j.shuffled == nil && d.AheadKnown && d.Ticket.ID == t.ID {
		j.placed(who, d)
	}
	if !reordered && d.Ticket.ID == t.ID && !d.Ticket.Accepted() && j.flows() && !j.undated[t.ID] {
		j.look(checkBooks, d.Ticket.Arrival <= t.Arrival.Add(time.Second), func() string {
			return fmt.Sprintf("visitor %d has the place of an arrival %v later than before", who, d.Ticket.Arrival.Sub(t.Arrival))
		})
	}
	if known && t.Arrival >= j.set.ResetAt && d.Reason == anteroom.ReasonPlaceLost {
		kept := t.Next.Add(j.set.PlaceHold)
		j.look(checkBooks, now >= kept, func() string {
			return fmt.Sprintf("visitor %d has lost the place, which was to be kept for another %v", who, kept.Sub(now))
		})
	}
}

// placed looks whether a place is about as far back as it is shown, where nothing goes wrong: whoever was cut off comes back to a place
// ahead of those who came meanwhile, and what they have been shown does not get worse. Of those who have just left or come back the room has yet to
// hear, and of those who came in the second before the visitor it had yet to hear when it showed the first place.
func (j *judge) placed(who int32, d *anteroom.Decision) {
	w, p := j.w, &j.w.people[who]
	if !j.ordered() || !j.touch.has(who) || w.now.Sub(p.arrived) < 5*time.Second || j.set.QueueingMethod != anteroom.FIFO || len(w.sc.Lanes) > 0 ||
		len(w.people) > 20_000 || p.habits&clones != 0 || !j.undisturbed() {
		return
	}
	ahead, just := j.touch.before(who), int32(1)
	for just <= who && p.arrived.Sub(w.people[who-just].arrived) < time.Second {
		just++
	}
	j.look(checkBooks, d.Ahead >= ahead/2-int(just)-10, func() string {
		return fmt.Sprintf("visitor %d sees %d people ahead, and there are %d", who, d.Ahead, ahead)
	})
}

// outage excuses a node that sends a session back: it has been out of touch with its site for more
// than half of a session, or it is, and neither of those who could tell it of the session does: the
// cookie is that of the place, and the session has begun since, or its cookie was lost; or the cookie is older
// than half of a session: one that is not renewed, or of requests that left before the answer that renewed it.
func (j *judge) outage(q *request) bool {
	p, s := &j.w.people[q.person], &j.book[j.sessions[q.visit.Ticket.ID]]
	half, silence := j.set.SessionDuration/2, j.w.system.silence(q.node)
	if forgot := j.forgot[j.w.nodes[q.node].site]; forgot != 0 {
		now, known := j.w.system.roomTime(q.node)
		if !known || j.w.now.Sub(forgot) < 2*time.Second {
			return true // other doors have yet to say whom they know, or the coordinator that there was a loss
		}
		if s.from <= forgot && j.active > j.set.TotalActiveUsers {
			return true // no more than the limit are believed
		}
		// A cookie that has run out proves no session. A node that has let the visitor in after the memory was lost does, if it can tell the
		// next process, and that one knows what was lost.
		told := j.onlySitesEnd() && s.last > j.died[j.w.nodes[q.node].site]
		if s.from <= forgot && q.visit.Ticket.LastCheckIn.Add(j.set.SessionDuration) <= now && !told {
			return true
		}
	}
	last := s.last
	if now, known := j.w.system.roomTime(q.node); known && q.visit.Ticket.Accepted() {
		last = min(last, j.w.now.Add(-now.Sub(q.visit.Ticket.LastCheckIn)))
	}
	old := !q.visit.Ticket.Accepted() && (silence > j.w.now.Sub(s.from) || silence > 2*time.Second && p.marks&forgetful != 0)
	return silence > half || old || silence > 2*time.Second && j.w.now.Sub(last) > half
}

// onlySitesEnd says that nothing goes wrong in the world but that processes end which hold the role of a site.
func (j *judge) onlySitesEnd() bool {
	faults := j.w.sc.Faults
	if slices.ContainsFunc(faults.Deaths, func(d Death) bool { return d.What != "site" }) {
		return false
	}
	faults.Deaths = nil
	return reflect.ValueOf(faults).IsZero()
}

// hears remembers the first wait that a visitor was told.
func (j *judge) hears(p *person, d *anteroom.Decision) {
	if d.WaitKnown && p.tellAt == 0 && d.Verdict == anteroom.Wait {
		p.tellAt, p.told, p.told25, p.told75 = j.w.now, d.WaitTime, d.Wait25, d.Wait75
	}
}

// proves: the visitor has come back for the first time.
func (j *judge) proves(who int32) {
	p := &j.w.people[who]
	if p.marks&proven == 0 && len(j.owed) > 0 {
		j.proved[who] = j.w.now
	}
	p.marks |= proven
	if p.marks&inLine != 0 && p.marks&released == 0 {
		j.inTouch(who, true)
	}
}
