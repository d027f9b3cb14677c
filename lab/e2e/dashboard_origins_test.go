package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// foreignPage tries to use a dashboard that the same browser is logged in to. DASH is its address, ROOM
// the path of a room in the API.
const foreignPage = `<!doctype html><title>foreign</title><body><script>
const tried = {}
const ask = (name, path, options) => fetch('DASH' + path, { credentials: 'include', ...options }).then((r) => { tried[name] = r.type + ' ' + r.status }, () => { tried[name] = 'refused' })
const json = { 'Content-Type': 'application/json', 'X-Anteroom': 'dashboard' }
ask('session', '/dash/session')
ask('rooms', '/dash/api/anteroom/v1/rooms')
ask('tokens', '/dash/api/anteroom/v1/tokens', { headers: { 'X-Anteroom': 'dashboard' } })
ask('pause', '/dash/apiROOM/pause', { method: 'POST' })
ask('pause with the header', '/dash/apiROOM/pause', { method: 'POST', headers: json, body: '{}' })
ask('change', '/dash/apiROOM/message', { method: 'PUT', headers: json, body: '{"text":"foreign"}' })
ask('login', '/dash/login', { method: 'POST', headers: json, body: '{"token":"TOKEN"}' })
ask('logout', '/dash/logout', { method: 'POST', headers: json, body: '{}' })
ask('the API', 'ROOM/pause', { method: 'POST' })
for (const path of ['/dash/session', '/dash/live', '/dash/api/anteroom/v1/rooms']) ask('blind ' + path, path, { mode: 'no-cors' })
for (const path of ['/dash/apiROOM/pause', '/dash/login', '/dash/logout']) ask('blind post ' + path, path, { mode: 'no-cors', method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{"token":"TOKEN"}' })
const stream = new EventSource('DASH/dash/live', { withCredentials: true })
stream.onmessage = () => { tried.stream = 'data' }
stream.onerror = () => { tried.stream ??= 'refused' }
for (const path of ['/', '/rooms/shop.example/shop', 'PREVIEW']) {
  const frame = document.body.appendChild(document.createElement('iframe'))
  frame.onload = () => { tried['frame ' + path] = 'loaded' }
  frame.src = 'DASH' + path
}
const script = document.body.appendChild(document.createElement('script'))
script.onload = () => { tried.script = 'ran' }
script.onerror = () => { tried.script = 'refused' }
script.src = 'DASH/dash/session'
const post = (path, kind, name, value) => {
  const form = document.body.appendChild(document.createElement('form'))
  const field = form.appendChild(document.createElement('input'))
  Object.assign(form, { method: 'post', action: 'DASH' + path, enctype: kind })
  Object.assign(field, { name, value })
  form.submit()
}
</script>`

