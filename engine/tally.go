package engine

// What a site counts for those who look at it afterwards. Nothing is decided by it.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Tally is what happened at a site since it was taken last.
type Tally struct {
	NewUsers  int // sessions that began
	Joined    int // newcomers who were shown the waiting page, with a place
	Abandoned int // of those who were shown it: places that lapsed
	NoShows   int // turns that were not taken in time
	Overtakes int // let in without a turn while somebody waited here who had come before and was in touch
	Revoked   int // sessions that were ended

	// Waited is of those let in who were shown the page: since their arrival, or since the shuffle that gave
	// them another place, for what their arrival was is not kept.
	Waited []time.Duration
	Stayed []time.Duration // of sessions that ended: from the admission to the last request
	// Of those let in: by how much they waited longer than the newcomers of the minute of their arrival
	// were told, on average, when the page was shown to them first; or by how much less.
	Late, Early []time.Duration
}

// Empty reports whether nothing happened.
func (t *Tally) Empty() bool {
	return t.NewUsers|t.Joined|t.Abandoned|t.NoShows|t.Overtakes|t.Revoked == 0 && len(t.Waited)+len(t.Stayed) == 0
}

// counting is a tally with what it takes to make one.
type counting struct {
	Tally
	told []toldMinute // by minute of arrival, as a ring; made when first used
	// seen waited when he was looked at last. Unless look is set, nobody else does.
	seen uint32
	look bool
}

// toldMinute is the forecasts that the newcomers of a minute were told.
type toldMinute struct {
	minute anteroom.Bucket
	count  int64
	sum    time.Duration
}

// toldFor is how many minutes back it is known what newcomers were told: a day. A longer wait is not
// forecast either.
const toldFor = 24 * 60

// KeepTally makes the site count; who asks for it takes the tally often.
func (s *Site) KeepTally() { s.counting = &counting{look: true} }

// TakeTally returns what was counted since the last call.
func (s *Site) TakeTally() (t Tally) {
	if s.counting != nil {
		t, s.counting.Tally = s.counting.Tally, Tally{}
	}
	return t
}

// KeepTally makes the room count (see Site.KeepTally).
func (x *Single) KeepTally() { x.site.KeepTally() }

// TakeTally returns what was counted since the last call.
func (x *Single) TakeTally() Tally { return x.site.TakeTally() }

// TakeTally returns nothing: the site counts.
func (x *Doorway) TakeTally() Tally { return Tally{} }

func (c *counting) ofMinute(key anteroom.Time) *toldMinute {
	if c.told == nil {
		c.told = make([]toldMinute, toldFor)
	}
	b := anteroom.BucketOf(key)
	return &c.told[max(0, int64(b)/60e6)%toldFor]
}

// shown counts somebody to whom the page is shown for the first time.
func (s *Site) shown(key anteroom.Time, lane uint8, d *anteroom.Decision) {
	c := s.counting
	if c == nil {
		return
	}
	c.Joined++
	if !d.WaitKnown || lane != 0 {
		return
	}
	m, b := c.ofMinute(key), anteroom.BucketOf(key)
	if m.minute != b {
		*m = toldMinute{minute: b}
	}
	m.count++
	m.sum += d.WaitTime
}

// entered counts an admission; shown says that the page was shown before.
func (s *Site) entered(now, arrival anteroom.Time, shown bool) {
	c := s.counting
	if c == nil {
		return
	}
	c.NewUsers++
	if !shown {
		return
	}
	drawn := s.shuffled != 0 && arrival <= s.shuffled
	if drawn {
		arrival = s.shuffled
	}
	waited := max(0, now.Sub(arrival)) // keys of one moment follow each other
	c.Waited = append(c.Waited, waited)
	if drawn {
		return
	}
	m := c.ofMinute(arrival)
	if m.count == 0 || m.minute != anteroom.BucketOf(arrival) {
		return
	}
	if told := m.sum / time.Duration(m.count); waited > told {
		c.Late = append(c.Late, waited-told)
	} else {
		c.Early = append(c.Early, told-waited)
	}
}

// left counts a place that has lapsed.
func (s *Site) left(w *waiter) {
	if s.counting != nil && w.flags&hereShown != 0 {
		s.counting.Abandoned++
	}
}

// stayed counts a session that is over. Ends are not on record: of a session that was not seen since
// a restart, and may have ended before, it is not known whether the process before has counted it.
func (s *Site) stayed(st *seat) {
	c := s.counting
	if c == nil {
		return
	}
	last := st.last
	if st.restored {
		last = last.Add(-s.slack)
		if lapse(&s.settings, st.accepted, last) <= s.syncedAt {
			return
		}
	}
	c.Stayed = append(c.Stayed, max(0, last.Sub(st.accepted)))
}

// heardOf notes that somebody who waits here was heard of.
func (s *Site) heardOf(slot uint32) {
	if c := s.counting; c != nil {
		c.seen, c.look = slot, true
	}
}

// letIn is admit for somebody whose turn was not called.
func (s *Site) letIn(now anteroom.Time, t anteroom.Ticket, reason anteroom.Reason) anteroom.Decision {
	if s.overtakes(now, t) {
		s.counting.Overtakes++
	}
	return s.admit(now, t, reason)
}

// overtakes says that somebody waits here who came before t. It looks at everybody only after
// somebody was heard of: nobody comes back in touch by himself.
func (s *Site) overtakes(now anteroom.Time, t anteroom.Ticket) bool {
	c := s.counting
	if c == nil || s.here.len() == 0 || s.settings.QueueingMethod == anteroom.Random {
		return false
	}
	own := s.here.find(&t.ID)
	waits := func(slot uint32) bool {
		w := s.here.at(slot)
		return slot != own && w.key < t.Arrival && w.flags&hereOffered == 0 && (w.streams > 0 || now.Sub(w.due) <= Grace)
	}
	if id := c.seen; id != 0 && id < s.here.next && !s.here.id(id).IsZero() && waits(id) {
		return true
	}
	if !c.look {
		return false
	}
	for from := uint32(1); from < s.here.next; from += 256 {
		found := uint32(0)
		s.here.eachBetween(from, from+256, func(slot uint32) {
			if found == 0 && waits(slot) {
				found = slot
			}
		})
		if found != 0 {
			c.seen = found
			return true
		}
	}
	c.look = own != 0 // else nobody waits at all
	return false
}
