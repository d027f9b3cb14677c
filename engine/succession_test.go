package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A long line is told in parts; the coordinator takes what is missing for gone only when it has
// heard all of them, and asks again when one was lost.
func TestFullReportInParts(t *testing.T) {
	set := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, QueueAll: true}
	now, key := midnight, SiteKey{Name: "a", Incarnation: 1}
	r := rand.New(rand.NewPCG(1, 1))
	for _, lost := range []uint32{0, 1, 2, 3} {
		s := NewSite(now, key, set)
		c := NewCoordinator(now, set, LedgerRecord{}, []byte("seed"))
		n := 2*partMost + 5
		var id anteroom.ID
		for i := range n {
			id = drawID(r)
			s.Polls(now, []Poll{{ID: id, Key: now.Add(time.Duration(i) * time.Millisecond), Due: now.Add(time.Minute)}})
		}
		ghost := anteroom.ID{9, 9, 9, 9}
		c.Receive(now, Report{From: key, Seq: 1, Sent: now, Arrivals: []Arrival{{ID: ghost, Key: now, Due: now.Add(time.Minute)}}})
		settle := func(lost uint32) (parts int) {
			for range 20 {
				for r, ok := s.Report(now); ok; r, ok = s.Report(now) {
					if size := len(r.AppendWire(nil)); size > 512<<10 {
						t.Fatalf("a report takes %d bytes", size)
					}
					if r.Part > 0 {
						parts++
					}
					if r.Part == 0 || r.Part != lost {
						c.Receive(now, r)
					}
				}
				for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
					c.Stored(now, rec)
				}
				for _, m := range c.Take() {
					s.Deliver(now, m)
				}
			}
			return parts
		}
		if parts := settle(lost); parts < 3 {
			t.Errorf("%d parts were sent", parts)
		}
		if lost != 0 {
			if c.InLine(ghost) != true {
				t.Errorf("part %d was lost and what is missing is taken for gone", lost)
			}
			now = now.Add(HeartbeatQueue)
			settle(0)
		}
		if got := len(c.Line()); got != n || c.InLine(ghost) || !c.InLine(id) {
			t.Errorf("part %d lost: %d in line of %d, the one who is gone: %v", lost, got, n, c.InLine(ghost))
		}
	}
}

// Two processes may take themselves for the site for a moment. What the older one says counts no
// more when the newer one was heard, its returns included, and the newer one spends nothing
// before it has heard what was returned.
func TestSiteIsHandedOver(t *testing.T) {
	e := newTrio(t)
	tickets := e.fill()
	var journal []Event
	journal = append(journal, e.sites[0].TakeEvents()...)
	older := e.sites[0]
	key := older.key
	e.restart(0, journal)
	newer := e.sites[0]

	// The older one's sessions end by time, and it returns seats, in a report that is late.
	older.Tick(e.now.Add(2 * time.Minute))
	older.flush(e.now.Add(2 * time.Minute))
	late, _ := older.Report(e.now)
	late.Returned[Seat] += 2
	if newer.permits() != 0 {
		t.Error("units are spent before the coordinator was heard")
	}
	newer.Deliver(e.now, ToSite{Site: key, State: &State{Epoch: e.c.Epoch(), Now: e.now, Granted: Units{9, 9}}})
	newer.Deliver(e.now, ToSite{Site: key, Term: 1, State: &State{Epoch: e.c.Epoch(), Now: e.now, Granted: Units{9, 9}}})
	if newer.permits() != 0 {
		t.Error("what was meant for the older process, or answers nobody, is believed")
	}
	e.up(0)
	before := e.c.ledger.accounts[key].Returned
	e.c.Receive(e.now, late)
	if e.c.ledger.accounts[key].Returned != before {
		t.Error("a return of the older process counts")
	}
	e.deliver(nil)
	e.run(time.Second)
	if newer.Active() != len(tickets) || e.c.ledger.Pool(Seat) != 0 {
		t.Errorf("%d sessions, %d seats in the pool", newer.Active(), e.c.ledger.Pool(Seat))
	}
	older.Deliver(e.now, ToSite{Site: key, Term: 1, State: &State{Epoch: e.c.Epoch(), Now: e.now, Echo: e.now, Granted: Units{9, 9}}})
	if older.balance.Granted == (Units{9, 9}) {
		t.Error("the older process hears what is meant for the newer one")
	}
}

