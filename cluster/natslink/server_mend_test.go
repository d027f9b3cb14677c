//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestCoreGoesOnAfterItsDiskWasFull: a core writes again when there is room, in the same
// process, and has lost nothing that it acknowledged. The limit of file sizes, which needs
// no privilege, stands for the full disk.
func TestCoreGoesOnAfterItsDiskWasFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	if err := child(t, "small files of a core", t.TempDir()).Run(); err != nil {
		t.Fatal(err)
	}
}

// TestCoreGoesOnAfterItsDiskWasBroken: the same with a directory that belongs to somebody else for a while.
func TestCoreGoesOnAfterItsDiskWasBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "natslink-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Geteuid() == 0 { // whom the system refuses nothing
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := child(t, "closed directories of a core", dir).Run(); err != nil {
		t.Fatal(err)
	}
}

const nobody = 65534

func closeCore(dir string) error {
	if os.Geteuid() == 0 {
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l, err := Join(ctx, ClusterConfig{Dir: dir, Cluster: "shop", Site: "dublin", Node: "dublin-1"})
	if err != nil {
		return err
	}
	allow := func(mode fs.FileMode) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, mode)
			}
			return err
		})
	}
	if err := allow(0o500); err != nil {
		return err
	}
	put := 0
	for err == nil && put < 100_000 {
		if _, err = l.Site().Put(ctx, fmt.Sprintf("k%d", put%1000), make([]byte, 20_000)); err == nil {
			put++
		}
	}
	if err == nil || put == 0 {
		return fmt.Errorf("%d writes, then %w: closed directories refuse nothing", put, err)
	}
	facts, err := Look(ctx, l) // of what is stored it may learn nothing
	if !slices.ContainsFunc(facts.Faults(), func(f Fault) bool {
		return f.Stops && f.What == "this core cannot write to its disk: permission denied"
	}) {
		return fmt.Errorf("the directories are closed and the faults are %v, %w", facts.Faults(), err)
	}
	if err := allow(0o700); err != nil {
		return err
	}
	for err = errors.New("not tried"); err != nil && ctx.Err() == nil; { // a write waits some seconds before it fails
		_, err = l.Site().Put(ctx, "after", []byte("1"))
	}
	if err != nil {
		return fmt.Errorf("after they were opened: %w", err)
	}
	if facts, err = Look(ctx, l); err != nil || facts.Core.DiskBroken != "" {
		return fmt.Errorf("the disk can be written to, and is said to be broken: %q, %w", facts.Core.DiskBroken, err)
	}
	return l.Close()
}

func TestBrokenBy(t *testing.T) {
	for complaint, want := range map[string]string{
		"RAFT [a - S-R3F-b] Critical write error: sync /data/msgs/2.blk: input/output error":                       "input/output error",
		"JetStream stream 'SHARED > KV_shared' critical write error: open /data/msgs/1.blk: read-only file system": "read-only file system",
		"Filestore [KV_site] Critical write error: open /data/msgs/2.blk: no such file or directory":               "",
		"Error trying to connect to route (attempt 1): dial tcp 10.0.0.1:7223: connect: permission denied":         "",
		"Filestore [KV_site] Critical write error: write /data/msgs/2.blk: no space left on device":                "",
	} {
		if got := brokenBy(complaint); got != want {
			t.Errorf("%s: %q, want %q", complaint, got, want)
		}
	}
}

func fillCore(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l, err := Join(ctx, ClusterConfig{Dir: dir, Cluster: "shop", Site: "dublin", Node: "dublin-1"})
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	limit := was
	limit.Cur = 200_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	put := 0
	for err == nil && put < 10_000 {
		if _, err = l.Site().Put(ctx, fmt.Sprintf("k%d", put), make([]byte, 2000)); err == nil {
			put++
		}
	}
	if err == nil || put == 0 {
		return fmt.Errorf("%d writes, then %w: the limit does not work", put, err)
	}
	facts, err := Look(ctx, l)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(facts.Faults(), func(f Fault) bool { return f.Stops && f.What == "the disk of this core is full" }) {
		return fmt.Errorf("the disk is full and the faults are %v", facts.Faults())
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	// A write waits some seconds before it fails.
	for err = errors.New("not tried"); err != nil && ctx.Err() == nil; {
		_, err = l.Site().Put(ctx, "after", []byte("1"))
	}
	if err != nil {
		return fmt.Errorf("after there was room: %w", err)
	}
	for i := range put {
		if e, err := l.Site().Get(ctx, fmt.Sprintf("k%d", i)); err != nil || len(e.Value) != 2000 {
			return fmt.Errorf("k%d, which was acknowledged: %d bytes, %w", i, len(e.Value), err)
		}
	}
	book, err := l.Journal(ctx, "after")
	if err == nil {
		err = book.Append(ctx, []byte("1"))
	}
	if err == nil {
		_, err = l.Put(ctx, "after", []byte("1"))
	}
	if err != nil {
		return fmt.Errorf("what else is stored, after there was room: %w", err)
	}
	if facts, err = Look(ctx, l); err != nil || facts.Core.DiskFull {
		return fmt.Errorf("the disk has room and is said to be full: %v", err)
	}
	return l.Close()
}
