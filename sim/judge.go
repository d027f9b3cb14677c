package sim

import (
	"fmt"
	"math"

	"time"

	"github.com/anteroom/anteroom"
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
	died     []anteroom.Time // by site: when its process ended last
	forgot   []anteroom.Time // by site: when it lost its memory last
	began    []anteroom.Time // by site: when its process took the role, other than the first
	charged  anteroom.Time   // until then what a lost memory held may be charged
	active   int
	bySite   []int32
	byLane   [256]int // of active, by lane
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

	idleSince  []anteroom.Time
	listeners  int        // people who wait with an open stream
	freeSince  []freeSlot // slots that were free while a listener waited
	idleAt     anteroom.Time
	idleArea   float64 // slot-seconds
	slotArea   float64
	pointIdle  float64
	idleTook   histogram
	held       histogram
	decisions  int
	wentOut    int
	refused    int
	admitted   int
	premature  int
	arrived    int
	order      calm
	flow       calm
	changed    anteroom.Time                   // the last change of roles
	opened     anteroom.Time                   // when settings last let in more than was told
	shutAt     anteroom.Time                   // since when nobody new is to be let in; 0: not
	restored   anteroom.Time                   // when a site last began from its journal
	turns      map[int32]anteroom.Time         // turns of visitors with a stream that they have not heard of, by the moment they were given
	given      map[int32]anteroom.Time         // turns that have not been taken, likewise
	undated    map[anteroom.ID]bool            // places by a clock that was yet to be set: they are moved along with it
	strangers  map[anteroom.ID]bool            // tickets with a turn whose visitors have not been told them yet
	told       map[anteroom.Time]anteroom.Time // when the first turn of a moment was told, or taken
	void       map[anteroom.ID]voided          // tickets whose places were given up or reset
	ended      map[anteroom.ID]ending          // sessions that were revoked
	byHand     map[anteroom.ID]anteroom.Time   // turns that the operator gave and that have not been taken
	onHold     bool                            // nothing can be recorded
	shuffled   *shuffled                       // the newest order by chance; nil: there was none
	backs      map[int32]anteroom.Time         // visitors who come back first, since when they wait
	owed, over []float64                       // turns that each lane is behind its share, and before it
	proved     map[int32]anteroom.Time         // with lanes: when a visitor has come back for the first time
	next       map[anteroom.ID]successor       // of used tickets that came in several requests at once
	lossy      bool                            // messages are lost or late all the time
	disturbs   bool                            // there was a fault of the plan

	checks  [checkCount]Check
	points  []Point
	numbers Numbers
}

// session is a session as the origin sees it.
type session struct {
	id   anteroom.ID
	last anteroom.Time
	from anteroom.Time
	site int16
	node int32 // that let it in
	lane uint8

	accepted anteroom.Time // as the cookie says
}

// past is the newest session that a ticket has had.
type past struct {
	site int16
	calm bool // it began while nothing was wrong
	from anteroom.Time
}

// successor is the ticket that the first of several requests sent at a moment was answered with.
type successor struct {
	at anteroom.Time
	id anteroom.ID
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
	checkTold
	checkCount
)

