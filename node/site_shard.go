package node

// What the holder of a site role does: messages of doors and of the coordinator come in, the machines of the rooms
// decide, and messages leave once what they rely on is recorded.

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// beatIdle is how often a holder writes to an idle journal. Without any record, a later holder would take it for a
	// lost one.
	beatIdle = time.Hour
	// fullQueue is how many bytes may wait for a journal that does not write. Beyond that, messages of doors are
	// dropped: doors repeat them, or decide alone.
	fullQueue = maxQueue / 2
	// soonest is the shortest time between two checks of what is due.
	soonest = time.Millisecond
	// idleTick is the interval of ticks while all rooms of the shard are empty.
	idleTick = time.Second
	// youngFor is how long after a start it looks for ended processes at every tick: the coordinator waits for what their
	// doors would have told.
	youngFor = 2 * time.Second
)

// doorProcess is what is known of a process with doors.
type doorProcess struct {
	seen bool   // has been among the members
	node string // as a member; a site that takes over does not know it
	gone bool   // is not among them any more
}

// siteShard is a shard in a data center, with one handle of its journal.
type siteShard struct {
	member  *member
	number  int
	term    uint64
	key     engine.SiteKey
	clock   roomClock // follows the coordinator's; until then it continues from the last record
	journal *journal
	soon    chan struct{} // something is due before the next tick
	passing chan struct{} // one for each question being passed on, see askedVia

	mu     sync.Mutex
	rooms  map[anteroom.RoomID]*siteRoom
	past   map[anteroom.RoomID][]engine.Event // of rooms whose plan is not known here yet
	doors  map[uint64]*doorProcess            // heard from, or on record
	outbox []parcel
	due    time.Time // of the earliest Wake; zero: none
	awake  bool      // a room needs ticks that did not
	over   bool      // nothing is accepted any more
}

// siteRoom is a room in a data center.
type siteRoom struct {
	id       anteroom.RoomID
	raw      [16]byte
	schedule schedule
	site     *engine.Site
	desk     *engine.Desk
	cache    engine.FiguresCache // of messages to doors
	heard    engine.FiguresCache // of messages from the coordinator
	recorder *analytics.Recorder
	active   bool      // needs ticks
	due      time.Time // see siteShard.due
}

// parcel is a message of a room on its way out, or a tally. A tally counts once it is on record; otherwise a successor
// would count the same events again.
type parcel struct {
	tally    *engine.Tally // nil: a message
	at       anteroom.Time
	recorder *analytics.Recorder

	shared  bool // to all sites
	subject string
	room    [16]byte
	body    []byte
}

func newSiteShard(x *member, number int, term uint64, key engine.SiteKey, last mark, past map[anteroom.RoomID][]engine.Event) *siteShard {
	s := &siteShard{member: x, number: number, term: term, key: key, past: past, soon: make(chan struct{}, 1), passing: make(chan struct{}, maxVia),
		rooms: map[anteroom.RoomID]*siteRoom{}, doors: map[uint64]*doorProcess{}}
	// Records are in room time, which continues from the last one until the coordinator says how much time has passed.
	// The wall clock of another machine cannot be trusted.
	s.clock.own = x.node.clock
	if last.at != 0 {
		s.clock.room.Begin(s.clock.own.now(), last.at)
	}
	return s
}

// restore opens the rooms that have a past. Their offers and holds run out even if no visitor ever comes back, so they
// need ticks.
func (s *siteShard) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.past {
		s.room(id)
	}
	s.ship()
}

