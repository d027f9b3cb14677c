//go:build unix

package natslink

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

func journal(t testing.TB, l cluster.Link, name string) *book {
	t.Helper()
	j, err := l.Journal(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return j.(*book)
}

func add(t testing.TB, j cluster.Journal, records ...string) {
	t.Helper()
	for _, r := range records {
		if err := j.Append(t.Context(), []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
}

func pages(t testing.TB, j cluster.Journal) []string {
	t.Helper()
	var all []string
	if err := j.Replay(t.Context(), func(_ time.Time, r []byte) error {
		all = append(all, string(r))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestJournalIsTakenOver(t *testing.T) {
	t.Parallel()
	cfg := single(t, "dublin")
	links := joinAll(t, cfg, edgeOf(t, cfg))
	first := journal(t, links[0], "site.03")
	add(t, first, "a", "b")
	other := journal(t, links[1], "site.04")
	second := journal(t, links[1], "site.03")
	if err := first.Append(t.Context(), []byte("late")); !errors.Is(err, cluster.ErrFenced) {
		t.Errorf("after it was taken over: %v, want ErrFenced", err)
	}
	add(t, other, "of another")
	add(t, second, "c")
	third := journal(t, links[0], "site.03")
	for range 2 {
		if err := second.Append(t.Context(), []byte("late")); !errors.Is(err, cluster.ErrFenced) {
			t.Errorf("after it was taken over: %v, want ErrFenced", err)
		}
	}
	add(t, third, "d")
	for _, k := range []*book{first, second, third} {
		if got := pages(t, k); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("%q", got)
		}
	}
	if got := pages(t, other); !slices.Equal(got, []string{"of another"}) {
		t.Errorf("%q", got)
	}
}

// TestJournalHasOneOwner lets two processes take a journal from each other all the time:
// what was acknowledged is there, in order.
func TestJournalHasOneOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfg := single(t, "dublin")
	links := joinAll(t, cfg, edgeOf(t, cfg))
	acked := make([][]string, len(links))
	var wg sync.WaitGroup
	for i, l := range links {
		wg.Go(func() {
			for turn := range 15 {
				j, err := l.Journal(t.Context(), "site.00")
				for limit := time.Now().Add(time.Minute); errors.Is(err, cluster.ErrUnavailable) && time.Now().Before(limit); {
					j, err = l.Journal(t.Context(), "site.00") // a busy machine answered too late
				}
				if err != nil {
					t.Error(err)
					return
				}
				for n := range 20 {
					r := fmt.Sprintf("%d %d %d", i, turn, n)
					err := j.Append(t.Context(), []byte(r))
					if errors.Is(err, cluster.ErrFenced) {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					acked[i] = append(acked[i], r)
				}
			}
		})
	}
	wg.Wait()
	got := pages(t, journal(t, links[0], "site.00"))
	at := make([]int, len(links))
	for _, r := range got {
		for i := range links {
			if at[i] < len(acked[i]) && acked[i][at[i]] == r {
				at[i]++
			}
		}
	}
	for i := range links {
		if at[i] != len(acked[i]) {
			t.Errorf("process %d: record %d of %d is not there in its order", i, at[i], len(acked[i]))
		}
	}
	if len(got) != len(acked[0])+len(acked[1]) {
		t.Errorf("%d records, %d were acknowledged", len(got), len(acked[0])+len(acked[1]))
	}
}

// TestAppendWithoutAnswer is about appends whose outcome their handle does not know.
func TestAppendWithoutAnswer(t *testing.T) {
	t.Parallel()
	l := join(t, single(t, "dublin"))
	k := journal(t, l, "site.00")
	add(t, k, "a")
	// As if the answer to an append of "b" had been lost and Append had given up.
	sealed, _ := k.seal(bookRecord, k.number+1, []byte("b"))
	publishes(t, l.books.store, k.subject, sealed, k.last)
	add(t, k, "c")
	if got := pages(t, k); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

func TestJournalDamage(t *testing.T) {
	t.Parallel()
	l := join(t, single(t, "dublin"))
	publish := func(k *book, data []byte) {
		t.Helper()
		r, err := l.books.store.last(t.Context(), k.subject)
		if err != nil {
			t.Fatal(err)
		}
		publishes(t, l.books.store, k.subject, data, r.seq)
	}
	ok := journal(t, l, "ok")
	add(t, ok, "a")
	for name, damage := range map[string]func(k *book){
		"flipped": func(k *book) {
			b, _ := k.seal(bookRecord, k.number+1, []byte("record"))
			b[len(b)-1] ^= 1
			publish(k, b)
		},
		"missing": func(k *book) {
			b, _ := k.seal(bookRecord, k.number+2, []byte("record"))
			publish(k, b)
		},
		"foreign": func(k *book) {
			b, _ := ok.seal(bookRecord, k.number+1, []byte("record"))
			publish(k, b)
		},
	} {
		k := journal(t, l, name)
		add(t, k, "a", "b")
		damage(k)
		var got []string
		err := k.Replay(t.Context(), func(_ time.Time, r []byte) error {
			got = append(got, string(r))
			return nil
		})
		if _, is := errors.AsType[*cluster.DamagedError](err); !is {
			t.Errorf("%s: %q, %v; want a DamagedError", name, got, err)
		}
	}
	add(t, ok, "b")
	if got := pages(t, ok); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the other journal: %q", got)
	}
}

func TestJournalRetention(t *testing.T) {
	t.Parallel()
	cfg := single(t, "dublin")
	l := join(t, cfg)
	one, two := journal(t, l, "one"), journal(t, l, "two")
	add(t, one, "old", "older than the moment")
	add(t, two, "old")
	if err := l.Retain(t.Context(), 3*time.Hour); err != nil {
		t.Fatal(err)
	}
	if step, err := l.books.purge(t.Context()); err != nil || step != maxKeepStep {
		t.Errorf("%v, %v", step, err)
	}
	s, err := l.books.stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config.Metadata[metaRetention]; got != "3h0m0s" {
		t.Errorf("retention %q", got)
	}
	moment := time.Now()
	add(t, one, "young", "younger")
	for _, k := range []*book{one, two} {
		if err := l.books.forget(t.Context(), s, k.subject, moment); err != nil {
			t.Fatal(err)
		}
	}
	if got := pages(t, one); !slices.Equal(got, []string{"young", "younger"}) {
		t.Errorf("%q", got)
	}
	// The newest stays, which says whose the journal is.
	if got := pages(t, two); !slices.Equal(got, []string{"old"}) {
		t.Errorf("%q", got)
	}
	add(t, two, "next")
	again := journal(t, l, "one")
	add(t, again, "last")
	if got := pages(t, again); !slices.Equal(got, []string{"young", "younger", "last"}) {
		t.Errorf("%q", got)
	}
}

func TestFullJournalsRefuseAndRecover(t *testing.T) {
	t.Parallel()
	cfg := single(t, "dublin")
	cfg.MaxStore = 32 << 20
	l := join(t, cfg)
	k := journal(t, l, "site.00")
	record := make([]byte, 512<<10)
	var err error
	n := 0
	for ; err == nil; n++ {
		err = k.Append(t.Context(), record)
	}
	if !errors.Is(err, cluster.ErrFull) || n < 16 {
		t.Fatalf("after %d records: %v, want ErrFull", n, err)
	}
	put(t, l.Site(), "a", "keys have a space of their own")
	s, err := l.books.stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.books.forget(t.Context(), s, k.subject, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := k.Append(t.Context(), record); err != nil {
		t.Errorf("after the old records have gone: %v", err)
	}
}

func TestFullKeysOfAClusterRefuseAndRecover(t *testing.T) {
	t.Parallel()
	cfg := single(t, "dublin")
	cfg.MaxStore = 32 << 20
	l := join(t, cfg)
	value := make([]byte, 256<<10)
	for name, s := range map[string]cluster.Space{"site": l.Site(), "shared": l} {
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = s.Put(t.Context(), fmt.Sprintf("k%d", n), value)
		}
		if !errors.Is(err, cluster.ErrFull) || n < 4 {
			t.Fatalf("%s: after %d keys: %v, want ErrFull", name, n, err)
		}
		if err := s.Delete(t.Context(), "k0"); err != nil {
			t.Errorf("%s: Delete in a full store: %v", name, err)
		}
		if _, err := s.Put(t.Context(), "new", value); err != nil {
			t.Errorf("%s: after a key was deleted: %v", name, err)
		}
	}
}
