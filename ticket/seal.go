package ticket

import (
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/anteroom/anteroom"
)

// Sealer seals and opens the tickets of one zone, room and scope. Safe for concurrent use.
type Sealer struct {
	ring *Keyring
	aad  []byte
	// pool holds the buffers of calls under way: what is handed to a cipher.AEAD would
	// otherwise be allocated by each call.
	pool sync.Pool
}

type buffers struct {
	text  [anteroom.MaxTicketBytes]byte // base64
	raw   [anteroom.MaxTicketBytes]byte // head, nonce, sealed body
	plain [bodyBytes]byte
}

// Sealer returns the ring's sealer for a room. Scope is whatever else a ticket must not
// cross, such as the cookie's name; it may be empty. A change of any of the three makes
// every visitor of the room new.
func (k *Keyring) Sealer(zone string, room anteroom.RoomID, scope string) *Sealer {
	aad := []byte{version}
	for _, part := range []string{zone, string(room), scope} {
		aad = appendPart(aad, part)
	}
	return &Sealer{ring: k, aad: aad, pool: sync.Pool{New: func() any { return new(buffers) }}}
}

// Seal appends the cookie value of t to dst, encodedBytes bytes of the URL base64
// alphabet, and returns the result. Refresh is kept to the millisecond. It does not
// allocate when dst has the room.
func (s *Sealer) Seal(dst []byte, t anteroom.Ticket) []byte {
	b := s.pool.Get().(*buffers)
	defer s.pool.Put(b)

	key := s.ring.current
	raw := append(b.raw[:0], version)
	raw = binary.BigEndian.AppendUint32(raw, key.id)
	raw = raw[:headBytes+nonceBytes]
	rand.Read(raw[headBytes:]) // never fails: the process ends instead (crypto/rand)
	raw = key.aead.Seal(raw, raw[headBytes:], putBody(b.plain[:0], t), s.aad)
	return encoding.AppendEncode(dst, raw)
}

// Open returns the ticket sealed in value, or the zero ticket and why there is none. It
// takes anything: no value makes it panic or allocate, and nothing is read before the
// seal is confirmed but the version and the key ID.
func (s *Sealer) Open(value string) (anteroom.Ticket, Result) {
	if value == "" {
		return anteroom.Ticket{}, Absent
	}
	if len(value) > anteroom.MaxTicketBytes {
		return anteroom.Ticket{}, Malformed
	}
	b := s.pool.Get().(*buffers)
	defer s.pool.Put(b)

	raw, ok := b.decode(value)
	switch {
	case !ok:
		return anteroom.Ticket{}, Malformed
	case raw[0] != version:
		return anteroom.Ticket{}, WrongVersion
	case len(raw) != rawBytes:
		return anteroom.Ticket{}, Malformed
	}
	key := s.ring.find(binary.BigEndian.Uint32(raw[1:]))
	if key == nil {
		return anteroom.Ticket{}, UnknownKey
	}
	plain, err := key.aead.Open(b.plain[:0], raw[headBytes:headBytes+nonceBytes], raw[headBytes+nonceBytes:], s.aad)
	if err != nil {
		return anteroom.Ticket{}, Forged
	}
	return body(plain), OK
}

// Stale reports whether value names a key of the ring that no longer seals. A stale
// ticket that opens is good, and the visitor should get it sealed anew with the next
// answer that may carry a cookie, so that it outlives the key.
func (s *Sealer) Stale(value string) bool {
	if len(value) != encodedBytes {
		return false
	}
	b := s.pool.Get().(*buffers)
	defer s.pool.Put(b)

	raw, ok := b.decode(value)
	if !ok || raw[0] != version || len(raw) != rawBytes {
		return false
	}
	key := s.ring.find(binary.BigEndian.Uint32(raw[1:]))
	return key != nil && key.state == Previous
}

// decode returns the bytes of a value of at most MaxTicketBytes, at least one of them,
// and whether value is their one canonical encoding.
func (b *buffers) decode(value string) ([]byte, bool) {
	text := b.text[:copy(b.text[:], value)]
	n, err := encoding.Decode(b.raw[:], text)
	if err != nil || n == 0 || encoding.EncodedLen(n) != len(text) {
		return nil, false
	}
	return b.raw[:n], true
}

// appendPart appends s with its length before it, so that no two lists of parts have the
// same bytes (CVE-2025-68113 was such an ambiguity).
func appendPart(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}
