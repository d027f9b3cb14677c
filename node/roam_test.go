package node

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestATurnIsToldOnAStreamWhosePlaceWentElsewhere: a visitor whose stream is at one site is heard of
// at another one afterwards, where nobody waits for the turn.
func TestATurnIsToldOnAStreamWhosePlaceWentElsewhere(t *testing.T) {
	for _, c := range []struct{ name, page, status, stream string }{
		{"three sites", "tokyo-1", "dublin-1", "lima-1"},
		{"at the hub", "tokyo-1", "lima-1", "dublin-2"},
		{"and back", "lima-1", "lima-1", "tokyo-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			together(t, shop, "dublin-1 dublin-2 tokyo-1 lima-1", func(t *testing.T, g *group) {
				ann, bob, cid := newGuest(), newGuest(), newGuest()
				ann.want(t, g.node("dublin-1"), anteroom.Admit)
				bob.want(t, g.node("dublin-2"), anteroom.Admit)
				cid.want(t, g.node(c.page), anteroom.Wait)
				before := cid.visit()
				d, updates := g.node(c.stream).Room(shop.ID).Watch(t.Context(), cid.visit())
				if d.Verdict != anteroom.Wait || updates == nil {
					t.Fatalf("%v %v, want a stream", d.Verdict, d.Reason)
				}
				cid.take(d)
				pass(time.Second)
				// What was asked before the stream comes late.
				before.NoHold = true
				if d := g.node(c.status).Room(shop.ID).Decide(t.Context(), before); d.Verdict != anteroom.Wait {
					t.Fatalf("status: %v %v", d.Verdict, d.Reason)
				}
				pass(20 * time.Second)
				if ok, err := g.node("dublin-1").Room(shop.ID).EndSession(t.Context(), ann.ticket.ID); !ok || err != nil {
					t.Fatalf("ann's session was not ended: %v, %v", ok, err)
				}
				began := time.Now()
				told := false
				for !told {
					select {
					case u := <-updates:
						told = u.Verdict == anteroom.Admit
					case <-time.After(20 * time.Second):
						t.Fatal("the turn is not told on the stream")
					}
				}
				if late := time.Since(began); late > time.Second {
					t.Errorf("told after %v", late)
				}
				cid.want(t, g.node(c.page), anteroom.Admit)
			})
		})
	}
}
