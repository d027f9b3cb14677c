package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/anteroom/anteroom"
)

// BindTag returns the tag, never zero, for [anteroom.Ticket.Bind] of a client that is
// known by the parts: a keyed hash, so that nobody outside can look for a second client
// with the same tag. Kind says what the parts are ([anteroom.BindIPPrefix], …). Equal
// arguments give the same tag for as long as the key file lives; rotations do not change
// it. Two clients share a tag with a chance of 1 in 65,535.
func (k *Keyring) BindTag(kind string, parts ...string) uint16 {
	msg := appendPart(make([]byte, 0, 64), kind)
	for _, part := range parts {
		msg = appendPart(msg, part)
	}
	mac := hmac.New(sha256.New, k.bind[:])
	mac.Write(msg)
	var sum [sha256.Size]byte
	return uint16(1 + binary.BigEndian.Uint64(mac.Sum(sum[:0]))%65535)
}

// BindAddr returns the tag of a client's network for [anteroom.BindIPPrefix]: an IPv4
// address, or the /64 of an IPv6 address, which is what one subscriber has. An IPv4
// address written as IPv6 is the IPv4 address. It is zero, binding to nothing, when addr
// is not valid.
func (k *Keyring) BindAddr(addr netip.Addr) uint16 {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return 0
	}
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	// Prefix fails only when bits exceed the address.
	prefix, _ := addr.Prefix(bits)
	return k.BindTag(anteroom.BindIPPrefix, string(prefix.Addr().AsSlice()))
}
