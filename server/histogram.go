package server

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/analytics"
)

// powers are a range of powers of two: the bounds, in seconds, of the classic buckets of a
// histogram. They are bounds of native buckets too, so that the same counts serve both.
type powers struct{ from, to, step int }

// The classic buckets of what takes microseconds, and of what takes minutes.
var (
	instants = powers{-17, 3, 2} // 8 µs to 8 s
	waits    = powers{0, 16, 1}  // 1 s to 18 h
)

// distribution is a histogram in both forms: the native one for those who ask for it
// (protobuf), the classic one for text.
type distribution struct {
	prometheus.Metric
	classic []*dto.Bucket
}

// newDistribution makes the metric of what was counted since a moment. Below, if not nil, is what counts as
// negative.
func newDistribution(d *prometheus.Desc, since time.Time, bounds powers, above analytics.BucketCounts, below *analytics.BucketCounts, labels ...string) distribution {
	var negative analytics.BucketCounts
	if below != nil {
		negative = *below
	}
	out := distribution{Metric: prometheus.MustNewConstNativeHistogram(d, above.Count+negative.Count, above.Sum-negative.Sum, above.Buckets, negative.Buckets,
		above.Zero+negative.Zero, analytics.BucketSchema, analytics.BucketZero, since, labels...)}
	bucket := func(bound float64, upto uint64) {
		out.classic = append(out.classic, &dto.Bucket{UpperBound: &bound, CumulativeCount: &upto})
	}
	if below != nil {
		for e := bounds.to; e >= bounds.from; e -= bounds.step {
			bucket(-math.Exp2(float64(e)), negative.Count-negative.Upto(e))
		}
	}
	for e := bounds.from; e <= bounds.to; e += bounds.step {
		bucket(math.Exp2(float64(e)), negative.Count+above.Upto(e))
	}
	return out
}

// Write writes both forms.
func (d distribution) Write(m *dto.Metric) error {
	err := d.Metric.Write(m)
	if err == nil {
		m.Histogram.Bucket = d.classic
	}
	return err
}
