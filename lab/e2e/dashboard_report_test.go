package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An operator reads what came of a surge: in the page, as a page of its own, and as figures.
func TestDashboardReadTheReport(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := busyRoom(t, o, 7)
	o.change(id, fields{"session_duration": 6})
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "report?range=1h"))
	d.becomes(10*time.Second, `document.querySelector('iframe.report')?.src.includes('format=html')`)
	if !eval[bool](d.tab, `document.querySelector('iframe.report').getAttribute('sandbox') === 'allow-same-origin'`) {
		t.Error("the report is framed without a sandbox")
	}
	// No script is in the frame, and the page scrolls instead of it.
	d.becomes(10*time.Second, `(r => r && r.scripts.length == 0 && r.body.innerText.includes('All times are') && r.documentElement.scrollHeight <= r.defaultView.innerHeight)(document.querySelector('iframe.report').contentDocument)`)
	page := d.href("Open the report")
	report := d.another()
	eventually(t, 15*time.Second, func() string {
		report.visit(page)
		if text := eval[string](report, "document.body.innerText"); !strings.Contains(text, "session_duration") {
			return "the report does not say who changed what: " + tail(text, 1500)
		}
		return ""
	})
	text := eval[string](report, "document.body.innerText")
	for _, want := range []string{"checkout", "5"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report says nothing of %q: %s", want, text)
		}
	}
	if n := eval[int](report, "document.querySelectorAll('svg').length"); n == 0 {
		t.Error("the report has no chart")
	}
	if n := eval[int](report, "document.scripts.length"); n != 0 {
		t.Errorf("the report has %d scripts", n)
	}
	eval[bool](report, `(() => { const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s); s.remove(); return true })()`)
	if eval[bool](report, "window.ran === true") {
		t.Error("a script ran in the report")
	}
	// Nothing runs in the report itself, the checker neither: it looks at the same elements elsewhere.
	paper := eval[string](report, "document.documentElement.outerHTML")
	copied := open(t)
	copied.visit("about:blank")
	eval[bool](copied, `document.open(), document.write(`+quoted("<!doctype html>"+paper)+`), document.close(), true`)
	for _, v := range copied.violations(axe(t)) {
		t.Errorf("the report: %s (%s): %v", v.ID, v.Help, v.Nodes)
	}

	status, kind, body := d.reads(d.href("CSV"))
	if status != http.StatusOK || !strings.HasPrefix(kind, "text/csv") || strings.Count(body, "\n") < 5 {
		t.Errorf("CSV: %d %s %.300s", status, kind, body)
	}
	status, kind, body = d.reads(d.href("JSON"))
	if status != http.StatusOK || !strings.Contains(kind, "json") || !json.Valid([]byte(body)) || !strings.Contains(body, `"checkout"`) {
		t.Errorf("JSON: %d %s %.300s", status, kind, body)
	}
}
