package anteroom_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func TestNearest(t *testing.T) {
	known := []string{"listen", "admin", "Listens", strings.Repeat("a", 65)}
	for _, c := range []struct {
		word string
		most int
		want string
	}{
		{"listen", 2, "listen"},
		{"listn", 1, "listen"},
		{"LISTNE", 2, "listen"}, // and "Listens" is no nearer
		{"listenss", 2, "Listens"},
		{"lsten", 0, ""},
		{"amin", 1, "admin"},
		{"dmi", 1, ""},
		{"dmi", 2, "admin"},
		{"", 4, ""},
		{strings.Repeat("a", 65), 100, ""},
	} {
		if got := anteroom.Nearest(c.word, known, c.most); got != c.want {
			t.Errorf("%.20q within %d: %q, want %q", c.word, c.most, got, c.want)
		}
	}
}
