package node

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// moment is a time of the day on which the bubbles of synctest begin: "10:00:00".
func moment(t *testing.T, clock string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, "2000-01-01 "+clock)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func sleepUntil(t *testing.T, clock string) {
	t.Helper()
	at := moment(t, clock)
	if wait := time.Until(at); wait < 0 {
		t.Fatalf("%s is over", clock)
	}
	time.Sleep(time.Until(at))
}

func ptr[T any](v T) *T { return &v }

// event is one of 10:00 to 11:00 with a prequeue of half an hour.
func event(id string, method anteroom.QueueingMethod) anteroom.Event {
	e := anteroom.Event{ID: anteroom.EventID(strings.Repeat(id, 32)), Name: "e" + id,
		Prequeue: "2000-01-01T09:30:00Z", Start: "2000-01-01T10:00:00Z", End: "2000-01-01T11:00:00Z",
		Overrides: anteroom.Overrides{QueueingMethod: &method}}
	for i := range e.Seed {
		e.Seed[i] = byte(i)
	}
	return e
}

// ask is one decision, in short.
func ask(t *testing.T, r *Room, v anteroom.Visit) (anteroom.Decision, string) {
	t.Helper()
	d := r.Decide(t.Context(), v)
	if d.InForce == nil {
		t.Error("a decision does not say what is in force")
		return d, ""
	}
	return d, d.Verdict.String() + " " + d.Reason.String() + " " + d.InForce.Phase.String()
}

func expect(t *testing.T, r *Room, v anteroom.Visit, want string) anteroom.Decision {
	t.Helper()
	d, got := ask(t, r, v)
	if got != want {
		t.Errorf("%s: %s, want %s", time.Now().Format(time.TimeOnly), got, want)
	}
	return d
}

func TestAnEventLivesToTheMicrosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.QueueingMethod = anteroom.Passthrough
		e := event("a", anteroom.FIFO)
		e.TotalActiveUsers, e.NewUsersPerMinute = ptr(3), ptr(60)
		room.Events = []anteroom.Event{e}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		sleepUntil(t, "09:29:59.999999")
		ann := expect(t, r, newcomer(), "admit passthrough none")
		time.Sleep(time.Microsecond)
		bob := expect(t, r, newcomer(), "wait prequeue prequeueing")
		if bob.WaitKnown || bob.Refresh == 0 || bob.InForce.Event.Name != "ea" || !bob.AheadKnown {
			t.Errorf("in the prequeue: %+v", bob)
		}
		expect(t, r, with(ann.Ticket), "admit session prequeueing")
		sleepUntil(t, "09:59:50")
		bob = expect(t, r, newcomer(), "wait prequeue prequeueing")
		cid := expect(t, r, newcomer(), "wait prequeue prequeueing")
		for _, ticket := range []anteroom.Ticket{bob.Ticket, cid.Ticket} {
			expect(t, r, with(ticket), "wait early prequeueing") // their places are proven
		}
		time.Sleep(2 * tickEvery)
		if s := r.Status(); s.InForce.Phase != anteroom.Prequeueing || s.TotalActiveUsers != 3 || s.Waiting != 2 {
			t.Errorf("in the prequeue: %+v", s)
		}
		sleepUntil(t, "09:59:59.999999")
		expect(t, r, with(cid.Ticket), "wait early prequeueing")
		time.Sleep(time.Microsecond)
		if s := r.Settings(); s.QueueingMethod != anteroom.FIFO || s.Prequeueing {
			t.Errorf("at the start: %+v", s)
		}
		bob = expect(t, r, with(bob.Ticket), "admit turn started")
		expect(t, r, with(cid.Ticket), "admit turn started")
		expect(t, r, newcomer(), "admit free_slot started")
		dan := expect(t, r, newcomer(), "wait line started")
		sleepUntil(t, "10:59:59.999999")
		expect(t, r, with(dan.Ticket), "admit free_slot started") // the place was lost, the sessions are over
		time.Sleep(time.Microsecond)
		for range 9 {
			expect(t, r, newcomer(), "admit passthrough none")
		}
	})
}

func TestStreamsHearTheStartOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.Events = []anteroom.Event{event("a", anteroom.Passthrough)}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		sleepUntil(t, "09:59:00")
		_, stream := r.Watch(t.Context(), newcomer())
		for d := range stream {
			if d.Verdict != anteroom.Admit {
				continue
			}
			if late := time.Since(moment(t, "10:00:00")); late < 0 || late > 2*tickEvery || d.InForce.Phase != anteroom.Started {
				t.Errorf("called %v after the start, with %v in force", late, d.InForce.Phase)
			}
		}
	})
}

