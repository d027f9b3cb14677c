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
	at      anteroom.Time // when inForce was found: it never goes back
	until   atomic.Int64  // InForce.Until: idle rooms follow it too
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

// evaluate finds out what is in force. Events follow the wall clock and its corrections, but
// for those that set it back.
func (x *schedule) evaluate(wall time.Time) {
	x.at = max(x.at, anteroom.TimeOf(wall))
	x.inForce = x.plan.AtWithAhead(x.at)
	x.until.Store(int64(x.inForce.Until))
}

// opening is the end of the prequeue, if there is one; now is the room time of wall.
func (x *schedule) opening(now anteroom.Time, wall time.Time) (o engine.Opening) {
	if f := x.inForce; f.Phase == anteroom.Prequeueing {
		o.At = now + f.Until - anteroom.TimeOf(wall)
		o.Shuffled = f.Event.ShuffleAtStart
	}
	return o
}

// planned says that something will begin or end by the plan; without it nobody needs the time of day.
func (x *schedule) planned() bool { return x.until.Load() != 0 }

// due says that something begins or ends by the plan.
func (x *schedule) due(wall time.Time) bool {
	until := x.until.Load()
	return until != 0 && wall.UnixMicro() >= until
}
