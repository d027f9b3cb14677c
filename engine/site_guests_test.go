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
	for end := e.now.Add(d); e.now < end; e.now = e.now.Add(flushEvery) {
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

// runApart is run while nobody hears a site, nor it anybody.
func (e *trio) runApart(i int, d time.Duration) {
	for end := e.now.Add(d); e.now < end; e.now = e.now.Add(flushEvery) {
		e.tick()
		for k := range e.sites {
			if k != i {
				e.up(k)
				continue
			}
			for _, ok := e.sites[i].Report(e.now); ok; _, ok = e.sites[i].Report(e.now) {
			}
		}
		e.deliver(func(m ToSite) bool { return m.Site == e.sites[i].key })
	}
}

// asks has a visitor ask at a site and returns the answer, which may take a while.
func (e *trio) asks(i int, ticket *anteroom.Ticket, wait func()) anteroom.Decision {
	e.t.Helper()
	e.sites[i].TakeAnswers()
	d, held := e.sites[i].Visit(e.now, anteroom.Visit{Ticket: *ticket, NewID: anteroom.ID{200, byte(i)}})
	if held != 0 {
		wait()
		answers := e.sites[i].TakeAnswers()
		if len(answers) != 1 {
			e.t.Fatalf("%d answers", len(answers))
		}
		d = answers[0].Decision
	}
	if d.SetCookie {
		*ticket = d.Ticket
	}
	return d
}

func (e *trio) soon() { e.run(300 * time.Millisecond) }

// comesBack checks that both seats are in the pool when everybody has gone.
func (e *trio) comesBack() {
	e.t.Helper()
	e.run(4 * time.Minute)
	if p := e.c.ledger.Pool(Seat); p != 2 {
		e.t.Errorf("%d of 2 seats came back", p)
	}
}

// Wherever its visitor goes, a session has one seat, at its home, and goes on while the visitor is
// seen anywhere.
func TestASessionStaysAtHome(t *testing.T) {
	for name, lose := range map[string]func(ToSite) bool{
		"nothing":       nil,
		"the findings":  func(m ToSite) bool { return m.Findings != nil },
		"the inquiries": func(m ToSite) bool { return m.Inquiry != nil },
		"the states":    func(m ToSite) bool { return m.State != nil },
	} {
		t.Run(name, func(t *testing.T) {
			e := newTrio(t)
			ticket := e.fill()[0]
			for step := range 40 { // of five seconds, where a session lasts a minute
				at := []int{1, 1, 2, 1, 2, 2, 0, 1}[step%8]
				if d := e.asks(at, &ticket, e.soon); d.Verdict != anteroom.Admit || Guest(e.sites[at].key.Name, &d.Ticket) != (at != 0) {
					t.Fatalf("step %d at %d: %v, %+v", step, at, d.Reason, d.Ticket)
				}
				for range 3 {
					e.tick()
					for i := range e.sites {
						e.up(i)
					}
					e.deliver(lose)
					e.now = e.now.Add(flushEvery)
				}
				e.run(4700 * time.Millisecond)
				if at := e.holders(ticket.ID); at != "a" {
					t.Fatalf("step %d: it has a seat at %q", step, at)
				}
			}
			if b := e.sites[1].balance; b.Used != (Units{}) {
				t.Errorf("a guest uses %+v", b)
			}
			e.comesBack()
		})
	}
}

// Home is told of a guest's requests within TouchDelay, as many together as come by then. While it is,
// no request waits.
func TestAGuestIsAskedAboutSeldom(t *testing.T) {
	e := newTrio(t)
	ticket := e.fill()[0]
	e.asks(1, &ticket, e.soon)
	asks, held := 0, 0
	for range 300 { // of 100 ms
		if _, h := e.sites[1].Visit(e.now, anteroom.Visit{Ticket: ticket}); h != 0 {
			held++
		}
		e.tick()
		for i := range e.sites {
			for r, ok := e.sites[i].Report(e.now); ok; r, ok = e.sites[i].Report(e.now) {
				asks += len(r.Asks)
				e.c.Receive(e.now, r)
				e.stored()
			}
		}
		e.deliver(nil)
		e.now = e.now.Add(flushEvery)
	}
	if asks > 121 || held > 0 {
		t.Errorf("in half a minute home is asked %d times, and %d requests wait", asks, held)
	}
	if st := e.sites[0].seats.at(e.sites[0].seats.find(&ticket.ID)); e.now.Sub(st.last) > 2*TouchEvery {
		t.Errorf("home has seen the visitor %v ago", e.now.Sub(st.last))
	}
}

// A home that has lost its memory adopts the session of a guest when it hears of it: once, with the
// seat of the lost account.
func TestALostHomeAdoptsItsGuestOnce(t *testing.T) {
	e := newTrio(t)
	tickets := e.fill()
	e.asks(1, &tickets[0], e.soon)
	e.sites[0] = NewSite(e.now, SiteKey{Name: "a", Incarnation: 2}, e.set)
	e.run(2 * time.Second)
	for range 12 {
		for i := 1; i <= 2; i++ {
			if d := e.asks(i, &tickets[0], e.soon); d.Reason != anteroom.ReasonSession {
				t.Fatalf("at %d it hears %v", i, d.Reason)
			}
		}
		e.run(5 * time.Second)
	}
	if at := e.holders(tickets[0].ID); at != "a" || e.sites[0].adopted != 1 || e.sites[0].balance.Used[Seat] != 1 {
		t.Errorf("a seat at %q, %d adopted, balance %+v", at, e.sites[0].adopted, e.sites[0].balance)
	}
	if d := e.asks(2, &tickets[1], e.soon); d.Reason == anteroom.ReasonSession {
		t.Error("a session that is over is revived")
	}
	e.comesBack()
}

// While nobody hears the site where it is a guest's, home keeps the seat for as long as the visitor
// may be let in there; and who is not known there waits, with the cookie.
func TestACutLeadsToNoSecondSeat(t *testing.T) {
	e := newTrio(t)
	tickets := e.fill()
	e.asks(1, &tickets[0], e.soon)
	began, last, id := e.now, e.now, tickets[0].ID
	wait := func() { e.runApart(1, findMax+100*time.Millisecond) }
	for e.now.Sub(began) < 2*e.set.SessionDuration-5*time.Second {
		d := e.asks(1, &tickets[0], wait)
		if d.Verdict == anteroom.Admit {
			last = e.now
		}
		if due := e.set.SessionDuration - awayMargin; e.now.Sub(began) < due-time.Second && d.Verdict != anteroom.Admit || e.now.Sub(began) > due+time.Second && d.Verdict == anteroom.Admit {
			t.Fatalf("%v after home was heard last: %v %v", e.now.Sub(began), d.Verdict, d.Reason)
		}
		if d := e.asks(1, &tickets[1], wait); d.Verdict != anteroom.Wait || !tickets[1].Accepted() && d.Reason == anteroom.ReasonFull {
			t.Fatalf("%v after home was heard last, a stranger: %v %v, %+v", e.now.Sub(began), d.Verdict, d.Reason, tickets[1])
		}
		if e.now.Sub(last) < e.set.SessionDuration && e.holders(id) != "a" {
			t.Fatalf("%v after home was heard last it has a seat at %q, and was let in %v ago", e.now.Sub(began), e.holders(id), e.now.Sub(last))
		}
		e.runApart(1, time.Second)
	}
	e.run(2 * cutAfter)
	if at := e.holders(id); at != "" {
		t.Errorf("it still has a seat at %q", at)
	}
	e.comesBack()
}

// A process that is replaced before its site is heard again takes along whom it let in last: home keeps the seats for as long as those
// may be inside.
func TestAProcessOfACutTellsNobodyOfItsGuests(t *testing.T) {
	t.Parallel()
	e := newTrio(t)
	e.restart(1, nil)
	e.run(2 * time.Second)
	tickets := e.fill()
	e.asks(1, &tickets[0], e.soon)
	e.runApart(1, e.set.SessionDuration-awayMargin-5*time.Second)
	if d := e.asks(1, &tickets[0], func() { e.runApart(1, findMax+100*time.Millisecond) }); d.Verdict != anteroom.Admit {
		t.Fatalf("the guest is told %v %v", d.Verdict, d.Reason)
	}
	last, id := e.now, tickets[0].ID
	e.restart(1, nil)
	e.runApart(1, time.Second)
	for e.now.Sub(last) < e.set.SessionDuration-flushEvery {
		if e.run(flushEvery); e.holders(id) != "a" {
			t.Fatalf("the guest was let in %v ago, and has a seat at %q", e.now.Sub(last), e.holders(id))
		}
	}
	e.comesBack()
}

// A session that is revoked where its visitor is a guest ends at home, and everywhere.
func TestRevocationReachesHome(t *testing.T) {
	for _, cut := range []bool{false, true} {
		e := newTrio(t)
		ticket := e.fill()[0]
		e.asks(1, &ticket, e.soon)
		e.asks(2, &ticket, e.soon)
		desk := NewDesk(e.sites[1])
		desk.Receive(e.now, FromDoor{Door: 7, Batch: 1, Revokes: []anteroom.ID{ticket.ID}})
		if e.sites[1].Hosts(ticket.ID) {
			t.Error("it goes on where it was revoked")
		}
		if cut {
			e.runApart(1, 10*time.Second)
		}
		e.run(time.Second)
		for i, s := range e.sites {
			if _, ok := s.Session(ticket.ID); ok || s.Hosts(ticket.ID) {
				t.Errorf("cut %v: it goes on at site %d", cut, i)
			}
		}
		if d := e.asks(2, &ticket, e.soon); d.Verdict != anteroom.Admit || d.Ticket.ID == (anteroom.ID{1}) {
			t.Errorf("cut %v: the visitor hears %v, %+v", cut, d.Reason, d.Ticket)
		}
	}
}

// A cookie that names no home is asked about everywhere, and names one from then on.
func TestACookieOfAnEarlierRelease(t *testing.T) {
	e := newTrio(t)
	ticket := e.fill()[0]
	for _, at := range []int{0, 1} {
		ticket.Home = 0
		if d := e.asks(at, &ticket, e.soon); d.Reason != anteroom.ReasonSession || ticket.Home != homeOf("a") {
			t.Errorf("at %d: %v, %+v", at, d.Reason, ticket)
		}
	}
}

// What an earlier release has recorded of sessions that moved frees no seat that may be used
// elsewhere: they stay until they lapse, and what had left a site counts as returned.
func TestJournalOfAnEarlierRelease(t *testing.T) {
	e := newTrio(t)
	tickets := e.fill()
	journal := append(e.sites[0].TakeEvents(), Event{Kind: EventMoved, ID: tickets[0].ID, At: e.now, Key: e.now},
		Event{Kind: eventSettled, ID: tickets[0].ID, At: e.now, Key: e.now}, Event{Kind: eventTook, ID: anteroom.ID{9}, At: e.now, Key: e.now})
	e.restart(0, journal)
	e.run(3 * time.Second)
	if n := e.sites[0].Active(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	e.comesBack()

	c := NewCoordinator(e.now, e.set, LedgerRecord{Epoch: 7, Sites: []ReservedUnits{{Site: SiteKey{Name: "a", Incarnation: 1}, Reserved: Units{10, 10}, Returned: Units{5, 9}, Out: 4}}}, nil)
	if p := c.ledger.Pool(Seat); p != 1 {
		t.Errorf("%d of 2 seats are in the pool, want 1", p)
	}
}

// A door lets a guest in alone for sureFor from the moment that home has confirmed, whatever its
// site has taken of it since.
func TestADoorIsSureOfAGuestByTheSite(t *testing.T) {
	now := midnight
	x := NewDoorway(7, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute})
	id, site := anteroom.ID{1}, SiteKey{Name: "b", Incarnation: 1}
	cookie := anteroom.Ticket{ID: id, AcceptedAt: now, LastCheckIn: now, Home: homeOf("a")}
	confirmed := now
	answer := func(m FromDoor) {
		back := ToDoor{Site: site, Now: now, Confirmed: m.Batch, Since: 1}
		for _, a := range m.Visits {
			confirmed = now
			t := cookie
			t.LastCheckIn = now
			back.Answers = append(back.Answers, Answer{Token: a.Token, Decision: anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonSession, Ticket: t, At: now}})
		}
		x.Receive(now, back)
		x.TakeAnswers(now)
	}
	sure := sureFor(time.Minute)
	for range 600 {
		now = now.Add(100 * time.Millisecond)
		if _, held := x.Visit(now, anteroom.Visit{Ticket: cookie}); held == 0 && now.Sub(confirmed) > sure+200*time.Millisecond {
			t.Fatalf("let in %v after home has confirmed", now.Sub(confirmed))
		}
		if m, ok := x.Take(now); ok {
			answer(m)
		}
		x.Tick(now)
	}
	if confirmed == midnight {
		t.Fatal("nobody was asked")
	}
	asked := confirmed
	for range 200 { // a connection that stays open
		now = now.Add(100 * time.Millisecond)
		if !x.Touch(now, id) {
			t.Fatal("a connection is ended")
		}
		if m, ok := x.Take(now); ok {
			answer(m)
		}
	}
	if now.Sub(confirmed) > sure+time.Second || confirmed == asked {
		t.Errorf("of a connection home has confirmed %v ago", now.Sub(confirmed))
	}
}

