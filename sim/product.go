package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// product is the room as it runs in production: processes that hold the roles of the coordinator
// and of each site, doors at the nodes, a journal for each site, a store for the ledger record,
// and a network between them that carries bytes. The machines and what their hosts decide are the
// product's; the simulator has clocks, I/O, latency and faults of its own.
type product struct {
	w     *world
	net   *memlink.Network
	coord []*coordinatorProcess // those that take themselves for the coordinator, the newest last; see without
	sites []dataCentre
	doors []doorProcess // one for each node
	cache engine.FiguresCache
	seed  []byte

	record   engine.LedgerRecord // as stored
	revision uint64              // of it
	stalled  bool                // the store answers nobody
	draw     *draw               // the newest shuffle

	number   uint32 // of the newest process
	planned  []fault
	journals bool // some site will start again from its journal
	released []anteroom.ID
	ahead    map[anteroom.ID]bool // called, and their units have yet to come
	spare    [][]byte             // buffers of messages that have been read
	out      []outgoing           // room for those of settle
}

// Ends of the network: the coordinators, the processes of each site, the nodes.
func (x *product) siteEnd(i int) memlink.End { return memlink.End(1 + i) }
func (x *product) nodeEnd(i int) memlink.End { return memlink.End(1 + len(x.sites) + i) }

const (
	tickEvery  = 100 * time.Millisecond
	lanDelay   = 250 * time.Microsecond  // one way between a node and its site
	lanBatch   = 200 * time.Microsecond  // requests of so long travel together
	writing    = time.Millisecond        // a write to a journal
	memberTTL  = 3 * time.Second         // after so long a process is known to have ended
	looksEvery = time.Second             // after so long, that another process of its node runs
	silentFor  = 2500 * time.Millisecond // and that it is silent
	inboxMost  = 10_000                  // messages that wait for a process that is stopped

	// A decision that took longer than this after the request had to be asked for outside its site:
	// two ways to the site, a batch at either end, a write to the journal.
	insideMost = 2*lanDelay + 2*lanBatch + 3*writing
)

// process is what every process has: a clock of its own that shows the wrong time and runs a
// little too fast or slow, and faults.
type process struct {
	number uint32
	up     bool
	paused bool
	inbox  []memlink.Message // that came while it was paused
	begun  anteroom.Time     // true time of the start
	wrong  time.Duration     // what its clock showed too much at the start: time is monotonic since
	drift  float64
	clock  *engine.Clock
}

// local is the process's own clock: the wall clock of its start and monotonic time since.
func (p *process) local(now anteroom.Time) anteroom.Time {
	run := now.Sub(p.begun)
	return p.begun.Add(p.wrong + run + time.Duration(float64(run)*p.drift))
}

// room is the process's room time.
func (p *process) room(now anteroom.Time) anteroom.Time { return p.clock.Now(p.local(now)) }

// machine is a computer: what its wall clock shows too much, and how fast it runs.
type machine struct {
	set   bool
	wall  time.Duration
	drift float64
}

type coordinatorProcess struct {
	process
	before   engine.Accession
	machine  *engine.Coordinator // nil: it has not begun
	revision uint64              // of the record as this process knows it
	pending  engine.LedgerRecord // being written
	writing  bool
}

// dataCentre is a site: its journal, and the processes that take themselves for its holder.
type dataCentre struct {
	computer machine
	key      engine.SiteKey
	term     uint64
	journal  []engine.Event
	mark     anteroom.Time  // room time of the newest record
	holders  []*siteProcess // the newest last: only that one can write the journal; see without
	stalled  bool           // the journal answers nobody
	wake     anteroom.Time  // scheduled beside the regular ticks
}

type siteProcess struct {
	process
	desk   *engine.Desk
	key    engine.SiteKey
	term   uint64
	outbox engine.Outbox[[]engine.Event, outgoing]
	over   bool          // takes nothing any more: the role is handed over
	heard  anteroom.Time // the coordinator, first
}

// outgoing is a message of a site on its way out.
type outgoing struct {
	to   memlink.End
	data []byte
}

type doorProcess struct {
	process
	computer machine
	door     *engine.Doorway
	id       uint64 // of the process, as messages have it
	site     int
	quiet    int           // faults for which the other nodes of its site do not hear it
	quietAt  anteroom.Time // since when
	died     anteroom.Time
	flush    anteroom.Time     // when it says what it has to say; 0: with the next tick
	waits    map[uint64]uint32 // token -> request
	reports  map[uint64]func() // token -> what follows when it is taken
	streams  map[int32]anteroom.ID
	hearers  map[anteroom.ID][]int32 // of streams: whose they are
	seen     map[anteroom.ID]seenPlace
}

