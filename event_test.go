package anteroom_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func at(t *testing.T, s string) anteroom.Time {
	t.Helper()
	m, err := anteroom.Stamp(s).Time()
	if err != nil {
		t.Fatal(err)
	}
	return anteroom.TimeOf(m)
}

func ptr[T any](v T) *T { return &v }

var sale = anteroom.Event{Name: "sale", Prequeue: "2026-11-27T09:30:00Z", Start: "2026-11-27T10:00:00.000Z", End: "2026-11-27T12:00:00+01:00",
	ShuffleAtStart: true, Overrides: anteroom.Overrides{TotalActiveUsers: ptr(50), NewUsersPerMinute: ptr(20)}}

func TestAnEventIsInForceToTheMicrosecond(t *testing.T) {
	room := anteroom.Room{Settings: anteroom.Settings{TotalActiveUsers: 9, NewUsersPerMinute: 9, QueueingMethod: anteroom.Reject}, Events: []anteroom.Event{sale}}
	for _, c := range []struct {
		at     string
		phase  anteroom.Phase
		active int
		until  string
	}{
		{"2026-11-27T09:29:59.999999Z", anteroom.NoEvent, 9, "2026-11-27T09:30:00Z"},
		{"2026-11-27T09:30:00Z", anteroom.Prequeueing, 50, "2026-11-27T10:00:00Z"},
		{"2026-11-27T09:59:59.999999Z", anteroom.Prequeueing, 50, "2026-11-27T10:00:00Z"},
		{"2026-11-27T10:00:00Z", anteroom.Started, 50, "2026-11-27T11:00:00Z"},
		{"2026-11-27T10:59:59.999999Z", anteroom.Started, 50, "2026-11-27T11:00:00Z"},
		{"2026-11-27T11:00:00Z", anteroom.NoEvent, 9, ""},
	} {
		f := room.At(at(t, c.at))
		until := anteroom.Time(0)
		if c.until != "" {
			until = at(t, c.until)
		}
		if f.Phase != c.phase || f.Settings.TotalActiveUsers != c.active || f.Until != until || f.Prequeueing != (c.phase == anteroom.Prequeueing) ||
			(f.Event != nil) != (c.phase != anteroom.NoEvent) || f.QueueingMethod != anteroom.Reject {
			t.Errorf("at %s: %+v", c.at, f)
		}
	}
}

func TestARoomKeepsEventsApartAndControlsAbove(t *testing.T) {
	after := anteroom.Event{Name: "after", Start: "2026-11-27T11:00:00Z", End: "2026-11-27T11:05:00Z", Overrides: anteroom.Overrides{QueueingMethod: ptr(anteroom.Reject)}}
	room := anteroom.Room{Events: []anteroom.Event{sale, after}, Controls: anteroom.Controls{Paused: true, Draining: true, ResetAt: 7}}
	if f := room.At(at(t, "2026-11-27T11:00:00Z")); f.Event == nil || f.Event.Name != "after" || f.QueueingMethod != anteroom.Reject || !f.QueueAll || !f.Draining || f.ResetAt != 7 {
		t.Errorf("back to back: %+v", f)
	}
	if faults := anteroom.CheckEvents(room.Events); faults != nil {
		t.Error(faults)
	}
	room.Events[0].Suspended = true
	if f := room.At(at(t, "2026-11-27T10:30:00Z")); f.Event != nil {
		t.Error("a suspended event is in force")
	}
	room.Suspended = true
	if f := room.At(at(t, "2026-11-27T11:00:00Z")); f.Event != nil || !f.Settings.Suspended {
		t.Error("an event is in force in a suspended room")
	}
	after.Prequeue = "2026-11-27T10:55:00Z"
	if faults := anteroom.CheckEvents([]anteroom.Event{sale, after}); len(faults) != 1 {
		t.Errorf("a prequeue that reaches into another event: %v", faults)
	}
}

