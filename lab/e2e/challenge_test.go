package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

// A phone's browser, a sixth as fast as this machine, solves the proof of work while its visitor notices nothing.
func TestASlowBrowserSolvesTheChallengeWithinASecond(t *testing.T) {
	g := startGate(t, `  - name: shop
    host: "*"
    total_active_users: 100
    new_users_per_minute: 600
    turnstile_action: infinite_queue
`, "challenge: {provider: work, patience: 0s}")
	b := open(t)
	do(b, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 6})
	began := time.Now()
	b.visit(g.url("/cart?x=1"))
	b.becomes(20*time.Second, `document.title.startsWith('Your cart') || performance.now() > 0 && /_\.answer=[0-9a-f]{32}(\.\d+){8}/.test(document.cookie)`)
	took := time.Since(began)
	b.becomes(20*time.Second, `document.title.startsWith('Your cart')`)
	t.Logf("solved %v after the address was entered, in the shop after %v", took.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	if took > 2*time.Second { // with the time to load the page
		t.Errorf("it took %v", took)
	}
	for _, r := range g.origin.all() {
		if strings.Contains(r.cookie, "answer") {
			t.Errorf("the origin got the answer: %s", r.cookie)
		}
	}
	if got := b.foreign(g); len(got) > 0 {
		t.Errorf("the page asked others: %q", got)
	}
}
