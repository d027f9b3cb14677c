package engine

import (
	"testing"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// TestSecondsOlderThanTheRing: an arrival that is too old for the ring is counted at its
// beginning, also after the ring was to grow to the past once more.
func TestSecondsOlderThanTheRing(t *testing.T) {
	var r secondRing
	day := anteroom.Time(oldestSecond * 1e6)
	r.add(midnight, 1)
	r.add(midnight-3*day, 1)
	r.add(midnight-day-100e6, 1)
	r.add(midnight-3*day, -1)
	r.add(midnight-day-100e6, -1)
	if l := r.list(); len(l) != 1 || l[0].Count != 1 || l[0].Before != 0 {
		t.Errorf("one is left at midnight, the list is %+v", l)
	}
}

// TestSecondsCountEverybody adds and removes arrivals of up to several days in any order:
// everybody is counted once, in order, and ranks grow with the arrival.
func TestSecondsCountEverybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r secondRing
		var in []anteroom.Time
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(in) > 0 && rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				r.add(in[i], -1)
				in = append(in[:i], in[i+1:]...)
			} else {
				span := rapid.SampledFrom([]int64{3, 5_000, 86_400, 4 * 86_400}).Draw(t, "span")
				key := midnight + anteroom.Time(rapid.Int64Range(-span*1e6, span*1e6).Draw(t, "key"))
				r.add(key, 1)
				in = append(in, key)
			}
			f := Figures{Seconds: r.list(), Waiting: len(in)}
			total := uint32(0)
			last := int64(-1 << 62)
			for _, s := range f.Seconds {
				if s.Before != total || s.Second <= last {
					t.Fatalf("%+v", f.Seconds)
				}
				total, last = total+s.Count, s.Second
			}
			if int(total) != len(in) {
				t.Fatalf("%d are counted, %d are there: %+v", total, len(in), f.Seconds)
			}
			for _, a := range in {
				for _, b := range in {
					if ra, rb := f.Rank(a), f.Rank(b); ra < 0 || ra >= max(1, len(in)) || a < b && ra > rb {
						t.Fatalf("rank of %d is %d, of %d is %d among %d", a, ra, b, rb, len(in))
					}
				}
			}
		}
	})
}
