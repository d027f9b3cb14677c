package engine

// A site that has no answer from the coordinator gives turns to its own line, from its own
// units; the sum over all sites still cannot exceed the limits.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// cutLine is the line of a cut site.
type cutLine struct {
	places []cutPlace // by lane and arrival
	won    []cutPlace // Random: drawn while away, the oldest win first
	draws  uint64
	seed   []byte
	// free: nobody waited when the link broke, so that there is no order to keep with others.
	free bool
}

// cutPlace is a place in the line of a cut site. It outlives the waiter: when the slot
// holds another key by now, that ticket has gone.
type cutPlace struct {
	key  anteroom.Time
	slot uint32
	lane uint8
}

func (p cutPlace) compare(q cutPlace) int {
	return cmp.Or(-cmp.Compare(p.lane, q.lane), cmp.Compare(p.key, q.key), cmp.Compare(p.slot, q.slot))
}

func (s *Site) enterCut(now anteroom.Time) {
	s.cut = cutLine{free: s.mode == Open, draws: s.cut.draws, seed: fmt.Appendf(nil, "%s/%d", s.key.Name, s.key.Incarnation)}
	s.mode = Cut
	s.borrowing = false
	s.here.each(func(slot uint32) {
		w := s.here.at(slot)
		w.flags &^= hereWon
		s.cut.places = append(s.cut.places, cutPlace{key: w.key, slot: slot, lane: w.lane})
	})
	slices.SortFunc(s.cut.places, cutPlace.compare)
	s.takeBack(s.offered(func(o offer) bool { return o.ahead }))
	s.settleHeld(now)
}

// lineUp gives somebody who came while the site is cut a place in its line.
func (s *Site) lineUp(slot uint32) {
	p := cutPlace{key: s.here.at(slot).key, slot: slot, lane: s.here.at(slot).lane}
	i, _ := slices.BinarySearchFunc(s.cut.places, p, cutPlace.compare)
	s.cut.places = slices.Insert(s.cut.places, i, p)
}

// serveLocal offers free units to those in line who are here: in order, as far as the whole
// line is expected to have come in a second; with Random by a draw among those of this site.
func (s *Site) serveLocal(now anteroom.Time) {
	if s.closed() || s.permits() < 1 {
		return
	}
	gone := func(p cutPlace) bool { w := s.here.at(p.slot); return w.key != p.key || w.lane != p.lane }
	s.cut.places = slices.DeleteFunc(s.cut.places, gone)
	s.cut.won = slices.DeleteFunc(s.cut.won, gone)
	if s.settings.QueueingMethod == anteroom.Random {
		s.drawLocal(now)
	} else {
		limits := map[uint8]anteroom.Time{}
		for _, p := range s.cut.places {
			limit, asked := limits[p.lane]
			if !asked {
				limit = math.MaxInt64
				if key, known := s.figures.Of(p.lane).Reached(now.Add(time.Second)); known && !s.cut.free {
					limit = key
				}
				limits[p.lane] = limit
			}
			if s.permits() < 1 || p.lane == 0 && p.key > limit { // that lane is the last
				break
			}
			if p.key <= limit && s.isHere(now, p.slot) {
				s.offerLocal(now, p.slot)
			}
		}
	}
	s.takeEffect(now)
}

// drawLocal serves winners who have come back and then draws. Who is away keeps the win
// until the return; as many are set aside as the coordinator would.
func (s *Site) drawLocal(now anteroom.Time) {
	for _, p := range s.cut.won {
		if w := s.here.at(p.slot); s.permits() >= 1 && w.flags&hereWon != 0 && s.isHere(now, p.slot) {
			w.flags &^= hereWon
			s.offerLocal(now, p.slot)
		}
	}
	s.cut.won = slices.DeleteFunc(s.cut.won, func(p cutPlace) bool { return s.here.at(p.slot).flags&hereWon == 0 })
	lane, in := uint8(0), []uint32(nil)
	for _, p := range s.cut.places {
		switch {
		case p.lane == anteroom.LaneBack: // is not drawn
			if s.permits() >= 1 && s.isHere(now, p.slot) {
				s.offerLocal(now, p.slot)
			}
		case s.here.at(p.slot).flags&(hereOffered|hereWon) == 0:
			if len(in) > 0 && p.lane != lane { // the lanes draw one after the other
				s.drawFrom(now, in)
				in = in[:0]
			}
			lane, in = p.lane, append(in, p.slot)
		}
	}
	s.drawFrom(now, in)
}

// drawFrom draws among those of one lane.
func (s *Site) drawFrom(now anteroom.Time, in []uint32) {
	away := min(setAside(float64(s.settings.NewUsersPerMinute)), setAside(float64(s.rates.len()))+int(min(s.permits(), 1<<20)))
	for s.permits() >= 1 && len(in) > 0 && len(s.cut.won) <= away {
		s.cut.draws++
		i := uniform(s.cut.seed, s.cut.draws, uint32(len(in)))
		slot := in[i]
		in[i] = in[len(in)-1]
		in = in[:len(in)-1]
		w := s.here.at(slot)
		switch {
		case s.isHere(now, slot):
			s.offerLocal(now, slot)
		case now.Sub(w.due) <= Grace:
			w.flags |= hereWon
			s.cut.won = append(s.cut.won, cutPlace{key: w.key, slot: slot, lane: w.lane})
		}
	}
}

// isHere says that a ticket could take a turn at once and has none.
func (s *Site) isHere(now anteroom.Time, slot uint32) bool {
	w := s.here.at(slot)
	return w.flags&hereOffered == 0 && (w.flags&hereCame != 0 || w.flags&hereShown == 0) && (w.streams > 0 || w.due.Sub(now) <= claimHorizon && now.Sub(w.due) <= claimPoll)
}

func (s *Site) offerLocal(now anteroom.Time, slot uint32) {
	s.balance.Offers++
	s.here.at(slot).flags |= hereOffered
	s.offers[slot] = offer{at: now}
	s.effectAt = earlier(s.effectAt, now)
}
