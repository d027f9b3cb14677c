package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
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
	worlds = append(worlds, sc, tokens(sc), Drawn(20334)) // in that one many sessions go on that had been over for the origin
	for seed := uint64(1); len(worlds) < 17; seed++ {
		if sc := Drawn(seed); sc.Pass > 0 {
			if worlds = append(worlds, sc); len(worlds) < 13 {
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

// A seat that is held for a pass is not free. If the pass is used, the session goes on, and no other slot counts as free for longer.
func TestSlotsAreFreeAfterTheirPasses(t *testing.T) {
	set := passing(limits(3, 100, time.Minute), 30*time.Second)
	w, err := newWorld(Scenario{Length: 10 * time.Minute, Sites: []Site{{Name: "a", Share: 1}}, Settings: set}, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := w.judge
	j.listeners, j.waitingNow = 3, 3
	at := func(after time.Duration) {
		for ; w.now < epoch.Add(after); w.now = w.now.Add(time.Second) {
			j.settle()
		}
		j.settle()
	}
	enters := func(id byte) {
		j.taken()
		j.open(anteroom.ID{id}, 0, 0, &anteroom.Ticket{AcceptedAt: w.now}, w.now)
		j.level()
	}
	free := func(want ...time.Duration) {
		t.Helper()
		var got []time.Duration
		for _, s := range j.freeSince {
			got = append(got, w.now.Sub(s.since))
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v slots have been free for %v, want %v", w.since(w.now), got, want)
		}
	}
	over := set.SessionDuration + 35*time.Second // the pass, and clocks
	at(0)
	enters(1)
	at(2 * time.Second)
	enters(2)
	at(4 * time.Second)
	enters(3)
	at(over - time.Second)
	free()
	j.resume(anteroom.ID{2}, 0, 0, &anteroom.Ticket{AcceptedAt: epoch}, w.now)
	j.level()
	at(over + 10*time.Second)
	free(10*time.Second, 6*time.Second)
	enters(4)
	free(6 * time.Second)

	// The room has not heard of the last requests: seats come free sooner than the passes say.
	at(over + set.SessionDuration + 15*time.Second) // all but the last are over, two seats are held
	enters(5)
	enters(6)
	free()
	at(over + set.SessionDuration + 44*time.Second)
	free()
	at(over + 2*set.SessionDuration)
	free(15 * time.Second)
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
