package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// TestLateAnswerDoesNotTakeTheSession is T15: of two tabs one is let in, and the waiting page
// of the other arrives after that and overwrites the ticket. The next request is inside all
// the same, and so is one with both tickets in either order.
func TestLateAnswerDoesNotTakeTheSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newReal(t, shop, nil)
	holder, v := w.visitor(), w.visitor()
	holder.get("/")
	_, late, _ := v.get("/cart") // tab 1: on its way for a long time
	queued := v.cookie
	holder.get("/logout")
	v.awaitTurn()
	if in, _, _ := v.get("/"); !in { // tab 2
		t.Fatal("the turn did not let in")
	}
	admitted := v.cookie
	if admitted == queued {
		t.Fatal("the admission brought no ticket of its own")
	}
	u, _ := url.Parse("http://" + testHost + "/")
	jar, _ := cookiejar.New(nil)
	jar.SetCookies(u, []*http.Cookie{{Name: "__cfwaitingroom", Value: "x", Domain: testHost, Path: "/"}})
	jar.SetCookies(u, late.Cookies())
	kept := jar.Cookies(u)
	if len(kept) != 1 {
		t.Fatalf("the late answer did not overwrite: %v", kept)
	}
	for name, cookie := range map[string]string{"late alone": kept[0].Name + "=" + kept[0].Value, "late first": queued + "; " + admitted, "late last": admitted + "; " + queued} {
		one := &visitor{real: w, cookie: cookie}
		if in, _, _ := one.get("/cart"); !in {
			t.Errorf("%s: the session was lost", name)
		}
	}
	told := time.Now().Add(5 * time.Second) // the site reports in steps
	s := w.room.Status()
	for tick := time.NewTicker(10 * time.Millisecond); (s.ActiveUsers != 1 || s.Waiting != 0) && time.Now().Before(told); s = w.room.Status() {
		<-tick.C
	}
	if s.ActiveUsers != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	// The late answer of a page whose session has ended brings nothing back either.
	v.cookie = admitted
	v.get("/logout")
	w.visitor().get("/")
	one := &visitor{real: w, cookie: queued}
	if in, _, _ := one.get("/"); in {
		t.Error("the ticket of a session that is over was good for another")
	}
}

// TestCookieSettingsChangeAmidTheLine is T16: new attributes, domain and path of the cookie
// cost nobody a place. The name stays; the browser may hold both cookies, and the best
// serves.
func TestCookieSettingsChangeAmidTheLine(t *testing.T) { synctest.Test(t, changeCookieSettings) }

func changeCookieSettings(t *testing.T) {
	rm := anteroom.Room{Name: "shop", Zone: "example.com", CookieSuffix: "s", Routes: []anteroom.Route{{Host: testHost, Path: "/shop"}},
		Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600}}.WithDefaults()
	changed := rm
	changed.Routes = []anteroom.Route{{Host: testHost, Path: "/shop"}, {Host: "www.example.com"}}
	changed.CookieAttributes = anteroom.CookieAttributes{SameSite: anteroom.SameSiteStrict}
	n, _, stop := runNode(t.Context(), t, rm)
	defer stop()
	cfg := Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: ticket.NewKeyring(time.Now())}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := g.Middleware(http.NotFoundHandler())
	u, _ := url.Parse("http://" + testHost + "/shop")
	ask := func(jar *cookiejar.Jar) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", u.String(), nil)
		for _, c := range jar.Cookies(u) {
			r.AddCookie(c)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		jar.SetCookies(u, rec.Result().Cookies())
		return rec
	}
	const people = 200
	jars := make([]*cookiejar.Jar, people+1)
	for i := range jars {
		jars[i], _ = cookiejar.New(nil)
		ask(jars[i])
	}
	if err := n.Apply(t.Context(), []anteroom.Room{changed}); err != nil {
		t.Fatal(err)
	}
	cfg.Rooms = []anteroom.Room{changed}
	if err := g.Swap(cfg); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		for i, jar := range jars {
			if in := ask(jar).Code == http.StatusNotFound; in != (i == 0) {
				t.Fatalf("round %d, visitor %d: inside %v", round, i, in)
			}
		}
	}
	time.Sleep(time.Second) // the site reports in steps
	if s := n.Room(rm.ID).Status(); s.ActiveUsers != 1 || s.Waiting+s.Dormant != people {
		t.Errorf("%+v, want %d places", s, people)
	}
	newcomer, _ := cookiejar.New(nil)
	rec := ask(newcomer)
	if c := rec.Result().Cookies(); len(c) != 1 || c[0].Domain != "example.com" || c[0].Path != "/" || c[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("a newcomer's cookie: %q", rec.Header()["Set-Cookie"])
	}
}

// TestAddressesAreNotStored: what is written down to survive a restart says nothing about
// where visitors come from. (The access log says it, to who reads the process's output.)
func TestAddressesAreNotStored(t *testing.T) { synctest.Test(t, lookForAddresses) }

