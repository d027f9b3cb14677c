package e2e

import (
	"testing"
	"time"
)

// The page says how many are left, and to whom that is unlikely to be enough; sold out, it closes with the message, and opens again.
func TestFewLeftAndSoldOut(t *testing.T) {
	t.Parallel()
	g := newGate(t, oneSeat)
	g.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.start()
	g.waitReady()
	operate := func(args ...string) {
		t.Helper()
		g.command(append(args, "--api", g.operators(), "--token", operatorToken)...)
	}
	inside := newVisitor(t, g).enter()
	first, second := open(t), open(t)
	for _, b := range []*tab{first, second} {
		b.visit(g.url("/"))
		b.waits()
	}
	second.becomes(10*time.Second, `document.querySelector('#ahead').textContent == '1'`)
	script := axe(t)
	accessible := func(b *tab, state string) {
		t.Helper()
		for _, v := range b.violations(script) {
			t.Errorf("%s: %s (%s): %v", state, v.ID, v.Help, v.Nodes)
		}
	}
	hidden := func(b *tab) bool { return eval[bool](b, "document.querySelector('#unlikely').hidden") }
	operate("room", "remaining", "shop", "5")
	for _, b := range []*tab{first, second} {
		b.becomes(20*time.Second, `document.querySelector('#available')?.textContent == '5'`)
		if !hidden(b) {
			t.Error("it is unlikely with 5 left")
		}
	}
	accessible(first, "few left")
	operate("room", "remaining", "shop", "--sold", "5")
	for _, b := range []*tab{first, second} {
		b.becomes(20*time.Second, `document.querySelector('h1').textContent == 'Sold out'`)
	}
	accessible(first, "sold out")
	operate("room", "message", "shop", "More in spring.")
	inside.leave()
	late := open(t)
	late.visit(g.url("/"))
	if got := late.text("h1") + " " + late.text("#message"); got != "Sold out More in spring." {
		t.Errorf("the page says %q", got)
	}
	operate("room", "remaining", "shop", "--clear")
	first.visit(g.url("/"))
	first.getsIn()
}
