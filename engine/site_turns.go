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
	ahead    bool // its unit has not come yet, and nobody enters by it
}

func (s *Site) dropOffer(slot uint32) {
	o, ok := s.offers[slot]
	if !ok {
		return
	}
	delete(s.offers, slot)
	s.here.at(slot).flags &^= hereOffered
	if !o.ahead {
		s.balance.Offers--
	}
	if !o.active && o.at == s.effectAt {
		s.offerMoments()
	}
}

// takeBack withdraws turns: their visitors are back in order.
func (s *Site) takeBack(slots []uint32) {
	for _, slot := range slots {
		s.dropOffer(slot)
		s.departures = append(s.departures, Departure{ID: s.here.id(slot), Why: Declined})
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
		for _, id := range slices.Concat(o.IDs, o.Ahead) {
			s.departures = append(s.departures, Departure{ID: id, Why: Declined})
		}
		s.urgent = true
		return
	}
	s.grant(o.Granted, o.Adopted)
	for _, id := range o.IDs {
		s.call(now, id, &o, false)
	}
	for _, id := range o.Ahead {
		s.call(now, id, &o, true)
	}
	s.takeEffect(now)
}

// call gives a ticket its turn.
func (s *Site) call(now anteroom.Time, id anteroom.ID, o *Offers, ahead bool) {
	slot := s.here.find(&id)
	switch {
	case slot == 0:
		why := Left
		if s.seats.find(&id) != 0 {
			why = Admitted
		}
		s.departures = append(s.departures, Departure{ID: id, Why: why})
	case s.here.at(slot).flags&hereOffered != 0:
		s.unitFor(now, slot, ahead)
	// A limit of 0 does not decline a turn: the site may be late to raise it.
	case closed(&s.settings) && !o.ByHand, s.granted() < 1 && !ahead:
		s.departures = append(s.departures, Departure{ID: id, Why: Declined})
	case !o.ByHand && !s.canTake(now, slot, o.Expected):
		// It has just been told to come back later, which the coordinator could not know.
		s.departures = append(s.departures, Departure{ID: id, Why: Declined})
		s.arrivals = append(s.arrivals, s.arrival(slot))
		s.urgent = true
	default:
		if !ahead {
			s.balance.Offers++
		}
		s.here.at(slot).flags |= hereOffered
		s.offers[slot] = offer{at: o.At, byHand: o.ByHand, ahead: ahead}
		s.effectAt = earlier(s.effectAt, o.At)
	}
}

// unitFor sets aside the unit that has come for a ticket which was called ahead of it. No other unit will do: those that
// a new coordinator seems to grant may be in use elsewhere, see T1 in doc.go.
func (s *Site) unitFor(now anteroom.Time, slot uint32, ahead bool) {
	o := s.offers[slot]
	switch {
	case ahead || !o.ahead:
	case s.granted() < 1:
		s.takeBack([]uint32{slot})
	default:
		o.ahead = false
		s.offers[slot] = o
		s.balance.Offers++
		if o.active {
			s.begin(now, slot)
		}
	}
}

// begin has a turn that is in effect taken: whoever is held enters, a stream is told, and the turn stands until its deadline.
func (s *Site) begin(now anteroom.Time, slot uint32) {
	if s.claim(now, slot) {
		return
	}
	w, o := s.here.at(slot), s.offers[slot]
	if o.deadline = max(now, w.due).Add(claimPoll); w.streams > 0 {
		o.deadline = now.Add(claimStream)
		if !free(&s.settings) { // else it has been told already
			s.pushes = append(s.pushes, s.here.id(slot))
		}
	}
	s.offers[slot] = o
	s.missAt = earlier(s.missAt, o.deadline)
}

// claim lets in whoever is held for a turn that is in effect.
func (s *Site) claim(now anteroom.Time, slot uint32) (taken bool) {
	if s.offers[slot].ahead || !s.mayClaim(slot) {
		return false
	}
	for _, h := range s.held {
		if h.ticket.ID == s.here.id(slot) && !h.asking {
			reason := anteroom.ReasonTurn
			if s.here.at(slot).flags&hereShown == 0 {
				reason = anteroom.ReasonFreeSlot
			}
			s.dropOffer(slot)
			s.admit(now, h.ticket, reason) // answers every held request of the ticket
			return true
		}
	}
	return false
}

// coming counts the units that come free within callAhead if nothing is heard of their sessions.
func (s *Site) coming(now anteroom.Time) (n Units) {
	until := now.Add(callAhead)
	var look func(i int)
	look = func(i int) {
		if i >= s.expiry.len() || s.seats.at(s.expiry.slots[i]).wake > until {
			return
		}
		slot := s.expiry.slots[i]
		if at := s.lapse(slot); at > now && at <= until && !s.heldAway(now, slot) && s.heldFor(now, slot) == 0 {
			n[Seat]++
		}
		look(2*i + 1)
		look(2*i + 2)
	}
	look(0)
	n[RateSlot] = uint64(s.rates.until(until))
	return n
}

// canTake says that a ticket here could take a turn soon: it has a stream, a held request,
// or a check-in due, or one by the moment until which turns stand.
func (s *Site) canTake(now anteroom.Time, slot uint32, expected anteroom.Time) bool {
	w := s.here.at(slot)
	if w.streams > 0 || w.due.Sub(now) <= claimHorizon || w.due <= expected {
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
	return slot != 0 && s.offers[slot].active && !s.offers[slot].ahead
}

// takeEffect makes offers whose moment has come usable: held requests enter, streams are
// told, and whoever polls has until then.
func (s *Site) takeEffect(now anteroom.Time) {
	if s.effectAt == 0 || now < s.effectAt {
		return
	}
	for _, slot := range s.offered(func(o offer) bool { return !o.active && o.at <= now }) {
		o := s.offers[slot]
		o.active = true
		s.offers[slot] = o
		s.begin(now, slot)
	}
	s.offerMoments()
}

// missOffers ends turns that were not taken in time.
func (s *Site) missOffers(now anteroom.Time) {
	if s.missAt == 0 || now <= s.missAt {
		return
	}
	for _, slot := range s.offered(func(o offer) bool { return o.active && o.deadline < now }) {
		s.urgent = true
		if s.offers[slot].ahead { // the session whose seat it was has been renewed
			s.takeBack([]uint32{slot})
			continue
		}
		s.dropOffer(slot)
		if s.counting != nil {
			s.counting.NoShows++
		}
		s.departures = append(s.departures, Departure{ID: s.here.id(slot), Why: NoShow})
	}
	s.offerMoments()
}

// keepOffer lets the turn of a visitor who is here stand while others are asked about the ticket.
func (s *Site) keepOffer(id *anteroom.ID, until anteroom.Time) {
	slot := s.here.find(id)
	if o, offered := s.offers[slot]; offered && o.active {
		o.deadline = max(o.deadline, until.Add(holdMax))
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
