package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/ticket/proof"
)

func TestRaisedLimitLetsTheWaitingBrowserIn(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	// A faulty file changes nothing.
	g.configure(strings.Replace(oneSeat, "total_active_users: 1", "total_active_users: many", 1))
	g.waitLog("the last good one stays in force", 1)
	if !eval[bool](b, "!!"+showsLine) {
		t.Error("a faulty configuration let somebody in")
	}
	if status, body := g.ask("/-/status"); !strings.Contains(body, "many") {
		t.Errorf("the status does not show the fault: %d %s", status, body)
	}
	g.configure(strings.Replace(oneSeat, "total_active_users: 1", "total_active_users: 2", 1))
	b.getsIn()
	if a := inside.get("/"); !a.admitted() {
		t.Error("the reload cost a session")
	}
}

// Four visitors come back when they are told, which is some twenty seconds later while the limits are 0. When the room opens
// meanwhile, they still enter before those who come then.
func TestVisitorsWhoWaitedEnterFirstWhenTheRoomOpens(t *testing.T) {
	t.Parallel()
	room := func(limit int) string {
		return fmt.Sprintf("  - name: shop\n    host: '*'\n    total_active_users: %d\n    new_users_per_minute: %[1]d\n    session_duration: 5m\n    first_session: 5m\n", limit)
	}
	g := startGate(t, room(0))
	entered, away := make(chan string, 20), make(chan struct{}, 20)
	comes := func(name string) {
		go func() {
			v := newVisitor(t, g)
			for {
				a, err := v.try(http.MethodGet, "/", "")
				if err != nil || a.admitted() {
					entered <- name
					return
				}
				wait := after(a)
				if wait > 10*time.Second {
					away <- struct{}{}
				}
				<-time.After(wait) // what the page does
			}
		}()
	}
	for range 4 {
		comes("one who waited")
	}
	for range 4 {
		<-away
	}
	g.configure(room(4))
	g.waitLog("configuration reloaded", 1)
	for range 8 {
		comes("one who came then")
	}
	for range 4 {
		if name := <-entered; name != "one who waited" {
			t.Errorf("%s is admitted", name)
		}
	}
}

func TestRotatedKeysKeepPlaceAndSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	reference, ticket := b.reference(), b.ticket(g.url("/")).Value
	g.command("key", "rotate", "--data", g.data())
	g.waitLog("configuration reloaded", 1)
	b.act(chromedp.Reload())
	b.waits()
	if got := b.reference(); got != reference || b.text("#ahead") != "0" {
		t.Errorf("the place %s became %s", reference, got)
	}
	if keys := g.command("key", "list", "--data", g.data()); strings.Count(keys, "\n") != 3 || strings.Count(keys, "current") != 1 {
		t.Errorf("the keys after one rotation:\n%s", keys)
	}
	if a := inside.get("/"); !a.admitted() {
		t.Error("the rotation cost a session")
	}
	if info, err := os.Stat(filepath.Join(g.data(), "keys.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info.Mode(), err)
	}
	inside.leave()
	b.getsIn()
	// After a leak the older keys go, and with them everybody's tickets.
	leaked := newVisitor(t, g)
	leaked.client.Transport.(*http.Transport).DisableKeepAlives = true // on one connection, newcomers of a moment are one
	leaked.wait()
	before := leaked.place("/")
	g.command("key", "rotate", "--forget", "--data", g.data())
	eventually(t, 15*time.Second, func() string {
		if p := leaked.place("/"); p.Ref == before.Ref {
			return "a ticket under a key that was dropped still has its place"
		}
		return ""
	})
	if strings.Contains(g.log(), ticket) {
		t.Error("the log holds a ticket")
	}
}

// variables of a custom page, with the form of their values.
var variables = map[string]string{
	"inWaitingRoom": "true", "waitTimeKnown": "true|false", "waitTime": `\d+`, "waitTime25Percentile": `\d+`,
	"waitTime50Percentile": `\d+`, "waitTime75Percentile": `\d+`, "waitTimeFormatted": `\w.*`, "waitTimeHours": `\d+`,
	"waitTimeHourMinutes": `\d+`, "queueIsFull": "false", "queueAll": "false", "lastUpdated": `\d{4}-\d\d-\d\dT[\d:.]+Z`,
	"refreshIntervalSeconds": `\d+`, "queueingMethod": "fifo", "isFIFOQueue": "true", "isRandomQueue": "false",
	"isPassthroughQueue": "false", "isRejectQueue": "false", "isEventActive": "false", "isEventPrequeueing": "false",
	"timeUntilEventStart": "0", "timeUntilEventStartFormatted": "unavailable", "timeUntilEventStartHours": "0",
	"timeUntilEventStartHourMinutes": "0", "timeUntilEventEnd": "0", "timeUntilEventEndFormatted": "unavailable",
	"timeUntilEventEndHours": "0", "timeUntilEventEndHourMinutes": "0", "shuffleAtEventStart": "false", "turnstile": "",
	"infiniteQueue": "false", "ahead": `\d+`, "aheadKnown": "true", "waitingUsers": `\d+`, "waitTimeLow": `\d+`,
	"waitTimeHigh": `\d+`, "reference": `[0-9a-f]{5}-[0-9a-f]{5}`, "keptUntil": `\d{4}-\d\d-\d\dT[\d:.]+Z`,
	"keptUntilUnixMilli": `\d{13}`, "placeLost": "false", "sessionOver": "false", "ticketUsed": "false",
	"lineFull": "false", "isPaused": "false",
}

