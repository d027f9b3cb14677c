package engine

// A request at the site: newcomers, those who wait, and what they are shown.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Visit decides about one request that the door could not decide alone. When held is not
// 0 the decision is not made yet: an Answer with that token follows, at the latest holdMax
// (or three round trips to the coordinator, up to 2 s; findMax for a ticket that may be at another
// site, and holdMax more when it has come from there; HoldSoon for a newcomer whose turn is due by then)
// later when Tick is called. Abandon says that nobody waits for it any more.
func (s *Site) Visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	s.watchOutages(now)
	s.expire(now)
	t := v.Ticket
	if s.settings.Suspended {
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}, 0
	}
	anew := anteroom.ReasonNone
	if !v.Fresh {
		foreign := v.Bind != 0 && t.Bind != 0 && t.Bind != v.Bind
		slot := s.seats.find(&t.ID)
		switch {
		case foreign:
			anew = anteroom.ReasonBound
		case slot != 0:
			return s.renew(now, slot, t, false), 0
		case s.sureOf(now, t.ID):
			return s.welcome(now, s.guests.find(&t.ID), t), 0
		case s.used.find(&t.ID) != 0:
			anew = anteroom.ReasonUsed
			if t.Accepted() {
				anew = anteroom.ReasonSessionOver
			}
		case s.elsewhere(now, t) && (t.Accepted() || v.Leave || !v.NoClaim && !apart(&s.settings, &v)):
			return s.enquire(now, v, t)
		case t.Accepted():
			if s.adoptable(now, t) {
				return s.adopt(now, t), 0
			}
			if s.older = s.older || s.provesLoss(now, t); s.older {
				return anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Refresh: MinInterval}, 0
			}
			anew = anteroom.ReasonSessionOver
		case s.placeLost(now, t):
			anew = anteroom.ReasonPlaceLost
		}
	}
	switch {
	case anew != anteroom.ReasonNone:
		return s.anew(now, v, anew)
	case v.Fresh:
		t.Bind, t.Lane = v.Bind, v.Lane
		return s.newcomer(now, v, t, anew)
	}
	if t.Bind == 0 {
		t.Bind = v.Bind
	}
	return s.checkIn(now, v, t)
}

// placeLost says that a waiting ticket's place is no more: it has lapsed, or the line was reset.
func (s *Site) placeLost(now anteroom.Time, t anteroom.Ticket) bool {
	return s.here.find(&t.ID) == 0 && (t.Next.Add(s.settings.PlaceHold) < now || void(&s.settings, t.Arrival))
}

// renew is a request within a session. One without a ticket is a first request still, of several at once or asked about again.
func (s *Site) renew(now anteroom.Time, slot uint32, t anteroom.Ticket, fresh bool) anteroom.Decision {
	st := s.seats.at(slot)
	if t.Accepted() {
		st.came = true
	} else {
		s.comesIn(now, slot)
	}
	if !fresh || !st.once {
		s.touch(now, slot)
	}
	d := s.atHome(now, t, st.accepted, anteroom.ReasonSession)
	if st.once {
		d.Ticket.LastCheckIn = st.last
	}
	return d
}

// Standing grades a ticket, to choose among several that a client sent: 3 a session, 2 in
// line here or accepted by another site, 1 may still join with its arrival, 0 useless.
func (s *Site) Standing(now anteroom.Time, t anteroom.Ticket) int {
	switch {
	case s.seats.find(&t.ID) != 0, s.guests.find(&t.ID) != 0:
		return 3
	case s.here.find(&t.ID) != 0:
		return 2
	case t.Accepted() && s.used.find(&t.ID) == 0 && s.elsewhere(now, t):
		return 2 // its session may be at another site
	case t.Accepted() || s.used.find(&t.ID) != 0 || s.placeLost(now, t):
		return 0
	}
	return 1
}

