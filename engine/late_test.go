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
