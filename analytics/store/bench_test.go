//go:build unix

package store

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// month writes what rooms saw in a number of days, with visitors each minute: hours, and of the
// first day and the last two also quarters and minutes, which queries read at their ends. Some rooms are
// made up, and the others are copies of them.
func month(b *testing.B, c *clock, rooms, days, visitors int) *Store {
	const different = 5
	s := openAt(b, c, func(cfg *Config) { cfg.MaxSize = 16 << 30 })
	from, fine := c.now.AddDate(0, 0, -days).Truncate(24*time.Hour), c.now.AddDate(0, 0, -2).Truncate(24*time.Hour)
	r := rand.New(rand.NewPCG(1, 1))
	made := map[analytics.Resolution][]analytics.Row{}
	for every, n := range map[analytics.Resolution]int{analytics.EveryMinute: visitors, analytics.EveryHour: 60 * visitors} {
		for range 100 {
			made[every] = append(made[every], minuteOfVisitors(r, room(0), from, 1, n).Row())
		}
	}
	for i := range different {
		var rows []analytics.Row
		for at, every := from, analytics.EveryMinute; at.Before(c.now.Add(-5 * time.Minute)); at = at.Add(time.Duration(every)) {
			every = analytics.EveryHour
			if !at.Before(fine) || at.Before(from.Add(24*time.Hour)) {
				every = analytics.EveryMinute
			}
			row := made[every][r.IntN(100)]
			row.Room, row.Start, row.Every = room(i), at, every
			rows = append(rows, row)
		}
		if err := s.Import(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
	}
	w, err := s.file.begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer w.end()
	for i := different; i < rooms; i++ {
		from, to := w.room(room(i%different)), w.room(room(i))
		for _, l := range levels {
			w.exec(`INSERT INTO row_`+l.word+` SELECT key + ?, minutes, body FROM row_`+l.word+` WHERE key >= ? AND key < ?`, keyOf(to-from, 0), keyOf(from, 0), keyOf(from+1, 0))
			w.exec(`INSERT INTO more_`+l.word+` SELECT key + ?, details, histograms FROM more_`+l.word+` WHERE key >= ? AND key < ?`, keyOf(to-from, 0), keyOf(from, 0), keyOf(from+1, 0))
		}
	}
	if err := w.commit(); err != nil {
		b.Fatal(err)
	}
	return s
}

// cpuTime is what the process has used: on a busy machine it says more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
			}{{"figures", analytics.Query{}}, {"with percentiles", analytics.Query{Summaries: true}},
				{"totals with percentiles", analytics.Query{Total: true, Summaries: true}}} {
				b.Run(fmt.Sprintf("%s/%s/%s", which.name, long.name, q.name), func(b *testing.B) {
					q.q.Rooms, q.q.From, q.q.To = which.rooms, end.Add(-long.d), end
					rows, before := 0, cpuTime()
					for b.Loop() {
						a, err := s.Query(b.Context(), q.q)
						if err != nil || a.Incomplete != "" {
							b.Fatal(err, a.Incomplete)
						}
						rows = len(a.Rows)
					}
					b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/query")
					b.ReportMetric(float64(rows), "rows")
					b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/query")
				})
			}
		}
	}
}
