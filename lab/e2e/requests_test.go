package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shopOnly covers one path of the shop, so that pages outside can ask for what is inside.
func shopOnly(path string) string {
	return strings.Replace(oneSeat, `host: "*"`, "host: 127.0.0.1\n    path: "+path, 1)
}

// T20: parts of a page take no place, however many a foreign page asks for.
func TestSubresourcesTakeNoPlace(t *testing.T) {
	t.Parallel()
	g := startGate(t, shopOnly("/picture"))
	if a := newVisitor(t, g).get("/picture/dawn-mug.svg"); !a.admitted() {
		t.Fatal("no seat was free")
	}
	var page strings.Builder
	page.WriteString("<!doctype html><title>pictures</title>")
	for i := range 200 {
		fmt.Fprintf(&page, `<img src="/picture/dawn-mug.svg?%d">`, i)
	}
	page.WriteString(`<script src="/picture/a.js"></script><link rel="stylesheet" href="/picture/a.css">`)
	g.origin.add(t, "pictures.html", page.String())
	b := open(t)
	b.visit(g.url("/files/pictures.html"))
	b.becomes(20*time.Second, `document.readyState == 'complete'`)
	if r := g.room("shop"); r.Waiting+r.Away != 0 {
		t.Errorf("pictures took places: %+v", r)
	}
	eventually(t, 10*time.Second, func() string { // the browser tells us of answers after it has used them
		refused := b.answers(g.url("/picture/dawn-mug.svg?199"))
		if len(refused) == 1 && refused[0].Status == http.StatusTooManyRequests && refused[0].MimeType == "text/plain" {
			return ""
		}
		return fmt.Sprintf("a picture was answered with %+v", refused)
	})
	for _, kind := range []string{"image", "script", "style", "font", "video", "worker", "manifest"} {
		a := newVisitor(t, g).get("/picture/dawn-mug.svg", "Sec-Fetch-Dest", kind, "Accept", "*/*")
		if a.StatusCode != http.StatusTooManyRequests || a.ticket() != "" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, cookie %q, Retry-After %q", kind, a.Status, a.ticket(), a.Header.Get("Retry-After"))
		}
	}
	if r := g.room("shop"); r.Waiting+r.Away != 0 {
		t.Errorf("parts of pages took places: %+v", r)
	}
}

// A visitor whose session is over follows a link that downloads a file. The browser says that it failed, instead of saving a waiting page as
// report.pdf; once there is a seat, it downloads the file.
func TestDownloadIsNoWaitingPage(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	g.origin.add(t, "report.pdf", "%PDF-1.4 the report")
	b := open(t)
	b.visit(g.url("/"))
	b.getsIn()
	dir := t.TempDir()
	do(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID, EventsEnabled: new(true)})
	ended := make(chan string, 10)
	if err := chromedp.Listen(b.ctx, func(ev any) {
		if p, ok := ev.(*browser.EventDownloadProgress); ok && p.State != browser.DownloadProgressStateInProgress {
			ended <- string(p.State)
		}
	}); err != nil {
		t.Fatal(err)
	}
	download := func(want string) {
		t.Helper()
		eval[bool](b, `(a => (a.href = '/files/report.pdf', a.download = 'report.pdf', document.body.append(a), a.click(), true))(document.createElement('a'))`)
		select {
		case got := <-ended:
			if got != want {
				t.Errorf("the download ended as %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no download ends")
		}
	}
	download("completed")
	inside := loseSeat(b, g)
	os.Remove(filepath.Join(dir, "report.pdf"))
	download("canceled")
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("the browser has saved %v", files)
	}
	inside.leave()
	download("completed")
	if saved, err := os.ReadFile(filepath.Join(dir, "report.pdf")); err != nil || !strings.HasPrefix(string(saved), "%PDF") {
		t.Errorf("the browser has saved %.60q: %v", saved, err)
	}
}

