package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A door whose process was stopped lets a visitor in when it goes on, not when the site decided: the
// site hears of that, or the visitor is not let in.
func TestAnswerThatWaitedInAStoppedDoor(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
	for _, c := range []struct {
		name    string
		stopped time.Duration
		enters  bool
		told    bool
	}{
		{name: "in time", stopped: TouchDelay, enters: true},
		{name: "a slow store", stopped: time.Second, enters: true, told: true},
		{name: "as long as the site counts on a silent door", stopped: AloneFor(time.Minute) - time.Second, enters: true, told: true},
		{name: "longer than the site counts on a silent door", stopped: AloneFor(time.Minute) + time.Second},
	} {
		x, now, id := NewDoorway(1, set), midnight, anteroom.ID{1}
		site := SiteKey{Name: "a", Incarnation: 1}
		x.Tick(now)
		m, _ := x.Take(now)
		x.Visit(now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
		m, _ = x.Take(now)
		x.Receive(now, ToDoor{Site: site, Term: 1, Now: now, Confirmed: m.Batch, Echo: now, Since: 1})
		ticket := anteroom.Ticket{ID: id, Arrival: now, LastCheckIn: now, AcceptedAt: now, Home: homeOf("a")}
		late := now.Add(c.stopped)
		x.Receive(late, ToDoor{Site: site, Term: 1, Now: now, Answers: []Answer{{Token: m.Visits[0].Token,
			Decision: anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonFreeSlot, At: now, Ticket: ticket, SetCookie: true}}}})
		answers := x.TakeAnswers(late)
		if len(answers) != 1 || (answers[0].Decision.Verdict == anteroom.Admit) != c.enters {
			t.Errorf("%s: answers %+v", c.name, answers)
		}
		told := false
		for m, ok := x.Take(late); ok; m, ok = x.Take(late) {
			told = told || len(m.Touches) > 0 && slices.Contains(m.Late, id)
		}
		if told != c.told {
			t.Errorf("%s: the site is told: %v", c.name, told)
		}
	}
}

// What the coordinator saw of the room a while ago does not replace what it has said since, though it comes later.
func TestStateThatWasOvertaken(t *testing.T) {
	t.Parallel()
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute})
	says := func(epoch, number uint64, mode Mode, granted uint64) {
		at := midnight.Add(time.Duration(number) * time.Second)
		s.Receive(midnight.Add(time.Minute), State{Epoch: epoch, Now: at, Mode: mode, Target: number, Granted: Units{granted, granted}, Sites: 1,
			Lost: number < 2, Figures: &Figures{At: at, Number: number, Step: baseStep}})
	}
	says(1, 2, Queue, 3)
	says(1, 1, Open, 4)
	if s.Figures().Number != 2 || s.Mode() != Queue || s.target != 2 || s.lost {
		t.Errorf("figures %d, mode %v, target %d, lost %v: those that were overtaken", s.Figures().Number, s.Mode(), s.target, s.lost)
	}
	if s.balance.Granted != (Units{4, 4}) {
		t.Errorf("granted %v: an overtaken state says at least what was granted", s.balance.Granted)
	}
	if says(2, 1, Open, 4); s.Figures().Number != 1 || s.Mode() != Open {
		t.Errorf("figures %d, mode %v: the next coordinator counts anew", s.Figures().Number, s.Mode())
	}
}

