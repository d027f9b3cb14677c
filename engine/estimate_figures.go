package engine

import (
	"math"
	"sort"
	"time"

	"github.com/anteroom/anteroom"
)

// Figures is the coordinator's picture of the line and of what will be released: what a
// door needs to tell a visitor place and wait without asking. A Figures is never changed
// after it was made and is shared by everybody who has it.
type Figures struct {
	At      anteroom.Time
	Number  uint64        // 1, 2, 3 … of one coordinator: two with the same epoch and number are the same
	Waiting int           // in touch, or expected back
	Hot     int64         // permits that nobody who is here could be given: whoever checks in may have one
	Front   anteroom.Time // the latest arrival that was released
	Oldest  anteroom.Time // the earliest arrival that waits; 0 when nobody does
	Seconds []SecondCount // the line by second of arrival, ascending
	// Shuffled is when the line was shuffled last; 0 when it never was. Arrivals of before it
	// say nothing any more: those who waited have other keys, before it, and who has come
	// back since without a place here is behind them.
	Shuffled anteroom.Time
	Released uint64 // releases ever

	// Forecast, made every five seconds: at CurveAt, when CurveFrom had been released.
	CurveAt   anteroom.Time
	CurveFrom uint64

	// Known says that the forecast holds for everybody. Without it Curve is what the rate alone would
	// let in, at the earliest.
	Known bool
	Step  time.Duration
	Curve []float32 // people served after 1, 2, … steps, those who leave included
	Leave float64   // per second and person: the rate at which people leave the line
	// Draw holds the quartiles of the wait of somebody who waits now, for Random.
	Draw [3]time.Duration
	// Seats were free at CurveAt: for as many the curve is the forecast, Known or not.
	Seats uint32
	// Ends is by when all sessions of CurveAt have ended; 0 when nobody can tell.
	Ends time.Duration

	// Lanes are the same for each lane, the highest first; none in a room without lanes.
	Lanes []LaneFigures
}

// LaneFigures are what of the [Figures] concerns the places of a number or above it, up to the lane before.
type LaneFigures struct {
	Lane uint8
	Figures
}

// Of are the figures for somebody in a lane: of that lane alone, if the room has any.
func (f *Figures) Of(lane uint8) *Figures {
	for i := range f.Lanes {
		if lane >= f.Lanes[i].Lane {
			return &f.Lanes[i].Figures
		}
	}
	return f
}

// tells says that the figures count the places of a lane in their order: where a lane is gone, or a visitor comes back after an
// outage, the arrival alone does not say how many are ahead.
func (f *Figures) tells(lane uint8) bool {
	for i := range f.Lanes {
		if lane == f.Lanes[i].Lane {
			return true
		}
	}
	return lane == 0
}

// SecondCount is the number of people who arrived in a second and how many arrived before.
type SecondCount struct {
	Second int64 // Unix second of room time
	Before uint32
	Count  uint32
	// First and Last arrival in the second, in its microseconds.
	First, Last uint32
}

// Rank is the number of people in line before an arrival. Inside a second it interpolates
// between the first arrival that can still be in line and the last.
func (f *Figures) Rank(key anteroom.Time) int {
	sec := int64(key) / 1e6
	i := sort.Search(len(f.Seconds), func(i int) bool { return f.Seconds[i].Second >= sec })
	if i == len(f.Seconds) {
		return f.Waiting
	}
	s := f.Seconds[i]
	if s.Second > sec {
		return int(s.Before)
	}
	first, last, own := int64(s.First), int64(s.Last), int64(key)%1e6
	if int64(f.Front)/1e6 == sec {
		first = max(first, int64(f.Front)%1e6+1)
	}
	if own <= first {
		return int(s.Before)
	}
	if own >= last {
		return int(s.Before + s.Count - 1)
	}
	return int(s.Before) + int(int64(s.Count)*(own-first)/(last-first+1))
}

// short reports that the curve ends before a line of n does, though it could reach further.
func (f *Figures) short(n int, reach time.Duration) bool {
	last := len(f.Curve) - 1
	return last >= 0 && time.Duration(len(f.Curve)+2)*f.Step < reach && float64(f.Curve[last]) <= float64(n)
}

