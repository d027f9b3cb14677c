package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestNewcomerWhoChangesLanesWhileBehindOthers: newcomers do not pass visitors who have yet to come back. One who moves to another lane meanwhile
// waits for those of that lane, and no longer for those of the first; that these have come back is nothing to that newcomer.
func TestNewcomerWhoChangesLanesWhileBehindOthers(t *testing.T) {
	const start = anteroom.Time(1e15)
	at := func(d time.Duration) anteroom.Time { return start.Add(d) }
	l := newLine(start)
	l.configure(false, &anteroom.Lanes{List: []anteroom.Lane{{Name: "high", Priority: 5}}})
	r := turn{reachable: func(uint16) bool { return true }, awaits: func(uint16) bool { return false }, spare: func(*lane) bool { return true }}
	next := func(d time.Duration) uint32 {
		l.looks = maxLooks
		return l.next(at(d), r)
	}
	told := func(id byte, lane uint8, key time.Duration) Arrival { // who was told to come back
		return Arrival{ID: anteroom.ID{id}, Key: at(key), Lane: lane, Shown: true, Unproven: true, Due: at(key + 10*time.Second)}
	}
	back := func(a Arrival) Arrival { a.Unproven, a.Due = false, at(4*time.Second); return a }
	low, high := told(1, 0, 0), told(2, 5, 0)
	held := Arrival{ID: anteroom.ID{3}, Key: at(3 * time.Second), Unproven: true, Due: at(4 * time.Second)}
	raised := held
	raised.Lane = 5
	for _, a := range []Arrival{low, high, held} {
		l.arrive(a, 1, at(3*time.Second))
	}
	if slot := next(3 * time.Second); slot != 0 {
		t.Fatalf("slot %d is called", slot)
	}
	newcomer, _ := l.arrive(raised, 1, at(3*time.Second))
	if slot := next(3 * time.Second); slot != 0 {
		t.Fatalf("slot %d is called, and a visitor of the lane has yet to come back", slot)
	}
	first, _ := l.arrive(back(low), 1, at(3500*time.Millisecond))
	if slot := next(3500 * time.Millisecond); slot != first {
		t.Fatalf("slot %d is called, and not the one who has come back", slot)
	}
	second, _ := l.arrive(back(high), 1, at(3600*time.Millisecond))
	if slot := next(3600 * time.Millisecond); slot != second {
		t.Errorf("slot %d is called, and not the one who has come back", slot)
	}
	if slot := next(3600 * time.Millisecond); slot != newcomer {
		t.Errorf("slot %d is called, and not the newcomer", slot)
	}
}
