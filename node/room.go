package node

import (
	"context"
	"reflect"
	"slices"
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
	active   atomic.Bool // has visitors and needs ticks

	decider decider

	mu       sync.Mutex
	machine  machine // nil until somebody comes
	schedule schedule
	held     map[uint64]chan anteroom.Decision // requests that wait for an answer, by token
	watchers map[anteroom.ID][]*watcher
	endings  map[anteroom.ID][]chan struct{}
	facts    engine.OriginFacts // of the room's origins
	holding  bool               // nobody new is admitted until the journal is written again
	released bool               // a successor takes over
	closed   bool
}

// machine is what a room asks about its visitors: an engine.Single, which decides, or an engine.Doorway, which admits
// the visitors it knows and asks the site about all others.
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
	TakeTally() engine.Tally
}

func newRoom(n *Node, room *anteroom.Room) *Room {
	return &Room{id: room.ID, node: n, recorder: n.recorder(room.ID), schedule: schedule{plan: room}}
}

// use gives the room a machine, in place of the one it has. The caller holds the lock, or nobody else has the room yet.
func (r *Room) use(m machine) {
	if r.machine = m; r.held == nil {
		r.held, r.watchers, r.endings = map[uint64]chan anteroom.Decision{}, map[anteroom.ID][]*watcher{}, map[anteroom.ID][]chan struct{}{}
	}
}

type watcher struct {
	ticket anteroom.Ticket
	last   *anteroom.Decision
	out    chan *anteroom.Decision
}