func TestARepeatedEventKeepsItsTimeOfDay(t *testing.T) {
	e := anteroom.Event{Name: "daily", Start: "2026-03-28T10:00:00+01:00", End: "2026-03-28T11:00:00+01:00", Prequeue: "2026-03-28T09:55:00+01:00",
		Repeat: anteroom.Repeat{Every: anteroom.EveryDay, TimeZone: "Europe/Berlin", Times: 3}}
	if faults := e.Check(); faults != nil {
		t.Fatal(faults)
	}
	room := anteroom.Room{Events: []anteroom.Event{e}}
	// On 29 March 2026 the clocks go forward by an hour.
	for _, c := range []struct {
		at    string
		phase anteroom.Phase
	}{
		{"2026-03-28T08:54:59Z", anteroom.NoEvent}, {"2026-03-28T08:55:00Z", anteroom.Prequeueing}, {"2026-03-28T09:00:00Z", anteroom.Started},
		{"2026-03-28T10:00:00Z", anteroom.NoEvent}, {"2026-03-29T07:55:00Z", anteroom.Prequeueing}, {"2026-03-29T08:00:00Z", anteroom.Started},
		{"2026-03-30T08:59:59Z", anteroom.Started}, {"2026-03-30T09:00:00Z", anteroom.NoEvent}, {"2026-03-31T08:30:00Z", anteroom.NoEvent},
	} {
		if f := room.At(at(t, c.at)); f.Phase != c.phase {
			t.Errorf("at %s: %v, want %v", c.at, f.Phase, c.phase)
		}
	}
	if f := room.At(at(t, "2026-03-30T09:00:00Z")); f.Until != 0 {
		t.Errorf("after the last occurrence something is planned for %v", f.Until.Std())
	}
}

func TestEventFaults(t *testing.T) {
	minute := time.Minute
	for path, change := range map[string]func(e *anteroom.Event){
		"name":                   func(e *anteroom.Event) { e.Name = "a b" },
		"event_start_time":       func(e *anteroom.Event) { e.Start = "tomorrow" },
		"event_end_time":         func(e *anteroom.Event) { e.End = "2026-11-27T10:00:59Z" },
		"prequeue_start_time":    func(e *anteroom.Event) { e.Prequeue = "2026-11-27T09:55:01Z" },
		"shuffle_at_event_start": func(e *anteroom.Event) { e.Prequeue = "" },
		"total_active_users":     func(e *anteroom.Event) { e.TotalActiveUsers = nil },
		"new_users_per_minute":   func(e *anteroom.Event) { e.NewUsersPerMinute = nil },
		"session_duration":       func(e *anteroom.Event) { e.SessionDuration = ptr(25 * time.Hour) },
		"queueing_method":        func(e *anteroom.Event) { e.QueueingMethod = ptr(anteroom.QueueingMethod("lifo")) },
		"turnstile_mode":         func(e *anteroom.Event) { e.TurnstileMode = ptr("on") },
		"repeat.every":           func(e *anteroom.Event) { e.Repeat = anteroom.Repeat{Every: "month"} },
		"repeat.interval":        func(e *anteroom.Event) { e.End = "2026-11-29T10:00:00Z"; e.Repeat = anteroom.Repeat{Every: "day"} },
		"repeat.time_zone":       func(e *anteroom.Event) { e.Repeat = anteroom.Repeat{Every: "week", TimeZone: "Mars/Olympus"} },
	} {
		e := sale
		e.SessionDuration = &minute
		change(&e)
		if f := e.Check(); len(f) != 1 || f[0].Path != path {
			t.Errorf("%s: %v", path, f)
		}
	}
	if f := sale.Check(); f != nil {
		t.Error(f)
	}
}

func TestWhoIsInsideWhenRenewalEndsHasASessionFromThen(t *testing.T) {
	off := anteroom.Overrides{DisableSessionRenewal: ptr(true), SessionDuration: ptr(5 * time.Minute)}
	room := anteroom.Room{Settings: anteroom.Settings{SessionDuration: 10 * time.Minute}, Events: []anteroom.Event{
		{Name: "a", Start: "2026-11-27T11:00:00Z", End: "2026-11-27T11:04:00Z", Overrides: off},
		{Name: "b", Start: "2026-11-27T11:04:00Z", End: "2026-11-27T12:00:00Z", Overrides: off},
	}}
	want := at(t, "2026-11-27T11:05:00Z")
	for _, moment := range []string{"2026-11-27T11:00:00Z", "2026-11-27T11:04:00Z"} {
		f := room.At(at(t, moment))
		if got := f.SessionEnd(at(t, "2026-11-27T10:20:00Z")); got != want {
			t.Errorf("at %s the session ends at %v", moment, got.Std())
		}
		if got := f.SessionEnd(at(t, "2026-11-27T11:03:00Z")); got != at(t, "2026-11-27T11:08:00Z") {
			t.Errorf("at %s a later session ends at %v", moment, got.Std())
		}
	}
}

