package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestEventsInOrder holds the queue to the order of time and then of scheduling, over near
// and far events, gaps of hours, and events scheduled while others are taken.
func TestEventsInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	reach := []time.Duration{0, time.Microsecond, 50 * time.Millisecond, stretch * time.Microsecond, 2 * time.Second, stretches * stretch * time.Microsecond, 5 * time.Hour}
	var q eventQueue
	var simple eventHeap // with everything in it
	now, pushed := epoch, 0
	push := func() {
		most := reach[rng.IntN(len(reach))]
		e := event{at: now.Add(time.Duration(rng.Int64N(int64(most) + 1)).Truncate(time.Microsecond)), who: int32(pushed)}
		q.push(e)
		pushed++
		e.seq = uint64(pushed)
		simple.push(e)
	}
	for step := range 200_000 {
		for range rng.IntN(4) {
			if step < 100_000 {
				push()
			}
		}
		at, ok := q.first()
		if ok != (len(simple) > 0) {
			t.Fatalf("step %d: the queue says %v with %d events", step, ok, len(simple))
		}
		if !ok {
			continue
		}
		want := simple.pop()
		got := q.pop()
		if got != want || at != want.at {
			t.Fatalf("step %d: %+v comes at %v, want %+v", step, got, at, want)
		}
		if got.at < now {
			t.Fatalf("step %d: an event of %v comes at %v", step, got.at, now)
		}
		now = got.at
	}
	if _, ok := q.first(); ok || q.held != 0 || len(q.far) != 0 {
		t.Errorf("the queue is not empty at the end: %d held, %d far", q.held, len(q.far))
	}
}
