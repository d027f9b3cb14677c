package engine

import (
	"encoding/binary"
	"math/bits"

	"github.com/anteroom/anteroom"
)

// slab holds values of one type by ticket id. Values live in chunks that never move, so
// that a million of them cost their size and a few bytes of index each, without copying
// when the slab grows. IDs are random bits that the server issued and a seal protected,
// so eight of their bytes serve as the hash.
//
// A slot number stays valid until remove; slots are reused. Slot 0 is never used, and there
// are at most maxSlots: more than any bound of what is held in one.
type slab[T any] struct {
	chunks [][]item[T]
	free   []uint32
	next   uint32   // first slot never used
	used   []uint64 // a bit for each slot, so that each passes over empty ones fast
	index  []entry
	count  int
}

// entry of the index: a slot, and six bits of its id, so that an id that is not the one
// sought is seldom read; 0 is none.
type entry uint32

const (
	slotBits = 26
	maxSlots = 1<<slotBits - 1 // 67 million
)

func entryOf(slot uint32, id *anteroom.ID) entry { return entry(id[0])<<slotBits | entry(slot) }

func (e entry) slot() uint32 { return uint32(e) & maxSlots }

type item[T any] struct {
	id  anteroom.ID
	val T
}

const chunkBits = 8 // 256 items: a few kB, for most rooms are small

func hashID(id *anteroom.ID) uint64 { return binary.LittleEndian.Uint64(id[:8]) }

func (s *slab[T]) len() int { return s.count }

func (s *slab[T]) at(slot uint32) *T { return &s.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)].val }

func (s *slab[T]) id(slot uint32) anteroom.ID {
	return s.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)].id
}

// home is where the index looks for id first: the hash scaled to the index's length, which
// need not be a power of two.
func (s *slab[T]) home(id *anteroom.ID) int {
	h, _ := bits.Mul64(hashID(id), uint64(len(s.index)))
	return int(h)
}

func (s *slab[T]) after(h int) int {
	if h++; h == len(s.index) {
		return 0
	}
	return h
}

// find returns the slot of id, or 0.
func (s *slab[T]) find(id *anteroom.ID) uint32 {
	if s.count == 0 {
		return 0
	}
	for h := s.home(id); ; h = s.after(h) {
		e := s.index[h]
		if e == 0 {
			return 0
		}
		slot := e.slot()
		if e == entryOf(slot, id) && s.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)].id == *id {
			return slot
		}
	}
}

// fetch reads what find will read of an id next, and returns something of it. Called for
// many ids one after the other it lets the processor fetch all of that from memory at once,
// where each find would wait for its own.
func (s *slab[T]) fetch(id *anteroom.ID) byte {
	if s.count == 0 {
		return 0
	}
	e := s.index[s.home(id)]
	return s.chunks[e.slot()>>chunkBits][e.slot()&(1<<chunkBits-1)].id[0]
}

// add inserts id, which must not be there, with a zero value.
func (s *slab[T]) add(id anteroom.ID) uint32 {
	if (s.count+1)*4 > len(s.index)*3 {
		s.grow()
	}
	var slot uint32
	if n := len(s.free); n > 0 {
		slot = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		if s.next == 0 {
			s.next = 1
		}
		if slot = s.next; slot > maxSlots {
			panic("engine: 67 million tickets in one place")
		}
		s.next++
		if int(slot>>chunkBits) == len(s.chunks) {
			s.chunks = append(s.chunks, make([]item[T], 1<<chunkBits))
			s.used = append(s.used, make([]uint64, 1<<chunkBits/64)...)
		}
	}
	it := &s.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)]
	*it = item[T]{id: id}
	s.used[slot>>6] |= 1 << (slot & 63)
	s.place(slot, &id)
	s.count++
	return slot
}

func (s *slab[T]) place(slot uint32, id *anteroom.ID) {
	h := s.home(id)
	for s.index[h] != 0 {
		h = s.after(h)
	}
	s.index[h] = entryOf(slot, id)
}

func (s *slab[T]) grow() {
	size := max(64, len(s.index)*3/2)
	s.index = make([]entry, size)
	s.each(func(slot uint32) {
		id := s.id(slot)
		s.place(slot, &id)
	})
}

// remove deletes the slot, which must be in use.
func (s *slab[T]) remove(slot uint32) {
	it := &s.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)]
	size := len(s.index)
	h := s.home(&it.id)
	for s.index[h].slot() != slot {
		h = s.after(h)
	}
	// Backward-shift deletion: move later entries of the run into the hole, so that no
	// tombstones are needed.
	for hole := h; ; {
		h = s.after(h)
		moved := s.index[h]
		if moved == 0 {
			s.index[hole] = 0
			break
		}
		id := s.id(moved.slot())
		if (h-s.home(&id)+size)%size >= (h-hole+size)%size {
			s.index[hole] = moved
			hole = h
		}
	}
	*it = item[T]{}
	s.used[slot>>6] &^= 1 << (slot & 63)
	s.free = append(s.free, slot)
	s.count--
}

// each calls fn with every slot in use, in slot order. fn may remove the slot it is given.
func (s *slab[T]) each(fn func(slot uint32)) { s.eachBetween(1, s.next, fn) }

// eachBetween is each for slots from (inclusive) to (exclusive).
func (s *slab[T]) eachBetween(from, to uint32, fn func(slot uint32)) {
	to = min(to, s.next)
	for slot := from; slot < to; slot++ {
		word := s.used[slot>>6] >> (slot & 63) // read anew: fn removes
		if word == 0 {
			slot |= 63
			continue
		}
		if slot += uint32(bits.TrailingZeros64(word)); slot < to {
			fn(slot)
		}
	}
}
