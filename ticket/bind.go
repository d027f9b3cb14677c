package ticket

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/anteroom/anteroom"
)

// bindTag returns the tag, never zero, for [anteroom.Ticket.Bind] of a client that is
// known by the parts: a keyed hash, so that nobody outside can look for a second client
// with the same tag. Kind says what the parts are ([anteroom.BindIPPrefix], …). Equal
// arguments give the same tag for as long as the key file lives; rotations do not change
// it. Two clients share a tag with a chance of 1 in 65,535.
func (k *Keyring) bindTag(kind string, parts ...string) uint16 {
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
	return k.bindTag(anteroom.BindIPPrefix, string(prefix.Addr().AsSlice()))
}

// Networks returns the networks of a client: an IPv4 address and its /24; the /64, the /56 and the /48 of an IPv6 address. They
// are the same for as long as the key file lives, and nobody outside can look for addresses that share one; two networks do
// with a chance of 1 in 4 billion. All are zero when addr is not valid.
func (k *Keyring) Networks(addr netip.Addr) (out anteroom.Networks) {
	addr = addr.Unmap().WithZone("")
	lengths := [len(out)]int{64, 56, 48}
	switch {
	case !addr.IsValid():
		return out
	case addr.Is4():
		lengths = [len(out)]int{32, 24}
	}
	for i, n := range lengths {
		if n == 0 {
			break
		}
		out[i] = k.network(addr, n)
	}
	return out
}

// Network returns the widest network of [Keyring.Networks]: the /24 of an IPv4 address, the /48 of an IPv6 address; zero when addr is
// not valid.
func (k *Keyring) Network(addr netip.Addr) uint32 {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid():
		return 0
	case addr.Is4():
		return k.network(addr, 24)
	}
	return k.network(addr, 48)
}

func (k *Keyring) network(addr netip.Addr, bits int) uint32 {
	prefix, _ := addr.Prefix(bits) // fails only when bits exceed the address
	block := prefix.Addr().As16()  // an IPv4 address is one of ::ffff:0:0/96, which no client has
	block[0] ^= byte(bits)         // the address and its network may be spelled alike
	k.networks.Encrypt(block[:], block[:])
	return max(1, binary.BigEndian.Uint32(block[:]))
}

func blockOf(key Secret) cipher.Block {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for a key that is not of 16, 24 or 32 bytes
	}
	return block
}