// The rate is of those who come in. An answer that lets somebody in may be lost, or long on its way: then the rate slot is held
// from when the visitor came in, after a restart too.
func TestTheRateIsOfThoseWhoComeIn(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: 5 * time.Minute, FirstSession: 5 * time.Minute}
	id, key := anteroom.ID{1}, SiteKey{Name: "a", Incarnation: 1}
	waiting := anteroom.Ticket{ID: id, Arrival: midnight, LastCheckIn: midnight, Next: midnight.Add(2 * time.Second)}
	accepted := waiting
	accepted.AcceptedAt = midnight
	const later = 5 * time.Second
	comes := func(x *Desk, now anteroom.Time, ticket anteroom.Ticket) {
		x.Receive(now, FromDoor{Door: 2, Node: 2, Batch: uint64(now), Known: now, Visits: []Asked{{Token: 1, Visit: anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{2}}}}})
	}
	tells := func(m FromDoor) func(x *Desk, now anteroom.Time) {
		return func(x *Desk, now anteroom.Time) {
			m.Door, m.Node, m.Batch, m.Known = 1, 1, uint64(now), now
			x.Receive(now, m)
		}
	}
	for name, c := range map[string]struct {
		before, then func(x *Desk, now anteroom.Time)
		held         time.Duration // from the admission on
	}{
		"nobody comes": {held: RateHold},
		"the answer was lost": {
			then: func(x *Desk, now anteroom.Time) { comes(x, now, waiting) }, held: later + RateHold},
		"it was lost twice": {
			before: func(x *Desk, now anteroom.Time) { comes(x, now, waiting) },
			then:   func(x *Desk, now anteroom.Time) { comes(x, now, waiting) }, held: later + RateHold},
		"it was long on its way":                             {then: tells(FromDoor{Late: []anteroom.ID{id}}), held: later + RateHold},
		"the visitor has come in and sends another request":  {then: func(x *Desk, now anteroom.Time) { comes(x, now, accepted) }, held: RateHold},
		"the door tells of another request":                  {then: tells(FromDoor{Touches: []anteroom.ID{id}}), held: RateHold},
		"a cookie of before, of somebody who has come in":    {before: tells(FromDoor{Touches: []anteroom.ID{id}}), then: func(x *Desk, now anteroom.Time) { comes(x, now, waiting) }, held: RateHold},
		"a late answer to another request":                   {before: func(x *Desk, now anteroom.Time) { comes(x, now, accepted) }, then: tells(FromDoor{Late: []anteroom.ID{id}}), held: RateHold},
		"the answer reached a door, and not the visitor":     {then: tells(FromDoor{Late: []anteroom.ID{id}, Touches: []anteroom.ID{id}}), held: later + RateHold},
		"an answer that was late is told of once more later": {before: tells(FromDoor{Late: []anteroom.ID{id}}), then: tells(FromDoor{Late: []anteroom.ID{id}}), held: later/2 + RateHold},
	} {
		for _, restarted := range []bool{false, true} {
			s := NewSite(midnight, key, set)
			s.SetTerm(1)
			state := State{Epoch: 1, Now: midnight, Granted: Units{10, 10}, Mode: Queue, Sites: 1, Figures: &Figures{At: midnight, Step: baseStep}}
			s.Receive(midnight, state)
			s.admit(midnight, waiting, anteroom.ReasonTurn)
			x := NewDesk(s)
			if c.before != nil {
				c.before(x, midnight.Add(later/2))
			}
			if c.then != nil {
				c.then(x, midnight.Add(later))
			}
			if restarted {
				at := midnight.Add(later + time.Second)
				x = Takeover{Key: key, Term: 2, Settings: set, Events: s.TakeEvents()}.Desk(at)
				s = x.Site()
				state.Now = at
				s.Receive(at, state)
			}
			if s.RateSlots() != 1 || s.rates.first() != midnight.Add(c.held) {
				t.Errorf("%s, restarted %v: %d rate slots are held, the first until %v after the admission", name, restarted, s.RateSlots(), s.rates.first().Sub(midnight))
			}
		}
	}
}

