package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// A visitor leaves the line with and without JavaScript, and can take it back until the last step. Other tabs say so, and take no new place.
func TestVisitorLeavesTheLine(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("scripts=%v", scripts), func(t *testing.T) {
			t.Parallel()
			g := startGate(t, oneSeat)
			newVisitor(t, g).enter()
			b, behind := open(t), open(t)
			if !scripts {
				do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			}
			address := g.url("/product/dawn-mug?color=red&x=%3Cb%3E")
			if scripts {
				address += "#reviews"
			}
			b.visit(address)
			b.waits()
			behind.visit(g.url("/"))
			behind.waits()
			var other *tab
			if scripts {
				other = b.another()
				other.visit(g.url("/"))
				other.waits()
			}
			// Without script the page may be about to load itself again.
			press := func(selector string) {
				b.becomes(10*time.Second, fmt.Sprintf(`(e => e && (e.click(), true))(document.querySelector('%s'))`, selector))
			}
			press(`a[href*="__anteroom=leave"]`)
			b.becomes(10*time.Second, `document.querySelector('h1').textContent == 'Leave the line?'`)
			press("main p a")
			b.becomes(10*time.Second, "!!document.querySelector('#ref')")
			if got := eval[string](b, "location.href"); got != address {
				t.Errorf("back at %s, was %s", got, address)
			}
			if got := behind.text("#ahead"); got != "1" {
				t.Errorf("people ahead of the next: %q", got)
			}

			press(`a[href*="__anteroom=leave"]`)
			press("form button")
			b.becomes(10*time.Second, `document.querySelector('h1').textContent == 'You have left the line'`)
			if cookies := do(b, network.GetCookies, network.GetCookiesParams{URLs: []string{g.url("/")}}).Cookies; len(cookies) != 0 {
				t.Errorf("a cookie is still there: %+v", cookies)
			}
			behind.becomes(20*time.Second, `document.querySelector('#ahead').textContent == '0'`)
			if scripts {
				other.becomes(10*time.Second, `document.querySelector('h1').textContent == 'You have left the line'`)
			}
			press(`a[href*="color=red"]`)
			b.becomes(10*time.Second, "!!document.querySelector('#ref')")
			if got := eval[string](b, "location.href"); got != address {
				t.Errorf("joined again at %s, was at %s", got, address)
			}
			if got := b.text("#ahead"); got != "1" {
				t.Errorf("people ahead after joining again: %q, want 1", got)
			}
		})
	}
}

// A page in the background is offered the turn: no session begins before the visitor looks, or the countdown is over.
func TestTabInTheBackgroundIsOfferedTheTurn(t *testing.T) {
	for _, looks := range []bool{true, false} {
		t.Run(fmt.Sprintf("looks=%v", looks), func(t *testing.T) {
			t.Parallel()
			countdown := "5m"
			if !looks {
				countdown = "3s"
			}
			g := startGate(t, oneSeat+"    turn_countdown: "+countdown+"\n")
			inside := newVisitor(t, g).enter()
			b := open(t)
			b.visit(g.url("/"))
			b.waits()
			eventually(t, 10*time.Second, func() string {
				if len(b.asked(func(r request) bool { return strings.Contains(r.url, "__anteroom=stream") })) == 0 {
					return "no stream is open"
				}
				return ""
			})
			window := do(b, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
			state := func(s browser.WindowState) {
				do(b, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: window.WindowID, Bounds: &browser.Bounds{WindowState: s}})
			}
			state(browser.WindowStateMinimized)
			b.becomes(10*time.Second, "document.hidden")
			inside.leave()
			b.becomes(20*time.Second, `document.title.startsWith('✓ It’s your turn (')`)
			if _, status := g.ask("/-/status"); looks && !strings.Contains(status, `"active_users": 0,`) {
				t.Errorf("a session has begun while the page counts down: %s", status)
			}
			if looks {
				state(browser.WindowStateNormal)
			}
			b.getsIn()
		})
	}
}

// A visitor who asks for it is told of the turn by a notification of the page's worker, the only kind that a phone shows, and by a
// sound; the screen stays on meanwhile.
func TestVisitorIsToldOfTheTurn(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat+"    turn_countdown: 3s\n")
	inside := newVisitor(t, g).enter()
	b := open(t)
	// Chromium without a screen shows and plays nothing: what the page asks of it is noted, in a store that outlives the page.
	do(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const noted = what => { localStorage.told = (localStorage.told || '') + what + ' ' }
		const note = (of, name, what) => { const was = of[name]; of[name] = function (...args) { noted(what(...args)); return was.apply(this, args) } }
		note(WakeLock.prototype, 'request', kind => kind)
		note(OscillatorNode.prototype, 'start', () => 'beep')
		note(ServiceWorkerRegistration.prototype, 'showNotification', title => title)
	`})
	do(b, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted})
	b.visit(g.url("/"))
	b.waits()
	b.becomes(10*time.Second, `(e => e && !e.hidden && (e.click(), true))(document.querySelector('#tell'))`)
	for _, choice := range []string{"awake", "sound"} {
		b.becomes(10*time.Second, fmt.Sprintf(`(e => e && (e.checked || e.click(), e.checked))(document.querySelector('#%s'))`, choice))
	}
	b.becomes(10*time.Second, `localStorage.told?.includes('screen ') && localStorage.told.includes('beep beep beep ')`)
	b.becomes(10*time.Second, `navigator.serviceWorker.getRegistrations().then(all => all.some(r => r.active))`)
	eval[bool](b, "localStorage.told = '', true")

	window := do(b, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
	do(b, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: window.WindowID, Bounds: &browser.Bounds{WindowState: browser.WindowStateMinimized}})
	b.becomes(10*time.Second, "document.hidden")
	inside.leave()
	b.getsIn()
	if told := eval[string](b, "localStorage.told"); !strings.Contains(told, "beep beep beep") || !strings.Contains(told, "It’s your turn") {
		t.Errorf("of the turn the visitor was told by %q", told)
	}
}
