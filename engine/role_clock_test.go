package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// clockTrial runs a clock against a coordinator whose time is true, over links with delays,
// for a while of heartbeats, and returns by how much it is off at the end. It checks that
// the clock never goes back and how fast it runs.
func clockTrial(t *testing.T, wrong, drift float64, up, down func() time.Duration, beats int) time.Duration {
	t.Helper()
	c := NewClock()
	start := midnight
	local := func(at anteroom.Time) anteroom.Time {
		return at + anteroom.Time(wrong*1e6) + anteroom.Time(drift*float64(at-start))
	}
	at := start
	var last, lastLocal anteroom.Time
	look := func(at anteroom.Time) anteroom.Time {
		l := local(at)
		now := c.Now(l)
		if last != 0 {
			room, passed := now-last, l-lastLocal
			if most := passed/10_000 + 1; room < passed-most || room > passed+most || room < 0 {
				t.Fatalf("%d us of local time are %d us of room time", passed, room)
			}
		}
		last, lastLocal = now, l
		return now
	}
	for range beats {
		echo := look(at)
		answered := at.Add(up())
		back := answered.Add(down())
		if !c.Synced() {
			last = 0 // the first sample steps
		}
		look(back)
		if !c.Synced() {
			last = 0
		}
		c.Heard(local(back), echo, answered)
		look(back)
		at = max(at.Add(HeartbeatQueue), back)
	}
	if !c.Synced() {
		t.Fatal("not synced")
	}
	return look(at).Sub(at)
}

func TestClockFollowsTheCoordinator(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	fixed := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	shaky := func(d, jitter time.Duration) func() time.Duration {
		return func() time.Duration { return d + time.Duration(r.Float64()*r.Float64()*float64(jitter)) }
	}
	cases := map[string]struct {
		wrong, drift float64 // seconds; parts
		up, down     func() time.Duration
		beats        int
		most         time.Duration
	}{
		"one beat is enough": {5, 0, fixed(40 * time.Millisecond), fixed(40 * time.Millisecond), 1, 0},
		"5 s slow":           {-5, 0, fixed(90 * time.Millisecond), fixed(90 * time.Millisecond), 50, 0},
		"a day fast":         {86400, 0, fixed(time.Millisecond), fixed(time.Millisecond), 50, 0},
		// Half of the asymmetry cannot be seen by anybody.
		"asymmetric":       {5, 0, fixed(20 * time.Millisecond), fixed(80 * time.Millisecond), 50, 30 * time.Millisecond},
		"jitter":           {5, 0, shaky(30*time.Millisecond, 100*time.Millisecond), shaky(30*time.Millisecond, 100*time.Millisecond), 4000, 15 * time.Millisecond},
		"drift of 50 ppm":  {5, 5e-5, fixed(30 * time.Millisecond), fixed(30 * time.Millisecond), 4000, 2 * time.Millisecond},
		"drift and jitter": {-5, -5e-5, shaky(30*time.Millisecond, 60*time.Millisecond), shaky(30*time.Millisecond, 60*time.Millisecond), 4000, 15 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if off := clockTrial(t, c.wrong, c.drift, c.up, c.down, c.beats); off < -c.most || off > c.most {
				t.Errorf("off by %v, at most %v is allowed", off, c.most)
			}
		})
	}
}

// A slow first answer sets the clock wrong; quicker ones correct it without a step.
func TestClockConverges(t *testing.T) {
	c := NewClock()
	at := midnight
	c.Heard(at.Add(400*time.Millisecond), at, at.Add(400*time.Millisecond)) // all of it on the way up
	off := func() time.Duration { return c.Now(at).Sub(at) }
	at = at.Add(time.Second)
	if d := off(); d < 190*time.Millisecond {
		t.Fatalf("off by %v", d)
	}
	for before := off(); at < midnight.Add(40*time.Minute); before = off() {
		echo := c.Now(at)
		c.Heard(at.Add(20*time.Millisecond), echo, at.Add(10*time.Millisecond))
		at = at.Add(time.Second)
		if d := before - off(); d < -time.Microsecond || d > 101*time.Microsecond {
			t.Fatalf("a second corrects by %v", d)
		}
	}
	if d := off(); d > time.Millisecond {
		t.Errorf("after 40 minutes still off by %v", d)
	}
}

