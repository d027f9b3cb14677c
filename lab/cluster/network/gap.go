package network

import (
	"math/rand/v2"
	"sync"
	"time"
)

// gap is one direction of all proxies between two hosts.
type gap struct {
	mu      sync.Mutex
	way     Way
	changed chan struct{} // closed at the next change
	traffic Traffic
}

// again is how long TCP waits before it sends a lost packet again.
const again = 200 * time.Millisecond

func (g *gap) set(w Way) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.way = w
	close(g.changed)
	g.changed = make(chan struct{})
}

// late is how long the next chunk is under way. A lost one comes when it was sent again.
func (g *gap) late() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.way.Delay
	if g.way.Jitter > 0 {
		d += rand.N(g.way.Jitter)
	}
	if g.way.Loss > 0 && rand.Float64() < g.way.Loss {
		d += again
	}
	return d
}

// open waits until the direction is not cut; false when all is done.
func (g *gap) open(done chan struct{}) bool {
	for {
		g.mu.Lock()
		cut, changed := g.way.Cut, g.changed
		g.mu.Unlock()
		if !cut {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (g *gap) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.traffic.Packets++
	g.traffic.Bytes += int64(n)
}
