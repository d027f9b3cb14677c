package analytics_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

const room = anteroom.RoomID("0123456789abcdef0123456789abcdef")

var start = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// someMinute is what a process might have seen.
func someMinute(r *rand.Rand, process uint64) *analytics.Minute {
	m := &analytics.Minute{Room: room, Start: start, Process: process, Seq: r.Int64N(1000)}
	for i := range m.Gauges {
		for range r.IntN(4) {
			m.Gauges[i].Record(r.Int64N(5000))
		}
	}
	for i := range m.Counts {
		m.Counts[i] = r.Int64N(3000)
	}
	for i := range m.Histograms {
		if n := r.IntN(3) * 50; n > 0 {
			m.Histograms[i] = &analytics.Histogram{}
			for range n {
				m.Histograms[i].Record(time.Duration(r.ExpFloat64() * float64(10*time.Minute)))
			}
		}
	}
	if r.IntN(3) > 0 {
		m.Reasons = map[string]int64{"session": 1 + r.Int64N(9), "full": 1 + r.Int64N(9)}
		m.InForce = analytics.InForce{At: anteroom.TimeOf(start) + anteroom.Time(r.IntN(9)), QueueAll: r.IntN(2) > 0, Suspended: r.IntN(2) > 0,
			Method: anteroom.QueueingMethods[r.IntN(4)], Event: []anteroom.EventID{"", "abc012"}[r.IntN(2)]}
	}
	if r.IntN(3) > 0 {
		m.TicketRefusals = map[string]int64{"forged": 1 + r.Int64N(9)}
		m.BypassReasons = map[string]int64{"rule": 1 + r.Int64N(9)}
	}
	return m
}

// bytesOf is the minute as bytes: two that have the same are the same.
func bytesOf(m *analytics.Minute) string { return string(m.AppendWire(nil)) }

func TestMinutesTravel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 25 {
		m := someMinute(r, r.Uint64())
		b := m.AppendWire(nil)
		got, err := analytics.ParseMinute(room, b)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if bytesOf(got) != string(b) || got.Key() != m.Key() || !reflect.DeepEqual(got.Gauges, m.Gauges) || got.Counts != m.Counts || got.InForce != m.InForce {
			t.Fatalf("%+v became %+v", m, got)
		}
		for n := range b {
			if _, err := analytics.ParseMinute(room, b[:n]); err == nil {
				t.Fatalf("taken without its last %d bytes", len(b)-n)
			}
		}
		if _, err := analytics.ParseMinute(room, append(b, 0)); err == nil {
			t.Fatal("taken with a byte too many")
		}
	}
}

func TestMinutesAddUpInAnyOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		parts := []*analytics.Minute{someMinute(r, 1), someMinute(r, 2), someMinute(r, 3), someMinute(r, 4)}
		before := bytesOf(parts[2])
		sum := func(order []int) *analytics.Minute {
			m := &analytics.Minute{Room: room, Start: start}
			for _, i := range order {
				m.Add(parts[i])
			}
			return m
		}
		a := sum([]int{0, 1, 2, 3})
		for range 5 {
			if b := sum(r.Perm(4)); bytesOf(a) != bytesOf(b) {
				t.Fatalf("%+v, in another order %+v", a, b)
			}
		}
		pair := sum([]int{2, 3})
		first := sum([]int{0, 1})
		if first.Add(pair); bytesOf(first) != bytesOf(a) {
			t.Fatal("in pairs it is something else")
		}
		if bytesOf(parts[2]) != before {
			t.Fatal("a part was changed")
		}
		if c := parts[1].Clone(); bytesOf(c) != bytesOf(parts[1]) {
			t.Fatalf("the copy of %+v is %+v", parts[1], c)
		}
	}
}

func TestTheNewestOfAProcessCounts(t *testing.T) {
	t.Parallel()
	older, newer := analytics.Minute{Room: room, Start: start, Process: 1, Seq: 4}, analytics.Minute{Room: room, Start: start, Process: 1, Seq: 5}
	if older.Key() != newer.Key() || !newer.Newer(&older) || older.Newer(&newer) || older.Newer(&older) {
		t.Error("the wrong one")
	}
}

func FuzzParseMinute(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := analytics.ParseMinute(room, b)
		if err != nil {
			return
		}
		again, err := analytics.ParseMinute(room, m.AppendWire(nil))
		if err != nil || bytesOf(again) != bytesOf(m) {
			t.Fatalf("%x is %+v, written and read again %+v, %v", b, m, again, err)
		}
		m.Add(again)
		row := m.Row()
		var sum analytics.Row
		sum.Add(&row)
		sum.Add(&row)
		for s, h := range sum.Histograms {
			if h.Count() < 0 || h.Quantile(95) < h.Quantile(50) || sum.Weighted[s].Weight < 0 {
				t.Fatalf("%x: a distribution of %d", b, h.Count())
			}
		}
	})
}
