package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden are the ten most telling scenarios. Their files say minute by minute what happened
// and end with the hash of the trace: whatever changes a decision changes them.
var golden = []string{"steady", "spike-one", "spike-world", "backlog", "random", "rate-open", "partition", "crash", "roaming", "site-lost"}

func TestGolden(t *testing.T) {
	for _, name := range golden {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc, ok := Named(name)
			if !ok {
				t.Fatal("no such scenario")
			}
			got := summary(mustRun(t, sc, 1, Options{}))
			file := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is another run than before; if that is meant: go test ./sim -run TestGolden -update\nwas\n%s\nis\n%s", name, want, got)
			}
		})
	}
}

func summary(r *Result) []byte {
	var b bytes.Buffer
	n := r.Numbers
	fmt.Fprintf(&b, "%s: %s\nseed %d\n\n", r.Scenario.Name, r.Scenario.About, r.Seed)
	fmt.Fprintf(&b, "minute  active  limit  waiting  arrived  admitted  last minute\n")
	for i, p := range r.Points {
		if p.At%time.Minute == 0 && (i == 0 || p.At != r.Points[i-1].At) {
			fmt.Fprintf(&b, "%6d %7d %6d %8d %8d %9d %12d\n", p.At/time.Minute, p.Active, p.Limit, p.Waiting, p.Arrived, p.Admitted, p.LastMinute)
		}
	}
	fmt.Fprintf(&b, "\narrived %d, admitted %d, left %d, refused %d, still waiting %d; were shown the page %d\n", n.Arrived, n.Admitted, n.Left, n.Refused, n.Waiting, n.Queued)
	fmt.Fprintf(&b, "most active %d, most in 60 s %d, longest line %d\n", n.PeakActive, n.PeakPerMinute, n.PeakWaiting)
	fmt.Fprintf(&b, "waits: half %v, 95 %% %v, longest %v\n", n.WaitP50.Round(time.Second), n.WaitP95.Round(time.Second), n.WaitMax.Round(time.Second))
	fmt.Fprintf(&b, "shown the page too early %.3f %%, overtaken %.3f %%, slots idle %.2f %%, a freed one taken after %v (95 %%: %v)\n",
		100*n.Premature, 100*n.Overtaken, 100*n.Idle, n.IdleP50.Round(10*time.Millisecond), n.IdleP95.Round(10*time.Millisecond))
	fmt.Fprintf(&b, "announced waits: error %.1f %%, bias %.1f %%; draws: %.1f points, rank %+.3f\n", 100*n.EtaError, 100*n.EtaBias, 100*n.LotteryError, n.LotteryRank)
	fmt.Fprintf(&b, "%.1f messages a second and site, %.1f requests a visitor\n\n", n.Messages, n.Requests)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-6s looked at %d times, broken %d times%s\n", c.Name, c.Looked, c.Broken, first(c))
	}
	fmt.Fprintf(&b, "\ntrace %s\n", r.Trace)
	return b.Bytes()
}

func first(c Check) string {
	if c.Broken == 0 {
		return ""
	}
	return ", first " + c.First
}
