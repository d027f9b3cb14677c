package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// BenchmarkDoorToSite: batches of new visitors, and of those whose check-in at the front is due,
// go from a door to its site and the decisions come back, as bytes both ways, with a hundred thousand in line and the
// coordinator in the same process. The rate is that of the batch in the middle, which a busy machine disturbs least.
func BenchmarkDoorToSite(b *testing.B) {
	for _, batch := range []int{50, 100} {
		for _, kind := range []string{"new", "due"} {
			b.Run(fmt.Sprintf("%s-%d", kind, batch), func(b *testing.B) {
				x, now, tickets := crowd(b, 100_000)
				x.Configure(now, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 600})
				desk, door := NewDesk(x.site), NewDoorway(7, x.site.settings)
				door.Receive(now, ToDoor{Site: hereKey, Mode: Queue, Figures: x.site.Figures(), Now: now})
				w, sent, answered := trial{ids: 1 << 40}, 0, 0
				var to, from []byte
				var cache FiguresCache
				var took []time.Duration
				b.ReportAllocs()
				b.ResetTimer()
				for sent < b.N {
					began := time.Now()
					now += 1000
					for range batch {
						v := anteroom.Visit{NoHold: true, NewID: w.newID()}
						if v.Ticket = tickets[sent%20]; kind == "new" {
							v.Fresh, v.Ticket = true, anteroom.Ticket{ID: w.newID()}
						} else {
							v.Ticket.Next = now
						}
						if d, held := door.Visit(now, v); held == 0 {
							b.Fatalf("the door has decided: %v", d.Reason)
						}
						sent++
					}
					for m, ok := door.Take(now); ok; m, ok = door.Take(now) {
						to = m.AppendWire(to[:0])
						heard, err := ParseFromDoor(to)
						if err != nil {
							b.Fatal(err)
						}
						desk.Receive(now, heard)
						x.settle(now)
						for _, o := range desk.Take(now) {
							from = cache.AppendToDoor(from[:0], &o.Message)
							back, err := cache.ParseToDoor(from)
							if err != nil {
								b.Fatal(err)
							}
							door.Receive(now, back)
						}
					}
					answered += len(door.TakeAnswers(now))
					took = append(took, time.Since(began))
					x.TakeEvents()
					if sent%(100*batch) == 0 {
						desk.Tick(now)
						door.Tick(now)
					}
				}
				b.StopTimer()
				if answered < sent*9/10 {
					b.Fatalf("%d of %d were answered", answered, sent)
				}
				slices.Sort(took)
				half := took[len(took)/2]
				b.ReportMetric(float64(batch)/half.Seconds(), "decisions/s")
				b.ReportMetric(float64(half.Microseconds()), "batch-p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "batch-p99-µs")
			})
		}
	}
}
