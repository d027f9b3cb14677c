package memlink

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

func TestContract(t *testing.T) {
	linktest.Run(t, func(*testing.T) cluster.Link { return New() })
}

func TestContractOfAWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	linktest.Run(t, func(*testing.T) cluster.Link { return NewWorld().Join("dublin", "a") })
	w := NewWorld()
	linktest.RunSites(t, [][]cluster.Link{
		{w.Join("dublin", "a"), w.Join("dublin", "b")},
		{w.Join("sydney", "c"), w.Join("sydney", "d")},
	})
}

func replayed(t *testing.T, l opened) []string {
	t.Helper()
	var got []string
	if err := l.Replay(context.Background(), func(_ time.Time, r []byte) error {
		got = append(got, string(r))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRetentionForgetsTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		l := withJournal(t, New())
		if err := l.Retain(ctx, time.Minute); err != nil {
			t.Fatal(err)
		}
		for _, r := range []string{"a", "b", "c"} {
			if err := l.Append(ctx, []byte(r)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(25 * time.Second)
		}
		if got, want := replayed(t, l), []string{"b", "c"}; !slices.Equal(got, want) {
			t.Errorf("after 75 s with a retention of 60 s: %q, want %q", got, want)
		}
		if err := l.Retain(ctx, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if got, want := replayed(t, l), []string{"c"}; !slices.Equal(got, want) {
			t.Errorf("with a shorter retention: %q, want %q", got, want)
		}
		time.Sleep(time.Hour)
		if got := replayed(t, l); got != nil {
			t.Errorf("an hour later: %q, want nothing", got)
		}
	})
}

func TestRecordsThatGoDuringReplayAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		l := withJournal(t, New())
		l.Retain(ctx, time.Minute)
		for _, r := range []string{"a", "b"} {
			l.Append(ctx, []byte(r))
		}
		time.Sleep(30 * time.Second)
		l.Append(ctx, []byte("c"))
		var got []string
		err := l.Replay(ctx, func(_ time.Time, r []byte) error {
			got = append(got, string(r))
			time.Sleep(40 * time.Second)
			return l.Append(ctx, []byte("new"))
		})
		if want := []string{"a", "c"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})
}

func TestJournalKeepsTheNewestWithinItsSpace(t *testing.T) {
	ctx := context.Background()
	l := withJournal(t, newLink(1000, 3*(overhead+1)))
	for _, r := range []string{"a", "b", "c", "d", "e"} {
		if err := l.Append(ctx, []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := replayed(t, l), []string{"c", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValuesBeyondTheSpaceAreRefused(t *testing.T) {
	ctx := context.Background()
	l := newLink(2*(overhead+11), 1000)
	put := func(key string, n int) error {
		_, err := l.Put(ctx, key, make([]byte, n))
		return err
	}
	if err := errors.Join(put("a", 10), put("b", 10)); err != nil {
		t.Fatal(err)
	}
	if err := put("c", 0); !errors.Is(err, cluster.ErrFull) {
		t.Errorf("a third key: %v, want ErrFull", err)
	}
	if err := put("a", 11); !errors.Is(err, cluster.ErrFull) {
		t.Errorf("a larger value: %v, want ErrFull", err)
	}
	if e, err := l.Get(ctx, "a"); err != nil || len(e.Value) != 10 {
		t.Errorf("a refused put changed the value: %v, %v", e, err)
	}
	if err := errors.Join(put("a", 9), put("b", 11), l.Delete(ctx, "b"), put("c", 11)); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
}

// opened is a link with its journal "".
type opened struct {
	cluster.Link
	handle cluster.Journal
}

func (l opened) Append(ctx context.Context, record []byte) error { return l.handle.Append(ctx, record) }

func (l opened) Replay(ctx context.Context, fn func(time.Time, []byte) error) error {
	return l.handle.Replay(ctx, fn)
}

func withJournal(t testing.TB, l cluster.Link) opened {
	t.Helper()
	j, err := l.Journal(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return opened{l, j}
}
