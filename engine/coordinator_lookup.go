package engine

import (
	"bytes"

	"github.com/anteroom/anteroom"
)

// InLine reports whether the ticket has a place in the line: waiting, away or called.
func (c *Coordinator) InLine(id anteroom.ID) bool { return c.line.places.find(&id) != 0 }

// Drawn returns the tickets on which the draw has fallen in the last call, in that order:
// those that were called and those whose win is set aside until they are back. It is valid
// until the next call.
func (c *Coordinator) Drawn() []anteroom.ID { return c.line.drawn }

// Visitor is what a site knows of a ticket.
type Visitor struct {
	ID       anteroom.ID
	Standing Standing
	Arrival  anteroom.Time // while waiting, else zero
	// AcceptedAt and LastSeen are those of the session. LastSeen of somebody who waits is known
	// with a stream only, and zero else.
	AcceptedAt, LastSeen anteroom.Time
	Ahead                int // while waiting; valid when AheadKnown
	AheadKnown           bool
}

// Visitor returns what the site knows of a ticket, and whether it knows anything.
func (s *Site) Visitor(now anteroom.Time, id anteroom.ID) (v Visitor, ok bool) {
	v.ID = id
	if session, ok := s.Session(id); ok {
		v.Standing, v.AcceptedAt, v.LastSeen = Seated, session.AcceptedAt, session.LastSeen
		return v, true
	}
	if slot := s.here.find(&id); slot != 0 {
		w := s.here.at(slot)
		v.Standing, v.Arrival = Waiting, w.key
		if w.streams > 0 {
			v.LastSeen = now
		}
		if s.settings.QueueingMethod != anteroom.Random {
			v.Ahead, v.AheadKnown = s.rank(w.key, w.lane), true
			if w.told != 0 {
				v.Ahead = min(v.Ahead, int(w.told)-1)
			}
		}
		return v, true
	}
	if s.used.find(&id) != 0 {
		v.Standing = Used
		return v, true
	}
	return v, false
}

// Place is how far a search has come; the zero value is its beginning.
type Place struct {
	part int // of the tickets: sessions, those who wait, those who are done
	slot uint32
}

// searchStep is how many tickets a step of a search looks at.
const searchStep = 4096

// Search looks for tickets whose id begins with a prefix, at some thousands of them. It goes on
// at the place that it returns; more is false when that was all. What comes and goes between
// two steps may be found twice or not at all.
func (s *Site) Search(prefix []byte, from Place) (ids []anteroom.ID, next Place, more bool) {
	matching := func(id anteroom.ID) {
		if bytes.HasPrefix(id[:], prefix) {
			ids = append(ids, id)
		}
	}
	end, last := from.slot+searchStep, uint32(0)
	switch from.part {
	case 0:
		last = s.seats.next
		s.seats.eachBetween(from.slot, end, func(slot uint32) { matching(s.seats.id(slot)) })
	case 1:
		last = s.here.next
		s.here.eachBetween(from.slot, end, func(slot uint32) { matching(s.here.id(slot)) })
	default:
		last = s.used.next
		s.used.eachBetween(from.slot, end, func(slot uint32) { matching(s.used.id(slot)) })
	}
	if end < last {
		return ids, Place{from.part, end}, true
	}
	return ids, Place{part: from.part + 1}, from.part < 2
}

// Visitor returns what is known of a ticket (see Site.Visitor).
func (x *Single) Visitor(now anteroom.Time, id anteroom.ID) (Visitor, bool) {
	x.tell(now)
	return x.site.Visitor(now, id)
}

// Search looks for tickets by the beginning of their id (see Site.Search).
func (x *Single) Search(prefix []byte, from Place) ([]anteroom.ID, Place, bool) {
	return x.site.Search(prefix, from)
}