// With reject whoever waits on a stream is told at once, and the line goes on after the event.
func TestRejectAfterASaleKeepsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		sale, closing := event("a", anteroom.FIFO), event("b", anteroom.Reject)
		closing.Prequeue, closing.Start, closing.End = "", sale.End, "2000-01-01T11:03:00Z"
		closing.DisableSessionRenewal = ptr(true)
		room.Events = []anteroom.Event{sale, closing}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		sleepUntil(t, "10:59:50")
		ann := expect(t, r, newcomer(), "admit free_slot started")
		bob := expect(t, r, newcomer(), "admit free_slot started")
		cid, stream := r.Watch(t.Context(), newcomer())
		dan := expect(t, r, newcomer(), "wait line started")
		for d := range stream {
			if d.Verdict == anteroom.Refuse {
				break
			}
		}
		if late := time.Since(moment(t, "11:00:00")); late < 0 || late > 2*tickEvery {
			t.Errorf("refused %v after the change", late)
		}
		sleepUntil(t, "11:00:30")
		expect(t, r, with(ann.Ticket), "admit session started")
		expect(t, r, newcomer(), "refuse reject started")
		dan = expect(t, r, with(dan.Ticket), "refuse reject started")
		sleepUntil(t, "11:01:00")
		time.Sleep(engine.TouchDelay) // no renewal: a session duration after the sale everybody is out, and then their seats are free
		expect(t, r, with(ann.Ticket), "refuse reject started")
		expect(t, r, with(bob.Ticket), "refuse reject started")
		sleepUntil(t, "11:03:00")
		if d := <-stream; d.Verdict != anteroom.Admit {
			t.Errorf("after the event: %v, want the turn of the first in line", d.Verdict)
		}
		expect(t, r, with(cid.Ticket), "admit turn none")
		expect(t, r, with(dan.Ticket), "admit reopened none") // nobody else waits
	})
}

func TestAnIdleRoomFollowsItsPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.Events = []anteroom.Event{event("a", anteroom.Reject)}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		sleepUntil(t, "09:29:00")
		if r.active.Load() {
			t.Fatal("the room is not idle")
		}
		sleepUntil(t, "09:30:01")
		r.mu.Lock()
		phase := r.schedule.inForce.Phase
		r.mu.Unlock()
		if phase != anteroom.Prequeueing {
			t.Errorf("nobody came, and the room is in phase %v", phase)
		}
		sleepUntil(t, "10:00:00")
		expect(t, r, newcomer(), "refuse reject started")
	})
}

func TestEventsAndControlsChangeWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.Events = []anteroom.Event{event("a", anteroom.Reject)}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		change := func(f func(*anteroom.Room, *anteroom.Event)) {
			e := room.Events[0]
			f(&room, &e)
			if room.Events != nil {
				room.Events = []anteroom.Event{e} // what is in force must not change under it
			}
			if err := n.Apply(t.Context(), []anteroom.Room{room}); err != nil {
				t.Fatal(err)
			}
		}
		sleepUntil(t, "10:10:00")
		expect(t, r, newcomer(), "refuse reject started")
		change(func(_ *anteroom.Room, e *anteroom.Event) { e.Suspended = true })
		ann := expect(t, r, newcomer(), "admit free_slot none")
		change(func(_ *anteroom.Room, e *anteroom.Event) { e.Suspended = false })
		expect(t, r, newcomer(), "refuse reject started")
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.QueueAll = true })
		if d := expect(t, r, newcomer(), "wait queue_all started"); !d.QueueAll {
			t.Error("queue-all over an event is not told")
		}
		expect(t, r, with(ann.Ticket), "admit session started")
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.QueueAll = false })
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.Controls.Draining = true })
		expect(t, r, newcomer(), "refuse draining started")
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.Controls.Draining = false })
		change(func(_ *anteroom.Room, e *anteroom.Event) { e.QueueingMethod = ptr(anteroom.FIFO) })
		expect(t, r, newcomer(), "admit free_slot started") // the one whom queue-all held is away
		change(func(_ *anteroom.Room, e *anteroom.Event) {
			e.Prequeue, e.Start = "2000-01-01T10:05:00Z", "2000-01-01T10:20:00Z"
		})
		expect(t, r, newcomer(), "wait prequeue prequeueing")
		change(func(_ *anteroom.Room, e *anteroom.Event) { e.End = "2000-01-01T10:21:00Z" })
		sleepUntil(t, "10:20:00")
		expect(t, r, newcomer(), "admit free_slot started")
		sleepUntil(t, "10:21:00")
		if s := r.Status(); s.InForce.Phase != anteroom.NoEvent {
			t.Errorf("an event that was made shorter goes on: %+v", s.InForce)
		}
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.Suspended = true })
		expect(t, r, newcomer(), "pass suspended none")
		change(func(r *anteroom.Room, e *anteroom.Event) {
			r.Suspended, e.QueueingMethod, e.End = false, ptr(anteroom.Reject), "2000-01-01T12:00:00Z"
		})
		expect(t, r, newcomer(), "refuse reject started")
		change(func(r *anteroom.Room, _ *anteroom.Event) { r.Events = nil })
		if d, got := ask(t, r, newcomer()); d.InForce.Phase != anteroom.NoEvent || d.Verdict == anteroom.Refuse {
			t.Errorf("after the event was deleted: %s", got)
		}
	})
}

func TestRestartsInTheLifeOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, room := memlink.New(), shop
		room.Events = []anteroom.Event{event("a", anteroom.FIFO)}
		restart := func(kill func()) (*Room, func()) {
			kill()
			n, kill := begin(t, link, room)
			return n.Room(shop.ID), kill
		}
		n, kill := begin(t, link, room)
		r := n.Room(shop.ID)
		sleepUntil(t, "09:58:50")
		ann, bob, cid := expect(t, r, newcomer(), "wait prequeue prequeueing"), expect(t, r, newcomer(), "wait prequeue prequeueing"), expect(t, r, newcomer(), "wait prequeue prequeueing")
		time.Sleep(time.Second)
		r, kill = restart(kill)
		bob = expect(t, r, with(bob.Ticket), "wait early prequeueing")
		time.Sleep(time.Second)
		kill()
		sleepUntil(t, "10:00:00") // it starts while nobody is there
		n, kill = begin(t, link, room)
		r = n.Room(shop.ID)
		expect(t, r, newcomer(), "wait line started") // who waited goes first
		if d, _ := r.Watch(t.Context(), with(cid.Ticket)); d.Ahead != 2 {
			t.Errorf("cid has %d ahead, want 2", d.Ahead)
		}
		_, first := r.Watch(t.Context(), with(ann.Ticket))
		for d := range first {
			if d.Verdict == anteroom.Admit {
				break
			}
		}
		ann = expect(t, r, with(ann.Ticket), "admit turn started")
		time.Sleep(time.Second)
		r, kill = restart(kill)
		defer kill()
		expect(t, r, with(ann.Ticket), "admit session started")
	})
}

func TestAResetEndsStreamsOfVoidPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.QueueAll = true
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		ann, stream := r.Watch(t.Context(), newcomer())
		time.Sleep(time.Second)
		room.Controls.ResetAt = n.Now()
		if err := n.Apply(t.Context(), []anteroom.Room{room}); err != nil {
			t.Fatal(err)
		}
		for d := range stream {
			if d.Verdict == anteroom.Admit {
				t.Error("called by a reset")
			}
		}
		if n.Streams() != 0 {
			t.Errorf("%d streams are counted", n.Streams())
		}
		if d := expect(t, r, with(ann.Ticket), "wait place_lost none"); d.Ticket.ID == ann.Ticket.ID {
			t.Error("the void ticket goes on")
		}
	})
}

// TestEventsFollowAClockThatIsSetRight: one that was ahead for a moment leaves no event out; small steps begin nothing again.
func TestEventsFollowAClockThatIsSetRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.Events = []anteroom.Event{event("a", anteroom.Reject)}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		phase := func() anteroom.Phase {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.schedule.inForce.Phase
		}
		r.mu.Lock()
		r.schedule.evaluate(moment(t, "10:00:30"))
		r.schedule.evaluate(moment(t, "09:59:45"))
		if r.schedule.inForce.Phase != anteroom.Started {
			t.Error("the clock was set back by a little, and the event has not started any more")
		}
		r.schedule.evaluate(moment(t, "23:00:00"))
		r.mu.Unlock()
		if got := phase(); got != anteroom.NoEvent {
			t.Errorf("at night: %v", got)
		}
		sleepUntil(t, "09:45:00")
		if got := phase(); got != anteroom.Prequeueing {
			t.Errorf("the clock was set right, nobody has come, and the phase is %v", got)
		}
		sleepUntil(t, "10:00:00")
		expect(t, r, newcomer(), "refuse reject started")
	})
}

func TestTheJournalIsKeptForTheLongestSessionOfAnEvent(t *testing.T) {
	room := shop
	e := event("a", anteroom.FIFO)
	e.SessionDuration = ptr(3 * time.Hour)
	room.Events = []anteroom.Event{e}
	if d := retention([]anteroom.Room{room}); d < 6*time.Hour {
		t.Errorf("records are kept for %v, sessions last up to 3 h", d)
	}
}

func TestASessionPassesWithoutAllocation(t *testing.T) {
	room := shop
	room.Events = []anteroom.Event{event("a", anteroom.FIFO)}
	n, kill := begin(t, memlink.New(), room)
	defer kill()
	r := n.Room(shop.ID)
	ann := r.Decide(t.Context(), newcomer())
	v := with(ann.Ticket)
	if got := testing.AllocsPerRun(100, func() { r.Decide(t.Context(), v) }); got >= 1 {
		t.Errorf("%.1f allocations for a request within a session", got)
	}
}

func BenchmarkSession(b *testing.B) {
	room := shop
	room.Events = []anteroom.Event{event("a", anteroom.FIFO)}
	link := memlink.New()
	n, err := New(b.Context(), Config{Link: link})
	if err != nil {
		b.Fatal(err)
	}
	if err := n.Apply(b.Context(), []anteroom.Room{room}); err != nil {
		b.Fatal(err)
	}
	go n.Run(b.Context())
	r := n.Room(shop.ID)
	ann := r.Decide(b.Context(), newcomer())
	v := with(ann.Ticket)
	b.ReportAllocs()
	for b.Loop() {
		r.Decide(b.Context(), v)
	}
}
