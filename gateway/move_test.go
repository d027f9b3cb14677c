package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

// mover is a device with a jar of cookies, as a browser keeps them.
type mover struct {
	booth
	from string
	jar  map[string]string
}

func (b booth) device() *mover { return &mover{booth: b, from: "192.0.2.1", jar: map[string]string{}} }

// do sends a request to an address of http://example.com, which is where httptest sends requests.
func (m *mover) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.RemoteAddr = m.from + ":1234"
	for name, value := range m.jar {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	header(headers...)(r)
	rec := httptest.NewRecorder()
	m.h.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if m.jar[c.Name] = c.Value; c.MaxAge < 0 {
			delete(m.jar, c.Name)
		}
	}
	return rec
}

func (m *mover) get(target string) *httptest.ResponseRecorder { return m.do("GET", target, "") }

// press posts the form of the page behind a link.
func (m *mover) press(link, body string) *httptest.ResponseRecorder {
	return m.do("POST", link, body, "Sec-Fetch-Site", "same-origin", "Origin", "http://example.com")
}

// ask is the page's question for its place.
func (m *mover) ask() (p place) {
	g := guest{booth: m.booth, from: m.from, cookie: "__cfwaitingroom=" + m.jar["__cfwaitingroom"]}
	if m.jar["__cfwaitingroom"] == "" {
		g.cookie = ""
	}
	p = g.ask()
	if _, value, _ := strings.Cut(g.cookie, "="); value != "" {
		m.jar["__cfwaitingroom"] = value
	}
	return p
}

// waits makes the device join the queue and come back, by which its place is proven.
func (m *mover) waits() *mover {
	m.get("/cart")
	m.pass(3 * time.Second)
	m.ask()
	m.pass(3 * time.Second)
	return m
}

var linked = regexp.MustCompile(`<p class="link"><a href="http://example\.com([^"]*)"`)

// link is the address that the device shows to another one.
func (m *mover) link() string {
	m.t.Helper()
	rec := m.get("/cart?id=5&__anteroom=move")
	found := linked.FindStringSubmatch(rec.Body.String())
	if rec.Code != http.StatusOK || found == nil {
		m.t.Fatalf("no link: %d %v\n%s", rec.Code, rec.Header(), rec.Body)
	}
	return strings.ReplaceAll(found[1], "&amp;", "&")
}

func headed(rec *httptest.ResponseRecorder, heading string) bool {
	return strings.Contains(rec.Body.String(), "<h1>"+heading+"</h1>") && rec.Header().Get("X-Origin") == ""
}

const (
	continueHere = "Continue here"
	movedAway    = "You continue on another device"
	noLink       = "This link does not work"
)