func (s *Site) newcomer(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket, anew anteroom.Reason) (anteroom.Decision, uint64) {
	s.newcomers++
	if v.NoClaim {
		return s.refusal(now, anteroom.ReasonNotJoining), 0
	}
	if anew == anteroom.ReasonUsed || anew == anteroom.ReasonSessionOver {
		t.ID = s.successor(now, v.Ticket.ID, t.ID)
	}
	if anew == anteroom.ReasonPlaceLost {
		if next, ok := s.heirs.get(v.Ticket.ID); ok && s.known(next) { // of another request at once, or another tab
			t.ID = next
		} else {
			s.heirs.put(v.Ticket.ID, t.ID, now.Add(goneFor))
		}
	}
	// Two requests of one visitor that both came without a ticket share its id, and a door asks
	// again when an answer was lost.
	if slot := s.here.find(&t.ID); slot != 0 {
		v.Fresh = true
		return s.checkIn(now, v, t)
	}
	if slot := s.seats.find(&t.ID); slot != 0 {
		d := s.renew(now, slot, t, v.Fresh)
		d.SetCookie = true
		return d, 0
	}
	hold := held(&s.settings)
	switch {
	case s.settings.Draining:
		return s.refusal(now, anteroom.ReasonDraining), 0
	case hold:
	case s.settings.QueueingMethod == anteroom.Reject:
		return s.refusal(now, anteroom.ReasonReject), 0
	case s.settings.QueueingMethod == anteroom.Passthrough:
		if s.seats.len() >= anteroom.MaxLine {
			return s.refusal(now, anteroom.ReasonNotJoining), 0
		}
		t.Arrival = s.newKey(now)
		return s.admit(now, t, anteroom.ReasonPassthrough), 0
	}
	if t.Arrival == 0 {
		t.Arrival = s.newKey(now)
	}
	open := !hold && (s.mode == Open || s.mode == Cut && s.here.len() == 0)
	switch {
	case apart(&s.settings, &v), open && !v.Stream && !s.trusts(now, &v, t.ID):
		if v.NoJoin {
			return s.refusal(now, anteroom.ReasonNotJoining), 0
		}
		return s.comeFirst(now, t), 0
	case !open, v.Stream && !s.trusts(now, &v, t.ID):
	case s.permits() >= 1:
		return s.letIn(now, t, anteroom.ReasonFreeSlot), 0
	case s.mode == Open && len(s.held) < anteroom.MaxHeld:
		s.wants, s.urgent = true, true
		return anteroom.Decision{}, s.hold(now, heldVisit{visit: v, ticket: t, reason: anew, borrow: true})
	}
	if anew == anteroom.ReasonNone {
		anew = anteroom.ReasonLine
	}
	return s.join(now, v, t, anew)
}

// takePlace puts a ticket that is not here in line: a newcomer at the back, one that is
// known by its cookie at its old place. slot is 0 when it gets none; d is the answer then.
func (s *Site) takePlace(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket) (slot uint32, d anteroom.Decision) {
	known := t.Next != 0
	if v.NoJoin && !known {
		return 0, s.refusal(now, anteroom.ReasonNotJoining)
	}
	if s.here.len() >= s.maxHere {
		if known {
			d = s.waitDecision(now, t, anteroom.ReasonLineFull)
			d.QueueIsFull, d.SetCookie = true, false
			return 0, d
		}
		d = s.waitDecision(now, anteroom.Ticket{}, anteroom.ReasonLineFull)
		d.QueueIsFull, d.WaitKnown, d.AheadKnown = true, false, false
		return 0, d
	}
	if !known && !v.Stream && len(s.proving) >= maxProving {
		return 0, s.comeFirst(now, t)
	}
	s.gone.drop(t.ID)
	slot = s.here.add(t.ID)
	w := s.here.at(slot)
	*w = waiter{key: t.Arrival, lane: t.Lane, due: now.Add(claimPoll), told: t.Told}
	if known {
		w.flags, w.due = hereShown|hereCame, max(now, t.Next)
		s.returns(slot)
	} else {
		s.joins.add(t.Arrival)
		if of := s.joinsOf(t.Lane); of != &s.joins {
			of.add(t.Arrival)
		}
		if !s.synced {
			w.flags = hereUndated
		}
	}
	if v.Stream {
		w.streams++
	}
	if v.Stream || t.Lane == anteroom.LaneBack { // who comes back has shown the cookie of a session
		s.proves(slot)
	}
	s.recordPlace(now, slot)
	if s.mode == Cut {
		s.lineUp(slot)
	}
	return slot, anteroom.Decision{}
}

