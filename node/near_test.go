package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// Most rooms of a large installation are asked for their figures long before anybody visits them.
func TestARoomHasAMachineOnceSomebodyComes(t *testing.T) {
	touches := map[string]func(t *testing.T, r *Room){
		"a visitor":             func(t *testing.T, r *Room) { r.Decide(t.Context(), newcomer()) },
		"several tickets":       func(t *testing.T, r *Room) { r.Best([]anteroom.Ticket{{ID: anteroom.ID{1}}}) },
		"a long connection":     func(t *testing.T, r *Room) { r.Touch(anteroom.ID{1}) },
		"a closed session":      func(t *testing.T, r *Room) { r.Revoke(anteroom.ID{1}) },
		"a tunnel":              func(t *testing.T, r *Room) { <-r.Ended(t.Context(), anteroom.ID{1}) },
		"a turn by hand":        func(t *testing.T, r *Room) { r.AdmitNow(t.Context(), 1) },
		"a look-up":             func(t *testing.T, r *Room) { r.Find(t.Context(), "3f9a1-c07be") },
		"trouble at the origin": func(t *testing.T, r *Room) { r.Origin(engine.OriginFacts{Known: true, Down: true}) },
		"an event": func(t *testing.T, r *Room) {
			plan := *r.schedule.plan
			plan.Events = []anteroom.Event{{ID: "e", Name: "sale", Start: anteroom.StampOf(time.Now().Add(time.Hour)), End: anteroom.StampOf(time.Now().Add(2 * time.Hour))}}
			r.configure(plan.WithDefaults())
		},
	}
	quiet := map[string]func(t *testing.T, r *Room){
		"figures":       func(t *testing.T, r *Room) { r.Status() },
		"settings":      func(t *testing.T, r *Room) { r.Settings() },
		"time":          func(t *testing.T, r *Room) { time.Sleep(time.Minute) },
		"a new limit":   func(t *testing.T, r *Room) { p := *r.schedule.plan; p.TotalActiveUsers = 7; r.configure(p) },
		"a calm origin": func(t *testing.T, r *Room) { r.Origin(engine.OriginFacts{}) },
	}
	try := func(name string, do func(t *testing.T, r *Room), want bool) {
		synctest.Test(t, func(t *testing.T) {
			plan := shop
			plan.Protect = true
			n, kill := begin(t, memlink.New(), plan)
			defer kill()
			r := n.Room(shop.ID)
			do(t, r)
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := r.machine != nil; got != want {
				t.Errorf("%s: a machine: %v, want %v", name, got, want)
			}
		})
	}
	for name, do := range touches {
		try(name, do, true)
	}
	for name, do := range quiet {
		try(name, do, false)
	}
}

// The first visitor of a room finds what was changed before.
func TestTheFirstVisitorFindsTheSettingsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		time.Sleep(time.Hour)
		plan := shop
		plan.TotalActiveUsers = 1
		n.SettleRoom(plan)
		if s := r.Status(); s.TotalActiveUsers != 1 || s.Mode != "open" {
			t.Errorf("the figures say %+v", s)
		}
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Admit {
			t.Errorf("the first: %v %v", d.Verdict, d.Reason)
		}
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait {
			t.Errorf("the second: %v %v, want to wait for the one seat", d.Verdict, d.Reason)
		}
	})
}