// room returns a room, or nil if it is not known. The caller holds the lock.
func (s *siteShard) room(id anteroom.RoomID) *siteRoom {
	if r := s.rooms[id]; r != nil {
		return r
	}
	plan, ok := s.member.plan(id)
	// Another node may already serve a room whose configuration has not arrived here. Its events stay in past until it
	// does.
	if !ok {
		return nil
	}
	wall := walltime.Now()
	now := s.clock.at(wall)
	r := &siteRoom{id: id, schedule: schedule{plan: &plan}, recorder: s.member.node.recorder(id)}
	hex.Decode(r.raw[:], []byte(id))
	r.schedule.evaluate(wall)
	r.desk = engine.Takeover{Key: s.key, Term: s.term, Weight: uint32(s.member.cfg.Weight), Settings: r.schedule.inForce.Settings, Events: s.past[id]}.Desk(now)
	r.site = r.desk.Site()
	for door := range r.site.Doors() {
		s.doors[door] = &doorProcess{seen: true}
	}
	r.site.KeepTally()
	r.site.Expect(r.schedule.opening(now, wall))
	// The events are in the machines now; in memory twice, they would double what a takeover needs.
	delete(s.past, id)
	s.rooms[id] = r
	s.settle(r, now)
	return r
}

// configure puts the plan of a room in force. A room that was deleted is forgotten; its records stay in the journal.
func (s *siteShard) configure(id anteroom.RoomID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, ok := s.member.plan(id)
	r := s.rooms[id]
	switch {
	case s.over:
	case !ok:
		delete(s.rooms, id)
		delete(s.past, id)
	case r == nil && s.past[id] != nil:
		s.room(id)
	case r != nil && r.schedule.configure(&plan):
		s.apply(r)
	}
	s.ship()
}

// apply puts in force what the schedule says. The caller holds the lock.
func (s *siteShard) apply(r *siteRoom) {
	wall := walltime.Now()
	now := s.clock.at(wall)
	r.site.Expect(r.schedule.opening(now, wall))
	r.site.Configure(now, r.schedule.inForce.Settings)
	s.settle(r, now)
}

// follow applies what the plan says for this moment. The caller holds the lock.
func (s *siteShard) follow(r *siteRoom, wall time.Time) {
	if r.schedule.follow(wall) {
		s.apply(r)
	}
}

// settle collects the results of a call to the room's machines. The caller holds the lock, and ships when all rooms are
// done, so that their messages share frames.
func (s *siteShard) settle(r *siteRoom, now anteroom.Time) {
	if !r.active {
		r.active, s.awake = true, true
		s.poke()
	}
	step := r.desk.Step(now, s.clock.synced())
	if len(step.Events) > 0 {
		// Events go into the journal before the messages below are queued: ship then knows which batch they have to
		// wait for.
		s.journal.add(r.id, step.Events)
	}
	for i := range step.Reports {
		s.send(parcel{shared: true, subject: toCoordinatorSubject(s.number), room: r.raw, body: step.Reports[i].AppendWire(nil)})
	}
	if t := r.site.TakeTally(); !t.Empty() {
		s.send(parcel{tally: &t, at: now, recorder: r.recorder})
	}
	for i := range step.ToDoors {
		o := &step.ToDoors[i]
		subject := toDoorsSubject(s.number)
		// Without a door, the message is for all doors of the shard.
		if o.Door != 0 {
			subject = toDoorSubject(o.Door)
		}
		s.send(parcel{subject: subject, room: r.raw, body: r.cache.AppendToDoor(nil, &o.Message)})
	}
	r.due = time.Time{}
	// A tick every 100 ms is too coarse for a slot that comes free while a request is held.
	if at := r.site.Wake(); at != 0 {
		wait := max(soonest, at.Sub(now))
		if wait >= tickEvery {
			return // a tick comes before
		}
		r.due = time.Now().Add(wait)
		if s.due.IsZero() || r.due.Before(s.due) {
			s.due = r.due
			s.poke()
		}
	}
}

// poke makes run check what is due.
func (s *siteShard) poke() {
	select {
	case s.soon <- struct{}{}:
	default: // a check is pending already
	}
}

func (s *siteShard) send(p parcel) { s.outbox = append(s.outbox, p) }

// ship sends the outbox: at once, or when the journal has written what was recorded before; see engine.Step. The caller
// holds the lock.
func (s *siteShard) ship() {
	if len(s.outbox) == 0 {
		return
	}
	// The journal sends the parcels itself, in order. A holder that was fenced off never gets that far, so it tells no
	// one anything.
	if s.journal.waitFor(s.outbox) {
		s.outbox = nil
		return
	}
	s.post(s.outbox)
	clear(s.outbox)
	s.outbox = s.outbox[:0]
}

