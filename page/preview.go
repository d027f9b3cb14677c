package page

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// PreviewOptions are what a preview shows: the published query parameters of its address.
type PreviewOptions struct {
	// ForceQueue shows the line held by the operator (force_queue).
	ForceQueue bool
	// QueueIsFull shows a wait of more than a day (queue_is_full).
	QueueIsFull bool
	// Method is the queueing method in force (queueing_method); empty means FIFO.
	Method anteroom.QueueingMethod
	// Event is how far an event is (event).
	Event anteroom.Phase
	// ShuffleAtEventStart is the event's (shuffle_at_event_start); not without an event.
	ShuffleAtEventStart bool
	// State is the name of one of [States] (state); it goes before everything else.
	State string
	// WaitTime is the forecast (waitTime), in whole minutes; zero means 10 minutes.
	WaitTime time.Duration
}

const (
	previewWait = 10 * time.Minute
	// maxPreviewMinutes is a year: more is told no differently.
	maxPreviewMinutes = 366 * oneDay
	// previewStart and previewEnd are how far away an event's start and end are made up to be.
	previewStart, previewEnd = 15 * time.Minute, 15 * time.Minute
)

// ParsePreview reads the query of a preview's address. What is not given has its default;
// parameters that it does not know are left alone. The error is of kind Invalid and holds
// [anteroom.Faults] with the parameters as paths.
func ParsePreview(query url.Values) (PreviewOptions, error) {
	var o PreviewOptions
	var faults anteroom.Faults
	fault := func(name, problem, fix string) {
		faults = append(faults, anteroom.Fault{Path: name, Problem: problem, Fix: fix})
	}
	value := func(name string) (string, bool) {
		all := query[name]
		if len(all) > 1 {
			fault(name, fmt.Sprintf("is given %d times", len(all)), "give it once")
			return "", false
		}
		return strings.Join(all, ""), len(all) == 1
	}
	flag := func(name string, to *bool) {
		v, ok := value(name)
		if !ok {
			return
		}
		switch strings.ToLower(v) {
		case "true", "1":
			*to = true
		case "false", "0":
		default:
			fault(name, fmt.Sprintf("%.40q is not a boolean", v), "true or false")
		}
	}
	flag("force_queue", &o.ForceQueue)
	flag("queue_is_full", &o.QueueIsFull)
	flag("shuffle_at_event_start", &o.ShuffleAtEventStart)
	if v, ok := value("queueing_method"); ok {
		o.Method = anteroom.QueueingMethod(strings.ToLower(v))
		if !slices.Contains(anteroom.QueueingMethods, o.Method) {
			fault("queueing_method", fmt.Sprintf("%.40q is not a method", v), "fifo, random, passthrough or reject")
		}
	}
	if v, ok := value("event"); ok {
		switch strings.ToLower(v) {
		case anteroom.NoEvent.String():
		case anteroom.Prequeueing.String():
			o.Event = anteroom.Prequeueing
		case anteroom.Started.String():
			o.Event = anteroom.Started
		default:
			fault("event", fmt.Sprintf("%.40q is not a phase", v), "none, prequeueing or started")
		}
	}
	if o.ShuffleAtEventStart && o.Event == anteroom.NoEvent {
		fault("shuffle_at_event_start", "is true without an event", "set event to prequeueing or started")
	}
	if v, ok := value("state"); ok {
		o.State = v
		if !slices.ContainsFunc(States(), func(s State) bool { return s.Name == v }) {
			fault("state", fmt.Sprintf("%.40q is not a state", v), "one of "+strings.Join(StateNames(), ", "))
		}
	}
	if v, ok := value("waitTime"); ok {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil || n == 0 {
			fault("waitTime", fmt.Sprintf("%.40q is not a number of minutes", v), "a positive integer")
		}
		o.WaitTime = time.Duration(min(n, maxPreviewMinutes)) * time.Minute
	}
	if err := faults.Err(); err != nil {
		return PreviewOptions{}, err
	}
	return o, nil
}

// View returns the view of a made-up visitor at a moment, with an operator's page or, for
// nil, the built-in one. The page's script asks nothing and nothing refreshes. Passthrough
// says that no visitor would see a waiting page: [AppendWelcome] is what there is to show.
func (o PreviewOptions) View(t *Template, language string, now time.Time) (v View, passthrough bool) {
	at := anteroom.TimeOf(now)
	v = View{Template: t, Language: language, Now: now, Returning: true, Preview: true}
	d := &v.Decision
	for _, s := range statesAt(at) {
		if s.Name == o.State {
			*d = s.Decision
			return v, false
		}
	}
	*d = anteroom.Decision{
		Reason: anteroom.ReasonWaiting, Method: o.Method, At: at, QueueAll: o.ForceQueue, QueueIsFull: o.QueueIsFull,
		Ticket: anteroom.Ticket{
			ID:      anteroom.ID{0x3f, 0x9a, 0x1c, 0x07, 0xbe, 15: 1},
			Arrival: at.Add(-4 * time.Minute), LastCheckIn: at,
		},
		Refresh: 20 * time.Second, KeptUntil: at.Add(20*time.Second + anteroom.DefaultPlaceHold),
	}
	if d.Method == "" {
		d.Method = anteroom.FIFO
	}
	wait := o.WaitTime
	if wait == 0 {
		wait = previewWait
	}
	perMinute := 100
	d.Ahead, d.AheadKnown = perMinute*int(wait/time.Minute), d.Method != anteroom.Random
	d.Waiting = 4 * d.Ahead
	if !o.QueueIsFull && !o.ForceQueue && o.Event != anteroom.Prequeueing {
		d.WaitKnown, d.WaitTime = true, wait
		if d.Method == anteroom.Random {
			d.Wait25, d.Wait75 = wait/2, wait+wait/2
		}
	}
	switch o.Event {
	case anteroom.NoEvent:
	case anteroom.Prequeueing:
		d.Reason = anteroom.ReasonPrequeue
		d.InForce = o.during(anteroom.Occurrence{Start: now.Add(previewStart), End: now.Add(previewStart + time.Hour)})
	case anteroom.Started:
		d.InForce = o.during(anteroom.Occurrence{Start: now.Add(-time.Hour), End: now.Add(previewEnd)})
	}
	if o.ForceQueue {
		d.Reason = anteroom.ReasonQueueAll
	}
	if o.ForceQueue || o.Event == anteroom.Prequeueing {
		return v, false
	}
	if d.Method == anteroom.Reject {
		*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: at,
			QueueIsFull: o.QueueIsFull, InForce: d.InForce}
	}
	return v, d.Method == anteroom.Passthrough
}

func (o PreviewOptions) during(t anteroom.Occurrence) *anteroom.InForce {
	return &anteroom.InForce{Phase: o.Event, Occurrence: t, Event: &anteroom.Event{ShuffleAtStart: o.ShuffleAtEventStart}}
}

// AppendWelcome appends the page that stands for the application in a preview of a room
// whose method lets everybody through.
func AppendWelcome(dst []byte) []byte {
	return append(dst, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<title>Welcome</title></head><body><h1>Welcome</h1><p>Nobody waits: this stands for your application.</p></body></html>`+"\n"...)
}
