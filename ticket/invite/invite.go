// Package invite holds what invitations have in common, whoever makes them: codes (package manage) and enqueue tokens of
// connectors (bridge/queueit). An invitation is spent by compare-and-set, and its visitor gets a ticket whose id says that it was
// made for one. Whether a room wants invitations is decided in package engine.
package invite

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

const (
	// alphabet is Crockford's base 32: no I, L, O and U.
	alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	// symbols of a code: 80 bits. Anyone who holds the hashes of a million codes computes some 10^18 more to find one.
	symbols = 16
	group   = 4
	// maxText bounds a code as visitors type it, in bytes.
	maxText = 64
	// again is how long the same visitor may spend the same use again, because the answer was lost.
	again = time.Minute
	// attempts at a key that others change at the same time. Each of them has spent a use.
	attempts = 20
)

// ErrSpent says that an invitation has no use left.
var ErrSpent = errors.New("invite: spent")

// Hash is the first half of the SHA-256 of a code.
type Hash [16]byte

// NewCode returns a random code like "K7QM-2XHP-9D4T-W3FN".
func NewCode() string {
	var b [symbols]byte
	rand.Read(b[:])
	text := make([]byte, 0, symbols+symbols/group-1)
	for i, c := range b {
		if i > 0 && i%group == 0 {
			text = append(text, '-')
		}
		text = append(text, alphabet[c%32])
	}
	return string(text)
}

// Read returns the hash of a code as a visitor has typed it: in any case, with or without hyphens and spaces, with O for 0, and I or L
// for 1. It is false for what cannot be a code.
func Read(text string) (h Hash, ok bool) {
	if len(text) > maxText {
		return h, false
	}
	code := strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(text))
	if len(code) != symbols || strings.Trim(code, alphabet) != "" {
		return h, false
	}
	sum := sha256.Sum256([]byte("anteroom-invite\x00" + code))
	return Hash(sum[:]), true
}

// spent is what a key holds of an invitation that was used.
type spent struct {
	Uses int       `json:"uses"`
	By   string    `json:"by,omitempty"` // who had the last use
	At   time.Time `json:"at"`
}

// Use is one use of an invitation.
type Use struct {
	Key   string    // of the invitation, in the space
	Most  int       // how many uses it has
	Until time.Time // when it expires, so that nothing has to be kept; zero: never
	By    string    // names the visitor; empty: nobody may have the same use again
	Now   time.Time
}

// Spend takes a use, or returns ErrSpent. The same visitor has the same use again for a minute. After another error it may have been taken.
func Spend(ctx context.Context, space cluster.Space, u Use) error {
	return u.change(ctx, space, func(was *spent) error {
		switch {
		case u.By != "" && was.By == u.By && u.Now.Sub(was.At).Abs() < again:
			return errSame
		case was.Uses >= u.Most:
			return ErrSpent
		}
		was.Uses++
		return nil
	})
}

// Keep notes that at least so many uses were taken, as known from elsewhere.
func Keep(ctx context.Context, space cluster.Space, u Use, uses int) error {
	return u.change(ctx, space, func(was *spent) error {
		if was.Uses >= uses {
			return errSame
		}
		was.Uses = uses
		return nil
	})
}

// errSame: what is stored is right already.
var errSame = errors.New("invite: nothing to change")

// change writes what was spent of an invitation as change makes it.
func (u Use) change(ctx context.Context, space cluster.Space, change func(was *spent) error) error {
	for try := range attempts {
		var was spent
		e, err := space.Get(ctx, u.Key)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := json.Unmarshal(e.Value, &was); err != nil {
				return err
			}
		}
		if err := change(&was); errors.Is(err, errSame) {
			return nil
		} else if err != nil {
			return err
		}
		value, err := json.Marshal(spent{was.Uses, u.By, u.Now.UTC()})
		if err != nil {
			return err
		}
		if left := u.Until.Sub(u.Now).Truncate(time.Second) + time.Second; u.Until.IsZero() || left > cluster.MaxRetention {
			_, err = space.Update(ctx, u.Key, value, e.Revision)
		} else {
			_, err = space.Lease(ctx, u.Key, value, e.Revision, max(left, cluster.MinLease))
		}
		if !errors.Is(err, cluster.ErrRevision) {
			return err
		}
		select { // the copy that was read may be a moment behind
		case <-time.After(time.Duration(mathrand.Int64N(int64(try+1) * int64(10*time.Millisecond)))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return cluster.ErrUnavailable
}

// Used returns how many uses of an invitation were taken.
func Used(ctx context.Context, space cluster.Space, key string) (int, error) {
	var was spent
	e, err := space.Get(ctx, key)
	if errors.Is(err, cluster.ErrNotFound) {
		return 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &was)
	}
	return was.Uses, err
}

// Mark makes and recognizes the ids of tickets that were made for an invitation to one room: half of such an id follows from the other
// half and a secret. Visitors cannot choose the ids of tickets, which are sealed.
type Mark struct{ key [32]byte }

// MarkOf returns the mark of a room.
func MarkOf(secret [32]byte, room anteroom.RoomID) Mark {
	h := hmac.New(sha256.New, secret[:])
	h.Write([]byte(room))
	return Mark{[32]byte(h.Sum(nil))}
}

// ID returns the id of the ticket for an invitation: the same for the same seed.
func (m Mark) ID(seed string) (id anteroom.ID) {
	h := hmac.New(sha256.New, m.key[:])
	h.Write([]byte("id\x00" + seed))
	copy(id[:8], h.Sum(nil))
	copy(id[8:], m.half(id))
	return id
}

// Has reports whether an id was made by ID.
func (m Mark) Has(id anteroom.ID) bool { return hmac.Equal(id[8:], m.half(id)) }

func (m Mark) half(id anteroom.ID) []byte {
	h := hmac.New(sha256.New, m.key[:])
	h.Write([]byte("half\x00"))
	h.Write(id[:8])
	return h.Sum(nil)[:8]
}
