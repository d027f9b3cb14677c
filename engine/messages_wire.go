package engine

import (
	"math"
	"time"

	"slices"

	"github.com/anteroom/anteroom"
)

// The wire format of the messages between the machines. The first byte is the version of
// the format and the kind of message. Numbers are varints (as encoding/binary has them),
// ids raw, moments differences to a moment of the same message; one function describes a
// message for both directions, so that they cannot disagree. A message has one encoding,
// and parsing accepts no other: what it accepts encodes to the same bytes again.
//
// A message ends with its extensions: members that not every release knows, each with a tag
// and its length. Those that are zero are left out and those that are unknown are skipped, so
// that nodes of two releases understand each other while a cluster is upgraded. A new member is
// an extension with the next tag; a tag is never used again. What has no meaning without the
// new member takes another version of the format, which nodes of the old one refuse.

// wireLimit bounds a message, in bytes; a longer one is an error where it is parsed. Parsed,
// a message takes at most some eight times the space.
const wireLimit = 16 << 20

const wireVersion = 7

// WireVersion is the version of the format that this program writes and reads.
const WireVersion = wireVersion

// wireKind is the low half of the first byte.
type wireKind uint8

const (
	wireReport wireKind = iota + 1
	wireToSite
	wireFromDoor
	wireToDoor
)

func (k wireKind) String() string {
	names := [...]string{"message", "Report", "ToSite", "FromDoor", "ToDoor"}
	if int(k) < len(names) {
		return names[k]
	}
	return "message"
}

// The parts of ToSite.
const (
	partState uint8 = 1 + iota
	partOffers
	partInquiry
	partFindings
	partKeys
)

// AppendWire appends the encoded report to b.
func (r *Report) AppendWire(b []byte) []byte {
	c := writing(b, wireReport)
	c.report(r)
	return c.b
}

// ParseReport is the reverse of [Report.AppendWire]. Empty lists come back nil. The result
// shares nothing with b. The error says what is wrong with the bytes and where.
func ParseReport(b []byte) (Report, error) {
	var r Report
	c := reading(b, wireReport)
	c.report(&r)
	if err := c.end(); err != nil {
		return Report{}, err
	}
	return r, nil
}

// AppendWire appends the encoded message to b. Who sends the same Figures to many sites
// uses [FiguresCache.AppendToSite].
func (m *ToSite) AppendWire(b []byte) []byte { return (*FiguresCache)(nil).AppendToSite(b, m) }

// parseToSite is the reverse of [ToSite.AppendWire], see [ParseReport].
func parseToSite(b []byte) (ToSite, error) { return (*FiguresCache)(nil).ParseToSite(b) }

// AppendWire appends the encoded batch to b.
func (m *FromDoor) AppendWire(b []byte) []byte {
	c := writing(b, wireFromDoor)
	c.fromDoor(m)
	return c.b
}

// ParseFromDoor is the reverse of [FromDoor.AppendWire], see [ParseReport].
func ParseFromDoor(b []byte) (FromDoor, error) {
	var m FromDoor
	c := reading(b, wireFromDoor)
	c.fromDoor(&m)
	if err := c.end(); err != nil {
		return FromDoor{}, err
	}
	return m, nil
}

// AppendWire appends the encoded message to b. Who sends the same Figures to many doors uses
// [FiguresCache.AppendToDoor]. A QueueingMethod that is not one of
// [anteroom.QueueingMethods] is written as the empty one.
func (m *ToDoor) AppendWire(b []byte) []byte { return (*FiguresCache)(nil).AppendToDoor(b, m) }

// parseToDoor is the reverse of [ToDoor.AppendWire], see [ParseReport].
func parseToDoor(b []byte) (ToDoor, error) { return (*FiguresCache)(nil).ParseToDoor(b) }

// AppendToSite is [ToSite.AppendWire] with the cache's help.
func (f *FiguresCache) AppendToSite(b []byte, m *ToSite) []byte {
	c := writing(b, wireToSite)
	c.toSite(m, f)
	return c.b
}