// Pages of other origins in the browser of somebody who is logged in: one of another host, and one of
// another port of the same host, which browsers send the cookie for.
func TestPagesOfOtherOriginsReachNothing(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(nil)
	room := "/anteroom/v1/zones/" + o.zone + "/rooms/" + id
	var preview struct {
		Preview map[string]string
	}
	o.must(operatorToken, "POST", "/anteroom/v1/templates/check", `{"html":"<h1>{{ahead}}</h1>"}`, &preview)
	text := strings.NewReplacer("DASH", o.operators(), "ROOM", room, "TOKEN", operatorToken, "PREVIEW", preview.Preview["line"]).Replace(foreignPage)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(site.Close)
	d := sitDown(t, o, operatorToken)
	session := d.session()
	for name, address := range map[string]string{"another port": site.URL, "another site": strings.Replace(site.URL, "127.0.0.1", "localhost", 1)} {
		b := d.another()
		var framed []string
		err := chromedp.Listen(b.ctx, func(ev any) {
			if ev, ok := ev.(*cdplog.EventEntryAdded); ok && strings.Contains(ev.Entry.Text, "frame-ancestors") {
				b.mu.Lock()
				defer b.mu.Unlock()
				framed = append(framed, ev.Entry.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		do(b, cdplog.Enable, struct{}{})
		b.visit(address)
		b.becomes(20*time.Second, `Object.keys(tried).filter((name) => !name.startsWith('frame')).length == 17`)
		for what, came := range eval[map[string]string](b, "tried") {
			blind := strings.HasPrefix(what, "blind") || strings.HasPrefix(what, "frame")
			if !blind && came != "refused" || blind && came != "refused" && came != "opaque 0" && came != "loaded" {
				t.Errorf("%s: %s: %s", name, what, came)
			}
		}
		eventually(t, 10*time.Second, func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(framed) < 3 {
				return fmt.Sprintf("%s: %d of 3 frames were refused: %q", name, len(framed), framed)
			}
			return ""
		})
		// What went there blindly, and forms, which may navigate: the listener has refused them.
		for _, form := range []string{
			`post('/dash/login', 'text/plain', '{"token":"` + operatorToken + `","x":"', '"}')`,
			`post('/dash/apiROOM/pause', 'application/x-www-form-urlencoded', 'a', 'b')`,
			`post('/dash/logout', 'multipart/form-data', 'a', 'b')`,
		} {
			b.visit(address)
			eval[bool](b, strings.ReplaceAll(form, "ROOM", room)+", true")
			b.becomes(10*time.Second, `document.title != 'foreign' && document.body.innerText.includes('"success":false') && document.body.innerText.includes('another origin')`)
		}
		b.mu.Lock()
		for _, r := range b.responses {
			if strings.Contains(r.URL, "/dash/") && r.Status != http.StatusForbidden && r.Status != http.StatusUnauthorized {
				t.Errorf("%s: %s was answered with %d", name, r.URL, r.Status)
			}
		}
		b.mu.Unlock()
		o.stillRuns(t, room)
		if d.session() != session {
			t.Errorf("%s has changed the session", name)
		}
		if status := eval[float64](d.tab, `fetch('/dash/session').then((r) => r.status)`); status != http.StatusOK {
			t.Fatalf("%s has ended the session: %v", name, status)
		}
	}
	var got struct{ Controls struct{ Message string } }
	if o.must(operatorToken, "GET", room, "", &got); got.Controls.Message != "" {
		t.Errorf("a foreign page has set the message %q", got.Controls.Message)
	}
}

// cookies are those of the dashboard's session that the browser would send to an address.
func (d *desk) cookies(address string) (out []*network.Cookie) {
	d.t.Helper()
	for _, c := range do(d.tab, network.GetCookies, network.GetCookiesParams{URLs: []string{address}}).Cookies {
		if c.Name == "anteroom_session" {
			out = append(out, c)
		}
	}
	return out
}

// session is the value of the session's cookie.
func (d *desk) session() string {
	d.t.Helper()
	all := d.cookies(d.o.operators() + "/dash/session")
	if len(all) != 1 {
		d.t.Fatalf("%d cookies of the session", len(all))
	}
	return all[0].Value
}

// The session as the browser has it: where its cookie goes, that no script sees it, that the token of
// the link stays nowhere, and that its end is one.
func TestSessionOfTheDashboardInABrowser(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, "dash.example")
	for name, others := range map[string][]string{"plain": nil, "TLS": {fmt.Sprintf("admin_tls:\n  cert: %s\n  key: %s", cert, key)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOffice(t, others...)
			o.newRoom(nil)
			d := sitDown(t, o, operatorToken)
			d.settles()
			all := d.cookies(o.operators() + "/dash/session")
			if len(all) != 1 || !all[0].HTTPOnly || all[0].SameSite != network.CookieSameSiteStrict || all[0].Path != "/dash" || all[0].Secure != o.adminTLS || all[0].Domain != "127.0.0.1" {
				t.Fatalf("the cookie: %+v", all)
			}
			if seen := eval[string](d.tab, "document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"); strings.Contains(seen, all[0].Value) || strings.Contains(seen, "anteroom_session") || strings.Contains(seen, operatorToken) {
				t.Errorf("a script sees %s", seen)
			}
			for _, address := range []string{o.operators() + "/", o.operators() + "/anteroom/v1/rooms", o.operators() + "/preview/x", o.url("/"), "http://localhost/dash/", "http://other.example/dash/session"} {
				if len(d.cookies(address)) > 0 {
					t.Errorf("the browser would send the cookie to %s", address)
				}
			}
			// The link's token.
			for _, e := range do(d.tab, page.GetNavigationHistory, struct{}{}).Entries {
				if strings.Contains(e.URL+e.Title, operatorToken) {
					t.Errorf("the history has %s", e.URL)
				}
			}
			d.goes("/rooms/shop.example/shop")
			d.back()
			d.becomes(10*time.Second, `location.pathname == '/' && location.hash == '' && !document.referrer.includes('token')`)
			for _, r := range d.asked(func(request) bool { return true }) {
				if strings.Contains(r.url, operatorToken) {
					t.Errorf("the token is in a request: %s", r.url)
				}
			}
			// A link of somebody else's does not put the person to work under another token.
			var deputy struct{ Secret string }
			o.must(operatorToken, "POST", "/anteroom/v1/tokens", `{"name":"somebody else","grants":[{"permission":"read"}]}`, &deputy)
			d.visit("about:blank")
			d.visit(o.operators() + "/#token=" + deputy.Secret)
			d.says("You are logged in as ANTEROOM_API_TOKEN")
			if d.session() != all[0].Value || eval[string](d.tab, "location.hash") != "" {
				t.Error("a link has replaced the session")
			}
			d.goes("/rooms/shop.example/shop")
			d.back()
			d.becomes(10*time.Second, `location.pathname == '/'`)
			// The stream is for who is logged in.
			if res, _ := o.send("", "GET", "/dash/live", ""); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("the stream without a session: %s", res.Status)
			}
			// The end.
			d.settles()
			d.presses("Log out")
			d.becomes(10*time.Second, `document.querySelector('input[type=password]')`)
			if len(d.cookies(o.operators()+"/dash/session")) != 0 {
				t.Error("the browser has the cookie after the logout")
			}
			for _, path := range []string{"/dash/session", "/dash/live", "/dash/api/anteroom/v1/rooms"} {
				if res, body := o.send("", "GET", path, "", "Cookie", all[0].Name+"="+all[0].Value); res.StatusCode != http.StatusUnauthorized || res.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s with the cookie of a session that is over: %s %s", path, res.Status, body)
				}
			}
			d.try("history.forward()") // to a page that was looked at before the end
			d.becomes(10*time.Second, `location.pathname != '/' && document.querySelector('input[type=password]') && !document.querySelector('nav')`)
			if strings.Contains(o.log(), operatorToken) || strings.Contains(o.log(), all[0].Value) {
				t.Error("the log has the token or the session")
			}
		})
	}
}
