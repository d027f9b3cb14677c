package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// doorEvent is the record of a door.
func doorEvent(number byte, at anteroom.Time) Event {
	return Event{Kind: EventDoor, ID: anteroom.ID{7: number, 15: number}, At: at}
}

// taken is a site that begins from its journal, and hears the coordinator at a moment.
func taken(set anteroom.Settings, recorded, now anteroom.Time, events ...Event) *Desk {
	x := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: set, Events: events}.Desk(recorded)
	s := x.Site()
	s.Tick(recorded)
	s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{9, 9}, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
	return x
}

func (x *Desk) pass(from anteroom.Time, long time.Duration) {
	for at := from; at <= from.Add(long); at = at.Add(flushEvery) {
		x.Tick(at)
	}
}

// A restored site does not know how late it is until it hears the coordinator. What its journal
// says is over ends at once; the rest when the doors have told whom they have let in since.
func TestRestoredSiteLearnsTheTime(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	past, over, told := anteroom.ID{1}, anteroom.ID{2}, anteroom.ID{4}
	recorded := midnight.Add(4 * time.Minute)
	now := recorded.Add(80 * time.Second)
	x := taken(set, recorded, now, Event{Kind: EventAdmitted, ID: past, At: midnight},
		Event{Kind: EventAdmitted, ID: over, At: recorded}, Event{Kind: EventAdmitted, ID: told, At: recorded}, doorEvent(3, recorded))
	x.pass(now, time.Second)
	for id, want := range map[anteroom.ID]bool{past: false, over: true, told: true} {
		if _, here := x.Site().Session(id); here != want {
			t.Errorf("before the door has spoken session %v is here: %v", id[0], here)
		}
	}
	heard := now.Add(2 * time.Second)
	x.Receive(heard, FromDoor{Door: 3, Node: 3, Batch: 1, Sent: heard, Known: heard, Touches: []anteroom.ID{told}})
	x.pass(heard, time.Second)
	for id, want := range map[anteroom.ID]bool{over: false, told: true} {
		if _, here := x.Site().Session(id); here != want {
			t.Errorf("after the door has spoken session %v is here: %v", id[0], here)
		}
	}
}

// A door that is silent may have let sessions in: they last until that is ruled out, and no longer.
func TestSilentDoorHoldsSessions(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	alone, length := AloneFor(time.Minute), time.Minute
	for _, c := range []struct {
		name  string
		after func(x *Desk, at anteroom.Time) // what is heard ten seconds after the session has lapsed
		lasts time.Duration                   // from the last word of the door
	}{
		{name: "for ever", lasts: alone + length},
		{name: "another process speaks for the node", lasts: length + 10*time.Second + length,
			after: func(x *Desk, at anteroom.Time) {
				x.Receive(at, FromDoor{Door: 9, Node: 3, Batch: 1, Sent: at, Known: at, Empty: true})
			}},
		{name: "it speaks again", lasts: length + 12*time.Second,
			after: func(x *Desk, at anteroom.Time) {
				x.Receive(at, FromDoor{Door: 3, Node: 3, Batch: 2, Sent: at, Known: at})
			}},
		{name: "what it says is old", lasts: alone + length,
			after: func(x *Desk, at anteroom.Time) {
				x.Receive(at, FromDoor{Door: 3, Node: 3, Batch: 2, Sent: midnight, Known: midnight})
			}},
	} {
		id, now := anteroom.ID{1}, midnight
		x := taken(set, now, now, Event{Kind: EventAdmitted, ID: id, At: midnight.Add(-TouchSlack(length))})
		x.Receive(now, FromDoor{Door: 3, Node: 3, Batch: 1, Sent: now, Known: now})
		ended := anteroom.Time(0)
		for at := now; at < now.Add(4*length) && ended == 0; at = at.Add(flushEvery) {
			x.Tick(at)
			if at == now.Add(length+10*time.Second) && c.after != nil {
				c.after(x, at)
			}
			if _, here := x.Site().Session(id); !here {
				ended = at
			}
		}
		least := min(c.lasts, alone+length)
		if got := ended.Sub(midnight); ended == 0 || got < min(least, length+10*time.Second) || got > least+2*time.Second {
			t.Errorf("%s: the session ends after %v, at most %v are right", c.name, got, least)
		}
	}
}

