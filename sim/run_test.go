package sim

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func mustRun(t *testing.T, sc Scenario, seed uint64, opt Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), sc, seed, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSameSeedSameTrace: a run repeats byte for byte, and another seed is another run.
func TestSameSeedSameTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for seed := uint64(1); seed <= max(1, 6/fewer); seed++ {
		for _, algorithm := range Algorithms {
			if algorithm != Anteroom && seed > 1 {
				continue
			}
			var first, second, other bytes.Buffer
			a := mustRun(t, Drawn(seed), seed, Options{Algorithm: algorithm, Trace: &first})
			b := mustRun(t, Drawn(seed), seed, Options{Algorithm: algorithm, Trace: &second})
			if !bytes.Equal(first.Bytes(), second.Bytes()) || a.Trace != b.Trace {
				t.Errorf("%s, seed %d: two runs differ at byte %d", algorithm, seed, differ(first.Bytes(), second.Bytes()))
			}
			if c := mustRun(t, Drawn(seed), seed+1, Options{Algorithm: algorithm, Trace: &other}); c.Trace == a.Trace {
				t.Errorf("%s: seeds %d and %d give the same run", algorithm, seed, seed+1)
			}
		}
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sc, _ := Named("backlog")
	calls := 0
	_, err := Run(ctx, sc, 1, Options{Progress: func(done, total time.Duration) {
		if calls++; calls == 2 {
			cancel()
		}
		if done > total {
			t.Errorf("%v of %v have passed", done, total)
		}
	}})
	if err != context.Canceled {
		t.Errorf("a run that was stopped returns %v", err)
	}
}

// TestFaultsOverlap: a node that is back does not start once more when another fault of it is over.
// Nobody would hear that the streams there have gone.
func TestFaultsOverlap(t *testing.T) {
	sc := Scenario{Length: 4 * time.Minute, Drain: true, Sites: []Site{{Name: "a", Share: 1}},
		Settings: anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 20, SessionDuration: 20 * time.Second},
		Arrivals: []Flow{{To: time.Minute, Visitors: 30}}, Visitors: Visitors{Streams: 1, Browsing: Spread{Mean: 20 * time.Second}},
		Faults: Faults{Deaths: []Death{
			{At: time.Minute, For: 20 * time.Second, What: "node", Site: "a"},
			{At: 65 * time.Second, For: 5 * time.Second, What: "all"},
		}}}
	for _, c := range mustRun(t, sc, 1, Options{}).Checks {
		if c.Broken > 0 {
			t.Errorf("%s: broken %d of %d times, first %s", c.Name, c.Broken, c.Looked, c.First)
		}
	}
}

