// Package cluster is how a node keeps what must survive it and, later, how nodes talk.
//
// It knows no rooms: subjects, keys and bytes only. There are two implementations,
// memlink (one process, nothing survives it; also the simulator's network) and natslink
// (NATS with JetStream, embedded). linktest holds the suite that both pass; the comments
// below are the contract that it tests.
package cluster

import (
	"context"
	"errors"
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
)

// MaxValue is the largest value of a key and the largest journal record, in bytes.
const MaxValue = 1 << 20

// Entry is a key's value with its revision, a number that grows with every change of
// the store and is never used twice.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Link is one node's access to the durable place. All methods are safe for concurrent
// use, return ctx's error when it ends first, and ErrClosed after Close.
type Link interface {
	// Get returns the key's entry, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Put sets the key whatever it holds. When it returns, the value is synced: it
	// survives the loss of power.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update sets the key if its revision is still the one given; 0 means that it holds
	// nothing. Otherwise ErrRevision and nothing has changed. Synced as Put is.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete makes the key hold nothing. Deleting nothing is no error.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix, sorted.
	Keys(ctx context.Context, prefix string) ([]string, error)

	// Append adds a record to the journal. When it returns, the record survives the end
	// of the process (kill -9), and the records are replayed in the order in which
	// appends returned. Records that were never acknowledged may or may not be there.
	Append(ctx context.Context, record []byte) error
	// Replay calls fn with every record that is younger than the retention and was
	// appended before the call, oldest first. It stops at fn's first error and returns it.
	// A record that fails its checksum ends the replay with a *DamagedError.
	Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error
	// Retain sets how long journal records are kept at least; older ones may go. It may be
	// changed at any time.
	Retain(ctx context.Context, d time.Duration) error

	// Close releases everything. Acknowledged writes stay.
	Close() error
}

// DamagedError says that stored bytes are not what was written.
type DamagedError struct {
	What string // the key or record, for the operator
	Err  error
}

func (e *DamagedError) Error() string { return "cluster: damaged: " + e.What + ": " + e.Err.Error() }
func (e *DamagedError) Unwrap() error { return e.Err }
