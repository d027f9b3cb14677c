package sim

import "testing"

// Every promise holds behind edges that accept passes and say nothing of the requests: their clocks are off, cookies are lost and
// copied, and in drawn worlds anything else goes wrong as well and settings change.
func TestPasses(t *testing.T) {
	worlds := []Scenario{}
	sc, ok := Named("passes")
	if !ok {
		t.Fatal("no such scenario")
	}
	worlds = append(worlds, sc)
	for seed := uint64(1); len(worlds) < 12; seed++ {
		if sc := Drawn(seed); sc.Pass > 0 {
			worlds = append(worlds, sc)
		}
	}
	for _, sc := range worlds {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
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
		})
	}
}
