package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket"
)

// ringNode is a node that takes its ring from the cluster.
type ringNode struct {
	*sharedRing
	ring atomic.Pointer[ticket.Keyring] // what it works with
}

func (n *ringNode) reload(t *testing.T) {
	t.Helper()
	ring, err := n.load(t.Context(), func() (*ticket.Keyring, error) { return ticket.NewKeyring(time.Now()), nil })
	if err != nil {
		t.Error(err)
		return
	}
	n.ring.Store(ring)
}

func ringNodes(t *testing.T, links ...cluster.Link) (all []*ringNode) {
	for _, l := range links {
		ring, err := newSharedRing(l, "shop", []string{"a secret of some length", ""}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		n := &ringNode{sharedRing: ring}
		n.reload(t)
		all = append(all, n)
	}
	return all
}

func current(k *ticket.Keyring) string {
	for _, one := range k.Keys() {
		if one.State == ticket.Current {
			return one.ID
		}
	}
	return ""
}

func opens(k *ticket.Keyring, id string) bool {
	for _, one := range k.Keys() {
		if one.ID == id {
			return true
		}
	}
	return false
}

// TestNoNodeSealsWithAKeyThatAnotherDoesNotKnow rotates again and again, also between the moments at
// which a node loads the ring and begins to follow it.
func TestNoNodeSealsWithAKeyThatAnotherDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memlink.NewWorld()
		all := ringNodes(t, w.Join("dublin", "a"), w.Join("dublin", "b"), w.Join("sydney", "c"))
		first := current(all[0].ring.Load())
		if err := all[1].rotate(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, n := range all {
			go n.follow(ctx, func() { n.reload(t) })
		}
		before := first
		for round := range 3 {
			for range 300 {
				time.Sleep(50 * time.Millisecond)
				for _, one := range all {
					for _, other := range all {
						if !opens(other.ring.Load(), current(one.ring.Load())) {
							t.Fatalf("round %d: a node seals with %s, and another does not know it", round, current(one.ring.Load()))
						}
					}
				}
			}
			for _, n := range all {
				if now := current(n.ring.Load()); now == before || now != current(all[0].ring.Load()) {
					t.Errorf("round %d: after 15 s %s is in use, it was %s before", round, now, before)
				}
			}
			before = current(all[0].ring.Load())
			if err := all[round].rotate(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		if !opens(all[2].ring.Load(), first) {
			t.Error("the first key does not open any more")
		}
		cancel()
		synctest.Wait()
	})
}

// TestRingsOfTwoFirstNodes: one of them makes the ring, both have it.
func TestRingsOfTwoFirstNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memlink.NewWorld()
		a, b := w.Join("dublin", "a"), w.Join("sydney", "b")
		late := &lagging{Link: b, seen: make(chan struct{})}
		one := ringNodes(t, a)[0]
		go func() {
			time.Sleep(time.Second)
			close(late.seen)
		}()
		two := ringNodes(t, late)[0]
		if current(one.ring.Load()) != current(two.ring.Load()) {
			t.Error("two rings")
		}
		wrong := &sharedRing{space: a, owner: "shop", key: ringKey, secrets: []string{"another secret"}}
		if _, err := wrong.load(t.Context(), nil); err == nil {
			t.Error("the ring opens with another secret")
		}
	})
}

// lagging is a link whose copy knows nothing before seen is closed.
type lagging struct {
	cluster.Link
	seen chan struct{}
}

func (l *lagging) Get(ctx context.Context, key string) (cluster.Entry, error) {
	select {
	case <-l.seen:
		return l.Link.Get(ctx, key)
	default:
		return cluster.Entry{}, cluster.ErrNotFound
	}
}

func (l *lagging) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	select {
	case <-l.seen:
		return l.Link.Watch(ctx, prefix, fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}