// post sends parcels; parcels to the same place share a message.
func (s *siteShard) post(parcels []parcel) {
	type frame struct {
		shared  bool
		subject string
		data    []byte
	}
	var frames []frame
	publish := func(f *frame) {
		space := s.member.link.Site()
		if f.shared {
			space = s.member.link
		}
		if err := space.Publish(f.subject, f.data); err != nil {
			s.member.unsent.Add(1) // lost messages are harmless: doors and coordinator ask again
		}
		f.data = nil
	}
next:
	for _, p := range parcels {
		if p.tally != nil {
			recordTally(p.recorder, p.at, p.tally)
			continue
		}
		for i := range frames {
			f := &frames[i]
			if f.subject != p.subject || f.shared != p.shared {
				continue
			}
			// A frame that is full leaves at once; the rest of its parcels start the next one.
			if len(f.data)+len(p.body)+cluster.FrameOverhead > cluster.MaxMessage {
				publish(f)
			}
			f.data = cluster.AppendFrame(f.data, p.room, p.body)
			continue next
		}
		frames = append(frames, frame{p.shared, p.subject, cluster.AppendFrame(nil, p.room, p.body)})
	}
	for i := range frames {
		if len(frames[i].data) > 0 {
			publish(&frames[i])
		}
	}
}

// each calls fn for the rooms of a message that are known here.
func (s *siteShard) each(m cluster.Message, fn func(r *siteRoom, wall time.Time, body []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A journal that does not write must not fill the memory.
	if s.over || s.journal.waiting() > fullQueue {
		return
	}
	frames, err := cluster.Frames(m.Data)
	if err != nil {
		s.member.malformed("", err)
		return
	}
	for raw, body := range frames {
		r := s.room(anteroom.RoomID(hex.EncodeToString(raw[:])))
		if r == nil {
			continue
		}
		wall := walltime.Now()
		s.follow(r, wall)
		fn(r, wall, body)
	}
	s.ship()
}

// fromDoors handles messages of doors.
func (s *siteShard) fromDoors(m cluster.Message) {
	s.each(m, func(r *siteRoom, wall time.Time, body []byte) {
		said, err := engine.ParseFromDoor(body)
		if err != nil {
			s.member.malformed(r.id, err)
			return
		}
		// Remembered until the process is seen among the members: only then does its absence mean that it has ended.
		if _, known := s.doors[said.Door]; !known {
			s.doors[said.Door] = new(doorProcess)
		}
		// After a takeover, doors know the time better than the last record. Otherwise a place would look older than it
		// is, by as long as nothing was written, and requests would not be held. Sessions do not end by this time (see
		// engine.Site.Receive).
		if step := s.clock.atLeast(said.Known); step != 0 {
			s.clockSet(step, (*engine.Desk).ClockGuessed)
		}
		now := s.clock.at(wall)
		r.desk.Receive(now, said)
		s.settle(r, now)
	})
}

// fromCoordinator handles messages of the coordinator.
func (s *siteShard) fromCoordinator(m cluster.Message) {
	s.each(m, func(r *siteRoom, wall time.Time, body []byte) {
		said, err := r.heard.ParseToSite(body)
		if err != nil {
			s.member.malformed(r.id, err)
			return
		}
		if said.Site != s.key || said.Term != s.term {
			return // meant for an incarnation from before the memory was lost, or the answer to another process's clock
		}
		if said.State != nil {
			if step := s.clock.hear(said.State.Echo, said.State.Now); step != 0 {
				s.clockSet(step, (*engine.Desk).ClockSet)
			}
			if !s.clock.synced() { // the site did not know the time when it asked, so the echo proves nothing
				said.State.Echo = 0 // it answers nobody who knows the time by it
			}
		}
		now := s.clock.now()
		r.site.Deliver(now, said)
		s.settle(r, now)
	})
}

// clockSet tells all rooms by how much the clock was set, so that moments that they have noted move along.
// The caller holds the lock.
func (s *siteShard) clockSet(step time.Duration, tell func(d *engine.Desk, now anteroom.Time, step time.Duration)) {
	now := s.clock.now()
	for _, r := range s.rooms {
		tell(r.desk, now, step)
		s.settle(r, now)
	}
}

// run does what time requires, until ctx ends.
func (s *siteShard) run(ctx context.Context) {
	var beat, looked, tick time.Time
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.soon:
		case <-timer.C:
		}
		wall := time.Now()
		if !wall.Before(tick) {
			active := s.tick()
			every := tickEvery
			if !active {
				every = idleTick
			}
			tick = time.Now().Add(walltime.NextBeat(every))
			if since := wall.Sub(beat); active && since >= beatEvery || since >= beatIdle {
				if !beat.IsZero() { // the start itself is a record
					s.journal.beat()
				}
				beat = wall
			}
			if wall.Sub(looked) >= idleTick || wall.Sub(began) < youngFor {
				looked = wall
				s.lookForDoors()
			}
			// Between ticks only the rooms with something due are visited.
		} else {
			s.wakeUp()
		}
		s.mu.Lock()
		if s.awake {
			tick = earlier(tick, time.Now().Add(walltime.NextBeat(tickEvery)))
		}
		timer.Reset(time.Until(earlier(tick, s.due)))
		s.awake = false // rooms that woke up since the tick are in the timer now
		s.mu.Unlock()
	}
}

