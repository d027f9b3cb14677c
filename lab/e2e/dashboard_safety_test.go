package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// payloads are texts that would run a script where they became markup, as long as names may be.
var payloads = []string{
	`"><img src=x onerror=top.hit=alert(1)>`,
	`<script>top.hit=alert(2)</script>`,
	`'"--><svg/onload=top.hit=alert(3)>`,
	`</title></textarea></script><script>top.hit=alert(4)</script>`,
	`javascript:top.hit=alert(5)//`,
	`<iframe srcdoc="<script>top.hit=alert(6)</script>">`,
	`<a href="javascript:top.hit=alert(7)" onfocus=hit=7 autofocus>`,
	"<img src=x onerror=`top.hit=alert(8)`>\u2028\u202e${alert(8)}",
}

// alarmed makes a tab note what only markup that is none of ours could cause: dialogs, and what a
// policy or a sandbox had to stop.
func alarmed(b *tab) (alarms func() []string) {
	b.t.Helper()
	var all []string
	err := chromedp.Listen(b.ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *page.EventJavascriptDialogOpening:
			all = append(all, "a dialog: "+ev.Message)
			go chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		case *cdplog.EventEntryAdded:
			if text := ev.Entry.Text; ev.Entry.Source == cdplog.EntrySourceSecurity || strings.Contains(text, "Content Security Policy") || strings.Contains(text, "sandbox") {
				all = append(all, text)
			}
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, cdplog.Enable, struct{}{}); err != nil {
		b.t.Fatal(err)
	}
	return func() []string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return append([]string(nil), all...)
	}
}

