package engine

// Lanes at a site: how a place moves up, and what the visitors of each lane use of the limits.

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom"
)

// laneNumber is the number of the lane that has a place: the highest of the room's that is not above the place's own.
func laneNumber(lanes *anteroom.Lanes, of uint8) (number uint8) {
	if lanes == nil || of == anteroom.LaneBack {
		return 0
	}
	for _, x := range lanes.List {
		if n := uint8(x.Priority); n <= of {
			number = max(number, n)
		}
	}
	return number
}

// laneUse is what is in use of the limits by visitors of one lane.
type laneUse struct {
	seats uint64
	rates ring // ends of rate slots, ascending
}

// useLane counts an admission.
func (s *Site) useLane(lane uint8, until anteroom.Time) {
	if s.lanes == nil {
		return
	}
	u := s.laneUse(lane)
	u.seats++
	u.rates.push(until)
}

func (s *Site) laneUse(lane uint8) *laneUse {
	u := s.lanes[lane]
	if u == nil {
		u = new(laneUse)
		s.lanes[lane] = u
	}
	return u
}

// freeLane counts the end of a session.
func (s *Site) freeLane(lane uint8) {
	if u := s.lanes[lane]; u != nil && u.seats > 0 {
		u.seats--
	}
}

// countLanes begins to count, or ends it. Who was admitted in the last minute is not known by lane then.
func (s *Site) countLanes() {
	switch {
	case s.settings.Lanes == nil:
		s.lanes = nil
	case s.lanes == nil:
		s.lanes = map[uint8]*laneUse{}
		s.seats.each(func(slot uint32) { s.laneUse(s.seats.at(slot).lane).seats++ })
	}
}

// laneUses is what the coordinator hears of that.
func (s *Site) laneUses(now anteroom.Time) (out []LaneUse) {
	for lane, u := range s.lanes {
		for u.rates.len() > 0 && u.rates.first() <= now {
			u.rates.pop()
		}
		if u.seats == 0 && u.rates.len() == 0 {
			delete(s.lanes, lane)
			continue
		}
		out = append(out, LaneUse{lane, Units{Seat: u.seats, RateSlot: uint64(u.rates.len())}})
	}
	slices.SortFunc(out, func(a, b LaneUse) int { return cmp.Compare(a.Lane, b.Lane) })
	return out
}

// raise moves a place here into a higher lane. It keeps its arrival.
func (s *Site) raise(now anteroom.Time, slot uint32, lane uint8) {
	w := s.here.at(slot)
	w.lane, w.told = lane, 0
	w.flags &^= hereWon // in the other lane
	if s.recordPlace(now, slot); s.mode == Cut {
		s.lineUp(slot)
	}
	s.joinsOf(lane).again()
	s.joins.uncount(slot)
	s.arrivals = append(s.arrivals, s.arrival(slot))
	s.urgent = true
}

// admittedLane is the lane of a session in its record, beside [laneOnce].
func admittedLane(lane, flags uint8) uint8 { return lane&3 | lane>>2<<3 | flags }

func laneOfAdmitted(recorded uint8) uint8 { return recorded&3 | recorded>>3<<2 }
