package ticket

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/anteroom/anteroom"
)

// sealedRingVersion is the first byte of a sealed ring.
const sealedRingVersion = 1

// Sealed returns the ring as only those can read it who know the secret: for a place that
// several machines share, where a copy of what is stored must not be enough to make tickets.
// The secret has a length of 16 or more that nobody can guess; owner (a cluster's name) must
// be the same when it is opened.
func (k *Keyring) Sealed(secret, owner string) []byte {
	aead := ringCipher(secret)
	out := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+keyFileMaxBytes)
	out[0] = sealedRingVersion
	rand.Read(out[1:])
	return aead.Seal(out, out[1:], k.marshal(), []byte(owner))
}

// OpenRing is the reverse of [Keyring.Sealed], under any of the secrets. The error is of kind
// Denied when none of them is the right one or the bytes were changed, and Invalid when they
// are no ring.
func OpenRing(sealed []byte, owner string, secrets ...string) (*Keyring, error) {
	if len(sealed) == 0 || sealed[0] != sealedRingVersion || len(sealed) > 2*keyFileMaxBytes {
		return nil, anteroom.Errorf(anteroom.Invalid, "these are not ticket keys, or those of another release")
	}
	for _, secret := range secrets {
		aead := ringCipher(secret)
		if len(sealed) < 1+aead.NonceSize() {
			continue
		}
		plain, err := aead.Open(nil, sealed[1:1+aead.NonceSize()], sealed[1+aead.NonceSize():], []byte(owner))
		if err != nil {
			continue
		}
		ring, err := parse(plain)
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Invalid, "the ticket keys: %w", err)
		}
		return ring, nil
	}
	return nil, anteroom.Errorf(anteroom.Denied, "the ticket keys cannot be opened: they are under another secret, or were changed")
}

// Export returns the ring as a key file has it, for a backup. It is secret.
func (k *Keyring) Export() []byte { return k.marshal() }

// FromExport is the reverse of [Keyring.Export], with an error of kind Invalid.
func FromExport(data []byte) (*Keyring, error) {
	ring, err := parse(data)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "these are not Anteroom's keys: %w", err)
	}
	return ring, nil
}

// ringCipher takes the key of the sealed ring from a secret by HKDF-SHA256 (RFC 5869).
func ringCipher(secret string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "anteroom/1/keyring", chacha20poly1305.KeySize)
	if err != nil {
		panic(err) // only for a longer output than SHA-256 can expand to
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		panic(err) // only for a key of another length
	}
	return aead
}
