package engine

// What a door remembers of those who wait: when they come back, for the next process of the site,
// and the places that they have seen.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// due is when a visitor was told to come back.
type due struct {
	key, at, last anteroom.Time
	lane          uint8
}

// shows takes note of what is about to be shown, and makes a place no worse than one that was shown
// before.
func (x *Doorway) shows(now anteroom.Time, d *anteroom.Decision) {
	t := &d.Ticket
	if d.Verdict != anteroom.Wait {
		if d.Verdict == anteroom.Admit {
			x.forgetDue(t.ID)
		}
		return
	}
	x.neverWorse(d)
	if x.term != 0 && d.SetCookie && t.Next > now {
		slot := x.dues.find(&t.ID)
		if slot == 0 {
			slot = x.dues.add(t.ID)
		}
		*x.dues.at(slot) = due{key: t.Arrival, at: t.Next, last: now, lane: t.Lane}
	}
}

func (x *Doorway) neverWorse(d *anteroom.Decision) {
	if !d.AheadKnown {
		return
	}
	if best, ok := x.told.get(d.Ticket.ID); ok && int(best) < d.Ahead {
		d.Ahead, d.Ticket.Told = int(best), best+1
	}
}

// looked remembers a place that was shown and that no cookie says.
func (x *Doorway) looked(now anteroom.Time, d *anteroom.Decision) {
	if shuffled := x.door.figures.Shuffled; shuffled != x.toldOf {
		x.told, x.toldOf = newRecent[uint32](maxTold), shuffled
	}
	x.neverWorse(d)
	if d.AheadKnown {
		x.told.put(d.Ticket.ID, uint32(d.Ahead), now.Add(MaxInterval+x.door.settings.PlaceHold))
	}
}

func (x *Doorway) forgetDue(id anteroom.ID) {
	if slot := x.dues.find(&id); slot != 0 {
		x.dues.remove(slot)
	}
}

// tellDues has a process of the site that has just begun hear who comes back when.
func (x *Doorway) tellDues(now anteroom.Time) {
	x.dues.each(func(slot uint32) {
		d, id := x.dues.at(slot), x.dues.id(slot)
		if now.Sub(d.at) <= Grace && x.streams[id] == nil && len(x.polls.items) < maxPolls {
			x.polls.add(Poll{ID: id, Key: d.key, Lane: d.lane, Due: d.at, Last: d.last})
			x.news = true
		}
	})
}

// pruneDues forgets some who did not come back.
func (x *Doorway) pruneDues(now anteroom.Time) {
	if x.duePos >= x.dues.next {
		x.duePos = 0
	}
	end := x.duePos + x.dues.next/100 + 1
	x.dues.eachBetween(x.duePos, end, func(slot uint32) {
		if now.Sub(x.dues.at(slot).at) > Grace+time.Second {
			x.dues.remove(slot)
		}
	})
	x.duePos = end
}
