package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Somebody calls and reads the code on the waiting page: the operator finds the visitor, in line and inside, and ends the session.
func TestDashboardFindAVisitorByTheCodeOnTheWaitingPage(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	id := o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 1, "new_users_per_minute": 1})
	newVisitor(t, o.gate).enter()
	caller := open(t)
	caller.visit(o.url("/"))
	caller.waits()
	code := caller.reference()

	d := sitDown(t, o, operatorToken)
	d.goes("/rooms/127.0.0.1/checkout/visitors")
	d.writes(labelled("Code"), "00000-00000")
	d.presses("Find")
	d.says("No visitor with this code")
	d.writes(labelled("Code"), " "+strings.ToUpper(code))
	d.presses("Find")
	d.becomes(15*time.Second, fmt.Sprintf(`[...document.querySelectorAll('.card')].some(c => c.innerText.includes(%q) && c.innerText.includes('Waiting') && /Visitors ahead\s+0/.test(c.innerText))`, code))
	if d.offers("End the session…") {
		t.Error("a place in line can be ended as a session")
	}
	if got := eval[string](d.tab, "location.search"); got != "?code="+code {
		t.Errorf("the address of the visitor: %s", got)
	}
	o.change(id, fields{"total_active_users": 2, "new_users_per_minute": 2})
	caller.getsIn()
	d.becomes(15*time.Second, `[...document.querySelectorAll('.card .pill')].some(p => p.innerText.includes('Active'))`)
	d.presses("End the session…")
	d.becomes(5*time.Second, dialogText+`.includes(`+quoted(code)+`)`)
	d.presses("End the session")
	d.says("Session ended")
	o.change(id, fields{"total_active_users": 1, "new_users_per_minute": 1})
	caller.visit(o.url("/"))
	caller.waits()
	if again := caller.reference(); again == code {
		t.Errorf("whose session was ended has the place %s again", again)
	}
}

// login types a token into the page that asks for it.
func (d *desk) login(token string) {
	d.t.Helper()
	d.writes(`document.querySelector('main.login input')`, token)
	d.presses("Log in")
}

const asksForToken = `document.querySelector('main.login input') && !document.querySelector('nav')`

