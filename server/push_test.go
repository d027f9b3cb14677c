package server

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/push"
	"github.com/anteroom/anteroom/gateway/push/pushtest"
	"github.com/anteroom/anteroom/manage/webhook"
)

const pushRoom = `
rooms:
  - {name: shop, host: "*", total_active_users: 1, new_users_per_minute: 600, session_duration: 1h, place_hold: 1m, web_push: true}
`

// subscribe posts a subscription as the page does.
func (r *running) subscribe(b *pushtest.Browser, cookies []*http.Cookie, header ...string) answer {
	r.t.Helper()
	return r.asksToBeTold(url.Values{"endpoint": {b.Endpoint}, "p256dh": {b.P256DH}, "auth": {b.Auth}}, cookies, header...)
}

// asksToBeTold posts a form to where subscriptions go.
func (r *running) asksToBeTold(form url.Values, cookies []*http.Cookie, header ...string) answer {
	r.t.Helper()
	at := "http://" + r.s.Addresses().Visitors[0]
	req, err := http.NewRequest("POST", at+"/cart?item=7&__anteroom=push", strings.NewReader(form.Encode()))
	for _, c := range cookies {
		req.AddCookie(c)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", at)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req, err)
}

// pushed is what the service worker of a browser gets.
type pushed struct {
	Title, Text, Lang, URL string
	Until                  int64
}

func readPushed(t *testing.T, m pushtest.Message) (p pushed) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.Text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// next is the next message that the service takes.
func next(t *testing.T, s *pushtest.Service) pushtest.Message {
	t.Helper()
	select {
	case m := <-s.Got:
		return m
	case <-time.After(patience):
		t.Fatal("no message has come")
	}
	return pushtest.Message{}
}

// here is the network of the push services of tests.
var here = netip.MustParsePrefix("127.0.0.0/8")

// newQueue is a server whose only seat is taken. Its push services may be in the networks.
func newQueue(t *testing.T, yaml string, networks ...netip.Prefix) (r *running) {
	t.Helper()
	r = prepareServer(t, listenAnywhere+yaml)
	r.push = networks
	r.impatient()
	if a := r.visit("/"); !a.isIn() {
		t.Fatal("the first visitor waits")
	}
	return r
}

// seats changes how many may be in at once.
func (r *running) seats(yaml, n string) {
	r.t.Helper()
	r.mustReload(strings.Replace(yaml, "total_active_users: 1", "total_active_users: "+n, 1))
}

// waits has a visitor wait with the page closed from then on, and returns the cookies of that moment.
func (r *running) waits(b *pushtest.Browser) []*http.Cookie {
	r.t.Helper()
	a := r.visit("/cart?item=7")
	if a.isIn() {
		r.t.Fatal("the visitor does not wait")
	}
	if a := r.subscribe(b, a.Cookies()); a.StatusCode != http.StatusNoContent {
		r.t.Fatal(a.StatusCode, a.body)
	}
	return a.Cookies()
}

// enters follows the link of a notification in a browser that has lost its cookie, and reports whether the origin answers.
func (r *running) enters(link string) bool {
	r.t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Host != r.s.Addresses().Visitors[0] {
		r.t.Fatal(link, err)
	}
	back := r.visit(u.RequestURI())
	if back.StatusCode != http.StatusSeeOther || back.Header.Get("Location") != "?item=7" {
		r.t.Fatal(back.StatusCode, back.Header)
	}
	return r.visit("/cart?item=7", back.Cookies()...).isIn()
}

// A visitor closes the page. When it is his turn, his browser is told once, and by what it is told he enters, without the cookie, before
// visitors who have come later.
func TestAVisitorIsToldByWebPush(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	begun := time.Now()
	r.waits(service.Browser())
	later := r.visit("/") // somebody behind, who looks at the page
	r.seats(pushRoom, "2")
	m := next(t, service)
	p := readPushed(t, m)
	if p.Title != "It’s your turn" || p.Text != "Your turn is kept until {}." || p.Lang != "en-US" || m.Key != r.s.pushes.key.Load().Public() || !strings.HasPrefix(m.Contact, "https://127.0.0.1") {
		t.Errorf("told %+v, %+v", p, m)
	}
	until := time.UnixMilli(p.Until)
	if most := time.Minute - pushSlack; m.TTL > int(most/time.Second) || m.TTL < 30 || until.Sub(begun) > most+patience || time.Until(until) > most {
		t.Errorf("kept until %v from %v, TTL %d", until, begun, m.TTL)
	}
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
	// No seat is idle for somebody who is not here.
	eventually(t, "the visitor who is there is not let in", func() bool { return r.visit("/", later.Cookies()...).isIn() })
	third := r.visit("/") // and somebody behind again
	r.seats(pushRoom, "3")
	eventually(t, "the visitor is not let in", func() bool { return r.enters(p.URL) })
	if r.visit("/", third.Cookies()...).isIn() {
		t.Error("somebody who came later is let in before")
	}
	if got := service.Tries(); got != 1 {
		t.Errorf("told %d times", got)
	}
	if log := r.log.String(); strings.Contains(log, "/push/1") || strings.Contains(log, "back.") {
		t.Errorf("the log has the endpoint or the link:\n%s", log)
	}
}

// A visitor leaves an address and closes the page. The webhook that asks for it is told once when it is his turn, and by its link he enters.
// A webhook that names no types does not hear what visitors have entered.
func TestAVisitorIsToldByAWebhook(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	l, other := newHookReceiver(t), newHookReceiver(t)
	r := newQueue(t, loopbackAllowed+pushRoom)
	waiting := r.visit("/cart?item=7")
	contact := func(text string) answer { return r.asksToBeTold(url.Values{"contact": {text}}, waiting.Cookies()) }
	r.hook(anteroom.Webhook{Name: "all", URL: other.URL})
	if a := contact("ann@example.com"); a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "visitor.called") {
		t.Errorf("no webhook wants to know: %d %s", a.StatusCode, a.body)
	}
	_, secret := r.hook(anteroom.Webhook{Name: "mail", URL: l.URL, Events: []string{anteroom.VisitorCalled}})
	for text, want := range map[string]int{
		strings.Repeat("a", push.MaxContact+1):    http.StatusBadRequest,
		"ann@example.com\r\nBcc: all@example.com": http.StatusBadRequest,
		"\xff": http.StatusBadRequest,
	} {
		if a := contact(text); a.StatusCode != want {
			t.Errorf("%q: %d %s", text, a.StatusCode, a.body)
		}
	}
	if a := contact("ann@example.com"); a.StatusCode != http.StatusNoContent {
		t.Fatal(a.StatusCode, a.body)
	}
	r.seats(loopbackAllowed+pushRoom, "2")
	l.await(t, anteroom.VisitorCalled)
	var m webhook.Message
	if err := json.Unmarshal([]byte(l.bodies[0]), &m); err != nil || m.Room.Name != "shop" || m.Visitor.Contact != "ann@example.com" || len(m.Visitor.Reference) != 11 || time.Until(m.Visitor.Until) < 30*time.Second {
		t.Fatalf("%s, %v", l.bodies[0], err)
	}
	if err := webhook.Verify(l.got[0].Header.Get(webhook.SignatureHeader), []byte(l.bodies[0]), secret, time.Now(), webhook.DefaultTolerance); err != nil {
		t.Error(err)
	}
	if strings.Contains(m.Text, "ann") || strings.Contains(m.Text, "back.") {
		t.Errorf("people read %q", m.Text)
	}
	eventually(t, "what is to be told stays", func() bool { return r.s.pushes.book.Len() == 0 })
	if !r.enters(m.Visitor.URL) {
		t.Error("the visitor does not enter by the link")
	}
	if slices.Contains(other.types(), anteroom.VisitorCalled) || len(l.types()) != 1 {
		t.Errorf("told %v and %v", l.types(), other.types())
	}
	if log := r.log.String(); strings.Contains(log, "ann@") || strings.Contains(log, "back.") {
		t.Errorf("the log has the address or the link:\n%s", log)
	}
}

