package store

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// TestFormatOfRows holds the bytes that files have in them and that nodes send each other.
func TestFormatOfRows(t *testing.T) {
	t.Parallel()
	r := analytics.Row{Room: room(1), Start: began, Every: analytics.EveryQuarter, QueueAll: true, Method: anteroom.Random, Event: "abc012", Minutes: 15,
		Reasons: map[string]int64{"full": 1, "session": 200}, BypassReasons: map[string]int64{"rule": 70_000}}
	r.Stats[0] = analytics.Stat{N: 1, Sum: 12, Min: 12, Max: 12}
	r.Stats[1] = analytics.Stat{N: 15, Sum: 900, Min: 7, Max: 400}
	r.Summaries[1] = analytics.Summary{N: 300}
	for i := range r.Summaries[1].Quantiles {
		r.Summaries[1].Quantiles[i] = time.Duration(i+1) * 700 * time.Millisecond
		r.Weighted[1].Sum[i] = 0.1 + float64(i)/3
	}
	r.Weighted[1].Weight = 5
	r.Weighted[0].Weight = 9
	r.Histograms[2] = &analytics.Histogram{}
	r.Histograms[2].Record(90 * time.Second)
	const want = "0080e09cf39ef9f0e93180a0f1c2b13454010102066162633031320f1501180f0e8903880e000000000000000000000000000000000000000600ac02f80af80af80af80a0000000006120bc80101bcbbbbbbbbbbdb3f01888888888888e83f9811000000001b020466756c6c010773657373696f6ec80100010472756c65f0a2040a0600000101ef3a000000"
	// Of the release that counted no challenges.
	const earlier = "0080e09cf39ef9f0e93180a0f1c2b1344e010102066162633031320f0f01180f0e8903880e000000000000000000000000000600ac02f80af80af80af80a0000000006120bc80101bcbbbbbbbbbbdb3f01888888888888e83f9811000000001b020466756c6c010773657373696f6ec80100010472756c65f0a2040a0600000101ef3a000000"
	if got := hex.EncodeToString(appendAnswerRow(nil, 0, &r)); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	for _, text := range []string{want, earlier} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, err := parseAnswer(append([]byte{2, '{', '}'}, b...), []anteroom.RoomID{room(1)})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if got := rows[0]; hex.EncodeToString(appendAnswerRow(nil, 0, &got)) != want || got.Weighted != r.Weighted || !got.Start.Equal(r.Start) {
			t.Errorf("parsed %+v", got)
		}
	}
}
