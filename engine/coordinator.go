package engine

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// LedgerRecord is what a coordinator needs from its predecessor: it is written and synced
// before any grant that relies on it leaves.
type LedgerRecord struct {
	Epoch uint64
	// Rested: nobody used the room when it was written, see Coordinator.Rest.
	Rested bool `json:",omitempty"`
	Sites  []ReservedUnits
}

// ReservedUnits is the durable bound of what one site was granted.
type ReservedUnits struct {
	Site     SiteKey
	Reserved Units
	Returned Units  // as heard when it was written
	Out      uint64 `json:",omitempty"` // of earlier releases: seats that were charged elsewhere by then
	// Term is that of the newest process of the site which had been heard: a later coordinator believes
	// no older one.
	Term uint64 `json:",omitempty"`
}

// Coordinator is the one authority of a room: its limits, the units granted to each site,
// and the order of everybody waiting. It is a state machine over messages and time: not
// safe for concurrent use, and it does nothing by itself. After each call, Take returns
// what is to be sent and Needs what must be stored before more can be granted.
type Coordinator struct {
	epoch     uint64
	seed      []byte
	settings  anteroom.Settings
	ledger    Ledger
	sites     []*siteView
	numbers   map[SiteKey]int // of sites, which are never forgotten before another takes the number
	alive     int             // sites that were not replaced
	idle      uint64          // sum over those
	idleRates int64           // see countRates
	demand    demand          // sum over those
	weights   uint64          // sum over those
	line      *line
	fetched   byte // see slab.fetch: nobody looks at it
	mode      Mode
	fenced    bool
	begun     bool // a report was heard
	held      bool // see Hold
	guessed   bool // see State.Guessed
	overview  bool // see overlooks

	draws     uint64
	pace      float64 // turns that may be given now
	throttle  throttle
	paceAt    anteroom.Time
	lastAt    anteroom.Time // when the last offers take effect
	letters   allowance     // of batches of turns, when there are several sites
	called    []uint32      // ahead of their units, the first first; some have no turn any more
	calledAt  anteroom.Time // when somebody was called ahead last
	front     anteroom.Time
	shuffled  anteroom.Time // see Figures
	redrawn   *redraw       // the shuffle that the keys follow; nil where none was recorded
	gatherAt  anteroom.Time // see Gather
	released  uint64
	joined    int           // since the forecast last asked
	quiet     anteroom.Time // before this nobody is called, see regather
	knockedAt anteroom.Time
	// openedTill is openedFor after settings let in more than before, see opens.
	openedTill anteroom.Time

	questions map[anteroom.ID]*question
	asking    []*question // those, in the order in which they were opened; some are closed
	silent    bool        // as sites were told, see State

	forecast    forecast
	lineAt      anteroom.Time
	figures     *Figures
	figuresAt   anteroom.Time
	figuresMade uint64
	outlook     *Figures // the last forecast; its line is that of then

	out   []ToSite
	dirty bool // LedgerRecord must be stored
}

type siteView struct {
	key      SiteKey
	home     uint32 // see homeOf
	heard    anteroom.Time
	seq      uint64
	greeted  bool // has reported to this coordinator
	seated   bool // has told the ages of its sessions
	resync   bool
	whole    bool // has told of all who wait there since Gather
	bare     bool // silent: nothing is reserved ahead for it, as for one that has not reported yet
	want     uint64
	idle     uint64
	adopted  uint64
	demand   demand
	lostAt   anteroom.Time // when a newer incarnation replaced it; 0 while it lives
	sent     anteroom.Time // by its clock: the newest report
	since    anteroom.Time // by its clock: the first report after it had heard this coordinator; 0 before
	lostFor  time.Duration // how long processes of it that have ended have adopted, as far as that counts; see outlived
	honors   time.Duration // of that, what the process has heard
	echo     anteroom.Time
	answer   bool
	told     bool // has been sent a State by this coordinator
	trip     time.Duration
	term     uint64          // of the newest of its processes that was heard
	weight   uint64          // of its share of what is idle
	used     Units           // as reported last
	coming   Units           // likewise, see Report
	ahead    time.Duration   // of its clock, by the last report
	began    anteroom.Time   // when its process was heard first; see awaits
	gathered bool            // its doors have told it who is here
	timed    bool            // has heard this coordinator, and so knows the time
	parts    uint32          // of a full report, taken so far
	here     map[uint32]bool // slots of who waits there, by those
	inquire  []Ask           // to be asked about
	found    []Finding       // to be told
	keys     []Placed        // to be told: the site has others
	origin   OriginFacts     // as reported last
	lanes    []LaneUse       // likewise
}

