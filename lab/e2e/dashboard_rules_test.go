package e2e

import (
	"strings"
	"testing"
	"time"
)

// An operator builds a rule that lets the monitoring pass, tries it while building, and is warned of one that lets everybody pass.
func TestDashboardBuildARule(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := busyRoom(t, o, 3)
	if a := o.arrive("/health/live"); a.admitted() {
		t.Fatal("a visitor got into a full room")
	}
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "rules"))
	d.presses("New rule")
	d.fill("description", "monitoring")
	d.writes(labelled("Value"), "/health/")
	d.says("No match: the room decides as usual")
	d.writes(labelled("Request"), "curl 'https://shop.example/health/live' -H 'User-Agent: Monitor/1.0'")
	d.says("Match: the request bypasses the room")

	// A second condition takes the first request out.
	d.presses("And")
	d.becomes(5*time.Second, `document.querySelectorAll('.condition').length == 2`)
	second := func(control string) string {
		return `document.querySelectorAll('.condition')[1].querySelector(` + control + `)`
	}
	d.enters(second(`'select[aria-label=Field]'`), "http.user_agent")
	d.enters(second(`'select[aria-label=Comparison]'`), "contains")
	d.writes(second(`'input'`), "Prober/")
	d.says("No match: the room decides as usual")
	d.writes(second(`'input'`), "Monitor/")
	d.says("Match: the request bypasses the room")
	const expression = `starts_with(http.request.uri.path, "/health/") and http.user_agent contains "Monitor/"`
	d.becomes(5*time.Second, `document.querySelector('pre.expression').innerText == '`+expression+`'`)
	d.presses("Save and enable")
	d.says("The rule is enabled")

	var rules []struct {
		Expression, Description string
		Enabled                 bool
	}
	o.good("GET", o.under("/"+id+"/rules"), "", &rules)
	if len(rules) != 1 || rules[0].Expression != expression || rules[0].Description != "monitoring" || !rules[0].Enabled {
		t.Fatalf("the API has %+v", rules)
	}
	before := o.room("checkout")
	a := o.arrive("/health/live", "User-Agent", "Monitor/1.0")
	if !a.admitted() || a.ticket() != "" {
		t.Errorf("the monitoring did not pass uncounted: %s, ticket %q", a.Status, a.ticket())
	}
	if a := o.arrive("/health/live", "User-Agent", "Mozilla/5.0"); a.admitted() || a.ticket() == "" {
		t.Errorf("somebody else did not get a place: %s, ticket %q", a.Status, a.ticket())
	}
	if after := o.room("checkout"); after.Active != before.Active {
		t.Errorf("before %+v, after %+v: want nobody more inside", before, after)
	}

	// A rule for everybody is warned of, twice.
	d.presses("New rule")
	d.becomes(10*time.Second, labelled("Value")+`?.value == ''`)
	d.writes(labelled("Value"), "/")
	d.says("Anyone with an ordinary browser would bypass the room, on any path.")
	d.presses("Save and enable")
	d.becomes(5*time.Second, `(`+dialogText+`).includes('Let nearly every visitor bypass the room?')`)
	d.presses("Cancel")
	d.becomes(5*time.Second, `!document.querySelector('dialog[open]')`)

	// What is wrong is said with its place.
	d.presses("Text")
	d.writes(field("expression"), `http.request.uri.pth eq "/"`)
	d.says("The expression is not valid")
	d.becomes(5*time.Second, `document.querySelector('pre.caret') && /character \d+/.test(document.body.innerText)`)
	if eval[bool](d.tab, `[...document.querySelectorAll('button')].some(b => b.innerText == 'Save and enable' && !b.disabled)`) {
		t.Error("a rule with a fault can be put in force")
	}
	o.good("GET", o.under("/"+id+"/rules"), "", &rules)
	if len(rules) != 1 {
		t.Errorf("rules that were not confirmed are there: %+v", rules)
	}
	if log := o.log(); strings.Contains(log, "panic") {
		t.Error(tail(log, 1000))
	}
}
