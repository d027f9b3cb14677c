//go:build faultclock

package walltime

import (
	"testing"
	"time"
)

func TestOnlyTheWallClockIsWrong(t *testing.T) {
	defer offset.Store(0)
	before := time.Now()
	for _, s := range []int64{5, -5, 86400} {
		offset.Store(s)
		got := Now()
		if d := got.Sub(before); d < 0 || d > time.Minute {
			t.Errorf("%d s: the monotonic clock moved by %v", s, d)
		}
		if d := got.Round(0).Sub(before.Round(0)) - time.Duration(s)*time.Second; d < 0 || d > time.Minute {
			t.Errorf("%d s: the wall clock is off by %v more", s, d)
		}
	}
}
