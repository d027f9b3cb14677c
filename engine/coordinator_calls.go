package engine

// Whose turn it is, and how much a site may keep while nobody waits.

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

func (c *Coordinator) reachable(now anteroom.Time) func(uint16) bool {
	return func(i uint16) bool { return c.answers(now, i) && !c.originDownAt(c.sites[i]) }
}

// awaitFor is how long a site whose process has just begun may take to tell who of its line is there, unless it says
// that all its doors have told it (Report.Gathered): every
// door in touch has spoken to it by then, and has told whose streams it has and who is due.
const awaitFor = 2 * doorBeat

// awaits says whether a site is about to tell that.
func (c *Coordinator) awaits(now anteroom.Time) func(uint16) bool {
	return func(i uint16) bool { return !c.sites[i].gathered && now.Sub(c.sites[i].began) < awaitFor }
}

// burst is how many releases may follow each other at once.
func (c *Coordinator) burst() float64 {
	if c.throttle.on() {
		return max(1, c.ratePerSecond())
	}
	return burstAt(c.settings.NewUsersPerMinute)
}

func burstAt(perMinute int) float64 { return max(5, float64(perMinute)/30) }

// regather gives a line that has lost touch the time to come back before anybody is
// called: after a restart whoever reconnected first would otherwise enter first.
func (c *Coordinator) regather(now anteroom.Time) { c.quiet = now.Add(claimHorizon) }

// dispatch gives turns to those whose turn it is while units last.
func (c *Coordinator) dispatch(now anteroom.Time) {
	for _, s := range c.sites {
		if s.answer && !s.told && s.lostAt == 0 {
			c.send(now, s) // a site takes no turns of a coordinator whose State it has not heard
		}
	}
	c.pace = min(c.burst(), c.pace+c.ratePerSecond()*now.Sub(c.paceAt).Seconds()+float64(c.line.unused))
	c.paceAt, c.line.unused = now, 0
	plenty := c.alive <= 1 || c.plenty()
	if c.mode == Queue && !c.closed() && now >= c.quiet && c.overlooks(now) && (plenty || c.letters.may(now)) {
		away := min(setAside(float64(c.settings.NewUsersPerMinute)), setAside(c.forecast.lastMinute())+int(min(c.permits(), 1<<20)))
		batch, ahead := map[SiteKey][]anteroom.ID{}, map[SiteKey][]anteroom.ID{}
		at := now.Add(c.effectDelay(now))
		c.line.looks, c.line.drawn = maxLooks, c.line.drawn[:0]
		r := turn{seed: c.seed, draws: &c.draws, reachable: c.reachable(now), awaits: c.awaits(now), away: away,
			spare: func(x *lane) bool { return c.spare(x) >= 1 }}
		if now < c.openedTill {
			r.expected = c.line.tick(c.openedTill)
		}
		for coming := c.coming(now); ; {
			c.fulfil(now, batch)
			early := c.permits() < 1
			if early && coming <= 0 {
				break
			}
			slot := c.line.next(now, r)
			if slot == 0 {
				break
			}
			if !early && len(c.called) > 0 && !c.line.before(slot, c.called[0]) {
				c.line.putBack(slot)
				break // the next dispatch gives the unit to the one who was called
			}
			p := c.line.places.at(slot)
			site := c.sites[p.site].key
			paced := p.flags&flagShown != 0 && !c.settings.Unpaced || c.throttle.on()
			if (paced && c.pace < 1) || !early && c.grant(site, 1) == 0 {
				c.line.putBack(slot)
				break
			}
			if paced {
				c.pace--
			}
			c.front = max(c.front, p.key)
			c.released++
			turn := givenTurn{at: at, ahead: early, paced: paced}
			if p.flags&flagStream == 0 {
				turn.at = max(at, c.line.moment(p.due))
			}
			c.line.offer(slot, turn)
			to := batch
			if early {
				coming--
				c.calledAt = now
				c.called = append(c.called, slot)
				to = ahead
			}
			to[site] = append(to[site], c.line.places.id(slot))
		}
		if len(batch)+len(ahead) > 0 && !plenty {
			c.letters.take(now)
		}
		for _, s := range c.sites {
			if ids, early := batch[s.key], ahead[s.key]; len(ids)+len(early) > 0 {
				c.lastAt = at
				m := c.offers(s, at, ids)
				m.Offers.Ahead = early
				if now < c.openedTill {
					m.Offers.Expected = c.openedTill
				}
				c.post(s, m)
			}
		}
		if c.line.waiting() == 0 && now >= c.lastAt && c.spare(nil) > c.reopenAbove() && !c.throttle.on() {
			c.setMode(Open)
		}
	}
	c.sendFindings()
	for _, s := range c.sites {
		if s.answer && s.lostAt == 0 {
			c.send(now, s)
		}
	}
}

