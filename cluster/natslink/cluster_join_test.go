//go:build unix

package natslink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

// join joins a cluster; the end of the test leaves it.
func join(t testing.TB, cfg ClusterConfig) *joined {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*joined)
}

// joinAll joins processes at once.
func joinAll(t testing.TB, cfgs ...ClusterConfig) []*joined {
	t.Helper()
	links := make([]*joined, len(cfgs))
	var wg sync.WaitGroup
	for i, cfg := range cfgs {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			l, err := Join(ctx, cfg)
			if err != nil {
				t.Errorf("%s: %v", cfg.Node, err)
				return
			}
			links[i] = l.(*joined)
		})
	}
	wg.Wait()
	for _, l := range links {
		if l == nil {
			t.FailNow()
		}
		t.Cleanup(func() { l.Close() })
	}
	return links
}

// siteAt is the configuration of a core alone in another site.
func siteAt(t testing.TB, site string, hub ...ClusterConfig) ClusterConfig {
	cfg := single(t, site)
	for _, h := range hub {
		cfg.Hub = append(cfg.Hub, h.Listen)
	}
	return cfg
}

// watched is what a Watch told last of every key.
type watched struct {
	mu     sync.Mutex
	keys   map[string]string
	news   chan struct{} // closed at the next change
	sync   int
	cancel context.CancelFunc
	done   chan error
}

func watch(t testing.TB, s cluster.Space, prefix string) *watched {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{keys: map[string]string{}, news: make(chan struct{}), cancel: cancel, done: make(chan error, 1)}
	t.Cleanup(cancel)
	go func() {
		w.done <- s.Watch(ctx, prefix, func(c cluster.Change) {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case c.Synced:
				w.sync++
			case c.Gone:
				delete(w.keys, c.Key)
			default:
				w.keys[c.Key] = string(c.Value)
			}
			close(w.news)
			w.news = make(chan struct{})
		})
	}()
	return w
}

// holds waits until the keys told are these, and Synced was.
func (w *watched) holds(t testing.TB, want map[string]string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		ok := w.sync > 0 && maps.Equal(w.keys, want)
		have, news := maps.Clone(w.keys), w.news
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case err := <-w.done:
			t.Fatalf("the watch ended: %v", err)
		case <-limit:
			t.Fatalf("watched %v, want %v", have, want)
		}
	}
}

func put(t testing.TB, s cluster.Space, key, value string) uint64 {
	t.Helper()
	rev, err := s.Put(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func TestJoinedContract(t *testing.T) {
	t.Parallel()
	linktest.Run(t, func(t *testing.T) cluster.Link {
		cfg := single(t, "dublin")
		cfg.Listen = ""
		return join(t, cfg)
	})
}

// TestExternalContract has a cluster for each test on the operator's own NATS, all in one
// account.
func TestExternalContract(t *testing.T) {
	t.Parallel()
	o := runNATS(t, 1, true, nil)
	var n atomic.Int32
	linktest.Run(t, func(t *testing.T) cluster.Link {
		cfg := o.config(t)
		cfg.Cluster = fmt.Sprint("shop-", n.Add(1))
		cfg.External.SharedCredentials = ""
		cfg.MaxStore = 64 << 20
		return join(t, cfg)
	})
}

// TestJoinedSites has two sites of a core and an edge each.
func TestJoinedSites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	links := joinAll(t, hub, edgeOf(t, hub), far, edgeOf(t, far))
	linktest.RunSites(t, [][]cluster.Link{{links[0], links[1]}, {links[2], links[3]}})
}

// TestTwoSites has a hub with an edge and another site with an edge.
func TestTwoSites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	near, away := edgeOf(t, hub), edgeOf(t, far)
	links := joinAll(t, hub, far, near, away)

	var watches []*watched
	for _, l := range links {
		watches = append(watches, watch(t, l, ""))
	}
	want := map[string]string{}
	for i, l := range links {
		key, value := fmt.Sprintf("room.%d", i), fmt.Sprint("of ", i)
		rev := put(t, l, key, value)
		if e, err := l.Get(t.Context(), key); err != nil || string(e.Value) != value || e.Revision != rev {
			t.Errorf("own write: %v, %v", e, err)
		}
		want[key] = value
	}
	for _, w := range watches {
		w.holds(t, want)
	}
	if err := links[3].Delete(t.Context(), "room.0"); err != nil {
		t.Fatal(err)
	}
	delete(want, "room.0")
	for _, w := range watches {
		w.holds(t, want)
	}

	// The sites have keys of their own.
	dublin, oslo := watch(t, links[2].Site(), "roles."), watch(t, links[3].Site(), "")
	put(t, links[0].Site(), "roles.a", "dublin's")
	put(t, links[1].Site(), "roles.a", "oslo's")
	dublin.holds(t, map[string]string{"roles.a": "dublin's"})
	roll, err := links[1].Site().Get(t.Context(), links[1].att.server.rollKey())
	if err != nil {
		t.Fatal(err)
	}
	oslo.holds(t, map[string]string{"roles.a": "oslo's", roll.Key: string(roll.Value)})
	if keys, err := links[2].Site().Keys(t.Context(), "roles."); err != nil || !slices.Equal(keys, []string{"roles.a"}) {
		t.Errorf("%q, %v", keys, err)
	}

	// A stale revision is refused, and what is there now is known when it is.
	stale := put(t, links[0], "k", "1")
	newest := put(t, links[1], "k", "2")
	linktest.Refused(t, func() error { _, err := links[0].Update(t.Context(), "k", []byte("3"), stale); return err }, "stale")
	if e, err := links[0].Get(t.Context(), "k"); err != nil || e.Revision != newest {
		t.Errorf("after ErrRevision: %v, %v", e, err)
	}
	for _, l := range links {
		h := l.Health()
		if !h.Shared.OK || !h.Site.OK || h.Alone {
			t.Errorf("%+v", h)
		}
	}
}
