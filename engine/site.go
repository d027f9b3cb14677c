package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Site is the authority of a room in one data centre, or on one machine: it holds units,
// knows every session here and everybody who waits here. It is a state machine over
// messages and time: not safe for concurrent use, and it does nothing by itself. After
// each call, Report tells whether the coordinator is to hear something, and TakeAnswers,
// TakePushes and TakeEvents return what came of it.
type Site struct {
	key      SiteKey
	term     uint64
	weight   uint32
	settings anteroom.Settings

	balance  Balance
	epoch    uint64
	mode     Mode
	target   uint64
	rateKept uint64 // idle rate slots that it may keep
	figures  *Figures
	figured  bool          // they are a coordinator's
	outlook  uint64        // the epoch of that coordinator
	lost     bool          // a lost incarnation of this site may know sessions that this one does not
	lostAt   anteroom.Time // when that was heard first; 0 when it never was. Earlier by lostFor
	lostFor  time.Duration // for how long those before this process had heard of it then
	lostMost int           // the limit then
	adopted  uint64
	paid     uint64 // of those: seats that were granted for them
	sites    int    // that the room has
	synced   bool   // a State was heard since the start: the balance is valid
	sound    bool   // free never was negative, passthrough aside
	opening  Opening
	shuffled anteroom.Time // see Figures
	over     bool          // passthrough has admitted beyond the balance, and the coordinator has not conceded it yet

	recorded  anteroom.Time // the newest event restored
	slack     time.Duration // how far behind the last touch of a restored session may be
	forgotten anteroom.Time // the newest EventForgotten restored
	journaled anteroom.Time // what happened up to then is on record; see provesLoss
	begins    anteroom.Time // when this process began, if that is known; 0 else
	older     bool          // a cookie has proved that records are missing

	seats   slab[seat]
	expiry  queue
	passes  passes
	rates   ring               // ends of rate slots, ascending
	lanes   map[uint8]*laneUse // nil in a room without lanes
	used    slab[usedTicket]
	usedAge queue // by the moment at which they are forgotten
	maxUsed int   // bound of used

	probation probation

	here    slab[waiter]
	proving []proving // places that are not proven yet, about in the order in which they must be
	fetched byte      // see slab.fetch: nobody looks at it
	maxHere int       // bound of here
	offers  map[uint32]offer
	// No offer takes effect before effectAt and none is missed before missAt, so that they
	// need not be looked at until then. 0: there is none.
	effectAt, missAt anteroom.Time
	held             []heldVisit
	spareHeld        []heldVisit // room for held when it is gone through
	again            heldVisit   // the held request that is being decided about again
	token            uint64
	lastKey          anteroom.Time
	joins            joinsHere

	// For the next report.
	seq        uint64
	arrivals   []Arrival
	departures []Departure
	admitted   uint32
	ends       map[uint16]uint32
	newcomers  uint32
	wants      bool // held newcomers wait for the answer to a borrow
	borrowing  bool
	urgent     bool
	returned   bool // units, which no report has said yet
	resync     bool
	parts      [][]Arrival // of a full report, not sent yet
	part       uint32      // the number of the one sent last
	asks       []Ask
	found      []Finding
	borrowedAt anteroom.Time
	answered   anteroom.Time // when the newest report was sent that the coordinator has answered
	flushedAt  anteroom.Time
	letters    allowance // of reports, when there are other sites
	askedAt    anteroom.Time
	unanswered anteroom.Time // when the oldest question without an answer was asked; 0 when there is none

	doors []witness     // that may let sessions in
	came  anteroom.Time // when the request that is being decided about came to its door; 0: now

	timed     bool // see Report.Timed
	syncedAt  anteroom.Time
	step      time.Duration     // by which the clock was set before that
	trips     [16]time.Duration // round trips of the latest answers, as a ring
	tripCount int
	trip      time.Duration // the shortest of them; 0 when unknown

	home     uint32 // how tickets name this site
	guests   slab[guest]
	guestPos uint32        // see sweepGuests
	untold   []anteroom.ID // guests who were here since home has confirmed it last
	silent   bool          // the coordinator does not hear some other site
	apartAt  anteroom.Time // when some other site could not be heard last, see apart

	questions map[anteroom.ID]asked // not answered
	gone      recent[Finding]       // places that were given up to other sites
	heirs     recent[anteroom.ID]   // the tickets under which those go on who have lost their places

	counting *counting // nil: nobody asks

	origin  OriginFacts // of all doors here
	outages outages

	cut      cutLine
	sweepPos uint32
	sweptAt  anteroom.Time

	answers []Answer
	pushes  []anteroom.ID
	ended   []anteroom.ID
	parted  []anteroom.ID
	events  []Event
}

