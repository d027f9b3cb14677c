package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A door that ends takes along whom it let in since its last word. The site holds the seats of those
// whom it may have let in, and no others.
func TestLastRequestsAtADoorThatEnds(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.SessionDuration, set.FirstSession = time.Minute, time.Minute
	h := newHall(t, 2, set)
	const old, young = 0, 1
	for _, d := range h.doors {
		d.SetNode(7)
	}
	enter := func(v anteroom.Visit) anteroom.Visit {
		d := h.get(old, v)
		if d.Verdict != anteroom.Admit {
			t.Fatalf("not admitted: %+v", d)
		}
		return anteroom.Visit{Ticket: d.Ticket, NewID: h.id()}
	}
	away := enter(h.newcomer())
	h.run(2 * sureFor(set.SessionDuration))
	there := enter(h.newcomer())
	left := h.now
	h.doors[old].mute = true
	if d := h.answer(old, h.visit(old, there)); d.Verdict != anteroom.Admit {
		t.Fatalf("the door asks about a session that is sure: %+v", d)
	}
	h.get(young, h.newcomer()) // another process speaks for the node
	h.run(left.Add(set.SessionDuration - 50*time.Millisecond).Sub(h.now))
	if _, ok := h.desk.Site().Session(there.Ticket.ID); !ok {
		t.Error("the session of the last request is over before its time")
	}
	if _, ok := h.desk.Site().Session(away.Ticket.ID); ok {
		t.Error("a session that the door could not let in any more is held")
	}
	h.run(sureFor(set.SessionDuration) + 3*time.Second)
	if _, ok := h.desk.Site().Session(there.Ticket.ID); ok {
		t.Error("the session of the last request is held for too long")
	}
}

// How long the seats of a node that was killed are held, as docs/cluster.md has it.
func TestSeatsOfANodeThatWasKilled(t *testing.T) {
	t.Parallel()
	const session = time.Minute
	for _, c := range []struct {
		what       string
		back       time.Duration // after the last word; 0: never
		from, till time.Duration // after the last word, when the session of a visitor who left before is over
	}{
		{"back within 6 s", 5 * time.Second, 0, session},
		{"back later: a session from then", 10 * time.Second, 10*time.Second + session, 10*time.Second + session},
		{"back much later, or never: half a session and a session", 0, session/2 + session, session/2 + session},
	} {
		set := hallSet
		set.SessionDuration, set.FirstSession = session, session
		h := newHall(t, 2, set)
		const old, young = 0, 1
		for _, d := range h.doors {
			d.SetNode(7)
		}
		d := h.get(old, h.newcomer())
		if d.Verdict != anteroom.Admit {
			t.Fatalf("not admitted: %+v", d)
		}
		h.run(2 * sureFor(session))
		left := h.now
		h.doors[old].mute = true
		if c.back > 0 {
			h.run(c.back)
			h.get(young, h.newcomer()) // another process speaks for the node
		}
		const slack = 5 * time.Second // looked at every TouchEvery, and heard within a beat
		if early := left.Add(c.from - slack).Sub(h.now); c.from > 0 {
			h.run(early)
			if _, ok := h.desk.Site().Session(d.Ticket.ID); !ok {
				t.Errorf("%s: the seat is free before its time", c.what)
			}
		}
		h.run(left.Add(c.till + slack).Sub(h.now))
		if _, ok := h.desk.Site().Session(d.Ticket.ID); ok {
			t.Errorf("%s: the seat is held for too long", c.what)
		}
	}
}

// A process of a site that starts assumes that the one before heard a door as late as it can have. It takes the last word of a
// door that is earlier than that only if the door knew of it by then: another one may have been overtaken.
func TestLastWordToASuccessor(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	for told, want := range map[uint64]bool{0: false, 1: false, 2: true} {
		s := NewSite(midnight, hereKey, set)
		s.doors = []witness{{number: 5, node: 7, heard: midnight}}
		s.restoredDoors()
		s.term = 2
		now := midnight.Add(time.Second)
		s.spoke(now, now, &FromDoor{Door: 5, Node: 7, Empty: true, Told: told})
		if got := s.doors[0].empty; got != want {
			t.Errorf("told to term %d: taken %v, want %v", told, got, want)
		}
	}
}

