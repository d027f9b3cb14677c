package node

import (
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