// settle carries out the results of a call of the machine. The caller holds the lock.
func (r *Room) settle(now anteroom.Time) {
	// Events first: an answer below may be waiting for their record.
	r.decider.record()
	if t := r.machine.TakeTally(); !t.Empty() {
		recordTally(r.recorder, now, &t)
	}
	for _, a := range r.machine.TakeAnswers(now) {
		if ch := r.held[a.Token]; ch != nil {
			delete(r.held, a.Token)
			r.complete(&a.Decision)
			ch <- a.Decision // has room for one, so it never blocks under the lock
		}
		// The visitor may have other tabs with streams: all of them have to learn that it is their turn.
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
	r.decider.settled()
}

// call tells every stream of a visitor that it is their turn, and ends these streams.
func (r *Room) call(id anteroom.ID, d anteroom.Decision) {
	if len(r.watchers[id]) == 0 {
		return
	}
	r.complete(&d)
	for _, w := range r.watchers[id] {
		select { // an update that was not read yet is out of date now
		case <-w.out:
		default:
		}
		w.out <- &d
		close(w.out)
		r.node.streams.Add(-1)
	}
	delete(r.watchers, id)
}

// Decide decides about one request. It may hold a new visitor's request for up to half a second if a slot is about to
// come free; ctx ends that early, and the visitor keeps the place. With Verdict Admit, the admission survives kill -9
// once Decide returns.
func (r *Room) Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision {
	d, _ := r.decide(ctx, v)
	r.recorder.Decided(&d, &v.Ticket)
	return d
}

type heldKey struct{}

// WithHeld returns a context with which [Room.Decide] tells how long the request was held: for a slot, or for the
// answer of the site.
func WithHeld(ctx context.Context, tell func(time.Duration)) context.Context {
	return context.WithValue(ctx, heldKey{}, tell)
}

// decide is Decide. made is false if nothing was decided; d then repeats what was known before.
func (r *Room) decide(ctx context.Context, v anteroom.Visit) (d anteroom.Decision, made bool) {
	r.mu.Lock()
	now := r.follow()
	r.wake()
	// A successor has the journal: what this process decides now would be lost. Active sessions need no record. A room that has
	// ended is not ticked, so that nobody would answer a request that is held.
	if (r.released || r.closed) && r.machine.Standing(now, v.Ticket) != sessionStanding {
		defer r.mu.Unlock()
		return r.hint(v), false
	}
	var held uint64
	d, held = r.decider.visit(now, v)
	r.complete(&d)
	if held == 0 && d.Reason == anteroom.ReasonSession { // the common path: nothing else came of it
		r.mu.Unlock()
		// Another request of the same visitor may have started the session, and its record not be written yet.
		if !r.decider.recorded(d.Ticket.AcceptedAt) { // asked first: a decision is large to pass on
			d = r.decider.onRecord(ctx, d)
		}
		return d, true
	}
	if restart := r.decider.restart(); restart != nil {
		r.mu.Unlock()
		if err := restart(ctx); err != nil {
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
		answer = make(chan anteroom.Decision, 1) // buffered: settle must not block under the lock
		r.held[held] = answer
	}
	r.settle(now)
	if d.Verdict == anteroom.Admit {
		r.call(d.Ticket.ID, d)
	}
	r.mu.Unlock()

	if answer != nil {
		// The lock is released: others decide while this request waits.
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
	// Beyond the limit of streams, the page polls.
	d.Stream = d.Stream && r.node.streams.Load() < anteroom.MaxStreams
	if d.Verdict == anteroom.Admit {
		d = r.decider.onRecord(ctx, d)
	}
	return d, true
}

func (r *Room) abandon(held uint64, answer chan anteroom.Decision, v anteroom.Visit) (d anteroom.Decision, made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The answer may have come while this request was giving up; then it counts, since the machine has acted on it.
	select {
	case d = <-answer:
		return d, true
	default:
	}
	delete(r.held, held)
	r.machine.Abandon(r.now(), held)
	return r.hint(v), false
}

// hint is an answer that changes nothing: the visitor's place as it was, or the advice to come back soon. The caller
// holds the lock.
func (r *Room) hint(v anteroom.Visit) anteroom.Decision {
	now := r.now()
	d, ok := r.machine.Look(now, v.Ticket)
	if !ok {
		d = anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Refresh: engine.MinInterval}
	}
	r.complete(&d)
	return d
}

// complete adds what is in force to a decision. A place that the start of an event will shuffle is not shown, because
// it means nothing. The caller holds the lock.
func (r *Room) complete(d *anteroom.Decision) {
	d.InForce = r.schedule.inForce
	if r.shuffles() {
		d.Ahead, d.AheadKnown = 0, false
	}
}

// shuffles reports whether the end of the prequeue will shuffle the queue.
func (r *Room) shuffles() bool {
	f := r.schedule.inForce
	return f.Phase == anteroom.Prequeueing && f.Event.ShuffleAtStart
}

// Best returns the index of the ticket that serves the visitor best: one with a session, otherwise the one furthest
// ahead; -1 if none is usable. It is for requests with several tickets.
func (r *Room) Best(tickets []anteroom.Ticket) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
	best, grade := -1, 0
	now := r.now()
	for i, t := range tickets {
		g := r.machine.Standing(now, t)
		// Between equals, the earlier arrival is the better place.
		if g > grade || g == grade && g > 0 && t.Arrival < tickets[best].Arrival {
			best, grade = i, g
		}
	}
	return best
}

// maxStreamsOfVisitor bounds the streams of one ticket at a node, so that nobody takes those of all others.
const maxStreamsOfVisitor = 8

// Watch opens the visitor's stream: it counts as presence, and a turn is announced at once. The decision is that of
// Decide. While the place changes, an update follows about every two seconds, and one with Verdict Admit when it is the
// visitor's turn; the next request then enters. Updates must not be changed. The channel closes when ctx ends, when the
// visitor was called, when the room goes away, or when another node serves the visitor better. A nil channel means that no
// stream is available now (see the decision): poll.
func (r *Room) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
	// Counted before the decision, so that a rush of requests cannot pass the limit together.
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
	// Since the decision, the room may have closed or the visitor may have been called.
	now := r.now()
	if _, waits := r.machine.Look(now, d.Ticket); r.closed || !waits || r.elsewhere(&d) || len(r.watchers[d.Ticket.ID]) >= maxStreamsOfVisitor {
		r.node.streams.Add(-1)
		r.machine.CloseStream(now, d.Ticket.ID)
		r.settle(now)
		return d, nil
	}
	first := d
	w := &watcher{ticket: d.Ticket, last: &first, out: make(chan *anteroom.Decision, 1)}
	if d.AheadKnown { // the site has shown this place, so no update may show a worse one
		w.ticket.Told = uint32(d.Ahead) + 1
	}
	id := d.Ticket.ID
	r.watchers[id] = append(r.watchers[id], w)
	context.AfterFunc(ctx, func() { r.unwatch(id, w) })
	if r.machine.Called(id) {
		// The turn was waiting for this stream. It came with the decision above, when there was no watcher to tell yet.
		r.call(id, anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: r.now()})
	}
	return d, w.out
}

