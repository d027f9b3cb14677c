package coordinator

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// ready is a host with a room for each number below rooms and ten sites that have reported.
func ready(b *testing.B, rooms int) (h *Host, keys [][16]byte, sites []engine.SiteKey) {
	b.Helper()
	plans := map[anteroom.RoomID]anteroom.Room{}
	for i := range rooms {
		r := roomOf(i, anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 1000}).WithDefaults()
		plans[r.ID] = r
		key, err := hex.DecodeString(string(r.ID))
		if err != nil {
			b.Fatal(err)
		}
		keys = append(keys, [16]byte(key))
	}
	link := memlink.New()
	h = New(Config{Link: link, Plan: func(id anteroom.RoomID) (anteroom.Room, bool) { r, ok := plans[id]; return r, ok }})
	for shard := range cluster.Shards {
		h.Gain(shard, 1)
	}
	b.Cleanup(func() {
		for shard := range cluster.Shards {
			h.Lose(shard)
		}
		link.Close()
	})
	for i := range 10 {
		sites = append(sites, engine.SiteKey{Name: fmt.Sprint("site", i), Incarnation: 1})
	}
	return h, keys, sites
}

// reports gives the host one report of each site for each room, in frames as they come from sites.
func reports(h *Host, keys [][16]byte, sites []engine.SiteKey, seq uint64) {
	now := anteroom.TimeOf(time.Now())
	for _, site := range sites {
		frames := map[int][]byte{}
		for _, key := range keys {
			r := engine.Report{From: site, Epoch: 1, Seq: seq, Sent: now, Full: seq == 1, Ask: true,
				Arrivals: []engine.Arrival{{ID: anteroom.ID{byte(seq), byte(seq >> 8), key[14], key[15]}, Key: now, Due: now.Add(20 * time.Second)}}}
			shard := cluster.ShardOf(hex.EncodeToString(key[:]))
			frames[shard] = cluster.AppendFrame(frames[shard], key, r.AppendWire(nil))
		}
		for shard, frame := range frames {
			h.shards[shard].Load().receive(cluster.Message{Data: frame})
		}
	}
}

// running waits for the rooms' coordinators.
func running(b *testing.B, h *Host, rooms int) {
	b.Helper()
	deadline := time.After(10 * time.Second)
	for {
		n := 0
		for i := range h.shards {
			for _, r := range h.shards[i].Load().all() {
				r.mu.Lock()
				if r.machine != nil {
					n++
				}
				r.mu.Unlock()
			}
		}
		if n == rooms {
			return
		}
		select {
		case <-deadline:
			b.Fatalf("%d of %d coordinators", n, rooms)
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// BenchmarkReports: the reports of 10 sites for 1,000 rooms, answered, on one goroutine.
func BenchmarkReports(b *testing.B) {
	h, keys, sites := ready(b, 1000)
	reports(h, keys, sites, 1)
	running(b, h, 1000)
	seq := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		reports(h, keys, sites, seq)
	}
	b.ReportMetric(float64(b.N)*float64(len(keys)*len(sites))/b.Elapsed().Seconds(), "reports/s")
}

// BenchmarkTakeOver: from the first reports of 625 rooms in a line to the last coordinator that
// may speak, its record stored.
func BenchmarkTakeOver(b *testing.B) {
	for b.Loop() {
		h, keys, sites := ready(b, 625)
		reports(h, keys, sites, 1)
		running(b, h, 625)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/take-over")
}
