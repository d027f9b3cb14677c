package node

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestTwoSitesOfOneName: the one that comes second holds no roles and says so, until the name is its
// own, or the operator says that its store was lost.
func TestTwoSitesOfOneName(t *testing.T) {
	together(t, shop, "dublin-1", func(t *testing.T, g *group) {
		shared := g.node("dublin-1").link
		if _, err := shared.Put(t.Context(), sitePrefix+"tokyo", []byte("another")); err != nil {
			t.Fatal(err)
		}
		p := g.start("tokyo-1")
		status := func(roles int, namesake bool) {
			t.Helper()
			s, _ := p.Cluster(t.Context())
			held := 0
			for _, r := range s.Roles {
				if r.Node != "" {
					held++
				}
			}
			if held != roles || s.Namesake != namesake {
				t.Errorf("%d roles are held, namesake %v; want %d and %v", held, s.Namesake, roles, namesake)
			}
		}
		pass(10 * time.Second)
		status(0, true)
		newGuest().at(t, g.node("dublin-1"))
		if err := shared.Delete(t.Context(), sitePrefix+"tokyo"); err != nil {
			t.Fatal(err)
		}
		pass(claimAgain + time.Second)
		g.settled()
		status(16, false)
		own, err := p.link.Site().Get(t.Context(), identityKey)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := shared.Get(t.Context(), sitePrefix+"tokyo"); err != nil || string(e.Value) != string(own.Value) {
			t.Errorf("the name is of %q, %v; want %q", e.Value, err, own.Value)
		}
		if _, err := shared.Put(t.Context(), sitePrefix+"tokyo", []byte("another")); err != nil {
			t.Fatal(err)
		}
		pass(claimAgain + 5*time.Second)
		status(0, true)
		p.member().node.cfg.Forgot, p.member().reclaimed = true, false // as at the next start
		if err := p.member().claim(t.Context()); err != nil {
			t.Errorf("a site whose store was lost: %v", err)
		}
		if e, err := shared.Get(t.Context(), sitePrefix+"tokyo"); err != nil || string(e.Value) != string(own.Value) {
			t.Errorf("the name is of %q, %v; want %q", e.Value, err, own.Value)
		}
	})
}

// TestTwoHubs: every node says so, until one of the sites is the hub no longer, or is written off.
func TestTwoHubs(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2 paris-1", func(t *testing.T, g *group) {
		hubs := func(want ...string) {
			t.Helper()
			pass(claimAgain + 5*time.Second)
			for name, p := range g.nodes {
				if s, _ := p.Cluster(t.Context()); !slices.Equal(s.Hubs, want) {
					t.Errorf("%s: the hubs are %v, want %v", name, s.Hubs, want)
				}
			}
		}
		hubs()
		g.hub = "tokyo"
		tokyo := g.start("tokyo-1")
		hubs("dublin", "tokyo")
		tokyo.kill()
		g.hub = "dublin"
		tokyo = g.start("tokyo-1")
		hubs()
		tokyo.kill()
		g.hub = "tokyo"
		tokyo = g.start("tokyo-1")
		hubs("dublin", "tokyo")
		tokyo.kill()
		pass(2 * time.Minute)
		if _, err := g.nodes["dublin-1"].ForgetSite(t.Context(), "tokyo", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		hubs()
	})
}

// TestTwoNodesOfOneName: every node of the site says so, the earlier one still knows the others and serves visitors, and has its roles
// again when the later one has ended.
func TestTwoNodesOfOneName(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2", func(t *testing.T, g *group) {
		first, other := g.node("dublin-1"), g.node("dublin-2")
		all := map[string]*peer{"first": first, "other": other}
		namesakes := func(want ...string) {
			t.Helper()
			for name, p := range all {
				s, _ := p.Cluster(t.Context())
				if !slices.Equal(s.Namesakes, want) || len(s.Members) != 2 {
					t.Errorf("%s: namesakes %v, %d members; want %v and 2", name, s.Namesakes, len(s.Members), want)
				}
			}
		}
		namesakes()
		second := g.start("dublin-1")
		t.Cleanup(first.kill)
		all["second"] = second
		pass(2 * time.Second)
		namesakes("dublin-1")
		pass(30 * time.Second)
		namesakes("dublin-1")
		for p := range maps.Values(all) {
			newGuest().at(t, p)
		}
		if n := first.rolesHeld(); n != 0 {
			t.Errorf("the earlier one holds %d roles", n)
		}
		second.kill()
		delete(all, "second")
		g.nodes["dublin-1"] = first
		pass(80 * time.Second)
		namesakes()
		g.settled()
		if n := first.rolesHeld(); n < 10 {
			t.Errorf("the earlier one holds %d roles when the later one has ended", n)
		}
	})
}

// rolesHeld is how many roles the process holds.
func (p *peer) rolesHeld() (n int) {
	s, _ := p.Cluster(p.group.t.Context())
	for _, r := range s.Roles {
		if r.Epoch > 0 && r.Node == p.name {
			n++
		}
	}
	return n
}
