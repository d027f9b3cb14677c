package e2e

import (
	"strings"
	"testing"
	"time"
)

const dialogText = `document.querySelector('dialog[open]')?.innerText ?? ''`

// An operator changes two settings after a look at what will change, and is told when somebody else was faster.
func TestDashboardSettingsAreReviewedAndSaved(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "settings"))
	d.fill("total_active_users", "300")
	d.fill("session_duration", "7")
	d.says("2 changes not saved")
	d.presses("Review and save")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] .diff')`)
	diff := strings.Join(strings.Fields(eval[string](d.tab, `document.querySelector('dialog[open] .diff').textContent`)), " ")
	for _, want := range []string{"total_active_users", "before: 200", "after: 300", "session_duration", "before: 5", "after: 7"} {
		if !strings.Contains(diff, want) {
			t.Errorf("the review does not say %q: %s", want, diff)
		}
	}
	const snippet = `document.querySelector('dialog[open] .snippet pre').innerText`
	if text := eval[string](d.tab, snippet); !strings.Contains(text, "-X PATCH") || !strings.Contains(text, o.api+"/zones/"+o.zone) || !strings.Contains(text, `"session_duration": 7`) || strings.Contains(text, operatorToken) {
		t.Errorf("the line for curl: %s", text)
	}
	d.presses("Terraform")
	d.becomes(5*time.Second, snippet+`.includes('resource "cloudflare_waiting_room"') && /session_duration\s*= 7/.test(`+snippet+`)`)
	d.presses("Save")
	d.says("2 settings of checkout saved")
	settings := func() (s struct {
		Total       int `json:"total_active_users"`
		New         int `json:"new_users_per_minute"`
		Duration    int `json:"session_duration"`
		Description string
	}) {
		o.good("GET", o.under("/"+id), "", &s)
		return s
	}
	if s := settings(); s.Total != 300 || s.Duration != 7 {
		t.Errorf("saved: %+v", s)
	}

	// A fault of the API stands at its field.
	d.fill("new_users_per_minute", "301")
	d.presses("Review and save")
	d.presses("Save")
	d.becomes(10*time.Second, field("new_users_per_minute")+`.closest('.field').querySelector('.error')`)
	d.presses("Discard")

	// Somebody else changes the room while a change is being written: both stay.
	d.fill("description", "the last step")
	o.change(id, fields{"total_active_users": 500})
	d.presses("Review and save")
	d.presses("Save")
	d.says("Someone else changed this room")
	if s := settings(); s.Description != "" {
		t.Errorf("a stale save was taken: %+v", s)
	}
	d.says("1 change not saved")
	d.presses("Review and save")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] .diff').textContent.includes('the last step')`)
	d.presses("Save")
	d.says("1 setting of checkout saved")
	if s := settings(); s.Description != "the last step" || s.Total != 500 {
		t.Errorf("after the second look: %+v", s)
	}
}
