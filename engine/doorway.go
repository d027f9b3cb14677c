package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// askFor is how long a request waits for the site before the door answers alone: that of a
	// visitor who may have a session waits for as long as another process needs to go on as the site.
	askFor = 3 * time.Second
	// askAgain is after how long a request without an answer is asked again, and tellAgain is
	// that of what is not confirmed.
	askAgain  = 400 * time.Millisecond
	tellAgain = 250 * time.Millisecond
	calledFor = 30 * time.Second // a turn that was told on a stream is remembered
	maxEnded  = 10_000           // ended sessions that are remembered
	takeOver  = 12 * time.Second // a site is silent for less when another process of it goes on
	maxTold   = 2 * anteroom.MaxStreams
	// reclaimFirst is after how long a stream claims a place back that has gone to another site;
	// two streams of one visitor at two sites do so ever more seldom, up to reclaimMost.
	reclaimFirst = time.Second
	reclaimMost  = 16 * time.Second
	settled      = 2 * time.Second // an answer of before the end of a session is not later than that

	// Of so many is a message of a door to its site.
	visitsAtOnce = 2 << 10
	tokensAtOnce = 4 << 10
	pollsAtOnce  = 4 << 10
	maxPolls     = 256 << 10 // that are not confirmed; check-ins beyond are told by the next
)

// Doorway is a Door with its way to the site: what the site is asked, what it is told, and what
// came back. While the site does not answer, the door answers alone: it lets in whoever must
// have a session still, keeps the places of those who wait, and does with newcomers what
// OnFailure says. Like the Door it is a state machine over calls, messages and time.
//
// A door never lets in a session that the site has ended by time. What it knows and what a
// cookie says of the last time that a visitor was seen is of a moment that the site has
// confirmed or made itself, so that the site holds the session for a session duration from
// then, and TouchDelay longer, which is more than clocks differ. While the site does not answer, the
// door lets sessions in for [AloneFor] from the last message that the site is known to have heard,
// and the site holds them for a session duration from then (see witness). (A session that is revoked
// goes on at a door that has not heard of it.)
type Doorway struct {
	door    *Door
	process uint64
	node    uint64
	admit   bool
	site    SiteKey
	term    uint64 // of the site's process

	asks   asks
	unsent []uint64 // tokens
	checkd anteroom.Time

	abandoned telling[uint64]
	closed    telling[anteroom.ID]
	late      telling[anteroom.ID]   // see lets
	closing   map[anteroom.ID]uint64 // positions in closed
	revokes   telling[anteroom.ID]
	polls     telling[Poll]
	sent      flights[ends]
	origin    OriginFacts
	turned    bool // the site has not been told that origin.Down has changed
	news      bool // something has not been told yet

	heardBy anteroom.Time // when the newest message left that the site has confirmed; 0: none since emptied
	empty   bool          // the site was told that nothing is here
	emptied anteroom.Time // when it was told so last: it counts on this door to let in nobody until it hears of somebody here
	over    bool          // the process ends, see End
	last    uint64        // the term of the site to which the last message was said
	spoke   anteroom.Time // the last message to the site
	silence anteroom.Time // when the site was spoken to first without an answer; 0 when it has answered
	heard   anteroom.Time // ToDoor.Now, the newest
	since   uint64
	figured bool          // has figures of the site
	timed   bool          // has been told the room time
	absent  bool          // the site did not answer: streams are to be told again
	back    anteroom.Time // when they were told again, and asked what nobody had answered
	ticked  anteroom.Time
	lastKey anteroom.Time
	came    anteroom.Time // when the request came that is being decided about without the site; 0: now

	dues   slab[due]      // of those who wait and were told here when to come back, for the next process of the site
	duePos uint32         // of dues that was looked at last
	told   recent[uint32] // the best place that a stream or an early look was shown, which no cookie says
	toldOf anteroom.Time  // the shuffle that told is of

	streams map[anteroom.ID]*stream
	parted  []anteroom.ID       // tickets whose streams are to claim the place back
	opening map[anteroom.ID]int // requests for streams that nobody has decided about
	called  recent[struct{}]
	gone    recent[anteroom.Time] // sessions that have ended, and when that was heard

	answers []Answer
	pushes  []anteroom.ID
	ended   []anteroom.ID

	visits []Asked // room for those of the next message
}

