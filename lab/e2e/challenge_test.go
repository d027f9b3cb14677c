package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// A phone's browser, a sixth as fast as this machine, solves the proof of work while its visitor notices nothing.
func TestASlowBrowserSolvesTheChallengeWithinASecond(t *testing.T) {
	g := startGate(t, `  - name: shop
    host: "*"
    total_active_users: 100
    new_users_per_minute: 600
    turnstile_action: infinite_queue
`, "challenge: {provider: work, patience: 0s}")
	var b *tab
	least := time.Hour // of three tries, because the machine does other things as well
	for try := 0; try < 3 && least > time.Second; try++ {
		b = open(t)
		do(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `addEventListener('pageshow', e => e.isTrusted || (sessionStorage.solved = e.timeStamp - performance.getEntriesByType('navigation')[0].domInteractive))`})
		do(b, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 6})
		began := time.Now()
		b.visit(g.url("/cart?x=1"))
		b.becomes(20*time.Second, `document.title.startsWith('Your cart')`)
		took := time.Since(began)
		solved := time.Duration(eval[float64](b, "+sessionStorage.solved") * float64(time.Millisecond))
		t.Logf("solved %v after the page was read, in the shop %v after it was asked for", solved.Round(time.Millisecond), took.Round(time.Millisecond))
		least = min(least, solved)
	}
	if least == 0 || least > time.Second {
		t.Errorf("the challenge was solved after %v", least)
	}
	for _, r := range g.origin.all() {
		if strings.Contains(r.header.Get("Cookie"), "answer") {
			t.Errorf("the origin got the answer: %s", r.header.Get("Cookie"))
		}
	}
	if got := b.foreign(g); len(got) > 0 {
		t.Errorf("the page asked others: %q", got)
	}
}

// A challenge of the operator's own: the page loads its script from another origin, and the token that it makes lets the visitor in.
func TestABrowserSolvesTheOperatorsChallenge(t *testing.T) {
	asked := make(chan string, 8)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/widget.js":
			w.Header().Set("Content-Type", "text/javascript")
			io.WriteString(w, `const box = document.getElementById('challenge'); anteroomSolved('made-for-'+box.dataset.cdata)`)
		case "/verify":
			body, _ := io.ReadAll(r.Body)
			asked <- string(body)
			io.WriteString(w, `{"ok": true}`)
		}
	}))
	t.Cleanup(own.Close)
	g := startGate(t, `  - name: shop
    host: "*"
    total_active_users: 100
    new_users_per_minute: 600
    turnstile_action: infinite_queue
`, "challenge: {provider: ext, patience: 0s, script_url: \""+own.URL+"/widget.js\", verify_url: \""+own.URL+"/verify\"}")
	b := open(t)
	b.visit(g.url("/cart?x=1"))
	b.becomes(20*time.Second, `document.title.startsWith('Your cart')`)
	if text := <-asked; !strings.Contains(text, `"token":"made-for-`) || !strings.Contains(text, `"room":"shop"`) || !strings.Contains(text, `"address":"127.0.0.1"`) {
		t.Errorf("the hook was asked %s", text)
	}
}
