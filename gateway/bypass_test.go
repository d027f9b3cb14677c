package gateway

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
)

// ruleSet compiles rules.
func ruleSet(t testing.TB, expressions ...string) *rules.Set {
	t.Helper()
	var list []anteroom.Rule
	for _, e := range expressions {
		list = append(list, anteroom.Rule{Action: anteroom.ActionBypass, Expression: e})
	}
	set, err := rules.NewSet(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// ruled gives the rules to every room.
func ruled(t testing.TB, expressions ...string) func(*Config) {
	return func(c *Config) {
		c.Rules = map[anteroom.RoomID]*rules.Set{}
		for _, rm := range c.Rooms {
			c.Rules[rm.WithDefaults().ID] = ruleSet(t, expressions...)
		}
	}
}

// googlebots are crawlers at one address.
type googlebots struct{ addr netip.Addr }

func (g googlebots) Verified(a netip.Addr, agent string) bool {
	return a == g.addr && strings.Contains(agent, "Googlebot")
}

const crawlerAddr = "66.249.66.1"

// crawled lets the crawlers of crawlerAddr past the rooms of a zone.
func crawled(zone string) func(*Config) {
	return func(c *Config) {
		c.Crawlers = googlebots{netip.MustParseAddr(crawlerAddr)}
		c.CrawlerBypass = map[string]bool{zone: true}
		c.TrustedProxies = prefixes("127.0.0.1/32", "::1/128")
	}
}

// noTrace fails if a request that bypassed the room shows at the origin or in the answer that
// there is one.
func noTrace(t *testing.T, r *http.Request, res *http.Response) {
	t.Helper()
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Anteroom") {
			t.Errorf("the origin sees %s", name)
		}
	}
	if c := r.Header.Get("Cookie"); strings.Contains(c, "cfwaitingroom") {
		t.Errorf("the origin sees the ticket: %q", c)
	}
	for _, name := range []string{"Set-Cookie", "Cache-Control", "Refresh", "Retry-After", "Cdn-Cache-Control", "X-Robots-Tag", "Vary"} {
		if v := res.Header[name]; len(v) > 0 {
			t.Errorf("the answer has %s: %q", name, v)
		}
	}
}

// states are what a room can be in, as its settings, events and controls make it.
var states = map[string]func(*anteroom.Room){
	"free":        func(r *anteroom.Room) { r.TotalActiveUsers = 100 },
	"full":        func(r *anteroom.Room) { r.TotalActiveUsers, r.NewUsersPerMinute = 0, 0 },
	"random":      func(r *anteroom.Room) { r.TotalActiveUsers, r.QueueingMethod = 0, anteroom.Random },
	"passthrough": func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough },
	"reject":      func(r *anteroom.Room) { r.QueueingMethod = anteroom.Reject },
	"queue all":   func(r *anteroom.Room) { r.QueueAll = true },
	"suspended":   func(r *anteroom.Room) { r.Suspended = true },
	"paused":      func(r *anteroom.Room) { r.Controls.Paused = true },
	"draining":    func(r *anteroom.Room) { r.Controls.Draining = true },
	"line reset":  func(r *anteroom.Room) { r.Controls.ResetAt = testNow() },
	"prequeue":    func(r *anteroom.Room) { r.Events = []anteroom.Event{eventFrom(-time.Minute, 10*time.Minute, "")} },
	"event":       func(r *anteroom.Room) { r.Events = []anteroom.Event{eventFrom(-20*time.Minute, -time.Minute, "")} },
	"event reject": func(r *anteroom.Room) {
		r.Events = []anteroom.Event{eventFrom(-20*time.Minute, -time.Minute, anteroom.Reject)}
	},
}

// eventFrom is an event with moments that are given from now.
func eventFrom(prequeue, start time.Duration, method anteroom.QueueingMethod) anteroom.Event {
	now := time.Now()
	e := anteroom.Event{ID: "0123456789abcdef0123456789abcdef", Name: "sale", Prequeue: anteroom.StampOf(now.Add(prequeue)),
		Start: anteroom.StampOf(now.Add(start)), End: anteroom.StampOf(now.Add(time.Hour))}
	if method != "" {
		e.QueueingMethod = &method
	}
	return e
}

