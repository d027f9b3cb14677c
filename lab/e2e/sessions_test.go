package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

func TestAfterTheSessionThePageSaysWhyOneWaitsAgain(t *testing.T) {
	t.Parallel()
	g := startGate(t, with(oneSeat, "session_duration: 5m", "session_duration: 5s"))
	b := open(t)
	b.visit(g.url("/files/plain.html")) // no part of this page keeps the session alive
	b.becomes(10*time.Second, `document.title == 'plain'`)
	ticket := b.ticket(g.url("/"))
	if ticket.Session || ticket.Expires < float64(time.Now().Unix()) {
		t.Errorf("the cookie of a session: %+v", ticket)
	}
	eventually(t, 20*time.Second, func() string {
		if r := g.room("shop"); r.Active != 0 {
			return fmt.Sprintf("the session did not end: %+v", r)
		}
		return ""
	})
	newVisitor(t, g).enter() // and does not come again
	b.visit(g.url("/files/plain.html"))
	b.waits()
	if got := b.text("#note"); !strings.Contains(got, "Your session has ended") {
		t.Errorf("the page says %q", got)
	}
	b.becomes(30*time.Second, `document.title == 'plain'`)
}

func TestServerSentEventsFlowToAdmittedVisitors(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	b := open(t)
	b.visit(g.url("/"))
	b.getsIn()
	got := eval[int](b, `new Promise((done, failed) => {
		const feed = new EventSource('/ticker')
		let n = 0
		feed.addEventListener('stock', () => { if (++n == 3) { feed.close(); done(n) } })
		feed.onerror = () => failed(new Error('closed after ' + n))
	})`)
	if got != 3 {
		t.Errorf("%d events", got)
	}
}

func TestOriginThatIsGoneCostsNobodyASession(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	waiting := newVisitor(t, g).wait()
	place := waiting.place("/")
	g.origin.stop()
	a := inside.get("/")
	if a.StatusCode != http.StatusBadGateway || a.admitted() || !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("without an origin: %s %v", a.Status, a.Header)
	}
	if p := waiting.place("/"); p.Ref != place.Ref || p.Admitted {
		t.Errorf("the place was %v and is %v", place, p)
	}
	g.origin.startNginx(t)
	eventually(t, 20*time.Second, func() string {
		if a := inside.get("/"); !a.admitted() {
			return a.Status
		}
		return ""
	})
	if r := g.room("shop"); r.Active != 1 || r.Waiting != 1 {
		t.Errorf("%+v", r)
	}
}

// A POST that waited is answered with a page, and what refreshes that page is a GET, also
// where the browser does it alone.
func TestWithoutScriptAPostIsNotRepeatedByTheRefresh(t *testing.T) {
	t.Parallel()
	g := startGate(t, shopOnly("/cart"))
	inside := newVisitor(t, g)
	if a := inside.get("/cart"); !a.admitted() {
		t.Fatal("no seat was free")
	}
	g.origin.add(t, "form.html", `<!doctype html><title>form</title><form method="post" action="/cart"><input name="product" value="dawn-mug"></form>`)
	b := open(t)
	do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit(g.url("/files/form.html"))
	b.try(`document.forms[0].submit()`)
	b.waits()
	documents := func() (out []request) {
		return b.asked(func(r request) bool { return strings.HasSuffix(r.url, "/cart") && r.kind == "Document" })
	}
	eventually(t, 15*time.Second, func() string {
		if len(documents()) < 2 {
			return "the page did not come back by itself"
		}
		return ""
	})
	for i, r := range documents() {
		if want := map[bool]string{true: "POST", false: "GET"}[i == 0]; r.method != want {
			t.Errorf("request %d is a %s", i, r.method)
		}
	}
	g.configure(with(g.rooms, "total_active_users: 1", "total_active_users: 2"))
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`)
	if n := len(g.origin.seen("POST", "/cart")); n != 0 {
		t.Errorf("the origin got the POST %d times", n)
	}
}

func TestPlaceLapsesWhenNothingIsHeardAndThePageSaysSo(t *testing.T) {
	t.Parallel()
	g := startGate(t, also(oneSeat, "place_hold: 30s"))
	newVisitor(t, g).enter()
	gone := newVisitor(t, g).wait()
	place, ticket := gone.place("/"), gone.ticketValue()
	if left := time.Until(time.UnixMilli(place.Kept)); left < 25*time.Second || left > 45*time.Second {
		t.Errorf("the place is kept for %v more", left)
	}
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	reference := b.reference()
	// The promise, ten seconds of grace, and ten more until somebody looks. The browser is
	// heard of all the time.
	eventually(t, 90*time.Second, func() string {
		if left := time.Until(time.UnixMilli(place.Kept).Add(22 * time.Second)); left > 0 {
			return fmt.Sprintf("%v more to wait", left)
		}
		return ""
	})
	if got := b.reference(); got != reference {
		t.Errorf("the place of the open page %s became %s", reference, got)
	}
	late := newVisitor(t, g)
	late.hold(ticket)
	if a := late.get("/"); !strings.Contains(a.note(t), "your earlier place expired") {
		t.Errorf("the page says %q", a.note(t))
	}
	if p := late.place("/"); p.Ref == place.Ref || p.Ahead == nil || *p.Ahead != 1 {
		t.Errorf("the new place is %v, the old one was %v", p, place)
	}
}

// The visitors' tickets are in no log and no metric.
func TestNoTicketIsWrittenDown(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat, "log:\n  level: debug")
	inside, waiting := newVisitor(t, g).enter(), newVisitor(t, g).wait()
	waiting.place("/cart?secret=hunter2")
	inside.get("/cart?secret=hunter2")
	status, metrics := g.ask("/metrics")
	if status != http.StatusOK || !strings.Contains(metrics, "anteroom_") {
		t.Fatalf("metrics: %d %.300s", status, metrics)
	}
	_, page := g.ask("/-/status")
	keys, err := os.ReadFile(g.data() + "/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"log": g.log(), "metrics": metrics, "status": page} {
		for _, secret := range []string{inside.ticketValue(), waiting.ticketValue(), "hunter2"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds %s", name, secret)
			}
		}
	}
	if len(keys) == 0 {
		t.Error("there are no keys")
	}
}
