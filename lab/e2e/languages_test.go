package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// maxPage is the most that the built-in page may be, compressed, in bytes.
const maxPage = 8 << 10

// pages are the states of the built-in page that a room can be put into by its settings.
var pages = []struct{ name, settings string }{
	{"line", "total_active_users: 0\n    new_users_per_minute: 600"},
	{"draw", "queueing_method: random\n    total_active_users: 0\n    new_users_per_minute: 600"},
	{"held", "queue_all: true\n    total_active_users: 1\n    new_users_per_minute: 600"},
	{"closed", "queueing_method: reject\n    total_active_users: 1\n    new_users_per_minute: 600"},
}

// pageRoom is a room of one language in one state, at the path /LANGUAGE/STATE.
func pageRoom(language, name, settings string) string {
	return fmt.Sprintf("  - name: %[1]s-%[2]s\n    host: 127.0.0.1\n    path: /%[1]s/%[2]s\n    default_template_language: %[1]s\n    cookie_suffix: %[1]s-%[2]s\n    %[3]s\n",
		language, name, settings)
}

func TestEveryLanguageIsRightAndSmall(t *testing.T) {
	t.Parallel()
	if len(anteroom.Languages) != 38 {
		t.Fatalf("%d languages, want 38", len(anteroom.Languages))
	}
	var rooms strings.Builder
	for _, language := range anteroom.Languages {
		for _, p := range pages {
			rooms.WriteString(pageRoom(language, p.name, p.settings))
		}
	}
	g := startGate(t, rooms.String())
	opening := regexp.MustCompile(`<html lang="([^"]+)" dir="([^"]+)">`)
	var mu sync.Mutex
	headings := map[string]string{} // heading and state → language
	largest := 0
	t.Cleanup(func() { t.Logf("the largest page has %d bytes", largest) })
	for _, language := range anteroom.Languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for _, p := range pages {
				path := "/" + language + "/" + p.name
				v := newVisitor(t, g)
				a := v.get(path, "Accept-Encoding", "gzip, deflate, br")
				if a.StatusCode != http.StatusOK || a.Header.Get("Content-Encoding") != "gzip" {
					t.Fatalf("%s: %s, %s", path, a.Status, a.Header.Get("Content-Encoding"))
				}
				if len(a.body) > maxPage {
					t.Errorf("%s: %d bytes, want at most %d", path, len(a.body), maxPage)
				}
				m := opening.FindStringSubmatch(a.text(t))
				if m == nil {
					t.Fatalf("%s: no language: %.200s", path, a.text(t))
				}
				if tag, direction := tagOf(language); !strings.HasPrefix(m[1], tag) || m[2] != direction {
					t.Errorf("%s: lang=%s dir=%s, want %s, %s", path, m[1], m[2], tag, direction)
				}
				_, heading, _ := strings.Cut(a.text(t), "<h1>")
				heading, _, _ = strings.Cut(heading, "</h1>")
				if again := v.get(path); again.Header.Get("Content-Encoding") != "" || !strings.Contains(string(again.body), "<h1>"+heading+"</h1>") {
					t.Errorf("%s: without gzip the page is another", path)
				}
				mu.Lock()
				if other, taken := headings[p.name+heading]; taken {
					t.Errorf("%s and %s have the same heading %q", language, other, heading)
				}
				headings[p.name+heading] = language
				largest = max(largest, len(a.body))
				mu.Unlock()
			}
		})
	}
}

// tagOf returns how the tag of a language's words begins, and their direction.
func tagOf(language string) (tag, direction string) {
	tag, _, _ = strings.Cut(language, "-")
	switch tag {
	case "tl":
		return "fil", "ltr" // Tagalog by its own name
	case "ar", "fa", "he":
		return tag, "rtl"
	}
	return tag, "ltr"
}

// A visitor reads the page in the browser's language, chooses another without script, and stays at the address,
// with script to its fragment.
func TestVisitorChoosesTheLanguage(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	b := open(t)
	b.speaks("de-AT,de;q=0.9,en;q=0.5")
	address := g.url("/product/dawn-mug?color=red&x=%3Cb%3E#reviews")
	b.visit(address)
	b.waits()
	language := func() string { return eval[string](b, "document.documentElement.lang") }
	if language() != "de-DE" {
		t.Fatalf("the page is in %s", language())
	}
	eval[bool](b, "document.querySelector('nav a').click(), true")
	b.becomes(10*time.Second, "document.querySelectorAll('#languages a').length == 38")
	eval[bool](b, `document.querySelector('#languages a[lang="fr-FR"]').click(), true`)
	b.becomes(10*time.Second, "document.documentElement.lang == 'fr-FR' && !!document.querySelector('#ref')")
	if got := eval[string](b, "location.href"); got != address {
		t.Errorf("the address is %s, was %s", got, address)
	}
	b.visit(g.url("/"))
	b.waits()
	if language() != "fr-FR" {
		t.Errorf("the choice is forgotten: %s", language())
	}
}
