package e2e

import (
	"fmt"
	"testing"
	"time"
)

// What is typed first goes where the person means it to go: a dialog is open and has the focus in the moment in which
// its fields are there, and a page that has come takes the focus away from no field later.
func TestDashboardLosesNoFirstKey(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	for path, press := range map[string]string{"/tokens": "New token", "/webhooks": "New webhook"} {
		d.goes(path)
		d.becomes(10*time.Second, button(press))
		// An observer is called before anything else can happen, like a key.
		if ready := eval[bool](d.tab, fmt.Sprintf(`new Promise(done => {
			new MutationObserver((_, o) => {
				const d = document.querySelector('dialog')
				if (!d) return
				o.disconnect()
				done(d.open && d.contains(document.activeElement))
			}).observe(document.body, { childList: true, subtree: true })
			;(%s).click()
		})`, button(press))); !ready {
			t.Errorf("%s: the dialog is there and does not have the focus", press)
		}
	}
	d.goes("/")
	if at := eval[string](d.tab, `new Promise(done => {
		const before = document.querySelector('main h1')
		new MutationObserver((_, o) => {
			const h = document.querySelector('main h1')
			if (!h || h === before && h.innerText === before.innerText && location.pathname !== '/tokens') return
			o.disconnect()
			done(document.activeElement.tagName)
		}).observe(document.body, { childList: true, subtree: true, characterData: true })
		document.querySelector('nav a[href="/tokens"]').click()
	})`); at != "H1" {
		t.Errorf("a page that is there leaves the focus at %s until later", at)
	}
}
