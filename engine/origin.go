package engine

// How admission follows the health of the origin, in rooms that protect it.
//
// Each node's gateway says what it saw (OriginFacts), its door passes that on with every message
// to the site, and the site sums it up for its reports. While no door of a site reaches a healthy
// origin, the site holds its visitors as QueueAll does, at once and without asking, and the
// coordinator calls nobody there; those who wait keep their places and are first when it is back.
// While the origin answers, but more slowly or with more errors than the operator allows, the
// coordinator calls fewer visitors (throttle). Neither ever raises a limit: the ledger does not
// know of them.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// OriginFacts are what gateways saw of the origins of a room, over the last [PaceEvery] or so.
type OriginFacts struct {
	// Known is false for a gateway that forwards nothing for the room; the rest is zero then.
	Known bool
	// Down: no origin is healthy.
	Down bool
	// Requests that were sent, and how many of them failed: no connection, no answer, or a status
	// of 500 or above.
	Requests, Failed uint32
	// P95 is the time to the headers of an answer that one in twenty answers exceeded.
	P95 time.Duration
}

// Plus adds what others saw. An origin is down when nobody who knows it reaches it; of response times
// the longest counts, unless it is of very few requests.
func (f OriginFacts) Plus(g OriginFacts) OriginFacts {
	switch {
	case !f.Known:
		return g
	case !g.Known:
		return f
	}
	sum := OriginFacts{Known: true, Down: f.Down && g.Down, Requests: f.Requests + g.Requests, Failed: f.Failed + g.Failed}
	for _, one := range [...]OriginFacts{f, g} {
		if uint64(one.Requests)*20 >= uint64(sum.Requests) {
			sum.P95 = max(sum.P95, one.P95)
		}
	}
	return sum
}

const (
	// PaceEvery is how often the pace is decided about, and how much time the facts for that cover.
	PaceEvery = 5 * time.Second
	// paceSettle is the least time between two cuts of the pace: before it, the first shows no effect.
	paceSettle = 2 * PaceEvery
	// paceSteps is how many steps the pace takes from nothing to the limit.
	paceSteps = 20
	// paceSample is how many requests say something about an origin; fewer are no reason to admit fewer.
	paceSample = 10
)

// throttle is the pace at which visitors are called while the origin exceeds its bounds and until
// it has recovered: it is halved while there is a reason and grows by a fixed step while there is
// none, between a floor and the limit. The zero throttle bounds nothing.
type throttle struct {
	perMinute float64 // meaningless while why is PaceLimits
	why       anteroom.PaceReason
	decided   anteroom.Time
	cut       anteroom.Time // the last time
}

// on reports whether the pace is below the limit.
func (t *throttle) on() bool { return t.why != anteroom.PaceLimits }

// decide takes the facts of the last PaceEvery; actual is how many were admitted in the last minute.
// It reports whether the pace has changed. A cut begins at what is admitted, if that is less than the
// pace: otherwise the first ones would change nothing.
func (t *throttle) decide(now anteroom.Time, s *anteroom.Settings, f OriginFacts, actual float64) (changed bool) {
	before := *t
	limit := float64(s.NewUsersPerMinute)
	floor := s.SlowestPace() // a few visitors have to enter to show whether the origin has recovered
	if !s.Protect {
		*t = throttle{}
		return before.on()
	}
	if t.perMinute = min(t.perMinute, limit); !t.on() {
		t.perMinute = limit
	}
	if down := f.Known && f.Down; down || t.why == anteroom.PaceOriginDown {
		if down {
			t.why, t.perMinute, t.decided = anteroom.PaceOriginDown, floor, now
		} else { // it is back: it has to warm up
			t.why, t.decided = anteroom.PaceRecovering, now
		}
		return *t != before
	}
	since := now.Sub(t.decided)
	if since >= 0 && since < PaceEvery {
		return false
	}
	t.decided = now
	why := exceeded(s, f)
	switch {
	case why != anteroom.PaceLimits:
		if t.why = why; now.Sub(t.cut) >= paceSettle || now < t.cut {
			t.perMinute, t.cut = max(floor, min(t.perMinute, max(actual, floor))/2), now
		}
	case t.on():
		t.why = anteroom.PaceRecovering
		if t.perMinute += limit / paceSteps * max(1, since.Seconds()/PaceEvery.Seconds()); t.perMinute >= limit {
			*t = throttle{decided: now}
		}
	}
	return t.why != before.why || t.perMinute != before.perMinute
}

// exceeded says which of the operator's bounds the origin exceeds.
func exceeded(s *anteroom.Settings, f OriginFacts) anteroom.PaceReason {
	switch {
	case !f.Known || f.Requests < paceSample:
	case uint64(f.Failed)*100 > uint64(f.Requests)*uint64(s.ProtectErrors):
		return anteroom.PaceOriginErrors
	case s.ProtectLatency > 0 && f.P95 > s.ProtectLatency:
		return anteroom.PaceOriginSlow
	}
	return anteroom.PaceLimits
}

// Origin takes what this process's gateway saw of the room's origins: the zero value when it sees
// none, or the room does not protect them. It goes with every message to the site.
func (x *Doorway) Origin(f OriginFacts) {
	x.turned = x.turned || f.Down != x.origin.Down
	x.news = x.news || f != x.origin && x.inhabited()
	x.origin = f
}

