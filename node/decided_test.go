package node

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster/memlink"
)

// A node that begins is ready when somebody decides about its rooms, and not before.
func TestDecided(t *testing.T) {
	together(t, shop, "dublin-1", func(t *testing.T, g *group) {
		if !g.node("dublin-1").Decided(t.Context()) {
			t.Error("a node that serves is not ready")
		}
		g.node("dublin-1").kill()
		began := time.Now()
		p := g.start("dublin-2")
		if p.Decided(t.Context()) {
			t.Error("a node is ready before anybody holds the roles")
		}
		ready := func(p *peer) time.Duration {
			for !p.Decided(t.Context()) && time.Since(began) < time.Minute {
				pass(100 * time.Millisecond)
			}
			return time.Since(began)
		}
		if long := ready(p); long >= 10*time.Second {
			t.Errorf("a node alone is ready after %v", long)
		}
		began = time.Now()
		q := g.start("dublin-3")
		if long := ready(q); long > 4*time.Second { // roles are handed over to it
			t.Errorf("a node that joins is ready after %v", long)
		}
		g.world.CutNode(q.name, memlink.Both)
		if q.Decided(t.Context()) {
			t.Error("a node that reaches nobody is ready")
		}
	})
}
