package walltime

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNextBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its time begins at a full second
		for _, c := range []struct{ at, every, want time.Duration }{
			{0, time.Second, time.Second},
			{time.Millisecond, time.Second, 999 * time.Millisecond},
			{875 * time.Millisecond, time.Second, 125 * time.Millisecond},
			{876 * time.Millisecond, time.Second, 1124 * time.Millisecond}, // too close
			{time.Second - 1, time.Second, time.Second + 1},                // a timer that ended early
			{1250 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond},
			{1250 * time.Millisecond, 200 * time.Millisecond, 150 * time.Millisecond},
			{1250 * time.Millisecond, 600 * time.Millisecond, 0},
		} {
			began := time.Now()
			time.Sleep(c.at)
			got := NextBeat(c.every)
			if c.want == 0 { // 600 ms do not divide a second
				c.want = got
			}
			if got != c.want || time.Now().Add(got).UnixNano()%int64(c.every) != 0 {
				t.Errorf("%v after a full second, the next beat of %v is in %v, want %v", c.at, c.every, got, c.want)
			}
			time.Sleep(time.Until(began.Add(10 * time.Second)))
		}
	})
}

// TestBeatsCoincide: what is done more often is also done when the rest is.
func TestBeatsCoincide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := map[time.Duration]int{}
		done := make(chan time.Duration)
		for _, every := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond, time.Second} {
			go func() {
				time.Sleep(37 * time.Millisecond / (every / (100 * time.Millisecond)))
				for time.Since(began) < 6*time.Second {
					time.Sleep(NextBeat(every))
					done <- time.Since(began)
				}
				done <- -1
			}()
		}
		for ended := 0; ended < 4; {
			if d := <-done; d < 0 {
				ended++
			} else {
				at[d]++
			}
		}
		if len(at) != 60 || at[6*time.Second] != 4 {
			t.Errorf("a process woke up at %d moments in six seconds, want 60, the last time for %d reasons, want 4", len(at), at[6*time.Second])
		}
	})
}
