package server

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/analytics"
)

// The bounds of the classic buckets, in seconds: of what takes microseconds, and of what takes minutes. The counts
// come from the native buckets, which are 9 % wide.
var (
	instants = []float64{10e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1, 5}
	waits    = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400}
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
func newDistribution(d *prometheus.Desc, bounds []float64, above analytics.BucketCounts, below *analytics.BucketCounts, labels ...string) distribution {
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
			bucket(-bounds[i], negative.Count-upto[i])
		}
	}
	for i, n := range above.Upto(bounds...) {
		bucket(bounds[i], negative.Count+n)
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
