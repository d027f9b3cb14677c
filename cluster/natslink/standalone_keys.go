package natslink

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/cluster"
)

// digestOf is one key's part in the digest of all keys, which is the XOR of the parts.
func digestOf(key string, revision uint64) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(key+"\x00"), revision))
	return binary.BigEndian.Uint64(sum[:])
}

// loadKeys reads every key and checks that together they are what was written last. The
// records of deletions stay, some 100 bytes each: when one is purged, JetStream 2.15.2 brings
// back the value that it deleted as soon as it reads its files without their summary.
func (l *link) loadKeys(ctx context.Context) error {
	damaged := func(what string, format string, args ...any) error {
		return &cluster.DamagedError{What: what, Err: fmt.Errorf(format+"; restore the data directory from a backup", args...)}
	}
	const all = "the keys together"
	state, err := l.eng.state(ctx, keysStream)
	if err != nil {
		return err
	}
	revisions := map[string]uint64{}
	leases, now := map[string]time.Time{}, time.Now()
	var newest envelope
	var digest uint64
	if state.Msgs > 0 {
		r, err := l.eng.reader(keysStream, true)
		if err != nil {
			return fmt.Errorf("natslink: keys: %w", err)
		}
		defer r.close()
		for next := state.FirstSeq; next <= state.LastSeq; {
			err := r.read(ctx, next, batchRecords, func(m *nats.Msg) error {
				subject := m.Header.Get("Nats-Subject")
				key := strings.TrimPrefix(subject, keysSubject)
				e, err := unseal(subject, m.Data)
				if err == nil && m.Header.Get("Nats-Sequence") != fmt.Sprint(e.number) {
					err = errors.New("it is in another's place")
				}
				if err == nil && e.kind != kindValue && e.kind != kindDeleted && e.kind != kindLease {
					err = errors.New("it is of another kind")
				}
				if err != nil {
					return damaged("key "+key, "%w", err)
				}
				if rev := revisions[key]; rev != 0 {
					digest ^= digestOf(key, rev)
					delete(revisions, key)
					delete(leases, key)
				}
				if e.kind != kindDeleted {
					if e.kind == kindLease {
						leases[key] = leaseEnds(e.data, now)
					}
					revisions[key] = e.number
					digest ^= digestOf(key, e.number)
				}
				newest = envelope{number: e.number, extra: e.extra}
				next = e.number + 1
				return nil
			})
			if errors.Is(err, errMissing) {
				return damaged(all, "change %d cannot be read", state.LastSeq)
			}
			if err != nil {
				return err
			}
		}
	}
	switch {
	case state.LastSeq < l.mark.now.keys:
		return damaged(all, "change %d was acknowledged and the last one there is %d", l.mark.now.keys, state.LastSeq)
	case newest.number != state.LastSeq:
		return damaged(all, "change %d is missing", state.LastSeq)
	case newest.extra != digest:
		return damaged(all, "keys are missing, or older values have come back")
	}
	l.keysLast = state.LastSeq
	l.mu.Lock()
	l.revisions, l.digest = revisions, digest
	for key := range l.leases {
		l.hold(key, 0, time.Time{})
	}
	for key, ends := range leases {
		l.hold(key, revisions[key], ends)
	}
	l.mu.Unlock()
	l.watchers.Again()
	return nil
}

func (l *link) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.CheckKey(key); err != nil {
		return cluster.Entry{}, err
	}
	for {
		eng, err := l.engine(ctx)
		if err != nil {
			return cluster.Entry{}, err
		}
		revision := l.revision(key)
		if revision == 0 {
			return cluster.Entry{}, cluster.ErrNotFound
		}
		data, err := eng.get(ctx, keysStream, revision)
		if errors.Is(err, errMissing) {
			if l.revision(key) != revision {
				continue // it was changed in between
			}
			// A write under way may have replaced the record and not told yet: the next writer knows.
			if err := l.write(ctx, func(context.Context) error { return nil }); err != nil {
				return cluster.Entry{}, err
			}
			if l.revision(key) != revision {
				continue
			}
			return cluster.Entry{}, &cluster.DamagedError{What: "key " + key, Err: err}
		}
		if err != nil {
			return cluster.Entry{}, l.ended(ctx, err)
		}
		e, err := unseal(keysSubject+key, data)
		if err == nil && e.number != revision {
			err = errors.New("another value is in its place")
		}
		if err != nil {
			return cluster.Entry{}, &cluster.DamagedError{What: "key " + key, Err: err}
		}
		if e.kind == kindLease {
			e.data = e.data[leaseHeader:]
		}
		return cluster.Entry{Key: key, Value: e.data, Revision: revision}, nil
	}
}

// revision returns that of the key, 0 if it holds nothing.
func (l *link) revision(key string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revisions[key]
}

// change writes one change of a key.
func (l *link) change(ctx context.Context, w cluster.Write) (uint64, error) {
	revision := make(chan uint64, 1)
	err := l.write(ctx, func(ctx context.Context) error {
		held := l.revision(w.Key)
		switch {
		case w.Delete && held == 0:
			return cluster.ErrUnchanged
		case !w.Any && held != w.Expect:
			return cluster.ErrRevision
		}
		number, digest := l.keysLast+1, l.digest
		if held != 0 {
			digest ^= digestOf(w.Key, held)
		}
		if !w.Delete {
			digest ^= digestOf(w.Key, number)
		}
		k, data, ends := kindValue, w.Value, time.Time{}
		switch {
		case w.Delete:
			k = kindDeleted
		case w.TTL > 0:
			ends = time.Now().Add(w.TTL)
			k, data = kindLease, sealLease(ends, w.TTL, w.Value)
		}
		subject := keysSubject + w.Key
		env := envelope{number: number, extra: digest, kind: k, data: data}.seal(subject)
		if err := l.publish(ctx, subject, env, l.keysLast, true); err != nil {
			if errors.Is(err, errNoSpaceInStream) {
				return fmt.Errorf("%w: the keys take their %d bytes; delete some or raise MaxKeys", cluster.ErrFull, l.cfg.MaxKeys)
			}
			return fmt.Errorf("key %s: %w", w.Key, err)
		}
		l.keysLast = number
		l.mu.Lock()
		if l.digest = digest; w.Delete {
			delete(l.revisions, w.Key)
		} else {
			l.revisions[w.Key] = number
		}
		l.hold(w.Key, number, ends)
		l.mu.Unlock()
		l.watchers.Changed(w.Key)
		m := l.mark.now
		m.keys = number
		if err := l.mark.write(m, true); err != nil {
			l.suspect = true
			return err
		}
		revision <- number
		return nil
	})
	if err != nil {
		return 0, err
	}
	return <-revision, nil
}

func (l *link) Keys(ctx context.Context, prefix string) ([]string, error) {
	if _, err := l.engine(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for k := range l.revisions {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
