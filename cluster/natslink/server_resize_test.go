//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// counted writes through a link and a journal of it until the returned function is called. That checks that each write
// came after the one before, and tells how many there were and the longest time that one took.
func counted(t *testing.T, l cluster.Link) (end func() (keys, records int, worst time.Duration)) {
	t.Helper()
	own := journal(t, l, "count")
	ctx, stop := context.WithCancel(t.Context())
	type result struct {
		n     int
		worst time.Duration
	}
	keys, records := make(chan result, 1), make(chan result, 1)
	count := func(to chan result, one func(n int) error) {
		var r result
		for ctx.Err() == nil {
			began := time.Now()
			err := one(r.n)
			for errors.Is(err, cluster.ErrUnavailable) && time.Since(began) < 30*time.Second {
				err = one(r.n)
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("write %d: %v", r.n, err)
				break
			}
			r.n, r.worst = r.n+1, max(r.worst, time.Since(began))
		}
		to <- r
	}
	had, err := l.Site().Get(t.Context(), "count")
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		t.Fatal(err)
	}
	revision := had.Revision
	go count(keys, func(n int) error {
		rev, err := l.Site().Update(t.Context(), "count", fmt.Append(nil, n), revision)
		if errors.Is(err, cluster.ErrRevision) { // the answer to an earlier try was lost
			e, err := l.Site().Get(t.Context(), "count")
			if err != nil || string(e.Value) != fmt.Sprint(n) {
				return fmt.Errorf("%w: revision %d is not ours, there is %q with %d (%w)", cluster.ErrRevision, revision, e.Value, e.Revision, err)
			}
			rev = e.Revision
		} else if err != nil {
			return err
		}
		if rev <= revision {
			return fmt.Errorf("revision %d came after %d", rev, revision)
		}
		revision = rev
		return nil
	})
	go count(records, func(n int) error { return own.Append(t.Context(), fmt.Append(nil, n)) })
	return func() (int, int, time.Duration) {
		stop()
		k, r := <-keys, <-records
		return k.n, r.n, max(k.worst, r.worst)
	}
}

// holdsCount checks that a link has what counted wrote. A record whose first answer was lost may be there twice.
func holdsCount(t *testing.T, l cluster.Link, keys, records int) {
	t.Helper()
	e, err := l.Site().Get(t.Context(), "count")
	if err != nil || string(e.Value) != fmt.Sprint(keys-1) {
		t.Errorf("the key holds %q, %v; want %d", e.Value, err, keys-1)
	}
	there := map[string]bool{}
	for _, r := range pages(t, journal(t, l, "count")) {
		there[r] = true
	}
	for n := range records {
		if !there[fmt.Sprint(n)] {
			t.Fatalf("record %d of %d is lost", n, records)
		}
	}
}

func agreed() error { return nil }

// A core alone becomes one of three and the only one again, while it and an edge write. Nothing is lost, revisions only
// grow, and an open journal stays open.
func TestOneCoreBecomesThreeAndOneAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	cores := cfgs[0].Cores
	cfgs[0].Cores = nil
	first := join(t, cfgs[0])
	edge := join(t, edgeOf(t, cfgs[0]))
	if _, err := first.Put(t.Context(), "shared", []byte("of before")); err != nil {
		t.Fatal(err)
	}
	refused := func(cores []string, want string) {
		t.Helper()
		_, err := Grow(t.Context(), first, cores, agreed)
		wantText(t, err, want)
	}
	refused(nil, "cores lists no others")
	refused([]string{cores[1], cores[0], cores[2]}, "is not the first of cores")
	refused(cores, "start it first")
	wantText(t, Shrink(t.Context(), first), "the only one of its site already")

	end := counted(t, edge)
	others := make(chan []*joined)
	go func() { others <- joinAll(t, cfgs[1:]...) }()
	var complete bool
	within(t, 30*time.Second, func(ctx context.Context) (err error) {
		for complete, err = Grow(ctx, first, cores, agreed); err != nil && pause(ctx, minBackoff); { // the others are starting
			complete, err = Grow(ctx, first, cores, agreed)
		}
		return err
	})
	if !complete {
		t.Error("the copies are not complete")
	}
	rest := <-others
	keys, records, worst := end()
	t.Logf("one became three: the longest of %d writes took %v", keys+records, worst)
	holdsCount(t, rest[0], keys, records)
	if e, err := rest[1].Get(t.Context(), "shared"); err != nil || string(e.Value) != "of before" {
		t.Errorf("another core has %q, %v", e.Value, err)
	}
	if got := coresOf(t, rest[0]); got != "dublin-1true dublin-2true dublin-3true" {
		t.Errorf("cores: %s", got)
	}
	if _, err := os.Stat(filepath.Join(cfgs[0].Dir, beforeName)); !os.IsNotExist(err) {
		t.Errorf("the store of before is still there: %v", err)
	}
	refused(cores, "one of 3 already")

	// It stays one of them, whatever its configuration says.
	first.Close()
	first = join(t, cfgs[0])
	if got := coresOf(t, first); got != "dublin-1true dublin-2true dublin-3true" {
		t.Errorf("after a restart, cores: %s", got)
	}

	end = counted(t, edge)
	within(t, 30*time.Second, func(ctx context.Context) error { return Shrink(ctx, first) })
	for _, gone := range rest {
		select {
		case <-Removed(gone):
		case <-time.After(10 * time.Second):
			t.Error("a core does not know that it was removed")
		}
		gone.Close()
	}
	more, moreRecords, worst := end()
	t.Logf("three became one: the longest of %d writes took %v", more+moreRecords, worst)
	if got := coresOf(t, first); got != "dublin-1true" {
		t.Errorf("cores: %s", got)
	}
	first.Close()
	cfgs[0].Cores = cores // and now it stays alone
	first = join(t, cfgs[0])
	holdsCount(t, first, more, moreRecords)
	if e, err := first.Get(t.Context(), "shared"); err != nil || string(e.Value) != "of before" {
		t.Errorf("it has %q, %v", e.Value, err)
	}
}

