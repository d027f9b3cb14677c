package gateway

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const forwardedFor = "X-Forwarded-For: "

// paced is how long requests took that were sent at a rate, and what the server needed for one.
type paced struct {
	usage
	took  []time.Duration // ascending
	shown int             // waiting pages
}

func (p paced) at(q float64) time.Duration { return p.took[int(q*float64(len(p.took)-1))] }

// pace sends n requests at so many a second, on the clients in turn, whatever the answers take: each counts from the moment at
// which it was due where the answer before it on its connection came later than that. Requests with forwardedFor come from
// another address each.
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
			_, address, others := bytes.Cut(v.message, []byte(forwardedFor))
			for k := i; k < n; k += len(clients) {
				from := began.Add(time.Duration(k) * time.Second / time.Duration(rate))
				if ahead := time.Until(from); ahead > 0 {
					wait.Reset(ahead)
					<-wait.C
					from = time.Now()
				}
				if others {
					for j := range 4 {
						strconv.AppendInt(address[4*j:4*j], 100+rand.Int64N(100), 10)
					}
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
	slices.Sort(p.took)
	return p
}

// roundTrip sends the request and reads the answer, with less work than net/http's client. It reports whether the answer is the waiting page.
func (v *client) roundTrip() (page bool, err error) {
	if _, err := v.Write(v.message); err != nil {
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

// syncs returns how long a disk takes to sync some kilobytes, ascending.
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
	slices.Sort(took)
	return took
}

// BenchmarkNewcomers sends new visitors at a rate, with the journal on disk, and reports how long they waited: to be admitted and proxied to
// an origin, by a server with one core (budget: 10,000 a second with a p99 of less than 20 ms over the disk's), and to get a place and the page, by
// one with two (budget: 20,000 a second). µs is the server's processor time; more than 100 is more than it has. The disk's own times are of
// the same run.
func BenchmarkNewcomers(b *testing.B) {
	const seconds = 5
	for _, c := range []struct {
		role string
		rate int
	}{{"newcomers", 3000}, {"newcomers", 10_000}, {"joining", 3000}, {"joining", 20_000}} {
		b.Run(fmt.Sprint(c.role, "-", c.rate), func(b *testing.B) {
			dir := b.TempDir()
			played := c.role + " " + dir
			if c.role == "newcomers" {
				played += " " + startRole(b, "bare 1024").addr
			}
			r := startRole(b, played)
			r.headers = forwardedFor + "100.100.100.100\r\n"
			clients := r.clients(b, 256)
			disk := syncs(b, dir)
			r.pace(b, clients, c.rate/4, c.rate/4) // warm up
			for b.Loop() {
				p := r.pace(b, clients, c.rate, seconds*c.rate)
				disk = append(disk, syncs(b, dir)...)
				slices.Sort(disk)
				ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
				b.ReportMetric(ms(p.at(0.5)), "p50-ms")
				b.ReportMetric(ms(p.at(0.99)), "p99-ms")
				b.ReportMetric(ms(disk[len(disk)/2]), "disk-p50-ms")
				b.ReportMetric(ms(disk[len(disk)*99/100]), "disk-p99-ms")
				b.ReportMetric(float64(p.cpu.Nanoseconds())/1e3, "µs")
				b.ReportMetric(float64(p.shown)/float64(len(p.took)), "shown-the-page")
			}
		})
	}
}

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
				p50[name] = append(p50[name], float64(p.at(0.5).Nanoseconds())/1e6)
				p99[name] = append(p99[name], float64(p.at(0.99).Nanoseconds())/1e6)
			}
			over = append(over, p99["on"][len(over)]-p99["nginx"][len(over)])
		}
		median := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
		for name := range roles {
			b.ReportMetric(median(p50[name]), name+"-p50-ms")
			b.ReportMetric(median(p99[name]), name+"-p99-ms")
		}
		b.ReportMetric(median(over), "on-nginx-p99-ms")
	}
}
