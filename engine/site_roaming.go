package engine

// Tickets that turn up at a site where they are not known: what the site asks, what the others
// answer, and what the site does without an answer. A place in line moves to where its visitor is,
// a session stays (see homeOf).

import (
	"bytes"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// goneFor is how long a site answers the same about a ticket that it gave up.
	goneFor = time.Minute
	maxGone = 10_000
)

// roaming says that a ticket which is not known here may live at another site.
func (s *Site) roaming() bool { return s.sites > 1 || !s.synced }

// elsewhere says that only the other sites can tell where a ticket stands.
func (s *Site) elsewhere(now anteroom.Time, t anteroom.Ticket) bool {
	if !s.roaming() {
		return false
	}
	if !t.Accepted() {
		slot := s.here.find(&t.ID)
		return slot == 0 || s.here.at(slot).flags&hereUnasked != 0
	}
	// Whether the place that the session came of seems to be here says nothing: that it has gone is
	// perhaps not on record, or a door has brought it once more (see Polls).
	if !s.synced { // without the room time nothing can be said of a cookie
		return true
	}
	// A cookie this old has no session: it is renewed past half of the session duration, that of a guest with
	// the last moment that home has confirmed.
	over := t.LastCheckIn.Add(2*s.settings.SessionDuration + awayDelay)
	if s.settings.DisableSessionRenewal {
		over = s.settings.SessionEnd(t.AcceptedAt)
	}
	return now < over && (t.Home != s.home || !s.synced)
}

// enquire holds a request until the other sites have said where its ticket stands.
func (s *Site) enquire(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket) (anteroom.Decision, uint64) {
	h := heldVisit{visit: v, ticket: t, asking: true}
	if s.mode == Cut || len(s.held) >= anteroom.MaxHeld {
		s.again = heldVisit{asking: true}
		d, held := s.unheard(now, h)
		s.again = heldVisit{}
		return d, held
	}
	if _, open := s.questions[t.ID]; !open {
		a := Ask{ID: t.ID, Home: t.Home, Seen: now}
		if slot := s.guests.find(&t.ID); slot != 0 {
			a.Home = s.guests.at(slot).home
		}
		if t.Accepted() && s.fresh(now, t) {
			a.Accepted = t.AcceptedAt
		}
		s.questions[t.ID] = asked{Ask: a, until: now.Add(askedFor)}
		s.inquire(now, t.ID)
	}
	return anteroom.Decision{}, s.hold(now, h)
}

// asked is a question whose answer is not here yet. It outlives the request.
type asked struct {
	Ask
	last  anteroom.Time // when it was asked last
	until anteroom.Time // after that it is given up
}

// askedFor is how long a question is asked again.
const askedFor = 3 * time.Second

func (s *Site) inquire(now anteroom.Time, id anteroom.ID) {
	q := s.questions[id]
	q.last = now
	s.questions[id] = q
	s.asks = append(s.asks, q.Ask)
	s.gone.drop(id)
	s.urgent = true
}

// inquireAgain repeats questions whose answer is overdue.
func (s *Site) inquireAgain(now anteroom.Time) {
	var late []anteroom.ID
	for id, q := range s.questions {
		if now >= q.until {
			delete(s.questions, id)
		} else if now.Sub(q.last) >= max(holdMax*7/10, s.trip*5/2) {
			late = append(late, id)
		}
	}
	slices.SortFunc(late, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range late {
		s.inquire(now, id)
	}
}

// unheard decides about a ticket of which nobody has said where it stands, because of a cut
// or because the answer takes too long. Somebody who waits joins the line here. A guest goes on as
// long as home holds the seat for certain. Nobody else with a session takes a seat of this site for
// it: home may hold one, and may let it go at any moment. Such a visitor is let in anew if nobody
// waits, and else keeps the cookie until the session must be over, and then the place of the first
// arrival.
func (s *Site) unheard(now anteroom.Time, h heldVisit) (anteroom.Decision, uint64) {
	t, v := h.ticket, h.visit
	slot, away := s.seats.find(&t.ID), s.guests.find(&t.ID)
	if away != 0 { // whatever the cookie says
		g := s.guests.at(away)
		t.AcceptedAt, t.Home, t.LastCheckIn = g.accepted, g.home, max(t.LastCheckIn, g.sure)
	}
	switch {
	case slot != 0: // another request of the ticket was first
		return s.renew(now, slot, t, v.Fresh), 0
	case away != 0 && s.lasting(now, away):
		return s.welcome(now, away, h.ticket), 0
	case !t.Accepted() && s.placeLost(now, t):
		return s.anew(now, v, anteroom.ReasonPlaceLost)
	case !t.Accepted():
		return s.waitHere(now, v, t, hereUnasked)
	case !s.fresh(now, t):
		return s.anew(now, v, anteroom.ReasonSessionOver)
	case s.adoptable(now, t):
		return s.adopt(now, t), 0
	case s.settings.DisableSessionRenewal && !s.homely(&t): // home holds the seat until its end
		return admitted(now, &t, t.AcceptedAt, &s.settings, anteroom.ReasonSession), 0
	case s.permits() >= 1 && (s.mode == Open || s.mode == Cut && s.here.len() == 0):
		return s.anew(now, v, anteroom.ReasonSessionOver)
	case now < t.LastCheckIn.Add(s.settings.SessionDuration):
		return anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Method: s.settings.QueueingMethod, Refresh: 2 * MinInterval}, 0
	}
	place := anteroom.Ticket{ID: v.NewID, Arrival: t.Arrival, Lane: t.Lane, Bind: v.Bind}
	if void(&s.settings, place.Arrival) {
		place.Arrival = 0
	}
	return s.newcomer(now, v, place, anteroom.ReasonSessionOver)
}

