package engine

// Sessions between two sites, at the coordinator: which were given up, whom they were told, and
// when their seats are charged there.

import (
	"slices"

	"github.com/anteroom/anteroom"
)

// move is a session that a site has given up. Its seat is charged to that site until the move is
// settled.
type move struct {
	Finding
	from *siteView
	to   *siteView // who was told that it comes; nil: nobody
	told uint64    // the number of the newest message that told it; 0: none has left yet
	at   anteroom.Time
	// unsure: another site may have been told of it by an earlier coordinator.
	unsure bool
	queued bool // is told with the next messages
	over   bool // settled
}

func (m *move) name() Move { return Move{m.ID, m.Number} }

// transit takes a report's word of sessions between sites. In reports of a site that has not heard
// this coordinator, or that were overtaken, the lists may be out of date.
func (c *Coordinator) transit(now anteroom.Time, s *siteView, r Report, current, first bool) {
	c.ledger.Left(s.key, r.Out)
	s.in = max(s.in, r.In)
	if !current {
		return
	}
	s.took = s.took[:0]
	for _, t := range r.Took {
		if !slices.Contains(s.settled, t) {
			s.took = append(s.took, t)
		}
	}
	var fresh []*move
	for _, f := range r.Gave {
		name := Move{f.ID, f.Number}
		if slices.Contains(s.settled, name) {
			continue
		}
		m := c.moveOf(name)
		if m == nil || m.from != s {
			m = &move{Finding: f, from: s, unsure: first}
			c.moves[f.ID] = append(c.moves[f.ID], m)
			c.moving = append(c.moving, m)
			fresh = append(fresh, m)
		}
		m.Last = max(m.Last, f.Last)
	}
	s.settled = slices.DeleteFunc(s.settled, func(t Move) bool {
		return !slices.Contains(r.Took, t) && !slices.ContainsFunc(r.Gave, func(f Finding) bool { return f.ID == t.ID && f.Number == t.Number })
	})
	for _, m := range c.moving { // not in its journal: it has the session still
		if m.from == s && m.to == nil && !m.over && !slices.ContainsFunc(r.Gave, func(f Finding) bool { return f.ID == m.ID && f.Number == m.Number }) {
			c.forgetMove(m)
		}
	}
	c.settle()
	for _, m := range fresh {
		if q := c.questions[m.ID]; q != nil {
			c.resolve(now, q)
		} else {
			c.place(now, m)
		}
	}
}

// moveOf is the open move of that name, or nil.
func (c *Coordinator) moveOf(name Move) *move {
	for _, m := range c.moves[name.ID] {
		if m.Number == name.Number {
			return m
		}
	}
	return nil
}

// known says that nobody but who was told by this coordinator can take the session: this one
// knows its whole story, or all sites have heard this one and so do not listen to earlier ones.
func (c *Coordinator) known(m *move) bool {
	return !m.unsure || c.heardByAll()
}

func (c *Coordinator) heardByAll() bool {
	return !slices.ContainsFunc(c.sites, func(s *siteView) bool { return s.lostAt == 0 && s.since == 0 })
}

// taken says that some site has reported that it took the session.
func (c *Coordinator) taken(m *move) bool {
	return slices.ContainsFunc(c.sites, func(s *siteView) bool { return slices.Contains(s.took, m.name()) })
}

// settle charges the seats of sessions that were taken to the sites that took them.
func (c *Coordinator) settle() {
	for _, s := range c.sites {
		if s.lostAt != 0 {
			continue // what it took is looked for at its successor
		}
		s.took = slices.DeleteFunc(s.took, func(t Move) bool {
			m := c.moveOf(t)
			if m == nil && !c.heardByAll() || !c.reserve(s.key, 1) {
				return false
			}
			from := SiteKey{} // settled by an earlier coordinator, or forgotten with a memory
			if m != nil {
				from = m.from.key
			}
			c.ledger.Carry(from, s.key)
			s.in++
			s.settled, s.answer = append(s.settled, t), true
			if m != nil {
				c.closeMove(m)
			}
			return true
		})
	}
}

// closeMove ends a move, of which its giver hears.
func (c *Coordinator) closeMove(m *move) {
	m.over = true
	if !slices.Contains(m.from.settled, m.name()) {
		m.from.settled = append(m.from.settled, m.name())
	}
	m.from.answer = true
	c.forgetMove(m)
}

func (c *Coordinator) forgetMove(m *move) {
	m.over = true
	if rest := slices.DeleteFunc(c.moves[m.ID], func(x *move) bool { return x == m }); len(rest) > 0 {
		c.moves[m.ID] = rest
	} else {
		delete(c.moves, m.ID)
	}
}

