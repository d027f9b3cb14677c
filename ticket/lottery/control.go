package lottery

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
)

// Control lets the chance follow the limits of a room, from what one process sees of it. It is no hard limit: what a ticket
// has been promised stays, other processes see visitors of their own, and a crowd that doubles within a round is noticed after
// it. Its memory does not grow with the visitors: it holds 96 KiB. The zero value is ready. Safe for concurrent use.
type Control struct {
	mu            sync.Mutex
	base          atomic.Uint64 // float64 bits of the chance in the current round
	until         atomic.Int64  // when that is to be found anew
	sessionsUntil anteroom.Time
	sessions      [2]crowd // this session duration and the one before
	tried         crowd    // in the current round
}

// gain is which part of the free seats the tickets of one round may fill. What they fill is seen three rounds later, and a loop
// with such a delay d does not swing beyond its target up to the gain d^d/(d+1)^(d+1): 27/256, a little more than this.
const gain = 0.1

// Seen takes a decision of the lottery.
func (c *Control) Seen(d *anteroom.Decision) {
	switch {
	case d.Verdict == anteroom.Admit:
		c.sessions[0].add(d.Ticket.ID)
		if d.Reason != anteroom.ReasonSession {
			c.tried.add(d.Ticket.ID)
		}
	case d.Reason == anteroom.ReasonWaiting:
		c.tried.add(d.Ticket.ID)
	}
}

// Base returns the chance for new tickets, between 0 and most: so many of those who tried in the last round as new_users_per_minute
// admits in a round, and as a tenth of the seats that are free. It changes only between rounds.
func (c *Control) Base(now anteroom.Time, s *anteroom.Settings, round time.Duration, most float64) float64 {
	if int64(now) < c.until.Load() {
		return min(most, math.Float64frombits(c.base.Load()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(now) < c.until.Load() {
		return min(most, math.Float64frombits(c.base.Load()))
	}
	if now >= c.sessionsUntil {
		c.sessions[1].take(&c.sessions[0])
		c.sessionsUntil = now.Add(s.SessionDuration)
	}
	tried := float64(c.tried.with(&c.tried))
	c.tried.clear()
	active := c.sessions[0].with(&c.sessions[1])
	target := min(float64(s.NewUsersPerMinute)*round.Minutes(), gain*float64(max(0, s.TotalActiveUsers-active)))
	base := most
	if target == 0 {
		base = 0
	} else if tried > target {
		base = min(most, target/tried)
	}
	c.base.Store(math.Float64bits(base))
	c.until.Store(int64(matures(now, round) - anteroom.Time(round/time.Microsecond)))
	return base
}

// crowd estimates how many different visitors were added, from how many bits are still unset (linear counting). The
// standard error is 0.3% at a million and 1.1% at two (Whang et al. 1990, with load n/m: the root of m(exp(n/m)-n/m-1), over n);
// it never says more than 3.3 million.
type crowd struct{ words [1 << 12]atomic.Uint64 }

const crowdBits = 64 << 12

func (c *crowd) add(id anteroom.ID) {
	bit := binary.BigEndian.Uint32(id[:]) % crowdBits
	word, mask := &c.words[bit/64], uint64(1)<<(bit%64)
	if word.Load()&mask == 0 { // which it mostly is not, and then nothing is written that other cores would have to read
		word.Or(mask)
	}
}

// take moves another crowd here.
func (c *crowd) take(from *crowd) {
	for i := range c.words {
		c.words[i].Store(from.words[i].Swap(0))
	}
}

func (c *crowd) clear() {
	for i := range c.words {
		c.words[i].Store(0)
	}
}

// with counts the visitors of two crowds, each once.
func (c *crowd) with(other *crowd) int {
	set := 0
	for i := range c.words {
		set += bits.OnesCount64(c.words[i].Load() | other.words[i].Load())
	}
	unset := max(1, crowdBits-set)
	return int(math.Round(crowdBits * math.Log(crowdBits/float64(unset))))
}