// A site's service worker hands every request on, and its navigations look like what scripts ask for. The visitor sees the waiting page all
// the same, also where scripts get JSON.
func TestVisitorOfASiteWithAServiceWorkerSeesThePage(t *testing.T) {
	for name, worker := range map[string]string{"the request": "fetch(e.request)", "a request of its own": "fetch(e.request, {credentials: 'include'})"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGate(t, strings.Replace(oneSeat, "session_duration", "json_response_enabled: true\n    session_duration", 1))
			g.origin.add(t, "worker.js", "oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim()); onfetch = e => e.respondWith("+worker+")")
			g.origin.add(t, "app.html", `<!doctype html><title>App</title><p id=inside><b>the app</b><script>navigator.serviceWorker.register('worker.js')</script>`)
			b := open(t)
			b.visit(g.url("/files/app.html"))
			b.becomes(20*time.Second, `navigator.serviceWorker.controller`)
			inside := loseSeat(b, g)
			b.visit(g.url("/files/app.html?again"))
			b.waits()
			b.reference()
			inside.leave()
			b.getsIn()
		})
	}
}

// T21: what the browser asks for ahead of the visitor takes neither seat nor place.
func TestPrefetchTakesNeitherSeatNorPlace(t *testing.T) {
	t.Parallel()
	g := startGate(t, shopOnly("/cart"))
	g.origin.add(t, "ahead.html", `<!doctype html><title>ahead</title><link rel="prefetch" href="/cart">
<script type="speculationrules">{"prerender": [{"source": "list", "urls": ["/cart"], "eagerness": "immediate"}]}</script><p>ahead`)
	b := open(t)
	b.visit(g.url("/files/ahead.html"))
	eventually(t, 15*time.Second, func() string {
		if !strings.Contains(g.log(), `"path":"/cart"`) {
			return "the browser asked for nothing ahead"
		}
		return ""
	})
	for _, purpose := range []string{"prefetch", "prefetch;prerender", "prefetch;anonymous-client-ip"} {
		if a := newVisitor(t, g).get("/cart", "Sec-Purpose", purpose); a.admitted() || a.ticket() != "" {
			t.Errorf("%s: %s, cookie %q", purpose, a.Status, a.ticket())
		}
	}
	if r := g.room("shop"); r.Active+r.Waiting+r.Away != 0 {
		t.Errorf("nobody has come, yet: %+v", r)
	}
	b.visit(g.url("/cart"))
	b.getsIn()
}

