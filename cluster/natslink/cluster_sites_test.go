//go:build unix

package natslink

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestSites: two sites, each with its own store, linked by what all share.
func TestSites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hubConfig := single(t, "dublin")
	hub := startSite(t, hubConfig)[0]
	w, through := newCable(t, hubConfig.Listen)
	farConfig := single(t, "paris")
	farConfig.Hub = []string{through}
	var said *record
	farConfig.Log, said = recordLog(t, "paris-1")
	far := startSite(t, farConfig)[0]
	within(t, 10*time.Second, far.hubReady)
	if !hub.isHub() || far.isHub() {
		t.Errorf("hub %v, far %v", hub.isHub(), far.isHub())
	}
	edge := start(t, edgeOf(t, farConfig))
	within(t, 10*time.Second, edge.ready)
	within(t, 10*time.Second, edge.hubReady)
	if edge.isHub() || edge.siteOf() != "paris" {
		t.Errorf("edge: hub %v, site %q", edge.isHub(), edge.siteOf())
	}

	// Shared messages cross both ways, from edges too.
	atHub, atFar := hears(t, hub.shared, "coordinator.1"), hears(t, far.shared, "to.paris.1")
	reaches(t, edge.shared, "coordinator.1", atHub, 5*time.Second)
	reaches(t, hub.shared, "to.paris.1", atFar, 5*time.Second)
	// Those of a site's account do not.
	crossed := hears(t, hub.site, ">")
	same := hears(t, edge.site, "site.1")
	reaches(t, far.site, "site.1", same, 5*time.Second)
	within(t, 5*time.Second, hub.site.FlushWithContext)
	for len(crossed) > 0 {
		if m := <-crossed; m.Subject == "site.1" {
			t.Error("a message of the site's account came to another site")
		}
	}

	// Both stores are reached, each by its domain.
	keep(t, hub, hub.shared, hubDomain, "shared")
	js, err := newJetStream(edge.shared, hubDomain)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := js.KeyValue(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Put(t.Context(), "of.paris", []byte("1")); err != nil {
		t.Fatal(err)
	}
	site := keep(t, far, far.site, "", "site")

	// A site uses what the hub stores and does not decide what that is.
	denied, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := js.DeleteKeyValue(denied, "shared"); err == nil {
		t.Error("another site deleted a bucket of the hub")
	}
	if _, err := js.CreateKeyValue(denied, jetstream.KeyValueConfig{Bucket: "more"}); err == nil {
		t.Error("another site made a bucket at the hub")
	}
	// It keeps a copy of it.
	own, err := newJetStream(far.shared, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "COPY", MirrorDirect: true, Mirror: &jetstream.StreamSource{Name: "KV_shared", Domain: hubDomain},
	}); err != nil {
		t.Fatal(err)
	}
	consumer, err := own.OrderedConsumer(t.Context(), "COPY", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"$KV.shared.of.paris"}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil || string(m.Data()) != "1" {
		t.Errorf("the copy has %v, %v", m, err)
	}
	fromHub, err := newJetStream(hub.shared, siteDomainPrefix+"paris")
	if err != nil {
		t.Fatal(err)
	}
	denied, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := fromHub.AccountInfo(denied); err == nil {
		t.Error("the hub reaches the store of another site")
	}

	// A cut without a sign: the site goes on with its own store.
	lost := time.Now()
	w.set(true)
	if _, err := site.Put(t.Context(), "during.the.cut", []byte("1")); err != nil {
		t.Error(err)
	}
	watch, err := site.WatchAll(t.Context())
	if err != nil {
		t.Fatalf("a watch during the cut: %v", err)
	}
	if e := <-watch.Updates(); e == nil || e.Key() != "a" {
		t.Errorf("the watch begins with %v", e)
	}
	watch.Stop()
	keep(t, far, far.site, "", "new")
	within(t, 15*time.Second, func(ctx context.Context) error { return said.await(ctx, "Stale Connection") })
	within(t, 15*time.Second, func(ctx context.Context) error {
		for links := far.server.links(); len(links) > 0; links = far.server.links() {
			if !pause(ctx, minBackoff) {
				return fmt.Errorf("it still has %v", links)
			}
		}
		return nil
	})
	t.Logf("the cut was noticed after %v", time.Since(lost))
	healed := time.Now()
	w.set(false)
	w.breakAll() // what waited in the cable is older than the new connection
	reaches(t, edge.shared, "coordinator.1", atHub, 20*time.Second)
	reaches(t, hub.shared, "to.paris.1", atFar, 20*time.Second)
	t.Logf("messages crossed %v after the cut", time.Since(healed))
	if _, err := shared.Put(t.Context(), "of.paris", []byte("2")); err != nil {
		t.Error(err)
	}
	if links := far.server.links(); len(links) != 1 || links[0].Name != "dublin.dublin-1" {
		t.Errorf("links %v", links)
	}
}

