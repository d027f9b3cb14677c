package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A session that is not renewed ends by the clock of its site. The door's may be behind, so that it leaves the last moment to the
// site: what the site has ended, no door lets in.
func TestDoorLeavesTheEndOfASessionToItsSite(t *testing.T) {
	t.Parallel()
	d := NewDoor(anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1, SessionDuration: time.Minute, DisableSessionRenewal: true})
	id := anteroom.ID{1}
	d.Learn(midnight, id, midnight)
	v := anteroom.Visit{Ticket: anteroom.Ticket{ID: id, AcceptedAt: midnight, LastCheckIn: midnight}}
	for left, want := range map[time.Duration]bool{TouchDelay + time.Millisecond: false, TouchDelay: true, time.Millisecond: true} {
		if _, ask := d.Decide(midnight.Add(time.Minute-left), v); ask != want {
			t.Errorf("%v before the end: asks %v, want %v", left, ask, want)
		}
	}
}
