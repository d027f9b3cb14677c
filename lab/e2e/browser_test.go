package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// chromium is a running browser.
type chromium struct {
	ctx   context.Context
	close func()
}

// shell serves nearly all tests: Chromium without what draws windows, which takes a third of the processor time. whole is for what it has
// not: notifications, and processes of their own for frames in a sandbox. Each starts with the first test that needs it.
var (
	shell = browserOf("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
	whole = browserOf("chromium", "chromium-browser", "google-chrome")
)

var started struct {
	sync.Mutex
	close []func()
}

func closeBrowsers() {
	started.Lock()
	defer started.Unlock()
	for _, end := range started.close {
		end()
	}
}

// browserOf returns what starts a browser, once: the first of the names that is installed.
func browserOf(names ...string) func() (*chromium, error) {
	return sync.OnceValues(func() (*chromium, error) {
		b, err := startChromium(names...)
		if err == nil {
			started.Lock()
			defer started.Unlock()
			started.close = append(started.close, b.close)
		}
		return b, err
	})
}

// startChromium starts a browser with an empty profile.
func startChromium(names ...string) (*chromium, error) {
	path, err := find(names...)
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "anteroom-e2e-chromium-")
	if err != nil {
		return nil, err
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.IgnoreCertErrors,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("password-store", "basic"))
	ctx, end := chromedp.NewContext(alloc)
	b := &chromium{ctx: ctx, close: func() {
		end()
		stop()
		os.RemoveAll(profile)
	}}
	// The first run starts the process and binds it to this context.
	if err := chromedp.Do(ctx); err != nil {
		b.close()
		return nil, fmt.Errorf("%s does not start: %w", path, err)
	}
	return b, nil
}

// tab is a page of the browser. It records what the page asks for and gets.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	requests  []request
	responses []network.Response
}

// request is one of a tab's requests.
type request struct {
	method, url string
	kind        network.ResourceType
}

// open returns a tab of a visitor whom nobody knows yet.
func open(t *testing.T) *tab {
	t.Helper()
	return openIn(t, shell)
}

func openIn(t *testing.T, in func() (*chromium, error)) *tab {
	t.Helper()
	b, err := in()
	if err != nil {
		t.Fatal(err)
	}
	return newTab(t, b.ctx, chromedp.WithNewBrowserContext())
}

// another opens a second tab of the same visitor.
func (b *tab) another() *tab {
	b.t.Helper()
	return newTab(b.t, b.ctx)
}

func newTab(t *testing.T, parent context.Context, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, opts...)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, request{ev.Request.Method, ev.Request.URL, ev.Type})
		case *network.EventResponseReceived:
			b.responses = append(b.responses, *ev.Response)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	do(b, network.Enable, network.EnableParams{})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the tab shows %s\n%s", b.try("location.href"), tail(b.try("document.documentElement.innerText"), 1500))
			t.Logf("the tab's requests:\n%s", tail(b.String(), 3000))
		}
	})
	return b
}

// do runs a command of the protocol.
func do[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return r
}

// visit navigates and waits until the page has loaded.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.act(chromedp.Navigate(url))
}

func (b *tab) act(a chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, a); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression, a promise's included.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := evalOrError[T](b, expression)
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

func evalOrError[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// try returns an expression's text, or what went wrong.
func (b *tab) try(expression string) string {
	v, err := evalOrError[string](b, "String("+expression+")")
	if err != nil {
		return err.Error()
	}
	return v
}

// becomes waits until an expression is true in whatever page the tab shows.
func (b *tab) becomes(within time.Duration, expression string) {
	b.t.Helper()
	eventually(b.t, within, func() string {
		ok, err := evalOrError[bool](b, "!!("+expression+")")
		if err != nil {
			return fmt.Sprintf("%s: %v", expression, err) // between two pages
		}
		if !ok {
			return "not so: " + expression
		}
		return ""
	})
}

// back presses the back button. A page that comes out of the cache does not load again, so
// that there is nothing to wait for but what it shows.
func (b *tab) back() { b.try("history.back()") }

// What the tab shows.
const (
	showsLine = `document.querySelector('#wrapper .waitingrooms-text')`
	showsShop = `document.querySelector('#inside b')`
)

// waits checks that the tab shows the waiting page.
func (b *tab) waits() {
	b.t.Helper()
	b.becomes(10*time.Second, showsLine)
}

// getsIn waits until the tab shows the shop.
func (b *tab) getsIn() {
	b.t.Helper()
	b.becomes(30*time.Second, showsShop)
}

// text is what an element says. A page without script loads itself again: between two pages there is no element,
// or half a page.
func (b *tab) text(selector string) string {
	b.t.Helper()
	var said []string
	eventually(b.t, 10*time.Second, func() string {
		var err error
		said, err = evalOrError[[]string](b, fmt.Sprintf(`Array.from(document.querySelectorAll(%q), e => e.textContent)`, selector))
		if len(said) == 0 {
			return fmt.Sprintf("no %s: %v", selector, err)
		}
		return ""
	})
	return said[0]
}

// reference is the code of the visitor's place.
func (b *tab) reference() string {
	b.t.Helper()
	ref := b.text("#ref")
	if len(ref) < 8 {
		b.t.Fatalf("the page has no reference: %q", ref)
	}
	return ref
}

// ticket returns the visitor's ticket cookie.
func (b *tab) ticket(address string) *network.Cookie {
	b.t.Helper()
	for _, c := range do(b, network.GetCookies, network.GetCookiesParams{URLs: []string{address}}).Cookies {
		if strings.HasPrefix(c.Name, ticketCookie) {
			return c
		}
	}
	b.t.Fatalf("no ticket for %s", address)
	return nil
}

// asked returns the requests so far that match.
func (b *tab) asked(match func(request) bool) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []request
	for _, r := range b.requests {
		if match(r) {
			out = append(out, r)
		}
	}
	return out
}

// answers returns the responses so far for an address.
func (b *tab) answers(address string) []network.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []network.Response
	for _, r := range b.responses {
		if r.URL == address {
			out = append(out, r)
		}
	}
	return out
}

// foreign returns what the tab asked of anybody but the gateway.
func (b *tab) foreign(g *gate) []string {
	var out []string
	for _, r := range b.asked(func(request) bool { return true }) {
		u, err := url.Parse(r.url)
		if err != nil || (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "ws" || u.Scheme == "wss") && u.Host != g.host {
			out = append(out, r.url)
		}
	}
	return out
}

func (b *tab) String() string {
	var s strings.Builder
	for _, r := range b.asked(func(request) bool { return true }) {
		line, _ := json.Marshal(tail(r.url, 150))
		fmt.Fprintf(&s, "%s %s %s\n", r.method, r.kind, line)
	}
	return s.String()
}