// earlier returns the earlier of two moments; the second may be zero for none.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// wakeUp ticks the rooms that have something due.
func (s *siteShard) wakeUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		s.due = time.Time{} // otherwise run would return here at once, again and again
		return
	}
	wall := walltime.Now()
	s.due = time.Time{}
	for _, r := range s.rooms {
		switch {
		case r.due.IsZero():
		case !r.due.After(wall):
			s.step(r, wall)
		case s.due.IsZero() || r.due.Before(s.due):
			s.due = r.due
		}
	}
	s.ship()
}

// tick ticks the rooms that have visitors, and reports whether there are any.
func (s *siteShard) tick() (active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	wall := walltime.Now()
	for _, r := range s.rooms {
		// An event may begin in an empty room.
		if !r.active && !r.schedule.due(wall) {
			continue
		}
		s.follow(r, wall)
		s.step(r, wall)
		r.active = !r.site.Idle()
		active = active || r.active
	}
	s.ship()
	return active
}

// step ticks a room. The caller holds the lock.
func (s *siteShard) step(r *siteRoom, wall time.Time) {
	now := s.clock.at(wall)
	r.desk.Tick(now)
	s.settle(r, now)
}

// lookForDoors finds processes that have ended: their streams are gone, and their visitors must not be counted as
// present. Of one that another process of its node has replaced, it is certain.
func (s *siteShard) lookForDoors() {
	alive, running := map[uint64]bool{}, map[string]bool{}
	members := s.member.roles.Members()
	for _, m := range members {
		alive[processOf(m)], running[m.Node] = true, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	for _, m := range members {
		if d := s.doors[processOf(m)]; d != nil {
			d.seen, d.node, d.gone = true, m.Node, false
		}
	}
	now := s.clock.now()
	for door, d := range s.doors {
		goes, replaced := d.seen && !d.gone && !alive[door], running[d.node] && !alive[door]
		if !goes && !replaced {
			continue
		}
		for _, r := range s.rooms {
			if goes {
				r.desk.Gone(now, door)
			}
			if replaced {
				r.desk.Replaced(now, door)
			}
			s.settle(r, now)
		}
		if d.gone = true; replaced || d.node == "" {
			delete(s.doors, door)
		}
	}
	s.ship()
}

// finish records and sends what is in progress, and accepts nothing more.
func (s *siteShard) finish(ctx context.Context) {
	s.drop()
	if err := s.journal.sync(ctx); err != nil {
		s.member.log.Warn("the last decisions of a shard could not be recorded and were not sent", "shard", s.number, "error", err)
	}
}

// drop accepts nothing more. What is queued may still be recorded, but the successor decides.
func (s *siteShard) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