// WaitOf is the forecast of the wait of somebody with n people ahead, as of now.
func (f *Figures) WaitOf(n float64, now anteroom.Time) time.Duration {
	n += 0.99 + float64(f.Released-f.CurveFrom) // served when those ahead and the visitor are; sums of parts fall short of 1
	since := now.Sub(f.CurveAt)
	step := f.Step.Seconds()
	prev := 0.0
	i := sort.Search(len(f.Curve), func(i int) bool { return float64(f.Curve[i]) >= n })
	var secs float64
	switch {
	case i < len(f.Curve):
		if i > 0 {
			prev = float64(f.Curve[i-1])
		}
		secs = (float64(i) + (n-prev)/(float64(f.Curve[i])-prev)) * step
	case len(f.Curve) == 0:
		return never
	default:
		// Beyond the horizon the last quarter's rate goes on.
		last := len(f.Curve) - 1
		from := last * 3 / 4
		rate := (float64(f.Curve[last]) - float64(f.Curve[from])) / (float64(max(last-from, 1)) * step)
		if rate <= 0 {
			return never
		}
		// The curve grows by exp(theta t) already; take the growth out and solve in closed form.
		end := float64(len(f.Curve)) * step
		rate *= math.Exp(-f.Leave * end)
		secs = end + 60*waitFIFO((n-float64(f.Curve[last]))*math.Exp(-f.Leave*end), rate*60, f.Leave*60)
	}
	secs = math.Min(secs, never.Seconds())
	return max(0, time.Duration((secs+0.5)*float64(time.Second))-since)
}

// Told is the forecast of the wait of somebody with n people ahead; false when there is none.
func (f *Figures) Told(n int, now anteroom.Time) (time.Duration, bool) {
	if len(f.Curve) == 0 || !f.Known && f.Released-f.CurveFrom+uint64(n) >= uint64(f.Seats) {
		return 0, false
	}
	return f.WaitOf(float64(n), now), true
}

// Bounds are what the limits say about the wait of somebody with n people ahead where there is no
// forecast: at least so long by the rate, if nobody ahead leaves, and at most so long when all
// sessions end by themselves. A bound of 0 is none.
//
// The k-th turn from now waits for two units: a seat, which is that of the turn s before, for s seats,
// or of a session of now, and so free Ends after either; and a rate slot, likewise, [RateHold] after the
// turn r before. So a turn is at most max(Ends, RateHold) + (k-1) max(Ends/s, RateHold/r) away, by
// induction. Turns may be spread over a minute, and are taken some time after they were given.
func (f *Figures) Bounds(n int, now anteroom.Time, s *anteroom.Settings) (least, most time.Duration) {
	if len(f.Curve) == 0 || s.TotalActiveUsers <= 0 || s.NewUsersPerMinute <= 0 {
		return 0, 0
	}
	least = f.WaitOf(float64(n), now)
	least -= least / 7 // as the page shows a forecast
	if f.Ends > 0 {
		each := max(f.Ends.Seconds()/float64(s.TotalActiveUsers), RateHold.Seconds()/float64(s.NewUsersPerMinute))
		more := min(float64(n)*each, never.Seconds())
		most = max(f.Ends, RateHold) + claimStream + claimHorizon + time.Minute/2 + time.Duration(more*float64(time.Second))
	}
	return least, most
}

// Reached is the arrival up to which the line will have been released at a moment, by the
// forecast. known is false when there is none, or when everybody who waited will have been.
func (f *Figures) Reached(at anteroom.Time) (key anteroom.Time, known bool) {
	steps := at.Sub(f.CurveAt).Seconds() / f.Step.Seconds()
	i := int(steps)
	if !f.Known || len(f.Seconds) == 0 || i < 0 || i >= len(f.Curve) {
		return 0, false
	}
	prev := 0.0
	if i > 0 {
		prev = float64(f.Curve[i-1])
	}
	n := prev + (float64(f.Curve[i])-prev)*(steps-float64(i)) - float64(f.Released-f.CurveFrom)
	k := sort.Search(len(f.Seconds), func(k int) bool { return float64(f.Seconds[k].Before)+float64(f.Seconds[k].Count) > n })
	if k == len(f.Seconds) {
		return 0, false
	}
	s := f.Seconds[k]
	share := max(0, n-float64(s.Before)) / float64(s.Count)
	return anteroom.Time(s.Second*1e6) + anteroom.Time(s.First) + anteroom.Time(share*float64(s.Last-s.First)), true
}

// never is the forecast for those whose turn is not in sight.
const never = 2 * anteroom.QueueIsFullAfter

// waitFIFO is the wait in minutes of somebody with n people ahead when perMinute are
// admitted and each of those waiting leaves at the rate leave per minute:
// ln(1 + leave n / perMinute) / leave, and n / perMinute without leaving.
func waitFIFO(n, perMinute, leave float64) float64 {
	if n <= 0 {
		return 0
	}
	if leave <= 0 {
		return n / perMinute
	}
	return math.Log1p(leave*n/perMinute) / leave
}

// waitRandom is the wait in minutes after which somebody who waits among n people has been
// drawn with probability p, when perMinute are drawn and joins join every minute. It solves
// S' = -S perMinute/N with N = n + (joins - perMinute) t. The result is +Inf when the
// probability is never reached.
func waitRandom(n, perMinute, joins, p float64) float64 {
	grow := joins - perMinute
	if math.Abs(grow) < 1e-9 {
		return -math.Log(1-p) * n / perMinute
	}
	// S(t) = (1 + grow t / n)^(-perMinute/grow)
	return n / grow * (math.Pow(1-p, -grow/perMinute) - 1)
}