// A site that does not know the time ends nothing, and does not wake for what it will not do.
func TestWakesForWhatItDoes(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, SessionDuration: time.Minute, QueueAll: true}
	s := NewSite(midnight, hereKey, set)
	s.mode = Queue
	s.Restore(Event{Kind: EventAdmitted, ID: anteroom.ID{1}, At: midnight}, 0, TouchSlack(set.SessionDuration))
	now := midnight.Add(time.Hour)
	s.Restored(now)
	s.Tick(now)
	if at := s.Wake(); s.Active() != 1 || at != 0 && at <= now {
		t.Errorf("%d sessions; wakes at %v, it is %v", s.Active(), at, now)
	}
}

// The same for a guest: the door tells its site, and the site tells home, that it may have been seen.
func TestGuestsOfADoorThatEnds(t *testing.T) {
	t.Parallel()
	e := newTrio(t)
	ticket := e.fill()[0]
	away := e.sites[1]
	says := func(door uint64) { away.spoke(e.now, e.now, &FromDoor{Door: door, Node: 7}) }
	says(1)
	if d := e.asks(1, &ticket, e.soon); d.Verdict != anteroom.Admit {
		t.Fatalf("the guest is not admitted: %v", d.Reason)
	}
	e.run(time.Second)
	says(1)
	e.run(500 * time.Millisecond) // in which the door lets the guest in, and ends
	last := e.now
	e.run(100 * time.Millisecond)
	says(2)
	e.run(last.Add(e.set.SessionDuration - 100*time.Millisecond).Sub(e.now))
	if e.holders(ticket.ID) != "a" {
		t.Error("home has ended the session of a guest who was let in later than it knows")
	}
	e.comesBack()
}

// A process of a site that has just begun guesses the time, too early: another process of a node ends the door before it only
// when the time is known. Otherwise sessions that this door let in alone would be over.
func TestTheEndOfADoorIsNotDatedByAGuess(t *testing.T) {
	t.Parallel()
	s := NewSite(midnight, hereKey, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1, SessionDuration: time.Minute})
	s.doors = []witness{{number: 1, node: 7, heard: midnight}}
	guess, known := midnight.Add(time.Second), midnight.Add(20*time.Second)
	next := FromDoor{Door: 2, Node: 7}
	s.synced = false
	s.spoke(guess, guess, &next)
	if over := s.doors[0].over; over != 0 {
		t.Errorf("the door is over at %v", over.Sub(midnight))
	}
	s.synced = true
	s.spoke(known, known, &next)
	if over := s.doors[0].over; over != known {
		t.Errorf("the door is over at %v, want %v", over.Sub(midnight), known.Sub(midnight))
	}
}

// A site does not count on a door that has said that nobody is there. Cut off then, the door does not let in a visitor of another door
// by the cookie: it shows the page, and the cookie stays.
func TestADoorThatWasEmptyLetsNobodyInAlone(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.SessionDuration, set.FirstSession = time.Minute, time.Minute
	h := newHall(t, 2, set)
	const busy, idle = 0, 1
	in, other := h.get(busy, h.newcomer()), h.get(idle, h.newcomer())
	h.run(35 * time.Second)
	cookie := h.get(busy, anteroom.Visit{Ticket: in.Ticket, NewID: h.id()}).Ticket
	h.run(40 * time.Second)
	h.doors[idle].Revoke(h.now, other.Ticket.ID)
	h.run(3 * time.Second)
	h.doors[idle].mute, h.doors[idle].deaf = true, true
	token := h.visit(idle, anteroom.Visit{Ticket: cookie, NewID: h.id()})
	h.run(takeOver + time.Second)
	if d := h.answer(idle, token); d.Verdict != anteroom.Wait || d.SetCookie {
		t.Errorf("%v %v, with a cookie: %v; the seat is held: %v", d.Verdict, d.Reason, d.SetCookie, h.desk.Site().Active() == 1)
	}
}
