//go:build !race

// The race detector's own memory and time would be what is measured.

package engine

import (
	"runtime"
	"testing"
)

// TestMillionWaiting: one million waiting visitors take at most 100 MB, of which the
// coordinator's share is at most 64 bytes each.
func TestMillionWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 1_000_000
	before := heap()
	x, _, _ := crowd(t, n)
	used := heap() - before
	if waiting := x.coordinator.line.waiting(); waiting != n {
		t.Fatalf("%d wait", waiting)
	}
	x.coordinator.figures, x.coordinator.outlook, x.coordinator.line = nil, nil, newLine(midnight)
	line := used - (heap() - before)
	t.Logf("one million waiting: %.1f MB, %.1f bytes each at the coordinator", float64(used)/1e6, float64(line)/n)
	if used > 100_000_000 {
		t.Errorf("one million waiting visitors take %d bytes, 100 MB are allowed", used)
	}
	if line > 64*n {
		t.Errorf("%d bytes per waiting visitor at the coordinator, 64 are allowed", line/n)
	}
	runtime.KeepAlive(x)
}
