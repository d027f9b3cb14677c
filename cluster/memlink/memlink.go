// Package memlink is the [cluster.Link] of one process: it keeps everything in memory and
// nothing survives it. It serves the mode without a data directory, the middleware without
// persistence, and tests.
//
// One mutex guards it all. No method does more than copy bytes while it holds it, so ctx is
// looked at when a call begins (and, in Replay, before each record). Copies go in and out.
//
// It is bounded: values up to 256 MiB, then cluster.ErrFull. Of the journal it keeps the
// newest 64 MiB; older records go even if the retention would keep them, because a gateway
// that stops admitting to spare a history that dies with the process anyway serves nobody.
package memlink

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	maxValues  = 256 << 20 // bytes of all keys and values
	maxJournal = 64 << 20  // bytes of all records
	overhead   = 64        // bytes that an entry or record costs beside its own
)

type link struct {
	mu       sync.Mutex
	closed   bool
	entries  map[string]cluster.Entry
	size     int // bytes of entries
	revision uint64

	journal     []record // oldest first
	journalSize int
	first       uint64 // number of journal[0]; numbers grow by one
	retention   time.Duration

	maxValues, maxJournal int
}

type record struct {
	appended time.Time
	data     []byte
}

// New returns an empty link. It holds no goroutine and needs no Close to be collected.
func New() cluster.Link { return newLink(maxValues, maxJournal) }

func newLink(values, journal int) *link {
	return &link{
		entries:    map[string]cluster.Entry{},
		retention:  cluster.DefaultRetention,
		maxValues:  values,
		maxJournal: journal,
	}
}

// begin locks the link for one call; the caller unlocks when err is nil.
func (l *link) begin(ctx context.Context) error {
	l.mu.Lock()
	err := ctx.Err()
	if l.closed {
		err = cluster.ErrClosed
	}
	if err != nil {
		l.mu.Unlock()
	}
	return err
}

func (l *link) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.CheckKey(key); err != nil {
		return cluster.Entry{}, err
	}
	if err := l.begin(ctx); err != nil {
		return cluster.Entry{}, err
	}
	defer l.mu.Unlock()
	e, ok := l.entries[key]
	if !ok {
		return cluster.Entry{}, cluster.ErrNotFound
	}
	e.Value = slices.Clone(e.Value)
	return e, nil
}

func (l *link) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return l.set(ctx, key, value, func(uint64) bool { return true })
}

func (l *link) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return l.set(ctx, key, value, func(held uint64) bool { return held == revision })
}

// set stores the value if the revision that the key has, or 0, is acceptable.
func (l *link) set(ctx context.Context, key string, value []byte, acceptable func(revision uint64) bool) (uint64, error) {
	if err := cluster.CheckKey(key); err != nil {
		return 0, err
	}
	if err := cluster.CheckValue(value); err != nil {
		return 0, err
	}
	if err := l.begin(ctx); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	old, held := l.entries[key]
	if !acceptable(old.Revision) {
		return 0, cluster.ErrRevision
	}
	size := l.size + len(value) - len(old.Value)
	if !held {
		size += len(key) + overhead
	}
	if size > l.maxValues {
		return 0, fmt.Errorf("%w: keys in memory are limited to %d bytes; delete some, or run with a data directory", cluster.ErrFull, l.maxValues)
	}
	l.size = size
	l.revision++
	l.entries[key] = cluster.Entry{Key: key, Value: slices.Clone(value), Revision: l.revision}
	return l.revision, nil
}

func (l *link) Delete(ctx context.Context, key string) error {
	if err := cluster.CheckKey(key); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if old, ok := l.entries[key]; ok {
		l.size -= len(key) + len(old.Value) + overhead
		l.revision++
		delete(l.entries, key)
	}
	return nil
}

func (l *link) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	var keys []string
	for k := range l.entries {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (l *link) Append(ctx context.Context, data []byte) error {
	if err := cluster.CheckValue(data); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	l.journal = append(l.journal, record{time.Now(), slices.Clone(data)})
	l.journalSize += len(data) + overhead
	l.forget()
	return nil
}

// forget drops records that are older than the retention or beyond the journal's space.
func (l *link) forget() {
	limit := time.Now().Add(-l.retention)
	n := 0
	for n < len(l.journal) && (l.journal[n].appended.Before(limit) || l.journalSize > l.maxJournal) {
		l.journalSize -= len(l.journal[n].data) + overhead
		l.journal[n] = record{}
		n++
	}
	l.journal = l.journal[n:]
	l.first += uint64(n)
}

func (l *link) Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	l.forget()
	next, end := l.first, l.first+uint64(len(l.journal))
	l.mu.Unlock()
	for next < end {
		if err := l.begin(ctx); err != nil {
			return err
		}
		// Records that went while fn was at work are older than the retention by now.
		next = max(next, l.first)
		if next >= end {
			l.mu.Unlock()
			break
		}
		r := l.journal[next-l.first]
		l.mu.Unlock()
		if err := fn(r.appended, slices.Clone(r.data)); err != nil {
			return err
		}
		next++
	}
	return nil
}

func (l *link) Retain(ctx context.Context, d time.Duration) error {
	if err := cluster.CheckRetention(d); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	l.retention = d
	l.forget()
	return nil
}

func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.entries, l.journal = nil, nil
	return nil
}