// ParseToSite is parseToSite with the cache's help.
func (f *FiguresCache) ParseToSite(b []byte) (ToSite, error) {
	var m ToSite
	c := reading(b, wireToSite)
	c.toSite(&m, f)
	if err := c.end(); err != nil {
		return ToSite{}, err
	}
	return m, nil
}

// AppendToDoor is [ToDoor.AppendWire] with the cache's help.
func (f *FiguresCache) AppendToDoor(b []byte, m *ToDoor) []byte {
	c := writing(b, wireToDoor)
	c.toDoor(m, f)
	return c.b
}

// ParseToDoor is parseToDoor with the cache's help.
func (f *FiguresCache) ParseToDoor(b []byte) (ToDoor, error) {
	var m ToDoor
	c := reading(b, wireToDoor)
	c.toDoor(&m, f)
	if err := c.end(); err != nil {
		return ToDoor{}, err
	}
	return m, nil
}

func (c *coder) site(k *SiteKey) {
	c.text(&k.Name)
	unsigned(c, &k.Incarnation)
}

func (c *coder) units(u *Units) {
	for k := range u {
		unsigned(c, &u[k])
	}
}

// idBytes is the least that an element with an id takes; other elements take what is added.
const idBytes = len(anteroom.ID{})

func (c *coder) ids(s *[]anteroom.ID) { list(c, s, idBytes, (*coder).id) }

func (c *coder) report(r *Report) {
	c.site(&r.From)
	unsigned(c, &r.Epoch)
	unsigned(c, &r.Seq)
	c.moment(&r.Sent, 0)
	c.units(&r.Returned)
	c.units(&r.Used)
	unsigned(c, &r.Adopted)
	unsigned(c, &r.Idle)
	unsigned(c, &r.Newcomers)
	unsigned(c, &r.Want)
	c.flags(&r.Ask, &r.Full)
	signed(c, &r.Trip)
	list(c, &r.Departures, idBytes+1, func(c *coder, d *Departure) {
		c.id(&d.ID)
		named(c, &d.Why, Admitted, Declined)
	})
	list(c, &r.Arrivals, idBytes+3, func(c *coder, a *Arrival) {
		c.id(&a.ID)
		c.lane(&a.Lane, &a.Shown, &a.Stream, &a.Unheard, &a.Unproven)
		c.moment(&a.Key, r.Sent)
		c.moment(&a.Due, r.Sent)
	})
	c.asks(&r.Asks, r.Sent)
	c.found(&r.Found, r.Sent)
	unsigned(c, &r.Admitted)
	list(c, &r.Ends, 2, (*coder).ageCount)
	list(c, &r.Ages, 2, (*coder).ageCount)
	unsigned(c, &r.Term)
	unsigned(c, &r.Part)
	c.flags(&r.Last)
	c.extensions(extension{func() bool { return r.Weight != 0 }, func(c *coder) { unsigned(c, &r.Weight) }},
		extension{func() bool { return r.LostFor != 0 }, func(c *coder) { signed(c, &r.LostFor) }},
		extension{func() bool { return r.Timed }, func(c *coder) { c.flags(&r.Timed) }},
		extension{func() bool { return r.Origin != OriginFacts{} }, func(c *coder) { c.origin(&r.Origin) }},
		extension{func() bool { return r.Gathered }, func(c *coder) { c.flags(&r.Gathered) }},
		extension{func() bool { return len(r.Lanes) > 0 }, func(c *coder) {
			list(c, &r.Lanes, 3, func(c *coder, u *LaneUse) {
				unsigned(c, &u.Lane)
				c.units(&u.Used)
			})
		}},
		extension{func() bool { return r.Coming != Units{} }, func(c *coder) { c.units(&r.Coming) }})
}

func (c *coder) ageCount(a *AgeCount) {
	unsigned(c, &a.Age)
	unsigned(c, &a.Count)
}

