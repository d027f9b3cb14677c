package engine

// What must survive the process, and how a site comes back from it.

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// EventKind says what an Event records.
type EventKind uint8

const (
	EventAdmitted  EventKind = iota + 1 // a session began: At; Lane: see admittedLane
	EventTouched                        // a session was renewed: At; Lane: see laneAway
	EventEnded                          // a session has ended: At; Lane: see laneRevoked; Key: until when its seat is held for its passes; 0: not
	EventJoined                         // a ticket joined the line, or still waits: Key, Lane, At
	EventAway                           // a ticket in line missed its check-in: At
	EventMoved                          // a place went to another site: At. Earlier releases: or a session, with a number in Key
	EventShuffle                        // a shuffle begins, which ID names: Key is the number of tickets
	EventDrawn                          // a ticket in line has another key: Key, Lane, At
	EventShuffled                       // it ends: Key is the moment that Figures.Shuffled tells
	EventForgotten                      // a ticket in line is not known any more but by its cookie: At; Lane: see laneLeft
	eventTook                           // of earlier releases, about sessions that moved
	eventSettled                        // likewise
	EventReturned                       // units were returned: At
	EventStep                           // what was on record before is of so much later: At, Key is a span in microseconds
	EventDoor                           // a door speaks: At; ID is the numbers of its node and its process
	EventUnasked                        // like EventJoined, of a ticket that may have a place or a session at another site
	EventPasses                         // the room issues passes: At, Key is their life in microseconds
	EventOutage                         // the origin fails since Key, and did so until At at least
	EventCame                           // the visitor of a session came in later than it began: At
)

// Event is what must survive the process: a site that is restarted from its events knows
// its sessions and its line. A site of a cluster records the ends of sessions; one without roles does
// not, for they follow from time.
type Event struct {
	Kind EventKind
	Lane uint8
	ID   anteroom.ID
	At   anteroom.Time
	Key  anteroom.Time
}

// Restore applies one event of the time before the restart. shift is added to every
// moment: the part of the interruption that cannot be known to have passed. slack is how
// far behind the last touch record may be.
func (s *Site) Restore(e Event, shift, slack time.Duration) {
	at := e.At.Add(shift)
	s.recorded, s.slack = max(s.recorded, at), max(s.slack, slack)
	switch e.Kind {
	case EventAdmitted:
		if slot := s.here.find(&e.ID); slot != 0 {
			s.here.remove(slot)
		}
		slot := s.seats.find(&e.ID)
		if slot == 0 {
			slot = s.seats.add(e.ID)
			s.balance.Used[Seat]++
		}
		lane := laneOfAdmitted(e.Lane)
		*s.seats.at(slot) = seat{accepted: at, last: at.Add(slack), rated: at, restored: true, doors: anyDoor, lane: lane}
		if e.Lane&laneOnce != 0 {
			s.seats.at(slot).once, s.seats.at(slot).last = true, at.Add(slack-s.short())
		}
		s.rates.push(at.Add(RateHold))
		s.useLane(lane, at.Add(RateHold))
		s.balance.Used[RateSlot]++
	case EventTouched:
		if slot := s.seats.find(&e.ID); slot != 0 {
			st := s.seats.at(slot)
			if st.last = max(st.last, at.Add(slack)); e.Lane&laneAway != 0 {
				st.away = st.last
			}
			st.early = e.Lane&laneEarly != 0
		}
	case EventCame:
		if slot := s.seats.find(&e.ID); slot != 0 {
			s.holdSlot(at, slot)
		}
	case EventEnded:
		if slot := s.seats.find(&e.ID); slot != 0 {
			s.consume(e.ID, s.seats.at(slot).accepted, at)
			if used := s.used.find(&e.ID); used != 0 {
				s.used.at(used).revoked = e.Lane&laneRevoked != 0
			}
			s.freeLane(s.seats.at(slot).lane)
			s.seats.remove(slot)
			s.balance.Used[Seat]--
		}
		if e.Key != 0 {
			s.takeSeat(e.Key.Add(shift), e.ID)
		}
	case EventMoved:
		// A session that an earlier release has moved stays here, too, until it lapses: its unit may
		// be charged to this site still.
		if slot := s.here.find(&e.ID); slot != 0 {
			s.here.remove(slot)
		}
	case EventJoined, EventUnasked:
		if s.seats.find(&e.ID) != 0 || s.used.find(&e.ID) != 0 || void(&s.settings, e.Key) {
			return
		}
		slot := s.here.find(&e.ID)
		if slot == 0 {
			slot = s.here.add(e.ID)
		}
		// The record is up to a place hold old, and then they were told to come back within
		// an interval.
		*s.here.at(slot) = waiter{key: e.Key, lane: e.Lane, flags: hereShown | hereCame | hereUnheard, due: at.Add(s.settings.PlaceHold + MaxInterval*115/100)}
		if e.Kind == EventUnasked {
			s.here.at(slot).flags |= hereUnasked
		}
		s.lastKey = max(s.lastKey, e.Key)
	case EventForgotten:
		if slot := s.here.find(&e.ID); slot != 0 {
			s.here.remove(slot)
		}
		if e.Lane&laneLeft != 0 {
			s.consume(e.ID, at, at)
			return
		}
		s.forgotten = at
	case EventDrawn:
		if slot := s.here.find(&e.ID); slot != 0 {
			w := s.here.at(slot)
			w.key, w.flags = e.Key, w.flags|hereCame
			if void(&s.settings, e.Key) {
				s.here.remove(slot)
			}
		}
	case EventShuffled:
		s.shuffled = max(s.shuffled, e.Key)
		s.lastKey = max(s.lastKey, e.Key)
	case EventAway:
		if slot := s.here.find(&e.ID); slot != 0 {
			w := s.here.at(slot)
			w.due = at.Add(-Grace)
			w.flags = w.flags&^hereUnheard | hereAway
		}
	case EventStep:
		s.stepped(time.Duration(e.Key) * time.Microsecond)
	case EventPasses:
		s.passes.issued(time.Duration(e.Key)*time.Microsecond, at.Add(recordDoor))
	case EventOutage:
		s.outages.restore(e.Key.Add(shift), at)
	case EventDoor:
		e.At = at
		s.restoreDoor(e)
	}
}

// Restored ends the restoring: sessions that have lapsed end, the rest hold their units.
func (s *Site) Restored(now anteroom.Time) {
	s.seats.each(func(slot uint32) {
		s.seats.at(slot).wake = s.lapse(slot)
		s.expiry.push(slot)
	})
	var line []uint32
	s.here.each(func(slot uint32) {
		switch w := s.here.at(slot); {
		case w.due.Add(s.settings.PlaceHold) < now:
			s.here.remove(slot)
		case w.flags&hereAway == 0:
			line = append(line, slot)
		}
	})
	// When those who were in touch will come back is not on record, but they were told to
	// by their rank: well above what they would be told now, and time to notice
	// that we are back.
	slices.SortFunc(line, func(a, b uint32) int { return cmp.Compare(s.here.at(a).key, s.here.at(b).key) })
	for rank, slot := range line {
		back := interval(s.settings, anteroom.Decision{}, rank, 0)*3 + 2*Grace
		s.here.at(slot).due = now.Add(min(back, MaxInterval*115/100))
	}
	s.lapsed(s.restoredDoors(), true) // the rest waits until it is known how late it is
	s.ended, s.departures = nil, nil
	clear(s.ends)
}