// A session that is seen all the time is recorded, too: what is restored is never behind the
// last request.
func TestRestoredSessionIsNotBehind(t *testing.T) {
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: 2 * time.Minute}
	w := newTrial(t, set)
	v := w.arrive()
	events := w.room.site.TakeEvents()
	for d := time.Duration(0); d < 5*time.Minute; d += 3 * time.Second {
		last := w.now.Add(d)
		touchAll(w.room.site, last, v.ticket.ID)
		events = append(events, w.room.site.TakeEvents()...)
		again := NewSite(last, SiteKey{Name: "a", Incarnation: 1}, set)
		again.Restore(Event{Kind: EventAdmitted, ID: v.ticket.ID, At: w.now}, 0, TouchSlack(set.SessionDuration))
		for _, e := range events {
			again.Restore(e, 0, TouchSlack(set.SessionDuration))
		}
		if got, here := again.Session(v.ticket.ID); !here || got.LastSeen < last {
			t.Fatalf("seen last after %v, restored as %+v", d, got)
		}
	}
	if n := len(events); n > 5*60/(120/16)+2 {
		t.Errorf("%d records", n)
	}
}

// The first word of the coordinator sets the clock of a site that begins from its journal. What was
// noted by the clock as it was moves along; time in which nobody was here is no step.
func TestClockSet(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	old, session, fresh, roamed := anteroom.ID{1}, anteroom.ID{2}, anteroom.ID{3}, anteroom.ID{4}
	for _, c := range []struct {
		name    string
		step    time.Duration
		guessed bool
		idle    time.Duration // between the restart and the visit
		lasts   time.Duration // the restored session, from its record on
	}{
		{name: "it was right", idle: 7 * time.Second, lasts: time.Minute},
		{name: "it was late", step: 5 * time.Second, lasts: time.Minute},
		{name: "it was late, or no time has passed", step: 5 * time.Second, guessed: true, lasts: time.Minute + 5*time.Second},
		{name: "it was early", step: -time.Second, guessed: true, idle: 2 * time.Second, lasts: time.Minute},
	} {
		recorded := midnight.Add(time.Minute)
		x := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: set, Events: []Event{
			{Kind: EventJoined, ID: old, At: recorded, Key: midnight}, {Kind: EventAdmitted, ID: session, At: recorded.Add(-TouchSlack(time.Minute))},
		}}.Desk(recorded)
		s := x.Site()
		came := recorded.Add(c.idle + time.Millisecond)
		s.takePlace(came, anteroom.Visit{NewID: fresh}, anteroom.Ticket{ID: fresh, Arrival: s.newKey(came)})
		elsewhere := came.Add(c.step - 1) // by the clock of another site
		s.takePlace(came, anteroom.Visit{}, anteroom.Ticket{ID: roamed, Arrival: elsewhere, LastCheckIn: elsewhere, Next: elsewhere})
		now := came.Add(c.step)
		x.ClockSet(now, c.step)
		s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{9, 9}, Mode: Queue, Guessed: c.guessed, Figures: &Figures{At: now, Step: baseStep}})
		if got := s.here.at(s.here.find(&old)).key; got != midnight {
			t.Errorf("%s: a place of before has moved by %v", c.name, got.Sub(midnight))
		}
		if got := s.here.at(s.here.find(&roamed)).key; got != elsewhere {
			t.Errorf("%s: a place that another site gave has moved by %v", c.name, got.Sub(elsewhere))
		}
		if got := s.here.at(s.here.find(&fresh)).key; got != now {
			t.Errorf("%s: the place of a visitor who has just come is %v off", c.name, got.Sub(now))
		}
		ends := recorded.Add(c.lasts + TouchDelay)
		x.Tick(ends - 1)
		if _, here := s.Session(session); !here {
			t.Errorf("%s: the session has ended before %v", c.name, c.lasts)
		}
		x.Tick(ends)
		if _, here := s.Session(session); here {
			t.Errorf("%s: the session lasts longer than %v", c.name, c.lasts)
		}
	}
}