// The place moves once, with its order; the device that was left is told, and has no place; neither makes a second session.
func TestPlaceMovesToAnotherDevice(t *testing.T) {
	inBooth(t, func(r *anteroom.Room) { r.SiteName = "Mug & Co" }, func(b booth) {
		phone, second := b.device().waits(), b.device().waits()
		shown := phone.get("/cart?id=5&__anteroom=move")
		if shown.Header().Get("Refresh") == "" || !strings.Contains(shown.Body.String(), "<svg class") || !strings.Contains(shown.Header().Get("Cache-Control"), "no-store") {
			t.Errorf("%v\n%s", shown.Header(), shown.Body)
		}
		// The page that shows another link after a while knows where the visitor was, whether its address or the Referer said so.
		for _, again := range []*httptest.ResponseRecorder{shown, phone.do("GET", "/cart?__anteroom=move", "", "Referer", "http://example.com/cart?id=5")} {
			if at := again.Header().Get("Refresh"); !strings.HasSuffix(at, "; url=?id=5&__anteroom=move") {
				t.Errorf("the page comes back as %q", at)
			}
		}
		link, another := phone.link(), phone.link()
		if !strings.HasPrefix(link, "/cart?id=5&__anteroom=move.") {
			t.Fatalf("the link is %s", link)
		}

		// Programs look at links before people do, and visitors change their minds.
		laptop := b.device()
		for _, method := range []string{"HEAD", "GET", "GET"} {
			rec := laptop.do(method, link, "", "Purpose", "prefetch")
			if rec.Code != http.StatusOK || method == "GET" && !headed(rec, continueHere) || laptop.jar["__cfwaitingroom"] != "" || rec.Header().Get("Referrer-Policy") != "same-origin" {
				t.Fatalf("%s: %d %v\n%s", method, rec.Code, rec.Header(), rec.Body)
			}
		}
		if p := phone.ask(); p.Ahead != 0 || p.Admitted {
			t.Fatalf("the phone's place: %+v", p)
		}
		copied := b.device()
		copied.jar["__cfwaitingroom"] = phone.jar["__cfwaitingroom"]

		rec := laptop.press(link, "")
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5" {
			t.Fatalf("%d %v\n%s", rec.Code, rec.Header(), rec.Body)
		}
		if p := laptop.ask(); p.Ahead != 0 || p.Admitted || p.Reason == "left" {
			t.Errorf("the laptop's place: %+v", p)
		}
		if p := second.ask(); p.Ahead != 1 {
			t.Errorf("the second visitor: %+v", p)
		}

		// The phone is told, by its script and by its page, and keeps nothing. So is every copy.
		for _, left := range []*mover{phone, copied} {
			if p := left.ask(); p.Admitted || p.Reason != "left" {
				t.Errorf("the phone's script: %+v", p)
			}
			if rec := left.do("GET", "/cart?__anteroom=stream", ""); rec.Code != http.StatusNoContent {
				t.Errorf("its stream: %d", rec.Code)
			}
			if rec := left.do("GET", "/a.png", "", "Sec-Fetch-Dest", "image"); rec.Code != http.StatusTooManyRequests {
				t.Errorf("its pictures: %d", rec.Code)
			}
			rec := left.get("/cart?id=5")
			if !headed(rec, movedAway) || rec.Header().Get("Refresh") != "" || left.jar["__cfwaitingroom"] != "" || !strings.Contains(rec.Body.String(), "Mug &amp; Co") {
				t.Errorf("%d %v\n%s", rec.Code, rec.Header(), rec.Body)
			}
		}
		// No link of before works any more, on any device.
		for _, old := range []string{link, another} {
			for _, m := range []*mover{b.device(), phone} {
				if rec := m.get(old); rec.Code != http.StatusGone || !headed(rec, noLink) {
					t.Errorf("%d\n%s", rec.Code, rec.Body)
				}
				m.jar[moveCookie] = "AAAAAAAAAAAAAAAAAAAAAA"
				if rec := m.press(old, ""); rec.Code != http.StatusGone || m.jar["__cfwaitingroom"] != "" {
					t.Errorf("%d %v", rec.Code, rec.Header())
				}
			}
		}
		// On the laptop itself it leads to the page.
		if rec := laptop.get(link); rec.Code != http.StatusSeeOther {
			t.Errorf("%d", rec.Code)
		}

		// The visitor may return, and the laptop is the one that was left.
		back := laptop.link()
		phone.get(back)
		if rec := phone.press(back, ""); rec.Code != http.StatusSeeOther {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if p := phone.ask(); p.Ahead != 0 || p.Reason == "left" {
			t.Errorf("back on the phone: %+v", p)
		}
		if rec := laptop.get("/cart"); !headed(rec, movedAway) {
			t.Errorf("%s", rec.Body)
		}
		if rec := copied.get("/cart"); headed(rec, movedAway) { // its cookie has gone: it is new
			t.Errorf("%s", rec.Body)
		}
	})
}

