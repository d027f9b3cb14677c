package server

import (
	"testing"

	"github.com/anteroom/anteroom"
)

// BenchmarkJournalBytes reports what an admission, a place in line and a touch write.
func BenchmarkJournalBytes(b *testing.B) {
	r := startServer(b, "rooms:\n  - {name: shop, host: \"*\", total_active_users: 1000000, new_users_per_minute: 2000000000}\n")
	room := r.s.node.Room(r.s.Config().Rooms[0].ID)
	before, n := r.s.node.JournalStats(), 0
	b.ResetTimer()
	for range b.N {
		n++
		id := anteroom.ID{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 1}
		room.Decide(b.Context(), anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
	}
	b.StopTimer()
	after := r.s.node.JournalStats()
	b.ReportMetric(float64(after.Bytes-before.Bytes)/float64(n), "B/admission")
	b.ReportMetric(float64(after.Events-before.Events)/float64(n), "events/admission")
}
