package analytics

import (
	"encoding/binary"
	"math/bits"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/anteroom/anteroom/internal/wire"
)

// Histogram is a distribution of durations in milliseconds. Values read from it differ from the recorded ones by less
// than a thousandth. It takes memory only for the different values. The zero Histogram is empty, and a nil one can be
// read. Not safe for concurrent use.
type Histogram struct{ h *hdr.PackedHistogram }

// longest is what longer durations are recorded as.
const longest = 7 * 24 * time.Hour

// The shape of every histogram.
const (
	digits     = 3
	mostCounts = 24 << 10 // more than there can be different values
)

// Values that a histogram does not tell apart share a slot: each millisecond below 2^slotBits has its
// own, and from there on each power of two has half as many. The library has the same, which a test
// holds.
const slotBits = 11

func slotOf(ms int64) int64 {
	b := int64(bits.Len64(uint64(ms)|(1<<slotBits-1)) - slotBits)
	return b<<(slotBits-1) + ms>>b
}

// valueOf returns the least value of a slot, in milliseconds.
func valueOf(slot int64) int64 {
	b := max(0, slot>>(slotBits-1)-1)
	return (slot - b<<(slotBits-1)) << b
}

var lastSlot = slotOf(longest.Milliseconds())

func (h *Histogram) use() *hdr.PackedHistogram {
	if h.h == nil {
		h.h = hdr.NewPacked(1, longest.Milliseconds(), digits)
	}
	return h.h
}

// Record adds a duration, from 0 to a week; others are taken for the nearest of these.
func (h *Histogram) Record(d time.Duration) { h.record(d.Milliseconds(), 1) }

func (h *Histogram) record(ms, n int64) {
	// Nothing in the range is refused, but a count that overflows: by then nobody knows better.
	_ = h.use().RecordValues(min(max(0, ms), longest.Milliseconds()), n)
}

// Merge adds everything that o has. o may be nil.
func (h *Histogram) Merge(o *Histogram) {
	if o.Count() > 0 {
		h.use().Merge(o.h)
	}
}

// Clone returns a copy, nil for nil.
func (h *Histogram) Clone() *Histogram {
	if h == nil {
		return nil
	}
	c := &Histogram{}
	if h.h != nil {
		c.h = h.h.Clone()
	}
	return c
}

// Count is the number of durations.
func (h *Histogram) Count() int64 {
	if h == nil || h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Quantile returns the duration that a percentage of all values, from 0 to 100, does not exceed; 0 if there are none.
func (h *Histogram) Quantile(percent float64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.ValueAtPercentile(percent)) * time.Millisecond
}

// Mean returns the average; 0 if there are no values.
func (h *Histogram) Mean() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.Mean() * float64(time.Millisecond))
}

// Max returns the longest duration; 0 if there are none.
func (h *Histogram) Max() time.Duration { return h.Quantile(100) }

// Summary returns the published quantiles.
func (h *Histogram) Summary() (s Summary) {
	if s.N = h.Count(); s.N > 0 {
		for i, ms := range h.h.ValueAtPercentilesSlice(Quantiles[:]) {
			s.Quantiles[i] = time.Duration(ms) * time.Millisecond
		}
	}
	return s
}

// AppendWire appends what ReadHistogram reads: how many different durations there are, and for
// each its distance in slots from the one before, and its count. Of both, what is below mostSmall is half a
// byte; in place of a larger one this is 0, and the number above mostSmall follows. An empty one has one
// byte.
func (h *Histogram) AppendWire(b []byte) []byte {
	if h.Count() == 0 {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(h.h.Populated()))
	last := int64(-1)
	for ms, n := range h.h.ForEachBucket {
		slot := slotOf(ms)
		gap := slot - last
		last = slot
		both := byte(0)
		if gap < mostSmall {
			both = byte(gap) << 4
		}
		if n < mostSmall {
			both |= byte(n)
		}
		b = append(b, both)
		if gap >= mostSmall {
			b = binary.AppendUvarint(b, uint64(gap-mostSmall))
		}
		if n >= mostSmall {
			b = binary.AppendUvarint(b, uint64(n-mostSmall))
		}
	}
	return b
}