// origin takes what a door's gateway saw, and tells the site what all of them did. When the last
// door has gone, what it said stands: it was silent because nobody was there.
func (x *Desk) origin(now anteroom.Time, d *deskDoor, f OriginFacts) {
	if d.origin != f {
		d.origin = f
		x.sumOrigin(now)
	}
}

func (x *Desk) sumOrigin(now anteroom.Time) {
	if len(x.order) == 0 {
		return
	}
	var sum OriginFacts
	for _, d := range x.order {
		sum = sum.Plus(d.origin)
	}
	x.site.setOrigin(now, sum)
}

// setOrigin takes what the doors here saw of the origin.
func (s *Site) setOrigin(now anteroom.Time, f OriginFacts) {
	before := s.settings.OriginDown
	s.origin = f
	s.watchOutages(now)
	if down := s.originDown(&s.settings); down != before {
		s.configure(now, s.settings)
		s.urgent = true
		s.settleHeld(now)
	}
}

// originDown reports whether the origin's being down holds the room. One that rejects goes on rejecting.
func (s *Site) originDown(st *anteroom.Settings) bool {
	return st.Protect && s.origin.Down && st.QueueingMethod != anteroom.Reject
}

func (c *Coordinator) originDownAt(s *siteView) bool { return c.settings.Protect && s.origin.Down }

// hearOrigin takes what a site has reported. Those who waited there while its origin was down were passed over.
func (c *Coordinator) hearOrigin(now anteroom.Time, site uint16, f OriginFacts) {
	s := c.sites[site]
	back := s.origin.Down && !f.Down
	s.origin = f
	if back {
		c.line.arouse(site, now)
		s.resync = s.resync || c.line.random // winners among them
	}
	c.followOrigin(now)
}

// protect puts the protection of new settings in force.
func (c *Coordinator) protect(now anteroom.Time, s *anteroom.Settings) {
	if s.OriginDown = c.settings.OriginDown && s.Protect; s.Protect || !c.settings.Protect {
		return
	}
	for i := range c.sites {
		if c.sites[i].origin.Down { // they are called now
			c.line.arouse(uint16(i), now)
		}
	}
}

// arouse puts everybody who waits at a site and is here back in order.
func (l *line) arouse(site uint16, now anteroom.Time) {
	l.places.each(func(slot uint32) {
		if p := l.places.at(slot); p.site == site && p.state == parked && !p.proving() && l.present(p, l.tick(now)) {
			l.setState(slot, inLine)
		}
	})
}

// followOrigin takes what the sites have reported of the origin: whether anybody may be called at
// all, and how many.
func (c *Coordinator) followOrigin(now anteroom.Time) {
	if !c.settings.Protect && !c.settings.OriginDown && c.throttle == (throttle{}) {
		return // there is nothing to undo either; every report of every site comes here
	}
	var sum OriginFacts
	everywhere := true // also where nobody is, and so nobody says how the origin does
	for _, s := range c.sites {
		if s.lostAt == 0 {
			sum, everywhere = sum.Plus(s.origin), everywhere && s.origin.Down
		}
	}
	sum.Down = sum.Down && everywhere
	if down := c.settings.Protect && sum.Down; down != c.settings.OriginDown {
		c.settings.OriginDown = down
		c.reopened()
	}
	if c.throttle.decide(now, &c.settings, sum, c.forecast.lastMinute()) {
		c.reopened()
		c.pace = min(c.pace, c.burst())
	}
}

// reopened has everybody told that the room admits more or fewer than before.
func (c *Coordinator) reopened() {
	c.figures, c.outlook = nil, nil
	if c.mode == Open && (c.closed() || c.throttle.on()) {
		c.setMode(Queue)
	}
	for _, s := range c.sites {
		s.answer = true
	}
}

// OriginsDown returns how many of the sites in touch reach no healthy origin, and how many there are.
func (c *Coordinator) OriginsDown(now anteroom.Time) (down, sites int) {
	for i, s := range c.sites {
		if c.answers(now, uint16(i)) {
			if sites++; c.originDownAt(s) {
				down++
			}
		}
	}
	return down, sites
}

// Pace returns how many new users per minute are called at the moment, and why.
func (c *Coordinator) Pace() (perMinute int, why anteroom.PaceReason) {
	switch {
	case c.throttle.why == anteroom.PaceOriginDown:
		return 0, c.throttle.why
	case c.throttle.on() && c.settings.QueueingMethod != anteroom.Passthrough:
		return int(c.throttle.perMinute), c.throttle.why
	}
	return c.settings.NewUsersPerMinute, anteroom.PaceLimits
}

// ratePerSecond is how many turns the coordinator may give in a second on average: twice what the limit
// allows, which evens out a rush, or exactly the pace of the throttle.
func (c *Coordinator) ratePerSecond() float64 {
	if c.throttle.on() {
		return c.throttle.perMinute / 60
	}
	return rateAt(c.settings.NewUsersPerMinute)
}

func rateAt(perMinute int) float64 { return 2 * float64(perMinute) / 60 }