// TestBypassInEveryState: whatever the room does with others, what bypasses it is untouched
// and uncounted, with a session, a place in line or neither; and others still get what the
// room has for them.
func TestBypassInEveryState(t *testing.T) {
	plain := func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "inside") }
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReal(t, plain, state, func(c *Config) {
				ruled(t, `starts_with(http.request.uri.path, "/open")`)(c)
				crawled(testHost)(c)
			})
			before := w.room.Status()
			for _, c := range []struct {
				name, method, target string
				edit                 func(*http.Request)
			}{
				{"rule", "GET", "/open/x?a=1", nil},
				{"rule, POST", "POST", "/open", nil},
				{"rule, sub-resource", "GET", "/open", header("Sec-Fetch-Dest", "image")},
				{"rule, session", "GET", "/open", header("Cookie", "a=b; "+w.seal(session())+"; c=d")},
				{"rule, in line", "GET", "/open", header("Cookie", "a=b; "+w.seal(waiting())+"; c=d")},
				{"rule, forged ticket", "GET", "/open", header("Cookie", "a=b; __cfwaitingroom=x; c=d")},
				{"crawler", "GET", "/shut", header("X-Forwarded-For", crawlerAddr, "User-Agent", "Googlebot/2.1")},
				{"crawler, session", "GET", "/shut", header("X-Forwarded-For", crawlerAddr, "User-Agent", "Googlebot/2.1", "Cookie", w.seal(session()))},
			} {
				res, body := w.do(c.method, c.target, c.edit)
				if res.StatusCode != 200 || body != "inside" && c.method != "HEAD" {
					t.Errorf("%s: %d %.60q", c.name, res.StatusCode, body)
					continue
				}
				seen := w.origin.last(t)
				noTrace(t, seen, res)
				if strings.Contains(c.name, "rule, s") && c.edit != nil && seen.Header.Get("Cookie") != "" && seen.Header.Get("Cookie") != "a=b; c=d" {
					t.Errorf("%s: other cookies came as %q", c.name, seen.Header.Get("Cookie"))
				}
			}
			stats := w.gw.Stats()
			total := w.recorded()
			if total.Bypassed != [3]int64{analytics.ByRule: 6, analytics.ByCrawler: 2} {
				t.Errorf("counted as bypassed: %v", total.Bypassed)
			}
			if len(total.TicketRefusals) != 0 || stats.Uncovered != 0 || stats.Gate.Count != 0 {
				t.Errorf("counted elsewhere: %+v, %+v", stats, total)
			}
			after := w.room.Status()
			if after.ActiveUsers != before.ActiveUsers || after.Waiting != before.Waiting || after.Dormant != before.Dormant || after.AdmittedLastMin != before.AdmittedLastMin {
				t.Errorf("the room has counted: %+v, was %+v", after, before)
			}
			n := len(w.origin.requests())
			res, _ := w.do("GET", "/shut", nil)
			admits := name == "free" || name == "passthrough" || name == "suspended" || name == "line reset" || name == "event"
			if in := len(w.origin.requests()) > n; in != admits {
				t.Errorf("another request: at the origin %v, status %d", in, res.StatusCode)
			}
			if w.recorded().Bypassed != total.Bypassed {
				t.Error("the other request counts as bypassed")
			}
		})
	}
}

