package engine

// A session stays at the site that admitted it, its home. At other sites the visitor is a guest:
// they ask home before they let a guest in, at most once per sureFor, and tell home of every
// request that they let in meanwhile. A guest takes no unit of theirs.

import (
	"hash/fnv"
	"slices"

	"github.com/anteroom/anteroom"
)

const (
	// awayDelay is how long home waits for word of a guest's last request: until it leaves the other site, which
	// may have to wait for an answer about an earlier one, and the way by the coordinator over slow links.
	awayDelay = TouchEvery + maxDelay
	// awayMargin is how much of the session must be left when a guest is let in although home does
	// not answer. By then home knows that it cannot hear the other site, and holds the seat.
	awayMargin = cutAfter + heartbeatOpen
	maxGuests  = 100_000
)

// homeOf is how a ticket names a site; never 0.
func homeOf(site string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(site))
	return max(1, h.Sum32())
}

// guest is a visitor whose session is at another site.
type guest struct {
	home     uint32
	accepted anteroom.Time
	sure     anteroom.Time // the last request that home has confirmed
	seen     anteroom.Time // the last request here
	told     anteroom.Time // when home was told of one last
	asked    anteroom.Time // which one that was
	untold   bool          // is among those to be told of
}

// Guest says that an admitted ticket has its session at another site than this one.
func Guest(site string, t *anteroom.Ticket) bool {
	return t.Accepted() && t.Home != 0 && t.Home != homeOf(site)
}

// homely says that the session of an accepted ticket is held here or nowhere.
func (s *Site) homely(t *anteroom.Ticket) bool { return t.Home == s.home || t.Home == 0 }

// sureOf says that home has confirmed a guest's session so lately that nobody asks again.
func (s *Site) sureOf(now anteroom.Time, id anteroom.ID) bool {
	slot := s.guests.find(&id)
	return slot != 0 && now.Sub(s.guests.at(slot).sure) < sureFor(s.settings.SessionDuration)
}

// welcome lets a guest in. The cookie tells a moment that home has confirmed, for a door may have
// to believe it.
func (s *Site) welcome(now anteroom.Time, slot uint32, t anteroom.Ticket) anteroom.Decision {
	g := s.guests.at(slot)
	s.visits(now, slot)
	d := admitted(now, &t, g.accepted, &s.settings, anteroom.ReasonSession)
	d.Ticket.LastCheckIn, d.Ticket.Home = g.sure, g.home
	if t.Accepted() {
		d.Ticket.LastCheckIn = max(t.LastCheckIn, g.sure)
	}
	d.SetCookie = d.Ticket.Home != t.Home || d.SetCookie && d.Ticket != t
	return d
}

// visits notes a guest's request, of which home is to be told.
func (s *Site) visits(now anteroom.Time, slot uint32) {
	g := s.guests.at(slot)
	if g.seen = max(g.seen, now); !g.untold {
		g.untold = true
		s.untold = append(s.untold, s.guests.id(slot))
	}
}

// seenLast counts the guests as seen whom a door may have let in after its last word, and before it ended.
func (s *Site) seenLast(w *witness) {
	s.guests.each(func(slot uint32) {
		g := s.guests.at(slot)
		if sure := max(g.seen, g.sure).Add(sureFor(s.settings.SessionDuration)); sure >= w.heard {
			s.visits(min(sure, w.over, w.heard.Add(speaksBy)), slot)
		}
	})
}

// tellHomes appends the requests of guests that their homes have not confirmed: each at most once
// per TouchDelay, and once per TouchEvery while there is no answer.
func (s *Site) tellHomes(now anteroom.Time) {
	s.untold = slices.DeleteFunc(s.untold, func(id anteroom.ID) bool {
		slot := s.guests.find(&id)
		if slot == 0 {
			return true
		}
		switch g := s.guests.at(slot); {
		case g.sure >= g.seen:
			g.untold = false
			return true
		case now.Sub(g.told) >= TouchEvery, g.sure >= g.asked && now.Sub(g.told) >= TouchDelay:
			g.told, g.asked = now, g.seen
			s.asks = append(s.asks, Ask{ID: id, Home: g.home, Seen: g.seen, Accepted: g.accepted})
		}
		return false
	})
}

