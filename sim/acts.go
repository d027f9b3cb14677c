package sim

// What operators do by hand.

import (
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// draw is a shuffle; a nil one has not begun.
type draw struct {
	by     *coordinatorProcess // has asked the sites for all who wait there
	writes bool                // and is recording who they are
	done   bool
	sh     engine.Shuffle
	seed   []byte
}

// shuffleSpan is how long the prequeue was, as far as keys go.
const shuffleSpan = 5 * time.Minute

func (x *product) act(a Act) {
	switch a.What {
	case "admit":
		if c := x.coordinator(); c != nil && !c.paused && !c.writing {
			c.machine.AdmitNow(c.room(x.w.now), a.N)
			x.drain(c)
		}
	case "hold":
		hold := func(on bool) {
			if c := x.coordinator(); c != nil {
				x.w.judge.holds(on)
				c.machine.Hold(c.room(x.w.now), on)
				x.drain(c)
			}
		}
		hold(true)
		x.w.later(time.Duration(a.N)*time.Second, func() { hold(false) })
	case "shuffle":
		x.draw = &draw{seed: append([]byte(a.What), x.seed...)}
	}
}

// holds returns settings as the coordinator has them: nobody is called before the shuffle is done.
func (d *draw) holds(s anteroom.Settings) anteroom.Settings {
	s.Prequeueing = s.Prequeueing || d != nil && !d.done
	return s
}

// redo has a coordinator know the order that was drawn.
func (d *draw) redo(now anteroom.Time, c *engine.Coordinator) {
	if d != nil && d.done {
		c.Reshuffle(now, d.sh, d.seed, shuffleSpan)
	}
}

// proceed goes on with a shuffle, as a coordinator's host does: the sites tell of all who wait there, who takes part is recorded, and
// then the sites hear the order. Another coordinator begins anew if nothing is on record.
func (x *product) proceed(c *coordinatorProcess) {
	d := x.draw
	switch {
	case d == nil || d.done || c.writing:
	case d.by != c:
		d.by, d.writes = c, false
		c.machine.Gather(c.room(x.w.now))
	case !d.writes && c.machine.GatherOver(c.room(x.w.now)):
		sh := c.machine.Entrants(c.room(x.w.now))
		d.writes, c.writing = true, true
		c.machine.StoreFailed() // so that there is a write, by which no other has taken the room over
		c.pending, _ = c.machine.Needs()
		x.store(c, func() {
			now := c.room(x.w.now)
			c.machine.Stored(now, c.pending)
			d.done, d.sh = true, sh
			x.w.judge.shuffles(now, d)
			d.redo(now, c.machine)
			c.machine.Configure(now, x.w.sc.settingsAt(x.w.since(x.w.now)))
			x.drain(c)
		})
	}
}
