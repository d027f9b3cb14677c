package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var zone = anteroom.Zone{ID: anteroom.ZoneIDOf("example.com"), Name: "example.com"}

// watch is a detector with one room, looked at once a second.
type watch struct {
	*testing.T
	d     *Detector
	now   time.Time
	view  View
	hooks []anteroom.Webhook
	told  []Told
}

func watching(t *testing.T, hooks ...anteroom.Webhook) *watch {
	t.Parallel()
	d, err := NewDetector(Pace{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{T: t, d: d, now: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}
	for i, h := range hooks {
		h.ID, h.Name, h.URL = anteroom.WebhookID(fmt.Sprint(i)), "hook", "https://hooks.example.com/"
		w.hooks = append(w.hooks, h.WithDefaults())
	}
	room := anteroom.Room{ID: "room", Name: "checkout", Zone: "example.com"}
	w.view = View{Zone: zone, Room: &room, Status: anteroom.Status{TotalActiveUsers: 100, NewPerMinute: 60}}
	return w
}

// passes lets time pass while nothing changes, and returns the types of what was told, "0 room.queueing".
func (w *watch) passes(d time.Duration) string {
	w.Helper()
	var types []string
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
		for _, told := range w.d.Look(w.now, []View{w.view}, w.hooks, func(anteroom.RoomID) bool { return true }) {
			types = append(types, string(told.Webhook)+" "+told.Message.Type)
			w.told = append(w.told, told)
		}
	}
	slices.Sort(types)
	return strings.Join(types, ", ")
}

func (w *watch) expect(d time.Duration, want string) {
	w.Helper()
	if got := w.passes(d); got != want {
		w.Errorf("told %q, want %q", got, want)
	}
}

func (w *watch) last() Message { return w.told[len(w.told)-1].Message }

func only(events ...string) anteroom.Webhook { return anteroom.Webhook{Events: events} }

func TestQueueingAndRecovered(t *testing.T) {
	w := watching(t, only(anteroom.RoomQueueing, anteroom.RoomRecovered), only(anteroom.RoomRecovered))
	w.expect(time.Hour, "")
	w.view.Status.Waiting = 3
	w.expect(4*time.Second, "")
	w.view.Status.Waiting = 12
	w.expect(time.Minute, "0 room.queueing")
	if m := w.last(); m.Text != "checkout (example.com): visitors are waiting. 12 in the queue, 0 of 100 active users, 0 of 60 admitted in the last minute." ||
		m.Room.ID != "room" || m.Room.Zone.Name != "example.com" || m.Figures.Waiting != 12 || m.Figures.EstimateSeconds != nil {
		t.Errorf("%+v %+v %+v", m, m.Room, m.Figures)
	}
	w.view.Status.Waiting = 0
	w.expect(59*time.Second, "")
	w.view.Status.Waiting = 1
	w.expect(time.Second, "") // the line was not gone for long enough
	w.view.Status.Waiting = 0
	w.expect(61*time.Second, "0 room.recovered, 1 room.recovered")
	if m := w.last(); m.Line.Longest != 12 || m.Line.Seconds != 63+60 || !strings.Contains(m.Text, "the queue is empty. It lasted 2 minutes and had up to 12 visitors") {
		t.Errorf("%+v %+v", m.Line, m)
	}
	w.view.Status.Waiting = 2
	w.expect(time.Minute, "0 room.queueing")
}

// One visitor who waits for a moment now and then is no line that anybody needs to know of.
func TestAMomentIsNotTold(t *testing.T) {
	w := watching(t, anteroom.Webhook{})
	for range 10 {
		w.view.Status.Waiting = 1
		w.expect(2*time.Second, "")
		w.view.Status.Waiting = 0
		w.expect(2*time.Minute, "")
	}
}

func TestQueueLonger(t *testing.T) {
	w := watching(t, anteroom.Webhook{Events: []string{anteroom.RoomQueueLonger}, LongerThan: 100}, anteroom.Webhook{Events: []string{anteroom.RoomQueueLonger}, LongerThan: 1000})
	w.view.Status.Waiting = 100
	w.expect(time.Minute, "")
	w.view.Status.Waiting = 101
	w.expect(time.Minute, "0 room.queue_longer")
	w.view.Status.Waiting = 5000
	w.expect(time.Minute, "1 room.queue_longer")
	if m := w.last(); m.LongerThan != 1000 || !strings.Contains(m.Text, "more than 1000 visitors are waiting. 5000 in the queue") {
		t.Errorf("%+v", m)
	}
	w.view.Status.Waiting = 801 // around the bound nothing is told again
	w.expect(time.Second, "")
	w.view.Status.Waiting = 1001
	w.expect(time.Second, "")
	w.view.Status.Waiting = 800
	w.expect(time.Second, "")
	w.view.Status.Waiting = 1001
	w.expect(time.Second, "1 room.queue_longer")
}

func TestStuck(t *testing.T) {
	w := watching(t, only(anteroom.RoomStuck))
	w.view.Status.Waiting, w.view.Status.ActiveUsers = 5, 80
	w.expect(119*time.Second, "")
	w.expect(time.Minute, "0 room.stuck")
	if !strings.Contains(w.last().Text, "the queue is stuck. No visitor was admitted for 2 minutes, although 20 more could be admitted.") {
		t.Error(w.last().Text)
	}
	w.view.Status.AdmittedLastMin = 1
	w.expect(time.Hour, "")
	w.view.Status.AdmittedLastMin = 0
	w.expect(3*time.Minute, "0 room.stuck")
	for what, change := range map[string]func(*anteroom.Status){
		"full":      func(st *anteroom.Status) { st.ActiveUsers = 100 },
		"offered":   func(st *anteroom.Status) { st.Offered = 20 },
		"queue-all": func(st *anteroom.Status) { st.InForce = &anteroom.InForce{Settings: anteroom.Settings{QueueAll: true}} },
		"prequeue": func(st *anteroom.Status) {
			st.InForce = &anteroom.InForce{Settings: anteroom.Settings{Prequeueing: true}}
		},
		"reject": func(st *anteroom.Status) {
			st.InForce = &anteroom.InForce{Settings: anteroom.Settings{QueueingMethod: anteroom.Reject}}
		},
		"nobody waits":  func(st *anteroom.Status) { st.Waiting = 0 },
		"no rate slots": func(st *anteroom.Status) { st.NewPerMinute = 0 },
	} {
		before := w.view.Status
		w.view.Status.AdmittedLastMin = 1
		w.expect(2*time.Minute, "") // it is over
		w.view.Status.AdmittedLastMin = 0
		change(&w.view.Status)
		if got := w.passes(time.Hour); got != "" {
			t.Errorf("%s: told %s", what, got)
		}
		w.view.Status = before
	}
}

func TestLimitSaturated(t *testing.T) {
	w := watching(t, anteroom.Webhook{Events: []string{anteroom.RoomLimitSaturated}, SaturatedMinutes: 5}, only(anteroom.RoomLimitSaturated))
	w.view.Status.ActiveUsers = 94
	w.expect(time.Hour, "")
	w.view.Status.ActiveUsers, w.view.Status.Offered = 90, 5
	w.expect(5*time.Minute, "")
	w.expect(time.Second, "0 room.limit_saturated")
	if m := w.last(); m.Limit.Name != "total_active_users" || m.Limit.Minutes != 5 || m.Text != "checkout (example.com): at least 95 % of total_active_users has been in use for 5 minutes: 95 of 100." {
		t.Errorf("%+v %+v", m, m.Limit)
	}
	w.view.Status.ActiveUsers = 10 // for a moment
	w.expect(30*time.Second, "")
	w.view.Status.ActiveUsers = 100
	w.expect(5*time.Minute, "1 room.limit_saturated")
	w.view.Status.AdmittedLastMin = 60
	w.expect(6*time.Minute, "0 room.limit_saturated")
	if m := w.last(); m.Limit.Name != "new_users_per_minute" {
		t.Errorf("%+v", m.Limit)
	}
	w.view.Status.InForce = &anteroom.InForce{Settings: anteroom.Settings{QueueingMethod: anteroom.Passthrough}}
	w.expect(2*time.Minute, "")
	w.view.Status.InForce = nil
	w.expect(6*time.Minute, "0 room.limit_saturated, 0 room.limit_saturated")
}

func TestEventStarting(t *testing.T) {
	w := watching(t, only(anteroom.RoomEventStarting), anteroom.Webhook{Events: []string{anteroom.RoomEventStarting}, MinutesBefore: 60})
	w.view.Room.Events = []anteroom.Event{
		{ID: "e", Name: "drop", Start: "2026-11-27T11:00:00Z", End: "2026-11-27T12:00:00Z", Prequeue: "2026-11-27T10:30:00Z", Repeat: anteroom.Repeat{Every: anteroom.EveryDay, Times: 2}},
		{ID: "s", Name: "off", Start: "2026-11-27T11:00:00Z", End: "2026-11-27T12:00:00Z", Suspended: true},
	}
	w.expect(time.Hour, "") // until 10:00
	w.expect(44*time.Minute, "1 room.event_starting")
	w.expect(2*time.Minute, "0 room.event_starting")
	if m := w.last(); m.Event.Name != "drop" || m.Event.Number != 0 || m.Event.Prequeue == nil ||
		m.Text != "checkout (example.com): the event drop starts in 15 minutes, at 2026-11-27 11:00 UTC. Its prequeue starts at 2026-11-27 10:30 UTC." {
		t.Errorf("%+v %+v", m, m.Event)
	}
	w.view.Room.Events[0].Start = "2026-11-27T11:05:00Z" // it is another start now
	w.expect(30*time.Second, "1 room.event_starting")
	w.expect(48*time.Hour, "0 room.event_starting, 0 room.event_starting, 1 room.event_starting")
	if m := w.last(); m.Event.Number != 1 {
		t.Errorf("%+v", m.Event)
	}
}

// What a webhook does not want, or is not about, it is not told.
func TestWhoIsTold(t *testing.T) {
	w := watching(t, anteroom.Webhook{}, anteroom.Webhook{Zone: zone.ID}, anteroom.Webhook{Zone: zone.ID, Room: "room"},
		anteroom.Webhook{Zone: zone.ID, Room: "other"}, anteroom.Webhook{Zone: "other"}, only(anteroom.ConfigChanged))
	w.view.Status.Waiting, w.view.Status.ActiveUsers = 2000, 100
	w.expect(time.Minute, "0 room.queue_longer, 0 room.queueing, 1 room.queue_longer, 1 room.queueing, 2 room.queue_longer, 2 room.queueing")
	w.view.Room.Suspended = true
	w.expect(2*time.Minute, "0 room.recovered, 1 room.recovered, 2 room.recovered")
}

// Another process goes on where this one was: nothing is told twice, and recovery is.
func TestADetectorGoesOn(t *testing.T) {
	w := watching(t, anteroom.Webhook{SaturatedMinutes: 1})
	w.view.Room.Events = []anteroom.Event{{ID: "e", Name: "drop", Start: "2026-11-27T09:10:00Z", End: "2026-11-27T12:00:00Z"}}
	w.view.Status.Waiting, w.view.Status.ActiveUsers = 2000, 100
	w.expect(2*time.Minute, "0 room.event_starting, 0 room.limit_saturated, 0 room.queue_longer, 0 room.queueing")
	saved, changed := w.d.Save()
	if !changed {
		t.Fatal("nothing to save")
	}
	if _, changed := w.d.Save(); changed {
		t.Error("it is to be saved again")
	}
	var err error
	if w.d, err = NewDetector(Pace{}, saved); err != nil {
		t.Fatal(err)
	}
	w.expect(2*time.Minute, "")
	w.view.Status = anteroom.Status{TotalActiveUsers: 100, NewPerMinute: 60}
	w.expect(2*time.Minute, "0 room.recovered")
	if _, changed := w.d.Save(); !changed {
		t.Error("what has ended is not saved")
	}
	if d, err := NewDetector(Pace{}, []byte("[]")); err == nil || d == nil {
		t.Error("damage is not told, or the detector does not begin anew")
	}
	if told := w.d.Look(w.now, nil, w.hooks, func(anteroom.RoomID) bool { return false }); told != nil || len(w.d.rooms) != 0 {
		t.Error("rooms that are gone are kept")
	}
}

func FuzzDetector(f *testing.F) {
	f.Add([]byte(`{"room":{"queue":{"told":true},"hooks":{"0":null},"starts":{"0":null}},"x":null}`))
	f.Fuzz(func(t *testing.T, saved []byte) {
		d, _ := NewDetector(Pace{}, saved)
		room := anteroom.Room{ID: "room", Events: []anteroom.Event{{ID: "e", Start: "2026-11-27T09:10:00Z", End: "2026-11-27T12:00:00Z"}}}
		hook := anteroom.Webhook{ID: "0"}.WithDefaults()
		d.Look(time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC), []View{{zone, &room, anteroom.Status{Waiting: 2000}}}, []anteroom.Webhook{hook}, func(anteroom.RoomID) bool { return true })
		d.Save()
	})
}

