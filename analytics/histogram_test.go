package analytics_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/wire"
)

func TestQuantilesAreExactToAThousandth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var all []time.Duration
	var parts [3]analytics.Histogram
	for i := range 30_000 {
		d := time.Duration(r.ExpFloat64() * float64(20*time.Minute)).Truncate(time.Millisecond)
		all = append(all, d)
		parts[i%3].Record(d)
	}
	slices.Sort(all)
	var sum analytics.Histogram
	for i := range parts {
		sum.Merge(&parts[i])
	}
	if sum.Count() != 30_000 {
		t.Fatalf("%d of them", sum.Count())
	}
	for _, q := range append(analytics.Quantiles[:], 1, 99, 100) {
		got, want := sum.Quantile(q), all[max(0, int(q/100*float64(len(all))+0.5)-1)]
		if got < want || float64(got-want) > max(float64(want)/1000, float64(time.Millisecond)) {
			t.Errorf("%v%%: %v, want %v", q, got, want)
		}
	}
	if got, want := sum.Max(), all[len(all)-1]; got < want || got > want+want/1000 {
		t.Errorf("the longest is %v, want %v", got, want)
	}
}

func TestHistogramsAreBounded(t *testing.T) {
	t.Parallel()
	var h analytics.Histogram
	for ms := time.Duration(1); ms < 8*24*time.Hour; ms += max(time.Millisecond, ms/3000) {
		h.Record(ms)
	}
	h.Record(-time.Second)
	h.Record(1 << 62)
	b := h.AppendWire(nil)
	in := wire.Read(b)
	got := analytics.ReadHistogram(&in)
	if err := in.End(); err != nil || string(got.AppendWire(nil)) != string(b) {
		t.Fatalf("everything that there can be: %d bytes, %v", len(b), err)
	}
	if len(b) > 80<<10 || h.Quantile(0) != 0 || h.Max() < 7*24*time.Hour || h.Max() > 7*24*time.Hour+time.Hour {
		t.Errorf("%d bytes, from %v to %v", len(b), h.Quantile(0), h.Max())
	}
}

// A sum of what is written, and of what is in memory, is what merging gives.
func TestASumIsWhatMergingGives(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	var sum analytics.Sum
	for round := range 200 {
		var all analytics.Histogram
		for part := range 1 + r.IntN(4) {
			var h analytics.Histogram
			for range r.IntN(1 << r.IntN(12)) {
				h.Record(time.Duration(math.Exp(21*r.Float64())) * time.Millisecond)
			}
			all.Merge(&h)
			if part%2 == 0 {
				sum.Add(&h)
				continue
			}
			in := wire.Read(append(h.AppendWire(nil), 7))
			if sum.AddWire(&in); in.Err() != nil || in.Left() != 1 {
				t.Fatal(in.Left(), in.Err())
			}
		}
		var want analytics.Summary
		want.N = all.Count()
		for i, q := range analytics.Quantiles {
			want.Quantiles[i] = all.Quantile(q)
		}
		if got := sum.Histogram(); string(got.AppendWire(nil)) != string(all.AppendWire(nil)) {
			t.Fatalf("round %d: %d durations, want %d", round, got.Count(), all.Count())
		}
		if all.Summary() != want || sum.Summary() != want {
			t.Fatalf("round %d: %v and %v, want %v", round, all.Summary(), sum.Summary(), want)
		}
		sum.Reset()
	}
}

func TestNoHistogramReadsAsAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, h := range []*analytics.Histogram{nil, {}} {
		if h.Count() != 0 || h.Quantile(50) != 0 || h.Mean() != 0 || h.Max() != 0 || len(h.AppendWire(nil)) != 1 || h.Clone().Count() != 0 {
			t.Errorf("%v is not empty", h)
		}
		var sum analytics.Histogram
		if sum.Merge(h); sum.Count() != 0 {
			t.Error("nothing was something")
		}
	}
}

func TestHistogramsThatNobodyWroteAreRefused(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"nothing":              {},
		"no duration":          {1},
		"no distance":          {1, 0x01},
		"no count":             {1, 0x10},
		"one too few":          {2, 0x11},
		"a number too long":    {1, 0x01, 0x85, 0},
		"longer than the rest": {1, 0x01, 0xff, 0xff, 0x7f},
		"together too long":    {2, 0x01, 0x80, 0x80, 1, 0x01, 0x80, 0x80, 1},
		"too often":            {1, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"together too often":   {2, 0x10, 0xf0, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x10, 0xf0, 0xff, 0xff, 0xff, 0xff, 0x1f},
		"too many":             {0xff, 0xff, 0xff, 0x7f},
	} {
		in, again := wire.Read(b), wire.Read(b)
		if h := analytics.ReadHistogram(&in); in.Err() == nil {
			t.Errorf("%s: %d durations", name, h.Count())
		}
		var sum analytics.Sum
		if sum.AddWire(&again); again.Err() == nil && name != "together too often" { // sums may be large
			t.Errorf("%s: added", name)
		}
	}
}
