package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// SiteStatus is what a coordinator knows of one incarnation of a site, for operators.
type SiteStatus struct {
	Key    SiteKey
	Term   uint64 // of the process that reports, see [Site.SetTerm]
	Weight uint64 // at least 1
	// Age is how long ago the last report came; Answers says that it counts as in touch.
	Age     time.Duration
	Answers bool
	// Lost: a newer incarnation has replaced it, and what it held is charged until its sessions
	// must have ended.
	Lost bool
	// Trip is the shortest round trip that it has measured lately, 0 when it has none; Ahead is
	// how far its room time is ahead of this coordinator's, as accurate as half of the trip.
	Trip, Ahead time.Duration

	Granted, Returned Units  // see Account
	Used              Units  // in use or set aside for turns, as reported
	Idle              uint64 // free permits there, as reported
	Target            uint64 // idle permits that it may keep now
	Waiting           int    // in line there
}

// Sites returns what is known of the sites, in the order in which they appeared: living ones and
// those whose units are still charged. It looks at the whole line.
func (c *Coordinator) Sites(now anteroom.Time) []SiteStatus {
	waiting := make([]int, len(c.sites))
	c.line.places.each(func(slot uint32) {
		if p := c.line.places.at(slot); p.state.counted() {
			waiting[p.site]++
		}
	})
	out := make([]SiteStatus, 0, len(c.sites))
	for i, s := range c.sites {
		a := c.ledger.accounts[s.key]
		if a == nil {
			continue
		}
		out = append(out, SiteStatus{Key: s.key, Term: s.term, Weight: s.weight, Age: now.Sub(s.heard),
			Answers: c.answers(now, uint16(i)), Lost: s.lostAt != 0, Trip: s.trip, Ahead: s.ahead,
			Granted: a.Granted, Returned: a.Returned, Used: s.used, Idle: s.idle, Target: c.target(now, s),
			Waiting: waiting[i]})
	}
	return out
}

// Status returns the live numbers of the whole room, as far as the sites have reported them.
func (c *Coordinator) Status(now anteroom.Time) anteroom.Status {
	var used Units
	for _, s := range c.sites {
		if s.lostAt == 0 {
			for k := range used {
				used[k] += s.used[k]
			}
		}
	}
	for k := range used { // a turn that has been given and not taken is not in use
		used[k] -= min(used[k], uint64(c.line.counts[offered]))
	}
	f := c.figures
	if f == nil {
		f = c.outlook
	}
	if f == nil {
		f = &Figures{At: now}
	}
	return c.status(now, f, c.mode, int(used[Seat]), int(used[RateSlot]))
}

// Unvisited are the live numbers of a room that nobody has visited yet, without a machine for it.
func Unvisited(now anteroom.Time, s anteroom.Settings) anteroom.Status {
	s = inForce(s)
	mode := Open
	if closed(&s) || s.TotalActiveUsers == 0 || s.NewUsersPerMinute == 0 {
		mode = Queue
	}
	return anteroom.Status{At: now, Mode: mode.String(), TotalActiveUsers: s.TotalActiveUsers, NewPerMinute: s.NewUsersPerMinute,
		Pace: s.NewUsersPerMinute, PaceReason: anteroom.PaceLimits, WaitKnown: !closed(&s)}
}

// status are the numbers of the line with how many are inside and how many entered lately.
func (c *Coordinator) status(now anteroom.Time, f *Figures, m Mode, active, lastMinute int) anteroom.Status {
	n, s := c.Numbers(), c.settings
	st := anteroom.Status{At: now, Mode: m.String(),
		ActiveUsers: active, Offered: n.Offered, AdmittedLastMin: lastMinute,
		Waiting: n.Waiting, Unproven: min(c.line.unprovenNow(), n.Waiting), Dormant: n.Dormant, Streams: n.Streams,
		TotalActiveUsers: s.TotalActiveUsers, NewPerMinute: s.NewUsersPerMinute, OldestWaiting: f.Oldest}
	st.Pace, st.PaceReason = c.Pace()
	st.Lanes = c.laneStatus(now, f)
	if !held(&s) && n.Waiting > 0 {
		of, waiting := f.Of(0), n.Waiting
		if c.line.parted() {
			waiting = c.line.laneOf(0).waiting()
		}
		if st.WaitOfNewcomer, st.WaitKnown = of.Told(waiting, now); !st.WaitKnown && s.QueueingMethod == anteroom.FIFO {
			st.WaitAtLeast, st.WaitAtMost = of.Bounds(waiting, now, &s)
		}
	}
	if n.Waiting == 0 {
		st.WaitKnown, st.OldestWaiting = !closed(&s), 0
	}
	return st
}
