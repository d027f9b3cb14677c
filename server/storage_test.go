package server

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

var _ certmagic.Storage = (*linkStorage)(nil)

// TestStorageKeepsWhatCertmagicExpects follows the comments of certmagic.Storage.
func TestStorageKeepsWhatCertmagicExpects(t *testing.T) {
	ctx := t.Context()
	s := &linkStorage{link: memlink.New()}
	if _, err := s.Load(ctx, "a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of nothing: %v, want fs.ErrNotExist", err)
	}
	if _, err := s.Stat(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of nothing: %v, want fs.ErrNotExist", err)
	}
	if _, err := s.List(ctx, "a", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("List of nothing: %v, want fs.ErrNotExist", err)
	}
	keys := []string{"certs/ca.example-directory/shop.example.com/shop.example.com.crt", "certs/ca.example-directory/shop.example.com/shop.example.com.key",
		"certs/ca.example-directory/wildcard_.example.com/x.crt", "certs/ca.example-directory2/y", "users/me@example.com/..data/a b%", "certs/end."}
	before := time.Now()
	for _, k := range keys {
		if err := s.Store(ctx, k, []byte("value of "+k)); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	for _, k := range keys {
		v, err := s.Load(ctx, k)
		info, serr := s.Stat(ctx, k)
		if err != nil || serr != nil || string(v) != "value of "+k || info.Size != int64(len(v)) || !info.IsTerminal || info.Key != k || info.Modified.Before(before.Add(-time.Second)) {
			t.Errorf("%s: %q, %v; %+v, %v", k, v, err, info, serr)
		}
	}
	if info, err := s.Stat(ctx, "certs/ca.example-directory"); err != nil || info.IsTerminal {
		t.Errorf("a directory: %+v, %v", info, err)
	}
	if !s.Exists(ctx, "certs/ca.example-directory") || !s.Exists(ctx, keys[0]) || s.Exists(ctx, "certs/ca") || s.Exists(ctx, "cert") {
		t.Error("Exists: directories and files, and nothing that only begins alike")
	}
	for _, c := range []struct {
		path      string
		recursive bool
		want      []string
	}{
		{"certs", false, []string{"certs/ca.example-directory", "certs/ca.example-directory2", "certs/end."}},
		{"certs/ca.example-directory/", false, []string{"certs/ca.example-directory/shop.example.com", "certs/ca.example-directory/wildcard_.example.com"}},
		{"certs/ca.example-directory", true, keys[:3]},
		{"", false, []string{"certs", "users"}},
	} {
		got, err := s.List(ctx, c.path, c.recursive)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("List %q %v: %q, %v; want %q", c.path, c.recursive, got, err, c.want)
		}
	}
	if err := s.Store(ctx, keys[0], []byte("new")); err != nil {
		t.Fatal(err)
	}
	if v, _ := s.Load(ctx, keys[0]); string(v) != "new" {
		t.Errorf("overwritten: %q", v)
	}
	for range 2 { // deleting nothing is no error
		if err := s.Delete(ctx, "certs/ca.example-directory"); err != nil {
			t.Fatal(err)
		}
	}
	if s.Exists(ctx, keys[0]) || !s.Exists(ctx, keys[3]) || !s.Exists(ctx, keys[4]) {
		t.Error("Delete of a directory takes what is in it, and nothing that only begins alike")
	}
}

func TestStorageRefusesWhatIsCut(t *testing.T) {
	link := memlink.New()
	s := &linkStorage{link: link}
	for _, raw := range []string{"", "\x0f", "\xffabc", "\x03abcrest"} {
		link.Put(t.Context(), linkKey("k"), []byte(raw))
		if v, err := s.Load(t.Context(), "k"); err == nil {
			t.Errorf("%q was read as %q", raw, v)
		}
	}
}

func TestLocksHoldAndAreReleased(t *testing.T) {
	link := memlink.New()
	s := &linkStorage{link: link}
	ctx := t.Context()
	if err := s.Lock(ctx, "issue"); err != nil {
		t.Fatal(err)
	}
	if err := s.Lock(ctx, "other"); err != nil {
		t.Error("another name is another lock:", err)
	}
	got := make(chan error)
	go func() { got <- s.Lock(ctx, "issue") }()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Lock(ended, "issue"); !errors.Is(err, context.Canceled) {
		t.Errorf("a lock that is held, with a context that has ended: %v", err)
	}
	if err := s.Unlock(ctx, "issue"); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	// The data directory has one process. When it dies, its locks die with it.
	if err := (&linkStorage{link: link}).Lock(ctx, "issue"); err != nil {
		t.Error("the lock of a dead process holds:", err)
	}
	if err := s.Unlock(ctx, "never taken"); err == nil {
		t.Error("unlocking what is not locked")
	}
}

func FuzzLinkKey(f *testing.F) {
	for _, k := range []string{"a/b.crt", "..", "a..b", "x=2E", "ä@ b%", "certs/end.", "=", "=0"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		k := linkKey(key)
		if back := fileKey(k); back != key {
			t.Errorf("%q becomes %q and then %q", key, k, back)
		}
		if err := cluster.CheckKey(k); err != nil && key != "" && len(k) <= cluster.MaxKey && !strings.HasSuffix(k, "/") {
			t.Errorf("%q becomes %q: %v", key, k, err)
		}
	})
}
