package node

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// schedule is a room's plan and what of it is in force. Each process finds that out by itself.
// Guarded by the lock of whose it is, but for due.
type schedule struct {
	plan    *anteroom.Room // as configured; not changed, as others have it too
	inForce *anteroom.InForce
	at      anteroom.Time // when inForce was found
	until   atomic.Int64  // InForce.Until: idle rooms follow it too
	since   atomic.Int64  // a clock that shows less was set back; 0: nothing is planned
}

// configure takes another plan and reports whether it is another.
func (x *schedule) configure(room *anteroom.Room) bool {
	p := x.plan
	x.plan = room
	if room.Settings == p.Settings && room.Controls == p.Controls && reflect.DeepEqual(room.Events, p.Events) {
		return false
	}
	x.evaluate(walltime.Now())
	return true
}

// evaluate finds out what is in force. Events follow the wall clock and its corrections, but for small steps back.
func (x *schedule) evaluate(wall time.Time) {
	if at := anteroom.TimeOf(wall); at > x.at || at < x.at.Add(-walltime.SetBack) {
		x.at = at
	}
	x.inForce = x.plan.AtWithAhead(x.at)
	x.until.Store(int64(x.inForce.Until))
	since := int64(0)
	if len(x.plan.Events) > 0 {
		since = int64(x.at.Add(-walltime.SetBack))
	}
	x.since.Store(since)
}

// follow evaluates the plan if that is due, and reports whether it was.
func (x *schedule) follow(wall time.Time) bool {
	due := x.due(wall)
	if due {
		x.evaluate(wall)
	}
	return due
}

// opening is the end of the prequeue, if there is one; now is the room time of wall.
func (x *schedule) opening(now anteroom.Time, wall time.Time) (o engine.Opening) {
	if f := x.inForce; f.Phase == anteroom.Prequeueing {
		o.At = now + f.Until - anteroom.TimeOf(wall)
		o.Shuffled = f.Event.ShuffleAtStart
	}
	return o
}

// planned says that something will begin or end by the plan; without it no request needs the time of day.
func (x *schedule) planned() bool { return x.until.Load() != 0 }

// due says that something begins or ends by the plan, or may have to again since the clock was set back.
func (x *schedule) due(wall time.Time) bool {
	at, until := wall.UnixMicro(), x.until.Load()
	return until != 0 && at >= until || at < x.since.Load()
}
