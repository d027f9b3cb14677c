package engine

import (
	"sort"
	"time"

	"github.com/anteroom/anteroom"
)

// ring is a queue of moments in ascending order.
type ring struct {
	buf        []anteroom.Time
	head, size int
}

func (r *ring) len() int             { return r.size }
func (r *ring) first() anteroom.Time { return r.buf[r.head] }

func (r *ring) push(t anteroom.Time) {
	if r.size == len(r.buf) {
		bigger := make([]anteroom.Time, max(16, 2*len(r.buf)))
		for i := range r.size {
			bigger[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = bigger, 0
	}
	r.buf[(r.head+r.size)%len(r.buf)] = t
	r.size++
}

func (r *ring) pop() {
	r.head = (r.head + 1) % len(r.buf)
	r.size--
	if r.size == 0 && len(r.buf) > 1024 {
		*r = ring{}
	}
}

// until is how many are not after a moment.
func (r *ring) until(t anteroom.Time) int {
	return sort.Search(r.size, func(i int) bool { return r.buf[(r.head+i)%len(r.buf)] > t })
}

func (r *ring) shift(by time.Duration) {
	for i := range r.size {
		at := &r.buf[(r.head+i)%len(r.buf)]
		*at = at.Add(by)
	}
}

// move replaces a moment by a later one. It reports whether the first was there.
func (r *ring) move(from, to anteroom.Time) bool {
	at := func(i int) *anteroom.Time { return &r.buf[(r.head+i)%len(r.buf)] }
	i := sort.Search(r.size, func(i int) bool { return *at(i) >= from })
	if i == r.size || *at(i) != from {
		return false
	}
	for ; i+1 < r.size && *at(i + 1) < to; i++ {
		*at(i) = *at(i + 1)
	}
	*at(i) = to
	return true
}
