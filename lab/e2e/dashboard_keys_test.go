package e2e

import (
	"testing"
	"time"
)

// Somebody without a mouse gets everywhere: by keys alone a room is found, its settings are opened, and the way is shown.
func TestDashboardByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	o.newRoom(fields{"name": "tickets", "path": "/tickets"})
	d := sitDown(t, o, operatorToken)
	d.settles()
	at := func(path string) {
		t.Helper()
		d.becomes(10*time.Second, `location.pathname == `+quoted(path))
		d.settles()
	}
	d.keys("/")
	d.becomes(5*time.Second, `document.activeElement?.closest('dialog[open]')`)
	d.keys("ticke")
	d.becomes(5*time.Second, `document.querySelector('dialog[open]').innerText.includes('tickets')`)
	d.keys("\r")
	at(toRoom("tickets", ""))
	d.keys("gs")
	at(toRoom("tickets", "settings"))
	d.keys("go")
	at("/")
	d.keys("?")
	d.becomes(5*time.Second, `document.querySelector('dialog[open]')`)
	d.keys("\x1b")
	d.becomes(5*time.Second, `!document.querySelector('dialog[open]')`)

	// The first stop of Tab leads past the navigation, and each stop is to be seen.
	d.goes("/")
	d.keys("\t")
	d.becomes(5*time.Second, `document.activeElement.innerText == 'Skip to content' && document.activeElement.getBoundingClientRect().top >= 0`)
	d.keys("\r")
	d.becomes(5*time.Second, `document.activeElement.id == 'main'`)
	d.keys("\t")
	d.becomes(5*time.Second, `document.activeElement.innerText.trim() == 'New room' && getComputedStyle(document.activeElement).outlineStyle != 'none'`)
	d.keys("\r")
	at("/new")
}
