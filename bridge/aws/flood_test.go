package aws

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Visitors who come to a room with free seats are admitted within two or three looks at the serving counter, also while
// somebody else joins a hundred times a second and claims nothing.
func TestAFloodOfJoins(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const (
		every   = 3 * time.Second // as the sample site looks
		longest = 3 * time.Minute
	)
	for name, flood := range map[string]string{"from one address": "203.0.113.9:1", "from addresses that nobody knows": ""} {
		for _, hold := range []time.Duration{30 * time.Second, 5 * time.Minute, time.Hour} {
			t.Run(name+", place_hold "+hold.String(), func(t *testing.T) {
				room := sale
				room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.DisableSessionRenewal, room.PlaceHold = 50, 100, 30*time.Second, true, hold
				inWorld(t, room, nil, func(w *world) {
					var all sync.WaitGroup
					all.Go(func() {
						for range int(longest / (10 * time.Millisecond)) {
							w.joinFrom(flood)
							w.pass(10 * time.Millisecond)
						}
					})
					waits := make([]time.Duration, longest/time.Second)
					for i := range waits {
						all.Go(func() {
							began, id := time.Now(), w.join()
							for p, _, _ := w.bridge.place(id); int64(p.number) > w.bridge.line.now().Serving || w.claim(id).status != 200; {
								w.pass(every)
								if time.Since(began) > longest {
									break
								}
							}
							waits[i] = time.Since(began)
						})
						w.pass(time.Second)
					}
					all.Wait()
					slices.Sort(waits)
					t.Logf("median %v, 9 of 10 %v, longest %v", waits[len(waits)/2], waits[len(waits)*9/10], waits[len(waits)-1])
					if m := waits[len(waits)/2]; m/every > 2 { // looks; the claim takes a millisecond, for its record
						t.Errorf("half of the visitors waited %v or longer", m)
					}
					if m := waits[len(waits)-1]; m > time.Minute {
						t.Errorf("a visitor waited %v", m)
					}
				})
			})
		}
	}
}
