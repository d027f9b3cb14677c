package natslink

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/wire"
)

// A leased key of a process alone is a value that says when it ends. The process deletes it
// then; what ended while nobody ran is deleted when the link opens.
type lease struct {
	revision uint64
	ends     time.Time
	timer    *time.Timer
}

// expireAgain is how soon the deletion of a lease is tried again.
const expireAgain = time.Second

func sealLease(ends time.Time, ttl time.Duration, value []byte) []byte {
	b := make([]byte, 0, leaseHeader+len(value))
	b = binary.BigEndian.AppendUint64(b, uint64(ends.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(ttl))
	return append(b, value...)
}

// leaseEnds is when the lease in a record ends: when it says so, and not later than its time to
// live from now, also if the clock went back meanwhile.
func leaseEnds(data []byte, now time.Time) time.Time {
	r := wire.Read(data)
	ends, ttl := time.Unix(0, int64(r.Big64())), time.Duration(r.Big64())
	if most := now.Add(ttl); ends.After(most) {
		return most
	}
	return ends
}

// hold replaces what is known of the key's lease; a zero end is none. l.mu is held.
func (l *link) hold(key string, revision uint64, ends time.Time) {
	if old, ok := l.leases[key]; ok {
		old.timer.Stop()
		delete(l.leases, key)
	}
	if !ends.IsZero() {
		l.leases[key] = lease{revision, ends, time.AfterFunc(time.Until(ends), func() { l.expire(key, revision) })}
	}
}

// expire deletes the key if its lease is still that one.
func (l *link) expire(key string, revision uint64) {
	err := l.Remove(context.Background(), key, revision)
	if err == nil || errors.Is(err, cluster.ErrRevision) || errors.Is(err, cluster.ErrClosed) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revisions[key] == revision {
		l.hold(key, revision, time.Now().Add(expireAgain))
	}
}

// expireOld deletes what has ended before the link opened.
func (l *link) expireOld() {
	old := map[string]uint64{}
	l.mu.Lock()
	for key, one := range l.leases {
		if !one.ends.After(time.Now()) {
			old[key] = one.revision
		}
	}
	l.mu.Unlock()
	for key, revision := range old {
		l.expire(key, revision)
	}
}
