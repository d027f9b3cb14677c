package sim

import (
	"slices"
	"testing"
	"time"
)

// tokens puts a bridge in front of a world with edges: its tokens are passes for all of the session.
func tokens(sc Scenario) Scenario {
	sc.Name += " with tokens"
	sc.Pass, sc.Redeem = 0, 20*time.Second
	sc.Changes = slices.Clone(sc.Changes)
	for i := range sc.Changes {
		sc.Changes[i].Settings.Pass, sc.Changes[i].Settings.Redeem = 0, sc.Redeem
	}
	return sc
}

// Every promise holds behind edges that accept passes and say nothing of the requests: their clocks are off, cookies are lost and
// copied, and in drawn worlds anything else goes wrong as well and settings change.
func TestPasses(t *testing.T) {
	worlds := []Scenario{}
	sc, ok := Named("passes")
	if !ok {
		t.Fatal("no such scenario")
	}
	worlds = append(worlds, sc, tokens(sc))
	for seed := uint64(1); len(worlds) < 16; seed++ {
		if sc := Drawn(seed); sc.Pass > 0 {
			if worlds = append(worlds, sc); len(worlds) < 12 {
				worlds = append(worlds, tokens(sc))
			}
		}
	}
	for _, sc := range worlds {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			ranBehindEdges(t, sc)
		})
	}
}

// ranBehindEdges runs a world with edges, in which every promise holds.
func ranBehindEdges(t *testing.T, sc Scenario) *world {
	t.Helper()
	w, err := newWorld(sc, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.edges.ids) < 10 {
		t.Errorf("%d passes were issued", len(w.edges.ids))
	}
	for _, c := range w.judge.checks {
		if c.Broken > 0 {
			t.Errorf("%s, %d times: %s", c.Name, c.Broken, c.First)
		}
	}
	return w
}

// So it does where edges report, whether the reports arrive or not. Seats are held for a shorter time then, so that more visitors enter;
// visitors whose requests are reported keep their sessions as before.
func TestReports(t *testing.T) {
	sc, ok := Named("reports")
	if !ok {
		t.Fatal("no such scenario")
	}
	t.Run("seats", func(t *testing.T) {
		t.Parallel()
		told := ranBehindEdges(t, sc)
		silent := sc
		silent.PassReported = false
		if held := ranBehindEdges(t, silent); told.judge.admitted < held.judge.admitted*11/10 {
			t.Errorf("%d visitors entered, and %d without reports", told.judge.admitted, held.judge.admitted)
		}
	})
	worlds := []Scenario{}
	for seed := uint64(1); len(worlds) < 10; seed++ {
		if sc := Drawn(seed); sc.PassReported {
			worlds = append(worlds, sc)
		}
	}
	for _, sc := range worlds {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			ranBehindEdges(t, sc)
		})
	}
}
