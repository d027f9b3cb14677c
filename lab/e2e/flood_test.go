package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// flooded is a room that admits five visitors a second, with short sessions.
const flooded = `  - name: shop
    host: "*"
    total_active_users: 100
    new_users_per_minute: 300
    session_duration: 10s`

// Requests without cookies come for half a minute, beside one honest visitor per second from a network of his own: every one of
// them is admitted, half of them within two seconds, and the flood takes no more seats than its networks may.
func TestFloodLeavesSeatsToVisitors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ perSecond, addresses, most int }{
		{0, 1, 0},
		{20, 1, 12}, // in a minute, an eighth of the lower limit
		{1000, 1, 12},
		{100, 1000, 50}, // a half
	} {
		t.Run(fmt.Sprintf("%d a second from %d", c.perSecond, c.addresses), func(t *testing.T) {
			t.Parallel()
			const seconds = 30
			g := startGate(t, flooded, "trusted_proxies: [127.0.0.1]\nlog: {level: warn}")
			before := cpuOf(t, g)
			stop := make(chan struct{})
			var all sync.WaitGroup
			var sent, taken atomic.Int64
			const connections = 8
			for i := range min(connections, c.perSecond) {
				all.Go(func() { flood(g, stop, i, min(connections, c.perSecond), c.perSecond, c.addresses, &sent, &taken) })
			}
			var mu sync.Mutex
			var waits []time.Duration
			var honest sync.WaitGroup
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for n := range seconds {
				honest.Go(func() {
					took := entersFrom(newVisitor(t, g), fmt.Sprintf("%d.9.%d.1", 30+n, n))
					mu.Lock()
					defer mu.Unlock()
					waits = append(waits, took)
				})
				<-tick.C
			}
			honest.Wait()
			used := cpuOf(t, g) - before
			close(stop)
			all.Wait()
			slices.Sort(waits)
			each := "none"
			if n := sent.Load(); n > 0 {
				each = (used / time.Duration(n)).Round(time.Microsecond).String()
			}
			t.Logf("%d requests, %d of them admitted; honest visitors waited %v at the median, %v at most; %v of CPU, for each request %s", sent.Load(), taken.Load(),
				waits[len(waits)/2].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond), used, each)
			if median := waits[len(waits)/2]; median > 2*time.Second {
				t.Errorf("honest visitors waited %v at the median", median)
			}
			if last := waits[len(waits)-1]; last > 10*time.Second {
				t.Errorf("an honest visitor waited %v while seats were free", last)
			}
			if n := taken.Load(); n > int64(c.most) {
				t.Errorf("%d requests of the flood were admitted, %d may be", n, c.most)
			}
			if took := entersFrom(newVisitor(t, g), "90.9.9.1"); took > 10*time.Second {
				t.Errorf("after the flood a visitor waited %v", took)
			}
		})
	}
}

// flood sends its part of the requests on one connection, each as if nothing had come before it.
func flood(g *gate, stop chan struct{}, part, parts, perSecond, addresses int, sent, taken *atomic.Int64) {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(time.Second * time.Duration(parts) / time.Duration(perSecond))
	defer tick.Stop()
	for n := part; ; n += parts {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		req, err := http.NewRequest(http.MethodGet, g.url("/"), nil)
		if err != nil {
			return
		}
		from := n % addresses
		req.Header.Set("Accept", "text/html")
		req.Header.Set("X-Forwarded-For", fmt.Sprintf("20.%d.%d.1", from/250, from%250))
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		sent.Add(1)
		if res.Header.Get(shop.Mark) != "" {
			taken.Add(1)
		}
	}
}

// entersFrom is how long a visitor with an address waits who does what the waiting page says, at most half a minute.
func entersFrom(v *visitor, address string) time.Duration {
	began := time.Now()
	for {
		a, err := v.try(http.MethodGet, "/", "", "X-Forwarded-For", address)
		if took := time.Since(began); err != nil || a.admitted() || took > 30*time.Second {
			if err != nil {
				v.t.Error(err)
			}
			v.try(http.MethodGet, "/picture", "", "X-Forwarded-For", address) // as a browser does
			return took
		}
		<-time.After(after(a)) // what the page does
	}
}

// cpuOf is the time that the gate's process has spent on processors.
func cpuOf(t *testing.T, g *gate) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") "))
	fields, ticks := bytes.Fields(rest), 0
	for _, i := range []int{11, 12} { // in user mode and in the kernel, in hundredths of a second
		n, err := strconv.Atoi(string(fields[i]))
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
