package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// An operator gives a room lanes in the dashboard, and makes a code for one. A visitor who waits enters it on the page to which the
// waiting page leads, and sees the lane; the cockpit shows it.
func TestLanesFromTheDashboardToTheShop(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	id := o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 1, "new_users_per_minute": 1})
	newVisitor(t, o.gate).enter()
	d := sitDown(t, o, operatorToken)
	d.goes(toRoomIn("127.0.0.1", "checkout", "settings"))
	part := func(lane int, label, value string) {
		t.Helper()
		input := fmt.Sprintf(`[...(document.querySelectorAll('fieldset')[%d] ?? document).querySelectorAll('label')].find(l => l.innerText.startsWith(%q))?.querySelector('input')`, lane, label)
		d.becomes(10*time.Second, input)
		d.try(fmt.Sprintf(`(e => { e.focus(); e.select() })(%s)`, input))
		d.act(chromedp.KeyEvent(value))
	}
	d.presses("Add a lane")
	part(0, "Name", "gold")
	part(0, "Priority", "80")
	part(0, "Share", "101")
	part(0, "Expression", `http.cookie contains "gold"`)
	d.presses("Add a lane")
	part(1, "Name", "everyone")
	d.presses("Review and save")
	d.presses("Save")
	d.becomes(10*time.Second, `[...document.querySelectorAll('.error')].some(e => e.innerText.includes('shares of 101%'))`)
	part(0, "Share", "75")
	d.presses("Review and save")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] .diff')?.textContent.includes('"share": 75')`)
	d.presses("Save")
	d.says("1 setting of checkout saved")
	var room struct{ Lanes json.RawMessage }
	o.good("GET", o.under("/"+id), "", &room)
	if got := strings.ReplaceAll(string(room.Lanes), " ", ""); got != `[{"name":"gold","priority":80,"share":75,"reserved":0,"expression":"http.cookiecontains\"gold\"","claim":""},{"name":"everyone","priority":0,"share":0,"reserved":0,"expression":"","claim":""}]` {
		t.Errorf("saved: %s", got)
	}

	b := open(t)
	b.visit(o.url("/"))
	b.waits()
	b.becomes(10*time.Second, `document.querySelector('#lane')?.textContent == 'everyone' && !document.querySelector('a[href*=invite]')`)

	d.goes(toRoomIn("127.0.0.1", "checkout", "invites"))
	d.presses("New codes")
	d.fill("count", "1")
	d.chooses("Lane", "gold")
	d.presses("Make codes")
	d.becomes(10*time.Second, `(`+dialogText+`).includes('These codes are shown only once')`)
	code := strings.TrimSpace(eval[string](d.tab, `document.querySelector('dialog[open] .snippet pre').innerText`))
	d.presses("I have saved them")
	d.becomes(10*time.Second, `document.querySelector('main table')?.innerText.includes('gold')`)

	b.visit(o.url("/"))
	b.becomes(10*time.Second, `(e => e && (e.click(), true))(document.querySelector('a[href*=invite]'))`)
	b.becomes(10*time.Second, fmt.Sprintf(`(e => e && (e.value = '%s', document.querySelector('form button').click(), true))(document.querySelector('input[name=code]'))`, code))
	b.becomes(10*time.Second, showsLine+` && document.querySelector('#lane')?.textContent == 'gold'`)

	// A visitor of whose lane the page hears from a check-in shows it as well.
	c := open(t)
	c.visit(o.url("/"))
	c.becomes(10*time.Second, `document.querySelector('#lane')?.textContent == 'everyone'`)
	c.try(`document.cookie = 'gold=1'`)
	// With a stream the page checks in once a minute; a device that is online again makes it look at once.
	c.becomes(20*time.Second, `(dispatchEvent(new Event('online')), document.querySelector('#lane')?.textContent == 'gold')`)

	d.goes(toRoomIn("127.0.0.1", "checkout", ""))
	d.becomes(20*time.Second, `/gold\s+priority 80\s+2\s+0\s+.*75%/s.test([...document.querySelectorAll('table')].map(t => t.innerText).join())`)
	script := axe(t)
	c.isAccessible(script)
	d.isAccessible(script)
}

func toRoomIn(zone, room, page string) string {
	return strings.TrimSuffix("/rooms/"+zone+"/"+room+"/"+page, "/")
}
