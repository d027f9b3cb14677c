package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// judge watches a run from outside, as the origin and the visitors do: it keeps its own book
// of sessions, admissions and places and holds every decision against the promises.
type judge struct {
	w *world

	set       anteroom.Settings
	cap       int // sessions that may be: more than the limit for a while after it was lowered
	rate      int
	looseTill anteroom.Time // until then limits of before a change may still be used up
	looseCap  int
	looseRate int
	looseOn   bool // a fault keeps sites from hearing of the change

	sessions map[anteroom.ID]int32
	twins    map[anteroom.ID]int32 // the older sessions of tickets that have two
	book     []session
	free     []int32
	expiry   eventHeap // who indexes book
	watched  uint64    // events of expiry ever
	used     map[anteroom.ID]past
	forgot   []anteroom.Time // by site: when it lost its memory last
	charged  anteroom.Time   // until then what a lost memory held may be charged
	active   int
	bySite   []int32
	recent   ring
	minute   int64 // calendar minute of inMinute
	inMinute int

	outside, inside int // people on their way in, and inside
	waitingNow      int // people who were shown the page and wait, in touch
	comingNow       int
	touch           bitset // people in touch whose turn has not been given, by number: by arrival
	alive           fenwick
	groups          [groupCount]group
	draws           int
	rankSum         float64

	idleSince []anteroom.Time
	listeners int        // people who wait with an open stream
	freeSince []freeSlot // slots that were free while a listener waited
	idleAt    anteroom.Time
	idleArea  float64 // slot-seconds
	slotArea  float64
	pointIdle float64
	idleTook  histogram
	held      histogram
	decisions int
	wentOut   int
	refused   int
	admitted  int
	premature int
	arrived   int
	order     calm
	flow      calm
	changed   anteroom.Time                   // the last change of roles
	restored  anteroom.Time                   // when a site last began from its journal
	turns     map[int32]anteroom.Time         // turns of visitors with a stream that they have not heard of, by the moment they were given
	told      map[anteroom.Time]anteroom.Time // when the first turn of a moment was told
	lossy     bool                            // messages are lost or late all the time
	disturbs  bool                            // there was a fault of the plan

	checks  [checkCount]Check
	points  []Point
	numbers Numbers
}

// freeSlot is a slot that somebody with a stream waits for.
type freeSlot struct {
	since anteroom.Time
	ahead int // slots that were free already
}

// session is a session as the origin sees it.
type session struct {
	id   anteroom.ID
	last anteroom.Time
	from anteroom.Time
	site int16
	node int32 // that let it in

	accepted anteroom.Time // as the cookie says
}

// past is the newest session that a ticket has had.
type past struct {
	site int16
	calm bool // it began while nothing was wrong
	from anteroom.Time
}

type checkName int

// The checks, by name. See Checks for what each looks at.
const (
	checkCap checkName = iota
	checkRate
	checkOrder
	checkBooks
	checkOnce
	checkStay
	checkFlow
	checkAgree
	checkFair
	checkCount
)

// checks names the checks and says what each holds a run to.
var checks = []struct{ Name, Means string }{
	{"cap", "never more active sessions than total_active_users"},
	{"rate", "never more new sessions than new_users_per_minute in any 60 s"},
	{"order", "no visitor gets a turn before one who arrived more than a second earlier and is in touch (fifo); turns given at the same moment take effect at the same moment"},
	{"count", "arrived = admitted + waiting + left + refused; every visitor with a stream has a place in the queue; at the end every unit is back"},
	{"once", "one ticket has one session, however many clients use it and however often"},
	{"stay", "a request within a session never gets the waiting page"},
	{"flow", "no slot stays free for more than ten seconds while a visitor with an open stream waits; thirty if a random order waits for its winners to return, or turns go to abandoned tickets; longer with paced admissions, by the time that turns for the earlier free slots take"},
	{"agree", "the ledger's sums are right, and a door admits only sessions that its site knows"},
	{"fair", "random: every choice is uniform over all waiting visitors, however often they poll"},
}

