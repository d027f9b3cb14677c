package gateway

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/anteroom/anteroom"
)

// budget bounds how often an address may do something, in constant memory: addresses share
// a fixed number of buckets by a keyed hash. Two that meet in one bucket share its rate;
// nobody can choose whom he meets.
type budget struct {
	seed  maphash.Seed
	rate  float64 // per second
	burst float64
	cells [4096]cell
}

type cell struct {
	mu    sync.Mutex
	level float64 // what has been used and not yet recovered
	at    anteroom.Time
}

func newBudget(rate, burst float64) *budget {
	return &budget{seed: maphash.MakeSeed(), rate: rate, burst: burst}
}

// restore gives one back.
func (b *budget) restore(a netip.Addr) {
	c := &b.cells[maphash.Comparable(b.seed, addressKey(a))%uint64(len(b.cells))]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = max(0, c.level-1)
}

// spend takes one from the address's budget and reports whether there was one.
func (b *budget) spend(a netip.Addr, now anteroom.Time) bool {
	c := &b.cells[maphash.Comparable(b.seed, addressKey(a))%uint64(len(b.cells))]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != 0 && now > c.at {
		c.level = max(0, c.level-now.Sub(c.at).Seconds()*b.rate)
	}
	if now > c.at {
		c.at = now
	}
	if c.level+1 > b.burst {
		return false
	}
	c.level++
	return true
}
