package manage

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
)

// visit is a request for a path from an address.
func visit(path, from string) *rules.Request {
	return &rules.Request{Method: "GET", Version: "HTTP/2.0", Scheme: "https", Host: "shop.example.com", RawPath: path, SSL: true, Port: 443,
		Client: netip.MustParseAddr(from), Time: time.Unix(1_795_770_000, 0), Zone: "shop.example.com", Header: map[string][]string{"User-Agent": {"monitor/1.0"}}}
}

func TestTryRule(t *testing.T) {
	t.Parallel()
	m := open(t, Config{})
	z := must[anteroom.Zone](t)(m.CreateZone(t.Context(), root, "example.com"))
	r := must[anteroom.Room](t)(m.CreateRoom(t.Context(), root, z.ID, shop("checkout")))
	must[anteroom.List](t)(m.CreateList(t.Context(), root, anteroom.List{Name: "office", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/24"}}}))
	below := r.Routes[0].Path
	for _, c := range []struct {
		expression, path, from string
		room                   anteroom.RoomID
		matches, wide          bool
	}{
		{`ip.src in $office`, "/", "192.0.2.7", "", true, false},
		{`ip.src in $office`, "/", "198.51.100.7", "", false, false},
		{`not ip.src in $office`, "/", "192.0.2.7", "", false, true},
		{`http.request.uri.path contains "/"`, "/x", "192.0.2.7", "", true, true},
		{`ip.src.country ne "DE"`, "/x", "192.0.2.7", "", false, true},
		{`http.user_agent contains "Mozilla"`, "/x", "192.0.2.7", "", false, true},
		{`http.user_agent contains "monitor"`, "/x", "192.0.2.7", "", true, false},
		{`starts_with(http.request.uri.path, "` + below + `")`, below + "/x", "192.0.2.7", r.ID, true, true},
		{`http.request.uri.path eq "` + below + `/x"`, below + "/x", "192.0.2.7", r.ID, true, false},
		{`starts_with(http.request.uri.path, "/a/")`, "/a/..%2fb", "192.0.2.7", "", false, false},
	} {
		got, err := m.TryRule(root, c.room, c.expression, visit(c.path, c.from))
		if err != nil || got.Matches != c.matches || got.Wide != c.wide || len(got.Readings) == 0 || got.Fields["ip.src"] != c.from {
			t.Errorf("%s on %s: %v, %+v", c.expression, c.path, err, got)
		}
	}
	for expression, want := range map[string]string{"": "is missing", "ip.src in $nobody": "nobody", "ip.src eq": "expression", strings.Repeat("x", 5000): "5000 bytes"} {
		if _, err := m.TryRule(root, "", expression, visit("/", "192.0.2.7")); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", expression, err, want)
		}
	}
	if _, err := m.TryRule(root, "", "ssl", visit("/%zz", "192.0.2.7")); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "request.url") {
		t.Errorf("a path that is none: %v", err)
	}
}

// TestWhoMayTryRules: an expression tells what is in lists, so that it needs the permission to see
// them, or to write rules that name them.
func TestWhoMayTryRules(t *testing.T) {
	t.Parallel()
	m := open(t, Config{})
	for _, c := range []struct {
		grant Grant
		kind  anteroom.Kind
	}{
		{Grant{Permission: Read}, anteroom.Other},
		{Grant{Permission: Edit, Zone: "z", Room: "r"}, anteroom.Other},
		{Grant{Permission: Read, Zone: "z"}, anteroom.Denied},
		{Grant{Permission: Read, Room: "r"}, anteroom.Denied},
	} {
		if _, err := m.TryRule(Caller{Grants: []Grant{c.grant}}, "", "ssl", visit("/", "192.0.2.7")); anteroom.KindOf(err) != c.kind {
			t.Errorf("%+v: %v", c.grant, err)
		}
	}
	if _, err := m.TryRule(Caller{Grants: []Grant{{Permission: Edit, Room: "r"}}}, "other", "ssl", visit("/", "192.0.2.7")); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("another's room: %v", err)
	}
}
