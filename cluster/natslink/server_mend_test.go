package natslink

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
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
