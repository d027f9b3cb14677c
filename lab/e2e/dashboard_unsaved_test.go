package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// asksToLeave is the question before something unsaved is given up.
const asksToLeave = `([...document.querySelectorAll('dialog[open]')].at(-1)?.innerText ?? '').includes('Leave without saving?')`

// follows goes to a page by a link, so that the page before it is one step back in the same document.
func (d *desk) follows(path string) {
	d.t.Helper()
	eval[bool](d.tab, `(a => (a.href = `+quoted(path)+`, document.querySelector('main').append(a), a.click(), true))(document.createElement('a'))`)
	d.becomes(5*time.Second, `location.pathname + location.search == `+quoted(path))
	d.settles()
}

// Whatever way leads off a page, what is not saved there is given up after a question only.
func TestDashboardAsksBeforeUnsavedChangesAreGivenUp(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	for _, way := range []struct {
		name, to string
		take     func()
	}{
		{"the navigation", "/audit", func() { d.presses("Audit") }},
		{"a tab of the room", toRoom("checkout", "events"), func() { d.presses("Events") }},
		{"keys", toRoom("checkout", "template"), func() { eval[bool](d.tab, `document.activeElement.blur(), true`); d.keys("gw") }},
		{"the search", "/", func() {
			eval[bool](d.tab, `document.activeElement.blur(), true`)
			d.keys("/")
			d.becomes(5*time.Second, `document.querySelector('dialog[open] input')`)
			d.keys("overv\r")
		}},
		{"the way back", "/tokens", func() { d.back() }},
	} {
		d.goes("/tokens")
		d.follows(toRoom("checkout", "settings"))
		d.fill("description", "the last step")
		d.says("1 change not saved")
		way.take()
		d.becomes(10*time.Second, asksToLeave)
		d.presses("Stay")
		d.becomes(5*time.Second, `!document.querySelector('dialog[open]')`)
		if at, holds := eval[string](d.tab, "location.pathname"), eval[string](d.tab, field("description")+".value"); at != toRoom("checkout", "settings") || holds != "the last step" {
			t.Errorf("%s: after Stay at %s with %q", way.name, at, holds)
		}
		way.take()
		d.becomes(10*time.Second, asksToLeave)
		d.presses("Leave")
		d.becomes(10*time.Second, `location.pathname == `+quoted(way.to)+` && !document.querySelector('dialog[open]')`)
		d.settles()
	}
	// A room that is about to be made counts as well, until it is made.
	d.follows("/new")
	d.fill("name", "tickets")
	d.presses("Audit")
	d.becomes(10*time.Second, asksToLeave)
	d.presses("Stay")
	d.becomes(5*time.Second, `!document.querySelector('dialog[open]')`)
	for _, f := range [][2]string{{"host", "shop.example"}, {"path", "/tickets"}} {
		d.fill(f[0], f[1])
	}
	d.presses("Review")
	d.presses("Create room")
	d.says("tickets created.")
	// Where nothing is unsaved, nobody is asked.
	d.goes(toRoom("checkout", "settings"))
	d.presses("Audit")
	d.becomes(10*time.Second, `location.pathname == '/audit'`)
}

// A session that ends in the middle of a form takes nothing with it: the same person logs in over the page, and goes on. Somebody else
// finds nothing of it.
func TestDashboardKeepsUnsavedChangesWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	var viewer struct{ Secret string }
	o.good(http.MethodPost, "/anteroom/v1/tokens", `{"name":"viewer","grants":[{"permission":"read"}]}`, &viewer)
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "settings"))
	const over = `document.querySelector('dialog.again[open] input') && getComputedStyle(document.querySelector('main h1')).visibility == 'hidden'`
	login := func(token string) {
		d.writes(`document.querySelector('dialog.again input')`, token)
		d.presses("Log in")
	}
	ends := map[string]func(){
		"logged out in another tab": func() {
			eval[bool](d.tab, `fetch('/dash/logout', {method: 'POST', headers: {'X-Anteroom': 'dashboard', 'Content-Type': 'application/json'}, body: '{}'}).then(r => r.ok)`)
		},
		"the server starts again": func() { o.kill(); o.start() },
	}
	for name, end := range ends {
		d.fill("description", name)
		d.says("1 change not saved")
		end()
		d.becomes(30*time.Second, over)
		d.keys("\x1b\x1b")
		d.becomes(5*time.Second, over)
		if name == "the server starts again" {
			login(operatorToken)
		} else { // in another tab, too, and comes back to this one
			eval[bool](d.tab, `fetch('/dash/login', {method: 'POST', headers: {'X-Anteroom': 'dashboard', 'Content-Type': 'application/json'}, body: JSON.stringify({token: `+quoted(operatorToken)+`})}).then(r => (dispatchEvent(new Event('focus')), r.ok))`)
		}
		d.becomes(10*time.Second, `!document.querySelector('dialog.again')`)
		d.settles()
		if got := eval[string](d.tab, field("description")+".value"); got != name {
			t.Fatalf("%s: after the login the field holds %q", name, got)
		}
		d.presses("Review and save")
		d.presses("Save")
		eventually(t, 10*time.Second, func() string {
			var room struct{ Description string }
			if o.good(http.MethodGet, o.under("/"+id), "", &room); room.Description != name {
				return fmt.Sprintf("%s: saved %q", name, room.Description)
			}
			return ""
		})
		d.becomes(5*time.Second, `!document.querySelector('.savebar')`)
	}

	d.fill("description", "a secret plan")
	d.says("1 change not saved")
	ends["logged out in another tab"]()
	d.becomes(30*time.Second, over)
	login(viewer.Secret)
	d.becomes(10*time.Second, `!document.querySelector('dialog.again')`)
	d.says("Your token can read this room, but not change it.")
	if got := eval[string](d.tab, field("description")+".value"); got == "a secret plan" {
		t.Error("somebody else finds what the person before has left unsaved")
	}
}

