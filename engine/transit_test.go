package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// escrow is a coordinator with sites a, b and c, whose messages travel when the test says so.
type escrow struct {
	t      *testing.T
	now    anteroom.Time
	set    anteroom.Settings
	c      *Coordinator
	record LedgerRecord
	sites  []*Site
	down   []ToSite // under way to the sites
}

func newEscrow(t *testing.T) *escrow {
	e := &escrow{t: t, now: midnight, set: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: time.Minute}.WithDefaults()}
	e.c = NewCoordinator(e.now, e.set, LedgerRecord{}, []byte("seed"))
	for _, name := range []string{"a", "b", "c"} {
		e.sites = append(e.sites, NewSite(e.now, SiteKey{Name: name, Incarnation: 1}, e.set))
	}
	e.run(2 * time.Second)
	return e
}

// stored confirms what the coordinator needs, and collects what it sends.
func (e *escrow) stored() {
	for rec, ok := e.c.Needs(); ok; rec, ok = e.c.Needs() {
		e.record = rec
		e.c.Stored(e.now, rec)
	}
	e.down = append(e.down, e.c.Take()...)
}

// up hands over the reports of a site.
func (e *escrow) up(i int) {
	for r, ok := e.sites[i].Report(e.now); ok; r, ok = e.sites[i].Report(e.now) {
		e.c.Receive(e.now, r)
		e.stored()
	}
}

// deliver hands over what is under way to the sites; lose says what is lost.
func (e *escrow) deliver(lose func(ToSite) bool) {
	down := e.down
	e.down = nil
	for _, m := range down {
		for _, s := range e.sites {
			if s.key == m.Site && (lose == nil || !lose(m)) {
				s.Deliver(e.now, m)
			}
		}
	}
	e.holds()
}

// run lets time pass, with every message delivered at once.
func (e *escrow) run(d time.Duration) {
	for end := e.now.Add(d); e.now < end; e.now = e.now.Add(FlushEvery) {
		e.tick()
		for i := range e.sites {
			e.up(i)
		}
		e.deliver(nil)
	}
}

func (e *escrow) tick() {
	for _, s := range e.sites {
		s.Tick(e.now)
	}
	e.c.Tick(e.now)
	e.stored()
}

// holds checks that sessions, and seats set aside or free to be used, never exceed the limit.
func (e *escrow) holds() {
	e.t.Helper()
	spendable := int64(0)
	for _, s := range e.sites {
		spendable += int64(s.balance.Used[Seat]+s.balance.Offers) + max(0, s.balance.Free(Seat))
	}
	if limit := int64(e.set.TotalActiveUsers); spendable+max(0, e.c.ledger.Pool(Seat)) > limit {
		e.t.Fatalf("%d seats can be in use, %d may be", spendable+max(0, e.c.ledger.Pool(Seat)), limit)
	}
}

