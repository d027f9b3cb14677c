package main

import (
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
)

// The column WHY of anteroom status: the strongest of what keeps new visitors out.
func TestWhyNobodyIsAdmitted(t *testing.T) {
	down := string(anteroom.PaceOriginDown)
	for _, c := range []struct {
		want  string
		given func(s *schema.Status)
	}{
		{"", func(*schema.Status) {}},
		{"", func(s *schema.Status) { s.InForce = nil }},
		{"active users at the limit", func(s *schema.Status) { s.ActiveUsers = 10 }},
		{"active users at the limit", func(s *schema.Status) { s.TotalActiveUsers = 0 }},
		{"new users at the limit", func(s *schema.Status) { s.AdmittedLastMinute = 60 }},
		{"", func(s *schema.Status) { s.ActiveUsers, s.InForce.QueueingMethod = 10, anteroom.Passthrough }},
		{"origin down", func(s *schema.Status) { s.ActiveUsers, s.PaceReason = 10, &down }},
		{"cut off", func(s *schema.Status) { s.Mode, s.PaceReason = "cut", &down }},
		{"reject", func(s *schema.Status) { s.InForce.QueueingMethod = anteroom.Reject }},
		{"before the event", func(s *schema.Status) { s.InForce.Phase, s.InForce.QueueingMethod = "prequeueing", anteroom.Reject }},
		{"paused or queue_all", func(s *schema.Status) { s.InForce.QueueAll, s.InForce.Phase = true, "prequeueing" }},
		{"draining, and paused or queue_all", func(s *schema.Status) { s.InForce.Draining, s.InForce.QueueAll = true, true }},
		{"draining", func(s *schema.Status) { s.InForce.Draining, s.InForce.Phase = true, "prequeueing" }},
		{"suspended", func(s *schema.Status) { s.InForce.Suspended, s.InForce.Draining = true, true }},
	} {
		s := schema.Status{Mode: "queue", ActiveUsers: 3, TotalActiveUsers: 10, NewUsersPerMinute: 60, InForce: &schema.InForce{Phase: "started", QueueingMethod: anteroom.FIFO}}
		c.given(&s)
		if got := why(&s); got != c.want {
			t.Errorf("%+v: %q, want %q", s, got, c.want)
		}
	}
}
