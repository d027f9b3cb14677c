package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// doorBeat is how often a door speaks to its site while it has anything here.
	doorBeat = time.Second
	// doorDead is after how long a silent door has gone: its streams are broken.
	doorDead = 5 * time.Second
	// maxDoors bounds the doors of a room at a site, maxAnswers the answers to one of them that
	// nobody has fetched: what is beyond is not taken, and asked again.
	maxDoors   = 10_000
	maxAnswers = 16 << 10
	// stopped is after how long without a tick a process was stopped: others have spoken to it
	// meanwhile, and it has not listened.
	stopped = time.Second
	// pushAgain is how often a turn is told again on a stream that has not ended.
	pushAgain = 500 * time.Millisecond
	// Of so many is a message of a site to a door.
	answersAtOnce = 2 << 10
	idsAtOnce     = 8 << 10
)

// Desk is a Site with its doors: it takes what they send and says what each of them, and all
// of them, are to hear. A state machine over messages and time like the site. A request that is
// repeated is decided about again, which gives no second place and no second seat, for both
// belong to the ticket.
type Desk struct {
	site    *Site
	doors   map[uint64]*deskDoor
	order   []*deskDoor // as they came, so that runs repeat
	held    map[uint64]heldAt
	streams map[anteroom.ID][]*deskDoor
	pushed  []pushedTo           // the oldest first
	pushing map[anteroom.ID]bool // those in pushed
	done    []doneAt             // the oldest first
	ended   []anteroom.ID
	ticked  anteroom.Time

	mode    Mode // as all have been told, with figures
	figures *Figures

	early []earlyVisit  // requests that came before the site was ready
	begun anteroom.Time // when it was

	announce bool // the doors are to hear that another process is the site now

	out  []Outgoing // room for those of Take
	step Step
}

// deskDoor is a door as the desk knows it.
type deskDoor struct {
	number  uint64
	since   uint64 // the first batch taken
	batch   uint64 // the newest
	sent    anteroom.Time
	said    anteroom.Time // when the newest left the door
	heard   anteroom.Time
	reply   bool
	answers []Answer
	spare   []Answer
	pushes  []anteroom.ID
	ended   []anteroom.ID
	parted  []anteroom.ID
	early   int               // of Desk.early
	spoke   bool              // since the site is ready
	held    map[uint64]uint64 // its tokens of held requests, and of those in Desk.done: the site's
	open    int               // streams

	behind bool // it has other figures than the site
	origin OriginFacts
	toldAt anteroom.Time
}

// earlyVisit is a request for which the site was not ready.
type earlyVisit struct {
	door  *deskDoor
	asked Asked
	came  anteroom.Time // to the door
}

// notAsked stands in deskDoor.held for such a request: no held request has the number.
const notAsked = 0

// heldAt is a held request of a door.
type heldAt struct {
	door  *deskDoor
	asked Asked
}

// doneAt is a held request that was answered. The door perhaps asks again while the answer is on its way,
// and nobody would wait for what comes of that: held once more, it could take the visitor's turn.
type doneAt struct {
	door  *deskDoor
	token uint64
	at    anteroom.Time
}

// pushedTo is a turn that was told on a stream.
type pushedTo struct {
	id anteroom.ID
	at anteroom.Time
}

// Outgoing is a message to a door, or to all.
type Outgoing struct {
	Door    uint64 // 0: to all
	Message ToDoor
}

// NewDesk returns a desk that knows no door. The desk has the site's answers, pushes and ended
// sessions; its reports and events are the host's.
func NewDesk(s *Site) *Desk {
	return &Desk{site: s, doors: map[uint64]*deskDoor{}, held: map[uint64]heldAt{}, streams: map[anteroom.ID][]*deskDoor{}, pushing: map[anteroom.ID]bool{}}
}

// Site returns the site. The host tells it what the coordinator says, and what is configured.
func (x *Desk) Site() *Site { return x.site }

