package anteroom

import (
	"strings"
	"testing"
)

// TestDescriptionsHideNothing: what operators read in lists and logs has no character that erases or reorders the rest.
func TestDescriptionsHideNothing(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"Le café, déjà vu 👩‍🚒":    "",
		"two\nlines,\ta tab\r\n":  "",
		"\x1b[2Jgone":             "U+001B",
		"a\x00b":                  "U+0000",
		"pay \u202eyap":           "U+202E",
		"\u2066isolated":          "U+2066",
		"\u200fmark":              "U+200F",
		"line\u2028separator":     "U+2028",
		strings.Repeat("x", 1025): "1025 bytes",
	} {
		room := Room{Name: "a", Description: text, Routes: []Route{{Host: "*", Path: "/"}}, Settings: Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1}}
		rule := Rule{Action: ActionBypass, Expression: "ssl", Description: text}
		for what, faults := range map[string]Faults{"room": room.Check(), "rule": rule.Check()} {
			found := ""
			for _, f := range faults {
				if f.Path == "description" {
					found += f.Problem
				}
			}
			if want == "" && found != "" || want != "" && !strings.Contains(strings.ReplaceAll(found, ",", ""), want) {
				t.Errorf("%s, %.30q: %q, want %q", what, text, found, want)
			}
		}
	}
}
