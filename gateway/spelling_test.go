package gateway

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// browse asks for a path as a browser does that keeps cookies: with the jar of net/http, and
// with the rule of RFC 6265 §5.1.4 on the path as it is spelled, which the jar decodes first.
func (r real) browse(t *testing.T, jar *cookiejar.Jar, target string) (inside bool, cookies []string) {
	t.Helper()
	u, err := url.Parse("http://" + testHost + target)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := r.do("GET", target, func(q *http.Request) {
		for _, c := range jar.Cookies(u) {
			q.AddCookie(c)
		}
	})
	jar.SetCookies(u, res.Cookies())
	path, _, _ := strings.Cut(target, "?")
	for _, c := range res.Cookies() {
		if p := strings.TrimSuffix(c.Path, "/"); !strings.HasPrefix(path, p) || len(path) > len(p) && path[len(p)] != '/' {
			t.Errorf("%s: the browser will not send back a cookie with Path=%s", target, c.Path)
		}
	}
	return res.Header.Get("X-Origin") != "", res.Header["Set-Cookie"]
}

func ticketsOnly(r *anteroom.Room) { r.Routes = []anteroom.Route{{Host: testHost, Path: "/tickets"}} }

// TestOddSpellingIsOneVisitor: the room covers every spelling of its path; a browser that
// stays at one of them is one visitor with one place, and later one session.
func TestOddSpellingIsOneVisitor(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, target := range []string{"/tickets", "/tickets/a", "/tickets?x=/", "/TICKETS", "/Tickets/a?b", "/%74ickets", "/tickets%2fa", "/tickets;v=1", "/x/..%2ftickets", "//tickets"} {
		t.Run(target, func(t *testing.T) {
			w := newReal(t, shop, ticketsOnly)
			holder := w.visitor()
			if in, _, _ := holder.get("/tickets"); !in {
				t.Fatal("the first visitor waits")
			}
			jar, _ := cookiejar.New(nil)
			for range 5 {
				if in, _ := w.browse(t, jar, target); in {
					t.Fatal("let in beyond the limit")
				}
			}
			if s := w.room.Status(); s.Waiting != 1 {
				t.Errorf("%d places after five requests of one browser", s.Waiting)
			}
			holder.get("/tickets/logout")
			u, _ := url.Parse("http://" + testHost + target)
			v := w.visitor()
			for _, c := range jar.Cookies(u) {
				v.cookie = c.Name + "=" + c.Value
			}
			v.awaitAt("/tickets")
			for range 3 {
				if in, _ := w.browse(t, jar, target); !in {
					t.Error("the session is not known at its own address")
				}
			}
			if s := w.room.Status(); s.ActiveUsers != 1 || s.Waiting != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestOddSpellingSparesOtherTickets: where another room has its ticket of the same name at
// "/", a link to an odd spelling must not overwrite it.
func TestOddSpellingSparesOtherTickets(t *testing.T) {
	inner := anteroom.Room{Name: "inner", Routes: []anteroom.Route{{Host: testHost, Path: "/tickets"}}}
	for _, c := range []struct {
		name   string
		outer  anteroom.Route
		suffix string
		want   string // path of the cookie at /TICKETS
	}{
		{"alone", anteroom.Route{Host: "open.example.com"}, "", "/"},
		{"the whole host is a room", anteroom.Route{Host: testHost}, "", "/tickets"},
		{"with a name of its own", anteroom.Route{Host: testHost}, "t", "/"},
		{"a room beside it", anteroom.Route{Host: testHost, Path: "/other"}, "", "/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer, inner := anteroom.Room{Name: "outer", Routes: []anteroom.Route{c.outer}}.WithDefaults(), inner.WithDefaults()
			inner.CookieSuffix = c.suffix
			w := newWorld(t, line)
			w.gw = build(t, Config{Sites: w.gw.live.Load().Sites, Rooms: []anteroom.Room{outer, inner}, Keys: w.keys},
				map[anteroom.RoomID]*programmed{outer.ID: {decide: line}, inner.ID: {decide: line}})
			w.front = httptest.NewServer(w.gw)
			t.Cleanup(w.front.Close)
			res, _ := w.do("GET", "/TICKETS", nil)
			if got := res.Cookies(); len(got) != 1 || got[0].Path != c.want {
				t.Errorf("%q, want Path=%s", res.Header["Set-Cookie"], c.want)
			}
			if res, _ = w.do("GET", "/tickets/x", nil); len(res.Cookies()) != 1 || res.Cookies()[0].Path != "/tickets" {
				t.Errorf("at the plain spelling: %q", res.Header["Set-Cookie"])
			}
		})
	}
}