// received takes home's word that a guest has a session, and ends the place that the ticket had
// here.
func (s *Site) received(f Finding) (slot uint32) {
	if slot = s.here.find(&f.ID); slot != 0 {
		s.dropOffer(slot)
		s.here.remove(slot)
		s.departures = append(s.departures, Departure{ID: f.ID, Why: Admitted})
	}
	if slot = s.guests.find(&f.ID); slot == 0 {
		if s.guests.len() >= maxGuests {
			return 0
		}
		slot = s.guests.add(f.ID)
	}
	g := s.guests.at(slot)
	g.home, g.accepted, g.sure = f.Home, f.Accepted, max(g.sure, f.Last)
	return slot
}

// dismissed forgets a guest whose session has ended.
func (s *Site) dismissed(id anteroom.ID) {
	if slot := s.guests.find(&id); slot != 0 {
		s.guests.remove(slot)
		s.ended = append(s.ended, id)
	}
}

// lasting says that home holds the seat of a guest for certain, although it does not answer.
func (s *Site) lasting(now anteroom.Time, slot uint32) bool {
	g := s.guests.at(slot)
	if s.settings.DisableSessionRenewal {
		return now < s.settings.SessionEnd(g.accepted)
	}
	return now < g.sure.Add(s.settings.SessionDuration-awayMargin)
}

// sweepGuests forgets those whose sessions are over. It looks at a tenth of them.
func (s *Site) sweepGuests(now anteroom.Time) {
	if s.guests.len() == 0 {
		return
	}
	end := s.guestPos + s.guests.next/10 + 1
	s.guests.eachBetween(s.guestPos, end, func(slot uint32) {
		if g := s.guests.at(slot); now >= lapse(&s.settings, g.accepted, max(g.sure, g.seen)) {
			s.guests.remove(slot)
		}
	})
	if s.guestPos = end; s.guestPos >= s.guests.next {
		s.guestPos = 0
	}
}

// revokeAway has home end the session of a guest, or whoever has it: again until that is confirmed.
func (s *Site) revokeAway(now anteroom.Time, id anteroom.ID) bool {
	a := Ask{ID: id, Over: true}
	slot := s.guests.find(&id)
	if slot != 0 {
		a.Home = s.guests.at(slot).home
		s.dismissed(id)
	}
	if s.roaming() {
		s.questions[id] = asked{Ask: a, until: now.Add(s.settings.SessionDuration)}
		s.inquire(now, id)
	}
	return slot != 0
}

// lend takes word of a request that another site has let in, or is asked to.
func (s *Site) lend(now anteroom.Time, slot uint32, seen anteroom.Time) {
	if seen == 0 {
		return // nobody has asked for the visitor
	}
	s.second(slot)
	st, seen := s.seats.at(slot), min(seen, now)
	if part := s.sixteenth(); seen/part > st.away/part {
		s.events = append(s.events, Event{Kind: EventTouched, Lane: laneAway | s.laneNow(), ID: s.seats.id(slot), At: seen})
	}
	st.last, st.away = max(st.last, seen), max(st.away, seen)
	st.early, st.restored = !s.synced, false
}

// Marks of a record of a touch: it was at another site; its moment is of a clock that knew no better than
// the site's own record. Of an admission: on probation. Of an end: by the origin or an operator.
const (
	laneAway    = 1
	laneEarly   = 2
	laneOnce    = 4
	laneRevoked = 8
	laneLeft    = 16 // the visitor gave up the place
)

func (s *Site) laneNow() uint8 {
	if s.synced {
		return 0
	}
	return laneEarly
}

// apart says that some site may have let guests in of which this one has not heard. It is asked with
// every tick, so that the end of a cut is noticed.
func (s *Site) apart(now anteroom.Time) bool {
	if s.mode == Cut || s.silent || now.Sub(s.answered) >= cutAfter {
		s.apartAt = now
	}
	return s.apartAt != 0 && now.Sub(s.apartAt) < cutAfter
}

// heldAway says that a session which is over by what was heard may go on at another site: this one and that one did not hear each other
// for a while, and nobody tells of requests that were let in there if the process has ended since. Such a request came within sureFor of
// one that was told, or until they heard each other again, and within a session duration.
func (s *Site) heldAway(now anteroom.Time, slot uint32) bool {
	st, d := s.seats.at(slot), s.settings.SessionDuration
	if st.away == 0 || s.settings.DisableSessionRenewal {
		return false
	}
	s.apart(now)
	last := max(st.away.Add(sureFor(d)), s.apartAt)
	return s.apartAt >= st.away && now < min(st.away.Add(2*d), last.Add(d+awayDelay))
}