// A door may hear that a session has begun when nobody waits for the answer any more. Whoever comes with the ticket of before
// comes in now, and the site is told, once.
func TestAnswerThatReachedTheDoorOnly(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
	x, now, id := NewDoorway(1, set), midnight, anteroom.ID{1}
	site := SiteKey{Name: "a", Incarnation: 1}
	ticket := anteroom.Ticket{ID: id, Arrival: now, LastCheckIn: now, Next: now.Add(time.Second)}
	x.Receive(now, ToDoor{Site: site, Term: 1, Now: now})
	x.Visit(now, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{2}})
	m, _ := x.Take(now)
	x.Receive(now, ToDoor{Site: site, Term: 1, Now: now, Confirmed: m.Batch, Echo: now, Since: 1})
	x.Abandon(now, m.Visits[0].Token)
	in := ticket
	in.AcceptedAt, in.LastCheckIn, in.Home = now, now, homeOf("a")
	x.Receive(now, ToDoor{Site: site, Term: 1, Now: now, Answers: []Answer{{Token: m.Visits[0].Token,
		Decision: anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: now, Ticket: in, SetCookie: true}}}})
	for i, want := range []int{1, 0} {
		now = now.Add(time.Second)
		if d, held := x.Visit(now, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{3}}); held != 0 || d.Verdict != anteroom.Admit {
			t.Fatalf("request %d: %+v, held %d", i, d, held)
		}
		m, _ := x.Take(now)
		x.Receive(now, ToDoor{Site: site, Term: 1, Now: now, Confirmed: m.Batch, Echo: now, Since: 1})
		if len(m.Late) != want {
			t.Errorf("request %d: the site hears of %d who come in late, want %d", i, len(m.Late), want)
		}
	}
}

// A door that is silent may be letting sessions in, so none of them ends. The door of a process that another one of its node has
// replaced lets nobody in, whether or not the new one's has something to tell yet.
func TestAReplacedDoorHoldsUpNoSession(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute, FirstSession: time.Minute}
	for name, c := range map[string]struct {
		replaced, again anteroom.Time // 0: not
		active          int
	}{
		"silent":                        {active: 1},
		"replaced":                      {replaced: midnight.Add(3 * time.Second)},
		"replaced after a while":        {replaced: midnight.Add(20 * time.Second), active: 1}, // it was cut off before, perhaps
		"replaced, and heard once more": {replaced: midnight.Add(3 * time.Second), again: midnight.Add(4 * time.Second), active: 1},
	} {
		s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, set)
		s.SetTerm(1)
		s.Receive(midnight, State{Epoch: 1, Now: midnight, Granted: Units{10, 10}, Mode: Queue, Sites: 1, Figures: &Figures{At: midnight, Step: baseStep}})
		x := NewDesk(s)
		x.Receive(midnight, FromDoor{Door: 1, Node: 7, Batch: 1, Sent: midnight, Known: midnight})
		s.admit(midnight, anteroom.Ticket{ID: anteroom.ID{1}, Arrival: midnight, Next: midnight}, anteroom.ReasonTurn)
		if c.replaced != 0 {
			x.Replaced(c.replaced, 1)
		}
		if c.again != 0 {
			x.Receive(c.again, FromDoor{Door: 1, Node: 7, Batch: 2, Sent: c.again, Known: c.again})
		}
		if x.Tick(midnight.Add(62 * time.Second)); s.Active() != c.active {
			t.Errorf("%s: %d sessions after a minute, want %d", name, s.Active(), c.active)
		}
	}
}

// The answer to a first request is lost, and the door asks again: the visitor comes in later than the session began, and the seat is held
// from then on.
func TestASeatIsHeldFromWhenTheVisitorComesIn(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.FirstSession = 5 * time.Second
	h := newHall(t, 1, set)
	h.doors[0].deaf = true
	token := h.visit(0, h.newcomer())
	h.run(1500 * time.Millisecond)
	h.doors[0].deaf = false
	var in anteroom.Time
	for in == 0 {
		h.run(5 * time.Millisecond)
		if _, ok := h.doors[0].answers[token]; ok {
			in = h.now
		}
	}
	d := h.answer(0, token)
	if late := in.Sub(d.Ticket.AcceptedAt); d.Verdict != anteroom.Admit || late < time.Second {
		t.Fatalf("%v, %v after the session began", d.Verdict, late)
	}
	h.run(in.Add(set.FirstSession).Sub(h.now))
	if _, ok := h.desk.Site().Session(d.Ticket.ID); !ok {
		t.Error("the seat is free before the session of the visitor's first request is over")
	}
	h.run(time.Second)
	if _, ok := h.desk.Site().Session(d.Ticket.ID); ok {
		t.Error("the seat is held for longer")
	}
}
