package analytics_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// TestFormatOfMinutes holds the bytes that nodes of one release send to those of another.
func TestFormatOfMinutes(t *testing.T) {
	t.Parallel()
	m := &analytics.Minute{Room: room, Start: start, Process: 0xfedcba9876543210, Seq: 300,
		Reasons: map[string]int64{"full": 1, "session": 200}, TicketRefusals: map[string]int64{"forged": 3},
		InForce: analytics.InForce{At: anteroom.TimeOf(start), QueueAll: true, Method: anteroom.FIFO, Event: "abc012"}}
	m.Gauges[0].Record(7)
	m.Gauges[0].Record(500)
	m.Gauges[1].Record(0)
	m.Counts[0], m.Counts[2] = 3000, 1
	m.Histograms[1] = &analytics.Histogram{}
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond, time.Second, time.Hour, 9 * 24 * time.Hour} {
		m.Histograms[1].Record(d)
	}
	for range 40 {
		m.Histograms[1].Record(2 * time.Minute)
	}
	const want = "0190e4d0b287d3aeeefe01ac02d8e0a20e060207f403fb0301000000000000000fb8170001000000000000000000000000020466756c6c010773657373696f6ec8010106666f7267656403000380d099fcf1a79803046669666f066162633031320601001006111201d70700db361801fa2601943b0100010001000100"
	// Of the release that counted no challenges.
	const earlier = "0190e4d0b287d3aeeefe01ac02d8e0a20e060207f403fb03010000000000000009b8170001000000000000020466756c6c010773657373696f6ec8010106666f7267656403000380d099fcf1a79803046669666f066162633031320601001006111201d70700db361801fa2601943b0100010001000100"
	if got := hex.EncodeToString(m.AppendWire(nil)); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	for _, text := range []string{want, earlier} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := analytics.ParseMinute(room, b); err != nil || bytesOf(got) != bytesOf(m) {
			t.Errorf("parsed %+v, %v", got, err)
		}
	}
}
