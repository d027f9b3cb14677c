package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Clock is the room time of one process that is not the coordinator's: its own monotonic
// clock plus an offset that follows what the coordinator says. Local times are moments of
// the process's clock, which never goes back and whose origin does not matter. The zero
// Clock shows local time until the first sample. It is a value over calls and time like the
// machines: not safe for concurrent use.
//
// A host asks a Clock for the time of every call to a machine, so that durations are
// measured in room time. After the first sample, room time runs between 1-1e-4 and 1+1e-4
// of local time, which [RateHold] has a margin for.
type Clock struct {
	offset anteroom.Time // room time less local time
	slewed anteroom.Time // local: up to when offset has been corrected
	last   anteroom.Time // the newest Now
	since  anteroom.Time // room: when it was set last; echoes of before that are in another time
	synced bool

	samples [clockSamples]clockSample // the latest, as a ring
	first   anteroom.Time             // local: the first answer
	heard   int
}

// clockSamples is how many answers "lately" is: eight seconds of a queue's heartbeats.
const clockSamples = 16

const (
	// maxTrip bounds a round trip that is believed.
	maxTrip = 10 * time.Second
	// quickTrip is a round trip by which a clock is set at once: the error is at most TouchDelay. When all
	// answers of slowFor are slower, the best of them is taken.
	quickTrip = 2 * TouchDelay
	slowFor   = 20 * time.Second
	// tinyStep is a step that spoils no sample. Clocks that slew towards each other step ahead of a guess by microseconds, and often:
	// if each such step made the answer on its way worthless, a process far from the coordinator would not learn the time.
	tinyStep = time.Millisecond
)

// clockSample is an answer of the coordinator: how long it took and the offset it implies.
type clockSample struct {
	trip   time.Duration
	offset anteroom.Time
}

// NewClock returns a clock that shows local time as room time until it hears otherwise.
func NewClock() *Clock { return &Clock{} }

// Now is the room time at a local moment. It never goes back, except that the first sample
// may set it back once.
func (c *Clock) Now(local anteroom.Time) anteroom.Time {
	c.slew(local)
	c.last = max(c.last, local+c.offset)
	return c.last
}

// Guess makes a clock that has not been told the room time show at least a moment: the last that
// a journal knows, or what somebody says who has been told. It returns by how much that moved the clock
// on, to be handed to [Desk.ClockGuessed]; 0 where that is nothing, or next to nothing.
func (c *Clock) Guess(local, room anteroom.Time) (step time.Duration) {
	was := c.Now(local)
	if c.synced || room <= was {
		return 0
	}
	c.offset += room - was
	if step = room.Sub(was); step < tinyStep {
		return 0
	}
	c.since = room // answers to what was asked before would seem to have taken longer by as much
	return step
}

// Begin makes a clock show a moment that is not known to be the room time.
func (c *Clock) Begin(local, room anteroom.Time) {
	c.offset, c.slewed, c.last = room-local, local, room
}

// Synced reports that the coordinator has been heard: before, Now is a guess.
func (c *Clock) Synced() bool { return c.synced }

// Heard takes an answer of the coordinator that arrived at a local moment: echo is what this
// clock showed when the question left ([State].Echo), coordinator what the other showed when
// the answer did ([State].Now). An answer that nobody asked for (echo 0) says nothing. Half
// of the round trip is taken for the way back, so the error is at most half of the
// difference between the two ways; of the latest samples the quickest counts, because
// what makes an answer slow is seldom the same both ways. It returns by how much the clock has been
// set, which happens once.
func (c *Clock) Heard(local, echo, coordinator anteroom.Time) (step time.Duration) {
	now := c.Now(local)
	trip := now.Sub(echo)
	if echo == 0 || echo < c.since || trip < 0 || trip > maxTrip {
		return 0
	}
	offset := coordinator.Add(trip/2) - local
	c.samples[c.heard%clockSamples] = clockSample{trip: trip, offset: offset}
	c.heard++
	// A first answer that was long on its way, because a store was slow, would make the clock wrong
	// by half of that for hours: a better one is waited for. Those that a store has held up come together.
	if c.heard == 1 {
		c.first = local
	}
	if !c.synced && (trip <= quickTrip || local.Sub(c.first) >= slowFor) {
		c.set(local, c.best())
		return c.last.Sub(now)
	}
	return 0
}

// Follow makes the clock show a room time at a local moment, forward or back: a coordinator
// that starts continues the time in which its sites live ([Report].Sent of the first report
// of one that has an epoch), before its first State leaves.
func (c *Clock) Follow(local, room anteroom.Time) {
	c.heard = 0
	c.set(local, room-local)
}

func (c *Clock) set(local, offset anteroom.Time) {
	c.offset, c.slewed, c.last, c.since = offset, local, local+offset, local+offset
	c.synced = true
}

// slew moves the offset to that of the quickest sample, by at most 1e-4 of the time passed.
func (c *Clock) slew(local anteroom.Time) {
	const slowness = 10_000
	most := (local - c.slewed) / slowness
	if most <= 0 {
		return // less than a microsecond; the time passed is not lost
	}
	c.slewed += most * slowness
	n := min(c.heard, clockSamples)
	if n == 0 {
		return
	}
	c.offset += min(max(c.best()-c.offset, -most), most)
}

// best is the offset of the quickest sample.
func (c *Clock) best() anteroom.Time {
	best := c.samples[0]
	for _, s := range c.samples[1:min(c.heard, clockSamples)] {
		if s.trip < best.trip {
			best = s
		}
	}
	return best.offset
}