type groupName int

const (
	groupStreams groupName = iota
	groupReloads
	groupEarly
	groupTabs
	groupCount
)

var (
	groupHabits = [groupCount]habits{streams, reloads, early, tabs}
	groupWords  = [groupCount]string{"hold streams", "reload", "ask early", "wait in several tabs"}
)

// group counts the draws that fell on people of a habit, and those that should have.
type group struct {
	alive    int
	won      float64
	expected float64
	variance float64
}

func newJudge(w *world) *judge {
	j := &judge{w: w, set: w.sc.Settings, cap: w.sc.TotalActiveUsers, rate: w.sc.NewUsersPerMinute,
		sessions: map[anteroom.ID]int32{}, twins: map[anteroom.ID]int32{}, used: map[anteroom.ID]past{}, forgot: make([]anteroom.Time, len(w.sc.Sites)), idleAt: epoch,
		bySite: make([]int32, len(w.sc.Sites)), turns: map[int32]anteroom.Time{}, told: map[anteroom.Time]anteroom.Time{}, lossy: w.sc.Faults.Loss > 0 || w.sc.Faults.Reorder > 0}
	for i, c := range checks {
		j.checks[i].Name = c.Name
	}
	// The first of all processes have to find each other, and to write their first records.
	j.order.from = epoch.Add(5*time.Second + 2*w.sc.Faults.SlowStore)
	return j
}

func (j *judge) look(c checkName, ok bool, say func() string) {
	k := &j.checks[c]
	k.Looked++
	if ok {
		return
	}
	if k.Broken == 0 {
		k.First = fmt.Sprintf("at %v: %s", j.w.since(j.w.now).Round(time.Millisecond), say())
	}
	k.Broken++
}

// limits takes new settings.
func (j *judge) limits(s anteroom.Settings) {
	j.settle()
	j.looseTill, j.looseOn = j.w.now.Add(loosens), j.flow.faults > 0
	j.looseCap, j.looseRate = max(j.cap, s.TotalActiveUsers), max(j.rate, s.NewUsersPerMinute)
	j.set, j.cap, j.rate = s, max(s.TotalActiveUsers, j.seats()), s.NewUsersPerMinute
	if s.QueueingMethod == anteroom.Passthrough || s.Suspended {
		j.cap, j.rate = math.MaxInt, math.MaxInt
	}
	j.level()
}

// loosens is how long admissions under the previous, higher limits may still take effect.
const loosens = 61 * time.Second

// loose says that what was granted before the limits were lowered may still be used: for a
// minute, and as long as a site cannot be told.
func (j *judge) loose() bool { return j.looseOn || j.w.now < j.looseTill }

// slots is what is free by the limits.
func (j *judge) slots() int {
	if j.set.QueueAll || j.set.QueueingMethod == anteroom.Reject {
		return 0
	}
	return max(0, min(j.set.TotalActiveUsers-j.active, j.set.NewUsersPerMinute-j.recent.n))
}

// settle brings the book to now: sessions that have lapsed end, minutes pass.
func (j *judge) settle() {
	now := j.w.now
	for {
		const none = anteroom.Time(math.MaxInt64)
		lapse, slot := none, none
		if len(j.expiry) > 0 {
			lapse = j.expiry[0].at
		}
		if j.recent.n > 0 {
			slot = j.recent.first().Add(rateWindow)
		}
		at := min(lapse, slot)
		if at > now {
			break
		}
		j.area(at)
		if slot <= lapse {
			j.recent.pop()
		} else {
			j.lapse(j.expiry.pop())
		}
		j.level()
	}
	j.area(now)
}

// ends is when a session ends, if nothing comes. One that is not renewed ends by the clock of the room, and counts from the
// moment that the cookie has, also if the answer took its time or the session was taken over.
func (j *judge) ends(s *session) anteroom.Time {
	if !j.set.DisableSessionRenewal {
		return s.last.Add(j.set.SessionDuration)
	}
	if now, known := j.w.system.roomTime(s.node); known {
		return j.w.now.Add(j.set.SessionEnd(s.accepted).Sub(now))
	}
	return s.from.Add(j.set.SessionDuration)
}

