package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// hundredSites is a coordinator with a hundred sites in an open room, and what the next report of
// each is.
func hundredSites(t testing.TB) (*Coordinator, []Report, anteroom.Time) {
	now := midnight
	c := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 5000, NewUsersPerMinute: 5000}, LedgerRecord{}, []byte("seed"))
	reports := make([]Report, 100)
	for n := range uint64(3) {
		for i := range reports {
			now = now.Add(10 * time.Millisecond)
			reports[i] = Report{From: SiteKey{Name: fmt.Sprint("site", i), Incarnation: 1}, Term: 1, Epoch: 1, Seq: n + 1, Sent: now,
				Full: n == 0, Ask: true, Trip: 80 * time.Millisecond, Returned: Units{1000, 1000}, Used: Units{20, 20}}
			c.Receive(now, reports[i])
			for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
				c.Stored(now, rec)
			}
			if n < 2 {
				c.Take()
			}
		}
	}
	return c, reports, now
}

// A report of an open room and its answer are what an idle second costs; docs/scale.md counts on it.
func TestOpenRoomOnTheWire(t *testing.T) {
	c, reports, _ := hundredSites(t)
	report, answer := len(reports[50].AppendWire(nil)), 0
	for _, m := range c.Take() {
		answer = max(answer, len(m.AppendWire(nil)))
	}
	t.Logf("a report takes %d bytes, an answer at most %d", report, answer)
	if answer == 0 || report+answer > 200 {
		t.Errorf("a report of %d and an answer of %d bytes", report, answer)
	}
}

// BenchmarkCoordinatorHeartbeats: a hundred sites of an open room report, and are answered.
func BenchmarkCoordinatorHeartbeats(b *testing.B) {
	c, reports, now := hundredSites(b)
	c.Take()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r := &reports[n%len(reports)]
		now = now.Add(10 * time.Millisecond)
		r.Seq, r.Sent, r.Full = r.Seq+1, now, false
		c.Receive(now, *r)
		if rec, ok := c.Needs(); ok {
			c.Stored(now, rec)
		}
		c.Take()
		n++
	}
}
