package engine

// Sessions between two sites, at the sites: whoever gives one up keeps its seat until it hears
// that it is held elsewhere, and whoever takes one owes the seat until it is granted.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// maxMoves bounds the moves that a site has given or taken and that are not settled: a report
// lists them all.
const maxMoves = 1000

// sendAway ends a session here that goes on elsewhere. Its seat stays.
func (s *Site) sendAway(now anteroom.Time, slot uint32) {
	st, id := s.seats.at(slot), s.seats.id(slot)
	s.moves = max(s.moves+1, uint64(max(now, 0)))
	s.away = append(s.away, Finding{ID: id, Standing: Seated, Number: s.moves, Accepted: st.accepted, Last: st.last})
	s.expiry.removeAt(int(st.pos))
	s.seats.remove(slot)
	s.balance.Used[Seat]--
	s.balance.Away++
	s.ended = append(s.ended, id)
	s.events = append(s.events, Event{Kind: EventMoved, ID: id, At: now, Key: anteroom.Time(s.moves)})
}

// leaves says that a session was given up. It was seen once more, at a door that had not heard of
// it: it lasts from then.
func (s *Site) leaves(id anteroom.ID, seen anteroom.Time) bool {
	_, gone := s.gone.get(id)
	for i := range s.away {
		if s.away[i].ID == id {
			s.away[i].Last, gone = max(s.away[i].Last, seen), true
		}
	}
	return gone
}

// take takes a session that moves here, with a seat that is owed, and reports whether it did:
// each move is taken once. What is over, or known, is taken all the same, for the seat is looked
// for.
func (s *Site) take(now anteroom.Time, f Finding) bool {
	move := Move{f.ID, f.Number}
	if slot := s.seats.find(&f.ID); slot != 0 {
		st := s.seats.at(slot)
		st.last = max(st.last, min(f.Last, now))
	}
	switch {
	case slices.Contains(s.took, move):
		return true
	case len(s.took) >= maxMoves:
		return false
	}
	s.took = append(s.took, move)
	s.moves = max(s.moves, f.Number)
	s.taken++
	s.owe()
	s.urgent = true
	s.events = append(s.events, Event{Kind: EventTook, ID: f.ID, At: now, Key: anteroom.Time(f.Number)})
	if s.seats.find(&f.ID) == 0 && s.used.find(&f.ID) == 0 {
		if slot := s.here.find(&f.ID); slot != 0 {
			s.dropOffer(slot)
		}
		s.seatHere(now, f.ID, f.Accepted, f.Last)
		s.expire(now) // it may have run out on the way
	}
	return true
}

// settled forgets a move that is known everywhere and reports whether there was one.
func (s *Site) settled(m Move) bool {
	here := len(s.away) + len(s.took)
	s.away = slices.DeleteFunc(s.away, func(f Finding) bool { return f.ID == m.ID && f.Number == m.Number })
	s.took = slices.DeleteFunc(s.took, func(t Move) bool { return t == m })
	s.balance.Away = uint64(len(s.away))
	return len(s.away)+len(s.took) < here
}

// over says when a session that was last seen then, and is held by nobody, must have ended.
func over(s *anteroom.Settings, accepted, last anteroom.Time) anteroom.Time {
	if s.DisableSessionRenewal {
		return s.SessionEnd(accepted).Add(TouchDelay)
	}
	return last.Add(s.SessionDuration + 2*TouchDelay + time.Second)
}
