package server

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/analytics"
)

// powers are the bounds, as powers of two in seconds, of the classic buckets of a histogram. They are bounds of
// native buckets too, so that the same counts serve both.
type powers []int

// The classic buckets of what takes microseconds, and of what takes minutes.
var (
	instants = powers{-17, -15, -13, -11, -9, -7, -5, -3, -1, 1, 3}             // 8 µs to 8 s
	waits    = powers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16} // 1 s to 18 h
)

// distribution is a histogram in both forms: the native one for those who ask for it (protobuf), the
// classic one for text. The library makes constant metrics with one of them only, and with a detour over
// maps that costs seconds with thousands of rooms.
type distribution struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	h      *dto.Histogram
}

// newDistribution makes the metric of what was counted. Below, if not nil, is what counts as
// negative.
func newDistribution(d *prometheus.Desc, bounds powers, above analytics.BucketCounts, below *analytics.BucketCounts, labels ...string) distribution {
	var negative analytics.BucketCounts
	if below != nil {
		negative = *below
	}
	h := &dto.Histogram{
		SampleCount: new(above.Count + negative.Count), SampleSum: new(above.Sum - negative.Sum),
		Schema: new(int32(analytics.BucketSchema)), ZeroThreshold: new(analytics.BucketZero), ZeroCount: new(above.Zero + negative.Zero),
	}
	h.PositiveSpan, h.PositiveDelta = spansOf(above.Buckets)
	h.NegativeSpan, h.NegativeDelta = spansOf(negative.Buckets)
	bucket := func(bound float64, upto uint64) {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(upto)})
	}
	if below != nil {
		upto := negative.Upto(bounds...)
		for i := len(bounds) - 1; i >= 0; i-- {
			bucket(-math.Exp2(float64(bounds[i])), negative.Count-upto[i])
		}
	}
	for i, n := range above.Upto(bounds...) {
		bucket(math.Exp2(float64(bounds[i])), negative.Count+n)
	}
	return distribution{d, prometheus.MakeLabelPairs(d, labels), h}
}

// spansOf writes buckets as native histograms have them: runs of neighbours, each count as the difference from
// the one before.
func spansOf(buckets []analytics.Bucket) (spans []*dto.BucketSpan, deltas []int64) {
	deltas = make([]int64, len(buckets))
	last, before := 0, int64(0)
	for i, b := range buckets {
		if i == 0 || b.Index != last+1 {
			offset := b.Index - last - 1
			if i == 0 {
				offset = b.Index
			}
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(offset)), Length: new(uint32(0))})
		}
		*spans[len(spans)-1].Length++
		deltas[i] = int64(b.N) - before
		last, before = b.Index, int64(b.N)
	}
	return spans, deltas
}

// Desc implements prometheus.Metric.
func (d distribution) Desc() *prometheus.Desc { return d.desc }

// Write implements prometheus.Metric.
func (d distribution) Write(m *dto.Metric) error {
	m.Histogram, m.Label = d.h, d.labels
	return nil
}