// mostSmall is the least number that half a byte does not hold.
const mostSmall = 16

// next reads the distance in slots to the next duration, and its count.
func next(r *wire.Reader) (gap, n int64) {
	both := r.Byte()
	gap, n = int64(both>>4), int64(both&(mostSmall-1))
	if gap == 0 {
		gap = r.Number(lastSlot) + mostSmall
	}
	if n == 0 {
		n = r.Number(mostCount-mostSmall) + mostSmall
	}
	return gap, n
}

// tooLong is what Failf says of a slot after the last one.
const tooLong = "a duration in a histogram is too long: it was damaged"

// ReadHistogram reads what AppendWire wrote. The reader collects the error.
func ReadHistogram(r *wire.Reader) *Histogram {
	h := &Histogram{}
	slot := int64(-1)
	for left := r.Number(mostCounts); left > 0; left-- {
		gap, n := next(r)
		if slot += gap; slot > lastSlot {
			r.Failf(tooLong)
		}
		if r.Err() != nil {
			break
		}
		if h.record(valueOf(slot), n); h.Count() > mostCount {
			r.Failf("the counts of a histogram are too large: it was damaged")
		}
	}
	return h
}

// Sum adds up histograms in the form that AppendWire wrote, at a fraction of the cost of reading each of them, and with
// memory for all values. The zero Sum is empty.
type Sum struct {
	n      int64
	counts []int64 // by slot
}

// AddWire adds what [Histogram.AppendWire] wrote. After a fault, which the reader knows, the sum has a
// part of it.
func (s *Sum) AddWire(r *wire.Reader) {
	left := r.Number(mostCounts)
	if left > 0 && s.counts == nil {
		s.counts = make([]int64, lastSlot+1)
	}
	slot, sum := int64(-1), int64(0)
	for ; left > 0; left-- {
		// Nearly all of what is read of a day goes through here: no calls where both numbers are small.
		ahead := *r
		small := 0
		for _, both := range ahead.Rest() {
			gap, n := int64(both>>4), int64(both&(mostSmall-1))
			if left == 0 || gap == 0 || n == 0 || slot+gap > lastSlot {
				break
			}
			slot += gap
			s.counts[slot] += n
			sum += n
			small, left = small+1, left-1
		}
		if r.Bytes(small); left == 0 {
			break
		}
		gap, n := next(r)
		if slot += gap; slot > lastSlot {
			r.Failf(tooLong)
		}
		if r.Err() != nil {
			break
		}
		s.counts[slot] += n
		sum += n
	}
	s.n += sum
}

// Add adds a histogram, which may be nil.
func (s *Sum) Add(h *Histogram) {
	if h.Count() == 0 {
		return
	}
	if s.counts == nil {
		s.counts = make([]int64, lastSlot+1)
	}
	for ms, n := range h.h.ForEachBucket {
		s.counts[slotOf(ms)] += n
		s.n += n
	}
}

// Reset makes the sum empty.
func (s *Sum) Reset() {
	if s.n > 0 {
		clear(s.counts)
	}
	s.n = 0
}

// Histogram returns the sum, or nil if it is empty.
func (s *Sum) Histogram() *Histogram {
	if s.n == 0 {
		return nil
	}
	h := &Histogram{}
	for slot, n := range s.counts {
		if n > 0 {
			h.record(valueOf(int64(slot)), n)
		}
	}
	return h
}

// Summary returns the published quantiles of the sum, which are those of its Histogram.
func (s *Sum) Summary() (out Summary) {
	if out.N = s.n; out.N == 0 {
		return out
	}
	i, below := 0, int64(0)
	for slot, n := range s.counts {
		for below += n; n > 0 && below >= rank(Quantiles[i], s.n); {
			out.Quantiles[i] = time.Duration(valueOf(int64(slot)+1)-1) * time.Millisecond
			if i++; i == len(Quantiles) {
				return out
			}
		}
	}
	return out
}

// rank is the how manieth value of n is a quantile, from 1.
func rank(percent float64, n int64) int64 {
	return min(max(1, int64(percent/100*float64(n)+0.5)), n)
}

// mostCount bounds each count, so that sums of a great many do not overflow.
const mostCount = 1 << 40
