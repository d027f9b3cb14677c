//go:build unix

package natslink

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// A lock that was given back is free although a process that is being forked has the file open.
func TestLockEndsWithItsRelease(t *testing.T) {
	dir := t.TempDir()
	l, err := lockDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	forked, err := syscall.Dup(int(l.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(forked)
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) Config
		want    string // part of the error
	}{
		{"no directory", func(t *testing.T, dir string) Config { return Config{} }, "no data directory given"},
		{"a file", func(t *testing.T, dir string) Config {
			path := filepath.Join(dir, "file")
			write(t, path, "x")
			return Config{Dir: path}
		}, "is a file"},
		{"below a file", func(t *testing.T, dir string) Config {
			path := filepath.Join(dir, "file")
			write(t, path, "x")
			return Config{Dir: filepath.Join(path, "data")}
		}, "is a file"},
		{"no place for it", func(t *testing.T, dir string) Config {
			return Config{Dir: "/proc/anteroom"}
		}, "cannot be made"},
		{"a NATS store of somebody else", func(t *testing.T, dir string) Config {
			mkdir(t, filepath.Join(dir, "jetstream"))
			return Config{Dir: dir}
		}, "if the store is not Anteroom's"},
		{"a member of a cluster", func(t *testing.T, dir string) Config {
			open(t, Config{Dir: dir}).Close()
			mkdir(t, filepath.Join(dir, "jetstream", "$SYS", "_js_", "_meta_"))
			return Config{Dir: dir}
		}, "member of a NATS cluster"},
		{"a newer format", func(t *testing.T, dir string) Config {
			open(t, Config{Dir: dir}).Close()
			line := strings.Replace(mark{}.String(), "store 1", "store 2", 1)
			slot := sealMark(line)
			write(t, filepath.Join(dir, markName), slot+slot)
			return Config{Dir: dir}
		}, "the store has format 2 and this version knows 1"},
		{"little space for the journal", func(t *testing.T, dir string) Config {
			return Config{Dir: dir, MaxJournal: 1}
		}, "MaxJournal 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Open(tt.prepare(t, t.TempDir()))
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want it to say %q", err, tt.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	open(t, Config{Dir: dir})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Config{Dir: dir})
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another anteroom runs on this data directory") || !strings.Contains(err.Error(), filepath.Join(dir, lockName)) {
		t.Fatalf("a second open: %v", err)
	}
	// The second waits until the first lets go.
	opened := make(chan error)
	go func() {
		l, err := Open(Config{Dir: dir, LockWait: time.Minute})
		if err == nil {
			err = l.Close()
		}
		opened <- err
	}()
	if err := first.Append(t.Context(), []byte("r")); err != nil {
		t.Error(err)
	}
	select {
	case err := <-opened:
		t.Fatalf("opened while another has it: %v", err)
	default:
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestUnfinishedFirstStart: a process that ended while it made the directory has
// acknowledged nothing, so the next one begins anew.
func TestUnfinishedFirstStart(t *testing.T) {
	for _, size := range []int64{0, 2 * markSlot} {
		dir := t.TempDir()
		m, err := openMark(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		m.close()
		if err := os.Truncate(filepath.Join(dir, markName), size); err != nil {
			t.Fatal(err)
		}
		l := open(t, Config{Dir: dir})
		if err := l.Append(t.Context(), []byte("r")); err != nil {
			t.Errorf("mark of %d bytes: %v", size, err)
		}
	}
}

func TestNewJournalReplacesADamagedOne(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir})
	for range 10 {
		if err := l.Append(t.Context(), []byte("record")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Put(t.Context(), "a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	blocks, _ := filepath.Glob(filepath.Join(dir, "jetstream/$G/streams", journalStream, "msgs/*.blk"))
	if len(blocks) != 1 {
		t.Fatal(blocks)
	}
	if err := edit(blocks[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b }); err != nil {
		t.Fatal(err)
	}

	count := func(l opened) (n int, err error) {
		err = l.Replay(t.Context(), func(time.Time, []byte) error { n++; return nil })
		return n, err
	}
	damaged := new(*cluster.DamagedError)
	for range 2 { // it stays damaged
		l = open(t, Config{Dir: dir})
		if n, err := count(l); !errors.As(err, damaged) {
			t.Errorf("%d records, %v; want a DamagedError", n, err)
		}
		if err := l.Append(t.Context(), []byte("r")); !errors.As(err, damaged) {
			t.Errorf("Append: %v, want a DamagedError", err)
		}
		if e, err := l.Get(t.Context(), "a"); err != nil || string(e.Value) != "one" {
			t.Errorf("the keys are good: %v, %v", e, err)
		}
		l.Close()
	}
	for round := range 3 {
		l = open(t, Config{Dir: dir, NewJournal: round != 1})
		if n, err := count(l); err != nil || n != round {
			t.Errorf("round %d: %d records, %v", round, n, err)
		}
		if err := l.Append(t.Context(), []byte("new")); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

// A store that has become a cluster's is put aside, whole, and not while it is open.
func TestRetire(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	alone := open(t, Config{Dir: dir})
	for i := range 20 {
		if _, err := alone.Put(t.Context(), fmt.Sprintf("manage.room.%d", i), fmt.Appendf(nil, "room %d", i)); err != nil {
			t.Fatal(err)
		}
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
	back := open(t, Config{Dir: aside})
	if keys, err := back.Keys(t.Context(), ""); err != nil || len(keys) != 20 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
