package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// inEvent is line, or the origin's door for who has a session, while an event is in force.
func inEvent(event *anteroom.Event, phase anteroom.Phase, settings anteroom.Settings) func(anteroom.Visit) anteroom.Decision {
	return func(v anteroom.Visit) anteroom.Decision {
		d := line(v)
		if v.Ticket.Accepted() {
			d = admit(v)
			d.SetCookie = true
		}
		now := time.Now()
		d.InForce = &anteroom.InForce{Settings: settings, Phase: phase, Event: event,
			Occurrence: anteroom.Occurrence{Start: now.Add(85 * time.Second), End: now.Add(time.Hour - 30*time.Second)}}
		d.Method = settings.QueueingMethod
		switch {
		case d.Verdict != anteroom.Wait:
		case phase == anteroom.Prequeueing:
			d.Reason, d.WaitKnown = anteroom.ReasonPrequeue, false
		case settings.QueueingMethod == anteroom.Reject:
			d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: d.At, InForce: d.InForce}
		}
		return d
	}
}

func compiled(t *testing.T, html string) *page.Template {
	t.Helper()
	c, err := page.Compile(html)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEventsHaveTheirOwnPage(t *testing.T) {
	own, none, other := "an event's own", "", "not compiled yet"
	event := func(html *string) *anteroom.Event {
		return &anteroom.Event{ID: "25756b2dfe6e378a06b033b670413757", Overrides: anteroom.Overrides{CustomPageHTML: html}}
	}
	unknown := event(&other)
	unknown.ID = "00000000000000000000000000000000"
	for _, c := range []struct {
		name  string
		event *anteroom.Event
		want  string
	}{
		{"the event's", event(&own), "sale in 2 min"},
		{"none of its own", event(nil), "the room's"},
		{"explicitly the built-in one", event(&none), "It has not started yet"},
		{"not known here yet", unknown, "the room's"},
	} {
		w := newWorld(t, inEvent(c.event, anteroom.Prequeueing, anteroom.Settings{QueueingMethod: anteroom.FIFO}), func(w *world, cfg *Config) {
			id := cfg.Rooms[0].WithDefaults().ID
			cfg.Templates = map[anteroom.RoomID]*page.Template{id: compiled(t, "the room's")}
			cfg.EventTemplates = map[EventKey]*page.Template{{id, event(nil).ID}: compiled(t, "sale in {{timeUntilEventStart}} min")}
		})
		res, body := w.do("GET", "/", nil)
		if !strings.Contains(body, c.want) {
			t.Errorf("%s: %.200s", c.name, body)
		}
		builtin := strings.Contains(body, `id="wrapper"`)
		if policy := res.Header.Get("Content-Security-Policy"); (policy != "") != builtin {
			t.Errorf("%s: policy %q", c.name, policy)
		}
	}
}

// After the sale: a static page of the event's own with the room's status, and no refresh.
func TestRejectPageOfAnEvent(t *testing.T) {
	html := "sold"
	event := &anteroom.Event{ID: "25756b2dfe6e378a06b033b670413757", Overrides: anteroom.Overrides{CustomPageHTML: &html}}
	for _, status := range []int{200, 202, 429} {
		w := newWorld(t, inEvent(event, anteroom.Started, anteroom.Settings{QueueingMethod: anteroom.Reject}),
			withRoom(func(r *anteroom.Room) { r.QueueingStatusCode, r.JSONResponse = status, true }),
			func(w *world, cfg *Config) {
				cfg.EventTemplates = map[EventKey]*page.Template{{cfg.Rooms[0].WithDefaults().ID, event.ID}: compiled(t, "sold out; {{refreshIntervalSeconds}}, {{timeUntilEventEnd}}, {{isRejectQueue}}")}
			})
		res, body := w.do("GET", "/", nil)
		if res.StatusCode != status || body != "sold out; 0, 60, true" || res.Header.Get("Refresh") != "" || res.Header.Get("Retry-After") != "" || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%d: %s %v %s", status, res.Status, res.Header, body)
		}
		res, body = w.do("GET", "/", header("Accept", "application/json"))
		var object struct{ CfWaitingRoom map[string]any }
		if err := json.Unmarshal([]byte(body), &object); err != nil || res.StatusCode != status {
			t.Fatalf("%s %s", res.Status, body)
		}
		for name, want := range map[string]any{"refreshIntervalSeconds": 0.0, "isRejectQueue": true, "isEventActive": true, "timeUntilEventEnd": 60.0, "queueingMethod": "reject"} {
			if got := object.CfWaitingRoom[name]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if _, body := w.do("GET", "/", header("Accept", "application/json, text/html")); strings.HasPrefix(body, "{") {
			t.Error("JSON for another Accept")
		}
	}
}

// The prequeue is a page that comes back, whatever the method, and its JSON counts down.
func TestPrequeueOverHTTP(t *testing.T) {
	for _, method := range anteroom.QueueingMethods {
		w := newWorld(t, inEvent(&anteroom.Event{ShuffleAtStart: true}, anteroom.Prequeueing, anteroom.Settings{QueueingMethod: method}),
			withRoom(func(r *anteroom.Room) { r.JSONResponse = true }))
		res, body := w.do("GET", "/", nil)
		if res.Header.Get("Refresh") != "20" || !strings.Contains(body, `id="prequeueTime">2 min<`) || !strings.Contains(body, page.VerifyPath) {
			t.Errorf("%s: Refresh %q, %.300s", method, res.Header.Get("Refresh"), body)
		}
		_, body = w.do("GET", "/", header("Accept", "application/json"))
		for _, part := range []string{`"isEventPrequeueing":true,"timeUntilEventStart":2,"timeUntilEventStartFormatted":"2 minutes","timeUntilEventEnd":60,`,
			`"waitTimeKnown":false`, `"queueAll":false`, `"shuffleAtEventStart":true`, `"queueingMethod":"` + string(method) + `"`} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: %s lacks %s", method, body, part)
			}
		}
		_, body = w.do("GET", "/?__anteroom=status", nil)
		if !strings.Contains(body, `"start":8`) {
			t.Errorf("%s: the status does not count down: %s", method, body)
		}
	}
}

