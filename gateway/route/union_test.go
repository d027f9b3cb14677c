package route

import (
	"errors"
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func table(t testing.TB, routes ...anteroom.Route) *Table {
	t.Helper()
	var rooms []anteroom.Room
	for _, rt := range routes {
		rooms = append(rooms, anteroom.Room{Name: strings.Trim(rt.Path, "/"), Routes: []anteroom.Route{rt}})
	}
	tab, err := NewTable(Config{Rooms: rooms, Hosts: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// The rows of the threat catalogue, section 3, for a room at /tickets: every spelling that
// some origin serves as /tickets.
func TestEverySpellingOfThePathIsCovered(t *testing.T) {
	tab := table(t, anteroom.Route{Host: "shop.example", Path: "/tickets"})
	for _, target := range []string{
		"/tickets", "/tickets/", "/tickets/after", "/tickets?x=1", "/tickets/%74", "/tickets?a=1;room=x&b=2", "/tickets+x/../tickets",
		"//tickets", "///tickets", "//x//../tickets", "/./tickets", "/x/../tickets", "/../tickets", "/../../tickets",
		"/%74ickets", "/%2574ickets", "/%25%37%34ickets", "/tickets%2f", "/tickets%2Fafter", "/%2ftickets", "/%2Ftickets",
		"/x/%2e%2e/tickets", "/x/%2E%2e/tickets", "/x/.%2e/tickets", "/x/..%2ftickets", "/x/..%2Ftickets", "/x%2f..%2ftickets",
		"/x%2fy/../tickets", "/x%2fy/%2e%2e/tickets", "/x/%252e%252e/tickets", "/x/..%252ftickets", "/x%252f%252e%252e%252ftickets", "/x/..%25%32%66tickets",
		"/x/..;/tickets", "/x/..;a=b/tickets", "/;/tickets", "/tickets;v=1", "/tickets;v=1/after", "/tickets%3bv=1", "/tickets%253bv=1",
		"/TICKETS", "/Tickets/After", "/%54ICKETS", "/tic\u212aets", "/tic%e2%84%aaets", "/t\u0131ckets", "/T\u0130CKETS", "/ticket\u017f",
		`/x\..\tickets`, `/\tickets`, "/x%5c..%5ctickets", "/x/..%255ctickets", `/tickets\after`,
		"/tickets#", "/tickets#x", "/p#/../tickets", "/p#/../../tickets", "/tickets%23", "/tickets%3fx", "/tickets%2500.png", "/tickets%253fx",
		"/x/%c0%ae%c0%ae/tickets", "/x/..%c0%aftickets", "/x/..%e0%80%aftickets", "/x/..%f0%80%80%aftickets", "/x/..\xc0\xaftickets",
		"/\uff54ickets", "/x/..\uff0ftickets", "/x/..%ef%bc%8ftickets", "/x/\uff0e\uff0e/tickets", "/x/..\u2215tickets", "/x/\u2025/tickets", `/x/..%ef%bc%bctickets`,
		"/" + strings.Repeat("x/../", 200) + "tickets", "/" + strings.Repeat("x/", 100) + strings.Repeat("../", 100) + "tickets",
		"/tickets/" + strings.Repeat("a", 8000), "/\xe9/../tickets", "/tickets/\xe9", "/%e9/..//tickets",
		"http://shop.example/tickets", "HTTPS://SHOP.example:443/x/../tickets", "http://shop.example//tickets?x",
		"/a/..;/b/../%2574ickets;x=1", `/a;b/..%5c%2e%2e\%2ftickets%3bx`,
	} {
		m, err := tab.Lookup("shop.example", target)
		if err != nil || m == nil {
			t.Errorf("%.80q: %v, %v; want the room", target, m, err)
		}
	}
}

func TestOtherPathsAreFree(t *testing.T) {
	tab := table(t, anteroom.Route{Host: "shop.example", Path: "/tickets"})
	for _, target := range []string{
		"/", "/ticket", "/ticketsx", "/tickets-2", "/tickets.html/x", "/tickets./../x", "/x:/tickets:", "/tickets.json/../x", "/x.tickets", "/x/tickets", "/x//tickets", "/?/tickets", "/x?/../tickets",
		"/%74icket", "/x%2ftickets", "/x/tickets/..", "/.tickets", "/tic/kets", "/x/...;/tickets", "/..tickets", "/.well-known/tickets",
		"/caf\u00e9", "/%e3%81%84", "/100%25", "/a+b", "/r/https%3A%2F%2Fx.example%2Ftickets%3Fa%253D1%3Bb",
	} {
		if m, err := tab.Lookup("shop.example", target); err != nil || m != nil {
			t.Errorf("%q: %v, %v; want no room", target, m, err)
		}
	}
}

func TestTargetsThatAreNoPath(t *testing.T) {
	tab := table(t, anteroom.Route{Host: "shop.example", Path: "/tickets"})
	for _, target := range []string{
		"", "*", "tickets", "?x", "shop.example:443", "ftp://shop.example/tickets", "http:/tickets", "//",
		"/tickets%00", "/tickets%0d%0aX:1", "/x%0a", "/x%7f", "/%1f", "/x\x00", "/x\r\n", "/x\ty",
		"/%", "/%zz", "/%2", "/x%u0074", "/%e", "/x/%%37%34",
		"http://other.example/tickets", "https://other/t", "http://x@shop.example/tickets", "http:///tickets", "http://shop.example:x/",
		"/" + strings.Repeat("x", anteroom.MaxTargetBytes),
		`/a;b/%5c%2e%2e;%3b/%252e%252e\//x#%23%3f%ef%bc%8f/../%2e./y`,
	} {
		m, err := tab.Lookup("shop.example", target)
		if target == "//" { // the one that is a path
			if err != nil || m != nil {
				t.Errorf("%q: %v, %v; want no room", target, m, err)
			}
			continue
		}
		if !errors.Is(err, ErrTarget) || m != nil {
			t.Errorf("%.80q: %v, %v; want ErrTarget", target, m, err)
		}
		if anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%.80q: kind %v, want Invalid", target, anteroom.KindOf(err))
		}
	}
}

func TestInterpretationsOfOrdinaryPathsAreFew(t *testing.T) {
	for target, most := range map[string]int{
		"/": 1, "/shop/cart": 1, "/.well-known/x": 1, "/a+b": 1, "/caf%C3%A9": 2, "/a%20b/c%20d": 2, "/100%25": 2, "/a;b=1/c": 2,
		"/web/2020/https://x.example/a/../b;c=1":                         16,
		"/r/https%3A%2F%2Fx.example%2Fa%253Fb%3Bc":                       20,
		"/r/https%3A%2F%2Fx.example%2Fa%3Fb%3Dc%26d%3De%23f":             20,
		"/oauth/https%253A%252F%252Fx.example%252Fcb%253Fstate%253Da%3B": 30,
		"/\uff08\u5165\u529b\uff09%EF%BC%81":                             8,
	} {
		all, err := Interpretations(target)
		if err != nil || len(all) > most {
			t.Errorf("%q has %d interpretations, %v; want at most %d: %q", target, len(all), err, most, all)
		}
	}
}

// The reference normalisers: how others read a path. Each returns what it would serve, or
// "" when it refuses.

func goReader(target string) string {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return ""
	}
	return path.Clean(u.Path)
}

// nginxReader follows ngx_http_parse_complex_uri with merge_slashes on: decoding and
// cleaning in one pass, "#" ends the path, nothing decodes twice.
func nginxReader(target string) string {
	p, _, _ := strings.Cut(target, "?")
	p, _, _ = strings.Cut(p, "#")
	p, err := url.PathUnescape(p)
	if err != nil || strings.ContainsRune(p, 0) {
		return ""
	}
	return cleaned(p)
}

// cleaned merges slashes and removes dot segments with a stack, and ignores ".." at the
// root.
func cleaned(p string) string {
	var stack []string
	for _, s := range strings.Split(p, "/") {
		switch s {
		case "", ".":
		case "..":
			stack = stack[:max(0, len(stack)-1)]
		default:
			stack = append(stack, s)
		}
	}
	return "/" + strings.Join(stack, "/")
}

// tomcatReader follows CoyoteAdapter: parameters go before decoding, encoded slashes are
// decoded (encodedSolidusHandling=decode), backslashes are slashes (allowBackslash).
func tomcatReader(target string) string {
	p, _, _ := strings.Cut(target, "?")
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	p, err := url.PathUnescape(strings.Join(segments, "/"))
	if err != nil {
		return ""
	}
	return cleaned(strings.ReplaceAll(p, `\`, "/"))
}

// iisReader decodes, takes backslashes for slashes and ignores case.
func iisReader(target string) string {
	p, _, _ := strings.Cut(target, "?")
	p, err := url.PathUnescape(p)
	if err != nil {
		return ""
	}
	return strings.ToLower(cleaned(strings.ReplaceAll(p, `\`, "/")))
}

// twiceReader is a decoding proxy before a decoding application.
func twiceReader(target string) string {
	p, _, _ := strings.Cut(target, "?")
	p, err := url.PathUnescape(p)
	if err != nil {
		return ""
	}
	p, err = url.PathUnescape(cleaned(p))
	if err != nil {
		return ""
	}
	return cleaned(p)
}

// nodeReader follows the WHATWG URL parser for http: backslashes are slashes, "%2e" is a
// dot, empty segments stay, "#" ends the path; the application then decodes.
func nodeReader(target string) string {
	p, _, _ := strings.Cut(target, "?")
	p, _, _ = strings.Cut(p, "#")
	var stack []string
	segments := strings.Split(strings.ReplaceAll(p, `\`, "/"), "/")[1:]
	for i, s := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(s), "%2e", ".") {
		case ".":
			if last {
				stack = append(stack, "")
			}
		case "..":
			stack = stack[:max(0, len(stack)-1)]
			if last {
				stack = append(stack, "")
			}
		default:
			stack = append(stack, s)
		}
	}
	p, err := url.PathUnescape("/" + strings.Join(stack, "/"))
	if err != nil {
		return ""
	}
	return p
}

var readers = map[string]func(string) string{"go": goReader, "nginx": nginxReader, "tomcat": tomcatReader,
	"iis": iisReader, "twice": twiceReader, "node": nodeReader}

// under is the plainest way to ask for a prefix at segment boundaries.
func under(p, route string) bool { return p == route || strings.HasPrefix(p, route+"/") }

var fuzzRoutes = []string{"/tickets", "/tickets/vip", "/a/b"}

func fuzzTable(t testing.TB) *Table {
	var routes []anteroom.Route
	for _, p := range fuzzRoutes {
		routes = append(routes, anteroom.Route{Host: "shop.example", Path: p})
	}
	return table(t, routes...)
}

// checkUnion holds: whatever a reader makes of a target, if that is inside a route, the
// target is covered, and by a route no less specific.
func checkUnion(t *testing.T, tab *Table, target string) {
	t.Helper()
	m, err := tab.Lookup("shop.example", target)
	if err != nil {
		if !errors.Is(err, ErrTarget) {
			t.Fatalf("%q: %v is not ErrTarget", target, err)
		}
		return // answered with 400: no reader sees it
	}
	if !strings.HasPrefix(target, "/") {
		return
	}
	for name, read := range readers {
		p := read(target)
		for _, route := range fuzzRoutes {
			if !under(p, route) {
				continue
			}
			if m == nil {
				t.Errorf("%q: %s serves %q and no room covers it", target, name, p)
			} else if len(m.Room.Routes[0].Path) < len(route) {
				t.Errorf("%q: %s serves %q and only %q covers it", target, name, p, m.Room.Routes[0].Path)
			}
		}
	}
}

func FuzzUnionCoversEveryReader(f *testing.F) {
	tab := fuzzTable(f)
	f.Fuzz(func(t *testing.T, target string) { checkUnion(t, tab, target) })
}

// tokens are what misread paths are made of; a random string rarely is one.
var tokens = []string{"/", "tickets", "vip", "a", "b", "..", ".", ";", ";p=1", "%2e", "%2F", "%5c", `\`, "%25", "252e", "252f", "2f", "2e",
	"#", "%3f", "?", "TICKETS", "%74ickets", "%2574", "ickets", "//", "%3b", "%20", "x", "\u212a", "/../", "/./", "%00"}

func FuzzUnionOfTokens(f *testing.F) {
	tab := fuzzTable(f)
	f.Fuzz(func(t *testing.T, choice []byte) {
		target := "/"
		for _, c := range choice[:min(len(choice), 40)] {
			target += tokens[int(c)%len(tokens)]
		}
		checkUnion(t, tab, target)
	})
}

func TestUnionOfRandomTokens(t *testing.T) {
	tab := fuzzTable(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		target := "/"
		for range 1 + random.IntN(12) {
			target += tokens[random.IntN(len(tokens))]
		}
		checkUnion(t, tab, target)
	}
}

// TestSuffixesThatOriginsIgnore: Windows serves a name with a stream, with dots or spaces at its end, Rails and
// Spring one with an extension, as they do the name itself.
func TestSuffixesThatOriginsIgnore(t *testing.T) {
	room := func(name, path, suffixes string) anteroom.Room {
		return anteroom.Room{Name: name, RouteSuffixes: suffixes, Routes: []anteroom.Route{{Host: "shop.example", Path: path}}}
	}
	names := []string{
		"/tickets.", "/tickets..", "/tickets%20", "/tickets%20.", "/tickets. ./x", "/tickets::$DATA", "/tickets:x", "/tickets%3a%3a$DATA", "/tickets:$i30:$INDEX_ALLOCATION/x",
		"/TICKETS%2e", "/tickets./after", "/tickets%20/after", "/x/..%20/tickets", "/x/../tickets.", "/;x/tickets%20;y=z", "/tickets%2520", "/tickets%252e",
	}
	extended := []string{"/tickets.json", "/tickets.json/", "/tickets.tar.gz", "/Tickets.JSON", "/tickets%2ejson", "/tickets.css;v=1", "/tickets.json.", "/x/../tickets.json", "/tickets.json::$DATA"}
	for _, c := range []struct {
		suffixes string
		targets  []string
		want     string
	}{
		{"", names, "tickets"}, {"", extended, "tickets"},
		{anteroom.SuffixesCover, extended, "tickets"},
		{anteroom.SuffixesIgnore, names, "tickets"}, {anteroom.SuffixesIgnore, extended, "all"},
		{"", []string{"/tickets.json/x", "/tickets-2.json", "/other.tickets", "/.tickets"}, "all"},
		{"", []string{"/feed.v1.xml", "/feed.v1.xml.json", "/feed.v1.xml."}, "feed"},
		{"", []string{"/feed.v1", "/feed.v1.json"}, "all"},
	} {
		tab, err := NewTable(Config{Rooms: []anteroom.Room{room("all", "/", ""), room("tickets", "/tickets", c.suffixes), room("feed", "/feed.v1.xml", "")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range c.targets {
			m, err := tab.Lookup("shop.example", strings.ReplaceAll(target, " ", "%20"))
			if err != nil || m.Room.Name != c.want {
				t.Errorf("%q with %q: %v, %v; want %s", target, c.suffixes, m, err, c.want)
			}
		}
	}
}

// TestFrontScript: PHP applications serve every page under the name of the script that serves them all, too.
func TestFrontScript(t *testing.T) {
	tab := table(t, anteroom.Route{Host: "shop.example", Path: "/tickets"}, anteroom.Route{Host: "shop.example", Path: "/shop/cart"})
	for want, targets := range map[string][]string{
		"tickets": {"/index.php/tickets", "/index.php/tickets/after?x", "/index.php//tickets", "//index.php/tickets", "/index.php/./tickets", "/index.php/%74ickets", "/index.php%2ftickets", "/INDEX.PHP/Tickets",
			"/index.php/tickets.json", "/index.php;x/tickets", "/index.php./tickets", "/x/../index.php/tickets", "/index.php/x/../tickets", "/%69ndex.php/tickets", "/index.php%252ftickets"},
		"shop/cart": {"/shop/index.php/cart", "/index.php/shop/cart", "/SHOP/index.php/cart/pay"},
		"":          {"/index.php", "/index.php/", "/index.php/ticket", "/index.php/x/tickets", "/xindex.php/tickets", "/index.phpx/tickets", "/wiki/index.php/tickets", "/index.php?/tickets", "/list.php/tickets"},
	} {
		for _, target := range targets {
			m, err := tab.Lookup("shop.example", target)
			got := ""
			if m != nil {
				got = m.Room.Name
			}
			if err != nil || got != want {
				t.Errorf("%q: %q, %v; want %q", target, got, err, want)
			}
		}
	}
}
