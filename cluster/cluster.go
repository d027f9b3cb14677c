// Package cluster is how a node keeps what must survive it, how nodes talk, and which of
// them does what only one may do ([Roles]).
//
// It knows no rooms: subjects, keys and bytes only. There are two implementations of [Link]:
// memlink (in memory, nothing survives it: one process, or many in a test's world) and
// natslink (NATS with JetStream: alone in a directory, or joined to others). linktest holds
// the suite that all pass; the comments below are the contract that it tests. README.md says
// what is written, how often, and what survives what.
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
	// ErrFull: there is no space for the write; it was not done. The error that wraps it
	// says which space and how to get more. The link goes on working when there is some.
	ErrFull = errors.New("cluster: no space left")
	// ErrFenced: another handle of the journal was opened later. This one appends no more.
	ErrFenced = errors.New("cluster: the journal was taken over")
	// ErrNobody: nobody is subscribed to the request's subject.
	ErrNobody = errors.New("cluster: no answer")
	// ErrUnavailable: the store cannot be reached now, or has no majority. A write that
	// failed so may have been done all the same.
	ErrUnavailable = errors.New("cluster: the store cannot be reached")
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
	// MaxMessage is the largest message and the largest answer, in bytes.
	MaxMessage = 1 << 20
	// MinLease is the shortest time to live of a lease, and its unit.
	MinLease = time.Second
	// Shards is into how many shards rooms are spread: each has a process that answers for it
	// in each site, and one that coordinates.
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

// Entry is a key's value with its revision, a number greater than 0 that grows with every
// change of the store and is never used twice.
type Entry struct {
	Key      string
	Value    []byte // the receiver's own
	Revision uint64
}

// Change is what Watch tells.
type Change struct {
	Entry
	// Gone: the key holds nothing any more, whether deleted or expired. Of the Entry only
	// Key counts.
	Gone bool
	// Synced: everything that the prefix held has been told. The Entry is empty.
	Synced bool
}

// Message is what Subscribe tells.
type Message struct {
	Subject string
	Data    []byte // the receiver's own
	// Reply answers a request; nil when no answer is wanted. The first answer counts. It may
	// be called later and from any goroutine. It fails as Publish does.
	Reply func(data []byte) error
}

// Space is keys and messages for all processes that share it. All methods are safe for
// concurrent use, return ctx's error when it ends first, and ErrClosed after the link's
// Close. A write whose ctx ended while it was under way may or may not have been done; one
// whose ctx had ended before it began has not. When the store is out of reach, writes fail
// with ErrUnavailable; reads may do so, or tell what a copy here knows.
//
// Subjects are keys as CheckKey has them. A message may be lost, repeated or come out of
// order, and those of a subject come from anybody in the space.
type Space interface {
	// Get returns the key's entry, or ErrNotFound. Where the space is kept elsewhere, it may
	// be as old as Health's Lag.
	Get(ctx context.Context, key string) (Entry, error)
	// Put sets the key whatever it holds; an empty value is a value. When it returns, the
	// value is synced: it survives the loss of power, and of a minority of the machines
	// that keep it. The link does not keep the slice.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update sets the key if its revision is still the one given; 0 means that it holds
	// nothing. Otherwise ErrRevision and nothing has changed. Synced as Put is.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Lease is Update for a key that goes away by itself ttl after the last Lease of it, not
	// earlier and at most some seconds later; watchers hear it as Gone. ttl is whole seconds, at least
	// MinLease. A Put or Update makes the key stay.
	Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error)
	// Delete makes the key hold nothing. Deleting nothing is no error. Synced as Put is.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix, sorted. The prefix need not be a key.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Watch calls fn with every key under prefix as it is now, then with Synced, then with
	// every change. It returns ctx's error when it ends, or ErrClosed, and nothing else: after a loss
	// of touch it goes on by itself, and may then tell everything and Synced once more (a key
	// that went meanwhile as Gone). fn is called from the caller's goroutine; it may use the
	// link. The changes of a key come in order; some in between may be left out or told twice,
	// the last is never left out. The prefix is "" or a key, or a key and a dot.
	Watch(ctx context.Context, prefix string, fn func(Change)) error

	// Publish gives data to everybody subscribed now, this process included, and does not
	// wait for them. The link does not keep the slice. ErrTooLarge beyond MaxMessage.
	Publish(subject string, data []byte) error
	// Subscribe makes fn be called with every message from now on, one at a time, until stop
	// is called; a call under way then ends by itself. While fn is slow, messages wait, some
	// thousand or 64 MiB of them at most; then the newest are lost. stop may be called twice
	// and from fn.
	Subscribe(subject string, fn func(Message)) (stop func(), err error)
	// Request publishes data and returns the first answer. ErrNobody at once when nobody is
	// subscribed. The answer is the caller's.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// Journal is one handle of a named journal.