// TestCrawlersPassWhereTheZoneSaysSo: not elsewhere, and nobody but the crawler.
func TestCrawlersPassWhereTheZoneSaysSo(t *testing.T) {
	for _, c := range []struct {
		name, zone, from, agent string
		rules                   []string
		want                    bool
	}{
		{"the zone lets them pass", testHost, crawlerAddr, "Googlebot/2.1", nil, true},
		{"another zone does", "other.example", crawlerAddr, "Googlebot/2.1", nil, false},
		{"another address", testHost, "66.249.66.2", "Googlebot/2.1", nil, false},
		{"another agent", testHost, crawlerAddr, "Firefox", nil, false},
		{"a rule about crawlers", "", crawlerAddr, "Googlebot/2.1", []string{"cf.client.bot"}, true},
		{"a rule about crawlers, another", "", "66.249.66.2", "Googlebot/2.1", []string{"cf.client.bot"}, false},
		{"rules about something else", testHost, crawlerAddr, "Googlebot/2.1", []string{`http.host eq "x"`}, true},
	} {
		w := newWorld(t, line, withConfig(crawled(c.zone)), withConfig(func(cfg *Config) {
			if c.rules != nil {
				ruled(t, c.rules...)(cfg)
			}
		}))
		w.do("GET", "/", header("X-Forwarded-For", c.from, "User-Agent", c.agent))
		if got := len(w.origin.requests()) == 1; got != c.want {
			t.Errorf("%s: passes %v", c.name, got)
		}
	}
	// An address that only the client itself claims is nobody's.
	w := newWorld(t, line, withConfig(crawled(testHost)), withConfig(func(c *Config) { c.TrustedProxies = nil }))
	if w.do("GET", "/", header("X-Forwarded-For", crawlerAddr, "User-Agent", "Googlebot/2.1")); len(w.origin.requests()) != 0 {
		t.Error("a forged address passes")
	}
}

