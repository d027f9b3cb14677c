//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

func TestFullJournalRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	l := open(t, Config{Dir: t.TempDir(), MaxJournal: minMaxJournal})
	record := make([]byte, 64<<10)
	n := 0
	var err error
	for err == nil {
		if err = l.Append(t.Context(), record); err == nil {
			n++
		}
	}
	if !errors.Is(err, cluster.ErrFull) || n < 32 {
		t.Fatalf("after %d records: %v, want ErrFull", n, err)
	}
	if _, err := l.Put(t.Context(), "a", nil); err != nil {
		t.Errorf("keys have a space of their own: %v", err)
	}
	count := 0
	if err := l.Replay(t.Context(), func(time.Time, []byte) error { count++; return nil }); err != nil || count != n {
		t.Errorf("%d records, %v; want %d", count, err, n)
	}
	// The link purges by time; here the time is given.
	in := l.link
	if err := in.write(t.Context(), func(ctx context.Context) error { return in.forget(ctx, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), record); err != nil {
		t.Errorf("after the old records have gone: %v", err)
	}
}

func TestFullKeysRefuseAndRecover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, MaxKeys: minMaxKeys})
	value := make([]byte, 256<<10)
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = l.Put(t.Context(), fmt.Sprintf("k%d", n), value)
	}
	if !errors.Is(err, cluster.ErrFull) || n < 4 {
		t.Fatalf("after %d keys: %v, want ErrFull", n, err)
	}
	if err := l.Delete(t.Context(), "k0"); err != nil {
		t.Errorf("Delete in a full store: %v", err)
	}
	if _, err := l.Put(t.Context(), "new", value); err != nil {
		t.Errorf("after a key was deleted: %v", err)
	}
	l.Close()
	open(t, Config{Dir: dir, MaxKeys: minMaxKeys})
}

func TestLittleFreeSpaceRefusesWrites(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir})
	if err := l.Append(t.Context(), []byte("r")); err != nil {
		t.Fatal(err)
	}
	in := l.link
	leave := func(free int64) { // among the writes, as the keeper is at work too
		if err := in.write(t.Context(), func(context.Context) error { in.cfg.MinFree = free; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	leave(1 << 62)
	if err := l.Append(t.Context(), []byte("s")); !errors.Is(err, cluster.ErrFull) {
		t.Errorf("an append without space: %v, want ErrFull", err)
	}
	if _, err := l.Put(t.Context(), "a", nil); err != nil {
		t.Errorf("a key, for which space is left: %v", err)
	}
	if err := l.Append(cluster.Urgent(t.Context()), []byte("last")); err != nil {
		t.Errorf("an urgent append: %v", err)
	}
	leave(0)
	if err := l.Append(t.Context(), []byte("s")); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	if _, err := tryOpen(Config{Dir: t.TempDir(), MinFree: 1 << 62}); !errors.Is(err, cluster.ErrFull) {
		t.Errorf("a new store without space: %v, want ErrFull", err)
	}
}

// TestDiskRefusesWrites lets the system refuse writes in the middle of the work: the limit
// of file sizes, which needs no privilege, stands for the full disk.
func TestDiskRefusesWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	if err := child(t, "small files", dir).Run(); err != nil {
		t.Fatal(err)
	}
}

func writeIntoFileLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := tryOpen(Config{Dir: dir})
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	ctx := context.Background()
	appended, put := 0, 0
	for round := range 3 {
		limit := was
		limit.Cur = uint64(200_000 * (round + 1))
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		var appendErr, putErr error
		for appendErr == nil {
			record := fmt.Appendf(make([]byte, 2000), "%d", appended)
			if appendErr = l.Append(ctx, record); appendErr == nil {
				appended++
			}
			if appended > 10_000 {
				return errors.New("the limit does not work")
			}
		}
		for putErr == nil && put < 10_000 {
			if _, putErr = l.Put(ctx, fmt.Sprintf("k%d", put), make([]byte, 2000)); putErr == nil {
				put++
			}
		}
		for _, err := range []error{appendErr, putErr} {
			if !errors.Is(err, cluster.ErrFull) {
				return fmt.Errorf("round %d: %v, want ErrFull", round, err)
			}
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			return err
		}
		if err := l.Append(ctx, fmt.Appendf(make([]byte, 2000), "%d", appended)); err != nil {
			return fmt.Errorf("round %d: after space was freed: %w", round, err)
		}
		appended++
		if _, err := l.Put(ctx, fmt.Sprintf("k%d", put), make([]byte, 2000)); err != nil {
			return fmt.Errorf("round %d: after space was freed: %w", round, err)
		}
		put++
		// A refused record may be there; an acknowledged one must, in its order.
		next := 0
		if err := l.Replay(ctx, func(_ time.Time, r []byte) error {
			switch string(r[2000:]) {
			case fmt.Sprint(next):
				next++
			case fmt.Sprint(next - 1):
			default:
				return fmt.Errorf("record %q where %d was due", r[2000:], next)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if next != appended {
			return fmt.Errorf("round %d: %d records, %d were acknowledged", round, next, appended)
		}
		for i := range put {
			if _, err := l.Get(ctx, fmt.Sprintf("k%d", i)); err != nil {
				return fmt.Errorf("round %d: k%d: %w", round, i, err)
			}
		}
	}
	return l.Close()
}
