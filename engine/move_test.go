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

// What was found goes before the state that grants its seat: with the state first the site
// would return a seat that it knows no use for.
func TestFindingsGoBeforeTheState(t *testing.T) {
	_, send, now := twoSites(t)
	id := anteroom.ID{1}
	asked := false
	for _, m := range send(1, Report{Asks: []anteroom.ID{id}}) {
		asked = asked || m.Inquiry != nil && m.Site.Name == "a"
	}
	if !asked {
		t.Fatal("the other site is not asked")
	}
	var kinds string
	for _, m := range send(0, Report{Found: []Finding{{ID: id, Standing: Seated, Accepted: now, Last: now}},
		Arrivals: []Arrival{{ID: anteroom.ID{2}, Key: now, Due: now.Add(time.Minute)}}}) {
		switch {
		case m.Site.Name != "b":
		case m.Findings != nil:
			kinds += "findings "
			if m.Findings.Granted[Seat] != 1 || m.Findings.Granted[RateSlot] != 0 {
				t.Errorf("granted %v", m.Findings.Granted)
			}
		case m.State != nil:
			kinds += "state "
		}
	}
	if kinds != "findings state " {
		t.Errorf("the site hears: %s", kinds)
	}
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
	now = now.Add(HoldMax)
	s.Tick(now)
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Verdict != anteroom.Wait {
		t.Fatalf("nobody answered and the visitor hears %+v", a)
	}
	ticket.Next = now
	s.Visit(now, anteroom.Visit{Ticket: ticket})
	s.ReceiveFindings(now, Findings{Epoch: 1, Granted: Units{1, 1}, Found: []Finding{{ID: ticket.ID, Standing: Waiting, Key: ticket.Arrival}}})
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Reason != anteroom.ReasonTurn {
		t.Fatalf("known to wait here only, the visitor hears %+v", a)
	}
}

// The seat of a session that was given up comes back with the counters of any report; each
// says whose it was until the coordinator has answered one, so that no lost report makes it
// look free.
func TestWhatWasGivenUpIsToldUntilAnswered(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10})
	v, s := w.arrive(), w.room.site
	epoch := w.room.coordinator.Epoch()
	s.ReceiveInquiry(w.now, Inquiry{Epoch: epoch, IDs: []anteroom.ID{v.ticket.ID}})
	for i, step := range []struct{ answer, told bool }{{told: true}, {told: true}, {answer: true}} {
		sent := w.now
		w.now = w.now.Add(HeartbeatOpen)
		if step.answer {
			s.Receive(w.now, State{Epoch: epoch, Now: w.now, Echo: sent, Granted: s.balance.Granted, Sites: 2})
		}
		r, ok := s.Report(w.now)
		if !ok || slices.ContainsFunc(r.Found, func(f Finding) bool { return f.ID == v.ticket.ID }) != step.told {
			t.Errorf("report %d (%v) tells %v", i+1, ok, r.Found)
		}
	}
}

// The word that a session has come may be lost while its seat arrives with another message.
// The seat is kept for it, and serves when the request cannot wait any longer.
func TestSeatIsKeptForASessionOnTheWay(t *testing.T) {
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	state := State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}, Sites: 2}
	s.Receive(now, state)
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: now, LastCheckIn: now}
	s.Visit(now, anteroom.Visit{Ticket: ticket})
	s.Report(now)
	state.Granted = Units{1, 0}
	s.Receive(now, state)
	if s.balance.Free(Seat) != 1 {
		t.Fatalf("the seat was returned: %+v", s.balance)
	}
	s.Tick(now.Add(HoldMax))
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Verdict != anteroom.Admit || s.balance.Free(Seat) != 0 {
		t.Fatalf("the visitor hears %+v", a)
	}
	if r, _ := s.Report(now.Add(HoldMax)); !slices.Contains(r.Asks, ticket.ID) {
		t.Error("the question is not asked again")
	}
	late := now.Add(askedFor)
	s.Tick(late)
	if len(s.questions) != 0 {
		t.Error("the question is open for ever")
	}
	state.Granted = Units{2, 0}
	if s.Receive(late, state); s.balance.Free(Seat) != 0 {
		t.Error("a seat is kept for nobody")
	}
}

