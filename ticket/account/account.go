// Package account makes an account of the operator's identity provider the identity of a visitor: a signed token (JWT) names the
// account, the ids of tickets follow from it, and a key in the store says which of them is the account's place now. Whoever comes with
// the same account, from whatever device, has the same place and the same session. Who is admitted is decided in package engine, which
// knows nothing of accounts.
package account

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// ID is a keyed hash of an account's name. Nobody learns the name from it, and it is another one in each room.
type ID [9]byte

// Mark makes and reads the ids of accounts' tickets in one room: account, number of the place, and four zero bytes, encrypted as one
// block. To everybody else they look random.
type Mark struct {
	key   [32]byte
	block cipher.Block
}

// MarkOf returns the mark of a room.
func MarkOf(secret [32]byte, room anteroom.RoomID) Mark {
	derive := func(what string) [32]byte {
		h := hmac.New(sha256.New, secret[:])
		h.Write([]byte(what + "\x00" + string(room)))
		return [32]byte(h.Sum(nil))
	}
	key := derive("ids")
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return Mark{derive("names"), block}
}

// Of returns the id of the account with a name.
func (m Mark) Of(name string) (id ID) {
	h := hmac.New(sha256.New, m.key[:])
	h.Write([]byte(name))
	copy(id[:], h.Sum(nil))
	return id
}

// Ticket returns the id of the ticket for an account's place with a number.
func (m Mark) Ticket(of ID, number uint32) (id anteroom.ID) {
	binary.BigEndian.PutUint32(id[8:], number) // its first byte makes room for the account's last one
	copy(id[:], of[:])
	m.block.Encrypt(id[:], id[:])
	return id
}

// Read returns what Ticket was given; false if it has not made the id.
func (m Mark) Read(id anteroom.ID) (of ID, number uint32, ok bool) {
	m.block.Decrypt(id[:], id[:])
	if copy(of[:], id[:]); binary.BigEndian.Uint32(id[12:]) != 0 {
		return ID{}, 0, false
	}
	id[8] = 0
	return of, binary.BigEndian.Uint32(id[8:]), true
}

// Place is what the store knows of an account in a room.
type Place struct {
	// Number grows with each place that the account has, one after the other. 0: it has had none lately.
	Number uint32 `json:"number"`
	// Arrival is when the place began.
	Arrival anteroom.Time `json:"arrival"`
}

// attempts at a key that others change at the same time.
const attempts = 10

// Places are the accounts' places in the store.
type Places struct{ Space cluster.Space }

// KeyPrefix begins the keys of places, and of former places that were merged into one. All of them expire.
const KeyPrefix = "accounts."

// MergedKey is the key that says for which account a former place was taken.
func MergedKey(room anteroom.RoomID, former anteroom.ID) string {
	return KeyPrefix + string(room) + ".merged." + hex.EncodeToString(former[:])
}

func placeKey(room anteroom.RoomID, of ID) string {
	return KeyPrefix + string(room) + "." + hex.EncodeToString(of[:])
}

// Get returns the place of an account: the zero Place if there is none.
func (s Places) Get(ctx context.Context, room anteroom.RoomID, of ID) (Place, error) {
	p, _, err := s.get(ctx, placeKey(room, of))
	return p, err
}

func (s Places) get(ctx context.Context, key string) (p Place, revision uint64, err error) {
	if s.Space == nil {
		return Place{}, 0, cluster.ErrUnavailable
	}
	e, err := s.Space.Get(ctx, key)
	if errors.Is(err, cluster.ErrNotFound) {
		return Place{}, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &p)
	}
	return p, e.Revision, err
}

// Raise stores the place of an account for a time, unless it has had a later one, and returns the one that it has now. An equal one is
// kept for that time again.
func (s Places) Raise(ctx context.Context, room anteroom.RoomID, of ID, to Place, keep time.Duration) (Place, error) {
	key := placeKey(room, of)
	for try := range attempts {
		now, revision, err := s.get(ctx, key)
		if err != nil || now.Number > to.Number {
			return now, err
		}
		if now.Number == to.Number {
			to = now // the one that was first
		}
		value, err := json.Marshal(to)
		if err != nil {
			return now, err
		}
		if _, err = s.Space.Lease(ctx, key, value, revision, keep.Truncate(time.Second)+time.Second); !errors.Is(err, cluster.ErrRevision) {
			return to, err
		}
		select { // the copy that was read may be a moment behind
		case <-time.After(time.Duration(rand.Int64N(int64(try+1) * int64(5*time.Millisecond)))):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
	return Place{}, cluster.ErrUnavailable
}
