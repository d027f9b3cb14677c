package engine

// Sessions: how they begin, are renewed, end, and what is remembered of them.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// seat is a session that holds a unit.
type seat struct {
	accepted anteroom.Time
	last     anteroom.Time
	away     anteroom.Time // the last request that another site has told of; 0: none
	wake     anteroom.Time // when expiry looks at it again
	rated    anteroom.Time // since when its rate slot is held; 0: it has none
	pos      int32         // in expiry
	once     bool          // its visitor has sent one request, see probation
	lane     uint8         // in which its visitor waited; after an outage, 0
	early    bool          // was touched before the site knew the time
	restored bool          // and not seen since: last is up to Site.slack too late
	came     bool          // its visitor has come in for certain, see comesIn
	doors    uint16        // that may let it in without asking, by doorBit
}

// usedTicket remembers that a ticket has had its session, as long as a waiting cookie of
// it could still be shown.
type usedTicket struct {
	until anteroom.Time
	// next is the ticket under which requests with this one continue; zero before the first such
	// request. Without it, six parallel requests with an old cookie take six places, and copies of
	// the cookie take places without bound.
	next  anteroom.ID
	early bool // the session ended because there was no second request
	// revoked: it was ended by the origin or an operator.
	revoked bool
}

// lapse is when the session in the slot ends if nothing is heard of it.
func (s *Site) lapse(slot uint32) anteroom.Time {
	st := s.seats.at(slot)
	end := max(lapse(&s.settings, st.accepted, st.last), s.heldForPass(st.last))
	if st.away != 0 && !s.settings.DisableSessionRenewal {
		end = max(end, st.away.Add(s.settings.SessionDuration+awayDelay))
	}
	return end
}

// lapse is when a site lets go of a session: after every door, whose clocks may be behind its own.
func lapse(s *anteroom.Settings, accepted, last anteroom.Time) anteroom.Time {
	return lasts(s, accepted, last).Add(TouchDelay)
}

// touch renews a session. It is recorded in each sixteenth of the session duration in which it
// is seen: not by the time since the last touch, for one that is seen all the time would
// never be. A restored session is recorded at once: what is known of it is too late by the slack,
// and the next process would take it for that much older.
func (s *Site) touch(now anteroom.Time, slot uint32) {
	st := s.seats.at(slot)
	s.second(slot)
	if part := s.sixteenth(); st.restored || now/part > st.last/part {
		s.events = append(s.events, Event{Kind: EventTouched, Lane: s.laneNow(), ID: s.seats.id(slot), At: now})
	}
	if now.Sub(st.last) > sureFor(s.settings.SessionDuration) {
		st.doors = 0
	}
	st.last, st.early, st.restored = max(st.last, now), !s.synced, false
}

// comesIn notes that the visitor of a session comes in at a moment, later than the session began: the answer was lost, or long
// on its way. The rate counts those who come in, so the rate slot is held from that moment on. A slot that has been given
// back by then, a minute after the session began, is not taken again.
func (s *Site) comesIn(at anteroom.Time, slot uint32) {
	if st := s.seats.at(slot); !st.came && at.Sub(st.rated) > TouchDelay && s.holdSlot(at, slot) {
		s.events = append(s.events, Event{Kind: EventCame, ID: s.seats.id(slot), At: at})
	}
}

// holdSlot holds the rate slot of a session from a moment on, if it is held still.
func (s *Site) holdSlot(at anteroom.Time, slot uint32) bool {
	st := s.seats.at(slot)
	from, to := st.rated.Add(RateHold), at.Add(RateHold)
	if st.rated == 0 || !s.rates.move(from, to) {
		return false
	}
	if u := s.lanes[st.lane]; u != nil {
		u.rates.move(from, to)
	}
	if st.rated = at; st.once { // that was its one request
		st.last = max(st.last, at.Add(-s.short()))
	}
	return true
}

// cameLate says that a door has let in the visitor of a session, see [FromDoor].Late.
func (s *Site) cameLate(at anteroom.Time, id anteroom.ID) {
	if slot := s.seats.find(&id); slot != 0 {
		s.comesIn(at, slot)
		s.seats.at(slot).came = true
	}
}

