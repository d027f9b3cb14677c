//go:build !race

package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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

// TestASilentDoorHoldsNobodyUp: the machine that stands still has the roles of coordinator and site, and a door. Visitors
// with a stream there cannot be called; whoever takes the roles over waits for the doors that it hears, and not for that one.
func TestASilentDoorHoldsNobodyUp(t *testing.T) {
	const at, taken = time.Minute, 2500 * time.Millisecond
	for seed := range uint64(6) {
		sc, ok := Named("backlog")
		if !ok {
			t.Fatal("there is no scenario backlog")
		}
		sc.Length, sc.Drain = 90*time.Second, false
		sc.TotalActiveUsers, sc.NewUsersPerMinute, sc.SessionDuration = 2000, 120, time.Minute
		sc.Sites = []Site{{Name: "a", Share: 1, Nodes: 4}}
		sc.Arrivals = []Flow{{To: 30 * time.Second, Visitors: 300}, {PerMinute: 120}}
		sc.Visitors.Streams = 1
		for _, what := range []string{"coordinator", "site", "node"} {
			p := Pause{At: at, For: 8 * time.Second, What: what}
			if what != "coordinator" {
				p.Site = "a"
			}
			if what != "node" {
				p.Replaced = taken
			}
			sc.Faults.Pauses = append(sc.Faults.Pauses, p)
		}
		var trace bytes.Buffer
		if _, err := Run(t.Context(), sc, seed+1, Options{Trace: &trace}); err != nil {
			t.Fatal(err)
		}
		admitted := 0
		for line := range strings.Lines(trace.String()) {
			f := strings.Fields(line)
			if len(f) < 5 || f[1] != "admit" || f[4] == "session" {
				continue
			}
			s, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			if s > (at+taken).Seconds() && s < (at+taken+3*time.Second).Seconds() {
				admitted++
			}
		}
		if admitted < 2 { // of 6 whom the rate allows
			t.Errorf("seed %d: %d are admitted in the three seconds after the roles were taken", seed+1, admitted)
		}
	}
}
