//go:build unix

package natslink

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// A core that hears nothing of its removal, because it is down, is refused when it starts again, and the same name on a new
// directory is not.
func TestACoreThatWasRemovedWhileDownIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	all := joinAll(t, cfgs...)
	awaitWhole(t, all[0])
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, func(ctx context.Context) error { return RemoveCore(ctx, all[0], cfgs[1].Node) })
	for _, when := range []string{"at its first start", "at its next start"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		l, err := Join(ctx, cfgs[1])
		cancel()
		if err == nil {
			l.Close()
			t.Fatalf("a removed core joins %s", when)
		}
		wantText(t, err, "have removed this one")
		if text := err.Error(); strings.Contains(text, "\n") || errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%s, a removed core says %q", when, text)
		}
	}
	if got := coresOf(t, all[0]); got != "dublin-1true dublin-3true" {
		t.Errorf("cores: %s", got)
	}
	cfgs[1].Dir = t.TempDir()
	join(t, cfgs[1]).Close()
	join(t, cfgs[1])
}

// A directory of an earlier version has no birth: its core is refused all the same.
func TestACoreOfAnEarlierVersionThatWasRemovedIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	all := joinAll(t, cfgs...)
	awaitWhole(t, all[0])
	all[1].Close()
	if err := errors.Join(os.Remove(cfgs[1].Dir+"/"+birthName), all[0].Site().Delete(t.Context(), all[1].att.server.rollKey())); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, func(ctx context.Context) error { return RemoveCore(ctx, all[0], cfgs[1].Node) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := Join(ctx, cfgs[1])
	wantText(t, err, "have removed this one")
}

// A core that hangs while it is removed finds out when it goes on.
func TestACoreThatWasRemovedWhileItHungEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	hung := startCoreProcess(t, h, cfgs[2], "quiet")
	all := joinAll(t, cfgs[:2]...)
	awaitWhole(t, all[0])
	select {
	case <-hung.ready:
	case <-time.After(20 * time.Second):
		t.Fatal("a core does not join")
	}
	within(t, 20*time.Second, func(ctx context.Context) error {
		for { // until the roll has it
			if _, err := all[0].Site().Get(ctx, rollPrefix+peerID("dublin."+cfgs[2].Node)); err == nil || !pause(ctx, minBackoff) {
				return err
			}
		}
	})
	if err := hung.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	within(t, 40*time.Second, func(ctx context.Context) error {
		for coresOf(t, all[0]) != "dublin-1true dublin-2true dublin-3false" {
			if !pause(ctx, minBackoff) {
				return ctx.Err()
			}
		}
		return RemoveCore(ctx, all[0], cfgs[2].Node)
	})
	if err := hung.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hung.done:
	case <-time.After(20 * time.Second):
		t.Error("a core that hung does not find out that it was removed")
	}
}

func awaitWhole(t *testing.T, l *joined) {
	t.Helper()
	within(t, 30*time.Second, func(ctx context.Context) error {
		if !AwaitWhole(ctx, l) {
			return errors.New("copies are missing")
		}
		return nil
	})
}
