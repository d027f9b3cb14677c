//go:build unix

package node

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/internal/freeport"
)

// joinNATS joins a core at an address, or an edge of the core there.
func joinNATS(b *testing.B, name, listen, join string) cluster.Link {
	b.Helper()
	cfg := natslink.ClusterConfig{Dir: b.TempDir(), Cluster: "bench", Site: "dublin", Node: name, Secret: "a secret of the benchmarks, long enough", Listen: listen}
	if join != "" {
		cfg.Join = []string{join}
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	l, err := natslink.Join(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

// BenchmarkDecisionNATS is BenchmarkDecision with newcomers at an edge and the site at an embedded core: mutual TLS,
// and each admission on its disk before it is told.
func BenchmarkDecisionNATS(b *testing.B) {
	for _, c := range []struct {
		name string
		rate int
	}{{"1000", 1000}, {"10000", 10_000}, {"50000", 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			at := freeport.Address(b, 3)
			core, room := benchNode(b, joinNATS(b, "core", at, ""), "core")
			warm(b, room) // so that it has the roles
			_, far := benchNode(b, joinNATS(b, "edge", "", at), "edge")
			warm(b, far)
			before := core.JournalStats()
			openLoop(b, far, c.rate)
			after := core.JournalStats()
			b.ReportMetric(float64(after.Records-before.Records)/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(after.Slowest.Microseconds()), "µs-slowest-append")
		})
	}
}

// BenchmarkIdleCore is what a core with a room and nobody there costs: the share of one processor core, user and
// system, over ten seconds.
func BenchmarkIdleCore(b *testing.B) {
	n, _ := benchNode(b, joinNATS(b, "core", freeport.Address(b, 3), ""), "core")
	for n.member().siteRole(cluster.Shards-1) == nil || n.member().siteRole(cluster.ShardOf(string(shop.ID))) == nil {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(2 * time.Second) // it has started
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const idle = 10 * time.Second
	for b.Loop() {
		before := spent()
		<-time.After(idle)
		b.ReportMetric(100*float64(spent()-before)/float64(idle), "%-of-a-core")
	}
}
