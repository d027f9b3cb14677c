package analytics_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/analytics"
)

// TestBucketsAreThoseOfNativeHistograms: index i holds what is above 2^((i-1)/8) and not above
// 2^(i/8) seconds.
func TestBucketsAreThoseOfNativeHistograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b analytics.Buckets
		d := time.Duration(rapid.Int64Range(-1, int64(20*24*time.Hour)).Draw(t, "ns"))
		b.Observe(d)
		c := b.Counts()
		if c.Count != 1 || c.Sum != d.Seconds() {
			t.Fatalf("%+v", c)
		}
		if d.Seconds() <= analytics.BucketZero {
			if c.Zero != 1 || len(c.Buckets) != 0 {
				t.Fatalf("%v counts as nothing: %+v", d, c)
			}
			return
		}
		for _, bucket := range c.Buckets {
			i, n := bucket.Index, bucket.N
			low, high := math.Exp2(float64(i-1)/8), math.Exp2(float64(i)/8)
			last := i == 20*8 && d.Seconds() > high
			if n != 1 || d.Seconds() <= low || d.Seconds() > high && !last {
				t.Fatalf("%v is in (%v, %v]", d, low, high)
			}
		}
		if len(c.Buckets) != 1 {
			t.Fatal(c)
		}
	})
}

func TestBucketsUpto(t *testing.T) {
	var b analytics.Buckets
	for _, d := range []time.Duration{0, time.Second, time.Second + 1, 2 * time.Second, 2*time.Second + 1, time.Hour} {
		b.Observe(d)
	}
	c := b.Counts()
	if got := c.Upto(1e-6, 0.5, 1, 2, 4, 2048, 4096); !slices.Equal(got, []uint64{1, 1, 2, 4, 5, 5, 6}) {
		t.Error(got)
	}
	if c.Count != 6 {
		t.Error(c.Count)
	}
	var many analytics.Buckets // 100 around 10 s, whose bucket is from 9.51 s to 10.37 s
	for range 100 {
		many.Observe(10 * time.Second)
	}
	if got := many.Counts().Upto(5, 9.5, 10, 10.4, 30); !slices.Equal(got, []uint64{0, 0, 56, 100, 100}) {
		t.Error(got)
	}
	var none *analytics.Buckets
	if got := none.Counts(); got.Count != 0 {
		t.Error(got)
	}
}

func TestBucketsTakeNothingFromTheHeap(t *testing.T) {
	var b analytics.Buckets
	b.Observe(time.Second)
	if n := testing.AllocsPerRun(100, func() { b.Observe(time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBuckets(b *testing.B) {
	var c analytics.Buckets
	b.ReportAllocs()
	for i := range b.N {
		c.Observe(time.Duration(i&0xfffff) * 37)
	}
}
