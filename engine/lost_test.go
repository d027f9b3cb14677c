package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// successor returns a site that has heard that its memory was lost, the State that said so,
// and the time. It has no unit of its own.
func successor(t *testing.T, change func(*anteroom.Settings)) (*Site, State, anteroom.Time) {
	t.Helper()
	set := anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: 60, SessionDuration: time.Minute}
	if change != nil {
		change(&set)
	}
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 2}, set)
	state := State{Epoch: 1, Now: midnight, Mode: Queue, Figures: &Figures{At: midnight, Step: baseStep}, Sites: 2, Lost: true}
	s.Receive(midnight, state)
	return s, state, midnight
}

// A door may let in a session alone that its site has forgotten. That request counts: until
// it is a session duration old, the session is alive.
func TestTouchOfAForgottenSessionIsAdopted(t *testing.T) {
	id := anteroom.ID{1}
	cases := map[string]struct {
		change  func(*anteroom.Settings)
		prepare func(s *Site, state State)
		after   time.Duration
		adopted bool
		guest   bool
	}{
		"adopted":                {adopted: true},
		"just in time":           {after: time.Minute - 1000, adopted: true},
		"what was lost is over":  {after: time.Minute},
		"requests renew nothing": {change: func(s *anteroom.Settings) { s.DisableSessionRenewal = true }},
		"nothing was lost":       {prepare: func(s *Site, m State) { m.Lost = false; s.Receive(midnight, m) }},
		"it is a guest's": {prepare: func(s *Site, m State) {
			s.ReceiveFindings(midnight, Findings{Epoch: 1, Found: []Finding{{ID: id, Standing: Seated, Accepted: midnight, Last: midnight, Home: 7}}})
		}, guest: true},
		"the link is cut":             {prepare: func(s *Site, m State) { s.enterCut(midnight) }, adopted: true},
		"as many as may be are there": {prepare: func(s *Site, m State) { touchAll(s, midnight, anteroom.ID{2}, anteroom.ID{3}, anteroom.ID{4}) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, state, now := successor(t, c.change)
			if c.prepare != nil {
				c.prepare(s, state)
			}
			unknown := touchAll(s, now.Add(c.after), id)
			if _, here := s.Session(id); here != c.adopted || slices.Contains(unknown, id) == (c.adopted || c.guest) {
				t.Errorf("a session: %v, unknown: %v", here, unknown)
			}
			if c.adopted && (s.adopted != 1 || s.balance.Free(Seat) != 0 || s.lapse(s.seats.find(&id)) < now.Add(c.after+time.Minute)) {
				t.Errorf("balance %+v, %d adopted", s.balance, s.adopted)
			}
		})
	}
}

// The limit is lowered after a loss: sessions that are certain to have been there go on, as they would
// have without the loss. A cookie that has run out gives none back: its session may have ended long before.
func TestLimitIsLoweredAfterALoss(t *testing.T) {
	t.Parallel()
	id := anteroom.ID{1}
	seen := func(ago time.Duration) func(s *Site, now anteroom.Time) {
		return func(s *Site, now anteroom.Time) {
			s.Visit(now, anteroom.Visit{NewID: anteroom.ID{9}, Ticket: anteroom.Ticket{ID: id, AcceptedAt: midnight, LastCheckIn: now.Add(-ago), Home: s.home}})
		}
	}
	for name, c := range map[string]struct {
		comes   func(s *Site, now anteroom.Time)
		limit   int
		adopted bool
	}{
		"a door has let it in":              {func(s *Site, now anteroom.Time) { touchAll(s, now, id) }, 1, true},
		"its cookie says that it lasts":     {seen(59 * time.Second), 1, true},
		"its cookie has run out":            {seen(61 * time.Second), 3, false},
		"another site asks, and may be old": {func(s *Site, now anteroom.Time) { s.findHere(now, Ask{ID: id, Home: s.home, Accepted: midnight}) }, 1, false},
	} {
		s, state, now := successor(t, nil)
		touchAll(s, now, anteroom.ID{2}, anteroom.ID{3})
		set := s.settings
		set.TotalActiveUsers = c.limit
		s.Configure(now, set)
		s.Receive(now, state)
		c.comes(s, now.Add(30*time.Second))
		if _, here := s.Session(id); here != c.adopted {
			t.Errorf("%s: there is a session: %v", name, here)
		}
	}
}

