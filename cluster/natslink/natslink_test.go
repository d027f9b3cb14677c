package natslink

import (
	"fmt"
	"testing"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

func open(t testing.TB, cfg Config) cluster.Link {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestContract(t *testing.T) {
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