// What is shown only once stays until the person says that it is saved.
func TestDashboardShowsSecretsUntilTheyAreSaved(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	for _, c := range []struct {
		page, open, create, saved string
		fields                    fields
	}{
		{"/tokens", "New token", "Create token", "I have saved it", fields{"name": "alerts"}},
		{"/webhooks", "New webhook", "Save", "I have saved it", fields{"name": "alerts", "url": "https://hooks.example.com/"}},
		{toRoom("checkout", "invites"), "New codes", "Make codes", "I have saved them", fields{"name": "press", "count": "3"}},
	} {
		d.goes("/audit")
		d.follows(c.page)
		d.presses(c.open)
		for name, value := range c.fields {
			d.writes(`(`+field(name)+`)`, fmt.Sprint(value))
		}
		d.presses(c.create)
		d.becomes(10*time.Second, button(c.saved))
		const text = `document.querySelector('dialog[open] .snippet pre')?.innerText`
		before := eval[string](d.tab, text)
		d.keys("\x1b\x1b")
		d.becomes(5*time.Second, `(e => e && (e.dispatchEvent(new MouseEvent('mousedown', {bubbles: true})), true))(document.querySelector('dialog[open]'))`)
		d.back()
		d.becomes(5*time.Second, asksToLeave)
		eval[bool](d.tab, `[...[...document.querySelectorAll('dialog[open]')].at(-1).querySelectorAll('button')].find(b => b.innerText == 'Stay').click(), true`)
		d.becomes(5*time.Second, `document.querySelectorAll('dialog[open]').length == 1`)
		if got := eval[string](d.tab, text); got != before {
			t.Errorf("%s: %q is shown, was %q", c.page, got, before)
		}
		d.presses(c.saved)
		d.becomes(5*time.Second, `!document.querySelector('dialog[open]')`)
	}
}

// A colleague changes something else meanwhile. What somebody has written stays, and can be saved.
func TestDashboardWorkOfTwoOperatorsStays(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	page := func() (html string) {
		var room struct {
			HTML string `json:"custom_page_html"`
		}
		o.good(http.MethodGet, o.under("/"+id), "", &room)
		return room.HTML
	}
	const mine, theirs = "<!doctype html><html lang=en><title>Mine</title><h1>{{waitTime}}</h1></html>", "<!doctype html><html lang=en><title>Theirs</title><h1>{{waitTime}}</h1></html>"
	d.goes(toRoom("checkout", "template"))
	d.writes(`document.querySelector('#template')`, mine)
	o.change(id, fields{"total_active_users": 150, "new_users_per_minute": 150}) // is not the page
	d.presses("Review and save")
	d.presses("Save")
	d.says("Page saved")
	if got := page(); got != mine {
		t.Errorf("the page is %q", got)
	}
	d.writes(`document.querySelector('#template')`, mine+"<!-- again -->")
	o.change(id, fields{"custom_page_html": theirs})
	d.presses("Review and save")
	d.presses("Save")
	d.says("Someone else changed this page. Yours is still here")
	if got := page(); got != theirs {
		t.Errorf("a stale save was taken: %q", got)
	}
	d.presses("Review and save")
	d.becomes(5*time.Second, `(`+dialogText+`).includes('Theirs')`)
	d.presses("Save")
	d.becomes(10*time.Second, `!document.querySelector('dialog[open]') && !`+button("Review and save"))
	if got := page(); got != mine+"<!-- again -->" {
		t.Errorf("after the second look the page is %q", got)
	}

	d.goes(toRoom("checkout", "rules?rule=new"))
	d.writes(labelled("Value"), "/health")
	o.good(http.MethodPost, o.under("/"+id+"/rules"), `{"action":"bypass_waiting_room","expression":"http.request.uri.path eq \"/theirs\""}`, nil)
	d.presses("Save and enable")
	d.says("Someone else changed the rules of this room")
	d.presses("Save and enable")
	d.says("The rule is enabled")
	var rules []struct{ Expression string }
	if o.good(http.MethodGet, o.under("/"+id+"/rules"), "", &rules); len(rules) != 2 {
		t.Errorf("the rules are %v", rules)
	}
}
