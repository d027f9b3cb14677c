package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

var (
	firstSeed = flag.Uint64("sim.seed", 1, "first seed of TestSearch")
	traceFile = flag.String("sim.trace", "", "file for the trace of TestSearch's last run")
	runs      = flag.Int("sim.runs", suiteRuns, "runs of TestSearch, each with the next seed")
)

// TestSearch runs worlds drawn from seeds and holds them to every check. A search longer than
// that of the test suite says how far it is.
func TestSearch(t *testing.T) {
	said := searched{runs: *runs, began: time.Now()}
	for i := range *runs {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			defer func() { said.one(t.Failed(), seed) }()
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

// searched counts the worlds of a search.
type searched struct {
	mu           sync.Mutex
	runs         int
	done, broken int
	began, last  time.Time
}

const (
	suiteRuns  = 40 / fewer // what the test suite searches without a word
	sayingTime = 10 * time.Second
)

// one takes note of a world. Of a long search it shows the number every ten seconds, and each
// broken world at once.
func (s *searched) one(broken bool, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	if broken {
		s.broken++
	}
	if s.runs <= suiteRuns {
		return
	}
	if broken {
		fmt.Fprintf(os.Stderr, "seed %d broke a promise; repeat: make sim SEED=%d RUNS=1\n", seed, seed)
	}
	if s.done == s.runs || time.Since(s.last) >= sayingTime {
		s.last = time.Now()
		fmt.Fprintf(os.Stderr, "%d of %d worlds, %d broke a promise, %v\n", s.done, s.runs, s.broken, time.Since(s.began).Round(time.Second))
	}
}