// A site that has just begun does not know whether its memory was lost: it calls no session over
// that a door tells of, and confirms none, before the coordinator has said so.
func TestTouchBeforeTheLossIsKnown(t *testing.T) {
	t.Parallel()
	id, door := anteroom.ID{1}, FromDoor{Door: 3, Touches: []anteroom.ID{{1}}}
	state := State{Epoch: 1, Now: midnight, Mode: Queue, Figures: &Figures{At: midnight, Step: baseStep}, Sites: 2}
	for name, c := range map[string]struct {
		meanwhile func(s *Site)
		adopted   bool
	}{
		"it was lost":     {func(s *Site) { m := state; m.Lost = true; s.Receive(midnight, m) }, true},
		"nothing is lost": {func(s *Site) { s.Receive(midnight, state) }, false},
		"it is cut off":   {func(s *Site) { s.enterCut(midnight) }, false},
	} {
		x := NewDesk(NewSite(midnight, SiteKey{Name: "a", Incarnation: 2}, anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: 60, SessionDuration: time.Minute}))
		tell := func() (confirmed, ended bool) {
			door.Batch++
			x.Receive(midnight, door)
			for _, o := range x.Take(midnight) {
				confirmed, ended = confirmed || o.Message.Confirmed != 0, ended || slices.Contains(o.Message.Ended, id)
			}
			return confirmed, ended
		}
		if confirmed, ended := tell(); confirmed || ended {
			t.Errorf("%s: before that is known it is confirmed: %v, ended: %v", name, confirmed, ended)
		}
		c.meanwhile(x.Site())
		if confirmed, ended := tell(); !confirmed || ended == c.adopted {
			t.Errorf("%s: it is confirmed: %v, ended: %v", name, confirmed, ended)
		}
		if _, here := x.Site().Session(id); here != c.adopted {
			t.Errorf("%s: there is a session: %v", name, here)
		}
	}
}

// The answer to a question may be lost. A session that the lost memory may have known goes
// on; there is a unit for it.
func TestForgottenSessionGoesOnWithoutAnAnswer(t *testing.T) {
	s, _, now := successor(t, nil)
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: now, LastCheckIn: now}
	if _, held := s.Visit(now, anteroom.Visit{Ticket: ticket}); held == 0 {
		t.Fatal("decided without asking")
	}
	s.Tick(now.Add(findMax))
	if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Reason != anteroom.ReasonAdopted {
		t.Errorf("the visitor hears %+v", a)
	}
}

// Several requests of one session wait for one answer: it is adopted once.
func TestForgottenSessionIsAdoptedOnce(t *testing.T) {
	s, _, now := successor(t, nil)
	ticket := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: now, LastCheckIn: now}
	for range 3 {
		s.Visit(now, anteroom.Visit{Ticket: ticket})
	}
	s.Tick(now.Add(findMax))
	for _, a := range s.TakeAnswers() {
		if a.Decision.Verdict != anteroom.Admit {
			t.Errorf("a request hears %+v", a)
		}
	}
	if s.Active() != 1 || s.adopted != 1 || s.balance.Used[Seat] != 1 {
		t.Errorf("%d sessions, %d adopted, balance %+v", s.Active(), s.adopted, s.balance)
	}
}