// seenPlace is the place that an open stream has shown last at a node.
type seenPlace struct {
	ahead int
	lane  uint8
	at    anteroom.Time // when it was shown last
}

func newProduct(w *world, seed uint64) *product {
	x := &product{w: w, ahead: map[anteroom.ID]bool{}, net: memlink.NewNetwork(seed), sites: make([]dataCentre, len(w.sc.Sites)), doors: make([]doorProcess, len(w.nodes))}
	x.seed = binary.LittleEndian.AppendUint64([]byte("simulator"), seed)
	for i, s := range w.sc.Sites {
		for _, p := range []*memlink.Path{x.net.Path(0, x.siteEnd(i)), x.net.Path(x.siteEnd(i), 0)} {
			p.Delay, p.Jitter = s.Delay, s.Jitter
			p.Loss, p.Repeat, p.Reorder = w.sc.Faults.Loss, w.sc.Faults.Repeat, w.sc.Faults.Reorder
		}
	}
	for i, n := range w.nodes {
		for _, p := range []*memlink.Path{x.net.Path(x.nodeEnd(i), x.siteEnd(int(n.site))), x.net.Path(x.siteEnd(int(n.site)), x.nodeEnd(i))} {
			p.Delay = lanDelay
		}
	}
	f := &w.sc.Faults
	x.journals = len(f.Deaths)+len(f.Handovers)+len(f.Pauses) > 0
	x.startCoordinator()
	x.coord[0].clock.Follow(x.coord[0].local(w.now), x.coord[0].local(w.now)) // the first of a room sets its time
	w.after(tickEvery, evTick, 0, 0)
	for i := range x.sites {
		s := &x.sites[i]
		s.key = engine.SiteKey{Name: w.sc.Sites[i].Name, Incarnation: 1}
		s.term = 1
		x.startSite(i)
		w.after(tickEvery*time.Duration(i+1)/time.Duration(len(x.sites)+1), evTick, int32(x.siteEnd(i)), 0)
	}
	for i := range x.doors {
		x.startDoor(i)
		w.after(tickEvery*time.Duration(i+1)/time.Duration(len(x.doors)+1), evTick, int32(x.nodeEnd(i)), 0)
		planDeath(w, i)
	}
	x.planned = planFaults(w)
	return x
}

// start begins a process on a machine whose clock is off.
func (x *product) start(p *process, on *machine) {
	if off := x.w.sc.Faults.Clock; off > 0 && !on.set {
		on.wall = time.Duration((x.w.chance.Float64()*2 - 1) * float64(off))
		on.drift = (x.w.chance.Float64()*2 - 1) * 5e-5
		on.set = true
	}
	x.number++
	*p = process{number: x.number, up: true, begun: x.w.now, clock: engine.NewClock(), wrong: on.wall, drift: on.drift}
}

// without returns the others in a list of their own: whoever goes through a list goes on with those that were there, though a process
// ends or begins meanwhile.
func without[T comparable](list []T, gone T) []T {
	var others []T
	for _, one := range list {
		if one != gone {
			others = append(others, one)
		}
	}
	return others
}

// startCoordinator has a process take the coordinator's role. It runs on the first site's machine.
func (x *product) startCoordinator() {
	c := &coordinatorProcess{}
	x.start(&c.process, &x.sites[0].computer)
	x.coord = append(slices.Clip(x.coord), c)
}

// startSite has a process take the role of a site, from the journal.
func (x *product) startSite(i int) {
	s := &x.sites[i]
	p := &siteProcess{key: s.key, term: s.term}
	x.start(&p.process, &s.computer)
	if s.mark != 0 {
		// What was recorded is in room time, which goes on from the last record until the
		// coordinator says how much has passed.
		p.clock.Begin(p.local(x.w.now), s.mark)
	}
	now := p.room(x.w.now)
	p.desk = engine.Takeover{Key: p.key, Term: p.term, Settings: x.w.sc.settingsAt(x.w.since(x.w.now)), Events: s.journal}.Desk(now)
	for _, door := range x.unheard(i) {
		p.desk.Gone(now, door)
	}
	s.holders = append(slices.Clip(s.holders), p)
	x.settle(i, p)
}

// takeOver has another process take the role of a site.
func (x *product) takeOver(i int) {
	x.sites[i].term++
	x.w.judge.restored, x.w.judge.began[i] = x.w.now, x.w.now
	x.startSite(i)
}

