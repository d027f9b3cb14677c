package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var hallSet = anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 600, SessionDuration: 20 * time.Second}

// Six requests that a browser makes at once may come to any door.
func TestSixRequestsOverThreeDoors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		full bool
		want anteroom.Verdict
	}{{"a seat", false, anteroom.Admit}, {"a place", true, anteroom.Wait}} {
		h := newHall(t, 3, hallSet)
		h.lossy = 0.2
		h.run(5 * time.Second)
		for c.full && h.desk.Site().Active() < 5 {
			h.visit(0, h.newcomer())
			h.run(time.Second)
		}
		active, here := h.desk.Site().Active(), h.desk.Site().Here()
		v := h.newcomer()
		var tokens [6]uint64
		for i := range tokens {
			tokens[i] = h.visit(i%3, v)
		}
		h.run(2500 * time.Millisecond)
		for i := range tokens {
			if d := h.answer(i%3, tokens[i]); d.Verdict != c.want || d.Ticket.ID != v.Ticket.ID {
				t.Errorf("%s: request %d hears %v (%v) and has the ticket %x, want %x", c.name, i, d.Verdict, d.Reason, d.Ticket.ID, v.Ticket.ID)
			}
		}
		if c.full {
			here++
		} else {
			active++
		}
		if s := h.desk.Site(); s.Active() != active || s.Here() != here {
			t.Errorf("%s: %d sessions and %d places, want %d and %d", c.name, s.Active(), s.Here(), active, here)
		}
	}
}

// Somebody who has to start anew gets one place, however often it is asked about.
func TestRepeatedRequestOfAUsedTicketIsOneVisitor(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.TotalActiveUsers = 1
	h := newHall(t, 2, set)
	h.run(time.Second)
	if d := h.get(0, h.newcomer()); d.Verdict != anteroom.Admit {
		t.Fatalf("the first hears %v", d.Verdict)
	}
	over := anteroom.Visit{Ticket: anteroom.Ticket{ID: h.id(), AcceptedAt: h.now - 90e6, LastCheckIn: h.now - 90e6}, NewID: h.id(), NoHold: true}
	for i := range 4 {
		if d := h.get(i%2, over); d.Ticket.ID != over.NewID {
			t.Fatalf("it hears %v (%v)", d.Verdict, d.Reason)
		}
	}
	if n := h.desk.Site().Here(); n != 1 {
		t.Errorf("%d places, want 1", n)
	}
}

// Who came before the site knew the time enters before who came since, although nobody has asked again.
func TestEarlyRequestsAreDecidedFirst(t *testing.T) {
	t.Parallel()
	now, key := anteroom.Time(1_000_000_000), SiteKey{Name: "dublin", Incarnation: 1}
	x := Takeover{Key: key, Term: 2, Settings: hallSet}.Desk(now)
	asks := func(batch uint64, tokens ...uint64) {
		m := FromDoor{Door: 7, Batch: batch, Sent: now, Known: now}
		for _, token := range tokens {
			id := anteroom.ID{byte(token)}
			m.Visits = append(m.Visits, Asked{Token: token, Visit: anteroom.Visit{Fresh: true, NoHold: true, Ticket: anteroom.Ticket{ID: id}, NewID: id}})
		}
		x.Receive(now, m)
	}
	said := map[uint64]anteroom.Verdict{}
	step := func() {
		for _, o := range x.Step(now, true).ToDoors {
			for _, a := range o.Message.Answers {
				said[a.Token] = a.Decision.Verdict
			}
		}
	}
	asks(1, 1, 2)
	step()
	now = now.Add(300 * time.Millisecond)
	asks(2, 3)
	step()
	if len(said) != 0 {
		t.Fatalf("%v were decided about by a site that does not know the time", said)
	}
	m := FromDoor{Door: 7, Batch: 3, Sent: now, Known: now, Abandoned: []uint64{2}}
	x.Receive(now, m)
	x.Site().Deliver(now, ToSite{Site: key, Term: 2, State: &State{Epoch: 1, Echo: now, Now: now, Mode: Open, Granted: Units{2, 2}, Target: 2}})
	asks(4, 4)
	step()
	if said[1] != anteroom.Admit || said[3] != anteroom.Admit || said[4] == anteroom.Admit || len(said) > 3 {
		t.Errorf("decided: %v; want 1 and 3 in, whose doors asked before, and not 4", said)
	}
	if _, decided := said[2]; decided {
		t.Error("a request that was given up is decided about")
	}
}

