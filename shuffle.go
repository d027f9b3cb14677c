package anteroom

// Shuffle is what everybody may know of the shuffle at the start of an event's occurrence.
// Package engine has the arithmetic by which it is recomputed. It is shared and must not be
// changed.
type Shuffle struct {
	// Commitment is the SHA-256 of the seed. It is published from the prequeue on.
	Commitment [32]byte
	// Done says that the order has been drawn. Until then the members below are zero.
	Done bool
	At   Time // of the draw
	Seed [32]byte
	// Entries is the SHA-256 of IDs, one behind the other.
	Entries [32]byte
	// IDs of everybody who took part, sorted as bytes.
	IDs []ID
}
