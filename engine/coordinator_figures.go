package engine

// What the coordinator tells: to sites, to operators, to tests.

import (
	"time"

	"sort"

	"github.com/anteroom/anteroom"
)

func (c *Coordinator) send(now anteroom.Time, s *siteView) {
	if c.figures == nil || now.Sub(c.figuresAt) >= HeartbeatQueue {
		c.refigure(now)
	}
	a := c.ledger.accounts[s.key]
	figures, lost, lostFor := c.figures, c.lostOf(s.key) != SiteKey{}, time.Duration(0)
	if lost {
		lostFor = s.lostFor
	}
	if !c.overlooks(now) {
		figures = nil // sites go on with those of the coordinator before
	}
	rates := c.lendRates(now, s)
	c.post(s, ToSite{State: &State{
		Epoch: c.epoch, Now: now, Echo: s.echo, Granted: a.Granted, Heard: a.Returned,
		Adopted: s.adopted, Silent: c.silent, Guessed: c.guessed && !s.timed, Lost: lost, LostFor: lostFor, Mode: c.mode, Target: c.target(now, s), Rates: rates,
		Figures: figures, Resync: s.resync, Sites: c.alive,
	}})
	s.answer, s.echo, s.told = false, 0, true
}

// overlooks says that the line is known: each site that the coordinator before had has told who
// waits there, or is silent. Before that places would be better than they are.
func (c *Coordinator) overlooks(now anteroom.Time) bool {
	c.overview = c.overview || c.begun && c.Gathered(now)
	return c.overview
}

func (c *Coordinator) refigure(now anteroom.Time) {
	c.countRates()
	hot := int64(0)
	if !closed(&c.settings) { // a disk that stalls may go on at any moment: a check-in meanwhile waits for that
		hot = c.ledger.Permits() + int64(c.idle) // being recalled from sites that need them no more
	}
	if c.throttle.on() {
		hot = min(hot, int64(c.pace))
	}
	c.figuresMade++
	f := &Figures{At: now, Number: c.figuresMade, Waiting: c.line.waiting(), Hot: hot, Front: c.front, Released: c.released,
		Shuffled: c.shuffled, Seconds: c.line.seconds.list()}
	if len(f.Seconds) > 0 {
		f.Oldest = anteroom.Time(f.Seconds[0].Second * 1e6)
	}
	c.forecast.advance(now)
	c.forecast.line(now.Sub(c.lineAt), f.Waiting, c.line.left, c.joined)
	c.line.joinRates(now.Sub(c.lineAt))
	c.lineAt, c.line.left, c.joined = now, 0, 0
	f.Step, f.Known, f.CurveAt = c.forecast.step, !c.closed(), now
	var outlook *Figures
	if c.mode == Queue && f.Known {
		o := c.outlook
		if o == nil || !o.Known && c.forecast.known(f.Waiting, float64(c.ledger.Pool(Seat))) || now.Sub(o.At) >= baseStep || c.outdated(o) || o.short(f.Waiting, c.forecast.reach()) {
			o = &Figures{At: now, Waiting: f.Waiting, Released: c.released}
			var from capacity
			for k := range units {
				from.limit[k], from.free[k] = float64(c.ledger.Limit[k]), float64(c.ledger.Pool(k))
			}
			for k, n := range c.unused() {
				from.limit[k] -= n
				from.free[k] -= n
			}
			if !c.settings.Unpaced || c.throttle.on() {
				from.pace, from.burst, from.rate = c.pace, c.burst(), c.ratePerSecond()
				if !c.line.paced() && !c.throttle.on() {
					from.pace = max(from.pace, float64(c.permits()))
				}
			}
			from.ahead = c.ahead(now)
			c.forecast.write(now, o, from)
			if s := &c.settings; s.DisableSessionRenewal && !o.Known && !c.silent && !c.throttle.on() {
				o.Ends = s.SessionDuration
			}
			if c.line.parted() {
				c.divide(o)
			}
			c.outlook = o
		}
		f.Known, f.Step, f.Curve, f.Leave, f.Draw, f.Seats, f.Ends = o.Known, o.Step, o.Curve, o.Leave, o.Draw, o.Seats, o.Ends
		f.CurveAt, f.CurveFrom = o.At, o.Released
		outlook = o
	}
	if c.line.parted() {
		c.refigureLanes(f, outlook)
	}
	c.figures, c.figuresAt = f, now
}

// ahead returns the changes of the limits that are planned. Nobody plans what the throttle does.
func (c *Coordinator) ahead(now anteroom.Time) (out []planned) {
	if c.settings.Ahead == nil || c.throttle.on() {
		return nil
	}
	for _, l := range c.settings.Ahead.Limits {
		if l.From <= now {
			continue
		}
		p := planned{after: l.From.Sub(now).Seconds(), limit: [units]float64{Seat: float64(l.TotalActiveUsers), RateSlot: float64(l.NewUsersPerMinute)}}
		if !c.settings.Unpaced {
			p.burst, p.rate = burstAt(l.NewUsersPerMinute), rateAt(l.NewUsersPerMinute)
		}
		out = append(out, p)
	}
	return out
}

// outdated reports whether the line has changed so much since a forecast that a new one is worth its
// cost: in a rush, what is five seconds old is out of date.
func (c *Coordinator) outdated(o *Figures) bool {
	change := c.line.waiting() - o.Waiting
	return 10*(max(change, -change)+int(c.released-o.Released)) > o.Waiting
}

// Numbers of the line, for status and tests.
type Numbers struct {
	Mode                      Mode
	Waiting, Dormant, Offered int
	Streams                   int
	Pool                      [units]int64
	Front                     anteroom.Time
}

// Numbers returns the coordinator's live numbers.
func (c *Coordinator) Numbers() Numbers {
	return Numbers{Mode: c.mode, Waiting: c.line.waiting(), Dormant: c.line.counts[dormant],
		Offered: c.line.counts[offered], Streams: c.line.streams,
		Pool:  [units]int64{c.ledger.Pool(Seat), c.ledger.Pool(RateSlot)},
		Front: c.front}
}

// Line returns the ids in line in the order of the line, for tests and for look-ups.
func (c *Coordinator) Line() []anteroom.ID {
	var slots []uint32
	c.line.places.each(func(s uint32) {
		if c.line.places.at(s).state != offered {
			slots = append(slots, s)
		}
	})
	sort.Slice(slots, func(i, j int) bool { return c.line.before(slots[i], slots[j]) })
	ids := make([]anteroom.ID, len(slots))
	for i, s := range slots {
		ids[i] = c.line.places.id(s)
	}
	return ids
}
