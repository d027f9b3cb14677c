package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// twoSites returns a coordinator with two sites that have heard from it.
func twoSites(t *testing.T) (*Coordinator, func(i int, r Report) []ToSite, anteroom.Time) {
	t.Helper()
	now := midnight
	c := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60}, LedgerRecord{}, []byte("seed"))
	seq := [2]uint64{}
	send := func(i int, r Report) []ToSite {
		seq[i]++
		r.From, r.Seq, r.Epoch, r.Sent, r.Full = SiteKey{Name: string(rune('a' + i)), Incarnation: 1}, seq[i], c.Epoch(), now, seq[i] == 1
		c.Receive(now, r)
		for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
			c.Stored(now, rec)
		}
		return c.Take()
	}
	send(0, Report{Ask: true})
	send(1, Report{Ask: true})
	return c, send, now
}

// A ticket that checks in elsewhere without a question is taken from where it was.
func TestPlaceThatMovedIsTakenFromTheOldSite(t *testing.T) {
	c, send, now := twoSites(t)
	a := Arrival{ID: anteroom.ID{1}, Key: now, Shown: true, Due: now.Add(time.Minute)}
	send(0, Report{Arrivals: []Arrival{a}})
	told := false
	for _, m := range send(1, Report{Arrivals: []Arrival{a}}) {
		told = told || m.Inquiry != nil && m.Site.Name == "a"
	}
	if !told {
		t.Error("the old site is not told")
	}
	send(0, Report{Departures: []Departure{{ID: a.ID, Why: Left}}})
	if !c.InLine(a.ID) {
		t.Error("the old site's word removed a place that had moved")
	}
	send(1, Report{Departures: []Departure{{ID: a.ID, Why: Left}}})
	if c.InLine(a.ID) {
		t.Error("the site where it is cannot remove it")
	}
}

// A ticket that joined without asking takes no turn before the question is answered.
func TestNoTurnBeforeTheAnswer(t *testing.T) {
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	state := State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 2}
	s.Receive(now, state)
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now, Next: now}
	s.Polls(now, []Poll{{ID: ticket.ID, Key: now, Due: now}})
	s.ReceiveOffers(now, Offers{Epoch: 1, Granted: Units{1, 1}, At: now, IDs: []anteroom.ID{ticket.ID}})
	if !s.Called(ticket.ID) {
		t.Fatal("not called")
	}
	if _, held := s.Visit(now, anteroom.Visit{Ticket: ticket}); held == 0 {
		t.Fatal("decided without asking")
	}
	now = now.Add(findMax)
	s.Tick(now)
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Verdict != anteroom.Wait {
		t.Fatalf("nobody answered and the visitor hears %+v", a)
	}
	ticket.Next = now
	s.Visit(now, anteroom.Visit{Ticket: ticket})
	s.ReceiveFindings(now, Findings{Epoch: 1, Found: []Finding{{ID: ticket.ID, Standing: Waiting, Key: ticket.Arrival}}})
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Reason != anteroom.ReasonTurn {
		t.Fatalf("known to wait here only, the visitor hears %+v", a)
	}
}

// A turn that was on its way when a limit was set to 0 counts if the limit is raised before it is taken, and lets nobody in otherwise.
func TestTurnOnItsWayWhenALimitIsSetToZero(t *testing.T) {
	for name, raised := range map[string]bool{"raised again": true, "not raised": false} {
		now, set := midnight, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60}
		s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, set)
		s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 1})
		ticket := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now, Next: now.Add(2 * time.Second)}
		s.Polls(now, []Poll{{ID: ticket.ID, Key: now, Due: ticket.Next}})
		none := set
		none.TotalActiveUsers = 0
		s.Configure(now, none)
		s.ReceiveOffers(now, Offers{Epoch: 1, Granted: Units{1, 1}, At: ticket.Next, IDs: []anteroom.ID{ticket.ID}})
		if now = ticket.Next; raised {
			s.Configure(now, set)
		}
		s.Visit(now, anteroom.Visit{Ticket: ticket})
		s.Tick(now)
		if entered := s.Active() == 1; entered != raised {
			t.Errorf("%s: entered is %v", name, entered)
		}
	}
}

