package bridge

import (
	"maps"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// joinEvery is how often an address may join in the long run: 10 times per second. The networks around it may join 4 and
	// 8 times as often.
	joinEvery = 100 * time.Millisecond
	// joinWithin is how long a network may save up joins: an address has 600 of them. A school with 300 people behind one
	// address, all of whom join in the same second and reload the page in the next, is not held up.
	joinWithin = time.Minute
	// maxNetworks bounds the networks that a budget remembers.
	maxNetworks = 100_000
)

// widths say how many addresses' worth of joins a network has: an address, and the wider networks of [anteroom.Networks].
var widths = [len(anteroom.Networks{})]time.Duration{1, 4, 8}

// Budget bounds how often each network joins at this node, or asks for something else of that cost. It remembers the networks
// that have joined lately, by the moment at which all their joins are back. The zero value is ready. Safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	back  map[uint32]anteroom.Time
	swept anteroom.Time
}

// Spend takes a join from the budgets of a client's networks, and reports whether each had one. Otherwise it takes none. A
// network that is zero has no bound, nor has one that comes when maxNetworks are remembered.
func (b *Budget) Spend(networks anteroom.Networks, now anteroom.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.back == nil {
		b.back = map[uint32]anteroom.Time{}
	}
	if len(b.back) >= maxNetworks && now.Sub(b.swept) >= time.Second {
		maps.DeleteFunc(b.back, func(_ uint32, at anteroom.Time) bool { return at <= now })
		b.swept = now
	}
	var after [len(networks)]anteroom.Time
	for i, n := range networks {
		after[i] = max(now, b.back[n]).Add(joinEvery / widths[i])
		if n != 0 && after[i].Sub(now) > joinWithin {
			return false
		}
	}
	for i, n := range networks {
		if _, known := b.back[n]; n != 0 && (known || len(b.back) < maxNetworks) {
			b.back[n] = after[i]
		}
	}
	return true
}
