package node

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

func TestATakeOverKeepsPlacesAndSessions(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(g *group) *peer // ends a process
	}{
		{"site, killed", func(g *group) *peer { p := g.holder("dublin"); p.kill(); return p }},
		{"site, handed over", func(g *group) *peer { p := g.holder("dublin"); p.leave(); return p }},
		{"coordinator, killed", func(g *group) *peer { p := g.coordinatorHolder(); p.kill(); return p }},
		{"coordinator, handed over", func(g *group) *peer { p := g.coordinatorHolder(); p.leave(); return p }},
	} {
		t.Run(c.name, func(t *testing.T) {
			together(t, shop, three, func(t *testing.T, g *group) {
				ann, bob, cid, dan := newGuest(), newGuest(), newGuest(), newGuest()
				start := g.node("dublin-1")
				ann.want(t, start, anteroom.Admit)
				bob.want(t, start, anteroom.Admit)
				cid.want(t, start, anteroom.Wait)
				dan.want(t, start, anteroom.Wait)
				pass(time.Second)
				gone := c.end(g)
				p := g.other("dublin", gone)
				began := time.Now()
				for _, v := range []*guest{ann, bob} {
					if d := v.want(t, p, anteroom.Admit); d.Ticket.ID != v.id {
						t.Error("a session is another's")
					}
				}
				g.settled()
				t.Logf("everything is served again after %v", time.Since(began))
				pass(5 * time.Second)
				eve := newGuest()
				eve.want(t, p, anteroom.Wait)
				for _, v := range []*guest{cid, dan} {
					if d := v.want(t, p, anteroom.Wait); d.Ticket.ID != v.id {
						t.Errorf("a place is lost: %v", d.Reason)
					}
				}
				ann.want(t, p, anteroom.Admit)
				if ok, err := p.Room(shop.ID).EndSession(t.Context(), bob.ticket.ID); !ok || err != nil {
					t.Fatalf("bob's session was not ended: %v, %v", ok, err)
				}
				// Whoever of the line is due first gets the seat; the others keep their places.
				ann.want(t, p, anteroom.Admit)
				if !g.patient([]*guest{cid, dan, eve}, func(int) *peer { return p }, 50*time.Second,
					func(_ int, d anteroom.Decision) bool { return d.Verdict == anteroom.Admit }) {
					t.Errorf("nobody gets the seat: %+v", p.Room(shop.ID).Status())
				}
				if s := p.Room(shop.ID).Status(); s.ActiveUsers > 2 {
					t.Errorf("%d active of 2", s.ActiveUsers)
				}
			})
		})
	}
}

func TestANodeThatReachesNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		admit bool
		want  anteroom.Verdict
	}{{"queue_new", false, anteroom.Wait}, {"admit_new", true, anteroom.Pass}} {
		t.Run(c.name, func(t *testing.T) {
			together(t, shop, three, func(t *testing.T, g *group) {
				p := g.other("dublin", g.holder("dublin"))
				p.AdmitUnrecorded(c.admit)
				ann, bob, cid := newGuest(), newGuest(), newGuest()
				ann.want(t, p, anteroom.Admit)
				bob.want(t, g.holder("dublin"), anteroom.Admit)
				cid.want(t, p, anteroom.Wait)
				pass(time.Second)
				g.world.CutNode(p.name, memlink.Both)
				pass(5 * time.Second)
				for range 3 { // sessions go on; one begun at another node, by its cookie
					ann.want(t, p, anteroom.Admit)
					bob.want(t, p, anteroom.Admit)
					if d := cid.want(t, p, anteroom.Wait); d.Ticket.ID != cid.id {
						t.Errorf("cid's place is lost: %v", d.Reason)
					}
					pass(5 * time.Second)
				}
				dan := newGuest()
				dan.want(t, p, c.want)
				g.world.CutNode(p.name, memlink.None)
				g.settled()
				pass(5 * time.Second)
				ann.want(t, p, anteroom.Admit)
				if d := cid.want(t, p, anteroom.Wait); d.Ticket.ID != cid.id || d.AheadKnown && d.Ahead != 0 {
					t.Errorf("cid after the cut: %v, %d ahead", d.Reason, d.Ahead)
				}
				dan.want(t, p, anteroom.Wait)
			})
		})
	}
}