// A door that answers alone has brought a ticket once more that another site knows to be used. It has no place here then, and no turn.
func TestAUsedTicketHasNoPlace(t *testing.T) {
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 2})
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now, Next: now}
	polls := []Poll{{ID: ticket.ID, Key: now, Due: now}}
	s.Polls(now, polls)
	s.Visit(now, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{2}})
	s.ReceiveFindings(now, Findings{Epoch: 1, Found: []Finding{{ID: ticket.ID, Standing: Used}}})
	s.Polls(now, polls) // the next copy of the ticket
	s.ReceiveOffers(now, Offers{Epoch: 1, Granted: Units{1, 1}, At: now, IDs: []anteroom.ID{ticket.ID}})
	if s.here.find(&ticket.ID) != 0 || s.Called(ticket.ID) {
		t.Error("a used ticket waits here")
	}
	if !slices.ContainsFunc(s.TakeEvents(), func(e Event) bool { return e.Kind == EventForgotten && e.ID == ticket.ID && e.Lane == laneLeft }) {
		t.Error("a restart would bring it back")
	}
}

// A question that was overtaken on its way may have been answered: a place must not move to a site
// where nobody waits for it.
func TestOvertakenQuestionMovesNothing(t *testing.T) {
	for _, late := range []bool{false, true} {
		c, send, now := twoSites(t)
		b := SiteKey{Name: "b", Incarnation: 1}
		send(1, Report{})
		ask := Report{From: b, Epoch: 1, Seq: 3, Sent: now, Asks: []Ask{{ID: anteroom.ID{1}, Seen: now}}}
		if late {
			ask.Sent = now.Add(-time.Second)
		}
		c.Receive(now, ask)
		asked := false
		for _, m := range c.Take() {
			asked = asked || m.Inquiry != nil
		}
		if asked == late {
			t.Errorf("late %v: the other site is asked: %v", late, asked)
		}
	}
}

// A check-in that is told late takes no place from a site where a stream is open, or where the
// visitor is asked for.
func TestALateCheckInTakesNoStreamsPlace(t *testing.T) {
	id := anteroom.ID{1}
	inquired := func(out []ToSite) bool {
		for _, m := range out {
			if m.Inquiry != nil {
				return true
			}
		}
		return false
	}
	t.Run("stream", func(t *testing.T) {
		c, send, now := twoSites(t)
		a := Arrival{ID: id, Key: now, Shown: true, Due: now.Add(time.Minute), Stream: true}
		send(0, Report{Arrivals: []Arrival{a}})
		late := a
		late.Stream = false
		if inquired(send(1, Report{Arrivals: []Arrival{late}})) {
			t.Error("the site with the stream has to give the place up")
		}
		if p := c.line.places.at(c.line.places.find(&id)); p.site != 0 || p.flags&flagStream == 0 {
			t.Errorf("the place is at site %d, with flags %b", p.site, p.flags)
		}
		if !inquired(send(1, Report{Asks: []Ask{{ID: id, Seen: now}}})) {
			t.Error("the old site is not told of a visitor who is asked for")
		}
	})
	t.Run("question", func(t *testing.T) {
		c, send, now := twoSites(t)
		a := Arrival{ID: id, Key: now, Shown: true, Due: now.Add(time.Minute)}
		send(0, Report{Arrivals: []Arrival{a}})
		if !inquired(send(1, Report{Asks: []Ask{{ID: id, Seen: now}}})) {
			t.Fatal("the old site is not asked")
		}
		c.conflict(now, a, 2, false)
		if q := c.questions[id]; q == nil || len(q.others) != 0 {
			t.Errorf("the question: %+v", q)
		}
	})
}

// A site that gives a place up does not claim it by the word of a check-in before, and says that
// the stream has lost it.
func TestAPlaceThatIsGivenUpIsNotReported(t *testing.T) {
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, QueueAll: true})
	s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 1})
	d := NewDesk(s)
	id := anteroom.ID{1}
	d.Receive(now, FromDoor{Door: 7, Batch: 1, Visits: []Asked{{Token: 1, Visit: anteroom.Visit{Fresh: true, Stream: true, Ticket: anteroom.Ticket{ID: id}, NewID: anteroom.ID{2}}}}})
	s.Report(now)
	now = now.Add(time.Second)
	s.arrivals = append(s.arrivals, s.arrival(s.here.find(&id)))
	s.ReceiveInquiry(now, Inquiry{Epoch: 1, Asks: []Ask{{ID: id}}})
	if r, ok := s.Report(now); !ok || len(r.Found) != 1 || len(r.Arrivals) != 0 {
		t.Errorf("it reports %v, found %v, arrivals %v", ok, r.Found, r.Arrivals)
	}
	parted := 0
	for _, m := range d.Take(now) {
		parted += len(m.Message.Parted)
	}
	if parted != 1 || len(d.streams) != 0 {
		t.Errorf("%d streams are told, %d are counted; want 1 and 0", parted, len(d.streams))
	}
}

