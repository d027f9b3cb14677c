package linktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// RunSites tests links of several processes. links[site][node] are at least two sites of at
// least two nodes, empty, and stay the caller's; the first site is where the shared space is
// written, if that makes a difference.
func RunSites(t *testing.T, links [][]cluster.Link) {
	if len(links) < 2 || len(links[0]) < 2 || len(links[1]) < 2 {
		t.Fatal("two sites of two nodes are needed")
	}
	home, away := links[0], links[1]
	pairs := []struct {
		name     string
		one, two cluster.Link // where it is written, and where it is to be seen
	}{
		{"SameSite", home[0], home[1]}, {"SameSiteAway", away[1], away[0]}, {"Away", home[1], away[1]}, {"Home", away[0], home[0]},
	}
	for i, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			key := fmt.Sprintf("pair%d", i)
			t.Run("Shared", func(t *testing.T) { pair(t, p.one, p.two, key) })
			if i < 2 {
				t.Run("Site", func(t *testing.T) { pair(t, p.one.Site(), p.two.Site(), key) })
				t.Run("TakeOver", func(t *testing.T) { takeOver(t, p.one, p.two, key) })
				t.Run("Contend", func(t *testing.T) { contend(t, []cluster.Link{p.one, p.two}, key+"/contend") })
			} else {
				t.Run("SitesAreApart", func(t *testing.T) { apart(t, p.one, p.two, key) })
			}
		})
	}
	t.Run("OneOfManyUpdatesWins", func(t *testing.T) {
		oneWins(t, []cluster.Space{home[0], home[1], away[0], away[1]})
		oneWins(t, []cluster.Space{away[0].Site(), away[1].Site()})
	})
}

// pair tests that what one does, the other sees.
func pair(t *testing.T, one, two cluster.Space, key string) {
	w := watch(t, two, key+".")
	w.synced(t)
	rev, err := one.Put(t.Context(), key+".a", []byte("one"))
	must(t, err)
	if c := w.until(t, key+".a", "one", false); c.Revision != rev {
		t.Errorf("told revision %d, it is %d", c.Revision, rev)
	}
	if e, err := two.Get(t.Context(), key+".a"); err != nil || e.Revision != rev {
		t.Errorf("after it was told: %v, %v", e, err)
	}
	Refused(t, func() error { return errOf(two.Update(t.Context(), key+".a", []byte("wrong"), 0)) }, "Update")
	if _, err := two.Update(t.Context(), key+".a", []byte("two"), rev); err != nil {
		t.Error(err)
	}
	w.until(t, key+".a", "two", false)
	must(t, one.Delete(t.Context(), key+".a"))
	w.until(t, key+".a", "", true)
	if _, err := one.Lease(t.Context(), key+".lease", []byte("v"), 0, cluster.MinLease); err != nil {
		t.Error(err)
	}
	w.until(t, key+".lease", "v", false)
	w.until(t, key+".lease", "", true)

	heard, _ := subscribe(t, two, key+".m")
	hear(t, one, heard, key+".m")
	wants(t, errOf(one.Request(t.Context(), key+".nobody", nil)), cluster.ErrNobody, "Request")
	largest := make([]byte, cluster.MaxMessage)
	_, err = two.Subscribe(key+".ask", func(m cluster.Message) {
		if err := m.Reply(append([]byte("2"), m.Data[1:]...)); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []byte
	err = cluster.ErrNobody
	for errors.Is(err, cluster.ErrNobody) && ctx.Err() == nil { // the subscription is on its way
		got, err = one.Request(ctx, key+".ask", largest)
	}
	if err != nil || len(got) != len(largest) || got[0] != '2' {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// hear publishes until it is heard: the subscription may be on its way still.
func hear(t *testing.T, from cluster.Space, heard <-chan cluster.Message, subject string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		must(t, from.Publish(subject, []byte("hello")))
		select {
		case m := <-heard:
			if string(m.Data) != "hello" || m.Subject != subject {
				t.Errorf("heard %q on %q", m.Data, m.Subject)
			}
			return
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing is heard")
		}
	}
}

// apart tests that spaces and journals of two sites have nothing in common, nor with the shared one.
func apart(t *testing.T, one, two cluster.Link, key string) {
	rev, err := one.Site().Put(t.Context(), key+".k", []byte("one"))
	must(t, err)
	_, err = two.Site().Update(t.Context(), key+".k", []byte("two"), 0)
	must(t, err)
	e, err := one.Site().Get(t.Context(), key+".k")
	if err != nil || string(e.Value) != "one" || e.Revision != rev {
		t.Errorf("%v, %v", e, err)
	}
	for _, l := range []cluster.Link{one, two} {
		if e, err := l.Get(t.Context(), key+".k"); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("the shared space has a site's key: %v, %v", e, err)
		}
	}
	a, b := open(t, one, key), open(t, two, key)
	must(t, a.Append(t.Context(), []byte("a")))
	must(t, b.Append(t.Context(), []byte("b")))
	if got := records(t, a); len(got) != 1 || got[0] != "a" {
		t.Errorf("%q", got)
	}
	wrong, _ := subscribe(t, two.Site(), key+".m")
	right, _ := subscribe(t, one.Site(), key+".m")
	hear(t, one.Site(), right, key+".m")
	last, _ := subscribe(t, two.Site(), key+".last")
	hear(t, two.Site(), last, key+".last")
	if len(wrong) > 0 {
		t.Error("a site hears another's messages")
	}
}

// oneWins has many update one key at once.
func oneWins(t *testing.T, spaces []cluster.Space) {
	rev := uint64(0)
	for range 10 {
		var wg sync.WaitGroup
		won := make(chan uint64, len(spaces))
		var unsure sync.Map // the values of writes of which nobody knows whether they were done: the store was too slow to say
		for i, x := range spaces {
			wg.Go(func() {
				r, err := x.Update(t.Context(), "contended", fmt.Append(nil, i), rev)
				switch {
				case err == nil:
					won <- r
				case errors.Is(err, cluster.ErrUnavailable):
					unsure.Store(fmt.Sprint(i), true)
				case !errors.Is(err, cluster.ErrRevision):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		now, err := spaces[0].Get(t.Context(), "contended")
		must(t, err)
		if _, perhaps := unsure.Load(string(now.Value)); len(won) == 0 && perhaps && now.Revision != rev {
			rev = now.Revision
			continue
		}
		if len(won) != 1 {
			t.Fatalf("%d of %d updates of the same revision succeeded", len(won), len(spaces))
		}
		rev = <-won
	}
}
