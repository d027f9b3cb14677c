package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// However often a few tickets are put again, the others are remembered; the oldest is forgotten when there are too many, and each of them
// when the time has come that was said last.
func TestRecent(t *testing.T) {
	r, now := newRecent[int](3), midnight
	has := func(want ...byte) {
		t.Helper()
		var got []byte
		for id := byte(1); id < 6; id++ {
			if _, ok := r.get(anteroom.ID{id}); ok {
				got = append(got, id)
			}
		}
		if string(got) != string(want) {
			t.Errorf("remembers %v, want %v", got, want)
		}
	}
	for id := byte(1); id <= 3; id++ {
		r.put(anteroom.ID{id}, 0, now.Add(time.Minute))
	}
	for i := range 100 {
		now = now.Add(time.Second / 4)
		r.put(anteroom.ID{1}, i, now.Add(time.Minute))
		r.forget(now)
	}
	has(1, 2, 3)
	if v, _ := r.get(anteroom.ID{1}); v != 99 {
		t.Errorf("remembers %d of what was put last", v)
	}
	r.put(anteroom.ID{4}, 0, now.Add(time.Minute))
	has(1, 3, 4)
	r.forget(midnight.Add(time.Minute))
	has(1, 4)
	r.forget(now.Add(time.Minute))
	has()
	if len(r.order) > 0 {
		t.Errorf("%d marks are left", len(r.order))
	}
	for range 100 { // dropped and put again
		r.put(anteroom.ID{5}, 0, now.Add(2*time.Minute))
		r.drop(anteroom.ID{5})
	}
	if len(r.order) > 6 {
		t.Errorf("%d marks of one ticket", len(r.order))
	}
}