func (x *product) startDoor(i int) {
	d := &x.doors[i]
	if d.up { // another fault was over first
		return
	}
	before := *d
	*d = doorProcess{computer: before.computer, quiet: before.quiet, quietAt: before.quietAt, site: int(x.w.nodes[i].site), waits: map[uint64]uint32{}, reports: map[uint64]func(){}, streams: map[int32]anteroom.ID{}, hearers: map[anteroom.ID][]int32{}, seen: map[anteroom.ID]seenPlace{}}
	x.start(&d.process, &d.computer)
	d.id = uint64(i+1)<<32 | uint64(d.number)
	d.door = engine.NewDoorway(d.id, x.w.sc.settingsAt(x.w.since(x.w.now)))
	d.door.SetNode(uint64(i + 1))
	if before.id == 0 {
		return
	}
	x.w.later(looksEvery, func() {
		for _, p := range x.sites[d.site].holders {
			if !p.paused && !p.over && p.begun < before.died { // who began later has not seen it among the members
				p.desk.Replaced(p.room(x.w.now), before.id)
				x.settle(d.site, p)
			}
		}
	})
}

func (x *product) request(r uint32) {
	w := x.w
	q := &w.requests[r]
	node := q.node
	d := &x.doors[node]
	if !d.up || d.paused {
		w.failed(r)
		return
	}
	dec, held := d.door.Visit(d.room(w.now), q.visit)
	if held == 0 {
		if dec.Verdict == anteroom.Admit && w.judge.flows() {
			x.agrees(d, &dec.Ticket)
		}
		if q.opens && dec.Verdict == anteroom.Wait {
			d.listen(q.person, dec.Ticket.ID)
		}
		x.noWorse(d, q.person, &dec)
		w.answered(r, x.bounded(dec, d), false)
		return
	}
	d.waits[held] = r
	x.flush(int(node))
}

// agrees holds a door to its site: whom it lets in has a session there, and the cookie says no later moment than the site has heard of, for
// another door may have to believe it. A guest whose session is not renewed comes in by the cookie
// while home does not answer, for home holds the seat until its end.
func (x *product) agrees(d *doorProcess, t *anteroom.Ticket) {
	s := x.holder(d.site)
	if s == nil || x.w.judge.set.DisableSessionRenewal && engine.Guest(x.sites[d.site].key.Name, t) {
		return
	}
	one, ok := s.desk.Site().Session(t.ID)
	x.w.judge.look(checkAgree, ok || s.desk.Site().Hosts(t.ID), func() string { return "a door lets in a session that its site does not know" })
	x.w.judge.look(checkAgree, !ok || t.LastCheckIn <= one.LastSeen.Add(2*engine.TouchDelay), func() string { // two clocks, each off by less than half of that
		return fmt.Sprintf("a cookie says that its visitor was seen %v later than the site knows", t.LastCheckIn.Sub(one.LastSeen))
	})
}

// bounded says no to streams beyond what a node can hold, except near the front.
func (x *product) bounded(dec anteroom.Decision, d *doorProcess) anteroom.Decision {
	if len(d.streams) >= anteroom.MaxStreams && !(dec.WaitKnown && dec.WaitTime < 2*engine.StreamNear) {
		dec.Stream = false
	}
	return dec
}

// buffer is an empty one to write a message into.
func (x *product) buffer() []byte {
	n := len(x.spare)
	if n == 0 {
		return make([]byte, 0, 256) // enough for most
	}
	b := x.spare[n-1]
	x.spare = x.spare[:n-1]
	return b[:0]
}

// flush has a node say what is urgent: what comes within a moment goes with it.
func (x *product) flush(node int) {
	if d := &x.doors[node]; d.flush == 0 {
		d.flush = x.w.now.Add(lanBatch)
		x.w.after(lanBatch, evFlush, int32(node), d.number)
	}
}

// tell sends what a door has to say.
func (x *product) tell(node int) {
	d := &x.doors[node]
	d.flush = 0
	now := d.room(x.w.now)
	for m, ok := d.door.Take(now); ok; m, ok = d.door.Take(now) {
		if d.clock.Synced() {
			m.Known = m.Sent
		}
		x.net.Send(x.w.since(x.w.now), x.nodeEnd(node), x.siteEnd(d.site), m.AppendWire(x.buffer()))
	}
}

// collect passes on what came of a call to a door.
func (x *product) collect(node int) {
	d, w := &x.doors[node], x.w
	for _, a := range d.door.TakeAnswers(d.room(w.now)) {
		r, ok := d.waits[a.Token]
		if taken := d.reports[a.Token]; taken != nil {
			if delete(d.reports, a.Token); a.Decision.Verdict == anteroom.Admit {
				taken()
			}
		}
		if !ok {
			continue
		}
		delete(d.waits, a.Token)
		q := &w.requests[r]
		if q.opens && a.Decision.Verdict == anteroom.Wait {
			d.listen(q.person, a.Decision.Ticket.ID)
		}
		x.noWorse(d, q.person, &a.Decision)
		w.answered(r, x.bounded(a.Decision, d), w.now.Sub(q.at) > insideMost)
	}
	if pushed := d.door.TakePushes(); len(pushed) > 0 {
		var people []int32
		for _, id := range pushed {
			people = append(people, d.hearers[id]...)
		}
		slices.Sort(people)
		for _, who := range slices.Compact(people) {
			w.called(who)
		}
	}
	for _, id := range d.door.TakeEnded() { // nobody waits by such a ticket any more
		for _, who := range slices.Sorted(slices.Values(d.hearers[id])) {
			d.hangUp(who)
			d.door.CloseStream(d.room(w.now), id)
			w.dropped(who)
		}
	}
	if d.door.Urgent() {
		x.flush(node)
	}
}

