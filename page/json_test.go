package page

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var noon = anteroom.TimeOf(time.Date(2020, 8, 3, 23, 46, 0, 0, time.UTC))

// The published examples, with the two fields that they leave out.
func TestJSONIsThePublishedObject(t *testing.T) {
	fifo := anteroom.Decision{Method: anteroom.FIFO, Reason: anteroom.ReasonWaiting, At: noon, WaitKnown: true, WaitTime: 10 * time.Minute,
		Refresh: 20 * time.Second, Ticket: anteroom.Ticket{ID: anteroom.ID{1}, LastCheckIn: noon}}
	random := fifo
	random.Method, random.Wait25, random.Wait75 = anteroom.Random, 5*time.Minute, 15*time.Minute
	reject := anteroom.Decision{Verdict: anteroom.Refuse, Method: anteroom.Reject, Reason: anteroom.ReasonReject, At: noon}
	holding := fifo
	holding.Method, holding.QueueAll, holding.At = anteroom.Passthrough, true, noon.Add(7*time.Second)
	const events = `"isEventActive":false,"isEventPrequeueing":false,"timeUntilEventStart":0,"timeUntilEventStartFormatted":"unavailable",` +
		`"timeUntilEventEnd":0,"timeUntilEventEndFormatted":"unavailable","shuffleAtEventStart":false,"turnstile":"","infiniteQueue":false}}`
	for _, c := range []struct {
		name string
		d    anteroom.Decision
		want string
	}{
		{"fifo", fifo, `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":true,"waitTime":10,` +
			`"waitTime25Percentile":0,"waitTime50Percentile":0,"waitTime75Percentile":0,"waitTimeFormatted":"10 minutes","queueIsFull":false,"queueAll":false,` +
			`"lastUpdated":"2020-08-03T23:46:00.000Z","refreshIntervalSeconds":20,"queueingMethod":"fifo",` +
			`"isFIFOQueue":true,"isRandomQueue":false,"isPassthroughQueue":false,"isRejectQueue":false,` + events},
		{"random", random, `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":true,"waitTime":10,` +
			`"waitTime25Percentile":5,"waitTime50Percentile":10,"waitTime75Percentile":15,"waitTimeFormatted":"5 minutes to 15 minutes","queueIsFull":false,"queueAll":false,` +
			`"lastUpdated":"2020-08-03T23:46:00.000Z","refreshIntervalSeconds":20,"queueingMethod":"random",` +
			`"isFIFOQueue":false,"isRandomQueue":true,"isPassthroughQueue":false,"isRejectQueue":false,` + events},
		{"reject", reject, `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":false,"waitTime":0,` +
			`"waitTime25Percentile":0,"waitTime50Percentile":0,"waitTime75Percentile":0,"waitTimeFormatted":"unavailable","queueIsFull":false,"queueAll":false,` +
			`"lastUpdated":"2020-08-03T23:46:00.000Z","refreshIntervalSeconds":0,"queueingMethod":"reject",` +
			`"isFIFOQueue":false,"isRandomQueue":false,"isPassthroughQueue":false,"isRejectQueue":true,` + events},
		{"queue all, early check-in", holding, `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":false,"waitTime":0,` +
			`"waitTime25Percentile":0,"waitTime50Percentile":0,"waitTime75Percentile":0,"waitTimeFormatted":"unavailable","queueIsFull":false,"queueAll":true,` +
			`"lastUpdated":"2020-08-03T23:46:00.000Z","refreshIntervalSeconds":20,"queueingMethod":"passthrough",` +
			`"isFIFOQueue":false,"isRandomQueue":false,"isPassthroughQueue":true,"isRejectQueue":false,` + events},
	} {
		if got := string(AppendJSON(nil, &View{Decision: c.d})); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWaitTimeFormatted(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		want string
	}{
		{0, "0 minutes"},
		{time.Second, "1 minute"},
		{time.Minute, "1 minute"},
		{time.Minute + time.Second, "2 minutes"},
		{59 * time.Minute, "59 minutes"},
		{60 * time.Minute, "More than 1 hour"},
		{119 * time.Minute, "More than 1 hour"},
		{120 * time.Minute, "More than 2 hours"},
		{24 * time.Hour, "More than 24 hours"},
		{24*time.Hour + time.Second, "More than a day"},
		{-time.Hour, "0 minutes"},
	} {
		d := anteroom.Decision{WaitKnown: true, WaitTime: c.wait}
		if got := string(publish(&View{Decision: d}).appendFormatted(nil)); got != c.want {
			t.Errorf("%v: %q, want %q", c.wait, got, c.want)
		}
	}
}

// A clock that was set after the node's start shows in what people read, not in room time.
func TestMomentsFollowTheWallClock(t *testing.T) {
	d := States()[0].Decision
	v := View{Decision: d, Now: d.At.Std().Add(3 * time.Hour)}
	for _, out := range []string{string(AppendJSON(nil, &v)), string(AppendPage(nil, &v, false))} {
		if !strings.Contains(out, "2026-11-20T17:27:05.000Z") {
			t.Errorf("the last update is not three hours later: %s", out)
		}
	}
	if page := string(AppendPage(nil, &v, false)); !strings.Contains(page, "17:32 UTC") {
		t.Error("the kept-until moment is not three hours later")
	}
}

// TestNextAttemptIsTheSum: lastUpdated and refreshIntervalSeconds add up to the moment from which the next attempt counts, after an
// early request too, and however long after the decision the answer is made.
func TestNextAttemptIsTheSum(t *testing.T) {
	d := States()[0].Decision
	d.Ticket.LastCheckIn, d.Refresh = d.At+7, 20*time.Second // not a whole millisecond
	d.Ticket.Next = d.Ticket.LastCheckIn.Add(d.Refresh)
	said := func(at anteroom.Time, left, later time.Duration) (updated time.Time, next time.Time) {
		d := d
		d.At, d.Refresh = at, left
		var got struct {
			In struct {
				LastUpdated            time.Time
				RefreshIntervalSeconds int
			} `json:"cfWaitingRoom"`
		}
		if err := json.Unmarshal(AppendJSON(nil, &View{Decision: d, Now: at.Std().Add(later)}), &got); err != nil {
			t.Fatal(err)
		}
		return got.In.LastUpdated, got.In.LastUpdated.Add(time.Duration(got.In.RefreshIntervalSeconds) * time.Second)
	}
	first, _ := said(d.Ticket.LastCheckIn, 20*time.Second, 100*time.Microsecond)
	for _, after := range []time.Duration{0, time.Second, 5 * time.Second, 19500 * time.Millisecond} {
		updated, next := said(d.Ticket.LastCheckIn.Add(after), 20*time.Second-after, 3*time.Millisecond)
		if updated != first {
			t.Errorf("after %v: the last update moved from %v to %v", after, first, updated)
		}
		if late := next.Sub(d.Ticket.Next.Std()); late < 0 || late > 20*time.Millisecond {
			t.Errorf("after %v: the sum is %v past the moment from which the next attempt counts", after, late)
		}
	}
}

func TestStatus(t *testing.T) {
	d := States()[0].Decision
	d.Reason, d.Stream = anteroom.ReasonEarly, true
	at := d.At.Std().UnixMilli()
	var got map[string]any
	if err := json.Unmarshal(AppendStatus(nil, &View{Decision: d}), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"admitted": false, "ahead": 1234.0, "wait": 840.0, "lo": 720.0, "hi": 1080.0, "refresh": 20.0, "kept": float64(at + 320_000),
		"stream": true, "reason": "early", "at": float64(at), "state": "line", "start": 0.0, "end": 0.0, "ref": "3f9a1-c07be",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if len(got) != 14 {
		t.Errorf("%d members, want 14: %v", len(got), got)
	}

	admitted := string(AppendStatus(nil, &View{Decision: anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: d.At}}))
	for _, part := range []string{`"admitted":true`, `"ahead":null`, `"wait":null`, `"lo":0`, `"kept":0`, `"reason":"turn"`, `"ref":""`} {
		if !strings.Contains(admitted, part) {
			t.Errorf("%s lacks %s", admitted, part)
		}
	}
}

func TestReferenceIsTheTickets(t *testing.T) {
	id := States()[0].Decision.Ticket.ID
	if got := string(appendReference(nil, id)); got != id.Reference() {
		t.Errorf("%q, want %q", got, id.Reference())
	}
}

func TestWaitRange(t *testing.T) {
	for _, c := range []struct {
		wait      time.Duration
		low, high int64
	}{
		{0, 0, 1},
		{30 * time.Second, 0, 1},
		{3 * time.Minute, 2, 4},
		{14 * time.Minute, 12, 18},
		{20 * time.Minute, 15, 25},
		{50 * time.Minute, 30, 75},
		{2 * time.Hour, 90, 150},
		{3*time.Hour + 20*time.Minute, 180, 240},
		{10 * time.Hour, 540, 780},
		{23 * time.Hour, 1200, 1440},
		{48 * time.Hour, 2460, 3600},
	} {
		low, high, known := waitRange(&anteroom.Decision{WaitKnown: true, WaitTime: c.wait})
		if low != c.low || high != c.high || !known {
			t.Errorf("%v: %d to %d, want %d to %d", c.wait, low, high, c.low, c.high)
		}
	}
	if low, high, _ := waitRange(&anteroom.Decision{Method: anteroom.Random, WaitKnown: true, Wait25: 5 * time.Minute, Wait75: 15 * time.Minute}); low != 5 || high != 15 {
		t.Errorf("a draw's range is %d to %d, not its quartiles", low, high)
	}
}

// What the gateway sends a million times a minute is appended, never allocated.
func TestNothingIsAllocated(t *testing.T) {
	buf := make([]byte, 0, 64<<10)
	for _, s := range States() {
		v := View{Decision: s.Decision, Language: "ar-EG", Now: time.Unix(1_800_000_000, 0)}
		for name, f := range map[string]func(){
			"json":   func() { AppendJSON(buf, &v) },
			"status": func() { AppendStatus(buf, &v) },
			"plain":  func() { AppendPage(buf, &v, false) },
			"gzip":   func() { AppendPage(buf, &v, true) },
		} {
			if n := testing.AllocsPerRun(50, f); n != 0 {
				t.Errorf("%s, %s: %v allocations", s.Name, name, n)
			}
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	v := View{Decision: States()[0].Decision}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendJSON(buf[:0], &v)
	}
}

func BenchmarkStatus(b *testing.B) {
	v := View{Decision: States()[0].Decision}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendStatus(buf[:0], &v)
	}
}

// A cookie may be as old as what its maker knew of the line: the visitor is told the interval from the answer on all the same.
func TestIntervalOfACookieThatKnewLess(t *testing.T) {
	at := anteroom.Time(1_800_000_000_000_000)
	v := View{Now: at.Std(), Decision: anteroom.Decision{Verdict: anteroom.Wait, At: at, Refresh: 20 * time.Second,
		Ticket: anteroom.Ticket{ID: anteroom.ID{1}, LastCheckIn: at.Add(-30 * time.Second), Next: at.Add(20 * time.Second), Refresh: 20 * time.Second}}}
	if got := intervalSeconds(&v.Decision); got != 20 {
		t.Errorf("the interval is %d s", got)
	}
	if got := v.updated(); !got.Equal(at.Std()) {
		t.Errorf("updated %v before the answer", at.Std().Sub(got))
	}
}
