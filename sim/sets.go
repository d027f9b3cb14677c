package sim

import (
	"math"
	"math/bits"
	"time"

	"github.com/anteroom/anteroom"
)

// bitset is a set of small numbers that finds its next member fast.
type bitset struct {
	levels [][]uint64 // each bit of a level says that a word of the one before is not 0
	n      int
}

func (s *bitset) has(i int32) bool {
	return len(s.levels) > 0 && int(i>>6) < len(s.levels[0]) && s.levels[0][i>>6]&(1<<(i&63)) != 0
}

// before counts those below i.
func (s *bitset) before(i int32) (n int) {
	for k := range i >> 6 {
		n += bits.OnesCount64(s.levels[0][k])
	}
	return n + bits.OnesCount64(s.levels[0][i>>6]&(1<<(i&63)-1))
}

// set puts i in or takes it out and says whether that changed anything.
func (s *bitset) set(i int32, in bool) bool {
	if s.has(i) == in {
		return false
	}
	if in {
		s.n++
	} else {
		s.n--
	}
	for l := 0; l < len(s.levels) || in && (l == 0 || len(s.levels[l-1]) > 1); l++ {
		fresh := l == len(s.levels)
		if fresh {
			s.levels = append(s.levels, nil)
			if l > 0 { // what stands below, seen from here
				for k, word := range s.levels[l-1] {
					if word != 0 {
						s.mark(l, int32(k), true)
					}
				}
			}
		}
		if before, after := s.mark(l, i, in); (before != 0) == (after != 0) && !fresh {
			break
		}
		i >>= 6
	}
	return true
}

func (s *bitset) mark(l int, i int32, in bool) (before, after uint64) {
	for int(i>>6) >= len(s.levels[l]) {
		s.levels[l] = append(s.levels[l], 0)
	}
	word := &s.levels[l][i>>6]
	before = *word
	if in {
		*word |= 1 << (i & 63)
	} else {
		*word &^= 1 << (i & 63)
	}
	return before, *word
}

// next is the smallest member from i on, or -1.
func (s *bitset) next(i int32) int32 { return s.nextAt(0, i) }

func (s *bitset) nextAt(l int, i int32) int32 {
	if l >= len(s.levels) || int(i>>6) >= len(s.levels[l]) {
		return -1
	}
	if word := s.levels[l][i>>6] >> (i & 63); word != 0 {
		return i + int32(bits.TrailingZeros64(word))
	}
	up := s.nextAt(l+1, i>>6+1)
	if up < 0 {
		return -1
	}
	return up<<6 + int32(bits.TrailingZeros64(s.levels[l][up]))
}

// fenwick counts how many members stand before a number.
type fenwick struct{ sum []int32 }

// add changes the count of i. Growing doubles the tree: a node that covers all of the old
// one is its total, every other new node is empty.
func (f *fenwick) add(i, n int32) {
	if len(f.sum) == 0 {
		f.sum = make([]int32, 1025)
	}
	for int(i)+1 >= len(f.sum) {
		size := len(f.sum) - 1
		f.sum = append(f.sum, make([]int32, size)...)
		f.sum[2*size] = f.sum[size]
	}
	for k := i + 1; int(k) < len(f.sum); k += k & -k {
		f.sum[k] += n
	}
}

func (f *fenwick) before(i int32) (n int32) {
	for k := i; k > 0; k -= k & -k {
		n += f.sum[k]
	}
	return n
}

// ring is a queue of moments.
type ring struct {
	buf  []anteroom.Time
	head int
	n    int
}

func (r *ring) push(t anteroom.Time) {
	if r.n == len(r.buf) {
		buf := make([]anteroom.Time, max(64, 2*r.n))
		for i := range r.n {
			buf[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = buf, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = t
	r.n++
}

func (r *ring) first() anteroom.Time { return r.buf[r.head] }

func (r *ring) pop() {
	r.head = (r.head + 1) % len(r.buf)
	r.n--
}

// histogram counts durations in steps of 2 %, from 0.1 ms.
type histogram struct {
	counts [2048]uint32
	n      int
	sum    time.Duration
}

const histStep = 0.02

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > 100*time.Microsecond {
		i = min(len(h.counts)-1, 1+int(math.Log(float64(d)/1e5)/math.Log1p(histStep)))
	}
	h.counts[i]++
	h.n++
	h.sum += d
}

func (h *histogram) quantile(p float64) time.Duration {
	want := uint64(math.Ceil(p * float64(h.n)))
	var seen uint64
	for i, c := range h.counts {
		if seen += uint64(c); seen >= want && c > 0 {
			if i == 0 {
				return 0
			}
			return time.Duration(1e5 * math.Pow(1+histStep, float64(i)-0.5))
		}
	}
	return 0
}

func (h *histogram) mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return h.sum / time.Duration(h.n)
}

// kth is the member before which k others stand.
func (f *fenwick) kth(k int32) int32 {
	at := 0
	for step := len(f.sum) - 1; step > 0; step >>= 1 {
		if at+step < len(f.sum) && f.sum[at+step] <= k {
			at += step
			k -= f.sum[at]
		}
	}
	return int32(at)
}