// sixteenth is one of the session duration.
func (s *Site) sixteenth() anteroom.Time {
	return max(1, anteroom.Time(s.settings.SessionDuration/16/time.Microsecond))
}

// touchedEarly gives the sessions that were seen before the first word of the coordinator the
// moment of that word, for the clock may have been far behind: it is at most too late.
func (s *Site) touchedEarly(now anteroom.Time) {
	s.seats.each(func(slot uint32) {
		if st := s.seats.at(slot); st.early {
			st.last, st.early = max(st.last, now), false
			s.events = append(s.events, Event{Kind: EventTouched, Lane: s.laneNow(), ID: s.seats.id(slot), At: now})
		}
	})
}

// postpone moves what was restored by a step of the clock that need not be time that has passed:
// sessions and rate slots end so much later. It is on record, for the next process restores the same
// moments.
func (s *Site) postpone(now anteroom.Time, by time.Duration) {
	s.events = append(s.events, Event{Kind: EventStep, At: now, Key: anteroom.Time(by / time.Microsecond)})
	s.stepped(by)
	s.expiry.slots = nil
	s.seats.each(func(slot uint32) {
		s.seats.at(slot).wake = s.lapse(slot)
		s.expiry.push(slot)
	})
}

// seenUntil counts all sessions as seen now.
func (s *Site) seenUntil(now anteroom.Time) {
	s.expiry.slots = nil
	s.seats.each(func(slot uint32) {
		st := s.seats.at(slot)
		st.last = max(st.last, now)
		st.wake = s.lapse(slot)
		s.expiry.push(slot)
	})
}

func (s *Site) stepped(by time.Duration) {
	s.seats.each(func(slot uint32) {
		st := s.seats.at(slot)
		if st.rated != 0 {
			st.rated = st.rated.Add(by)
		}
		if st.restored {
			if st.last = st.last.Add(by); s.settings.DisableSessionRenewal {
				st.accepted = st.accepted.Add(by)
			}
		}
	})
	s.rates.shift(by)
	for _, u := range s.lanes {
		u.rates.shift(by)
	}
	s.outages.stepped(by)
	s.passes.ends.shift(by)
	s.passes.until = s.passes.until.Add(by)
	for i := range s.doors {
		d := &s.doors[i]
		if d.heard = d.heard.Add(by); d.over != 0 {
			d.over = d.over.Add(by)
		}
	}
}

// Touch renews a session that a door let through at a moment. It reports whether there is one here: the
// door forgets one that is not, so that the next request comes with its cookie, and may be adopted or
// asked about. A session that a lost memory may have known is adopted at once, for the request that the
// door let in has made it last.
func (s *Site) Touch(now, seen anteroom.Time, id anteroom.ID) (known bool) {
	slot, away := s.seats.find(&id), s.guests.find(&id)
	switch {
	case slot != 0:
		s.touch(seen, slot)
		s.seats.at(slot).came = true
	case away != 0:
		s.visits(seen, away)
	case s.believes(now, id, true) && !s.settings.DisableSessionRenewal:
		s.takeOver(now, id, now, 0)
	default:
		if s.roaming() && s.used.find(&id) == 0 {
			// A guest of the process before this one, perhaps: the request counts at home.
			s.asks = append(s.asks, Ask{ID: id, Seen: seen})
		}
		return false
	}
	return true
}

// TouchSlack is how far a restored session may be behind: touches are recorded once per
// sixteenth of the session duration.
func TouchSlack(d time.Duration) time.Duration { return d/16 + TouchEvery + TouchDelay }

// sureFor is how long after the last touch that its site has confirmed a door lets a session in
// without asking the site. What nobody has confirmed is told to the next process of the site, too.
func sureFor(d time.Duration) time.Duration { return max(d/30, time.Second) }

// Session returns the session of id, if there is one.
func (s *Site) Session(id anteroom.ID) (anteroom.Session, bool) {
	slot := s.seats.find(&id)
	if slot == 0 {
		return anteroom.Session{}, false
	}
	st := s.seats.at(slot)
	return anteroom.Session{ID: id, AcceptedAt: st.accepted, LastSeen: max(st.accepted, st.last)}, true
}

