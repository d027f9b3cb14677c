package aws

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// A crowd that waits for its numbers, of which every fifth never comes, is admitted within both limits and in order, and
// those who leave cost the others little time.
func TestACrowdWithinBothLimits(t *testing.T) {
	room := sale
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.DisableSessionRenewal = 40, 60, 30*time.Second, true
	inWorld(t, room, nil, func(w *world) {
		const visitors = 150
		type entry struct {
			number int
			at     time.Time
		}
		var (
			all     sync.WaitGroup
			mu      sync.Mutex
			entered []entry
		)
		began := time.Now()
		for i := range visitors {
			id := w.join()
			w.pass(50 * time.Millisecond)
			if i%5 == 4 {
				continue
			}
			all.Go(func() {
				for {
					if p, r, _ := w.bridge.place(id); int64(p.number) <= r.Serving && w.claim(id).status == 200 {
						mu.Lock()
						defer mu.Unlock()
						entered = append(entered, entry{int(p.number), time.Now()})
						return
					}
					w.pass(3 * time.Second) // as the sample site does
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if len(entered) != visitors*4/5 {
			t.Fatalf("%d entered", len(entered))
		}
		for i, e := range entered {
			if j := i - room.NewUsersPerMinute; j >= 0 && e.at.Sub(entered[j].at) < time.Minute {
				t.Errorf("entry %d came %v after entry %d", i, e.at.Sub(entered[j].at), j)
			}
			if j := i - room.TotalActiveUsers; j >= 0 && e.at.Sub(entered[j].at) < room.SessionDuration {
				t.Errorf("entry %d came while 40 sessions were active", i)
			}
			// A position is not admitted long before an earlier one that comes at each call.
			if j := slices.IndexFunc(entered[i:], func(later entry) bool { return later.number < e.number && later.at.Sub(e.at) > 15*time.Second }); j >= 0 {
				t.Errorf("number %d entered at %v, number %d at %v", e.number, e.at, entered[i+j].number, entered[i+j].at)
			}
		}
		if least := time.Duration(len(entered)-room.NewUsersPerMinute) * time.Second; took < least || took > 2*least+time.Minute {
			t.Errorf("it took %v", took)
		}
		t.Logf("%d visitors in %v", len(entered), took)
		if a := w.operate("GET", "/num_active_tokens?event_id=Sample", ""); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}
