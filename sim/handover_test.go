//go:build !race

package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestHandovers: the worlds of the search, with a hand-over of some site every minute or so, and
// with visitors who go from site to site. All is held but the order: a process that takes over
// does not know when those who wait are due, and some who come later than it expects are passed
// over until they do.
func TestHandovers(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	worlds := 8 / fewer
	if *runs > suiteRuns {
		worlds = *runs
	}
	for i := range worlds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sc, rng := Drawn(seed), rand.New(rand.NewPCG(seed, 10))
			sc.Visitors.Roams = max(sc.Visitors.Roams, 0.1)
			sc.Faults.Handovers = nil
			for at := 20 * time.Second; at < sc.Length-time.Minute; at += time.Duration(rng.Int64N(int64(2 * time.Minute))) {
				sc.Faults.Handovers = append(sc.Faults.Handovers, Handover{At: at,
					For: time.Duration(rng.Int64N(int64(MaxHandover))), Site: sc.Sites[rng.IntN(len(sc.Sites))].Name})
			}
			for i, c := range mustRun(t, sc, seed, Options{}).Checks {
				if c.Broken > 0 && checkName(i) != checkOrder {
					t.Errorf("%s: broken %d of %d times, first %s", c.Name, c.Broken, c.Looked, c.First)
				}
			}
		})
	}
}

// TestHandoverScenario: in a queue that hands over ten times nothing is broken, the order included.
func TestHandoverScenario(t *testing.T) {
	sc, _ := Named("handover")
	for _, c := range mustRun(t, sc, 1, Options{}).Checks {
		if c.Broken > 0 {
			t.Errorf("%s: broken %d of %d times, first %s", c.Name, c.Broken, c.Looked, c.First)
		}
	}
}