// waiter is a ticket that waits at this site.
type waiter struct {
	key     anteroom.Time
	due     anteroom.Time
	told    uint32 // the smallest place shown, plus one; 0 when none was
	streams uint16
	lane    uint8
	flags   waiterFlags
}

type waiterFlags uint8

const (
	hereShown waiterFlags = 1 << iota // has seen the page
	hereOffered
	hereAway    // missed a check-in; on record
	hereCame    // is proven: has come back with the ticket, or opened a stream
	hereWon     // drawn by a cut site while away
	hereUnasked // joined without asking whether it lives elsewhere
	hereUnheard // known from the journal only: perhaps the visitor has gone
	hereUndated // came before this process was told the time: the key is of its clock as it was
)

// NewSite returns a site without sessions. To restore one, call Restore with its events in
// order before anything else.
func NewSite(now anteroom.Time, key SiteKey, s anteroom.Settings) *Site {
	x := &Site{key: key, home: homeOf(key.Name), mode: Queue, offers: map[uint32]offer{}, ends: map[uint16]uint32{},
		questions: map[anteroom.ID]asked{}, gone: newRecent[Finding](maxGone), heirs: newRecent[anteroom.ID](maxGone),
		figures: &Figures{At: now, Step: baseStep, Known: true}, sound: true, resync: true, urgent: true,
		maxHere: anteroom.MaxLine, maxUsed: anteroom.MaxConsumed}
	x.expiry = queue{less: func(a, b uint32) bool { return x.seats.at(a).wake < x.seats.at(b).wake },
		moved: func(slot uint32, pos int) { x.seats.at(slot).pos = int32(pos) }}
	x.usedAge = queue{less: func(a, b uint32) bool { return x.used.at(a).until < x.used.at(b).until }}
	x.Configure(now, s)
	return x
}

// SetTerm says which epoch of the site's role this process has: each holder has a higher one.
// Call it before anything else; 0, the default, is for a site that has no roles. The coordinator
// ignores what processes of older terms say, and this one what was meant for them.
func (s *Site) SetTerm(term uint64) { s.term = term }

// SetWeight says how much of what is idle the site gets in relation to others; 0 means 1.
func (s *Site) SetWeight(weight uint32) { s.weight = weight }

// Configure puts new settings in force.
func (s *Site) Configure(now anteroom.Time, st anteroom.Settings) { s.configure(now, inForce(st)) }

func (s *Site) configure(now anteroom.Time, st anteroom.Settings) {
	st.OriginDown = s.originDown(&st)
	shorter := st.SessionDuration < s.settings.SessionDuration || st.DisableSessionRenewal != s.settings.DisableSessionRenewal ||
		st.RenewalEnded != s.settings.RenewalEnded
	before := s.settings
	s.settings = st
	s.countLanes()
	if shorter && before.Pass > 0 {
		s.passes.issued(before.Pass, now)
	}
	if shorter {
		s.expiry.slots = nil
		s.seats.each(func(slot uint32) {
			s.seats.at(slot).wake = s.lapse(slot)
			s.expiry.push(slot)
		})
	}
	if s.closed() && len(s.offers) > 0 {
		s.takeBack(s.offered(func(o offer) bool { return !o.byHand }))
		s.urgent = true
	}
	if st.ResetAt > before.ResetAt {
		s.reset(now)
	}
	if free(&st) && !free(&before) {
		s.here.each(func(slot uint32) {
			if s.here.at(slot).streams > 0 {
				s.pushes = append(s.pushes, s.here.id(slot))
			}
		})
	}
}