// Hosts says that the visitor is a guest here (see homeOf).
func (s *Site) Hosts(id anteroom.ID) bool { return s.guests.find(&id) != 0 }

// believes says that a lost memory may have known this session. What it held is charged by
// the coordinator until this site has reported again a session duration after it has heard of
// the loss, cut off or not; whoever was not seen here by then is gone. Never more than the limit are believed:
// if it was lowered since, only those who are certain to have been there are, up to what it was.
func (s *Site) believes(now anteroom.Time, id anteroom.ID, certain bool) bool {
	most := s.settings.TotalActiveUsers
	if certain {
		most = max(most, s.lostMost)
	}
	return s.lost && now.Sub(s.lostAt) < s.settings.SessionDuration && s.used.find(&id) == 0 && s.seats.len() < most
}

// adoptable: a lost memory knew this session, for its cookie has not run out. One that has says nothing:
// it is renewed seldom, so that its session may go on, or have ended and another have its seat.
func (s *Site) adoptable(now anteroom.Time, t anteroom.Ticket) bool {
	return now < lasts(&s.settings, t.AcceptedAt, t.LastCheckIn) && s.homely(&t) && s.believes(now, t.ID, true)
}

// provesLoss: the session began before this process and after everything that is on record, and no session
// begins without a record. So the journal is not the newest that there was.
func (s *Site) provesLoss(now anteroom.Time, t anteroom.Ticket) bool {
	return t.AcceptedAt > s.journaled && t.AcceptedAt < s.begins && !s.lost && s.homely(&t) &&
		now < lasts(&s.settings, t.AcceptedAt, t.LastCheckIn) && s.settings.QueueingMethod != anteroom.Passthrough
}

func (s *Site) adopt(now anteroom.Time, t anteroom.Ticket) anteroom.Decision {
	s.takeOver(now, t.ID, t.AcceptedAt, t.Lane)
	return s.atHome(now, t, t.AcceptedAt, anteroom.ReasonAdopted)
}

// atHome is the decision that lets a session of this site in.
func (s *Site) atHome(now anteroom.Time, t anteroom.Ticket, accepted anteroom.Time, why anteroom.Reason) anteroom.Decision {
	d := admitted(now, &t, accepted, &s.settings, why)
	if d.Ticket.Home != s.home {
		d.Ticket.Home, d.SetCookie = s.home, true
	}
	return d
}

// takeOver begins to hold a session of the lost memory. Its unit is that one's until the
// coordinator has moved it.
func (s *Site) takeOver(now anteroom.Time, id anteroom.ID, accepted anteroom.Time, lane uint8) {
	lane = laneNumber(s.settings.Lanes, lane)
	s.adopted++
	s.owe()
	s.urgent = true
	if slot := s.here.find(&id); slot != 0 {
		s.dropOffer(slot)
		s.here.remove(slot)
		s.departures = append(s.departures, Departure{ID: id, Why: Admitted})
	}
	s.balance.Used[Seat]++
	s.gone.drop(id)
	slot := s.seats.add(id)
	*s.seats.at(slot) = seat{accepted: accepted, last: now, pos: -1, lane: lane}
	s.seats.at(slot).wake = s.lapse(slot)
	s.expiry.push(slot)
	// Recorded as an admission: after a restart its rate slot is held once more, which is safe.
	s.useLane(lane, now.Add(RateHold))
	s.events = append(s.events, Event{Kind: EventAdmitted, Lane: admittedLane(lane, 0), ID: id, At: now})
}

// grant takes what was granted, ever, and for how many of the adopted sessions a seat is in it:
// the most of each that was heard.
func (s *Site) grant(granted Units, adopted uint64) {
	s.balance.Granted.raise(granted)
	s.paid = max(s.paid, adopted)
	s.owe()
}

// owe counts the sessions here whose seats are charged to the lost memory.
func (s *Site) owe() { s.balance.Debt = s.adopted - min(s.adopted, s.paid) }