func TestLatestOccurrence(t *testing.T) {
	once := anteroom.Event{Prequeue: "2026-11-27T09:50:00Z", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T11:00:00Z"}
	daily, thrice, until := once, once, once
	daily.Repeat = anteroom.Repeat{Every: anteroom.EveryDay}
	thrice.Repeat = anteroom.Repeat{Every: anteroom.EveryWeek, Interval: 2, Times: 3}
	until.Repeat = anteroom.Repeat{Every: anteroom.EveryDay, Until: "2026-11-30T00:00:00Z"}
	for _, c := range []struct {
		name  string
		event anteroom.Event
		at    string
		want  int // -1: none
	}{
		{"before all", once, "2026-11-27T09:49:59Z", -1},
		{"in the prequeue", once, "2026-11-27T09:50:00Z", 0},
		{"long over", once, "2031-01-01T00:00:00Z", 0},
		{"between two days", daily, "2026-11-28T09:00:00Z", 0},
		{"the next prequeue", daily, "2026-11-28T09:55:00Z", 1},
		{"a year later", daily, "2027-11-27T12:00:00Z", 365},
		{"the last of three", thrice, "2030-01-01T00:00:00Z", 2},
		{"the last before a moment", until, "2030-01-01T00:00:00Z", 2},
		{"never", anteroom.Event{}, "2030-01-01T00:00:00Z", -1},
	} {
		at, _ := anteroom.Stamp(c.at).Time()
		if o, ok := c.event.Latest(at); ok != (c.want >= 0) || ok && o.Number != c.want {
			t.Errorf("%s: occurrence %d, %v, want %d", c.name, o.Number, ok, c.want)
		}
	}
}

// The seed of an occurrence is what everybody can recompute who knows the event's.
func TestOccurrencesHaveSeedsOfTheirOwn(t *testing.T) {
	e := anteroom.Event{}
	for i := range e.Seed {
		e.Seed[i] = byte(i)
	}
	if e.OccurrenceSeed(0) != e.Seed {
		t.Error("the first occurrence has not the event's seed")
	}
	h := hmac.New(sha256.New, e.Seed[:])
	h.Write([]byte("anteroom-occurrence\x00\x00\x00\x00\x00\x00\x01\x02"))
	if got := e.OccurrenceSeed(258); !bytes.Equal(got[:], h.Sum(nil)) {
		t.Errorf("%x", got)
	}
}

// A plan has a hundred events with hundreds of occurrences each, and every change of it looks at
// all of them while other changes wait: it does not read the time zone's file for each.
func TestAPlanReadsATimeZoneOnce(t *testing.T) {
	e := sale
	e.Repeat = anteroom.Repeat{Every: anteroom.EveryDay, TimeZone: "Europe/Berlin"}
	if n := testing.AllocsPerRun(10, func() { anteroom.CheckEvents([]anteroom.Event{e}) }); n > 200 {
		t.Errorf("%v allocations", n)
	}
}

func TestMessageIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		strings.Repeat("ü", 280): "",
		"می\u200cخواهم 👨\u200d👩\u200d👧 שלום": "",
		strings.Repeat("a", 281):             "281 characters",
		"two\nlines":                         "U+000A",
		"\x00":                               "U+0000",
		"turned \u202e round":                "U+202E",
		"\xff":                               "UTF-8",
		"no\u2028line\u2029 either":          "U+2028",
	} {
		err := anteroom.Controls{Message: text}.Check().Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	now := anteroom.TimeOf(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC))
	if f := (anteroom.Room{Controls: anteroom.Controls{Message: "Hello."}}).At(now); f.Message != "Hello." {
		t.Errorf("in force is %q", f.Message)
	}
}

