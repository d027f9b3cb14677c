package aws

import (
	"fmt"
	"testing"
	"time"
)

// joinsOf sends joins of a client's address within a moment, and returns how many got a number.
func (w *world) joinsOf(address string, n int) (numbered int) {
	w.Helper()
	for range n {
		switch a := w.joinFrom(address); {
		case a.status == 200:
			numbered++
		case a.status != 429 || a.body != `{"message":"Too Many Requests"}` || a.header.Get("Access-Control-Allow-Origin") != "*":
			w.Fatalf("%d %s %v", a.status, a.body, a.header)
		}
	}
	return numbered
}

// A school with one address joins at once, reloads, and goes on joining five times a second for a minute.
func TestASchoolJoins(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		if n := w.joinsOf("198.51.100.1:1", 600); n != 600 {
			t.Errorf("%d joined", n)
		}
		for range 60 {
			w.pass(time.Second)
			if n := w.joinsOf("198.51.100.1:1", 5); n != 5 {
				t.Fatalf("%d joined", n)
			}
		}
	})
}

// A network joins as often as it may, whatever it tries. Others do not notice.
func TestJoinsOfANetworkAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, c := range map[string]struct {
		from  func(i int) string // one of 40 addresses
		burst int
	}{
		"an address":             {func(int) string { return "198.51.100.1:1" }, 600},
		"a /24":                  {func(i int) string { return fmt.Sprintf("198.51.100.%d:1", i) }, 2_400},
		"a /64":                  {func(i int) string { return fmt.Sprintf("[2001:db8:1:1::%d]:1", i) }, 600},
		"a /56":                  {func(i int) string { return fmt.Sprintf("[2001:db8:1:%d::1]:1", i) }, 2_400},
		"a /48":                  {func(i int) string { return fmt.Sprintf("[2001:db8:1:%d00::1]:1", i) }, 4_800},
		"addresses far apart":    {func(i int) string { return fmt.Sprintf("198.51.%d.1:1", i) }, 8_000},
		"nobody knows whose":     {func(int) string { return "" }, 8_000},
		"IPv4, spelled as IPv6":  {func(i int) string { return fmt.Sprintf("[::ffff:198.51.100.%d]:1", i) }, 2_400},
		"IPv6, with other zones": {func(i int) string { return fmt.Sprintf("[2001:db8:1:1::1%%%d]:1", i) }, 600},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, sale, nil, func(w *world) {
				flood := func(each int) (n int) {
					for i := range 40 {
						n += w.joinsOf(c.from(i), each)
					}
					return n
				}
				if n := flood(200); n != c.burst {
					t.Errorf("%d joined, want %d", n, c.burst)
				}
				if n := w.joinsOf("203.0.113.9:1", 10); n != 10 {
					t.Errorf("elsewhere %d of 10 joined", n)
				}
				if c.burst == 8_000 {
					return
				}
				w.pass(6 * time.Second)
				if n := flood(20); n != c.burst/10 {
					t.Errorf("%d joined after 6 s, want %d", n, c.burst/10)
				}
			})
		})
	}
}

// A visitor of the OpenID adapter joins like everyone, and one who has a place is not asked to join.
func TestSignInsOfANetworkAreBounded(t *testing.T) {
	inWorld(t, sale, withOpenID, func(w *world) {
		id := w.join()
		w.joinsOf("192.0.2.1:1", 600) // where requests of ask come from
		if a := w.ask("GET", "/authorize?"+authorizeQuery().Encode(), ""); a.status != 429 || a.header.Get("Location") != "" {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := w.ask("GET", "/authorize?"+authorizeQuery("request_id", id).Encode(), ""); a.status != 302 {
			t.Errorf("with a place: %d %s", a.status, a.body)
		}
	})
}