// Whoever looks at the page and enters by it is not told.
func TestAVisitorWhoIsThereIsNotTold(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	r.s.pushes.look = 3 * time.Second
	cookies := r.waits(service.Browser())
	eventually(t, "no stream is held", func() bool { return r.room("shop").Streams == 1 })
	r.seats(pushRoom, "2")
	eventually(t, "the stream does not hear of the turn", func() bool { return r.room("shop").Streams == 0 })
	eventually(t, "the visitor is not let in", func() bool { return r.visit("/", cookies...).isIn() })
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times", got)
	}
}

// While everybody is held, nobody is told, although seats are free.
func TestNobodyIsToldWhileTheRoomIsHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	service := pushtest.Serve(t)
	held := loopbackAllowed + strings.Replace(pushRoom, "web_push: true", "web_push: true, queue_all: true", 1)
	r := prepareServer(t, listenAnywhere+held)
	r.push = []netip.Prefix{here}
	r.impatient()
	r.waits(service.Browser())
	eventually(t, "no stream is held", func() bool { return r.room("shop").Streams == 1 })
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times", got)
	}
	r.mustReload(loopbackAllowed + pushRoom)
	p := readPushed(t, next(t, service))
	eventually(t, "the visitor is not let in", func() bool { return r.enters(p.URL) })
}