func (r *Room) unwatch(id anteroom.ID, w *watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.watchers[id], w); i >= 0 {
		if r.watchers[id] = slices.Concat(r.watchers[id][:i], r.watchers[id][i+1:]); len(r.watchers[id]) == 0 {
			delete(r.watchers, id)
		}
		close(w.out)
		r.node.streams.Add(-1)
	}
	// Without a stream the visitor counts as away at once, so that the turn goes to someone who is there.
	now := r.now()
	r.machine.CloseStream(now, id)
	r.settle(now)
}

// places sends every stream what has changed for its visitor. If the visitor has no place any more, after a reset of
// the queue, the stream ends: the page opens another one and starts over.
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
			if r.elsewhere(&d) {
				r.drop(id)
				break
			}
			if d.InForce == w.last.InForce && d.Verdict == w.last.Verdict && d.Ahead == w.last.Ahead &&
				// The page shows rounded minutes: a change of seconds is not worth a message to thousands of streams.
				d.WaitTime.Round(10*time.Second) == w.last.WaitTime.Round(10*time.Second) &&
				d.Wait25.Round(time.Minute) == w.last.Wait25.Round(time.Minute) && d.Wait75.Round(time.Minute) == w.last.Wait75.Round(time.Minute) &&
				d.WaitKnown == w.last.WaitKnown && d.QueueAll == w.last.QueueAll && d.Method == w.last.Method {
				continue
			}
			select { // an update that was not read yet is out of date now
			case <-w.out:
			default:
			}
			next := d
			w.last = &next
			w.out <- w.last
			w.ticket.Told = d.Ticket.Told // a shown place never gets worse
		}
	}
}

// elsewhere reports whether somebody who waits is better off at another node, which the page finds when its stream ends: this one
// hears nothing of its site, and the visitor's turn may come meanwhile. The caller holds the lock.
func (r *Room) elsewhere(d *anteroom.Decision) bool {
	return r.node.cutOff.Load() && engine.Near(d, &r.schedule.inForce.Settings)
}

// drop ends all streams of a visitor. The caller holds the lock.
func (r *Room) drop(id anteroom.ID) {
	for _, w := range r.watchers[id] {
		close(w.out)
		r.node.streams.Add(-1)
	}
	delete(r.watchers, id)
}

// Touch renews the session of id, as a request would. It is for long connections (WebSocket). It reports whether there
// is such a session.
func (r *Room) Touch(id anteroom.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
	now := r.now()
	ok := r.machine.Touch(now, id)
	r.settle(now)
	return ok
}

// Reported renews the session of a ticket, as a request would that an edge has let in: it admits nobody, and nobody is told. It reports
// whether there may be such a session; one that only the site knows is asked about, and nobody waits for the answer.
func (r *Room) Reported(t anteroom.Ticket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	r.wake()
	if !t.Accepted() || r.closed || r.released && r.machine.Standing(now, t) != sessionStanding {
		return false
	}
	d, held := r.decider.visit(now, anteroom.Visit{Ticket: t, NoClaim: true, NoJoin: true, NoHold: true})
	if !r.active.Load() {
		r.active.Store(true)
	}
	r.settle(now)
	return held != 0 || d.Verdict == anteroom.Admit
}

// Revoke ends the session of id at once. It reports whether there was one.
func (r *Room) Revoke(id anteroom.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
	now := r.now()
	ok := r.machine.Revoke(now, id)
	r.settle(now)
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
	if f == r.facts || r.closed {
		return
	}
	r.facts = f
	r.wake()
	r.decider.origin(now, f)
	r.settle(now)
}