// A node that is cut off ends the streams of those whose turn may come meanwhile: at another node they are called.
func TestStreamsNearTheFrontLeaveANodeThatIsCutOff(t *testing.T) {
	room := shop
	room.NewUsersPerMinute = 6
	together(t, room, three, func(t *testing.T, g *group) {
		p := g.other("dublin", g.holder("dublin"))
		for range 2 {
			newGuest().want(t, p, anteroom.Admit)
		}
		first, last := newGuest(), newGuest()
		open := func(v *guest) <-chan *anteroom.Decision {
			d, updates := p.Room(shop.ID).Watch(t.Context(), v.visit())
			v.take(d)
			return updates
		}
		streams := []<-chan *anteroom.Decision{open(first)}
		for range 5 {
			newGuest().want(t, p, anteroom.Wait)
		}
		pass(2 * time.Second)
		streams = append(streams, open(last))
		g.world.CutNode(p.name, memlink.Both)
		pass(2 * tickEvery)
		for i, updates := range streams {
			open := true
			for more := true; more; {
				select {
				case _, open = <-updates:
					more = open
				default:
					more = false
				}
			}
			if open != (i == 1) {
				t.Errorf("stream %d goes on: %v; want only the last in line to stay", i, open)
			}
		}
		if open(first) != nil {
			t.Error("it opens another stream for the first in line")
		}
	})
}

// A site that is cut off admits from the units that it holds, and no more.
func TestASiteThatIsCutOff(t *testing.T) {
	room := shop
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = 40, 1000, time.Minute
	for _, cut := range []memlink.Cut{memlink.Both, memlink.Out, memlink.In} {
		together(t, room, "dublin-1 dublin-2 tokyo-1 tokyo-2", func(t *testing.T, g *group) {
			j := newJudge(room.Settings)
			var all []*guest
			anywhere := func(i int) *peer { return g.node([]string{"dublin-1", "dublin-2", "tokyo-1", "tokyo-2"}[i%4]) }
			inside := map[*guest]bool{}
			live := func(long time.Duration, where func(int) *peer, enough int) {
				g.patient(all, where, long, func(i int, d anteroom.Decision) bool {
					if d.Verdict == anteroom.Admit {
						inside[all[i]] = true
						j.saw(all[i].ticket.ID)
						all[i].next = time.Now().Add(15 * time.Second)
					}
					return len(inside) == enough
				})
			}
			come := func(n int) {
				for range n {
					v := newGuest()
					v.next = time.Now()
					all = append(all, v)
				}
			}
			come(12)
			live(time.Minute, anywhere, 12)
			if len(inside) != 12 {
				t.Fatalf("%d of 12 are in", len(inside))
			}
			g.world.CutSite("tokyo", cut)
			come(88)
			// Everybody stays on the side where they were.
			live(40*time.Second, anywhere, 0)
			for _, v := range all[:12] {
				if !inside[v] {
					t.Error("somebody lost the session")
				}
			}
			g.world.CutSite("tokyo", memlink.None)
			live(150*time.Second, func(i int) *peer { return anywhere(i + 1) }, 0)
			j.check(t)
			if len(inside) < 40 {
				t.Errorf("%d of 100 have entered", len(inside))
			}
		})
	}
}

func TestLimitsAndRoomsAreChangedEverywhere(t *testing.T) {
	room := shop
	room.SessionDuration = 10 * time.Minute
	together(t, room, "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		ann, bob, cid := newGuest(), newGuest(), newGuest()
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("tokyo-1"), anteroom.Admit)
		cid.want(t, g.node("tokyo-1"), anteroom.Wait)
		g.configure(func(r *anteroom.Room) { r.TotalActiveUsers = 3 })
		if !g.patient([]*guest{cid}, func(int) *peer { return g.node("tokyo-1") }, 150*time.Second,
			func(_ int, d anteroom.Decision) bool { return d.Verdict == anteroom.Admit }) {
			t.Error("cid does not get the seat that there is more")
		}
		g.configure(func(r *anteroom.Room) { r.TotalActiveUsers = 1 })
		for _, v := range []*guest{ann, bob, cid} {
			v.want(t, g.node("dublin-2"), anteroom.Admit)
		}
		newGuest().want(t, g.node("dublin-2"), anteroom.Wait)
		g.rooms = nil
		for _, p := range g.nodes {
			if err := p.Apply(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if p.Room(shop.ID) != nil {
				t.Error("a room that is no more is served")
			}
		}
		pass(5 * time.Second)
		for _, p := range g.nodes {
			if role := p.member().siteRole(0); role != nil && len(role.now.Load().rooms) > 0 {
				t.Error("a room that is no more is kept")
			}
		}
	})
}

