package route

import (
	"errors"
	"strings"
	"testing"
)

func TestHostHasOneForm(t *testing.T) {
	for raw, want := range map[string]string{
		"shop.example.com":         "shop.example.com",
		"SHOP.Example.COM":         "shop.example.com",
		"shop.example.com.":        "shop.example.com",
		"SHOP.example.:80":         "shop.example",
		"shop.example.com:443":     "shop.example.com",
		"shop.example.com:":        "shop.example.com",
		"localhost:8080":           "localhost",
		"a_b.example":              "a_b.example",
		"127.0.0.1:8080":           "127.0.0.1",
		"1.example.com":            "1.example.com",
		"bücher.example":           "xn--bcher-kva.example",
		"BÜCHER.example":           "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":    "xn--bcher-kva.example",
		"shop。example.com":         "shop.example.com",
		"\u212aiosk.example":       "kiosk.example",
		"[::1]":                    "[::1]",
		"[::1]:8080":               "[::1]",
		"[0:0:0:0:0:0:0:1]":        "[::1]",
		"[2001:DB8::1]:443":        "[2001:db8::1]",
		strings.Repeat("a", 63):    strings.Repeat("a", 63),
		strings.Repeat("a.", 126):  strings.TrimSuffix(strings.Repeat("a.", 126), "."),
		"xn--4gbwdl.xn--wgbh1c:80": "xn--4gbwdl.xn--wgbh1c",
	} {
		got, err := Host(raw)
		if err != nil || got != want {
			t.Errorf("Host(%q) = %q, %v; want %q", raw, got, err, want)
		}
		if again, err := Host(got); err != nil || again != got {
			t.Errorf("Host(%q) = %q, %v; want the same", got, again, err)
		}
	}
}

func TestHostRefusesWhatCouldBeAnother(t *testing.T) {
	for _, raw := range []string{
		"", ".", "..", ":80", ".example.com", "a..example", "example.com..",
		"sh%6fp.example", "a.example,b.example", "shop.example:abc", "shop.example/x", "x@shop.example",
		"shop.example:0", "shop.example:080", "shop.example:65536", "shop.example:-1", "shop.example:1:2",
		"shop example", "shop.example ", "\tshop.example", "shop.example\r\n", "shop\x00.example", "shop.example\\x",
		"shop.example?x", "shop.example#x", "*", "*.example", "shop'.example", "http://shop.example",
		"127.1", "0x7f.1", "2130706433", "127.0.0.01", "1.2.3.4.5", "256.1.1.1", "1.2.3.0x4",
		"::1", "[::1", "[]", "[::1%25eth0]", "[fe80::1%eth0]", "[::1]x", "[::1]:x", "[127.0.0.1]", "[::g]",
		"xn--", "xn--a", "xn--shop-.example", "xn--bcher-kva-.example",
		"shop\uff0fexample", "shop\uff05example", "\xff.example", "\xc0\xae.example", "b\u00fccher\u2024.a_b",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", strings.Repeat("[", 9000),
	} {
		if got, err := Host(raw); !errors.Is(err, ErrHost) {
			t.Errorf("Host(%q) = %q, %v; want ErrHost", raw, got, err)
		}
	}
}

func FuzzHost(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := Host(raw)
		if err != nil {
			if !errors.Is(err, ErrHost) {
				t.Fatalf("Host(%q): %v is not ErrHost", raw, err)
			}
			return
		}
		if again, err := Host(got); err != nil || again != got {
			t.Errorf("Host(%q) = %q, and again %q, %v", raw, got, again, err)
		}
		if got == "" || strings.ContainsAny(got, "%,/\\@ \t\r\n\x00?#") || got != strings.ToLower(got) {
			t.Errorf("Host(%q) = %q is not canonical", raw, got)
		}
	})
}
