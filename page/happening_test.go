package page

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// during is a decision at noon of a room with an event that starts and ends at these
// distances.
func during(phase anteroom.Phase, start, end time.Duration, shuffle bool) anteroom.Decision {
	return anteroom.Decision{
		Reason: anteroom.ReasonWaiting, Method: anteroom.FIFO, At: noon, Refresh: 20 * time.Second,
		Ticket: anteroom.Ticket{ID: anteroom.ID{1}, LastCheckIn: noon},
		InForce: &anteroom.InForce{
			Phase: phase, Event: &anteroom.Event{ShuffleAtStart: shuffle},
			Occurrence: anteroom.Occurrence{Start: noon.Std().Add(start), End: noon.Std().Add(end)},
		},
	}
}

// The published example of an event that runs, and the other phases.
func TestJSONTellsOfEvents(t *testing.T) {
	const hour = time.Hour
	published := during(anteroom.Started, -hour, 15*time.Minute, true)
	published.Method, published.WaitKnown = anteroom.Random, true
	published.Wait25, published.WaitTime, published.Wait75 = 5*time.Minute, 10*time.Minute, 15*time.Minute
	of := func(d anteroom.Decision, change func(d *anteroom.Decision)) anteroom.Decision {
		change(&d)
		return d
	}
	for _, c := range []struct {
		name string
		d    anteroom.Decision
		want string // fields 8, 9, 12 to 23
	}{
		{"the published example", published, `false,false,"random",false,true,false,false,true,false,0,"unavailable",15,"15 minutes",true`},
		{"prequeue", during(anteroom.Prequeueing, 90*time.Second, hour, false),
			`false,false,"fifo",true,false,false,false,true,true,2,"2 minutes",60,"1 hour",false`},
		{"the last second", during(anteroom.Prequeueing, time.Second, hour, true),
			`false,false,"fifo",true,false,false,false,true,true,1,"1 minute",60,"1 hour",true`},
		{"hours", during(anteroom.Prequeueing, 2*hour+time.Minute, 26*hour, false),
			`false,false,"fifo",true,false,false,false,true,true,121,"2 hours 1 minute",1560,"26 hours",false`},
		{"prequeue, passthrough", of(during(anteroom.Prequeueing, hour, 2*hour, false), func(d *anteroom.Decision) { d.Method = anteroom.Passthrough }),
			`false,false,"passthrough",false,false,true,false,true,true,60,"1 hour",120,"2 hours",false`},
		{"prequeue of a reject event is not static", of(during(anteroom.Prequeueing, hour, 2*hour, false), func(d *anteroom.Decision) { d.Method = anteroom.Reject }),
			`false,false,"reject",false,false,false,false,true,true,60,"1 hour",120,"2 hours",false`},
		{"held in a prequeue", of(during(anteroom.Prequeueing, hour, 2*hour, false), func(d *anteroom.Decision) { d.QueueAll = true }),
			`false,true,"fifo",true,false,false,false,true,true,60,"1 hour",120,"2 hours",false`},
		{"after the sale", of(during(anteroom.Started, -hour, 30*time.Second, false), func(d *anteroom.Decision) {
			d.Verdict, d.Method, d.Refresh = anteroom.Refuse, anteroom.Reject, 0
		}), `false,false,"reject",false,false,false,true,true,false,0,"unavailable",1,"1 minute",false`},
		{"drained", anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonDraining, Method: anteroom.FIFO, At: noon},
			`false,false,"reject",false,false,false,true,false,false,0,"unavailable",0,"unavailable",false`},
		{"a forecast means nothing before the start", of(during(anteroom.Prequeueing, hour, 2*hour, false), func(d *anteroom.Decision) {
			d.WaitKnown, d.WaitTime = true, time.Minute
		}), `false,false,"fifo",true,false,false,false,true,true,60,"1 hour",120,"2 hours",false`},
	} {
		var object struct{ CfWaitingRoom map[string]json.RawMessage }
		if err := json.Unmarshal(AppendJSON(nil, &View{Decision: c.d}), &object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"queueIsFull", "queueAll", "queueingMethod", "isFIFOQueue", "isRandomQueue", "isPassthroughQueue", "isRejectQueue",
			"isEventActive", "isEventPrequeueing", "timeUntilEventStart", "timeUntilEventStartFormatted", "timeUntilEventEnd", "timeUntilEventEndFormatted", "shuffleAtEventStart"} {
			got = append(got, string(object.CfWaitingRoom[name]))
		}
		if all := strings.Join(got, ","); all != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, all, c.want)
		}
		if known := string(object.CfWaitingRoom["waitTimeKnown"]); (known == "true") != (c.name == "the published example") {
			t.Errorf("%s: waitTimeKnown is %s", c.name, known)
		}
	}
}