func TestCustomPageShowsEveryVariableAndLetsTheVisitorIn(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("<!doctype html><title>ours</title>{{#isFIFOQueue}}<h1>A line of our own</h1>{{/isFIFOQueue}}{{#queueAll}}<h2>closed</h2>{{/queueAll}}<ul>")
	for name := range variables {
		fmt.Fprintf(&page, `<li id="%s">{{%s}}</li>`, name, name)
	}
	page.WriteString("</ul>")
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGate(t, oneSeat+"    custom_page_file: "+file+"\n")
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/cart?x=1"))
	if b.text("h1") != "A line of our own" || eval[bool](b, "!!document.querySelector('h2')") {
		t.Fatalf("the page is not the operator's: %q", b.text("h1"))
	}
	// All at once, because the page loads itself again.
	values := eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll('li')].map(e => [e.id, e.textContent]))`)
	for name, form := range variables {
		if got := values[name]; !regexp.MustCompile("^(" + form + ")$").MatchString(got) {
			t.Errorf("%s is %q, want %s", name, got, form)
		}
	}
	inside.leave()
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`) // by the Refresh header
	if got := eval[string](b, "location.search"); got != "?x=1" {
		t.Errorf("admitted at %q", got)
	}
}

// One tag gives a custom page the live updates of the built-in one: in place, without the Refresh header, in a single tab's request.
func TestCustomPageIsLiveByOneTag(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(`<!doctype html><html lang="en"><title>ours</title><h1>A line of our own</h1><p>Ahead: <b id="ahead">{{ahead}}</b></p>
<p id="waitTime">{{waitTime}}</p><p id="message">{{message}}</p>
<script src="/.well-known/anteroom/live/en-US.js" data-status="{{status}}" defer></script>`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGate(t, oneSeat+"    custom_page_file: "+file+"\n")
	inside := newVisitor(t, g).enter()
	ahead := open(t)
	ahead.visit(g.url("/"))
	b := open(t)
	b.visit(g.url("/cart?x=1"))
	b.becomes(20*time.Second, `document.getElementById('ahead').textContent == '1' && !/^\d*$/.test(document.getElementById('waitTime').textContent)`)
	if got := eval[string](b, `[...document.querySelectorAll('body > :not([hidden])')].map(e => e.innerText).join('|')`); !strings.HasPrefix(got, "A line of our own|Ahead: 1|") {
		t.Errorf("the script shows %q", got)
	}
	inside.leave()
	ahead.getsIn()
	b.becomes(30*time.Second, `document.getElementById('ahead').textContent == '0'`)
	if n := len(b.asked(func(r request) bool { return r.kind == "Document" })); n != 1 {
		t.Errorf("the page was loaded %d times to show the place:\n%v", n, b)
	}
	ahead.try(`document.querySelector('footer form').submit()`) // leaves
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`)
	if got := eval[string](b, "location.search"); got != "?x=1" {
		t.Errorf("admitted at %q", got)
	}
}

func TestFaultyPageIsRefusedWithLineAndFix(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	g.configure(oneSeat + "    custom_page_html: \"<h1>{{> /etc/passwd}}</h1>\"\n")
	g.waitLog("includes another template", 1)
	if a := newVisitor(t, g).get("/"); !a.admitted() {
		t.Errorf("the last good configuration does not serve: %s", a.Status)
	}
}

func TestProofOfAdmissionVerifies(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, `host: "*"`, "zone: example.com\n    host: 127.0.0.1\n    path: /headers", 1))
	v := newVisitor(t, g)
	a := v.get("/headers", "X-Anteroom-Assertion", "mine", "x_anteroom_assertion", "mine", "X-Anteroom-Room", "mine", "X-Forwarded-For", "6.6.6.6", "Cookie", "mine=1")
	var got struct {
		Header http.Header `json:"header"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	tokens := got.Header["X-Anteroom-Assertion"]
	if len(tokens) != 1 {
		t.Fatalf("the origin got %d proofs: %s", len(tokens), a.body)
	}
	keys := newVisitor(t, g).get("/.well-known/anteroom/jwks.json")
	if keys.StatusCode != http.StatusOK || strings.Contains(string(keys.body), `"d"`) {
		t.Fatalf("keys: %s %s", keys.Status, keys.body)
	}
	verifier, err := proof.NewVerifier(keys.body, "", "example.com")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := verifier.Verify(tokens[0], time.Now())
	if err != nil {
		t.Fatalf("%v: %s", err, tokens[0])
	}
	if claims.Subject == "" || claims.Audience != "example.com" {
		t.Errorf("claims: %+v", claims)
	}
	broken := tokens[0][:len(tokens[0])-4] + "AAAA"
	if _, err := verifier.Verify(broken, time.Now()); err == nil {
		t.Error("a broken proof verifies")
	}
	for name, values := range got.Header {
		for _, value := range values {
			if value == "mine" || strings.Contains(value, "6.6.6.6") || strings.Contains(value, ticketCookie) {
				t.Errorf("the origin got %s: %s", name, value)
			}
		}
	}
	if got.Header.Get("Cookie") != "mine=1" {
		t.Errorf("the origin got the cookies %q", got.Header.Get("Cookie"))
	}
	// Outside the room there is nothing to prove.
	if a := v.get("/cart", "X-Anteroom-Assertion", "mine"); !a.admitted() {
		t.Fatal("not served")
	}
	for _, r := range g.origin.seen("GET", "/cart") {
		if r.header.Get("X-Anteroom-Assertion") != "" {
			t.Error("a request outside the room carries a proof")
		}
	}
}