// NewCoordinator returns the coordinator of a room. before is what its predecessor stored;
// the zero value for a new room. seed keys the draws. The new epoch must be stored (see
// Record) before anything that Take returns is sent.
func NewCoordinator(now anteroom.Time, s anteroom.Settings, before LedgerRecord, seed []byte) *Coordinator {
	c := &Coordinator{
		epoch: before.Epoch + 1, seed: seed, ledger: newLedger(),
		line: newLine(now.Add(-24 * time.Hour)), mode: Queue, overview: before.Rested, lineAt: now, paceAt: now, knockedAt: now, dirty: true,
		numbers: map[SiteKey]int{}, questions: map[anteroom.ID]*question{},
	}
	for _, r := range before.Sites {
		r.Returned[Seat] += r.Out // charged elsewhere, or returned: that site has them no more
		c.ledger.Open(r.Site, r.Reserved, r.Returned)
		c.numbers[r.Site] = len(c.sites)
		c.sites = append(c.sites, &siteView{key: r.Site, term: r.Term, home: homeOf(r.Site.Name), heard: now, weight: 1})
		c.alive++
		c.weights++
	}
	c.Configure(now, s)
	c.pace, c.openedTill = c.burst(), 0
	return c
}

// Epoch fences older coordinators.
func (c *Coordinator) Epoch() uint64 { return c.epoch }

// Fenced reports that a newer coordinator was heard of: this one must stop.
func (c *Coordinator) Fenced() bool { return c.fenced }

// Configure puts new settings in force. Raising a limit takes effect at once; lowering it
// stops grants until enough has come back. Nobody loses a place or a session.
func (c *Coordinator) Configure(now anteroom.Time, s anteroom.Settings) {
	s = inForce(s)
	if s.ResetAt > c.settings.ResetAt {
		c.line.reset(s.ResetAt)
	}
	c.protect(now, &s)
	if opens(&c.settings, &s) {
		c.openedTill = now.Add(openedFor)
	}
	c.settings = s
	c.ledger.Limit = [units]int64{int64(s.TotalActiveUsers), int64(s.NewUsersPerMinute)}
	c.line.configure(s.QueueingMethod == anteroom.Random, s.Lanes)
	c.forecast.configure(s.SessionDuration)
	c.pace = min(c.pace, c.burst())
	if c.mode == Open && (c.closed() || c.ledger.Pool(Seat) < 0 || c.ledger.Pool(RateSlot) < 0) {
		c.setMode(Queue)
	}
	c.figures, c.outlook = nil, nil
	for _, s := range c.sites {
		s.answer = true
	}
	c.dispatch(now)
}

// closed reports that nobody is to be granted anything.
func (c *Coordinator) closed() bool { return c.held || closed(&c.settings) }

// Hold lets nobody be called or admitted while on, as nothing can be recorded; how long is not known.
// Unlike with QueueAll, those who wait stay as near as always.
func (c *Coordinator) Hold(now anteroom.Time, on bool) {
	if c.held == on {
		return
	}
	c.held = on
	if c.figures, c.outlook = nil, nil; on && c.mode == Open {
		c.setMode(Queue)
	}
	for _, s := range c.sites {
		s.answer = true
	}
	c.dispatch(now)
}

func (c *Coordinator) permits() int64 {
	if c.closed() {
		return 0
	}
	return c.ledger.Permits()
}

// Receive takes a site's report.
func (c *Coordinator) Receive(now anteroom.Time, r Report) { c.receive(now, r, true) }

