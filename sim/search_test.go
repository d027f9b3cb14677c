package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
)

var (
	firstSeed = flag.Uint64("sim.seed", 1, "first seed of TestSearch")
	traceFile = flag.String("sim.trace", "", "file for the trace of TestSearch's last run")
	runs      = flag.Int("sim.runs", 40, "runs of TestSearch, each with the next seed")
)

// TestSearch runs worlds drawn from seeds and holds them to every check.
func TestSearch(t *testing.T) {
	for i := range *runs {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sc := Drawn(seed)
			opt := Options{}
			if *traceFile != "" {
				out, err := os.Create(*traceFile)
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				opt.Trace = out
			}
			r, err := Run(context.Background(), sc, seed, opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if c.Broken > 0 {
					t.Errorf("%s: broken %d of %d times, first %s\nrepeat: make sim SEED=%d RUNS=1\nthe world: %+v", c.Name, c.Broken, c.Looked, c.First, seed, sc)
				}
			}
			t.Logf("seed %d: %d arrived, %d admitted, peak line %d, over %v", seed, r.Numbers.Arrived, r.Numbers.Admitted, r.Numbers.PeakWaiting, r.Ran)
		})
	}
}
