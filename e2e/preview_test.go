package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// preview makes a preview and returns its address.
func (o *office) preview(html string) string {
	o.t.Helper()
	var made struct {
		URL string `json:"preview_url"`
	}
	o.good("POST", o.under("/preview"), fields{"custom_html": html}.String(), &made)
	return made.URL
}

func TestPreviewsShowEveryStateInTheBrowser(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	own := o.preview(`<!doctype html><title>Ours</title><p id="is">` +
		`{{#isFIFOQueue}}fifo {{/isFIFOQueue}}{{#isRandomQueue}}random {{/isRandomQueue}}{{#isPassthroughQueue}}passthrough {{/isPassthroughQueue}}{{#isRejectQueue}}reject {{/isRejectQueue}}` +
		`{{#queueAll}}held {{/queueAll}}{{#queueIsFull}}full {{/queueIsFull}}{{#isEventPrequeueing}}prequeueing {{/isEventPrequeueing}}{{#isEventActive}}event {{/isEventActive}}` +
		`{{#shuffleAtEventStart}}shuffled {{/shuffleAtEventStart}}{{#waitTimeKnown}}{{waitTime}} minutes{{/waitTimeKnown}}</p>`)
	builtin := o.preview("")
	b := open(t)
	for _, c := range []struct{ query, own, heading string }{
		{"", "fifo 10 minutes", "You are in line"},
		{"waitTime=95", "fifo 95 minutes", "You are in line"},
		{"force_queue=true", "fifo held", "Please wait a moment"},
		{"queue_is_full=true", "fifo full", "The line is very long"},
		{"queueing_method=random", "random 10 minutes", "You are in the draw"},
		{"queueing_method=reject", "reject", "Not available right now"},
		{"queueing_method=reject&force_queue=true", "held", "Please wait a moment"},
		{"queueing_method=passthrough&force_queue=true", "passthrough held", "Please wait a moment"},
		{"queueing_method=passthrough&event=prequeueing", "passthrough prequeueing event", "It has not started yet"},
		{"event=prequeueing", "fifo prequeueing event", "It has not started yet"},
		{"event=prequeueing&shuffle_at_event_start=true", "fifo prequeueing event shuffled", "It has not started yet"},
		{"event=started&queueing_method=random&waitTime=3", "random event 3 minutes", "You are in the draw"},
	} {
		b.visit(own + "?" + c.query)
		if got := strings.TrimSpace(b.text("#is")); got != c.own {
			t.Errorf("%s: our page says %q, want %q", c.query, got, c.own)
		}
		b.visit(builtin + "?" + c.query)
		if got := b.text("h1"); got != c.heading {
			t.Errorf("%s: the built-in page says %q, want %q", c.query, got, c.heading)
		}
	}
	for _, address := range []string{own, builtin} {
		b.visit(address + "?queueing_method=passthrough")
		if got := b.text("h1"); got != "Welcome" {
			t.Errorf("passthrough shows %q", got)
		}
	}
	// Nobody waits behind a preview: it asks nothing, comes back never and sets no cookie.
	b.visit(builtin)
	n := len(b.asked(func(request) bool { return true }))
	always(t, 2*time.Second, func() string {
		if now := len(b.asked(func(request) bool { return true })); now != n {
			return fmt.Sprintf("the preview asks:\n%v", b)
		}
		return ""
	})
	for _, a := range b.answers(builtin) {
		for name := range a.Headers {
			if strings.EqualFold(name, "Set-Cookie") || strings.EqualFold(name, "Refresh") {
				t.Errorf("the preview has the header %s", name)
			}
		}
	}
	for _, query := range []string{"event=later", "waitTime=0", "shuffle_at_event_start=true", "queueing_method=lifo", "force_queue=perhaps"} {
		if status, body := get(own + "?" + query); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, _ := get(own + "0"); status != http.StatusNotFound {
		t.Errorf("an address that nobody was given: %d", status)
	}
}

// A preview is somebody's markup on the operators' listener. Its script runs, and reaches
// nothing of what else is there: not the cookies, not the storage, not the API.
func TestPreviewsAreSandboxed(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	const spy = `<!doctype html><title>Spy</title><script>
		const say = (name, f) => { try { window[name] = String(f()); } catch (e) { window[name] = e.name; } };
		say('origin0', () => self.origin);
		say('cookie0', () => document.cookie);
		say('local0', () => localStorage.getItem('secret'));
		say('session0', () => sessionStorage.getItem('secret'));
		window.asked0 = fetch('/-/status').then(r => r.text()).catch(e => e.name);
		window.post0 = fetch('/client/v4/zones', {headers: {Authorization: 'Bearer x'}}).then(r => r.text()).catch(e => e.name);
	</script><iframe src="/-/status"></iframe>`
	address := o.preview(spy)
	b := open(t)
	// The operator has something to steal in the same browser.
	b.visit(o.adminScheme + "://" + o.admin + "/-/status")
	eval[bool](b, `(localStorage.setItem('secret', 'seed'), sessionStorage.setItem('secret', 'seed'), document.cookie = 'secret=seed', true)`)
	b.visit(address)
	for expression, want := range map[string]string{
		"origin0": "null", "cookie0": "SecurityError", "local0": "SecurityError", "session0": "SecurityError",
		"asked0": "TypeError", "post0": "TypeError",
	} {
		if got := eval[string](b, "Promise.resolve(window."+expression+")"); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	if got := eval[string](b, "document.title"); got != "Spy" {
		t.Errorf("the tab shows %q", got)
	}
}