// updates has open streams show the places of their visitors, once a second.
func (x *product) updates(d *doorProcess) {
	const few = 200 // of more it would take too long
	if len(d.streams) == 0 || len(d.streams) > few || x.w.since(x.w.now)%time.Second >= tickEvery {
		return
	}
	for _, who := range x.listeners(d) {
		dec, ok := d.door.Look(d.room(x.w.now), x.w.people[who].ticket)
		if !ok || !dec.AheadKnown || dec.Ticket.ID != d.streams[who] {
			continue
		}
		x.noWorse(d, who, &dec)
		d.seen[dec.Ticket.ID] = seenPlace{dec.Ahead, dec.Ticket.Lane, x.w.now}
	}
}

// noWorse holds what a node shows of a visitor's place to what an open stream has shown there, for as long as the visitor can stay away and
// keep the place: no cookie says that, and it never gets worse but by a shuffle.
func (x *product) noWorse(d *doorProcess, who int32, dec *anteroom.Decision) {
	best, again := d.seen[dec.Ticket.ID]
	j := x.w.judge
	again = again && best.lane == dec.Ticket.Lane && x.w.now.Sub(best.at) < engine.MaxInterval+j.set.PlaceHold-time.Second && (j.shuffled == nil || best.at > j.shuffled.from.Add(shuffleHeard))
	if again && dec.Verdict == anteroom.Wait && dec.AheadKnown {
		j.look(checkBooks, dec.Ahead <= best.ahead, func() string {
			return fmt.Sprintf("visitor %d has seen %d people ahead on a stream, and sees %d now", who, best.ahead, dec.Ahead)
		})
	}
}

// listen notes that a person has a stream, of this ticket.
func (d *doorProcess) listen(who int32, id anteroom.ID) {
	d.hangUp(who)
	d.streams[who] = id
	d.hearers[id] = append(d.hearers[id], who)
}

// hangUp notes that a person has no stream here, and returns the ticket of the one that there was.
func (d *doorProcess) hangUp(who int32) (id anteroom.ID, ok bool) {
	if id, ok = d.streams[who]; !ok {
		return id, false
	}
	delete(d.streams, who)
	if others := without(d.hearers[id], who); len(others) > 0 {
		d.hearers[id] = others
	} else {
		delete(d.hearers, id)
	}
	return id, true
}

// listeners are the people with a stream at a door, in the order of their arrival.
func (x *product) listeners(d *doorProcess) []int32 {
	people := make([]int32, 0, len(d.streams))
	for who := range d.streams {
		people = append(people, who)
	}
	slices.Sort(people)
	return people
}

func (x *product) closed(node, who int32) {
	d := &x.doors[node]
	id, ok := d.hangUp(who)
	if !ok {
		return
	}
	d.door.CloseStream(d.room(x.w.now), id)
}

func (x *product) revoke(node int32, id anteroom.ID) bool {
	d := &x.doors[node]
	if !d.up {
		return false
	}
	d.door.Revoke(d.room(x.w.now), id)
	x.collect(int(node))
	return true
}

// reported does what the node's host does (node.Room.Reported).
func (x *product) reported(node int32, t anteroom.Ticket, taken func()) {
	d := &x.doors[node]
	if !d.up || d.paused || !t.Accepted() {
		return
	}
	dec, held := d.door.Visit(d.room(x.w.now), anteroom.Visit{Ticket: t, NoClaim: true, NoJoin: true, NoHold: true})
	switch {
	case held != 0:
		d.reports[held] = taken
		x.flush(int(node))
	case dec.Verdict == anteroom.Admit:
		if x.w.judge.flows() && !x.w.judge.justEnded(t.ID) {
			x.agrees(d, &dec.Ticket)
		}
		taken()
	}
}

func (x *product) configure(s anteroom.Settings) {
	for _, c := range x.coord { // draining may end one
		if c.machine != nil {
			c.machine.Configure(c.room(x.w.now), x.draw.holds(s))
			x.drain(c)
		}
	}
	for i := range x.sites {
		for _, p := range x.sites[i].holders {
			p.desk.Site().Configure(p.room(x.w.now), s)
			x.settle(i, p)
		}
	}
	for i := range x.doors {
		d := &x.doors[i]
		if d.up {
			d.door.Configure(d.room(x.w.now), s)
			x.collect(i)
		}
	}
}

