package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A restored site does not know how late it is until it hears the coordinator. What its journal
// says is over ends at once; the rest when the doors have told whom they have let in since.
func TestRestoredSiteLearnsTheTime(t *testing.T) {
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, set)
	past, over, seen, told := anteroom.ID{1}, anteroom.ID{2}, anteroom.ID{3}, anteroom.ID{4}
	recorded := midnight.Add(2 * time.Minute)
	s.Restore(Event{Kind: EventAdmitted, ID: past, At: midnight}, 0, 0)
	for _, id := range []anteroom.ID{over, seen, told} {
		s.Restore(Event{Kind: EventAdmitted, ID: id, At: recorded}, 0, 0)
	}
	s.Restored(recorded)
	if s.balance.Used != (Units{3, 3}) {
		t.Errorf("the restored site uses %v", s.balance.Used)
	}
	s.Tick(recorded)
	s.Touch(recorded.Add(time.Second), []anteroom.ID{seen})
	now := midnight.Add(time.Hour)
	s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{3, 3}, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
	if s.balance.Used != (Units{3, 0}) {
		t.Errorf("after the first word it uses %v", s.balance.Used)
	}
	if got, here := s.Session(seen); !here || got.LastSeen != now {
		t.Errorf("the session that was seen is %+v", got)
	}
	events := s.TakeEvents()
	if n := len(events); n == 0 || events[n-1].Kind != EventTouched || events[n-1].At != now {
		t.Errorf("recorded: %+v", events)
	}
	s.Tick(now)
	s.Touch(now.Add(TouchDelay), []anteroom.ID{told})
	for at := now; at <= now.Add(TouchEvery); at = at.Add(FlushEvery) {
		s.Tick(at)
	}
	for id, want := range map[anteroom.ID]bool{past: false, over: false, seen: true, told: true} {
		if _, here := s.Session(id); here != want {
			t.Errorf("session %v is here: %v", id[0], here)
		}
	}
}

// A site that was stopped hears first whom the doors have let in meanwhile.
func TestStoppedSiteEndsNobodyBeforeItHasHeardTheDoors(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute})
	v, o, s := w.arrive(), w.arrive(), w.room.site
	tick := func(from, to time.Duration) {
		for d := from; d <= to; d += FlushEvery {
			s.Tick(midnight.Add(d))
		}
	}
	w.now = midnight
	tick(0, time.Second)
	resumed := 2 * time.Minute
	s.Visit(midnight.Add(resumed), anteroom.Visit{Fresh: true, NewID: anteroom.ID{9}})
	s.Tick(midnight.Add(resumed))
	s.Touch(midnight.Add(resumed+TouchDelay), []anteroom.ID{v.ticket.ID})
	tick(resumed, resumed+TouchEvery)
	if _, here := s.Session(v.ticket.ID); !here {
		t.Error("a session that a door let in has ended")
	}
	if _, here := s.Session(o.ticket.ID); here {
		t.Error("a session that is over is here")
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
		w.room.site.Touch(last, []anteroom.ID{v.ticket.ID})
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

// A role that has changed hands: no session ends before the doors had DoorDead to say whom they
// have let in meanwhile.
func TestSiteThatIsTakenOverHearsTheDoorsFirst(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: 10 * time.Second}
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, set)
	s.SetTerm(7)
	seen, over := anteroom.ID{1}, anteroom.ID{2}
	for _, id := range []anteroom.ID{seen, over} {
		s.Restore(Event{Kind: EventAdmitted, ID: id, At: midnight}, 0, 0)
	}
	s.Restored(midnight)
	now := midnight.Add(15 * time.Second)
	s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{2, 2}, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
	tick := func(long time.Duration) {
		for end := now.Add(long); now < end; now = now.Add(FlushEvery) {
			s.Tick(now)
		}
	}
	tick(DoorDead - FlushEvery)
	if unknown := s.Touch(now, []anteroom.ID{seen}); len(unknown) != 0 {
		t.Error("a session that a door let in has ended")
	}
	tick(2 * FlushEvery)
	for id, want := range map[anteroom.ID]bool{seen: true, over: false} {
		if _, here := s.Session(id); here != want {
			t.Errorf("session %v is here: %v", id[0], here)
		}
	}
}
