package node

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/coordinator"
)

// The seats of a site that is lost stay charged until an operator writes it off. Then its visitors get them at the
// other site, and its name is free.
func TestALostSiteIsForgotten(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		ann, bob, cid, dan := newGuest(), newGuest(), newGuest(), newGuest()
		ann.want(t, g.node("tokyo-1"), anteroom.Admit)
		bob.want(t, g.node("tokyo-1"), anteroom.Admit)
		line := []*guest{cid, dan}
		for _, v := range line {
			v.want(t, g.node("dublin-1"), anteroom.Wait)
		}
		p := g.node("dublin-2")
		sure, asked := func() error { return nil }, false
		forget := func(site string, want anteroom.Kind) {
			t.Helper()
			_, err := p.ForgetSite(t.Context(), site, func() error { asked = true; return nil })
			if err == nil || anteroom.KindOf(err) != want || asked {
				t.Errorf("forgetting %q: %v, asked whether that is sure: %v", site, err, asked)
			}
			asked = false
		}
		forget("tokyo", anteroom.Conflict)
		forget("dublin", anteroom.Conflict)
		forget("paris", anteroom.Invalid)
		forget("x.y", anteroom.Invalid)
		g.node("tokyo-1").kill()
		at := func(int) *peer { return g.node("dublin-1") }
		if g.patient(line, at, 5*time.Minute, func(_ int, d anteroom.Decision) bool { return d.Verdict == anteroom.Admit }) {
			t.Error("a seat of the lost site was given away")
		}
		doubt := errors.New("no")
		if _, err := p.ForgetSite(t.Context(), "tokyo", func() error { return doubt }); !errors.Is(err, doubt) {
			t.Errorf("forgotten although it was not sure: %v", err)
		}
		if forgot, err := p.ForgetSite(t.Context(), "tokyo", sure); err != nil || forgot != (coordinator.Forgotten{Rooms: 1, Seats: 2}) {
			t.Errorf("%+v, %v", forgot, err)
		}
		in := map[int]bool{}
		if !g.patient(line, at, time.Minute, func(i int, d anteroom.Decision) bool {
			in[i] = in[i] || d.Verdict == anteroom.Admit
			return len(in) == 2 && in[0] && in[1]
		}) {
			t.Errorf("%v of 2 are in on the seats of the forgotten site: %+v", in, p.Room(shop.ID).Status())
		}
		forget("tokyo", anteroom.Invalid)
		// It comes back with its sessions: they count, and nobody else is let in.
		g.start("tokyo-1")
		g.settled()
		pass(5 * time.Second)
		newGuest().want(t, p, anteroom.Wait)
		newGuest().want(t, g.node("tokyo-1"), anteroom.Wait)
	})
}