// The order is that over all doors, whichever speaks first.
func TestEarlyRequestsOfSeveralDoors(t *testing.T) {
	t.Parallel()
	for name, speaks := range map[string]bool{"the door speaks again": true, "the door is silent": false} {
		now, key := anteroom.Time(1_000_000_000), SiteKey{Name: "dublin", Incarnation: 1}
		x := Takeover{Key: key, Term: 2, Settings: hallSet}.Desk(now)
		batch := uint64(0)
		say := func(door uint64, tokens ...uint64) {
			batch++
			m := FromDoor{Door: door, Batch: batch, Sent: now, Known: now}
			for _, token := range tokens {
				id := anteroom.ID{byte(token)}
				m.Visits = append(m.Visits, Asked{Token: token, Visit: anteroom.Visit{Fresh: true, NoHold: true, Ticket: anteroom.Ticket{ID: id}, NewID: id}})
			}
			x.Receive(now, m)
		}
		var in []uint64
		step := func() {
			for _, o := range x.Step(now, true).ToDoors {
				for _, a := range o.Message.Answers {
					if a.Decision.Verdict == anteroom.Admit {
						in = append(in, a.Token)
					}
				}
			}
		}
		say(7, 1)
		now = now.Add(time.Second + 100*time.Millisecond)
		x.Site().Deliver(now, ToSite{Site: key, Term: 2, State: &State{Epoch: 1, Echo: now, Now: now, Mode: Open, Granted: Units{1, 1}, Target: 1}})
		say(8, 2)
		step()
		if len(in) != 0 {
			t.Errorf("%s: %v were let in before the door of somebody who came earlier has spoken", name, in)
		}
		now = now.Add(20 * time.Millisecond)
		if speaks {
			say(7)
		} else {
			now = now.Add(TouchDelay)
			x.Tick(now)
		}
		step()
		if !slices.Equal(in, []uint64{1}) {
			t.Errorf("%s: %v were let in, want the first of two", name, in)
		}
	}
}

// A turn that takes effect while the stream is opened is told on it.
func TestTurnIsToldOnStreams(t *testing.T) {
	t.Parallel()
	for _, lossy := range []float64{0, 0.3} {
		set := hallSet
		set.TotalActiveUsers = 0
		h := newHall(t, 3, set)
		h.run(time.Second)
		v := h.newcomer()
		d := h.get(0, v)
		if d.Verdict != anteroom.Wait {
			t.Fatalf("let in into a room of nobody: %v", d.Reason)
		}
		h.lossy = lossy
		v = anteroom.Visit{Ticket: d.Ticket, NewID: h.id(), Stream: true}
		first, second := h.visit(1, v), h.visit(2, v)
		h.run(3 * time.Second)
		h.answer(1, first)
		h.answer(2, second)
		h.close(2, d.Ticket.ID)
		h.run(2 * time.Second)
		h.lossy = 0
		h.run(2 * time.Second)
		h.streamsAgree()
		set.TotalActiveUsers = 1
		h.set = set
		h.lossy = lossy
		h.coord.Configure(h.now, set)
		h.desk.Site().Configure(h.now, set)
		h.run(2500 * time.Millisecond)
		if !h.doors[1].pushed[d.Ticket.ID] || h.doors[2].pushed[d.Ticket.ID] {
			t.Errorf("with a loss of %v: told at door 1: %v, at door 2, whose stream has ended: %v", lossy, h.doors[1].pushed[d.Ticket.ID], h.doors[2].pushed[d.Ticket.ID])
		}
		if !h.doors[1].Called(d.Ticket.ID) {
			t.Error("the door has forgotten the turn")
		}
	}
}

