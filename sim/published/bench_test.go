package published

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// backlog is a room with an hour of buckets in line, and those who wait in it.
func backlog(b *testing.B, m Method) (r *Room, now anteroom.Time, tickets []anteroom.Ticket) {
	b.Helper()
	r = New(Config{Method: m, Sites: fiveSites, Delays: fiveDelays,
		Settings: anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 100, PlaceHold: time.Hour}})
	now = morning
	for n := range 6000 {
		if now = now.Add(600 * time.Millisecond); n%5 == 0 {
			r.Tick(now)
		}
		d, _ := r.Visit(now, n%5, n%4, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{byte(n), byte(n >> 8)}}})
		if d.Verdict == anteroom.Wait {
			tickets = append(tickets, d.Ticket)
		}
	}
	return r, now.Add(30 * time.Second), tickets
}

func BenchmarkCheckIn(b *testing.B) {
	for _, m := range []Method{Even, Adapted, Counters} {
		b.Run(m.String(), func(b *testing.B) {
			r, now, tickets := backlog(b, m)
			for n := 0; b.Loop(); n++ {
				r.Visit(now, n%5, n%4, anteroom.Visit{Ticket: tickets[n%len(tickets)]})
			}
		})
	}
}

func BenchmarkSession(b *testing.B) {
	r := New(Config{Sites: fiveSites, Settings: anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 1000}})
	d, _ := r.Visit(morning, 0, 0, newcomer(0))
	now := morning
	for b.Loop() {
		now = now.Add(time.Millisecond)
		d, _ = r.Visit(now, 0, 0, anteroom.Visit{Ticket: d.Ticket})
	}
}

func BenchmarkTick(b *testing.B) {
	r, now, _ := backlog(b, Counters)
	for b.Loop() {
		now = now.Add(100 * time.Millisecond)
		r.Tick(now)
	}
}

func BenchmarkNewcomer(b *testing.B) {
	for _, m := range []Method{Even, Adapted, Counters} {
		b.Run(m.String(), func(b *testing.B) {
			r := New(Config{Method: m, Sites: fiveSites, Delays: fiveDelays,
				Settings: anteroom.Settings{TotalActiveUsers: 1 << 30, NewUsersPerMinute: 1 << 30}})
			now := morning
			for n := 0; b.Loop(); n++ {
				if now = now.Add(time.Millisecond); n%100 == 0 {
					r.Tick(now)
				}
				r.Visit(now, n%5, n%4, newcomer(byte(n)))
			}
		})
	}
}