// closed says that nobody has a turn. Where a limit is 0, what was granted before is not for anybody either: it may be long until a site
// that is cut off can give it back.
func (s *Site) closed() bool { return shut(&s.settings) }

// reset forgets the places that a reset of the line has made void. Requests that are held for
// one go on as those of new visitors.
func (s *Site) reset(now anteroom.Time) {
	s.here.each(func(slot uint32) {
		if void(&s.settings, s.here.at(slot).key) {
			s.dropOffer(slot)
			s.departures = append(s.departures, Departure{ID: s.here.id(slot), Why: Left})
			s.here.remove(slot)
			s.urgent = true
		}
	})
	held := s.held
	s.held, s.spareHeld = s.spareHeld[:0], nil
	for _, h := range held {
		if h.asking || !void(&s.settings, h.ticket.Arrival) {
			s.held = append(s.held, h)
			continue
		}
		s.goOn(now, h, func() (anteroom.Decision, uint64) { return s.anew(now, h.visit, anteroom.ReasonPlaceLost) })
	}
	s.spareHeld = held
}

// newKey is an arrival key: the moment, made unique and ascending at this site. A reset of the line does not make it void that this
// request has come to its door before, nor that the clock here is behind the one by which the line was reset.
func (s *Site) newKey(now anteroom.Time) anteroom.Time {
	at := or0(s.came, now)
	if at <= s.lastKey && at < now && !void(&s.settings, at) {
		return at // it came to its door before others who were heard first
	}
	s.lastKey = max(s.lastKey+1, at, s.settings.ResetAt)
	return s.lastKey
}

// ready says that a request can be decided about. A site that has just begun knows neither the time,
// by which newcomers are ordered and cookies judged, nor what other sites have: for a moment it
// decides about those only whom its journal names.
func (s *Site) ready(id *anteroom.ID) bool { return s.oriented() || s.names(id) }

// names says that a ticket has a session or a place here.
func (s *Site) names(id *anteroom.ID) bool { return s.seats.find(id) != 0 || s.here.find(id) != 0 }

// oriented says that the coordinator was heard, or is not to be waited for.
func (s *Site) oriented() bool { return s.synced || s.mode == Cut }

// or0 is a moment, or another when it is 0.
func or0(t, otherwise anteroom.Time) anteroom.Time {
	if t == 0 {
		return otherwise
	}
	return t
}

// checkSound holds the rule that nothing is used that is not there. Passthrough is the one
// method that may.
func (s *Site) checkSound() {
	negative := s.balance.Free(Seat) < 0 || s.balance.Free(RateSlot) < 0
	switch {
	case !negative:
		s.over = false
	case s.settings.QueueingMethod == anteroom.Passthrough:
		s.over = true
	case !s.over:
		s.sound = false
	}
}

// Sound reports whether the balance has never been overdrawn. False is a defect: the site
// stops admitting.
func (s *Site) Sound() bool { return s.sound }

// permits is what may be spent here without asking.
func (s *Site) permits() int64 {
	if s.settings.TotalActiveUsers == 0 || s.settings.NewUsersPerMinute == 0 {
		return 0
	}
	return s.granted()
}

// granted is what is there to be spent.
func (s *Site) granted() int64 {
	if !s.synced || !s.sound {
		return 0
	}
	return s.balance.Permits()
}

func (s *Site) arrival(slot uint32) Arrival {
	s.heardOf(slot)
	w := s.here.at(slot)
	return Arrival{ID: s.here.id(slot), Key: w.key, Lane: w.lane, Shown: w.flags&hereShown != 0,
		Stream: w.streams > 0, Due: w.due, Unheard: w.flags&hereUnheard != 0, Unproven: w.flags&hereCame == 0}
}

