package engine

// Requests that are held for a slot about to come free.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// heldVisit is a request that waits for its answer.
type heldVisit struct {
	token   uint64
	visit   anteroom.Visit
	ticket  anteroom.Ticket
	reason  anteroom.Reason // why it is new, when it had to start anew
	since   anteroom.Time
	until   anteroom.Time // the bound, counted from when it was held first
	began   anteroom.Time // when it was held first
	borrow  bool          // a newcomer not in line yet
	forTurn bool          // its offer has not taken effect yet
	asking  bool          // the other sites have not said yet where its ticket stands
	found   bool          // they have
}

// Answer ends a held request.
type Answer struct {
	Token    uint64
	Decision anteroom.Decision
}

func (s *Site) hold(now anteroom.Time, h heldVisit) uint64 {
	h.since = now
	if h.token, h.until, h.began = s.again.token, s.again.until, s.again.began; h.token == 0 {
		s.token++
		h.token, h.until, h.began = s.token, now.Add(s.holdBound()), now
		if h.asking {
			h.until = now.Add(findMax)
			s.keepOffer(&h.ticket.ID, h.until)
		}
	}
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

// HoldSoon is how long a newcomer is held whose turn is due within that time: the page would be
// gone before anybody could read it.
const HoldSoon = time.Second

// soon reports whether somebody of an arrival can expect a turn within HoldSoon: there are permits
// for everybody ahead, which are on their way, or the forecast says so.
func (s *Site) soon(now, key anteroom.Time, lane uint8) bool {
	f := s.figures.Of(lane)
	if s.mode != Queue || !s.figured || s.settings.QueueingMethod != anteroom.FIFO || held(&s.settings) {
		return false
	}
	rank := s.rank(key, lane)
	wait, known := f.Told(rank, now)
	return int64(rank) < f.Hot || known && wait < HoldSoon
}

// holdsOn reports whether a held request waits for a turn that is due within HoldSoon: of somebody who was called,
// of a newcomer in line, who has not seen the page yet, or of whoever checks in while slots are free for them.
func (s *Site) holdsOn(now anteroom.Time, h heldVisit) bool {
	if h.asking || h.borrow || now >= h.began.Add(HoldSoon) {
		return false
	}
	slot := s.here.find(&h.ticket.ID)
	switch {
	case slot == 0:
		return false
	case s.offers[slot].ahead:
		return true
	case h.visit.NoHold:
		return false
	case s.here.at(slot).flags&hereShown == 0:
		return s.soon(now, h.ticket.Arrival, h.ticket.Lane)
	}
	return s.figures.Of(h.ticket.Lane).Hot > 0 && now.Sub(h.ticket.Arrival) < settling
}

// endHolds shows the page to requests that have been held long enough.
func (s *Site) endHolds(now anteroom.Time) {
	for i := 0; i < len(s.held); {
		h := s.held[i]
		if now < h.until || h.asking && !s.synced && s.mode != Cut { // a process that has just begun cannot know
			i++
			continue
		}
		s.held = append(s.held[:i], s.held[i+1:]...)
		if s.holdsOn(now, h) {
			h.until = h.began.Add(HoldSoon)
			s.held = append(s.held, h) // behind those with an earlier bound, see Wake
			continue
		}
		if h.asking {
			s.goOn(now, h, func() (anteroom.Decision, uint64) { return s.unheard(now, h) })
			i = 0 // what went on may have answered others
			continue
		}
		s.finish(now, h)
	}
}

// settleHeld answers held requests as far as the coordinator's word allows.
func (s *Site) settleHeld(now anteroom.Time) {
	held := s.held
	s.held, s.spareHeld = s.spareHeld[:0], nil
	for _, h := range held {
		switch {
		case h.asking:
			s.settleAsking(now, h)
		case s.ruled(now, h):
		case s.offeredNow(h.ticket.ID), s.borrowing && h.borrow:
			s.held = append(s.held, h)
		case h.borrow && s.settings.OriginDown:
			s.refused(now, h)
		case h.borrow && s.permits() >= 1 && (s.mode == Open || s.mode == Cut && s.here.len() == 0):
			reason := anteroom.ReasonFreeSlot
			if h.reason == anteroom.ReasonReopened {
				reason = h.reason
			}
			s.answer(h, s.letIn(now, h.ticket, reason))
		case h.borrow && s.mode == Open:
			s.held = append(s.held, h) // the coordinator owes the rest of what was asked for
		case h.borrow:
			s.refused(now, h)
		case h.forTurn:
			s.finish(now, h)
		case s.mode == Queue && s.answered >= h.since && (h.visit.NoHold || s.rank(h.ticket.Arrival, h.ticket.Lane) > 1+s.expectedSoon()) && !s.holdsOn(now, h):
			s.finish(now, h)
		default:
			s.held = append(s.held, h)
		}
	}
	s.spareHeld = held
}

// settleAsking goes on with a request whose ticket may live elsewhere, when there is nothing
// to wait for.
func (s *Site) settleAsking(now anteroom.Time, h heldVisit) {
	slot := s.seats.find(&h.ticket.ID)
	switch {
	case s.settings.Suspended:
		s.answer(h, anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now})
	case slot != 0:
		s.answer(h, s.renew(now, slot, h.ticket, h.visit.Fresh))
	case !s.roaming(), s.synced && h.ticket.Accepted() && h.ticket.Home == s.home:
		delete(s.questions, h.ticket.ID)
		s.goOn(now, h, func() (anteroom.Decision, uint64) {
			return s.foundAt(now, h, Finding{ID: h.ticket.ID})
		})
	case s.mode == Cut:
		delete(s.questions, h.ticket.ID)
		s.goOn(now, h, func() (anteroom.Decision, uint64) { return s.unheard(now, h) })
	default:
		s.held = append(s.held, h)
	}
}

