package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestWithoutScriptTheRefreshHeaderLetsTheVisitorIn(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit(g.url("/cart?x=1"))
	b.waits()
	reference := b.reference()
	documents := func() int { return len(b.asked(func(r request) bool { return r.kind == "Document" })) }
	eventually(t, 15*time.Second, func() string {
		if documents() < 2 {
			return "the page did not come back by itself"
		}
		return ""
	})
	b.waits()
	if got := b.reference(); got != reference {
		t.Errorf("the place %s became %s", reference, got)
	}
	inside.leave()
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`)
	if got := eval[string](b, "location.pathname + location.search"); got != "/cart?x=1" {
		t.Errorf("admitted at %s", got)
	}
	if n := len(b.asked(func(r request) bool { return r.kind == "Fetch" || r.kind == "EventSource" || r.kind == "XHR" })); n != 0 {
		t.Errorf("there was script: %v", b)
	}
}

func TestWithoutScriptUpdatesCanBePaused(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	b := open(t)
	do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit(g.url("/"))
	b.waits()
	reference := b.reference()
	b.act(chromedp.Click(chromedp.CSS("noscript a")))
	b.becomes(10*time.Second, `location.search == '?__anteroom=hold'`)
	b.waits()
	if got := b.reference(); got != reference {
		t.Errorf("the place %s became %s", reference, got)
	}
	n := len(b.asked(func(request) bool { return true }))
	always(t, 5*time.Second, func() string {
		if now := len(b.asked(func(request) bool { return true })); now != n {
			return fmt.Sprintf("the paused page came back:\n%v", b)
		}
		return ""
	})
}

// withoutCookies is a proxy that takes the cookies out of what passes it.
func withoutCookies(t *testing.T, g *gate) *httptest.Server {
	t.Helper()
	target, err := url.Parse(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	without := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = g.host; r.Out.Header.Del("Cookie") },
		FlushInterval: -1,
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Set-Cookie")
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(func() {
		without.CloseClientConnections()
		without.Close()
	})
	return without
}

// Cookies are lost on the way, and the browser does not know it. The page notices with its next question,
// says so, and leaves no places behind.
func TestCookiesLostOnTheWayAreNoticed(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	without := withoutCookies(t, g)
	b := open(t)
	b.visit(without.URL + "/")
	b.waits()
	const message = "Please allow cookies for this site: a cookie keeps your place in line."
	b.becomes(20*time.Second, fmt.Sprintf(`document.getElementById('note').textContent == %q && !document.getElementById('note').hidden`, message))
	asked := len(b.asked(func(request) bool { return true }))
	always(t, 8*time.Second, func() string {
		if n := len(b.asked(func(request) bool { return true })); n > asked {
			return fmt.Sprintf("the page goes on asking:\n%v", b)
		}
		return ""
	})
	if n := len(b.asked(func(r request) bool { return r.kind == "Document" })); n > 2 {
		t.Errorf("the page was loaded %d times", n)
	}
	if n := g.room("shop").Waiting; n > 2 {
		t.Errorf("%d places are left behind", n)
	}
}

func TestBlockedCookiesGiveAClearMessageAndNoLoop(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	// No cookie reaches the browser or leaves it, and its pages know that.
	without := withoutCookies(t, g)
	b := open(t)
	do(b, emulation.SetDocumentCookieDisabled, emulation.SetDocumentCookieDisabledParams{Disabled: true})
	b.visit(without.URL + "/")
	b.waits()
	if eval[bool](b, "navigator.cookieEnabled") {
		t.Fatal("the browser takes cookies: the test proves nothing")
	}
	const message = "Please allow cookies for this site: a cookie keeps your place in line."
	b.becomes(10*time.Second, fmt.Sprintf("document.getElementById('note').textContent == %q && !document.getElementById('note').hidden", message))
	always(t, 8*time.Second, func() string {
		// What the page loads for its message is the same for everybody, and kept.
		if n := len(b.asked(func(r request) bool { return !strings.Contains(r.url, "/.well-known/anteroom/page/") })); n > 8 {
			return fmt.Sprintf("%d requests within 8 s:\n%v", n, b)
		}
		return ""
	})
	if got := b.text("#note"); got != message {
		t.Errorf("later the page says %q", got)
	}
	// Without script the page says it, too, and comes back at the pace of its header.
	do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit(without.URL + "/cart")
	b.waits()
	b.becomes(5*time.Second, fmt.Sprintf("document.querySelector('noscript').textContent.includes(%q)", message))
}

// A stream can be dead and the browser not know it: nothing comes, and nothing ends. After two silences of what the server sends
// regularly the page opens another, and keeps that one.
func TestStreamThatFallsSilentIsOpenedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	atOnce(t, []string{"/cart", "/cart?__anteroom=leave#list"}, strings.Clone, func(t *testing.T, path string) {
		g := startGate(t, oneSeat)
		inside := newVisitor(t, g).enter()
		target, err := url.Parse(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		var streams, beats atomic.Int32
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = g.host },
			FlushInterval: -1,
			ModifyResponse: func(res *http.Response) error {
				if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
					res.Body = &deadStream{ReadCloser: res.Body, dead: streams.Add(1) == 1, gone: res.Request.Context().Done(), beats: &beats}
				}
				return nil
			},
			ErrorLog: log.New(io.Discard, "", 0),
		})
		t.Cleanup(func() {
			proxy.CloseClientConnections()
			proxy.Close()
		})
		b := open(t)
		b.visit(proxy.URL + "/cart")
		b.waits()
		if path != "/cart" {
			eventually(t, 10*time.Second, func() string { return map[bool]string{false: "no stream"}[streams.Load() > 0] })
			streams.Store(0) // of the page before
			b.visit(proxy.URL + path)
		}
		eventually(t, 50*time.Second, func() string {
			if n := streams.Load(); n < 2 {
				return fmt.Sprintf("%d streams", n)
			}
			return ""
		})
		eventually(t, 60*time.Second, func() string {
			if n := beats.Load(); n < 3 {
				return fmt.Sprintf("the second stream brought %d heartbeats", n)
			}
			return ""
		})
		if n := streams.Load(); n != 2 {
			t.Errorf("a stream that lives is opened again: %d", n)
		}
		inside.leave()
		b.getsIn()
		if _, fragment, _ := strings.Cut(path, "#"); strings.TrimPrefix(eval[string](b, "location.hash"), "#") != fragment {
			t.Errorf("in at %s", eval[string](b, "location.href"))
		}
	})
}

// deadStream is a stream of which the browser gets the first event and then nothing, or one whose heartbeats are counted.
type deadStream struct {
	io.ReadCloser
	dead  bool
	read  bool
	gone  <-chan struct{}
	beats *atomic.Int32
}

func (s *deadStream) Read(b []byte) (int, error) {
	if s.dead && s.read {
		<-s.gone
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(b)
	s.read = true
	if strings.Contains(string(b[:n]), "event: beat") {
		s.beats.Add(1)
	}
	return n, err
}
