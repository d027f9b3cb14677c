package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// Whoever joins is behind those who have joined since the figures: here, of whom the site knows which
// the figures count, and at other sites, as many as lately.
func TestRankCountsJoinsSinceTheFigures(t *testing.T) {
	t.Parallel()
	now := midnight.Add(time.Hour)
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60})
	hear := func(number uint64, waiting, lately int) {
		second := int64(now) / 1e6
		f := &Figures{At: now, Number: number, Waiting: waiting, Seconds: []SecondCount{
			{Second: second - 60, Count: uint32(waiting - lately)},
			{Second: second - 1, Before: uint32(waiting - lately), Count: uint32(lately / 2)},
			{Second: second, Before: uint32(waiting - lately/2), Count: uint32(lately - lately/2)}}}
		s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Sites: 3, Figures: f})
	}
	ids := byte(0)
	join := func() int {
		ids++
		id := anteroom.ID{ids}
		d, _ := s.Visit(now, anteroom.Visit{Fresh: true, NewID: id, Stream: true, Ticket: anteroom.Ticket{ID: id}})
		return d.Ahead
	}
	hear(1, 500, 0)
	if a, b := join(), join(); a != 500 || b != 501 {
		t.Errorf("the first is told %d ahead and the second %d", a, b)
	}
	s.Report(now)
	now = now.Add(time.Second)
	third := join()
	now = now.Add(time.Millisecond)
	hear(2, 502, 0) // counts what was reported, and not the third
	now++
	if fourth := join(); third != 502 || fourth != 503 {
		t.Errorf("the third is told %d ahead and the fourth %d", third, fourth)
	}
	// Three hundred join each second elsewhere, and the figures are half a second old.
	now = midnight.Add(time.Hour + time.Minute + time.Second - 1)
	s.Report(now)
	now++
	hear(3, 1000, 300)
	now = now.Add(500 * time.Millisecond)
	if got := join(); got < 1120 || got > 1220 {
		t.Errorf("a newcomer is told %d ahead, some 1,165 are", got)
	}
}

// While nothing is heard of the coordinator, whoever comes back late again and again is counted once.
func TestReturnsAreCountedOnce(t *testing.T) {
	t.Parallel()
	now := midnight.Add(time.Hour)
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, PlaceHold: time.Hour})
	s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Sites: 1, Figures: &Figures{At: now, Number: 1, Waiting: 500}})
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-time.Minute), Next: now, Told: 41}
	for range 100 {
		d, _ := s.Visit(now, anteroom.Visit{NewID: anteroom.ID{2}, NoHold: true, Ticket: ticket})
		if d.Ahead != 40 {
			t.Fatalf("%d ahead, 40 were told", d.Ahead)
		}
		ticket = d.Ticket
		now = ticket.Next.Add(Grace + time.Second)
	}
	if s.joins.since != 1 || len(s.joins.places) != 1 {
		t.Errorf("counted as %d joins, %d places", s.joins.since, len(s.joins.places))
	}
}