// overdue ends the sessions that are over by a clock that was not known yet when they began.
func (j *judge) overdue() {
	if !j.set.DisableSessionRenewal {
		return
	}
	for i := range j.expiry {
		e := &j.expiry[i]
		e.at = min(e.at, j.ends(&j.book[e.who]))
	}
	j.expiry.order()
	j.settle()
}

func (j *judge) lapse(e event) {
	s := &j.book[e.who]
	if end := j.ends(s); end > e.at {
		e.at = end
		j.watch(e)
		return
	}
	older, two := j.twins[s.id]
	switch newest := j.sessions[s.id] == e.who; {
	case newest && two:
		j.sessions[s.id] = older
		delete(j.twins, s.id)
	case newest:
		delete(j.sessions, s.id)
	case two && older == e.who:
		delete(j.twins, s.id)
	}
	j.free = append(j.free, e.who)
	j.active--
	j.bySite[s.site]--
	if !j.loose() {
		j.cap = max(j.set.TotalActiveUsers, min(j.cap, j.seats()))
	}
	if j.set.QueueingMethod == anteroom.Passthrough || j.set.Suspended {
		j.cap = math.MaxInt
	}
}

// watch schedules a look at a session when it may have lapsed.
func (j *judge) watch(e event) {
	j.watched++
	e.seq = j.watched
	j.expiry.push(e)
}

// area adds up what was idle since the last change.
func (j *judge) area(at anteroom.Time) {
	dt := at.Sub(j.idleAt).Seconds()
	if dt <= 0 {
		return
	}
	j.idleAt = at
	if n := len(j.idleSince); j.waitingNow+j.comingNow > 0 {
		idle := float64(n) * dt
		j.idleArea += idle
		j.pointIdle += idle
		if j.set.TotalActiveUsers-j.active < j.set.NewUsersPerMinute-j.recent.n {
			j.slotArea += float64(j.set.TotalActiveUsers) * dt
		} else {
			j.slotArea += float64(j.set.NewUsersPerMinute) * dt
		}
	}
}

// level notes which free slots somebody waits for.
func (j *judge) level() {
	want := min(j.slots(), j.waitingNow+j.comingNow)
	for len(j.idleSince) < want {
		j.idleSince = append(j.idleSince, j.w.now)
	}
	j.idleSince = j.idleSince[:want]
	want = min(j.slots(), j.listeners)
	for len(j.freeSince) < want {
		j.freeSince = append(j.freeSince, freeSlot{j.w.now, len(j.freeSince)})
	}
	j.freeSince = j.freeSince[:want]
}

// listens: the person's stream was opened, or has ended.
func (j *judge) listens(yes bool) {
	j.settle()
	if yes {
		j.listeners++
	} else {
		j.listeners--
	}
	j.level()
}

// taken: a slot was used. Whoever waited longest for one was it.
func (j *judge) taken() {
	if len(j.idleSince) == 0 {
		return
	}
	j.idleTook.add(j.w.now.Sub(j.idleSince[0]))
	j.idleSince = j.idleSince[1:]
	if len(j.freeSince) > 0 {
		j.idles()
		j.freeSince = j.freeSince[1:]
	}
}

// idles looks at the slot that has been free for longest.
func (j *judge) idles() {
	if len(j.freeSince) == 0 || !j.flows() {
		return
	}
	slot := j.freeSince[0]
	d := j.w.now.Sub(max(slot.since, j.flow.from))
	j.look(checkFlow, d < j.patience()+j.paced(slot.ahead), func() string { return fmt.Sprintf("a slot has been free for %v while somebody with a stream waits", d) })
}