// Turns on their way to a process that has ended are given again at once.
func TestTurnsOfAnEndedProcessGoBack(t *testing.T) {
	c, send, now := twoSites(t)
	waits, gone := anteroom.ID{1}, anteroom.ID{2}
	arrival := func(id anteroom.ID) Arrival { return Arrival{ID: id, Key: now, Stream: true} }
	send(0, Report{Arrivals: []Arrival{arrival(waits), arrival(gone)}})
	if n := c.Numbers(); n.Offered != 2 {
		t.Fatalf("%d turns were given", n.Offered)
	}
	c.settings.QueueAll = true // nobody is given another
	c.Receive(now, Report{From: SiteKey{Name: "a", Incarnation: 1}, Term: 1, Epoch: 1, Seq: 1, Sent: now, Full: true, Arrivals: []Arrival{arrival(waits)}})
	if n := c.Numbers(); n.Offered != 0 || !c.InLine(waits) || c.InLine(gone) {
		t.Errorf("%d turns are given, in line: %v, %v", n.Offered, c.InLine(waits), c.InLine(gone))
	}
}

// A site that was cut off for a moment tells everything again. A turn from just before that may have been lost, or that it was not taken: it is
// given again as soon as it would have been over.
func TestATurnLostInABriefCutIsGivenAgain(t *testing.T) {
	c, send, now := twoSites(t)
	waits := Arrival{ID: anteroom.ID{1}, Key: now, Stream: true}
	send(0, Report{Arrivals: []Arrival{waits}})
	if n := c.Numbers(); n.Offered != 1 {
		t.Fatalf("%d turns were given", n.Offered)
	}
	c.settings.QueueAll = true // nobody is given another
	c.Receive(now, Report{From: SiteKey{Name: "a", Incarnation: 1}, Epoch: c.Epoch(), Seq: 3, Sent: now, Full: true, Arrivals: []Arrival{waits}})
	if c.Tick(now.Add(time.Second)); c.Numbers().Offered != 1 {
		t.Error("a turn is taken back that may be about to be taken")
	}
	if c.Tick(now.Add(claimStream + claimHorizon + time.Second)); c.Numbers().Offered != 0 || !c.InLine(waits.ID) {
		t.Error("the turn is still out, and nobody has it")
	}
}

// What is idle is shared by weight and by demand.
func TestWeightsOfSites(t *testing.T) {
	now := midnight
	set := anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 1000}
	c := NewCoordinator(now, set, LedgerRecord{}, []byte("seed"))
	for i, weight := range []uint32{0, 3} {
		key := SiteKey{Name: string(rune('a' + i)), Incarnation: 1}
		c.Receive(now, Report{From: key, Seq: 1, Sent: now, Full: true, Ask: true, Weight: weight})
	}
	c.setMode(Open)
	for i, want := range []uint64{125, 374} { // half of all, by weight alone, rounded down
		if got := c.target(now, c.sites[i]); got != want {
			t.Errorf("site %d may keep %d, want %d", i, got, want)
		}
	}
	c.Receive(now, Report{From: SiteKey{Name: "a", Incarnation: 1}, Seq: 2, Sent: now, Newcomers: 10})
	c.setMode(Open)
	for i, want := range []uint64{387, 112} { // 500 x (0.3 x 1/4 + 0.7), 500 x 0.3 x 3/4
		if got := c.target(now, c.sites[i]); got != want {
			t.Errorf("with demand site %d may keep %d, want %d", i, got, want)
		}
	}
	if st := c.Sites(now); len(st) != 2 || st[1].Weight != 3 || st[0].Target != 387 {
		t.Errorf("status: %+v", st)
	}
}

// The operator's numbers of several sites are those of all.
func TestStatusOfSeveralSites(t *testing.T) {
	e := newTrio(t)
	e.fill()
	e.run(3 * time.Second)
	if st := e.c.Status(e.now); st.ActiveUsers != 2 || st.AdmittedLastMin != 2 || st.TotalActiveUsers != 2 {
		t.Errorf("status: %+v", st)
	}
	for i, st := range e.c.Sites(e.now) {
		if want := []uint64{2, 0, 0}[i]; st.Used[Seat] != want || !st.Answers || st.Lost {
			t.Errorf("site %d: %+v", i, st)
		}
	}
}