// Receive takes a batch of a door. One that is not newer than the last changes nothing.
func (x *Desk) Receive(now anteroom.Time, m FromDoor) {
	d := x.doors[m.Door]
	if d == nil {
		if len(x.doors) >= maxDoors || m.Door == 0 || m.Batch == 0 {
			return
		}
		d = &deskDoor{number: m.Door, since: m.Batch, held: map[uint64]uint64{}, behind: true}
		x.doors[m.Door] = d
		x.order = append(x.order, d)
	}
	d.heard = now
	// A message may have waited here while the process was stopped.
	d.said = now
	if m.Known != 0 {
		d.said = min(m.Known, now)
		x.site.timed = x.site.timed || now.Sub(m.Known) <= TouchDelay
	}
	x.site.spoke(now, d.said, &m)
	if m.Batch <= d.batch {
		return // what was answered may be lost: the next batch has it again
	}
	d.batch, d.sent, d.reply = m.Batch, m.Sent, true
	d.behind = m.Figures != x.site.figures.At
	x.origin(now, d, m.Origin)
	for _, token := range m.Abandoned {
		if held, ok := d.held[token]; ok {
			delete(d.held, token)
			x.abandon(now, held)
		}
	}
	for _, id := range m.Closed {
		x.close(now, d, id)
	}
	for _, id := range m.Revokes {
		if !x.site.Revoke(now, id) {
			x.site.revokeAway(now, id)
		}
	}
	for _, id := range m.Late {
		x.site.cameLate(d.said, id)
	}
	for i, id := range m.Touches {
		seen := d.said.Add(TouchEvery) // of a message that has waited: about when it left, or before
		if i < len(m.Ages) {
			seen = seen.Add(-max(0, m.Ages[i]))
		}
		switch known := x.site.Touch(now, min(now, seen), id); {
		case known:
			x.site.through(id, d.number)
		case x.site.oriented():
			d.ended = append(d.ended, id)
		default:
			d.reply = false // it is perhaps of a memory that was lost: the door tells again
		}
	}
	if len(m.Polls) > 0 {
		x.site.Polls(now, m.Polls)
	}
	early := x.decideEarly(now, d)
	for i := range m.Visits {
		if !early[m.Visits[i].Token] {
			x.visit(now, d, m.Visits[i])
		}
	}
	x.settle(now)
}

func (x *Desk) visit(now anteroom.Time, d *deskDoor, a Asked) {
	if _, waits := d.held[a.Token]; waits || len(d.answers) >= maxAnswers {
		return // the door asks again
	}
	ago := now.Sub(max(d.said, now.Add(-MaxInterval))) + min(a.Waited, 2*askFor)
	if x.site.ready(&a.Visit.Ticket.ID) && (len(x.early) == 0 || x.site.names(&a.Visit.Ticket.ID)) {
		x.decide(now, d, a, ago)
	} else if d.early < maxAnswers {
		d.held[a.Token] = notAsked
		d.early++
		x.early = append(x.early, earlyVisit{d, a, now.Add(-ago)})
	}
}

// decideEarly asks the site about the requests that came before it was ready, when it is and every door that
// has one has told since whom it has let in: in the order in which they came, or somebody who came later would
// enter first. It returns the tokens of those of one door.
func (x *Desk) decideEarly(now anteroom.Time, d *deskDoor) (tokens map[uint64]bool) {
	if len(x.early) == 0 || !x.site.oriented() {
		return nil
	}
	x.begun = or0(x.begun, now)
	if d != nil {
		d.spoke = true
	}
	for i := range x.early {
		if !x.early[i].door.spoke && now.Sub(x.begun) < TouchDelay {
			return nil
		}
	}
	list := x.early
	x.early = nil
	slices.SortStableFunc(list, func(a, b earlyVisit) int { return cmp.Compare(a.came, b.came) })
	tokens = map[uint64]bool{}
	for _, e := range list {
		e.door.early--
		held, waits := e.door.held[e.asked.Token]
		if !waits || held != notAsked || x.doors[e.door.number] != e.door {
			continue
		}
		delete(e.door.held, e.asked.Token)
		if e.door == d {
			tokens[e.asked.Token] = true
		}
		x.decide(now, e.door, e.asked, now.Sub(e.came))
	}
	return tokens
}

