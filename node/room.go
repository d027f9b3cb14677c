package node

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// Room is one waiting room at this node. Safe for concurrent use.
type Room struct {
	id       anteroom.RoomID
	node     *Node
	recorder *analytics.Recorder
	active   atomic.Bool // has visitors: needs ticks

	*alone // what a process alone decides itself; nil in a cluster
	*far   // the way to the site that decides; nil when the process is alone

	mu       sync.Mutex
	machine  machine
	schedule schedule
	held     map[uint64]chan anteroom.Decision
	watchers map[anteroom.ID][]*watcher
	endings  map[anteroom.ID][]chan struct{}
	origin   engine.OriginFacts
	holding  bool // nobody new is admitted until the journal is written again
	released bool // a successor takes over
	closed   bool
}

// machine is what a room asks about its visitors: an engine.Single, which decides, or an
// engine.Doorway, which lets in whom it knows and asks the site about the rest.
type machine interface {
	Configure(now anteroom.Time, s anteroom.Settings)
	Tick(now anteroom.Time)
	Idle() bool

	Visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64)
	Abandon(now anteroom.Time, held uint64)
	CloseStream(now anteroom.Time, id anteroom.ID)
	Touch(now anteroom.Time, id anteroom.ID) bool
	Revoke(now anteroom.Time, id anteroom.ID) bool

	Look(now anteroom.Time, t anteroom.Ticket) (anteroom.Decision, bool)
	Session(id anteroom.ID) (anteroom.Session, bool)
	Standing(now anteroom.Time, t anteroom.Ticket) int
	Called(id anteroom.ID) bool

	TakeAnswers(now anteroom.Time) []engine.Answer
	TakePushes() []anteroom.ID
	TakeEnded() []anteroom.ID
	TakeEvents() []engine.Event
	TakeTally() engine.Tally
}

func newRoom(n *Node, room anteroom.Room) *Room {
	return &Room{id: room.ID, node: n, recorder: n.recorder(room.ID), schedule: schedule{plan: room}, held: map[uint64]chan anteroom.Decision{},
		watchers: map[anteroom.ID][]*watcher{}, endings: map[anteroom.ID][]chan struct{}{}}
}

type watcher struct {
	ticket anteroom.Ticket
	last   anteroom.Decision
	out    chan anteroom.Decision
}

// settle passes on what came of a call to the machine. The caller holds the lock. It
// returns the journal batch of the call's events, nil when there were none.
func (r *Room) settle() (b *batch) {
	now := r.now()
	if events := r.machine.TakeEvents(); len(events) > 0 {
		b = r.node.journal.add(r.id, events)
	}
	if t := r.machine.TakeTally(); !t.Empty() {
		recordTally(r.recorder, now, &t)
	}
	for _, a := range r.machine.TakeAnswers(now) {
		if ch := r.held[a.Token]; ch != nil {
			delete(r.held, a.Token)
			r.complete(&a.Decision)
			ch <- a.Decision
		}
		if a.Decision.Verdict == anteroom.Admit {
			r.call(a.Decision.Ticket.ID, a.Decision)
		}
	}
	for _, id := range r.machine.TakePushes() {
		r.call(id, anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: now})
	}
	for _, id := range r.machine.TakeEnded() {
		for _, ch := range r.endings[id] {
			close(ch)
		}
		delete(r.endings, id)
	}
	if r.alone != nil {
		r.storeSoon()
	} else if r.doorway.Urgent() {
		r.shard.say(r, true)
	}
	return b
}

// call tells every stream of a visitor that the turn has come, and ends them.
func (r *Room) call(id anteroom.ID, d anteroom.Decision) {
	r.complete(&d)
	for _, w := range r.watchers[id] {
		select { // an update that nobody has read yet is worth nothing now
		case <-w.out:
		default:
		}
		w.out <- d
		close(w.out)
		r.node.streams.Add(-1)
	}
	delete(r.watchers, id)
}

// Decide decides about one request. It may hold a newcomer for up to half a second when a
// slot is about to come free; ctx ends that early (the visitor then keeps the place).
// With Verdict Admit the admission survives kill -9 when Decide returns.
func (r *Room) Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision {
	d, _ := r.decide(ctx, v)
	r.recorder.Decided(&d, &v.Ticket)
	return d
}

type heldKey struct{}

// WithHeld returns a context with which [Room.Decide] tells how long the request was held: for a slot about to
// come free, or for the answer of the site.
func WithHeld(ctx context.Context, tell func(time.Duration)) context.Context {
	return context.WithValue(ctx, heldKey{}, tell)
}