func (x *product) next() (anteroom.Time, bool) {
	at, ok := x.net.Next()
	return epoch.Add(at + time.Microsecond - 1), ok // not before, in whole microseconds
}

func (x *product) advance() {
	m, ok := x.net.Receive(x.w.since(x.w.now))
	if !ok {
		return
	}
	kept := x.deliver(m)
	if !m.Shared && !kept { // nobody else will read it
		x.spare = append(x.spare, m.Data)
	}
}

// deliver hands a message to the processes at its end. It reports whether one of them keeps it
// for later.
func (x *product) deliver(m memlink.Message) (kept bool) {
	stopped := func(p *process) bool {
		if p.paused && len(p.inbox) < inboxMost {
			p.inbox, kept = append(p.inbox, m), true
		}
		return p.paused
	}
	switch to := int(m.To); {
	case to == 0:
		for _, c := range x.coord {
			if !stopped(&c.process) {
				x.atCoordinator(c, m.Data)
			}
		}
	case to <= len(x.sites):
		for _, p := range x.sites[to-1].holders {
			if !stopped(&p.process) {
				x.atSite(to-1, p, m)
			}
		}
	default:
		if d := &x.doors[to-1-len(x.sites)]; d.up && !stopped(&d.process) {
			x.atDoor(to-1-len(x.sites), m.Data)
		}
	}
	return kept
}

// goOn has a process that was stopped go on, with what came meanwhile.
func (x *product) goOn(p *process, deliver func(memlink.Message)) {
	p.paused = false
	inbox := p.inbox
	p.inbox = nil
	for _, m := range inbox {
		deliver(m)
	}
}

// must: what was encoded here is decoded here; anything else is a defect of the wire format.
func must[T any](v T, err error) T {
	if err != nil {
		panic("sim: " + err.Error())
	}
	return v
}

func (x *product) atCoordinator(c *coordinatorProcess, data []byte) {
	if !slices.Contains(x.coord, c) {
		return
	}
	r := must(engine.ParseReport(data))
	if !c.clock.Synced() {
		local := c.local(x.w.now)
		at, ok := c.before.Time.Follow(local, x.w.now.Sub(c.begun), &r)
		if !ok {
			return
		}
		c.clock.Follow(local, at)
	}
	if c.machine == nil {
		c.before.Hear(r)
		x.begin(c)
		return
	}
	for _, d := range r.Departures {
		if d.Why == engine.NoShow || d.Why == engine.Declined {
			delete(x.ahead, d.ID)
			x.w.judge.losesTurn(d)
			x.w.judge.unrelease(d.ID)
		}
	}
	c.machine.Receive(c.room(x.w.now), r)
	x.drain(c)
}

// begin makes a coordinator from the record, and stores that it has begun.
func (x *product) begin(c *coordinatorProcess) {
	if c.writing {
		return
	}
	set := x.draw.holds(x.w.sc.settingsAt(x.w.since(x.w.now)))
	machine, _ := c.before.Begin(c.room(x.w.now), set, x.record, x.seed)
	x.draw.redo(c.room(x.w.now), machine)
	c.revision = x.revision
	c.pending, _ = machine.Needs()
	c.machine, c.writing = nil, true
	x.store(c, func() {
		c.machine = machine
		if now := x.draw.holds(x.w.sc.settingsAt(x.w.since(x.w.now))); !reflect.DeepEqual(now, set) { // changed during the write
			c.machine.Configure(c.room(x.w.now), now)
		}
		c.before.Done(c.room(x.w.now), machine, c.pending)
		x.drain(c)
	})
}

// store writes a coordinator's record if nobody else has since.
func (x *product) store(c *coordinatorProcess, stored func()) {
	if x.w.sc.Faults.SlowStore == 0 && !x.stalled {
		x.stored(c, stored)
		return
	}
	x.w.later(x.w.sc.Faults.SlowStore, func() { x.stored(c, stored) })
}

func (x *product) stored(c *coordinatorProcess, stored func()) {
	switch {
	case !slices.Contains(x.coord, c): // it has ended: nobody hears the answer
		return
	case x.stalled:
		x.w.later(tickEvery, func() { x.stored(c, stored) })
		return
	case c.revision != x.revision && c.machine == nil && c == x.coord[len(x.coord)-1]:
		c.writing = false // as its host does: it begins from what the one before has written meanwhile
		x.w.later(tickEvery/2, func() {
			if slices.Contains(x.coord, c) {
				x.begin(c)
			}
		})
		return
	case c.revision != x.revision: // another has written the record
		x.coord = without(x.coord, c)
		return
	}
	x.revision++
	x.record, c.revision, c.writing = c.pending, x.revision, false
	stored()
}