// comeFirst shows the page to somebody who gets a place by coming back: that of this arrival, for the ticket says it.
func (s *Site) comeFirst(now anteroom.Time, t anteroom.Ticket) anteroom.Decision {
	reason := or(holding(&s.settings), anteroom.ReasonNone, anteroom.ReasonLine)
	d := waitFor(now, t, reason, s.settings, s.figures.Of(t.Lane), -1, s.lineOf(t.Lane)) // those who come back before are ahead, however many they are
	comeBack(&d, s.first(d.Refresh), s.settings.PlaceHold)
	return d
}

// apart says that visitors have to solve the challenge or be invited first, and until then are neither admitted nor in line. A place that
// they had before this was asked is missed like any other, and a solved ticket takes its place again.
func apart(s *anteroom.Settings, v *anteroom.Visit) bool {
	return (v.Unsolved && s.InfiniteQueue || v.Uninvited && s.InviteOnly) && s.QueueingMethod != anteroom.Passthrough && s.QueueingMethod != anteroom.Reject
}

// unmoved answers such a visitor who comes back: the page looks like that of the others.
func (s *Site) unmoved(now anteroom.Time, t anteroom.Ticket) anteroom.Decision {
	if early(now, &t) {
		return s.unchanged(now, t)
	}
	d := s.waitDecision(now, t, or(holding(&s.settings), anteroom.ReasonNone, anteroom.ReasonWaiting))
	d.Stream = false
	return d
}

// join puts a newcomer in line.
func (s *Site) join(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket, reason anteroom.Reason) (anteroom.Decision, uint64) {
	slot, d := s.takePlace(now, v, t)
	if slot == 0 {
		return d, 0
	}
	if why := holding(&s.settings); why != anteroom.ReasonNone {
		reason = or(reason, anteroom.ReasonLine, why)
	}
	if !v.Stream && (s.mayHold() || !v.NoHold && s.soon(now, t.Arrival, t.Lane)) && len(s.held) < anteroom.MaxHeld && s.trusts(now, &v, t.ID) {
		s.arrivals = append(s.arrivals, s.arrival(slot))
		s.urgent = true
		return anteroom.Decision{}, s.hold(now, heldVisit{visit: v, ticket: t, reason: reason})
	}
	return s.page(now, slot, t, reason), 0
}

// or replaces v by to when it is from.
func or(v, from, to anteroom.Reason) anteroom.Reason {
	if v == from || v == anteroom.ReasonNone {
		return to
	}
	return v
}