// patience is how long a slot may be free while a listener waits. Winners who are away come
// back within a poll interval; a ticket whose cookie was lost looks like a visitor until it
// misses its turn, and one of two clients is offered a turn where it was seen last.
func (j *judge) patience() time.Duration {
	patience := 10 * time.Second
	if v := j.w.sc.Visitors; j.set.QueueingMethod == anteroom.Random || v.LostCookies > 0 || v.NoCookies > 0 || v.Clones > 0 {
		patience = 30 * time.Second
	}
	patience += j.w.edges.holds()
	// What is on record of sessions is behind by so much.
	if slack := engine.TouchSlack(j.set.SessionDuration); j.restored != 0 && j.w.now.Sub(j.restored) < j.set.SessionDuration+2*slack {
		patience += slack
	}
	return patience
}

// paced is how long a slot stays free on purpose when so many were free before it: turns follow each
// other at twice the rate.
func (j *judge) paced(ahead int) time.Duration {
	if j.set.Unpaced || j.set.NewUsersPerMinute == 0 {
		return 0
	}
	return time.Duration(ahead) * time.Minute / time.Duration(2*j.set.NewUsersPerMinute)
}

// calm says whether faults of the plan disturb a promise now.
type calm struct {
	faults int           // under way
	from   anteroom.Time // after the last one the room needs a moment
}

func (c *calm) is(now anteroom.Time) bool { return c.faults == 0 && now >= c.from }

// ordered: nothing excuses that somebody is passed. flows: nothing excuses anything.
func (j *judge) ordered() bool { return !j.lossy && j.order.is(j.w.now) }
func (j *judge) flows() bool   { return j.ordered() && j.flow.is(j.w.now) }

// disturbed notes a fault of the plan. A change of roles by itself excuses nobody who is passed; two
// in quick succession do.
func (j *judge) disturbed(over bool, f *fault) {
	now := j.w.now
	j.disturbs = true
	if !over {
		f.passes = !f.change(j.w) || !j.order.is(now) || j.changed != 0 && now.Sub(j.changed) < settles
		if f.change(j.w) {
			j.changed = now
		}
	}
	for _, c := range []struct {
		calm *calm
		is   bool
	}{{&j.order, f.passes}, {&j.flow, true}} {
		switch {
		case !c.is:
		case over:
			c.calm.faults--
			c.calm.from = max(c.calm.from, now.Add(f.tail(j.w)))
		default:
			c.calm.faults++
		}
	}
	// What a lost memory held is charged until its successor had so long to adopt from it. Another
	// coordinator waits anew: guests of the site were seen elsewhere meanwhile of whom it has not heard.
	if over && (f.lose || f.begins() && now.Add(-f.lasts) <= j.charged) {
		j.charged = now.Add(max(j.set.SeatDuration(), engine.RateHold))
		j.flow.from = max(j.flow.from, j.charged.Add(settles))
	}
	if !over {
		j.looseOn = j.loose()
	} else if j.looseOn && j.flow.faults == 0 {
		j.looseOn, j.looseTill = false, now.Add(loosens)
	}
}

func (j *judge) came(who int32) {
	j.settle()
	j.arrived++
	j.outside++
	p := &j.w.people[who]
	if p.habits&noCookies == 0 { // nobody can wait for a client without memory
		j.comingNow++
		p.marks |= inLine
		j.inTouch(who, true)
	}
	j.level()
}

// comesLate: the room has heard of somebody later than at the arrival.
func (j *judge) comesLate(who int32) {
	j.w.people[who].marks |= anew
	j.inTouch(who, false)
}

func (j *judge) inTouch(who int32, yes bool) {
	p := &j.w.people[who]
	if yes && (p.marks&(anew|won) != 0 || j.set.QueueingMethod == anteroom.Random && p.marks&(shown|proven) == shown) || !j.touch.set(who, yes) {
		return
	}
	n := int32(1)
	if !yes {
		n = -1
	}
	if j.set.QueueingMethod == anteroom.Random {
		j.alive.add(who, n)
	}
	for g, h := range groupHabits {
		if p.habits&h != 0 {
			j.groups[g].alive += int(n)
		}
	}
}

