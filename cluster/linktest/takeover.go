package linktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

func open(t *testing.T, l cluster.Link, name string) cluster.Journal {
	t.Helper()
	j, err := l.Journal(t.Context(), name)
	for limit := time.Now().Add(patience); errors.Is(err, cluster.ErrUnavailable) && time.Now().Before(limit); {
		j, err = l.Journal(t.Context(), name) // a busy machine answered too late
	}
	must(t, err)
	return j
}

func records(t *testing.T, j cluster.Journal) (got []string) {
	t.Helper()
	must(t, j.Replay(t.Context(), func(_ time.Time, r []byte) error {
		got = append(got, string(r))
		return nil
	}))
	return got
}

func journalsHaveNames(t *testing.T, l opened) {
	for _, name := range []string{"*", "a..b", ".", "a b"} {
		wants(t, errOf(l.Journal(t.Context(), name)), cluster.ErrKey, "journal %q", name)
	}
	a, b := open(t, l, "site.03"), open(t, l, "site.0")
	must(t, l.Append(t.Context(), []byte("alone")))
	for i := range 3 {
		must(t, a.Append(t.Context(), fmt.Append(nil, "a", i)))
		must(t, b.Append(t.Context(), fmt.Append(nil, "b", i)))
	}
	must(t, a.Append(t.Context(), nil))
	if got, want := records(t, a), []string{"a0", "a1", "a2", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := records(t, b), []string{"b0", "b1", "b2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := records(t, l), []string{"alone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	largest := make([]byte, cluster.MaxValue)
	must(t, b.Append(t.Context(), largest))
	if got := records(t, b); len(got) != 4 || got[3] != string(largest) {
		t.Errorf("%d records with the largest", len(got))
	}
	wants(t, b.Append(t.Context(), append(largest, 0)), cluster.ErrTooLarge, "one byte more")
}

// A journal can be read before it is taken over: its holder goes on, and what is read afterwards from that place on is the
// rest, without a gap and without a repetition.
func lookBeforeTakingOver(t *testing.T, l opened) {
	wants(t, errOf(l.Look(t.Context(), "a b", cluster.Place{}, func(time.Time, []byte) error { return nil })), cluster.ErrKey, "a look at a journal without a name")
	other := open(t, l, "other")
	first, want := open(t, l, "site.03"), []string(nil)
	for round := range 3 {
		var got []string
		add := func(_ time.Time, r []byte) error { got = append(got, string(r)); return nil }
		place, err := l.Look(t.Context(), "site.03", cluster.Place{}, add)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("round %d: a look shows %q, want %q", round, got, want)
		}
		for i := range 2 * round { // nothing at first
			r := fmt.Sprint(round, " ", i)
			must(t, other.Append(t.Context(), []byte("other "+r)))
			must(t, first.Append(t.Context(), []byte(r)))
			want = append(want, r)
			if i%2 == 0 {
				place, err = l.Look(t.Context(), "site.03", place, add)
				must(t, err)
			}
		}
		second := open(t, l, "site.03")
		must(t, second.ReplayFrom(t.Context(), place, add))
		if !slices.Equal(got, want) {
			t.Errorf("round %d: with the rest there are %q, want %q", round, got, want)
		}
		if all := records(t, second); !slices.Equal(all, want) {
			t.Errorf("round %d: replayed %q, want %q", round, all, want)
		}
		first = second
	}
	stop := errors.New("enough")
	if _, err := l.Look(t.Context(), "site.03", cluster.Place{}, func(time.Time, []byte) error { return stop }); err != stop {
		t.Errorf("a look returns %v, want the function's error", err)
	}
}

func journalIsTakenOver(t *testing.T, l opened) {
	for _, name := range []string{"", "site.03"} {
		takeOver(t, l.Link, l.Link, name)
	}
	must(t, open(t, l, "other").Append(t.Context(), nil))
}

// takeOver opens a journal through one link and then through another.
func takeOver(t *testing.T, one, two cluster.Link, name string) {
	t.Helper()
	first := open(t, one, name)
	must(t, first.Append(t.Context(), []byte("first")))
	must(t, first.Append(t.Context(), []byte("more")))
	second := open(t, two, name)
	for range 2 {
		wants(t, first.Append(t.Context(), []byte("late")), cluster.ErrFenced, "journal %q: Append of an older handle", name)
	}
	if got, want := records(t, second), []string{"first", "more"}; !slices.Equal(got, want) {
		t.Errorf("journal %q: %q, want %q", name, got, want)
	}
	must(t, second.Append(t.Context(), []byte("second")))
	third := open(t, one, name) // back again: the first handle stays fenced
	wants(t, first.Append(t.Context(), []byte("late")), cluster.ErrFenced, "journal %q: Append of the oldest handle", name)
	must(t, third.Append(t.Context(), []byte("third")))
	wants(t, second.Append(t.Context(), []byte("late")), cluster.ErrFenced, "journal %q: Append of an older handle", name)
	if got, want := records(t, third), []string{"first", "more", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("journal %q: %q, want %q", name, got, want)
	}
}

func takeOverDuringAppends(t *testing.T, l opened) {
	contend(t, []cluster.Link{l.Link}, "site.07")
}

// contend takes a journal over again and again while the older handles append. What an older
// handle has acknowledged is there when the newer one begins, and nothing comes after.
func contend(t *testing.T, links []cluster.Link, name string) {
	t.Helper()
	const rounds = 5
	var all []string
	for round := range rounds {
		j := open(t, links[round%len(links)], name)
		if got := records(t, j); round > 0 && (len(got) < len(all) || !slices.Equal(got[:len(all)], all)) {
			t.Fatalf("round %d: %d records, %d were there before", round, len(got), len(all))
		} else {
			all = got
		}
		acked := make(chan string, 100_000)
		enough := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		defer wg.Wait() // nobody writes when the test has failed
		defer stop()
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					r := fmt.Sprintf("%d %d %d", round, w, i)
					err := j.Append(ctx, []byte(r))
					if errors.Is(err, cluster.ErrFenced) || ctx.Err() != nil {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					acked <- r
					if i == 20 {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		next(t, enough)
		newer := open(t, links[(round+1)%len(links)], name)
		got := records(t, newer)
		wg.Wait()
		close(acked)
		have := map[string]bool{}
		for _, r := range got {
			if have[r] {
				t.Errorf("record %q is there twice", r)
			}
			have[r] = true
		}
		for r := range acked {
			if !have[r] {
				t.Errorf("record %q was acknowledged and is not there for the newer handle", r)
			}
		}
		if again := records(t, newer); !slices.Equal(got, again) {
			t.Errorf("%d records, and %d a moment later", len(got), len(again))
		}
		all = got
	}
}

func closedJournal(t *testing.T, l opened) {
	j := open(t, l, "site.00")
	must(t, j.Append(t.Context(), nil))
	must(t, l.Close())
	_, openErr := l.Journal(t.Context(), "site.00")
	replayErr := j.Replay(t.Context(), func(time.Time, []byte) error { return errors.New("fn was called") })
	for _, err := range []error{openErr, replayErr, j.Append(t.Context(), nil)} {
		wants(t, err, cluster.ErrClosed, "after Close")
	}
}
