package page

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// said is a view of the line with a message.
func said(message string) View {
	v := View{Decision: States()[0].Decision}
	v.Decision.InForce = &anteroom.InForce{Message: message}
	return v
}

// TestTheMessageIsText: whatever an operator writes stays text, in the page, in what its script
// reads, and in an operator's own page.
func TestTheMessageIsText(t *testing.T) {
	const hostile = `"><img src=x onerror=alert(1)></script><script>alert('&')</script> {{reference}}`
	own, err := Compile(`<p>{{message}}</p>`)
	if err != nil {
		t.Fatal(err)
	}
	v := said(hostile)
	page := string(AppendPage(nil, &v, false))
	v.Template = own
	for name, text := range map[string]string{"built-in": page, "own": string(AppendPage(nil, &v, false)), "status": string(AppendStatus(nil, &v))} {
		if strings.Contains(text, "<img") || strings.Contains(text, "<script>alert") || strings.Contains(text, "</script><script>a") {
			t.Errorf("%s: the message is markup:\n%s", name, text)
		}
	}
	if !strings.Contains(page, `<p id="message" dir="auto">&#34;&gt;&lt;img src=x`) {
		t.Errorf("the page does not show it:\n%s", page)
	}
	var status struct{ Message string }
	if err := json.Unmarshal(AppendStatus(nil, &v), &status); err != nil || status.Message != hostile {
		t.Errorf("%v: the script reads %q", err, status.Message)
	}
}

// TestNoMessage: the region stands there without a message and without a note on the place, so that the first one is read aloud. The
// published object has no member of ours.
func TestNoMessage(t *testing.T) {
	v := said("")
	if page := string(AppendPage(nil, &v, false)); !strings.Contains(page, `<div aria-live=polite><p id="note" class="note" hidden></p><p id="message" dir="auto"></p></div>`) {
		t.Error("the page has no region for them")
	}
	if status := string(AppendStatus(nil, &v)); strings.Contains(status, "message") {
		t.Errorf("status: %s", status)
	}
	v = said("Hello.")
	if object := string(AppendJSON(nil, &v)); strings.Contains(object, "Hello") {
		t.Errorf("the published object: %s", object)
	}
}

// TestEveryStateShowsTheMessage: also a page that does not come back.
func TestEveryStateShowsTheMessage(t *testing.T) {
	for _, s := range States() {
		v := View{Decision: s.Decision, Language: "ar-EG"}
		f := anteroom.InForce{}
		if s.Decision.InForce != nil {
			f = *s.Decision.InForce
		}
		f.Message = "Doors open at 10."
		v.Decision.InForce = &f
		if page := string(AppendPage(nil, &v, false)); !strings.Contains(page, ">Doors open at 10.</p>") {
			t.Errorf("%s does not", s.Name)
		}
	}
}
