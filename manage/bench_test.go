package manage

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/internal/freeport"
	"github.com/anteroom/anteroom/ticket/invite"
)

// crowded returns a backup with n rooms, which is the quick way to have them.
func crowded(t testing.TB, n int) []byte {
	t.Helper()
	m := open(t, Config{Link: memlink.New(), FirstToken: envToken})
	zone := must[anteroom.Zone](t)(m.CreateZone(t.Context(), root, "example.com"))
	for i := range n {
		r := shop(fmt.Sprintf("room%d", i))
		r.Routes[0].Host = fmt.Sprintf("shop%d.example.com", i)
		if i%3 == 0 {
			r.CookieSuffix = fmt.Sprintf("s%d", i)
		}
		if i%10 == 0 {
			r.CustomPageHTML = fmt.Sprintf("<p>page %d", i%100)
		}
		made := must[anteroom.Room](t)(m.CreateRoom(t.Context(), root, zone.ID, r))
		if i%20 == 0 {
			must[[]anteroom.Rule](t)(m.ChangeRules(t.Context(), root, zone.ID, made.ID, func([]anteroom.Rule) ([]anteroom.Rule, error) {
				return []anteroom.Rule{{Action: anteroom.ActionBypass, Expression: `ip.src in {192.0.2.0/24} or http.request.uri.path eq "/health"`}}, nil
			}))
		}
	}
	return backupOf(t, m, false)
}

// BenchmarkWrite is a change of a room's settings, from the call to the acknowledgement, on
// the store that production has. The doors come on top: server.BenchmarkWrite.
func BenchmarkWrite(b *testing.B) {
	for _, rooms := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			backup := crowded(b, rooms)
			link, err := natslink.Open(natslink.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer link.Close()
			m := open(b, Config{Link: link, FirstToken: envToken})
			must[Restored](b)(m.Restore(b.Context(), root, newReader(backup)))
			all := must[[]anteroom.Room](b)(m.Rooms(root, ""))
			zone, _ := m.State().ZoneNamed("example.com")
			var took []time.Duration
			n := 0
			for b.Loop() {
				n++
				begun := time.Now()
				must[anteroom.Room](b)(m.ChangeRoom(b.Context(), root, zone.ID, all[n*7919%len(all)].ID, func(r *anteroom.Room) error {
					r.TotalActiveUsers = 1000 + n
					return nil
				}))
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
		})
	}
}

// BenchmarkFollow is a change of a room's settings until it is in force at every one of four
// nodes in two sites: in memory, and as in production (two cores with an edge each, on one
// machine). The doors come on top.
func BenchmarkFollow(b *testing.B) {
	for _, rooms := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("memory/rooms=%d", rooms), func(b *testing.B) {
			w := memlink.NewWorld()
			benchFollow(b, rooms, []cluster.Link{w.Join("dublin", "a"), w.Join("dublin", "b"), w.Join("sydney", "c"), w.Join("sydney", "d")})
		})
		b.Run(fmt.Sprintf("nats/rooms=%d", rooms), func(b *testing.B) {
			hub, far := freeport.Address(b, 3), freeport.Address(b, 3)
			var links []cluster.Link
			for _, cfg := range []natslink.ClusterConfig{
				{Site: "dublin", Node: "a", Listen: hub}, {Site: "dublin", Node: "b", Join: []string{hub}},
				{Site: "sydney", Node: "c", Listen: far, Hub: []string{hub}}, {Site: "sydney", Node: "d", Join: []string{far}},
			} {
				cfg.Dir, cfg.Cluster, cfg.Secret = b.TempDir(), "shop", "a secret that nobody can guess"
				l, err := natslink.Join(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				links = append(links, l)
			}
			benchFollow(b, rooms, links)
		})
	}
}

func benchFollow(b *testing.B, rooms int, links []cluster.Link) {
	inForce := make(chan uint64, 100)
	var all []*Manager
	for _, l := range links {
		all = append(all, open(b, Config{Link: l, FirstToken: envToken, Prepare: func(_ context.Context, s *State) (func(bool), error) {
			return func(bool) { inForce <- s.Seq() }, nil
		}}))
	}
	must[Restored](b)(all[0].Restore(b.Context(), root, newReader(crowded(b, rooms))))
	for len(inForce) > 0 {
		<-inForce
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, m := range all {
		go m.Follow(ctx)
	}
	rest := must[[]anteroom.Room](b)(all[0].Rooms(root, ""))
	zone, _ := all[0].State().ZoneNamed("example.com")
	for range all[1:] {
		<-inForce
	}
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		begun := time.Now()
		must[anteroom.Room](b)(all[n%len(all)].ChangeRoom(b.Context(), root, zone.ID, rest[n*7919%len(rest)].ID, func(r *anteroom.Room) error {
			r.TotalActiveUsers = 1000 + n
			return nil
		}))
		for range all {
			<-inForce
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
}

// BenchmarkRedeem takes uses of invite codes, each by another visitor: of codes with one use, and all of the same code.
func BenchmarkRedeem(b *testing.B) {
	for name, spec := range map[string]InviteSpec{"each its code": {Count: maxInviteCodes}, "one code": {Count: 1, Uses: maxInviteUses}} {
		b.Run(name, func(b *testing.B) {
			link, err := natslink.Open(natslink.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer link.Close()
			m := open(b, Config{Link: link})
			zone := must[anteroom.Zone](b)(m.CreateZone(b.Context(), root, "example.com"))
			room := must[anteroom.Room](b)(m.CreateRoom(b.Context(), root, zone.ID, shop("sale")))
			_, codes, err := m.CreateInvites(b.Context(), root, zone.ID, room.ID, spec)
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					h, _ := invite.Read(codes[int(i)%len(codes)])
					if _, err := m.Redeem(b.Context(), room.ID, "", h, anteroom.ID{byte(i), byte(i >> 8), byte(i >> 16)}, AnyCode); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