// A ramp's steps hold one after the other while the event runs, and the plan says when the next begins.
func TestRamp(t *testing.T) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	e := anteroom.Event{ID: "e", Name: "drop", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour)), Prequeue: anteroom.StampOf(start.Add(-10 * time.Minute)),
		Ramp: []anteroom.Step{{After: 0, NewUsersPerMinute: 50, TotalActiveUsers: 100}, {After: 10 * time.Minute, NewUsersPerMinute: 100}, {After: 30 * time.Minute, TotalActiveUsers: 500, NewUsersPerMinute: 300}}}
	r := anteroom.Room{Name: "shop", Settings: anteroom.Settings{TotalActiveUsers: 600, NewUsersPerMinute: 400}, Events: []anteroom.Event{e}}.WithDefaults()
	for _, c := range []struct {
		at                time.Duration
		active, perMinute int
		until             time.Duration
	}{
		{-20 * time.Minute, 600, 400, -10 * time.Minute},
		{-5 * time.Minute, 600, 400, 0},
		{0, 100, 50, 10 * time.Minute},
		{10*time.Minute - time.Microsecond, 100, 50, 10 * time.Minute},
		{10 * time.Minute, 600, 100, 30 * time.Minute},
		{45 * time.Minute, 500, 300, time.Hour},
		{time.Hour, 600, 400, 0},
	} {
		f := r.At(anteroom.TimeOf(start.Add(c.at)))
		until := anteroom.Time(0)
		if c.at < time.Hour {
			until = anteroom.TimeOf(start.Add(c.until))
		}
		if f.TotalActiveUsers != c.active || f.NewUsersPerMinute != c.perMinute || f.Until != until {
			t.Errorf("at %v: %d and %d until %v, want %d and %d until %v", c.at, f.TotalActiveUsers, f.NewUsersPerMinute, f.Until.Std(), c.active, c.perMinute, until.Std())
		}
	}
	if f := append(r.Check(), r.CheckLimits()...); len(f) > 0 {
		t.Error(f)
	}
}

// A step with Over gets there along a logistic curve about its middle, in twenty parts, from the limits of before.
func TestRampAlongACurve(t *testing.T) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	e := anteroom.Event{ID: "e", Name: "drop", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour)),
		Ramp: []anteroom.Step{{NewUsersPerMinute: 100}, {After: 5 * time.Minute, Over: 20 * time.Minute, NewUsersPerMinute: 1100}, {After: 30 * time.Minute, Over: 20 * time.Second, NewUsersPerMinute: 100, TotalActiveUsers: 1000}}}
	r := anteroom.Room{Name: "shop", Settings: anteroom.Settings{TotalActiveUsers: 2000, NewUsersPerMinute: 1200}, Events: []anteroom.Event{e}}.WithDefaults()
	for _, c := range []struct {
		at                time.Duration
		active, perMinute int
		until             time.Duration
	}{
		{0, 2000, 100, 6 * time.Minute},
		{5 * time.Minute, 2000, 100, 6 * time.Minute},
		{6 * time.Minute, 2000, 104, 7 * time.Minute},
		{10 * time.Minute, 2000, 170, 11 * time.Minute},
		{15 * time.Minute, 2000, 600, 16 * time.Minute}, // half of the way at half of the time
		{20 * time.Minute, 2000, 1029, 21 * time.Minute},
		{25 * time.Minute, 2000, 1100, 30*time.Minute + time.Second},
		{30*time.Minute + 10*time.Second, 1500, 600, 30*time.Minute + 11*time.Second}, // down as well
		{30*time.Minute + 20*time.Second, 1000, 100, time.Hour},
	} {
		f := r.At(anteroom.TimeOf(start.Add(c.at)))
		if until := anteroom.TimeOf(start.Add(c.until)); f.TotalActiveUsers != c.active || f.NewUsersPerMinute != c.perMinute || f.Until != until {
			t.Errorf("at %v: %d and %d until %v, want %d and %d until %v", c.at, f.TotalActiveUsers, f.NewUsersPerMinute, f.Until.Std(), c.active, c.perMinute, until.Std())
		}
	}
	// From moment to moment, what is in force is never above the higher end, and never goes back while it rises.
	for at, last := start, 100; at.Before(start.Add(25 * time.Minute)); {
		f := r.At(anteroom.TimeOf(at))
		if f.NewUsersPerMinute < last || f.NewUsersPerMinute > 1100 {
			t.Fatalf("%v after the start: %d after %d", at.Sub(start), f.NewUsersPerMinute, last)
		}
		last, at = f.NewUsersPerMinute, f.Until.Std()
	}
	if f := append(r.Check(), r.CheckLimits()...); len(f) > 0 {
		t.Error(f)
	}
}

