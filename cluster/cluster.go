// Package cluster is how a node stores what must survive it, how nodes communicate, and which of them does what only
// one may do ([Roles]).
//
// It knows no rooms: only subjects, keys and bytes. There are two implementations of [Link]: memlink (in memory,
// nothing survives: one process, or many in the world of a test) and natslink (NATS with JetStream: standalone in a
// directory, or connected to others). linktest holds the suite that both pass; the comments below are the contract that
// it tests. README.md says what is written, how often, and what survives which failure.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNotFound: the key holds nothing.
	ErrNotFound = errors.New("cluster: key not found")
	// ErrRevision: the key has another revision than the one given.
	ErrRevision = errors.New("cluster: key was changed by another writer")
	// ErrClosed: the link was closed.
	ErrClosed = errors.New("cluster: link is closed")
	// ErrTooLarge: the value exceeds MaxValue.
	ErrTooLarge = errors.New("cluster: value is too large")
	// ErrKey: the text is not a key, see CheckKey.
	ErrKey = errors.New("cluster: not a key")
	// ErrFull: there is no space for the write, which was not done. The error that wraps it says which space is full
	// and how to get more. The link works again once there is space.
	ErrFull = errors.New("cluster: no space left")
	// ErrFenced: another handle of the journal was opened later. This one can append no more.
	ErrFenced = errors.New("cluster: the journal was taken over")
	// ErrNobody: the subject of the request has no subscriber.
	ErrNobody = errors.New("cluster: no answer")
	// ErrUnavailable: the store cannot be reached now, or has no majority. A write that failed with it may still have
	// been done.
	ErrUnavailable = errors.New("cluster: the store cannot be reached")
)

const (
	// MaxValue is the largest value of a key and the largest journal record, in bytes.
	MaxValue = 1 << 20
	// MaxKey is the longest key, in bytes.
	MaxKey = 255
	// DefaultRetention is how long journal records are kept until Retain is called: longer than the longest session (24
	// h) and the longest place hold (1 h) together.
	DefaultRetention = 26 * time.Hour
	// MinRetention and MaxRetention bound what Retain takes.
	MinRetention = time.Second
	MaxRetention = 366 * 24 * time.Hour
	// MaxMessage is the largest message and the largest answer, in bytes.
	MaxMessage = 1 << 20
	// MinLease is the shortest time to live of a lease, and its unit.
	MinLease = time.Second
	// Shards is the number of shards that rooms are spread over. Each has one process per site that decides for its
	// rooms, and one that coordinates them (ADR 0021).
	Shards = 16
)

// ShardOf returns the shard of a room, 0 to Shards-1: FNV-1a of its id, modulo Shards.
func ShardOf(room string) int {
	h := uint32(2166136261)
	for i := 0; i < len(room); i++ {
		h = (h ^ uint32(room[i])) * 16777619
	}
	return int(h % Shards)
}

// Entry is a key's value with its revision, a number above 0 that grows with every change of the store and is never
// used twice.
type Entry struct {
	Key      string
	Value    []byte // the receiver's own
	Revision uint64
}

// Change is what Watch reports.
type Change struct {
	Entry
	// Gone: the key has no value any more, because it was deleted or has expired. Only the Key of the Entry is set.
	Gone bool
	// Synced: everything that the prefix held has been reported. The Entry is empty.
	Synced bool
}

// Message is what Subscribe delivers.
type Message struct {
	Subject string
	Data    []byte // the receiver's own
	// Reply answers a request; nil if no answer is wanted. Only the first answer counts. It may be called later and
	// from any goroutine. It fails as Publish does.
	Reply func(data []byte) error
}

