package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

func month() Config {
	to := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return Config{
		Room: "699d98642c564d2e855e9661899b7252", From: to.AddDate(0, 0, -30), To: to, Fine: 48 * time.Hour,
		Settings: anteroom.Settings{TotalActiveUsers: 60, NewUsersPerMinute: 240, SessionDuration: 15 * time.Second},
		Before:   anteroom.Settings{TotalActiveUsers: 40, NewUsersPerMinute: 240, SessionDuration: 15 * time.Second}, Raised: to.AddDate(0, 0, -12),
		Visitors: 60, Stay: 10 * time.Second, Patience: 2 * time.Minute, Seed: 1,
		Sales: []Sale{{At: to.AddDate(0, 0, -6), Visitors: 4000, Over: 10 * time.Minute, Event: "e", Length: time.Hour}},
	}
}

// What is made up keeps the promises of a room, and its figures fit together.
func TestMonth(t *testing.T) {
	cfg := month()
	rows := Rows(cfg)
	var total analytics.Row
	for i, r := range rows {
		if active, limit := r.Stats[analytics.ActiveUsers].Max, r.Stats[analytics.ActiveLimit].Max; active > limit {
			t.Errorf("%v: %d inside of %d", r.Start, active, limit)
		}
		if n := r.Stats[analytics.NewUsers].Max; n > int64(cfg.Settings.NewUsersPerMinute) {
			t.Errorf("%v: %d new in a minute", r.Start, n)
		}
		if i > 0 && !rows[i-1].Start.Before(r.Start) {
			t.Errorf("%v after %v", r.Start, rows[i-1].Start)
		}
		total.Add(&rows[i])
	}
	sum := func(m analytics.Metric) int64 { return total.Stats[m].Sum }
	waited := total.Histograms[analytics.Waited].Count()
	if left := sum(analytics.Joined) - sum(analytics.Abandoned) - waited; left != 0 {
		t.Errorf("%d joined, %d gave up, %d got in from the line", sum(analytics.Joined), sum(analytics.Abandoned), waited)
	}
	if n := total.Histograms[analytics.OnOrigin].Count(); sum(analytics.NewUsers)-n > int64(cfg.Settings.TotalActiveUsers) {
		t.Errorf("%d sessions began, %d ended", sum(analytics.NewUsers), n)
	}
	if waited < 1000 || sum(analytics.Abandoned) < 50 || total.Histograms[analytics.Waited].Max() < time.Minute {
		t.Errorf("%d waited, the longest %v, %d gave up: a dull month", waited, total.Histograms[analytics.Waited].Max(), sum(analytics.Abandoned))
	}
	fine := 0
	for _, r := range rows {
		if r.Every == analytics.EveryMinute {
			fine++
		}
	}
	if fine < 2000 || len(rows)-fine < 2000 {
		t.Errorf("%d rows of minutes, %d of quarters", fine, len(rows)-fine)
	}
}

func TestSameSeedSameMonth(t *testing.T) {
	cfg := month()
	cfg.From = cfg.To.AddDate(0, 0, -3)
	stats := func() (out [][analytics.Metrics]analytics.Stat) {
		for _, r := range Rows(cfg) {
			out = append(out, r.Stats)
		}
		return out
	}
	if diff := cmp.Diff(stats(), stats()); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkMonth(b *testing.B) {
	for b.Loop() {
		Rows(month())
	}
}