// asking is a request that the site decides.
type asking struct {
	visit anteroom.Visit
	at    anteroom.Time
	sent  anteroom.Time // 0: not yet
	told  bool          // the site may have heard of it
	again bool          // an open stream that is told again; nobody waits for the answer
	over  bool          // nobody waits any more
}

// stream is the open streams of a ticket at this door.
type stream struct {
	visit  anteroom.Visit
	count  int
	parted anteroom.Time // when the place was heard to have gone; 0: it is at the site
	wait   time.Duration // before it is claimed back
	since  anteroom.Time // when it was claimed back last
}

// ends is how far the lists of a message go.
type ends struct {
	sent                                    anteroom.Time
	abandoned, closed, late, revokes, polls uint64
}

// NewDoorway returns a door that knows nobody, of a process that has this number and no other.
func NewDoorway(process uint64, s anteroom.Settings) *Doorway {
	return &Doorway{door: NewDoor(s), process: process, asks: asks{first: 1}, closing: map[anteroom.ID]uint64{},
		streams: map[anteroom.ID]*stream{}, opening: map[anteroom.ID]int{}, called: newRecent[struct{}](2 * anteroom.MaxStreams), gone: newRecent[anteroom.Time](maxEnded), told: newRecent[uint32](maxTold)}
}

// SetNode says which node the process is of, as a number that no other node has: see FromDoor.Node.
func (x *Doorway) SetNode(node uint64) { x.node = node }

// Configure puts new settings in force.
func (x *Doorway) Configure(now anteroom.Time, s anteroom.Settings) {
	before := x.door.settings
	x.door.Configure(s)
	if s.Suspended && !before.Suspended {
		for token, a := range x.asks.all() {
			if !a.over && !a.again {
				x.giveUp(now, token, a)
			}
		}
	}
}

// OnFailure says what newcomers get while the site does not answer: a place in line that counts
// when it is back, or the way in, uncounted.
func (x *Doorway) OnFailure(admit bool) { x.admit = admit }

// Visit decides about one request. When held is not 0, the decision follows among the
// answers of a later call; Abandon says that nobody waits for it any more.
func (x *Doorway) Visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	d, ask := x.door.Decide(now, &v)
	if !ask && d.Verdict == anteroom.Admit && !v.Ticket.Accepted() {
		x.lets(v.Ticket.ID) // the answer that said so did not reach the visitor
	}
	if !ask && (d.Verdict != anteroom.Admit || d.Reason == anteroom.ReasonSuspended || !x.quiet(now) || x.lives(now, &v)) {
		x.takePolls()
		x.seenAlone(now, &d)
		if x.sure(&d, &v); x.stale(now, &d, &v) && !x.quiet(now) {
			return anteroom.Decision{}, x.ask(now, v, false)
		}
		x.shows(now, &d)
		return d, 0
	}
	if !x.Reachable(now) && !x.worthwhile(now, &v) {
		return x.alone(now, v), 0
	}
	return anteroom.Decision{}, x.ask(now, v, false)
}

// lets notes that a visitor is let in who has perhaps not been before, though the session has begun a while ago. The site is
// told once.
func (x *Doorway) lets(id anteroom.ID) {
	if slot := x.door.known.find(&id); slot != 0 {
		k := x.door.known.at(slot)
		if k.told {
			return
		}
		k.told = true
	}
	x.late.add(id)
	x.news = true
}

// stale says that a session's cookie is to be renewed, and that no moment is known here that would
// do: the visitor uses other doors too, or has been away. The site makes it one of now.
func (x *Doorway) stale(now anteroom.Time, d *anteroom.Decision, v *anteroom.Visit) bool {
	s := &x.door.settings
	if d.Verdict != anteroom.Admit || s.DisableSessionRenewal || v.Stream {
		return false
	}
	slot := x.door.known.find(&d.Ticket.ID)
	return now.Sub(d.Ticket.LastCheckIn) > renewAfter(s.SessionDuration) ||
		slot != 0 && now.Sub(x.door.known.at(slot).sure) > sureFor(s.SessionDuration)
}

// quiet says that the site has not answered for a moment, so that nobody waits for it who need
// not.
func (x *Doorway) quiet(now anteroom.Time) bool {
	return x.silence != 0 && now.Sub(x.silence) >= askAgain
}

