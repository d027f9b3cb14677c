package engine

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/anteroom/anteroom"
)

// Labels of the keyed hashes; they are part of what third parties recompute.
const (
	shuffleLabel = "wr-shuffle-v1"
	drawLabel    = "wr-draw-v1"
)

func mac(key []byte, parts ...[]byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}

// Commitment is what is published before a shuffle or draw: SHA-256 of the seed.
func Commitment(seed []byte) [32]byte { return sha256.Sum256(seed) }

// Entries is the digest of everybody who takes part: SHA-256 over the ids sorted as bytes.
func Entries(ids []anteroom.ID) [32]byte {
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for i := range sorted {
		h.Write(sorted[i][:])
	}
	var out [32]byte
	h.Sum(out[:0])
	return out
}

// ShuffleKey is the key under which a shuffle orders ids.
func ShuffleKey(seed []byte, entries [32]byte) [32]byte {
	return mac(seed, []byte(shuffleLabel), entries[:])
}

// Priority is an id's rank under a key; lower goes first, ties by id.
func Priority(key [32]byte, id anteroom.ID) uint64 {
	sum := mac(key[:], id[:])
	return binary.BigEndian.Uint64(sum[:8])
}

// Order returns the indexes of ids in the order that the key gives them.
func Order(key [32]byte, ids []anteroom.ID) []int {
	type entry struct {
		priority uint64
		index    int
	}
	entries := make([]entry, len(ids))
	h, sum := hmac.New(sha256.New, key[:]), make([]byte, 0, sha256.Size)
	for i := range ids { // as Priority, without a new hash for each of a million
		h.Reset()
		h.Write(ids[i][:])
		entries[i] = entry{binary.BigEndian.Uint64(h.Sum(sum)[:8]), i}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if c := cmp.Compare(a.priority, b.priority); c != 0 {
			return c
		}
		return bytes.Compare(ids[a.index][:], ids[b.index][:])
	})
	order := make([]int, len(ids))
	for i, e := range entries {
		order[i] = e.index
	}
	return order
}

// uniform returns the n-th number of a keyed sequence, uniform in [0, bound).
func uniform(seed []byte, n uint64, bound uint32) uint32 {
	for try := uint64(0); ; try++ {
		var be [16]byte
		binary.BigEndian.PutUint64(be[:8], n)
		binary.BigEndian.PutUint64(be[8:], try)
		sum := mac(seed, []byte(drawLabel), be[:])
		hi, lo := bits.Mul64(binary.BigEndian.Uint64(sum[:8]), uint64(bound))
		// Lemire's rejection: without it low results would be favoured by up to bound/2^64.
		if lo >= -uint64(bound)%uint64(bound) {
			return uint32(hi)
		}
	}
}

// jitter spreads an interval by ±15 %, the same for the same visitor and moment.
func jitter(id anteroom.ID, at anteroom.Time) float64 {
	// The id is secret to its holder and random; mixing it with the moment is enough for a
	// spread, which decides nothing.
	x := hashID(&id) ^ uint64(at)*0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return 0.85 + 0.3*float64(x>>11)/(1<<53)
}
