package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// product is the room as it runs in production: a coordinator, a site in each data centre,
// doors at its nodes, and a network between them that carries bytes.
type product struct {
	w     *world
	net   *memlink.Network
	coord coordinatorProcess
	sites []siteProcess
	doors []doorProcess // one for each node
	cache engine.FiguresCache
	seed  []byte

	planned  []fault
	journals bool // some site will start again from its journal
	released []anteroom.ID
	broken   []anteroom.ID
	spare    [][]byte            // buffers of messages that have been read
	pending  engine.LedgerRecord // being written
}

// Ends of the network: the coordinator, the sites, the nodes.
func (x *product) siteEnd(i int) memlink.End { return memlink.End(1 + i) }
func (x *product) nodeEnd(i int) memlink.End { return memlink.End(1 + len(x.sites) + i) }

const (
	tickEvery = 100 * time.Millisecond
	lanDelay  = 250 * time.Microsecond // one way between a node and its site
	lanBatch  = 200 * time.Microsecond // requests of so long travel together
	askFor    = 3 * time.Second        // a node waits for its site
)

// process is what every process has: a clock of its own that shows the wrong time and runs a
// little too fast or slow, and faults.
type process struct {
	up     bool
	paused bool
	begun  anteroom.Time // true time of the start
	wall   time.Duration // what the machine's wall clock shows too much
	wrong  time.Duration // what it showed too much at the start: time is monotonic since
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

type coordinatorProcess struct {
	process
	machine *engine.Coordinator
	record  engine.LedgerRecord
	writing bool
	number  uint32 // of the process: a write of one before is nobody's
	since   anteroom.Time
}

type siteProcess struct {
	process
	machine *engine.Site
	key     engine.SiteKey
	journal []engine.Event
	held    map[uint64]engine.Asked // by the site's token; Token is the door's
	heldBy  map[uint64]int32
	streams map[anteroom.ID]int32 // node of each open stream
	wake    anteroom.Time         // scheduled beside the regular ticks
	mode    engine.Mode
	figures *engine.Figures
	known   bool          // the doors have heard mode and figures
	heard   anteroom.Time // the coordinator, first
	out     [][]engine.Answer
	term    uint64         // of this process; see engine.Site.SetTerm
	older   []*siteProcess // take themselves for the site still
	fenced  int            // 1 and the fault by which another process writes the journal; 0: this one does
	mute    bool           // what it would say relies on what could not be recorded
	early   []fromNode     // until room time is known
}

type doorProcess struct {
	up      bool
	machine *engine.Door
	number  uint64
	site    int
	out     engine.FromDoor
	flush   bool
	asked   []asking          // oldest first
	waits   map[uint64]uint32 // token -> request
	token   uint64
	figures *engine.Figures
	streams map[anteroom.ID]int32
}

type asking struct {
	at    anteroom.Time
	token uint64
}

func newProduct(w *world, seed uint64) *product {
	x := &product{w: w, net: memlink.NewNetwork(seed), sites: make([]siteProcess, len(w.sc.Sites)), doors: make([]doorProcess, len(w.nodes))}
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
	c := &x.coord
	x.start(&c.process)
	c.clock.Follow(c.local(w.now), c.local(w.now)) // the first of a room sets its time
	c.machine = engine.NewCoordinator(c.room(w.now), w.sc.Settings, c.record, x.seed)
	w.after(tickEvery, evTick, 0, 0)
	for i := range x.sites {
		s := &x.sites[i]
		s.key = engine.SiteKey{Name: w.sc.Sites[i].Name, Incarnation: 1}
		x.startSite(i)
		w.after(tickEvery*time.Duration(i+1)/time.Duration(len(x.sites)+1), evTick, int32(x.siteEnd(i)), 0)
	}
	for i := range x.doors {
		x.startDoor(i)
		w.after(tickEvery*time.Duration(i+1)/time.Duration(len(x.doors)+1), evTick, int32(x.nodeEnd(i)), 0)
		planDeath(w, i)
	}
	x.planned = planFaults(w)
	for _, d := range w.sc.Faults.Deaths {
		x.journals = x.journals || d.What == "site"
	}
	x.journals = x.journals || len(w.sc.Faults.Handovers) > 0
	x.drainCoordinator()
	for i := range x.sites {
		x.settleSite(i)
	}
	return x
}

// start begins a process with a clock that is off.
func (x *product) start(p *process) {
	if off := x.w.sc.Faults.Clock; off > 0 && p.clock == nil {
		p.wall = time.Duration((x.w.chance.Float64()*2 - 1) * float64(off))
		p.drift = (x.w.chance.Float64()*2 - 1) * 5e-5
	}
	*p = process{up: true, begun: x.w.now, clock: engine.NewClock(), wall: p.wall, wrong: p.wall, drift: p.drift}
}

func (x *product) startSite(i int) {
	s := &x.sites[i]
	x.start(&s.process)
	if n := len(s.journal); n > 0 {
		// What was recorded is in room time: it goes on from the last record until the
		// coordinator says how much has passed. A wall clock is not to be believed.
		s.wrong = s.journal[n-1].At.Sub(s.begun)
	}
	now := s.room(x.w.now)
	set := x.w.sc.settingsAt(x.w.since(x.w.now))
	s.machine = engine.NewSite(now, s.key, set)
	s.machine.SetTerm(s.term)
	slack := engine.TouchSlack(set.WithDefaults().SessionDuration)
	for _, e := range s.journal {
		s.machine.Restore(e, 0, slack)
	}
	s.machine.Restored(now)
	s.held, s.heldBy = map[uint64]engine.Asked{}, map[uint64]int32{}
	s.streams = map[anteroom.ID]int32{}
	s.known = false
	s.out = make([][]engine.Answer, x.w.sc.Sites[i].Nodes)
}

func (x *product) startDoor(i int) {
	d := &x.doors[i]
	*d = doorProcess{up: true, site: int(x.w.nodes[i].site), number: d.number + 1, token: d.token,
		machine: engine.NewDoor(x.w.sc.settingsAt(x.w.since(x.w.now))),
		waits:   map[uint64]uint32{}, streams: map[anteroom.ID]int32{}}
	d.out.Door = d.number
	x.sites[d.site].known = false
}

// doorRoom is the room time of a node, which follows its site's clock over the short way
// between them.
func (x *product) doorRoom(i int) anteroom.Time { return x.timely(x.doors[i].site).room(x.w.now) }

func (x *product) request(r uint32) {
	w := x.w
	q := &w.requests[r]
	d := &x.doors[q.node]
	if !d.up || !x.timely(d.site).clock.Synced() {
		w.failed(r)
		return
	}
	dec, ask := d.machine.Decide(x.doorRoom(int(q.node)), q.visit)
	if ask = ask || d.machine.Unsure(x.doorRoom(int(q.node)), q.visit.Ticket.ID); !ask {
		if dec.Verdict == anteroom.Admit && w.judge.calm() {
			x.agrees(d, dec.Ticket.ID)
		}
		if dec.Verdict == anteroom.Admit {
			x.flushSoon(int(q.node)) // a node that dies loses the touches that it has not told
		}
		w.answered(r, x.bounded(dec, d), false)
		return
	}
	d.token++
	d.waits[d.token] = r
	d.asked = append(d.asked, asking{w.now, d.token})
	d.out.Visits = append(d.out.Visits, engine.Asked{Token: d.token, Visit: q.visit})
	if q.opens {
		d.streams[q.visit.Ticket.ID] = q.person
	}
	x.flushSoon(int(q.node))
}

// agrees holds a door to its site: whom it lets in has a session there.
func (x *product) agrees(d *doorProcess, id anteroom.ID) {
	s := &x.sites[d.site]
	if !s.up {
		return
	}
	_, ok := s.machine.Session(id)
	ok = ok || s.machine.Hosts(id)
	x.w.judge.look(checkAgree, ok, func() string { return "a door lets in a session that its site does not know" })
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
		return nil
	}
	b := x.spare[n-1]
	x.spare = x.spare[:n-1]
	return b[:0]
}