// at returns when a file or directory below a core's is there, or what its layout says has come.
func at(t *testing.T, dir, what string) {
	t.Helper()
	within(t, 60*time.Second, func(ctx context.Context) error {
		for {
			text, _ := os.ReadFile(filepath.Join(dir, layoutName))
			_, err := os.Stat(filepath.Join(dir, what))
			if err == nil || strings.HasSuffix(string(text), "\nserver "+what+"\n") {
				return nil
			}
			if !pause(ctx, time.Millisecond) {
				return fmt.Errorf("%s never came to %s; it is %q", dir, what, text)
			}
		}
	})
}

// A core is killed again and again while it becomes one of three, and while it becomes the only one again. It goes on each
// time, the others have no store that it does not know, and what was acknowledged is there.
func TestACoreIsKilledWhileItsSiteIsResized(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	cores := cfgs[0].Cores
	cfgs[0].Cores = nil
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	first := startCoreProcess(t, h, cfgs[0], "")
	h.goesOn(t, 20, "shared", "site", "journal dublin-1")
	for _, cfg := range cfgs[1:] {
		startCoreProcess(t, h, cfg, "")
	}
	grow, shrink := resizeVariable+"="+strings.Join(cores, " "), resizeVariable+"="
	again := func(env string, stages ...string) {
		t.Helper()
		first.kill()
		for _, stage := range stages {
			first = startCoreProcess(t, h, cfgs[0], "", env)
			at(t, cfgs[0].Dir, stage)
			first.kill()
		}
		first = startCoreProcess(t, h, cfgs[0], "", env)
		h.goesOn(t, 1, "resized")
		h.goesOn(t, 20, "shared", "site", "journal dublin-1")
		h.mu.Lock()
		delete(h.acked, "resized")
		h.mu.Unlock()
	}
	again(grow, nextName, shapeGrowing, beforeName, beforeName+"/"+engineName, shapeMember)
	h.goesOn(t, 20, "journal dublin-2", "journal dublin-3")
	again(shrink, shapeMember, shapeSingle)
	first.kill()

	l := join(t, cfgs[0])
	if got := coresOf(t, l); got != "dublin-1true" {
		t.Errorf("cores: %s", got)
	}
	for name, s := range map[string]cluster.Space{"shared": l, "site": l.Site()} {
		e, err := s.Get(t.Context(), "count")
		n := 0
		if fmt.Sscan(string(e.Value), &n); err != nil || n < h.last()[name] {
			t.Errorf("%s: %d, %v; %d was acknowledged", name, n, err, h.last()[name])
		}
	}
	for _, cfg := range cfgs {
		there := map[string]bool{}
		for _, r := range pages(t, journal(t, l, "of."+cfg.Node)) {
			there[r] = true
		}
		for n := range h.acked["journal "+cfg.Node] {
			if !there[fmt.Sprint(n)] {
				t.Errorf("%s: record %d was acknowledged and is lost", cfg.Node, n)
			}
		}
	}
	for _, twice := range h.twice {
		if !strings.HasPrefix(twice, "journal") { // whose numbers begin anew with each process
			t.Errorf("acknowledged twice: %s", twice)
		}
	}
}
