package linktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

func replayInOrder(t *testing.T, l opened) {
	if got := records(t, l); got != nil {
		t.Errorf("a new journal holds %q", got)
	}
	began := time.Now().Add(-time.Second)
	var want []string
	for i := range 300 {
		r := fmt.Sprintf("record %d \x00%s", i, strings.Repeat("x", i))
		if i%50 == 0 {
			r = ""
		}
		must(t, l.Append(t.Context(), []byte(r)))
		want = append(want, r)
	}
	put(t, l, "a", "not part of the journal")
	for range 2 {
		if got := records(t, l); !slices.Equal(got, want) {
			t.Fatalf("replayed %d records, want %d: %.200q", len(got), len(want), got)
		}
	}
	must(t, l.Replay(t.Context(), func(appended time.Time, _ []byte) error {
		if appended.Before(began) || appended.After(time.Now().Add(time.Second)) {
			return fmt.Errorf("appended at %v, began at %v", appended, began)
		}
		return nil
	}))
}

func replayStopsAtAnError(t *testing.T, l opened) {
	for range 5 {
		must(t, l.Append(t.Context(), []byte("r")))
	}
	stop, calls := errors.New("enough"), 0
	err := l.Replay(t.Context(), func(time.Time, []byte) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	})
	if err != stop || calls != 3 {
		t.Errorf("%v after %d calls, want fn's own error after 3", err, calls)
	}
}

func replayMayUseTheLink(t *testing.T, l opened) {
	for i := range 3 {
		must(t, l.Append(t.Context(), fmt.Append(nil, i)))
	}
	calls := 0
	must(t, l.Replay(t.Context(), func(_ time.Time, r []byte) error {
		if calls++; calls > 100 {
			return errors.New("replay follows the records that it makes fn write")
		}
		if len(r) > 1 {
			return nil
		}
		_, err := l.Put(t.Context(), "seen."+string(r), r)
		inner := 0
		return errors.Join(err,
			l.Append(t.Context(), append([]byte("copy "), r...)),
			l.Replay(t.Context(), func(time.Time, []byte) error { inner++; return nil }))
	}))
	keysAre(t, l, "seen.", "seen.0", "seen.1", "seen.2")
	if got, want := records(t, l), []string{"0", "1", "2", "copy 0", "copy 1", "copy 2"}; !slices.Equal(got, want) {
		t.Errorf("journal %q, want %q", got, want)
	}
}

