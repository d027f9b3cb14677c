package sim

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestClosing: when a room is closed over a line, those who wait are told to go, streams or
// not, and the run ends with the last session. Nobody is counted as having left.
func TestClosing(t *testing.T) {
	for _, method := range []anteroom.QueueingMethod{anteroom.FIFO, anteroom.Random} {
		sc := Scenario{Name: "closing", Length: 12 * time.Minute, Drain: true, Settings: limits(30, 20, time.Minute),
			Arrivals: steady(12*time.Minute, 40), Visitors: Visitors{Browsing: Spread{Mean: 2 * time.Minute}, Streams: 0.5}}
		sc.QueueingMethod = method
		closed := sc.Settings
		closed.QueueingMethod = anteroom.Reject
		sc.Changes = []Change{{At: 6 * time.Minute, Settings: closed}}
		r := mustRun(t, sc, 1, Options{})
		n := r.Numbers
		if n.Queued < 100 || n.Left != 0 || n.Waiting != 0 || n.Refused != n.Arrived-n.Admitted {
			t.Errorf("%s: %d waited, %d left, %d wait, %d were refused of %d, %d of them let in", method, n.Queued, n.Left, n.Waiting, n.Refused, n.Arrived, n.Admitted)
		}
		if r.Ran > 40*time.Minute {
			t.Errorf("%s: nobody can come in after 6 minutes, and the run lasted %v", method, r.Ran)
		}
		for _, c := range r.Checks {
			if c.Name == checks[checkBooks].Name && c.Broken > 0 {
				t.Errorf("%s: %s", method, c.First)
			}
		}
	}
}

// TestQuartilesOff: quartiles that are told in a steady draw hold, and those that reach beyond
// the end of the draw count for nothing.
func TestQuartilesOff(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	sc := Scenario{Name: "draw", Length: 30 * time.Minute, Settings: drawn(limits(2000, 100, time.Minute)),
		Arrivals: append(steady(30*time.Minute, 60), Flow{To: time.Minute, Visitors: 1500}), Visitors: Visitors{Streams: 1}}
	r := mustRun(t, sc, 1, Options{})
	if off := r.Numbers.LotteryError; off == 0 || off > 0.06 {
		t.Errorf("the quartiles are off by %.3f, above 0 and up to 0.06 are expected", off)
	}
	closed := sc.Settings
	closed.QueueAll = true
	for at := time.Minute; at < sc.Length; at += time.Minute { // open for a moment, every minute
		sc.Changes = append(sc.Changes, Change{At: at, Settings: closed}, Change{At: at + time.Second, Settings: sc.Settings})
	}
	if off := mustRun(t, sc, 1, Options{}).Numbers.LotteryError; off != 0 {
		t.Errorf("no wait lies between two holds, and the quartiles are off by %.3f", off)
	}
}
