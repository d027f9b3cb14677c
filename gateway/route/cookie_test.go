package route

import (
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func TestCookieScopeComesFromTheRoutes(t *testing.T) {
	for _, c := range []struct {
		routes string
		want   Scope
	}{
		{"shop.example.com/", Scope{"__cfwaitingroom", "shop.example.com", "/", true}},
		{"Shop.example.com/shop/checkout/", Scope{"__cfwaitingroom", "shop.example.com", "/shop/checkout", true}},
		{"a.example.com/ b.example.com/", Scope{"__cfwaitingroom", "example.com", "/", false}},
		{"a.example.com/x a.b.example.com/x", Scope{"__cfwaitingroom", "example.com", "/x", false}},
		{"a.example.com/x b.a.example.com/x/y", Scope{"__cfwaitingroom", "a.example.com", "/x", false}},
		{"ba.example.com/ a.example.com/", Scope{"__cfwaitingroom", "example.com", "/", false}},
		{"example.com/shoes/product_123 example.com/shoes/product_456", Scope{"__cfwaitingroom", "example.com", "/shoes", true}},
		{"example.com/shoes example.com/shoe", Scope{"__cfwaitingroom", "example.com", "/", true}},
		{"a.shop.co.uk/ b.shop.co.uk/", Scope{"__cfwaitingroom", "shop.co.uk", "/", false}},
		{"bücher.example.com/", Scope{"__cfwaitingroom", "xn--bcher-kva.example.com", "/", true}},
		{"*/", Scope{"__cfwaitingroom", "", "/", false}},
		{"*/a */a/b", Scope{"__cfwaitingroom", "", "/a", false}},
		{"a.example.com/a */a", Scope{"__cfwaitingroom", "", "/a", false}},
		{"localhost/x", Scope{"__cfwaitingroom", "", "/x", false}},
		{"127.0.0.1/", Scope{"__cfwaitingroom", "", "/", false}},
		{"github.io/", Scope{"__cfwaitingroom", "", "/", false}},
		{"shop.github.io/", Scope{"__cfwaitingroom", "shop.github.io", "/", true}},
	} {
		got, err := Cookie(room("r", strings.Fields(c.routes)...), "")
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.routes, got, err, c.want)
		}
	}
	r := room("r", "*/")
	r.CookieSuffix = "x_1"
	if got, _ := Cookie(r, "wr"); got.Name != "wr_x_1" {
		t.Errorf("name %q, want wr_x_1", got.Name)
	}
	if got, _ := Cookie(anteroom.Room{}, ""); got != (Scope{DefaultCookieName, "", "/", false}) {
		t.Errorf("no routes: %+v", got)
	}
}

// TestHostPrefix: browsers refuse such a cookie for several hosts and below a path.
func TestHostPrefix(t *testing.T) {
	const name = "__Host-place"
	if got, err := Cookie(room("r", "shop.example.com/"), name); err != nil || got != (Scope{name, "shop.example.com", "/", true}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Cookie(room("r", "*/"), name); err != nil || got != (Scope{name, "", "/", false}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, routes := range []string{"shop.example.com/x", "a.example.com/ b.example.com/", "*/x"} {
		if got, err := Cookie(room("r", strings.Fields(routes)...), name); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %+v, %v", routes, got, err)
		}
	}
}

func TestFaultsBetweenRooms(t *testing.T) {
	suffixed := func(suffix, name string, routes ...string) anteroom.Room {
		r := room(name, routes...)
		r.CookieSuffix = suffix
		return r
	}
	for _, c := range []struct {
		name  string
		rooms []anteroom.Room
		want  []string // paths of the faults
	}{
		{"apart", []anteroom.Room{room("a", "a.example.com/"), room("b", "b.example.com/"), room("c", "*/")}, nil},
		{"nested without suffix", []anteroom.Room{room("a", "a.example.com/"), room("b", "a.example.com/b")}, nil},
		{"same place", []anteroom.Room{room("a", "a.example.com/x"), room("b", "A.example.com./x/")}, []string{"rooms[1].routes[0]"}},
		{"same place, every host", []anteroom.Room{room("a", "*/"), {Name: "b"}}, []string{"rooms[1].routes[0]"}},
		{"twice in one room", []anteroom.Room{room("a", "a.example.com/", "a.example.com/")}, []string{"rooms[0].routes[1]"}},
		{"no common domain", []anteroom.Room{suffixed("s", "a", "a.example.com/", "a.example.net/")}, []string{"rooms[0].routes"}},
		{"only a public suffix in common", []anteroom.Room{suffixed("s", "a", "a.co.uk/", "b.co.uk/")}, []string{"rooms[0].routes"}},
		{"same suffix, same domain", []anteroom.Room{suffixed("s", "a", "a.example.com/", "b.example.com/"), suffixed("s", "b", "c.example.com/", "d.example.com/")},
			[]string{"rooms[1].cookie_suffix"}},
		{"same suffix, below", []anteroom.Room{suffixed("s", "a", "a.example.com/x"), suffixed("s", "b", "b.a.example.com/x/y")}, []string{"rooms[1].cookie_suffix"}},
		{"same suffix, above", []anteroom.Room{suffixed("s", "b", "b.a.example.com/x/y"), suffixed("s", "a", "a.example.com/x")}, []string{"rooms[1].cookie_suffix"}},
		{"same suffix, any host", []anteroom.Room{suffixed("s", "a", "a.example.com/a", "a.example.com/b"), suffixed("s", "b", "*/c", "*/d")}, []string{"rooms[1].cookie_suffix"}},
		{"same suffix, other path", []anteroom.Room{suffixed("s", "a", "a.example.com/x"), suffixed("s", "b", "a.example.com/xy")}, nil},
		{"same suffix, other domain", []anteroom.Room{suffixed("s", "a", "a.example.com/"), suffixed("s", "b", "a.example.net/")}, nil},
		{"suffixes that differ", []anteroom.Room{suffixed("s", "a", "a.example.com/", "b.example.com/"), suffixed("t", "b", "c.example.com/", "d.example.com/")}, nil},
		{"no host", []anteroom.Room{room("a", "a b/"), room("b", "127.1/")}, []string{"rooms[0].routes[0].host", "rooms[1].routes[0].host"}},
	} {
		var got []string
		for _, f := range Check(c.rooms, "") {
			got = append(got, f.Path)
			if f.Problem == "" || f.Fix == "" {
				t.Errorf("%s: %v says too little", c.name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: faults %q, want %q", c.name, got, c.want)
		}
		if _, err := NewTable(Config{Rooms: c.rooms}); (err != nil) != (c.want != nil) || err != nil && anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: NewTable: %v", c.name, err)
		}
	}
	if _, err := NewTable(Config{Hosts: []string{"ok.example", "a/b"}}); err == nil || !strings.Contains(err.Error(), "hosts[1]") {
		t.Errorf("a bad host: %v", err)
	}
}
