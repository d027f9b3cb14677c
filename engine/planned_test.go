package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A forecast that knows of limits to come says that a line ahead of them moves faster, or slower, from then on.
func TestForecastKnowsPlannedLimits(t *testing.T) {
	now := anteroom.Time(0).Add(time.Hour)
	wait := func(ahead []planned, place float64) time.Duration {
		f := &forecast{endsAll: knownEnds}
		f.configure(time.Minute)
		out := &Figures{At: now, Waiting: 2000}
		f.write(now, out, capacity{limit: [units]float64{Seat: 1e6, RateSlot: 60}, free: [units]float64{Seat: 1e6, RateSlot: 60}, burst: 5, rate: 2, pace: 5, ahead: ahead})
		out.CurveAt = now
		return out.WaitOf(place, now).Round(time.Minute)
	}
	more := []planned{{after: 300, limit: [units]float64{Seat: 1e6, RateSlot: 600}, burst: 20, rate: 20}}
	less := []planned{{after: 300, limit: [units]float64{Seat: 1e6, RateSlot: 30}, burst: 5, rate: 1}}
	both := append([]planned{}, more[0], planned{after: 360, limit: [units]float64{Seat: 1e6, RateSlot: 60}, burst: 5, rate: 2})
	for _, c := range []struct {
		what  string
		ahead []planned
		place float64
		want  time.Duration
	}{
		{"60 a minute", nil, 900, 15 * time.Minute},
		{"600 a minute from the fifth on", more, 240, 4 * time.Minute},
		{"600 a minute from the fifth on", more, 1200, 6 * time.Minute},
		{"30 a minute from the fifth on", less, 600, 15 * time.Minute},
		{"600 in one minute only", both, 1500, 15 * time.Minute},
	} {
		if got := wait(c.ahead, c.place); got < c.want-time.Minute || got > c.want+time.Minute {
			t.Errorf("%s: number %v waits %v, want about %v", c.what, c.place, got, c.want)
		}
	}
}
