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
		{name: "line reset by a clock ahead", set: func(s *anteroom.Settings) { s.ResetAt = at(time.Second) }, visit: newcomer, reason: anteroom.ReasonLine, ticket: fresh, cookie: true},
		{name: "somebody else's", visit: anteroom.Visit{Ticket: place, NewID: fresh, Bind: 4}, reason: anteroom.ReasonBound, ticket: fresh, cookie: true},
		{name: "waits and all are refused", set: func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Reject }, visit: with(place, same), verdict: anteroom.Refuse, reason: anteroom.ReasonReject, ticket: old, cookie: true},
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
		d, held := x.Visit(now.Add(-takeOver), newcomer)
		if (held != 0) == (d.Verdict == anteroom.Pass && d.Reason == anteroom.ReasonSuspended) {
			t.Fatalf("%s: the first request hears %v", c.name, d.Reason)
		}
		// The site was there: it has heard of the door and said what time it is.
		if m, ok := x.Take(now.Add(-takeOver)); ok {
			x.Receive(now.Add(-takeOver), ToDoor{Confirmed: m.Batch, Now: m.Sent, Echo: m.Sent})
			x.Take(now.Add(-takeOver + askAgain))
		}
		for ago := takeOver; ago >= 0; ago -= stopped / 2 {
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
		if d.Ticket.ID == fresh && void(&s, d.Ticket.Arrival) {
			t.Errorf("%s: a place that is void", c.name)
		}
	}
}

// While a request waits for a site that does not answer, another door may let the visitor in. The page
// that it gets at last leaves the cookie as it is, and the next one keeps the place.
func TestPageAfterAWaitReplacesNoCookie(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	id := anteroom.ID{1}
	for _, c := range []struct {
		name   string
		ticket anteroom.Ticket
		waited bool // the first page is an answer that was waited for
		cookie [2]bool
	}{
		{"place", anteroom.Ticket{ID: id, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-20 * time.Second), Next: now}, true, [2]bool{false, true}},
		{"newcomer", anteroom.Ticket{ID: id}, true, [2]bool{true, true}},
		{"place, and the site is known to be silent", anteroom.Ticket{ID: id, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-20 * time.Second), Next: now}, false, [2]bool{true, true}},
	} {
		x, at := NewDoorway(1, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}), now
		x.ticked, x.timed = at, true
		if !c.waited {
			x.silence = at.Add(-cutAfter)
		}
		ticket := c.ticket
		for i, want := range c.cookie {
			d, held := x.Visit(at, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{2}, Fresh: ticket.Arrival == 0})
			if x.Take(at); (held != 0) != (c.waited && i == 0) {
				t.Fatalf("%s: page %d is waited for: %v", c.name, i, held != 0)
			}
			for end := at.Add(askFor); held != 0 && at < end; {
				at = at.Add(100 * time.Millisecond)
				x.Tick(at)
			}
			for _, a := range x.TakeAnswers(at) {
				d = a.Decision
			}
			if d.Verdict != anteroom.Wait || d.SetCookie != want || d.Ticket.ID != id || at.Add(d.Refresh) > d.KeptUntil {
				t.Errorf("%s: page %d: %v (%v), cookie %v, back in %v, kept for %v", c.name, i, d.Verdict, d.Reason, d.SetCookie, d.Refresh, d.KeptUntil.Sub(at))
			}
			if at = at.Add(d.Refresh); d.SetCookie {
				ticket = d.Ticket
			}
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
	h.run(doorBeat + time.Second)
	if s, ok := h.desk.Site().Session(in.Ticket.ID); !ok || h.now.Sub(s.LastSeen) > doorBeat+time.Second {
		t.Errorf("the site has a session: %v, last seen %v ago", ok, h.now.Sub(s.LastSeen))
	}
	if !h.doors[0].Reachable(h.now) || h.doors[0].unconfirmed() {
		t.Error("the door has not heard that the site is back")
	}
}