// decide asks the site about a request that came to its door so long ago.
func (x *Desk) decide(now anteroom.Time, d *deskDoor, a Asked, ago time.Duration) {
	x.site.came = now.Add(-ago)
	dec, held := x.site.Visit(now, a.Visit)
	x.site.came = 0
	if a.Visit.Stream {
		x.count(now, d, a.Visit.Ticket.ID)
		x.count(now, d, a.Visit.NewID)
	}
	if held != 0 {
		x.held[held] = heldAt{d, a}
		d.held[a.Token] = held
		return
	}
	x.answer(now, d, &a, dec)
}

// answer says a decision to the door that asked.
func (x *Desk) answer(now anteroom.Time, d *deskDoor, a *Asked, dec anteroom.Decision) {
	d.answers = append(d.answers, Answer{Token: a.Token, Decision: dec})
	if dec.Verdict == anteroom.Admit {
		x.site.through(dec.Ticket.ID, d.number)
	}
	if id := dec.Ticket.ID; a.Visit.Stream && dec.Verdict == anteroom.Wait && !id.IsZero() {
		if !slices.Contains(x.streams[id], d) && (x.site.streamsOf(id) > len(x.streams[id]) || x.site.openStream(id)) {
			x.open(now, d, id) // it was held, or a used ticket has become another
		}
		x.trim(now, id)
		if x.site.Called(id) {
			x.push(now, d, id) // the stream is what the turn waited for
		}
	}
}

// abandon forgets a held request, and the stream that the site has perhaps counted for it.
func (x *Desk) abandon(now anteroom.Time, held uint64) {
	v := x.held[held].asked.Visit
	delete(x.held, held)
	x.site.Abandon(now, held)
	if !v.Stream {
		return
	}
	x.trim(now, v.Ticket.ID)
	x.trim(now, v.NewID)
}

// count notes the stream that the site has counted for a request of the door, if it has. A
// ticket has one stream at a door.
func (x *Desk) count(now anteroom.Time, d *deskDoor, id anteroom.ID) {
	if x.site.streamsOf(id) > len(x.streams[id]) && !slices.Contains(x.streams[id], d) {
		x.open(now, d, id)
	}
	x.trim(now, id)
}

// trim takes back what the site has counted and no door has.
func (x *Desk) trim(now anteroom.Time, id anteroom.ID) {
	for n := x.site.streamsOf(id) - len(x.streams[id]); n > 0; n-- {
		x.site.CloseStream(now, id)
	}
}

func (x *Desk) open(now anteroom.Time, d *deskDoor, id anteroom.ID) {
	if d.open >= 2*anteroom.MaxStreams {
		x.site.CloseStream(now, id)
		return
	}
	d.open++
	x.streams[id] = append(x.streams[id], d)
}

// close notes that a ticket has no stream at the door.
func (x *Desk) close(now anteroom.Time, d *deskDoor, id anteroom.ID) {
	list := x.streams[id]
	i := slices.Index(list, d)
	if i < 0 {
		return
	}
	d.open--
	if len(list) == 1 {
		delete(x.streams, id)
	} else {
		x.streams[id] = slices.Delete(list, i, i+1)
	}
	x.site.CloseStream(now, id)
}

func (x *Desk) push(now anteroom.Time, d *deskDoor, id anteroom.ID) {
	d.pushes = append(d.pushes, id)
	if !x.pushing[id] {
		x.pushing[id] = true
		x.pushed = append(x.pushed, pushedTo{id, now})
	}
}

// ClockSet says that the clock was set to now, see [Site.ClockSet].
func (x *Desk) ClockSet(now anteroom.Time, step time.Duration) {
	x.site.ClockSet(now, step)
	x.ticked = now
	for _, d := range x.order {
		d.heard = now
	}
	x.begun = min(x.begun, now)
	for i := range x.early {
		x.early[i].came = x.early[i].came.Add(step)
	}
	for i := range x.pushed {
		x.pushed[i].at = min(x.pushed[i].at, now)
	}
	for i := range x.done {
		x.done[i].at = min(x.done[i].at, now)
	}
}

