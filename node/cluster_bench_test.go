package node

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// benchNode is a node of a cluster that serves a room for everybody, and is ready.
func benchNode(b *testing.B, link cluster.Link, name string) (*Node, *Room) {
	b.Helper()
	room := shop
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = anteroom.MaxUsers, anteroom.MaxUsers, time.Hour
	n, err := New(b.Context(), Config{Link: link, Cluster: &Cluster{Site: "dublin", Node: name, Hub: true}})
	if err != nil {
		b.Fatal(err)
	}
	if err := n.Apply(b.Context(), []anteroom.Room{room}); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	b.Cleanup(func() { stop(); <-done })
	return n, n.Room(room.ID)
}

// warm waits until newcomers are let in, and returns one who is. Those before take no place: the room would
// queue until they are forgotten, and everybody after them would go to the coordinator and back.
func warm(b *testing.B, r *Room) anteroom.Ticket {
	b.Helper()
	for range 100_000 {
		v := newGuest().visit()
		v.NoJoin = true
		d := r.Decide(b.Context(), v)
		if d.Verdict == anteroom.Admit {
			return d.Ticket
		}
	}
	b.Fatal("nobody is let in")
	return anteroom.Ticket{}
}

// BenchmarkSessionInACluster is the request of an admitted visitor: it leaves no process.
func BenchmarkSessionInACluster(b *testing.B) {
	_, r := benchNode(b, memlink.NewWorld().Join("dublin", "dublin-1"), "dublin-1")
	v := anteroom.Visit{Ticket: warm(b, r), NewID: freshID()}
	b.ReportAllocs()
	for b.Loop() {
		if d := r.Decide(b.Context(), v); d.Reason != anteroom.ReasonSession {
			b.Fatal(d.Verdict, d.Reason)
		}
	}
}

// BenchmarkDecision is from a newcomer's request at one node to the answer of the site at
// another, at so many newcomers a second, open loop: who is late is not waited for.
func BenchmarkDecision(b *testing.B) {
	for _, c := range []struct {
		name string
		rate int
	}{{"1000", 1000}, {"10000", 10_000}, {"50000", 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			world := memlink.NewWorld()
			one, _ := benchNode(b, world.Join("dublin", "dublin-1"), "dublin-1")
			two, _ := benchNode(b, world.Join("dublin", "dublin-2"), "dublin-2")
			warm(b, one.Room(shop.ID))
			from := one // the one that does not decide
			if one.member().siteRole(cluster.ShardOf(string(shop.ID))) != nil {
				from = two
			}
			openLoop(b, from.Room(shop.ID), c.rate)
		})
	}
}

// openLoop sends rate newcomers a second for b.N of them and reports how long they waited.
func openLoop(b *testing.B, r *Room, rate int) {
	b.Helper()
	took := make([]time.Duration, b.N)
	var refused atomic.Int64
	var work sync.WaitGroup
	b.ResetTimer()
	began := time.Now()
	for i := range b.N {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if ahead := time.Until(due); ahead > 100*time.Microsecond {
			<-time.After(ahead)
		}
		v := newGuest()
		work.Go(func() {
			if d := r.Decide(b.Context(), v.visit()); d.Verdict != anteroom.Admit {
				refused.Add(1)
			}
			took[i] = time.Since(due)
		})
	}
	work.Wait()
	b.StopTimer()
	slices.SortFunc(took, cmp.Compare)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1e3 }
	b.ReportMetric(at(0.5), "µs-p50")
	b.ReportMetric(at(0.99), "µs-p99")
	b.ReportMetric(float64(refused.Load()), "not-admitted")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "visitors/s")
}