// drain passes on what came of a call to a coordinator.
func (x *product) drain(c *coordinatorProcess) {
	w := x.w
	if c.machine.Fenced() {
		x.coord = without(x.coord, c)
		return
	}
	if w.origin != nil {
		w.origin.follows(c.machine, c.room(w.now))
	}
	w.judge.drawn(c.machine.Drawn())
	out := c.machine.Take()
	for i := range out {
		if o := out[i].Offers; o != nil {
			if o.ByHand {
				w.judge.calls(o.IDs)
			}
			for _, id := range o.IDs {
				if x.ahead[id] { // its unit has come
					delete(x.ahead, id)
					continue
				}
				x.released = append(x.released, id)
			}
			for _, id := range o.Ahead {
				x.ahead[id] = true
				x.released = append(x.released, id)
			}
		}
	}
	if len(x.released) > 0 {
		w.judge.settle()
		w.judge.releaseAll(x.released)
		x.released = x.released[:0]
	}
	for i := range out {
		for k := range x.sites {
			if x.sites[k].key.Name == out[i].Site.Name {
				x.net.Send(w.since(w.now), 0, x.siteEnd(k), x.cache.AppendToSite(x.buffer(), &out[i]))
			}
		}
	}
	if c.writing {
		return
	}
	if rec, ok := c.machine.Needs(); ok {
		c.pending, c.writing = rec, true
		x.store(c, func() {
			c.machine.Stored(c.room(w.now), c.pending)
			x.drain(c)
		})
	}
}

// atSite takes a message for a site: of the coordinator, or of a door.
func (x *product) atSite(i int, p *siteProcess, m memlink.Message) {
	if p.over || !slices.Contains(x.sites[i].holders, p) {
		return
	}
	if int(m.From) != 0 {
		said := must(engine.ParseFromDoor(m.Data))
		if step := p.clock.Guess(p.local(x.w.now), said.Known); step != 0 {
			p.desk.ClockGuessed(p.room(x.w.now), step)
		}
		p.desk.Receive(p.room(x.w.now), said)
		x.settle(i, p)
		return
	}
	said := must(x.cache.ParseToSite(m.Data))
	if said.Site != p.key || said.Term != p.term {
		return
	}
	if said.State != nil && said.State.Echo != 0 {
		before := p.clock.Synced()
		if step := p.clock.Heard(p.local(x.w.now), said.State.Echo, said.State.Now); step != 0 {
			p.desk.ClockSet(p.room(x.w.now), step)
		}
		if !p.clock.Synced() {
			said.State.Echo = 0 // it answers nobody who knows the time by it
		} else if !before {
			p.heard = x.w.now
		}
	}
	p.desk.Site().Deliver(p.room(x.w.now), said)
	x.settle(i, p)
}

// settle passes on what came of a call to a site: records to its journal, messages when what they
// rely on is durable.
func (x *product) settle(i int, p *siteProcess) {
	w, site := x.w, p.desk.Site()
	step := p.desk.Step(p.room(w.now), p.clock.Synced())
	if len(step.Events) > 0 {
		if open := p.outbox.Open(); open != nil {
			*open = append(*open, step.Events...)
		} else {
			p.outbox.Add(slices.Clone(step.Events))
		}
	}
	out := x.out[:0]
	for k := range step.Reports {
		out = append(out, outgoing{0, step.Reports[k].AppendWire(x.buffer())})
	}
	for k := range step.ToDoors {
		o := &step.ToDoors[k]
		data, sent := x.cache.AppendToDoor(x.buffer(), &o.Message), false
		for n := range w.sc.Sites[i].Nodes {
			node := int(w.firstOf[i]) + n
			if o.Door != 0 && o.Door != x.doors[node].id {
				continue
			}
			if sent { // each has a buffer of its own
				data = append(x.buffer(), data...)
			}
			out, sent = append(out, outgoing{x.nodeEnd(node), data}), true
		}
		if !sent {
			x.spare = append(x.spare, data)
		}
	}
	x.out = out // whoever keeps them has copied them
	if len(out) > 0 && !p.outbox.After(out) {
		x.send(i, out)
	}
	x.write(i, p)
	if !site.Sound() {
		w.judge.look(checkAgree, false, func() string { return "site " + p.key.Name + " has used more than it holds" })
	}
	if at := site.Wake(); at != 0 { // in room time; early or late by the clock's error
		s := &x.sites[i]
		at = max(w.now+1, w.now.Add(at.Sub(p.room(w.now))))
		if at < w.now.Add(tickEvery) && (s.wake <= w.now || at < s.wake) {
			s.wake = at
			w.queue.push(event{at: at, kind: evTick, who: int32(x.siteEnd(i)), arg: 1})
		}
	}
}