// While the site is silent, whoever has a session for certain does not wait for it, and whoever may
// have one waits as long as a change of the site's process may take.
func TestDoorOfASilentSite(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: 10 * time.Second}
	const now = anteroom.Time(1_800_000_000_000_000)
	session := func(seen time.Duration) anteroom.Visit {
		return anteroom.Visit{NewID: anteroom.ID{9}, Ticket: anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Hour), AcceptedAt: now.Add(-time.Minute), LastCheckIn: now.Add(-seen)}}
	}
	for _, c := range []struct {
		name    string
		asked   time.Duration // after the site was spoken to first
		seen    time.Duration // the cookie's moment, before now
		waits   time.Duration // 0: the answer is there at once
		verdict anteroom.Verdict
	}{
		{"it is not known yet", 0, 3 * time.Second, askAgain, anteroom.Admit},
		{"it is silent for a moment", time.Second, 3 * time.Second, 100 * time.Millisecond, anteroom.Admit},
		{"it is out of reach", cutAfter, 3 * time.Second, 0, anteroom.Admit},
		{"the session ends while it is silent", 0, 10*time.Second + 50*time.Millisecond - askAgain, 10*time.Second + askAgain, anteroom.Wait},
		{"there may be a session", cutAfter, 15 * time.Second, 5 * time.Second, anteroom.Wait},
		{"another goes on as the site, or none", cutAfter, 11 * time.Second, takeOver - cutAfter, anteroom.Wait},
		{"there can be none", cutAfter, 20 * time.Second, 0, anteroom.Wait},
		{"it does not come back", takeOver, 15 * time.Second, 0, anteroom.Wait},
	} {
		x := NewDoorway(1, set)
		at := now.Add(-c.asked)
		x.ticked, x.timed, x.heardBy = at, true, at // it has been in touch
		x.Visit(at, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{2}}, NewID: anteroom.ID{2}})
		x.Take(at)
		for ; at < now; at = at.Add(100 * time.Millisecond) {
			x.Tick(at)
		}
		x.TakeAnswers(now)
		d, held := x.Visit(now, session(c.seen))
		waited := time.Duration(0)
		for held != 0 && waited < 2*takeOver {
			waited += 100 * time.Millisecond
			x.Take(now.Add(waited))
			x.Tick(now.Add(waited))
			for _, a := range x.TakeAnswers(now) {
				if a.Token == held {
					d, held = a.Decision, 0
				}
			}
		}
		if held != 0 || waited != c.waits || d.Verdict != c.verdict {
			t.Errorf("%s: %v (%v) after %v, want %v after %v", c.name, d.Verdict, d.Reason, waited, c.verdict, c.waits)
		}
	}
}

// A door does not know whether its site hears it: one that does ends a session at its time, unless it
// hears of a request before that.
func TestDoorLetsNobodyInAtTheEndOfASession(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	id, set := anteroom.ID{1}, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
	for _, unheard := range []time.Duration{time.Second, cutAfter, 5 * time.Second, 20 * time.Second} {
		for left, want := range map[time.Duration]bool{2 * speaksBy: true, speaksBy + time.Millisecond: true, speaksBy: false, time.Millisecond: false} {
			seen := now.Add(left - time.Minute)
			for name, knows := range map[string]bool{"known": true, "by its cookie": false} {
				x := NewDoorway(1, set)
				x.ticked, x.timed, x.heardBy, x.silence = now, true, now.Add(-unheard), now.Add(-unheard)
				if knows {
					x.door.Learn(seen, id, seen)
				}
				d, held := x.Visit(now, anteroom.Visit{Ticket: anteroom.Ticket{ID: id, AcceptedAt: seen, LastCheckIn: seen}, NewID: anteroom.ID{2}})
				x.Tick(now)
				for _, a := range x.TakeAnswers(now) {
					d, held = a.Decision, 0
				}
				if in := held == 0 && d.Verdict == anteroom.Admit; in != want {
					t.Errorf("%s, the door has heard nothing for %v, and %v are left: let in %v", name, unheard, left, in)
				}
			}
		}
	}
}

// A door that has heard nothing of the line shows no place, and what was told stays the bound.
func TestDoorWithoutFiguresShowsNoPlace(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	x := NewDoorway(1, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60})
	place := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-time.Second), Next: now.Add(time.Second), Told: 100}
	d, ok := x.Look(now, place)
	if !ok || d.AheadKnown || d.WaitKnown || d.Ticket.Told != 100 || d.Refresh < 2*MinInterval {
		t.Errorf("before it has heard figures: %+v", d)
	}
	f := Figures{At: now, Number: 1, Waiting: 200, Known: true, Step: baseStep, Seconds: []SecondCount{{Second: int64(place.Arrival) / 1e6, Before: 150, Count: 50}}}
	x.Receive(now, ToDoor{Site: hereKey, Mode: Queue, Figures: &f, Now: now})
	if d, ok = x.Look(now, place); !ok || !d.AheadKnown || d.Ahead != 99 {
		t.Errorf("with figures: %d ahead, %v", d.Ahead, d.AheadKnown)
	}
}