// Nothing is kept of a visitor who leaves.
func TestAVisitorWhoLeavesIsNotTold(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	cookies := r.waits(service.Browser())
	at := "http://" + r.s.Addresses().Visitors[0]
	req, err := http.NewRequest("POST", at+"/?__anteroom=leave", nil)
	for _, c := range cookies {
		req.AddCookie(c)
	}
	req.Header.Set("Origin", at)
	if a := r.do(req, err); a.StatusCode != http.StatusSeeOther {
		t.Fatal(a.StatusCode, a.body)
	}
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
	r.seats(pushRoom, "2")
	if a := r.subscribe(service.Browser(), cookies); a.StatusCode != http.StatusConflict {
		t.Errorf("a place that was given up: %d %s", a.StatusCode, a.body)
	}
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times", got)
	}
}

// A restart forgets nobody, and a push service that is busy is asked again when it says.
func TestWebPushSurvivesARestartAndABusyService(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	r.waits(service.Browser())
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	service.Answer(func(try int) (int, int) {
		switch try {
		case 1:
			return http.StatusTooManyRequests, 1
		case 2:
			return http.StatusBadGateway, 0
		}
		return http.StatusCreated, 0
	})
	r.impatient()
	eventually(t, "no stream is held after a restart", func() bool { return r.s.pushes.book.Len() == 1 && r.room("shop").Streams == 1 })
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times, with no seat free", got)
	}
	r.seats(pushRoom, "2")
	p := readPushed(t, next(t, service))
	if got := service.Tries(); got != 3 {
		t.Errorf("%d attempts", got)
	}
	p.URL = strings.Replace(p.URL, p.URL[:strings.Index(p.URL, "/cart")], "http://"+r.s.Addresses().Visitors[0], 1) // the port is another
	u, _ := url.Parse(p.URL)
	if back := r.visit(u.RequestURI()); back.StatusCode != http.StatusSeeOther {
		t.Errorf("the link does not work after a restart: %d", back.StatusCode)
	}
}

// A subscription that the browser has ended, and one that the service will never take, are removed.
func TestSubscriptionsThatAreOverAreRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone, http.StatusForbidden} {
		service := pushtest.Serve(t)
		service.Answer(func(int) (int, int) { return status, 0 })
		r := newQueue(t, pushRoom, here)
		r.waits(service.Browser())
		r.seats(pushRoom, "2")
		eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
		if got := service.Tries(); got != 1 {
			t.Errorf("%d: %d attempts", status, got)
		}
		r.end()
	}
}