// TestBypassNeedsEveryReading: an origin may read a path in ways of its own, and none of them
// may lead to where the rule does not.
func TestBypassNeedsEveryReading(t *testing.T) {
	const (
		public  = `starts_with(http.request.uri.path, "/public/")`
		others  = `not starts_with(http.request.uri.path, "/checkout")`
		anyCase = `not starts_with(lower(http.request.uri.path), "/checkout")`
		styles  = `http.request.uri.path.extension in {"css" "js"}`
		health  = `http.request.uri.path eq "/health"`
		address = `http.request.full_uri contains "/public/"`
	)
	for rule, paths := range map[string]map[string]bool{
		public: {
			"/public/": true, "/public/x": true, "/public/a%20b": true, "/public/x;v=1": true, "/public/x?/../checkout": true, "/public/./x": true,
			"/public/x/../y": true, "/public//x": true, "/public/%e3%81%84": true, "/public/x%2fy": true,
			"/public": false, "/publicx": false, "/checkout": false, "/checkout?/public/": false, "/PUBLIC/x": false, "/%70ublic/x": false,
			"/public/../checkout": false, "/public/x/../../checkout": false, "/public/%2e%2e/checkout": false, "/public/.%2E/checkout": false,
			"/public/..%2fcheckout": false, "/public%2f..%2fcheckout": false, "/public/%252e%252e/checkout": false, "/public/..%252fcheckout": false,
			"/public/..;/checkout": false, "/public/..;x=1/checkout": false, `/public/..\checkout`: false, `/public\..\checkout`: false, "/public/..%5ccheckout": false,
			"//public/../checkout": false, "/public//../checkout": false, "/public/#/../../checkout": false, "/public/%23/../../checkout": false,
			"/public/../checkout/public/": false, "/x/../public/../checkout": false, "/public/%c0%ae%c0%ae/checkout": false, "/public/..%c0%afcheckout": false,
			"/public/\uff0e\uff0e/checkout": false, "/public/..%ef%bc%8fcheckout": false, "/public/x/..%2f..%2fcheckout": false, "/public/..": false,
		},
		others: {
			"/": true, "/x": true, "/x/checkout": true, "/x%20y": true, "/x/../y": true,
			"/checkout": false, "/checkout/x": false, "//checkout": false, "/./checkout": false, "/x/../checkout": false, "/x/%2e%2e/checkout": false,
			"/%63heckout": false, "/%2563heckout": false, "/checkout;x=1": false, "/;/checkout": false, `/\checkout`: false, "/x/..;/checkout": false,
			"/\uff43heckout": false, "/checkout%2fx": false, "/checkout#": false,
			"/CHECKOUT": true, // as published, case counts
		},
		anyCase: {"/x": true, "/CHECKOUT": false, "/CheckOut": false, "/x/../CHECKOUT": false, "/%43heckout": false},
		styles: {
			"/a.css": true, "/x/y.js": true, "/a.css?v=1": true, "/a.css;v=1": false,
			"/checkout": false, "/checkout;x.css": false, "/checkout%3b.css": false, "/checkout%3fx.css": false, "/checkout%23.css": false, "/checkout#.css": false,
			"/checkout?x.css": false, "/checkout;/x.css": true, "/a.css/../checkout": false, "/a.css/..;/checkout": false,
		},
		health:                             {"/health": true, "/health?x": true, "/health/": false, "/health;x": false, "/x/../health": false, "/health%2f..%2fcheckout": false, "//health": false},
		`http.request.uri.path eq "/café"`: {"/caf%C3%A9": true, "/caf%c3%a9": true, "/caf%25C3%25A9": false, "/caf%C3": false, "/cafe": false, "/caf%C3%A9/../checkout": false},
		`http.request.uri.path in {"/caf%C3%A9" "/a b"}`:  {"/caf%C3%A9": true, "/a%20b": true, "/a%2520b": false, "/a+b": false},
		`http.request.uri.path eq "/a%2Fb"`:               {"/a%2Fb": false, "/a/b": false}, // it may mean two
		`http.request.uri.path ne "/caf%C3%A9"`:           {"/caf%C3%A9": false, "/caf%c3%a9": false, "/x": true},
		`not starts_with(http.request.uri.path, "/café")`: {"/caf%C3%A9": false, "/caf%c3%a9/x": false, "/x": true, "/x%20y": true},
		`not http.request.uri.path contains "é"`:          {"/caf%C3%A9": false, "/x/..%2fcaf%C3%A9": false, "/x": true},
		`http.request.uri.path wildcard "/Caf%C3%A9/*"`:   {"/caf%C3%A9/x": true, "/caf%C3%A9/..%2fx": false, "/caf%C3%A9": false},
		`ends_with(http.request.uri.path, "20")`:          {"/checkout%20": false, "/a20": true},
		`http.request.uri.path eq "/health "`:             {"/health%20": true, "/health": false},
		address:                                           {"/public/x": true, "/checkout?/public/": true, "/public/../checkout": false},
	} {
		w := newWorld(t, line, withConfig(ruled(t, rule)))
		for target, want := range paths {
			n := len(w.origin.requests())
			status := w.rawOne("GET " + target + " HTTP/1.1\nHost: " + testHost + "\nConnection: close\n\n")
			if got := len(w.origin.requests()) > n; got != want || status != 200 {
				t.Errorf("%s: %q: status %d, at the origin %v, want %v", rule, target, status, got, want)
			}
		}
	}
	w := newWorld(t, line, withConfig(ruled(t, "ssl or not ssl")))
	for _, target := range []string{"/%00.css", "/%zz", "/x%0a"} {
		if status := w.rawOne("GET " + target + " HTTP/1.1\nHost: " + testHost + "\nConnection: close\n\n"); status != 400 || len(w.origin.requests()) > 0 {
			t.Errorf("%q: status %d, %d at the origin", target, status, len(w.origin.requests()))
		}
	}
	// The absolute form is the same request.
	if status := w.rawOne("GET http://" + testHost + "/x HTTP/1.1\nHost: " + testHost + "\nConnection: close\n\n"); status != 200 || w.recorded().Bypassed[analytics.ByRule] != 1 {
		t.Errorf("absolute form: status %d", status)
	}
}

// places is a rules.Geo with one address.
type places struct{}

func (places) Place(a netip.Addr) (p rules.Place) {
	if a == netip.MustParseAddr("81.2.69.1") {
		p.Country = "GB"
	}
	return p
}

