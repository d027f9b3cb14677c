package server

import (
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/exposition"
)

// The bounds of the classic buckets, in seconds: of what takes microseconds, and of what takes minutes. The counts
// come from the native buckets, which are 9 % wide.
var (
	instants = []float64{10e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1, 5}
	waits    = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400}
)

// distribution adds what was counted. Below, if not nil, is what counts as negative; the example is nil for none.
func (to sink) distribution(f *exposition.Family, bounds []float64, above analytics.BucketCounts, below *analytics.BucketCounts, example *gateway.Example, labels ...string) {
	var negative analytics.BucketCounts
	if below != nil {
		negative = *below
	}
	d := &exposition.Distribution{
		Count: above.Count + negative.Count, Sum: above.Sum - negative.Sum,
		Schema: analytics.BucketSchema, ZeroThreshold: analytics.BucketZero, Zero: above.Zero + negative.Zero,
		Positive: native(above.Buckets), Negative: native(negative.Buckets),
	}
	if below != nil {
		upto := negative.Upto(bounds...)
		for i := len(bounds) - 1; i >= 0; i-- {
			d.Classic = append(d.Classic, exposition.Classic{Bound: -bounds[i], Upto: negative.Count - upto[i]})
		}
	}
	for i, n := range above.Upto(bounds...) {
		d.Classic = append(d.Classic, exposition.Classic{Bound: bounds[i], Upto: negative.Count + n})
	}
	if example != nil {
		d.Example = &exposition.Example{TraceID: example.TraceID, Value: example.Took.Seconds(), At: example.At}
	}
	to.Distribution(f, d, labels...)
}

func native(buckets []analytics.Bucket) []exposition.Bucket {
	out := make([]exposition.Bucket, len(buckets))
	for i, b := range buckets {
		out[i] = exposition.Bucket(b)
	}
	return out
}
