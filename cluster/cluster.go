// Package cluster is how a node keeps what must survive it and, later, how nodes talk.
//
// It knows no rooms: subjects, keys and bytes only. There are two implementations,
// memlink (one process, nothing survives it; also the simulator's network) and natslink
// (NATS with JetStream, embedded). linktest holds the suite that both pass; the comments
// below are the contract that it tests. README.md says what is written, how often, and
// what survives what.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound: the key holds nothing.
	ErrNotFound = errors.New("cluster: key not found")
	// ErrRevision: the key has another revision than the one given.
	ErrRevision = errors.New("cluster: key was changed by somebody else")
	// ErrClosed: the link was closed.
	ErrClosed = errors.New("cluster: link is closed")
	// ErrTooLarge: the value exceeds MaxValue.
	ErrTooLarge = errors.New("cluster: value is too large")
	// ErrKey: the text is not a key, see CheckKey.
	ErrKey = errors.New("cluster: not a key")
	// ErrFull: there is no space for the write; it was not done. The error that wraps it
	// says which space and how to get more. The link goes on working when there is some.
	ErrFull = errors.New("cluster: no space left")
)

const (
	// MaxValue is the largest value of a key and the largest journal record, in bytes.
	MaxValue = 1 << 20
	// MaxKey is the longest key, in bytes.
	MaxKey = 255
	// DefaultRetention is how long journal records are kept before Retain was ever
	// called: the longest session (24 h) and the longest place hold (1 h), and some.
	DefaultRetention = 26 * time.Hour
	// MinRetention and MaxRetention bound what Retain takes.
	MinRetention = time.Second
	MaxRetention = 366 * 24 * time.Hour
)

// Entry is a key's value with its revision, a number greater than 0 that grows with every
// change of the store and is never used twice.
type Entry struct {
	Key      string
	Value    []byte // the receiver's own
	Revision uint64
}

// Link is one node's access to the durable place. All methods are safe for concurrent
// use, return ctx's error when it ends first, and ErrClosed after Close. A write whose ctx
// ended while it was under way may or may not have been done; one whose ctx had ended
// before it began has not.
type Link interface {
	// Get returns the key's entry, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Put sets the key whatever it holds; an empty value is a value. When it returns, the
	// value is synced: it survives the loss of power. The link does not keep the slice.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update sets the key if its revision is still the one given; 0 means that it holds
	// nothing. Otherwise ErrRevision and nothing has changed. Synced as Put is.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete makes the key hold nothing. Deleting nothing is no error. Synced as Put is.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix, sorted. The prefix need not be a key.
	Keys(ctx context.Context, prefix string) ([]string, error)

	// Append adds a record to the journal. When it returns, the record survives the end
	// of the process (kill -9), and the records are replayed in the order in which
	// appends returned: one that returned before another was called comes first. Records
	// that were never acknowledged may or may not be there, once and whole. The link does
	// not keep the slice.
	Append(ctx context.Context, record []byte) error
	// Replay calls fn with every record that is younger than the retention and was
	// appended before the call, oldest first; it may call it with older and with newer
	// ones. It stops at fn's first error and returns it. The record is fn's during the
	// call only. fn may use the link. A record that fails its checksum, or is missing
	// between others, ends the replay with a *DamagedError.
	Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error
	// Retain sets how long journal records are kept at least, MinRetention to
	// MaxRetention; older ones may go. It may be changed at any time and holds until the
	// next change, over restarts where the link survives them.
	Retain(ctx context.Context, d time.Duration) error

	// Close releases everything and ends the calls under way with ErrClosed. Acknowledged
	// writes stay. Closing twice is no error.
	Close() error
}

// DamagedError says that stored bytes are not what was written.
type DamagedError struct {
	What string // the key or record, for the operator
	Err  error
}

func (e *DamagedError) Error() string { return "cluster: damaged: " + e.What + ": " + e.Err.Error() }
func (e *DamagedError) Unwrap() error { return e.Err }

// CheckKey returns nil for a key: 1 to MaxKey ASCII letters, digits and the signs - _ = /
// and, except first, last or twice in a row, the dot. Else an error that wraps ErrKey.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes, 1 to %d are allowed", ErrKey, len(key), MaxKey)
	}
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '=', c == '/':
		case c == '.' && i > 0 && i < len(key)-1 && key[i-1] != '.':
		default:
			return fmt.Errorf("%w: %q at byte %d of %q; letters, digits, - _ = / are allowed, and single dots inside", ErrKey, c, i, key)
		}
	}
	return nil
}

// CheckValue returns nil for a value or record that fits, else an error that wraps
// ErrTooLarge.
func CheckValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(value), MaxValue)
	}
	return nil
}

// CheckRetention returns nil for what Retain takes, else an error that says the bounds.
func CheckRetention(d time.Duration) error {
	if d < MinRetention || d > MaxRetention {
		return fmt.Errorf("cluster: retention of %v is not between %v and %v", d, MinRetention, MaxRetention)
	}
	return nil
}