// A stream whose place has gone claims it back after a while if it is open still, and the more
// seldom the more often that happens.
func TestAStreamClaimsItsPlaceBack(t *testing.T) {
	now := midnight
	x := NewDoorway(7, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	id, site := anteroom.ID{1}, SiteKey{Name: "a", Incarnation: 1}
	_, token := x.Visit(now, anteroom.Visit{Fresh: true, Stream: true, Ticket: anteroom.Ticket{ID: id}})
	m, _ := x.Take(now)
	x.Receive(now, ToDoor{Site: site, Now: now, Confirmed: m.Batch, Since: 1,
		Answers: []Answer{{Token: token, Decision: anteroom.Decision{Verdict: anteroom.Wait, Ticket: anteroom.Ticket{ID: id, Arrival: now, Next: now}}}}})
	claimed := func(long time.Duration) (after time.Duration) {
		began := now
		for now.Sub(began) < long {
			now = now.Add(100 * time.Millisecond)
			x.Tick(now)
			m, ok := x.Take(now)
			if !ok {
				continue
			}
			answer := ToDoor{Site: site, Now: now, Confirmed: m.Batch, Since: 1}
			for _, a := range m.Visits {
				if after = now.Sub(began); !a.Visit.Stream || a.Visit.Ticket.ID != id || !a.Visit.NoJoin {
					t.Errorf("it asks %+v", a.Visit)
				}
				answer.Answers = append(answer.Answers, Answer{Token: a.Token, Decision: anteroom.Decision{Verdict: anteroom.Wait, Ticket: a.Visit.Ticket}})
			}
			x.Receive(now, answer)
		}
		return after
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		x.Receive(now, ToDoor{Site: site, Now: now, Since: 1, Parted: []anteroom.ID{id}})
		if after := claimed(8 * time.Second); after < want || after > want+200*time.Millisecond {
			t.Errorf("%d: claimed after %v, want %v", i, after, want)
		}
	}
	x.Receive(now, ToDoor{Site: site, Now: now, Since: 1, Parted: []anteroom.ID{id}})
	x.CloseStream(now, id)
	if after := claimed(20 * time.Second); after != 0 {
		t.Errorf("a stream that has ended claims the place after %v", after)
	}
}

// A stream at a site is where its visitor is, whether the site where the ticket has a turn gives it up, has
// fallen silent, or speaks and does not listen.
func TestAPlaceFollowsItsStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ speaks, listens bool }{
		"in touch": {speaks: true, listens: true}, "silent": {}, "deaf": {speaks: true},
	} {
		now, a := midnight, Arrival{ID: anteroom.ID{1}, Key: midnight, Shown: true, Due: midnight}
		co := NewCoordinator(now, anteroom.Settings{QueueAll: true}, LedgerRecord{}, []byte("seed"))
		seq, moved := [2]uint64{}, false
		send := func(i int, r Report) {
			seq[i]++
			r.From, r.Seq, r.Epoch, r.Sent, r.Full = SiteKey{Name: string(rune('a' + i)), Incarnation: 1}, seq[i], co.Epoch(), now, seq[i] == 1
			co.Receive(now, r)
			co.Tick(now)
			for rec, ok := co.Needs(); ok; rec, ok = co.Needs() {
				co.Stored(now, rec)
			}
		}
		send(0, Report{Arrivals: []Arrival{a}})
		send(1, Report{})
		co.line.offer(co.line.places.find(&a.ID), givenTurn{at: now})
		a.Stream = true
		send(1, Report{Arrivals: []Arrival{a}})
		for end := now.Add(questionLife + 3*time.Second); now < end && !moved; now = now.Add(time.Second) {
			answer := Report{}
			for _, m := range co.Take() {
				if m.Inquiry != nil && c.listens {
					answer.Found = []Finding{{ID: a.ID, Standing: Waiting, Key: a.Key}}
				}
				moved = moved || m.Findings != nil && m.Site.Name == "b"
			}
			if c.speaks {
				send(0, answer)
			}
			send(1, Report{})
		}
		if p := co.line.places.at(co.line.places.find(&a.ID)); !moved || p.site != 1 {
			t.Errorf("%s: after %v the place is at site %d; the site with the stream was told: %v", name, now.Sub(midnight), p.site, moved)
		}
	}
}