func (c *coder) asks(s *[]Ask, base anteroom.Time) {
	list(c, s, idBytes+4, func(c *coder, a *Ask) {
		c.id(&a.ID)
		unsigned(c, &a.Home)
		c.moment(&a.Seen, base)
		if a.Seen != 0 {
			base = a.Seen
		}
		c.moment(&a.Accepted, base)
		c.flags(&a.Over)
	})
}

// found: moments follow those of the finding before, for Findings has no moment of its own.
func (c *coder) found(s *[]Finding, base anteroom.Time) {
	list(c, s, idBytes+6, func(c *coder, f *Finding) {
		c.id(&f.ID)
		named(c, &f.Standing, Unknown, Used)
		unsigned(c, &f.Lane)
		c.moment(&f.Key, base)
		c.moment(&f.Accepted, base)
		if f.Accepted != 0 {
			base = f.Accepted
		} else if f.Key != 0 {
			base = f.Key
		}
		c.moment(&f.Last, base)
		unsigned(c, &f.Home)
	})
}

func (c *coder) toSite(m *ToSite, cache *FiguresCache) {
	c.site(&m.Site)
	var part uint8
	switch {
	case m.State != nil:
		part = partState
	case m.Offers != nil:
		part = partOffers
	case m.Inquiry != nil:
		part = partInquiry
	case m.Findings != nil:
		part = partFindings
	case m.Keys != nil:
		part = partKeys
	}
	named(c, &part, partState, partKeys)
	switch part {
	case partState:
		present(c, &m.State)
		c.state(m.State, cache)
	case partOffers:
		present(c, &m.Offers)
		unsigned(c, &m.Offers.Epoch)
		c.units(&m.Offers.Granted)
		unsigned(c, &m.Offers.Adopted)
		c.moment(&m.Offers.At, 0)
		c.flags(&m.Offers.ByHand)
		c.ids(&m.Offers.IDs)
	case partInquiry:
		present(c, &m.Inquiry)
		unsigned(c, &m.Inquiry.Epoch)
		c.asks(&m.Inquiry.Asks, 0)
	case partFindings:
		present(c, &m.Findings)
		unsigned(c, &m.Findings.Epoch)
		c.found(&m.Findings.Found, 0)
	case partKeys:
		present(c, &m.Keys)
		unsigned(c, &m.Keys.Epoch)
		c.moment(&m.Keys.Shuffled, 0)
		base := m.Keys.Shuffled
		list(c, &m.Keys.Places, idBytes+1, func(c *coder, p *Placed) {
			c.id(&p.ID)
			c.moment(&p.Key, base)
			base = p.Key
		})
	}
	unsigned(c, &m.Term)
	var lostFor time.Duration
	var ahead []anteroom.ID
	var expected anteroom.Time
	if m.Offers != nil {
		ahead, expected = m.Offers.Ahead, m.Offers.Expected
	}
	var rates uint64
	if m.State != nil {
		lostFor, rates = m.State.LostFor, m.State.Rates
	}
	c.extensions(extension{func() bool { return m.State != nil && lostFor != 0 }, func(c *coder) { signed(c, &lostFor) }},
		extension{func() bool { return m.Offers != nil && len(ahead) > 0 }, func(c *coder) { c.ids(&ahead) }},
		extension{func() bool { return m.Offers != nil && expected != 0 }, func(c *coder) { c.moment(&expected, 0) }},
		extension{func() bool { return m.State != nil && rates != 0 }, func(c *coder) { unsigned(c, &rates) }})
	if m.State != nil {
		m.State.LostFor, m.State.Rates = lostFor, rates
	}
	if m.Offers != nil {
		m.Offers.Ahead, m.Offers.Expected = ahead, expected
	}
}