func concurrentAppends(t *testing.T, l opened) {
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(t.Context(), fmt.Appendf(nil, "%d %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := records(t, l)
	if len(got) != writers*each {
		t.Errorf("%d records, want %d", len(got), writers*each)
	}
	checkWriters(t, got)
}

// checkWriters checks that each writer's records are there in the order of its appends
// without a gap. Records are "<writer> <number>".
func checkWriters(t *testing.T, records []string) {
	t.Helper()
	next := map[int]int{}
	for _, r := range records {
		var w, i int
		if _, err := fmt.Sscanf(r, "%d %d", &w, &i); err != nil {
			t.Fatalf("record %q: %v", r, err)
		}
		if i != next[w] {
			t.Fatalf("writer %d: record %d where %d was due", w, i, next[w])
		}
		next[w]++
	}
}

func appendsDuringReplay(t *testing.T, l opened) {
	const before, during = 200, 200
	for i := range before {
		must(t, l.Append(t.Context(), fmt.Appendf(nil, "0 %d", i)))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range during {
			if err := l.Append(t.Context(), fmt.Appendf(nil, "0 %d", before+i)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		got := records(t, l)
		if len(got) < before {
			t.Errorf("%d records, want at least the %d appended before", len(got), before)
		}
		checkWriters(t, got)
	}
	wg.Wait()
	if got := records(t, l); len(got) != before+during {
		t.Errorf("%d records, want %d", len(got), before+during)
	}
}

func retainBounds(t *testing.T, l opened) {
	for _, d := range []time.Duration{-1, 0, cluster.MinRetention - 1, cluster.MaxRetention + 1} {
		if l.Retain(t.Context(), d) == nil {
			t.Errorf("Retain(%v) is accepted", d)
		}
	}
	for _, d := range []time.Duration{cluster.MinRetention, cluster.MaxRetention, cluster.DefaultRetention, cluster.DefaultRetention} {
		must(t, l.Retain(t.Context(), d))
	}
}

func retainKeepsTheYoung(t *testing.T, l opened) {
	want := []string{"a", "b", "c", "d"}
	for i, d := range []time.Duration{time.Hour, 10 * time.Minute, 48 * time.Hour, time.Minute} {
		must(t, l.Append(t.Context(), []byte(want[i])))
		must(t, l.Retain(t.Context(), d))
		if got := records(t, l); !slices.Equal(got, want[:i+1]) {
			t.Errorf("retention %v: %q, want %q", d, got, want[:i+1])
		}
	}
}

// calls returns every method of the link as a function of ctx.
func calls(l opened) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Get":    func(ctx context.Context) error { _, err := l.Get(ctx, "a"); return err },
		"Put":    func(ctx context.Context) error { _, err := l.Put(ctx, "new", []byte("v")); return err },
		"Update": func(ctx context.Context) error { _, err := l.Update(ctx, "newer", []byte("v"), 0); return err },
		"Delete": func(ctx context.Context) error { return l.Delete(ctx, "a") },
		"Keys":   func(ctx context.Context) error { _, err := l.Keys(ctx, ""); return err },
		"Append": func(ctx context.Context) error { return l.Append(ctx, []byte("new")) },
		"Replay": func(ctx context.Context) error {
			return l.Replay(ctx, func(time.Time, []byte) error { return errors.New("fn was called") })
		},
		"Retain": func(ctx context.Context) error { return l.Retain(ctx, time.Hour) },
	}
}

func endedContext(t *testing.T, l opened) {
	rev := put(t, l, "a", "one")
	must(t, l.Append(t.Context(), []byte("r")))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, call := range calls(l) {
		if err := call(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
		if err := call(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s after the deadline: %v", name, err)
		}
	}
	holds(t, l, "a", "one", rev)
	keysAre(t, l, "", "a")
	if got := records(t, l); !slices.Equal(got, []string{"r"}) {
		t.Errorf("journal %q", got)
	}
}

func contextEndsDuringReplay(t *testing.T, l opened) {
	for range 10 {
		must(t, l.Append(t.Context(), []byte("r")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := l.Replay(ctx, func(time.Time, []byte) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%v after %d records, want context.Canceled after 1", err, n)
	}
}

func closed(t *testing.T, l opened) {
	put(t, l, "a", "one")
	must(t, l.Append(t.Context(), []byte("r")))
	must(t, l.Close())
	for name, call := range calls(l) {
		wants(t, call(t.Context()), cluster.ErrClosed, "%s after Close", name)
	}
	must(t, l.Close())
}

func closeDuringUse(t *testing.T, l opened) {
	put(t, l, "a", "one")
	must(t, l.Append(t.Context(), []byte("r")))
	const users = 4
	busy := make(chan struct{}, users)
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, putErr := l.Put(t.Context(), "b", []byte("v"))
				_, getErr := l.Get(t.Context(), "a")
				appendErr := l.Append(t.Context(), fmt.Appendf(nil, "%d %d", u, i))
				replayErr := l.Replay(t.Context(), func(time.Time, []byte) error { return nil })
				if i == 0 {
					busy <- struct{}{}
				}
				for _, err := range []error{putErr, getErr, appendErr, replayErr} {
					if err != nil {
						wants(t, err, cluster.ErrClosed, "while the link closes")
						return
					}
				}
			}
		})
	}
	for range users {
		<-busy
	}
	must(t, l.Close())
	wg.Wait()
}

func closeDuringReplay(t *testing.T, l opened) {
	for range 10 {
		must(t, l.Append(t.Context(), []byte("r")))
	}
	n := 0
	err := l.Replay(t.Context(), func(time.Time, []byte) error { n++; return l.Close() })
	if !errors.Is(err, cluster.ErrClosed) || n != 1 {
		t.Errorf("%v after %d records, want ErrClosed after 1", err, n)
	}
}