// Deliver takes a message of the coordinator, whichever it is.
func (s *Site) Deliver(now anteroom.Time, m ToSite) {
	switch {
	case m.Term != s.term: // was meant for another process of the site
	case m.State != nil && m.State.Echo == 0 && !s.synced:
		// It does not answer this process: its clock is not right yet, and what was heard of its
		// returns may be out of date. If a step of the clock has spoiled the answer, the next one is asked for at once.
		s.urgent = true
	case m.State != nil:
		s.Receive(now, *m.State)
	case m.Offers != nil:
		s.ReceiveOffers(now, *m.Offers)
	case m.Inquiry != nil:
		s.ReceiveInquiry(now, *m.Inquiry)
	case m.Findings != nil:
		s.ReceiveFindings(now, *m.Findings)
	case m.Keys != nil:
		s.ReceiveKeys(now, *m.Keys)
	}
}

// ClockSet says that the clock was set to now, by a step forward or back (see [Clock.Heard]): before
// the first State is taken. Places that were given by the clock as it was are moved along.
func (s *Site) ClockSet(now anteroom.Time, step time.Duration) {
	s.step += step
	s.moveUndated(now, step)
	s.here.each(func(slot uint32) { s.here.at(slot).flags &^= hereUndated })
	for i := range s.doors {
		s.doors[i].heard = min(s.doors[i].heard, now)
	}
	s.askedAt, s.flushedAt, s.lastKey = min(s.askedAt, now), min(s.flushedAt, now), min(s.lastKey, now)
}

// moveUndated moves the places along that were given by a clock which has been moved by a step since.
func (s *Site) moveUndated(now anteroom.Time, step time.Duration) {
	s.here.each(func(slot uint32) {
		if w := s.here.at(slot); w.flags&hereUndated != 0 {
			w.key, w.due = w.key.Add(step), w.due.Add(step)
			s.recordPlace(now, slot)
		}
	})
}

// Receive takes the coordinator's word.
func (s *Site) Receive(now anteroom.Time, m State) {
	if m.Epoch < s.epoch {
		return
	}
	if m.Epoch > s.epoch || s.mode == Cut {
		s.resync = true
		s.urgent = true
	}
	// One that was overtaken on its way says only what grows.
	newest := m.Epoch != s.outlook || m.Figures == nil || m.Figures.Number >= s.figures.Number
	s.epoch = m.Epoch
	if !s.synced {
		if m.Guessed && s.step > 0 && s.recorded != 0 {
			s.postpone(now, s.step)
		}
		s.synced, s.syncedAt = true, now
		s.adopted = max(s.adopted, m.Adopted) // by the process before this one
		s.touchedEarly(now)
	}
	s.measure(now, m.Echo)
	s.unanswered = 0
	s.grant(m.Granted, m.Adopted)
	s.balance.Returned.raise(m.Heard)
	if newest {
		s.view(now, &m)
	}
	s.expire(now)
	if m.Resync {
		s.resync, s.urgent = true, true
	}
	s.answered = max(s.answered, m.Echo)
	if s.answered >= s.borrowedAt {
		s.borrowing = false
	}
	s.settleHeld(now)
	s.flush(now)
}

// view takes what the coordinator sees of the room now.
func (s *Site) view(now anteroom.Time, m *State) {
	s.sites, s.silent, s.mode, s.target, s.rateKept = m.Sites, m.Silent, m.Mode, m.Target, m.Rates
	if s.lost = m.Lost; s.lost && s.lostAt == 0 {
		s.lostFor = max(0, m.LostFor)
		s.lostAt, s.lostMost = now.Add(-s.lostFor), s.settings.TotalActiveUsers
	}
	if m.Figures != nil && (m.Epoch != s.outlook || m.Figures.Number != s.figures.Number) {
		s.shuffled = max(s.shuffled, m.Figures.Shuffled)
		s.figures, s.figured, s.outlook = m.Figures, true, m.Epoch
		s.joins.heardOf(m.Figures.At.Add(-s.trip / 2))
	}
}

// flushDue returns them each flushEvery. It is also called before each report: where many visitors come, reports follow each
// other at that interval, one just before each tick, and what came free would wait for a heartbeat.
func (s *Site) flushDue(now anteroom.Time) {
	if now.Sub(s.flushedAt) >= flushEvery {
		s.flush(now)
	}
}

