//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const testSubjects = "$KV.x."

// fill makes a copy in dir that knows some keys, one of them deleted.
func fill(t testing.TB, dir string) *keysCopy {
	t.Helper()
	c, err := openCopy(dir, testSubjects, testLog(t, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.follows("store", 100); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(20) {
		tell(t, c, i+1, fmt.Sprintf("k%d", i%10), kindValue, fmt.Sprint("value ", i))
	}
	tell(t, c, 21, "k3", kindDeleted, "")
	return c
}

func tell(t testing.TB, c *keysCopy, seq uint64, key string, k kind, value string) {
	t.Helper()
	subject := testSubjects + key
	if err := c.heard(row{subject: subject, seq: seq, data: envelope{kind: k, data: []byte(value)}.seal(subject)}, true); err != nil {
		t.Fatal(err)
	}
}

func TestCopyIsThereAgain(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		c := fill(t, dir)
		for i := range 10 {
			e, err := c.get(fmt.Sprintf("k%d", i))
			if i == 3 {
				if !errors.Is(err, cluster.ErrNotFound) {
					t.Errorf("deleted: %v, %v", e, err)
				}
				continue
			}
			if err != nil || string(e.Value) != fmt.Sprint("value ", i+10) || e.Revision != uint64(i+11) {
				t.Errorf("%v, %v", e, err)
			}
		}
		if pos, _ := c.position(); pos != 21 {
			t.Errorf("position %d", pos)
		}
		if err := c.follows("another", 100); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("another store: %v", err)
		}
		if err := c.follows("store", 5); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("a store that has lost changes: %v", err)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopyIgnoresTheOld is about messages that come late or twice, from the hub and from a
// mirror that lags.
func TestCopyIgnoresTheOld(t *testing.T) {
	c := fill(t, t.TempDir())
	defer c.close()
	tell(t, c, 2, "k1", kindValue, "old")
	tell(t, c, 13, "k2", kindValue, "old")
	tell(t, c, 14, "k3", kindValue, "was deleted")
	if e, err := c.get("k1"); err != nil || string(e.Value) != "value 11" {
		t.Errorf("%q, %v", e.Value, err)
	}
	if e, err := c.get("k3"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("%q, %v", e.Value, err)
	}
}

func TestCopyFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	c := fill(t, dir)
	value := strings.Repeat("x", 10_000)
	for i := range uint64(1000) {
		tell(t, c, 30+i, "big", kindValue, value)
		if info, err := os.Stat(filepath.Join(dir, copyName)); err != nil || info.Size() > copySlack+100_000 {
			t.Fatalf("%v, %v", info.Size(), err)
		}
	}
	c.close()
}

// TestCopyDamage flips and cuts everywhere: what is told then is what was written or
// nothing, and the rest is fetched again.
func TestCopyDamage(t *testing.T) {
	dir := t.TempDir()
	c := fill(t, dir)
	// Not closed: so the file is as it was appended to.
	good, err := os.ReadFile(filepath.Join(dir, copyName))
	if err != nil {
		t.Fatal(err)
	}
	c.close()
	check := func(what string, b []byte, flipped bool) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, copyName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := openCopy(dir, testSubjects, testLog(t, "copy"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if pos, _ := c.position(); flipped && pos != 0 {
			t.Errorf("%s: position %d, nothing is fetched again", what, pos)
		}
		for _, key := range c.list("") {
			e, err := c.get(key)
			if _, damaged := errors.AsType[*cluster.DamagedError](err); damaged {
				continue
			}
			var n uint64
			if _, serr := fmt.Sscanf(string(e.Value), "value %d", &n); err != nil || serr != nil || e.Revision != n+1 || key != fmt.Sprintf("k%d", n%10) {
				t.Errorf("%s: key %s: %v, %v", what, key, e, err)
			}
		}
		// It can be followed on.
		if err := c.follows("store", 100); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i := range uint64(20) {
			subject := testSubjects + fmt.Sprintf("k%d", i%10)
			c.heard(row{subject: subject, seq: i + 1, data: envelope{kind: kindValue, data: fmt.Append(nil, "value ", i)}.seal(subject)}, true)
		}
		for i := range 10 {
			if e, err := c.get(fmt.Sprintf("k%d", i)); i != 3 && (err != nil || string(e.Value) != fmt.Sprint("value ", i+10)) {
				t.Errorf("%s: after it was fetched again: key %d: %v, %v", what, i, e, err)
			}
		}
	}
	for range 150 {
		at := rand.IntN(len(good))
		b := append([]byte(nil), good...)
		b[at] ^= 1 << rand.IntN(8)
		// The last record cannot be told from one that was cut off.
		check(fmt.Sprintf("byte %d of %d flipped", at, len(good)), b, at < len(good)-200)
		check(fmt.Sprintf("cut to %d of %d", at, len(good)), good[:at], false)
	}
}

func FuzzCopyFile(f *testing.F) {
	dir := f.TempDir()
	c := fill(f, dir)
	c.close()
	b, err := os.ReadFile(filepath.Join(dir, copyName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		readCopy(b, func(r copyRecord) {
			again, n, ok := cutCopyRecord(r.append(nil))
			if !ok || again.key != r.key || n != copyHeader+len(r.key)+len(r.envelope) {
				t.Errorf("%v reads back as %v", r, again)
			}
		})
	})
}

// TestStartsWithTheLastGoodCopy has a node of another site, which starts while nobody else
// is there, and comes back by itself.
func TestStartsWithTheLastGoodCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	edge := edgeOf(t, far)

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := Join(ctx, edge)
	wantText(t, err, far.Listen)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}

	links := joinAll(t, hub, far, edge)
	put(t, links[0], "room.a", "1")
	watch(t, links[2], "").holds(t, map[string]string{"room.a": "1"})
	for _, l := range links {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}

	alone := join(t, edge)
	w := watch(t, alone, "")
	w.holds(t, map[string]string{"room.a": "1"})
	if h := alone.Health(); h.Site.OK || h.Shared.OK || h.Shared.Since.IsZero() {
		t.Errorf("alone: %+v", h)
	}
	var calls sync.WaitGroup
	for what, call := range map[string]func() error{
		"Put":       func() error { return second(alone.Put(t.Context(), "room.b", nil)) },
		"Site.Put":  func() error { return second(alone.Site().Put(t.Context(), "a", nil)) },
		"Site.Get":  func() error { return second(alone.Site().Get(t.Context(), "a")) },
		"Site.Keys": func() error { return second(alone.Site().Keys(t.Context(), "")) },
		"Journal":   func() error { return second(alone.Journal(t.Context(), "a")) },
		"Publish":   func() error { return alone.Publish("a", nil) },
		"Request":   func() error { return second(alone.Request(t.Context(), "a", nil)) },
		"Retain":    func() error { return alone.Retain(t.Context(), time.Hour) },
	} {
		calls.Go(func() {
			if err := call(); !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("%s alone: %v, want ErrUnavailable", what, err)
			}
		})
	}
	calls.Wait()
	again := joinAll(t, hub)
	put(t, again[0], "room.b", "2")
	joinAll(t, far)
	w.holds(t, map[string]string{"room.a": "1", "room.b": "2"})
	put(t, alone, "room.c", "3")
	journal(t, alone, "site.00")
}

