package server

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
)

// crowd makes n rooms of the API, by restoring a backup of another manager.
func (r *running) crowd(n int) []anteroom.Room {
	r.t.Helper()
	m, err := manage.Open(r.t.Context(), manage.Config{Link: memlink.New()})
	if err != nil {
		r.t.Fatal(err)
	}
	zone, err := m.CreateZone(r.t.Context(), operator, "example.com")
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range n {
		one := localRoom("/")
		one.Name, one.Routes[0].Host = fmt.Sprintf("room%d", i), fmt.Sprintf("shop%d.example.com", i)
		if i%3 == 0 {
			one.CookieSuffix = fmt.Sprintf("s%d", i)
		}
		if _, err := m.CreateRoom(r.t.Context(), operator, zone.ID, one); err != nil {
			r.t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := m.Backup(r.t.Context(), operator, &b, false); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.s.Manager().Restore(r.t.Context(), operator, &b); err != nil {
		r.t.Fatal(err)
	}
	rooms, err := r.s.Manager().Rooms(operator, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return rooms
}

// BenchmarkWrite is a change of a room's settings, from the call until it is stored and in
// force at the doors of a whole process.
func BenchmarkWrite(b *testing.B) {
	for _, rooms := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			r := startServer(b, "rooms: []\n")
			all := r.crowd(rooms)
			zone, _ := r.s.Manager().State().ZoneNamed("example.com")
			var took []time.Duration
			n := 0
			for b.Loop() {
				n++
				begun := time.Now()
				_, err := r.s.Manager().ChangeRoom(b.Context(), operator, zone.ID, all[n*7919%len(all)].ID, func(r *anteroom.Room) error {
					r.TotalActiveUsers = 1000 + n
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
		})
	}
}