func TestClockIgnoresWhatSaysNothing(t *testing.T) {
	c := NewClock()
	at := midnight
	c.Heard(at, 0, at.Add(time.Hour))                            // nobody asked
	c.Heard(at, at.Add(time.Second), at)                         // from the future
	c.Heard(at, at.Add(-time.Minute), at)                        // too long ago
	c.Heard(at.Add(-time.Second), at.Add(-1), at.Add(time.Hour)) // local time went back: Now does not
	if c.Synced() && c.Now(at) < at {
		t.Error("the clock went back")
	}
}

// A coordinator that starts continues the room time of its sites.
func TestClockFollow(t *testing.T) {
	for _, wrong := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		c := NewClock()
		local := midnight.Add(wrong)
		c.Now(local)
		c.Follow(local, midnight)
		if !c.Synced() || c.Now(local) != midnight || c.Now(local.Add(time.Second)) != midnight.Add(time.Second) {
			t.Errorf("%v wrong: shows %v", wrong, c.Now(local).Std())
		}
	}
}

// Answers that a slow store has held up arrive together, and say little; the next one says more. Where
// all are slow, the best of slowFor is taken.
func TestClockWaitsForAQuickAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		trip time.Duration // of the answer after the stall
		set  time.Duration // after the first answer
		off  time.Duration // at most: half of the quickest trip
	}{
		{name: "a stall", trip: 20 * time.Millisecond, set: time.Second, off: time.Millisecond},
		{name: "a slow link", trip: 2 * time.Second, set: slowFor, off: 750 * time.Millisecond},
	} {
		clock, stalled := NewClock(), midnight.Add(6*time.Second)
		for i := range 6 {
			clock.Heard(stalled, midnight.Add(time.Duration(i)*time.Second-500*time.Millisecond), stalled)
		}
		if clock.Synced() {
			t.Fatalf("%s: set by what was held up", c.name)
		}
		at := stalled
		for range 30 {
			at = at.Add(time.Second)
			if clock.Heard(at, at.Add(-c.trip), at.Add(-c.trip/2)); clock.Synced() {
				break
			}
		}
		got, off := at.Sub(stalled), clock.Now(at).Sub(at)
		if got != c.set || off < -time.Millisecond || off > c.off {
			t.Errorf("%s: set after %v and off by %v, want %v", c.name, got, off, c.set)
		}
	}
}

// What somebody says who knows the time moves a clock that does not: an answer to a question of before
// seems to have taken as long.
func TestGuessIsNoRoundTrip(t *testing.T) {
	t.Parallel()
	c, at := NewClock(), midnight
	c.Begin(at, at.Add(-3*time.Second))
	asked := c.Now(at)
	c.Guess(at, at.Add(-time.Millisecond))
	at = at.Add(20 * time.Millisecond)
	if step := c.Heard(at, asked, at); step != 0 || c.Synced() {
		t.Errorf("an answer to what was asked before has set the clock by %v", step)
	}
	asked = c.Now(at)
	at = at.Add(20 * time.Millisecond)
	if c.Heard(at, asked, at.Add(-10*time.Millisecond)); !c.Synced() || c.Now(at) != at {
		t.Errorf("the clock is off by %v", c.Now(at).Sub(at))
	}
}

// Far from the coordinator, a process learns the time although doors, whose clocks run a little faster, step its guess ahead all the time.
func TestGuessesInSmallStepsDoNotHideTheTime(t *testing.T) {
	t.Parallel()
	c, at, ahead := NewClock(), midnight, anteroom.Time(0)
	const oneWay = 75 * time.Millisecond
	for range 10 {
		echo := c.Now(at)
		for range 15 { // a word of a door each 10 ms
			at = at.Add(10 * time.Millisecond)
			ahead += 3
			c.Guess(at, at+ahead)
		}
		c.Heard(at, echo, at.Add(time.Hour-oneWay))
	}
	if !c.Synced() {
		t.Fatal("not synced after ten answers")
	}
	if off := c.Now(at).Sub(at.Add(time.Hour)); off.Abs() > time.Millisecond {
		t.Errorf("the clock is off by %v", off)
	}
}