func (j *judge) slept(who int32) {
	j.settle()
	if j.w.people[who].marks&inLine != 0 {
		j.w.people[who].marks &^= inLine
		j.waitingNow--
	}
	j.inTouch(who, false)
	j.level()
}

func (j *judge) woke(who int32) {
	j.settle()
	p := &j.w.people[who]
	if p.state == waiting && p.marks&inLine == 0 && p.habits&clone == 0 {
		p.marks |= inLine
		j.waitingNow++
		j.inTouch(who, p.marks&released == 0)
	}
	j.level()
}

// went: the person's story ends.
func (j *judge) went(who int32, was personState) {
	j.settle()
	p := &j.w.people[who]
	if p.habits&clone != 0 {
		return
	}
	switch was {
	case inside:
		j.inside--
	case coming, waiting:
		j.outside--
		if p.marks&refused != 0 {
			j.refused++
		}
		switch {
		case p.marks&inLine == 0:
		case was == coming:
			j.comingNow--
		default:
			j.waitingNow--
		}
		p.marks &^= inLine
		j.inTouch(who, false)
	}
	j.level()
}

// entered: the person is inside now.
func (j *judge) entered(who int32) {
	p := &j.w.people[who]
	if p.habits&clone != 0 {
		return
	}
	j.outside--
	j.inside++
	if p.marks&inLine != 0 {
		p.marks &^= inLine
		if p.marks&shown != 0 { // it has left coming behind
			j.waitingNow--
		} else {
			j.comingNow--
		}
	}
	j.inTouch(who, false)
	j.level()
}

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
	switch d.Verdict {
	case anteroom.Admit:
		j.letIn(who, q, d)
	case anteroom.Wait, anteroom.Refuse:
		j.turnedAway(who, q, d)
	case anteroom.Pass: // uncounted, like every request while the room is off
	}
	j.level()
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
			j.open(id, was.site, q.node, d.Ticket.AcceptedAt, w.now) // the room holds a session a moment longer than the origin sees it
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
	if p.marks&released == 0 {
		j.release(who)
	}
	j.used[id] = past{site: site, calm: j.flows() && !unknown, from: w.now}
	j.taken()
	last := w.now
	if t := &d.Ticket; t.LastCheckIn < t.AcceptedAt { // on probation: the session ends early
		last = last.Add(j.set.SeatDuration() - j.set.SessionDuration - t.AcceptedAt.Sub(t.LastCheckIn))
	}
	j.open(id, site, q.node, d.Ticket.AcceptedAt, last)
	// An answer that came too late let the visitor in with the next request: the rate counts admissions.
	if d.Reason != anteroom.ReasonSession || d.At.Sub(d.Ticket.AcceptedAt) <= time.Second {
		j.recent.push(w.now)
	}
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

func (j *judge) open(id anteroom.ID, site int16, node int32, accepted, last anteroom.Time) {
	var i int32
	if n := len(j.free); n > 0 {
		i, j.free = j.free[n-1], j.free[:n-1]
	} else {
		j.book = append(j.book, session{})
		i = int32(len(j.book) - 1)
	}
	j.book[i] = session{id: id, last: last, from: j.w.now, site: site, node: node, accepted: accepted}
	j.sessions[id] = i
	j.watch(event{at: j.ends(&j.book[i]), who: i})
	j.active++
	j.bySite[site]++
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
		stays := !alive || d.Reason == anteroom.ReasonBound || j.outage(q) || away && !(was.calm && j.flows())
		j.look(checkStay, stays, func() string {
			return fmt.Sprintf("visitor %d has a session, last seen %v ago, and is told to wait (%v)", who, w.now.Sub(j.book[i].last), d.Reason)
		})
		if alive && p.state == inside {
			p.marks |= sentBack
		}
	}
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
		if s.from <= forgot && q.visit.Ticket.LastCheckIn.Add(j.set.SessionDuration) <= now {
			return true // a cookie that has run out proves no session
		}
	}
	last := s.last
	if now, known := j.w.system.roomTime(q.node); known && q.visit.Ticket.Accepted() {
		last = min(last, j.w.now.Add(-now.Sub(q.visit.Ticket.LastCheckIn)))
	}
	old := !q.visit.Ticket.Accepted() && (silence > j.w.now.Sub(s.from) || silence > 2*time.Second && p.marks&forgetful != 0)
	return silence > half || old || silence > 2*time.Second && j.w.now.Sub(last) > half
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
	p.marks |= proven
	if p.marks&inLine != 0 && p.marks&released == 0 {
		j.inTouch(who, true)
	}
}

