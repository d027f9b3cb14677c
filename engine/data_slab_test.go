package engine

import (
	"testing"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// TestSlabIsAMap compares a slab with a map while ids, many of whose hashes collide, come
// and go.
func TestSlabIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slab[int]
		want := map[anteroom.ID]int{}
		id := rapid.Custom(func(t *rapid.T) anteroom.ID {
			id := anteroom.ID{7: rapid.SampledFrom([]byte{0, 1, 2, 127, 254, 255}).Draw(t, "hash")}
			id[15] = byte(rapid.IntRange(1, 30).Draw(t, "id"))
			return id
		})
		for n := range rapid.IntRange(1, 300).Draw(t, "steps") {
			k := id.Draw(t, "k")
			slot := s.find(&k)
			if _, there := want[k]; there != (slot != 0) {
				t.Fatalf("%x is there: %v, found at %d", k, there, slot)
			}
			switch {
			case slot == 0:
				*s.at(s.add(k)) = n
				want[k] = n
			case *s.at(slot) != want[k] || s.id(slot) != k:
				t.Fatalf("%x holds %d, want %d", k, *s.at(slot), want[k])
			default:
				s.remove(slot)
				delete(want, k)
			}
		}
		seen := 0
		s.each(func(slot uint32) {
			seen++
			if id := s.id(slot); *s.at(slot) != want[id] || s.find(&id) != slot {
				t.Fatalf("slot %d of %x", slot, id)
			}
		})
		if seen != len(want) || s.len() != seen {
			t.Fatalf("%d seen, %d counted, %d wanted", seen, s.len(), len(want))
		}
	})
}
