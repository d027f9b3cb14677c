package page

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ chosen, accept, want string }{
		{"", "", "it-IT"},
		{"", "de-DE,de;q=0.9,en;q=0.8", "de-DE"},
		{"", "de-CH", "de-DE"},
		{"", "en-GB,en;q=0.9,de;q=0.8", "en-US"},
		{"", "pt-PT", "pt-BR"},
		{"", "zh-HK,zh;q=0.9", "zh-TW"},
		{"", "zh", "zh-CN"},
		{"", "no,nb;q=0.9", "nb-NO"},
		{"", "fil", "tl-PH"},
		{"", "iw", "he-IL"},
		{"", "sw;q=0.9,fr;q=0.5", "fr-FR"},
		{"", "de;q=0,fr", "fr-FR"},
		{"", "sw", "it-IT"},
		{"", "*", "it-IT"},
		{"", "\x00;;,,", "it-IT"},
		{"", "fr," + strings.Repeat("x-abcdefgh,", 10_000), "fr-FR"},
		{"", strings.Repeat("-", 10_000), "it-IT"},
		{"ja-JP", "de-DE", "ja-JP"},
		{"xx", "de-DE", "de-DE"},
	} {
		for range 2 { // from the header, and from what is remembered of it
			if got := Negotiate(c.chosen, c.accept, "it-IT"); got != c.want {
				t.Errorf("chosen %q, accepted %.40q: %s, want %s", c.chosen, c.accept, got, c.want)
			}
		}
	}
	for _, name := range anteroom.Languages {
		if got := Negotiate("", name, "it-IT"); got != name {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What strangers send does not grow the memory without bound.
func TestAcceptLanguagesAreBounded(t *testing.T) {
	t.Parallel()
	for i := range 3 * maxAcceptLanguages {
		Negotiate("", "de;q=0."+strings.Repeat("1", 1+i%3)+",x-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676%26)), "it-IT")
	}
	if n := tongues().size.Load(); n > maxAcceptLanguages+8 { // as many as run at once
		t.Errorf("%d headers are remembered", n)
	}
}

func BenchmarkNegotiate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Negotiate("", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "en-US")
	}
}
