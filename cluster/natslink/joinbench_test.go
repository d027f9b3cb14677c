//go:build unix

package natslink

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// percentiles reports p50 and p99 of what took as long.
func percentiles(b *testing.B, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// sites are the shapes that are measured: one core, and three.
func sites(b *testing.B, run func(b *testing.B, links []*joined, cfgs []ClusterConfig)) {
	for _, replicas := range []int{1, 3} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			cfgs := []ClusterConfig{single(b, "dublin")}
			if replicas == 3 {
				cfgs = members(b, "dublin")
			}
			for i := range cfgs {
				cfgs[i].Log = nil
			}
			run(b, joinAll(b, cfgs...), cfgs)
		})
	}
}

// BenchmarkJournalAppend has one writer to a journal, and 16 journals written at once.
func BenchmarkJournalAppend(b *testing.B) {
	sites(b, func(b *testing.B, links []*joined, _ []ClusterConfig) {
		for _, journals := range []int{1, cluster.Shards} {
			b.Run(fmt.Sprintf("journals=%d", journals), func(b *testing.B) {
				record := make([]byte, 512)
				var mu sync.Mutex
				var all []time.Duration
				var wg sync.WaitGroup
				books := make([]*book, journals)
				for i := range books {
					books[i] = journal(b, links[i%len(links)], fmt.Sprintf("site.%02d", i))
				}
				b.ResetTimer()
				for i, k := range books {
					wg.Go(func() {
						var took []time.Duration
						for n := i; n < b.N; n += journals {
							began := time.Now()
							if err := k.Append(b.Context(), record); err != nil {
								b.Error(err)
								return
							}
							took = append(took, time.Since(began))
						}
						mu.Lock()
						defer mu.Unlock()
						all = append(all, took...)
					})
				}
				wg.Wait()
				percentiles(b, all)
			})
		}
	})
}

// BenchmarkPush is a put at the hub until every copy at the hub, at an edge and at another
// site has told it: 30 watches.
func BenchmarkPush(b *testing.B) {
	sites(b, func(b *testing.B, links []*joined, cfgs []ClusterConfig) {
		far := siteAt(b, "oslo", cfgs...)
		far.Log = nil
		edge := edgeOf(b, cfgs...)
		edge.Log = nil
		links = append(links, joinAll(b, far, edge)...)
		const watches = 30
		told := make(chan string, watches)
		synced := make(chan struct{}, watches)
		for i := range watches {
			go links[i%len(links)].Watch(b.Context(), "room", func(c cluster.Change) {
				if c.Synced {
					synced <- struct{}{}
				} else {
					told <- string(c.Value[:20])
				}
			})
		}
		for range watches {
			<-synced
		}
		var took []time.Duration
		b.ResetTimer()
		for n := range b.N {
			value := fmt.Appendf(make([]byte, 0, 4096), "%020d", n)
			began := time.Now()
			if _, err := links[0].Put(b.Context(), "room", value[:4096]); err != nil {
				b.Fatal(err)
			}
			for range watches {
				if got := <-told; got != string(value[:20]) {
					b.Fatalf("%q", got)
				}
			}
			took = append(took, time.Since(began))
		}
		percentiles(b, took)
	})
}

// BenchmarkLease is one renewal.
func BenchmarkLease(b *testing.B) {
	sites(b, func(b *testing.B, links []*joined, _ []ClusterConfig) {
		var rev uint64
		var took []time.Duration
		b.ResetTimer()
		for range b.N {
			began := time.Now()
			var err error
			if rev, err = links[0].Site().Lease(b.Context(), "members.x", make([]byte, 300), rev, 3*time.Second); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		percentiles(b, took)
	})
}

// BenchmarkMessage is a request and its answer: within a process, and from an edge to the
// core's process, each also while the asking process appends to a journal all the time.
func BenchmarkMessage(b *testing.B) {
	cfg := single(b, "dublin")
	cfg.Log = nil
	edge := edgeOf(b, cfg)
	edge.Log = nil
	links := joinAll(b, cfg, edge)
	stop, err := links[0].Site().Subscribe("ask", func(m cluster.Message) { m.Reply(m.Data) })
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for i, name := range []string{"process", "edge"} {
		for _, busy := range []bool{false, true} {
			b.Run(fmt.Sprintf("from=%s/appending=%t", name, busy), func(b *testing.B) {
				data := make([]byte, 200)
				answered(b, links[i].Site(), "ask", data)
				ctx, cancel := context.WithCancel(b.Context())
				var wg sync.WaitGroup
				if busy {
					k := journal(b, links[i], "site.00")
					wg.Go(func() {
						for ctx.Err() == nil {
							if err := k.Append(ctx, data); err != nil && ctx.Err() == nil {
								b.Error(err)
								return
							}
						}
					})
				}
				var took []time.Duration
				b.ResetTimer()
				for range b.N {
					began := time.Now()
					if _, err := links[i].Site().Request(b.Context(), "ask", data); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				percentiles(b, took)
				cancel()
				wg.Wait()
			})
		}
	}
}

// BenchmarkCopyGet is a read of a shared key.
func BenchmarkCopyGet(b *testing.B) {
	cfg := single(b, "dublin")
	cfg.Log = nil
	l := joinAll(b, cfg)[0]
	put(b, l, "a", string(make([]byte, 4<<10)))
	b.ResetTimer()
	for range b.N {
		if _, err := l.Get(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}