// Whatever other sites say of an old cookie, which names no home: the session is adopted, unless
// one of them holds it. The word that somebody in line was let in may be lost with the memory.
func TestForgottenSessionOfWhichOthersHaveHeard(t *testing.T) {
	for _, standing := range []Standing{Unknown, Waiting, Seated} {
		s, _, now := successor(t, nil)
		ticket := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: now, LastCheckIn: now}
		s.Visit(now, anteroom.Visit{Ticket: ticket})
		s.ReceiveFindings(now, Findings{Epoch: 1, Found: []Finding{{ID: ticket.ID, Standing: standing, Key: now, Accepted: now, Last: now, Home: 7}}})
		want, debt := anteroom.ReasonAdopted, uint64(1)
		if standing == Seated {
			want, debt = anteroom.ReasonSession, 0
		}
		if a := s.TakeAnswers(); len(a) != 1 || a[0].Decision.Reason != want || s.balance.Debt != debt {
			t.Errorf("standing %v: the visitor hears %+v, the balance is %+v", standing, a, s.balance)
		}
	}
}

// Seats for adopted sessions pay the debt, whichever message brings them; one that was
// overtaken by a newer one does not bring the debt back.
func TestSeatsForAdoptedSessionsPayTheDebt(t *testing.T) {
	state := func(s *Site, now anteroom.Time, m State) { s.Receive(now, m) }
	for name, receive := range map[string]func(s *Site, now anteroom.Time, m State){
		"state": state,
		"offers": func(s *Site, now anteroom.Time, m State) {
			s.ReceiveOffers(now, Offers{Epoch: m.Epoch, Granted: m.Granted, Adopted: m.Adopted, At: now})
		},
	} {
		s, older, now := successor(t, nil)
		touchAll(s, now, anteroom.ID{1})
		newer := older
		newer.Granted, newer.Adopted = Units{1, 0}, 1
		receive(s, now, newer)
		state(s, now, older)
		if s.balance.Debt != 0 || s.balance.Free(Seat) != 0 || s.balance.Returned[Seat] != 0 {
			t.Errorf("%s: the balance is %+v", name, s.balance)
		}
	}
}

// What a lost memory held stays charged until its successor has known of the loss for a
// session duration, by its own clock, and has told what it adopted until then: it may have
// been cut off for all of that time.
func TestLostMemoryIsChargedUntilItsSuccessorKnows(t *testing.T) {
	now := midnight
	c := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: 2 * time.Minute}, LedgerRecord{}, []byte("seed"))
	seq := uint64(0)
	send := func(incarnation uint64, r Report) {
		seq++
		r.From, r.Seq, r.Sent, r.Full, r.Ask = SiteKey{Name: "a", Incarnation: incarnation}, seq, now, true, true
		c.Receive(now, r)
		for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
			c.Stored(now, rec)
		}
		c.Take()
	}
	send(1, Report{})
	send(1, Report{Epoch: 1, Want: 2, Newcomers: 2})
	if c.ledger.Pool(Seat) == 5 {
		t.Fatal("nothing was granted")
	}
	held := 5 - c.ledger.Pool(Seat)
	pass := func(d time.Duration, want int64) {
		t.Helper()
		now = now.Add(d)
		c.Tick(now)
		if got := 5 - c.ledger.Pool(Seat); got != want {
			t.Errorf("at %v %d seats are charged, want %d", now.Sub(midnight), got, want)
		}
	}
	send(2, Report{}) // has not heard the coordinator yet
	pass(5*time.Minute, held)
	send(2, Report{Epoch: 1})
	pass(5*time.Minute, held)
	now = now.Add(-5 * time.Minute).Add(2 * time.Minute)
	send(2, Report{Epoch: 1, Adopted: 1, Used: Units{1, 0}})
	pass(0, held)
	now = now.Add(1000)
	send(2, Report{Epoch: 1, Adopted: 1, Used: Units{1, 0}})
	pass(0, 1)
}

// touchAll renews sessions that were seen now, and returns those that are not here.
func touchAll(s *Site, now anteroom.Time, ids ...anteroom.ID) (unknown []anteroom.ID) {
	for _, id := range ids {
		if !s.Touch(now, now, id) {
			unknown = append(unknown, id)
		}
	}
	return unknown
}
