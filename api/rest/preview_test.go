package rest

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// previewed makes a preview of a page and returns its path.
func (in *installation) previewed(t *testing.T, html string) string {
	t.Helper()
	zones := in.ask(t, "GET", "/zones?name=example.com", "").Result.([]any)
	zone := ""
	if len(zones) == 0 {
		zone = in.created(t, "/zones", `{"name":"example.com"}`)
	} else {
		zone = zones[0].(map[string]any)["id"].(string)
	}
	a := in.ask(t, "POST", "/zones/"+zone+"/waiting_rooms/preview", `{"custom_html":"`+html+`"}`)
	url, _ := a.Result.(map[string]any)["preview_url"].(string)
	path, ok := strings.CutPrefix(url, "http://admin.example:8081")
	if !ok {
		t.Fatalf("%d %s", a.Status, a.Text)
	}
	return path
}

func (in *installation) look(method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	in.Preview(w, httptest.NewRequest(method, path, nil))
	return w
}

// TestPreviewsShowEveryState: the published query parameters, for an operator's page and for
// the built-in one.
func TestPreviewsShowEveryState(t *testing.T) {
	t.Parallel()
	in := open(t)
	own := in.previewed(t, `{{#queueAll}}all {{/queueAll}}{{#queueIsFull}}full {{/queueIsFull}}{{queueingMethod}} {{#waitTimeKnown}}{{waitTime}} {{/waitTimeKnown}}{{#isEventPrequeueing}}before{{/isEventPrequeueing}}{{#isEventActive}}{{^isEventPrequeueing}}during{{/isEventPrequeueing}}{{/isEventActive}}{{#shuffleAtEventStart}} shuffled{{/shuffleAtEventStart}}`)
	builtIn := in.previewed(t, "")
	for query, want := range map[string]string{
		"":                        "fifo 10 ",
		"?waitTime=7":             "fifo 7 ",
		"?force_queue=true":       "all fifo ",
		"?queue_is_full=true":     "full fifo ",
		"?queueing_method=random": "random 10 ",
		"?queueing_method=reject": "reject ",
		"?event=prequeueing":      "fifo before",
		"?event=started":          "fifo 10 during",
		"?event=none":             "fifo 10 ",
		"?event=prequeueing&shuffle_at_event_start=true":       "fifo before shuffled",
		"?queueing_method=passthrough&event=prequeueing":       "passthrough before",
		"?queueing_method=passthrough&force_queue=true":        "all passthrough ",
		"?queueing_method=random&waitTime=3&force_queue=0":     "random 3 ",
		"?unknown=1&waitTime=2&queue_is_full=false&event=none": "fifo 2 ",
	} {
		if w := in.look("GET", own+query); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", query, w.Code, w.Body, want)
		}
		w := in.look("GET", builtIn+query)
		if w.Code != 200 || !strings.Contains(w.Body.String(), "<!doctype html>") {
			t.Errorf("built-in %s: %d %.80q", query, w.Code, w.Body)
		}
	}
	for _, path := range []string{own, builtIn} {
		if w := in.look("GET", path+"?queueing_method=passthrough"); w.Code != 200 || !strings.Contains(w.Body.String(), "Welcome") {
			t.Errorf("passthrough: %d %q", w.Code, w.Body)
		}
	}
	if w := in.look("GET", builtIn+"?language=de-DE"); !strings.Contains(w.Body.String(), `lang="de`) {
		t.Errorf("language: %.80q", w.Body)
	}
	for _, query := range []string{"?event=over", "?waitTime=0", "?waitTime=soon", "?queueing_method=lifo", "?shuffle_at_event_start=true", "?force_queue=perhaps"} {
		if w := in.look("GET", own+query); w.Code != 400 || strings.Contains(w.Body.String(), "<") {
			t.Errorf("%s: %d %q", query, w.Code, w.Body)
		}
	}
}

// TestPreviewsAreSandboxed: whatever the answer is, scripts in it reach nothing else of the
// listener, and nothing is kept, framed in a request or told onwards.
func TestPreviewsAreSandboxed(t *testing.T) {
	t.Parallel()
	in := open(t)
	path := in.previewed(t, `<script>document.title=document.cookie</script>`)
	for target, status := range map[string]int{path: 200, path + "?event=over": 400, PreviewPath: 404, path + "/": 404, PreviewPath + "..%2f": 404,
		strings.ToUpper(path): 404, path[:len(path)-1] + "%31": 404, PreviewPath + "00000000-0000-4000-8000-000000000000": 404} {
		w := in.look("GET", target)
		h := w.Header()
		if w.Code != status || h.Get("Content-Security-Policy") != "sandbox allow-scripts; frame-ancestors 'self'" || h.Get("Cache-Control") != "no-store" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Set-Cookie") != "" || h.Get("Refresh") != "" {
			t.Errorf("%s: %d %v", target, w.Code, h)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w := in.look(method, path); w.Code != 405 || w.Header().Get("Allow") == "" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := in.look("HEAD", path); w.Code != 200 {
		t.Errorf("HEAD: %d", w.Code)
	}
}

// TestPreviewsAreBounded: in time, in number and in bytes; those made first go first.
func TestPreviewsAreBounded(t *testing.T) {
	t.Parallel()
	in := open(t)
	there := func(path string) bool { return in.look("GET", path).Code == 200 }

	old := in.previewed(t, "old")
	in.advance(previewLife - time.Second)
	young := in.previewed(t, "young")
	if !there(old) || !there(young) {
		t.Error("gone too early")
	}
	in.advance(time.Second)
	if there(old) || !there(young) {
		t.Error("an hour is over for one of two")
	}

	for range maxPreviews - 1 {
		in.previewed(t, "x")
	}
	if !there(young) {
		t.Error("as many as may be are too many")
	}
	next := in.previewed(t, "x")
	if there(young) || !there(next) {
		t.Error("one more does not take the place of the first")
	}

	const large = 400 << 10
	for range maxPreviewBytes / large {
		in.previewed(t, strings.Repeat("x", large))
	}
	if !there(next) {
		t.Error("as many bytes as may be are too many")
	}
	last := in.previewed(t, strings.Repeat("x", large))
	if there(next) || !there(last) {
		t.Error("more bytes do not take the place of the first")
	}
	if n := len(in.previews.all); n > maxPreviewBytes/large+1 {
		t.Errorf("%d are kept", n)
	}
}
