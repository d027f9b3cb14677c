package engine

// What a door does without its site.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// alone decides about a request that the site ought to decide and does not.
func (x *Doorway) alone(now anteroom.Time, v anteroom.Visit) anteroom.Decision {
	d := x.decideAlone(now, v)
	x.shows(now, &d)
	if v.Stream && d.Verdict == anteroom.Wait {
		x.openStream(v, d.Ticket)
		if s := x.streams[d.Ticket.ID]; s != nil && x.Reachable(now) {
			x.ask(now, s.visit, true)
		} else {
			x.absent = true // it is told with all others, even if they have just been told
		}
	}
	return d
}

func (x *Doorway) decideAlone(now anteroom.Time, v anteroom.Visit) anteroom.Decision {
	s, t := &x.door.settings, v.Ticket
	switch {
	case s.Suspended:
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}
	case v.Fresh:
		return x.newcomer(now, v, t.ID, anteroom.ReasonNone)
	case v.Bind != 0 && t.Bind != 0 && v.Bind != t.Bind:
		return x.newcomer(now, v, v.NewID, anteroom.ReasonBound)
	case t.Accepted():
		return x.accepted(now, v)
	}
	if x.lives(now, &v) { // a waiting cookie of a session that this door knows
		if d, ask := x.door.Decide(now, &v); !ask {
			x.takePolls()
			x.seenAlone(now, &d)
			x.sure(&d, &v)
			return d
		}
	}
	if v.Leave { // the site passes over a visitor who does not come back
		return x.refusal(now, anteroom.ReasonLeft)
	}
	if t.Next.Add(s.PlaceHold) < now || void(s, t.Arrival) {
		return x.newcomer(now, v, v.NewID, anteroom.ReasonPlaceLost)
	}
	return x.waiting(now, v)
}

// lives says that the site must hold the visitor's session still: it was told, or has said itself,
// that the visitor was there at a moment that the door or the cookie knows. A session whose time is
// nearly over may end before the site hears of this request, or notices that it does not hear this door:
// it may hear it although the door hears nothing.
func (x *Doorway) lives(now anteroom.Time, v *anteroom.Visit) bool {
	s, t := &x.door.settings, &v.Ticket
	if v.Fresh || v.Bind != 0 && t.Bind != 0 && v.Bind != t.Bind || x.hasEnded(t.ID) || !x.mayAlone(now) || x.guest(t) {
		return false
	}
	until := anteroom.Time(0)
	if slot := x.door.known.find(&t.ID); slot != 0 {
		k := x.door.known.at(slot)
		until = lasts(s, k.accepted, max(k.sure, k.alone))
	}
	if t.Accepted() && t.LastCheckIn <= now.Add(TouchDelay) {
		until = max(until, lasts(s, t.AcceptedAt, t.LastCheckIn))
	}
	if !s.DisableSessionRenewal {
		until = until.Add(-speaksBy)
	}
	return now < until
}

// guest says that the visitor's session is at another site, which does not know what this door sees
// while its own site is silent.
func (x *Doorway) guest(t *anteroom.Ticket) bool {
	if slot := x.door.known.find(&t.ID); slot != 0 && x.door.known.at(slot).home != 0 {
		return true
	}
	return x.site.Name != "" && Guest(x.site.Name, t)
}

// Unheard is how long ago the newest message left that the site has confirmed; never is a long time.
func (x *Doorway) Unheard(now anteroom.Time) time.Duration {
	if x.heardBy == 0 {
		return never
	}
	return now.Sub(x.heardBy)
}

// mayAlone says that the site, although it does not answer, still counts on this door to let in
// sessions.
func (x *Doorway) mayAlone(now anteroom.Time) bool {
	s := &x.door.settings
	return x.timed && x.heardBy != 0 && (s.DisableSessionRenewal || x.Unheard(now) < AloneFor(s.SessionDuration))
}

// seenAlone notes that a session was let in without the site, which holds it for a session duration
// from now (see witness).
func (x *Doorway) seenAlone(now anteroom.Time, d *anteroom.Decision) {
	if d.Verdict != anteroom.Admit || !x.quiet(now) || !x.mayAlone(now) {
		return
	}
	if slot := x.door.known.find(&d.Ticket.ID); slot != 0 {
		x.door.known.at(slot).alone = now
	}
}

