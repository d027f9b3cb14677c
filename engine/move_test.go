package engine

import (
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
