package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// A page that is loaded anew closes its stream and opens another. When a seat comes free in
// between, the turn comes in the moment in which the new stream opens.
func TestTurnThatComesWhileTheStreamOpensIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		r.Decide(t.Context(), newcomer())
		bob, cid := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		before, leave := context.WithCancel(t.Context())
		r.Watch(before, with(cid.Ticket))
		leave()
		time.Sleep(2 * time.Second)
		r.Revoke(bob.Ticket.ID)
		time.Sleep(500 * time.Millisecond)
		d, updates := r.Watch(t.Context(), with(cid.Ticket))
		if d.Verdict == anteroom.Admit {
			return
		}
		limit := time.After(3 * time.Second)
		for called := &d; called == nil || called.Verdict != anteroom.Admit; {
			select {
			case called = <-updates:
			case <-limit:
				t.Fatalf("the stream was not told of the turn: %+v", r.Status())
			}
		}
		if d := r.Decide(t.Context(), with(cid.Ticket)); d.Verdict != anteroom.Admit {
			t.Errorf("after the call: %v %v", d.Verdict, d.Reason)
		}
	})
}

// A visitor has only so many streams, and does not lose the presence by asking for more.
func TestStreamsOfOneVisitorAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		r.Decide(t.Context(), newcomer())
		bob, cid := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		var open <-chan *anteroom.Decision
		for i := range maxStreamsOfVisitor + 3 {
			_, updates := r.Watch(t.Context(), with(cid.Ticket))
			if (updates != nil) != (i < maxStreamsOfVisitor) {
				t.Errorf("stream %d: open %v", i, updates != nil)
			}
			if updates != nil {
				open = updates
			}
		}
		if got := n.streams.Load(); got != maxStreamsOfVisitor {
			t.Errorf("%d streams are counted", got)
		}
		r.Revoke(bob.Ticket.ID)
		limit := time.After(3 * time.Second)
		for called := (*anteroom.Decision)(nil); called == nil || called.Verdict != anteroom.Admit; {
			select {
			case called = <-open:
			case <-limit:
				t.Fatal("the streams that are open are not told of the turn")
			}
		}
	})
}
