package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// month writes minutes of days of rooms, with visitors each, as if they had been put, and drops their parts.
func month(b *testing.B, c *clock, rooms, days, visitors int) *Store {
	s := openAt(b, c)
	from := c.now.Add(-time.Duration(days) * 24 * time.Hour).Truncate(24 * time.Hour)
	r := rand.New(rand.NewPCG(1, 1))
	var made []analytics.Row
	for range 500 {
		made = append(made, minuteOfVisitors(r, room(0), from, 1, visitors).Row())
	}
	for i := range rooms {
		for day := range days {
			var rows []analytics.Row
			for at := from.AddDate(0, 0, day); len(rows) < 1440 && at.Before(c.now.Add(-5*time.Minute)); at = at.Add(time.Minute) {
				row := made[r.IntN(len(made))]
				row.Room, row.Start = room(i), at
				rows = append(rows, row)
			}
			if err := s.Import(b.Context(), rows); err != nil {
				b.Fatal(err)
			}
		}
	}
	return s
}

// BenchmarkQuery is what a page of the dashboard asks, in a file of 50 rooms that were busy by day
// and night for 30 days: 20 new visitors each minute.
func BenchmarkQuery(b *testing.B) {
	const rooms, days = 50, 30
	c := &clock{now: began}
	s := month(b, c, rooms, days, 20)
	var all []anteroom.RoomID
	for i := range rooms {
		all = append(all, room(i))
	}
	c.now = c.now.Add(time.Hour)
	s.Step(b.Context())
	used, _, err := s.file.size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d MiB, %d bytes for each minute of a room", used>>20, used/(rooms*days*1440))
	end := began.Add(-10 * time.Minute)
	for _, which := range []struct {
		name  string
		rooms []anteroom.RoomID
	}{{"one room", all[:1]}, {"all rooms", all}} {
		for _, long := range []struct {
			name string
			d    time.Duration
		}{{"30 minutes", 30 * time.Minute}, {"a day", 24 * time.Hour}, {"30 days", 29*24*time.Hour + 7*time.Hour + 11*time.Minute}} {
			for _, q := range []struct {
				name string
				q    analytics.Query
			}{{"series", analytics.Query{}}, {"series with histograms", analytics.Query{Histograms: true}},
				{"total with histograms", analytics.Query{Total: true, Histograms: true, Details: true}}} {
				b.Run(fmt.Sprintf("%s/%s/%s", which.name, long.name, q.name), func(b *testing.B) {
					q.q.Rooms, q.q.From, q.q.To = which.rooms, end.Add(-long.d), end
					rows := 0
					for b.Loop() {
						a, err := s.Query(b.Context(), q.q)
						if err != nil || a.Incomplete != "" {
							b.Fatal(err, a.Incomplete)
						}
						rows = len(a.Rows)
					}
					b.ReportMetric(float64(rows), "rows")
					b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/query")
				})
			}
		}
	}
}