func second[T any](_ T, err error) error { return err }

// TestWhatTheStoreForgotIsDropped has a key that was deleted while an edge was away and of which nothing is left, as
// after a deletion by an earlier release.
func TestWhatTheStoreForgotIsDropped(t *testing.T) {
	t.Parallel()
	hub := single(t, "dublin")
	edge := edgeOf(t, hub)
	links := joinAll(t, hub, edge)
	core := links[0]
	put(t, core, "token.revoked", "1")
	put(t, core, "token.kept", "1")
	put(t, core, "token.again", "1")
	put(t, core, "room.a", "1")
	watch(t, links[1], "").holds(t, map[string]string{"token.revoked": "1", "token.kept": "1", "token.again": "1", "room.a": "1"})
	if err := links[1].Close(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"token.revoked", "token.again"} {
		var purged struct{}
		if err := core.hub.ask(t.Context(), "STREAM.PURGE."+core.hub.stream, map[string]any{"filter": core.hub.subjects + key}, &purged); err != nil {
			t.Fatal(err)
		}
	}
	publishes(t, core.hub, core.hub.subjects+"token.again", envelope{kind: kindValue, data: []byte("2")}.seal(core.hub.subjects+"token.again"), 0)
	for range 2 { // by its file, too
		l := join(t, edge)
		if keys, err := l.Keys(t.Context(), ""); err != nil || strings.Join(keys, " ") != "room.a token.again token.kept" {
			t.Errorf("the edge has %q, %v", keys, err)
		}
		watch(t, l, "").holds(t, map[string]string{"token.kept": "1", "token.again": "2", "room.a": "1"})
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPruneKeepsWhatIsNewer(t *testing.T) {
	c := fill(t, t.TempDir())
	defer c.close()
	pos, _ := c.position()
	tell(t, c, pos+1, "old", kindValue, "1")
	tell(t, c, pos+2, "held", kindValue, "1")
	tell(t, c, pos+3, "new", kindValue, "1")
	all := len(c.list(""))
	if n := c.prune(pos+2, func(subject string) bool { return subject == c.subjects+"held" }); n != all-2 {
		t.Errorf("%d of %d keys dropped", n, all)
	}
	if keys := strings.Join(c.list(""), " "); keys != "held new" {
		t.Error(keys)
	}
}

// TestCutBetweenSites cuts a site off for a moment: it reads on, its writes say so, and
// it heals by itself.
func TestCutBetweenSites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	far := single(t, "oslo")
	w, through := newCable(t, hub.Listen)
	far.Hub = []string{through}
	links := joinAll(t, hub, far, edgeOf(t, far))
	put(t, links[0], "room.a", "1")
	told := watch(t, links[2], "room.")
	told.holds(t, map[string]string{"room.a": "1"})

	w.set(true)
	w.breakAll()
	put(t, links[0], "room.b", "2")
	if err := links[0].Delete(t.Context(), "room.a"); err != nil {
		t.Fatal(err)
	}
	if _, err := links[2].Put(t.Context(), "room.c", nil); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("Put across the cut: %v", err)
	}
	if e, err := links[2].Get(t.Context(), "room.a"); err != nil || string(e.Value) != "1" {
		t.Errorf("Get in the cut: %v, %v", e, err)
	}
	put(t, links[2].Site(), "roles.a", "the site works on")
	add(t, journal(t, links[1], "site.00"), "the journal too")
	w.set(false)
	told.holds(t, map[string]string{"room.b": "2"})
	put(t, links[0], "room.d", "4")
	told.holds(t, map[string]string{"room.b": "2", "room.d": "4"})
}

