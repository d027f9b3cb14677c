package manage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// TestRehearsal: it refuses what the manager would, each change after those before it, and changes nothing but itself.
func TestRehearsal(t *testing.T) {
	ctx, w := t.Context(), memlink.NewWorld()
	m := furnished(t, w.Join("dublin", "a"))
	before, stored := contents(m.State()), must[[]string](t)(m.cfg.Link.Keys(ctx, ""))
	r := must[*Manager](t)(m.Rehearsal(ctx))
	zone := must[anteroom.Zone](t)(r.CreateZone(ctx, root, "new.test"))
	one := shop("one")
	one.Routes[0].Host, one.CustomPageHTML = "new.test", "<p>a new page"
	room := must[anteroom.Room](t)(r.CreateRoom(ctx, root, zone.ID, one))
	must[anteroom.Event](t)(r.CreateEvent(ctx, root, zone.ID, room.ID, anteroom.Event{Name: "e", Start: "2027-01-01T10:00:00Z", End: "2027-01-01T12:00:00Z"}))
	two := shop("two")
	two.Routes = one.Routes
	if _, err := r.CreateRoom(ctx, root, zone.ID, two); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a room with the route of another: %v", err)
	}
	if _, err := r.CreateZone(ctx, root, "furnished.test"); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a zone of the manager: %v", err)
	}
	if err := r.DeleteRoom(ctx, root, zone.ID, room.ID); err != nil {
		t.Error(err)
	}
	if len(r.pages) != len(m.pages) || len(r.custom) != len(m.custom) {
		t.Errorf("it keeps pages that no room has: %d and %d, and the manager %d and %d", len(r.pages), len(r.custom), len(m.pages), len(m.custom))
	}
	must[anteroom.Room](t)(r.CreateRoom(ctx, root, zone.ID, two))
	if x, n := changesOf(before, contents(m.State())); len(x)+n > 0 {
		t.Errorf("the manager has changed: %v", x)
	}
	if diff := cmp.Diff(stored, must[[]string](t)(m.cfg.Link.Keys(ctx, ""))); diff != "" {
		t.Error(diff)
	}
	// Nor does the manager's index know of it.
	zone = must[anteroom.Zone](t)(m.CreateZone(ctx, root, "new.test"))
	must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, one))
}
