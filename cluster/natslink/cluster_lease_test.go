//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// TestLeasesSurvive: one that has not ended is there after a start and ends when it would have;
// one that has ended meanwhile is gone.
func TestLeasesSurvive(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	l := open(t, Config{Dir: dir})
	lease := func(key string, ttl time.Duration) {
		t.Helper()
		if _, err := l.Lease(ctx, key, []byte("v"), 0, ttl); err != nil {
			t.Fatal(err)
		}
	}
	lease("short", time.Second)
	lease("long", 8*time.Second)
	lease("kept", time.Second)
	if _, err := l.Put(ctx, "kept", []byte("for ever")); err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(time.Second)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(ends))
	l = open(t, Config{Dir: dir})
	if e, err := l.Get(ctx, "short"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("a lease that ended while nobody ran: %v, %v", e, err)
	}
	if e, err := l.Get(ctx, "long"); err != nil || string(e.Value) != "v" {
		t.Errorf("a lease that goes on: %v, %v", e, err)
	}
	watching, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err := l.Watch(watching, "", func(c cluster.Change) {
		if c.Gone && c.Key != "long" {
			t.Errorf("%s has gone", c.Key)
		}
		if c.Gone {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the end of a lease is not told: %v", err)
	}
	l.Close()
	l = open(t, Config{Dir: dir}) // the deletions are where they must be
	if keys, err := l.Keys(ctx, ""); err != nil || !slices.Equal(keys, []string{"kept"}) {
		t.Errorf("%q, %v", keys, err)
	}
}

// TestLeaseAfterTheClockWentBack: it ends within its time to live.
func TestLeaseAfterTheClockWentBack(t *testing.T) {
	now := time.Unix(1000, 0)
	data := sealLease(now.Add(time.Hour), 3*time.Second, nil)
	if ends := leaseEnds(data, now); !ends.Equal(now.Add(3 * time.Second)) {
		t.Errorf("ends at %v", ends)
	}
	if ends := leaseEnds(data, now.Add(2*time.Hour)); !ends.Equal(now.Add(time.Hour)) {
		t.Errorf("ends at %v", ends)
	}
}

// TestJournalsSurvive: every journal has its own records after a start, and the one of a process
// alone stays as older versions wrote it.
func TestJournalsSurvive(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	names := []string{"", "site.00", "site.01"}
	want := map[string][]string{}
	for round := range 3 {
		l := open(t, Config{Dir: dir})
		for _, name := range names {
			j, err := l.Journal(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := j.Replay(ctx, func(_ time.Time, r []byte) error { got = append(got, string(r)); return nil }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[name]) {
				t.Errorf("round %d, journal %q: %q, want %q", round, name, got, want[name])
			}
			for i := range 3 {
				r := fmt.Sprintf("%s %d %d", name, round, i)
				if err := j.Append(ctx, []byte(r)); err != nil {
					t.Fatal(err)
				}
				want[name] = append(want[name], r)
			}
		}
		if e, err := l.eng.record(ctx, 1); err != nil || e.kind != kindRecord || string(e.data) != " 0 0" {
			t.Errorf("the record of a process alone is stored as %v, %v", e, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
