package aws

import (
	"crypto/cipher"
	"encoding/binary"
	"regexp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
)

// position is a place in line as its request id holds it. Nothing else is kept of it: a request id is a sealed ticket
// that has the shape of a UUID.
type position struct {
	number  uint32        // from 1
	arrival anteroom.Time // of the join
}

// epoch is the moment from which a request id counts arrivals: 2000-01-01.
const epoch = anteroom.Time(946_684_800_000_000)

// arrivalBits hold the arrival in microseconds, until the year 2071.
const arrivalBits = 51

// idShape is what the original accepts as a request id, with anything after it.
var idShape = regexp.MustCompile(`^\w{8}-\w{4}-\w{4}-\w{4}-\w{12}`)

// requestIDs seals positions into UUIDs of version 4. A UUID has 122 free bits: 32 for the number, 51 for the arrival,
// and 39 that are zero, by which a guess is noticed.
type requestIDs struct {
	seal  cipher.Block // another one after each reset, so that earlier ids do not open
	names cipher.Block // from a request id to the id of its ticket
}

func newRequestIDs(secret [32]byte, generation uint32) requestIDs {
	return requestIDs{seal: bridge.Block(bridge.Derive(secret, "request-id", generation)), names: bridge.Block(bridge.Derive(secret, "ticket", 0))}
}

// isUUID reports whether the bytes have the marks of a UUID of version 4.
func isUUID(b *[16]byte) bool { return b[6]>>4 == 4 && b[8]>>6 == 2 }

// of returns the request id of a position.
func (k requestIDs) of(p position) string {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:], p.number)
	b[6] = 4 << 4
	binary.BigEndian.PutUint64(b[8:], 1<<63|uint64(max(0, p.arrival-epoch)))
	// A block cipher permutes the UUIDs if it is repeated until it reaches the next one, after 64 steps on average.
	for k.seal.Encrypt(b[:], b[:]); !isUUID(&b); {
		k.seal.Encrypt(b[:], b[:])
	}
	return bridge.UUID(b)
}

// open returns the position of a request id, or false for one that was not issued since the last reset.
func (k requestIDs) open(id string) (p position, ok bool) {
	b, ok := uuidOf(id)
	if !ok {
		return p, false
	}
	for k.seal.Decrypt(b[:], b[:]); !isUUID(&b); {
		k.seal.Decrypt(b[:], b[:])
	}
	arrival := binary.BigEndian.Uint64(b[8:]) &^ (1 << 63)
	if b[4]|b[5]|b[7] != 0 || b[6] != 4<<4 || arrival>>arrivalBits != 0 {
		return p, false
	}
	p = position{number: binary.BigEndian.Uint32(b[:]), arrival: epoch + anteroom.Time(arrival)}
	return p, p.number != 0
}

// ticketID returns the id of the ticket behind a request id, whether or not the request id opens.
func (k requestIDs) ticketID(id string) (out anteroom.ID, ok bool) {
	b, ok := uuidOf(id)
	if ok {
		k.names.Encrypt(out[:], b[:])
	}
	return out, ok
}

// uuidOf reads the lower-case text of a UUID of version 4.
func uuidOf(s string) (b [16]byte, ok bool) {
	b, ok = bridge.ReadUUID(s)
	return b, ok && isUUID(&b)
}