// An inquiry may arrive late or twice, and a site then gives up a session that nobody asks
// about any more: it gets it back, once, or the session that goes on elsewhere hears of it.
func TestSessionGivenUpToNobodyIsGivenBack(t *testing.T) {
	c, send, now := twoSites(t)
	f := Finding{ID: anteroom.ID{1}, Standing: Seated, Accepted: now, Last: now}
	told := func(out []ToSite) (names string) {
		for _, m := range out {
			if m.Findings != nil {
				names += m.Site.Name
			}
		}
		return names
	}
	granted := func(name string) uint64 {
		return c.ledger.accounts[SiteKey{Name: name, Incarnation: 1}].Granted[Seat]
	}
	if names := told(send(0, Report{Found: []Finding{f}})); names != "a" || granted("a") != 1 {
		t.Errorf("told %q, a has been granted %d", names, granted("a"))
	}
	if names := told(send(0, Report{Found: []Finding{f}})); names != "" || granted("a") != 1 {
		t.Errorf("the same again: told %q, a has been granted %d", names, granted("a"))
	}
	f.Last++
	if names := told(send(1, Report{Found: []Finding{f}})); names != "a" || granted("b") != 0 {
		t.Errorf("the other side of a cut: told %q, b has been granted %d", names, granted("b"))
	}
}

// A site repeats what it said of a session when it is asked again. After the session has gone
// on, and its next site has lost its memory, that is no session to move once more.
func TestRepeatedGivingUpMovesNothingTwice(t *testing.T) {
	c, send, now := twoSites(t)
	f := Finding{ID: anteroom.ID{1}, Standing: Seated, Accepted: now, Last: now}
	send(1, Report{Asks: []anteroom.ID{f.ID}})
	send(0, Report{Found: []Finding{f}})
	key := SiteKey{Name: "b", Incarnation: 2}
	c.Receive(now, Report{From: key, Epoch: 1, Seq: 1, Sent: now, Full: true, Ask: true})
	c.Take()
	c.Receive(now, Report{From: key, Epoch: 1, Seq: 2, Sent: now, Asks: []anteroom.ID{f.ID}})
	asked, found := false, []Finding(nil)
	for _, m := range append(c.Take(), send(0, Report{Found: []Finding{f}})...) {
		asked = asked || m.Inquiry != nil && m.Site.Name == "a"
		if m.Findings != nil && m.Site == key {
			found = append(found, m.Findings.Found...)
		}
	}
	if !asked || len(found) != 1 || found[0].Standing != Unknown || c.ledger.accounts[key].Granted[Seat] != 0 {
		t.Errorf("asked %v, found %+v, granted %v", asked, found, c.ledger.accounts[key].Granted)
	}
}

// A question that was overtaken on its way may have been answered: a session must not move to
// a site that does not wait for it.
func TestOvertakenQuestionMovesNothing(t *testing.T) {
	for _, late := range []bool{false, true} {
		c, send, now := twoSites(t)
		b := SiteKey{Name: "b", Incarnation: 1}
		send(1, Report{})
		ask := Report{From: b, Epoch: 1, Seq: 3, Sent: now, Asks: []anteroom.ID{{1}}}
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

// A session that went to a site where it could not be seated is not only in line there.
func TestSessionThatCameWithoutASeatIsNotForgotten(t *testing.T) {
	_, send, now := twoSites(t)
	f := Finding{ID: anteroom.ID{1}, Standing: Seated, Accepted: now, Last: now}
	send(1, Report{Asks: []anteroom.ID{f.ID}})
	send(0, Report{Found: []Finding{f}})
	send(0, Report{Asks: []anteroom.ID{f.ID}})
	for _, m := range send(1, Report{Returned: Units{1, 0}, Found: []Finding{{ID: f.ID, Standing: Waiting, Key: now}}}) {
		if m.Findings != nil && m.Site.Name == "a" && m.Findings.Found[0].Standing == Seated {
			return
		}
	}
	t.Error("the session was lost where it went")
}
