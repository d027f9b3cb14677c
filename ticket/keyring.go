package ticket

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/anteroom/anteroom"
)

// Purposes of derived secrets, for [Keyring.Derive] and [Keyring.Fixed]. No two purposes
// share a secret.
const (
	PurposeProof     = "proof"     // Ed25519 seeds of the proof of admission; Derive
	PurposeSubject   = "subject"   // names a session to the origin; Fixed
	PurposePass      = "pass"      // P-256 keys and edges' secrets of passes; Derive
	PurposeWebhook   = "webhook"   // signs what webhooks send; Fixed
	PurposeChallenge = "challenge" // binds challenges to tickets; Fixed
	PurposeBridge    = "bridge"    // seals what clients of bridges hold; Fixed
	PurposeLottery   = "lottery"   // makes the numbers of a room by lottery; Fixed
	PurposeInvite    = "invite"    // marks the tickets of invited visitors; Fixed
	PurposePush      = "push"      // makes the P-256 key that signs requests to push services; Fixed
	PurposeAccount   = "account"   // makes and reads the ids of accounts' tickets; Fixed

	purposeTicket = "ticket"
	purposeBind   = "bind"
	purposeNet    = "networks"
	purposeID     = "id"
)

// DefaultKeep is how long a key goes on opening after it stopped sealing: the longest
// session and an hour for the wait before it.
const DefaultKeep = anteroom.MaxSessionDuration + time.Hour

// maxKeys is the most keys of a ring.
const maxKeys = 256

// Secret is 32 secret bytes. It does not print.
type Secret [32]byte

// Format writes "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, "[secret]") }

// MarshalText writes "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// State says what a key is used for.
type State string

const (
	// Fixed makes the secrets that a rotation must not change: who got a tag of a client
	// keeps it. It neither seals nor opens. A ring has one.
	Fixed State = "fixed"
	// Next opens and does not seal yet: nodes learn it before any of them uses it.
	Next State = "next"
	// Current seals and opens. A ring has one.
	Current State = "current"
	// Previous sealed once and still opens.
	Previous State = "previous"
)

// KeyInfo tells about a key without telling it.
type KeyInfo struct {
	ID       string // eight hexadecimal digits
	State    State
	Created  time.Time
	Replaced time.Time // when it stopped sealing; zero unless State is Previous
}

// Derived is a secret made from one key of a ring for one purpose.
type Derived struct {
	ID     string // the key's
	Secret Secret
}

type key struct {
	id       uint32 // from the secret, so that a damaged secret is noticed; never zero
	state    State
	created  time.Time // whole seconds, UTC; replaced too
	replaced time.Time
	secret   Secret
	aead     cipher.AEAD
}

// Keyring is a set of keys. It does not change: rotating returns another ring. Safe for
// concurrent use. It does not print its secrets.
type Keyring struct {
	fixed    key
	keys     []key // next, current, previous (newest first)
	byID     map[uint32]*key
	current  *key
	bind     Secret
	networks cipher.Block // AES as a keyed hash of one block
}

// NewKeyring returns a ring with one fresh key, made at now.
func NewKeyring(now time.Time) *Keyring {
	return ringOf(newKey(Fixed, now), []key{newKey(Current, now)})
}

// ringOf takes keys of which exactly one is current.
func ringOf(fixed key, keys []key) *Keyring {
	order := []State{Next, Current, Previous}
	slices.SortStableFunc(keys, func(a, b key) int {
		if a.state != b.state {
			return slices.Index(order, a.state) - slices.Index(order, b.state)
		}
		return b.replaced.Compare(a.replaced)
	})
	k := &Keyring{fixed: fixed, keys: keys, byID: make(map[uint32]*key, len(keys)), bind: derive(fixed.secret, purposeBind)}
	k.networks = blockOf(derive(fixed.secret, purposeNet))
	for i := range keys {
		one := &keys[i]
		k.byID[one.id] = one
		if one.state == Current {
			k.current = one
		}
	}
	return k
}

func newKey(state State, now time.Time) key {
	var secret Secret
	rand.Read(secret[:]) // never fails: the process ends instead (crypto/rand)
	return keyOf(secret, state, now, time.Time{})
}

func keyOf(secret Secret, state State, created, replaced time.Time) key {
	ticket := derive(secret, purposeTicket)
	aead, err := chacha20poly1305.NewX(ticket[:])
	if err != nil {
		panic(err) // only for a key of another length
	}
	return key{idOf(secret), state, seconds(created), seconds(replaced), secret, aead}
}

// idOf returns the ID of a secret: 32 bits of a hash of their own, which tell nothing
// about the others.
func idOf(secret Secret) uint32 {
	d := derive(secret, purposeID)
	return max(1, binary.BigEndian.Uint32(d[:]))
}

// derive is HKDF-SHA256 (RFC 5869) without salt; a secret is uniformly random.
func derive(secret Secret, purpose string) Secret {
	out, err := hkdf.Key(sha256.New, secret[:], nil, "anteroom/1/"+purpose, len(Secret{}))
	if err != nil {
		panic(err) // only for a longer output than SHA-256 can expand to
	}
	return Secret(out)
}

func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

func (k *Keyring) find(id uint32) *key {
	if k.current.id == id {
		return k.current
	}
	return k.byID[id]
}

// Reads reports whether the ring opens what another one seals now.
func (k *Keyring) Reads(o *Keyring) bool { return k == o || k.find(o.current.id) != nil }

// Derive returns the secrets for a purpose from every key that opens, the current key's
// first: make things with the first, accept those of all.
func (k *Keyring) Derive(purpose string) []Derived {
	out := make([]Derived, 0, len(k.keys))
	out = append(out, k.current.derived(purpose))
	for i := range k.keys {
		if one := &k.keys[i]; one != k.current {
			out = append(out, one.derived(purpose))
		}
	}
	return out
}

func (one *key) derived(purpose string) Derived {
	return Derived{ID: idText(one.id), Secret: derive(one.secret, purpose)}
}

// Fixed returns the secret for a purpose that no rotation changes.
func (k *Keyring) Fixed(purpose string) Secret { return derive(k.fixed.secret, purpose) }

// Keys returns what may be told about the keys that open: next, current, previous (newest
// first).
func (k *Keyring) Keys() []KeyInfo {
	out := make([]KeyInfo, len(k.keys))
	for i, one := range k.keys {
		out[i] = KeyInfo{ID: idText(one.id), State: one.state, Created: one.created, Replaced: one.replaced}
	}
	return out
}

// Format writes the number of keys and the ID of the current one, for every verb.
func (k Keyring) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "keyring of %d, current %s", len(k.keys), idText(k.current.id))
}

func idText(id uint32) string { return fmt.Sprintf("%08x", id) }