// checkIn is a request of a visitor who waits.
func (s *Site) checkIn(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket) (anteroom.Decision, uint64) {
	if v.Leave {
		return s.leave(now, t.ID), 0
	}
	slot := s.here.find(&t.ID)
	if slot != 0 { // the key the server knows is the one that counts
		// The ticket says what was decided while this site was out of reach.
		if lane := max(t.Lane, v.Lane); lane > s.here.at(slot).lane && !v.NoClaim {
			s.raise(now, slot, lane)
			t.Told = 0
		}
		t.Arrival, t.Lane = s.here.at(slot).key, s.here.at(slot).lane
	} else if s.unshuffled(t) { // was not there when the line was shuffled
		t.Arrival, t.Told = max(t.Arrival, s.shuffled), 0
	}
	if slot == 0 && v.Lane > t.Lane {
		t.Lane, t.Told = v.Lane, 0
	}
	if apart(&s.settings, &v) {
		return s.unmoved(now, t), 0
	}
	if slot != 0 {
		if w := s.here.at(slot); w.streams == 0 && now.Sub(w.due) > Grace && !v.NoClaim {
			s.returns(slot) // taken for gone
		}
		s.here.at(slot).flags &^= hereUnheard
		if w := s.here.at(slot); w.flags&hereCame == 0 && (!v.Fresh || v.Stream) {
			s.proves(slot)
			s.arrivals = append(s.arrivals, s.arrival(slot))
		}
	}
	if v.NoClaim {
		return s.unchanged(now, t), 0
	}
	reason := anteroom.ReasonWaiting
	if slot != 0 && v.Stream { // presence, whatever becomes of the request
		w := s.here.at(slot)
		w.streams++
		s.arrivals = append(s.arrivals, s.arrival(slot))
		s.urgent = s.urgent || s.near(w.key, w.lane)
	}
	why := holding(&s.settings)
	if why == anteroom.ReasonNone && s.settings.QueueingMethod == anteroom.Passthrough {
		return s.admit(now, t, anteroom.ReasonPassthrough), 0
	}
	again := v.Stream && v.NoJoin // a door tells of a stream once more: the page that holds it has yet to ask
	if slot != 0 && s.here.at(slot).flags&hereOffered != 0 && s.mayClaim(slot) && !again {
		if o := s.offers[slot]; o.active && !o.ahead {
			s.dropOffer(slot)
			return s.admit(now, t, anteroom.ReasonTurn), 0
		}
		if len(s.held) < anteroom.MaxHeld {
			return anteroom.Decision{}, s.hold(now, heldVisit{visit: v, ticket: t, reason: reason, forTurn: true})
		}
	}
	if why != anteroom.ReasonNone {
		reason = why
	} else {
		switch {
		case s.settings.QueueingMethod == anteroom.Reject:
			return s.rejected(now, v, t, slot), 0
		case s.again.asking: // it may live elsewhere too: it enters by an offer only
		case s.mode == Open && s.permits() >= 1:
			return s.letIn(now, t, anteroom.ReasonReopened), 0
		case s.mode == Open && len(s.held) < anteroom.MaxHeld:
			s.wants, s.urgent = true, true
			return anteroom.Decision{}, s.hold(now, heldVisit{visit: v, ticket: t, reason: anteroom.ReasonReopened, borrow: true})
		}
	}
	if slot == 0 { // known by its cookie only: it takes its old place again
		var d anteroom.Decision
		if slot, d = s.takePlace(now, v, t); slot == 0 {
			return d, 0
		}
		s.arrivals = append(s.arrivals, s.arrival(slot))
	}
	w := s.here.at(slot)
	// Whoever has just come from another site near the front has perhaps been told there that it is
	// his turn, and the turn follows him.
	follows := s.again.found && reason == anteroom.ReasonWaiting && !v.Stream && s.ask(w.key, w.lane)
	if early(now, &t) && !follows {
		return s.unchanged(now, t), 0
	}
	s.recordAgain(now, t.LastCheckIn, slot)
	// At the front a check-in waits for the coordinator's word, for the turn may be now.
	if reason == anteroom.ReasonWaiting && !v.Stream && len(s.held) < anteroom.MaxHeld &&
		s.mode != Cut && s.ask(w.key, w.lane) {
		w.due = now
		s.arrivals = append(s.arrivals, s.arrival(slot))
		s.urgent = s.urgent || !s.together()
		if follows {
			s.again.until = min(now.Add(s.holdBound()), s.again.until.Add(holdMax))
		}
		return anteroom.Decision{}, s.hold(now, heldVisit{visit: v, ticket: t, reason: reason})
	}
	return s.page(now, slot, t, reason), 0
}

// leave gives up the place of a ticket for good: the ticket counts as used, so that no copy of it brings the place back. Every
// other request that is held with it is answered alike.
func (s *Site) leave(now anteroom.Time, id anteroom.ID) anteroom.Decision {
	if slot := s.here.find(&id); slot != 0 {
		s.dropOffer(slot)
		s.forget(now, slot)
	} else { // by the cookie only, or the place has just come from another site
		s.events = append(s.events, Event{Kind: EventForgotten, ID: id, At: now})
		s.departures = append(s.departures, Departure{ID: id, Why: Left})
	}
	s.events[len(s.events)-1].Lane = laneLeft
	s.urgent = true
	s.consume(id, now, now)
	d := s.refusal(now, anteroom.ReasonLeft)
	for i := 0; i < len(s.held); {
		if h := s.held[i]; h.ticket.ID == id && !h.asking {
			s.held = append(s.held[:i], s.held[i+1:]...)
			s.answer(h, d)
			continue
		}
		i++
	}
	s.flush(now) // a turn that was offered is the next visitor's
	return d
}

