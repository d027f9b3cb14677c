package published

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCountsAgainstMap runs random calls on counts and on a map.
func TestCountsAgainstMap(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var c counts
		m := map[key]int{}
		for range 300 {
			k := key{rng.Int64N(9) - 2, []int64{due, fresh, 0, 1, 2}[rng.IntN(5)]}
			switch n := rng.IntN(5) - 2; rng.IntN(10) {
			case 0:
				c.drop(k.a)
				for e := range m {
					if e.a < k.a {
						delete(m, e)
					}
				}
			case 1:
				var o counts
				o.add(k, n)
				c.merge(o)
				m[k] += n
			default:
				c.add(k, n)
				m[k] += n
			}
			if c.get(k) != m[k] {
				t.Fatalf("seed %d: %v is %d, want %d", seed, k, c.get(k), m[k])
			}
			sum := 0
			for e, n := range m {
				if e.a >= k.a && e.a <= k.a+2 {
					sum += n
				}
			}
			if got := c.sum(k.a, k.a+2); got != sum {
				t.Fatalf("seed %d: the sum from %d is %d, want %d", seed, k.a, got, sum)
			}
			if !slices.IsSortedFunc(c, func(a, b count) int { return a.key.compare(b.key) }) {
				t.Fatalf("seed %d: out of order: %v", seed, c)
			}
		}
	}
}

func TestTallyDropsWhatDoesNotCount(t *testing.T) {
	var x tally
	x.active.add(key{a: 5}, 1)
	x.active.add(key{a: 6}, 1)
	x.line.add(key{3, 8}, 2)
	x.line.add(key{3, 9}, 4)
	x.line.add(key{4, 9}, -1)
	x.line.add(key{5, 9}, 1)
	x.admitted.add(key{7, fresh}, 1)
	x.visitors.add(key{7, 0}, 1)
	x.admitted.add(key{8, due}, 1)
	if b, n := x.waiting(nil, nil, 9); !slices.Equal(b, []int64{3, 5}) || !slices.Equal(n, []int{4, 1}) {
		t.Errorf("waiting %v %v", b, n)
	}
	x.drop(6, 9, 8)
	if len(x.active) != 1 || len(x.line) != 3 || len(x.admitted) != 1 || len(x.visitors) != 0 {
		t.Errorf("left: %+v", x)
	}
	var y tally
	y.copy(&x)
	y.merge(&x)
	if y.line.get(key{3, 9}) != 8 || x.line.get(key{3, 9}) != 4 {
		t.Errorf("copied and added: %+v of %+v", y, x)
	}
}