// TestWhatRulesSee: each expression holds for the request as it was sent and not for one that
// differs from it.
func TestWhatRulesSee(t *testing.T) {
	w := newWorld(t, line, withConfig(func(c *Config) {
		c.TrustedProxies, c.Geo = prefixes("127.0.0.1/32", "::1/128"), places{}
	}), withRoom(func(r *anteroom.Room) { r.Zone = "example.com" }))
	port := w.addr()[strings.LastIndexByte(w.addr(), ':')+1:]
	request := func(r *http.Request) {
		r.Host = "SHOP.example.com.:1"
		header("X-Forwarded-For", "192.0.2.9, 81.2.69.1", "X-Forwarded-Proto", "https", "User-Agent", "probe/1", "Referer", "https://x.example/",
			"Cookie", "a=b", "Accept", "text/html", "X_Anteroom_Assertion", "forged")(r)
	}
	for expression, want := range map[string]bool{
		`http.request.method eq "PUT"`:                                      true,
		`http.request.method eq "GET"`:                                      false,
		`http.request.version eq "HTTP/1.1"`:                                true,
		`http.host eq "SHOP.example.com"`:                                   false, // canonical
		`http.host eq "shop.example.com"`:                                   true,
		`http.host ne "shop.example.com"`:                                   false,
		`http.request.headers["host"][0] eq "shop.example.com"`:             true,
		`starts_with(http.request.full_uri, "https://shop.example.com/a/")`: true,
		`http.request.uri.path eq "/a/b.css"`:                               true,
		`http.request.uri.query eq "x=1&y=2"`:                               true,
		`http.request.uri eq "/a/b.css?x=1&y=2"`:                            true,
		`http.request.uri.args["y"][0] eq "2"`:                              true,
		`http.request.full_uri contains "https://"`:                         true,
		`http.user_agent eq "probe/1"`:                                      true,
		`http.referer contains "x.example"`:                                 true,
		`http.cookie eq "a=b"`:                                              true,
		`http.request.headers["accept"][0] eq "text/html"`:                  true,
		`ip.src eq 81.2.69.1`:                                               true,
		`ip.src eq 192.0.2.9`:                                               false, // a stranger wrote that
		`ip.src.country eq "GB"`:                                            true,
		`ssl`:                                                               true,
		`cf.edge.server_port eq ` + port:                                    true, // not that of the Host header
		`cf.zone.name eq "example.com"`:                                     true,
		`cf.client.bot`:                                                     false,
		`http.request.timestamp.sec gt 1700000000`:                          true,
		`any(http.request.headers.values[*] contains "forged")`:             false, // nobody but us says that
		`http.request.uri.path eq "/x" or http.host eq "shop.example.com"`:  true,
	} {
		w.gw.live.Load().rooms[0].rules = ruleSet(t, expression)
		n := len(w.origin.requests())
		w.do("PUT", "/a/b.css?x=1&y=2", request)
		if got := len(w.origin.requests()) > n; got != want {
			t.Errorf("%s: %v", expression, got)
		}
	}
}

// TestAsksOfWhoPasses: the page of somebody who need not wait any more is told to go on; its
// questions reach no origin, no door and no counter.
func TestAsksOfWhoPasses(t *testing.T) {
	w := newWorld(t, line, withConfig(ruled(t, `http.request.uri.path eq "/open" and http.request.uri.query in {"" "a=1"}`)))
	cookie := header("Cookie", w.seal(waiting()))
	res, body := w.do("GET", "/open?__anteroom=status.3", cookie)
	if res.StatusCode != 200 || !strings.HasPrefix(body, `{"admitted":true`) || len(res.Header["Set-Cookie"]) > 0 {
		t.Errorf("status: %d %.60q %q", res.StatusCode, body, res.Header["Set-Cookie"])
	}
	res, body = w.do("GET", "/open?a=1&__anteroom=stream", cookie)
	if res.StatusCode != 204 || body != "" {
		t.Errorf("stream: %d %q", res.StatusCode, body)
	}
	res, _ = w.do("GET", "/open?a=1&__anteroom=hold", cookie)
	if res.StatusCode != 303 || res.Header.Get("Location") != "?a=1" || len(res.Header["Set-Cookie"]) > 0 {
		t.Errorf("hold: %d %q", res.StatusCode, res.Header)
	}
	if res, _ = w.do("GET", "/open?__anteroom=x", nil); res.StatusCode != 400 {
		t.Errorf("unknown: %d", res.StatusCode)
	}
	if res, _ = w.do("POST", "/open?__anteroom=status", nil); res.StatusCode != 405 {
		t.Errorf("POST: %d", res.StatusCode)
	}
	if n, m := len(w.origin.requests()), len(w.door.seen()); n != 0 || m != 0 || w.recorded().Bypassed != [3]int64{} {
		t.Errorf("%d at the origin, %d at the door, %v counted", n, m, w.recorded().Bypassed)
	}
	if res, body = w.do("GET", "/other?__anteroom=status", cookie); !strings.HasPrefix(body, `{"admitted":false`) || len(w.door.seen()) != 1 {
		t.Errorf("where no rule matches: %d %.60q", res.StatusCode, body)
	}
}