func TestPostOfAWaitingVisitorIsNotReplayed(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	// The waiting page's policy allows no forms; one that was open elsewhere is sent.
	b.visit("about:blank")
	b.try(fmt.Sprintf(`(() => { const f = document.createElement('form'); f.method = 'post'; f.action = %q;
		f.innerHTML = '<input name=product value=dawn-mug>'; document.body.append(f); f.submit() })()`, g.url("/cart")))
	b.waits()
	if got := b.answers(g.url("/cart")); len(got) != 1 || got[0].Status != http.StatusTooManyRequests {
		t.Errorf("the POST of a waiting visitor was answered with %+v", got)
	}
	inside.leave()
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`) // there is no page of the site to go back to
	if n := len(g.origin.seen("POST", "/cart")); n != 0 {
		t.Errorf("the origin got the POST %d times; the visitor has not sent it again", n)
	}
	if n := len(g.origin.seen("GET", "/cart")); n != 1 {
		t.Errorf("the origin got GET /cart %d times, want once", n)
	}
}

// loseSeat takes the seat of a visitor who has a page of the shop open, for another visitor.
func loseSeat(b *tab, g *gate) (inside *visitor) {
	b.t.Helper()
	// In line before the seat is free: the page asks the shop for news, and its next question would take the seat again.
	inside = newVisitor(b.t, g)
	if a := inside.get("/"); a.admitted() {
		b.t.Fatal("there is a second seat")
	}
	eval[bool](b, `fetch('/leave', {method: 'POST'}).then(r => window.left = r.ok), true`)
	b.becomes(10*time.Second, `window.left`)
	eventually(b.t, 20*time.Second, func() string {
		if a := inside.get("/"); !a.admitted() {
			return a.Status
		}
		return ""
	})
	return inside
}

// A visitor sends a form, and the session is over. The form is not sent on. After the wait, the page that it
// stood on is there again, with script and without.
func TestFormOfAWaitingVisitorBringsBackItsPage(t *testing.T) {
	for name, script := range map[string]bool{"with script": true, "without script": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGate(t, oneSeat)
			b := open(t)
			address := g.url("/product/dawn-mug?color=red")
			b.visit(address)
			b.getsIn()
			inside := loseSeat(b, g)
			do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
			b.act(chromedp.Click(chromedp.CSS("form[action='/cart'] button")))
			b.waits()
			if got := b.text("#unsent"); got != "Your form has not been sent. You can send it when it is your turn." {
				t.Errorf("the page says %q", got)
			}
			inside.leave()
			b.becomes(40*time.Second, `document.title.startsWith('Dawn mug')`)
			if got := eval[string](b, "location.href"); got != address {
				t.Errorf("admitted at %s, want %s", got, address)
			}
			if n := len(g.origin.seen("POST", "/cart")) + len(g.origin.seen("GET", "/cart")); n != 0 {
				t.Errorf("the origin was asked for the form's address %d times", n)
			}
			b.act(chromedp.Click(chromedp.CSS("form[action='/cart'] button")))
			b.becomes(20*time.Second, `document.title.startsWith('Your cart')`)
		})
	}
}

// With resubmit_forms the page sends the form itself, once.
func TestFormOfAWaitingVisitorIsSentOnce(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "session_duration", "resubmit_forms: true\n    session_duration", 1))
	b := open(t)
	b.visit(g.url("/product/dawn-mug"))
	b.getsIn()
	inside := loseSeat(b, g)
	// More fields than the shop asks for, one of them called like the function that sends a form.
	eval[bool](b, `document.querySelector("form[action='/cart']").insertAdjacentHTML('beforeend', '<input name=submit value=1><textarea name=note>a "b"\nc & é</textarea>'), true`)
	b.act(chromedp.Click(chromedp.CSS("form[action='/cart'] button")))
	b.waits()
	if got := b.text("#unsent"); got != "Your form will be sent when it is your turn. Keep this page open." {
		t.Errorf("the page says %q", got)
	}
	// A link opens beside the page, which keeps the form.
	if got := eval[string](b, `(a => (addEventListener('click', e => e.preventDefault()), a.click(), a.target))(document.querySelector('a[href*="__anteroom=move"]'))`); got != "_blank" {
		t.Errorf("a link has the target %q", got)
	}
	inside.leave()
	b.becomes(40*time.Second, `document.title.startsWith('Your cart') && document.body.innerText.includes('Dawn mug')`)
	sent := func() string {
		got := g.origin.seen("POST", "/cart")
		if len(got) != 1 || got[0].body != "product=dawn-mug&submit=1&note=a+%22b%22%0D%0Ac+%26+%C3%A9" {
			return fmt.Sprintf("the origin got the form %d times: %+v", len(got), got)
		}
		return ""
	}
	if problem := sent(); problem != "" {
		t.Fatal(problem)
	}
	b.back()
	always(t, 3*time.Second, sent)
}

func TestRejectPageDoesNotRefresh(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "session_duration", "queueing_method: reject\n    session_duration", 1))
	a := newVisitor(t, g).get("/")
	if a.admitted() || a.Header.Get("Refresh") != "" || a.Header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(a.text(t)), "http-equiv") {
		t.Errorf("%s, Refresh %q", a.Status, a.Header.Get("Refresh"))
	}
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	if got := b.text("h1"); got != "Not available right now" {
		t.Errorf("heading: %q", got)
	}
	always(t, 4*time.Second, func() string {
		if n := len(b.asked(func(r request) bool { return true })); n != 1 {
			return fmt.Sprintf("the page asked again:\n%v", b)
		}
		return ""
	})
	if r := g.room("shop"); r.Waiting+r.Active != 0 {
		t.Errorf("somebody is in line of a room that admits nobody: %+v", r)
	}
}

// jsonFields are the published members of cfWaitingRoom.
var jsonFields = []string{"inWaitingRoom", "waitTimeKnown", "waitTime", "waitTime25Percentile", "waitTime50Percentile",
	"waitTime75Percentile", "waitTimeFormatted", "queueIsFull", "queueAll", "lastUpdated", "refreshIntervalSeconds",
	"queueingMethod", "isFIFOQueue", "isRandomQueue", "isPassthroughQueue", "isRejectQueue", "isEventActive",
	"isEventPrequeueing", "timeUntilEventStart", "timeUntilEventStartFormatted", "timeUntilEventEnd",
	"timeUntilEventEndFormatted", "shuffleAtEventStart", "turnstile", "infiniteQueue"}

func TestJSONForApps(t *testing.T) {
	t.Parallel()
	const asJSON = "json_response_enabled: true\n    queueing_status_code: 202\n    session_duration"
	g := startGate(t, strings.Replace(oneSeat, "session_duration", asJSON, 1))
	exact := startGate(t, strings.Replace(oneSeat, "session_duration", "json_response_exact: true\n    "+asJSON, 1))
	inside := newVisitor(t, g).enter()
	newVisitor(t, exact).enter()
	v, other := newVisitor(t, g), newVisitor(t, exact)
	for _, c := range []struct {
		accept      string
		json, exact bool // by default, and with json_response_exact
	}{
		{"application/json", true, true},
		{"application/json, text/plain", true, false},
		{"application/json;q=1", true, false},
		{"application/json, text/html", false, false},
		{"*/*", false, false},
		{"text/html", false, false},
	} {
		for v, want := range map[*visitor]bool{v: c.json, other: c.exact} {
			a := v.get("/", "Accept", c.accept)
			kind := a.Header.Get("Content-Type")
			if isJSON := strings.HasPrefix(kind, "application/json"); isJSON != want || a.StatusCode != http.StatusAccepted {
				t.Errorf("Accept: %s: %s, %s, want JSON %v", c.accept, a.Status, kind, want)
			}
		}
	}
	// A newcomer: who comes early, as v does, is sent a shorter Refresh header than the interval.
	a := newVisitor(t, g).get("/", "Accept", "application/json")
	var object struct {
		CfWaitingRoom map[string]any `json:"cfWaitingRoom"`
	}
	if err := json.Unmarshal(a.body, &object); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	if n := len(object.CfWaitingRoom); n != len(jsonFields) || n != 25 {
		t.Errorf("%d fields, want 25: %s", n, a.body)
	}
	for _, name := range jsonFields {
		if _, ok := object.CfWaitingRoom[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	refresh, _ := object.CfWaitingRoom["refreshIntervalSeconds"].(float64)
	if fmt.Sprint(refresh) != a.Header.Get("Refresh") || refresh < 1 {
		t.Errorf("refreshIntervalSeconds is %v, Refresh %q", refresh, a.Header.Get("Refresh"))
	}
	inside.leave()
	eventually(t, 20*time.Second, func() string {
		a := v.get("/", "Accept", "application/json")
		if !a.admitted() || !strings.Contains(string(a.body), `"inWaitingRoom":false`) {
			return fmt.Sprintf("%s %s", a.Status, a.body)
		}
		return ""
	})
}

// A page that stays open while its session ends goes on asking by script, with the Accept of its library.
func TestScriptsOfAPageGetJSONWhileTheVisitorWaits(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "session_duration", "json_response_enabled: true\n    queueing_status_code: 202\n    session_duration", 1))
	newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	const asked = `(async () => {
		const r = await fetch('/cart', {headers: %s}), body = await r.text()
		return r.status + ' ' + r.headers.get('Content-Type') + ' ' + body.startsWith('{"cfWaitingRoom":{"inWaitingRoom":true,')
	})().then(x => window.got = x), true`
	for _, headers := range []string{`{}`, `{Accept: 'application/json, text/plain, */*'}`} {
		eval[bool](b, "window.got = '', "+fmt.Sprintf(asked, headers))
		b.becomes(10*time.Second, `window.got == '202 application/json true'`)
	}
	if n := g.room("shop").Waiting; n != 1 {
		t.Errorf("%d are waiting, want 1: a script has taken a place of its own", n)
	}
}