// admit begins a session for t, whose waiter (if any) and offer (if any) end.
func (s *Site) admit(now anteroom.Time, t anteroom.Ticket, reason anteroom.Reason) anteroom.Decision {
	once := reason != anteroom.ReasonPassthrough && t.Next == 0
	if slot := s.here.find(&t.ID); slot != 0 {
		once = once && s.here.at(slot).flags&hereCame == 0
		s.dropOffer(slot)
		s.entered(now, t.Arrival, s.here.at(slot).flags&hereShown != 0 && t.Lane == 0)
		s.here.remove(slot)
		s.departures = append(s.departures, Departure{ID: t.ID, Why: Admitted})
	} else {
		s.entered(now, t.Arrival, t.Next != 0 && t.Lane == 0) // known by its cookie only
	}
	s.balance.Used[Seat]++
	s.balance.Used[RateSlot]++
	s.checkSound()
	s.gone.drop(t.ID)
	slot := s.seats.add(t.ID)
	lane, flags := laneNumber(s.settings.Lanes, t.Lane), uint8(0)
	*s.seats.at(slot) = seat{accepted: now, last: now, rated: now, once: once, lane: lane}
	if once {
		s.seats.at(slot).last, flags = now.Add(-s.short()), laneOnce
	}
	s.seats.at(slot).wake = s.lapse(slot)
	s.expiry.push(slot)
	s.rates.push(now.Add(RateHold))
	s.useLane(lane, now.Add(RateHold))
	s.admitted++
	s.events = append(s.events, Event{Kind: EventAdmitted, Lane: admittedLane(lane, flags), ID: t.ID, At: now, Key: t.Arrival})
	d := s.atHome(now, t, now, reason)
	d.Ticket.LastCheckIn, d.SetCookie = s.seats.at(slot).last, true
	// Every other request with this ticket gets the same answer.
	for i := 0; i < len(s.held); {
		if h := s.held[i]; h.ticket.ID == t.ID {
			delete(s.questions, t.ID)
			if !h.visit.Fresh {
				s.touch(now, slot)
			}
			s.answer(h, d)
			s.held = append(s.held[:i], s.held[i+1:]...)
			continue
		}
		i++
	}
	return d
}

// Revoke ends the session of id at once and frees its seat, as soon as all its passes are over.
func (s *Site) Revoke(now anteroom.Time, id anteroom.ID) bool {
	slot := s.seats.find(&id)
	if slot == 0 {
		return s.guests.find(&id) != 0 && s.revokeAway(now, id)
	}
	if s.counting != nil {
		s.counting.Revoked++
	}
	if s.seats.at(slot).away != 0 { // the sites where it is a guest's hear of it at once
		s.found, s.urgent = append(s.found, Finding{ID: id, Standing: Used, Home: s.home}), true
	}
	s.expiry.removeAt(int(s.seats.at(slot).pos))
	s.end(now, slot)
	if used := s.used.find(&id); used != 0 {
		s.used.at(used).revoked = true
	}
	s.events = append(s.events, Event{Kind: EventEnded, Lane: laneRevoked, ID: id, At: now, Key: s.keepSeat(now, id)})
	s.flush(now)
	return true
}

// end frees the seat of a session that is over. The slot has left expiry.
func (s *Site) end(now anteroom.Time, slot uint32) {
	st, id := *s.seats.at(slot), s.seats.id(slot)
	s.stayed(&st)
	s.consume(id, st.accepted, now)
	s.ends[s.age(now, st.accepted)]++
	s.seats.remove(slot)
	s.freeLane(st.lane)
	s.balance.Used[Seat]--
	s.ended = append(s.ended, id)
}

// ages counts the sessions here by age.
func (s *Site) ages(now anteroom.Time) (out []AgeCount) {
	var count [ageCount + 1]uint32
	s.seats.each(func(slot uint32) { count[s.age(now, s.seats.at(slot).accepted)]++ })
	for age, n := range count {
		if n > 0 {
			out = append(out, AgeCount{Age: uint16(age), Count: n})
		}
	}
	return out
}

// age is the age of a session in the forecast's steps.
func (s *Site) age(now, accepted anteroom.Time) uint16 {
	return uint16(ageOf(accepted, now, stepOf(s.settings.SessionDuration)))
}

