package engine

import "github.com/anteroom/anteroom"

// joinsHere counts those who have joined the line at this site and are not in the coordinator's
// figures yet.
type joinsHere struct {
	since   int // all of them
	fresh   int // of those, not reported yet
	flights []joinsSent
	seconds [4]secondJoins       // the latest, as a ring by second
	lanes   map[uint8]*joinsHere // of each lane, in a room that has lanes

	// Places of arrivals before the figures, which the figures do not count: those of visitors who have come back, with their tickets or
	// after they were taken for gone, or moved to a lane. Nothing tells how many of the others are ahead of them. In the order in which they
	// came; the first are reported.
	uncounted map[uint32]bool
	places    []uint32
	unsent    int // of them, not reported yet
}

// joinsOf are those of one lane.
func (s *Site) joinsOf(lane uint8) *joinsHere {
	if s.settings.Lanes == nil {
		return &s.joins
	}
	number := laneNumber(s.settings.Lanes, lane)
	of := s.joins.lanes[number]
	if of == nil {
		of = new(joinsHere)
		if s.joins.lanes == nil {
			s.joins.lanes = map[uint8]*joinsHere{}
		}
		s.joins.lanes[number] = of
	}
	return of
}

// joinsSent is a report that is not known to be in the figures, and how many joins it told of.
type joinsSent struct {
	sent   anteroom.Time
	count  int
	places int // of them, or of moves, with an arrival before the figures
}

type secondJoins struct {
	second int64
	count  int
}

func (j *joinsHere) add(key anteroom.Time) {
	j.since++
	j.fresh++
	second := int64(key) / 1e6
	s := &j.seconds[second&3]
	if s.second != second {
		*s = secondJoins{second: second}
	}
	s.count++
}

// returns counts a place of an earlier arrival with those who have joined, once until the figures do.
func (s *Site) returns(slot uint32) {
	if s.joins.uncounted[slot] {
		return
	}
	s.joins.again()
	if of := s.joinsOf(s.here.at(slot).lane); of != &s.joins {
		of.again()
	}
	s.joins.uncount(slot)
}

// again counts a place of an earlier arrival.
func (j *joinsHere) again() {
	j.since++
	j.fresh++
}

// uncount notes that the figures do not count a place.
func (j *joinsHere) uncount(slot uint32) {
	switch {
	case j.uncounted[slot]:
		return
	case j.uncounted == nil:
		j.uncounted = map[uint32]bool{}
	}
	j.uncounted[slot] = true
	j.places = append(j.places, slot)
	j.unsent++
}

// reported notes that a report takes along what has not been reported.
func (j *joinsHere) reported(now anteroom.Time) {
	if j.fresh > 0 || j.unsent > 0 {
		j.flights = append(j.flights, joinsSent{now, j.fresh, j.unsent})
		j.fresh, j.unsent = 0, 0
	}
	for _, of := range j.lanes {
		of.reported(now)
	}
}

// heardOf takes figures that count what was reported up to a moment.
func (j *joinsHere) heardOf(sent anteroom.Time) {
	n := 0
	for n < len(j.flights) && j.flights[n].sent <= sent {
		j.since -= j.flights[n].count
		for _, slot := range j.places[:j.flights[n].places] {
			delete(j.uncounted, slot)
		}
		j.places = j.places[j.flights[n].places:]
		n++
	}
	if j.flights = j.flights[n:]; len(j.flights) == 0 {
		j.flights = nil
	}
	if len(j.places) == 0 {
		j.places, j.uncounted = nil, nil
	}
	for _, of := range j.lanes {
		of.heardOf(sent)
	}
}

// after is how many joined here from a second on, and are counted in figures of a moment.
func (j *joinsHere) after(second int64, at anteroom.Time) (n int) {
	for _, s := range j.seconds {
		if s.second >= second && s.second <= int64(at)/1e6 {
			n += s.count
		}
	}
	return n
}