func (x *product) flushSoon(node int) {
	d := &x.doors[node]
	if !d.flush {
		d.flush = true
		x.w.after(lanBatch, evFlush, int32(node), 0)
	}
}

func (x *product) flushDoor(node int) {
	d := &x.doors[node]
	d.flush = false
	if !d.up {
		return
	}
	d.out.Batch, d.out.Touches = d.machine.TakeTouches()
	d.out.Polls = d.machine.TakePolls()
	if len(d.out.Visits)+len(d.out.Abandoned)+len(d.out.Closed)+len(d.out.Touches)+len(d.out.Polls) == 0 {
		return
	}
	x.net.Send(x.w.since(x.w.now), x.nodeEnd(node), x.siteEnd(d.site), d.out.AppendWire(x.buffer()))
	d.out = engine.FromDoor{Door: d.number, Visits: d.out.Visits[:0], Abandoned: d.out.Abandoned[:0], Closed: d.out.Closed[:0]} // encoded already
}

func (x *product) closed(node int32, id anteroom.ID) {
	d := &x.doors[node]
	if _, ok := d.streams[id]; !ok {
		return
	}
	delete(d.streams, id)
	d.out.Closed = append(d.out.Closed, id)
	x.flushSoon(int(node))
}

func (x *product) configure(s anteroom.Settings) {
	if x.coord.up && x.coord.machine != nil {
		x.coord.machine.Configure(x.coord.room(x.w.now), s)
		x.drainCoordinator()
	}
	for i := range x.sites {
		for _, p := range x.processes(i) {
			p.machine.Configure(p.room(x.w.now), s)
			x.settle(i, p)
		}
	}
	for i := range x.doors {
		x.doors[i].machine.Configure(s)
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
	if x.w.sc.Faults.Repeat == 0 { // nobody else will read it
		defer func() { x.spare = append(x.spare, m.Data) }()
	}
	switch to := int(m.To); {
	case to == 0:
		x.atCoordinator(m.Data)
	case to <= len(x.sites):
		if int(m.From) == 0 {
			x.fromCoordinator(to-1, m.Data)
		} else {
			x.atSite(to-1, int(m.From)-1-len(x.sites), m.Data)
		}
	default:
		x.atDoor(to-1-len(x.sites), m.Data)
	}
}

// must: what was encoded here is decoded here; anything else is a defect of the wire format.
func must[T any](v T, err error) T {
	if err != nil {
		panic("sim: " + err.Error())
	}
	return v
}

func (x *product) atCoordinator(data []byte) {
	c := &x.coord
	if !c.up || c.paused {
		return
	}
	r := must(engine.ParseReport(data))
	if !c.clock.Synced() {
		if r.Epoch == 0 && x.w.now.Sub(c.since) < 3*time.Second {
			return // a site that knows no more than we
		}
		at := r.Sent
		if r.Epoch == 0 {
			at = c.local(x.w.now)
		}
		c.clock.Follow(c.local(x.w.now), at)
	}
	if c.machine == nil {
		c.machine = engine.NewCoordinator(c.room(x.w.now), x.w.sc.settingsAt(x.w.since(x.w.now)), c.record, x.seed)
	}
	for _, d := range r.Departures {
		if d.Why == engine.NoShow || d.Why == engine.Declined {
			x.w.judge.unrelease(d.ID)
		}
	}
	c.machine.Receive(c.room(x.w.now), r)
	x.drainCoordinator()
}

func (x *product) drainCoordinator() {
	c, w := &x.coord, x.w
	for !c.writing {
		rec, ok := c.machine.Needs()
		if !ok {
			break
		}
		if w.sc.Faults.SlowStore > 0 {
			c.writing = true
			x.pending = rec
			w.after(w.sc.Faults.SlowStore, evStored, 0, c.number)
			break
		}
		c.record = rec
		c.machine.Stored(c.room(w.now), rec)
	}
	w.judge.drawn(c.machine.Drawn())
	out := c.machine.Take()
	for i := range out {
		if o := out[i].Offers; o != nil {
			x.released = append(x.released, o.IDs...)
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
}

func (x *product) fromCoordinator(i int, data []byte) {
	m := must(x.cache.ParseToSite(data))
	for _, s := range x.processes(i) {
		if s.paused || m.Site != s.key || m.Term != s.term {
			continue
		}
		if m.State != nil && m.State.Echo != 0 {
			if !s.clock.Synced() {
				s.heard = x.w.now
			}
			s.clock.Heard(s.local(x.w.now), m.State.Echo, m.State.Now)
		}
		s.machine.Deliver(s.room(x.w.now), m)
		x.settle(i, s)
		x.late(i, s)
	}
}

// atSite takes what a node sends.
func (x *product) atSite(i, node int, data []byte) {
	m := must(engine.ParseFromDoor(data))
	for _, s := range x.processes(i) {
		switch {
		case s.paused:
		case s.untimely(x.w.now):
			s.early = append(s.early, fromNode{node, m})
		default:
			x.fromDoor(i, s, node, m)
		}
	}
}

func (x *product) fromDoor(i int, s *siteProcess, node int, m engine.FromDoor) {
	if m.Door != x.doors[node].number {
		return
	}
	now := s.room(x.w.now)
	for _, id := range m.Closed {
		if n, ok := s.streams[id]; ok && n == int32(node) {
			delete(s.streams, id)
			s.machine.CloseStream(now, id)
		}
	}
	back := engine.ToDoor{Site: s.key, Confirmed: m.Batch}
	if len(m.Touches) > 0 {
		back.Ended = s.machine.Touch(now, m.Touches)
	}
	if len(m.Polls) > 0 {
		s.machine.Polls(now, m.Polls)
	}
	index := int(x.w.nodes[node].index)
	for _, a := range m.Visits {
		if a.Visit.Stream {
			if _, ok := s.streams[a.Visit.Ticket.ID]; ok { // one stream of a ticket at a time
				delete(s.streams, a.Visit.Ticket.ID)
				s.machine.CloseStream(now, a.Visit.Ticket.ID)
			}
		}
		dec, held := s.machine.Visit(now, a.Visit)
		if held != 0 {
			s.held[held] = a
			s.heldBy[held] = int32(node)
			continue
		}
		x.opened(s, node, &a.Visit, &dec)
		s.out[index] = append(s.out[index], engine.Answer{Token: a.Token, Decision: dec})
	}
	x.settle(i, s)
	back.Mode = s.machine.Mode()
	if !s.mute && (back.Confirmed != 0 || len(back.Ended) > 0) {
		x.toDoor(i, node, &back)
	}
}

// opened notes where a ticket's stream is.
func (x *product) opened(s *siteProcess, node int, v *anteroom.Visit, d *anteroom.Decision) {
	if v.Stream && d.Verdict == anteroom.Wait {
		s.streams[d.Ticket.ID] = int32(node) // the stream of a used ticket gets a new one
	}
}

// settleSite passes on what came of a call to the site.
func (x *product) settleSite(i int) { x.settle(i, &x.sites[i]) }

func (x *product) settle(i int, s *siteProcess) {
	first := int(x.w.firstOf[i])
	for {
		now := s.room(x.w.now)
		for _, a := range s.machine.TakeAnswers() {
			asked, ok := s.held[a.Token]
			if !ok {
				continue
			}
			node := s.heldBy[a.Token]
			delete(s.held, a.Token)
			delete(s.heldBy, a.Token)
			x.opened(s, int(node), &asked.Visit, &a.Decision)
			if r, ok := x.doors[node].waits[asked.Token]; ok {
				x.w.requests[r].outside = true
			}
			k := x.w.nodes[node].index
			s.out[k] = append(s.out[k], engine.Answer{Token: asked.Token, Decision: a.Decision})
		}
		switch e := s.machine.TakeEvents(); {
		case s.fenced != 0:
			s.mute = s.mute || len(e) > 0
		case x.journals:
			s.journal = append(s.journal, e...)
		}
		if s.mute {
			return
		}
		r, ok := s.machine.Report(now)
		if !ok {
			break
		}
		x.net.Send(x.w.since(x.w.now), x.siteEnd(i), 0, r.AppendWire(x.buffer()))
		if !s.machine.Sound() {
			x.w.judge.look(checkAgree, false, func() string { return "site " + s.key.Name + " has used more than it holds" })
		}
	}
	if at := s.machine.Wake(); at != 0 { // in room time; early or late by the clock's error
		at = max(x.w.now+1, x.w.now.Add(at.Sub(s.room(x.w.now))))
		if at < x.w.now.Add(tickEvery) && (s.wake <= x.w.now || at < s.wake) {
			s.wake = at
			x.w.queue.push(event{at: at, kind: evTick, who: int32(x.siteEnd(i)), arg: 1})
		}
	}
	all := engine.ToDoor{Site: s.key, Mode: s.machine.Mode(), Pushes: s.machine.TakePushes(), Ended: s.machine.TakeEnded()}
	if !s.known || s.mode != all.Mode || s.figures != s.machine.Figures() {
		s.known, s.mode, s.figures = true, all.Mode, s.machine.Figures()
		all.Figures = s.figures
	}
	for k := range s.out {
		if all.Answers = s.out[k]; len(all.Answers)+len(all.Pushes)+len(all.Ended) > 0 || all.Figures != nil {
			x.toDoor(i, first+k, &all)
		}
		s.out[k] = s.out[k][:0] // encoded already
	}
}

func (x *product) toDoor(i, node int, m *engine.ToDoor) {
	x.net.Send(x.w.since(x.w.now), x.siteEnd(i), x.nodeEnd(node), x.cache.AppendToDoor(x.buffer(), m))
}

func (x *product) atDoor(node int, data []byte) {
	d, w := &x.doors[node], x.w
	if !d.up {
		return
	}
	m := must(x.cache.ParseToDoor(data))
	if m.Site != x.sites[d.site].key {
		return
	}
	if m.Confirmed != 0 {
		d.machine.Confirmed(m.Confirmed)
	}
	if m.Figures != nil {
		d.figures = m.Figures
	}
	if d.figures != nil {
		d.machine.Apply(m.Mode, d.figures)
	}
	for _, a := range m.Answers {
		switch {
		case a.Decision.Verdict != anteroom.Admit:
		case engine.Guest(m.Site.Name, &a.Decision.Ticket):
			d.machine.Welcome(a.Decision.At, &a.Decision.Ticket)
		default:
			d.machine.Learn(a.Decision.At, a.Decision.Ticket.ID, a.Decision.Ticket.AcceptedAt)
		}
	}
	for _, id := range m.Ended {
		d.machine.Forget(id)
	}
	for _, a := range m.Answers {
		r, ok := d.waits[a.Token]
		if !ok {
			continue
		}
		delete(d.waits, a.Token)
		q := w.requests[r]
		if q.opens {
			delete(d.streams, q.visit.Ticket.ID)
			if a.Decision.Verdict == anteroom.Wait {
				d.streams[a.Decision.Ticket.ID] = q.person
			}
		}
		w.answered(r, x.bounded(a.Decision, d), q.outside)
	}
	for _, id := range m.Pushes {
		if who, ok := d.streams[id]; ok {
			w.called(who)
		}
	}
}

func (x *product) event(e event) {
	w := x.w
	switch e.kind {
	case evFlush:
		x.flushDoor(int(e.who))
	case evTick:
		if e.arg == 0 {
			w.after(tickEvery, evTick, e.who, 0)
		}
		x.tick(int(e.who))
	case evStored:
		c := &x.coord
		if e.arg != c.number || !c.up {
			return
		}
		c.writing = false
		c.record = x.pending
		c.machine.Stored(c.room(w.now), c.record)
		x.drainCoordinator()
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
		c := &x.coord
		if c.up && !c.paused && c.machine != nil {
			c.machine.Tick(c.room(w.now))
			x.drainCoordinator()
			x.sums()
		}
	case end <= len(x.sites):
		for _, s := range x.processes(end - 1) {
			if !s.paused {
				x.late(end-1, s)
				s.machine.Tick(s.room(w.now))
				x.settle(end-1, s)
			}
		}
	default:
		node := end - 1 - len(x.sites)
		d := &x.doors[node]
		if !d.up {
			return
		}
		x.flushDoor(node)
		for len(d.asked) > 0 && w.now.Sub(d.asked[0].at) > askFor {
			token := d.asked[0].token
			d.asked = d.asked[1:]
			if r, ok := d.waits[token]; ok {
				delete(d.waits, token)
				if w.requests[r].opens {
					delete(d.streams, w.requests[r].visit.Ticket.ID)
				}
				d.out.Abandoned = append(d.out.Abandoned, token)
				w.failed(r)
			}
		}
		for len(d.asked) > 0 {
			if _, ok := d.waits[d.asked[0].token]; ok {
				break
			}
			d.asked = d.asked[1:]
		}
	}
}

// sums holds the ledger to its rules, over all sites that know the time. One that has been
// restored counts sessions that are over until the coordinator has said how late it is and the
// doors had a second to tell whom they have let in.
func (x *product) sums() {
	n, w := x.coord.machine.Numbers(), x.w
	var used [2]int64
	for i := range x.sites {
		if s := &x.sites[i]; !s.clock.Synced() || w.now.Sub(s.heard) < 2*engine.TouchEvery {
			continue
		}
		b := x.sites[i].machine.Balance()
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

// comesBack: when everybody has gone and their sessions and minutes have passed, every unit
// is in the pool or idle at a site.
func (x *product) comesBack() {
	w, j := x.w, x.w.judge
	if !w.empty() || !j.calm() || !x.coord.up || x.coord.machine == nil {
		return
	}
	total := x.coord.machine.Numbers().Pool
	for i := range x.sites {
		b := x.sites[i].machine.Balance()
		for k := range total {
			total[k] += b.Free(k)
		}
	}
	j.look(checkBooks, total[0] == int64(j.set.TotalActiveUsers) && total[1] == int64(j.rate), func() string {
		return fmt.Sprintf("%d seats and %d rate slots came back of %d and %d", total[0], total[1], j.set.TotalActiveUsers, j.rate)
	})
}

// inLine holds the room to its line: who waits and is in touch has a place in it.
func (x *product) inLine(id anteroom.ID) bool {
	return x.coord.machine == nil || x.coord.machine.InLine(id)
}

// nodeDies ends a node. Its streams break, which its site notices at once.
func (x *product) nodeDies(node int) {
	d := &x.doors[node]
	d.up = false
	x.net.Drop(x.nodeEnd(node))
	waits := d.waits
	d.waits = nil
	for _, a := range d.asked {
		if r, ok := waits[a.token]; ok {
			x.w.failed(r)
		}
	}
	x.dropStreams(node)
	s := &x.sites[d.site]
	for id, n := range s.streams {
		if n == int32(node) {
			x.broken = append(x.broken, id)
		}
	}
	slices.SortFunc(x.broken, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range x.broken {
		delete(s.streams, id)
		if s.up {
			s.machine.CloseStream(s.room(x.w.now), id)
		}
	}
	x.broken = x.broken[:0]
}

// dropStreams breaks the streams of a node.
func (x *product) dropStreams(node int) {
	d := &x.doors[node]
	people := make([]int32, 0, len(d.streams))
	for _, who := range d.streams {
		people = append(people, who)
	}
	slices.Sort(people)
	clear(d.streams)
	for _, who := range people {
		x.w.dropped(who)
	}
}
