package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// originWorld is a sale behind which an origin of a little more capacity than it needs has a fault from the
// sixth minute to the ninth.
func originWorld(what string, protect bool) Scenario {
	sc := Scenario{Name: "origin " + what, Length: 20 * time.Minute, Sites: []Site{{Name: "a", Share: 2, Nodes: 2, Delay: 5 * time.Millisecond}, {Name: "b", Share: 1, Delay: 30 * time.Millisecond}},
		Settings: anteroom.Settings{TotalActiveUsers: 2000, NewUsersPerMinute: 600, SessionDuration: time.Minute, Protect: protect, ProtectLatency: time.Second},
		Arrivals: []Flow{{To: 20 * time.Minute, PerMinute: 400, ToPerMinute: 400}, {From: time.Minute, To: 2 * time.Minute, Visitors: 1500}},
		Visitors: Visitors{Browsing: Spread{Mean: 90 * time.Second}, Think: Spread{Mean: 10 * time.Second}, Streams: 0.9, Returns: 0.3},
		Origin:   Origin{PerSecond: 160, Latency: 50 * time.Millisecond}}
	if what != "" {
		sc.Origin.Faults = []OriginFault{{At: 6 * time.Minute, For: 3 * time.Minute, What: what}}
	}
	return sc
}

// TestOriginIsProtected: whatever happens to the origin, no promise is broken, and visitors see no more
// errors than without protection; nobody is admitted into one that is dead but in its first second; and those whom it
// has failed come back first.
func TestOriginIsProtected(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, method := range []anteroom.QueueingMethod{anteroom.FIFO, anteroom.Random} {
		for _, what := range append([]string{""}, originFaults...) {
			t.Run(string(method)+" "+what, func(t *testing.T) {
				t.Parallel()
				protects(t, what, method)
			})
		}
	}
}

func protects(t *testing.T, what string, method anteroom.QueueingMethod) {
	run := func(protect bool, back time.Duration) *Result {
		sc := originWorld(what, protect)
		sc.QueueingMethod, sc.ProtectReturn = method, back
		r := mustRun(t, sc, 1, Options{})
		for _, c := range r.Checks {
			if c.Broken > 0 && protect {
				t.Errorf("%s: broken %d of %d times, first %s", c.Name, c.Broken, c.Looked, c.First)
			}
		}
		return r
	}
	bare, r := run(false, 0), run(true, 10*time.Minute)
	slowest := r.Scenario.NewUsersPerMinute
	for _, p := range r.Points {
		if p.Pace > p.Rate || p.LastMinute > p.Rate {
			t.Fatalf("at %v: a pace of %d, %d admitted in a minute, the limit is %d", p.At, p.Pace, p.LastMinute, p.Rate)
		}
		slowest = min(slowest, p.Pace)
	}
	t.Logf("protected %+v, slowest pace %d; bare %+v", *r.Origin, slowest, *bare.Origin)
	if bare.Origin.Failed < r.Origin.Failed {
		t.Errorf("%d requests failed, without protection %d", r.Origin.Failed, bare.Origin.Failed)
	}
	if (slowest < r.Scenario.NewUsersPerMinute) != (what != "") {
		t.Errorf("the slowest pace is %d", slowest)
	}
	if what == "dead" && r.Origin.AdmittedDeadLate > 0 {
		t.Errorf("%d visitors were admitted into a dead origin after its first second", r.Origin.AdmittedDeadLate)
	}
	if what != "" && (r.Origin.Recovered < 0 || r.Origin.Recovered > 5*time.Minute) {
		t.Errorf("the pace was back at the limit after %v", r.Origin.Recovered)
	}
	if what != "" && what != "slow" {
		// Whoever left because of an error and comes back waits for others who do, and for nobody else.
		last := run(true, 0)
		t.Logf("%d came back and half of them waited for %v; without credit %d and %v", r.Origin.Back, r.Origin.BackWait, last.Origin.Back, last.Origin.BackWait)
		if r.Origin.Back < 100 || r.Origin.BackWait > last.Origin.BackWait*3/4 {
			t.Errorf("%d came back and half of them waited for %v; without credit %v", r.Origin.Back, r.Origin.BackWait, last.Origin.BackWait)
		}
	}
	if n := r.Numbers; n.Admitted < bare.Numbers.Admitted*9/10 {
		t.Errorf("%d were admitted, without protection %d", n.Admitted, bare.Numbers.Admitted)
	}
}

// TestDrawnWorldsWithAnOrigin: with all that goes wrong in drawn worlds, an origin that fails as well breaks
// no promise.
func TestDrawnWorldsWithAnOrigin(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for seed := uint64(1); seed <= max(1, 16/fewer); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			sc := Drawn(seed)
			what := originFaults[seed%4]
			sc.Protect, sc.ProtectLatency, sc.ProtectReturn = true, time.Second, 10*time.Minute
			sc.Visitors.Returns = 0.5
			for i := range sc.Changes {
				sc.Changes[i].Settings.Protect = i%3 < 2
			}
			sc.Origin = Origin{PerSecond: 50, Latency: 50 * time.Millisecond, Faults: []OriginFault{{At: sc.Length / 4, For: sc.Length / 4, What: what}}}
			for _, c := range mustRun(t, sc, seed, Options{}).Checks {
				if c.Broken > 0 {
					t.Errorf("%s, %s: broken %d of %d times, first %s", what, c.Name, c.Broken, c.Looked, c.First)
				}
			}
		})
	}
}
