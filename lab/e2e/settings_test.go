package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

// with changes a room: each pair is a key with its value as it stands, and as it shall be.
func with(room string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		room = strings.Replace(room, pairs[i], pairs[i+1], 1)
	}
	return room
}

// also adds a setting to a room.
func also(room, setting string) string {
	return strings.TrimSuffix(room, "\n") + "\n    " + setting + "\n"
}

func TestSettingsChangeWhileTheBrowserWaits(t *testing.T) {
	t.Parallel()
	g := startGate(t, also(oneSeat, "queue_all: true"))
	b := open(t)
	b.visit(g.url("/cart?x=1"))
	b.waits()
	heading := func(want string) {
		t.Helper()
		b.becomes(40*time.Second, fmt.Sprintf(`document.querySelector('h1').textContent == %q`, want))
	}
	heading("Please wait a moment")
	reference := b.reference()
	g.configure(with(oneSeat, "total_active_users: 1", "total_active_users: 0"))
	heading("You are in line")
	g.configure(also(with(oneSeat, "total_active_users: 1", "total_active_users: 0"), "queueing_method: random"))
	b.becomes(40*time.Second, `document.querySelector('#lead').textContent.includes('order is random')`)
	if got := b.reference(); got != reference {
		t.Errorf("the place %s became %s while the settings changed", reference, got)
	}
	g.configure(also(oneSeat, "queueing_method: random"))
	b.becomes(40*time.Second, `document.title.startsWith('Your cart')`)
	if got := eval[string](b, "location.search"); got != "?x=1" {
		t.Errorf("admitted at %q", got)
	}
}

func TestWaitingPageTurnsIntoClosedAndSuspended(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/cart"))
	b.waits()
	g.configure(also(oneSeat, "queueing_method: reject"))
	b.becomes(40*time.Second, `document.querySelector('h1').textContent == 'Not available right now'`)
	g.configure(also(oneSeat, "suspended: true"))
	other := newVisitor(t, g)
	eventually(t, 15*time.Second, func() string {
		if a := other.get("/"); !a.admitted() {
			return fmt.Sprintf("a suspended room still keeps people out: %s %v", a.Status, a.Header)
		}
		return ""
	})
	b.visit(g.url("/cart"))
	b.becomes(10*time.Second, `document.title.startsWith('Your cart')`)
}

// An operator who rejects everyone for a moment loses nobody who waits: the page says that it comes back, and does. That of a newcomer
// says that it does not.
func TestWaitingPageOutlivesAReject(t *testing.T) {
	t.Parallel()
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprint("script ", script), func(t *testing.T) {
			t.Parallel()
			g := startGate(t, oneSeat)
			inside := newVisitor(t, g).enter()
			b := open(t)
			do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
			b.visit(g.url("/cart"))
			b.waits()
			reference := b.reference()
			g.configure(also(oneSeat, "queueing_method: reject"))
			b.becomes(40*time.Second, `document.querySelector('h1').textContent == 'Not available right now'`)
			if page := eval[string](b, "document.body.innerText"); !strings.Contains(page, "This page updates automatically") || strings.Contains(page, "does not update") || b.reference() != reference {
				t.Errorf("the page of reference %s says %s", reference, page)
			}
			a := newVisitor(t, g).get("/", "Accept", "text/html")
			if body := string(a.body); a.Header.Get("Refresh") != "" || !strings.Contains(body, "This page does not update automatically") {
				t.Errorf("a newcomer's page: %v %s", a.Header, body)
			}
			inside.leave()
			g.configure(oneSeat)
			b.becomes(40*time.Second, `document.title.startsWith('Your cart')`)
		})
	}
}

func TestEveryStatusCodeOfTheWaitingPageWorks(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusAccepted, http.StatusTooManyRequests} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			g := startGate(t, also(oneSeat, fmt.Sprintf("queueing_status_code: %d", status)))
			inside := newVisitor(t, g).enter()
			b := open(t)
			b.visit(g.url("/cart"))
			b.waits()
			if got := b.answers(g.url("/cart")); len(got) != 1 || got[0].Status != int64(status) {
				t.Errorf("answers: %+v", got)
			}
			inside.leave()
			b.becomes(30*time.Second, `document.title.startsWith('Your cart')`)
		})
	}
}

// Rooms by path: the most specific one decides, and each has a ticket of its own.
func TestRoomsOfOneSiteDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	g := startGate(t, with(oneSeat, `host: "*"`, "host: 127.0.0.1\n    path: /product")+
		with(oneSeat, "name: shop", "name: till", `host: "*"`, "host: 127.0.0.1\n    path: /checkout"))
	first := newVisitor(t, g)
	if a := first.get("/product/dawn-mug"); !a.admitted() {
		t.Fatalf("no seat was free: %s", a.Status)
	}
	b := open(t)
	b.visit(g.url("/checkout"))
	b.becomes(10*time.Second, `document.title.startsWith('Checkout')`)
	b.visit(g.url("/product/dawn-mug"))
	b.waits()
	b.visit(g.url("/")) // no room
	b.becomes(10*time.Second, `document.querySelector('.goods')`)
	for _, path := range []string{"/product", "/product/", "/product/x/../dawn-mug", "/%70roduct/dawn-mug", "//product/dawn-mug", "/x/../product/dawn-mug"} {
		if a := newVisitor(t, g).get(path); a.admitted() {
			t.Errorf("%s went past the room: %s", path, a.Status)
		}
	}
	if a := newVisitor(t, g).get("/products"); !a.admitted() {
		t.Errorf("/products was taken for /product: %s", a.Status)
	}
	if p, q := g.room("shop"), g.room("till"); p.Active != 1 || q.Active != 1 {
		t.Errorf("active users: %+v, %+v", p, q)
	}
}
