package engine

// Requests that are held for a slot about to come free.

import (
	"github.com/anteroom/anteroom"
)

// heldVisit is a request that waits for its answer.
type heldVisit struct {
	token   uint64
	visit   anteroom.Visit
	ticket  anteroom.Ticket
	reason  anteroom.Reason // why it is new, when it had to start anew
	since   anteroom.Time
	borrow  bool // a newcomer not in line yet
	forTurn bool // its offer has not taken effect yet
}

// Answer ends a held request.
type Answer struct {
	Token    uint64
	Decision anteroom.Decision
}

func (s *Site) hold(now anteroom.Time, h heldVisit) uint64 {
	s.token++
	h.token, h.since = s.token, now
	s.held = append(s.held, h)
	return h.token
}

// Abandon says that nobody waits for the held answer any more. The place, if one was
// taken, stays.
func (s *Site) Abandon(now anteroom.Time, token uint64) {
	for i, h := range s.held {
		if h.token == token {
			s.held = append(s.held[:i], s.held[i+1:]...)
			return
		}
	}
}

// settleHeld answers held requests as far as the coordinator's word allows.
func (s *Site) settleHeld(now anteroom.Time) {
	held := s.held
	s.held = nil
	for i, h := range held {
		switch {
		case s.offeredNow(h.ticket.ID), s.borrowing && h.borrow:
			s.held = append(s.held, h)
		case h.borrow && s.permits() >= 1 && (s.mode == Open || s.mode == Cut && s.here.len() == 0):
			// admit looks through s.held for the same ticket; the rest of this list follows.
			s.held = append(s.held, held[i+1:]...)
			reason := anteroom.ReasonFreeSlot
			if h.reason == anteroom.ReasonReopened {
				reason = h.reason
			}
			s.answer(h, s.admit(now, h.ticket, reason))
			s.settleHeld(now)
			return
		case h.borrow && s.mode == Open:
			s.held = append(s.held, h) // the coordinator owes the rest of what was asked for
		case h.borrow:
			rest := s.held
			s.held = nil
			d, token := s.refused(now, h)
			mine := s.held
			s.held = rest
			if token == 0 {
				s.answer(h, d)
			} else {
				mine[0].token, mine[0].since = h.token, h.since
				s.held = append(s.held, mine[0])
			}
		case h.forTurn:
			s.finish(now, h)
		case s.mode == Queue && (h.visit.NoHold || s.rank(h.ticket.Arrival) > 1+s.expectedSoon()):
			s.finish(now, h)
		default:
			s.held = append(s.held, h)
		}
	}
}

// refused goes on with a held request for which no unit was left.
func (s *Site) refused(now anteroom.Time, h heldVisit) (anteroom.Decision, uint64) {
	if s.here.find(&h.ticket.ID) != 0 || h.reason == anteroom.ReasonReopened {
		return s.checkIn(now, h.visit, h.ticket)
	}
	return s.join(now, h.visit, h.ticket, or(h.reason, anteroom.ReasonNone, anteroom.ReasonFull))
}

func (s *Site) offeredNow(id anteroom.ID) bool {
	slot := s.here.find(&id)
	return slot != 0 && s.here.at(slot).flags&hereOffered != 0
}

// finish shows the page to a held request.
func (s *Site) finish(now anteroom.Time, h heldVisit) {
	slot := s.here.find(&h.ticket.ID)
	if slot == 0 {
		h.visit.NoHold = true
		d, token := s.refused(now, h)
		if token == 0 {
			s.answer(h, d)
		}
		return
	}
	s.answer(h, s.page(now, slot, h.ticket, or(h.reason, anteroom.ReasonReopened, anteroom.ReasonWaiting)))
}

func (s *Site) answer(h heldVisit, d anteroom.Decision) {
	d.SetCookie = d.Verdict == anteroom.Admit || d.SetCookie
	s.answers = append(s.answers, Answer{Token: h.token, Decision: d})
}

func (s *Site) wanted() (n uint32) {
	for _, h := range s.held {
		if h.borrow {
			n++
		}
	}
	return n
}
