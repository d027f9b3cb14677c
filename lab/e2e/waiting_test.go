package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// oneSeat is a room for one visitor at a time that the origin may end sessions of.
const oneSeat = `  - name: shop
    host: "*"
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 5m
    first_session: 5m
    enabled_origin_commands: revoke
`

func TestVisitorWaitsAndGetsInAtTheSameAddress(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	address := g.url("/product/dawn-mug?color=red&size=%C3%A4+1#reviews")
	b := open(t)
	b.visit(address)
	b.waits()
	if got := eval[string](b, "location.href"); got != address {
		t.Errorf("the waiting page stands at %s", got)
	}
	if got := b.text("h1"); got != "You are in line" {
		t.Errorf("heading: %q", got)
	}
	if got := b.text("#ahead"); got != "0" {
		t.Errorf("people ahead: %q", got)
	}
	if got := b.text("#waitTime"); got == "" || strings.HasPrefix(got, "no ") {
		t.Errorf("estimated wait: %q", got)
	}
	if got := b.text("#kept"); !strings.Contains(got, "Your place is kept until ") || strings.Contains(got, "{}") {
		t.Errorf("kept: %q", got)
	}
	b.reference()
	inside.leave()
	b.becomes(30*time.Second, `document.querySelector('h1').textContent == 'Dawn mug'`)
	if got := eval[string](b, "location.href"); got != address {
		t.Errorf("admitted at %s, want %s", got, address)
	}
	if n := len(g.origin.seen("GET", "/product/dawn-mug?color=red&size=%C3%A4+1")); n != 1 {
		t.Errorf("the origin saw the request %d times, want once, as it was written", n)
	}
	for _, r := range g.origin.all() {
		if strings.Contains(r.target, "__anteroom") {
			t.Errorf("the origin saw a question of the waiting page: %s", r.target)
		}
	}
	if got := b.foreign(g); len(got) > 0 {
		t.Errorf("the page asked others: %q", got)
	}
}

func TestLineMovesOnThePageAndEverybodyGetsInInOrder(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	ahead := open(t)
	ahead.visit(g.url("/"))
	ahead.waits()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	if got := b.text("#ahead"); got != "1" {
		t.Fatalf("people ahead: %q, want 1", got)
	}
	inside.leave()
	ahead.getsIn()
	if eval[bool](b, "!!"+showsShop) {
		t.Fatal("the second in line got in with the first")
	}
	b.becomes(20*time.Second, `document.getElementById('ahead').textContent == '0'`)
	if len(b.asked(func(r request) bool { return r.kind == "Document" })) != 1 {
		t.Errorf("the page was loaded anew to show the place:\n%v", b)
	}
	ahead.try(`document.querySelector('footer form').submit()`) // leaves
	b.getsIn()
}

func TestReloadAndSecondTabKeepThePlace(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/cart"))
	b.waits()
	reference := b.reference()
	later := newVisitor(t, g).wait() // whoever comes later must stay behind
	later.wait()                     // and has come back: the place is proven
	for range 5 {
		b.act(chromedp.Reload())
		b.waits()
		if got := b.reference(); got != reference || b.text("#ahead") != "0" {
			t.Fatalf("after a reload: reference %s, ahead %s; was %s, 0", got, b.text("#ahead"), reference)
		}
	}
	second := b.another()
	second.visit(g.url("/checkout"))
	second.waits()
	if got := second.reference(); got != reference {
		t.Errorf("the second tab has the place %s, the first %s", got, reference)
	}
	if n := g.room("shop").Waiting; n != 2 {
		t.Errorf("%d are waiting, want 2: the tabs are one visitor", n)
	}
	inside.leave()
	b.getsIn()
	second.getsIn()
	if n := g.room("shop").Active; n != 1 {
		t.Errorf("%d active users, want 1: the tabs are one visitor", n)
	}
	if eval[string](b, "location.pathname") != "/cart" || eval[string](second, "location.pathname") != "/checkout" {
		t.Errorf("the tabs ended at other addresses")
	}
}

func TestBackButtonAfterAdmissionShowsTheSite(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, `host: "*"`, "host: 127.0.0.1\n    path: /checkout", 1))
	inside := newVisitor(t, g)
	if a := inside.get("/checkout"); !a.admitted() {
		t.Fatal("no seat was free")
	}
	b := open(t)
	b.visit(g.url("/checkout"))
	b.waits()
	// Away to a page that no room covers, in by another tab, and back.
	b.visit(g.url("/files/plain.html"))
	second := b.another()
	second.visit(g.url("/checkout"))
	second.waits()
	g.configure(strings.Replace(g.rooms, "total_active_users: 1", "total_active_users: 2", 1))
	second.becomes(30*time.Second, `document.title.startsWith('Checkout')`)
	b.back()
	b.becomes(20*time.Second, `document.title.startsWith('Checkout')`)
	// The waiting page left no entry behind: forward and back stay on the site.
	second.visit(g.url("/cart"))
	second.back()
	second.becomes(20*time.Second, `document.title.startsWith('Checkout')`)
	if n := eval[int](second, "history.length"); n > 3 {
		t.Errorf("the history has %d entries: waiting pages among them", n)
	}
}