// Doors tell a process that has just begun who comes back when, each what it said last. Whoever has
// gone from door to door comes when the latest of them said, whichever is heard first.
func TestDoorsTellWhoComesBack(t *testing.T) {
	t.Parallel()
	id, recorded := anteroom.ID{1}, midnight.Add(time.Minute)
	older := Poll{ID: id, Key: midnight, Due: recorded.Add(time.Second), Last: recorded.Add(-4 * time.Second)}
	newer := Poll{ID: id, Key: midnight, Due: recorded.Add(5 * time.Second), Last: recorded.Add(2 * time.Second)}
	for _, said := range [][]Poll{{older, newer}, {newer, older}} {
		x := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60},
			Events: []Event{{Kind: EventJoined, ID: id, At: recorded, Key: midnight}}}.Desk(recorded)
		s := x.Site()
		restored := s.here.at(s.here.find(&id)).due
		for i := range said {
			x.Receive(recorded.Add(3*time.Second), FromDoor{Door: uint64(i + 1), Node: uint64(i + 1), Batch: 1, Polls: said[i : i+1]})
			if w := s.here.at(s.here.find(&id)); i == 0 && said[0] == older && w.flags&hereUnheard == 0 {
				t.Error("a visitor who is late at one door counts as gone before the others have spoken")
			}
		}
		if got := s.here.at(s.here.find(&id)).due; got != newer.Due || got >= restored {
			t.Errorf("after %v is due in %v; %v was a guess", said, got.Sub(recorded), restored.Sub(recorded))
		}
		if s.here.at(s.here.find(&id)).flags&hereUnheard != 0 {
			t.Errorf("after %v nobody knows who is here", said)
		}
	}
}

// A place that the site has not asked about is one for the next process too: the visitor may have
// entered at another site meanwhile, and must not get a turn here as well.
func TestRestoredPlaceIsAskedAbout(t *testing.T) {
	t.Parallel()
	id, set := anteroom.ID{1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60}
	state := State{Epoch: 1, Sites: 2, Granted: Units{5, 5}, Mode: Queue, Figures: &Figures{At: midnight, Step: baseStep}}
	cookie := anteroom.Ticket{ID: id, Arrival: midnight, LastCheckIn: midnight, Next: midnight.Add(time.Second)}
	for _, c := range []struct {
		name  string
		comes func(s *Site, now anteroom.Time)
		asks  bool
	}{
		{"a door tells of a check-in", func(s *Site, now anteroom.Time) {
			s.Polls(now, []Poll{{ID: id, Key: midnight, Due: now.Add(time.Minute)}})
		}, true},
		{"the site is cut off", func(s *Site, now anteroom.Time) {
			s.enterCut(now)
			s.Visit(now, anteroom.Visit{Ticket: cookie, NewID: anteroom.ID{2}})
		}, true},
		{"the visitor is new", func(s *Site, now anteroom.Time) {
			s.Visit(now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
		}, false},
	} {
		now, events := midnight.Add(time.Second), []Event(nil)
		for term := range uint64(3) {
			s := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: term + 1, Settings: set, Events: events}.Desk(now).Site()
			s.Receive(now, state)
			if term == 0 {
				c.comes(s, now)
			}
			events = append(events, s.TakeEvents()...)
			s.Receive(now, state) // the cut is over
			if asks := s.elsewhere(now, cookie); s.here.find(&id) == 0 || asks != c.asks || s.mayClaim(s.here.find(&id)) == c.asks {
				t.Errorf("%s, process %d: the place is asked about: %v", c.name, term+1, asks)
			}
		}
	}
}

