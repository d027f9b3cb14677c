package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anteroom/anteroom"
)

// zoneBrowser keeps a cookie for each room.
type zoneBrowser struct {
	booth
	cookies map[string]string
}

// isIn asks for a path.
func (b zoneBrowser) isIn(path string) bool {
	r := httptest.NewRequest("GET", path, nil)
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	rec := httptest.NewRecorder()
	b.h.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		b.cookies[c.Name] = c.Value
	}
	return rec.Header().Get("X-Origin") == "shop"
}

// Several paths in one room share its seats and a session; a room for a path has seats of its own, also inside another room, and a session
// in one is nothing in the other (docs/accounts.md).
func TestProtectedZones(t *testing.T) {
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.Routes = []anteroom.Route{{Host: "example.com", Path: "/tickets"}, {Host: "example.com", Path: "/checkout"}, {Host: "shop.example.com", Path: "/"}}
		r.CookieSuffix = "zone"
	}, func(b booth) {
		ann, bob := zoneBrowser{b, map[string]string{}}, zoneBrowser{b, map[string]string{}}
		for _, path := range []string{"/tickets", "/checkout/pay", "http://shop.example.com/x", "/tickets/1"} {
			if !ann.isIn(path) {
				t.Errorf("ann is not in at %s", path)
			}
		}
		for _, path := range []string{"/tickets", "/checkout", "http://shop.example.com/x"} {
			if bob.isIn(path) {
				t.Errorf("bob has the seat that ann has, at %s", path)
			}
		}
		if len(ann.cookies) != 1 || len(bob.cookies) != 1 {
			t.Errorf("%v %v", ann.cookies, bob.cookies)
		}
		if !bob.isIn("/open") || !bob.isIn("/tickets/meet") {
			t.Error("bob waits outside of the zone, or where a room of its own has a seat")
		}
		if ann.isIn("/tickets/meet/1") {
			t.Error("a session of the zone is one of the room inside")
		}
		if !ann.isIn("/tickets") || bob.isIn("/tickets") || len(bob.cookies) != 2 {
			t.Errorf("the room inside changes something outside: %v", bob.cookies)
		}
	}, func(c *Config) {
		inner := c.Rooms[0]
		inner.ID, inner.Name, inner.CookieSuffix, inner.Routes = "", "meet", "meet", []anteroom.Route{{Host: "example.com", Path: "/tickets/meet"}}
		c.Rooms = append(c.Rooms, inner.WithDefaults())
		if err := c.Node.Apply(context.Background(), c.Rooms); err != nil {
			t.Fatal(err)
		}
	})
}
