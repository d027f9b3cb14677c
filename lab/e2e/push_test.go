package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/gateway/push/pushtest"
)

const pushedSeat = oneSeat + "    web_push: true\n"

// subscribes makes Chromium, which has no push service without a screen and an account, subscribe at one of the test. script is the body
// of subscribe.
func (b *tab) subscribes(script string) {
	b.t.Helper()
	do(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `PushManager.prototype.subscribe = async function (options) {` + script + `}`})
	do(b, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted,
		BrowserContextID: do(b, target.GetTargetInfo, target.GetTargetInfoParams{}).TargetInfo.BrowserContextID})
}

// A visitor asks to be notified and closes the page; the cookie of the place expires. The push service gets a message that this browser alone
// can read, the page's worker shows it, and its link brings the visitor in. In dark and in light nothing about the page is wrong.
func TestVisitorClosesThePageAndIsTold(t *testing.T) {
	t.Parallel()
	service := pushtest.Serve(t)
	device := service.Browser()
	g := newGate(t, pushedSeat)
	g.program = filepath.Join(g.dir, "loopback") // no configuration of the binary lets it reach a push service of this machine
	build := exec.Command("go", "build", "-trimpath", "-o", g.program, "./server/testdata/loopback")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.start()
	t.Cleanup(g.end)
	inside := newVisitor(t, g).enter()
	b := openIn(t, whole)
	subscription, err := json.Marshal(map[string]any{"endpoint": device.Endpoint, "keys": map[string]string{"p256dh": device.P256DH, "auth": device.Auth}})
	if err != nil {
		t.Fatal(err)
	}
	b.subscribes(`localStorage.key = options.userVisibleOnly && options.applicationServerKey; return {toJSON: () => (` + string(subscription) + `)}`)
	b.visit(g.url("/product/dawn-mug?color=red"))
	b.waits()
	b.becomes(10*time.Second, `(e => e && !e.hidden && (e.click(), true))(document.querySelector('#tell'))`)
	b.becomes(20*time.Second, `document.querySelector('#push')?.checked && document.querySelector('#tell').textContent == 'We will notify you, even if this page is closed.' && document.querySelector('#kept').offsetParent == null`)
	b.isAccessible(axe(t))

	key := eval[string](b, "localStorage.key")
	worker := make(chan serviceworker.RegistrationID, 1)
	if err := chromedp.Listen(b.ctx, func(e any) {
		if e, ok := e.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				select {
				case worker <- r.RegistrationID:
				default:
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	do(b, serviceworker.Enable, cdp.Empty{})
	b.visit("about:blank")
	do(b, network.ClearBrowserCookies, cdp.Empty{})
	inside.leave()
	var m pushtest.Message
	select {
	case m = <-service.Got:
	case <-time.After(40 * time.Second):
		t.Fatal("the push service was told nothing")
	}
	var told struct {
		Title, URL string
	}
	if err := json.Unmarshal([]byte(m.Text), &told); err != nil || told.Title != "It’s your turn" {
		t.Fatalf("told %s: %v", m.Text, err)
	}

	if m.Key != key {
		t.Errorf("the browser has bound its subscription to %s, the message is signed with %s", key, m.Key)
	}
	// What the browser does with the message, while no page is open.
	origin, _ := url.Parse(g.url("/"))
	do(b, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: origin.Scheme + "://" + origin.Host, RegistrationID: <-worker, Data: m.Text})
	b.visit(told.URL)
	b.getsIn()
	if got, want := eval[string](b, "location.href"), g.url("/product/dawn-mug?color=red"); got != want {
		t.Errorf("came to %s, want %s", got, want)
	}
	b.becomes(10*time.Second, `navigator.serviceWorker.getRegistrations().then(all => all[0].getNotifications()).then(all => (n =>
		n && n.title == 'It’s your turn' && /^Your turn is kept until \d+:\d\d\s[AP]M\.$/.test(n.body) && n.data == `+fmt.Sprintf("%q", told.URL)+`)(all[0]))`)
}

// A browser without a push service says so, is told in the page as before, and can switch it off and on.
func TestBrowserWithoutPushServiceSaysSo(t *testing.T) {
	t.Parallel()
	g := startGate(t, pushedSeat)
	newVisitor(t, g).enter()
	b := openIn(t, whole)
	b.subscribes(`throw new DOMException('Registration failed - push service error', 'AbortError')`)
	b.visit(g.url("/"))
	b.waits()
	b.becomes(10*time.Second, `(e => e && !e.hidden && (e.click(), true))(document.querySelector('#tell'))`)
	b.becomes(20*time.Second, `document.querySelector('#push')?.checked === false && document.querySelector('#no-push').textContent == 'This browser cannot notify you when this page is closed.'`)
	if got := b.text("#tell"); got != "We will notify you here. Keep this page open." {
		t.Errorf("the button says %q", got)
	}
	b.isAccessible(axe(t))
}

// A room that does not offer it has no checkbox.
func TestRoomWithoutWebPushOffersNone(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	b := openIn(t, whole)
	b.subscribes(`localStorage.asked = 1`)
	b.visit(g.url("/"))
	b.waits()
	b.becomes(10*time.Second, `(e => e && !e.hidden && (e.click(), true))(document.querySelector('#tell'))`)
	b.becomes(20*time.Second, `document.querySelector('#sound') && navigator.serviceWorker.getRegistrations().then(all => all.some(r => r.active))`)
	if eval[bool](b, `!!document.querySelector('#push') || 'asked' in localStorage`) {
		t.Error("the page offers web push")
	}
}
