package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// desk is a browser on the dashboard of an office.
type desk struct {
	*tab
	o          *office
	complaints []complaint // of the console; mu guards it
}

// sitDown opens the dashboard and logs in with a token.
func sitDown(t *testing.T, o *office, token string) *desk {
	t.Helper()
	return sitDownIn(t, shell, o, token)
}

func sitDownIn(t *testing.T, in func() (*chromium, error), o *office, token string) *desk {
	t.Helper()
	d := comeIn(t, in, o)
	d.visit(o.operators() + "/#token=" + token)
	d.becomes(20*time.Second, `document.querySelector('nav')`)
	return d
}

// comeIn is sitDown of somebody who has not logged in yet.
func comeIn(t *testing.T, in func() (*chromium, error), o *office) *desk {
	t.Helper()
	d := &desk{tab: openIn(t, in), o: o}
	d.hear()
	d.screen(1280, 900, "light")
	return d
}

// goes opens a page of the dashboard and waits until it shows what it has.
func (d *desk) goes(path string) {
	d.t.Helper()
	d.visit(d.o.operators() + path)
	d.settles()
}

func (d *desk) settles() {
	d.t.Helper()
	d.becomes(20*time.Second, `document.querySelector('main h1') && !document.querySelector('.skeleton, [aria-busy=true]')`)
}

// field is the control of the field that has a name of the API.
func field(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.field')].find(f => f.querySelector('.label code')?.textContent == %q)?.querySelector('input, textarea, select, [role=switch]')`, name)
}

// fill types a value into a field, as a person does.
func (d *desk) fill(name, value string) {
	d.t.Helper()
	d.becomes(10*time.Second, field(name))
	d.try(fmt.Sprintf(`(e => { e.focus(); e.select?.() })(%s)`, field(name)))
	d.act(chromedp.KeyEvent(value))
	if got := eval[string](d.tab, field(name)+".value"); got != value {
		d.t.Fatalf("%s holds %q, want %q", name, got, value)
	}
}

// button is one that can be pressed, or a link, by what it says; the last is the topmost.
func button(text string) string {
	return fmt.Sprintf(`[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('button, a[href], [role=tab]')].filter(b => !b.disabled && b.getClientRects().length && (b.innerText.trim().split('\n')[0] == %[1]q || b.getAttribute('aria-label') == %[1]q)).at(-1)`, text)
}

// presses clicks a button or a link.
func (d *desk) presses(text string) {
	d.t.Helper()
	d.becomes(20*time.Second, button(text))
	eval[bool](d.tab, button(text)+`.click(), true`)
}