// What comes within four hours is known: the start of an event with limits of its own, the steps of its ramp, and its end.
func TestLimitsAhead(t *testing.T) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	active, perMinute := 900, 400
	e := anteroom.Event{ID: "e", Name: "drop", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour)), Prequeue: anteroom.StampOf(start.Add(-10 * time.Minute)),
		Ramp: []anteroom.Step{{NewUsersPerMinute: 40}, {After: 10 * time.Minute, Over: 10 * time.Minute, NewUsersPerMinute: 240}}}
	e.TotalActiveUsers, e.NewUsersPerMinute = &active, &perMinute
	r := anteroom.Room{Name: "shop", Settings: anteroom.Settings{TotalActiveUsers: 600, NewUsersPerMinute: 300}, Events: []anteroom.Event{e}}.WithDefaults()
	limits := func(from time.Time) (out []anteroom.LimitsFrom) {
		if f := r.AtWithAhead(anteroom.TimeOf(from)); f.Ahead != nil {
			out = f.Ahead.Limits
		}
		return out
	}
	all := limits(start.Add(-time.Hour))
	// The prequeue has the event's limits already. Then the first step, the parts of the second, the first of which is less than
	// one user, and the room again.
	if len(all) != 22 {
		t.Fatalf("%d changes: %v", len(all), all)
	}
	for i, want := range map[int]anteroom.LimitsFrom{
		0:  {anteroom.TimeOf(start.Add(-10 * time.Minute)), 900, 400},
		1:  {anteroom.TimeOf(start), 900, 40},
		10: {anteroom.TimeOf(start.Add(15 * time.Minute)), 900, 140},
		20: {anteroom.TimeOf(start.Add(20 * time.Minute)), 900, 240},
		21: {anteroom.TimeOf(start.Add(time.Hour)), 600, 300},
	} {
		if all[i] != want {
			t.Errorf("change %d is %v, want %v", i, all[i], want)
		}
	}
	if got := limits(start.Add(30 * time.Minute)); len(got) != 1 || got[0] != all[21] {
		t.Errorf("in the last step: %v", got)
	}
	if got := limits(start.Add(-5 * time.Hour)); got != nil {
		t.Errorf("more than four hours before: %v", got)
	}
	if got := limits(start.Add(time.Hour)); got != nil {
		t.Errorf("after it: %v", got)
	}
	if r.At(anteroom.TimeOf(start)).Ahead != nil {
		t.Error("At looks ahead")
	}
}

func BenchmarkAtWithAhead(b *testing.B) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	r := anteroom.Room{Name: "shop", Settings: anteroom.Settings{TotalActiveUsers: 600, NewUsersPerMinute: 300}}
	for i := range anteroom.MaxEventsPerRoom {
		at := start.Add(time.Duration(i) * 10 * time.Minute)
		r.Events = append(r.Events, anteroom.Event{ID: anteroom.EventID(fmt.Sprint(i)), Name: "drop", Start: anteroom.StampOf(at), End: anteroom.StampOf(at.Add(5 * time.Minute)), Repeat: anteroom.Repeat{Every: "day", TimeZone: "Europe/Berlin"},
			Ramp: []anteroom.Step{{NewUsersPerMinute: 40}, {After: time.Minute, Over: time.Minute, NewUsersPerMinute: 240}}})
	}
	r = r.WithDefaults()
	for b.Loop() {
		r.AtWithAhead(anteroom.TimeOf(start.Add(720 * time.Hour)))
	}
}

