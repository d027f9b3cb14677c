package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/page"
)

// A preview of the built-in page counts down, asks nothing and complains of nothing, also in
// the sandbox that keeps an operator's markup from everything else.
func TestPreviewAsksNothing(t *testing.T) {
	t.Parallel()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, err := page.ParsePreview(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		v, _ := o.View(nil, "de-DE", time.Now())
		w.Header().Set("Content-Security-Policy", "sandbox allow-scripts")
		w.Header().Set("Content-Type", page.HTMLType)
		w.Write(page.AppendPage(nil, &v, false))
	}))
	t.Cleanup(front.Close)
	b := open(t)
	b.visit(front.URL + "/?event=prequeueing&shuffle_at_event_start=true")
	b.becomes(15*time.Second, `/^14:5[0-7]$/.test(document.getElementById('prequeueTime').textContent)`)
	if note := eval[bool](b, `document.getElementById('note').hidden`); !note {
		t.Errorf("the preview complains: %s", b.text("#note"))
	}
	if title := eval[string](b, "document.title"); !strings.HasPrefix(title, "(15 Min.) Es hat noch nicht begonnen") {
		t.Errorf("title: %q", title)
	}
	if all := b.asked(func(r request) bool { return strings.HasPrefix(r.url, front.URL) }); len(all) != 1 {
		t.Errorf("the preview asked: %v", all)
	}
}