// flush returns units that nobody here needs.
func (s *Site) flush(now anteroom.Time) {
	if !s.synced {
		return
	}
	var keep int64
	switch s.mode {
	case Open:
		keep = int64(s.target)
		keep += int64(len(s.held))
	case Cut:
		return
	}
	rates := max(keep, int64(min(s.rateKept, s.balance.Used[Seat])))
	if s.balance.Return([units]int64{Seat: keep, RateSlot: rates}) {
		if s.returned = true; s.term != 0 {
			// The report leaves after this is on record, so that a process that was replaced, and can
			// record nothing, returns nothing that its successor uses.
			s.events = append(s.events, Event{Kind: EventReturned, At: now})
		}
	}
	// While nobody waits, no other site is short of what this one returns, and the next heartbeat
	// takes it along. As soon as one is short, the room is in mode Queue.
	if s.returned && (s.mode == Queue || s.sites <= 1) {
		s.urgent = true
	}
}

// Wake is the next moment at which something is due here that ought not to wait for the
// next of the regular ticks: a unit comes free, a turn takes effect, a request has been held
// long enough. 0 means that nothing is.
func (s *Site) Wake() (at anteroom.Time) {
	soonest := func(t anteroom.Time) {
		if at == 0 || t < at {
			at = t
		}
	}
	if s.mode != Open && s.synced { // see expire
		if s.expiry.len() > 0 {
			soonest(s.seats.at(s.expiry.top()).wake)
		}
		if s.rates.len() > 0 {
			soonest(s.rates.first())
		}
		if s.passes.ends.len() > 0 {
			soonest(s.passes.ends.first())
		}
	}
	if s.effectAt != 0 {
		soonest(s.effectAt)
	}
	if (s.urgent || s.wants) && s.sites > 1 {
		soonest(s.letters.next())
	}
	if len(s.held) > 0 {
		soonest(s.held[0].until)
	}
	return at
}

// Tick does what time brings. Call it about every 100 ms while the room has visitors.
func (s *Site) Tick(now anteroom.Time) {
	s.apart(now)
	s.watchOutages(now)
	s.expire(now)
	s.takeEffect(now)
	s.missOffers(now)
	s.endHolds(now)
	s.inquireAgain(now)
	s.gone.forget(now)
	s.heirs.forget(now)
	s.disprove(now)
	s.sweepGuests(now)
	s.recordPasses(now)
	s.flushDue(now)
	if s.mode != Cut && s.unanswered != 0 && now.Sub(s.unanswered) >= cutAfter {
		s.enterCut(now)
	}
	if s.mode == Cut {
		s.serveLocal(now)
	}
	if since := now.Sub(s.sweptAt); since < 0 || since >= flushEvery/2 { // there are ticks in between, see Wake
		s.sweptAt = now
		s.sweep(now)
	}
}

// sweep forgets tickets whose place has lapsed. It looks at a hundredth of them.
func (s *Site) sweep(now anteroom.Time) {
	if s.here.len() == 0 {
		s.sweepPos = 0
		return
	}
	end := s.sweepPos + s.here.next/100 + 1
	s.here.eachBetween(s.sweepPos, end, func(slot uint32) {
		w := s.here.at(slot)
		if w.streams > 0 || w.flags&hereOffered != 0 {
			return
		}
		switch missed := now.Sub(w.due) - Grace; {
		case missed > s.settings.PlaceHold, missed > 0 && w.flags&hereCame == 0:
			s.forget(now, slot)
		case missed > 0 && w.flags&hereAway == 0:
			w.flags |= hereAway
			s.events = append(s.events, Event{Kind: EventAway, ID: s.here.id(slot), At: now})
		}
	})
	if s.sweepPos = end; s.sweepPos >= s.here.next {
		s.sweepPos = 0
	}
}

// proving is a place whose visitor has yet to come back with the ticket. When the slot holds another key by now, that
// ticket has gone.
type proving struct {
	key  anteroom.Time
	slot uint32
}

