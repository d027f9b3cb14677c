package engine

// A ticket lives at one site. When it turns up at another, the coordinator asks the site
// where it is, or all of them, and moves what they give up.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// movedFor is how long the coordinator remembers where a session went: longer than a site
	// repeats what it said of it.
	movedFor     = goneFor + 15*time.Second
	maxMoved     = 100_000
	inquireEvery = time.Second
	questionLife = 10 * time.Second
	maxQuestions = 10_000
)

// question is a ticket that turned up at a site and of which the others have to say whether
// they hold it.
type question struct {
	id     anteroom.ID
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
func (c *Coordinator) inquire(now anteroom.Time, id anteroom.ID, asker uint16) {
	if q := c.questions[id]; q != nil {
		if q.asker != asker && !slices.Contains(q.others, asker) {
			q.others = append(q.others, asker)
		}
		return
	}
	slot, silent := c.line.places.find(&id), false
	var from []uint16
	switch moves := c.moves[id]; {
	case len(moves) > 0:
		// Given up already. Whoever was told of it and has not said that it took it has to say
		// that it does not.
		for _, m := range moves {
			switch {
			case m.to == c.sites[asker]:
				c.tellMove(now, m, m.to) // the answer was lost: once more
				return
			case m.to == nil:
			case c.inTouch(now, m.to):
				from = append(from, uint16(c.numbers[m.to.key]))
			default:
				silent = true
			}
		}
	case c.settled(slot, asker):
		if at := c.line.places.at(slot).site; c.answers(now, at) {
			from = append(from, at)
		}
	default:
		for i, s := range c.sites {
			switch {
			case uint16(i) == asker || s.lostAt != 0:
			case c.answers(now, uint16(i)):
				from = append(from, uint16(i))
			case now.Sub(s.heard) < max(c.settings.SessionDuration, RateHold):
				silent = true
			}
		}
	}
	c.ask(now, id, asker, from, silent)
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
func (c *Coordinator) ask(now anteroom.Time, id anteroom.ID, asker uint16, from []uint16, silent bool) {
	if c.questions[id] != nil || len(c.questions) >= maxQuestions {
		return // the site does without an answer
	}
	q := &question{id: id, asker: asker, from: from, best: Finding{ID: id}, silent: silent, opened: now, asked: now}
	c.questions[id] = q
	c.asking = append(c.asking, q)
	for _, i := range from {
		c.sites[i].inquire = append(c.sites[i].inquire, id)
	}
	if len(from) == 0 {
		c.resolve(now, q)
	}
}

// entered notes that a ticket which has moved lately was let in somewhere.
func (c *Coordinator) entered(now anteroom.Time, id anteroom.ID, site uint16) {
	if to, went := c.moved.get(id); went && to != c.sites[site].key {
		c.moved.put(id, c.sites[site].key, now.Add(movedFor))
	}
}

// tell lets a site know where a ticket stood.
func (c *Coordinator) tell(i uint16, f Finding) { c.sites[i].found = append(c.sites[i].found, f) }

// heardOf takes what a site says of a ticket that it was asked about. A session that it has given
// up comes with Report.Gave.
func (c *Coordinator) heardOf(now anteroom.Time, i uint16, f Finding, current bool) {
	if current { // else it may have taken it, and given it up again, by a report that was overtaken
		c.denied(c.sites[i], f)
	}
	q := c.questions[f.ID]
	if q == nil || f.Standing == Seated {
		return
	}
	k := slices.Index(q.from, i)
	if k < 0 {
		return
	}
	q.from = slices.Delete(q.from, k, k+1)
	if weight(f.Standing) > weight(q.best.Standing) {
		q.best = f
	}
	if len(q.from) == 0 {
		c.resolve(now, q)
	}
}

// weight orders what several sites say of one ticket.
func weight(s Standing) int { return [...]int{Unknown: 0, Waiting: 1, Used: 2, Seated: 3}[s&3] }

// resolve ends a question.
func (c *Coordinator) resolve(now anteroom.Time, q *question) {
	f, s, id := q.best, c.sites[q.asker], q.id
	slot := c.line.places.find(&id)
	switch {
	case len(c.moves[id]) > 0:
		told, wait := false, false
		for _, m := range c.moves[id] {
			switch {
			case m.to != nil && m.to != s, !c.known(m), c.taken(m):
			case s.lostAt == 0 && c.tellMove(now, m, s):
				told = true
			default:
				wait = s.lostAt == 0 // the store has not confirmed the next block yet
			}
		}
		if wait && !told {
			return
		}
		if told && slot != 0 {
			c.line.remove(slot)
		}
		c.closeQuestion(now, q)
		return
	case f.Standing == Used:
		if slot != 0 {
			c.line.remove(slot)
		}
	case slot != 0:
		p := c.line.places.at(slot)
		f = Finding{ID: id, Standing: Waiting, Key: p.key, Lane: p.lane}
		if !q.silent {
			p.flags &^= flagUnsure
		}
		c.line.moveTo(slot, q.asker, now)
	case f.Standing == Unknown && q.silent:
		// It may be where nobody can ask: the site decides as if it were cut off.
		c.closeQuestion(now, q)
		return
	}
	c.tell(q.asker, f)
	c.closeQuestion(now, q)
}

func (c *Coordinator) closeQuestion(now anteroom.Time, q *question) {
	delete(c.questions, q.id)
	q.closed = true
	for _, i := range q.others {
		c.inquire(now, q.id, i)
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
		c.ask(now, a.ID, p.site, []uint16{i}, false)
		return false
	}
	c.inquire(now, a.ID, i)
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
	delete(l.offers, slot)
	if p.state != dormant {
		l.setState(slot, parked)
	}
}

// pursue repeats open questions, stops waiting for sites that have fallen silent, and forgets
// what takes too long.
func (c *Coordinator) pursue(now anteroom.Time) {
	c.moved.forget(now)
	c.carry(now)
	open := c.asking
	c.asking = nil
	for _, q := range open {
		switch {
		case q.closed:
			continue
		case now.Sub(q.opened) > questionLife:
			c.closeQuestion(now, q)
			continue
		}
		waited := len(q.from)
		q.from = slices.DeleteFunc(q.from, func(i uint16) bool { return !c.answers(now, i) })
		if q.silent = q.silent || len(q.from) < waited; len(q.from) == 0 {
			c.resolve(now, q)
		} else if now.Sub(q.asked) >= inquireEvery {
			q.asked = now
			for _, i := range q.from {
				c.sites[i].inquire = append(c.sites[i].inquire, q.id)
			}
		}
		if !q.closed {
			c.asking = append(c.asking, q)
		}
	}
}