// calledMost bounds those who are called and whose units have yet to come.
const calledMost = 1_000

func (c *Coordinator) offers(s *siteView, at anteroom.Time, ids []anteroom.ID) ToSite {
	return ToSite{Offers: &Offers{Epoch: c.epoch, Granted: c.ledger.accounts[s.key].Granted, Adopted: s.adopted, At: at, IDs: ids}}
}

// coming is how many more visitors may be called ahead of units that come free soon. With lanes, a unit has to be there
// to say whose turn it is, and soon after the room was opened for a turn to stand until its visitor is due.
func (c *Coordinator) coming(now anteroom.Time) int64 {
	if now.Sub(c.calledAt) < 2*flushEvery || now < c.openedTill || c.closed() || c.throttle.on() || c.line.parted() || c.permits() >= 1 {
		return 0
	}
	n := [units]int64{c.ledger.Pool(Seat), c.ledger.Pool(RateSlot)}
	for _, s := range c.sites {
		if s.lostAt == 0 && !s.bare {
			for k := range n {
				n[k] += int64(min(s.coming[k], anteroom.MaxUsers))
			}
		}
	}
	return max(0, min(n[Seat], n[RateSlot], calledMost)-int64(len(c.called)))
}

// fulfil grants units to those who were called ahead of them, in that order, unless somebody further in front is back.
func (c *Coordinator) fulfil(now anteroom.Time, batch map[SiteKey][]anteroom.ID) {
	stopped, reachable := false, c.reachable(now)
	c.called = slices.DeleteFunc(c.called, func(slot uint32) bool {
		turn := c.line.offers[slot]
		at := c.line.places.at(slot).site
		switch site := c.sites[at].key; {
		case !turn.ahead:
			return true
		case !reachable(at):
			c.line.back(slot, false)
			return true
		case stopped || c.permits() < 1 || c.line.front(slot) || c.grant(site, 1) == 0:
			stopped = true
			return false
		default:
			turn.ahead = false
			c.line.offers[slot] = turn
			batch[site] = append(batch[site], c.line.places.id(slot))
			return true
		}
	})
}

// AdmitNow gives turns to the next n in line, at once and unpaced, also while the room is held,
// and never beyond the two limits. Those who are not here at the moment have the turn until
// their next check-in. It returns how many got one.
func (c *Coordinator) AdmitNow(now anteroom.Time, n int) (given int) {
	permits := func() int { return int(min(c.ledger.Permits(), anteroom.MaxUsers)) }
	at, batch := now.Add(c.effectDelay(now)), map[SiteKey][]anteroom.ID{}
	c.line.drawn = c.line.drawn[:0]
	answers := func(i uint16) bool { return c.answers(now, i) } // whether its origin does is the operator's to judge
	for _, slot := range c.line.first(now, min(n, permits()), c.seed, &c.draws, answers) {
		p := c.line.places.at(slot)
		site := c.sites[p.site].key
		if c.grant(site, 1) == 0 { // the store has not confirmed the next block yet
			c.line.putBack(slot)
			continue
		}
		c.front = max(c.front, p.key)
		c.released++
		c.line.offer(slot, givenTurn{at: max(at, c.line.moment(p.due))})
		batch[site] = append(batch[site], c.line.places.id(slot))
		given++
	}
	for _, s := range c.sites {
		if ids := batch[s.key]; ids != nil {
			c.lastAt = at
			m := c.offers(s, at, ids)
			m.Offers.ByHand = true
			c.post(s, m)
		}
	}
	c.dispatch(now)
	return given
}

