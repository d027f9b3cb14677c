//go:build faultclock

package walltime

import (
	"testing"
	"time"
)

func TestOnlyTheWallClockIsWrong(t *testing.T) {
	defer offset.Store(0)
	before := time.Now()
	for _, s := range []int64{5000, -5000, 250, -1, 86_400_000} {
		offset.Store(s)
		got := Now()
		if d := got.Sub(before); d < 0 || d > time.Minute {
			t.Errorf("%d ms: the monotonic clock moved by %v", s, d)
		}
		if d := got.Round(0).Sub(before.Round(0)) - time.Duration(s)*time.Millisecond; d < 0 || d > time.Minute {
			t.Errorf("%d ms: the wall clock is off by %v more", s, d)
		}
	}
}