func (x *Doorway) ask(now anteroom.Time, v anteroom.Visit, again bool) uint64 {
	token := x.asks.add(asking{visit: v, at: now, again: again})
	x.unsent = append(x.unsent, token)
	if v.Stream {
		x.opening[v.Ticket.ID]++
		x.reopen(v.Ticket.ID)
		x.reopen(v.NewID)
	}
	return token
}

// decided notes that a request for a stream is not open any more.
func (x *Doorway) decided(a *asking) {
	if id := a.visit.Ticket.ID; a.visit.Stream {
		if x.opening[id]--; x.opening[id] == 0 {
			delete(x.opening, id)
		}
	}
}

// reopen takes back that a ticket has no stream: told again, it would end the next.
func (x *Doorway) reopen(id anteroom.ID) {
	if at, ok := x.closing[id]; ok {
		x.closed.items[at-x.closed.first] = anteroom.ID{}
		delete(x.closing, id)
	}
}

// sure makes a cookie say no later moment than one that the site has confirmed, or for which it
// holds the session: another door may have to believe it.
func (x *Doorway) sure(d *anteroom.Decision, v *anteroom.Visit) {
	if d.Verdict != anteroom.Admit {
		return
	}
	x.news = true
	if d.SetCookie {
		if slot := x.door.known.find(&d.Ticket.ID); slot != 0 {
			k := x.door.known.at(slot)
			at := max(v.Ticket.LastCheckIn, k.sure, k.alone)
			d.Ticket.LastCheckIn = at
			d.SetCookie = at != v.Ticket.LastCheckIn || d.Ticket.AcceptedAt != v.Ticket.AcceptedAt
		}
	}
}

func (x *Doorway) takePolls() {
	for _, p := range x.door.TakePolls() {
		if len(x.polls.items) < maxPolls {
			x.polls.add(p)
			x.news = true
		}
	}
}

// Urgent says that a message for the site ought not to wait for the next tick: somebody waits
// for the answer.
func (x *Doorway) Urgent() bool {
	return len(x.unsent) > 0 || len(x.revokes.items) > 0 && x.news || x.turned && x.inhabited()
}

// Reachable reports whether the site answers: it is not cutAfter ago that it was spoken to and
// has not answered.
func (x *Doorway) Reachable(now anteroom.Time) bool {
	return x.silence == 0 || now.Sub(x.silence) < cutAfter
}

// Take returns what the site is to hear now, if anything. Call it until there is no more:
// at once when Urgent, and with every tick. The message is valid until the next call.
func (x *Doorway) Take(now anteroom.Time) (m FromDoor, ok bool) {
	reachable := x.Reachable(now)
	since := now.Sub(x.spoke)
	if reachable {
		x.again(now)
	}
	beat := x.spoke == 0 || since >= doorBeat
	switch {
	case beat && (!reachable || x.unconfirmed() || x.inhabited() || !x.empty && x.spoke != 0):
	case !reachable:
		return m, false
	case len(x.unsent) > 0, x.news, x.turned, x.unconfirmed() && since >= tellAgain:
	default:
		return m, false
	}
	if x.empty = !x.inhabited(); x.empty {
		x.heardBy, x.emptied = 0, now
	}
	m = FromDoor{Door: x.process, Node: x.node, Empty: x.empty, Sent: now, Visits: x.takeVisits(now), Origin: x.origin}
	if x.figured {
		m.Figures = x.door.figures.At
	}
	e := ends{sent: now}
	m.Abandoned, e.abandoned = x.abandoned.tell(tokensAtOnce)
	m.Closed, e.closed = x.closed.tell(idsAtOnce)
	m.Late, e.late = x.late.tell(idsAtOnce)
	m.Closed = slices.DeleteFunc(slices.Clone(m.Closed), anteroom.ID.IsZero)
	m.Revokes, e.revokes = x.revokes.tell(idsAtOnce)
	m.Polls, e.polls = x.polls.tell(pollsAtOnce)
	if len(x.unsent) == 0 && len(m.Polls) == len(x.polls.items) {
		m.Told = x.term
	}
	x.last = m.Told
	m.Batch, m.Touches = x.door.TakeTouches()
	m.Ages = x.door.ages(now, m.Touches)
	x.sent.add(m.Batch, e)
	x.spoke, x.news, x.turned = now, false, false
	if x.silence == 0 {
		x.silence = now
	}
	return m, true
}

