package engine

// Turns: offers from the coordinator, and how they take effect.

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom"
)

// offer is a turn given to a ticket here.
type offer struct {
	at       anteroom.Time
	deadline anteroom.Time
	active   bool
	byHand   bool // given by the operator: stands while the room is held
}

func (s *Site) dropOffer(slot uint32) {
	o, ok := s.offers[slot]
	if !ok {
		return
	}
	delete(s.offers, slot)
	s.here.at(slot).flags &^= hereOffered
	s.balance.Offers--
	if !o.active && o.at == s.effectAt {
		s.offerMoments()
	}
}

// ReceiveOffers takes turns from the coordinator.
func (s *Site) ReceiveOffers(now anteroom.Time, o Offers) {
	switch {
	case o.Epoch < s.epoch:
		return
	case o.Epoch > s.epoch || !s.synced:
		// The coordinator's State comes first: after a restart that is what bounds the units. The
		// turns are given again at once, and not when they have been missed.
		for _, id := range o.IDs {
			s.departures = append(s.departures, Departure{ID: id, Why: Declined})
		}
		s.urgent = true
		return
	}
	s.grant(o.Granted, o.Adopted)
	for _, id := range o.IDs {
		slot := s.here.find(&id)
		switch {
		case slot == 0:
			why := Left
			if s.seats.find(&id) != 0 {
				why = Admitted
			}
			s.departures = append(s.departures, Departure{ID: id, Why: why})
		case s.here.at(slot).flags&hereOffered != 0:
		case s.closed() && !o.ByHand, s.permits() < 1:
			s.departures = append(s.departures, Departure{ID: id, Why: Declined})
		case !o.ByHand && !s.canTake(now, slot):
			// It has just been told to come back later, which the coordinator could not know.
			s.departures = append(s.departures, Departure{ID: id, Why: Declined})
			s.arrivals = append(s.arrivals, s.arrival(slot))
			s.urgent = true
		default:
			s.balance.Offers++
			s.here.at(slot).flags |= hereOffered
			s.offers[slot] = offer{at: o.At, byHand: o.ByHand}
			s.effectAt = earlier(s.effectAt, o.At)
		}
	}
	s.takeEffect(now)
}

// canTake says that a ticket here could take a turn soon: it has a stream, a held request,
// or a check-in due.
func (s *Site) canTake(now anteroom.Time, slot uint32) bool {
	w := s.here.at(slot)
	if w.streams > 0 || w.due.Sub(now) <= ClaimHorizon {
		return true
	}
	id := s.here.id(slot)
	return slices.ContainsFunc(s.held, func(h heldVisit) bool { return h.ticket.ID == id })
}

// offered returns the slots whose offer is as asked, in the order of arrival, so that runs
// repeat.
func (s *Site) offered(as func(offer) bool) (slots []uint32) {
	for slot, o := range s.offers {
		if as(o) {
			slots = append(slots, slot)
		}
	}
	slices.SortFunc(slots, func(a, b uint32) int {
		p, q := s.here.at(a), s.here.at(b)
		return cmp.Or(-cmp.Compare(p.lane, q.lane), cmp.Compare(p.key, q.key), cmp.Compare(a, b))
	})
	return slots
}

// Called reports whether the turn of id has come and has not been taken yet.
func (s *Site) Called(id anteroom.ID) bool {
	slot := s.here.find(&id)
	return slot != 0 && s.offers[slot].active
}

// takeEffect makes offers whose moment has come usable: held requests enter, streams are
// told, and whoever polls has until then.
func (s *Site) takeEffect(now anteroom.Time) {
	if s.effectAt == 0 || now < s.effectAt {
		return
	}
	for _, slot := range s.offered(func(o offer) bool { return !o.active && o.at <= now }) {
		w, o := s.here.at(slot), s.offers[slot]
		o.active = true
		if w.streams > 0 {
			o.deadline = now.Add(ClaimStream)
			if !free(&s.settings) { // else it has been told already
				s.pushes = append(s.pushes, s.here.id(slot))
			}
		} else {
			o.deadline = max(now, w.due).Add(ClaimPoll)
		}
		s.offers[slot] = o
		for _, h := range s.held {
			if h.ticket.ID == s.here.id(slot) && !h.asking && s.mayClaim(slot) {
				reason := anteroom.ReasonTurn
				if w.flags&hereShown == 0 {
					reason = anteroom.ReasonFreeSlot
				}
				s.dropOffer(slot)
				s.admit(now, h.ticket, reason) // answers every held request of the ticket
				break
			}
		}
	}
	s.offerMoments()
}

// missOffers ends turns that were not taken in time.
func (s *Site) missOffers(now anteroom.Time) {
	if s.missAt == 0 || now <= s.missAt {
		return
	}
	for _, slot := range s.offered(func(o offer) bool { return o.active && o.deadline < now }) {
		s.dropOffer(slot)
		if s.counting != nil {
			s.counting.NoShows++
		}
		s.departures = append(s.departures, Departure{ID: s.here.id(slot), Why: NoShow})
		s.urgent = true
	}
	s.offerMoments()
}

// keepOffer lets the turn of a visitor who is here stand while others are asked about the ticket.
func (s *Site) keepOffer(id *anteroom.ID, until anteroom.Time) {
	slot := s.here.find(id)
	if o, offered := s.offers[slot]; offered && o.active {
		o.deadline = max(o.deadline, until.Add(HoldMax))
		s.offers[slot] = o
	}
}

// offerMoments finds out anew when something is due of the offers.
func (s *Site) offerMoments() {
	s.effectAt, s.missAt = 0, 0
	for _, o := range s.offers {
		if o.active {
			s.missAt = earlier(s.missAt, o.deadline)
		} else {
			s.effectAt = earlier(s.effectAt, o.at)
		}
	}
}

// earlier is the earlier of two moments, of which the first may be 0: never.
func earlier(a, b anteroom.Time) anteroom.Time {
	if a == 0 {
		return b
	}
	return min(a, b)
}