// TestKeysThatAreWrittenMeanwhileAreListed: a key that was there before is among them, although its value is another one now.
func TestKeysThatAreWrittenMeanwhileAreListed(t *testing.T) {
	t.Parallel()
	j := join(t, single(t, "dublin"))
	s := j.Site()
	keys := []string{"busy.1", "busy.2", "busy.3"}
	for _, key := range keys {
		put(t, s, key, "first")
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for _, key := range keys {
		writing.Go(func() {
			for ctx.Err() == nil {
				s.Put(ctx, key, []byte("next"))
			}
		})
	}
	missed := 0
	for range 50 {
		if got, err := s.Keys(t.Context(), "busy."); err != nil || !slices.Equal(got, keys) {
			missed++
			t.Logf("%q, %v", got, err)
		}
	}
	stop()
	writing.Wait()
	if missed > 0 {
		t.Errorf("%d of 50 lists lack a key", missed)
	}
}

// The disk of one of three cores takes nothing more. Watches that NATS serves there hear nothing, and yet its heartbeats: they go on
// at another core. The limit of file sizes, which needs no privilege, stands for the full disk.
func TestWatchesLeaveACoreWhoseDiskIsFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	startCoreProcess(t, h, cfgs[2], "quiet", sizeVariable+"=200000")
	all := joinAll(t, cfgs[:2]...)
	within(t, 30*time.Second, func(ctx context.Context) error {
		if !AwaitWhole(ctx, all[0]) {
			return ctx.Err()
		}
		return nil
	})
	put(t, all[0].Site(), "watched.key", "before")
	var watches []*watched
	for i := range 20 { // NATS chooses where it serves each
		watches = append(watches, watch(t, all[i%2].Site(), "watched."))
	}
	for _, w := range watches {
		w.holds(t, map[string]string{"watched.key": "before"})
	}
	within(t, 60*time.Second, func(ctx context.Context) error {
		for i := 0; ; i++ {
			if _, err := all[0].Site().Put(ctx, fmt.Sprintf("filler%d", i%200), make([]byte, 2000)); err != nil {
				return err
			}
			if f, err := Look(ctx, all[0]); err == nil && i > 200 && slices.ContainsFunc(f.Streams, func(s StreamFacts) bool {
				return strings.HasSuffix(s.Name, "_site") && slices.ContainsFunc(s.Replicas, func(r ReplicaFacts) bool { return r.Server == "dublin.dublin-3" && !r.Current })
			}) {
				return nil
			}
		}
	})
	put(t, all[0].Site(), "watched.key", "after")
	go func() { // as nodes do, which renew their keys
		for n := 0; pause(t.Context(), 200*time.Millisecond); n++ {
			for i, l := range all {
				l.Site().Put(t.Context(), fmt.Sprintf("alive%d", i), fmt.Append(nil, n))
			}
		}
	}()
	for _, w := range watches {
		w.holds(t, map[string]string{"watched.key": "after"})
	}
}
