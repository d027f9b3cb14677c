package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// What a door tells again to a site that was silent renews sessions as of when they were seen.
func TestToldLateIsSeenThen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen   []int // seconds
		step   time.Duration
		forgot bool // the door has heard meanwhile that the session is over
		want   int
	}{
		"once":            {seen: []int{0}, want: 0},
		"twice":           {seen: []int{0, 12}, want: 12},
		"just now":        {seen: []int{0, 30}, want: 30},
		"the clock steps": {seen: []int{0, 12}, step: time.Hour, want: 12},
		"over":            {seen: []int{0}, forgot: true, want: 30},
	} {
		t.Run(name, func(t *testing.T) {
			site := NewSite(midnight, hereKey, anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: 60, SessionDuration: time.Minute})
			site.Receive(midnight, State{Epoch: 1, Now: midnight, Mode: Open, Granted: Units{3, 3}, Figures: &Figures{At: midnight, Step: baseStep}, Sites: 1})
			desk, door, ticket := NewDesk(site), NewDoorway(7, site.settings), anteroom.Ticket{ID: anteroom.ID{1}}
			site.admit(midnight.Add(-time.Second), ticket, anteroom.ReasonFreeSlot)
			door.door.Learn(midnight, ticket.ID, midnight)
			ticket.AcceptedAt, ticket.LastCheckIn = midnight, midnight
			ahead := time.Duration(0)
			var last FromDoor
			for second := range 31 {
				now := midnight.Add(time.Duration(second)*time.Second + ahead)
				for _, at := range c.seen {
					if at == second {
						door.door.Decide(now, &anteroom.Visit{Ticket: ticket})
					}
				}
				if second == 20 && c.step != 0 {
					ahead = c.step
					now = now.Add(ahead)
					door.ClockSet(ahead)
				}
				if second == 20 && c.forgot {
					door.door.Forget(ticket.ID)
				}
				if m, ok := door.Take(now); ok {
					last = m
				}
			}
			last.Known = last.Sent.Add(-ahead)
			desk.Receive(midnight.Add(30*time.Second), last)
			seen := site.seats.at(site.seats.find(&ticket.ID)).last.Sub(midnight)
			if want := time.Duration(c.want) * time.Second; seen < want || seen > want+TouchEvery {
				t.Errorf("seen after %v, want %v and at most %v more", seen, want, TouchEvery)
			}
		})
	}
}