// maxProving bounds the places that are not proven. Beyond it newcomers get a ticket, by which they join when they come
// back.
const maxProving = 100_000

// disprove forgets places whose visitors have not come back for the first time. Clients that keep no cookie cannot fill
// the line, and a room in which nobody else waits is open again soon. Nothing is lost: a ticket that does come back
// brings its place along.
func (s *Site) disprove(now anteroom.Time) {
	n := 0
	for ; n < len(s.proving); n++ {
		p := s.proving[n]
		w := s.here.at(p.slot)
		if w.key != p.key || w.flags&(hereCame|hereOffered) != 0 {
			continue
		}
		if w.due.Add(ProveBy) >= now {
			break
		}
		s.forget(now, p.slot)
	}
	if s.proving = s.proving[n:]; len(s.proving) == 0 {
		s.proving = nil
	}
}

// forget gives up a place that only its ticket knows from now on.
func (s *Site) forget(now anteroom.Time, slot uint32) {
	s.left(s.here.at(slot))
	s.events = append(s.events, Event{Kind: EventForgotten, ID: s.here.id(slot), At: now})
	s.departures = append(s.departures, Departure{ID: s.here.id(slot), Why: Left})
	if s.here.at(slot).streams > 0 { // another tab is to ask what there is instead
		s.parted = append(s.parted, s.here.id(slot))
	}
	s.here.remove(slot)
}

// plenty: there is no other site, nobody waits, or so much is free that nobody ought to wait for messages to travel
// together.
func (s *Site) plenty() bool {
	return s.sites <= 1 || s.mode == Open || s.figures.Hot >= int64(max(s.settings.TotalActiveUsers/50, holdLine))
}

// Report returns what the coordinator is to hear now, if anything: at once when requests
// are held or units are free while others wait, each flushEvery with news, and as a
// heartbeat.
func (s *Site) Report(now anteroom.Time) (Report, bool) {
	beat := heartbeatOpen
	if s.mode == Queue {
		beat = HeartbeatQueue
	}
	every := flushEvery
	if s.together() {
		every *= 2
	}
	s.tellHomes(now)
	news := len(s.arrivals)+len(s.departures)+len(s.asks) > 0 && now.Sub(s.flushedAt) >= every
	ask := s.wants || now.Sub(s.askedAt) >= beat || s.askedAt == 0
	if len(s.parts) == 0 && !s.urgent && !news && !ask || len(s.parts) == 0 && !s.plenty() && !s.letters.may(now) {
		return Report{}, false
	}
	if len(s.departures)+len(s.found) > 0 {
		// Departures are read first: who came and went since the last report has gone. And whoever
		// was given up is not taken back by the word of a check-in before.
		s.arrivals = slices.DeleteFunc(s.arrivals, func(a Arrival) bool { return s.here.find(&a.ID) == 0 })
	}
	if !s.plenty() {
		s.letters.take(now)
	}
	s.seq++
	s.joins.reported(now)
	r := Report{From: s.key, Term: s.term, Weight: s.weight, Epoch: s.epoch, Seq: s.seq, Sent: now,
		Returned: s.balance.Returned, Used: s.balance.committed(), Adopted: s.adopted,
		Idle: uint64(s.balance.Permits()), Newcomers: s.newcomers, Admitted: s.admitted,
		Arrivals: s.arrivals, Departures: s.departures, Trip: s.trip, Asks: s.asks, Found: s.found,
		Origin: s.origin, LostFor: s.lostFor, Ask: ask || s.urgent, Timed: s.timed && s.epoch == 0,
	}
	if r.Want = s.wanted(); r.Want > 0 && r.Ask && !s.borrowing {
		s.borrowing, s.borrowedAt = true, now
	}
	s.wants = false
	for age, n := range s.ends {
		r.Ends = append(r.Ends, AgeCount{Age: age, Count: n})
	}
	slices.SortFunc(r.Ends, func(a, b AgeCount) int { return cmp.Compare(a.Age, b.Age) })
	if s.resync {
		s.everything()
		r.Ages = s.ages(now)
	}
	if len(s.parts) > 0 {
		s.nextPart(&r)
	} else {
		s.arrivals = make([]Arrival, 0, len(s.arrivals)) // as many may come again
	}
	if s.mode == Queue && s.synced {
		r.Coming = s.coming(now)
	}
	r.Gathered, r.Lanes = len(s.parts) == 0 && s.gathered(), s.laneUses(now)
	s.departures, s.admitted, s.newcomers = nil, 0, 0
	s.asks, s.found = nil, nil
	clear(s.ends)
	s.urgent, s.resync, s.returned = false, false, false
	s.flushedAt = now
	if r.Ask {
		s.askedAt = now
		if s.unanswered == 0 {
			s.unanswered = now
		}
	}
	return r, true
}