// decide is Decide. made is false when nothing was decided and d says what was known before.
func (r *Room) decide(ctx context.Context, v anteroom.Visit) (d anteroom.Decision, made bool) {
	r.mu.Lock()
	now := r.follow()
	if r.released && r.machine.Standing(now, v.Ticket) != sessionStanding {
		defer r.mu.Unlock()
		return r.hint(v), false
	}
	var held uint64
	d, held = r.machine.Visit(now, v)
	r.complete(&d)
	if held == 0 && d.Reason == anteroom.ReasonSession { // the common path: nothing else came of it
		r.mu.Unlock()
		if r.alone != nil && !r.node.journal.recorded(d.Ticket.AcceptedAt) {
			// Another request of the visitor has begun the session, and its record is still on the way.
			return r.onRecord(ctx, d), true
		}
		return d, true
	}
	if r.alone != nil && r.single.Older() {
		r.mu.Unlock()
		if err := r.node.outdated(ctx); err != nil {
			r.node.log.Error("the rooms cannot be restarted", "error", err)
			return d, false
		}
		return r.decide(ctx, v)
	}
	if !r.active.Load() {
		r.active.Store(true)
	}
	var answer chan anteroom.Decision
	if held != 0 {
		answer = make(chan anteroom.Decision, 1)
		r.held[held] = answer
	}
	r.settle()
	if d.Verdict == anteroom.Admit {
		r.call(d.Ticket.ID, d)
	}
	r.mu.Unlock()

	if answer != nil {
		began := time.Now()
		select {
		case d = <-answer:
			if tell, ok := ctx.Value(heldKey{}).(func(time.Duration)); ok {
				tell(time.Since(began))
			}
		case <-ctx.Done():
			return r.abandon(held, answer, v)
		}
	}
	d.Stream = d.Stream && r.node.streams.Load() < anteroom.MaxStreams
	if d.Verdict == anteroom.Admit && r.alone != nil {
		d = r.onRecord(ctx, d)
	}
	return d, true
}

// onRecord is the decision that lets a visitor in when the session is on record. While
// nothing can be written, it is a page: whoever enters without a record has a seat that a crash gives to
// another. The session stays the visitor's, and the next request finds it.
func (r *Room) onRecord(ctx context.Context, d anteroom.Decision) anteroom.Decision {
	r.mu.Lock()
	everybody := r.schedule.inForce.QueueingMethod == anteroom.Passthrough
	r.mu.Unlock()
	if everybody || r.node.journal.wait(ctx, d.Ticket.AcceptedAt) || r.node.lenient.Load() {
		return d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := d.Ticket
	t.AcceptedAt, t.LastCheckIn, t.Refresh, t.Home = 0, d.At, engine.MinInterval, 0
	t.Arrival, t.Next = cmp.Or(t.Arrival, d.At), d.At.Add(t.Refresh)
	page := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: d.At, Refresh: t.Refresh, Ticket: t, SetCookie: d.SetCookie,
		KeptUntil: t.Next.Add(r.schedule.inForce.PlaceHold)}
	r.complete(&page)
	return page
}

func (r *Room) abandon(held uint64, answer chan anteroom.Decision, v anteroom.Visit) (d anteroom.Decision, made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case d = <-answer:
		return d, true
	default:
	}
	delete(r.held, held)
	r.machine.Abandon(r.now(), held)
	return r.hint(v), false
}

// hint is an answer that changes nothing: the visitor's place as it was, or to come again
// soon. The caller holds the lock.
func (r *Room) hint(v anteroom.Visit) anteroom.Decision {
	now := r.now()
	d, ok := r.machine.Look(now, v.Ticket)
	if !ok {
		d = anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Refresh: engine.MinInterval}
	}
	r.complete(&d)
	return d
}

// complete says with a decision what is in force. A place that the start of an event will
// shuffle means nothing and is not told. The caller holds the lock.
func (r *Room) complete(d *anteroom.Decision) {
	d.InForce = r.schedule.inForce
	if r.shuffles() {
		d.Ahead, d.AheadKnown = 0, false
	}
}

// shuffles says that the end of the prequeue will shuffle the line.
func (r *Room) shuffles() bool {
	f := r.schedule.inForce
	return f.Phase == anteroom.Prequeueing && f.Event.ShuffleAtStart
}

