package published

import (
	"math"
	"slices"
)

// key names a counter by two numbers; what they are depends on the list.
type key struct{ a, b int64 }

// first is the smallest key with a.
func first(a int64) key { return key{a, math.MinInt64} }

func (k key) compare(o key) int {
	switch {
	case k.a != o.a && k.a < o.a, k.a == o.a && k.b < o.b:
		return -1
	case k == o:
		return 0
	}
	return 1
}

// counts are counters in the order of their keys. A missing one is 0. They may be negative: who
// counts somebody anew takes away what another has counted.
type counts []count

type count struct {
	key
	n int
}

// from returns the index of the first counter that is not before k.
func (c counts) from(k key) int {
	if n := len(c); n == 0 || c[n-1].compare(k) < 0 {
		return n
	}
	i, _ := slices.BinarySearchFunc(c, k, func(e count, k key) int { return e.compare(k) })
	return i
}

func (c *counts) add(k key, n int) {
	i := c.from(k)
	if i < len(*c) && (*c)[i].key == k {
		(*c)[i].n += n
		return
	}
	*c = slices.Insert(*c, i, count{k, n})
}

func (c counts) get(k key) int {
	if i := c.from(k); i < len(c) && c[i].key == k {
		return c[i].n
	}
	return 0
}

// sum adds up the counters with a in [from, to].
func (c counts) sum(from, to int64) int {
	n := 0
	for _, e := range c[c.from(first(from)):] {
		if e.a > to {
			break
		}
		n += e.n
	}
	return n
}

func (c *counts) merge(o counts) {
	for _, e := range o {
		if e.n != 0 {
			c.add(e.key, e.n)
		}
	}
}

// drop forgets the counters with a < from.
func (c *counts) drop(from int64) { *c = slices.Delete(*c, 0, c.from(first(from))) }

// tally is everything that is counted and exchanged. Tallies of different workers, and of
// one worker at different times, are added up.
type tally struct {
	active   counts // by cell of the last counted request
	line     counts // by bucket, and minute of the last counted check-in
	admitted counts // by minute, and kind: due, fresh, or a bucket that raced
	visitors counts // by minute and site
}

// Kinds of admission beside a bucket's number.
const (
	due   = math.MinInt64     // of a bucket that was reserved in full
	fresh = math.MinInt64 + 1 // from the pool for new visitors; all with the random method
)

func (t *tally) merge(o *tally) {
	t.active.merge(o.active)
	t.line.merge(o.line)
	t.admitted.merge(o.admitted)
	t.visitors.merge(o.visitors)
}

func (t *tally) clear() {
	t.active, t.line, t.admitted, t.visitors = t.active[:0], t.line[:0], t.admitted[:0], t.visitors[:0]
}

// copy makes t equal to o, in its own memory.
func (t *tally) copy(o *tally) {
	t.active = append(t.active[:0], o.active...)
	t.line = append(t.line[:0], o.line...)
	t.admitted = append(t.admitted[:0], o.admitted...)
	t.visitors = append(t.visitors[:0], o.visitors...)
}

// drop forgets what does not count any more: cells, check-ins and minutes before those given.
func (t *tally) drop(cell, seen, minute int64) {
	t.active.drop(cell)
	t.line = slices.DeleteFunc(t.line, func(e count) bool { return e.n == 0 || e.b < seen })
	t.admitted.drop(minute)
	t.visitors.drop(minute)
}

// waiting appends the buckets of those who checked in in minute seen or later, oldest
// first, and how many they are.
func (t *tally) waiting(buckets []int64, sizes []int, seen int64) ([]int64, []int) {
	for i := 0; i < len(t.line); {
		b, n := t.line[i].a, 0
		for ; i < len(t.line) && t.line[i].a == b; i++ {
			if t.line[i].b >= seen {
				n += t.line[i].n
			}
		}
		if n > 0 {
			buckets, sizes = append(buckets, b), append(sizes, n)
		}
	}
	return buckets, sizes
}