// receive takes a report. timely is false for one that has waited here: the answer to it would make
// the site's clock wrong.
func (c *Coordinator) receive(now anteroom.Time, r Report, timely bool) {
	if r.Epoch > c.epoch {
		c.fenced = true
		return
	}
	if !c.begun {
		c.begin(now)
	}
	i := c.siteOf(now, r.From)
	if i < 0 || c.sites[i].lostAt != 0 {
		return // an incarnation that was replaced
	}
	s := c.sites[i]
	switch {
	case r.Term < s.term:
		return // a process that is not the site any more
	case r.Term > s.term:
		c.succeed(now, uint16(i), r)
	}
	silent := now.Sub(s.heard) >= DeadAfter // its line was passed over meanwhile
	// Until a site has heard this coordinator, its clock may be a guess, far ahead even: nothing is compared with that.
	answers := r.Epoch == c.epoch
	if answers && s.since == 0 {
		s.since, s.sent, s.timed = r.Sent, r.Sent, true
	}
	overtaken := r.Sent < s.sent || r.Sent == s.sent && r.Seq < s.seq
	if answers || s.since == 0 {
		s.sent = max(s.sent, r.Sent)
	} else {
		overtaken = true
	}
	s.heard, s.bare = now, false
	if (r.Seq != s.seq+1 || silent) && !r.Full {
		s.resync = true
	}
	complete := s.follows(r)
	if complete {
		s.whole, c.figures = s.whole || r.Sent >= c.gatherAt, nil
		s.resync = !s.whole
	}
	s.seq = r.Seq
	s.gathered = s.gathered || r.Gathered && s.whole
	if !s.greeted {
		s.began = now
		// What was adopted before this coordinator began is in its predecessor's grants, or
		// is conceded below; it cannot be told from what the predecessor moved.
		s.greeted, s.adopted = true, r.Adopted
	}
	switch { // the first report is seldom a full one: until that comes, the ages of the sessions here are not known
	case s.seated:
		c.forecast.observe(now, r.Admitted, r.Ends)
	case r.Full && r.Part <= 1:
		s.seated = true
		c.forecast.seat(now, r.Ages)
	}
	for r.Adopted > s.adopted {
		c.ledger.Move(c.lostOf(r.From), r.From, 1)
		s.adopted++
		c.dirty = true
	}
	// First what it owns, then what of that it gave back: an adopted session that ended
	// before its unit was moved here is given back beyond what was granted.
	if c.concede(r) {
		c.dirty = true
	}
	if c.ledger.Heard(r.From, r.Returned) != nil {
		s.resync = s.resync || !r.Full // never, after concede
	}
	c.setIdle(s, r.Idle)
	s.demand.add(now, float64(r.Newcomers))
	c.demand.add(now, float64(r.Newcomers))
	s.honors = r.LostFor
	c.hearOrigin(now, uint16(i), r.Origin)
	c.hearLanes(s, r.Lanes)
	s.trip, s.used, s.coming, s.ahead = r.Trip, r.Used, r.Coming, r.Sent.Add(r.Trip/2).Sub(now)
	c.weights += r.weight() - s.weight
	s.weight = r.weight()
	at := uint16(i)
	for i := range r.Arrivals {
		c.fetched |= c.line.places.fetch(&r.Arrivals[i].ID)
	}
	for _, d := range r.Departures {
		c.depart(now, d, at)
	}
	for _, a := range r.Arrivals {
		if void(&c.settings, a.Key) || !c.conflict(now, a, at, r.Full) {
			continue
		}
		told := a.Key
		if a.Key > now.Add(maxAhead) { // of a site that did not know the time
			a.Key = now
		}
		c.redrawn.place(&a)
		slot, joined := c.line.arrive(a, uint16(i), now)
		if r.Full && c.shuffled == 0 && slot != 0 {
			c.line.setKey(slot, a.Key) // the site did not know the time when it told another
		}
		if joined {
			c.joined++
			c.line.laneOf(a.Lane).joined++
		}
		if s.parts > 0 {
			s.here[slot] = true
		}
		if slot != 0 && c.shuffled != 0 && c.line.places.at(slot).key != told {
			s.keys = append(s.keys, Placed{ID: a.ID, Key: c.line.places.at(slot).key})
		}
	}
	if complete {
		if r.Part == 0 {
			s.here = map[uint32]bool{}
			for i := range r.Arrivals {
				s.here[c.line.places.find(&r.Arrivals[i].ID)] = true
			}
		}
		c.line.only(at, s.here, now)
		s.here, s.parts = nil, 0
	}
	for _, f := range r.Found {
		c.heardOf(now, at, f)
	}
	// A site that has not heard us would not know who answers. It asks again, and what an
	// overtaken report asks has perhaps been answered: a place must not move to where nobody waits
	// for it.
	if s.told && !overtaken {
		for _, a := range r.Asks {
			c.inquire(now, a, at)
		}
	}
	if c.line.waiting() > 0 && c.mode == Open {
		c.setMode(Queue)
	}
	s.want = uint64(r.Want)
	c.grantWants(now)
	if r.Ask || r.Want > 0 || s.resync {
		if s.answer = true; timely {
			s.echo = r.Sent
		}
	}
	c.dispatch(now)
}