// ruled answers a held request about which there is nothing left to wait for: its ticket
// was let in with another request, or the settings changed.
func (s *Site) ruled(now anteroom.Time, h heldVisit) bool {
	slot, d := s.seats.find(&h.ticket.ID), anteroom.Decision{}
	switch {
	case s.settings.Suspended:
		d = anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}
	case slot != 0:
		d = s.renew(now, slot, h.ticket, h.visit.Fresh)
	case s.settings.Draining && h.borrow && h.reason != anteroom.ReasonReopened: // not in line yet
		d = s.refusal(now, anteroom.ReasonDraining)
	case held(&s.settings), h.forTurn && s.offeredNow(h.ticket.ID):
		return false
	case s.settings.QueueingMethod == anteroom.Reject:
		if place := s.here.find(&h.ticket.ID); place != 0 {
			d = s.rejected(now, h.visit, h.ticket, place)
		} else {
			d = s.refusal(now, anteroom.ReasonReject)
		}
	case s.settings.QueueingMethod == anteroom.Passthrough:
		d = s.admit(now, h.ticket, anteroom.ReasonPassthrough)
	default:
		return false
	}
	s.answer(h, d)
	return true
}

// refused goes on with a held request for which no unit was left: it takes its place in
// line and is held on while a turn may come at once.
func (s *Site) refused(now anteroom.Time, h heldVisit) {
	h.borrow = false
	if h.reason == anteroom.ReasonNone {
		h.reason = anteroom.ReasonFull
	}
	slot := s.here.find(&h.ticket.ID)
	if slot == 0 {
		var d anteroom.Decision
		if slot, d = s.takePlace(now, h.visit, h.ticket); slot == 0 {
			s.answer(h, d)
			return
		}
	}
	if s.mayHold() || !h.visit.NoHold && s.soon(now, h.ticket.Arrival, h.ticket.Lane) {
		s.here.at(slot).due = now
		s.arrivals = append(s.arrivals, s.arrival(slot))
		s.urgent = true
		s.held = append(s.held, h)
		return
	}
	s.finish(now, h)
}

// mayHold: the line is so short, or so much is free, that a turn may come at once.
func (s *Site) mayHold() bool {
	return !held(&s.settings) && s.mode == Queue &&
		s.settings.TotalActiveUsers > 0 && s.settings.NewUsersPerMinute > 0 &&
		(s.line() <= holdLine+s.expectedSoon() || s.figures.Hot > 0)
}

func (s *Site) offeredNow(id anteroom.ID) bool {
	slot := s.here.find(&id)
	return slot != 0 && s.here.at(slot).flags&hereOffered != 0
}

// finish shows the page to a held request.
func (s *Site) finish(now anteroom.Time, h heldVisit) {
	if s.ruled(now, h) {
		return
	}
	slot := s.here.find(&h.ticket.ID)
	if slot == 0 {
		var d anteroom.Decision
		if slot, d = s.takePlace(now, h.visit, h.ticket); slot == 0 {
			s.answer(h, d)
			return
		}
		h.reason = or(h.reason, anteroom.ReasonNone, anteroom.ReasonFull)
	}
	reason := or(h.reason, anteroom.ReasonReopened, anteroom.ReasonWaiting)
	reason = or(holding(&s.settings), anteroom.ReasonNone, reason)
	s.answer(h, s.page(now, slot, h.ticket, reason))
}

func (s *Site) answer(h heldVisit, d anteroom.Decision) {
	d.SetCookie = d.Verdict == anteroom.Admit || d.SetCookie
	s.answers = append(s.answers, Answer{Token: h.token, Decision: d})
}

func (s *Site) wanted() (n uint32) {
	if !s.sound {
		return 0 // what it gets it would not spend
	}
	for _, h := range s.held {
		if h.borrow {
			n++
		}
	}
	return n
}