// A session lasts as long as the event says, and so does its cookie.
func TestCookieLivesByTheEventsSession(t *testing.T) {
	w := newWorld(t, inEvent(&anteroom.Event{}, anteroom.Started, anteroom.Settings{SessionDuration: 11 * time.Minute}),
		withRoom(func(r *anteroom.Room) { r.SessionDuration = time.Minute }))
	res, _ := w.do("GET", "/", header("Cookie", w.seal(session())))
	if got := res.Header.Get("Set-Cookie"); !strings.Contains(got, "; Max-Age=1320;") {
		t.Errorf("Set-Cookie %q, want Max-Age=1320", got)
	}
	w = newWorld(t, admit, withRoom(func(r *anteroom.Room) { r.SessionDuration = time.Minute }))
	res, _ = w.do("GET", "/", nil)
	if got := res.Header.Get("Set-Cookie"); !strings.Contains(got, "; Max-Age=120;") {
		t.Errorf("Set-Cookie %q, want Max-Age=120", got)
	}
}

// The page of a visitor in line comes back while a room rejects; what others read is as published: no interval in JSON, none for a
// custom page.
func TestRejectsHaveNoIntervalForOthers(t *testing.T) {
	reject := func(v anteroom.Visit) anteroom.Decision {
		d := line(v)
		d.Verdict, d.Reason, d.Method = anteroom.Refuse, anteroom.ReasonReject, anteroom.Reject
		return d
	}
	for _, c := range []struct {
		name, accept, html string
		refresh, says      string
	}{
		{"built-in page", "text/html", "", "20", "updates automatically"},
		{"JSON", "application/json", "", "", `"refreshIntervalSeconds":0,`},
		{"custom page", "text/html", "<p>{{#isRejectQueue}}closed{{/isRejectQueue}}, {{refreshIntervalSeconds}}</p>", "", "closed, 0"},
	} {
		w := newWorld(t, reject, withRoom(func(rm *anteroom.Room) { rm.JSONResponse = true }), func(_ *world, cfg *Config) {
			if c.html != "" {
				cfg.Templates = map[anteroom.RoomID]*page.Template{cfg.Rooms[0].WithDefaults().ID: compiled(t, c.html)}
			}
		})
		res, body := w.do("GET", "/", header("Accept", c.accept))
		if got := res.Header.Get("Refresh"); got != c.refresh || !strings.Contains(body, c.says) {
			t.Errorf("%s: Refresh %q, want %q; the body is to say %s: %.300s", c.name, got, c.refresh, c.says, body)
		}
	}
}