// send asks the operators' listener with a token and headers, in pairs.
func (o *office) send(token, method, path, body string, headers ...string) (*http.Response, string) {
	o.t.Helper()
	req, err := http.NewRequest(method, o.operators()+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return res, string(b)
}

// must is send with the operator's token, decoded; it fails when it is refused.
func (o *office) must(token, method, path, body string, result any) {
	o.t.Helper()
	res, text := o.send(token, method, path, body)
	var e envelope
	if err := json.Unmarshal([]byte(text), &e); err != nil || res.StatusCode != http.StatusOK {
		o.t.Fatalf("%s %s %s: %s %s", method, path, body, res.Status, text)
	}
	if result != nil {
		if err := json.Unmarshal(e.Result, result); err != nil {
			o.t.Fatal(err)
		}
	}
}

// Whatever texts the API takes, every page shows them as text, the report as well. What it takes
// only as a name of letters and digits, it refuses.
func TestStoredMarkupIsShownAsText(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	var token struct{ ID, Secret string }
	o.must(operatorToken, "POST", "/anteroom/v1/tokens", fields{"name": payloads[0], "grants": []fields{{"permission": "admin"}}}.String(), &token)
	for i, p := range payloads[1:] {
		o.must(token.Secret, "POST", "/anteroom/v1/tokens", fields{"name": p, "grants": []fields{{"permission": "read"}}}.String(), nil)
		o.must(token.Secret, "POST", "/anteroom/v1/webhooks", fields{"name": p, "url": fmt.Sprintf("https://receiver.example/%d?%s", i, url.QueryEscape(p))}.String(), nil)
	}
	for _, raw := range []string{payloads[4], `https://receiver.example/"><img/src=x/onerror=alert(1)>`} {
		if res, text := o.send(token.Secret, "POST", "/anteroom/v1/webhooks", fields{"name": "raw", "url": raw}.String()); res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest || res.StatusCode == http.StatusOK && strings.HasPrefix(raw, "javascript") {
			t.Errorf("a webhook to %s: %s %s", raw, res.Status, text)
		}
	}
	for _, p := range payloads {
		if status, e := o.call("POST", o.under(""), fields{"name": p, "host": "shop.example", "total_active_users": 200, "new_users_per_minute": 200}.String()); status != http.StatusBadRequest {
			t.Errorf("a room may be called %s: %d %+v", p, status, e)
		}
	}
	all := strings.Join(payloads, " ")
	if status, e := o.call("POST", o.under(""), fields{"name": "shop", "host": "shop.example", "total_active_users": 200, "new_users_per_minute": 200, "description": all}.String()); status != http.StatusBadRequest {
		t.Errorf("a description may turn the direction of the text: %d %+v", status, e)
	}
	readable := strings.NewReplacer("\u2028", "", "\u202e", "")
	all = readable.Replace(all)
	var described []string // what a description may say
	for _, p := range payloads {
		described = append(described, readable.Replace(p))
	}
	id := o.newRoom(fields{"description": all, "custom_page_html": "<h1>{{ahead}}</h1><p title='</textarea>'>ours</p><!-- </textarea>" + payloads[1] + " -->"})
	zone, room := "/client/v4"+o.under("/"+id), "/anteroom/v1/zones/"+o.zone+"/rooms/"+id
	start := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	event := fields{"name": "sale", "description": all, "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339)}
	if status, _ := o.call("POST", o.under("/"+id+"/events"), strings.Replace(event.String(), `"sale"`, `"<b>sale"`, 1)); status != http.StatusBadRequest {
		t.Errorf("an event may be called <b>sale: %d", status)
	}
	o.must(token.Secret, "POST", zone+"/events", event.String(), nil)
	for _, p := range payloads {
		expression := `http.request.uri.query contains ` + string(mustJSON(t, strings.NewReplacer("`", "", "\u2028", "", "\u202e", "", `"`, "'", `\`, "").Replace(p)))
		expression = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(expression)
		o.must(token.Secret, "POST", zone+"/rules", fields{"action": "bypass_waiting_room", "expression": expression, "description": readable.Replace(p)}.String(), nil)
	}
	message := payloads[0] + " " + payloads[1] + " " + payloads[3]
	o.must(token.Secret, "PUT", room+"/message", fields{"text": message}.String(), nil)

	d := sitDown(t, o, token.Secret)
	alarms := alarmed(d.tab)
	const injected = `document.querySelector('[onerror], [onload], [onfocus], [srcdoc], img[src=x], a[href^="javascript:"]')`
	look := func(path string, texts ...string) {
		t.Helper()
		d.goes(path)
		for _, text := range texts {
			d.becomes(10*time.Second, fmt.Sprintf(`(document.body.textContent + [...document.querySelectorAll('input, textarea')].map(e => e.value).join(' ')).includes(%s)`, mustJSON(t, text)))
		}
		if eval[bool](d.tab, "!!"+injected+" || 'hit' in window") {
			t.Errorf("%s: a text has become markup: %s", path, d.try(injected+"?.outerHTML"))
		}
		if all := alarms(); len(all) > 0 {
			t.Fatalf("%s: %q", path, all)
		}
	}
	const base = "/rooms/shop.example/shop"
	escaped := url.PathEscape(payloads[0])
	look("/")
	look(base, message)
	look(base+"/settings", payloads[0], payloads[3])
	look(base + "/events")
	look(base+"/rules", described...)
	look(base+"/template", payloads[1])
	look(base + "/visitors?q=" + escaped + "&code=" + escaped)
	look(base + "/analytics")
	look(base + "/report")
	look("/tokens", payloads...)
	look("/webhooks", payloads[1:]...)
	look("/audit", payloads...)
	look("/cluster")
	look("/new")
	// Addresses that a link of somebody else's may have.
	look("/" + escaped)
	look("/rooms/" + escaped + "/" + escaped)
	for _, one := range []string{"/analytics", "/events", "/rules", "/template", "/report", "/settings", ""} {
		look(base + one + "?from=" + escaped + "&to=" + escaped + "&event=" + escaped + "&q=" + escaped + "#" + escaped)
	}
	look("/audit?room="+escaped+"&q="+escaped, payloads[0])
	look("/webhooks?webhook=" + escaped)

	// What would have been noticed: the policy stops the script, and says so.
	other := d.another()
	noticed := alarmed(other)
	other.visit(o.operators() + "/")
	other.becomes(10*time.Second, `document.querySelector('nav')`)
	other.try(fmt.Sprintf(`document.body.insertAdjacentHTML('beforeend', %s)`, mustJSON(t, payloads[0])))
	eventually(t, 10*time.Second, func() string {
		if len(noticed()) == 0 || !eval[bool](other, "!!"+injected) {
			return "markup in the page goes unnoticed"
		}
		return ""
	})

	// The report by itself, of which the text is all there is.
	for _, path := range []string{room + "/report?format=html", room + "/analytics?format=csv"} {
		if res, _ := o.send(token.Secret, "GET", path, ""); !strings.Contains(res.Header.Get("Content-Type"), "csv") && !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, res.Header)
		}
	}
	d.visit(o.operators() + "/dash/api" + room + "/report?format=html")
	d.becomes(10*time.Second, `document.body.textContent.includes('<img src=x onerror=') && document.querySelector('svg')`)
	if eval[bool](d.tab, "!!"+injected+" || !!document.querySelector('script')") || eval[string](d.tab, "origin") != "null" {
		t.Errorf("the report has markup of others, or the dashboard's origin: %s", d.try(injected+"?.outerHTML"))
	}
	if all := alarms(); len(all) > 0 {
		t.Errorf("the report: %q", all)
	}
	if foreign := d.foreign(); len(foreign) > 0 {
		t.Errorf("asked elsewhere: %q", foreign)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// prying is a waiting page whose script tries what a script of the dashboard could, and tells its
// parent what came of it.
const prying = `<!doctype html><title>ours</title><h1>{{ahead}}</h1><script>
const tried = {}
const attempt = (name, f) => { try { tried[name] = 'got ' + f() } catch (e) { tried[name] = 'refused ' + e.name } }
attempt('cookie', () => document.cookie)
attempt('storage', () => localStorage.length)
attempt('parent', () => parent.document.title)
attempt('frame', () => frameElement.id)
if (top !== self) attempt('top', () => { top.location.href = '/hijacked' })
attempt('window', () => window.open('/hijacked').name)
attempt('domain', () => { document.domain = location.hostname })
const ask = (name, path, options) => fetch(path, options).then((r) => { tried[name] = 'got ' + r.type + r.status }, (e) => { tried[name] = 'refused ' + e.name })
ask('session', '/dash/session', { credentials: 'include' })
ask('rooms', '/dash/api/anteroom/v1/rooms', { credentials: 'include' })
ask('pause', 'PAUSE', { method: 'POST', credentials: 'include', headers: { 'X-Anteroom': 'dashboard' } })
fetch('PAUSE', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }).catch(() => 0).then(() => { tried.blind = 'sent' })
const form = document.body.appendChild(document.createElement('form'))
form.method = 'post'; form.action = 'PAUSE'; form.target = '_top'; form.submit()
setInterval(() => parent.postMessage(tried, '*'), 100)
</script>`

// The preview of a page with a script: it runs, and reaches nothing of the dashboard.
func TestPreviewReachesNothingOfTheDashboard(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(nil)
	room := "/anteroom/v1/zones/" + o.zone + "/rooms/" + id
	html := strings.ReplaceAll(prying, "PAUSE", "/dash/api"+room+"/pause")
	o.must(operatorToken, "PATCH", "/client/v4"+o.under("/"+id), fields{"custom_page_html": html}.String(), nil)
	d := sitDownIn(t, whole, o, operatorToken)
	d.goes("/rooms/shop.example/shop/template")
	at := eval[string](d.tab, "location.href")
	eval[bool](d.tab, `window.told = {}, addEventListener('message', (e) => { told = { origin: e.origin, ...e.data } }), true`)
	d.becomes(20*time.Second, `told.blind && told.pause && told.rooms && told.session`)
	got := eval[map[string]string](d.tab, "told")
	for _, name := range []string{"cookie", "storage", "parent", "frame", "top", "window", "domain", "session", "rooms", "pause"} {
		if !strings.HasPrefix(got[name], "refused") {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if got["origin"] != "null" || eval[string](d.tab, "document.querySelector('iframe').getAttribute('sandbox')") != "allow-scripts" {
		t.Errorf("the preview's origin is %q", got["origin"])
	}
	if now := eval[string](d.tab, "location.href"); now != at {
		t.Errorf("the preview has led the dashboard to %s", now)
	}
	o.stillRuns(t, room)
	// By itself it is as much apart.
	src := eval[string](d.tab, "document.querySelector('iframe').src")
	alone := d.another()
	alone.visit(src)
	if origin := eval[string](alone, "origin"); origin != "null" {
		t.Errorf("the preview alone has the origin %s", origin)
	}
	alone.becomes(10*time.Second, `tried.session && tried.pause && tried.blind`)
	if got := eval[map[string]string](alone, "tried"); !strings.HasPrefix(got["cookie"], "refused") || !strings.HasPrefix(got["session"], "refused") || !strings.HasPrefix(got["pause"], "refused") {
		t.Errorf("the preview alone: %v", got)
	}
	o.stillRuns(t, room)
	for _, c := range do(alone, network.GetCookies, network.GetCookiesParams{URLs: []string{src}}).Cookies {
		t.Errorf("the browser would send %s to a preview", c.Name)
	}
}

// stillRuns checks that nobody has paused a room.
func (o *office) stillRuns(t *testing.T, room string) {
	t.Helper()
	var got struct{ Controls struct{ Paused bool } }
	o.must(operatorToken, "GET", room, "", &got)
	if got.Controls.Paused {
		t.Fatal("somebody has paused the room")
	}
}
