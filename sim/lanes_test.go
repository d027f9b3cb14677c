package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A sale in which most visitors are members: their lane is called first, everybody else has three tenths of the turns at least, and both
// are told how long that takes.
func TestLanesAreToldTheTruth(t *testing.T) {
	sc := Scenario{Name: "lanes", Length: 20 * time.Minute, Drain: true, Settings: limits(200, 200, 2*time.Minute),
		Sites:    []Site{{Name: "a", Nodes: 2, Delay: 5 * time.Millisecond}, {Name: "b", Nodes: 2, Delay: 40 * time.Millisecond}},
		Arrivals: []Flow{{To: time.Minute, Visitors: 600}, {To: 20 * time.Minute, PerMinute: 90, ToPerMinute: 40}},
		Visitors: Visitors{Browsing: Spread{Mean: time.Minute}, Think: Spread{Mean: 15 * time.Second}, Streams: 0.7, LeavePerMinute: 0.01},
		Lanes:    []Lane{{Priority: 1, Visitors: 0.6}, {Priority: 0, Share: 30}},
	}
	var off [2][]float64 // how far half of the waits are from what was announced, by lane and seed
	for seed := range uint64(9) {
		r, err := Run(context.Background(), sc, seed+1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Checks {
			if c.Broken > 0 {
				t.Errorf("seed %d, %s: %s", seed+1, c.Name, c.First)
			}
		}
		for i, l := range r.Numbers.Lanes {
			off[i] = append(off[i], l.EtaError)
			if want := 1 - i; l.Priority != want || l.Admitted < 600 || l.EtaTold < 400 {
				t.Errorf("seed %d: got %+v, want lane %d", seed+1, l, want)
			}
		}
		if members, others := r.Numbers.Lanes[0], r.Numbers.Lanes[1]; members.WaitP50 > others.WaitP50*2/3 {
			t.Errorf("seed %d: members waited for %v, everybody else for %v", seed+1, members.WaitP50, others.WaitP50)
		}
	}
	for i, most := range []float64{0.04, 0.12} { // one seed says little: the others' waits are off by 0.06 to 0.2
		if slices.Sort(off[i]); off[i][len(off[i])/2] > most {
			t.Errorf("lane %d: half of the waits are off by more than %.3f of what was announced, in half of the seeds", 1-i, off[i][len(off[i])/2])
		}
	}
}

// In one room in five lanes are drawn; these are worlds with little else in them.
func TestLanesInCalmWorlds(t *testing.T) {
	for _, method := range []anteroom.QueueingMethod{anteroom.FIFO, anteroom.Random} {
		for seed := range uint64(6) {
			sc := Drawn(100 + seed)
			sc.Faults, sc.Changes, sc.QueueingMethod, sc.Lanes = Faults{}, nil, method, nil
			for n := uint64(0); len(sc.Lanes) == 0; n++ {
				drawLanes(&sc, rand.New(rand.NewPCG(seed, n)))
			}
			r, err := Run(context.Background(), sc, seed, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if c.Broken > 0 {
					t.Errorf("%s, seed %d, %+v: %s: %s", method, seed, sc.Lanes, c.Name, c.First)
				}
			}
		}
	}
}
