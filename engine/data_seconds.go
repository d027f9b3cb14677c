package engine

import "github.com/anteroom/anteroom"

// secondRing counts those waiting by second of arrival.
type secondRing struct {
	base   int64 // second of counts[0]
	counts []secondSlot
	// full: an arrival too old for the ring was counted at index 0, which therefore has to
	// stay where it is.
	full bool
}

// secondSlot is a second: how many wait, and the first and last arrival among those that
// were counted since it was empty, in microseconds of the second.
type secondSlot struct {
	n           int32
	first, last uint32
}

// oldestSecond bounds the ring to the past: arrivals more than a day older than what it
// holds share its first second.
const oldestSecond = 86_400

func (r *secondRing) add(key anteroom.Time, n int32) {
	sec := int64(key) / 1e6
	if len(r.counts) == 0 {
		r.base = sec
	}
	if sec < r.base && !r.full {
		grow := min(r.base-sec, oldestSecond)
		if int64(len(r.counts))+grow > 2*oldestSecond {
			grow = 0
		}
		r.counts = append(make([]secondSlot, grow), r.counts...)
		r.base -= grow
		r.full = sec < r.base
	}
	i := max(0, sec-r.base)
	for int64(len(r.counts)) <= i {
		r.counts = append(r.counts, secondSlot{})
	}
	c, micro := &r.counts[i], uint32(int64(key)%1e6)
	if c.n == 0 {
		c.first, c.last = micro, micro
	}
	if n > 0 {
		c.first, c.last = min(c.first, micro), max(c.last, micro)
	}
	c.n += n
}

// trim drops leading seconds in which nobody waits.
func (r *secondRing) trim() {
	i := 0
	for i < len(r.counts) && r.counts[i].n == 0 {
		i++
	}
	if i == len(r.counts) {
		*r = secondRing{}
	} else if i > 1024 || i > len(r.counts)/2 {
		r.counts = append([]secondSlot(nil), r.counts[i:]...)
		r.base += int64(i)
		r.full = false
	}
}

// list writes the non-empty seconds.
func (r *secondRing) list() (out []SecondCount) {
	r.trim()
	busy := 0
	for i := range r.counts {
		if r.counts[i].n > 0 {
			busy++
		}
	}
	if busy == 0 {
		return nil
	}
	out = make([]SecondCount, 0, busy)
	var before uint32
	for i, c := range r.counts {
		if c.n > 0 {
			out = append(out, SecondCount{Second: r.base + int64(i), Before: before, Count: uint32(c.n), First: c.first, Last: c.last})
			before += uint32(c.n)
		}
	}
	return out
}
