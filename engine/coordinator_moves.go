package engine

// A ticket lives at one site. When it turns up at another, the coordinator asks the site where its
// session is, by the cookie, or where it waits, or all of them, and tells the asker. A place moves
// to the asker.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// movedFor is for how long what the coordinator remembers could revive a used ticket: longer
	// than a site repeats what it said of it.
	movedFor     = goneFor + 15*time.Second
	inquireEvery = time.Second
	questionLife = 10 * time.Second
	maxQuestions = 10_000
)

// question is a ticket that turned up at a site and of which the others have to say whether
// they hold it.
type question struct {
	Ask
	asker  uint16
	others []uint16 // sites where it turned up while the question was open, in that order
	from   []uint16 // who has not answered yet
	best   Finding
	closed bool
	silent bool // somebody who may hold it cannot be asked
	opened anteroom.Time
	asked  anteroom.Time
}

// answers says whether a site can be asked.
func (c *Coordinator) answers(now anteroom.Time, i uint16) bool {
	return c.sites[i].lostAt == 0 && now.Sub(c.sites[i].heard) < DeadAfter
}

// inquire looks for the ticket that turned up at a site.
func (c *Coordinator) inquire(now anteroom.Time, a Ask, asker uint16) {
	if q := c.questions[a.ID]; q != nil {
		q.Seen, q.Accepted, q.Over = max(q.Seen, a.Seen), max(q.Accepted, a.Accepted), q.Over || a.Over
		if q.asker != asker && !slices.Contains(q.others, asker) {
			q.others = append(q.others, asker)
		} else if now.Sub(q.asked) >= holdMax/2 {
			c.askOn(now, q) // the asker waits: something was lost
		}
		return
	}
	slot, silent := c.line.places.find(&a.ID), false
	homes := slices.ContainsFunc(c.sites, func(s *siteView) bool { return s.lostAt == 0 && s.home == a.Home })
	var from []uint16
	if c.settled(slot, asker) && !homes {
		if at := c.line.places.at(slot).site; c.answers(now, at) {
			from = append(from, at)
		}
		c.ask(now, a, asker, from, false)
		return
	}
	for i, s := range c.sites {
		switch {
		case uint16(i) == asker || s.lostAt != 0 || homes && s.home != a.Home:
		case c.answers(now, uint16(i)):
			from = append(from, uint16(i))
		case homes || now.Sub(s.heard) < max(c.settings.SessionDuration, RateHold):
			silent = true
		}
	}
	c.ask(now, a, asker, from, silent)
}

// settled says that a place is at another site than the asker and the ticket nowhere else.
func (c *Coordinator) settled(slot uint32, asker uint16) bool {
	if slot == 0 {
		return false
	}
	p := c.line.places.at(slot)
	return p.site != asker && p.flags&flagUnsure == 0
}

// ask opens a question.
func (c *Coordinator) ask(now anteroom.Time, a Ask, asker uint16, from []uint16, silent bool) {
	if c.questions[a.ID] != nil || len(c.questions) >= maxQuestions {
		return // the site does without an answer
	}
	q := &question{Ask: a, asker: asker, from: from, best: Finding{ID: a.ID}, silent: silent, opened: now}
	c.questions[a.ID] = q
	c.asking = append(c.asking, q)
	if c.askOn(now, q); len(from) == 0 {
		c.resolve(now, q)
	}
}

// askOn asks those who have not answered.
func (c *Coordinator) askOn(now anteroom.Time, q *question) {
	q.asked = now
	for _, i := range q.from {
		c.sites[i].inquire = append(c.sites[i].inquire, q.Ask)
	}
}

// tell lets a site know where a ticket stood.
func (c *Coordinator) tell(i uint16, f Finding) { c.sites[i].found = append(c.sites[i].found, f) }

// heardOf takes what a site says of a ticket that it was asked about.
func (c *Coordinator) heardOf(now anteroom.Time, i uint16, f Finding) {
	q := c.questions[f.ID]
	if f.Home != 0 { // a session was ended, which nobody has asked for
		for k := range c.sites {
			if uint16(k) != i {
				c.tell(uint16(k), f)
			}
		}
	}
	if q == nil {
		return
	}
	k := slices.Index(q.from, i)
	if k < 0 {
		return
	}
	q.from = slices.Delete(q.from, k, k+1)
	if weight(f.Standing) > weight(q.best.Standing) {
		q.best = f
		q.best.Home = c.sites[i].home
	}
	if len(q.from) == 0 || q.best.Standing == Seated {
		c.resolve(now, q)
	}
}

// weight orders what several sites say of one ticket.
func weight(s Standing) int { return [...]int{Unknown: 0, Waiting: 1, Used: 2, Seated: 3}[s&3] }

