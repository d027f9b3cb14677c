//go:build faultclock

package server

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// wallClock is the machine's clock plus the milliseconds in the file that ANTEROOM_FAULT_CLOCK
// names, looked at every 100 ms: a wall clock that is wrong and jumps, while the monotonic one,
// which is not asked here, goes on. It is in builds for tests of that only.
func wallClock(ctx context.Context) func() time.Time {
	name := os.Getenv("ANTEROOM_FAULT_CLOCK")
	if name == "" {
		return nil
	}
	var offset atomic.Int64
	read := func() {
		text, err := os.ReadFile(name)
		if ms, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			offset.Store(ms)
		}
	}
	read()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				read()
			}
		}
	}()
	return func() time.Time { return time.Now().Round(0).Add(time.Duration(offset.Load()) * time.Millisecond) }
}
