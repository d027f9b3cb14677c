package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/engine"
)

// model is one site in a few lines: everybody stays in line until the turn comes, sessions
// last as long as they may. Visitor i enters when it has arrived, when the visitor before has
// entered, when the session of the visitor L places before has ended, and when a minute has
// passed since the visitor R places before. reaction is what a freed slot takes to be used.
func model(arrived []time.Duration, l, r int, session, minute, reaction time.Duration) []time.Duration {
	entered := make([]time.Duration, len(arrived))
	for i, at := range arrived {
		if i > 0 {
			at = max(at, entered[i-1])
		}
		if i >= l {
			at = max(at, entered[i-l]+session+reaction)
		}
		if i >= r {
			at = max(at, entered[i-r]+minute+reaction)
		}
		entered[i] = at
	}
	return entered
}

// TestModel compares the product on one site with the model: every visitor enters no earlier
// than with a slot that is reused at once, and no later than with one that takes a second.
func TestModel(t *testing.T) {
	for name, c := range map[string]struct {
		l, r     int
		arrivals []Flow
	}{
		"the seats bind": {60, 600, []Flow{{To: 10 * time.Minute, PerMinute: 50, ToPerMinute: 50}, {From: time.Minute, To: 2 * time.Minute, Visitors: 200}}},
		"the rate binds": {5000, 40, []Flow{{To: 10 * time.Minute, PerMinute: 30, ToPerMinute: 30}, {From: time.Minute, To: 90 * time.Second, Visitors: 100}}},
		"both bind":      {40, 45, []Flow{{To: 10 * time.Minute, PerMinute: 60, ToPerMinute: 30}}},
	} {
		t.Run(name, func(t *testing.T) {
			const session = time.Minute
			sc := Scenario{Name: name, Length: 10 * time.Minute, Drain: true, Arrivals: c.arrivals, Settings: limits(c.l, c.r, session),
				Visitors: Visitors{Browsing: Spread{Mean: time.Second}, Streams: 1}}
			sc.DisableSessionRenewal, sc.Unpaced = true, true
			for seed := uint64(1); seed <= 5; seed++ {
				r, err := Run(context.Background(), sc, seed, Options{})
				if err != nil {
					t.Fatal(err)
				}
				var arrived, entered []time.Duration
				for _, v := range r.Visits {
					arrived = append(arrived, v.Arrived)
					entered = append(entered, v.Admitted)
				}
				slices.Sort(entered) // order is the check of that name; here it is about when
				soonest := model(arrived, c.l, c.r, session, time.Minute, 0)
				latest := model(arrived, c.l, c.r, session, engine.RateHold, time.Second)
				if soonest[len(soonest)-1] < 5*time.Minute {
					t.Fatal("nobody waits in this world")
				}
				for i := range arrived {
					if entered[i] < soonest[i] || entered[i] > latest[i]+time.Second {
						t.Fatalf("seed %d: the visitor that enters as number %d does at %v, by the model between %v and %v", seed, i, entered[i], soonest[i], latest[i]+time.Second)
					}
				}
			}
		})
	}
}
