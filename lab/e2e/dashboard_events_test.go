package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// An operator schedules the flash sale: gathered before it starts, places by lot, with limits of its own.
func TestDashboardScheduleTheFlashSale(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "events"))
	d.says("No event is planned.")
	d.presses("Schedule an event")
	d.presses("Sale, random order") // gathers half an hour before the start, and shuffles
	d.fill("name", "flash-sale")
	start := time.Now().Add(48 * time.Hour).Truncate(time.Hour)
	d.enters(field("event_start_time"), start.Format("2006-01-02T15:04"))
	d.presses("2h long")
	if got, want := eval[string](d.tab, field("event_end_time")+".value"), start.Add(2*time.Hour).Format("2006-01-02T15:04"); got != want {
		t.Errorf("two hours long: the end is %s, want %s", got, want)
	}
	d.presses("15m")
	d.says("None of these: your own settings.")
	d.presses("30m")
	d.says("random places: being early is no advantage")
	if !eval[bool](d.tab, fmt.Sprintf(`((a, b) => a.top == b.top && a.right < b.left)(%s.getBoundingClientRect(), %s.getBoundingClientRect())`, field("event_start_time"), field("event_end_time"))) {
		t.Error("the end does not stand beside the start")
	}
	if eval[bool](d.tab, "!!"+button("Override")) {
		t.Error("the overrides are not folded")
	}
	eval[bool](d.tab, `document.querySelector('.overrides summary').click(), true`)
	d.presses(`Override`) // the last of them: the turnstile's action, which stays as it is when taken back
	overrides := func(label, choice string) {
		t.Helper()
		group := fmt.Sprintf(`[...document.querySelectorAll('.override [role=group]')].find(g => g.getAttribute('aria-label') == %q)`, label)
		d.becomes(5*time.Second, group)
		eval[bool](d.tab, fmt.Sprintf(`[...%s.querySelectorAll('button')].find(b => b.innerText == %q).click(), true`, group, choice))
	}
	overrides("Turnstile action", "Inherit")
	overrides("Active users", "Override")
	d.fill("total_active_users", "1000")
	d.fill("new_users_per_minute", "500")
	overrides("Session duration", "Override")
	d.fill("session_duration", "3")

	// Both stand side by side before it is kept.
	d.presses("Review and schedule")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] table')`)
	row := func(label string) string {
		return eval[string](d.tab, fmt.Sprintf(`[...document.querySelectorAll('dialog[open] tbody tr')].find(r => r.cells[0].innerText == %q)?.innerText.replace(/\s+/g, ' ') ?? 'none'`, label))
	}
	for label, want := range map[string]string{
		"Active users":         "Active users 200 users 1000 users",
		"New users per minute": "New users per minute 200 users 500 users",
		"Session duration":     "Session duration 5 minutes 3 minutes",
		"Queueing method":      "Queueing method fifo fifo (inherited)",
		"Turnstile action":     "Turnstile action log log (inherited)",
	} {
		if got := row(label); got != want {
			t.Errorf("side by side: %q, want %q", got, want)
		}
	}
	if text := eval[string](d.tab, dialogText); !strings.Contains(text, "in random order") {
		t.Errorf("the review does not speak of the shuffle: %s", text)
	}
	d.presses("Schedule")
	d.says("Next: flash-sale")

	var events []struct {
		Name     string
		Prequeue time.Time `json:"prequeue_start_time"`
		Start    time.Time `json:"event_start_time"`
		End      time.Time `json:"event_end_time"`
		Shuffle  bool      `json:"shuffle_at_event_start"`
		Total    *int      `json:"total_active_users"`
		New      *int      `json:"new_users_per_minute"`
		Session  *int      `json:"session_duration"`
		Method   *string   `json:"queueing_method"`
	}
	o.good("GET", o.under("/"+id+"/events"), "", &events)
	if len(events) != 1 {
		t.Fatalf("the API has %+v", events)
	}
	e := events[0]
	if e.Name != "flash-sale" || !e.Start.Equal(start) || !e.End.Equal(start.Add(2*time.Hour)) || !e.Prequeue.Equal(start.Add(-30*time.Minute)) || !e.Shuffle {
		t.Errorf("the API has %+v", e)
	}
	if e.Total == nil || *e.Total != 1000 || e.New == nil || *e.New != 500 || e.Session == nil || *e.Session != 3 || e.Method != nil {
		t.Errorf("overrides: %+v", e)
	}

	// The overview says what comes next, and shows a green dot while an event is on.
	const next = `[...document.querySelectorAll('main tbody tr')].find(r => r.innerText.includes('checkout'))?.querySelector('td[data-title="Next event"]')`
	d.goes("/")
	d.becomes(10*time.Second, next+`?.innerText.includes('in 2 days')`)
	if eval[bool](d.tab, next+`.querySelector('.live-dot') != null`) {
		t.Error("the dot shows before the event")
	}
	now := time.Now().UTC()
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "opening", "event_start_time": now.Add(-time.Minute).Format(time.RFC3339), "event_end_time": now.Add(time.Hour).Format(time.RFC3339)}.String(), nil)
	d.becomes(15*time.Second, next+`?.querySelector('.live-dot') && `+next+`.innerText.includes('opening')`)
	d.goes(toRoom("checkout", "events"))
	d.says("opening runs until")
	d.becomes(5*time.Second, `[...document.querySelectorAll('tbody tr')].find(r => r.innerText.includes('opening')).querySelector('.live-dot')`)
}

