package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// TestLanes: a room of the API gets lanes while it runs; visitors join them by cookie and by code, the page and the operators see them, and
// those of the higher one are called first.
func TestLanes(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	room := localRoom("/sale")
	room.TotalActiveUsers, room.NewUsersPerMinute, room.QueueAll, room.JSONResponse = 100, 100, true, true
	zone, room := r.makeRoom("127.0.0.1", room)
	m, ctx := r.s.Manager(), t.Context()
	change := func(f func(*anteroom.Room)) {
		t.Helper()
		if _, err := m.ChangeRoom(ctx, operator, zone, room.ID, func(r *anteroom.Room) error { f(r); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(r *anteroom.Room) {
		r.Lanes = []anteroom.Lane{{Name: "gold", Priority: 80, Expression: `http.cookie contains "gold"`, Reserved: 10}, {Name: "codes", Priority: 40}, {Name: "everyone", Share: 5}}
	})
	lane := func(a answer, want string) {
		t.Helper()
		if !strings.Contains(a.body, `<b id="lane" dir="auto">`+want+`</b>`) {
			t.Errorf("not in %s: %d\n%s", want, a.StatusCode, a.body)
		}
	}
	first := r.visit("/sale")
	lane(first, "everyone")
	gold := r.visit("/sale", &http.Cookie{Name: "gold", Value: "1"})
	lane(gold, "gold")
	third := r.visit("/sale")
	lane(third, "everyone")

	_, codes, err := m.CreateInvites(ctx, operator, zone, room.ID, manage.InviteSpec{Count: 1, Lane: "codes"})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.visit("/sale", first.Cookies()...); !strings.Contains(a.body, `href="?__anteroom=invite"`) {
		t.Errorf("the page does not lead to the codes: %s", a.body)
	}
	req, err := http.NewRequest("POST", "http://"+r.s.Addresses().Visitors[0]+"/sale?__anteroom=invite", strings.NewReader("code="+codes[0]))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range third.Cookies() {
		req.AddCookie(c)
	}
	raised := r.do(req, nil)
	if raised.StatusCode != http.StatusSeeOther {
		t.Fatalf("the code: %d %s", raised.StatusCode, raised.body)
	}
	lane(r.visit("/sale", raised.Cookies()...), "codes")

	st, err := m.Status(operator, zone, room.ID)
	if err != nil {
		t.Fatal(err)
	}
	var waiting []int
	var names []string
	for _, l := range st.Lanes {
		names, waiting = append(names, l.Name), append(waiting, l.Waiting)
	}
	if !slices.Equal(names, []string{"gold", "codes", "everyone"}) || !slices.Equal(waiting, []int{1, 1, 1}) || st.InForce == nil || st.InForce.Settings.Lanes == nil {
		t.Errorf("status: %v %v %+v", names, waiting, st.InForce)
	}
	metrics := r.admin("GET", "/metrics").body
	for _, want := range []string{`lane="gold",room="` + string(room.ID) + `"} 1`, `lane="everyone",room="` + string(room.ID) + `"} 1`} {
		if !strings.Contains(metrics, "anteroom_lane_waiting{"+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	lane(r.visit("/sale", gold.Cookies()...), "gold") // visitors are called who have come back; the lane is in the ticket
	if n, err := m.AdmitNow(ctx, operator, zone, room.ID, 1); err != nil || n != 1 {
		t.Errorf("called %d, %v", n, err)
	}
	if a := r.visit("/sale", first.Cookies()...); a.isIn() {
		t.Error("a visitor of the lowest lane is in before those of the others")
	}
	if a := r.visit("/sale", gold.Cookies()...); !a.isIn() {
		t.Errorf("the visitor of the highest lane is not the first: %d", a.StatusCode)
	}
	r.makeRoom("127.0.0.1", localRoom("/other")) // with which all rooms are made ready anew
	lane(r.visit("/sale", &http.Cookie{Name: "gold", Value: "1"}), "gold")
}