func TestARollingRestart(t *testing.T) {
	room := shop
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = 20, 600, 5*time.Minute
	together(t, room, three, func(t *testing.T, g *group) {
		j := newJudge(room.Settings)
		var inside, outside []*guest
		for range 30 {
			v := newGuest()
			if v.at(t, g.node("dublin-1")).Verdict == anteroom.Admit {
				j.saw(v.ticket.ID)
				inside = append(inside, v)
			} else {
				outside = append(outside, v)
			}
		}
		if len(inside) != 20 {
			t.Fatalf("%d of 30 are in, want 20", len(inside))
		}
		for _, name := range []string{"dublin-1", "dublin-2", "dublin-3"} {
			g.node(name).leave()
			p := g.other("dublin", nil)
			slowest := time.Duration(0)
			for _, v := range inside {
				began := time.Now()
				if d := v.want(t, p, anteroom.Admit); d.Ticket.ID == v.id {
					j.saw(v.ticket.ID)
				}
				slowest = max(slowest, time.Since(began))
			}
			for _, v := range outside {
				began := time.Now()
				if d := v.want(t, p, anteroom.Wait); d.Ticket.ID != v.id {
					t.Errorf("a place is lost: %v", d.Reason)
				}
				slowest = max(slowest, time.Since(began))
			}
			// The change takes half a second at most, and whoever is near the front then is held for a turn.
			if slowest > 500*time.Millisecond+engine.HoldSoon {
				t.Errorf("%s: a request took %v", name, slowest)
			}
			g.start(name)
			g.settled()
		}
		j.check(t)
	})
}

func TestFindAndRevokeAtAnyNode(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		ann, bob := newGuest(), newGuest()
		ann.want(t, g.node("tokyo-1"), anteroom.Admit)
		bob.want(t, g.node("dublin-1"), anteroom.Admit)
		for _, p := range g.nodes {
			for _, reference := range []string{ann.id.Reference(), bob.id.Reference()} {
				found, err := p.Room(shop.ID).Find(t.Context(), reference)
				if err != nil || len(found) != 1 || found[0].ID.Reference() != reference {
					t.Errorf("%s finds %v of %s: %v", p.name, found, reference, err)
				}
			}
		}
		if ok, err := g.node("dublin-2").Room(shop.ID).EndSession(t.Context(), ann.id); !ok || err != nil {
			t.Errorf("ann's session: %v, %v", ok, err)
		}
		if ok, err := g.node("dublin-2").Room(shop.ID).EndSession(t.Context(), anteroom.ID{1}); ok || err != nil {
			t.Errorf("a session that nobody has: %v, %v", ok, err)
		}
		pass(time.Second)
		if d := ann.at(t, g.node("tokyo-1")); d.Reason == anteroom.ReasonSession || d.Ticket.ID == ann.id {
			t.Errorf("ann after her session was ended: %v %v", d.Verdict, d.Reason)
		}
		g.world.CutSite("tokyo", memlink.Both)
		if _, err := g.node("dublin-2").Room(shop.ID).EndSession(t.Context(), anteroom.ID{1}); anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("without tokyo: %v, want an error that says so", err)
		}
	})
}

// A node that starts again speaks for itself when somebody comes to it. Until then, the others do not wait for what its process of
// before may have let in: a session ends in time.
func TestANodeThatStartsAgain(t *testing.T) {
	room := shop
	room.TotalActiveUsers, room.SessionDuration, room.FirstSession = 1, time.Minute, time.Minute
	together(t, room, three, func(t *testing.T, g *group) {
		p := g.other("dublin", g.holder("dublin"))
		newGuest().want(t, p, anteroom.Admit)
		waits := newGuest()
		waits.want(t, g.holder("dublin"), anteroom.Wait)
		waits.next = time.Now()
		pass(5 * time.Second)
		p.kill()
		delete(g.nodes, p.name)
		g.start(p.name)
		begun := time.Now()
		if !g.patient([]*guest{waits}, func(int) *peer { return g.holder("dublin") }, 70*time.Second, func(_ int, d anteroom.Decision) bool { return d.Verdict == anteroom.Admit }) {
			t.Errorf("nobody is let in for %v", time.Since(begun))
		}
	})
}
