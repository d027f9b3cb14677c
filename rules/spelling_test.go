package rules

import (
	"slices"
	"testing"
)

func TestAcceptedLanguagesAreSortedByWeight(t *testing.T) {
	r := sample()
	r.Header["Accept-Language"] = []string{"fr-CH, fr;q=0.8, en;q=0.9", "de;q=0.7, *;q=0.5, ,it;q=x"}
	var got []string
	for _, p := range r.languagePairs() {
		got = append(got, p.name)
	}
	if want := []string{"fr-CH", "it", "en", "fr", "de", "*"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	e, err := Compile(`http.request.accepted_languages[0] eq "fr-CH" and any(http.request.accepted_languages[*] eq "de")`, nil)
	if err != nil || !e.Match(r) {
		t.Errorf("no match: %v", err)
	}
}

func TestExtensions(t *testing.T) {
	for path, want := range map[string]string{"/.png": "", "/a/.htaccess": "", "/a.PNG": "png", "/..png": "png", "/a.tar.gz": "gz", "/a.": "", "/a.b/c": ""} {
		if got := extensionOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestSaidCountry: whoever names a country need not say that it is in the European Union.
func TestSaidCountry(t *testing.T) {
	for country, want := range map[string]bool{"DE": true, "HR": true, "GB": false, "CH": false, "": true, "E": false} {
		if got := (Place{Country: country}).over(Place{Country: "FR", EU: true}).EU; got != want {
			t.Errorf("%q: %v", country, got)
		}
	}
}

func TestSpellingsOfAPath(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"/caf%C3%A9", "/café", true}, {"/caf%c3%a9", "/caf%C3%A9", true}, {"/a%20b", "/a b", true}, {"/100%25", "/100%", true},
		{"/a%2Fb", "/a/b", false}, {"/a%2Fb", "/a%2fb", true}, {"/%2541", "/%41", false}, {"/%70", "/p", false}, {"/%2570", "/%70", false}, {"/a%2", "/a%252", true},
	} {
		if got := unescaped(c.a) == unescaped(c.b); got != c.same {
			t.Errorf("%s and %s: %q, %q", c.a, c.b, unescaped(c.a), unescaped(c.b))
		}
	}
}