// A visitor who waited here has gone to another site and entered there, and the process ended before
// that was on record. The session is asked about although the place seems to be here.
func TestRestoredPlaceHidesNoSession(t *testing.T) {
	t.Parallel()
	id, recorded := anteroom.ID{1}, midnight.Add(time.Minute)
	now := recorded.Add(2 * time.Second)
	s := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60},
		Events: []Event{{Kind: EventJoined, ID: id, At: midnight, Key: midnight}}}.Desk(recorded).Site()
	s.Receive(now, State{Epoch: 1, Now: now, Sites: 2, Granted: Units{5, 5}, Mode: Open, Target: 5, Figures: &Figures{At: now, Step: baseStep}})
	session := anteroom.Ticket{ID: id, Arrival: midnight, AcceptedAt: recorded, LastCheckIn: recorded, Home: homeOf("b")}
	if d, held := s.Visit(now.Add(time.Second), anteroom.Visit{Ticket: session, NewID: anteroom.ID{2}}); held == 0 {
		t.Errorf("the session is not asked about: %v %v", d.Verdict, d.Reason)
	}
	if waits := (anteroom.Ticket{ID: id, Arrival: midnight, LastCheckIn: recorded, Next: now}); s.elsewhere(now.Add(time.Second), waits) {
		t.Error("a place that is here is asked about")
	}
}

// Doors outlive the coordinator and the process of the site: what they know of the room time is known.
func TestDoorsKnowTheTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known time.Duration // of the door, by the site's clock; 0 says that it was never told
		timed bool
	}{
		"never told":                       {},
		"as the site":                      {known: -time.Millisecond, timed: true},
		"the site's clock was wrong":       {known: -time.Minute},
		"it was told, and waited for long": {known: -TouchDelay - time.Microsecond},
	} {
		s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
		m := FromDoor{Door: 1, Node: 1, Batch: 1}
		if c.known != 0 {
			m.Known = midnight.Add(c.known)
		}
		NewDesk(s).Receive(midnight, m)
		if r, ok := s.Report(midnight); !ok || r.Timed != c.timed {
			t.Errorf("%s: the site says that it knows the time: %v", name, r.Timed)
		}
	}
}

// What a process records before it knows the time is of a clock that may be behind: the next process counts
// those touches as of the moment at which it knows the time.
func TestTouchOfAProcessThatDidNotKnowTheTime(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	recorded, id := midnight.Add(4*time.Minute), anteroom.ID{1}
	first := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: set, Events: []Event{{Kind: EventAdmitted, ID: id, At: recorded}}}.Desk(recorded)
	first.Site().Touch(recorded.Add(30*time.Second), recorded.Add(30*time.Second), id) // 17 s later than that, in truth
	events := append([]Event{{Kind: EventAdmitted, ID: id, At: recorded}}, first.Site().TakeEvents()...)
	now := recorded.Add(60 * time.Second)
	x := taken(set, recorded.Add(31*time.Second), now, events...)
	x.pass(now, 47*time.Second)
	if _, here := x.Site().Session(id); !here {
		t.Error("the session is over a minute after it was seen by a clock that was behind")
	}
}

