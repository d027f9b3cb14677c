package memlink

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// told is what a Watch tells, without waiting.
type told struct {
	values map[string]string
	synced int
}

func watched(ctx context.Context, x cluster.Space, prefix string) *told {
	w := &told{values: map[string]string{}}
	go x.Watch(ctx, prefix, func(c cluster.Change) {
		switch {
		case c.Synced:
			w.synced++
		case c.Gone:
			delete(w.values, c.Key)
		default:
			w.values[c.Key] = string(c.Value)
		}
	})
	return w
}

// heard counts the messages on a subject.
func heard(t *testing.T, x cluster.Space, subject string) *int {
	t.Helper()
	n := new(int)
	if _, err := x.Subscribe(subject, func(m cluster.Message) {
		*n++
		if m.Reply != nil {
			m.Reply(m.Data)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func putOne(t *testing.T, x cluster.Space, value string) {
	t.Helper()
	if _, err := x.Put(t.Context(), "k", []byte(value)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestSiteIsCutFromTheSharedSpace: it reads what it knew, writes nothing, and its own space and
// its messages within go on.
func TestSiteIsCutFromTheSharedSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld()
		a, b, c := w.Join("dublin", "a"), w.Join("sydney", "b"), w.Join("sydney", "c")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		putOne(t, a, "before")
		sees := watched(ctx, b, "k")
		atB, atC := heard(t, b, "m"), heard(t, c, "m")
		synctest.Wait()

		w.CutSite("sydney", Both)
		putOne(t, a, "during")
		if sees.values["k"] != "before" {
			t.Errorf("the watch tells %q", sees.values["k"])
		}
		if e, err := b.Get(ctx, "k"); err != nil || string(e.Value) != "before" {
			t.Errorf("Get: %q, %v", e.Value, err)
		}
		if keys, err := b.Keys(ctx, ""); err != nil || len(keys) != 1 {
			t.Errorf("Keys: %q, %v", keys, err)
		}
		_, putErr := b.Put(ctx, "new", nil)
		_, leaseErr := b.Lease(ctx, "new", nil, 0, time.Second)
		for _, err := range []error{putErr, leaseErr, b.Delete(ctx, "k")} {
			if !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("a write: %v, want ErrUnavailable", err)
			}
		}
		if h := b.Health(); !h.Site.OK || h.Shared.OK || h.Alone {
			t.Errorf("%+v", h)
		}
		a.Publish("m", nil)
		synctest.Wait()
		if *atB+*atC != 0 {
			t.Error("a message comes through")
		}
		c.Publish("m", nil)
		synctest.Wait()
		if *atB != 1 || *atC != 1 {
			t.Error("a message within the site is lost")
		}
		if _, err := a.Request(ctx, "m", nil); !errors.Is(err, cluster.ErrNobody) {
			t.Errorf("Request: %v, want ErrNobody", err)
		}
		putOne(t, b.Site(), "own")
		if e, err := c.Site().Get(ctx, "k"); err != nil || string(e.Value) != "own" {
			t.Errorf("the site's own space: %q, %v", e.Value, err)
		}
		if _, err := b.Journal(ctx, "j"); err != nil {
			t.Error(err)
		}

		time.Sleep(time.Minute)
		if h := b.Health(); h.Shared.Lag != time.Minute {
			t.Errorf("%+v", h.Shared)
		}
		w.CutSite("sydney", None)
		synctest.Wait()
		if sees.values["k"] != "during" || sees.synced < 2 {
			t.Errorf("after the cut the watch tells %q, synced %d times", sees.values["k"], sees.synced)
		}
		if _, err := a.Get(ctx, "new"); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("a refused write has happened: %v", err)
		}
		cancel()
		synctest.Wait()
	})
}

// TestOneDirectionIsCut: what goes out is lost, or what comes in.
func TestOneDirectionIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld()
		a, b := w.Join("dublin", "a"), w.Join("sydney", "b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		atA, atB := heard(t, a, "to.a"), heard(t, b, "to.b")
		sees := watched(ctx, b, "k")
		talk := func() {
			a.Publish("to.b", nil)
			b.Publish("to.a", nil)
			synctest.Wait()
		}
		w.CutSite("sydney", Out)
		putOne(t, a, "one")
		if talk(); *atA != 0 || *atB != 1 || sees.values["k"] != "one" {
			t.Errorf("cut out: heard %d and %d, sees %q", *atA, *atB, sees.values["k"])
		}
		if _, err := b.Put(ctx, "k", []byte("wrong")); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("cut out: %v", err)
		}
		if e, err := b.Get(ctx, "k"); err != nil || string(e.Value) != "one" {
			t.Errorf("cut out: Get: %q, %v", e.Value, err)
		}
		asked, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if _, err := a.Request(asked, "to.b", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the answer is lost: %v", err)
		}
		w.CutSite("sydney", In)
		if talk(); *atA != 1 || *atB != 2 {
			t.Errorf("cut in: heard %d and %d", *atA, *atB)
		}
		if _, err := b.Put(ctx, "k", []byte("two")); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("cut in: %v", err)
		}
		synctest.Wait()
		if e, err := a.Get(ctx, "k"); err != nil || string(e.Value) != "two" || sees.values["k"] != "one" {
			t.Errorf("cut in: the write has to be done and not be seen: %q, %v; sees %q", e.Value, err, sees.values["k"])
		}
		w.CutSite("sydney", None)
		synctest.Wait()
		if sees.values["k"] != "two" {
			t.Errorf("after the cut: sees %q", sees.values["k"])
		}
		cancel()
		synctest.Wait()
	})
}

// TestNodeIsCut: it reaches neither its site's space nor the shared one, its lease expires, and its
// journal can be taken from it.
func TestNodeIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld()
		a, b := w.Join("dublin", "a"), w.Join("dublin", "b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := a.Site().Lease(ctx, "lease", nil, 0, 3*time.Second); err != nil {
			t.Fatal(err)
		}
		first, err := a.Journal(ctx, "j")
		if err != nil {
			t.Fatal(err)
		}
		own, others := watched(ctx, a.Site(), ""), watched(ctx, b.Site(), "")
		atA := heard(t, a.Site(), "m")
		synctest.Wait()
		w.CutNode("a", Both)
		_, get := a.Site().Get(ctx, "lease")
		_, shared := a.Get(ctx, "lease")
		_, journal := a.Journal(ctx, "other")
		_, lease := a.Site().Lease(ctx, "lease", nil, 1, 3*time.Second)
		for _, err := range []error{get, shared, journal, lease, first.Append(ctx, nil), first.Replay(ctx, nil), a.Retain(ctx, time.Hour)} {
			if !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
		}
		if h := a.Health(); h.Site.OK || h.Shared.OK {
			t.Errorf("%+v", h)
		}
		b.Site().Publish("m", nil)
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if _, there := others.values["lease"]; there || *atA != 0 {
			t.Errorf("the lease of a cut node is there: %v; it heard %d messages", there, *atA)
		}
		if _, there := own.values["lease"]; !there {
			t.Error("the cut node hears of its lease's end")
		}
		second, err := b.Journal(ctx, "j")
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Append(ctx, []byte("mine")); err != nil {
			t.Error(err)
		}
		w.CutNode("a", None)
		time.Sleep(time.Second)
		synctest.Wait()
		if _, there := own.values["lease"]; there {
			t.Error("after the cut it does not hear of its lease's end")
		}
		if err := first.Append(ctx, []byte("late")); !errors.Is(err, cluster.ErrFenced) {
			t.Errorf("Append after the journal was taken over: %v, want ErrFenced", err)
		}
		cancel()
		synctest.Wait()
	})
}
