package analytics

import (
	"cmp"
	"encoding/binary"
	"errors"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a distribution of durations in milliseconds, three digits exact: what is read from
// it differs from what was recorded by less than a thousandth. It takes memory for the different
// values only. The zero Histogram is empty, and a nil one can be read. Not safe for concurrent use.
type Histogram struct{ h *hdr.PackedHistogram }

// longest is what longer durations are recorded as.
const longest = 7 * 24 * time.Hour

// The shape of every histogram.
const (
	digits     = 3
	mostCounts = 24 << 10 // more than there can be different values
)

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

// Quantile is the duration that a percentage of all are not above, from 0 to 100; 0 when there are none.
func (h *Histogram) Quantile(percent float64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.ValueAtPercentile(percent)) * time.Millisecond
}

// Mean is the average; 0 when there is nothing.
func (h *Histogram) Mean() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.Mean() * float64(time.Millisecond))
}

// Max is the longest; 0 when there is none.
func (h *Histogram) Max() time.Duration { return h.Quantile(100) }

// Each calls fn with each different duration, ascending, and how often it is there.
func (h *Histogram) Each(fn func(d time.Duration, n int64)) {
	if h.Count() == 0 {
		return
	}
	for ms, n := range h.h.ForEachBucket {
		fn(time.Duration(ms)*time.Millisecond, n)
	}
}

// AppendWire appends what ParseHistogram reads: how many different durations there are, and for
// each the distance in milliseconds from the one before and its count. An empty one has one byte.
func (h *Histogram) AppendWire(b []byte) []byte {
	if h.Count() == 0 {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(h.h.Populated()))
	last := int64(0)
	for ms, n := range h.h.ForEachBucket {
		b = binary.AppendUvarint(b, uint64(ms-last))
		b = binary.AppendUvarint(b, uint64(n))
		last = ms
	}
	return b
}

var (
	errShort    = errors.New("analytics: it ends too early: it was damaged")
	errOrder    = errors.New("analytics: a histogram whose durations do not ascend: it was damaged")
	errTooLarge = errors.New("analytics: a number is too large, or not in its shortest form: it was damaged")
)

// ParseHistogram reads a histogram from the front of b and returns what follows it.
func ParseHistogram(b []byte) (h *Histogram, rest []byte, err error) {
	r := reader{b: b}
	h = &Histogram{}
	n := r.number(mostCounts)
	last := int64(0)
	for i := range n {
		gap, count := r.number(longest.Milliseconds()), r.number(mostCount)
		if last += gap; r.err != nil || last > longest.Milliseconds() || gap == 0 && i > 0 || count == 0 {
			return nil, nil, cmp.Or(r.err, errOrder)
		}
		h.record(last, count)
		if int64(h.h.Populated()) != i+1 || h.Count() > mostCount {
			return nil, nil, errOrder
		}
	}
	return h, r.b, r.err
}

// Sum adds up histograms as AppendWire wrote them, at a fraction of what reading each of them
// costs, and with memory for all values at once. The zero Sum is empty.
type Sum struct{ h *hdr.Histogram }

// AddWire adds the histogram at the front of b and returns what follows it. After an error the sum
// has a part of it.
func (s *Sum) AddWire(b []byte) (rest []byte, err error) {
	r := reader{b: b}
	last := int64(0)
	for i := range r.number(mostCounts) {
		gap, count := r.number(longest.Milliseconds()), r.number(mostCount)
		if last += gap; r.err != nil || last > longest.Milliseconds() || gap == 0 && i > 0 || count == 0 {
			return nil, cmp.Or(r.err, errOrder)
		}
		if s.h == nil {
			s.h = hdr.New(1, longest.Milliseconds(), digits)
		}
		if err := s.h.RecordValues(last, count); err != nil {
			return nil, errOrder
		}
	}
	return r.b, r.err
}

// Histogram returns the sum; nil when there is nothing in it.
func (s *Sum) Histogram() *Histogram {
	if s.h == nil {
		return nil
	}
	h := &Histogram{}
	h.use().MergeFrom(s.h)
	return h
}

// reader takes numbers from the front of b. After the first fault everything is zero.
type reader struct {
	b   []byte
	err error
}

// mostCount bounds each count, so that sums of a great many do not overflow.
const mostCount = 1 << 40

// number reads one in its shortest form, from 0 to most.
func (r *reader) number(most int64) int64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case r.err != nil:
		return 0
	case n == 0:
		r.err = errShort
	case n < 0 || n > 1 && r.b[n-1] == 0 || v > uint64(most):
		r.err = errTooLarge
	default:
		r.b = r.b[n:]
		return int64(v)
	}
	r.b = nil
	return 0
}
