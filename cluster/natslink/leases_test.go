//go:build unix

package natslink

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
	"github.com/nats-io/nats.go/jetstream"
)

// TestLeases is for the keys of a site, at a core and at an edge, and for the shared ones,
// which another site hears through its mirror.
func TestLeases(t *testing.T) {
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	links := joinAll(t, hub, far, edgeOf(t, hub))
	for name, pair := range map[string][2]cluster.Space{
		"site":   {links[0].Site(), links[2].Site()},
		"shared": {links[0], links[1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := pair[0], pair[1]
			w := watch(t, b, "members.")
			w.holds(t, map[string]string{})
			rev, err := a.Lease(t.Context(), "members.x", []byte("1"), 0, 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.holds(t, map[string]string{"members.x": "1"})
			linktest.Refused(t, func() error { _, err := b.Lease(t.Context(), "members.x", []byte("other"), 0, time.Second); return err }, "a lease that is held")
			if rev, err = a.Lease(t.Context(), "members.x", []byte("2"), rev, 2*time.Second); err != nil {
				t.Fatal(err)
			}
			w.holds(t, map[string]string{"members.x": "2"})
			w.holds(t, map[string]string{})
			if lived := time.Since(began); lived < 2*time.Second {
				t.Errorf("it went after %v", lived)
			}
			if _, err := a.Get(t.Context(), "members.x"); name == "site" && !errors.Is(err, cluster.ErrNotFound) {
				t.Errorf("after its time: %v", err)
			}
			linktest.Refused(t, func() error { _, err := a.Lease(t.Context(), "members.x", nil, rev, time.Second); return err }, "renewal after its time")
			// It can be taken again at once, and deleted, and taken again.
			for i := range 2 {
				if _, err := b.Lease(t.Context(), "members.x", []byte("3"), 0, 30*time.Second); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				w.holds(t, map[string]string{"members.x": "3"})
				if err := a.Delete(t.Context(), "members.x"); err != nil {
					t.Fatal(err)
				}
				w.holds(t, map[string]string{})
			}
			// What is put stays.
			if rev, err = a.Lease(t.Context(), "members.y", []byte("1"), 0, time.Second); err != nil {
				t.Fatal(err)
			}
			if _, err = a.Update(t.Context(), "members.y", []byte("2"), rev); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Lease(t.Context(), "members.z", []byte("ends later"), 0, 2*time.Second); err != nil {
				t.Fatal(err)
			}
			w.holds(t, map[string]string{"members.y": "2", "members.z": "ends later"})
			w.holds(t, map[string]string{"members.y": "2"})
			for _, bad := range []time.Duration{0, time.Millisecond, 1500 * time.Millisecond, -time.Second} {
				if _, err := a.Lease(t.Context(), "bad", nil, 0, bad); err == nil {
					t.Errorf("a lease of %v is accepted", bad)
				}
			}
		})
	}
}

// A key holds nothing once its lease has expired, also for a node that has not heard of the newest of several ends, and when what the
// store wrote about the end has expired, too.
func TestAKeyThatHeldALeaseIsTakenAgain(t *testing.T) {
	t.Parallel()
	hub := single(t, "dublin")
	links := joinAll(t, hub, edgeOf(t, hub))
	core, edge := links[0], links[1]
	w := watch(t, edge, "members.")
	ends := func() {
		t.Helper()
		if _, err := core.Lease(t.Context(), "members.x", []byte("core"), 0, cluster.MinLease); err != nil {
			t.Fatal(err)
		}
		w.holds(t, map[string]string{"members.x": "core"})
		w.holds(t, map[string]string{})
	}
	take := func(what string) {
		t.Helper()
		if _, err := edge.Lease(t.Context(), "members.x", []byte("edge"), 0, cluster.MinLease); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.holds(t, map[string]string{"members.x": "edge"})
		w.holds(t, map[string]string{})
	}
	ends()
	edge.copy.mu.Lock()
	earlier := edge.copy.keys["members.x"]
	edge.copy.mu.Unlock()
	ends()
	edge.copy.mu.Lock()
	edge.copy.keys["members.x"] = earlier
	edge.copy.mu.Unlock()
	take("the edge knows an earlier end")
	js, err := newJetStream(core.att.shared, "")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_anteroom_shared")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.anteroom_shared.members.x")); err != nil {
		t.Fatal(err)
	}
	take("the store does not know of the end any more")
}

// TestOneWinner lets many processes race for keys.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	links := joinAll(t, hub, far, edgeOf(t, hub), edgeOf(t, far))
	for round := range 10 {
		key := fmt.Sprintf("role.%d", round)
		var wg sync.WaitGroup
		won := make(chan uint64, len(links))
		var unsure sync.Map // the values of writes of which nobody knows whether they were done: the store was too slow to say
		for i, l := range links {
			wg.Go(func() {
				rev, err := l.Update(t.Context(), key, fmt.Append(nil, i), 0)
				switch {
				case err == nil:
					won <- rev
				case errors.Is(err, cluster.ErrUnavailable):
					unsure.Store(fmt.Sprint(i), true)
				case !errors.Is(err, cluster.ErrRevision):
					t.Error(err)
				default:
					if _, err := l.Get(t.Context(), key); err != nil {
						t.Errorf("who lost does not know the winner: %v", err)
					}
				}
			})
		}
		wg.Wait()
		now, err := links[0].Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, perhaps := unsure.Load(string(now.Value)); len(won) != 1 && !(len(won) == 0 && perhaps) {
			t.Errorf("%d winners", len(won))
		}
	}
}
