package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A session that is not renewed ends by the clock of its site, and the door's may be behind: the door lets it in until the end, and
// the site holds the seat for a moment longer.
func TestSiteHoldsASessionLongerThanItsDoors(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1, SessionDuration: time.Minute, DisableSessionRenewal: true}
	d := NewDoor(set)
	id := anteroom.ID{1}
	d.Learn(midnight, id, midnight)
	v := anteroom.Visit{Ticket: anteroom.Ticket{ID: id, AcceptedAt: midnight, LastCheckIn: midnight}}
	for left, want := range map[time.Duration]bool{TouchDelay: false, time.Millisecond: false, 0: true} {
		if _, ask := d.Decide(midnight.Add(time.Minute-left), &v); ask != want {
			t.Errorf("%v before the end: asks %v, want %v", left, ask, want)
		}
	}
	if got, want := lapse(&set, midnight, midnight), midnight.Add(time.Minute+TouchDelay); got != want {
		t.Errorf("the seat is free %v after the admission, want %v", got.Sub(midnight), want.Sub(midnight))
	}
}
