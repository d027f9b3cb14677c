package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// What a door does whose site does not answer.
func TestDoorAlone(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	at := func(d time.Duration) anteroom.Time { return now.Add(d) }
	old, fresh := anteroom.ID{1}, anteroom.ID{2}
	place := anteroom.Ticket{ID: old, Arrival: at(-time.Minute), LastCheckIn: at(-20 * time.Second), Next: at(-time.Second), Refresh: 19 * time.Second, Bind: 3}
	session := anteroom.Ticket{ID: old, Arrival: at(-time.Minute), AcceptedAt: at(-50 * time.Second), LastCheckIn: at(-10 * time.Second)}
	with := func(t anteroom.Ticket, change func(*anteroom.Ticket)) anteroom.Visit {
		change(&t)
		return anteroom.Visit{Ticket: t, NewID: fresh}
	}
	same := func(*anteroom.Ticket) {}
	newcomer := anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: fresh}, NewID: fresh}
	for _, c := range []struct {
		name    string
		set     func(*anteroom.Settings)
		admit   bool
		before  func(x *Doorway)
		visit   anteroom.Visit
		verdict anteroom.Verdict
		reason  anteroom.Reason
		ticket  anteroom.ID // in the answer
		cookie  bool
	}{
		{name: "newcomer", visit: newcomer, reason: anteroom.ReasonLine, ticket: fresh, cookie: true},
		{name: "newcomer passes", admit: true, visit: newcomer, verdict: anteroom.Pass, reason: anteroom.ReasonPassthrough},
		{name: "newcomer is held", admit: true, set: func(s *anteroom.Settings) { s.QueueAll = true }, visit: newcomer, reason: anteroom.ReasonQueueAll, ticket: fresh, cookie: true},
		{name: "newcomer is refused", set: func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Reject }, visit: newcomer, verdict: anteroom.Refuse, reason: anteroom.ReasonReject},
		{name: "nobody new", admit: true, set: func(s *anteroom.Settings) { s.Draining = true }, visit: newcomer, verdict: anteroom.Refuse, reason: anteroom.ReasonDraining},
		{name: "everybody", set: func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Passthrough }, visit: newcomer, verdict: anteroom.Pass, reason: anteroom.ReasonPassthrough},
		{name: "sub-resource", visit: anteroom.Visit{Fresh: true, NoJoin: true, Ticket: anteroom.Ticket{ID: fresh}}, verdict: anteroom.Refuse, reason: anteroom.ReasonNotJoining},
		{name: "prefetch", visit: anteroom.Visit{Fresh: true, NoClaim: true, Ticket: anteroom.Ticket{ID: fresh}}, verdict: anteroom.Refuse, reason: anteroom.ReasonNotJoining},
		{name: "switched off", set: func(s *anteroom.Settings) { s.Suspended = true }, visit: newcomer, verdict: anteroom.Pass, reason: anteroom.ReasonSuspended},
		{name: "check-in", visit: with(place, same), reason: anteroom.ReasonWaiting, ticket: old, cookie: true},
		{name: "early", visit: with(place, func(t *anteroom.Ticket) { t.Next = at(time.Second) }), reason: anteroom.ReasonEarly, ticket: old},
		{name: "place lost", visit: with(place, func(t *anteroom.Ticket) { t.Next = at(-time.Hour) }), reason: anteroom.ReasonPlaceLost, ticket: fresh, cookie: true},
		{name: "line reset", set: func(s *anteroom.Settings) { s.ResetAt = at(-time.Second) }, visit: with(place, same), reason: anteroom.ReasonPlaceLost, ticket: fresh, cookie: true},
		{name: "somebody else's", visit: anteroom.Visit{Ticket: place, NewID: fresh, Bind: 4}, reason: anteroom.ReasonBound, ticket: fresh, cookie: true},
		{name: "waits and all are refused", set: func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Reject }, visit: with(place, same), verdict: anteroom.Refuse, reason: anteroom.ReasonReject},
		{name: "session by its cookie", visit: with(session, same), verdict: anteroom.Admit, reason: anteroom.ReasonSession, ticket: old},
		{name: "session that may be over", visit: with(session, func(t *anteroom.Ticket) { t.LastCheckIn = at(-time.Minute) }), reason: anteroom.ReasonFull},
		{name: "session that may be over passes", admit: true, visit: with(session, func(t *anteroom.Ticket) { t.LastCheckIn = at(-time.Minute) }), verdict: anteroom.Pass, reason: anteroom.ReasonPassthrough},
		{name: "session that is over", visit: with(session, func(t *anteroom.Ticket) { t.LastCheckIn = at(-time.Hour) }), reason: anteroom.ReasonSessionOver, ticket: fresh, cookie: true},
		{name: "session that the site has ended", before: func(x *Doorway) { x.Receive(now, ToDoor{Ended: []anteroom.ID{old}}) }, visit: with(session, same), reason: anteroom.ReasonFull},
		{name: "session that the operator has ended", before: func(x *Doorway) { x.Revoke(now, old) }, visit: with(session, same), reason: anteroom.ReasonFull},
		{name: "session of a clock ahead", visit: with(session, func(t *anteroom.Ticket) { t.LastCheckIn = at(time.Second) }), reason: anteroom.ReasonFull},
		{name: "without renewal", set: func(s *anteroom.Settings) { s.DisableSessionRenewal = true }, visit: with(session, func(t *anteroom.Ticket) { t.LastCheckIn = at(-50 * time.Second) }), verdict: anteroom.Admit, reason: anteroom.ReasonSession, ticket: old},
		{name: "without renewal, over", set: func(s *anteroom.Settings) { s.DisableSessionRenewal = true }, visit: with(session, func(t *anteroom.Ticket) { t.AcceptedAt = at(-time.Minute) }), reason: anteroom.ReasonSessionOver, ticket: fresh, cookie: true},
	} {
		s := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
		if c.set != nil {
			c.set(&s)
		}
		x := NewDoorway(1, s)
		x.OnFailure(c.admit)
		if c.before != nil {
			c.before(x)
		}
		// It asks and gets no answer; then it does not ask any more.
		d, held := x.Visit(now.Add(-CutAfter), newcomer)
		if (held != 0) == (d.Verdict == anteroom.Pass && d.Reason == anteroom.ReasonSuspended) {
			t.Fatalf("%s: the first request hears %v", c.name, d.Reason)
		}
		x.Take(now.Add(-CutAfter))
		for ago := CutAfter; ago >= 0; ago -= stopped / 2 {
			x.Tick(now.Add(-ago))
		}
		if a := x.TakeAnswers(now); held != 0 && (len(a) != 1 || a[0].Token != held) {
			t.Fatalf("%s: what was asked is answered %+v", c.name, a)
		}
		if held != 0 && x.Reachable(now) {
			t.Fatalf("%s: the site counts as reachable", c.name)
		}
		d, held = x.Visit(now, c.visit)
		if held != 0 || d.Verdict != c.verdict || d.Reason != c.reason || d.Ticket.ID != c.ticket || d.SetCookie != c.cookie || d.At != now {
			t.Errorf("%s: %v (%v), ticket %x, cookie %v, held %d", c.name, d.Verdict, d.Reason, d.Ticket.ID[0], d.SetCookie, held)
		}
		if d.Ticket.ID == old && d.Ticket.Arrival != c.visit.Ticket.Arrival {
			t.Errorf("%s: another place", c.name)
		}
	}
}

// What a door saw alone is told when the site is back, and the site is not overrun meanwhile.
func TestDoorTellsWhatItSawAlone(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1, hallSet)
	h.run(time.Second)
	in := h.get(0, h.newcomer())
	if in.Verdict != anteroom.Admit {
		t.Fatalf("the first hears %v", in.Reason)
	}
	h.doors[0].mute, h.doors[0].deaf = true, true
	sent := 0
	for range 7 {
		h.run(time.Second)
		h.get(0, anteroom.Visit{Ticket: in.Ticket, NewID: h.id()})
		sent += len(h.doors[0].sent.list)
	}
	if sent > 7*maxFlights {
		t.Errorf("%d messages", sent)
	}
	h.doors[0].mute, h.doors[0].deaf = false, false
	h.run(DoorBeat + time.Second)
	if s, ok := h.desk.Site().Session(in.Ticket.ID); !ok || h.now.Sub(s.LastSeen) > DoorBeat+time.Second {
		t.Errorf("the site has a session: %v, last seen %v ago", ok, h.now.Sub(s.LastSeen))
	}
	if !h.doors[0].Reachable(h.now) || h.doors[0].unconfirmed() {
		t.Error("the door has not heard that the site is back")
	}
}
