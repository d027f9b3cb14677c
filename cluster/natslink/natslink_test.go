//go:build unix

package natslink

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

// opened is a link with its journal "".
type opened struct {
	*link
	own cluster.Journal
}

func (l opened) Append(ctx context.Context, record []byte) error { return l.own.Append(ctx, record) }

func (l opened) Replay(ctx context.Context, fn func(time.Time, []byte) error) error {
	return l.own.Replay(ctx, fn)
}

func tryOpen(cfg Config) (opened, error) {
	l, err := Open(cfg)
	if err != nil {
		return opened{}, err
	}
	own, err := l.Journal(context.Background(), "")
	return opened{l.(*link), own}, err
}

func open(t testing.TB, cfg Config) opened {
	t.Helper()
	l, err := tryOpen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestContract(t *testing.T) {
	t.Parallel()
	linktest.Run(t, func(t *testing.T) cluster.Link { return open(t, Config{Dir: t.TempDir()}) })
}

// TestDeletedKeysStayDeleted opens a store again and again in which keys were set and deleted.
func TestDeletedKeysStayDeleted(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	for round := range 5 {
		l, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatalf("opened for the %d. time: %v", round+1, err)
		}
		for i := range 5 {
			key := fmt.Sprintf("page.%d.%d", round, i)
			if _, err := l.Put(ctx, key, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Put(ctx, "room", []byte(key)); err != nil {
				t.Fatal(err)
			}
			if err := l.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
		}
		if keys, err := l.Keys(ctx, ""); err != nil || len(keys) != 1 {
			t.Errorf("%q, %v", keys, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