// says waits until the page shows a text.
func (d *desk) says(text string) {
	d.t.Helper()
	d.becomes(15*time.Second, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// room asks the API about a room of the office's zone.
func (d *desk) room(name string) (room struct {
	ID        string
	TotalUser int    `json:"total_active_users"`
	QueueAll  bool   `json:"queue_all"`
	Protect   bool   `json:"protect"`
	Return    string `json:"protect_return"`
}) {
	d.t.Helper()
	var all []json.RawMessage
	d.o.good("GET", "/zones/"+d.o.zone+"/waiting_rooms", "", &all)
	for _, one := range all {
		var named struct{ Name string }
		json.Unmarshal(one, &named)
		if named.Name == name {
			json.Unmarshal(one, &room)
		}
	}
	return room
}

// A new room protects its origin unless the operator says otherwise.
func TestDashboardSuggestsProtection(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	d := sitDown(t, o, operatorToken)
	create := func(name, path string, change func()) {
		d.goes("/")
		d.presses("New room")
		for _, f := range [][2]string{{"name", name}, {"host", "shop.example"}, {"path", path}, {"total_active_users", "2"}, {"new_users_per_minute", "2"}} {
			d.fill(f[0], f[1])
		}
		change()
		d.presses("Review")
		d.presses("Create room")
		d.says(name + " created.")
	}
	create("checkout", "/checkout", func() {})
	if r := d.room("checkout"); !r.Protect || r.Return != "10m0s" {
		t.Errorf("as suggested: %+v", r)
	}
	create("tickets", "/tickets", func() {
		d.presses("Customize")
		d.switches("protect")
	})
	if r := d.room("tickets"); r.ID == "" || r.Protect || r.Return != "0s" {
		t.Errorf("switched off: %+v", r)
	}
}

// What a newcomer may type first: a fault stands at its field, and an address that was copied from a browser is as good as its host.
func TestDashboardNewRoomSaysWhichFieldIsWrong(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	d := sitDown(t, o, operatorToken)
	d.presses("New room")
	for _, f := range [][2]string{{"name", "checkout"}, {"path", "/checkout"}} {
		d.fill(f[0], f[1])
	}
	for host, want := range map[string]string{"my shop": "is not a host name", "*.example.org": "names one host"} {
		d.fill("host", host)
		d.presses("Review")
		d.becomes(5*time.Second, `document.querySelector('.field.wrong') || `+button("Create room"))
		if d.offers("Create room") {
			d.presses("Create room")
		}
		d.becomes(10*time.Second, field("host")+`?.closest('.field').querySelector('.error')?.innerText.includes(`+quoted(want)+`)`)
		if n := eval[int](d.tab, `document.querySelectorAll('.field.wrong').length`); n != 1 {
			t.Errorf("%q: %d fields are wrong", host, n)
		}
	}
	d.fill("host", "tickets.example.org")
	d.fill("path", "/a?b=c")
	d.presses("Review")
	d.presses("Create room")
	d.becomes(10*time.Second, field("path")+`?.closest('.field').querySelector('.error')?.innerText.includes('is not a plain path')`)
	var zones []struct{ Name string }
	if o.good("GET", "/zones", "", &zones); len(zones) != 1 {
		t.Errorf("a room that was refused leaves %v behind", zones)
	}
	var records []struct{ Operation, Name string }
	if o.good("GET", "/anteroom/v1/audit?last=100", "", &records); len(records) == 0 || records[len(records)-1].Name != "shop.example" {
		t.Errorf("a room that was refused leaves records behind: %+v", records)
	}
	d.fill("path", "/checkout")
	d.fill("host", "https://Shop.Example:8443/cart?x=1")
	d.presses("Review")
	d.presses("Create room")
	d.says("checkout created.")
	if r := d.room("checkout"); r.ID == "" {
		t.Error("there is no room")
	}
}

// An operator makes a room with five fields, sees a surge come, holds everybody with one button, and takes it back.
func TestDashboardFiveFieldsSurgeQueueAllAndUndo(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	d := sitDown(t, o, operatorToken)
	d.presses("New room")
	for _, f := range [][2]string{{"name", "checkout"}, {"host", "shop.example"}, {"path", "/"}, {"total_active_users", "2"}, {"new_users_per_minute", "2"}} {
		d.fill(f[0], f[1])
	}
	d.presses("Review")
	d.says("checkout")
	d.presses("Create room")
	d.says("checkout created.")
	if r := d.room("checkout"); r.ID == "" || r.TotalUser != 2 {
		t.Fatalf("the API says %+v", r)
	}

	for range 7 {
		o.arrive("/")
	}
	d.says("5 people are waiting.")
	d.becomes(10*time.Second, `/2\s*\/\s*2/.test(document.querySelector('main').innerText)`)

	d.presses("Queue all")
	d.becomes(5*time.Second, `document.querySelector('dialog[open]')`)
	d.presses(eval[string](d.tab, `document.querySelector('dialog[open] footer button:last-child').innerText.trim()`))
	eventually(t, 10*time.Second, func() string {
		if !d.room("checkout").QueueAll {
			return "queue_all is off"
		}
		return ""
	})
	d.becomes(10*time.Second, `[...document.querySelectorAll('.toast button')].some(b => b.innerText.startsWith('Undo'))`)
	eval[bool](d.tab, `[...document.querySelectorAll('.toast button')].filter(b => b.innerText.startsWith('Undo')).at(-1).click(), true`)
	eventually(t, 10*time.Second, func() string {
		if d.room("checkout").QueueAll {
			return "queue_all is still on"
		}
		return ""
	})
	if foreign := d.foreign(); len(foreign) > 0 {
		t.Errorf("the dashboard asked elsewhere: %s", strings.Join(foreign, " "))
	}
}

// foreign returns what the tab asked other hosts for.
func (d *desk) foreign() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.requests {
		if !strings.HasPrefix(r.url, d.o.operators()) && !strings.HasPrefix(r.url, "data:") {
			out = append(out, r.url)
		}
	}
	return out
}