// lasts is until when a site holds a session at least that was seen at a moment.
func lasts(s *anteroom.Settings, accepted, seen anteroom.Time) anteroom.Time {
	if s.DisableSessionRenewal {
		return s.SessionEnd(accepted)
	}
	return seen.Add(s.SessionDuration)
}

// hasEnded says that the site, or an operator here, has ended the session.
func (x *Doorway) hasEnded(id anteroom.ID) bool {
	_, ended := x.gone.get(id)
	return ended
}

// worthwhile says that a request is to wait for the site although it does not answer: there may
// be a session, which only the site knows, and the site is perhaps about to be back.
func (x *Doorway) worthwhile(now anteroom.Time, v *anteroom.Visit) bool {
	s, t := &x.door.settings, &v.Ticket
	return t.Accepted() && !x.admit && !v.Fresh && !s.Suspended && !s.DisableSessionRenewal && now.Sub(x.silence) < takeOver &&
		(v.Bind == 0 || t.Bind == 0 || v.Bind == t.Bind) && !x.hasEnded(t.ID) && !x.lives(now, v) &&
		now < t.LastCheckIn.Add(2*s.SessionDuration)
}

// accepted lets in a visitor who must have a session still.
func (x *Doorway) accepted(now anteroom.Time, v anteroom.Visit) anteroom.Decision {
	s, t := &x.door.settings, v.Ticket
	if x.lives(now, &v) {
		x.door.Learn(min(t.LastCheckIn, now), t.ID, t.AcceptedAt)
		if d, ask := x.door.Decide(now, &v); !ask {
			x.seenAlone(now, &d)
			x.sure(&d, &v)
			return d
		}
	}
	end := t.LastCheckIn.Add(2 * s.SessionDuration) // a cookie is renewed seldom
	if s.DisableSessionRenewal {
		end = s.SessionEnd(t.AcceptedAt)
	}
	switch {
	case now >= end:
		return x.newcomer(now, v, v.NewID, anteroom.ReasonSessionOver)
	case x.admit:
		return passed(now)
	}
	// There may be a session, and the cookie is what it is found by: it stays.
	return anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Method: s.QueueingMethod, Refresh: 2 * MinInterval}
}

func passed(now anteroom.Time) anteroom.Decision {
	return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonPassthrough, At: now}
}

func (x *Doorway) refusal(now anteroom.Time, why anteroom.Reason) anteroom.Decision {
	return refusal(now, why, &x.door.settings, x.door.figures)
}

// newcomer gets a place of now, which counts when the site is back.
func (x *Doorway) newcomer(now anteroom.Time, v anteroom.Visit, id anteroom.ID, why anteroom.Reason) anteroom.Decision {
	s := &x.door.settings
	hold := holding(s)
	switch {
	case v.NoClaim:
		return x.refusal(now, anteroom.ReasonNotJoining)
	case s.Draining:
		return x.refusal(now, anteroom.ReasonDraining)
	case hold != anteroom.ReasonNone:
	case s.QueueingMethod == anteroom.Reject:
		return x.refusal(now, anteroom.ReasonReject)
	case s.QueueingMethod == anteroom.Passthrough, x.admit:
		return passed(now)
	}
	switch {
	case v.NoJoin:
		return x.refusal(now, anteroom.ReasonNotJoining)
	case !x.timed: // a place could not be told from others
		return anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: now, Method: s.QueueingMethod, Refresh: 2 * MinInterval}
	}
	t := anteroom.Ticket{ID: id, Arrival: x.came, Bind: v.Bind, Lane: v.Lane}
	if t.Arrival == 0 || t.Arrival > x.lastKey || void(s, t.Arrival) {
		x.lastKey = max(x.lastKey+1, or0(x.came, now), s.ResetAt)
		t.Arrival = x.lastKey
	}
	if why = or(why, anteroom.ReasonNone, anteroom.ReasonLine); hold != anteroom.ReasonNone {
		why = or(why, anteroom.ReasonLine, hold)
	}
	return x.page(now, t, why)
}