// A door without its site lets in no visitor of another site whom it does not know: home would not
// keep the seat.
func TestADoorAloneLetsNoStrangerIn(t *testing.T) {
	now := midnight
	for home, want := range map[uint32]anteroom.Verdict{homeOf("b"): anteroom.Admit, 0: anteroom.Admit, homeOf("a"): anteroom.Wait} {
		x := NewDoorway(7, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute})
		x.Receive(now, ToDoor{Site: SiteKey{Name: "b", Incarnation: 1}, Now: now, Since: 1})
		x.silence, x.timed, x.heardBy = now, true, now
		cookie := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: now, LastCheckIn: now, Home: home}
		if d := x.alone(now.Add(takeOver), anteroom.Visit{Ticket: cookie}); d.Verdict != want || d.SetCookie {
			t.Errorf("home %x: %v %v", home, d.Verdict, d.Reason)
		}
	}
}

// When a site that could not hear others hears them again, they have perhaps let guests in until then, and tell of them in a moment, unless
// their process has ended since: then nobody does.
func TestTheEndOfACutIsNoticed(t *testing.T) {
	t.Parallel()
	id, now, set := anteroom.ID{1}, midnight, anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, set)
	hear := func(silent bool) {
		s.Receive(now, State{Epoch: 1, Now: now, Echo: now, Granted: Units{2, 2}, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 2, Silent: silent})
	}
	pass := func(until anteroom.Time, silent bool) {
		for ; now < until; now = now.Add(flushEvery) {
			hear(silent)
			s.Tick(now)
		}
	}
	hear(false)
	s.admit(now, anteroom.Ticket{ID: id}, anteroom.ReasonTurn)
	s.ReceiveInquiry(now, Inquiry{Epoch: 1, Asks: []Ask{{ID: id, Home: s.home, Seen: now}}})
	over := s.lapse(s.seats.find(&id))
	pass(over.Add(-time.Second), true)
	pass(over.Add(time.Second), false)
	if _, here := s.Session(id); !here {
		t.Error("the session is over before the guests of the cut were told")
	}
	last := midnight.Add(2 * set.SessionDuration) // of a guest who was let in just before
	pass(last.Add(-time.Second), false)
	if _, here := s.Session(id); !here {
		t.Error("the session is over before that of a guest of whom nobody has told")
	}
	pass(last.Add(time.Second), false)
	if _, here := s.Session(id); here {
		t.Error("the session goes on although nobody has told of the guest")
	}
}