// mayClaim says that a ticket here may take its turn: no limit has been set to 0 while the turn was on its way, and the ticket is
// known to be nowhere else, or nobody can tell.
func (s *Site) mayClaim(slot uint32) bool {
	if s.closed() && !s.offers[slot].byHand {
		return false
	}
	return s.here.at(slot).flags&hereUnasked == 0 || s.mode == Cut || !s.roaming()
}

// fresh says that the session of an accepted ticket may still be alive, by its cookie.
func (s *Site) fresh(now anteroom.Time, t anteroom.Ticket) bool {
	if s.settings.DisableSessionRenewal {
		return now < s.settings.SessionEnd(t.AcceptedAt)
	}
	// The cookie is renewed only past half of the session.
	return now < t.LastCheckIn.Add(s.settings.SessionDuration*3/2)
}

// anew goes on with a request whose ticket is worth nothing any more.
func (s *Site) anew(now anteroom.Time, v anteroom.Visit, why anteroom.Reason) (anteroom.Decision, uint64) {
	t := anteroom.Ticket{ID: v.NewID, Bind: v.Bind}
	v.Uninvited = true // an invitation is for one ticket
	if why == anteroom.ReasonSessionOver {
		t.Arrival, t.Lane = s.reentry(now, &v.Ticket)
	}
	t.Lane = max(t.Lane, v.Lane)
	return s.newcomer(now, v, t, why)
}

// waitHere gives a ticket from elsewhere its place in the line of this site.
func (s *Site) waitHere(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket, flags waiterFlags) (anteroom.Decision, uint64) {
	d, held := s.checkIn(now, v, t)
	if slot := s.here.find(&t.ID); slot != 0 {
		if w := s.here.at(slot); w.flags&hereUnasked != flags {
			w.flags ^= hereUnasked
			s.recordPlace(now, slot)
		}
	}
	return d, held
}

// ReceiveInquiry takes a question of the coordinator: tickets named in it have turned up at
// another site. A session that this site holds is renewed; a place it gives up. It says so in its
// next report.
func (s *Site) ReceiveInquiry(now anteroom.Time, q Inquiry) {
	if q.Epoch != s.epoch || !s.synced {
		return
	}
	for _, a := range q.Asks { // before anybody is found to have been away for too long
		if slot := s.seats.find(&a.ID); slot != 0 {
			s.lend(now, slot, a.Seen)
		}
	}
	s.expire(now)
	for _, a := range q.Asks {
		s.found = append(s.found, s.findHere(now, a))
	}
	s.urgent = true
	s.flush(now)
}

// findHere is what this site knows of a ticket that another one asks about.
func (s *Site) findHere(now anteroom.Time, a Ask) Finding {
	f, id := Finding{ID: a.ID}, a.ID
	if a.Over {
		s.Revoke(now, id)
	}
	slot := s.seats.find(&id)
	if slot == 0 && a.Home == s.home && a.Accepted != 0 && !a.Over && s.believes(now, id, false) {
		s.takeOver(now, id, a.Accepted, 0)
		slot = s.seats.find(&id)
		s.lend(now, slot, a.Seen)
	}
	if slot != 0 {
		st := s.seats.at(slot)
		if a.Seen != 0 {
			s.lend(now, slot, st.last) // the other site admits its guest for as long from what it is told here
		}
		f.Standing, f.Accepted, f.Last = Seated, st.accepted, st.last
		return f
	}
	if slot = s.here.find(&id); slot != 0 && !a.Over {
		w := s.here.at(slot)
		f.Standing, f.Key, f.Lane = Waiting, w.key, w.lane
		if w.streams > 0 {
			s.parted = append(s.parted, id)
		}
		s.dropOffer(slot)
		s.here.remove(slot)
		s.events = append(s.events, Event{Kind: EventMoved, ID: id, At: now})
		s.dismiss(now, id)
		s.gone.put(id, f, now.Add(goneFor))
	} else if s.used.find(&id) != 0 {
		f.Standing = Used
	} else if g, ok := s.gone.get(id); ok {
		return g
	}
	return f
}

