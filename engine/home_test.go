package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// trio is a coordinator with sites a, b and c, whose messages travel when the test says so.
type trio struct {
	t      *testing.T
	now    anteroom.Time
	set    anteroom.Settings
	c      *Coordinator
	record LedgerRecord
	sites  []*Site
	down   []ToSite // under way to the sites
}

func newTrio(t *testing.T) *trio {
	e := &trio{t: t, now: midnight, set: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: time.Minute}.WithDefaults()}
	e.c = NewCoordinator(e.now, e.set, LedgerRecord{}, []byte("seed"))
	for _, name := range []string{"a", "b", "c"} {
		e.sites = append(e.sites, NewSite(e.now, SiteKey{Name: name, Incarnation: 1}, e.set))
	}
	e.run(2 * time.Second)
	return e
}

// stored confirms what the coordinator needs, and collects what it sends.
func (e *trio) stored() {
	for rec, ok := e.c.Needs(); ok; rec, ok = e.c.Needs() {
		e.record = rec
		e.c.Stored(e.now, rec)
	}
	e.down = append(e.down, e.c.Take()...)
}

// up hands over the reports of a site.
func (e *trio) up(i int) {
	for r, ok := e.sites[i].Report(e.now); ok; r, ok = e.sites[i].Report(e.now) {
		e.c.Receive(e.now, r)
		e.stored()
	}
}

// deliver hands over what is under way to the sites; lose says what is lost.
func (e *trio) deliver(lose func(ToSite) bool) {
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
func (e *trio) run(d time.Duration) {
	for end := e.now.Add(d); e.now < end; e.now = e.now.Add(FlushEvery) {
		e.tick()
		for i := range e.sites {
			e.up(i)
		}
		e.deliver(nil)
	}
}

func (e *trio) tick() {
	for _, s := range e.sites {
		s.Tick(e.now)
	}
	e.c.Tick(e.now)
	e.stored()
}

// holds checks that sessions, and seats set aside or free to be used, never exceed the limit.
func (e *trio) holds() {
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
func (e *trio) fill() (tickets []anteroom.Ticket) {
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

func (e *trio) holders(id anteroom.ID) (names string) {
	for _, s := range e.sites {
		if _, ok := s.Session(id); ok {
			names += s.key.Name
		}
	}
	return names
}

// restart starts a site again from its journal, as another process.
func (e *trio) restart(i int, journal []Event) {
	s := NewSite(e.now, e.sites[i].key, e.set)
	s.SetTerm(e.sites[i].term + 1)
	for _, x := range journal {
		s.Restore(x, 0, TouchSlack(e.set.SessionDuration))
	}
	s.Restored(e.now)
	e.sites[i] = s
}