func lookForAddresses(t *testing.T) {
	rm := anteroom.Room{Name: "shop", Bind: anteroom.BindIPPrefix, Routes: []anteroom.Route{{Host: "*"}},
		Settings: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 600}}.WithDefaults()
	n, link, stop := runNode(t.Context(), t, rm)
	g, err := New(Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: ticket.NewKeyring(time.Now()), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Middleware(http.NotFoundHandler())
	addresses := []string{"203.0.113.77", "2001:db8:7a7a:7b7b:7c7c:7d7d:7e7e:7f7f"}
	for _, a := range addresses {
		for range 3 {
			r := httptest.NewRequest("GET", "/zqxpath?zqxquery", nil)
			r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(a), 4711).String()
			r.Header.Set("User-Agent", "zqxagent")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	stop()
	forbidden := [][]byte{[]byte("zqx")}
	for _, a := range addresses {
		forbidden = append(forbidden, []byte(a), netip.MustParseAddr(a).AsSlice())
	}
	records := 0
	look := func(what string, b []byte) {
		for _, f := range forbidden {
			if bytes.Contains(b, f) {
				t.Errorf("%s holds %q", what, f)
			}
		}
	}
	journal, err := link.Journal(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Replay(context.Background(), func(_ time.Time, record []byte) error {
		records++
		look("a journal record", record)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	keys, _ := link.Keys(context.Background(), "")
	for _, k := range keys {
		e, _ := link.Get(context.Background(), k)
		look(k, append([]byte(k), e.Value...))
	}
	if records < 2 || len(keys) == 0 {
		t.Errorf("%d records and %d keys: nothing was looked at", records, len(keys))
	}
}

// bubbleGateway is a node with one room and the gateway before it, for the length of a bubble.
func bubbleGateway(t *testing.T, rm anteroom.Room, next http.Handler) (*node.Node, http.Handler) {
	t.Helper()
	n, _, stop := runNode(t.Context(), t, rm)
	t.Cleanup(stop)
	g, err := New(Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: networksApart(50)})
	if err != nil {
		t.Fatal(err)
	}
	return n, g.Middleware(next)
}

// networksApart returns keys by which the first so many networks of TestSharedSession have tags of their own: any two share one with a
// chance of 1 in 65,535.
func networksApart(n int) *ticket.Keyring {
	for {
		keys, tags := ticket.NewKeyring(time.Now()), map[uint16]bool{}
		for i := range n {
			tags[keys.BindAddr(netip.AddrFrom4([4]byte{203, 0, byte(i), 7}))] = true
		}
		if len(tags) == n {
			return keys
		}
	}
}

// TestSharedSession is T7: a ticket from fifty networks is one seat for all of them, or, where
// the room binds tickets to networks, a session in one and forty-nine new visitors.
func TestSharedSession(t *testing.T) {
	for _, c := range []struct {
		bind   string
		inside int
	}{{anteroom.BindNone, 50}, {anteroom.BindIPPrefix, 1}} {
		synctest.Test(t, func(t *testing.T) {
			rm := anteroom.Room{Name: "shop", Bind: c.bind, Routes: []anteroom.Route{{Host: "*"}},
				Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600}}.WithDefaults()
			n, h := bubbleGateway(t, rm, http.NotFoundHandler())
			cookie, inside, pages := "", 0, 0
			for i := range 50 {
				r := httptest.NewRequest("GET", "/", nil)
				r.RemoteAddr = fmt.Sprintf("203.0.%d.7:4711", i)
				r.Header.Set("Cookie", cookie)
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				if i == 0 {
					cookie, _, _ = strings.Cut(rec.Header().Get("Set-Cookie"), ";")
				}
				switch rec.Code {
				case http.StatusNotFound:
					inside++
				case http.StatusOK:
					pages++
				}
			}
			time.Sleep(time.Second)
			if s := n.Room(rm.ID).Status(); inside != c.inside || pages != 50-c.inside || s.ActiveUsers != 1 {
				t.Errorf("bind %q: %d inside, %+v", c.bind, inside, s)
			}
		})
	}
}

// TestTicketsOfOneHostStayThere: a browser sends the ticket of a room with one host to no host below it, and one from
// before, which it does send there, keeps its place.
func TestTicketsOfOneHostStayThere(t *testing.T) {
	w := newWorld(t, line)
	before := waiting()
	jar, _ := cookiejar.New(nil)
	here, below := &url.URL{Scheme: "http", Host: testHost, Path: "/"}, &url.URL{Scheme: "http", Host: "www." + testHost, Path: "/"}
	name, value, _ := strings.Cut(w.seal(before), "=")
	jar.SetCookies(here, []*http.Cookie{{Name: name, Value: value, Domain: testHost, Path: "/", MaxAge: 60}})
	ask := func() *http.Response {
		res, _ := w.do("GET", "/", func(r *http.Request) {
			for _, c := range jar.Cookies(here) {
				r.AddCookie(c)
			}
		})
		jar.SetCookies(here, res.Cookies())
		return res
	}
	if c := ask().Cookies(); len(c) != 1 || c[0].Domain != "" {
		t.Fatalf("cookies %v", c)
	}
	ask()
	w.do("GET", "/", header("Cookie", name+"="+value+"; "+jar.Cookies(here)[0].String())) // a browser may keep both
	for i, v := range w.door.seen() {
		if v.Ticket.ID != before.ID {
			t.Errorf("visit %d has another place", i)
		}
	}
	if len(jar.Cookies(here)) != 1 || len(jar.Cookies(below)) != 0 {
		t.Errorf("%v here, %v below", jar.Cookies(here), jar.Cookies(below))
	}
}

func TestHostPrefixedTicketsAreAlwaysSecure(t *testing.T) {
	got := tailOf(anteroom.CookieAttributes{Secure: anteroom.SecureNever}, route.Scope{Name: "__Host-x", Domain: testHost, HostOnly: true}, "/")
	if want := "; Path=/; HttpOnly; SameSite=Lax; Secure"; got.plain != want || got.tls != want {
		t.Errorf("%+v", got)
	}
}