// A stream that comes after the turn has taken effect is told at once.
func TestStreamAfterTheTurn(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.TotalActiveUsers = 0
	h := newHall(t, 1, set)
	h.run(time.Second)
	d := h.get(0, h.newcomer())
	site := h.desk.Site()
	slot := site.here.find(&d.Ticket.ID)
	site.here.at(slot).flags |= hereUnasked // so that the request does not take the turn
	site.offers[slot] = offer{active: true, deadline: h.now.Add(time.Minute)}
	site.here.at(slot).flags |= hereOffered
	site.balance.Offers++
	site.balance.Granted = Units{1, 1}
	site.sites = 2
	x := h.desk.doors[1]
	h.desk.answer(h.now, x, &Asked{Token: 1, Visit: anteroom.Visit{Ticket: d.Ticket, Stream: true}}, anteroom.Decision{Verdict: anteroom.Wait, Ticket: d.Ticket})
	if len(x.pushes) != 1 || x.pushes[0] != d.Ticket.ID {
		t.Errorf("the door is told %v", x.pushes)
	}
}

// A door that is silent has gone: its streams are broken, and its requests nobody's. When it
// speaks again it tells what it has.
func TestSilentDoor(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.TotalActiveUsers = 0
	h := newHall(t, 2, set)
	h.run(time.Second)
	d := h.get(0, h.newcomer())
	h.visit(0, anteroom.Visit{Ticket: d.Ticket, NewID: h.id(), Stream: true})
	h.run(time.Second)
	site := h.desk.Site()
	if site.streamsOf(d.Ticket.ID) != 1 {
		t.Fatal("the site knows of no stream")
	}
	h.doors[0].mute = true
	h.run(doorDead - time.Second)
	if site.streamsOf(d.Ticket.ID) != 1 {
		t.Error("the stream is broken before the door is dead")
	}
	h.run(2 * time.Second)
	if site.streamsOf(d.Ticket.ID) != 0 || h.desk.doors[1] != nil {
		t.Error("the stream of a dead door is open")
	}
	h.doors[0].mute = false
	h.run(2 * time.Second)
	if site.streamsOf(d.Ticket.ID) != 1 {
		t.Error("the door is back and its stream is not")
	}
	h.desk.Gone(h.now, 1)
	if site.streamsOf(d.Ticket.ID) != 0 {
		t.Error("a process has ended and its stream is open")
	}
}

// Another process takes the site over, which knows of no door: streams and requests are told
// again, and nothing is taken for confirmed that it has not heard.
func TestDeskIsTakenOver(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.TotalActiveUsers = 0
	h := newHall(t, 1, set)
	h.run(time.Second)
	d := h.get(0, h.newcomer())
	h.visit(0, anteroom.Visit{Ticket: d.Ticket, NewID: h.id(), Stream: true})
	h.run(time.Second)
	site := h.desk.Site()
	site.here.at(site.here.find(&d.Ticket.ID)).streams = 0 // as it comes back from its journal
	h.desk = NewDesk(site)
	token := h.visit(0, h.newcomer())
	h.run(2 * time.Second)
	h.answer(0, token)
	if site.streamsOf(d.Ticket.ID) != 1 {
		t.Error("the successor knows of no stream")
	}
	h.streamsAgree()
}

// What is old changes nothing; what is unheard of is bounded.
func TestDeskTakesNothingTwice(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1, hallSet)
	h.run(time.Second)
	v := h.newcomer()
	v.NoClaim = true
	m := FromDoor{Door: 9, Batch: 5, Sent: h.now, Visits: []Asked{{Token: 1, Visit: v}}}
	h.desk.Receive(h.now, m)
	if got := h.desk.Take(h.now); len(got) != 1 || len(got[0].Message.Answers) != 1 || got[0].Message.Confirmed != 5 || got[0].Message.Since != 5 || got[0].Message.Figures == nil {
		t.Fatalf("the door hears %+v", got)
	}
	for _, batch := range []uint64{5, 4} {
		m.Batch = batch
		h.desk.Receive(h.now, m)
		if got := h.desk.Take(h.now); len(got) != 0 {
			t.Fatalf("batch %d is answered with %+v", batch, got)
		}
	}
	for i := range maxDoors + 10 {
		h.desk.Receive(h.now, FromDoor{Door: uint64(100 + i), Batch: 1})
	}
	h.desk.Receive(h.now, FromDoor{})
	if len(h.desk.doors) != maxDoors || len(h.desk.order) != maxDoors {
		t.Errorf("%d doors", len(h.desk.doors))
	}
}