// rejected refuses somebody who waits. It is a check-in all the same, by which the place is
// kept for when the room admits again, and the visitor is to come back.
func (s *Site) rejected(now anteroom.Time, v anteroom.Visit, t anteroom.Ticket, slot uint32) anteroom.Decision {
	if early(now, &t) {
		return rejection(s.unchanged(now, t))
	}
	if slot == 0 {
		if slot, _ = s.takePlace(now, v, t); slot == 0 {
			return s.refusal(now, anteroom.ReasonReject)
		}
	}
	s.recordAgain(now, t.LastCheckIn, slot)
	return rejection(s.page(now, slot, t, anteroom.ReasonReject))
}

// rejection is the refusal of somebody who has a place, made of the page that the visitor would see otherwise: nothing is told of the
// place but until when it is kept.
func rejection(d anteroom.Decision) anteroom.Decision {
	return anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, At: d.At, Method: d.Method, QueueAll: d.QueueAll, Waiting: d.Waiting,
		Ticket: d.Ticket, SetCookie: d.SetCookie, Refresh: d.Refresh, KeptUntil: d.KeptUntil}
}

// early says that a check-in does not count. A cookie that is of the future was made before a clock was
// set back: when its visitor was to come is not known.
func early(now anteroom.Time, t *anteroom.Ticket) bool { return t.LastCheckIn <= now && now < t.Next }

// unchanged is the page for a check-in that does not count: the ticket stays as it is.
func (s *Site) unchanged(now anteroom.Time, t anteroom.Ticket) anteroom.Decision {
	d := s.waitDecision(now, t, anteroom.ReasonEarly)
	d.Ticket, d.SetCookie = t, false
	d.Refresh = max(time.Second, t.Next.Sub(now).Round(time.Second))
	d.KeptUntil = t.Next.Add(s.settings.PlaceHold)
	return d
}

// recordAgain repeats the record of a ticket that still waits, once per place hold and when
// it was away: records are kept for a while only, and a restart must know who is in line.
func (s *Site) recordAgain(now, last anteroom.Time, slot uint32) {
	hold := anteroom.Time(s.settings.PlaceHold / time.Microsecond)
	w := s.here.at(slot)
	if now/hold != last/hold || w.flags&hereAway != 0 {
		w.flags &^= hereAway
		s.recordPlace(now, slot)
	}
}

// recordPlace records a place, and whether the other sites are to be asked first: the next process
// must not give a turn to a ticket that has entered elsewhere.
func (s *Site) recordPlace(now anteroom.Time, slot uint32) {
	w, kind := s.here.at(slot), EventJoined
	if w.flags&hereUnasked != 0 {
		kind = EventUnasked
	}
	s.events = append(s.events, Event{Kind: kind, ID: s.here.id(slot), At: now, Key: w.key, Lane: w.lane})
}

// ask says that only the coordinator can answer a check-in: the turn may be now. With a
// draw it may be anybody's at any time.
func (s *Site) ask(key anteroom.Time, lane uint8) bool {
	return s.settings.QueueingMethod == anteroom.Random || s.figures.Of(lane).Hot > 0 ||
		s.rank(key, lane) <= holdLine/2+s.expectedSoon()
}

// together: with a draw every check-in is worth a report, and with several sites they
// travel together.
func (s *Site) together() bool { return s.settings.QueueingMethod == anteroom.Random && s.sites > 1 }

// near says that a ticket may be offered a turn soon, so that its presence is told at once.
func (s *Site) near(key anteroom.Time, lane uint8) bool {
	f := s.figures.Of(lane)
	return s.settings.QueueingMethod == anteroom.Random && !s.together() ||
		s.settings.QueueingMethod != anteroom.Random && key <= f.Front.Add(nearFront) || f.Waiting <= holdLine
}