func (c *coder) state(s *State, cache *FiguresCache) {
	unsigned(c, &s.Epoch)
	c.moment(&s.Now, 0)
	c.moment(&s.Echo, s.Now)
	c.units(&s.Granted)
	c.units(&s.Heard)
	unsigned(c, &s.Adopted)
	c.flags(&s.Lost, &s.Resync, &s.Guessed, &s.Silent)
	named(c, &s.Mode, Queue, Open)
	unsigned(c, &s.Target)
	signed(c, &s.Sites)
	c.figures(&s.Figures, cache)
}

func (c *coder) fromDoor(m *FromDoor) {
	unsigned(c, &m.Door)
	unsigned(c, &m.Batch)
	var token uint64
	var base anteroom.Time
	list(c, &m.Visits, 2*idBytes+11, func(c *coder, a *Asked) {
		c.follow(&a.Token, &token)
		waited, known, lane := a.Waited != 0, a.Visit.Networks != (anteroom.Networks{}), a.Visit.Lane != 0
		c.flags(&a.Visit.Fresh, &a.Visit.NoJoin, &a.Visit.NoClaim, &a.Visit.NoHold, &a.Visit.Stream, &waited, &known, &a.Visit.Unsolved, &a.Visit.Uninvited, &lane)
		c.ticket(&a.Visit.Ticket, base)
		c.id(&a.Visit.NewID)
		unsigned(c, &a.Visit.Bind)
		if known {
			for i := range a.Visit.Networks {
				unsigned(c, &a.Visit.Networks[i])
			}
			if a.Visit.Networks == (anteroom.Networks{}) {
				c.Failf("networks that are none: it was damaged")
			}
		}
		if lane {
			if unsigned(c, &a.Visit.Lane); a.Visit.Lane == 0 {
				c.Failf("a lane that is none: it was damaged")
			}
		}
		if waited {
			if signed(c, &a.Waited); a.Waited == 0 {
				c.Failf("a request that has waited for nothing")
			}
		}
		if last := a.Visit.Ticket.LastCheckIn; last != 0 {
			base = last
		}
	})
	list(c, &m.Abandoned, 1, func(c *coder, t *uint64) { c.follow(t, &token) })
	c.ids(&m.Closed)
	c.ids(&m.Touches)
	list(c, &m.Polls, idBytes+4, func(c *coder, p *Poll) {
		c.id(&p.ID)
		unsigned(c, &p.Lane)
		c.moment(&p.Due, base)
		c.moment(&p.Last, p.Due)
		c.moment(&p.Key, p.Due)
		base = p.Due
	})
	c.moment(&m.Sent, 0)
	c.moment(&m.Figures, m.Sent)
	c.extensions(extension{func() bool { return len(m.Revokes) > 0 }, func(c *coder) { c.ids(&m.Revokes) }},
		extension{func() bool { return m.Known != 0 }, func(c *coder) { c.moment(&m.Known, m.Sent) }},
		extension{func() bool { return m.Node != 0 }, func(c *coder) { unsigned(c, &m.Node) }},
		extension{func() bool { return m.Empty }, func(c *coder) { c.flags(&m.Empty) }},
		extension{func() bool { return len(m.Ages) > 0 }, func(c *coder) {
			list(c, &m.Ages, 1, func(c *coder, age *time.Duration) { signed(c, age) })
		}},
		extension{func() bool { return m.Origin != OriginFacts{} }, func(c *coder) { c.origin(&m.Origin) }},
		extension{func() bool { return m.Told != 0 }, func(c *coder) { unsigned(c, &m.Told) }},
		extension{func() bool { return slices.ContainsFunc(m.Visits, leaves) }, func(c *coder) { c.leaving(m.Visits) }},
		extension{func() bool { return len(m.Late) > 0 }, func(c *coder) { c.ids(&m.Late) }})
}

func leaves(a Asked) bool { return a.Visit.Leave }

