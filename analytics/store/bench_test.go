package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// month writes what rooms saw in a number of days, with visitors each minute: quarters, and minutes of
// the last two days.
func month(b *testing.B, c *clock, rooms, days, visitors int) *Store {
	s := openAt(b, c, func(cfg *Config) { cfg.MaxSize = 16 << 30 })
	from, fine := c.now.AddDate(0, 0, -days).Truncate(24*time.Hour), c.now.AddDate(0, 0, -2).Truncate(24*time.Hour)
	r := rand.New(rand.NewPCG(1, 1))
	made := map[analytics.Resolution][]analytics.Row{}
	for range 200 {
		for every, n := range map[analytics.Resolution]int{analytics.EveryMinute: visitors, analytics.EveryQuarter: 15 * visitors} {
			made[every] = append(made[every], minuteOfVisitors(r, room(0), from, 1, n).Row())
		}
	}
	for i := range rooms {
		var rows []analytics.Row
		for at, every := from, analytics.EveryQuarter; at.Before(c.now.Add(-5 * time.Minute)); at = at.Add(time.Duration(every)) {
			if !at.Before(fine) {
				every = analytics.EveryMinute
			}
			row := made[every][r.IntN(200)]
			row.Room, row.Start, row.Every = room(i), at, every
			rows = append(rows, row)
		}
		if err := s.Import(b.Context(), rows); err != nil {
			b.Fatal(err)
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
	for _, l := range levels {
		var rows, bytes int64
		if err := s.file.read.QueryRow(`SELECT count(*), sum(length(r.body) + length(m.details) + length(m.histograms)) FROM row_`+l.word+` r JOIN more_`+l.word+` m ON m.key = r.key`).Scan(&rows, &bytes); err != nil {
			b.Fatal(err)
		}
		b.Logf("every %s: %d rows, %d bytes each", l.word, rows, bytes/rows)
	}
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
