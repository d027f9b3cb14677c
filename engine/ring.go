package engine

import (
	"sort"

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

// ring2 is a heap of slots by the moment at which they are forgotten.
type ring2 struct {
	slots []uint32
	until []anteroom.Time
}

func (r *ring2) Len() int           { return len(r.slots) }
func (r *ring2) Less(i, j int) bool { return r.until[i] < r.until[j] }

func (r *ring2) push(slot uint32, until anteroom.Time) {
	// Moments come nearly ascending: an insertion from the back keeps the order cheaply.
	i := len(r.slots)
	r.slots, r.until = append(r.slots, slot), append(r.until, until)
	for i > 0 && r.until[i-1] > until {
		r.slots[i], r.until[i] = r.slots[i-1], r.until[i-1]
		i--
	}
	r.slots[i], r.until[i] = slot, until
}

func (r *ring2) popUntil(now anteroom.Time, fn func(slot uint32)) {
	n := 0
	for n < len(r.slots) && r.until[n] <= now {
		fn(r.slots[n])
		n++
	}
	if n > 0 {
		r.slots, r.until = r.slots[n:], r.until[n:]
	}
}

func sortSlots(slots []uint32, less func(a, b uint32) bool) {
	sort.Slice(slots, func(i, j int) bool { return less(slots[i], slots[j]) })
}