// leaving are the visits that give up a place, by their numbers from 1 on, each as the difference to the one before. A site of an
// earlier release skips them, and answers that nothing has changed.
func (c *coder) leaving(visits []Asked) {
	var steps []uint64
	if !c.reads {
		last := 0
		for i := range visits {
			if visits[i].Visit.Leave {
				steps = append(steps, uint64(i+1-last))
				last = i + 1
			}
		}
	}
	at := uint64(0)
	list(c, &steps, 1, func(c *coder, step *uint64) {
		unsigned(c, step)
		if !c.reads || c.Err() != nil {
			return
		}
		if *step == 0 || *step > uint64(len(visits))-at {
			c.Failf("visit %d after %d leaves, of %d: it was damaged", *step, at, len(visits))
			return
		}
		at += *step
		visits[at-1].Visit.Leave = true
	})
}

func (c *coder) origin(f *OriginFacts) {
	c.flags(&f.Known, &f.Down)
	unsigned(c, &f.Requests)
	unsigned(c, &f.Failed)
	signed(c, &f.P95)
}

func (c *coder) ticket(t *anteroom.Ticket, base anteroom.Time) {
	c.id(&t.ID)
	unsigned(c, &t.Lane)
	c.moment(&t.Arrival, base)
	c.moment(&t.LastCheckIn, base)
	c.moment(&t.Next, t.LastCheckIn)
	c.moment(&t.AcceptedAt, t.LastCheckIn)
	signed(c, &t.Refresh)
	unsigned(c, &t.Bind)
	told := uint64(t.Told) << 2 // with Solved, and whether a home follows, which few tickets have
	if t.Solved {
		told |= 2
	}
	if t.Home != 0 {
		told |= 1
	}
	unsigned(c, &told)
	if c.reads {
		if t.Told, t.Solved = uint32(told>>2), told&2 != 0; told > math.MaxUint32<<2|3 {
			c.Failf("%d is too large", told)
		}
	}
	if told&1 == 0 || c.Err() != nil {
		return
	}
	if unsigned(c, &t.Home); t.Home == 0 {
		c.Failf("a home is said that is none: it was damaged")
	}
}

func (c *coder) toDoor(m *ToDoor, cache *FiguresCache) {
	c.site(&m.Site)
	named(c, &m.Mode, Queue, Cut)
	unsigned(c, &m.Confirmed)
	var token uint64
	var base anteroom.Time
	list(c, &m.Answers, idBytes+21, func(c *coder, a *Answer) {
		c.follow(&a.Token, &token)
		c.decision(&a.Decision, base)
		base = a.Decision.At
	})
	c.ids(&m.Pushes)
	c.ids(&m.Ended)
	c.figures(&m.Figures, cache)
	c.moment(&m.Now, 0)
	c.moment(&m.Echo, m.Now)
	unsigned(c, &m.Since)
	c.extensions(extension{func() bool { return len(m.Parted) > 0 }, func(c *coder) { c.ids(&m.Parted) }},
		extension{func() bool { return m.Term != 0 }, func(c *coder) { unsigned(c, &m.Term) }})
}

func (c *coder) decision(d *anteroom.Decision, base anteroom.Time) {
	named(c, &d.Verdict, anteroom.Wait, anteroom.Pass)
	named(c, &d.Reason, anteroom.ReasonNone, anteroom.ReasonLeft)
	method := uint8(1 + slices.Index(anteroom.QueueingMethods, d.Method))
	named(c, &method, 0, uint8(len(anteroom.QueueingMethods)))
	if c.reads && method > 0 {
		d.Method = anteroom.QueueingMethods[method-1]
	}
	c.flags(&d.SetCookie, &d.QueueAll, &d.AheadKnown, &d.WaitKnown, &d.QueueIsFull, &d.Stream)
	c.moment(&d.At, base)
	c.ticket(&d.Ticket, d.At)
	signed(c, &d.Ahead)
	signed(c, &d.Waiting)
	signed(c, &d.WaitTime)
	signed(c, &d.Wait25)
	signed(c, &d.Wait75)
	signed(c, &d.Refresh)
	c.moment(&d.KeptUntil, d.At)
}