// fill lets two in at site a, which is all that there is room for, and returns their tickets.
func (e *escrow) fill() (tickets []anteroom.Ticket) {
	for i := range e.set.TotalActiveUsers {
		id := anteroom.ID{byte(i + 1)}
		e.sites[0].Visit(e.now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
	}
	e.run(time.Second)
	for _, a := range e.sites[0].TakeAnswers() {
		tickets = append(tickets, a.Decision.Ticket)
	}
	if e.sites[0].Active() != e.set.TotalActiveUsers {
		e.t.Fatalf("%d are inside", e.sites[0].Active())
	}
	return tickets
}

func (e *escrow) holders(id anteroom.ID) (names string) {
	for _, s := range e.sites {
		if _, ok := s.Session(id); ok {
			names += s.key.Name
		}
	}
	return names
}

func findings(m ToSite) bool { return m.Findings != nil }
func states(m ToSite) bool   { return m.State != nil }

// goTo asks for a ticket at a site and carries the question to the site that has the session,
// and its answer back: what the asker is to be told is under way then.
func (e *escrow) goTo(i int, ticket anteroom.Ticket, from int) {
	e.sites[i].Visit(e.now, anteroom.Visit{Ticket: ticket})
	e.up(i)
	e.deliver(nil)
	e.up(from)
}

// A session on its way between two sites is charged to the one that gave it up until the other
// is known to hold it, whatever is lost, and in the end exactly once.
func TestSeatOnTheWayIsCharged(t *testing.T) {
	for name, lose := range map[string]func(e *escrow) func(ToSite) bool{
		"nothing":      func(*escrow) func(ToSite) bool { return nil },
		"the findings": func(*escrow) func(ToSite) bool { return findings },
		"the states":   func(*escrow) func(ToSite) bool { return states },
		"everything":   func(*escrow) func(ToSite) bool { return func(ToSite) bool { return true } },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEscrow(t)
			tickets := e.fill()
			e.goTo(1, tickets[0], 0)
			for range 20 { // two seconds in which it goes wrong
				e.deliver(lose(e))
				e.now = e.now.Add(FlushEvery)
				e.tick()
				for i := range e.sites {
					e.up(i)
				}
			}
			e.run(3 * time.Second)
			if at := e.holders(tickets[0].ID); at != "b" {
				t.Errorf("the session is at %q", at)
			}
			for _, s := range e.sites {
				if s.balance.Away != 0 || s.balance.Debt != 0 || len(s.took) != 0 || s.balance.Free(Seat) != 0 {
					t.Errorf("%s: %+v, took %v", s.key.Name, s.balance, s.took)
				}
			}
			if p := e.c.ledger.Pool(Seat); p != 0 {
				t.Errorf("%d seats are in the pool", p)
			}
			e.run(2 * time.Minute)
			if p := e.c.ledger.Pool(Seat); p != 2 {
				t.Errorf("%d of 2 seats came back", p)
			}
		})
	}
}

// What was sent before the site gave a session up again, or before it was told that the move is
// over, brings it no session when it arrives late or twice.
func TestLateFindingsBringNoSession(t *testing.T) {
	e := newEscrow(t)
	tickets := e.fill()
	e.goTo(1, tickets[0], 0)
	late := slices.DeleteFunc(slices.Clone(e.down), func(m ToSite) bool { return m.Findings == nil })
	if len(late) != 1 {
		t.Fatalf("%d findings are under way", len(late))
	}
	again := func(when string) {
		t.Helper()
		taken := e.sites[1].taken
		e.sites[1].Deliver(e.now, late[0])
		e.holds()
		if e.sites[1].taken != taken {
			t.Errorf("%s the site takes the session again", when)
		}
	}
	e.run(time.Second)
	again("When the move is over,")
	e.goTo(2, tickets[0], 1)
	again("When it has given the session up,")
	e.run(time.Second)
	again("When that is elsewhere,")
	if at := e.holders(tickets[0].ID); at != "c" {
		t.Errorf("the session is at %q", at)
	}
}

// A site that was told of a session and has not taken it says so for good before another is told.
func TestSessionToldToOneSiteIsAskedForThere(t *testing.T) {
	e := newEscrow(t)
	tickets := e.fill()
	e.goTo(1, tickets[0], 0)
	late := e.down // to b, later than everything else
	e.down = nil
	e.goTo(2, tickets[0], 1) // b does not hold it
	e.deliver(nil)
	for _, m := range late {
		if m.Site == e.sites[1].key {
			e.sites[1].Deliver(e.now, m)
		}
	}
	e.holds()
	if at := e.holders(tickets[0].ID); at != "c" {
		t.Errorf("the session is at %q", at)
	}
	e.run(time.Second) // b asks again, for its request is still held
	if at := e.holders(tickets[0].ID); at != "b" {
		t.Errorf("the session is at %q", at)
	}
}