// A second press, and one whose answer was lost, come to the same. Of two devices one wins.
func TestLinkIsForOneDevice(t *testing.T) {
	inBooth(t, nil, func(b booth) {
		phone := b.device().waits()
		link := phone.link()
		laptop, tablet := b.device(), b.device()
		laptop.get(link)
		tablet.get(link)
		var all sync.WaitGroup
		codes := make([]int, 3)
		cookies := make([]string, 3)
		for i, m := range []*mover{laptop, {booth: b, from: laptop.from, jar: map[string]string{moveCookie: laptop.jar[moveCookie]}}, tablet} {
			all.Go(func() {
				codes[i], cookies[i] = m.press(link, "").Code, m.jar["__cfwaitingroom"]
			})
		}
		all.Wait()
		switch {
		case codes[0] == http.StatusSeeOther && codes[1] == http.StatusSeeOther && codes[2] == http.StatusGone && cookies[2] == "":
		case codes[0] == http.StatusGone && codes[1] == http.StatusGone && codes[2] == http.StatusSeeOther && cookies[0]+cookies[1] == "":
		default:
			t.Errorf("%v", codes)
		}
		winners := 0
		for _, c := range cookies {
			m := b.device()
			if m.jar["__cfwaitingroom"] = c; c != "" && m.ask().Reason != "left" {
				winners++
			}
		}
		if winners == 0 {
			t.Error("nobody has the place")
		}
		// After a minute, it is a second use.
		b.pass(2 * time.Minute)
		late := &mover{booth: b, from: laptop.from, jar: map[string]string{moveCookie: laptop.jar[moveCookie]}}
		if rec := late.press(link, ""); rec.Code != http.StatusGone {
			t.Errorf("%d", rec.Code)
		}
	})
}

// What is not a link of this room, host and time leads nowhere, and changes nothing.
func TestLinksThatAreNone(t *testing.T) {
	inBooth(t, nil, func(b booth) {
		phone := b.device().waits()
		link := phone.link()
		before, token, _ := strings.Cut(link, "move.")
		until, sealed, _ := strings.Cut(token, ".")
		other := b.device()
		other.jar[moveCookie] = "AAAAAAAAAAAAAAAAAAAAAA"
		for name, bad := range map[string]string{
			"another end":     before + "move." + "7" + until[1:] + "." + sealed,
			"no end":          before + "move." + sealed,
			"a longer end":    before + "move." + strings.Repeat("0", 40) + until + "." + sealed,
			"nothing":         before + "move.",
			"dots":            before + "move....",
			"the ticket":      before + "move." + until + "." + phone.jar["__cfwaitingroom"],
			"a changed seal":  before + "move." + until + "." + "AAAA" + sealed[4:],
			"more":            link + "A",
			"a huge one":      link + strings.Repeat("A", 3000),
			"new lines":       before + "move." + until + ".%0d%0aSet-Cookie:%20a=b",
			"another scheme":  "/cart?id=5&__anteroom=moved." + token,
			"another host":    "http://other.example" + link,
			"with the port":   "http://example.com:81" + link,
			"spelled in part": strings.Replace(link, "__anteroom", "%5f_anteroom", 1),
		} {
			for _, method := range []string{"GET", "POST"} {
				rec := other.do(method, bad, "", "Sec-Fetch-Site", "same-origin")
				if other.jar["__cfwaitingroom"] != "" && rec.Code != http.StatusSeeOther || headed(rec, continueHere) || rec.Header().Get("A") != "" || len(rec.Header()["Set-Cookie"]) > 1 {
					t.Errorf("%s, %s: %d %v\n%s", name, method, rec.Code, rec.Header(), rec.Body)
				}
				delete(other.jar, "__cfwaitingroom")
			}
		}
		if p := phone.ask(); p.Ahead != 0 || p.Reason == "left" {
			t.Fatalf("%+v", p)
		}

		// Not by another site, another method, or without the button.
		for _, foreign := range [][]string{{}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "none"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if rec := other.do("POST", link, "", foreign...); rec.Code != http.StatusForbidden || other.jar["__cfwaitingroom"] != "" {
				t.Errorf("%q: %d %v", foreign, rec.Code, rec.Header())
			}
		}
		for _, method := range []string{"PUT", "DELETE", "OPTIONS"} {
			if rec := other.do(method, link, "", "Sec-Fetch-Site", "same-origin"); rec.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d", method, rec.Code)
			}
		}
		if rec := phone.press("/cart?__anteroom=move", ""); rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("posted where there is no link: %d", rec.Code)
		}
		// A browser without cookies would lose the place.
		fresh := b.device()
		if rec := fresh.press(link, ""); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "Please allow cookies") || fresh.jar["__cfwaitingroom"] != "" {
			t.Errorf("%d %v", rec.Code, rec.Header())
		}
		if p := phone.ask(); p.Ahead != 0 || p.Reason == "left" {
			t.Fatalf("%+v", p)
		}
		// It works until it is over.
		for range 9 {
			b.pass(time.Minute)
			phone.ask()
		}
		b.pass(40 * time.Second)
		if rec := other.get(link); !headed(rec, continueHere) {
			t.Errorf("before its end: %d", rec.Code)
		}
		b.pass(20 * time.Second)
		if rec := other.get(link); rec.Code != http.StatusGone {
			t.Errorf("after its end: %d", rec.Code)
		}
		if rec := other.press(link, ""); rec.Code != http.StatusGone || !headed(rec, noLink) {
			t.Errorf("after its end: %d", rec.Code)
		}
	})
}