// Space holds keys and messages for all processes that share it. All methods are safe for concurrent use. They return
// ctx's error if that ends first, and ErrClosed after the link's Close. A write whose ctx ended while it was in progress
// may or may not have been done; one whose ctx had ended before it began has not. While the store cannot be reached,
// writes fail with ErrUnavailable; reads may fail, too, or return what a local copy knows.
//
// Subjects are keys, see CheckKey. A message may be lost, repeated or out of order, and any process in the space may send
// messages on any subject.
type Space interface {
	// Get returns the key's entry, or ErrNotFound. If the space is stored elsewhere, the entry may be as old as
	// Health's Lag.
	Get(ctx context.Context, key string) (Entry, error)
	// Put sets the key, whatever its value is; an empty value is a value. When it returns, the value is synced: it
	// survives the loss of power, and of a minority of the machines that store it. The link does not keep the slice.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update sets the key if its revision is still the given one; 0 means that it has no value. Otherwise it returns
	// ErrRevision and changes nothing. Synced like Put.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Lease is Update for a key that expires ttl after its last Lease, not earlier and at most some seconds later;
	// watchers see it as Gone. ttl is in whole seconds, at least MinLease. A Put or Update makes the key permanent.
	Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error)
	// Delete removes the key's value. Deleting nothing is not an error. Synced like Put.
	Delete(ctx context.Context, key string) error
	// Remove is Delete if the key's revision is still the given one. Otherwise it returns ErrRevision and changes nothing.
	Remove(ctx context.Context, key string, revision uint64) error
	// Keys returns the keys that begin with prefix, sorted. The prefix need not be a key itself.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Watch calls fn with every key under prefix as it is now, then with Synced, then with every change. It returns
	// ctx's error when that ends, or ErrClosed, and nothing else: after a lost connection it continues by itself, and
	// may then report everything and Synced again (keys that were deleted meanwhile as Gone). fn is called from the
	// caller's goroutine and may use the link. The changes of a key come in order; some may be left out or repeated,
	// but never the last one. The prefix is "" or a key, or a key and a dot.
	Watch(ctx context.Context, prefix string, fn func(Change)) error

	// Publish sends data to all current subscribers, including those in this process, and does not wait for them. The
	// link does not keep the slice. ErrTooLarge beyond MaxMessage.
	Publish(subject string, data []byte) error
	// Subscribe calls fn with every message from now on, one at a time, until stop is called; a call in progress then
	// ends by itself. While fn is slow, some thousand messages or 64 MiB wait; beyond that, the newest are lost. stop
	// may be called twice and from fn.
	Subscribe(subject string, fn func(Message)) (stop func(), err error)
	// Request publishes data and returns the first answer, or ErrNobody immediately if there is no subscriber. The
	// caller owns the answer.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// Journal is one handle of a named journal.
type Journal interface {
	// Append adds a record. When it returns, the record survives the end of the process (kill -9) and of a minority of
	// the machines that store it. Records are replayed in the order in which appends returned: one that returned before
	// another was called comes first. Records that were never acknowledged may or may not be there, once and complete,
	// and none appears after the journal was opened again. ErrFenced if it was. The link does not keep the slice.
	Append(ctx context.Context, record []byte) error
	// Replay calls fn with every record of the journal, from any handle, that is younger than the retention and was
	// appended before the call, oldest first; it may also include older and newer ones. It stops at fn's first error
	// and returns it. fn may use the record only during the call, and may use the link. A record that fails its
	// checksum, or is missing between others, ends the replay with a *DamagedError.
	Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error
	// ReplayFrom is Replay from a place in the same journal on.
	ReplayFrom(ctx context.Context, from Place, fn func(appended time.Time, record []byte) error) error
}

// Place is a place in a journal: the zero value is before its first record. Only the link that returned it knows what it
// says.
type Place struct {
	Next   uint64 // the first record may have this number
	Record uint64 // number of the record before, if the link counts the journal's records; 0: there was none
}