// resolve ends a question.
func (c *Coordinator) resolve(now anteroom.Time, q *question) {
	f := q.best
	slot := c.line.places.find(&q.ID)
	switch {
	case f.Standing == Used, f.Standing == Seated:
		if slot != 0 {
			c.line.remove(slot)
		}
	case q.silent && (q.Over || q.Home != 0 || q.Accepted != 0 || slot == 0 && f.Standing == Unknown ||
		slot != 0 && c.line.places.at(slot).site == q.asker):
		// Its session may be where nobody can ask, and that the line has its place at the asker says nothing of
		// that: the site decides as if it were cut off, and asks again when the visitor comes again.
		c.closeQuestion(now, q)
		return
	case q.Over:
	case slot != 0:
		p := c.line.places.at(slot)
		f = Finding{ID: q.ID, Standing: Waiting, Key: p.key, Lane: p.lane}
		if !q.silent {
			p.flags &^= flagUnsure
		}
		c.line.moveTo(slot, q.asker, now)
	}
	c.tell(q.asker, f)
	c.closeQuestion(now, q)
}

func (c *Coordinator) closeQuestion(now anteroom.Time, q *question) {
	delete(c.questions, q.ID)
	q.closed = true
	for _, i := range q.others {
		c.inquire(now, q.Ask, i)
	}
}

// conflict handles a ticket that checks in at a site while its place is at another, and
// reports whether the check-in counts.
func (c *Coordinator) conflict(now anteroom.Time, a Arrival, i uint16, full bool) bool {
	slot := c.line.places.find(&a.ID)
	if slot == 0 {
		return true
	}
	p := c.line.places.at(slot)
	if p.site == i || c.sites[p.site].lostAt != 0 {
		return true
	}
	if !c.answers(now, p.site) {
		return true // it sorts itself out when that site is back
	}
	// A stream is where the visitor is, and so is a request that is held there. A check-in that comes
	// from elsewhere was told late, or the site will ask when its visitor comes near the front.
	if q := c.questions[a.ID]; !full && !a.Stream && (p.flags&flagStream != 0 || q != nil && q.asker != i) {
		return false
	}
	t := c.line.tick(now)
	if !full && !a.Stream && c.line.tick(a.Due)+lateBy < t {
		return false // a stream that broke, for its visitor has gone on: nobody checks in here
	}
	if full && (c.line.present(p, t) || !a.Stream && c.line.tick(a.Due)+lateBy < t) {
		// Everything that waits there, and this one has gone elsewhere: there it stays.
		c.ask(now, Ask{ID: a.ID}, p.site, []uint16{i}, false)
		return false
	}
	c.inquire(now, Ask{ID: a.ID}, i)
	return p.state != offered // its turn is withdrawn first
}

// moveTo gives a place to another site. It is passed over until it checks in there.
func (l *line) moveTo(slot uint32, site uint16, now anteroom.Time) {
	p := l.places.at(slot)
	if p.site == site {
		return
	}
	p.site, p.due = site, l.tick(now)
	if p.flags&flagStream != 0 {
		p.flags &^= flagStream
		l.streams--
	}
	l.withdraw(slot)
	if p.state != dormant {
		l.setState(slot, parked)
	}
}

// pursue repeats open questions, stops waiting for sites that have fallen silent, and forgets
// what takes too long.
func (c *Coordinator) pursue(now anteroom.Time) {
	open := c.asking
	c.asking = nil
	for _, q := range open {
		switch {
		case q.closed:
			continue
		case now.Sub(q.opened) > questionLife: // they are heard, and hear nothing
			q.silent = true
			c.resolve(now, q)
			continue
		}
		waited := len(q.from)
		q.from = slices.DeleteFunc(q.from, func(i uint16) bool { return !c.answers(now, i) })
		if q.silent = q.silent || len(q.from) < waited; len(q.from) == 0 {
			c.resolve(now, q)
		} else if now.Sub(q.asked) >= inquireEvery {
			c.askOn(now, q)
		}
		if !q.closed {
			c.asking = append(c.asking, q)
		}
	}
}

// sendFindings posts what was asked and found.
func (c *Coordinator) sendFindings() {
	for _, s := range c.sites {
		if len(s.found) > 0 {
			c.post(s, ToSite{Findings: &Findings{Epoch: c.epoch, Found: s.found}})
			s.found = nil
		}
		if len(s.keys) > 0 {
			c.sendKeys(s)
		}
		if len(s.inquire) > 0 {
			c.post(s, ToSite{Inquiry: &Inquiry{Epoch: c.epoch, Asks: s.inquire}})
			s.inquire = nil
		}
	}
}

// post sends a message to a site's process.
func (c *Coordinator) post(s *siteView, m ToSite) {
	m.Site, m.Term = s.key, s.term
	c.out = append(c.out, m)
}