// ClockGuessed says that the clock, which shows no room time yet, was moved on to now by a step, see [Clock.Guess]. Whoever came before
// came as long ago as before.
func (x *Desk) ClockGuessed(now anteroom.Time, step time.Duration) {
	x.site.moveUndated(now, step)
	for i := range x.early {
		x.early[i].came = x.early[i].came.Add(step)
	}
}

// Replaced says that another process of a door's node runs, so that the door's own has ended for certain. The new one's door has
// nothing to tell before somebody comes to it, and until it speaks, or this is called, the older one may be letting sessions in.
func (x *Desk) Replaced(now anteroom.Time, door uint64) { x.site.replacedDoor(now, door) }

// Gone says that a door's process has ended, or is not heard any more: its streams are broken, and nobody waits for its
// requests.
func (x *Desk) Gone(now anteroom.Time, door uint64) {
	x.site.lostDoor(door)
	d := x.doors[door]
	if d == nil {
		return
	}
	delete(x.doors, door)
	x.order = slices.DeleteFunc(x.order, func(o *deskDoor) bool { return o == d })
	x.sumOrigin(now)
	tokens := make([]uint64, 0, len(d.held))
	for _, held := range d.held {
		tokens = append(tokens, held)
	}
	slices.Sort(tokens)
	for _, held := range tokens {
		x.abandon(now, held)
	}
	var broken []anteroom.ID
	for id, list := range x.streams {
		if slices.Contains(list, d) {
			broken = append(broken, id)
		}
	}
	slices.SortFunc(broken, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range broken {
		x.close(now, d, id)
	}
}

// Tick does what time brings, for the site as well. Call it about every 100 ms while the room has
// visitors, and when the site wakes (see [Site.Wake]).
func (x *Desk) Tick(now anteroom.Time) {
	paused := now.Sub(x.ticked) >= stopped
	x.ticked = now
	x.site.Tick(now)
	x.decideEarly(now, nil)
	for i := 0; i < len(x.order); i++ {
		d := x.order[i]
		switch {
		case paused: // the doors have spoken, and nobody has listened
			d.heard = now
		case now.Sub(d.heard) > doorDead:
			x.Gone(now, d.number)
			i--
		}
	}
	for ; len(x.done) > 0 && now.Sub(x.done[0].at) >= TouchDelay; x.done = x.done[1:] {
		delete(x.done[0].door.held, x.done[0].token)
	}
	for len(x.pushed) > 0 && now.Sub(x.pushed[0].at) >= pushAgain {
		p := x.pushed[0]
		x.pushed = x.pushed[1:]
		if doors := x.streams[p.id]; len(doors) > 0 && x.site.Called(p.id) {
			for _, d := range doors {
				d.pushes = append(d.pushes, p.id)
			}
			x.pushed = append(x.pushed, pushedTo{p.id, now})
			continue
		}
		delete(x.pushing, p.id)
	}
	x.settle(now)
}

// settle sorts what came of calls to the site by the doors that are to hear it.
func (x *Desk) settle(now anteroom.Time) {
	for _, a := range x.site.TakeAnswers() {
		h, ok := x.held[a.Token]
		if !ok {
			continue
		}
		delete(x.held, a.Token)
		x.done = append(x.done, doneAt{h.door, h.asked.Token, now})
		x.answer(now, h.door, &h.asked, a.Decision)
	}
	for _, id := range x.site.TakePushes() {
		for _, d := range x.streams[id] {
			x.push(now, d, id)
		}
	}
	x.ended = append(x.ended, x.site.TakeEnded()...)
	for _, id := range x.site.TakeParted() {
		for _, d := range x.streams[id] {
			d.open--
			d.parted = append(d.parted, id)
		}
		delete(x.streams, id)
	}
}

// Take returns what the doors are to hear now, valid until the next call. See [Desk.Step] for when
// it may be sent.
func (x *Desk) Take(now anteroom.Time) []Outgoing {
	x.settle(now)
	out := x.out[:0]
	head := ToDoor{Site: x.site.key, Term: x.site.term, Mode: x.site.Mode(), Now: now}
	all := head
	if x.announce {
		x.announce = false
		out = append(out, Outgoing{Message: all})
	}
	if f := x.site.figures; x.site.figured && (x.figures != f || x.mode != head.Mode) {
		x.figures, x.mode = f, head.Mode
		all.Figures = f
		for _, d := range x.order {
			d.behind, d.toldAt = false, now
		}
	}
	for all.Figures != nil || len(x.ended) > 0 {
		all.Ended, x.ended = cutOff(x.ended, idsAtOnce)
		if len(x.order) > 0 {
			out = append(out, Outgoing{Message: all})
		}
		all.Figures = nil
	}
	for _, d := range x.order {
		out = d.take(out, head, x.figures)
	}
	x.out = out
	return out
}

// take appends what one door is to hear.
func (d *deskDoor) take(out []Outgoing, m ToDoor, figures *Figures) []Outgoing {
	if figures != nil && d.behind && d.reply && (d.toldAt == 0 || m.Now.Sub(d.toldAt) >= doorBeat) {
		m.Figures, d.toldAt, d.behind = figures, m.Now, false
	}
	for d.reply || len(d.answers)+len(d.pushes)+len(d.ended)+len(d.parted) > 0 {
		if m.Answers, d.answers = cutOff(d.answers, answersAtOnce); d.answers == nil {
			d.answers, d.spare = d.spare[:0], m.Answers // which are valid until the next call
		}
		m.Pushes, d.pushes = cutOff(d.pushes, idsAtOnce)
		m.Parted, d.parted = cutOff(d.parted, idsAtOnce)
		m.Since = d.since
		if len(d.answers)+len(d.pushes)+len(d.parted) == 0 {
			// What has ended goes with the confirmation: a touch that is confirmed makes the door
			// believe in the session.
			m.Ended, d.ended = cutOff(d.ended, maxTouches)
			if d.reply && len(d.ended) == 0 {
				m.Confirmed, m.Echo = d.batch, d.sent
			}
			d.reply = false
		}
		out = append(out, Outgoing{Door: d.number, Message: m})
		m.Figures = nil
	}
	return out
}

// cutOff takes at most n elements from the front.
func cutOff[T any](list []T, n int) (front, rest []T) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// streamsOf is the number of open streams of a ticket that waits here.
func (s *Site) streamsOf(id anteroom.ID) int {
	slot := s.here.find(&id)
	if slot == 0 {
		return 0
	}
	return int(s.here.at(slot).streams)
}

// openStream counts one more; the ticket must wait here.
func (s *Site) openStream(id anteroom.ID) bool {
	slot := s.here.find(&id)
	if slot == 0 {
		return false
	}
	s.here.at(slot).streams++
	s.arrivals = append(s.arrivals, s.arrival(slot))
	return true
}

// Step is what came of calls to the machines of a site. Its messages rely on its events and on
// those of all steps before: a host records the events, in order, and sends nothing of the step
// before they are durable. Answers and turns rely on admissions, and a report may return the unit
// of a session whose end is on record only then; a successor that did not know of the end would
// use the unit once more.
type Step struct {
	Events  []Event
	Reports []Report
	ToDoors []Outgoing
}

// Step returns what is to be recorded and said, valid until the next call. timed says that the
// site has been told the room time; before that the doors are not to follow it.
func (x *Desk) Step(now anteroom.Time, timed bool) *Step {
	s := &x.step
	s.Events, s.Reports = s.Events[:0], s.Reports[:0]
	x.site.flushDue(now)
	const most = 1000 // turns a defect of the machines into a delay
	for range most {
		s.Events = append(s.Events, x.site.events...)
		x.site.events = x.site.events[:0]
		r, more := x.site.Report(now)
		if !more {
			break
		}
		s.Reports = append(s.Reports, r)
	}
	s.ToDoors = x.Take(now)
	if !timed {
		for i := range s.ToDoors {
			s.ToDoors[i].Message.Now, s.ToDoors[i].Message.Echo = 0, 0
		}
	}
	return s
}