// A device with a place of its own says so before it loses it: a visitor may be talked into pressing the button of a stranger's link.
func TestArrivalAsksBeforeItReplaces(t *testing.T) {
	inBooth(t, nil, func(b booth) {
		phone, laptop, last := b.device(), b.device(), b.device()
		for range 3 {
			for _, m := range []*mover{phone, laptop, last} {
				m.ask()
			}
			b.pass(2 * time.Second)
		}
		if p := last.ask(); p.Ahead != 2 {
			b.t.Fatalf("the last visitor: %+v", p)
		}
		link := phone.link()
		const note = "You already have a place in line on this device"
		rec := laptop.get(link)
		if !headed(rec, continueHere) || !strings.Contains(rec.Body.String(), note) {
			t.Fatalf("%d\n%s", rec.Code, rec.Body)
		}
		held := laptop.jar["__cfwaitingroom"]
		if rec := laptop.press(link, ""); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), note) || laptop.jar["__cfwaitingroom"] != held {
			t.Errorf("without the field: %d", rec.Code)
		}
		if p := phone.ask(); p.Reason == "left" {
			t.Fatalf("%+v", p)
		}
		if rec := laptop.press(link, "replace=1"); rec.Code != http.StatusSeeOther {
			t.Fatalf("%d\n%s", rec.Code, rec.Body)
		}
		if p := laptop.ask(); p.Ahead != 0 {
			t.Errorf("the laptop: %+v", p)
		}
		b.pass(time.Second)
		if p := last.ask(); p.Ahead != 1 {
			t.Errorf("the place that was given up still counts: %+v", p)
		}
	})
}

// A session does not move, and a device that has one needs no place. A place whose turn has come has gone.
func TestSessionsDoNotMove(t *testing.T) {
	inEmptyBooth(t, nil, func(b booth) {
		inside := b.device()
		if !inside.ask().Admitted {
			t.Fatal("waits")
		}
		if rec := inside.get("/cart?id=5&__anteroom=move"); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5" {
			t.Errorf("%d %v", rec.Code, rec.Header())
		}
		phone := b.device().waits()
		link := phone.link()
		if rec := inside.get(link); rec.Code != http.StatusSeeOther {
			t.Errorf("%d", rec.Code)
		}
		if rec := inside.press(link, "replace=1"); rec.Code != http.StatusSeeOther || !inside.ask().Admitted {
			t.Errorf("%d", rec.Code)
		}
		laptop := b.device()
		laptop.get(link)
		id, _ := b.gw.live.Load().rooms[0].sealer.Open(inside.jar["__cfwaitingroom"])
		b.room.Revoke(id.ID)
		b.pass(5 * time.Second)
		for range 5 {
			if phone.ask().Admitted {
				break
			}
			b.pass(3 * time.Second)
		}
		if !phone.ask().Admitted {
			t.Fatal("the turn does not come")
		}
		if rec := laptop.press(link, ""); rec.Code != http.StatusGone || laptop.jar["__cfwaitingroom"] != "" || !phone.ask().Admitted {
			t.Errorf("%d", rec.Code)
		}
	})
}

