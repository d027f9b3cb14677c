package published

import (
	"math"
	"time"

	"github.com/anteroom/anteroom"
)

// slots is the number of free slots: what both limits leave, never below 0. limit is
// total_active_users, rate new_users_per_minute, admitted those of the running minute.
func slots(limit, rate, active, admitted int) int {
	return max(0, min(limit-max(0, active), rate-admitted))
}

// reserve appends to dst how many of the waiting of each bucket, oldest first, have a
// reserved slot, and returns what is left for new visitors.
func reserve(dst []int, slots int, waiting []int) (reserved []int, left int) {
	for _, n := range waiting {
		n = min(n, slots)
		dst = append(dst, n)
		slots -= n
	}
	return dst, slots
}

// historyMinute is the minute whose visitors decide the shares at a moment: two minutes
// ago for Even, the last for the others.
func (m Method) historyMinute(now anteroom.Time) anteroom.Bucket {
	back := time.Minute
	if m == Even {
		back = 2 * time.Minute
	}
	return anteroom.BucketOf(now.Add(-back))
}

// Share is part/whole of slots, rounded to the nearest (a half up). Among sites only, whole is
// the number of all visitors of the minute; with Anywhere slots it is the limit, and what
// is missing to it is Anywhere's part.
func Share(slots, part, whole int) int {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return int((2*int64(slots)*int64(part) + int64(whole)) / (2 * int64(whole)))
}

// workers is the number of workers by which Adapted divides: n x utilisation^curve.
// utilisation is 0 … 1.
func workers(n int, utilisation, curve float64) float64 {
	return float64(n) * math.Pow(min(max(utilisation, 0), 1), curve)
}

// perWorker is one worker's part of a pool, rounded down; never more than the pool.
func perWorker(slots int, workers float64) int {
	if workers < 1 {
		return slots
	}
	return int(float64(slots) / workers)
}

// admits says whether a counter lets in the next visitor. value is its value before.
func admits(value, slots int) bool { return value < slots }

// ahead is the number of people before the visitors of bucket own: those of it and of
// the older ones who have no reserved slot.
func ahead(waiting, reserved []int, own int) int {
	n := 0
	for i := 0; i <= own; i++ {
		n += waiting[i] - reserved[i]
	}
	return n
}

// waitFIFO is the published estimate in minutes; +Inf when nobody is admitted.
func waitFIFO(ahead int, perMinute float64) float64 {
	if ahead <= 0 {
		return 0
	}
	return float64(ahead) / perMinute
}

// waitRandom is the published estimate, in minutes, of the time within which a share p
// (0 … 1) of those who wait is admitted: ln(1-p) / ln(1-P), where P is the share that is
// admitted in a minute. 0 when everybody is; +Inf when nobody is.
func waitRandom(waiting int, perMinute, p float64) float64 {
	share := perMinute / float64(max(1, waiting))
	if share >= 1 {
		return 0
	}
	return math.Log(1-p) / math.Log(1-share)
}