// In the rush at an opening nobody has left yet, and no forecast can be made. The limits say something all the same.
func TestOpeningRushSaysWhatTheLimitsSay(t *testing.T) {
	t.Parallel()
	g := startGate(t, `  - name: shop
    host: "*"
    total_active_users: 2
    new_users_per_minute: 2
    session_duration: 5m
    first_session: 5m
    disable_session_renewal: true
`)
	newVisitor(t, g).enter()
	newVisitor(t, g).enter()
	for range 4 {
		v := newVisitor(t, g).wait()
		eventually(t, 15*time.Second, func() string { // and comes back, which makes it a place
			v.wait()
			if n := g.room("shop").Waiting; n == 0 {
				return "the place does not count yet"
			}
			return ""
		})
	}
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	b.becomes(15*time.Second, `/^[12]–\d+ min$/.test(document.getElementById('waitTime').textContent)`)
}

// The built-in page has name, colors and logo of the site, and its own policy lets it.
func TestPageSaysWhoseLineItIs(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat+`    page_site_name: Dawn & Co
    page_title: Tickets for <Spring>
    page_color: "#00558c"
    page_color_dark: "#7cc7ff"
    page_logo: R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7
`)
	newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	if got := eval[string](b, `[...document.querySelectorAll('header p')].map(p => p.textContent).join('|')`); got != "Dawn & Co|Tickets for <Spring>" {
		t.Errorf("the page says %q", got)
	}
	if got := eval[string](b, "document.title"); !strings.Contains(got, "You are in line – Tickets for <Spring> – Dawn & Co – ") {
		t.Errorf("title: %q", got)
	}
	b.becomes(10*time.Second, "document.querySelector('header img').naturalWidth == 1")
	if got := eval[string](b, "getComputedStyle(document.querySelector('main')).borderTopColor"); got != "rgb(0, 85, 140)" {
		t.Errorf("the page has the color %s", got)
	}
	if got := b.foreign(g); len(got) > 0 {
		t.Errorf("the page asked others: %q", got)
	}
}

// Only answers renew the cookie, without which the place is lost: a page with a stream asks now and then, however much the stream has to say.
func TestPageInAMovingLineKeepsItsCookie(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat+"    place_hold: 30s\n")
	newVisitor(t, g).enter()
	var ahead []*visitor
	for range 15 {
		v := newVisitor(t, g).wait()
		v.stream()
		ahead = append(ahead, v)
	}
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	place := b.reference()
	asked := func(what string) int {
		return len(b.asked(func(r request) bool { return strings.Contains(r.url, "__anteroom="+what) }))
	}
	eventually(t, 10*time.Second, func() string {
		if asked("stream") == 0 {
			return "no stream"
		}
		return ""
	})
	for i, v := range ahead { // the stream says so each time, for half a minute in all
		if a := v.do("POST", "/?__anteroom=leave", "", "Sec-Fetch-Site", "same-origin"); a.StatusCode != 303 {
			t.Fatalf("%s\n%s", a.Status, a.text(t))
		}
		b.becomes(20*time.Second, fmt.Sprintf(`+document.querySelector('#ahead').textContent <= %d`, len(ahead)-1-i))
	}
	if asked("status") == 0 {
		t.Errorf("the page has not asked for the place while %d visitors ahead of it left", len(ahead))
	}
	if got := b.reference(); got != place {
		t.Errorf("the place was %s, and is %s", place, got)
	}
}

// The address leads to a download, which leaves the browser where it is: the page asks no more, and offers the address again.
func TestTurnThatLeadsToADownloadCanBeTakenAgain(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	g.origin.add(t, "tickets.zip", "PK\x03\x04\x00\x00") // which no browser shows
	inside := newVisitor(t, g).enter()
	b := open(t)
	address := g.url("/files/tickets.zip?color=red#top")
	b.visit(address)
	b.waits()
	dir := t.TempDir()
	do(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	inside.leave()
	b.becomes(40*time.Second, `document.querySelector('#turn a')`)
	if got := eval[string](b, `document.querySelector('#turn a').href`); got != address {
		t.Errorf("the page offers %s, want %s", got, address)
	}
	if got := b.text("#turn"); got != "It’s your turnContinue here" {
		t.Errorf("the page says %q", got)
	}
	questions := func() int {
		return len(b.asked(func(r request) bool { return strings.Contains(r.url, "__anteroom=") }))
	}
	before := questions()
	saved := func() string {
		if got, err := os.ReadFile(filepath.Join(dir, "tickets.zip")); err != nil || !strings.HasPrefix(string(got), "PK") {
			return fmt.Sprintf("the browser has saved %q: %v", got, err)
		}
		return ""
	}
	eventually(t, 20*time.Second, saved)
	if err := os.Remove(filepath.Join(dir, "tickets.zip")); err != nil {
		t.Fatal(err)
	}
	b.try(`document.querySelector('#turn a').click()`)
	eventually(t, 20*time.Second, saved)
	if n := questions(); n != before {
		t.Errorf("the page goes on asking: %d questions, %d before", n, before)
	}
}

// Pages on which nothing changes have the script too.
func TestScriptOfAClosedRoomsPageHasNoFault(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat+"    queueing_method: reject\n")
	b := open(t)
	do(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `faults = []; addEventListener('error', e => faults.push(e.message))`})
	b.visit(g.url("/"))
	b.waits()
	if got := b.text("h1"); got != "Not available right now" {
		t.Errorf("heading: %q", got)
	}
	if got := eval[[]string](b, "faults"); len(got) > 0 {
		t.Errorf("the page's script: %q", got)
	}
}