// follows takes note of a report's part in a full one and says whether that is complete: all of
// its parts have come, one after the other. Else the site is asked for everything again.
func (s *siteView) follows(r Report) bool {
	switch {
	case !r.Full:
		s.here, s.parts = nil, 0
		return false
	case r.Part == 0:
		s.here, s.parts = nil, 0
		return true
	case r.Part == 1:
		s.here, s.parts, s.resync = map[uint32]bool{}, 1, false
	case s.parts == 0 || r.Part != s.parts+1 || r.Seq != s.seq+1:
		s.here, s.parts, s.resync = nil, 0, true
		return false
	default:
		s.parts++
	}
	return r.Last
}

// succeed takes a site's word that another process of it goes on from the journal. What was on
// its way to the one before is lost: whoever had been given a turn and waits there still is back
// in order at once, and whoever does not has taken it, or has gone and comes back with the
// ticket. Nothing that the older process sends counts any more, its returns included: the new one
// learns what was heard of them (State.Heard) before it may spend anything, and until then the
// journal, which nobody but the new one can write, lets nobody in.
func (c *Coordinator) succeed(now anteroom.Time, i uint16, r Report) {
	s := c.sites[i]
	s.lostFor = max(0, min(s.adoptedFor(), c.settings.SessionDuration-2*doorDead))
	s.term, s.seq, s.sent, s.since, s.honors = r.Term, 0, 0, 0, 0
	s.told, s.trip, s.began, s.gathered = false, 0, now, false
	s.found, s.keys = nil, nil
	s.resync, s.answer, c.dirty = true, true, true
	if r.Full {
		c.line.recall(i, r.Arrivals)
	} else {
		c.line.recall(i, nil)
	}
}

// weight is the report's weight, which is 1 when it says nothing.
func (r *Report) weight() uint64 { return max(1, uint64(r.Weight)) }

// maxAhead is how far a site's clock may be ahead of the coordinator's.
const maxAhead = time.Second

// begin takes the room time that the first report has brought: until then the process's own
// was a guess (see Clock.Follow).
func (c *Coordinator) begin(now anteroom.Time) {
	c.begun, c.openedTill = true, 0
	c.paceAt, c.lineAt, c.knockedAt = now, now, now
	c.line.base = now.Add(-24 * time.Hour) // nobody is in line yet
	for _, s := range c.sites {
		s.heard = min(s.heard, now)
	}
}

// concede covers what a site uses without a grant: the passthrough method lets it, and
// stored records may be older than a site that kept its memory.
func (c *Coordinator) concede(r Report) bool {
	a := c.ledger.accounts[r.From]
	before, owned := a.Reserved, r.Used
	for k := range owned {
		owned[k] += r.Returned[k] // of the same report: mixed with a newer one it would be too much
		if a.Granted == (Units{}) {
			owned[k] += r.Idle // a site that was written off is back, and may spend what it has
		}
	}
	c.ledger.Concede(r.From, owned)
	return a.Reserved != before
}

