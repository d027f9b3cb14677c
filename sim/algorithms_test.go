//go:build !race

package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// compared are the columns of the table that TestAlgorithms prints.
var compared = []struct {
	name string
	of   func(*Result) float64
}{
	{"over active %", percent(func(r *Result) float64 { return r.Numbers.OverActive })},
	{"over rate, any 60 s %", percent(func(r *Result) float64 { return r.Numbers.OverAnyMinute })},
	{"overtaken %", passed},
	{"too early %", tooEarly},
	{"idle %", idle},
	{"freed slot p50 s", freed50},
	{"announced off %", percent(func(r *Result) float64 { return r.Numbers.EtaError })},
}

// TestAlgorithms runs the same worlds with the product, the published ways of sharing slots
// and the ideal, and holds the product to being no worse than any published one where they
// break the limit or the order. go test ./sim -run TestAlgorithms -v -sim.goals=20 prints
// the table of docs/simulate.md.
func TestAlgorithms(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	judged := compared[:4]
	if *goalSeeds < 3 {
		judged = compared[:3] // who sees the page too early says something in the median only
	}
	table := []string{"| scenario | algorithm |"}
	for _, c := range compared {
		table[0] += " " + c.name + " |"
	}
	for _, name := range []string{"steady", "spike-one", "spike-world", "backlog", "rate-open", "partition"} {
		sc, _ := Named(name)
		medians := map[string][]float64{}
		for _, algorithm := range Algorithms {
			values := make([][]float64, len(compared))
			for seed := uint64(1); seed <= uint64(*goalSeeds); seed++ {
				r, err := Run(context.Background(), sc, seed, Options{Algorithm: algorithm})
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range compared {
					values[i] = append(values[i], c.of(r))
				}
			}
			row := fmt.Sprintf("| %s | %s |", name, algorithm)
			for _, v := range values {
				slices.Sort(v)
				m := v[len(v)/2]
				medians[algorithm] = append(medians[algorithm], m)
				row += fmt.Sprintf(" %.3g |", m)
			}
			table = append(table, row)
		}
		for _, published := range []string{Even, Adapted, Counters} {
			for i, c := range judged {
				if ours, theirs := medians[Anteroom][i], medians[published][i]; ours > theirs && ours > 0.3 {
					t.Errorf("%s: %s is %.3g with us and %.3g with %s", name, c.name, ours, theirs, published)
				}
			}
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// TestCoordinatorReturns: a coordinator that starts again gives turns within two heartbeats
// of the first report that it hears.
func TestCoordinatorReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	sc, _ := Named("crash")
	for seed := uint64(1); seed <= 5; seed++ {
		var trace bytes.Buffer
		mustRun(t, sc, seed, Options{Trace: &trace})
		back := time.Duration(-1)
		for line := range strings.Lines(trace.String()) {
			var s float64
			fmt.Sscanf(line, "%f", &s)
			at := time.Duration(s * float64(time.Second))
			switch {
			case strings.Contains(line, "death coordinator") && strings.HasSuffix(line, "over\n"):
				back = at
			case back >= 0 && strings.Contains(line, " turn v"):
				t.Logf("seed %d: the first turn %v after the start", seed, at-back)
				if at-back > 1200*time.Millisecond {
					t.Errorf("seed %d: the first turn comes %v after the coordinator's start", seed, at-back)
				}
				back = -1
			}
		}
		if back >= 0 {
			t.Errorf("seed %d: no turn after the coordinator's start", seed)
		}
	}
}
