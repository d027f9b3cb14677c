package analytics_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// TestTotalsOutliveTheirMinutes: what is forgotten minute by minute stays counted.
func TestTotalsOutliveTheirMinutes(t *testing.T) {
	t.Parallel()
	now := at(0)
	r := analytics.NewRecorder(room, 1, func() anteroom.Time { return now })
	for i := range 10 {
		now = at(time.Duration(i) * time.Minute)
		d, presented := session(now)
		r.Decided(&d, &presented)
		r.Bypassed(analytics.ByRule)
		r.RefusedTicket("malformed")
		r.Count(now, analytics.NoShows, 2)
		r.Spans(now, analytics.Waited, time.Minute, 3*time.Second)
		r.Take(false)
		got := r.Totals()
		n := int64(i + 1)
		if got.Decisions(anteroom.ReasonSession) != n || got.Bypassed[analytics.ByRule] != n || got.TicketRefusals["malformed"] != n ||
			got.Count(analytics.NoShows) != 2*n || got.Spans[analytics.Waited].Count != uint64(2*n) || got.Spans[analytics.Late].Count != 0 {
			t.Fatalf("after %d minutes: %+v", n, got)
		}
	}
	if got := r.Totals().Spans[analytics.Waited]; got.Sum != 630 || !slices.Equal(got.Upto(2, 4, 64), []uint64{0, 10, 20}) {
		t.Errorf("%+v", got)
	}
	var none *analytics.Recorder
	if got := none.Totals(); got.Decisions(anteroom.ReasonSession) != 0 || got.Decisions(200) != 0 {
		t.Error(got)
	}
}
