package caddy

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// What accepts nobody's passes, or those of others, is refused with what to do.
func TestDirective(t *testing.T) {
	const room = "room 0123456789abcdef0123456789abcdef"
	for text, want := range map[string]string{
		"anteroom 127.0.0.1:8080 {\nzone shop.example.com\n" + room + "\nends /out /done\nsuffix vip\nrevoked\n}": "",
		"anteroom {\n zone x\n}":                                                     "wrong argument count",
		"anteroom a:1 {\nzone x\nroom 12\n}":                                         "32 hexadecimal digits",
		"anteroom a:1 {\n" + room + "\n}":                                            "zone is missing",
		"anteroom http://a:1 {\nzone x\n" + room + "\n}":                             "not HOST:PORT",
		"anteroom a:1 {\nzone x\n" + room + "\nends done\n}":                         "begin with a slash",
		"anteroom a:1 {\nzone x\n" + room + "\nends\n}":                              "wrong argument count",
		"anteroom a:1 {\nzone x y\n" + room + "\n}":                                  "wrong argument count",
		"anteroom a:1 {\nzone x\n" + room + "\nrevoked on\n}":                        "wrong argument count",
		"anteroom a:1 {\nrooms x\n}":                                                 `no option "rooms"`,
		"anteroom a:1 {\nzone x\n" + room + "\nreports https://b:2\ntoken secret\n}": "",
		"anteroom a:1 {\nzone x\n" + room + "\nreports b:2\ntoken secret\n}":         "an address like",
		"anteroom a:1 {\nzone x\n" + room + "\nreports https://b:2\n}":               "a token",
	} {
		h := &Handler{}
		err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil {
			err = h.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want))) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
