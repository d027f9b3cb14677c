package sim

// How long slots stay free while visitors wait for them.

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// freeSlot is a slot that somebody with a stream waits for.
type freeSlot struct {
	since anteroom.Time
	ahead int // slots that were free already
}

// area adds up what was idle since the last change.
func (j *judge) area(at anteroom.Time) {
	dt := at.Sub(j.idleAt).Seconds()
	if dt <= 0 {
		return
	}
	j.idleAt = at
	if n := len(j.idleSince); j.waitingNow+j.comingNow > 0 {
		idle := float64(n) * dt
		j.idleArea += idle
		j.pointIdle += idle
		if j.set.TotalActiveUsers-j.active < j.set.NewUsersPerMinute-j.recent.n {
			j.slotArea += float64(j.set.TotalActiveUsers) * dt
		} else {
			j.slotArea += float64(j.set.NewUsersPerMinute) * dt
		}
	}
}

// level notes which free slots somebody waits for.
func (j *judge) level() {
	want := min(j.slots(), j.waitingNow+j.comingNow)
	for len(j.idleSince) < want {
		j.idleSince = append(j.idleSince, j.w.now)
	}
	j.idleSince = j.idleSince[:want]
	want = min(j.slotsBeside(j.w.edges.holds()+len(j.byHand)), j.listeners)
	for len(j.freeSince) < want {
		j.freeSince = append(j.freeSince, freeSlot{j.w.now, len(j.freeSince)})
	}
	j.freeSince = j.freeSince[:want]
}

// listens: the person's stream was opened, or has ended.
func (j *judge) listens(yes bool) {
	j.settle()
	if yes {
		j.listeners++
	} else {
		j.listeners--
	}
	j.level()
}

// taken: a slot was used. Whoever waited longest for one was it.
func (j *judge) taken() {
	if len(j.idleSince) == 0 {
		return
	}
	j.idleTook.add(j.w.now.Sub(j.idleSince[0]))
	j.idleSince = j.idleSince[1:]
	if len(j.freeSince) > 0 {
		j.idles()
		j.freeSince = j.freeSince[1:]
	}
}

// idles looks at the slot that has been free for longest.
func (j *judge) idles() {
	if len(j.freeSince) == 0 || !j.flows() {
		return
	}
	slot := j.freeSince[0]
	d := j.w.now.Sub(max(slot.since, j.flow.from))
	j.look(checkFlow, d < j.patience()+j.paced(slot.ahead), func() string { return fmt.Sprintf("a slot has been free for %v while somebody with a stream waits", d) })
}

// patience is how long a slot may be free while a listener waits. Winners who are away come
// back within a poll interval; a ticket whose cookie was lost looks like a visitor until it
// misses its turn, and one of two clients is offered a turn where it was seen last.
func (j *judge) patience() time.Duration {
	patience := 10 * time.Second
	if v := j.w.sc.Visitors; j.set.QueueingMethod == anteroom.Random || v.LostCookies > 0 || v.NoCookies > 0 || v.Freezes > 0 || v.Clones > 0 {
		patience = 30 * time.Second
	}
	if j.opened != 0 && j.w.now.Sub(j.opened) < time.Minute {
		patience = 30 * time.Second
	}
	// What is on record of sessions is behind by so much.
	if slack := engine.TouchSlack(j.set.SessionDuration); j.restored != 0 && j.w.now.Sub(j.restored) < j.set.SessionDuration+2*slack {
		patience += slack
	}
	return patience
}

// paced is how long a slot stays free on purpose when so many were free before it: turns follow each
// other at twice the rate.
func (j *judge) paced(ahead int) time.Duration {
	if j.set.Unpaced || j.set.NewUsersPerMinute == 0 {
		return 0
	}
	return time.Duration(ahead) * time.Minute / time.Duration(2*j.set.NewUsersPerMinute)
}
