package engine

// What the host of a coordinator needs beside messages and time.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// StoreFailed says that the record of the last Needs is not durable: it is needed again.
func (c *Coordinator) StoreFailed() { c.dirty = true }

// RestAfter is how long a room's sites are silent before its coordinator may rest: a site with
// anybody in line or in a session is not.
const RestAfter = 30 * time.Second

// Rest returns the record with which the coordinator of a room that nobody uses can be given up:
// it reserves nothing ahead, so that a later coordinator does not have to hear of every site
// before it can grant. ok is false when somebody is there. The record is needed, and the
// coordinator is not to be called any more, whether it can be stored or not.
func (c *Coordinator) Rest(now anteroom.Time) (rec LedgerRecord, ok bool) {
	if c.line.places.len() > 0 || len(c.questions) > 0 || len(c.out) > 0 {
		return rec, false
	}
	for _, s := range c.sites {
		if s.lostAt == 0 && now.Sub(s.heard) < RestAfter {
			return rec, false
		}
	}
	rec.Epoch, rec.Rested = c.epoch, true
	for _, s := range c.sites {
		if a := c.ledger.accounts[s.key]; a != nil {
			rec.Sites = append(rec.Sites, ReservedUnits{Site: s.key, Reserved: a.Granted, Returned: a.Returned, Term: s.term})
		}
	}
	return rec, true
}

// knock has sites hear of this coordinator that have not asked and are charged for units: after a
// change of coordinators what was reserved ahead for them, and while people wait what they keep
// for nobody.
func (c *Coordinator) knock(now anteroom.Time) {
	if now.Sub(c.knockedAt) < heartbeatOpen {
		return
	}
	c.knockedAt = now
	for _, s := range c.sites {
		a := c.ledger.accounts[s.key]
		switch {
		case s.lostAt != 0 || a == nil || a.charged(Seat) == 0 && a.charged(RateSlot) == 0:
		case !s.greeted, c.mode == Queue && s.idle > 0 && now.Sub(s.heard) >= DeadAfter:
			s.answer = true
		}
	}
}

// Gather asks every site for all that waits there, as of now: see Gathered.
func (c *Coordinator) Gather(now anteroom.Time) {
	c.gatherAt = now
	for _, s := range c.sites {
		s.whole, s.resync, s.answer = false, true, true
	}
	c.dispatch(now)
}

// Gathered reports that the line is complete: every site that is in touch has told of all who
// waited there when Gather was called.
func (c *Coordinator) Gathered(now anteroom.Time) bool {
	return !slices.ContainsFunc(c.sites, func(s *siteView) bool {
		return s.lostAt == 0 && !s.whole && now.Sub(s.heard) < DeadAfter
	})
}

// gatherFor bounds how long a shuffle waits for sites that have not told of all who wait there: one that cannot be
// reached must not delay the start for all others.
const gatherFor = 2 * time.Second

// GatherOver reports that nothing more is waited for after Gather.
func (c *Coordinator) GatherOver(now anteroom.Time) bool {
	return c.Gathered(now) || now.Sub(c.gatherAt) >= gatherFor
}

// MustStore reports that Needs would return a record.
func (c *Coordinator) MustStore() bool { return c.dirty }