func (x *Doorway) page(now anteroom.Time, t anteroom.Ticket, why anteroom.Reason) anteroom.Decision {
	f, s := x.door.figures.Of(t.Lane), &x.door.settings
	rank := f.Rank(t.Arrival)
	if !x.figured { // nothing has been heard of the line
		rank = -1
	}
	d := waitFor(now, t, why, *s, f, rank, f.Waiting)
	if x.quiet(now) && d.Refresh > MinInterval && s.Refresh == 0 && Near(&d, s) {
		comeBack(&d, MinInterval, s.PlaceHold) // another door is perhaps in touch with the site
	}
	return d
}

// Near reports whether the turn of somebody who waits in line may come within StreamNear; not while nobody has a turn.
func Near(d *anteroom.Decision, s *anteroom.Settings) bool {
	return d.AheadKnown && !held(s) && s.NewUsersPerMinute > 0 && time.Duration(d.Ahead)*time.Minute/time.Duration(s.NewUsersPerMinute) < StreamNear
}

// waiting shows the page to somebody who has a place, and keeps it.
func (x *Doorway) waiting(now anteroom.Time, v anteroom.Visit) anteroom.Decision {
	s, t := &x.door.settings, v.Ticket
	if t.Bind == 0 {
		t.Bind = v.Bind
	}
	hold := holding(s)
	if hold == anteroom.ReasonNone && s.QueueingMethod == anteroom.Passthrough {
		return passed(now)
	}
	rejects := hold == anteroom.ReasonNone && s.QueueingMethod == anteroom.Reject
	unshuffled := unshuffled(&t, x.door.figures.Shuffled)
	// While this request waited for the site, another door has perhaps let the visitor in: the page must
	// not replace the cookie of the session.
	waited := x.came != 0
	if early(now, &t) || v.NoClaim || unshuffled || waited {
		d := x.page(now, t, anteroom.ReasonEarly)
		d.Ticket, d.SetCookie = t, false
		d.Refresh = max(time.Second, t.Next.Sub(now).Round(time.Second))
		d.KeptUntil = t.Next.Add(s.PlaceHold)
		if unshuffled { // only the site knows the place
			d.Ahead, d.AheadKnown, d.Refresh = 0, false, max(d.Refresh, 2*MinInterval)
		}
		if rejects {
			d = rejection(d)
		}
		return d
	}
	d := x.page(now, t, or(hold, anteroom.ReasonNone, anteroom.ReasonWaiting))
	if !apart(s, &v) {
		x.door.polls = append(x.door.polls, Poll{ID: t.ID, Key: t.Arrival, Lane: t.Lane, Due: d.Ticket.Next, Last: t.LastCheckIn})
		x.takePolls()
	}
	if rejects {
		d = rejection(d)
	}
	return d
}

// Look is the decision that a visitor who waits would see now, without being a check-in: for
// streams. ok is false when the ticket does not wait, as far as this door knows.
func (x *Doorway) Look(now anteroom.Time, t anteroom.Ticket) (d anteroom.Decision, ok bool) {
	s := &x.door.settings
	_, ended := x.gone.get(t.ID)
	if t.ID.IsZero() || t.Accepted() || ended || void(s, t.Arrival) || x.door.known.find(&t.ID) != 0 ||
		x.streams[t.ID] == nil && t.Next.Add(s.PlaceHold) < now {
		return anteroom.Decision{}, false
	}
	d = x.page(now, t, or(holding(s), anteroom.ReasonNone, anteroom.ReasonWaiting))
	if !held(s) && s.QueueingMethod == anteroom.Reject {
		d = rejection(d)
	}
	d.SetCookie = false
	if unshuffled(&t, x.door.figures.Shuffled) {
		d.Ahead, d.AheadKnown = 0, false
	}
	x.looked(now, &d)
	return d, true
}

// Standing grades a ticket, to choose among several that a client sent: 3 a session that this
// door knows, 2 one that there may be, 1 a place, 0 useless.
func (x *Doorway) Standing(now anteroom.Time, t anteroom.Ticket) int {
	s := &x.door.settings
	_, ended := x.gone.get(t.ID)
	end := t.LastCheckIn.Add(2 * s.SessionDuration)
	if s.DisableSessionRenewal {
		end = s.SessionEnd(t.AcceptedAt)
	}
	switch {
	case x.door.known.find(&t.ID) != 0 && !x.over:
		return 3
	case ended:
		return 0
	case t.Accepted() && now < end:
		return 2
	case t.Accepted(), t.Next.Add(s.PlaceHold) < now, void(s, t.Arrival):
		return 0
	}
	return 1
}