func TestBadRamps(t *testing.T) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for want, ramp := range map[string][]anteroom.Step{
		"events[0].ramp[0]: changes nothing":                                               {{After: time.Minute}},
		"events[0].ramp[0].after: 1h0m0s is not before the end":                            {{After: time.Hour, NewUsersPerMinute: 5}},
		"events[0].ramp[1].after: 5m0s is not later than the step before":                  {{After: 10 * time.Minute, NewUsersPerMinute: 5}, {After: 5 * time.Minute, NewUsersPerMinute: 6}},
		"events[0].ramp[0].new_users_per_minute: 301 is above the event's limit":           {{NewUsersPerMinute: 301}},
		"events[0].ramp[0].total_active_users: 401 is above the event's limit":             {{TotalActiveUsers: 401}},
		"events[0].ramp[0].new_users_per_minute: must be in range [0, total_active_users]": {{TotalActiveUsers: 10, NewUsersPerMinute: 20}},
		"events[0].ramp[0].after: ":                                                        {{After: -time.Second, NewUsersPerMinute: 5}},
		"events[0].ramp[0].over: 19s is too short for a curve":                             {{Over: 19 * time.Second, NewUsersPerMinute: 5}},
		"events[0].ramp[0].over: ":                                                         {{Over: -time.Second, NewUsersPerMinute: 5}},
		"events[0].ramp[0].over: the limits are reached 1h5m0s after the start":            {{After: 5 * time.Minute, Over: time.Hour, NewUsersPerMinute: 5}},
		"events[0].ramp[0].over: the limits are reached 10m0s after the start, and the":    {{Over: 10 * time.Minute, NewUsersPerMinute: 5}, {After: 5 * time.Minute, NewUsersPerMinute: 6}},
		"events[0].ramp: has 101 steps":                                                    make([]anteroom.Step, 101),
	} {
		active, perMinute := 400, 300
		e := anteroom.Event{Name: "drop", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour)), Ramp: ramp}
		e.TotalActiveUsers, e.NewUsersPerMinute = &active, &perMinute
		r := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "a.example"}}, Settings: anteroom.Settings{TotalActiveUsers: 600, NewUsersPerMinute: 400}, Events: []anteroom.Event{e}}.WithDefaults()
		var all []string
		for _, f := range e.Check() {
			all = append(all, "events[0]."+f.Path+": "+f.Problem)
		}
		for _, f := range r.CheckLimits() {
			all = append(all, f.Path+": "+f.Problem)
		}
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is not among %q", want, all)
		}
	}
}

// With nothing left, a room admits nobody new, whatever else is on; only a room that is off is off.
func TestSoldOutGoesBeforeEverything(t *testing.T) {
	now := anteroom.TimeOf(time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC))
	r := anteroom.Room{Name: "shop", Events: []anteroom.Event{{ID: "1", Name: "sale", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T12:00:00Z", Prequeue: "2026-11-27T09:00:00Z"}}}.WithDefaults()
	r.Controls.Paused = true
	for _, c := range []struct {
		left   anteroom.Remaining
		closed bool
	}{{anteroom.Remaining{}, false}, {anteroom.Remaining{Told: true, Count: 1}, false}, {anteroom.Remaining{Told: true}, true}} {
		r.Controls.Remaining = c.left
		f := r.At(now)
		if f.SoldOut() != c.closed || (f.QueueingMethod == anteroom.Reject) != c.closed || f.QueueAll == c.closed || f.Settings.Prequeueing == c.closed || f.Remaining != c.left {
			t.Errorf("%+v: sold out %v, method %s, queue all %v, prequeue %v", c.left, f.SoldOut(), f.QueueingMethod, f.QueueAll, f.Settings.Prequeueing)
		}
	}
	r.Suspended = true
	if f := r.At(now); !f.Suspended || f.QueueingMethod == anteroom.Reject {
		t.Errorf("suspended: %+v", f.Settings)
	}
	for _, bad := range []anteroom.Remaining{{Told: true, Count: -1}, {Told: true, Count: anteroom.MaxRemaining + 1}, {Count: 5}} {
		if (anteroom.Controls{Remaining: bad}).Check().Err() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}
