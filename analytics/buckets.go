package analytics

import (
	"math"
	"sync/atomic"
	"time"
)

// Buckets counts durations for monitoring, from the start of the process on. A bucket is 9 % wide:
// its bound is the eighth root of two times the one before, as in Prometheus' native histograms of
// schema [BucketSchema]. Memory is taken for the powers of two in which something was counted. The
// zero Buckets is empty. Safe for concurrent use.
type Buckets struct {
	octaves [octaves]atomic.Pointer[octave]
	zero    atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

// octave counts what is above a power of two and not above the next, in eighths.
type octave [perOctave]atomic.Uint64

// The shape of every Buckets.
const (
	// BucketSchema is the one of native histograms: 2^3 buckets to each power of two.
	BucketSchema = 3
	perOctave    = 1 << BucketSchema
	lowest       = -20 // the exponent of what counts as nothing: 2^-20 s, about a microsecond
	octaves      = 40  // up to 2^20 s, twelve days; longer ones are counted there
)

// BucketZero is the longest duration that counts as none, in seconds.
const BucketZero = 1.0 / (1 << -lowest)

// bounds are the upper ends of the eighths of an octave from 0.5 to 1, but for the last.
var bounds = func() (b [perOctave - 1]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i+1)/perOctave) / 2
	}
	return b
}()

// Observe counts a duration.
func (b *Buckets) Observe(d time.Duration) {
	b.sum.Add(int64(d))
	s := d.Seconds()
	if s <= BucketZero {
		b.zero.Add(1)
		return
	}
	fraction, exponent := math.Frexp(s) // s is above 2^(exponent-1), or that
	i := 0
	if fraction == 0.5 { // a bound belongs to the bucket below it
		exponent, i = exponent-1, perOctave-1
	} else {
		for i < len(bounds) && fraction > bounds[i] {
			i++
		}
	}
	o := exponent - 1 - lowest
	if o >= octaves {
		o, i = octaves-1, perOctave-1
	}
	at := b.octaves[o].Load()
	if at == nil {
		b.octaves[o].CompareAndSwap(nil, new(octave))
		at = b.octaves[o].Load()
	}
	at[i].Add(1)
}

// BucketCounts is what Buckets have counted.
type BucketCounts struct {
	Count uint64
	Zero  uint64  // of these, not above BucketZero
	Sum   float64 // in seconds
	// Buckets are the other ones, in ascending order; empty ones are left out.
	Buckets []Bucket
}

// Bucket counts durations above 2^((Index-1)/8) seconds and not above 2^(Index/8): the index of native
// histograms.
type Bucket struct {
	Index int
	N     uint64
}

// Counts returns what was counted; the zero BucketCounts for nil.
func (b *Buckets) Counts() (c BucketCounts) {
	if b == nil {
		return c
	}
	c.Sum = time.Duration(b.sum.Load()).Seconds()
	c.Zero = b.zero.Load()
	c.Count = c.Zero
	for o := range b.octaves {
		at := b.octaves[o].Load()
		if at == nil {
			continue
		}
		for i := range at {
			if n := at[i].Load(); n > 0 {
				c.Buckets = append(c.Buckets, Bucket{(o+lowest)*perOctave + i + 1, n})
				c.Count += n
			}
		}
	}
	return c
}

// Upto is how many durations are not above each of these bounds, which ascend, in seconds. What lies in
// the bucket of a bound counts in proportion, as if its durations were spread evenly over it.
func (c BucketCounts) Upto(bounds ...float64) []uint64 {
	out, n, i := make([]uint64, len(bounds)), c.Zero, 0
	for k, bound := range bounds {
		for ; i < len(c.Buckets) && c.Buckets[i].high() <= bound; i++ {
			n += c.Buckets[i].N
		}
		out[k] = n
		if i < len(c.Buckets) {
			b := c.Buckets[i]
			low := math.Exp2(float64(b.Index-1) / perOctave)
			out[k] += uint64(float64(b.N) * max(0, bound-low) / (b.high() - low))
		}
	}
	return out
}

func (b Bucket) high() float64 { return math.Exp2(float64(b.Index) / perOctave) }

// Plus adds what others have counted.
func (c BucketCounts) Plus(other BucketCounts) BucketCounts {
	return c.merge(other, 1, func(a, b uint64) uint64 { return a + b })
}

// Since is what was counted after an earlier look at the same Buckets.
func (c BucketCounts) Since(before BucketCounts) BucketCounts {
	return c.merge(before, -1, func(a, b uint64) uint64 { return a - min(a, b) })
}

func (c BucketCounts) merge(other BucketCounts, sign float64, each func(a, b uint64) uint64) BucketCounts {
	out := BucketCounts{Zero: each(c.Zero, other.Zero), Sum: c.Sum + sign*other.Sum}
	out.Count = out.Zero
	add := func(index int, n uint64) {
		if n > 0 {
			out.Buckets, out.Count = append(out.Buckets, Bucket{index, n}), out.Count+n
		}
	}
	a, b := c.Buckets, other.Buckets
	for len(a)+len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Index < b[0].Index:
			add(a[0].Index, each(a[0].N, 0))
			a = a[1:]
		case len(a) == 0 || b[0].Index < a[0].Index:
			add(b[0].Index, each(0, b[0].N))
			b = b[1:]
		default:
			add(a[0].Index, each(a[0].N, b[0].N))
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// Quantile is a duration that a share of all, from 0 to 1, are not above: the upper end of its bucket.
// 0 when there are none.
func (c BucketCounts) Quantile(share float64) time.Duration {
	rank := uint64(math.Ceil(share * float64(c.Count)))
	n := c.Zero
	if rank <= n {
		return 0
	}
	for _, b := range c.Buckets {
		if n += b.N; n >= rank {
			return time.Duration(b.high() * float64(time.Second))
		}
	}
	return 0
}