// releaseAll notes turns given at one moment.
func (j *judge) releaseAll(ids []anteroom.ID) {
	for _, id := range ids {
		if who, ok := j.w.byID[id]; ok {
			j.w.trace.end(appendNumber(j.w.trace.line(j.w.now, "turn"), "v", int64(who)))
			p := &j.w.people[who]
			p.marks |= released
			if p.stream != 0 && j.w.now.Sub(p.stream) > time.Second {
				j.turns[who] = j.w.now
			}
			j.inTouch(who, false)
		}
	}
	for _, id := range ids {
		if who, ok := j.w.byID[id]; ok {
			j.overtakes(who)
		}
	}
}

// tells notes that a turn was told on a stream. Turns that were given at one moment take effect
// everywhere at one moment too, so that a fast link overtakes nobody. This is looked at until the first
// fault of the plan, for the clock of a process that takes a role over may be ahead for a while, and for
// visitors without odd habits: the place of one who goes to another site goes there without the turn. A turn
// that is heard of a second late was withdrawn and given again.
func (j *judge) tells(who int32) {
	given, ok := j.turns[who]
	if !ok {
		return
	}
	delete(j.turns, who)
	first, ok := j.told[given]
	if !ok {
		if len(j.told) >= 1000 {
			clear(j.told)
		}
		j.told[given], first = j.w.now, j.w.now
	}
	p := &j.w.people[who]
	if late := j.w.now.Sub(first); !j.disturbs && j.flows() && p.stream < given && p.habits&^streams == 0 && late < time.Second {
		j.look(checkOrder, late <= atOnce, func() string {
			return fmt.Sprintf("visitor %d hears of a turn %v after another visitor whose turn was given at the same moment, %v", who, late, j.w.since(given))
		})
	}
}

// atOnce is how far apart turns of one moment may be told: the margin of the effect delay, and as much
// again for clocks, which differ by half of what the two ways to a site do.
const atOnce = 2 * engine.EffectMargin

func (j *judge) release(who int32) {
	p := &j.w.people[who]
	if p.habits&clone != 0 {
		return
	}
	p.marks |= released
	j.inTouch(who, false)
	j.overtakes(who)
}

// unrelease: a turn was not taken, or could not be given.
func (j *judge) unrelease(id anteroom.ID) {
	who, ok := j.w.byID[id]
	if !ok {
		return
	}
	p := &j.w.people[who]
	j.w.trace.end(appendNumber(j.w.trace.line(j.w.now, "missed"), "v", int64(who)))
	p.marks &^= released
	delete(j.turns, who)
	if p.state == waiting && p.marks&inLine != 0 {
		j.inTouch(who, true)
	}
}