// consume remembers a used ticket as long as a waiting cookie of it could be shown: the
// last one was issued before the admission and says when to come back. At the bound the one
// that would be the first to go anyway is forgotten.
func (s *Site) consume(id anteroom.ID, accepted, now anteroom.Time) {
	until := accepted.Add(max(MaxInterval, s.settings.Refresh)*115/100 + s.settings.PlaceHold + time.Minute)
	if s.roaming() {
		until = max(until, now.Add(movedFor+offerLost)) // what the coordinator remembers must not revive it
	}
	if s.settings.Protect && s.settings.ProtectReturn > 0 { // a session that was revoked gives no credit, see inOutage
		until = max(until, now.Add(s.settings.SessionDuration))
	}
	if until <= now || s.used.find(&id) != 0 {
		return
	}
	s.remember(id, until)
}

func (s *Site) remember(id anteroom.ID, until anteroom.Time) {
	slot := s.used.add(id)
	s.used.at(slot).until = until
	s.usedAge.push(slot)
	if s.used.len() > s.maxUsed {
		s.used.remove(s.usedAge.pop())
	}
}

// successor returns the ticket under which a request with a used ticket continues: the one that an
// earlier request with the same ticket got, as long as that one waits or has a session here. If its
// session is over too, the request continues as its successor, but follows the chain no further: a
// chain grows by one link per session. Otherwise fresh becomes the successor.
func (s *Site) successor(now anteroom.Time, old, fresh anteroom.ID) anteroom.ID {
	slot := s.used.find(&old)
	if slot == 0 {
		if !s.synced || s.here.find(&old) != 0 {
			return fresh // the clock may be set back, so the session may not be over; or the ticket waits here
		}
		// Nothing was remembered: the session outlasted every waiting cookie, or was at another site.
		s.remember(old, now.Add(s.settings.PlaceHold+time.Minute))
		if slot = s.used.find(&old); slot == 0 {
			return fresh // beyond the bound, and the first to be forgotten
		}
	}
	next := &s.used.at(slot).next
	if next.IsZero() {
		*next = fresh
		return fresh
	}
	if then := s.used.find(next); then != 0 {
		further := &s.used.at(then).next
		if !s.known(*further) {
			*further = fresh // its cookie may come back as well
		}
		*next = *further
	} else if !s.known(*next) {
		*next = fresh
	}
	return *next
}

// known reports whether a ticket waits here, has a session here, or has a held request.
func (s *Site) known(id anteroom.ID) bool {
	return !id.IsZero() && (s.here.find(&id) != 0 || s.seats.find(&id) != 0 ||
		slices.ContainsFunc(s.held, func(h heldVisit) bool { return h.ticket.ID == id }))
}

// expire ends what has lapsed. A restored site waits for the first word of the coordinator:
// until then its clock may be ahead of the room's.
func (s *Site) expire(now anteroom.Time) {
	if s.synced {
		s.lapsed(now, false)
	}
}

// lapsed ends what has lapsed by now; certain says that no door can have let a session in since.
func (s *Site) lapsed(now anteroom.Time, certain bool) {
	for s.expiry.len() > 0 {
		slot := s.expiry.top()
		st := s.seats.at(slot)
		if st.wake > now {
			break
		}
		s.expiry.pop()
		at := s.lapse(slot)
		if s.heldAway(now, slot) {
			at = max(at, now.Add(TouchEvery)) // looked at again then
		}
		if at <= now && !certain {
			at = s.heldFor(now, slot)
		}
		if at > now {
			st.wake = at
			s.expiry.push(slot)
			continue
		}
		if (s.term != 0 || st.onProbation()) && !certain {
			// Its unit may be returned: a successor that held the session still would use it once more.
			s.events = append(s.events, Event{Kind: EventEnded, ID: s.seats.id(slot), At: now})
		}
		id, early := s.seats.id(slot), st.onProbation()
		s.end(now, slot)
		if used := s.used.find(&id); early && used != 0 {
			s.used.at(used).early = true
		}
	}
	s.freeSeats(now)
	for s.rates.len() > 0 && s.rates.first() <= now {
		s.rates.pop()
		s.balance.Used[RateSlot]--
	}
	if len(s.outages.list) > 0 {
		return // which tickets have had their credit is not forgotten before it is over
	}
	for n := 0; n < forgetAtOnce && s.usedAge.len() > 0 && s.used.at(s.usedAge.top()).until <= now; n++ {
		s.used.remove(s.usedAge.pop())
	}
}
