package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A ticket that has had its session goes on as one visitor, however many requests carry it.
func TestUsedTicketHasOneSuccessor(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600, SessionDuration: 20 * time.Second}
	for name, c := range map[string]struct {
		accepted bool          // the cookie is that of the session, else that of the place before it
		session  time.Duration // of the visitor
		full     bool          // somebody else has the only seat when the cookie comes back
	}{
		"waits":                         {session: time.Second, full: true},
		"waits, cookie of the session":  {session: time.Second, full: true, accepted: true},
		"waits, after a long session":   {session: 20 * time.Minute, full: true, accepted: true},
		"enters":                        {session: time.Second},
		"enters, cookie of the session": {session: time.Second, accepted: true},
		"enters, after a long session":  {session: 20 * time.Minute, accepted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTrial(t, set)
			w.arrive()
			v := w.arrive()
			w.pass(holdMax)
			old := v.ticket
			w.pass(21 * time.Second)
			w.keep = true
			w.visit(v)
			w.pass(c.session)
			if c.accepted {
				old = v.ticket
			}
			w.keep = false
			w.pass(21 * time.Second)
			if c.full {
				w.arrive()
			}
			site, began := w.room.site, 0
			places := map[anteroom.ID]bool{}
			seconds := func(n int) {
				for range n {
					w.now = w.now.Add(time.Second)
					w.room.Tick(w.now)
					w.room.TakeAnswers(w.now)
					for _, e := range w.room.TakeEvents() {
						if e.Kind == EventAdmitted {
							began++
						} else if e.Kind == EventJoined {
							places[e.ID] = true
						}
					}
				}
			}
			for range 6 {
				w.room.Visit(w.now, anteroom.Visit{Ticket: old, NewID: w.newID()})
			}
			if seconds(1); site.Active()+site.Here() > 2 || len(places) > 1 || began > 1 {
				t.Errorf("one cookie has made %d places and %d sessions", len(places), began)
			}
			for range 60 {
				w.room.Visit(w.now, anteroom.Visit{Ticket: old, NewID: w.newID()})
				seconds(1)
			}
			if len(places) > began+1 || began > 2 || site.Here() > 1 {
				t.Errorf("copies of one cookie have made %d places and %d sessions", len(places), began)
			}
		})
	}
}

// The tabs of a browser that wakes up after its place has lapsed get one place, as one request does.
func TestLapsedTicketGetsOnePlace(t *testing.T) {
	t.Parallel()
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600, PlaceHold: time.Minute})
	w.keep = true
	w.arrive()
	v := w.arrive()
	w.pass(holdMax)
	old := v.ticket
	w.pass(3 * time.Minute)
	if here := w.room.site.Here(); here != 0 {
		t.Fatalf("%d places are held, and that of the visitor has lapsed", here)
	}
	for range 6 {
		w.room.Visit(w.now, anteroom.Visit{Ticket: old, NewID: w.newID()})
	}
	w.room.Tick(w.now.Add(time.Second))
	lost := 0
	for _, a := range w.room.TakeAnswers(w.now) {
		if a.Decision.Reason == anteroom.ReasonPlaceLost {
			lost++
		}
	}
	if here := w.room.site.Here(); here != 1 || lost == 0 {
		t.Errorf("six requests with one lapsed ticket have %d places, and %d were told that theirs is lost", here, lost)
	}
}
