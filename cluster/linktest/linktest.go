// Package linktest holds the suite that every [cluster.Link] passes: the contract of
// package cluster, sentence by sentence, as far as one process can see it ([Run]) and as far
// as several see it ([RunSites]). What survives the process, and what becomes of cuts, is
// tested beside the implementation that promises it.
package linktest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// opened is a link with its journal "".
type opened struct {
	cluster.Link
	handle
}

type handle = cluster.Journal

// Run tests the links that open returns. Each subtest opens one of its own, empty, and
// closes it; open may use the given t for its directories and failures. The subtests run in
// parallel, and so does open.
func Run(t *testing.T, open func(t *testing.T) cluster.Link) {
	tests := []struct {
		name string
		test func(t *testing.T, l opened)
	}{
		{"GetReturnsWhatPutSet", getReturnsWhatPutSet},
		{"RevisionsGrow", revisionsGrow},
		{"UpdateNeedsTheRevision", updateNeedsTheRevision},
		{"UpdateAfterDelete", updateAfterDelete},
		{"DeleteForgets", deleteForgets},
		{"KeysAreSortedAndPrefixed", keysAreSortedAndPrefixed},
		{"BadKeysAreRefused", badKeysAreRefused},
		{"LargestAndTooLarge", largestAndTooLarge},
		{"SlicesAreNotShared", slicesAreNotShared},
		{"OneOfManyUpdatesWins", oneOfManyUpdatesWins},
		{"ReadWhileItChanges", readWhileItChanges},
		{"ReplayInOrder", replayInOrder},
		{"ReplayStopsAtAnError", replayStopsAtAnError},
		{"ReplayMayUseTheLink", replayMayUseTheLink},
		{"ConcurrentAppends", concurrentAppends},
		{"AppendsDuringReplay", appendsDuringReplay},
		{"RetainBounds", retainBounds},
		{"RetainKeepsTheYoung", retainKeepsTheYoung},
		{"EndedContext", endedContext},
		{"ContextEndsDuringReplay", contextEndsDuringReplay},
		{"Closed", closed},
		{"CloseDuringUse", closeDuringUse},
		{"CloseDuringReplay", closeDuringReplay},
		{"WatchTellsAll", spaces(watchTellsAll)},
		{"WatchEverything", spaces(watchEverything)},
		{"WatchTellsTheLast", spaces(watchTellsTheLast)},
		{"WatchMayUseTheLink", spaces(watchMayUseTheLink)},
		{"LeaseExpires", spaces(leaseExpires)},
		{"LeaseIsKept", spaces(leaseIsKept)},
		{"MessagesReachAll", spaces(messagesReachAll)},
		{"SlowSubscriber", spaces(slowSubscriber)},
		{"Requests", spaces(requests)},
		{"BadMessages", spaces(badMessages)},
		{"ClosedSpace", closedSpace},
		{"Health", health},
		{"JournalsHaveNames", journalsHaveNames},
		{"JournalIsTakenOver", journalIsTakenOver},
		{"LookBeforeTakingOver", lookBeforeTakingOver},
		{"TakeOverDuringAppends", takeOverDuringAppends},
		{"ClosedJournal", closedJournal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // some wait for leases
			l := opened{Link: open(t)}
			var err error
			l.handle, err = l.Journal(t.Context(), "")
			must(t, err)
			tt.test(t, l)
			if err := l.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants checks the error of what format and args name.
func wants(t *testing.T, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// Refused checks that a write is refused because another revision is there. A store that answered too late does not know whether
// a write was done when the key has another revision meanwhile, so it is asked again; that it was not done, the caller checks.
func Refused(t *testing.T, write func() error, format string, args ...any) {
	t.Helper()
	err := write()
	for limit := time.Now().Add(patience); errors.Is(err, cluster.ErrUnavailable) && time.Now().Before(limit); {
		err = write()
	}
	wants(t, err, cluster.ErrRevision, format, args...)
}

func errOf[T any](_ T, err error) error { return err }

func put(t *testing.T, l opened, key, value string) uint64 {
	t.Helper()
	rev, err := l.Put(t.Context(), key, []byte(value))
	must(t, err)
	return rev
}

// holds checks that the key has the value and revision.
func holds(t *testing.T, l opened, key, value string, revision uint64) {
	t.Helper()
	e, err := l.Get(t.Context(), key)
	must(t, err)
	if e.Key != key || string(e.Value) != value || e.Revision != revision {
		t.Errorf("Get(%q) = {%q %q %d}, want value %q revision %d", key, e.Key, e.Value, e.Revision, value, revision)
	}
}

func holdsNothing(t *testing.T, l opened, key string) {
	t.Helper()
	if e, err := l.Get(t.Context(), key); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("Get(%q) = %v, %v; want ErrNotFound", key, e, err)
	}
}

func getReturnsWhatPutSet(t *testing.T, l opened) {
	holdsNothing(t, l, "a")
	holds(t, l, "a", "one", put(t, l, "a", "one"))
	holds(t, l, "a", "two", put(t, l, "a", "two"))
	holds(t, l, "empty", "", put(t, l, "empty", ""))
	binary := "\x00\xff\r\n\x01"
	holds(t, l, "room.7/state=x_y-z", binary, put(t, l, "room.7/state=x_y-z", binary))
	holdsNothing(t, l, "room.7")
	holdsNothing(t, l, "b")
}

func revisionsGrow(t *testing.T, l opened) {
	seen := uint64(0)
	for i := range 20 {
		rev := put(t, l, fmt.Sprintf("k%d", i%3), "v")
		if rev <= seen {
			t.Fatalf("revision %d after %d", rev, seen)
		}
		seen = rev
		if i == 10 {
			must(t, l.Delete(t.Context(), "k1"))
		}
	}
}

func updateNeedsTheRevision(t *testing.T, l opened) {
	refused := func(key string, revision uint64) {
		t.Helper()
		Refused(t, func() error { return errOf(l.Update(t.Context(), key, []byte("wrong"), revision)) }, "Update(%q, revision %d)", key, revision)
	}
	refused("a", 1)
	holdsNothing(t, l, "a")
	one, err := l.Update(t.Context(), "a", []byte("one"), 0)
	must(t, err)
	holds(t, l, "a", "one", one)
	refused("a", 0)
	refused("a", one+1)
	holds(t, l, "a", "one", one)
	other := put(t, l, "b", "x")
	two, err := l.Update(t.Context(), "a", []byte("two"), one)
	must(t, err)
	if two <= other {
		t.Errorf("revision %d after %d", two, other)
	}
	refused("a", one)
	refused("a", other)
	holds(t, l, "a", "two", two)
	holds(t, l, "b", "x", other)
}

func updateAfterDelete(t *testing.T, l opened) {
	one := put(t, l, "a", "one")
	must(t, l.Delete(t.Context(), "a"))
	Refused(t, func() error { return errOf(l.Update(t.Context(), "a", []byte("wrong"), one)) }, "Update of a deleted key with its old revision")
	holdsNothing(t, l, "a")
	two, err := l.Update(t.Context(), "a", []byte("two"), 0)
	must(t, err)
	if two <= one {
		t.Errorf("revision %d after %d", two, one)
	}
	holds(t, l, "a", "two", two)
}

func deleteForgets(t *testing.T, l opened) {
	must(t, l.Delete(t.Context(), "never"))
	for name, revision := range map[string]uint64{"never": 0, "a": 0, "neverthere": 7} {
		Refused(t, func() error { return l.Remove(t.Context(), name, revision) }, "Remove(%q, revision %d)", name, revision)
	}
	put(t, l, "a", "one")
	b := put(t, l, "b", "two")
	must(t, l.Delete(t.Context(), "a"))
	must(t, l.Delete(t.Context(), "a"))
	holdsNothing(t, l, "a")
	holds(t, l, "b", "two", b)
	keysAre(t, l, "", "b")

	newer := put(t, l, "b", "newer")
	Refused(t, func() error { return l.Remove(t.Context(), "b", b) }, "Remove with the revision before")
	holds(t, l, "b", "newer", newer)
	must(t, l.Remove(t.Context(), "b", newer))
	holdsNothing(t, l, "b")
	Refused(t, func() error { return l.Remove(t.Context(), "b", newer) }, "Remove of what was removed")
	again, err := l.Update(t.Context(), "b", []byte("again"), 0)
	must(t, err)
	holds(t, l, "b", "again", again)
}

func keysAre(t *testing.T, l opened, prefix string, want ...string) {
	t.Helper()
	got, err := l.Keys(t.Context(), prefix)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("Keys(%q) = %q, want %q", prefix, got, want)
	}
}

func keysAreSortedAndPrefixed(t *testing.T, l opened) {
	keysAre(t, l, "")
	keysAre(t, l, "x")
	for _, k := range []string{"room.b", "a", "room.a", "roomy", "room", "Z", "room.a.deep"} {
		put(t, l, k, "v")
	}
	put(t, l, "room.a", "again")
	keysAre(t, l, "", "Z", "a", "room", "room.a", "room.a.deep", "room.b", "roomy")
	keysAre(t, l, "room", "room", "room.a", "room.a.deep", "room.b", "roomy")
	keysAre(t, l, "room.", "room.a", "room.a.deep", "room.b")
	keysAre(t, l, "room.a.deep.er")
	keysAre(t, l, "*")
	keysAre(t, l, ">")
}

func badKeysAreRefused(t *testing.T, l opened) {
	for _, key := range []string{"", "a b", "*", ">", "a.*", "a..b", ".a", "a.", "ä", "a\r\nb"} {
		_, get := l.Get(t.Context(), key)
		_, put := l.Put(t.Context(), key, nil)
		_, update := l.Update(t.Context(), key, nil, 0)
		for _, err := range []error{get, put, update, l.Delete(t.Context(), key)} {
			wants(t, err, cluster.ErrKey, "key %q", key)
		}
	}
	keysAre(t, l, "")
}

func largestAndTooLarge(t *testing.T, l opened) {
	largest := make([]byte, cluster.MaxValue)
	for i := range largest {
		largest[i] = byte(i * 7 >> 3)
	}
	rev := put(t, l, "a", string(largest))
	must(t, l.Append(t.Context(), largest))
	over := append(slices.Clone(largest), 0)
	_, putErr := l.Put(t.Context(), "a", over)
	_, updateErr := l.Update(t.Context(), "a", over, rev)
	for _, err := range []error{putErr, updateErr, l.Append(t.Context(), over)} {
		wants(t, err, cluster.ErrTooLarge, "one byte more")
	}
	holds(t, l, "a", string(largest), rev)
	if got := records(t, l); len(got) != 1 || got[0] != string(largest) {
		t.Errorf("%d records, want the largest alone", len(got))
	}
}

func slicesAreNotShared(t *testing.T, l opened) {
	b := []byte("value")
	rev, err := l.Put(t.Context(), "a", b)
	must(t, err)
	must(t, l.Append(t.Context(), b))
	clear(b)
	holds(t, l, "a", "value", rev)
	e, err := l.Get(t.Context(), "a")
	must(t, err)
	clear(e.Value)
	holds(t, l, "a", "value", rev)
	must(t, l.Replay(t.Context(), func(_ time.Time, r []byte) error { clear(r); return nil }))
	if got := records(t, l); !slices.Equal(got, []string{"value"}) {
		t.Errorf("journal %q", got)
	}
}

func readWhileItChanges(t *testing.T, l opened) {
	rev := put(t, l, "a", "first")
	done := make(chan struct{})
	var readers sync.WaitGroup
	defer func() {
		close(done)
		readers.Wait()
	}()
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if e, err := l.Get(t.Context(), "a"); err != nil || len(e.Value) == 0 {
					t.Errorf("while it changes: %q, %v", e.Value, err)
					return
				}
				runtime.Gosched() // a store in this process would wait for a time slice of each of us at every step of a write
			}
		})
	}
	for i := range 200 {
		var err error
		rev, err = l.Update(t.Context(), "a", fmt.Append(nil, i), rev)
		must(t, err)
	}
}

func oneOfManyUpdatesWins(t *testing.T, l opened) {
	oneWins(t, slices.Repeat([]cluster.Space{l}, 8))
}
