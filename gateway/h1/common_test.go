package h1

import (
	"net/textproto"
	"testing"
)

// TestCommonNames finds each of them, and nothing that is no canonical token.
func TestCommonNames(t *testing.T) {
	found := 0
	for place, name := range common {
		if name == "" {
			continue
		}
		found++
		if !isCommon(name) || !isCommon([]byte(name)) || int(commonPlace(name)) != place || !isToken(name) || textproto.CanonicalMIMEHeaderKey(name) != name {
			t.Errorf("%s is in place %d, and is common: %t", name, place, isCommon(name))
		}
		for _, other := range []string{name + " ", " " + name, name[1:], string(name[0]|0x20) + name[1:]} {
			if isCommon(other) {
				t.Errorf("%q is common", other)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d names have a place", found)
	}
	for _, none := range []string{"", ":", "Hos t"} {
		if isCommon(none) {
			t.Errorf("%q is common", none)
		}
	}
}