func (x *product) send(i int, out []outgoing) {
	for _, o := range out {
		x.net.Send(x.w.since(x.w.now), x.siteEnd(i), o.to, o.data)
	}
}

// write begins to write the next batch of a site's records.
func (x *product) write(i int, p *siteProcess) {
	if next := p.outbox.Next(); next != nil {
		x.w.later(writing, func() { x.written(i, p, next) })
	}
}

// written is the end of a write: the journal takes the records of the newest process only.
func (x *product) written(i int, p *siteProcess, batch *[]engine.Event) {
	s := &x.sites[i]
	switch {
	case !slices.Contains(s.holders, p): // it has ended: nobody hears the answer
		return
	case s.stalled || p.paused:
		x.w.later(tickEvery, func() { x.written(i, p, batch) })
		return
	case p != s.holders[len(s.holders)-1]: // fenced
		x.leave(i, p)
		return
	}
	x.append(i, p, *batch)
	for out := p.outbox.Written(); len(out) > 0; out = p.outbox.Written() {
		x.send(i, out)
	}
	x.write(i, p)
}

func (x *product) append(i int, p *siteProcess, events []engine.Event) {
	s := &x.sites[i]
	s.mark = max(s.mark, p.room(x.w.now))
	if x.journals {
		s.journal = append(s.journal, events...)
	}
}

// leave ends a process that took itself for a site. A write that it has begun may have arrived.
func (x *product) leave(i int, p *siteProcess) {
	s := &x.sites[i]
	newest := p == s.holders[len(s.holders)-1]
	s.holders = without(s.holders, p)
	if batch := p.outbox.Last(); batch != nil && newest && x.w.chance.IntN(2) == 0 {
		x.append(i, p, *batch)
	}
}

// holder is the process that has the role of a site, nil when none has.
func (x *product) holder(i int) *siteProcess {
	if h := x.sites[i].holders; len(h) > 0 {
		return h[len(h)-1]
	}
	return nil
}

// coordinator is the process that has the coordinator's role and has begun, nil when none has.
func (x *product) coordinator() *coordinatorProcess {
	for _, c := range slices.Backward(x.coord) {
		if c.machine != nil {
			return c
		}
	}
	return nil
}

func (x *product) atDoor(node int, data []byte) {
	d := &x.doors[node]
	m := must(x.cache.ParseToDoor(data))
	if step := d.clock.Heard(d.local(x.w.now), m.Echo, m.Now); step != 0 {
		d.door.ClockSet(step)
	}
	if !d.clock.Synced() {
		m.Echo = 0
	}
	d.door.Receive(d.room(x.w.now), m)
	x.collect(node)
}

func (x *product) event(e event) {
	w := x.w
	switch e.kind {
	case evFlush:
		if d := &x.doors[e.who]; d.up && !d.paused && d.number == e.arg && d.flush != 0 && w.now >= d.flush {
			x.tell(int(e.who))
		}
	case evTick:
		if e.arg == 0 {
			w.after(tickEvery, evTick, e.who, 0)
		}
		x.tick(int(e.who))
	case evFault:
		x.fault(int(e.who), e.arg == 1)
	case evNodeDeath:
		x.nodeDies(int(e.who))
		x.startDoor(int(e.who)) // another takes its place at once
		planDeath(w, int(e.who))
	}
}

func (x *product) tick(end int) {
	w := x.w
	switch {
	case end == 0:
		for _, c := range x.coord {
			if c.machine != nil && !c.paused {
				c.machine.Tick(c.room(w.now))
				x.proceed(c)
				x.drain(c)
			}
		}
		x.sums()
	case end <= len(x.sites):
		for _, p := range x.sites[end-1].holders {
			if !p.paused && !p.over {
				p.desk.Tick(p.room(w.now))
				x.settle(end-1, p)
			}
		}
	default:
		node := end - 1 - len(x.sites)
		if d := &x.doors[node]; d.up && !d.paused {
			if w.origin != nil && w.sc.settingsAt(w.since(w.now)).Protect {
				d.door.Origin(w.origin.sees(node))
			}
			d.door.Tick(d.room(w.now))
			x.updates(d)
			x.collect(node)
			x.tell(node)
		}
	}
}