// Many answers and ended sessions go in several messages; the last confirms.
func TestDeskMessagesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t, 0, hallSet)
	h.desk.Receive(h.now, FromDoor{Door: 9, Batch: 1})
	d := h.desk.doors[9]
	for i := range 2*answersAtOnce + 1 {
		d.answers = append(d.answers, Answer{Token: uint64(i)})
	}
	for range idsAtOnce + 1 {
		h.desk.ended = append(h.desk.ended, h.id())
	}
	confirmed, answers, ended := 0, 0, 0
	for _, o := range h.desk.Take(h.now) {
		answers += len(o.Message.Answers)
		ended += len(o.Message.Ended)
		if o.Message.Confirmed != 0 {
			confirmed++
		}
		if n := len(o.Message.AppendWire(nil)); n > 512<<10 {
			t.Errorf("a message has %d bytes", n)
		}
	}
	if answers != 2*answersAtOnce+1 || ended != idsAtOnce+1 || confirmed != 1 {
		t.Errorf("%d answers, %d ended, %d confirmations", answers, ended, confirmed)
	}
}

// TestHallWithFaults: whatever is lost, nobody is let in whose session has ended, the limit
// holds, everybody gets an answer, and streams agree when all is well again.
func TestHallWithFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHall(t, 3, hallSet)
			h.storm(seed)
		})
	}
}

// A door asks again while the answer is on its way to it. Nobody waits for the answer to that, and a turn
// that comes then is for the visitor's next request. When the answer was lost, somebody does.
func TestTurnIsNotSpentOnARequestThatWasAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after  time.Duration // the answer
		enters bool
	}{{time.Millisecond, false}, {askAgain, true}} {
		now, id := midnight, anteroom.ID{1}
		x := NewDesk(NewSite(now, hereKey, hallSet))
		x.Site().Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Sites: 1, Figures: &Figures{At: now, Step: baseStep}})
		asks := FromDoor{Door: 1, Visits: []Asked{{Token: 1, Visit: anteroom.Visit{NewID: anteroom.ID{2},
			Ticket: anteroom.Ticket{ID: id, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-time.Second), Next: now}}}}}
		ask := func() {
			asks.Batch, asks.Sent = asks.Batch+1, now
			x.Receive(now, asks)
		}
		ask()
		now = now.Add(holdMax)
		x.Tick(now)
		if n := len(x.doors[1].answers); n != 1 {
			t.Fatalf("%d answers", n)
		}
		now = now.Add(c.after)
		x.Tick(now)
		ask()
		x.Site().Deliver(now, ToSite{Offers: &Offers{Epoch: 1, Granted: Units{1, 1}, At: now, IDs: []anteroom.ID{id}}})
		if entered := x.Site().Active() == 1; entered != c.enters || entered == x.Site().Called(id) {
			t.Errorf("asked again %v after the answer: entered is %v, and the turn stands: %v", c.after, entered, x.Site().Called(id))
		}
	}
}

// A browser whose stream breaks opens another at once. That the first has ended is told until it is confirmed, and does not end the second.
func TestAStreamOutlivesTheWordOfTheOneBefore(t *testing.T) {
	t.Parallel()
	set := hallSet
	set.QueueAll = true
	h := newHall(t, 1, set)
	h.run(time.Second)
	var waits []anteroom.Visit
	for range 5 {
		d := h.get(0, h.newcomer())
		waits = append(waits, anteroom.Visit{Ticket: d.Ticket, NewID: h.id(), Stream: true})
		h.get(0, waits[len(waits)-1])
	}
	h.slow = 100 * time.Millisecond
	for range 50 {
		for _, v := range waits {
			h.close(0, v.Ticket.ID)
			h.send(0)
			h.run(10 * time.Millisecond)
			h.visit(0, v)
		}
		h.run(time.Second)
		h.streamsAgree()
	}
}