// depart takes a ticket out of the line, or back into it. What a site says of a place that
// has moved away from it counts no more, but that it let the ticket in.
func (c *Coordinator) depart(now anteroom.Time, d Departure, site uint16) {
	slot := c.line.places.find(&d.ID)
	if slot == 0 {
		return
	}
	if at := c.line.places.at(slot).site; at != site {
		if d.Why == Admitted {
			c.ask(now, Ask{ID: d.ID}, at, []uint16{site}, false)
		}
		return
	}
	switch d.Why {
	case Admitted:
		c.line.remove(slot)
	case Left:
		c.line.left++
		c.line.remove(slot)
	case NoShow:
		if c.line.places.at(slot).state == offered {
			c.line.missed(slot, now)
		}
	case Declined:
		if c.line.places.at(slot).state == offered {
			c.line.back(slot, false)
			c.line.putBack(slot) // the draw stands
		}
	}
}

// siteOf returns the index of the site, opening an account for a new one. An older
// incarnation of the same name stays charged until its sessions must have ended; when it
// speaks after that, or when there are more sites than can be numbered, the index is -1.
func (c *Coordinator) siteOf(now anteroom.Time, key SiteKey) int {
	found, known := c.numbers[key]
	if known && c.sites[found].greeted {
		return found
	}
	spare, replaced := -1, false
	for i, s := range c.sites {
		switch {
		case s.key.Name == key.Name && s.key.Incarnation > key.Incarnation:
			replaced = true
		case s.key.Name == key.Name && s.key.Incarnation < key.Incarnation && s.lostAt == 0:
			c.dirty = true // what it has is known exactly now
			c.lose(now, uint16(i))
		}
		if s.lostAt != 0 && c.ledger.accounts[s.key] == nil {
			spare = i
		}
	}
	switch {
	case known:
		return found
	case replaced, spare < 0 && len(c.sites) > math.MaxUint16:
		return -1
	}
	c.ledger.Open(key, Units{}, Units{})
	view := &siteView{key: key, home: homeOf(key.Name), heard: now, answer: true, resync: true, weight: 1}
	c.alive++
	c.weights++
	c.reserve(key, 0)
	if spare >= 0 { // a written-off site's number serves again
		delete(c.numbers, c.sites[spare].key)
		c.sites[spare], c.numbers[key] = view, spare
		return spare
	}
	c.numbers[key] = len(c.sites)
	c.sites = append(c.sites, view)
	return len(c.sites) - 1
}

// lose ends what counts of a site as long as it lives. It stays charged.
func (c *Coordinator) lose(now anteroom.Time, i uint16) {
	s := c.sites[i]
	s.lostAt = now
	c.line.orphan(i, now)
	c.alive--
	c.setIdle(s, 0)
	c.weights -= s.weight
	c.demand.add(now, -s.demand.at(now))
}

// Forget writes a site off by its name, on an operator's word that it admits nobody any more, and returns the
// seats that it was charged for. Whoever waits there keeps the place and comes back anywhere. A site that
// reports again after all is charged for what it holds from then on, which may be more than the limits leave.
func (c *Coordinator) Forget(now anteroom.Time, name string) (seats uint64) {
	for i, s := range c.sites {
		a := c.ledger.accounts[s.key]
		if s.key.Name != name || a == nil {
			continue
		}
		seats += uint64(max(0, a.charged(Seat)))
		if s.lostAt == 0 {
			c.lose(now, uint16(i))
		}
		c.ledger.Close(s.key)
		delete(c.numbers, s.key)
		// Its number serves for another site, and if it comes back, for that as a new one.
		s.key, s.home = SiteKey{}, 0
		c.dirty = true
	}
	c.grantWants(now)
	c.dispatch(now)
	return seats
}