// A colleague gets a token to look with: nothing is offered that it may not, the API refuses the rest, and its end is the
// end of the session.
func TestDashboardTokenOfAViewer(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	d.goes("/tokens")
	d.presses("New token")
	d.fill("name", "colleague")
	d.presses("Create token")
	d.becomes(10*time.Second, `(`+dialogText+`).includes('This secret is shown only once')`)
	secret := strings.TrimSpace(eval[string](d.tab, `document.querySelector('dialog[open] .snippet pre').innerText`))
	d.presses("I have saved it")
	d.becomes(10*time.Second, `document.querySelector('main table')?.innerText.includes('read: everything')`)
	if strings.Contains(eval[string](d.tab, `document.documentElement.outerHTML`), secret) {
		t.Error("the secret is still in the page")
	}

	d.presses("New token")
	d.fill("name", "prometheus")
	d.presses("Metrics")
	d.presses("Create token")
	d.becomes(10*time.Second, `(`+dialogText+`).includes('This secret is shown only once')`)
	d.presses("I have saved it")
	d.becomes(10*time.Second, `document.querySelector('main table')?.innerText.includes('scrape: everything')`)

	c := comeIn(t, shell, o)
	c.visit(o.operators() + toRoom("checkout", "settings"))
	c.becomes(10*time.Second, asksForToken)
	c.login(secret)
	c.settles()
	c.says("Your token can read this room, but not change it.")
	if n := eval[int](c.tab, `[...document.querySelectorAll('main .fields :is(input, select, textarea, [role=switch])')].filter(e => !e.disabled).length`); n != 0 {
		t.Errorf("%d fields of the settings can be changed", n)
	}
	for path, none := range map[string][]string{
		"/":                            {"New room", "Tokens", "Audit"},
		toRoom("checkout", ""):         {"Queue all", "Pause", "Drain", "Reject"},
		toRoom("checkout", "events"):   {"Schedule an event"},
		toRoom("checkout", "rules"):    {"New rule"},
		toRoom("checkout", "template"): {"Example", "Review and save"},
		"/webhooks":                    {"New webhook"},
	} {
		c.goes(path)
		for _, text := range none {
			if c.offers(text) {
				t.Errorf("%s offers %q to a viewer", path, text)
			}
		}
		if n := eval[int](c.tab, `[...document.querySelectorAll('main .switch')].filter(e => !e.disabled).length`); n != 0 {
			t.Errorf("%s has %d switches for a viewer", path, n)
		}
	}
	refused := func(method, path, body string) int {
		return eval[int](c.tab, fmt.Sprintf(`fetch('/dash/api' + %q, {method: %q, headers: {'X-Anteroom': 'dashboard', 'Content-Type': 'application/json'}, body: %q || undefined}).then(r => r.status)`, path, method, body))
	}
	room := "/client/v4" + o.under("/"+id)
	if got := refused("PATCH", room, `{"queue_all":true}`); got != http.StatusForbidden {
		t.Errorf("a viewer's change of a room: %d", got)
	}
	if got := refused("POST", "/anteroom/v1/tokens", `{"name":"mine","grants":[{"permission":"admin"}]}`); got != http.StatusForbidden {
		t.Errorf("a viewer's token: %d", got)
	}
	c.goes("/tokens")
	c.says("Your token cannot read this")

	// Whoever may see one room is offered nothing that is about all of them.
	var limited struct{ Secret string }
	o.good(http.MethodPost, "/anteroom/v1/tokens", fields{"name": "one room", "grants": []fields{{"permission": "read", "zone": o.zone, "room": id}}}.String(), &limited)
	l := sitDown(t, o, limited.Secret)
	l.says("checkout")
	for _, text := range []string{"New room", "Webhooks", "Tokens", "Audit", "Cluster"} {
		if l.offers(text) {
			t.Errorf("a token of one room is offered %q", text)
		}
	}

	// A request that the dashboard's own page did not make is refused, whoever's it is.
	for what, init := range map[string]string{
		"without the header": `{method: 'PATCH', headers: {'Content-Type': 'application/json'}, body: '{"queue_all":true}'}`,
		"of a form":          `{method: 'POST', headers: {'Content-Type': 'application/x-www-form-urlencoded', 'X-Anteroom': 'dashboard'}, body: 'a=b'}`,
	} {
		if got := eval[int](d.tab, fmt.Sprintf(`fetch('/dash/api' + %q, %s).then(r => r.status)`, room, init)); got < 400 || got == http.StatusNotFound || got >= 500 {
			t.Errorf("a change %s: %d", what, got)
		}
	}
	if r := d.room("checkout"); r.QueueAll {
		t.Error("the room holds everybody")
	}

	c.goes("/")
	d.presses("Delete colleague")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] form input')`)
	d.writes(`document.querySelector('dialog[open] form input')`, "colleague")
	d.presses("Delete the token")
	d.says("colleague deleted")
	c.becomes(10*time.Second, asksForToken)
	if got := refused("GET", room, ""); got != http.StatusUnauthorized {
		t.Errorf("after its end the token may look: %d", got)
	}

	d.goes("/audit")
	d.becomes(10*time.Second, `document.querySelector('.audit')`)
	list := eval[string](d.tab, `document.querySelector('.audit').innerText`)
	for _, want := range []string{"token.create", "token.delete", "colleague", "room.create"} {
		if !strings.Contains(list, want) {
			t.Errorf("the audit log has no %q: %s", want, list)
		}
	}
	d.presses("Verify the chain")
	d.says("records are unchanged")
}

// A wrong token is refused, logging out ends the session, and so does a restart; the page that somebody was on stays.
func TestDashboardLoginAndItsEnd(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	d := comeIn(t, shell, o)
	d.visit(o.operators() + "/cluster")
	d.becomes(10*time.Second, asksForToken)
	d.login("e2e-wrong-0123456789abcdefghijklmnopqrstuvwxyz")
	d.says("Invalid token, or not allowed from this address")
	if eval[bool](d.tab, `!(`+asksForToken+`)`) {
		t.Error("a wrong token shows more than the login")
	}
	d.login(operatorToken)
	d.settles()
	if got := eval[string](d.tab, "location.pathname"); got != "/cluster" {
		t.Errorf("after the login: %s", got)
	}
	if got := eval[string](d.tab, `document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`); strings.Contains(got, "session") || strings.Contains(got, operatorToken) {
		t.Errorf("scripts can read %s", got)
	}
	rooms := func() int {
		return eval[int](d.tab, `fetch('/dash/api/anteroom/v1/rooms').then(r => r.status)`)
	}
	if got := rooms(); got != http.StatusOK {
		t.Errorf("logged in: %d", got)
	}
	d.presses("Log out")
	d.becomes(10*time.Second, asksForToken)
	if got := rooms(); got != http.StatusUnauthorized {
		t.Errorf("logged out: %d", got)
	}
	d.act(chromedp.Reload())
	d.becomes(10*time.Second, asksForToken)

	// Sessions live in memory: a server that starts again knows none, and the page says so by itself.
	d.login(operatorToken)
	d.settles()
	o.kill()
	d.says("No figures since")
	o.start()
	d.becomes(30*time.Second, asksForToken)
	d.login(operatorToken)
	d.settles()
	if got := eval[string](d.tab, "location.pathname"); got != "/cluster" {
		t.Errorf("after the second login: %s", got)
	}
}
