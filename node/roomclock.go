package node

import (
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// roomClock is the room time of a shard, which another process defines. Safe for concurrent use.
type roomClock struct {
	own clock // of this process

	mu    sync.Mutex
	room  engine.Clock
	step  time.Duration // total by which answers have set it
	trip  time.Duration // of the newest answer
	heard time.Time     // the newest answer
}

func (c *roomClock) now() anteroom.Time { return c.at(time.Now()) }

// at returns the room time of a reading of the process's clock.
func (c *roomClock) at(t time.Time) anteroom.Time {
	now, _ := c.read(t)
	return now
}

// read is at, and also returns by how much answers have set the clock so far.
func (c *roomClock) read(t time.Time) (now anteroom.Time, step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room.Now(c.own.at(t)), c.step
}

// hear takes an answer and returns by how much it has set the clock (see engine.Clock.Heard). An answer without an echo
// says nothing about the time, because it is not known how old it is.
func (c *roomClock) hear(echo, said anteroom.Time) (step time.Duration) {
	if echo == 0 {
		return 0
	}
	t := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if trip := c.room.Now(c.own.at(t)).Sub(echo); trip >= 0 {
		c.trip, c.heard = trip, t
	}
	step = c.room.Heard(c.own.at(t), echo, said)
	c.step += step
	return step
}

// atLeast moves a clock that does not know room time yet forward to t, and returns by how much.
func (c *roomClock) atLeast(t anteroom.Time) (step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room.Guess(c.own.now(), t)
}

// synced reports whether room time is known.
func (c *roomClock) synced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room.Synced()
}

// fresh is how long after an answer a clock still shows room time well enough to begin a coordinator by it: clocks drift
// apart by a millisecond meanwhile. It is longer than roles of a silent member have no holder.
const fresh = 10 * time.Second

// lately returns the room time of a reading of the process's clock, if an answer has told it lately.
func (c *roomClock) lately(t time.Time) (now anteroom.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.room.Synced() || t.Sub(c.heard) > fresh {
		return 0, false
	}
	return c.room.Now(c.own.at(t)), true
}

// ClockStatus compares a clock of this process with the one that it follows.
type ClockStatus struct {
	Synced bool          `json:"synced"`
	Offset time.Duration `json:"offset_ns"` // room time less this machine's wall clock
	Trip   time.Duration `json:"trip_ns"`   // of the newest answer
	Heard  time.Time     `json:"heard"`     // the newest answer; zero: never
}

func (c *roomClock) status() ClockStatus {
	t := time.Now()
	now := c.at(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClockStatus{Synced: c.room.Synced(), Offset: now.Sub(anteroom.TimeOf(t)), Trip: c.trip, Heard: c.heard}
}
