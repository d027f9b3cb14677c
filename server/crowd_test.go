package server

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// An operator tries a room with a crowd: its visitors queue like any others, within the limits, and the origin hears nothing
// of them.
func TestCrowd(t *testing.T) {
	r := startServer(t, `
rooms:
  - {name: shop, host: "*", path: /sale, total_active_users: 20, new_users_per_minute: 1000}
  - {name: invited, host: invited.example, total_active_users: 20, new_users_per_minute: 1000, invite_only: true}
  - {name: other, host: other.example, total_active_users: 20, new_users_per_minute: 1000}
`)
	var asked atomic.Int64
	r.origin.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	m, ctx := r.s.Manager(), t.Context()
	rooms := map[string]anteroom.Room{}
	all, err := m.Rooms(operator, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		rooms[one.Name] = one
	}
	of := func(name string) (anteroom.ZoneID, anteroom.RoomID) {
		return anteroom.ZoneIDOf(rooms[name].Zone), rooms[name].ID
	}
	zone, id := of("shop")
	refused := func(room string, c manage.Crowd, want string) {
		t.Helper()
		zone, id := of(room)
		if _, err := m.SendCrowd(ctx, operator, zone, id, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for _, c := range []manage.Crowd{{}, {Visitors: -1}, {Visitors: 2001}} {
		refused("shop", c, "visitors: ")
	}
	refused("shop", manage.Crowd{Visitors: 1, Over: -1}, "over_seconds: ")
	refused("shop", manage.Crowd{Visitors: 1, Over: 601 * time.Second}, "over_seconds: ")
	refused("invited", manage.Crowd{Visitors: 1}, "need an account or an invite code")
	reader := manage.Caller{Name: "reader", Grants: []manage.Grant{{Permission: manage.Read}}}
	if _, err := m.SendCrowd(ctx, reader, zone, id, manage.Crowd{Visitors: 1}); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("by a reader: %v", err)
	}
	if st, err := m.CrowdOf(operator, zone, id); err != nil || st != (manage.CrowdStatus{}) {
		t.Errorf("before there is one: %+v, %v", st, err)
	}

	if _, err := m.SendCrowd(ctx, operator, zone, id, manage.Crowd{Visitors: 120}); err != nil {
		t.Fatal(err)
	}
	refused("other", manage.Crowd{Visitors: 1}, "already sending simulated visitors")
	var st manage.CrowdStatus
	eventually(t, "not all have arrived and found the room full", func() bool {
		st, err = m.CrowdOf(reader, zone, id)
		return err == nil && st.Arrived == 120 && st.Admitted == 20 && st.Waiting+st.GaveUp == 100
	})
	// The figures of a room are up to half a second old, and scripts ask as soon as their page is there.
	eventually(t, "the room does not know all who are inside and in line", func() bool {
		live, err := m.Status(operator, zone, id)
		return err == nil && live.ActiveUsers == 20 && live.Waiting >= 90
	})
	refused("shop", manage.Crowd{Visitors: 1}, "visitors are waiting in room")
	if _, err := m.StopCrowd(reader, zone, id); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("stopped by a reader: %v", err)
	}
	if _, err := m.StopCrowd(operator, zone, id); err != nil {
		t.Error(err)
	}
	eventually(t, "the crowd goes on", func() bool { st, err = m.CrowdOf(operator, zone, id); return !st.Ended.IsZero() })
	if st.Admitted != 20 || st.Failed != 0 || st.Waiting != 0 || st.Active != 0 {
		t.Errorf("it ends as %+v", st)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the origin was asked %d times", n)
	}
	if _, err := m.SendCrowd(ctx, operator, zone, id, manage.Crowd{Visitors: 1}); err == nil {
		t.Error("a crowd comes while visitors wait")
	}
	log, err := m.Audit(ctx, operator, 0, 0)
	if err != nil || log[len(log)-1].Operation != "room.send_crowd" || log[len(log)-1].Changes[0].After != "120" {
		t.Errorf("the log ends with %+v, %v", log[len(log)-1], err)
	}

	// Another room can be tried now, and a crowd that all leave ends by itself.
	zone, id = of("other")
	if _, err := m.SendCrowd(ctx, operator, zone, id, manage.Crowd{Visitors: 3}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody is in", func() bool { st, err = m.CrowdOf(operator, zone, id); return err == nil && st.Admitted == 3 })
	if !st.Ended.IsZero() {
		t.Errorf("nobody looks around: %+v", st)
	}
	if err := r.end(); err != nil { // and it does not outlast the process
		t.Error(err)
	}
	eventually(t, "the crowd outlasts the server", func() bool { return !r.s.crowds.Running() })
}

func TestCrowdAddresses(t *testing.T) {
	seen := map[string]bool{}
	for n := 1; n <= manage.MaxCrowd; n++ {
		a := crowdAddress(n)
		if seen[a] || !strings.HasPrefix(a, "198.18.") {
			t.Fatalf("visitor %d has %s", n, a)
		}
		seen[a] = true
	}
}