// overtakes marks those whom a turn for who has passed by.
func (j *judge) overtakes(who int32) {
	if j.set.QueueingMethod == anteroom.Random || j.set.QueueingMethod == anteroom.Passthrough {
		return
	}
	w := j.w
	if w.people[who].habits&clones != 0 {
		return // the place may be the other client's, who came earlier
	}
	if was, used := j.used[w.people[who].ticket.ID]; used && j.forgot[was.site] >= was.from {
		return // a copied cookie whose session the site has forgotten: its place is as old as it says
	}
	if w.people[who].marks&undated != 0 {
		return // a site that starts while it is cut off cannot tell when somebody comes, only after whom
	}
	mine := w.people[who].arrived
	broken := int32(-1)
	for i := j.touch.next(0); i >= 0 && i < int32(len(w.people)); i = j.touch.next(i + 1) {
		p := &w.people[i]
		if p.arrived.Add(time.Second) >= mine {
			break
		}
		if !w.present(p) || p.habits&clones != 0 || p.marks&undated != 0 { // a shared cookie is where it was seen last
			continue
		}
		p.marks |= overtaken
		broken = i
		j.numbers.OvertakenMost = max(j.numbers.OvertakenMost, mine.Sub(p.arrived))
	}
	if j.ordered() {
		j.look(checkOrder, broken < 0, func() string {
			return fmt.Sprintf("visitor %d of %v gets a turn before visitor %d of %v, who is here", who, w.since(mine), broken, w.since(w.people[broken].arrived))
		})
	}
}

// present: could take a turn at once, and the room had a second to hear of it. A check-in
// counts when it is due within 3.5 s (the room's horizon is 4 s) and has not begun.
func (w *world) present(p *person) bool {
	switch {
	case p.state == coming:
		return p.pending > 0 && p.requests == 1
	case p.stream != 0:
		return w.now.Sub(p.stream) > time.Second
	}
	return p.pending == 0 && p.marks&proven != 0 && w.now.Sub(p.answered) > time.Second && w.now < p.expected && p.expected <= w.now.Add(3500*time.Millisecond)
}

// drawn counts the draws of a moment. Whoever has won stands no longer among those drawn
// from, though the turn may come only with the next check-in.
func (j *judge) drawn(ids []anteroom.ID) {
	for _, id := range ids {
		who, ok := j.w.byID[id]
		if !ok {
			continue
		}
		if !j.touch.has(who) {
			j.proves(who) // the draw fell on somebody whose first return is not answered yet
		}
		if n := j.touch.n; n >= 20 && j.touch.has(who) && j.flows() {
			j.draws++
			j.rankSum += (float64(j.alive.before(who)) + 0.5) / float64(n)
			for g := range j.groups {
				k := &j.groups[g]
				share := float64(k.alive) / float64(n)
				k.expected += share
				k.variance += share * (1 - share)
				if j.w.people[who].habits&groupHabits[g] != 0 {
					k.won++
				}
			}
		}
		j.w.people[who].marks |= won
		j.inTouch(who, false)
	}
}

// places looks whether some of those who hold a stream have their place in the room's line.
func (j *judge) places() {
	w := j.w
	if !j.flows() || len(w.people) == 0 || j.set.QueueingMethod == anteroom.Passthrough || j.set.Suspended {
		return
	}
	at := j.touch.next(int32(w.chance.IntN(len(w.people))))
	for range 5 {
		if at < 0 {
			return
		}
		p := &w.people[at]
		if p.marks&listening != 0 && w.now.Sub(p.stream) > 3*time.Second && p.pending == 0 {
			j.look(checkBooks, w.system.inLine(p.ticket.ID), func() string {
				return fmt.Sprintf("visitor %d waits with a stream and has no place in the line", at)
			})
		}
		at = j.touch.next(at + 1)
	}
}

// point adds a point to the result.
func (j *judge) point() {
	j.settle()
	w := j.w
	j.places()
	j.idles()
	step := w.sc.step().Seconds()
	j.points = append(j.points, Point{At: w.since(w.now), Active: j.active, Waiting: j.waitingNow, Arrived: j.arrived,
		Admitted: j.admitted, LastMinute: j.recent.n, Limit: j.set.TotalActiveUsers, Rate: j.set.NewUsersPerMinute,
		Idle: j.pointIdle / step, Sites: append([]int32(nil), j.bySite...)})
	w.origin.point(&j.points[len(j.points)-1])
	j.pointIdle = 0
	if j.waitingNow > 0 {
		j.numbers.LineEmpty = 0
	} else if j.numbers.Queued > 0 && j.numbers.LineEmpty == 0 {
		j.numbers.LineEmpty = w.since(w.now)
	}
}
