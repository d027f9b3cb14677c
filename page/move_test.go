package page

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// The pages around a move, in English and in a language that is written from right to left.
func TestGoldenMoves(t *testing.T) {
	const link = "https://shop.example.com/cart?id=5&x=%3Cb&__anteroom=move.6927f0a0.AbC-_9"
	style := regexp.MustCompile(`(?s)<style>.*?</style>`)
	for _, language := range []string{"en-US", "ar-EG"} {
		v := View{Language: language}
		for name, page := range map[string][]byte{
			"moving":    AppendMoving(nil, v, "id=5&x=%3Cb", link),
			"streaming": AppendMoving(nil, View{Language: language, Decision: anteroom.Decision{Stream: true, Refresh: 5 * time.Second}}, "id=5&x=%3Cb", link),
			"long":      AppendMoving(nil, v, "", link+strings.Repeat("x", 3000)),
			"arriving":  AppendArriving(nil, v, "id=5&x=%3Cb", "6927f0a0.AbC-_9", false, false),
			"replacing": AppendArriving(nil, v, "", "6927f0a0.AbC-_9", true, true),
			"moved":     AppendMoved(nil, v, "id=5&x=%3Cb"),
			"stale":     AppendStale(nil, v, "id=5"),
		} {
			golden(t, "move/"+language+"/"+name+".html", style.ReplaceAllString(string(page), "<style>…</style>"))
			if found := Barriers(string(page)); len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
			if strings.Contains(string(page), `<svg class="code`) != (name == "moving" || name == "streaming") {
				t.Errorf("%s: a code where there is none, or none", name)
			}
			if says := strings.Contains(string(page), wordsOf(language).Moving[1]); says != (name == "moving" || name == "streaming") || !says && name == "long" && !strings.Contains(string(page), wordsOf(language).MovingLink) {
				t.Errorf("%s: the page says to scan a code: %v", name, says)
			}
		}
	}
}

// An address with a long query has a code too, as large as the page allows.
func TestLongLinksHaveACode(t *testing.T) {
	for length, class := range map[int]string{800: `<svg class="code"`, 2300: `<svg class="code fine"`, 2953: `<svg class="code fine"`} {
		link := "https://shop.example.com/?" + strings.Repeat("x", length-26)
		page := string(AppendMoving(nil, View{}, "", link))
		if !strings.Contains(page, class) {
			t.Errorf("%d bytes: no %s", length, class)
		}
		if len(page) > 160<<10 {
			t.Errorf("%d bytes of link make a page of %d", length, len(page))
		}
	}
}

// What comes of a request, or of a link that somebody else has made, stays text.
func TestMovesEscape(t *testing.T) {
	const bad = `"><script>alert(1)</script>`
	for name, page := range map[string][]byte{
		"moving":   AppendMoving(nil, View{Decision: anteroom.Decision{Stream: true}}, bad, "https://x/"+bad),
		"arriving": AppendArriving(nil, View{}, bad, bad, true, true),
		"moved":    AppendMoved(nil, View{}, bad),
		"stale":    AppendStale(nil, View{}, bad),
	} {
		if strings.Contains(string(page), "<script>alert") {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// In a lottery there is no place that could move, and without a place neither.
func TestWhoIsOfferedToMove(t *testing.T) {
	for _, s := range States() {
		page := string(AppendPage(nil, &View{Decision: s.Decision}, false))
		waits := s.Decision.Verdict == anteroom.Wait && !s.Decision.Ticket.Accepted() && s.Name != "lottery" && s.Name != "full"
		if strings.Contains(page, MoveQuery+`"`) != waits {
			t.Errorf("%s: offered: %v, want %v", s.Name, !waits, waits)
		}
	}
}
