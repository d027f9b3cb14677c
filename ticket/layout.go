package ticket

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/wire"
)

// The sealed value, before base64: head, nonce, sealed body.
const (
	version = 1 // of the whole layout; a change of any member is a new version

	headBytes  = 1 + 4 // version, key ID
	nonceBytes = chacha20poly1305.NonceSizeX
	bodyBytes  = 16 + 8 + 1 + 8 + 8 + 4 + 8 + 2 + 4
	rawBytes   = headBytes + nonceBytes + bodyBytes + chacha20poly1305.Overhead
)

// encodedBytes is the length of every cookie value that [Sealer.Seal] writes.
const encodedBytes = (rawBytes*8 + 5) / 6

// encoding is URL base64 without padding. Strict refuses set bits behind the last byte;
// line breaks, which the standard library skips, are refused by the length.
var encoding = base64.RawURLEncoding.Strict()

// putBody appends the fixed layout of t: every number big-endian, in this order.
func putBody(dst []byte, t anteroom.Ticket) []byte {
	dst = append(dst, t.ID[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Arrival))
	dst = append(dst, t.Lane)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.LastCheckIn))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Next))
	dst = binary.BigEndian.AppendUint32(dst, uint32(t.Moved)<<refreshBits|millis(t.Refresh))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.AcceptedAt))
	dst = binary.BigEndian.AppendUint16(dst, t.Bind)
	if t.Accepted() {
		return binary.BigEndian.AppendUint32(dst, t.Home)
	}
	told := min(t.Told, solvedBit-1)
	if t.Solved {
		told |= solvedBit
	}
	return binary.BigEndian.AppendUint32(dst, told)
}

// solvedBit stands above every place (see [anteroom.MaxLine]): an earlier release reads a place so far back that it shows
// the true one.
const solvedBit = 1 << 31

// body reads what putBody wrote. Every b of bodyBytes bytes is some ticket.
func body(b []byte) (t anteroom.Ticket) {
	r := wire.Read(b)
	copy(t.ID[:], r.Bytes(len(t.ID)))
	t.Arrival = anteroom.Time(r.Big64())
	t.Lane = r.Byte()
	t.LastCheckIn = anteroom.Time(r.Big64())
	t.Next = anteroom.Time(r.Big64())
	refresh := r.Big32()
	t.Refresh, t.Moved = time.Duration(refresh&(1<<refreshBits-1))*time.Millisecond, uint8(refresh>>refreshBits)
	t.AcceptedAt = anteroom.Time(r.Big64())
	t.Bind = r.Big16()
	// Earlier releases wrote Told here in every ticket, which was zero once accepted.
	if last := r.Big32(); t.Accepted() {
		t.Home = last
	} else {
		t.Told, t.Solved = last&^solvedBit, last&solvedBit != 0
	}
	return t
}

// refreshBits are enough for 4 h; [anteroom.MaxRefresh] is ten minutes. Above them stands Moved: an earlier release reads it as
// an interval of some hours, keeps the cookie for that long at most, and writes none.
const refreshBits = 24

// millis returns d in whole milliseconds, rounded down and held within refreshBits.
func millis(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 0), 1<<refreshBits-1))
}
