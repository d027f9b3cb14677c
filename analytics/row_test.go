package analytics_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

func TestAMinuteBecomesARow(t *testing.T) {
	t.Parallel()
	m := &analytics.Minute{Room: room, Start: start, Reasons: map[string]int64{"full": 3},
		InForce: analytics.InForce{At: 1, Method: anteroom.Random, QueueAll: true, Event: "e1"}}
	for _, n := range []int64{10, 20, 31} {
		m.Gauges[analytics.ActiveUsers].Record(n)
	}
	m.Counts[analytics.NewUsers-analytics.SessionDuration-1] = 7
	waited := &analytics.Histogram{}
	for i := range 100 {
		waited.Record(time.Duration(i+1) * time.Second)
	}
	m.Histograms[analytics.Waited], m.Histograms[analytics.OnOrigin], m.Histograms[analytics.Late] = waited, waited, waited
	r := m.Row()
	if r.Minutes != 1 || r.Every != analytics.EveryMinute || !r.Start.Equal(start) || r.Method != anteroom.Random || !r.QueueAll || r.Event != "e1" || r.Reasons["full"] != 3 {
		t.Errorf("%+v", r)
	}
	if got := r.Stats[analytics.ActiveUsers]; got != (analytics.Stat{N: 3, Sum: 61, Min: 10, Max: 31}) {
		t.Errorf("active users: %+v", got)
	}
	if got := r.Stats[analytics.NewUsers]; got != (analytics.Stat{N: 1, Sum: 7, Min: 7, Max: 7}) || m.Count(analytics.NewUsers) != 7 {
		t.Errorf("new users: %+v", got)
	}
	for span, weight := range map[analytics.Span]int64{analytics.Waited: 7, analytics.OnOrigin: 20, analytics.Late: 1, analytics.InQueue: 0} {
		w := r.Weighted[span]
		if w.Weight != weight {
			t.Errorf("%v weighs %d, want %d", span, w.Weight, weight)
		}
		if p50, ok := w.Mean(0); ok != (weight > 0) || ok && math.Abs(p50-50) > 0.1 {
			t.Errorf("%v: p50 is %v, %v", span, p50, ok)
		}
	}
}

func TestRowsRollUpExactly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	at := func(every analytics.Resolution) analytics.Row {
		return analytics.Row{Room: room, Start: start, Every: every}
	}
	direct, day := at(analytics.EveryDay), at(analytics.EveryDay)
	for range 4 {
		hour := at(analytics.EveryHour)
		for range 60 {
			row := someMinute(r, 1).Row()
			direct.Add(&row)
			hour.Add(&row)
		}
		day.Add(&hour)
	}
	for i := range day.Weighted {
		for q := range analytics.Quantiles {
			a, _ := day.Weighted[i].Mean(q)
			if b, _ := direct.Weighted[i].Mean(q); math.Abs(a-b) > 1e-9*b {
				t.Errorf("%v: weighted %v, at once %v", analytics.Span(i), a, b)
			}
		}
		if day.Weighted[i].Weight != direct.Weighted[i].Weight || string(day.Histograms[i].AppendWire(nil)) != string(direct.Histograms[i].AppendWire(nil)) {
			t.Errorf("%v differs", analytics.Span(i))
		}
	}
	day.Weighted, day.Histograms = direct.Weighted, direct.Histograms
	if day.Minutes != 240 || !reflect.DeepEqual(day, direct) {
		t.Errorf("by hours %+v, at once %+v", day, direct)
	}
}

func TestEachMetricAndSpanHasAWord(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for m := range analytics.Metrics {
		seen[m.String()] = true
	}
	for s := range analytics.Spans {
		seen[s.String()] = true
	}
	if len(seen) != int(analytics.Metrics)+int(analytics.Spans) || seen[""] || analytics.Metrics.String() != "invalid" || analytics.Spans.String() != "invalid" {
		t.Errorf("%v", seen)
	}
}
