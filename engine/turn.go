package engine

// Turns: offers from the coordinator, and those a cut site gives itself.

import (
	"github.com/anteroom/anteroom"
)

// offer is a turn given to a ticket here.
type offer struct {
	at       anteroom.Time
	deadline anteroom.Time
	active   bool
}

func (s *Site) dropOffer(slot uint32) {
	if _, ok := s.offers[slot]; ok {
		delete(s.offers, slot)
		s.here.at(slot).flags &^= hereOffered
		s.balance.Offers--
	}
}

// ReceiveOffers takes turns from the coordinator.
func (s *Site) ReceiveOffers(now anteroom.Time, o Offers) {
	if o.Epoch < s.epoch || !s.synced {
		return
	}
	s.balance.Granted.raise(o.Granted)
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
		case s.permits() < 1:
			s.departures = append(s.departures, Departure{ID: id, Why: Declined})
		default:
			s.balance.Offers++
			s.here.at(slot).flags |= hereOffered
			s.offers[slot] = offer{at: o.At}
		}
	}
	s.takeEffect(now)
}

// takeEffect makes offers whose moment has come usable: held requests enter, streams are
// told, and whoever polls has until then.
func (s *Site) takeEffect(now anteroom.Time) {
	var due []uint32
	for slot, o := range s.offers {
		if !o.active && o.at <= now {
			due = append(due, slot)
		}
	}
	// In the order of arrival, so that runs repeat.
	sortSlots(due, func(a, b uint32) bool { return s.here.at(a).key < s.here.at(b).key })
	for _, slot := range due {
		w, o := s.here.at(slot), s.offers[slot]
		o.active = true
		if w.streams > 0 {
			o.deadline = now.Add(ClaimStream)
			s.pushes = append(s.pushes, s.here.id(slot))
		} else {
			o.deadline = max(now, w.due).Add(ClaimPoll)
		}
		s.offers[slot] = o
		for _, h := range s.held {
			if h.ticket.ID == s.here.id(slot) {
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
}

// enterCut: the coordinator does not answer. This site serves its own line from its own
// units; the sum over all sites still cannot exceed the limits.
func (s *Site) enterCut(now anteroom.Time) {
	s.mode = Cut
	s.borrowing = false
	s.cutLine.slots = nil
	s.here.each(func(slot uint32) { s.cutLine.push(slot) })
	s.settleHeld(now)
}

func (s *Site) serveLocal(now anteroom.Time) {
	if s.settings.QueueAll || s.settings.QueueingMethod == anteroom.Reject {
		return
	}
	var later []uint32
	for s.cutLine.len() > 0 && s.permits() >= 1 {
		slot := s.cutLine.pop()
		w := s.here.at(slot)
		if w.key == 0 || w.flags&hereOffered != 0 {
			continue // admitted or forgotten since it was lined up
		}
		if w.streams == 0 && (w.due.Sub(now) > ClaimHorizon || now.Sub(w.due) > ClaimPoll) {
			later = append(later, slot)
			continue
		}
		s.balance.Offers++
		w.flags |= hereOffered
		s.offers[slot] = offer{at: now}
		later = append(later, slot)
	}
	for _, slot := range later {
		s.cutLine.push(slot)
	}
	s.takeEffect(now)
}