// TestCatchUpAtTheHub is for a mirror that says nothing.
func TestCatchUpAtTheHub(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	links := joinAll(t, hub, far)
	// This copy follows nothing.
	dir := t.TempDir()
	c, err := openCopy(dir, links[1].hub.subjects, testLog(t, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	f := &feed{j: links[1], copy: c, hub: links[1].hub}
	for i := range 300 {
		put(t, links[0], fmt.Sprintf("room.%d", i%250), fmt.Sprint(i))
	}
	if err := links[0].Delete(t.Context(), "room.9"); err != nil {
		t.Fatal(err)
	}
	if _, err := links[0].Lease(t.Context(), "lease", nil, 0, time.Second); err != nil {
		t.Fatal(err)
	}
	w := watch(t, links[0], "lease")
	w.holds(t, map[string]string{"lease": ""})
	w.holds(t, map[string]string{})
	_, last, err := f.lastAtHub(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.catchUp(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if pos, _ := c.position(); pos != last {
		t.Errorf("position %d of %d", pos, last)
	}
	if n, _ := c.counts(); n != 249 {
		t.Errorf("%d keys", n)
	}
	if e, err := c.get("room.20"); err != nil || string(e.Value) != "270" {
		t.Errorf("%v, %v", e, err)
	}
}

// TestDamagedKeysOfACluster writes garbage into the stores.
func TestDamagedKeysOfACluster(t *testing.T) {
	t.Parallel()
	l := join(t, single(t, "dublin"))
	w := watch(t, l, "")
	for name, at := range map[string]struct {
		s     cluster.Space
		store *store
	}{"site": {l.Site(), l.site.keys}, "shared": {l, l.hub}} {
		put(t, at.s, "good", "1")
		subject := at.store.subjects + "bad"
		b := envelope{kind: kindValue, data: []byte("value")}.seal(subject)
		b[len(b)-2] ^= 4
		seq := publishes(t, at.store, subject, b, 0)
		if name == "shared" {
			if err := (&feed{j: l, copy: l.copy}).reach(t.Context(), seq); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := at.s.Get(t.Context(), "bad"); err == nil || errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("%s: %v, want a DamagedError", name, err)
		} else if _, is := errors.AsType[*cluster.DamagedError](err); !is {
			t.Errorf("%s: %v, want a DamagedError", name, err)
		}
		if e, err := at.s.Get(t.Context(), "good"); err != nil || string(e.Value) != "1" {
			t.Errorf("%s: another key: %v, %v", name, e, err)
		}
		put(t, at.s, "bad", "written again")
		if e, err := at.s.Get(t.Context(), "bad"); err != nil || string(e.Value) != "written again" {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	w.holds(t, map[string]string{"good": "1", "bad": "written again"})
}

// TestStoreBegunAnewIsNotFollowed takes the hub's data away.
func TestStoreBegunAnewIsNotFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	edge := edgeOf(t, hub)
	links := joinAll(t, hub, edge)
	put(t, links[0], "room.a", "1")
	watch(t, links[1], "").holds(t, map[string]string{"room.a": "1"})
	for _, l := range links {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	hub.Dir = t.TempDir()
	anew := joinAll(t, hub)[0]
	put(t, anew, "room.b", "2")
	l := join(t, edge)
	if h := l.Health(); h.Shared.OK || !strings.Contains(h.Shared.Detail, filepath.Join(edge.Dir, copyName)) {
		t.Errorf("%+v", h.Shared)
	}
	if keys, err := l.Keys(t.Context(), ""); err != nil || len(keys) != 1 || keys[0] != "room.a" {
		t.Errorf("%q, %v", keys, err)
	}
	if _, err := l.Put(t.Context(), "room.c", nil); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}