// checks names the checks and says what each holds a run to.
var checks = []struct{ Name, Means string }{
	{"cap", "never more active sessions than total_active_users, and not more of a lane than what is reserved for others leaves; nobody new during queue_all, a prequeue or reject, while a limit is 0 or nothing can be recorded, or when all nodes of a site have found no origin that answers for two seconds"},
	{"rate", "never more new sessions than new_users_per_minute in any 60 s"},
	{"order", "no visitor gets a turn before one who arrived more than a second earlier and is in touch (fifo), or will be when told, soon after the room was opened or its limits raised, or who comes back first because the origin has failed; nor before one of a higher lane, beyond the lane's own share, which it gets; nobody else comes back first; turns given at the same moment take effect at the same moment; after a shuffle its order counts, in who is called and in what visitors see; a turn that the operator gave stands until its visitor comes"},
	{"count", "arrived = admitted + waiting + left + refused; every visitor with a stream has a place in the queue; a place is kept until the moment that its visitor was told, is not shown as far better than it is if nothing but roles has changed, and never gets worse; one that was given up or reset is nobody's; at the end every unit is back"},
	{"once", "one ticket has one session, however many clients use it and however often; requests sent at once with a used one get one place; a session that the origin has ended goes on nowhere, but at a node that has yet to hear of it"},
	{"stay", "a request within a session never gets the waiting page"},
	{"flow", "no slot stays free for more than ten seconds while a visitor with an open stream waits; thirty if a random order waits for its winners to return, or turns go to abandoned tickets; thirty where the room was opened or its limits raised, for turns stand until those who were told to come later are due; longer with paced admissions, by the time that turns for the earlier free slots take; a slot is not free while a pass may still be used for it"},
	{"agree", "the ledger's sums are right; a door admits only sessions that its site knows, and no cookie says that a visitor was seen later than the site knows"},
	{"fair", "random: every choice is uniform over all waiting visitors, however often they poll"},
	{"told", "fifo: where nothing fails or changes and nobody leaves the queue, half of the waits of 30 s and more are within a twentieth of what was told first; where visitors wait for sessions to end, within a fifth and what chance does to so few"},
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
	j := &judge{w: w, owed: make([]float64, len(w.sc.Lanes)), over: make([]float64, len(w.sc.Lanes)), proved: map[int32]anteroom.Time{}, set: w.sc.Settings, cap: w.sc.TotalActiveUsers, rate: w.sc.NewUsersPerMinute,
		sessions: map[anteroom.ID]int32{}, twins: map[anteroom.ID]int32{}, used: map[anteroom.ID]past{}, died: make([]anteroom.Time, len(w.sc.Sites)), forgot: make([]anteroom.Time, len(w.sc.Sites)), began: make([]anteroom.Time, len(w.sc.Sites)), idleAt: epoch,
		bySite: make([]int32, len(w.sc.Sites)), turns: map[int32]anteroom.Time{}, given: map[int32]anteroom.Time{}, undated: map[anteroom.ID]bool{}, strangers: map[anteroom.ID]bool{}, backs: map[int32]anteroom.Time{}, told: map[anteroom.Time]anteroom.Time{}, next: map[anteroom.ID]successor{}, byHand: map[anteroom.ID]anteroom.Time{}, void: map[anteroom.ID]voided{}, ended: map[anteroom.ID]ending{}, lossy: w.sc.Faults.Loss > 0 || w.sc.Faults.Reorder > 0}
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
	if s.TotalActiveUsers < j.cap || s.NewUsersPerMinute < j.rate {
		if !j.loose() {
			j.looseCap, j.looseRate = 0, 0
		}
		j.looseTill, j.looseOn = j.w.now.Add(loosens), j.flow.faults > 0
		j.looseCap, j.looseRate = max(j.looseCap, j.cap), max(j.looseRate, j.rate)
	}
	before := j.set
	if j.set = s; before.SessionDuration != 0 && opens(before, s) {
		j.opened = j.w.now
	}
	if !shut(s) {
		j.shutAt = 0
	} else if j.shutAt == 0 {
		j.shutAt = j.w.now
	}
	if s.SessionDuration < before.SessionDuration {
		j.sooner()
	}
	j.cap, j.rate = max(s.TotalActiveUsers, j.seats()), s.NewUsersPerMinute
	if s.QueueingMethod == anteroom.Passthrough || s.Suspended {
		j.cap, j.rate = math.MaxInt, math.MaxInt
	}
	j.level()
}

// shut says that settings let in nobody new.
func shut(s anteroom.Settings) bool {
	return s.QueueAll || s.Prequeueing || s.QueueingMethod == anteroom.Reject || min(s.TotalActiveUsers, s.NewUsersPerMinute) == 0
}

// opens says that settings let in more than those who wait have been told to expect.
func opens(before, after anteroom.Settings) bool {
	return !shut(after) && (shut(before) || 10*after.TotalActiveUsers > 11*before.TotalActiveUsers || 10*after.NewUsersPerMinute > 11*before.NewUsersPerMinute)
}

// loosens is how long admissions under the previous, higher limits may still take effect.
const loosens = 61 * time.Second

// loose says that what was granted before the limits were lowered may still be used: for a
// minute, and as long as a site cannot be told.
func (j *judge) loose() bool { return j.looseOn || j.w.now < j.looseTill }

// slots is what is free by the limits.
func (j *judge) slots() int { return j.slotsBeside(0) }

// slotsBeside is what is free by the limits if so many more seats are used.
func (j *judge) slotsBeside(seats int) int {
	if j.onHold || j.set.QueueAll || j.set.Prequeueing || j.set.QueueingMethod == anteroom.Reject {
		return 0
	}
	free := func(limit, used int) int { return limit - int(j.w.reserved()*float64(limit)) - used }
	return max(0, min(free(j.set.TotalActiveUsers, j.active+seats), free(j.set.NewUsersPerMinute, j.recent.n)))
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
		seat, held := j.w.edges.frees()
		if !held {
			seat = none
		}
		at := min(lapse, slot, seat)
		if at > now {
			break
		}
		j.area(at)
		switch at {
		case slot:
			j.recent.pop()
		case seat:
			j.w.edges.seats = j.w.edges.seats[1:]
		default:
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
	if j.set.DisableSessionRenewal {
		j.sooner()
	}
}

// sooner ends the sessions that are over sooner than they would have been.
func (j *judge) sooner() {
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
	j.byLane[s.lane]--
	j.w.edges.hold(s.id, e.at)
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
		delete(j.backs, who)
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
	delete(j.backs, who)
	j.level()
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
