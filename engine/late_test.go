package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A door whose process was stopped lets a visitor in when it goes on, not when the site decided: the
// site hears of that, or the visitor is not let in.
func TestAnswerThatWaitedInAStoppedDoor(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
	for _, c := range []struct {
		name    string
		stopped time.Duration
		enters  bool
		told    bool
	}{
		{name: "in time", stopped: TouchDelay, enters: true},
		{name: "a slow store", stopped: time.Second, enters: true, told: true},
		{name: "as long as the site counts on a silent door", stopped: AloneFor(time.Minute) - time.Second, enters: true, told: true},
		{name: "longer than the site counts on a silent door", stopped: AloneFor(time.Minute) + time.Second},
	} {
		x, now, id := NewDoorway(1, set), midnight, anteroom.ID{1}
		site := SiteKey{Name: "a", Incarnation: 1}
		x.Tick(now)
		m, _ := x.Take(now)
		x.Visit(now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
		m, _ = x.Take(now)
		x.Receive(now, ToDoor{Site: site, Term: 1, Now: now, Confirmed: m.Batch, Echo: now, Since: 1})
		ticket := anteroom.Ticket{ID: id, Arrival: now, LastCheckIn: now, AcceptedAt: now, Home: HomeOf("a")}
		late := now.Add(c.stopped)
		x.Receive(late, ToDoor{Site: site, Term: 1, Now: now, Answers: []Answer{{Token: m.Visits[0].Token,
			Decision: anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonFreeSlot, At: now, Ticket: ticket, SetCookie: true}}}})
		answers := x.TakeAnswers(late)
		if len(answers) != 1 || (answers[0].Decision.Verdict == anteroom.Admit) != c.enters {
			t.Errorf("%s: answers %+v", c.name, answers)
		}
		told := false
		for m, ok := x.Take(late); ok; m, ok = x.Take(late) {
			told = told || len(m.Touches) > 0
		}
		if told != c.told {
			t.Errorf("%s: the site is told: %v", c.name, told)
		}
	}
}

// What the coordinator saw of the room a while ago does not replace what it has said since, though it comes later.
func TestStateThatWasOvertaken(t *testing.T) {
	t.Parallel()
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute})
	says := func(epoch, number uint64, mode Mode, granted uint64) {
		at := midnight.Add(time.Duration(number) * time.Second)
		s.Receive(midnight.Add(time.Minute), State{Epoch: epoch, Now: at, Mode: mode, Target: number, Granted: Units{granted, granted}, Sites: 1,
			Lost: number < 2, Figures: &Figures{At: at, Number: number, Step: baseStep}})
	}
	says(1, 2, Queue, 3)
	says(1, 1, Open, 4)
	if s.Figures().Number != 2 || s.Mode() != Queue || s.target != 2 || s.lost {
		t.Errorf("figures %d, mode %v, target %d, lost %v: those that were overtaken", s.Figures().Number, s.Mode(), s.target, s.lost)
	}
	if s.balance.Granted != (Units{4, 4}) {
		t.Errorf("granted %v: an overtaken state says at least what was granted", s.balance.Granted)
	}
	if says(2, 1, Open, 4); s.Figures().Number != 1 || s.Mode() != Open {
		t.Errorf("figures %d, mode %v: the next coordinator counts anew", s.Figures().Number, s.Mode())
	}
}