// A coordinator that starts knows nothing of what is on its way: the seat is charged to who gave
// the session up, and nobody else is told of it before all sites have heard the new one.
func TestSessionOnTheWayOutlivesTheCoordinator(t *testing.T) {
	for _, taken := range []bool{false, true} {
		e := newEscrow(t)
		tickets := e.fill()
		e.goTo(1, tickets[0], 0)
		if taken {
			e.deliver(nil)
		}
		old := e.down
		e.down = nil
		e.c = NewCoordinator(e.now, e.set, e.record, []byte("seed"))
		e.stored()
		e.now = e.now.Add(HeartbeatOpen)
		for _, i := range []int{0, 2} { // b has not heard the new one
			e.up(i)
			e.deliver(nil)
			e.up(i)
		}
		e.goTo(2, tickets[0], 0)
		e.deliver(nil)
		if at := e.holders(tickets[0].ID); taken && at != "b" || !taken && at != "" {
			t.Errorf("taken %v: the session is at %q", taken, at)
		}
		for _, m := range old {
			if m.Site == e.sites[1].key {
				e.sites[1].Deliver(e.now, m)
			}
		}
		e.holds()
		e.run(3 * time.Second)
		if at := e.holders(tickets[0].ID); len(at) != 1 {
			t.Errorf("taken %v: the session is at %q", taken, at)
		}
		e.run(3 * time.Minute)
		if p := e.c.ledger.Pool(Seat); p != 2 {
			t.Errorf("taken %v: %d of 2 seats came back", taken, p)
		}
	}
}

// restart starts a site again from its journal, as another process.
func (e *escrow) restart(i int, journal []Event) {
	s := NewSite(e.now, e.sites[i].key, e.set)
	s.SetTerm(e.sites[i].term + 1)
	for _, x := range journal {
		s.Restore(x, 0, TouchSlack(e.set.SessionDuration))
	}
	s.Restored(e.now)
	e.sites[i] = s
}

// Whoever gives a session up, or takes one, may stop and start again from its journal at any
// moment.
func TestSessionOnTheWayOutlivesTheSites(t *testing.T) {
	for _, stops := range []int{0, 1} {
		for step := range 4 {
			e := newEscrow(t)
			var journals [3][]Event
			note := func() {
				for i, s := range e.sites {
					journals[i] = append(journals[i], s.TakeEvents()...)
				}
			}
			tickets := e.fill()
			note()
			e.sites[1].Visit(e.now, anteroom.Visit{Ticket: tickets[0]})
			e.up(1)
			e.deliver(nil) // a gives it up
			for k, next := range []func(){func() {}, func() { e.up(0) }, func() { e.deliver(nil) }, func() { e.up(1) }} {
				next()
				note()
				if k == step {
					e.restart(stops, journals[stops])
				}
				e.holds()
			}
			e.run(5 * time.Second)
			note()
			at := e.holders(tickets[0].ID)
			if len(at) != 1 {
				t.Errorf("site %d stops at step %d: the session is at %q", stops, step, at)
			}
			for _, s := range e.sites {
				if s.balance.Away != 0 || len(s.took) != 0 {
					t.Errorf("site %d stops at step %d: %s has %+v, took %v", stops, step, s.key.Name, s.balance, s.took)
				}
			}
			e.run(3 * time.Minute)
			if p := e.c.ledger.Pool(Seat); p != 2 {
				t.Errorf("site %d stops at step %d: %d of 2 seats came back", stops, step, p)
			}
		}
	}
}

// A session that went to a site which lost its memory before it was heard to hold it: its seat is
// kept, and the session goes back.
func TestSeatOnTheWayToALostSite(t *testing.T) {
	e := newEscrow(t)
	tickets := e.fill()
	e.goTo(1, tickets[0], 0)
	e.deliver(nil)
	e.sites[1] = NewSite(e.now, SiteKey{Name: "b", Incarnation: 2}, e.set)
	e.run(2 * time.Second)
	if at := e.holders(tickets[0].ID); at != "a" {
		t.Errorf("the session is at %q", at)
	}
	e.run(4 * time.Minute)
	if p := e.c.ledger.Pool(Seat); p != 2 {
		t.Errorf("%d of 2 seats came back", p)
	}
}