func (x *Doorway) takeVisits(now anteroom.Time) []Asked {
	n := min(len(x.unsent), visitsAtOnce)
	if n == 0 {
		return nil
	}
	visits := x.visits[:0]
	for _, token := range x.unsent[:n] {
		a := x.asks.get(token)
		if a != nil && a.again && x.streams[a.visit.Ticket.ID] == nil {
			x.decided(a) // the stream has ended meanwhile
			x.closeUnused(a.visit.Ticket.ID)
			x.asks.drop(token)
			continue
		}
		if a != nil && !a.over {
			a.sent, a.told = now, true
			visits = append(visits, Asked{Token: token, Visit: a.visit, Waited: now.Sub(a.at)})
		}
	}
	x.unsent = append(x.unsent[:0], x.unsent[n:]...)
	x.visits = visits
	return visits
}

// again has requests asked again whose answer is overdue.
func (x *Doorway) again(now anteroom.Time) {
	if now.Sub(x.checkd) < askAgain/4 {
		return
	}
	x.checkd = now
	for token, a := range x.asks.all() {
		if !a.over && a.sent != 0 && now.Sub(a.sent) >= askAgain {
			a.sent = 0
			x.unsent = append(x.unsent, token)
		}
	}
}

func (x *Doorway) unconfirmed() bool {
	return len(x.abandoned.items)+len(x.closed.items)+len(x.late.items)+len(x.revokes.items)+len(x.polls.items)+len(x.door.touches.items) > 0
}

// inhabited says that the site must not take this door for gone.
func (x *Doorway) inhabited() bool {
	if x.over {
		return len(x.door.touches.items) > maxTouches // else the next message has the last requests of all sessions
	}
	return x.asks.open+len(x.streams)+x.door.known.len() > 0
}

// lastWordAgain is after how long without an answer the last word is said again.
const lastWordAgain = 200 * time.Millisecond

// End says that the door admits nobody any more, because its process ends. Take then tells the site so, which holds no
// seats for what it would not hear of. It reports whether the site has confirmed that; call it again until then.
func (x *Doorway) End(now anteroom.Time) (confirmed bool) {
	x.over = true
	said := x.empty && x.last == x.term // a successor does not take what was said to the one before for the last word
	if x.spoke == 0 || said && x.silence == 0 {
		return true
	}
	x.news = x.news || !said || now.Sub(x.spoke) >= lastWordAgain
	return false
}

// Idle reports that the door needs no ticks before the next request.
func (x *Doorway) Idle() bool {
	return !x.inhabited() && (x.empty || x.spoke == 0) && !x.unconfirmed() && len(x.answers)+len(x.pushes)+len(x.ended)+len(x.called.items) == 0
}

// Receive takes a message of the site, to this door or to all. While the clock of the process has not
// been set, the host takes ToDoor.Echo out.
func (x *Doorway) Receive(now anteroom.Time, m ToDoor) {
	if m.Site.Name == x.site.Name && m.Site.Incarnation < x.site.Incarnation || m.Term < x.term {
		return
	}
	x.site = m.Site
	if m.Term > x.term {
		before := x.term
		if x.term, x.heard, x.since = m.Term, 0, 0; before != 0 {
			x.tellDues(now)
			x.tellStreams(now)
			x.absent = false
		}
	}
	x.timed = x.timed || m.Echo != 0
	if m.Confirmed != 0 {
		x.confirm(m)
	}
	if m.Since != 0 && m.Since != x.since {
		x.absent = x.absent || x.since != 0
		x.since, x.heard = m.Since, 0
	}
	// One that was overtaken by a later says nothing of the mode.
	if late := m.Now < x.heard && x.heard.Sub(m.Now) < doorDead; !late {
		x.heard = m.Now
		if m.Mode != Queue {
			x.door.anyone = m.Now // who checked in before may be inside by now, and have lost the answer
		}
		if m.Figures != nil {
			x.figured = true
			x.door.Apply(now, m.Mode, m.Figures)
		} else {
			x.door.mode = m.Mode
		}
	}
	for i := range m.Answers {
		x.answered(now, &m.Answers[i])
	}
	for _, id := range m.Pushes {
		if x.streams[id] != nil {
			x.push(now, id)
		}
	}
	for _, id := range m.Parted {
		x.part(now, id)
	}
	for _, id := range m.Ended {
		x.door.Forget(id)
		x.gone.put(id, now, now.Add(anteroom.MaxSessionDuration))
		x.ended = append(x.ended, id)
	}
	if m.Confirmed != 0 && x.absent {
		x.absent = false
		x.tellStreams(now)
	}
}

