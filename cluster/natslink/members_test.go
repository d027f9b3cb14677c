//go:build unix

package natslink

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// leaderOf returns the place of the server that leads the stream among the cores.
func leaderOf(t *testing.T, all []*attachment, stream string) int {
	t.Helper()
	i := slices.IndexFunc(all, func(a *attachment) bool { return a.server.srv().JetStreamIsStreamLeader(accountSite, stream) })
	if i < 0 {
		t.Fatalf("nobody leads %s", stream)
	}
	return i
}

// TestThreeCores goes through the life of a site: start, stop of the leader, return,
// replacement of a core that is lost with everything.
func TestThreeCores(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	all := startSite(t, cfgs...)
	edge := start(t, edgeOf(t, cfgs...))
	within(t, 10*time.Second, edge.ready)
	keep(t, all[0], all[0].site, "", "site")
	js, err := newJetStream(edge.site, "")
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "site")
	if err != nil {
		t.Fatal(err)
	}
	// put writes until it is acknowledged, and says how long that took.
	puts := 0
	put := func() time.Duration {
		t.Helper()
		began := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := kv.Put(ctx, "n", fmt.Append(nil, puts))
			cancel()
			if err == nil {
				puts++
				return time.Since(began)
			}
			if time.Since(began) > 20*time.Second {
				t.Fatalf("write %d: %v", puts, err)
			}
		}
	}
	put()

	// A graceful stop of the leader hands over.
	gone := leaderOf(t, all, "KV_site")
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop(t, all[gone]) }()
	worst := time.Duration(0)
	for ended := false; !ended; {
		select {
		case <-stopped:
			ended = true
		default:
		}
		worst = max(worst, put())
	}
	worst = max(worst, put())
	t.Logf("the longest write while the leader stopped took %v", worst)
	if worst > 3500*time.Millisecond { // an election that nobody was asked to begin waits for 4 s or more
		t.Errorf("a write took %v while the leader stopped: leadership was not handed over", worst)
	}

	// It comes back with its store and catches up.
	put()
	all[gone] = start(t, cfgs[gone])
	within(t, 20*time.Second, all[gone].ready)
	other := all[(gone+1)%3]
	var f Facts
	current := func(ctx context.Context) error {
		for {
			var err error
			f, err = other.look(ctx)
			if err == nil && len(f.Streams) == 1 && len(f.Streams[0].Replicas) == 2 && f.Core != nil && len(f.Core.Routes) == 2 && f.Core.Routes[0].RTT != 0 && f.Core.Leader != "" &&
				!slices.ContainsFunc(f.Streams[0].Replicas, func(r ReplicaFacts) bool { return !r.Current || r.Offline }) {
				return nil
			}
			if ctx.Err() != nil {
				return fmt.Errorf("replicas are not current: %+v, %v", f, err)
			}
		}
	}
	within(t, 20*time.Second, current)
	if f.Core == nil || len(f.Core.Routes) != 2 || f.Core.Routes[0].RTT == 0 || f.Core.Leader == "" || f.Server != "dublin."+other.cfg.Node || f.Core.Store == 0 {
		t.Errorf("facts %+v, core %+v", f, f.Core)
	}
	if all := f.Faults(); len(all) > 0 {
		t.Errorf("a whole site has faults: %v", all)
	}
	if f, err := edge.look(t.Context()); err != nil || len(f.Streams) != 1 || f.Streams[0].Leader == "" || f.RTT == 0 {
		t.Errorf("an edge's facts %+v, %v", f, err)
	}

	// A machine is lost with its disk; another one of its name gets everything.
	same := (gone + 2) % 3
	stop(t, all[same])
	put()
	cfgs[same].Dir = t.TempDir()
	other = all[gone]
	all[same] = start(t, cfgs[same])
	within(t, 20*time.Second, all[same].ready)
	within(t, 30*time.Second, current)

	// A machine is lost with its disk; another core takes its place under the same address.
	lost := (gone + 1) % 3
	stop(t, all[lost])
	put()
	cfgs[lost].Dir = t.TempDir()
	dead := cfgs[lost].Node
	cfgs[lost].Node = "dublin-9"
	remover := all[(lost+1)%3]
	if err := edge.removePeer(t.Context(), peerID("dublin."+dead), dead, leastCores); err == nil {
		t.Error("an edge removed a core")
	}
	if err := remover.removePeer(t.Context(), peerID("dublin.dublin-77"), "dublin-77", leastCores); err == nil {
		t.Error("a core that never was is removed")
	}
	all[lost] = start(t, cfgs[lost])
	within(t, 20*time.Second, all[lost].ready)
	within(t, 20*time.Second, func(ctx context.Context) error {
		return remover.removePeer(ctx, peerID("dublin."+dead), dead, leastCores)
	})
	other = remover
	within(t, 30*time.Second, current)
	put()
	// The leader knows the last value; replicas may be behind.
	m, err := edge.site.Request("$JS.API.STREAM.MSG.GET.KV_site", []byte(`{"last_by_subj":"$KV.site.n"}`), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if want := base64.StdEncoding.EncodeToString(fmt.Append(nil, puts-1)); !strings.Contains(string(m.Data), want) {
		t.Errorf("%s; want %d", m.Data, puts-1)
	}
}