func TestFormats(t *testing.T) {
	t.Parallel()
	m := Message{ID: "1", Type: anteroom.RoomQueueing, Text: "a <b> & *c* <!channel>"}
	for format, want := range map[string]string{
		anteroom.FormatSlack: `{"text":"a &lt;b&gt; &amp; *c* &lt;!channel&gt;"}`,
		anteroom.FormatTeams: `{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","body":[{"inlines":[{"text":"a <b> & *c* <!channel>","type":"TextRun"}],"type":"RichTextBlock"}],"type":"AdaptiveCard","version":"1.4"},"contentType":"application/vnd.microsoft.card.adaptive"}],"type":"message"}`,
	} {
		got, err := m.Body(format)
		var a, b any
		if err != nil || json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s: %s, %v", format, got, err)
		}
	}
	if _, err := m.Body("xml"); err == nil {
		t.Error("xml is a format")
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	hooks := []anteroom.Webhook{{ID: "all"}, {ID: "zone", Zone: zone.ID}, {ID: "other", Zone: "other"}, {ID: "queues", Events: []string{anteroom.RoomQueueing}}}
	c := Change{Seq: 7, Actor: "terraform", Operation: "room.change", Object: "room", Name: "checkout", Fields: []Field{{"room.total_active_users", "500", "800"}, {"room.description", "", `"new"`}}, Omitted: 3}
	about := &Room{Named{"room", "checkout"}, Named{string(zone.ID), zone.Name}}
	told := Changed(c, time.Unix(0, 0), zone.ID, "room", about, hooks)
	if len(told) != 2 || told[0].Webhook != "all" || told[1].Webhook != "zone" || told[0].Message.Change.Seq != 7 || told[0].Message.ID == told[1].Message.ID ||
		told[0].Message.Text != `terraform changed the room checkout: room.total_active_users 500 → 800; room.description nothing → "new"; 3 more` {
		t.Errorf("%+v", told)
	}
	if told := Changed(Change{Actor: "first", Operation: "keys.rotate"}, time.Unix(0, 0), "", "", nil, hooks); len(told) != 1 || told[0].Webhook != "all" || told[0].Message.Text != "first rotated the keys" {
		t.Errorf("%+v", told)
	}
}