// part notes that the place of a ticket has gone to another site although it has a stream here.
// The visitor is there, and the stream ends, or only a late word of a check-in came from there:
// then the turn could reach him nowhere but here.
func (x *Doorway) part(now anteroom.Time, id anteroom.ID) {
	s := x.streams[id]
	if s == nil || s.parted != 0 {
		return
	}
	if s.wait = min(2*s.wait, reclaimMost); s.wait == 0 || now.Sub(s.since) > time.Minute {
		s.wait = reclaimFirst
	}
	s.parted = now
	x.parted = append(x.parted, id)
}

// reclaim has the site look for places that have gone elsewhere and whose streams are open still.
func (x *Doorway) reclaim(now anteroom.Time) {
	x.parted = slices.DeleteFunc(x.parted, func(id anteroom.ID) bool {
		s := x.streams[id]
		if s == nil || s.parted == 0 {
			return true // it has ended; another may have begun since
		}
		if now.Sub(s.parted) < s.wait {
			return false
		}
		s.parted, s.since = 0, now
		x.ask(now, s.visit, true)
		return true
	})
}

func (x *Doorway) confirm(m ToDoor) {
	x.door.Confirmed(m.Confirmed)
	e, ok := x.sent.landed(m.Confirmed)
	if !ok {
		return
	}
	x.abandoned.heard(e.abandoned)
	x.revokes.heard(e.revokes)
	x.polls.heard(e.polls)
	for _, id := range x.closed.items[:max(e.closed, x.closed.first)-x.closed.first] {
		delete(x.closing, id)
	}
	x.closed.heard(e.closed)
	x.late.heard(e.late)
	if x.silence = 0; e.sent > x.emptied {
		x.heardBy = max(x.heardBy, e.sent)
	}
	if len(x.sent.list) > 0 {
		x.silence = x.sent.list[0].what.sent
	}
}

