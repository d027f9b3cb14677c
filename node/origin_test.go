package node

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

var (
	originUp   = engine.OriginFacts{Known: true, Requests: 100}
	originDown = engine.OriginFacts{Known: true, Down: true}
	originSlow = engine.OriginFacts{Known: true, Requests: 100, P95: 3 * time.Second}
)

func protectedRoom() anteroom.Room {
	r := wide
	r.Protect, r.ProtectLatency = true, time.Second
	return r
}

// see has every named node's gateway say what it sees, once a second, for so long.
func (g *group) see(long time.Duration, facts map[string]engine.OriginFacts) {
	for end := time.Now().Add(long); time.Now().Before(end); pass(time.Second) {
		for name, f := range facts {
			g.node(name).Room(g.room.ID).Origin(f)
		}
	}
}

// TestSiteWithoutItsOriginHoldsItsVisitors: while no node of a site reaches the origin, nobody new enters there, and
// everybody does elsewhere; one node that reaches it is enough.
func TestSiteWithoutItsOriginHoldsItsVisitors(t *testing.T) {
	together(t, protectedRoom(), "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		inside := newGuest()
		inside.want(t, g.node("dublin-1"), anteroom.Admit)
		newGuest().want(t, g.node("tokyo-1"), anteroom.Admit) // so that the coordinator knows the site
		g.see(3*time.Second, map[string]engine.OriginFacts{"dublin-1": originDown, "dublin-2": originDown, "tokyo-1": originUp})
		waits := newGuest()
		if d := waits.want(t, g.node("dublin-2"), anteroom.Wait); d.Reason != anteroom.ReasonOrigin {
			t.Errorf("a newcomer waits: %v", d.Reason)
		}
		newGuest().want(t, g.node("tokyo-1"), anteroom.Admit)
		inside.want(t, g.node("dublin-2"), anteroom.Admit)
		if st := g.node("tokyo-1").Room(g.room.ID).Status(); st.PaceReason != anteroom.PaceLimits {
			t.Errorf("one site of two reaches the origin, and the pace is %d: %s", st.Pace, st.PaceReason)
		}
		g.see(3*time.Second, map[string]engine.OriginFacts{"dublin-1": originDown, "dublin-2": originUp, "tokyo-1": originUp})
		waits.want(t, g.node("dublin-1"), anteroom.Admit)
	})
}

// TestClusterPacesByWhatAllNodesSee: what each node sees reaches the coordinator with the messages of its door, and every node's
// status says why the pace is what it is.
func TestClusterPacesByWhatAllNodesSee(t *testing.T) {
	together(t, protectedRoom(), "dublin-1 tokyo-1", func(t *testing.T, g *group) {
		for _, name := range []string{"dublin-1", "tokyo-1"} { // a door without visitors says nothing
			newGuest().want(t, g.node(name), anteroom.Admit)
		}
		status := func(want anteroom.PaceReason) anteroom.Status {
			t.Helper()
			st := g.node("dublin-1").Room(g.room.ID).Status()
			if st.PaceReason != want {
				t.Errorf("the pace is %d: %q, want %q", st.Pace, st.PaceReason, want)
			}
			return st
		}
		g.see(8*time.Second, map[string]engine.OriginFacts{"dublin-1": originUp, "tokyo-1": originSlow})
		if st := status(anteroom.PaceOriginSlow); st.Pace >= st.NewPerMinute {
			t.Errorf("a pace of %d", st.Pace)
		}
		g.see(8*time.Second, map[string]engine.OriginFacts{"dublin-1": originDown, "tokyo-1": originDown})
		if st := status(anteroom.PaceOriginDown); st.Pace != 0 {
			t.Errorf("a pace of %d while the origin is down", st.Pace)
		}
		who := []*guest{newGuest(), newGuest()}
		for _, v := range who {
			v.want(t, g.node("tokyo-1"), anteroom.Wait)
		}
		g.see(8*time.Second, map[string]engine.OriginFacts{"dublin-1": originUp, "tokyo-1": originUp})
		status(anteroom.PaceRecovering)
		entered := map[int]bool{}
		if !g.patient(who, func(int) *peer { return g.node("tokyo-1") }, 20*time.Second, func(i int, d anteroom.Decision) bool {
			entered[i] = entered[i] || d.Verdict == anteroom.Admit
			return len(entered) == 2 && entered[0] && entered[1]
		}) {
			t.Errorf("entered after the origin was back: %v", entered)
		}
		g.see(100*time.Second, map[string]engine.OriginFacts{"dublin-1": originUp, "tokyo-1": originUp})
		if st := status(anteroom.PaceLimits); st.Pace != st.NewPerMinute {
			t.Errorf("a pace of %d", st.Pace)
		}
	})
}

// TestInterruptedVisitorComesBackFirst: a visitor whose session ended while the origin was down is admitted before one who waited all
// the time, at another node, after another process has taken the site over.
func TestInterruptedVisitorComesBackFirst(t *testing.T) {
	room := protectedRoom()
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.ProtectReturn = 1, 60, 30*time.Second, 10*time.Minute
	together(t, room, "dublin-1 dublin-2 dublin-3", func(t *testing.T, g *group) {
		ann, bob := newGuest(), newGuest()
		holder := g.holder("dublin")
		one, two := g.other("dublin", holder), holder
		ann.want(t, one, anteroom.Admit)
		ann.want(t, one, anteroom.Admit)
		bob.want(t, one, anteroom.Wait)
		pass(2 * time.Second)
		bob.want(t, one, anteroom.Wait)
		facts := func(f engine.OriginFacts) map[string]engine.OriginFacts {
			out := map[string]engine.OriginFacts{}
			for name := range g.nodes {
				out[name] = f
			}
			return out
		}
		g.see(35*time.Second, facts(originDown))
		two.kill()
		for range 2 { // bob comes back all the time
			g.see(10*time.Second, facts(originDown))
			bob.want(t, one, anteroom.Wait)
		}
		if d := ann.want(t, one, anteroom.Wait); d.Reason != anteroom.ReasonSessionOver {
			t.Errorf("ann waits: %v", d.Reason)
		}
		g.see(2*time.Second, facts(originUp))
		first := -1
		g.patient([]*guest{bob, ann}, func(int) *peer { return one }, 30*time.Second, func(i int, d anteroom.Decision) bool {
			first = i
			return d.Verdict == anteroom.Admit
		})
		if first != 1 {
			t.Errorf("visitor %d is admitted first", first)
		}
	})
}

// TestProtectSwitchedOff: what the gateway sees counts for nothing in a room that does not protect its origin.
func TestProtectSwitchedOff(t *testing.T) {
	together(t, protectedRoom(), "dublin-1", func(t *testing.T, g *group) {
		g.see(3*time.Second, map[string]engine.OriginFacts{"dublin-1": originDown})
		waits := newGuest()
		waits.want(t, g.node("dublin-1"), anteroom.Wait)
		g.configure(func(r *anteroom.Room) { r.Protect = false })
		g.see(3*time.Second, map[string]engine.OriginFacts{"dublin-1": originDown})
		waits.want(t, g.node("dublin-1"), anteroom.Admit)
		newGuest().want(t, g.node("dublin-1"), anteroom.Admit)
	})
}
