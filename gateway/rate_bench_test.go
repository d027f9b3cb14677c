package gateway

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// paced is how long requests took that were sent at a rate, and what the server needed for one.
type paced struct {
	usage
	took  []time.Duration
	shown int // waiting pages
}

// pace sends n requests at so many a second, on the clients in turn, whatever the answers take: each counts from the moment at
// which it was due where the answer before it on its connection came later than that.
func (r role) pace(b *testing.B, clients []client, rate, n int) (p paced) {
	b.Helper()
	before := r.ask()
	p.took = make([]time.Duration, n)
	var all sync.WaitGroup
	var mu sync.Mutex
	began := time.Now().Add(10 * time.Millisecond)
	for i := range clients {
		all.Go(func() {
			v, wait, shown := &clients[i], time.NewTimer(0), 0
			defer wait.Stop()
			for k := i; k < n; k += len(clients) {
				from := began.Add(time.Duration(k) * time.Second / time.Duration(rate))
				if ahead := time.Until(from); ahead > 0 {
					wait.Reset(ahead)
					<-wait.C
					from = time.Now()
				}
				page, err := v.roundTrip()
				if err != nil {
					b.Error(err)
					return
				}
				p.took[k] = time.Since(from)
				if page {
					shown++
				}
			}
			mu.Lock()
			p.shown += shown
			mu.Unlock()
		})
	}
	all.Wait()
	after := r.ask()
	p.usage = usage{(after.cpu - before.cpu) / time.Duration(n), (after.mallocs - before.mallocs) / int64(n)}
	return p
}

// roundTrip sends the request and reads the answer, with less work than net/http's client. It reports whether the answer is the waiting page.
func (v *client) roundTrip() (page bool, err error) {
	if _, err := v.Write(v.says()); err != nil {
		return false, err
	}
	length := -1
	for first := true; ; first = false {
		line, err := v.in.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return false, fmt.Errorf("%s", line)
		case len(line) == 0:
			_, err := v.in.Discard(length)
			return page, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return false, err
			}
		case bytes.EqualFold(name, []byte("Refresh")):
			page = true
		}
	}
}

// syncs returns how long a disk takes to sync some kilobytes.
func syncs(b *testing.B, dir string) (took []time.Duration) {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for range 300 {
		begun := time.Now()
		if _, err := f.Write(make([]byte, 4<<10)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	return took
}

// BenchmarkNewVisitors sends new visitors at a rate, with the journal on disk, and reports how long they waited: to be admitted and proxied to
// an origin, by a server with one core (budget: 10,000 a second with a p99 of less than 20 ms over the disk's), and to get a place and the page, by
// one with two (budget: 20,000 a second). new-µs is the server's processor time for each; what it has is 100 at those rates. In alternating rounds,
// visitors who have been there before make as many requests: new/known is the ratio of times. The disk's own times are of the same run.
func BenchmarkNewVisitors(b *testing.B) {
	const many = 5
	for _, c := range []struct {
		role string
		rate int
	}{{"newcomers", 1000}, {"newcomers", 4000}, {"newcomers", 10_000}, {"joining", 1000}, {"joining", 20_000}} {
		b.Run(fmt.Sprint(c.role, "-", c.rate), func(b *testing.B) {
			dir := b.TempDir()
			played := c.role + " " + dir
			if c.role == "newcomers" {
				played += " " + startRole(b, "bare 1024").addr
			}
			known := startRole(b, played)
			fresh := known
			fresh.cookies, fresh.headers = nil, someAddress
			of, news := known.clients(b, 256), fresh.clients(b, 256)
			disk := syncs(b, dir)
			known.pace(b, of, c.rate, c.rate/2) // warm up, all of them: a connection without a request is soon closed
			fresh.pace(b, news, c.rate, c.rate/2)
			for b.Loop() {
				var took []time.Duration
				var cpu, ratio []float64
				shown := 0
				for range many {
					k, p := known.pace(b, of, c.rate, c.rate), fresh.pace(b, news, c.rate, c.rate)
					took, cpu, ratio = append(took, p.took...), append(cpu, float64(p.cpu)/1e3), append(ratio, float64(p.cpu)/float64(k.cpu))
					shown += p.shown
				}
				disk = append(disk, syncs(b, dir)...)
				for _, list := range [][]time.Duration{disk, took} {
					slices.Sort(list)
				}
				at := func(list []time.Duration, of int) float64 {
					return float64(list[len(list)*of/100].Microseconds()) / 1e3
				}
				b.ReportMetric(at(took, 50), "p50-ms")
				b.ReportMetric(at(took, 99), "p99-ms")
				b.ReportMetric(at(disk, 50), "disk-p50-ms")
				b.ReportMetric(at(disk, 99), "disk-p99-ms")
				b.ReportMetric(median(cpu), "new-µs")
				b.ReportMetric(median(ratio), "new/known")
				b.ReportMetric(float64(shown)/float64(len(took)), "shown-the-page")
			}
		})
	}
}

func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }

// BenchmarkPeersLatency sends 2,000 requests a second for 1 kB of an origin: straight, through nginx, and through Anteroom with a room and a proof,
// in alternating rounds, and reports what the two add to the slowest hundredth (budget: Anteroom at most 1 ms more than nginx).
func BenchmarkPeersLatency(b *testing.B) {
	const many, rate, seconds = 11, 2000, 2
	origin := startRole(b, "bare 1024")
	on := startRole(b, "room-on "+origin.addr)
	nginx := startPeer(b, "nginx", origin.addr)
	nginx.cookies, origin.cookies = on.cookies, on.cookies
	roles := map[string]role{"direct": origin, "nginx": nginx, "on": on}
	clients := map[string][]client{}
	for name, r := range roles {
		clients[name] = r.clients(b, 64)
		r.pace(b, clients[name], rate, rate) // warm up
	}
	for b.Loop() {
		p50, p99, over := map[string][]float64{}, map[string][]float64{}, []float64(nil)
		for range many {
			for name, r := range roles {
				p := r.pace(b, clients[name], rate, rate*seconds)
				slices.Sort(p.took)
				p50[name] = append(p50[name], float64(p.took[len(p.took)/2].Microseconds())/1e3)
				p99[name] = append(p99[name], float64(p.took[len(p.took)*99/100].Microseconds())/1e3)
			}
			over = append(over, p99["on"][len(over)]-p99["nginx"][len(over)])
		}
		for name := range roles {
			b.ReportMetric(median(p50[name]), name+"-p50-ms")
			b.ReportMetric(median(p99[name]), name+"-p99-ms")
		}
		b.ReportMetric(median(over), "on-nginx-p99-ms")
	}
}