// Ended returns a channel that is closed when the session of id ends (lapse or revoke); it
// is closed already when there is none. For tunnels, which must close with their session.
// When ctx ends the channel is forgotten and stays open.
func (r *Room) Ended(ctx context.Context, id anteroom.ID) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
	ch := make(chan struct{})
	if _, ok := r.machine.Session(id); !ok || r.closed {
		close(ch)
		return ch
	}
	r.endings[id] = append(r.endings[id], ch)
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endings[id] = slices.DeleteFunc(slices.Clone(r.endings[id]), func(other chan struct{}) bool { return other == ch })
		if len(r.endings[id]) == 0 {
			delete(r.endings, id)
		}
	})
	return ch
}

// Status returns the live figures of the room. In a cluster they are the coordinator's, at most a second old, or what
// this node knows itself if the coordinator does not answer.
func (r *Room) Status() anteroom.Status {
	s := r.decider.status()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Room, s.InForce = r.id, r.schedule.inForce
	return s
}

// Settings returns the settings in force.
func (r *Room) Settings() anteroom.Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	return r.schedule.inForce.Settings
}

// configure puts a plan in force and returns it: the one there was, where nothing has changed, as in most rooms of a reload.
func (r *Room) configure(room anteroom.Room) *anteroom.Room {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !reflect.DeepEqual(*r.schedule.plan, room) && r.schedule.configure(&room) {
		r.apply()
	}
	return r.schedule.plan
}

// apply puts the settings in force, and stops admissions where no visitor may be admitted. The caller holds the lock.
func (r *Room) apply() {
	// Without events, there is nothing to do before somebody comes.
	if r.machine == nil {
		if len(r.schedule.plan.Events) > 0 {
			r.decider.begin()
		}
		return
	}
	s := r.schedule.inForce.Settings
	wall := walltime.Now()
	now := r.decider.timeAt(wall)
	r.decider.apply(now, wall)
	r.machine.Configure(now, s)
	r.settle(now)
	r.places(now)
	r.active.Store(true) // the next tick finds out whether there is anything to do
}

// follow applies what time has changed since the last call: what is planned begins and ends, and admissions stop while
// they cannot be recorded. It returns room time. The caller holds the lock.
func (r *Room) follow() anteroom.Time {
	now, changed := r.now(), false
	if r.schedule.planned() {
		changed = r.schedule.follow(walltime.Now())
	}
	// A request must not wait for the next tick to learn that the disk is full: by then it would have been admitted.
	if h := r.node.holds(); h != r.holding || changed {
		r.holding = h
		r.apply()
	}
	return now
}

// Now returns room time.
func (r *Room) Now() anteroom.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now()
}

// now returns room time. The caller holds the lock.
func (r *Room) now() anteroom.Time { return r.decider.now() }

// wake makes the machine of a room that nobody has visited yet. The caller holds the lock.
func (r *Room) wake() {
	if r.machine == nil {
		r.decider.begin()
	}
}

func (r *Room) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	r.apply()
	if r.machine != nil {
		r.abandonAll()
		r.settle(r.now())
	}
}

// abandonAll asks visitors whose requests are held to come again: after the release, or the end of the room, no answer will come.
// The caller holds the lock.
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

// sessionStanding is what engine.Single.Standing returns for a ticket with a session.
const sessionStanding = 3

func (r *Room) tick(wall time.Time, places bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The successor decides now. A tick here could end sessions that it keeps.
	if r.released {
		return
	}
	now := r.follow() // first, as it finds out whether admissions are held
	if r.schedule.follow(wall) {
		r.apply()
	}
	if r.machine == nil {
		r.active.Store(false)
		return
	}
	r.machine.Tick(now)
	r.settle(now)
	r.decider.ticked(now)
	if places {
		r.places(now)
	}
	// An idle room gets no ticks: with ten thousand rooms, ticks would cost more than the visitors.
	if len(r.held) == 0 && len(r.watchers) == 0 && len(r.endings) == 0 && r.decider.idle() {
		r.active.Store(false)
	}
}

// close ends the room's streams and tunnels. What the room knew stays in the journal.
func (r *Room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine != nil {
		r.abandonAll()
	}
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