func TestPreflightsThatBypass(t *testing.T) {
	w := newWorld(t, line, withConfig(ruled(t, `http.request.uri.path eq "/open"`)), withConfig(func(c *Config) { c.PreflightsPerSecond = 1 }))
	for range 10 {
		if res, _ := w.do("OPTIONS", "/open", header("Origin", "https://app.example", "Access-Control-Request-Method", "POST")); res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	if s, total := w.gw.Stats(), w.recorded(); total.Bypassed[analytics.ByRule] != 10 || s.Preflights != 0 {
		t.Errorf("bypassed %v, preflights %d", total.Bypassed, s.Preflights)
	}
}

// TestTunnelThatBypasses: a WebSocket that a rule lets through belongs to no session: none
// begins with it, none is renewed by it, and none ends it.
func TestTunnelThatBypasses(t *testing.T) {
	w := newWorld(t, line, withOrigin(echo), withConfig(ruled(t, `http.request.uri.path eq "/ws"`)), withProof(t),
		withRoom(func(r *anteroom.Room) { r.SessionDuration = time.Second }))
	close(w.door.ended)
	c, br, res := dialWebSocket(t, w.addr(), "Cookie: "+w.seal(session())+"\r\n")
	if res.StatusCode != 101 || len(res.Header["Set-Cookie"]) > 0 {
		t.Fatalf("%d %q", res.StatusCode, res.Header)
	}
	noTrace(t, w.origin.last(t), res)
	io.WriteString(c, "hello\n")
	if line, _ := br.ReadString('\n'); line != "hello\n" {
		t.Errorf("heard %q", line)
	}
	select {
	case <-w.door.touched:
		t.Error("the tunnel renews a session")
	case <-time.After(600 * time.Millisecond): // twice as long as a session of a second waits
	}
	if io.WriteString(c, "still\n"); !readsLine(br, "still\n") {
		t.Error("the tunnel has ended with somebody's session")
	}
	if n := len(w.door.seen()); n != 0 || w.recorded().Bypassed[analytics.ByRule] != 1 || w.gw.Stats().Tunnels != 1 {
		t.Errorf("%d visits, %+v", n, w.gw.Stats())
	}
}

func readsLine(br *bufio.Reader, want string) bool {
	line, err := br.ReadString('\n')
	return err == nil && line == want
}

// TestOriginsWordsAboutWhoPasses: what only we may say to a visitor is removed, an origin's
// command ends nobody's session, and its caching stays as it is.
func TestOriginsWordsAboutWhoPasses(t *testing.T) {
	w := newWorld(t, line, withOrigin(func(rw http.ResponseWriter, _ *http.Request) {
		h := rw.Header()
		h.Set("Cf-Waiting-Room-Command", "revoke")
		h.Set("Cache-Control", "public, max-age=60")
		h.Add("Set-Cookie", "__cfwaitingroom=theirs")
		h.Add("Set-Cookie", "mine=1")
	}), withRoom(func(r *anteroom.Room) { r.EnabledOriginCommands = []string{anteroom.CommandRevoke} }), withConfig(ruled(t, "not ssl")))
	res, _ := w.do("GET", "/", header("Cookie", w.seal(session())))
	if res.Header.Get("Cf-Waiting-Room-Command") != "" || res.Header.Get("Cache-Control") != "public, max-age=60" || strings.Join(res.Header["Set-Cookie"], "|") != "mine=1" {
		t.Errorf("the answer has %q", res.Header)
	}
	if w.door.revoked != nil || w.gw.Stats().Revoked != 0 {
		t.Error("a session was ended")
	}
}

func TestMiddlewareBypass(t *testing.T) {
	w := newWorld(t, line, withConfig(ruled(t, `http.request.uri.path eq "/open"`)), withProof(t))
	h := w.gw.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		noTrace(t, r, &http.Response{Header: rw.Header()})
		io.WriteString(rw, "next")
	}))
	for target, want := range map[string]bool{"/open": true, "/shut": false, "/x/../open": false} {
		r := httptest.NewRequest("GET", "http://"+testHost+target, nil)
		r.Header.Set("Cookie", w.seal(session()))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if got := rec.Body.String() == "next"; got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}