type Journal interface {
	// Append adds a record. When it returns, the record survives the end of the process
	// (kill -9) and of a minority of the machines that keep it, and the records are replayed
	// in the order in which appends returned: one that returned before another was called
	// comes first. Records that were never acknowledged may or may not be there, once and
	// whole, and none comes to be there after the journal was opened again. ErrFenced when it
	// was. The link does not keep the slice.
	Append(ctx context.Context, record []byte) error
	// Replay calls fn with every record of the journal, whoever appended it, that is younger
	// than the retention and was appended before the call, oldest first; it may call it with older and
	// with newer ones. It stops at fn's first error and returns it. The record is fn's
	// during the call only. fn may use the link. A record that fails its checksum, or is
	// missing between others, ends the replay with a *DamagedError.
	Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error
}

// Link is one process's access to the durable place and to the other processes. Its own
// Space is shared by all sites.
type Link interface {
	Space
	// Site returns the space of this site alone. It may be the same as the link.
	Site() Space
	// Journal opens the journal of that name in this site and takes it over: when it returns,
	// every handle opened before, in whatever process, appends no more. Names are keys; ""
	// is the journal of a process alone.
	Journal(ctx context.Context, name string) (Journal, error)
	// Retain sets how long records of all journals are kept at least, MinRetention to
	// MaxRetention; older ones may go. It may be changed at any time and holds until the
	// next change, over restarts where the link survives them.
	Retain(ctx context.Context, d time.Duration) error
	// Health says what the link itself knows of its touch with the others. It does not wait.
	Health() Health
	// Close releases everything and ends the calls under way with ErrClosed. Acknowledged
	// writes stay. Closing twice is no error.
	Close() error
}

// Health is a link's touch with what it stands on, for status and doctor.
type Health struct {
	Alone bool // a process alone: all is here
	Hub   bool // the site of this process is the hub: what is shared is written there; a process alone is one
	// SiteName is the name of the site, "local" for a process alone; empty for one that has not
	// reached its site in all its life.
	SiteName string
	Site     Touch // with the store of the site: journals and Site()
	Shared   Touch // with the place where the shared space is written
}

// Touch is the state of one connection.
type Touch struct {
	OK     bool
	Since  time.Time     // when OK last changed; zero: never
	Lag    time.Duration // how old what is read here may be; 0 when there is nothing between
	Detail string        // for the operator: with whom, or what is wrong; may be empty
}

type urgentKey struct{}

// Urgent returns a context for an append that may use what a link keeps free for when its disk is full: the
// first and the last record of a process, not more.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent says that the context is one of Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// DamagedError says that stored bytes are not what was written.
type DamagedError struct {
	What string // the key or record, for the operator
	Err  error
	// Copy: what is there is as it was written, but in a copy of the directory, which does not know what
	// has happened since.
	Copy bool
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

// CheckLease returns nil for a lease's time to live, else an error that says the bounds.
func CheckLease(ttl time.Duration) error {
	if ttl < MinLease || ttl > MaxRetention || ttl%MinLease != 0 {
		return fmt.Errorf("cluster: a lease of %v is not of whole seconds, %v to %v", ttl, MinLease, MaxRetention)
	}
	return nil
}

// CheckMessage returns nil for a subject and data that may be sent, else an error that wraps
// ErrKey or ErrTooLarge.
func CheckMessage(subject string, data []byte) error {
	if err := CheckKey(subject); err != nil {
		return err
	}
	if len(data) > MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes, at most %d", ErrTooLarge, len(data), MaxMessage)
	}
	return nil
}