// setAside is how many winners who are away may keep their win: as many as are released
// while a check-in is due, and some. With more, those who are here would be drawn again and
// again before the others come back.
func setAside(perMinute float64) int {
	return int(math.Ceil(1.3 * perMinute / 60 * drawInterval.Seconds()))
}

// reopenAbove is how many permits must be free before newcomers are let in without asking.
// With one site there is nobody to race with, so any will do.
func (c *Coordinator) reopenAbove() int64 {
	if n := c.alive; n > 1 {
		return max(int64(c.settings.TotalActiveUsers/100), int64(2*n))
	}
	return int64(min(c.settings.TotalActiveUsers, c.settings.NewUsersPerMinute)) / 100
}

// plenty: so much is free that nobody ought to wait for messages to travel together.
func (c *Coordinator) plenty() bool {
	return c.permits() >= int64(max(c.settings.TotalActiveUsers/50, holdLine))
}

// effectDelay is how far ahead offers take effect: far enough for the slowest site to have
// them. A single site has nobody to be simultaneous with.
func (c *Coordinator) effectDelay(now anteroom.Time) time.Duration {
	if c.alive <= 1 {
		return 0
	}
	slowest := time.Duration(0)
	for i, s := range c.sites {
		if c.answers(now, uint16(i)) {
			slowest = max(slowest, s.trip/2)
		}
	}
	return min(slowest, maxDelay) + EffectMargin
}

// target is the number of idle permits that a site may keep while nobody waits: of half of what is
// free, three tenths go by the sites' weights and the rest by who had newcomers lately.
func (c *Coordinator) target(now anteroom.Time, s *siteView) uint64 {
	if c.mode != Open || c.closed() {
		return 0
	}
	free := float64(c.spare(nil)) + float64(c.idle)
	if free < max(float64(c.settings.TotalActiveUsers)/50, 10) {
		return 0
	}
	weight := float64(s.weight) / float64(max(c.weights, 1))
	share := weight
	if all := c.demand.at(now); all > 1e-6 { // below, what is left is the sum's rounding
		share = min(s.demand.at(now)/all, 1)
	}
	return uint64(free / 2 * (0.3*weight + 0.7*share))
}

// lendRates tells how many idle rate slots a site may keep, and gives it what it has less. A rate slot is free again a minute after
// an admission, most seats are later: without a rate slot beside it, a cut site could give the seat of a session that ends to nobody.
func (c *Coordinator) lendRates(now anteroom.Time, s *siteView) (kept uint64) {
	a := c.ledger.accounts[s.key]
	if c.alive <= 1 || c.closed() || a == nil || a.charged(Seat) <= 0 || c.idleRates <= 0 {
		return 0
	}
	own, all := a.charged(Seat), c.ledger.charged[Seat]
	keep := min(own, int64(float64(c.idleRates)*float64(own)/float64(all)))
	if n := keep - a.charged(RateSlot) + int64(s.used[RateSlot]); n > 0 && s.greeted && now.Sub(s.heard) < DeadAfter {
		c.reserve(s.key, uint64(n))
		c.ledger.GrantRates(s.key, n)
	}
	return uint64(keep)
}

// countRates finds out how many idle rate slots all sites together may keep: what is idle beyond half of the rate, which stays here,
// so that no site lacks what another one keeps. Where it is the rate that visitors wait for, that is none.
func (c *Coordinator) countRates() {
	idle := c.ledger.Limit[RateSlot] / 2
	for _, s := range c.sites {
		if a := c.ledger.accounts[s.key]; a != nil {
			used := int64(s.used[RateSlot])
			if s.lostAt != 0 || !s.greeted { // what it has may all be in use
				used = a.charged(RateSlot)
			}
			idle -= used
		}
	}
	for _, x := range c.line.lanes {
		idle -= c.kept(x)[RateSlot]
	}
	c.idleRates = idle
}

// demand is how many newcomers there were lately, with a memory of 30 s.
type demand struct {
	n     float64
	since anteroom.Time
}

func (d *demand) at(now anteroom.Time) float64 {
	return d.n * math.Exp(-now.Sub(d.since).Seconds()/30)
}

func (d *demand) add(now anteroom.Time, n float64) { *d = demand{d.at(now) + n, now} }
