package natslink

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGrow takes the store of a process alone into a cluster, in two tries.
func TestGrow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	alone := open(t, Config{Dir: dir})
	for i := range 20 {
		if _, err := alone.Put(t.Context(), fmt.Sprintf("manage.room.%d", i), fmt.Appendf(nil, "room %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"ledger.a", "manage.changed"} {
		if _, err := alone.Put(t.Context(), key, []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	cfg := single(t, "dublin")
	cfg.Listen = ""
	to := join(t, cfg)
	// The first try came to the middle, and one key was changed since.
	for _, key := range []string{"manage.room.0", "manage.room.1"} {
		e, err := alone.Get(t.Context(), key)
		if err == nil {
			_, err = to.Put(t.Context(), key, e.Value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := to.Put(t.Context(), "manage.changed", []byte("new")); err != nil {
		t.Fatal(err)
	}

	ledger := func(key string) bool { return strings.HasPrefix(key, "ledger.") }
	c, err := copyKeys(t.Context(), alone, to, func(key string) bool { return !ledger(key) })
	if err != nil || c.New != 18 || c.Same != 2 || !slices.Equal(c.Kept, []string{"manage.changed"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := copyKeys(t.Context(), alone, to.Site(), ledger); err != nil || c.New != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Retire(dir); err == nil {
		t.Error("a store that is open is put aside")
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	aside, err := Retire(dir)
	if err != nil || aside != dir+".moved" {
		t.Fatalf("%q, %v", aside, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the store is still there: %v", err)
	}
	// It is whole, for whoever wants to go back.
	back := open(t, Config{Dir: aside})
	if keys, err := back.Keys(t.Context(), ""); err != nil || len(keys) != 22 {
		t.Errorf("%d keys, %v", len(keys), err)
	}

	// What was copied survives.
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	to = join(t, cfg)
	for key, want := range map[string]string{"manage.room.19": "room 19", "manage.changed": "new"} {
		if e, err := to.Get(t.Context(), key); err != nil || string(e.Value) != want {
			t.Errorf("%s: %v, %v", key, e, err)
		}
	}
	if e, err := to.Site().Get(t.Context(), "ledger.a"); err != nil || string(e.Value) != "old" {
		t.Errorf("%v, %v", e, err)
	}
}