// outlived says that no session of a lost incarnation is left but those that its successor
// has adopted and told of. The successor adopts whoever is seen for a session duration after
// it has heard of the loss; what a door let in before that is over by then. Its own clock
// says that the time has passed and that what it adopted until then is known here. A coordinator
// that begins waits anew: while there was none, guests of the lost one were seen at other sites, of
// whom the successor hears only now.
//
// A process of the successor that goes on from another's journal (succeed) does not begin anew: it
// hears for how long the one before adopted (State.LostFor), adopts for so much shorter, and says so
// (Report.LostFor). That is safe, and by durations of single clocks only:
//
//   - When the account is closed nobody adopts any more. The process counts its time to adopt from
//     its first State, less LostFor, and the coordinator from the first report after that, with the
//     same LostFor: so the report that closes the account was sent after the last adoption. From a
//     process that does not repeat the number, as one of an older release, the full time is asked for.
//   - No session is missed. One that is alive when the time is over was seen after the loss was heard
//     of first, for LostFor is at most the time that has passed since. If that was told to the older
//     process, the session is in the journal, for doors hear of nothing that is not durable. If it
//     was not, because it was in between, or the process did not live to record it, doors tell it to
//     the next process, which has at least 2 doorDead left to hear them.
func (c *Coordinator) outlived(lost *siteView) bool {
	for _, s := range c.sites {
		if s.lostAt == 0 && s.key.Name == lost.key.Name {
			d := max(c.settings.SessionDuration, RateHold)
			if c.silent { // its visitors may be guests where nobody is heard
				d += c.settings.SessionDuration
			}
			return s.since != 0 && s.adoptedFor() > d
		}
	}
	return false
}

// adoptedFor is how long a site is known to have adopted sessions of a lost memory.
func (s *siteView) adoptedFor() time.Duration {
	if s.since == 0 {
		return 0
	}
	d := s.sent.Sub(s.since)
	if s.honors == s.lostFor {
		d += s.lostFor
	}
	return d
}

func (c *Coordinator) setIdle(s *siteView, n uint64) {
	c.idle += n - s.idle
	s.idle = n
}

// lostOf is the incarnation whose sessions a site may adopt.
func (c *Coordinator) lostOf(key SiteKey) SiteKey {
	if c.alive == len(c.sites) {
		return SiteKey{}
	}
	for _, s := range c.sites {
		if s.key.Name == key.Name && s.lostAt != 0 {
			if a := c.ledger.accounts[s.key]; a != nil && a.Granted[Seat] > a.Returned[Seat] {
				return s.key
			}
		}
	}
	return SiteKey{}
}

// block is how many units are reserved ahead, so that a slow store delays nothing.
func (c *Coordinator) block() uint64 {
	return 256 + 2*uint64(min(c.settings.NewUsersPerMinute, 1<<20)) + uint64(min(c.settings.TotalActiveUsers, 1<<20))
}

// reserve asks for the durable bound of a site to be raised when less than half a block
// and n is left.
func (c *Coordinator) reserve(key SiteKey, n uint64) bool {
	a := c.ledger.accounts[key]
	for k := range units {
		if a.Granted[k]+n+c.block()/2 > a.Reserved[k] {
			c.dirty = true
			return a.Granted[k]+n <= a.Reserved[k]
		}
	}
	return true
}

// Needs returns the record that must be stored, if any: its epoch and bounds. When it is
// synced, call Stored with it.
func (c *Coordinator) Needs() (LedgerRecord, bool) {
	if !c.dirty {
		return LedgerRecord{}, false
	}
	c.dirty = false
	rec := LedgerRecord{Epoch: c.epoch}
	for _, s := range c.sites {
		a := c.ledger.accounts[s.key]
		if a == nil {
			continue
		}
		r := ReservedUnits{Site: s.key, Reserved: a.Granted, Returned: a.Returned, Term: s.term}
		switch {
		case s.lostAt != 0:
		case s.bare, !s.greeted:
			a.Reserved = a.Granted // from here on: this record replaces the one that said more
		default:
			for k := range units {
				r.Reserved[k] = max(a.Reserved[k], a.Granted[k]+c.block())
			}
		}
		rec.Sites = append(rec.Sites, r)
	}
	return rec, true
}

