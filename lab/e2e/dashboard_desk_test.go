package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// complaint is what the browser's console says against a page.
type complaint struct{ source, text string }

// hear collects what the console says against the desk's pages from now on. Refused requests are told
// as of "network"; whatever else there is, scripts that threw and policies that were broken, fails the test.
func (d *desk) hear() {
	d.t.Helper()
	err := chromedp.Listen(d.ctx, func(ev any) {
		var c complaint
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			c = complaint{"exception", ev.ExceptionDetails.Text}
			if e := ev.ExceptionDetails.Exception; e != nil {
				c.text += " " + e.Description
			}
		case *runtime.EventConsoleAPICalled:
			if ev.Type != "error" && ev.Type != "warning" && ev.Type != "assert" {
				return
			}
			c.source = "console"
			for _, a := range ev.Args {
				c.text += " " + string(a.Value) + a.Description
			}
		case *log.EventEntryAdded:
			if ev.Entry.Level != "error" && ev.Entry.Level != "warning" {
				return
			}
			c = complaint{string(ev.Entry.Source), ev.Entry.Text + " " + ev.Entry.URL}
		default:
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.complaints = append(d.complaints, c)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	do(d.tab, runtime.Enable, cdp.Empty{})
	do(d.tab, log.Enable, cdp.Empty{})
	d.t.Cleanup(func() {
		for _, c := range d.said("exception", "console", "security", "javascript", "violation", "deprecation") {
			d.t.Errorf("the console of the dashboard says: %s: %s", c.source, c.text)
		}
	})
}

// said returns what the console said against the pages, of some sources or of all.
func (d *desk) said(sources ...string) (out []complaint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.complaints {
		if len(sources) == 0 || strings.Contains(strings.Join(sources, " "), c.source) {
			out = append(out, c)
		}
	}
	return out
}

// screen shows the dashboard on a screen so large, in light or in dark.
func (d *desk) screen(width, height int64, scheme string) {
	d.t.Helper()
	do(d.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	do(d.tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// labelled is the visible control that assistive technology calls so: by a label around it, a label for it, or its own.
func labelled(name string) string {
	return fmt.Sprintf(`[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('input, textarea, select, [role=switch]')].find(e => e.getClientRects().length && (e.getAttribute('aria-label') == %[1]q || [...(e.labels ?? [])].some(l => l.childNodes[0]?.textContent.trim() == %[1]q)))`, name)
}

// enters puts a value into a control at once, as pasting or a picker does.
func (d *desk) enters(control, value string) {
	d.t.Helper()
	d.becomes(10*time.Second, control)
	eval[bool](d.tab, fmt.Sprintf(`(e => {
		const proto = {TEXTAREA: HTMLTextAreaElement, SELECT: HTMLSelectElement}[e.tagName] ?? HTMLInputElement
		Object.getOwnPropertyDescriptor(proto.prototype, 'value').set.call(e, %[2]q)
		if (e.value != %[2]q) throw new Error('it holds ' + e.value)
		e.dispatchEvent(new Event('input', {bubbles: true}))
		e.dispatchEvent(new Event('change', {bubbles: true}))
		return true
	})(%[1]s)`, control, value))
}

// chooses picks what an option of a select says.
func (d *desk) chooses(name, option string) {
	d.t.Helper()
	find := fmt.Sprintf(`[...(%s)?.options ?? []].find(o => o.text.startsWith(%q))`, labelled(name), option)
	d.becomes(10*time.Second, find)
	d.enters(labelled(name), eval[string](d.tab, find+".value"))
}

// writes types into a control by the keyboard, over what stands there.
func (d *desk) writes(control, text string) {
	d.t.Helper()
	d.becomes(10*time.Second, control)
	eval[bool](d.tab, fmt.Sprintf(`(e => { e.focus(); e.select?.(); return true })(%s)`, control))
	do(d.tab, input.InsertText, input.InsertTextParams{Text: text})
	d.becomes(5*time.Second, fmt.Sprintf(`(%s).value == %q`, control, text))
}

// switches presses the switch of a field.
func (d *desk) switches(name string) {
	d.t.Helper()
	d.becomes(10*time.Second, fmt.Sprintf(`(e => e && !e.disabled)(%s)`, field(name)))
	eval[bool](d.tab, field(name)+`.click(), true`)
}

// href is where a button that is a link leads.
func (d *desk) href(text string) string {
	d.t.Helper()
	d.becomes(10*time.Second, button(text)+"?.href")
	return eval[string](d.tab, button(text)+".href")
}

// reads fetches an address as the dashboard does, and returns the answer.
func (d *desk) reads(address string) (status int, contentType, body string) {
	d.t.Helper()
	got := eval[struct {
		Status int
		Type   string
		Body   string
	}](d.tab, fmt.Sprintf(`fetch(%q).then(async r => ({Status: r.status, Type: r.headers.get('Content-Type'), Body: await r.text()}))`, address))
	return got.Status, got.Type, got.Body
}

// offers reports whether something can be pressed.
func (d *desk) offers(text string) bool {
	d.t.Helper()
	return eval[bool](d.tab, "!!"+button(text))
}

// drag draws with the pointer from one place to another, as a hand does: in steps.
func (d *desk) drag(x, y, toX, toY float64) {
	d.t.Helper()
	mouse := func(kind input.DispatchMouseEventType, x, y float64, buttons int64) {
		p := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Buttons: buttons, PointerType: "mouse"}
		if kind != input.DispatchMouseEventTypeMouseMoved {
			p.Button, p.ClickCount = "left", 1
		}
		do(d.tab, input.DispatchMouseEvent, p)
	}
	mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
	mouse(input.DispatchMouseEventTypeMousePressed, x, y, 1)
	const steps = 5
	for i := 1.0; i <= steps; i++ {
		mouse(input.DispatchMouseEventTypeMouseMoved, x+(toX-x)*i/steps, y+(toY-y)*i/steps, 1)
	}
	mouse(input.DispatchMouseEventTypeMouseReleased, toX, toY, 0)
}

// toRoom is the path of a page of a room of the office's zone.
func toRoom(name, page string) string {
	return strings.TrimSuffix("/rooms/shop.example/"+name+"/"+page, "/")
}

// busyRoom makes a room with two places and sends so many people there, none of whom comes again.
func busyRoom(t *testing.T, o *office, people int) string {
	t.Helper()
	id := o.newRoom(fields{"name": "checkout", "total_active_users": 2, "new_users_per_minute": 2})
	for range people {
		o.arrive("/")
	}
	return id
}

// quoted is a string of the script language.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// keys presses keys one after the other, wherever the focus is: letters, and \r, \t and \x1b for Enter, Tab and Escape.
func (d *desk) keys(all string) {
	d.t.Helper()
	named := map[rune]struct {
		name string
		code int64
	}{'\r': {"Enter", 13}, '\t': {"Tab", 9}, '\x1b': {"Escape", 27}}
	for _, r := range all {
		p := input.DispatchKeyEventParams{Type: "keyDown", Key: string(r), Text: string(r)}
		if n, ok := named[r]; ok {
			p.Key, p.Code, p.WindowsVirtualKeyCode = n.name, n.name, n.code
			if r != '\r' {
				p.Text = ""
			}
		}
		// With its text in the same event, a key that a page has taken for itself types nothing, as with a hand.
		do(d.tab, input.DispatchKeyEvent, p)
		p.Type, p.Text = "keyUp", ""
		do(d.tab, input.DispatchKeyEvent, p)
	}
}