// TestRoomsKeepTheirRules: a room's rules are its own, also for a request that only one reading
// of its path leads to.
func TestRoomsKeepTheirRules(t *testing.T) {
	outer := anteroom.Room{Name: "outer", Routes: []anteroom.Route{{Host: testHost}}}.WithDefaults()
	inner := anteroom.Room{Name: "inner", Routes: []anteroom.Route{{Host: testHost, Path: "/inner"}}}.WithDefaults()
	d := &programmed{decide: line}
	g := build(t, Config{Keys: ticket.NewKeyring(time.Now()), Rooms: []anteroom.Room{outer, inner},
		Rules: map[anteroom.RoomID]*rules.Set{outer.ID: ruleSet(t, "not ssl")}}, map[anteroom.RoomID]*programmed{outer.ID: d, inner.ID: d})
	h := g.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "next") }))
	for target, want := range map[string]bool{"/": true, "/inner": false, "/x/../inner": false, "/inner/../x": false} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "http://"+testHost+target, nil))
		if got := rec.Body.String() == "next"; got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}

// TestRulesCostNoAllocation: not on a path that has one reading, which is nearly every path.
func TestRulesCostNoAllocation(t *testing.T) {
	cost := func(expressions ...string) float64 {
		w := newWorld(t, admit, withConfig(func(c *Config) {
			if expressions != nil {
				ruled(t, expressions...)(c)
			}
		}))
		h := w.gw.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r, cookie := httptest.NewRequest("GET", "http://"+testHost+"/products?page=2", nil), []string{w.seal(session())}
		rw := &nowhere{h: make(http.Header)}
		least := math.Inf(1) // pools lose things now and then, and under the race detector on purpose
		for range 100 {
			least = min(least, testing.AllocsPerRun(1, func() {
				clear(rw.h)
				r.Header["Cookie"] = cookie
				h.ServeHTTP(rw, r)
			}))
		}
		return least
	}
	without := cost()
	for _, e := range typicalRules(10) {
		if with := cost(e); with > without {
			t.Errorf("%s: %v allocations, %v without", e, with, without)
		}
	}
	if with := cost(typicalRules(10)...); with > without {
		t.Errorf("ten rules: %v allocations, %v without", with, without)
	}
}

// typicalRules are n rules as operators write them, none of which holds for the requests of the
// benchmarks.
func typicalRules(n int) []string {
	return []string{
		`http.request.uri.path eq "/health"`,
		`starts_with(http.request.uri.path, "/static/")`,
		`http.request.uri.path.extension in {"css" "js" "png" "svg" "woff2"}`,
		`ip.src in {203.0.113.0/24 198.51.100.0/24 2001:db8::/32}`,
		`http.user_agent contains "Pingdom" or http.user_agent contains "StatusCake"`,
		`http.request.method eq "OPTIONS" and http.host eq "api.example.com"`,
		`http.request.uri.query contains "vip=" and ssl`,
		`http.request.uri.path wildcard "/api/*/status"`,
		`http.cookie contains "staff=1"`,
		`not starts_with(http.request.uri.path, "/") or cf.client.bot`,
	}[:n]
}