// Polls takes check-ins that a door answered alone.
func (s *Site) Polls(now anteroom.Time, polls []Poll) {
	for i := range polls {
		s.fetched |= s.here.fetch(&polls[i].ID)
	}
	for _, p := range polls {
		slot := s.here.find(&p.ID)
		if slot == 0 {
			if s.here.len() >= s.maxHere || s.seats.find(&p.ID) != 0 || s.guests.find(&p.ID) != 0 || s.used.find(&p.ID) != 0 || void(&s.settings, p.Key) {
				continue // the door learns when the ticket comes near the front
			}
			s.gone.drop(p.ID)
			slot = s.here.add(p.ID)
			*s.here.at(slot) = waiter{key: p.Key, lane: p.Lane, flags: hereAway} // so that it is recorded below
			if s.roaming() {
				s.here.at(slot).flags |= hereUnasked
			}
			if s.mode == Cut {
				s.lineUp(slot)
			}
		}
		w := s.here.at(slot)
		if p.Lane > w.lane {
			s.raise(now, slot, p.Lane)
		}
		if w.flags&hereUnheard != 0 {
			w.due = p.Due
		}
		// Another door has perhaps seen the visitor since: a later check-in has a later due.
		w.due = max(w.due, p.Due)
		s.proves(slot)
		w.flags |= hereShown
		if now.Sub(p.Due) <= claimPoll { // else seen elsewhere since, perhaps: that door has yet to say so
			w.flags &^= hereUnheard
		}
		if _, called := s.offers[slot]; called && w.streams == 0 {
			// The door did not know of the turn and has sent the visitor away: it comes again in order.
			s.dropOffer(slot)
			s.departures = append(s.departures, Departure{ID: p.ID, Why: Declined})
			s.urgent = true
		}
		s.recordAgain(now, p.Last, slot)
		s.arrivals = append(s.arrivals, s.arrival(slot))
	}
}

// page shows the waiting page: the visitor is told when to come back, and the coordinator
// when to expect that.
func (s *Site) page(now anteroom.Time, slot uint32, t anteroom.Ticket, reason anteroom.Reason) anteroom.Decision {
	w := s.here.at(slot)
	first := w.flags&hereShown == 0
	w.flags |= hereShown
	t.Arrival = w.key // a shuffle has perhaps changed it while the request was held
	d := s.waitDecision(now, t, reason)
	if first {
		s.shown(w.key, w.lane, &d)
	}
	if w.flags&hereCame == 0 {
		comeBack(&d, s.first(d.Refresh), s.settings.PlaceHold)
		if first {
			s.proving = append(s.proving, proving{w.key, slot})
		}
	}
	w.due = d.Ticket.Next
	s.arrivals = append(s.arrivals, s.arrival(slot))
	return d
}

// first is how long a newcomer may stay away who could stay away for so long later. While the room is closed nobody is
// called anyway.
func (s *Site) first(later time.Duration) time.Duration {
	switch {
	case closed(&s.settings):
		return later
	case s.figures.Hot > 0, s.permits() >= 1, later <= 2*MinInterval:
		return FirstSoon
	}
	return min(later, FirstInterval)
}

// rank is the number of people ahead of an arrival in its lane.
func (s *Site) rank(key anteroom.Time, lane uint8) int {
	f := s.figures.Of(lane)
	switch {
	case s.settings.QueueingMethod == anteroom.Random:
		return max(0, s.lineOf(lane)-1)
	case key > f.At: // joined after the figures were made
		return max(0, s.lineOf(lane)-1+s.joinedElsewhere(key, lane))
	}
	return f.Rank(key)
}

// line is the number of people in line, as far as this site knows.
func (s *Site) line() int { return s.figures.Waiting + s.joins.since }

// lineOf is line for one lane.
func (s *Site) lineOf(lane uint8) int {
	return s.figures.Of(lane).Waiting + s.joinsOf(lane).since
}

