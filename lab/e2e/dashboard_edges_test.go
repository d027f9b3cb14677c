package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// An operator sees which edges are in front: one with passes, by what became of them, and one that asks about each request. Its
// clock is not known, and says so.
func TestDashboardEdgesInFront(t *testing.T) {
	t.Parallel()
	verdicts := freeAddress(t)
	g := newGate(t, passingSeat, "trusted_proxies: [127.0.0.1]\nforward_auth: {listen: \""+verdicts+"\", peers: [127.0.0.1]}")
	g.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.start()
	t.Cleanup(g.end)
	o := &office{gate: g}
	d := sitDown(t, o, operatorToken)
	d.goes("/cluster")
	if d.offers("Edges in front") {
		t.Error("edges are shown, and none was seen")
	}

	v := newVisitor(t, g)
	v.get("/")
	v.get("/second")
	if v.pass() == "" {
		t.Fatalf("the visitor has no pass: %v", v.cookies())
	}
	for range 3 {
		v.get("/third")
	}
	q, err := http.NewRequest(http.MethodGet, "http://"+verdicts+"/check/nginx", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "127.0.0.1"
	for name, value := range map[string]string{"X-Forwarded-Proto": "http", "X-Original-Method": "GET", "X-Original-Host": "127.0.0.1", "X-Original-URI": "/", "X-Forwarded-For": "203.0.113.7"} {
		q.Header.Set(name, value)
	}
	if res, _, err := asks(q); err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("a question of an edge: %v, %v", res, err)
	}

	d.goes("/cluster")
	card := func(row string) string {
		return `[...document.querySelectorAll('table')].find(t => t.querySelector('caption')?.textContent == 'Edges in front')` +
			`?.querySelectorAll('tbody tr') && [...document.querySelectorAll('tbody tr')].find(r => r.textContent.includes(` + quoted(row) + `))?.innerText`
	}
	d.becomes(20*time.Second, card("verifies passes"))
	passes := strings.Join(strings.Fields(eval[string](d.tab, card("verifies passes"))), " ")
	if !strings.HasPrefix(passes, "127.0.0.1 verifies passes") || !strings.HasSuffix(passes, " 3 100% 0% 0% not known") {
		t.Errorf("of the edge with passes it says %q", passes)
	}
	asked := strings.Join(strings.Fields(eval[string](d.tab, card("asks about each request"))), " ")
	if !strings.HasPrefix(asked, "nginx 127.0.0.1 asks about each request") || !strings.HasSuffix(asked, "1 – – – not known") {
		t.Errorf("of the edge that asks it says %q", asked)
	}
	for _, found := range d.violations(axe(t)) {
		t.Errorf("%s: %s", found.ID, found.Help)
	}
	d.screen(360, 740, "dark")
	d.goes("/cluster")
	d.becomes(20*time.Second, card("verifies passes"))
	if wide := d.widest(360); wide != "" {
		t.Errorf("on a phone: %s", wide)
	}
}