// dismiss shows the page to requests that are held here with a ticket that has moved away.
// They take no place: the ticket's is where it was seen last.
func (s *Site) dismiss(now anteroom.Time, id anteroom.ID) {
	for i := 0; i < len(s.held); {
		h := s.held[i]
		if h.ticket.ID != id || h.asking {
			i++
			continue
		}
		s.held = append(s.held[:i], s.held[i+1:]...)
		s.answer(h, s.waitDecision(now, h.ticket, anteroom.ReasonWaiting))
	}
}

// ReceiveFindings takes the answer to what this site asked.
func (s *Site) ReceiveFindings(now anteroom.Time, f Findings) {
	if f.Epoch != s.epoch || !s.synced {
		return
	}
	for _, x := range f.Found {
		s.find(now, x)
	}
	s.flush(now)
}

// find takes one finding.
func (s *Site) find(now anteroom.Time, f Finding) {
	switch {
	case f.Standing == Seated && s.questions[f.ID].Over:
		return // said before it was ended
	case f.Standing == Seated && s.seats.find(&f.ID) != 0:
	case f.Standing == Seated:
		s.received(f)
	default:
		s.dismissed(f.ID)
	}
	delete(s.questions, f.ID)
	if slot := s.here.find(&f.ID); slot != 0 && f.Standing == Used { // a door has brought it once more (see Polls)
		s.dropOffer(slot)
		s.forget(now, slot)
		s.events[len(s.events)-1].Lane = laneLeft
		s.consume(f.ID, now, now)
	} else if slot != 0 {
		s.here.at(slot).flags &^= hereUnasked
		s.arrivals = append(s.arrivals, s.arrival(slot))
	}
	for i := 0; i < len(s.held); {
		h := s.held[i]
		if h.ticket.ID != f.ID || !h.asking {
			i++
			continue
		}
		s.held = append(s.held[:i], s.held[i+1:]...)
		h.found = f.Standing == Waiting
		s.goOn(now, h, func() (anteroom.Decision, uint64) { return s.foundAt(now, h, f) })
		i = 0 // what went on may have answered others
	}
}

// goOn decides about a held request again. Held on, it keeps its token and its bound.
func (s *Site) goOn(now anteroom.Time, h heldVisit, decide func() (anteroom.Decision, uint64)) {
	s.again = h
	d, held := decide()
	s.again = heldVisit{}
	if held == 0 {
		s.answer(h, d)
	}
}

// foundAt decides about a request now that it is known where its ticket stood.
func (s *Site) foundAt(now anteroom.Time, h heldVisit, f Finding) (anteroom.Decision, uint64) {
	t, v := h.ticket, h.visit
	over := anteroom.ReasonUsed
	if t.Accepted() {
		over = anteroom.ReasonSessionOver
	}
	slot, away := s.seats.find(&t.ID), s.guests.find(&t.ID)
	switch {
	case slot != 0:
		return s.renew(now, slot, t, v.Fresh), 0
	case away != 0:
		return s.welcome(now, away, t), 0
	case f.Standing == Seated: // there is no room to remember the guest
		d := admitted(now, &t, f.Accepted, &s.settings, anteroom.ReasonSession)
		d.Ticket.LastCheckIn, d.Ticket.Home, d.SetCookie = f.Last, f.Home, true
		return d, 0
	case f.Standing == Used, s.used.find(&t.ID) != 0:
		return s.anew(now, v, over)
	case t.Accepted() && s.adoptable(now, t): // whatever is said of the time before the loss
		return s.adopt(now, t), 0
	case f.Standing == Unknown && t.Accepted():
		return s.anew(now, v, over)
	case f.Standing == Unknown && s.placeLost(now, t), f.Standing == Waiting && void(&s.settings, f.Key):
		return s.anew(now, v, anteroom.ReasonPlaceLost)
	case f.Standing == Waiting:
		if t.Accepted() { // its home has lost the admission
			t.AcceptedAt, t.Next, t.Home = 0, now, 0
		}
		if s.unshuffled(t) {
			t.Told = 0
		}
		t.Arrival, t.Lane = f.Key, f.Lane
		t.LastCheckIn = max(t.LastCheckIn, s.shuffled+1) // that key is of after any shuffle
	}
	return s.waitHere(now, v, t, 0)
}

// measure takes the round trip of an answer; the shortest of the latest counts.
func (s *Site) measure(now, echo anteroom.Time) {
	trip := now.Sub(echo)
	if echo == 0 || echo < s.syncedAt || trip < 0 || trip > maxTrip {
		return
	}
	s.trips[s.tripCount%len(s.trips)] = trip
	s.tripCount++
	s.trip = trip
	for _, d := range s.trips[:min(s.tripCount, len(s.trips))] {
		s.trip = min(s.trip, d)
	}
}

// maxDelay bounds what is waited for a slow link.
const maxDelay = 2 * time.Second

// holdBound is how long a request may be held here for the coordinator's word.
func (s *Site) holdBound() time.Duration { return min(max(holdMax, 3*s.trip), maxDelay) }
