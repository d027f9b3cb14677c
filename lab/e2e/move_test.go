package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

// A visitor continues on another device, with and without JavaScript. Opening the link moves nothing, and the first device says where
// the place is. The turn comes at the other device.
func TestVisitorContinuesOnAnotherDevice(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("scripts=%v", scripts), func(t *testing.T) {
			t.Parallel()
			g := startGate(t, oneSeat)
			inside := newVisitor(t, g).enter()
			phone, laptop, behind := open(t), open(t), open(t)
			if !scripts {
				for _, b := range []*tab{phone, laptop} {
					do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
				}
			}
			do(phone, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 568, DeviceScaleFactor: 2, Mobile: true})
			heading := func(b *tab, text string) {
				b.t.Helper()
				b.becomes(20*time.Second, fmt.Sprintf("document.querySelector('h1')?.textContent == '%s'", text))
			}
			// Without script the page may be about to load itself again.
			press := func(b *tab, selector string) {
				b.t.Helper()
				b.becomes(10*time.Second, fmt.Sprintf(`(e => e && (e.click(), true))(document.querySelector('%s'))`, selector))
			}
			fits := func(b *tab) {
				b.t.Helper()
				if !scripts {
					return
				}
				for _, v := range b.violations(axe(t)) {
					t.Errorf("%s (%s): %v", v.ID, v.Help, v.Nodes)
				}
				if w, have := eval[int](b, "document.documentElement.scrollWidth"), eval[int](b, "innerWidth"); w > have {
					t.Errorf("%d pixels wide, at most %d", w, have)
				}
			}
			address := g.url("/product/dawn-mug?color=red&x=%3Cb%3E")
			if scripts {
				address += "#reviews"
			}
			phone.visit(address)
			phone.waits()
			place := phone.reference()
			behind.visit(g.url("/"))
			behind.waits()
			if got := behind.text("#ahead"); got != "1" {
				t.Errorf("people ahead of the next: %q", got)
			}

			press(phone, `a[href*="__anteroom=move"]`)
			heading(phone, "Continue on another device")
			fits(phone)
			if size := eval[int](phone, "document.querySelector('svg.code').clientWidth"); size < 200 {
				t.Errorf("the code is %d pixels wide", size)
			}
			link := phone.text(".link a")

			// The visitor looks at the link, and thinks better of it.
			laptop.visit(link)
			heading(laptop, "Continue here")
			fits(laptop)
			press(phone, `a[href*="color=red"]:not([href*="__anteroom"])`)
			phone.becomes(10*time.Second, "!!document.querySelector('#ref')")
			if got := phone.reference(); got != place || eval[string](phone, "location.href") != address {
				t.Errorf("back at %s with %s, was at %s with %s", eval[string](phone, "location.href"), got, address, place)
			}

			press(laptop, "form button")
			laptop.becomes(10*time.Second, "!!document.querySelector('#ref')")
			if got := laptop.reference(); got != place || eval[string](laptop, "location.href") != address {
				t.Errorf("the laptop is at %s with %s", eval[string](laptop, "location.href"), got)
			}
			heading(phone, "You continue on another device")
			fits(phone)
			if cookies := do(phone, network.GetCookies, network.GetCookiesParams{URLs: []string{g.url("/")}}).Cookies; len(cookies) != 0 {
				t.Errorf("a cookie is still there: %+v", cookies)
			}
			if got := laptop.text("#ahead"); got != "0" {
				t.Errorf("people ahead on the laptop: %q", got)
			}
			phone.visit(link)
			heading(phone, "This link does not work")
			fits(phone)

			// With a stream, the next would go ahead of a page without script that is just loading itself again.
			if !scripts {
				behind.visit("about:blank")
			}
			inside.leave()
			laptop.getsIn()
			if scripts {
				behind.waits()
			}
		})
	}
}

// Whoever looks at a link for another device is in line meanwhile: the turn comes there, and so does the news that the place has moved.
func TestLinkForAnotherDeviceStaysInLine(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	moves := func(b *tab) (link string) {
		b.becomes(10*time.Second, `(e => e && (e.click(), true))(document.querySelector('a[href*="__anteroom=move"]'))`)
		b.becomes(10*time.Second, "!!document.querySelector('svg.code')")
		return b.text(".link a")
	}
	first, second, behind := open(t), open(t), open(t)
	address := g.url("/product/dawn-mug?color=red&x=%3Cb%3E")
	for _, b := range []*tab{first, second, behind} {
		b.visit(address)
		b.waits()
	}
	moves(first)
	link := moves(second)
	laptop := open(t)
	laptop.visit(link)
	laptop.becomes(10*time.Second, `(e => e && (e.click(), true))(document.querySelector('form button'))`)
	second.becomes(10*time.Second, "document.querySelector('h1')?.textContent == 'You continue on another device'")
	laptop.waits()
	inside.leave()
	first.getsIn()
	if at := eval[string](first, "location.href"); at != address {
		t.Errorf("the first is at %s", at)
	}
	behind.waits()
	laptop.waits()
}

// Where a place is outlives kill -9, at once after the move too.
func TestKillNineAfterAMove(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	phone, laptop := newVisitor(t, g).wait(), newVisitor(t, g)
	phone.place("/")
	copied := phone.ticketValue()
	shown := phone.get("/?__anteroom=move").text(t)
	_, link, _ := strings.Cut(shown, `<p class="link"><a href="`)
	link, _, found := strings.Cut(strings.TrimPrefix(link, g.url("")), `"`)
	if !found {
		t.Fatalf("no link in\n%s", shown)
	}
	laptop.get(link)
	if a := laptop.do("POST", link, "", "Sec-Fetch-Site", "same-origin"); a.StatusCode != 303 {
		t.Fatalf("%s\n%s", a.Status, a.text(t))
	}
	g.kill()
	g.start()
	eventually(t, 10*time.Second, func() string {
		phone.hold(copied)
		if p := phone.place("/"); p.Reason != "left" {
			return fmt.Sprintf("the phone has %v", p)
		}
		return ""
	})
	if p := laptop.place("/"); p.Admitted || p.Reason == "left" || p.Ahead == nil || *p.Ahead != 0 {
		t.Errorf("the laptop has %v", p)
	}
	if a := newVisitor(t, g).get(link); a.StatusCode != 410 {
		t.Errorf("the link: %s", a.Status)
	}
}