// partMost bounds the arrivals of a report, which take at most 40 bytes each: so a report with
// all else stays well below what one message may be (cluster.MaxMessage).
const partMost = 12_000

// everything collects all that waits here for a full report, of one part or several.
func (s *Site) everything() {
	all := make([]Arrival, 0, s.here.len())
	s.here.each(func(slot uint32) { all = append(all, s.arrival(slot)) })
	s.parts, s.part, s.arrivals = [][]Arrival{all[:0]}, 0, nil
	if len(all) > 0 {
		s.parts = slices.Collect(slices.Chunk(all, partMost))
	}
}

// nextPart puts the next part of everything into a report. Whoever has gone since it was
// collected is left out; who has come follows after the last part.
func (s *Site) nextPart(r *Report) {
	r.Full, r.Arrivals = true, s.parts[0]
	if s.part > 0 {
		r.Arrivals = slices.DeleteFunc(r.Arrivals, func(a Arrival) bool { return s.here.find(&a.ID) == 0 })
	}
	s.parts = s.parts[1:]
	if s.part > 0 || len(s.parts) > 0 {
		s.part++
		r.Part, r.Last = s.part, len(s.parts) == 0
	}
}

// TakeAnswers returns the answers to held requests and forgets them.
func (s *Site) TakeAnswers() []Answer { a := s.answers; s.answers = nil; return a }

// TakePushes returns the ids whose streams are to be told that their turn has come.
func (s *Site) TakePushes() []anteroom.ID { p := s.pushes; s.pushes = nil; return p }

// TakeEnded returns the ids of sessions that have ended, for the doors that know them.
func (s *Site) TakeEnded() []anteroom.ID { e := s.ended; s.ended = nil; return e }

// TakeParted returns the ids of tickets that had a stream here and wait at another site now.
func (s *Site) TakeParted() []anteroom.ID { p := s.parted; s.parted = nil; return p }

// TakeEvents returns what has to be recorded, in order.
func (s *Site) TakeEvents() []Event { e := s.events; s.events = nil; return e }

// Active is the number of sessions; RateSlots the number admitted within RateHold; Here
// the number of tickets that wait at this site.
func (s *Site) Active() int    { return s.seats.len() }
func (s *Site) RateSlots() int { return s.rates.len() }
func (s *Site) Here() int      { return s.here.len() }

// Balance returns the site's side of the ledger.
func (s *Site) Balance() Balance { return s.balance }

// Figures returns the newest figures heard.
func (s *Site) Figures() *Figures { return s.figures }

// Mode returns what the site does with newcomers.
func (s *Site) Mode() Mode { return s.mode }

// Idle reports that nothing would change by itself before the next request: the site needs
// no ticks.
func (s *Site) Idle() bool {
	return s.synced && s.seats.len()+s.passes.ends.len() == 0 && s.here.len() == 0 && s.rates.len() == 0 && len(s.held) == 0 &&
		len(s.arrivals)+len(s.departures)+len(s.untold)+len(s.questions) == 0 && !s.urgent && !s.wants
}

// Silence is how long the coordinator has been asked without an answer; 0 when it has answered, or was not
// asked.
func (s *Site) Silence(now anteroom.Time) time.Duration {
	if s.unanswered == 0 {
		return 0
	}
	return max(0, now.Sub(s.unanswered))
}