// What a visitor posts leads nowhere inside, not even to what webhooks may reach, and changes nothing when it is refused.
func TestSubscriptionsAreChecked(t *testing.T) {
	inside := pushtest.Serve(t)
	allowed := "webhooks: {allow_networks: [127.0.0.0/8, \"::1\", 10.0.0.0/8, 169.254.0.0/16]}\n" + pushRoom
	r := newQueue(t, allowed)
	cookies := r.visit("/").Cookies()
	good := pushtest.NewBrowser(t, "https://push.example.net/p/1")
	for _, c := range []struct {
		endpoint string
		cookies  []*http.Cookie
		header   []string
		status   int
		says     string
	}{
		{"http://push.example.net/p/1", cookies, nil, 400, "https://"},
		{inside.URL + "/p/1", cookies, nil, 400, "https://"},
		{"https://127.0.0.1/p/1", cookies, nil, 400, "not public"},
		{"https://[::1]/p/1", cookies, nil, 400, "not public"},
		{"https://169.254.169.254/latest/meta-data", cookies, nil, 400, "not public"},
		{"https://10.1.2.3/", cookies, nil, 400, "not public"},
		{"https://me:you@push.example.net/", cookies, nil, 400, "no URL of a push service"},
		{"https://push.example.net/" + strings.Repeat("a", 1024), cookies, nil, 400, "1024"},
		{"", cookies, nil, 400, "no URL of a push service"},
		{good.Endpoint, nil, nil, 409, "no place"},
		{good.Endpoint, cookies, []string{"Origin", "https://evil.example"}, 403, "button"},
		{good.Endpoint, cookies, []string{"Sec-Fetch-Site", "cross-site"}, 403, "button"},
		{good.Endpoint, cookies, []string{"Content-Type", "application/json"}, 400, "form"},
		{good.Endpoint, cookies, nil, 204, ""},
	} {
		b := *good
		b.Endpoint = c.endpoint
		before := r.s.pushes.book.Len()
		a := r.subscribe(&b, c.cookies, c.header...)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%.40s: %d %s", c.endpoint, a.StatusCode, a.body)
		}
		if after := r.s.pushes.book.Len(); (after != before) != (a.StatusCode == 204) {
			t.Errorf("%.40s: %d subscriptions, then %d", c.endpoint, before, after)
		}
	}
	// The same visitor again: still one. Then none.
	if r.subscribe(good, cookies); r.s.pushes.book.Len() != 1 {
		t.Errorf("%d subscriptions of one visitor", r.s.pushes.book.Len())
	}
	at := "http://" + r.s.Addresses().Visitors[0]
	req, err := http.NewRequest("POST", at+"/?__anteroom=push", strings.NewReader("off=1"))
	for _, c := range cookies {
		req.AddCookie(c)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", at)
	if a := r.do(req, err); a.StatusCode != 204 || r.s.pushes.book.Len() != 0 {
		t.Errorf("switched off: %d, %d subscriptions", a.StatusCode, r.s.pushes.book.Len())
	}
	// A name that leads inside is found out when it is connected to.
	_, port, _ := strings.Cut(strings.TrimPrefix(inside.URL, "http://"), ":")
	if a := r.subscribe(pushtest.NewBrowser(t, "https://localhost:"+port+"/p/1"), cookies); a.StatusCode != 204 {
		t.Fatal(a.StatusCode)
	}
	r.seats(allowed, "2")
	if line := r.log.await(t, 0, "a web push message could not be sent"); !strings.Contains(line, "the address is not public") || strings.Contains(line, "/p/1") {
		t.Errorf("%s", line)
	}
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
}

// Where the room does not offer it, there is nothing to subscribe to, and a subscription of before ends.
func TestRoomsThatDoNotOfferWebPush(t *testing.T) {
	t.Parallel()
	r := newQueue(t, pushRoom)
	cookies := r.visit("/").Cookies()
	key := r.visit("/?__anteroom=push", cookies...)
	if key.StatusCode != 200 || key.body != `{"key":"`+r.s.pushes.key.Load().Public()+`"}` {
		t.Errorf("%d %s", key.StatusCode, key.body)
	}
	if page := r.visit("/", cookies...); !strings.Contains(page.body, `"push":1`) {
		t.Error("the page does not know that it may offer web push")
	}
	good := pushtest.NewBrowser(t, "https://push.example.net/p/1")
	if a := r.subscribe(good, cookies); a.StatusCode != 204 {
		t.Fatal(a.StatusCode, a.body)
	}
	eventually(t, "no stream is held", func() bool { return r.room("shop").Streams == 1 }) // it is left alone for half of place_hold
	r.mustReload(strings.Replace(pushRoom, ", web_push: true", "", 1))
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
	if a := r.subscribe(good, cookies); a.StatusCode != 404 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if page := r.visit("/", cookies...); strings.Contains(page.body, `"push":1`) {
		t.Error("the page offers web push")
	}
}

// In a cluster one process tells, wherever the visitor has subscribed, and the link leads in at every node.
func TestOneNodeTellsByWebPush(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	service := pushtest.Serve(t)
	r, core := prepareCore(t, pushRoom)
	r.push = []netip.Prefix{here}
	r.impatient()
	second := prepareEdge(t, core, clusterSecret, "")
	second.push = r.push
	second.impatient()
	eventually(t, "nobody is let in", func() bool { return r.visit("/").isIn() })
	second.waits(service.Browser())
	eventually(t, "the core does not know the subscription", func() bool { return r.s.pushes.book.Len() == 1 })
	more := strings.Replace(pushRoom, "total_active_users: 1", "total_active_users: 2", 1)
	r.write(listenAnywhere + loopbackAllowed + more + "cluster: {listen: \"" + core + "\", node: first, secret_file: secret}\n")
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	p := readPushed(t, next(t, service))
	for _, at := range []*running{r, second} {
		eventually(t, "the subscription stays", func() bool { return at.s.pushes.book.Len() == 0 })
	}
	eventually(t, "the visitor is not let in", func() bool { return second.enters(p.URL) })
	if got := service.Tries(); got != 1 {
		t.Errorf("told %d times", got)
	}
}
