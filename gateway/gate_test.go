package gateway

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

func TestWaitingPage(t *testing.T) {
	w := newWorld(t, line)
	res, body := w.do("GET", "/cart?x=1;y=2", header("Range", "bytes=0-1", "If-None-Match", "*", "If-Modified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"))
	if res.StatusCode != 200 || !strings.Contains(body, "<html") {
		t.Fatalf("status %d, body %.80q", res.StatusCode, body)
	}
	for name, want := range map[string]string{
		"Cache-Control": "private, no-store, max-age=0", "Cdn-Cache-Control": "no-store", "Surrogate-Control": "no-store",
		"Vary": "Cookie, Accept, Accept-Encoding, Accept-Language, Sec-Fetch-Dest", "X-Robots-Tag": "noindex", "X-Content-Type-Options": "nosniff", "Refresh": "20",
		"Etag": "", "Last-Modified": "", "Age": "", "Content-Range": "", "Accept-Ranges": "", "Content-Type": "text/html; charset=UTF-8",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(res.Header.Get("Content-Security-Policy"), "sha256-") {
		t.Errorf("Content-Security-Policy: %q", res.Header.Get("Content-Security-Policy"))
	}
	c := res.Header["Set-Cookie"]
	if len(c) != 1 || !strings.HasSuffix(c[0], "; Max-Age=3920; Path=/; HttpOnly; SameSite=Lax") {
		t.Errorf("Set-Cookie: %q", c)
	}
	if n := len(w.origin.requests()); n != 0 {
		t.Errorf("the origin saw %d requests", n)
	}
	// The cookie that was given is the ticket that comes back.
	name, value, _ := strings.Cut(strings.SplitN(c[0], ";", 2)[0], "=")
	w.do("GET", "/", header("Cookie", "a=b; "+name+"="+value))
	v := w.door.seen()
	if len(v) != 2 || !v[0].Fresh || v[1].Fresh || v[1].Ticket.ID != v[0].Ticket.ID || v[1].Ticket.Arrival == 0 {
		t.Errorf("visits: %+v", v)
	}
}

func TestWaitingPageForms(t *testing.T) {
	asJSON := func(r *anteroom.Room) { r.JSONResponse = true }
	exactly := func(r *anteroom.Room) { r.JSONResponse, r.JSONExact = true, true }
	for _, c := range []struct {
		name          string
		method        string
		headers       []string
		room          func(*anteroom.Room)
		status        int
		contentType   string
		encoding      string
		withoutBody   bool
		withoutCookie bool
	}{
		{name: "status of the room", method: "GET", room: func(r *anteroom.Room) { r.QueueingStatusCode = 429 }, status: 429, contentType: "text/html; charset=UTF-8"},
		{name: "HEAD", method: "HEAD", status: 200, contentType: "text/html; charset=UTF-8", withoutBody: true},
		{name: "POST", method: "POST", status: 429, contentType: "text/html; charset=UTF-8"},
		{name: "OPTIONS that is no preflight", method: "OPTIONS", status: 429, contentType: "text/html; charset=UTF-8"},
		{name: "gzip", method: "GET", headers: []string{"Accept-Encoding", "br, gzip;q=0.5"}, status: 200, contentType: "text/html; charset=UTF-8", encoding: "gzip"},
		{name: "gzip refused", method: "GET", headers: []string{"Accept-Encoding", "*, gzip;q=0"}, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "JSON", method: "GET", headers: []string{"Accept", "application/json"}, room: asJSON, status: 200, contentType: "application/json"},
		{name: "JSON not enabled", method: "GET", headers: []string{"Accept", "application/json"}, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "JSON among others", method: "GET", headers: []string{"Accept", "application/json, text/html"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "JSON to a library's default", method: "GET", headers: []string{"Accept", "application/json, text/plain, */*"}, room: asJSON, status: 200, contentType: "application/json"},
		{name: "JSON by weight", method: "GET", headers: []string{"Accept", "text/html;q=0.8, application/json;q=0.9"}, room: asJSON, status: 200, contentType: "application/json"},
		{name: "HTML by weight", method: "GET", headers: []string{"Accept", "application/json;q=0.8, text/*"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "JSON refused", method: "GET", headers: []string{"Accept", "application/json;q=0, image/webp"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "a browser's Accept", method: "GET", headers: []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "everything is accepted", method: "GET", headers: []string{"Accept", "*/*"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "a script of a page", method: "GET", headers: []string{"Accept", "*/*", "Sec-Fetch-Dest", "empty"}, room: asJSON, status: 200, contentType: "application/json"},
		{name: "a script of a page that posts", method: "POST", headers: []string{"Accept", "*/*", "Sec-Fetch-Dest", "empty"}, room: asJSON, status: 429, contentType: "application/json"},
		{name: "a script of a page, with a status of the room", method: "GET", headers: []string{"Sec-Fetch-Dest", "empty"}, room: func(r *anteroom.Room) { asJSON(r); r.QueueingStatusCode = 202 }, status: 202, contentType: "application/json"},
		{name: "a script of a page that accepts HTML", method: "GET", headers: []string{"Accept", "text/html, application/xhtml+xml", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"}, room: asJSON, status: 200, contentType: "application/json"},
		{name: "a page by a service worker", method: "GET", headers: []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "navigate"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "a page by a service worker, as a new request", method: "GET", headers: []string{"Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "same-origin", "Upgrade-Insecure-Requests", "1"}, room: asJSON, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "a page by a service worker, JSON not enabled", method: "GET", headers: []string{"Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "navigate"}, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "a download", method: "GET", headers: []string{"Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "navigate"}, room: asJSON, status: 429, contentType: "text/plain; charset=utf-8", withoutCookie: true},
		{name: "a script of a page, JSON not enabled", method: "GET", headers: []string{"Sec-Fetch-Dest", "empty"}, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "exact JSON", method: "GET", headers: []string{"Accept", "application/json"}, room: exactly, status: 200, contentType: "application/json"},
		{name: "exact JSON, a library's default", method: "GET", headers: []string{"Accept", "application/json, text/plain, */*"}, room: exactly, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "exact JSON, a script of a page", method: "GET", headers: []string{"Accept", "*/*", "Sec-Fetch-Dest", "empty"}, room: exactly, status: 200, contentType: "text/html; charset=UTF-8"},
		{name: "image", method: "GET", headers: []string{"Sec-Fetch-Dest", "image"}, status: 429, contentType: "text/plain; charset=utf-8", withoutCookie: true},
		{name: "style of an old browser", method: "GET", headers: []string{"Accept", "text/css,*/*;q=0.1"}, status: 429, contentType: "text/plain; charset=utf-8", withoutCookie: true},
		{name: "prefetch", method: "GET", headers: []string{"Sec-Purpose", "prefetch;prerender", "Sec-Fetch-Dest", "document"}, status: 429, contentType: "text/plain; charset=utf-8", withoutCookie: true},
		{name: "WebSocket", method: "GET", headers: []string{"Connection", "Upgrade", "Upgrade", "websocket"}, status: 429, contentType: "text/plain; charset=utf-8", withoutCookie: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []option
			if c.room != nil {
				opts = append(opts, withRoom(c.room))
			}
			w := newWorld(t, line, opts...)
			res, body := w.do(c.method, "/", header(c.headers...))
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != c.contentType || res.Header.Get("Content-Encoding") != c.encoding {
				t.Errorf("got %d %q %q", res.StatusCode, res.Header.Get("Content-Type"), res.Header.Get("Content-Encoding"))
			}
			if (body == "") != c.withoutBody {
				t.Errorf("body of %d bytes", len(body))
			}
			if got := len(res.Header["Set-Cookie"]) == 0; got != c.withoutCookie {
				t.Errorf("Set-Cookie: %q", res.Header["Set-Cookie"])
			}
			if res.Header.Get("Cache-Control") != "private, no-store, max-age=0" {
				t.Errorf("Cache-Control: %q", res.Header.Get("Cache-Control"))
			}
			if c.encoding == "gzip" {
				zr, err := gzip.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if plain, err := io.ReadAll(zr); err != nil || !strings.Contains(string(plain), "<html") {
					t.Errorf("unpacked: %v", err)
				}
			}
			if n := len(w.origin.requests()); n != 0 {
				t.Errorf("the origin saw %d requests", n)
			}
		})
	}
}

func TestAdmittedSeesTheOrigin(t *testing.T) {
	w := newWorld(t, admit)
	res, body := w.do("GET", "/", nil)
	if res.StatusCode != 200 || body != "origin" {
		t.Fatalf("got %d %q", res.StatusCode, body)
	}
	if c := res.Header["Set-Cookie"]; len(c) != 1 || !strings.Contains(c[0], "; Max-Age=600;") {
		t.Errorf("Set-Cookie of a new session: %q", c)
	}
	res, _ = w.do("GET", "/", header("Cookie", w.seal(session())))
	if c := res.Header["Set-Cookie"]; len(c) != 0 {
		t.Errorf("Set-Cookie without need: %q", c)
	}
}

// TestCookieOutlastsAnOutage: where visitors come back first after an outage, the cookie that shows who was inside is there for
// as long.
func TestCookieOutlastsAnOutage(t *testing.T) {
	for protect, want := range map[bool]string{false: "; Max-Age=600;", true: "; Max-Age=1500;"} {
		w := newWorld(t, admit, withRoom(func(r *anteroom.Room) { r.Protect, r.ProtectReturn = protect, 15*time.Minute }))
		res, _ := w.do("GET", "/", nil)
		if c := res.Header["Set-Cookie"]; len(c) != 1 || !strings.Contains(c[0], want) {
			t.Errorf("protect %v: Set-Cookie %q, want %s", protect, c, want)
		}
	}
}

func TestOutsideEveryRoom(t *testing.T) {
	w := newWorld(t, line)
	res, body := w.do("GET", "/?__anteroom=status", func(r *http.Request) { r.Host = "open.example.com" })
	if res.StatusCode != 200 || body != "origin" || len(res.Header["Set-Cookie"]) != 0 {
		t.Errorf("got %d %q %q", res.StatusCode, body, res.Header["Set-Cookie"])
	}
	if q := w.origin.last(t).URL.RawQuery; q != "__anteroom=status" {
		t.Errorf("query %q", q)
	}
	if len(w.door.seen()) != 0 {
		t.Error("the door was asked")
	}
}

func TestWhichTicketServes(t *testing.T) {
	w := newWorld(t, line)
	own, foreign := session(), waiting()
	name := w.gw.live.Load().rooms[0].scope.Name
	forged := w.seal(own)
	forged = forged[:len(forged)-1] + string(rune('A'+(forged[len(forged)-1]-'A'+1)%26))
	otherRoom := string(w.keys.Sealer("else.example", "r", name).Seal(nil, own))
	for _, c := range []struct {
		name    string
		cookies []string // lines
		want    anteroom.ID
		fresh   bool
	}{
		{"none", nil, anteroom.ID{}, true},
		{"one", []string{w.seal(own)}, own.ID, false},
		{"the best of two in one line", []string{w.seal(foreign) + "; " + w.seal(own)}, own.ID, false},
		{"the best of two lines", []string{w.seal(foreign), w.seal(own)}, own.ID, false},
		{"valid behind forged", []string{forged + "; " + w.seal(foreign)}, foreign.ID, false},
		{"forged", []string{forged}, anteroom.ID{}, true},
		{"of another room", []string{name + "=" + otherRoom}, anteroom.ID{}, true},
		{"empty", []string{name + "="}, anteroom.ID{}, true},
		{"name in other case", []string{strings.ToUpper(w.seal(own))}, anteroom.ID{}, true},
		{"name as a value", []string{"x=" + w.seal(own)}, anteroom.ID{}, true},
		{"without spaces", []string{"a=b;" + w.seal(own) + ";c"}, own.ID, false},
	} {
		before := len(w.door.seen())
		w.do("GET", "/", func(r *http.Request) { r.Header["Cookie"] = c.cookies })
		v := w.door.seen()[before]
		if v.Fresh != c.fresh || !c.fresh && v.Ticket.ID != c.want {
			t.Errorf("%s: fresh %v, ticket %v", c.name, v.Fresh, v.Ticket.ID)
		}
		if v.Ticket.ID.IsZero() || v.NewID.IsZero() {
			t.Errorf("%s: zero ID", c.name)
		}
	}
}

func TestNewcomersOnOneConnection(t *testing.T) {
	const get = "GET /p HTTP/1.1\nHost: shop.example.com\nUser-Agent: %\nX\n\n"
	request := func(agent, extra string) string {
		s := strings.Replace(get, "%", agent, 1)
		return strings.Replace(s, "X\n", extra, 1)
	}
	for _, c := range []struct {
		name    string
		trusted bool
		bytes   string
		ids     int
	}{
		{"one browser", false, request("a", "") + request("a", "") + request("a", "Connection: close\n"), 1},
		{"two agents", false, request("a", "") + request("b", "Connection: close\n"), 2},
		{"a proxy that says nothing", false, request("a", "") + request("b", "") + request("b", "") + request("a", "Connection: close\n"), 4},
		{"forwarded for others", false, request("a", "X-Forwarded-For: 1.2.3.4\n") + request("a", "X-Forwarded-For: 1.2.3.5\nConnection: close\n"), 2},
		{"through a proxy", false, request("a", "Via: 1.1 x\n") + request("a", "Via: 1.1 x\nConnection: close\n"), 2},
		{"trusted proxy", true, request("a", "") + request("a", "Connection: close\n"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, line, withConfig(func(cfg *Config) {
				if c.trusted {
					cfg.TrustedProxies = prefixes("127.0.0.0/8")
				}
			}))
			raw(t, w.addr(), c.bytes)
			ids := make(map[anteroom.ID]bool)
			for _, v := range w.door.seen() {
				ids[v.Ticket.ID] = true
			}
			if len(ids) != c.ids {
				t.Errorf("%d identities, want %d", len(ids), c.ids)
			}
		})
	}
}

func TestNewcomerIsForgotten(t *testing.T) {
	var c conn
	one, two, three := ticket.NewID(), ticket.NewID(), ticket.NewID()
	if got, _ := c.newcomer(1e6, "a", one); got != one {
		t.Errorf("first: %v", got)
	}
	if got, _ := c.newcomer(1e6+2e6, "a", two); got != one {
		t.Errorf("after two seconds: %v", got)
	}
	if got, _ := c.newcomer(1e6+2e6+1, "a", three); got != three {
		t.Errorf("later: %v", got)
	}
}

func TestVisitFlags(t *testing.T) {
	for _, c := range []struct {
		name                    string
		method                  string
		headers                 []string
		noJoin, noClaim, noHold bool
	}{
		{"navigation", "GET", []string{"Sec-Fetch-Dest", "document"}, false, false, false},
		{"fetch", "GET", []string{"Sec-Fetch-Dest", "empty", "Accept", "image/png"}, false, false, false},
		{"script", "GET", []string{"Sec-Fetch-Dest", "script"}, true, false, false},
		{"image of an old browser", "GET", []string{"Accept", "image/avif,image/webp,*/*"}, true, false, false},
		{"page of an old browser", "GET", []string{"Accept", "text/html,image/webp"}, false, false, false},
		{"no hint at all", "GET", nil, false, false, false},
		{"prefetch", "GET", []string{"Purpose", "prefetch"}, false, true, false},
		{"prefetch of old Firefox", "GET", []string{"X-Moz", "prefetch"}, false, true, false},
		{"post", "POST", nil, false, false, true},
	} {
		w := newWorld(t, line)
		w.do(c.method, "/", header(c.headers...))
		v := w.door.seen()[0]
		if v.NoJoin != c.noJoin || v.NoClaim != c.noClaim || v.NoHold != c.noHold {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

func TestBind(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Bind = anteroom.BindIPPrefix }),
		withConfig(func(c *Config) { c.TrustedProxies = prefixes("127.0.0.1/32") }))
	for _, from := range []string{"203.0.113.7", "203.0.113.7", "203.0.113.8"} {
		w.do("GET", "/", header("X-Forwarded-For", from))
	}
	v := w.door.seen()
	if v[0].Bind == 0 || v[0].Bind != v[1].Bind || v[0].Bind == v[2].Bind || v[0].Ticket.Bind != v[0].Bind {
		t.Errorf("binds %d %d %d", v[0].Bind, v[1].Bind, v[2].Bind)
	}
}

func TestPreflight(t *testing.T) {
	w := newWorld(t, line, withConfig(func(c *Config) { c.PreflightsPerSecond = 1 }))
	ask := header("Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	res, _ := w.do("OPTIONS", "/api", ask)
	if res.StatusCode != 200 || len(w.origin.requests()) != 1 || len(w.door.seen()) != 0 {
		t.Fatalf("status %d, %d at the origin, %d at the door", res.StatusCode, len(w.origin.requests()), len(w.door.seen()))
	}
	limited := false
	for range 8 {
		res, _ = w.do("OPTIONS", "/api", ask)
		limited = limited || res.StatusCode == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("nine preflights at one a second were not limited")
	}
	if w.do("OPTIONS", "/api?__anteroom=status", ask); len(w.origin.requests()) > 6 {
		t.Errorf("%d requests at the origin", len(w.origin.requests()))
	}
}

func TestBudget(t *testing.T) {
	b := newBudget(2, 3)
	a := prefixes("192.0.2.1/32")[0].Addr()
	at := anteroom.Time(1e9)
	for i, want := range []bool{true, true, true, false, false} {
		if got := b.spend(a, at); got != want {
			t.Errorf("%d at once: %v", i, got)
		}
	}
	if at = at.Add(500 * time.Millisecond); !b.spend(a, at) || b.spend(a, at) {
		t.Error("half a second brings one at two a second")
	}
	if b.spend(a, at-1e6) {
		t.Error("a clock that goes back brings something")
	}
}

// A page that has a place and whose browser sends no cookie gets no further place with each question.
func TestPageWithoutItsCookieTakesNoPlace(t *testing.T) {
	w := newWorld(t, line)
	for _, ask := range []string{"status.12", "status.", "stream.12", "stream."} {
		res, body := w.do("GET", "/?__anteroom="+ask, nil)
		if strings.HasPrefix(ask, "stream") {
			if res.StatusCode != http.StatusNoContent {
				t.Errorf("%s: %s", ask, res.Status)
			}
			continue
		}
		if res.StatusCode != http.StatusOK || !strings.Contains(body, `"reason":"not_joining"`) || len(res.Header["Set-Cookie"]) != 0 {
			t.Errorf("%s: %s %q\n%s", ask, res.Status, res.Header["Set-Cookie"], body)
		}
	}
	for _, v := range w.door.seen() {
		if !v.NoJoin || !v.NoClaim {
			t.Errorf("a question may take a place: %+v", v)
		}
	}
	// With its cookie it keeps the place; without a place it may get one.
	before := len(w.door.seen())
	w.do("GET", "/?__anteroom=status.12", header("Cookie", w.seal(waiting())))
	w.do("GET", "/?__anteroom=status", nil)
	for _, v := range w.door.seen()[before:] {
		if v.NoJoin || v.NoClaim {
			t.Errorf("a question may take no place: %+v", v)
		}
	}
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		query string
		want  int
	}{
		{"", askNone}, {"a=b", askNone}, {"__anteroom=status", askStatus}, {"a=b&__anteroom=stream", askStream},
		{"a;__anteroom=hold", askHold}, {"__anteroom", askUnknown}, {"__anteroom=Status", askUnknown},
		{"%5f%5Fanteroom=status", askStatus}, {"__anteroo%6d=x", askUnknown}, {"__anteroomx=status", askNone},
		{"__anteroom=status.12", askStatus}, {"__anteroom=stream.0", askStream}, {"__anteroom=hold.1", askUnknown},
		{"__anteroom=leave", askLeave}, {"__anteroom=leave.", askLeave}, {"__anteroom=left.3", askLeft}, {"__anteroom=leave.x", askUnknown}, {"__anteroom=status.", askStatus}, {"__anteroom=hold.", askUnknown}, {"__anteroom=status.-1", askUnknown}, {"__anteroom=status.99999999999", askUnknown},
		{"__anteroom=status.5000001", askUnknown}, {"x=__anteroom=status", askNone}, {"%", askNone}, {"%5", askNone}, {"__anteroo%", askNone}, {"%zz", askNone},
	} {
		if got, _ := askOf(c.query); got != c.want {
			t.Errorf("%q: %d, want %d", c.query, got, c.want)
		}
	}
	for query, want := range map[string]int{"__anteroom=status": seenNothing, "__anteroom=status.": seenPlace, "a=b&__anteroom=stream.": seenPlace, "__anteroom=status.12": 12} {
		if _, got := askOf(query); got != want {
			t.Errorf("%q has seen %d, want %d", query, got, want)
		}
	}
	for in, want := range map[string]string{
		"__anteroom=hold": "", "a=1&__anteroom=hold&b=2": "a=1&b=2", "a=1;__anteroom=hold": "a=1", "%5f_anteroom=hold&x=%zz": "x=%zz", "a=1;b=2": "a=1;b=2",
	} {
		if got := withoutAsk(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestStatusIsAnsweredHere(t *testing.T) {
	w := newWorld(t, line)
	res, body := w.do("GET", "/p?a=1&__anteroom=status", header("Sec-Fetch-Dest", "empty"))
	if res.StatusCode != 200 || !strings.HasPrefix(body, `{"admitted":false,"ahead":41,"wait":180,`) || len(res.Header["Set-Cookie"]) != 1 || res.Header.Get("Refresh") != "" {
		t.Errorf("waiting: %d %s %q", res.StatusCode, body, res.Header)
	}
	if v := w.door.seen()[0]; !v.NoHold || v.NoJoin {
		t.Errorf("visit %+v", v)
	}
	w.door.program(admit)
	res, body = w.do("GET", "/p?__anteroom=status", nil)
	if !strings.HasPrefix(body, `{"admitted":true`) || len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("admitted: %s %q", body, res.Header)
	}
	for method, want := range map[string]int{"POST": 405, "HEAD": 200} {
		if res, _ := w.do(method, "/p?__anteroom=status", nil); res.StatusCode != want {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if res, _ := w.do("GET", "/p?__anteroom=x", nil); res.StatusCode != 400 {
		t.Errorf("unknown question: %d", res.StatusCode)
	}
	if n := len(w.origin.requests()); n != 0 {
		t.Errorf("the origin saw %d requests", n)
	}
}

func TestHold(t *testing.T) {
	w := newWorld(t, line)
	res, _ := w.do("GET", "/p?__anteroom=hold", nil)
	if res.StatusCode != 200 || res.Header.Get("Refresh") != "" {
		t.Errorf("%d %q", res.StatusCode, res.Header)
	}
	w.door.program(admit)
	res, _ = w.do("GET", "//evil.example/?a=1&__anteroom=hold", nil)
	if res.StatusCode != 303 || res.Header.Get("Location") != "?a=1" || len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("at the turn: %d %q", res.StatusCode, res.Header)
	}
}

// TestShownPlaceSurvivesTheGateway: a stream leaves no trace in the cookie, so the page says
// which place it has shown.
func TestShownPlaceSurvivesTheGateway(t *testing.T) {
	for query, want := range map[string]uint32{
		"__anteroom=status":      41, // what the ticket remembers, plus one
		"__anteroom=status.7":    8,
		"__anteroom=status.0":    1,
		"__anteroom=status.1000": 41,
		"":                       41,
	} {
		var got uint32
		w := newWorld(t, func(v anteroom.Visit) anteroom.Decision {
			if !v.Fresh {
				got = v.Ticket.Told
			}
			return line(v)
		})
		held := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: 1, Told: 41}
		w.do("GET", "/?"+query, func(r *http.Request) { r.Header.Set("Cookie", w.seal(held)) })
		if got != want {
			t.Errorf("%q: told %d, want %d", query, got, want)
		}
	}
}
