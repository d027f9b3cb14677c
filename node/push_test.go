package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// Web push holds a stream for a visitor who has closed the page. It keeps the place for much longer than place_hold, takes no seat when
// the turn comes, and leaves the visitor place_hold to come back with the ticket of long ago, first in line.
func TestAStreamHeldForAVisitorKeepsThePlaceAndNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.PlaceHold = 1, 60, 24*time.Hour, time.Minute
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(room.ID)
		ann := r.Decide(t.Context(), newcomer())
		r.Decide(t.Context(), with(ann.Ticket))  // whose session is not on probation any more
		bob := r.Decide(t.Context(), newcomer()) // closes the page
		held := with(bob.Ticket)
		held.NoJoin, held.NoHold = true, true
		watching, stop := context.WithCancel(t.Context())
		defer stop()
		_, updates := r.Watch(watching, held)
		if updates == nil {
			t.Fatal("no stream is to be had")
		}
		turn := make(chan anteroom.Decision, 1)
		go func() {
			for d := range updates {
				if d.Verdict == anteroom.Admit {
					turn <- *d
					stop() // as the sender does
				}
			}
		}()
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		select {
		case d := <-turn:
			t.Fatalf("called while the room is full: %+v", d)
		default:
		}
		cid, dan := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer()) // who look at the page
		_, cids := r.Watch(t.Context(), with(cid.Ticket))
		r.Watch(t.Context(), with(dan.Ticket))
		time.Sleep(10 * time.Second)
		r.Revoke(ann.Ticket.ID)
		d := <-turn
		if !d.Ticket.ID.IsZero() {
			t.Errorf("a session has begun for somebody who is not here: %+v", d)
		}
		// The seat is not idle for long: Cid is called within seconds.
		time.Sleep(15 * time.Second)
		called := false
		for len(cids) > 0 {
			d := <-cids
			called = called || d != nil && d.Verdict == anteroom.Admit
		}
		if !called || r.Decide(t.Context(), with(cid.Ticket)).Verdict != anteroom.Admit {
			t.Errorf("the seat waits for somebody who is not here: %+v", r.Status())
		}
		// Nearly at the end of the time that was promised Bob comes, with the ticket of five hours ago.
		time.Sleep(room.PlaceHold - 30*time.Second)
		back := r.Decide(t.Context(), with(bob.Ticket))
		if back.Reason == anteroom.ReasonPlaceLost || back.Ticket.ID != bob.Ticket.ID || back.Ahead != 0 {
			t.Fatalf("the place is lost: %+v", back)
		}
		_, bobs := r.Watch(t.Context(), with(back.Ticket))
		r.Revoke(cid.Ticket.ID)
		time.Sleep(3 * time.Second)
		called = false
		for len(bobs) > 0 {
			d := <-bobs
			called = called || d != nil && d.Verdict == anteroom.Admit
		}
		if !called {
			t.Errorf("Bob is not first: %+v", r.Status())
		}
	})
}

// The journal goes back for a while only. A stream that is opened again and again keeps the place in it, so that the next process knows
// it, by the ticket of the beginning too.
func TestAStreamThatIsOpenedAgainSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.PlaceHold = 1, 60, time.Minute, time.Minute
		link := memlink.New()
		n, kill := begin(t, link, room)
		ann := r0(n, room).Decide(t.Context(), newcomer())
		bob := r0(n, room).Decide(t.Context(), newcomer()) // closes the page
		last := bob.Ticket
		for range 2 * 60 {
			ctx, stop := context.WithCancel(t.Context())
			held := with(last)
			held.NoJoin, held.NoHold = true, true
			d, updates := r0(n, room).Watch(ctx, held)
			if updates == nil || d.Ticket.ID != bob.Ticket.ID {
				t.Fatalf("the place is lost: %+v", d)
			}
			last = d.Ticket
			r0(n, room).Decide(t.Context(), with(ann.Ticket))
			time.Sleep(room.PlaceHold / 2)
			stop()
		}
		kill()
		n, kill = begin(t, link, room)
		defer kill()
		held := with(bob.Ticket)
		held.NoJoin, held.NoHold = true, true
		if d, updates := r0(n, room).Watch(t.Context(), held); updates == nil || d.Ticket.Arrival != bob.Ticket.Arrival {
			t.Errorf("after an hour and a restart: %+v", d)
		}
	})
}

func r0(n *Node, room anteroom.Room) *Room { return n.Room(room.ID) }