// Best returns the index of the ticket that serves the visitor best: one with a session,
// else the one furthest ahead; -1 when none is usable. Used when a request carries several.
func (r *Room) Best(tickets []anteroom.Ticket) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	best, grade := -1, 0
	now := r.now()
	for i, t := range tickets {
		g := r.machine.Standing(now, t)
		if g > grade || g == grade && g > 0 && t.Arrival < tickets[best].Arrival {
			best, grade = i, g
		}
	}
	return best
}

// Watch opens the visitor's stream: presence, and a turn that is announced at once. The
// decision that comes with it is as from Decide. Updates are sent about every two seconds
// while the place changes, and one with Verdict Admit when the turn has come (the next
// request takes it). The channel closes when ctx ends, when the visitor has been told to
// go, or when the room goes away. A nil channel means that no stream is to be had now (see
// the decision): poll.
func (r *Room) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan anteroom.Decision) {
	if r.node.streams.Add(1) > anteroom.MaxStreams {
		r.node.streams.Add(-1)
		d := r.Decide(ctx, v)
		d.Stream = false
		return d, nil
	}
	v.Stream = true
	d, opened := r.decide(ctx, v)
	r.recorder.Decided(&d, &v.Ticket)
	if !opened || d.Verdict != anteroom.Wait || d.Ticket.ID.IsZero() {
		r.node.streams.Add(-1)
		return d, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.machine.Look(r.now(), d.Ticket); r.closed || !waits {
		r.node.streams.Add(-1)
		r.machine.CloseStream(r.now(), d.Ticket.ID)
		r.settle()
		return d, nil
	}
	w := &watcher{ticket: d.Ticket, last: d, out: make(chan anteroom.Decision, 1)}
	if d.AheadKnown { // the site has told it, and no later update may tell a worse place
		w.ticket.Told = uint32(d.Ahead) + 1
	}
	id := d.Ticket.ID
	r.watchers[id] = append(r.watchers[id], w)
	context.AfterFunc(ctx, func() { r.unwatch(id, w) })
	if r.machine.Called(id) {
		// The stream is what the turn waited for: it came with the decision above, when there
		// was nobody to tell yet.
		r.call(id, anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: r.now()})
	}
	return d, w.out
}

func (r *Room) unwatch(id anteroom.ID, w *watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.watchers[id]
	for i, other := range list {
		if other == w {
			r.watchers[id] = append(list[:i:i], list[i+1:]...)
			if len(r.watchers[id]) == 0 {
				delete(r.watchers, id)
			}
			close(w.out)
			r.node.streams.Add(-1)
			break
		}
	}
	r.machine.CloseStream(r.now(), id)
	r.settle()
}

// places sends every stream what has changed for its visitor. A stream whose visitor has no
// place any more, after a reset of the line, ends: the page opens another and is new.
func (r *Room) places(now anteroom.Time) {
	for id, list := range r.watchers {
		for i, w := range list {
			d, ok := r.machine.Look(now, w.ticket)
			if !ok {
				if i == 0 && !r.machine.Called(id) {
					r.drop(id)
				}
				break
			}
			r.complete(&d)
			if d.InForce == w.last.InForce && d.Verdict == w.last.Verdict && d.Ahead == w.last.Ahead &&
				d.WaitTime.Round(10*time.Second) == w.last.WaitTime.Round(10*time.Second) &&
				d.WaitKnown == w.last.WaitKnown && d.QueueAll == w.last.QueueAll && d.Method == w.last.Method {
				continue
			}
			select { // what nobody has read yet is worth nothing now
			case <-w.out:
			default:
			}
			w.out <- d
			w.last = d
			w.ticket.Told = d.Ticket.Told // a shown place never gets worse
		}
	}
}

// drop ends every stream of a visitor. The caller holds the lock.
func (r *Room) drop(id anteroom.ID) {
	for _, w := range r.watchers[id] {
		close(w.out)
		r.node.streams.Add(-1)
	}
	delete(r.watchers, id)
}

// Touch renews the session of id, as a request would: for long connections (WebSocket).
// It reports whether there is such a session.
func (r *Room) Touch(id anteroom.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := r.machine.Touch(r.now(), id)
	r.settle()
	return ok
}

// Revoke ends the session of id at once. It reports whether there was one.
func (r *Room) Revoke(id anteroom.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := r.machine.Revoke(r.now(), id)
	r.settle()
	return ok
}