// A site begins by the time of its last record, which is long ago, and a visitor comes to a door that knows no better. Then another door
// says what time it is: the visitor has come only just now, and after those who came to that door meanwhile.
func TestANewcomerIsNotDatedByAGuess(t *testing.T) {
	t.Parallel()
	recorded := midnight.Add(time.Minute)
	early, cut, roamed := anteroom.ID{1}, anteroom.ID{2}, anteroom.ID{3}
	x := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60},
		Events: []Event{doorEvent(1, recorded)}}.Desk(recorded)
	s := x.Site()
	came := recorded.Add(time.Second)
	x.Receive(came, FromDoor{Door: 1, Batch: 1, Visits: []Asked{{Token: 1, Visit: anteroom.Visit{NewID: early}}}})
	s.takePlace(came, anteroom.Visit{NewID: cut}, anteroom.Ticket{ID: cut, Arrival: s.newKey(came)})
	const step, more = 20 * time.Second, 3 * time.Millisecond
	s.takePlace(came, anteroom.Visit{}, anteroom.Ticket{ID: roamed, Arrival: came.Add(step / 2), LastCheckIn: came, Next: came})
	x.ClockGuessed(came.Add(step), step)
	now := came.Add(step + more)
	x.ClockSet(now, more)
	s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
	x.Receive(now, FromDoor{Door: 1, Batch: 2, Known: now, Told: 7})
	for name, id := range map[string]*anteroom.ID{"is decided about later": &early, "had a place": &cut} {
		slot := s.here.find(id)
		if slot == 0 {
			t.Fatalf("who %s has no place", name)
		}
		if got := s.here.at(slot).key; got != now {
			t.Errorf("who %s has come %v ago, and did just now", name, now.Sub(got))
		}
	}
	if got := s.here.at(s.here.find(&roamed)).key; got != came.Add(step/2) {
		t.Errorf("a place that another process gave has moved by %v", got.Sub(came.Add(step/2)))
	}
}

// A site that has just begun tells the coordinator as soon as each door on record has told it who is here, before it knows the
// time, and waits for none that is gone.
func TestASiteWaitsForTheDoorsThatAreThere(t *testing.T) {
	t.Parallel()
	recorded := midnight.Add(time.Minute)
	x := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60},
		Events: []Event{doorEvent(1, recorded), doorEvent(2, recorded)}}.Desk(recorded)
	s := x.Site()
	now := recorded.Add(10 * time.Millisecond)
	s.Report(now)
	x.Receive(now, FromDoor{Door: 1, Node: 1, Batch: 1, Known: now, Told: 7})
	if r, ok := s.Report(now); ok && r.Gathered {
		t.Error("the site says that all doors have told it, and one has not")
	}
	x.Gone(now, 2)
	if r, ok := s.Report(now); !ok || !r.Gathered {
		t.Errorf("the site does not say at once that all doors that are there have told it: %v, %v", ok, r.Gathered)
	}
	if !slices.Equal(slices.Sorted(s.Doors()), []uint64{1, 2}) {
		t.Errorf("on record are the doors %v", slices.Collect(s.Doors()))
	}
}

// A process that ended while nothing could be recorded leaves records that say of every session that it is over. Whoever has used one
// since keeps it, and the seat.
func TestSessionsThatNobodyCouldRecordFor(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, SessionDuration: time.Minute, FirstSession: time.Minute}
	id, past := anteroom.ID{1}, anteroom.ID{2}
	recorded := midnight.Add(10 * time.Minute)
	now := recorded.Add(10 * time.Minute)
	events := []Event{{Kind: EventAdmitted, ID: past, At: midnight}, {Kind: EventAdmitted, ID: id, At: recorded.Add(-30 * time.Second)}, doorEvent(onlyDoor, recorded)}
	for name, c := range map[string]struct {
		seen anteroom.Time
		want bool
	}{"in order": {0, false}, "killed": {now.Add(-time.Second), true}} {
		x := NewSingle(now, hereKey, set, LedgerRecord{}, []byte("seed"), events, 0, c.seen)
		x.Tick(now)
		if _, here := x.site.Session(id); here != c.want {
			t.Errorf("%s: the session is here: %v", name, here)
		}
		if _, here := x.site.Session(past); here {
			t.Errorf("%s: a session is here that was over on record", name)
		}
	}
}