// bareSilent stops reserving ahead for sites that are silent. A coordinator that starts while a
// site cannot be heard charges it with all that is reserved; that is more than a limit may be, and
// nobody would get in anywhere until the site is back.
func (c *Coordinator) bareSilent(now anteroom.Time) {
	for _, s := range c.sites {
		if !s.bare && s.lostAt == 0 && s.greeted && now.Sub(s.heard) >= cutAfter && c.ledger.accounts[s.key] != nil {
			s.bare, c.dirty = true, true
		}
	}
}

// noticeSilence tells the sites that hold sessions when some site is not heard any more, or another
// process of it has begun, and when all are heard. Nobody tells of the guests whom a process let in that was
// replaced before it was heard again, so silence goes on until their sessions must be over.
func (c *Coordinator) noticeSilence(now anteroom.Time) {
	silent := slices.ContainsFunc(c.sites, func(s *siteView) bool {
		return s.lostAt == 0 && (now.Sub(s.heard) >= DeadAfter || s.term != 0 && now.Sub(s.began) < time.Second)
	})
	if silent != c.silent {
		c.silent = silent
		for _, s := range c.sites {
			s.answer = s.answer || s.used[Seat] > 0
		}
	}
}

// Stored says that the record is durable: grants up to its bounds may leave.
func (c *Coordinator) Stored(now anteroom.Time, rec LedgerRecord) {
	for _, r := range rec.Sites {
		if a := c.ledger.accounts[r.Site]; a != nil {
			a.Reserved.raise(r.Reserved)
		}
	}
	c.grantWants(now)
	c.dispatch(now)
}

// grant gives n permits, as far as the durable bound reaches.
func (c *Coordinator) grant(key SiteKey, n uint64) uint64 {
	if !c.reserve(key, n) {
		a := c.ledger.accounts[key]
		for k := range units {
			n = min(n, a.Reserved[k]-min(a.Reserved[k], a.Granted[k]))
		}
	}
	if n == 0 || !c.ledger.Grant(key, n) {
		return 0
	}
	return n
}

// grantWants serves sites that hold newcomers while nobody waits.
func (c *Coordinator) grantWants(now anteroom.Time) {
	for _, s := range c.sites {
		if s.want == 0 || s.lostAt != 0 {
			continue
		}
		if c.mode != Open || c.originDownAt(s) {
			s.want, s.answer = 0, true
			continue
		}
		pool := uint64(c.spare(nil)) // what is kept for a lane is its visitors' turn
		n := min(pool, max(s.want, c.target(now, s)))
		got := c.grant(s.key, n)
		if got > 0 {
			s.answer = true
			c.setIdle(s, s.idle+got)
		}
		switch {
		case pool < s.want:
			s.want = 0
			c.setMode(Queue)
		case got >= s.want:
			s.want = 0
		default:
			s.want -= got // the store has not confirmed the next block yet
		}
	}
}

func (c *Coordinator) setMode(m Mode) {
	c.mode = m
	c.figures, c.outlook = nil, nil // what was let in while the room was open is not among the released
	for _, s := range c.sites {
		s.answer = true
	}
}

// Tick does what time brings: paced releases, missed check-ins, lost sites. Call it about
// every 100 ms while the room has visitors.
func (c *Coordinator) Tick(now anteroom.Time) {
	c.line.sweep(now, c.settings.PlaceHold, 50)
	c.pursue(now)
	c.noticeSilence(now)
	c.followOrigin(now)
	c.knock(now)
	c.bareSilent(now)
	for _, s := range c.sites {
		if s.lostAt != 0 && c.ledger.accounts[s.key] != nil && c.outlived(s) {
			c.ledger.Close(s.key)
			c.dirty = true
		}
	}
	c.dispatch(now)
}

// Take returns the messages to send, in order, and forgets them.
func (c *Coordinator) Take() []ToSite {
	out := c.out
	c.out = nil
	return out
}
