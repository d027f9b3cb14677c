// Package ticket seals what a visitor holds into a cookie value and opens it again.
//
// A [Keyring] is a set of keys: one seals, all open. It comes from a key file
// ([LoadOrCreate]) and never changes; a rotation ([RotateFile]) writes a new file, and
// whoever runs loads it and swaps a pointer. A [Sealer] is a keyring's face for one zone,
// room and cookie scope: what one sealer sealed is nothing to any other.
//
// Open looks at nothing but the bytes. Whether a ticket is too old, used or somebody
// else's is for the engine to say; package ticket reads no clock.
//
// README.md holds the layout of the cookie and the attacks it has to stand.
package ticket

import (
	"crypto/rand"

	"github.com/anteroom/anteroom"
)

// NewID returns a fresh ticket ID: 128 bits from the operating system's generator, never
// the zero ID. Whoever needs many keeps an [IDs].
func NewID() anteroom.ID { return new(IDs).Next() }

// IDs gives out fresh ticket IDs, as NewID does, and asks the system once for 32 of them.
// Each is given out once, whether it comes to be used or not. The zero value is ready. Not
// safe for concurrent use.
type IDs struct {
	random [32 * len(anteroom.ID{})]byte
	left   int // bytes of random that nobody has had
}

// Next returns an ID that was never given out before.
func (s *IDs) Next() (id anteroom.ID) {
	for id.IsZero() {
		if s.left == 0 {
			rand.Read(s.random[:]) // never fails: the process ends instead (crypto/rand)
			s.left = len(s.random)
		}
		s.left -= copy(id[:], s.random[s.left-len(id):s.left])
	}
	return id
}

// Result says how the opening of a cookie value ended. Everything but OK means "no
// ticket", and nothing that the visitor sees may depend on which it was.
type Result uint8

const (
	// Absent is the zero value: there was no value to open.
	Absent Result = iota
	// OK: the ticket is one of ours, for this zone, room and scope.
	OK
	// Malformed: not the canonical encoding of anything that could be a ticket.
	Malformed
	// WrongVersion: another layout than this program writes.
	WrongVersion
	// UnknownKey: names a key that the ring does not hold (any more).
	UnknownKey
	// Forged: the seal is broken. Tampered with, or of another zone, room or scope.
	Forged

	resultCount
)

var resultWords = [resultCount]string{"absent", "ok", "malformed", "wrong_version", "unknown_key", "forged"}

// String returns the result's word, as it stands in metrics.
func (r Result) String() string {
	if r < resultCount {
		return resultWords[r]
	}
	return "invalid"
}

// Results returns every result, in order, for whoever counts them.
func Results() []Result {
	out := make([]Result, resultCount)
	for i := range out {
		out[i] = Result(i)
	}
	return out
}
