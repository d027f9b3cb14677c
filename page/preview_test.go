package page

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var previewNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func parsePreview(t *testing.T, query string) PreviewOptions {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParsePreview(values)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return o
}

func TestPreviewShowsEveryState(t *testing.T) {
	for query, want := range map[string]string{
		"":                       "You are in line",
		"queueing_method=random": "The order is random",
		"queueing_method=RANDOM": "The order is random",
		"queueing_method=reject": "Not available right now",
		"queue_is_full=true":     "The line is very long",
		"force_queue=true":       "Please wait a moment",
		"force_queue=true&queueing_method=passthrough":                    "Please wait a moment",
		"force_queue=1&queueing_method=reject":                            "Please wait a moment",
		"event=prequeueing":                                               "It has not started yet",
		"event=prequeueing&shuffle_at_event_start=true":                   "arriving early gives no advantage",
		"event=prequeueing&queueing_method=reject":                        "It has not started yet",
		"event=prequeueing&queueing_method=passthrough":                   "It has not started yet",
		"event=prequeueing&force_queue=true":                              "Please wait a moment",
		"event=started":                                                   "End of the event",
		"event=started&queueing_method=reject":                            "Not available right now",
		"event=started&shuffle_at_event_start=true":                       "How to verify the random order",
		"event=none&shuffle_at_event_start=false&force_queue=false&utm=x": "You are in line",
	} {
		v, through := parsePreview(t, query).View(nil, "en-US", previewNow)
		if page := string(AppendPage(nil, &v, false)); through || !strings.Contains(page, want) {
			t.Errorf("%s: through %v, %q is not there", query, through, want)
		}
		if n := RefreshSeconds(&v); n != 0 {
			t.Errorf("%s: refreshes every %d s", query, n)
		}
		if status := string(AppendStatus(nil, &v)); !strings.Contains(status, `"refresh":0`) {
			t.Errorf("%s: the script would ask: %s", query, status)
		}
	}
}

func TestPreviewOfPassthroughIsTheApplication(t *testing.T) {
	for _, query := range []string{"queueing_method=passthrough", "queueing_method=passthrough&event=started", "queueing_method=passthrough&queue_is_full=true"} {
		if _, through := parsePreview(t, query).View(nil, "", previewNow); !through {
			t.Errorf("%s: a waiting page", query)
		}
	}
	if page := string(AppendWelcome(nil)); !strings.Contains(page, "<h1>Welcome</h1>") {
		t.Error(page)
	}
}

// What an operator's page is told in a preview, as the published parameters say.
func TestPreviewVariables(t *testing.T) {
	show, err := Compile("{{waitTimeKnown}} {{waitTime}} {{waitTimeFormatted}}|{{queueAll}} {{queueIsFull}}|{{queueingMethod}} {{isRejectQueue}} {{isPassthroughQueue}}|" +
		"{{isEventActive}} {{isEventPrequeueing}} {{timeUntilEventStart}} {{timeUntilEventStartFormatted}} {{timeUntilEventEnd}} {{shuffleAtEventStart}}|{{refreshIntervalSeconds}}")
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                                  "true 10 10 minutes|false false|fifo false false|false false 0 unavailable 0 false|20",
		"waitTime=75":                       "true 75 More than 1 hour|false false|fifo false false|false false 0 unavailable 0 false|20",
		"queue_is_full=true":                "false 0 unavailable|false true|fifo false false|false false 0 unavailable 0 false|20",
		"queueing_method=random":            "true 10 5 minutes to 15 minutes|false false|random false false|false false 0 unavailable 0 false|20",
		"queueing_method=reject":            "false 0 unavailable|false false|reject true false|false false 0 unavailable 0 false|0",
		"event=started":                     "true 10 10 minutes|false false|fifo false false|true false 0 unavailable 15 false|20",
		"event=prequeueing":                 "false 0 unavailable|false false|fifo false false|true true 15 15 minutes 75 false|20",
		"queueing_method=random&event=none": "true 10 5 minutes to 15 minutes|false false|random false false|false false 0 unavailable 0 false|20",
		"force_queue=true&queueing_method=passthrough&event=prequeueing&shuffle_at_event_start=true": "false 0 unavailable|true false|passthrough false true|true true 15 15 minutes 75 true|20",
	} {
		v, _ := parsePreview(t, query).View(show, "de-DE", previewNow)
		if got := string(AppendPage(nil, &v, false)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
}

func TestFaultsOfPreviews(t *testing.T) {
	for query, path := range map[string]string{
		"force_queue=yes":                        "force_queue",
		"force_queue=":                           "force_queue",
		"queue_is_full=2":                        "queue_is_full",
		"queueing_method=lifo":                   "queueing_method",
		"queueing_method=":                       "queueing_method",
		"event=over":                             "event",
		"shuffle_at_event_start=true":            "shuffle_at_event_start",
		"shuffle_at_event_start=true&event=none": "shuffle_at_event_start",
		"waitTime=0":                             "waitTime",
		"waitTime=-1":                            "waitTime",
		"waitTime=1.5":                           "waitTime",
		"waitTime=ten":                           "waitTime",
		"waitTime=99999999999999999999":          "waitTime",
		"waitTime=1&waitTime=2":                  "waitTime",
	} {
		values, _ := url.ParseQuery(query)
		_, err := ParsePreview(values)
		var faults anteroom.Faults
		if !errors.As(err, &faults) || anteroom.KindOf(err) != anteroom.Invalid || len(faults) != 1 || faults[0].Path != path || faults[0].Fix == "" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// No query, however odd, makes a preview that breaks.
func FuzzPreview(f *testing.F) {
	for _, seed := range []string{"force_queue=true", "queue_is_full=1&waitTime=10", "event=prequeueing&shuffle_at_event_start=true", "queueing_method=reject", "a=b&&;=%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, _ := url.ParseQuery(query)
		o, err := ParsePreview(values)
		if err != nil {
			if anteroom.KindOf(err) != anteroom.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		for _, language := range anteroom.Languages[:3] {
			v, _ := o.View(nil, language, previewNow)
			if out := AppendJSON(nil, &v); !json.Valid(out) {
				t.Errorf("not JSON: %s", out)
			}
			AppendPage(nil, &v, true)
		}
	})
}

// TestPreviewOfAState: every state that there is has a preview, at the moment of the look.
func TestPreviewOfAState(t *testing.T) {
	for _, s := range States() {
		v, through := parsePreview(t, "state="+s.Name+"&force_queue=true").View(nil, "en-US", previewNow)
		page, want := string(AppendPage(nil, &v, false)), string(AppendPage(nil, &View{Decision: s.Decision, Returning: true, Preview: true}, false))
		title := func(page string) string {
			_, page, _ = strings.Cut(page, "<title>")
			page, _, _ = strings.Cut(page, "<")
			return page
		}
		if through || title(page) != title(want) || !strings.Contains(page, `"refresh":0`) {
			t.Errorf("%s: through %v, %q, want %q", s.Name, through, title(page), title(want))
		}
		if strings.Contains(page, "14:27 UTC") {
			t.Errorf("%s shows another day's moments", s.Name)
		}
	}
	if _, err := ParsePreview(url.Values{"state": {"<b>"}}); err == nil || !strings.Contains(err.Error(), "line, first") {
		t.Errorf("an unknown state: %v", err)
	}
}