// Events follow the wall clock: a countdown is right whatever room time is.
func TestCountdownFollowsTheWallClock(t *testing.T) {
	d := during(anteroom.Prequeueing, 90*time.Minute, 3*time.Hour, false)
	v := View{Decision: d, Now: noon.Std().Add(time.Hour)}
	if out := string(AppendJSON(nil, &v)); !strings.Contains(out, `"timeUntilEventStart":30,`) {
		t.Error(out)
	}
	if out := string(AppendStatus(nil, &v)); !strings.Contains(out, `"start":1800,`) {
		t.Error(out)
	}
	page := string(AppendPage(nil, &v, false))
	for _, part := range []string{`id="prequeueTime">30 min<`, "Start: <time datetime=\"2020-08-04T01:16:00.000Z\">01:16 UTC</time>", "<title>(30 min) It has not started yet"} {
		if !strings.Contains(page, part) {
			t.Errorf("%s lacks %s", page, part)
		}
	}
}

func TestStatesOfEvents(t *testing.T) {
	early, line := during(anteroom.Prequeueing, time.Hour, 2*time.Hour, false), during(anteroom.Started, -time.Hour, time.Hour, true)
	of := func(d anteroom.Decision, change func(d *anteroom.Decision)) anteroom.Decision {
		change(&d)
		return d
	}
	for _, c := range []struct {
		d     anteroom.Decision
		state string
		start string
	}{
		{early, "prequeue", `"start":3600,"end":0`},
		{during(anteroom.Prequeueing, time.Hour, 2*time.Hour, true), "shuffle", `"start":3600,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.Method = anteroom.Random }), "shuffle", `"start":3600,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.Method = anteroom.Reject }), "prequeue", `"start":3600,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.QueueIsFull = true }), "prequeue", `"start":3600,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.QueueAll = true }), "held", `"start":0,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.Reason = anteroom.ReasonLineFull }), "full", `"start":0,"end":0`},
		{of(early, func(d *anteroom.Decision) { d.Reason, d.Verdict = anteroom.ReasonDraining, anteroom.Refuse }), "drained", `"start":0,"end":0`},
		{during(anteroom.Prequeueing, -time.Minute, time.Hour, false), "prequeue", `"start":1,"end":0`}, // a moment late
		{line, "line", `"start":0,"end":3600`},
		{of(line, func(d *anteroom.Decision) { d.Method = anteroom.Random }), "draw", `"start":0,"end":3600`},
		{of(line, func(d *anteroom.Decision) { d.Method = anteroom.Reject }), "closed", `"start":0,"end":3600`},
	} {
		out := string(AppendStatus(nil, &View{Decision: c.d}))
		if !strings.Contains(out, `"state":"`+c.state+`",`+c.start) {
			t.Errorf("want %s, %s: %s", c.state, c.start, out)
		}
	}
}

// While the order is still to be drawn a place means nothing, and nobody is shown one.
func TestNoPlaceBeforeTheDraw(t *testing.T) {
	d := during(anteroom.Prequeueing, time.Hour, 2*time.Hour, true)
	d.Ahead, d.AheadKnown = 7, true
	if out := string(AppendStatus(nil, &View{Decision: d})); !strings.Contains(out, `"ahead":null`) {
		t.Error(out)
	}
	if page := string(AppendPage(nil, &View{Decision: d}, false)); strings.Contains(page, `id="ahead">7`) {
		t.Error("the page shows a place")
	}
	d.InForce.Event.ShuffleAtStart = false
	if out := string(AppendStatus(nil, &View{Decision: d})); !strings.Contains(out, `"ahead":7`) {
		t.Error(out)
	}
}

// A start on another day is told with its date.
func TestFarStartHasADate(t *testing.T) {
	page := string(AppendPage(nil, &View{Decision: during(anteroom.Prequeueing, 50*time.Hour, 60*time.Hour, false)}, false))
	for _, part := range []string{`id="prequeueTime">50 h<`, ">2020-08-06 01:46 UTC</time>", "<title>It has not started yet"} {
		if !strings.Contains(page, part) {
			t.Errorf("%s lacks %s", page, part)
		}
	}
}