// joinedElsewhere estimates how many have joined at other sites before an arrival that the figures
// do not count: as many as did lately, for as long as word of them is on its way.
func (s *Site) joinedElsewhere(key anteroom.Time, lane uint8) int {
	f := s.figures.Of(lane)
	if s.sites <= 1 || !s.figured || s.mode == Cut {
		return 0
	}
	const late = flushEvery / 2
	from := int64(f.At)/1e6 - 1
	n := 0
	for i := len(f.Seconds) - 1; i >= 0 && f.Seconds[i].Second >= from; i-- {
		n += int(f.Seconds[i].Count)
	}
	n -= s.joinsOf(lane).after(from, f.At)
	over := f.At.Add(-late - s.trip/2).Sub(anteroom.Time(from * 1e6))
	since := min(key.Sub(f.At), maxDelay) + late + s.trip/2
	return int(float64(max(0, n)) * since.Seconds() / over.Seconds())
}

// expectedSoon is how many releases the limits allow while a request may be held.
func (s *Site) expectedSoon() int {
	return int(2 * float64(s.settings.NewUsersPerMinute) / 60 * s.holdBound().Seconds())
}

// waitDecision is the waiting page. What a ticket was told is remembered here as well as in
// its cookie, which is not renewed by every answer.
func (s *Site) waitDecision(now anteroom.Time, t anteroom.Ticket, reason anteroom.Reason) anteroom.Decision {
	if s.unshuffled(t) {
		t.Told = 0
	}
	slot := s.here.find(&t.ID)
	if slot != 0 {
		t.Lane = s.here.at(slot).lane
		if told := s.here.at(slot).told; told != 0 && (t.Told == 0 || told < t.Told) {
			t.Told = told
		}
	}
	rank := s.rank(t.Arrival, t.Lane)
	soon := slot != 0 && s.joins.uncounted[slot] && s.mode != Cut
	switch {
	case !s.figured: // the line is the coordinator's, who has not been heard yet
		rank = -1
	case soon: // what was told, if anything was
		rank = int(t.Told) - 1
	}
	d := waitFor(now, t, reason, s.settings, s.figures.Of(t.Lane), rank, s.lineOf(t.Lane))
	if holding(&s.settings) == anteroom.ReasonPrequeue && s.settings.Refresh == 0 && !t.ID.IsZero() {
		comeBack(&d, s.untilOpening(now, t.ID, max(rank, 0), d.Refresh), s.settings.PlaceHold)
	}
	if soon && !closed(&s.settings) && s.settings.Refresh == 0 {
		comeBack(&d, min(d.Refresh, 2*MinInterval), s.settings.PlaceHold)
	}
	if slot != 0 && d.AheadKnown {
		s.here.at(slot).told = uint32(d.Ahead) + 1
	}
	return d
}

func (s *Site) refusal(now anteroom.Time, reason anteroom.Reason) anteroom.Decision {
	return refusal(now, reason, &s.settings, s.figures)
}

func refusal(now anteroom.Time, reason anteroom.Reason, s *anteroom.Settings, f *Figures) anteroom.Decision {
	return anteroom.Decision{Verdict: anteroom.Refuse, Reason: reason, At: now,
		Method: s.QueueingMethod, QueueAll: s.QueueAll, Waiting: f.Waiting}
}

// Look is the decision that a visitor who waits would see now, without being a check-in:
// for streams. ok is false when the ticket does not wait here.
func (s *Site) Look(now anteroom.Time, t anteroom.Ticket) (d anteroom.Decision, ok bool) {
	slot := s.here.find(&t.ID)
	if slot == 0 {
		return anteroom.Decision{}, false
	}
	t.Arrival = s.here.at(slot).key
	d = s.waitDecision(now, t, or(holding(&s.settings), anteroom.ReasonNone, anteroom.ReasonWaiting))
	if !held(&s.settings) && s.settings.QueueingMethod == anteroom.Reject {
		d = rejection(d)
	}
	d.SetCookie = false
	return d, true
}

// CloseStream says that a stream of id has ended. The visitor is gone unless another
// stream or a check-in follows within streamGrace.
func (s *Site) CloseStream(now anteroom.Time, id anteroom.ID) {
	slot := s.here.find(&id)
	if slot == 0 || s.here.at(slot).streams == 0 {
		return
	}
	w := s.here.at(slot)
	w.streams--
	if w.streams == 0 {
		// Not here any more: overdue at once, and past the grace after streamGrace.
		w.due = now.Add(streamGrace - Grace)
		s.arrivals = append(s.arrivals, s.arrival(slot))
	}
}
