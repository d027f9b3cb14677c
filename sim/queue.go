package sim

import "github.com/anteroom/anteroom"

// eventHeap is a heap by time, then by number. Each event has up to four below it: fewer
// levels, and siblings share a line of the processor's cache.
type eventHeap []event

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (q *eventHeap) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	*q = h
}

func (q *eventHeap) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) > 0 {
		h.sink(0, last)
	}
	return top
}

// sink puts e at i or below.
func (h eventHeap) sink(i int, e event) {
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		for c := child + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].before(&h[child]) {
				child = c
			}
		}
		if !h[child].before(&e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}

// order makes a heap of events in any order.
func (h eventHeap) order() {
	for i := (len(h) - 2) / 4; i >= 0 && len(h) > 1; i-- {
		h.sink(i, h[i])
	}
}

// eventQueue holds what is to happen, by time and then by the order of scheduling. Most of a
// million events are a minute away: only those of the present stretch of time are kept in
// order, those of the next few minutes lie in the list of their stretch, and those beyond
// move there when their time comes closer. The zero value is empty and begins at epoch.
type eventQueue struct {
	seq       uint64
	near      eventHeap          // of the present stretch, and of before
	present   int64              // stretches since epoch
	stretches [stretches][]event // of present+1 to present+stretches-1, by number modulo stretches
	held      int                // events in stretches
	far       eventHeap          // of those beyond
	spare     [][]event          // lists that are empty
}

const (
	stretch   = 1 << 16 // microseconds: 65 ms
	stretches = 1 << 12 // 4.5 minutes
)

func stretchOf(at anteroom.Time) int64 { return int64(at-epoch) / stretch }

func (q *eventQueue) push(e event) {
	q.seq++
	e.seq = q.seq
	switch s := stretchOf(e.at); {
	case s <= q.present:
		q.near.push(e)
	case s < q.present+stretches:
		q.hold(s, e)
	default:
		q.far.push(e)
	}
}

func (q *eventQueue) hold(s int64, e event) {
	list := &q.stretches[s%stretches]
	if *list == nil {
		if n := len(q.spare); n > 0 {
			*list, q.spare = q.spare[n-1], q.spare[:n-1]
		}
	}
	*list = append(*list, e)
	q.held++
}

// first is when the next event happens; ok is false when there is none.
func (q *eventQueue) first() (at anteroom.Time, ok bool) {
	if len(q.near) == 0 && !q.advance() {
		return 0, false
	}
	return q.near[0].at, true
}

// pop takes the next event, which first has found.
func (q *eventQueue) pop() event { return q.near.pop() }

// advance goes on to the next stretch in which something happens; near is empty.
func (q *eventQueue) advance() bool {
	for len(q.near) == 0 {
		switch {
		case q.held > 0:
			q.present++
		case len(q.far) > 0:
			q.present = stretchOf(q.far[0].at)
		default:
			return false
		}
		for len(q.far) > 0 && stretchOf(q.far[0].at) < q.present+stretches {
			e := q.far.pop()
			q.hold(stretchOf(e.at), e)
		}
		list := &q.stretches[q.present%stretches]
		if len(*list) == 0 {
			continue
		}
		q.held -= len(*list)
		if cap(q.near) > 0 {
			q.spare = append(q.spare, q.near[:0])
		}
		q.near, *list = *list, nil
		q.near.order()
	}
	return true
}