// The turn comes on the device that the place is at, once.
func TestMovedPlaceGetsItsTurn(t *testing.T) {
	inEmptyBooth(t, nil, func(b booth) {
		inside := b.device()
		if !inside.ask().Admitted {
			t.Fatal("waits")
		}
		phone, laptop := b.device().waits(), b.device()
		old := phone.jar["__cfwaitingroom"]
		link := phone.link()
		laptop.get(link)
		laptop.press(link, "")
		id, _ := b.gw.live.Load().rooms[0].sealer.Open(inside.jar["__cfwaitingroom"])
		b.room.Revoke(id.ID)
		b.pass(time.Second)
		phone.jar["__cfwaitingroom"] = old
		if p := phone.ask(); p.Admitted {
			t.Errorf("the device that was left got in: %+v", p)
		}
		for range 5 {
			if laptop.ask().Admitted {
				break
			}
			b.pass(3 * time.Second)
		}
		if !laptop.ask().Admitted || b.room.Status().ActiveUsers != 1 {
			t.Errorf("active users %d", b.room.Status().ActiveUsers)
		}
		phone.jar["__cfwaitingroom"] = old
		if p := phone.ask(); p.Admitted || p.Reason != "left" {
			t.Errorf("the device that was left: %+v", p)
		}
	})
}

// The page of a device that was left hears of it at once, by its stream.
func TestMoveEndsTheOldStream(t *testing.T) {
	inBooth(t, nil, func(b booth) {
		phone, laptop := b.device().waits(), b.device()
		t1, _ := b.gw.live.Load().rooms[0].sealer.Open(phone.jar["__cfwaitingroom"])
		_, updates := b.room.Watch(b.t.Context(), anteroom.Visit{Ticket: t1, NewID: ticket.NewID()})
		if updates == nil {
			t.Fatal("no stream")
		}
		link := phone.link()
		laptop.get(link)
		at := time.Now()
		laptop.press(link, "")
		for range updates {
		}
		if took := time.Since(at); took > 0 {
			t.Errorf("the stream ended after %v", took)
		}
	})
}