func TestScenarioCheck(t *testing.T) {
	good := Scenario{Length: time.Minute, Sites: []Site{{Name: "a", Share: 1}}}
	if err := good.withDefaults().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Scenario){
		"no length":          func(s *Scenario) { s.Length = 0 },
		"too long":           func(s *Scenario) { s.Length = MaxLength + 1 },
		"twins":              func(s *Scenario) { s.Sites = []Site{{Name: "a", Share: 1}, {Name: "a", Share: 1}} },
		"no shares":          func(s *Scenario) { s.Sites = []Site{{Name: "a"}} },
		"loads":              func(s *Scenario) { s.Sites[0].Loads = []float64{1, 2, 3} },
		"too many visitors":  func(s *Scenario) { s.Arrivals = []Flow{{To: time.Minute, Visitors: MaxVisitors + 1}} },
		"arrivals too late":  func(s *Scenario) { s.Arrivals = []Flow{{To: time.Hour, Visitors: 1}} },
		"arrivals nowhere":   func(s *Scenario) { s.Arrivals = []Flow{{To: time.Minute, Visitors: 1, Site: "b"}} },
		"cut nowhere":        func(s *Scenario) { s.Faults.Cuts = []Cut{{Site: "b"}} },
		"death of nothing":   func(s *Scenario) { s.Faults.Deaths = []Death{{What: "moon"}} },
		"death of no node":   func(s *Scenario) { s.Faults.Deaths = []Death{{What: "node", Site: "a", Node: 1}} },
		"share beyond one":   func(s *Scenario) { s.Visitors.Tabs = 1.5 },
		"negative rate":      func(s *Scenario) { s.Arrivals = []Flow{{To: time.Minute, PerMinute: -1}} },
		"hasty":              func(s *Scenario) { s.Visitors.Think.Mean = time.Millisecond },
		"leaves too eagerly": func(s *Scenario) { s.Visitors.LeavePerMinute = -1 },
	} {
		sc := good
		sc.Sites = []Site{{Name: "a", Share: 1}}
		spoil(&sc)
		if name == "no shares" {
			sc.Sites[0].Nodes = 1
		} else {
			sc = sc.withDefaults()
		}
		if sc.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSets(t *testing.T) {
	var s bitset
	var f fenwick
	in := map[int32]bool{}
	for i, n := range []int32{5, 70_000, 64, 4096, 5, 63, 300_000, 64, 0, 4095} {
		yes := !in[n]
		if !s.set(n, yes) || s.set(n, yes) {
			t.Fatalf("step %d: set says wrongly whether it changed something", i)
		}
		d := int32(1)
		if !yes {
			d = -1
		}
		f.add(n, d)
		in[n] = yes
		k := int32(0)
		at := s.next(0)
		for m := int32(0); m <= 300_000; m++ {
			if !in[m] {
				continue
			}
			if at != m {
				t.Fatalf("step %d: the member after is %d, want %d", i, at, m)
			}
			if f.before(m) != k || f.kth(k) != m {
				t.Fatalf("step %d: %d stand before %d, number %d is %d", i, f.before(m), m, k, f.kth(k))
			}
			k++
			at = s.next(m + 1)
		}
		if at != -1 || int(k) != s.n {
			t.Fatalf("step %d: %d members, %d after the last", i, s.n, at)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 || h.mean() != 0 {
		t.Error("an empty histogram has quantiles")
	}
	for i := range 1000 {
		h.add(time.Duration(i) * time.Millisecond)
	}
	for _, p := range []float64{0.1, 0.5, 0.99} {
		want := time.Duration(p*1000) * time.Millisecond
		if got := h.quantile(p); got < want*97/100 || got > want*103/100 {
			t.Errorf("quantile %v is %v, want about %v", p, got, want)
		}
	}
}

// TestLimitsChangeWhileACoordinatorBegins: one whose first record is being written has the limits that are in force when it is.
func TestLimitsChangeWhileACoordinatorBegins(t *testing.T) {
	sc := Scenario{Name: "begins", Length: 6 * time.Minute, Drain: true, Settings: limits(100, 100, time.Minute),
		Sites: []Site{{Name: "a", Share: 1}}, Arrivals: steady(6*time.Minute, 40),
		Faults: Faults{SlowStore: 3 * time.Second, Deaths: []Death{{At: 2 * time.Minute, For: 5 * time.Second, What: "coordinator"}}}}
	changed := sc.Settings
	changed.TotalActiveUsers, changed.NewUsersPerMinute = 80, 120
	sc.Changes = []Change{{At: 2*time.Minute + 7*time.Second, Settings: changed}}
	for _, c := range mustRun(t, sc, 1, Options{}).Checks {
		if c.Broken > 0 {
			t.Errorf("%s: %s", c.Name, c.First)
		}
	}
}

// TestSessionsEndThoughNobodyKnowsTheTime: a site that has begun while it is cut off holds sessions that are not renewed beyond their
// end, and lets them in. The one after it ends those whose time is over, and nobody is to blame.
func TestSessionsEndThoughNobodyKnowsTheTime(t *testing.T) {
	sc := Scenario{Name: "untimed", Length: 6 * time.Minute, Drain: true, Settings: limits(300, 300, time.Minute),
		Sites: []Site{{Name: "a", Share: 1}, {Name: "b", Share: 1}}, Arrivals: steady(6*time.Minute, 120),
		Visitors: Visitors{Browsing: Spread{Mean: 5 * time.Minute}, Think: Spread{Mean: 3 * time.Second}, Streams: 1},
		Faults: Faults{Cuts: []Cut{{At: time.Minute, For: 3 * time.Minute, Site: "a", Up: true}},
			Handovers: []Handover{{At: 80 * time.Second, Site: "a", Orderly: true}, {At: 3 * time.Minute, Site: "a", Orderly: true}}}}
	sc.DisableSessionRenewal = true
	for _, c := range mustRun(t, sc, 1, Options{}).Checks {
		if c.Broken > 0 {
			t.Errorf("%s: %s", c.Name, c.First)
		}
	}
}
