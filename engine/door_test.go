package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A door beside its site counts on a session only from the last touch that the site has
// confirmed.
func TestDoorIsSureFromTheLastConfirmedTouch(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}
	at := func(sec int) anteroom.Time { return midnight.Add(time.Duration(sec) * time.Second) }
	id := anteroom.ID{1}
	v := anteroom.Visit{Ticket: anteroom.Ticket{ID: id, AcceptedAt: at(0), LastCheckIn: at(0)}}
	alone := func(d *Door, sec int) bool { _, ask := d.Decide(at(sec), &v); return !ask }
	known := func() *Door {
		d := NewDoor(s)
		d.Learn(at(0), id, at(0))
		return d
	}
	take := func(t *testing.T, d *Door, want int) uint64 {
		t.Helper()
		batch, ids := d.TakeTouches()
		if len(ids) != want {
			t.Fatalf("batch %d has %d ids, want %d", batch, len(ids), want)
		}
		return batch
	}
	t.Run("never confirmed", func(t *testing.T) {
		d := known()
		if !alone(d, 50) || !alone(d, 59) || alone(d, 60) {
			t.Error("it is let in until a session after the admission, and no longer")
		}
	})
	t.Run("confirmed", func(t *testing.T) {
		d := known()
		alone(d, 50)
		d.Confirmed(take(t, d, 1))
		if !alone(d, 109) || alone(d, 110) {
			t.Error("it is let in until a session after the confirmed touch, and no longer")
		}
	})
	t.Run("a batch is lost", func(t *testing.T) {
		d := known()
		alone(d, 10)
		take(t, d, 1)
		alone(d, 40)
		second := take(t, d, 1) // the same session, once
		take(t, d, 1)           // and again, though nothing is new
		if alone(d, 65) {
			t.Error("let in without a confirmation")
		}
		d.Confirmed(second)
		if !alone(d, 99) || alone(d, 100) {
			t.Error("the second batch confirms the touch at 40")
		}
		take(t, d, 1) // that of 99
	})
	t.Run("the older batch only", func(t *testing.T) {
		d := known()
		alone(d, 10)
		first := take(t, d, 1)
		alone(d, 40)
		take(t, d, 1)
		d.Confirmed(first)
		if !alone(d, 69) || alone(d, 70) {
			t.Error("the first batch confirms the touch at 10")
		}
	})
	t.Run("nothing is confirmed for long", func(t *testing.T) {
		d := known()
		var last uint64
		for i := range 100 {
			d.Decide(at(i/2), &v)
			last = take(t, d, 1)
		}
		if len(d.sent.list) > maxFlights {
			t.Errorf("%d batches are kept", len(d.sent.list))
		}
		d.Confirmed(last)
		if batch, ids := d.TakeTouches(); len(ids) != 0 || batch != last+1 || !alone(d, 108) {
			t.Error("a late confirmation is for all before it")
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		d := known()
		alone(d, 10)
		batch := take(t, d, 1)
		d.Forget(id)
		d.Confirmed(batch)
		if alone(d, 11) {
			t.Error("let in after the site knew nothing of it")
		}
	})
	t.Run("no renewal", func(t *testing.T) {
		d := known()
		fixed := s
		fixed.DisableSessionRenewal = true
		d.Configure(fixed)
		alone(d, 50)
		d.Confirmed(take(t, d, 1))
		if !alone(d, 59) || alone(d, 60) {
			t.Error("without renewal a session ends after its admission")
		}
	})
}

// The site says which of the touched it does not hold.
func TestSiteNamesUnknownTouches(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10})
	v := w.arrive()
	stranger := anteroom.ID{9}
	if got := touchAll(w.room.site, w.now, stranger, v.ticket.ID); !slices.Equal(got, []anteroom.ID{stranger}) {
		t.Errorf("unknown are %v", got)
	}
}

// What a site says of ends may be lost: a door does not grow with sessions that are over.
func TestDoorForgetsByItself(t *testing.T) {
	d := NewDoor(anteroom.Settings{SessionDuration: time.Minute})
	w := trial{}
	for i := range 10_000 {
		now := midnight.Add(time.Duration(i) * time.Second)
		d.Learn(now, w.newID(), now)
	}
	if n := d.known.len(); n > 300 {
		t.Errorf("%d sessions are remembered and 60 are alive", n)
	}
}

// A session that turns up elsewhere stays, is renewed, and is answered the same again.
func TestInquiryIsAnsweredTheSameAgain(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10})
	v := w.arrive()
	s := w.room.site
	before, began := s.Balance(), w.now
	w.now = w.now.Add(time.Second)
	ask := Inquiry{Epoch: w.room.coordinator.Epoch(), Asks: []Ask{{ID: v.ticket.ID, Home: s.home, Seen: w.now}, {ID: anteroom.ID{7}, Seen: w.now}}}
	s.ReceiveInquiry(w.now, ask)
	first := slices.Clone(s.found)
	s.ReceiveInquiry(w.now.Add(time.Second), ask)
	if len(s.found) != 4 || !slices.Equal(first, s.found[2:]) {
		t.Errorf("the second answer is %+v, the first was %+v", s.found[2:], first)
	}
	if want := (Finding{ID: v.ticket.ID, Standing: Seated, Accepted: began, Last: w.now}); first[0] != want || first[1].Standing != Unknown {
		t.Errorf("found %+v", first)
	}
	if b := s.Balance(); b != before {
		t.Errorf("the balance was %+v and is %+v", before, b)
	}
	if len(s.TakeEnded()) != 0 {
		t.Error("the doors are told that a session has ended")
	}
}