// A site that was taken over knows its line before it has heard the coordinator, and not who of
// other sites is ahead: it shows no places and gives its doors no figures until then.
func TestRestoredSiteShowsNoPlaceBeforeTheCoordinator(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60}
	s := NewSite(midnight, hereKey, set)
	id := anteroom.ID{1}
	s.Restore(Event{Kind: EventJoined, ID: id, At: midnight, Key: midnight}, 0, 0)
	s.Restored(midnight)
	x := NewDesk(s)
	look := func() anteroom.Decision {
		d, ok := s.Look(midnight, anteroom.Ticket{ID: id, Arrival: midnight, Told: 8})
		if !ok {
			t.Fatal("the place is lost")
		}
		return d
	}
	told := func(batch uint64) (f *Figures) {
		x.Receive(midnight, FromDoor{Door: 1, Batch: batch, Sent: midnight})
		for _, o := range x.Take(midnight) {
			if o.Message.Figures != nil {
				f = o.Message.Figures
			}
		}
		return f
	}
	if d := look(); d.AheadKnown || d.Ticket.Told != 8 || told(1) != nil {
		t.Errorf("before the coordinator was heard: %d ahead, told %d", d.Ahead, d.Ticket.Told)
	}
	f := &Figures{At: midnight, Number: 1, Waiting: 6, Known: true, Step: baseStep, Seconds: []SecondCount{{Second: int64(midnight) / 1e6, Before: 5, Count: 1}}}
	s.Receive(midnight, State{Epoch: 1, Now: midnight, Mode: Queue, Figures: f})
	if d := look(); !d.AheadKnown || d.Ahead != 5 || told(2) != f {
		t.Errorf("after: %d ahead", d.Ahead)
	}
}

// A short session's cookie is renewed by the site when no door knows a late moment, so that any
// door alone believes it for most of the session; a long one seldom.
func TestCookieOutlastsAChangeOfTheSite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ long, left time.Duration }{{10 * time.Second, 8 * time.Second}, {30 * time.Second, 18 * time.Second}, {time.Minute, 28 * time.Second}} {
		set := hallSet
		set.SessionDuration = c.long
		h := newHall(t, 3, set)
		h.run(time.Second)
		in := h.get(0, h.newcomer())
		if in.Verdict != anteroom.Admit {
			t.Fatalf("the first hears %v", in.Reason)
		}
		cookies := 0
		for i := range 60 {
			d := h.get((i+1)%3, anteroom.Visit{Ticket: in.Ticket, NewID: h.id()}) // a second passes
			if d.Verdict != anteroom.Admit {
				t.Fatalf("%v: request %d hears %v", c.long, i, d.Reason)
			}
			if d.SetCookie {
				in, cookies = d, cookies+1
			}
			if left := in.Ticket.LastCheckIn.Add(c.long).Sub(h.now); left < c.left {
				t.Errorf("%v: after request %d a door alone believes the cookie for %v", c.long, i, left)
			}
		}
		if most := int(time.Minute/renewAfter(c.long)) + 1; cookies > most {
			t.Errorf("%v: %d cookies in a minute, want at most %d", c.long, cookies, most)
		}
	}
}

// A door that takes its time from a wall clock which is ahead asks again, and gives up, when the
// site's first answer has set it back.
func TestDoorWhoseClockIsSetBack(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	ahead := now.Add(24 * time.Hour)
	x := NewDoorway(1, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10})
	_, held := x.Visit(ahead, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{1}}, NewID: anteroom.ID{1}})
	if held == 0 {
		t.Fatal("the site is not asked")
	}
	x.Tick(ahead)
	x.Take(ahead) // lost
	x.ClockSet(now.Sub(ahead))
	asked := 0
	for at := now; at < now.Add(2*askFor); at = at.Add(100 * time.Millisecond) {
		x.Tick(at)
		for {
			m, ok := x.Take(at)
			if !ok {
				break
			}
			asked += len(m.Visits)
		}
	}
	if a := x.TakeAnswers(now.Add(2 * askFor)); asked == 0 || len(a) != 1 {
		t.Errorf("asked %d times again, %d answers", asked, len(a))
	}
}

// Whoever takes a site over knows of each session when it was seen last but for sureFor and
// TouchSlack: no longer than sureFor after what the site has confirmed is a session let in alone.
func TestDoorAsksAboutSessionsThatItIsNotSureOf(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	x := NewDoorway(1, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: 5 * time.Minute})
	id := anteroom.ID{1}
	x.door.Learn(now, id, now)
	sure := sureFor(5 * time.Minute)
	visit := func(after time.Duration) uint64 {
		_, held := x.Visit(now.Add(after), anteroom.Visit{Ticket: anteroom.Ticket{ID: id, AcceptedAt: now, LastCheckIn: now}})
		return held
	}
	if visit(sure) != 0 {
		t.Error("it asks although it is sure")
	}
	if visit(sure+time.Microsecond) == 0 {
		t.Error("it does not ask")
	}
	m, _ := x.Take(now.Add(sure)) // with the touch of before
	x.Receive(now.Add(sure+time.Millisecond), ToDoor{Site: SiteKey{Name: "a", Incarnation: 1}, Confirmed: m.Batch})
	if visit(2*sure) != 0 {
		t.Error("it asks although the site has confirmed a touch since")
	}
}