// Link is one process's access to the durable store and to the other processes. Its own Space is shared by all sites.
type Link interface {
	Space
	// Site returns the space of this site only. It may be the same as the link.
	Site() Space
	// Journal opens the journal with that name in this site and takes it over: when it returns, no handle opened
	// before, in any process, can append. Names are keys; "" is the journal of a standalone process.
	Journal(ctx context.Context, name string) (Journal, error)
	// Look calls fn as ReplayFrom does with the records that a journal has now, without taking it over, and returns the place
	// after the last of them: another Look, or ReplayFrom of a handle that is opened later, goes on there and leaves no
	// record out.
	Look(ctx context.Context, name string, from Place, fn func(appended time.Time, record []byte) error) (Place, error)
	// Retain sets how long records of all journals are kept at least, MinRetention to MaxRetention; older ones may be
	// deleted. It may be changed at any time and applies until the next change, over restarts if the link survives
	// them.
	Retain(ctx context.Context, d time.Duration) error
	// Health returns what the link knows about its own connections. It does not wait.
	Health() Health
	// Close releases everything and ends calls in progress with ErrClosed. Acknowledged writes stay. Closing twice is
	// not an error.
	Close() error
}

// Health describes a link's connections, for status and doctor.
type Health struct {
	Alone bool // standalone process: everything is here
	Hub   bool // the shared space is written in the site of this process; always true for a standalone process
	// SiteName is the name of the site, "local" for a standalone process; empty if the process has never reached its
	// site.
	SiteName string
	Site     Touch // to the store of the site: journals and Site()
	Shared   Touch // to the place where the shared space is written
	// CutOff reports that this process runs one of several cores of its site and hears no other: what it asks or tells the
	// site is lost.
	CutOff bool
}

// Touch is the state of one connection.
type Touch struct {
	OK     bool
	Since  time.Time     // when OK last changed; zero: never
	Lag    time.Duration // how old data read here may be; 0 without anything in between
	Detail string        // for the operator: the other end, or what is wrong; may be empty
}

type urgentKey struct{}

// Urgent returns a context for an append that may use the space that a link reserves for a full disk: only for the
// first and the last record of a process.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent reports whether the context is one of Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// DamagedError says that stored bytes are not those that were written.
type DamagedError struct {
	What string // the key or record, for the operator
	Err  error
	// Copy: the data is intact, but in a copy of the directory, which does not know what has happened since.
	Copy bool
}

func (e *DamagedError) Error() string { return "cluster: damaged: " + e.What + ": " + e.Err.Error() }
func (e *DamagedError) Unwrap() error { return e.Err }

// CheckKey returns nil for a key: 1 to MaxKey ASCII letters, digits, the characters - _ = / and single dots inside.
// Otherwise it returns an error that wraps ErrKey.
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

// CheckValue returns nil for a value or record that fits, otherwise an error that wraps ErrTooLarge.
func CheckValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(value), MaxValue)
	}
	return nil
}

// CheckRetention returns nil for a valid retention, otherwise an error with the bounds.
func CheckRetention(d time.Duration) error {
	if d < MinRetention || d > MaxRetention {
		return fmt.Errorf("cluster: retention of %v is not between %v and %v", d, MinRetention, MaxRetention)
	}
	return nil
}

// CheckJournal returns nil for the name of a journal: "" or a key.
func CheckJournal(name string) error {
	if name == "" {
		return nil
	}
	return CheckKey(name)
}

// CheckPrefix returns nil for what Watch takes: "", a key, or a key and a dot.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return CheckKey(strings.TrimSuffix(prefix, "."))
}

// CheckLease returns nil for a valid time to live of a lease, otherwise an error with the bounds.
func CheckLease(ttl time.Duration) error {
	if ttl < MinLease || ttl > MaxRetention || ttl%MinLease != 0 {
		return fmt.Errorf("cluster: a lease of %v is not of whole seconds, %v to %v", ttl, MinLease, MaxRetention)
	}
	return nil
}

// CheckMessage returns nil for a subject and data that may be sent, otherwise an error that wraps ErrKey or
// ErrTooLarge.
func CheckMessage(subject string, data []byte) error {
	if err := CheckKey(subject); err != nil {
		return err
	}
	if len(data) > MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes, at most %d", ErrTooLarge, len(data), MaxMessage)
	}
	return nil
}
