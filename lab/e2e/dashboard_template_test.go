package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
)

// An operator breaks a template, is told where, mends it, looks at it, and visitors see it. Nothing that stands in the
// template reaches the dashboard.
func TestDashboardBreakATemplateAndMendIt(t *testing.T) {
	t.Parallel()
	script := axe(t)
	o := startOffice(t)
	id := busyRoom(t, o, 2)
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "template"))
	const area = `document.getElementById('template')`
	held := func() bool {
		return !eval[bool](d.tab, `[...document.querySelectorAll('button')].some(b => b.innerText == 'Review and save' && !b.disabled)`)
	}

	d.writes(area, "<!doctype html>\n<h1>{{> x}}</h1>\n")
	d.says("Line 2, column 5")
	d.presses("Show")
	if got := eval[string](d.tab, area+`.value.slice(`+area+`.selectionStart, `+area+`.selectionEnd)`); !strings.HasPrefix(got, "{{> x}}") {
		t.Errorf("the fault is shown at %q", got)
	}
	if !held() {
		t.Error("a partial can be saved")
	}
	d.writes(area, "<!doctype html>\n\n<p>{{#queueAll}}held</p>\n")
	d.says("Line 3, column 4")
	if !held() {
		t.Error("an open section can be saved")
	}
	d.enters(area, strings.Repeat("0123456789abcdef", 66<<10))
	d.becomes(20*time.Second, `[...document.querySelectorAll('.note.bad')].some(n => n.innerText.includes('1048'))`)
	if !held() {
		t.Error("a page that is too large can be saved")
	}

	const good = "<!doctype html>\n<html lang=\"en\"><title>In line</title>\n<h1>The shop opens soon</h1><p>{{waitTime}} minutes, {{reference}}</p>\n" +
		"<script>try { parent.document.title = 'owned'; parent.owned = true } catch (e) { document.body.dataset.kept = 'out' }</script></html>"
	d.enters(area, good)
	d.becomes(15*time.Second, `document.querySelector('.device iframe')?.src.includes('/preview/') && !document.querySelector('.note.bad')`)
	if got := eval[string](d.tab, `document.querySelector('.device iframe').getAttribute('sandbox')`); got != "allow-scripts" {
		t.Errorf("the preview is framed with sandbox=%q", got)
	}
	preview := eval[string](d.tab, `document.querySelector('.device iframe').src`)
	res, err := http.Get(preview)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox allow-scripts") || strings.Contains(policy, "allow-same-origin") || !strings.Contains(policy, "frame-ancestors 'self'") {
		t.Errorf("the preview is served with %q", policy)
	}
	// It stands there in colors, with lines wrapped or not, and variables are inserted where the caret is.
	const colors = `document.querySelector('.sheet .colors')`
	if got := eval[string](d.tab, colors+`.querySelector('.value').textContent`); got != "{{waitTime}}" {
		t.Errorf("the first value in color is %q", got)
	}
	if !eval[bool](d.tab, colors+`.textContent == `+area+`.value + '\n'`) {
		t.Error("the colored text is another one")
	}
	for _, scheme := range []string{"light", "dark"} {
		d.screen(1280, 900, scheme)
		for _, v := range d.violations(script) {
			t.Errorf("a template in colors, %s: %s (%s): %v", scheme, v.ID, v.Help, v.Nodes)
		}
	}
	for _, wrap := range []bool{true, false} {
		d.presses("Wrap lines")
		d.becomes(5*time.Second, fmt.Sprintf(`%s.scrollWidth > %[1]s.clientWidth == %t`, area, !wrap))
		if unlike := eval[[]string](d.tab, fmt.Sprintf(`['fontFamily', 'fontSize', 'fontWeight', 'lineHeight', 'padding', 'borderWidth', 'whiteSpace', 'overflowWrap', 'tabSize', 'letterSpacing', 'width', 'height'].filter(p => getComputedStyle(%s)[p] != getComputedStyle(%s)[p])`, colors, area)); len(unlike) > 0 {
			t.Errorf("wrapped %t: the colors are not where the text is: they differ in %q", wrap, unlike)
		}
	}
	if !eval[bool](d.tab, fmt.Sprintf(`%s.setSelectionRange(15, 15), [...document.querySelectorAll('button')].find(b => b.ariaLabel == 'Insert ahead').click(), %[1]s.value.startsWith('<!doctype html>{{ahead}}\n<html')`, area)) {
		t.Errorf("a variable is inserted: %.60q", eval[string](d.tab, area+`.value`))
	}
	d.becomes(5*time.Second, `document.querySelector('.sheet .colors .value').textContent == '{{ahead}}'`)
	d.enters(area, good)
	d.chooses("State", "Paused or queue all")
	d.becomes(10*time.Second, `document.querySelector('.device iframe').src != `+quoted(preview)+` && document.querySelector('.device iframe').title.includes('Paused or queue all')`)
	d.presses("Review and save")
	d.becomes(5*time.Second, `(`+dialogText+`).includes('+ <h1>The shop opens soon</h1>')`)
	d.presses("Save")
	d.says("Page saved.")
	a := o.arrive("/")
	if text := a.text(t); a.admitted() || !strings.Contains(text, "<h1>The shop opens soon</h1>") {
		t.Errorf("a visitor sees %.300s", text)
	}
	if d.said("exception") != nil || eval[bool](d.tab, `'owned' in window || document.title.includes('owned')`) {
		t.Error("the template has reached the dashboard")
	}
	for _, c := range do(d.tab, network.GetCookies, network.GetCookiesParams{URLs: []string{preview}}).Cookies {
		t.Errorf("the preview gets the cookie %s", c.Name)
	}
	if u, err := url.Parse(preview); err != nil || u.Host != o.admin {
		t.Errorf("the preview is at %s", preview)
	}

	// It can be taken back at once.
	eval[bool](d.tab, `[...document.querySelectorAll('.toast button')].find(b => b.innerText.startsWith('Undo')).click(), true`)
	d.says("Undone")
	var room struct {
		Page string `json:"custom_page_html"`
	}
	o.good("GET", o.under("/"+id), "", &room)
	if room.Page != "" {
		t.Errorf("the page is still %.100s", room.Page)
	}
}