// A stream that opens while the answers of a silent site come in, one by one, is told to the site: not only
// those that were open at the first of them.
func TestStreamThatOpensWhenTheSiteIsJustBack(t *testing.T) {
	t.Parallel()
	x := NewDoorway(1, hallSet)
	now := midnight
	x.timed = true
	visit := func(id byte, stream bool) anteroom.Decision {
		v := anteroom.Visit{Fresh: !stream, Ticket: anteroom.Ticket{ID: anteroom.ID{id}, Next: now.Add(time.Minute), Arrival: now}, NewID: anteroom.ID{id}, Stream: stream}
		d, _ := x.Visit(now, v)
		return d
	}
	visit(1, false)
	first, ok := x.Take(now)
	now = now.Add(doorBeat)
	x.Tick(now)
	second, again := x.Take(now)
	if !ok || !again || first.Batch == second.Batch {
		t.Fatal("the door has not spoken twice")
	}
	now = now.Add(cutAfter + time.Second)
	x.Tick(now)
	confirm := func(batch uint64) { x.Receive(now, ToDoor{Site: hereKey, Since: 1, Now: now, Confirmed: batch}) }
	confirm(first.Batch)
	if d := visit(2, true); d.Verdict != anteroom.Wait {
		t.Fatalf("not shown the page: %+v", d)
	}
	confirm(second.Batch)
	m, _ := x.Take(now)
	for _, a := range m.Visits {
		if a.Visit.Stream && a.Visit.Ticket.ID == (anteroom.ID{2}) {
			return
		}
	}
	t.Errorf("the site does not hear of the stream, but of %d requests", len(m.Visits))
}

// Whose turn may come soon is told to come back soon by a door that does not hear its site: another door perhaps does.
func TestDoorWithoutItsSiteSendsNobodyNearTheFrontAway(t *testing.T) {
	t.Parallel()
	const now = anteroom.Time(1_800_000_000_000_000)
	for _, c := range []struct {
		name   string
		ahead  uint32
		silent bool
		long   bool
	}{{"in touch", 15, false, true}, {"near the front", 15, true, false}, {"far from the front", 30, true, true}} {
		x := NewDoorway(1, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, PlaceHold: time.Minute})
		f := Figures{At: now, Number: 1, Waiting: 200, Known: true, Step: baseStep, Released: 1000, Seconds: []SecondCount{{Second: int64(now)/1e6 - 60, Before: c.ahead, Count: 1}}}
		x.Receive(now, ToDoor{Site: hereKey, Mode: Queue, Figures: &f, Now: now})
		if c.silent {
			x.silence = now.Add(-askAgain)
		}
		d := x.page(now, anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Minute)}, anteroom.ReasonWaiting)
		if d.Ahead != int(c.ahead) || (d.Refresh > MinInterval) != c.long || d.Ticket.Next != now.Add(d.Refresh) {
			t.Errorf("%s: %d ahead, back in %v", c.name, d.Ahead, d.Refresh)
		}
	}
}

// A door tells most of those who wait their place itself. Whoever checked in before the site let in others than those whose turn it
// was may be inside, and have lost the answer that said so: the site is asked.
func TestADoorAsksAboutThoseWhoMayBeInside(t *testing.T) {
	now := midnight
	x := NewDoorway(7, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, PlaceHold: time.Minute, QueueingMethod: anteroom.FIFO})
	figures := &Figures{At: now, Number: 1, Waiting: 200, Known: true, Step: baseStep, Front: now.Add(-time.Minute), Seconds: []SecondCount{{Second: int64(now) / 1e6, Before: 150, Count: 1}}}
	site := SiteKey{Name: "a", Incarnation: 1}
	hears := func(m Mode) {
		now = now.Add(time.Second)
		x.Receive(now, ToDoor{Site: site, Now: now, Mode: m, Figures: figures})
	}
	asks := func(last anteroom.Time) bool {
		_, held := x.Visit(now, anteroom.Visit{Ticket: anteroom.Ticket{ID: anteroom.ID{1}, Arrival: midnight, LastCheckIn: last, Next: now}, NewID: anteroom.ID{2}})
		return held != 0
	}
	hears(Queue)
	before := now
	if asks(before) {
		t.Error("the site is asked about somebody far back in line")
	}
	hears(Cut)
	hears(Queue)
	if !asks(before) {
		t.Error("the site is not asked about somebody who checked in before it was cut off")
	}
	if asks(now) {
		t.Error("the site is asked about somebody who has checked in since")
	}
}