// sums holds the ledger to its rules, over all sites that know the time. One that has been
// restored counts sessions that are over until the coordinator has said how late it is and the
// doors had a moment to tell whom they have let in.
func (x *product) sums() {
	c, w := x.coordinator(), x.w
	if c == nil || c.paused {
		return
	}
	n := c.machine.Numbers()
	var used [2]int64
	for i := range x.sites {
		p := x.holder(i)
		if p == nil || !p.clock.Synced() || w.now.Sub(p.heard) < 2*engine.TouchEvery {
			continue
		}
		b := p.desk.Site().Balance()
		for k := range used {
			used[k] += int64(b.Used[k]) + int64(b.Offers)
		}
	}
	j := x.w.judge
	if j.loose() || j.cap == math.MaxInt || n.Pool[0] < 0 || n.Pool[1] < 0 {
		return // a limit was lowered below what is in use
	}
	j.look(checkAgree, used[0] <= int64(j.cap) && used[1] <= int64(j.rate), func() string {
		return fmt.Sprintf("the sites use %d seats and %d rate slots of %d and %d", used[0], used[1], j.cap, j.rate)
	})
	j.look(checkAgree, n.Pool[0] <= int64(j.set.TotalActiveUsers) && n.Pool[1] <= int64(j.rate), func() string {
		return "the pool holds more than the limit"
	})
}

func (x *product) finish(n *Numbers) {
	var messages, bytes uint64
	for i := range x.sites {
		for _, p := range []*memlink.Path{x.net.Path(0, x.siteEnd(i)), x.net.Path(x.siteEnd(i), 0)} {
			messages += p.Sent
			bytes += p.Bytes
		}
	}
	seconds := x.w.since(x.w.now).Seconds() * float64(len(x.sites))
	n.Messages, n.Bytes = float64(messages)/seconds, float64(bytes)/seconds
	x.comesBack()
}

// back is what is in the pools, idle at a site, or on the way back from one.
func (x *product) back(c *coordinatorProcess) [2]int64 {
	total := c.machine.Numbers().Pool
	heard := map[string]engine.Units{}
	for _, st := range c.machine.Sites(x.w.now) {
		if !st.Lost {
			heard[st.Key.Name] = st.Returned
		}
	}
	for i := range x.sites {
		if p := x.holder(i); p != nil {
			b := p.desk.Site().Balance()
			for k := range total {
				total[k] += b.Free(k)
				if h, known := heard[x.w.sc.Sites[i].Name]; known {
					total[k] += int64(b.Returned[k]) - int64(h[k])
				}
			}
		}
	}
	return total
}

func (x *product) settled() bool {
	c, j := x.coordinator(), x.w.judge
	return c == nil || x.back(c) == [2]int64{int64(j.set.TotalActiveUsers), int64(j.rate)}
}

// comesBack: when everybody has gone and their sessions and minutes have passed, every unit
// is in the pool or idle at a site.
func (x *product) comesBack() {
	w, j, c := x.w, x.w.judge, x.coordinator()
	if !w.empty() || w.now < w.quiet() || !j.flows() || c == nil {
		return
	}
	total := x.back(c)
	j.look(checkBooks, total[0] == int64(j.set.TotalActiveUsers) && total[1] == int64(j.rate), func() string {
		return fmt.Sprintf("%d seats and %d rate slots came back of %d and %d", total[0], total[1], j.set.TotalActiveUsers, j.rate)
	})
}

// inLine holds the room to its line: who waits and is in touch has a place in it.
func (x *product) inLine(id anteroom.ID) bool {
	c := x.coordinator()
	return c == nil || c.machine.InLine(id)
}

// silence is how long a node has not heard of its site.
func (x *product) silence(node int32) time.Duration {
	d := &x.doors[node]
	return d.door.Unheard(d.room(x.w.now))
}

func (x *product) roomTime(node int32) (anteroom.Time, bool) {
	p := &x.doors[node].process
	if holder := x.holder(x.doors[node].site); holder != nil {
		p = &holder.process
	}
	return p.room(x.w.now), p.clock.Synced()
}

// nodeDies ends a node: requests fail and streams break. Its site hears of it when the node's
// membership has run out.
func (x *product) nodeDies(node int) {
	d, w := &x.doors[node], x.w
	if !d.up {
		return
	}
	d.up, d.died = false, w.now
	if d.quiet == 0 {
		d.quietAt = w.now
	}
	x.net.Drop(x.nodeEnd(node))
	waits, people := d.waits, x.listeners(d)
	d.waits, d.streams, d.hearers = nil, nil, nil
	tokens := make([]uint64, 0, len(waits))
	for token := range waits {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range tokens {
		w.failed(waits[token])
	}
	for _, who := range people {
		w.dropped(who)
	}
	site, id := d.site, d.id
	x.w.later(memberTTL, func() {
		for _, p := range x.sites[site].holders {
			if !p.paused && !p.over {
				p.desk.Gone(p.room(w.now), id)
				x.settle(site, p)
			}
		}
	})
}