// A room that binds tickets to networks moves places within one.
func TestBoundPlaceStaysInItsNetwork(t *testing.T) {
	inBooth(t, func(r *anteroom.Room) { r.Bind = anteroom.BindIPPrefix }, func(b booth) {
		phone := b.device().waits()
		link := phone.link()
		far, near := b.device(), b.device()
		far.from = "198.51.100.7"
		if rec := far.get(link); rec.Code != http.StatusGone {
			t.Errorf("from another network: %d", rec.Code)
		}
		far.jar[moveCookie] = "AAAAAAAAAAAAAAAAAAAAAA"
		if rec := far.press(link, ""); rec.Code != http.StatusGone {
			t.Errorf("from another network: %d", rec.Code)
		}
		near.get(link)
		if rec := near.press(link, ""); rec.Code != http.StatusSeeOther {
			t.Errorf("from the same network: %d", rec.Code)
		}
		if p := near.ask(); p.Ahead != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// One address cannot make a write of every request.
func TestMovesOfAnAddressAreBounded(t *testing.T) {
	inBooth(t, nil, func(b booth) {
		phone := b.device().waits()
		link := phone.link()
		laptop, rest := b.device(), b.device()
		laptop.get(link)
		laptop.press(link, "")
		rest.jar[moveCookie] = "AAAAAAAAAAAAAAAAAAAAAA"
		codes := map[int]int{}
		for range movesAtOnce + 5 {
			rec := rest.press(link, "")
			if codes[rec.Code]++; rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
		if codes[http.StatusGone] != movesAtOnce-1 || codes[http.StatusTooManyRequests] != 6 {
			t.Errorf("%v", codes)
		}
	})
}

// A site of a cluster does not tell how often a place has moved: the ticket keeps it.
func TestTicketKeepsItsMoves(t *testing.T) {
	seen := uint8(0)
	decide := func(v anteroom.Visit) anteroom.Decision {
		seen = v.Ticket.Moved
		d := line(v)
		d.Ticket.Moved = 0
		return d
	}
	w := newWorld(t, decide)
	w.door.watch = func(_ context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
		return decide(v), nil
	}
	seal := w.gw.live.Load().rooms[0].sealer
	cookie := string(seal.Seal(nil, anteroom.Ticket{ID: ticket.NewID(), Arrival: 1, Next: anteroom.TimeOf(time.Now()), Moved: 3}))
	for _, target := range []string{"/", "/?__anteroom=status", "/?__anteroom=stream"} {
		res, _ := w.do("GET", target, header("Cookie", "__cfwaitingroom="+cookie))
		for _, c := range res.Cookies() {
			if got, _ := seal.Open(c.Value); seen != 3 || got.Moved != 3 {
				t.Errorf("%s: moved %d times, the door hears %d", target, got.Moved, seen)
			}
			seen = 0
		}
		if seen != 0 {
			t.Errorf("%s: no cookie", target)
		}
	}
}

// Who passes a room without a page passes it with a ticket that was left behind, too. Another waiting room's cookie brings no place back.
func TestTicketsLeftBehind(t *testing.T) {
	id := ticket.NewID()
	var cfg Config
	inEmptyBooth(t, nil, func(b booth) {
		room := cfg.Rooms[0]
		if err := cfg.Node.Move(b.t.Context(), room.ID, &anteroom.Ticket{ID: id}, "a"); err != nil {
			b.t.Fatal(err)
		}
		old := b.device()
		sealed := string(b.gw.live.Load().rooms[0].sealer.Seal(nil, anteroom.Ticket{ID: id, Arrival: cfg.Node.Now(), Next: cfg.Node.Now()}))
		old.jar["__cfwaitingroom"] = sealed
		for _, edit := range []func(*anteroom.Room){func(r *anteroom.Room) { r.Suspended = true }, func(r *anteroom.Room) { r.Shadow = true }, nil} {
			changed := room
			if edit != nil {
				edit(&changed)
			}
			if err := cfg.Node.Apply(b.t.Context(), []anteroom.Room{changed}); err != nil {
				b.t.Fatal(err)
			}
			put, ok := b.gw.PrepareRooms([]RoomChange{{Room: changed}})
			if !ok {
				b.t.Fatal("the change is refused")
			}
			put()
			if edit != nil {
				if rec := old.get("/cart"); rec.Header().Get("X-Origin") != "shop" {
					t.Errorf("%d\n%s", rec.Code, rec.Body)
				}
				old.jar["__cfwaitingroom"] = sealed
			}
		}
		// The session of a visit in shadow mode is over, and the room is full.
		if rec := old.get("/cart"); !headed(rec, movedAway) {
			t.Errorf("%d\n%s", rec.Code, rec.Body)
		}
		for method, want := range map[string]int{"GET": http.StatusOK, "POST": http.StatusForbidden} {
			old.jar["__cfwaitingroom"] = sealed
			if rec := old.do(method, "/cart", ""); rec.Code != want || !headed(rec, movedAway) {
				t.Errorf("%s: %d\n%s", method, rec.Code, rec.Body)
			}
		}
		old.jar = map[string]string{"queue": "x"}
		if old.get("/cart"); old.jar["__cfwaitingroom"] == "" {
			t.Fatal("no ticket")
		}
		if now, _ := b.gw.live.Load().rooms[0].sealer.Open(old.jar["__cfwaitingroom"]); now.ID == id {
			t.Error("the old cookie brings the place back")
		}
	}, func(c *Config) {
		c.Former = map[anteroom.RoomID]Former{c.Rooms[0].ID: {Cookie: "queue", Read: func(string, netip.Addr, string, time.Time) (anteroom.Ticket, bool, bool) {
			return anteroom.Ticket{ID: id, Arrival: 1, Next: c.Node.Now()}, false, true
		}}}
		cfg = *c
	})
}