// Origin takes what the gateway of this process sees of the room's origins. It counts while the room
// protects them.
func (r *Room) Origin(f engine.OriginFacts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	if !r.schedule.inForce.Protect {
		f = engine.OriginFacts{}
	}
	if f == r.origin || r.closed {
		return
	}
	r.origin = f
	if r.alone != nil {
		r.single.Origin(now, f)
	} else {
		r.doorway.Origin(f)
	}
	r.settle()
}

// Ended returns a channel that is closed when the session of id ends (lapse or revoke); it
// is closed already when there is none. For tunnels, which must close with their session.
// When ctx ends the channel is forgotten and stays open.
func (r *Room) Ended(ctx context.Context, id anteroom.ID) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan struct{})
	if _, ok := r.machine.Session(id); !ok || r.closed {
		close(ch)
		return ch
	}
	r.endings[id] = append(r.endings[id], ch)
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		list := r.endings[id]
		for i, other := range list {
			if other == ch {
				r.endings[id] = append(list[:i:i], list[i+1:]...)
			}
		}
		if len(r.endings[id]) == 0 {
			delete(r.endings, id)
		}
	})
	return ch
}

// Status returns the room's live numbers. In a cluster they are the coordinator's of at most
// a second ago; what this node knows itself when that does not answer.
func (r *Room) Status() anteroom.Status {
	if r.far != nil {
		return r.statusFar()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.single.Status(r.follow())
	s.Room, s.InForce = r.id, r.schedule.inForce
	return s
}

// Settings returns those in force.
func (r *Room) Settings() anteroom.Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	return r.schedule.inForce.Settings
}

// configure puts another plan in force: settings, events and controls.
func (r *Room) configure(room anteroom.Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.schedule.configure(room) {
		r.apply()
	}
}

// apply puts the settings in force, with the line held while nobody may be admitted.
// The caller holds the lock.
func (r *Room) apply() {
	s := r.schedule.inForce.Settings
	wall := walltime.Now()
	now := r.timeAt(wall)
	if r.alone != nil {
		r.advance(now)
		r.single.Hold(now, r.holding || r.released)
		r.single.Expect(r.schedule.opening(now, wall))
	}
	r.machine.Configure(now, s)
	r.settle()
	r.places(now)
	r.active.Store(true)
}

// follow does what time has brought since the last call: what is planned begins and ends, and
// the line is held while admissions cannot be recorded. It returns room time. The caller holds
// the lock.
func (r *Room) follow() anteroom.Time {
	wall := walltime.Now()
	now, changed := r.timeAt(wall), r.schedule.due(wall)
	if changed {
		r.schedule.evaluate(wall)
	}
	if h := r.node.holds(); h != r.holding || changed {
		r.holding = h
		r.apply()
	}
	return now
}

// now is room time.
func (r *Room) now() anteroom.Time { return r.timeAt(time.Now()) }

// timeAt is the room time of a reading of the process's clock.
func (r *Room) timeAt(wall time.Time) anteroom.Time {
	if r.far != nil {
		return r.far.timeAt(wall)
	}
	return r.node.clock.at(wall)
}

func (r *Room) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	r.apply()
	r.abandonAll()
	r.settle()
}

// abandonAll asks those whose requests are held to come again. The caller holds the lock.
func (r *Room) abandonAll() {
	now := r.now()
	for token, ch := range r.held {
		delete(r.held, token)
		r.machine.Abandon(now, token)
		d := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Refresh: engine.MinInterval}
		r.complete(&d)
		ch <- d
	}
}

// sessionStanding is what engine.Single.Standing says of a ticket with a session.
const sessionStanding = 3

func (r *Room) tick(places bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released {
		return
	}
	now := r.follow()
	r.machine.Tick(now)
	r.settle()
	if r.alone != nil {
		r.keepSoon(now)
		r.sample(now)
	} else {
		r.doorway.OnFailure(r.node.lenient.Load())
		r.shard.say(r, false)
	}
	if places {
		r.places(now)
	}
	if len(r.held) == 0 && len(r.watchers) == 0 && len(r.endings) == 0 && r.machine.Idle() {
		r.active.Store(false)
	}
}

// close ends the room's streams and tunnels; what it knew stays in the journal.
func (r *Room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.active.Store(false)
	for id, list := range r.watchers {
		for _, w := range list {
			close(w.out)
			r.node.streams.Add(-1)
		}
		delete(r.watchers, id)
	}
	for id, list := range r.endings {
		for _, ch := range list {
			close(ch)
		}
		delete(r.endings, id)
	}
}