// The page of an event says what it lacks, with where to go; what was mended is gone when the operator looks again.
func TestDashboardChecklist(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout", "page_site_name": "Example"})
	start := time.Now().Add(48 * time.Hour).Truncate(time.Hour)
	var event struct{ ID string }
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "flash-sale", "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339), "suspended": true}.String(), &event)
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "events") + "?event=" + event.ID)
	d.says("flash-sale of room shop.example/checkout is suspended")
	row := func(name string) string {
		return eval[string](d.tab, fmt.Sprintf(`[...document.querySelectorAll('table tbody tr')].find(r => r.cells[0].innerText == %q)?.innerText.replace(/[^\x20-\x7e\s]/g, '').replace(/\s+/g, ' ') ?? 'none'`, name))
	}
	for name, want := range map[string]string{
		"Event":        "Event Error event flash-sale of room shop.example/checkout is suspended It has no effect. Fix: Resume the event.",
		"Limits":       "Limits Warning event flash-sale of room shop.example/checkout admits up to 200 new users per minute and 200 active users; the most in the last 90 days was 0 and 0",
		"Waiting page": "Waiting page OK event flash-sale of room shop.example/checkout shows the built-in page with your name or logo",
		"Webhook":      "Webhook Warning no webhook is notified about room shop.example/checkout",
		"Challenge":    "Challenge Warning no provider of challenges is configured",
		"Certificate":  "Certificate Not known the certificate of shop.example is not known",
	} {
		if got := row(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if href := eval[string](d.tab, `[...document.querySelectorAll('table a')].find(a => a.innerText == 'Limits').getAttribute('href')`); !strings.HasSuffix(href, "/settings") {
		t.Errorf("limits lead to %s", href)
	}
	o.good("PATCH", o.under("/"+id+"/events/"+event.ID), `{"suspended":false}`, nil)
	o.change(id, fields{"protect": true})
	d.presses("Check again")
	d.says("flash-sale of room shop.example/checkout is planned for")
	if got := row("Limits"); !strings.HasPrefix(got, "Limits OK") {
		t.Errorf("with protect: %q", got)
	}
}

// What a colleague has changed in the meantime is not overwritten: by a save, by Undo, or by a deletion.
func TestDashboardEventOfTwoOperators(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	start := time.Now().Add(48 * time.Hour).Truncate(time.Hour)
	var event struct {
		ID          string
		Description string
		Total       int `json:"total_active_users"`
	}
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "flash-sale", "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339)}.String(), &event)
	path := o.under("/" + id + "/events/" + event.ID)
	colleague := func(change string) { t.Helper(); o.good("PATCH", path, change, nil) }
	is := func(description string, total int) {
		t.Helper()
		o.good("GET", path, "", &event)
		if event.Description != description || event.Total != total {
			t.Errorf("the event is %+v, want %q and %d", event, description, total)
		}
	}
	d := sitDown(t, o, operatorToken)
	undo := func(says string) {
		t.Helper()
		eval[bool](d.tab, `[...document.querySelectorAll('.toast button')].filter(b => b.innerText.startsWith('Undo')).at(-1).click(), true`)
		d.says(says)
	}
	d.goes(toRoom("checkout", "events") + "?event=" + event.ID)
	d.fill("description", "mine")
	colleague(`{"total_active_users": 77, "new_users_per_minute": 77}`)
	d.presses("Review and save")
	d.presses("Save")
	d.says("Someone else changed this event. Your changes are still here")
	is("", 77)
	d.presses("Review and save")
	d.presses("Save")
	d.says("flash-sale saved")
	is("mine", 77)

	colleague(`{"total_active_users": 78, "new_users_per_minute": 77}`) // not what is taken back
	undo("Undone")
	is("", 78)

	d.goes(toRoom("checkout", "events") + "?event=" + event.ID)
	d.fill("description", "mine again")
	d.presses("Review and save")
	d.presses("Save")
	d.says("flash-sale saved")
	colleague(`{"description": "theirs"}`)
	undo("Could not undo: someone else changed this in the meantime")
	is("theirs", 78)

	d.goes(toRoom("checkout", "events"))
	d.becomes(10*time.Second, button("Delete flash-sale"))
	colleague(`{"description": "theirs again"}`)
	d.presses("Delete flash-sale")
	d.presses("Delete the event")
	d.says("Someone else changed flash-sale in the meantime, so it was not deleted")
	is("theirs again", 78)
	d.says("theirs again") // the list is read again
	d.presses("Delete flash-sale")
	d.presses("Delete the event")
	d.says("No event is planned")
}