// tellMove sends a session to a site. It is not told before the store has confirmed that the seat
// can be granted there.
func (c *Coordinator) tellMove(now anteroom.Time, m *move, to *siteView) bool {
	if !c.reserve(to.key, 1) {
		return false
	}
	if m.to != to {
		m.to, m.told = to, 0
	}
	m.at = now
	if !m.queued {
		m.queued = true
		c.telling = append(c.telling, m)
	}
	c.moved.put(m.ID, to.key, now.Add(movedFor))
	return true
}

// place sends a session that nobody asks for any more where it went last, or back.
func (c *Coordinator) place(now anteroom.Time, m *move) {
	if m.to != nil || m.over || !c.known(m) || c.taken(m) {
		return
	}
	to := m.from
	if key, went := c.moved.get(m.ID); went {
		if i, known := c.numbers[key]; known && c.sites[i].lostAt == 0 {
			to = c.sites[i]
		}
	}
	if to.lostAt == 0 {
		c.tellMove(now, m, to)
	}
}

// denied takes a site's word that it does not hold a session which it was perhaps told of. It
// says so for good when it had the message, or answers a question that was asked later: then it
// takes the session no more.
func (c *Coordinator) denied(s *siteView, f Finding) {
	for _, m := range c.moves[f.ID] {
		if m.to == s && f.Number > m.told && !slices.Contains(s.took, m.name()) {
			m.to, m.told = nil, 0
		}
	}
}

// carry repeats what was told and not taken, and releases seats of sessions that must have ended
// on their way.
func (c *Coordinator) carry(now anteroom.Time) {
	open := c.moving[:0]
	for _, m := range c.moving {
		if m.over {
			continue
		}
		open = append(open, m)
		if m.to != nil && m.to.lostAt != 0 {
			m.Last = max(m.Last, m.to.lostAt) // it may have been seen there
			m.to, m.told = nil, 0
		}
		switch _, asked := c.questions[m.ID]; {
		case asked || c.taken(m):
		case m.to == nil && c.known(m) && now >= over(&c.settings, m.Accepted, m.Last):
			c.ledger.Carry(m.from.key, SiteKey{})
			c.closeMove(m)
		case m.to == nil:
			c.place(now, m)
		case now.Sub(m.at) >= inquireEvery && c.inTouch(now, m.to):
			c.tellMove(now, m, m.to)
		}
	}
	clear(c.moving[len(open):])
	c.moving = open
}

func (c *Coordinator) inTouch(now anteroom.Time, s *siteView) bool {
	return s.lostAt == 0 && now.Sub(s.heard) < DeadAfter
}

// carriesFrom says that a lost site's sessions may still be taken elsewhere, with its seats.
func (c *Coordinator) carriesFrom(lost *siteView) bool {
	return !c.heardByAll() || slices.ContainsFunc(c.moving, func(m *move) bool { return !m.over && m.from == lost && m.to != nil })
}

// forsake forgets the sessions that a lost site has given up, and that must have ended.
func (c *Coordinator) forsake(lost *siteView) {
	for _, m := range c.moving {
		if !m.over && m.from == lost {
			c.forgetMove(m)
		}
	}
}

// sendMoves posts what was asked and found.
func (c *Coordinator) sendMoves() {
	for _, m := range c.telling {
		if m.queued = false; m.to != nil && !m.over {
			m.to.found = append(m.to.found, m.Finding)
		}
	}
	for _, s := range c.sites {
		if len(s.found) > 0 {
			c.number++
			for _, m := range c.telling {
				if m.to == s && !m.over {
					m.told = c.number
				}
			}
			c.post(s, ToSite{Findings: &Findings{Epoch: c.epoch, Number: c.number,
				Granted: c.ledger.accounts[s.key].Granted, Adopted: s.adopted, In: s.in, Found: s.found}})
			s.found = nil
		}
		if len(s.keys) > 0 {
			c.sendKeys(s)
		}
		if len(s.inquire) > 0 {
			c.number++
			c.post(s, ToSite{Inquiry: &Inquiry{Epoch: c.epoch, Number: c.number, IDs: s.inquire}})
			s.inquire = nil
		}
	}
	clear(c.telling)
	c.telling = c.telling[:0]
}

// post sends a message to a site's process.
func (c *Coordinator) post(s *siteView, m ToSite) {
	m.Site, m.Term = s.key, s.term
	c.out = append(c.out, m)
}
