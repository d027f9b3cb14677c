package ticket

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestBindAddr(t *testing.T) {
	ring := NewKeyring(morning)
	rotated, err := ring.Rotate(morning, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.7", "192.0.2.7", true},
		{"192.0.2.7", "192.0.2.8", false},
		{"192.0.2.7", "::ffff:192.0.2.7", true},
		{"192.0.2.7", "::192.0.2.7", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		a, b := ring.BindAddr(netip.MustParseAddr(c.a)), rotated.BindAddr(netip.MustParseAddr(c.b))
		if a == 0 || b == 0 || (a == b) != c.same {
			t.Errorf("%s and %s have tags %04x and %04x, want same = %v", c.a, c.b, a, b, c.same)
		}
	}
	if ring.BindAddr(netip.Addr{}) != 0 {
		t.Error("no address has a tag")
	}
}

func TestBindTag(t *testing.T) {
	// One ring for all cases: tags of different things agree once in 65,535.
	ring := ringOf(keyOf(Secret{1}, Fixed, morning, morning), []key{keyOf(Secret{2}, Current, morning, morning)})
	lists := [][]string{{"a", "b"}, {"ab"}, {"", "ab"}, {"ab", ""}, {"a", "b", ""}, {}, {"b", "a"}}
	seen := map[uint16]string{}
	for _, kind := range []string{"header", "user"} {
		for _, parts := range lists {
			tag := ring.bindTag(kind, parts...)
			name := fmt.Sprintf("%s%q", kind, parts)
			if other, ok := seen[tag]; ok {
				t.Errorf("%s and %s have the same tag", name, other)
			}
			seen[tag] = name
			if tag != ring.bindTag(kind, parts...) {
				t.Errorf("%s has two tags", name)
			}
		}
	}
	other := ringOf(keyOf(Secret{3}, Fixed, morning, morning), []key{keyOf(Secret{2}, Current, morning, morning)})
	if ring.bindTag("user", "a") == other.bindTag("user", "a") {
		t.Error("the tag does not depend on the key")
	}
	for i := range 200_000 {
		if ring.bindTag("n", fmt.Sprint(i)) == 0 {
			t.Fatal("a tag is zero")
		}
	}
}