// tellStreams has the streams here told to a site that does not know of them.
func (x *Doorway) tellStreams(now anteroom.Time) {
	x.back = now
	ids := make([]anteroom.ID, 0, len(x.streams))
	for id := range x.streams {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range ids {
		x.ask(now, x.streams[id].visit, true)
	}
	for token, a := range x.asks.all() { // and what it was asked
		if a.sent != 0 && !a.over {
			a.sent = 0
			x.unsent = append(x.unsent, token)
		}
	}
}

func (x *Doorway) answered(now anteroom.Time, answer *Answer) {
	d := &answer.Decision
	if d.Verdict == anteroom.Admit {
		x.learn(now, d)
	}
	x.shows(now, d)
	a := x.asks.get(answer.Token)
	if a == nil {
		return
	}
	if d.Verdict == anteroom.Admit && !a.over && !a.again && !x.inTime(now, a, d) {
		x.giveUp(now, answer.Token, a)
		return
	}
	defer x.asks.drop(answer.Token)
	id := d.Ticket.ID
	if !a.over {
		x.decided(a)
	}
	switch {
	case a.over:
		if a.visit.Stream && d.Verdict == anteroom.Wait {
			x.closeUnused(id)
		}
	case a.again:
		if x.streams[a.visit.Ticket.ID] != nil && (d.Verdict != anteroom.Wait || id != a.visit.Ticket.ID) {
			x.push(now, a.visit.Ticket.ID) // the page comes again and is told
		}
		x.closeUnused(a.visit.Ticket.ID)
		x.closeUnused(id)
	default:
		if a.visit.Stream && d.Verdict == anteroom.Wait {
			x.openStream(a.visit, d.Ticket)
		}
		if a.visit.Stream {
			x.closeUnused(a.visit.Ticket.ID)
		}
		x.answers = append(x.answers, *answer)
	}
}

// inTime says that a visitor may be let in by an answer of the site. One that was long on its way lets in
// now, not when the site decided: the site is told. While the process was stopped, the site has perhaps
// ended the session.
func (x *Doorway) inTime(now anteroom.Time, a *asking, d *anteroom.Decision) bool {
	if now.Sub(d.At) <= TouchDelay {
		return true
	}
	s, age := &x.door.settings, now.Sub(a.at)
	went, asked := age < askFor+stopped, seenAt(d)
	if !x.timed { // nor is it known when that was, but that it was after the question
		asked = a.at
	}
	begun := d.At == d.Ticket.AcceptedAt && a.visit.Ticket.Accepted() && age >= askFor
	switch lasting := now.Add(speaksBy) < lasts(s, d.Ticket.AcceptedAt, asked); {
	case begun: // without the visitor, who goes on with it
		return false
	case !went && !(lasting && (!x.timed || x.mayAlone(now))):
		return false
	}
	x.news = true
	x.lets(d.Ticket.ID)
	if seenAt(d) < d.At { // on probation: a late answer is no second request
		return true
	}
	return x.door.touch(now, d.Ticket.ID) || went
}

// seenAt is when the site saw the session last, as far as the end of the session is concerned: one that has just begun on
// probation ends early.
func seenAt(d *anteroom.Decision) anteroom.Time {
	if t := &d.Ticket; t.LastCheckIn < t.AcceptedAt {
		return t.LastCheckIn
	}
	return d.At
}

// learn takes a session of which the site says that it has begun, unless it has ended since.
func (x *Doorway) learn(now anteroom.Time, d *anteroom.Decision) {
	if at, ended := x.gone.get(d.Ticket.ID); ended && now.Sub(at) < settled {
		return
	}
	x.gone.drop(d.Ticket.ID)
	if Guest(x.site.Name, &d.Ticket) {
		x.door.Welcome(d.At, &d.Ticket)
		return
	}
	x.door.Learn(seenAt(d), d.Ticket.ID, d.Ticket.AcceptedAt)
}

func (x *Doorway) push(now anteroom.Time, id anteroom.ID) {
	x.pushes = append(x.pushes, id)
	x.called.put(id, struct{}{}, now.Add(calledFor))
}

func (x *Doorway) openStream(v anteroom.Visit, t anteroom.Ticket) {
	if t.ID.IsZero() {
		return
	}
	s := x.streams[t.ID]
	if s == nil {
		s = &stream{}
		x.streams[t.ID] = s
	}
	s.count++
	s.visit = anteroom.Visit{Ticket: t, NewID: v.NewID, Bind: v.Bind, NoJoin: true, NoHold: true, Stream: true}
	if s.visit.NewID == t.ID {
		s.visit.NewID = v.Ticket.ID
	}
}

// closeUnused tells the site of a stream that it counts and nobody has here.
func (x *Doorway) closeUnused(id anteroom.ID) {
	if x.streams[id] != nil || x.opening[id] > 0 || id.IsZero() {
		return
	}
	x.reopen(id)
	x.closing[id] = x.closed.end()
	x.closed.add(id)
	x.news = true
}

// CloseStream says that a stream of id has ended.
func (x *Doorway) CloseStream(_ anteroom.Time, id anteroom.ID) {
	s := x.streams[id]
	if s == nil {
		return
	}
	if s.count--; s.count == 0 {
		delete(x.streams, id)
		x.called.drop(id)
		x.closeUnused(id)
	}
}

// ClockSet says that the clock was set by an answer of the site (see [Clock.Heard]): what was noted
// before is moved along. Else requests would look as if they had waited for long, or nothing would be
// asked again until the clock is there once more.
func (x *Doorway) ClockSet(by time.Duration) {
	for _, at := range []*anteroom.Time{&x.checkd, &x.spoke, &x.back, &x.silence, &x.heardBy, &x.emptied, &x.ticked} {
		if *at != 0 {
			*at = at.Add(by)
		}
	}
	for _, a := range x.asks.all() {
		if a.at = a.at.Add(by); a.sent != 0 {
			a.sent = a.sent.Add(by)
		}
	}
	for i := range x.sent.list {
		x.sent.list[i].what.sent = x.sent.list[i].what.sent.Add(by)
	}
	for _, s := range x.streams {
		if s.parted != 0 {
			s.parted = s.parted.Add(by)
		}
	}
	x.door.known.each(func(slot uint32) {
		k := x.door.known.at(slot)
		k.last = k.last.Add(by)
	})
}

// Abandon says that nobody waits for the held answer any more.
func (x *Doorway) Abandon(_ anteroom.Time, held uint64) {
	if a := x.asks.get(held); a != nil && !a.over {
		x.abandon(held, a)
	}
}

func (x *Doorway) abandon(token uint64, a *asking) {
	a.over = true
	x.decided(a)
	if a.told {
		x.abandoned.add(token)
		x.news = true
	}
	if a.visit.Stream {
		x.closeUnused(a.visit.Ticket.ID)
		x.closeUnused(a.visit.NewID)
	}
}

// giveUp answers a request without the site.
func (x *Doorway) giveUp(now anteroom.Time, token uint64, a *asking) {
	x.came = a.at
	d := x.alone(now, a.visit)
	x.came = 0
	x.abandon(token, a)
	x.answers = append(x.answers, Answer{Token: token, Decision: d})
}

// Tick does what time brings. Call it about every 100 ms unless Idle.
func (x *Doorway) Tick(now anteroom.Time) {
	if now.Sub(x.ticked) >= stopped && x.silence != 0 {
		x.silence = now // nobody has listened
	}
	x.ticked = now
	reachable, quiet := x.Reachable(now), x.quiet(now)
	x.absent = x.absent || !reachable
	for token, a := range x.asks.all() {
		young := now.Sub(max(a.at, x.back)) < askFor
		if young && !quiet {
			break // the later ones are younger
		}
		switch {
		case x.waits(now, a, young && reachable):
		case a.over, a.again:
			if now.Sub(a.at) >= 2*askFor || a.again {
				if a.again {
					x.absent = true
					x.decided(a)
					x.closeUnused(a.visit.Ticket.ID)
				}
				x.asks.drop(token)
			}
		default:
			x.giveUp(now, token, a)
		}
	}
	if reachable {
		x.reclaim(now)
	}
	x.called.forget(now)
	x.gone.forget(now)
	x.told.forget(now)
	x.door.prune(now)
	x.pruneDues(now)
}

// waits says that a request goes on waiting for a site that is silent. Whoever has a session for
// certain does not.
func (x *Doorway) waits(now anteroom.Time, a *asking, hope bool) bool {
	if a.over || a.again {
		return hope
	}
	return (hope || x.worthwhile(now, &a.visit)) && !x.lives(now, &a.visit)
}

// Revoke ends the session of id at once: here, and at the site as soon as it hears. It reports
// whether this door knew it.
func (x *Doorway) Revoke(now anteroom.Time, id anteroom.ID) bool {
	known := x.door.known.find(&id) != 0
	x.revokes.add(id)
	x.news = true
	x.door.Forget(id)
	x.gone.put(id, now, now.Add(anteroom.MaxSessionDuration))
	x.ended = append(x.ended, id)
	return known
}

// Touch renews a session without a decision: for long connections. It reports whether there
// is one that may go on.
func (x *Doorway) Touch(now anteroom.Time, id anteroom.ID) bool {
	x.news = true
	if x.door.Unsure(now, id) && x.Reachable(now) { // nobody waits for the answer, by which the door is sure again
		k := x.door.known.at(x.door.known.find(&id))
		x.ask(now, anteroom.Visit{NoClaim: true, NoJoin: true, NoHold: true,
			Ticket: anteroom.Ticket{ID: id, AcceptedAt: k.accepted, LastCheckIn: k.sure, Home: k.home}}, false)
	}
	return x.door.touch(now, id)
}

// Session returns the session of id, if this door knows it.
func (x *Doorway) Session(id anteroom.ID) (anteroom.Session, bool) {
	slot := x.door.known.find(&id)
	if slot == 0 {
		return anteroom.Session{}, false
	}
	k := x.door.known.at(slot)
	return anteroom.Session{ID: id, AcceptedAt: k.accepted, LastSeen: k.sure}, true
}

// Called reports whether the turn of id has come and was told on a stream here that is open.
func (x *Doorway) Called(id anteroom.ID) bool {
	_, called := x.called.get(id)
	return called
}

// TakeAnswers returns the answers to held requests and forgets them.
func (x *Doorway) TakeAnswers(anteroom.Time) []Answer {
	if len(x.answers) == 0 {
		return nil // a process alone has taken its one answer already, and the next finds room in its place
	}
	a := x.answers
	x.answers = nil
	return a
}

// TakePushes returns the ids whose turn has come on a stream.
func (x *Doorway) TakePushes() []anteroom.ID { p := x.pushes; x.pushes = nil; return p }

// TakeEnded returns the ids of sessions that have ended.
func (x *Doorway) TakeEnded() []anteroom.ID { e := x.ended; x.ended = nil; return e }

// TakeEvents returns nothing: what is to be recorded is with the site.
func (x *Doorway) TakeEvents() []Event { return nil }