// A coordinator that begins tells nothing of the line before every site that its predecessor had
// has told who waits there, or is silent: places would be better than they are.
func TestNewCoordinatorKnowsTheLineFirst(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, QueueAll: true}
	a, b := SiteKey{Name: "a", Incarnation: 1}, SiteKey{Name: "b", Incarnation: 1}
	for _, silent := range []bool{false, true} {
		now := midnight
		c := NewCoordinator(now, set, LedgerRecord{Epoch: 3, Sites: []ReservedUnits{{Site: a}, {Site: b}}}, []byte("seed"))
		said := func() (f *Figures) {
			for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
				c.Stored(now, rec)
			}
			for _, m := range c.Take() {
				if m.Site == a && m.State != nil {
					f = m.State.Figures
				}
			}
			return f
		}
		report := func(from SiteKey, seq uint64, id byte) {
			c.Receive(now, Report{From: from, Epoch: c.Epoch(), Seq: seq, Sent: now, Full: true, Ask: true,
				Arrivals: []Arrival{{ID: anteroom.ID{id}, Key: now.Add(-time.Minute), Due: now.Add(time.Minute), Shown: true}}})
		}
		report(a, 1, 1)
		if f := said(); f != nil {
			t.Errorf("before site b was heard: %d wait", f.Waiting)
		}
		want := 1
		now = now.Add(time.Second)
		if silent {
			now = now.Add(DeadAfter)
		} else {
			report(b, 1, 2)
			want = 2
		}
		report(a, 2, 1)
		if f := said(); f == nil || f.Waiting != want {
			t.Errorf("b is silent: %v: told %+v, want %d who wait", silent, f, want)
		}
	}
}

// What a coordinator says that has been replaced changes nothing at a site that has heard its successor.
func TestSiteBelievesNoOlderCoordinator(t *testing.T) {
	t.Parallel()
	id := anteroom.ID{1}
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	figures := &Figures{At: midnight, Step: baseStep}
	s.Receive(midnight, State{Epoch: 2, Now: midnight, Sites: 2, Granted: Units{1, 1}, Mode: Queue, Figures: figures})
	s.Visit(midnight, anteroom.Visit{Fresh: true, NoHold: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
	s.Deliver(midnight, ToSite{State: &State{Epoch: 1, Now: midnight, Sites: 2, Granted: Units{4, 4}, Mode: Open, Target: 4, Figures: figures}})
	s.Deliver(midnight, ToSite{Offers: &Offers{Epoch: 1, Granted: Units{5, 5}, At: midnight, IDs: []anteroom.ID{id}}})
	s.Tick(midnight.Add(holdMax))
	r, _ := s.Report(midnight.Add(HeartbeatQueue))
	if s.Mode() != Queue || s.Balance().Granted != (Units{1, 1}) || s.Active() != 0 || r.Epoch != 2 {
		t.Errorf("mode %v, granted %v, %d active, reports in epoch %d", s.Mode(), s.Balance().Granted, s.Active(), r.Epoch)
	}
	// The turn was not declined: its successor may give it at any moment.
	if len(r.Departures) != 0 {
		t.Errorf("departures %+v", r.Departures)
	}
}

// A visitor of whom a new process of the site has heard only an old word keeps the turn until the doors have told it
// whom they saw: nobody further behind is called meanwhile.
func TestAnOldWordHoldsThePlaceInOrder(t *testing.T) {
	c, send, now := twoSites(t)
	first, behind := anteroom.ID{1}, anteroom.ID{2}
	c.settings.QueueAll = true // nobody is called yet
	send(0, Report{Arrivals: []Arrival{{ID: first, Key: now, Shown: true, Due: now.Add(time.Second)}}})
	send(1, Report{Arrivals: []Arrival{{ID: behind, Key: now + 1, Stream: true}}})
	place := Arrival{ID: first, Key: now, Shown: true, Due: now.Add(time.Minute), Unheard: true}
	report := Report{From: SiteKey{Name: "a", Incarnation: 1}, Term: 1, Epoch: 1, Seq: 1, Sent: now, Full: true, Arrivals: []Arrival{place}}
	c.Receive(now, report)
	place.Due = now.Add(-4 * time.Second)
	report.Seq, report.Full, report.Arrivals = 2, false, []Arrival{place}
	c.Receive(now, report)
	c.settings.QueueAll = false
	c.dispatch(now)
	if n := c.Numbers(); n.Offered != 0 {
		t.Fatalf("%d turns were given before the site knew who is here", n.Offered)
	}
	place.Due, place.Unheard = now.Add(time.Second), false
	report.Seq, report.Arrivals = 3, []Arrival{place}
	if c.Receive(now, report); c.Numbers().Offered != 2 {
		t.Errorf("%d turns were given, want both", c.Numbers().Offered)
	}
}

// An answer that a step of the clock has spoiled says nothing of the time, and the next one is asked for at once: until
// then a new process of a site decides nothing.
func TestASpoiledAnswerIsAskedForAgain(t *testing.T) {
	s := NewSite(midnight, hereKey, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
	if r, ok := s.Report(midnight); !ok || !r.Ask {
		t.Fatal("a site that begins asks for nothing")
	}
	now := midnight.Add(200 * time.Millisecond)
	if _, ok := s.Report(now); ok {
		t.Fatal("it asks again before there is an answer")
	}
	s.Deliver(now, ToSite{State: &State{Epoch: 1, Now: now}})
	if r, ok := s.Report(now); !ok || !r.Ask {
		t.Error("it waits for the next heartbeat")
	}
}
