package page

import (
	"html"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/language"

	"github.com/anteroom/anteroom"
)

// Bounds of what is remembered of Accept-Language, and read of one.
const (
	maxAcceptLanguages     = 1024
	maxAcceptLanguageBytes = 256
)

// tongues chooses among [anteroom.Languages] by what browsers say. Browsers say few different things, so that what was found is
// remembered.
var tongues = sync.OnceValue(func() *chooser {
	tags := make([]language.Tag, len(anteroom.Languages))
	for i, name := range anteroom.Languages {
		tags[i] = language.MustParse(tagOf(name)) // a test holds them to parse
	}
	return &chooser{tags: tags, matcher: language.NewMatcher(tags)}
})

type chooser struct {
	tags    []language.Tag
	matcher language.Matcher
	found   sync.Map // header to language, "" where none serves
	size    atomic.Int64
}

// Negotiate returns the language of the built-in page for a visitor, one of [anteroom.Languages]: the one that the visitor has chosen,
// or else the best for an Accept-Language header (RFC 9110, section 12.5.4; matched as in BCP 47 and CLDR), or else otherwise.
func Negotiate(chosen, accept, otherwise string) string {
	switch {
	case IsLanguage(chosen):
		return chosen
	case accept == "":
		return otherwise
	}
	c := tongues()
	if known, ok := c.found.Load(accept); ok {
		if name := known.(string); name != "" {
			return name
		}
		return otherwise
	}
	name := c.choose(accept)
	if len(accept) <= maxAcceptLanguageBytes && c.size.Load() < maxAcceptLanguages {
		if _, twice := c.found.LoadOrStore(strings.Clone(accept), name); !twice {
			c.size.Add(1)
		}
	}
	if name == "" {
		return otherwise
	}
	return name
}

func (c *chooser) choose(accept string) string {
	if len(accept) > maxAcceptLanguageBytes { // what stands first is what matters
		accept = accept[:max(0, strings.LastIndexByte(accept[:maxAcceptLanguageBytes], ','))]
	}
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return ""
	}
	for _, tag := range wanted { // by weight
		// The matcher also offers what many speakers of a language read, like English for Swahili: the room's own is as good.
		if _, i, sure := c.matcher.Match(tag); sure >= language.High && sameBase(tag, c.tags[i]) {
			return anteroom.Languages[i]
		}
	}
	return ""
}

// sameBase says that two tags are of one language, however they spell it: no is nb, iw is he, tl is fil.
func sameBase(a, b language.Tag) bool { return canonical(a) == canonical(b) }

func canonical(t language.Tag) language.Base {
	t, _ = language.All.Canonicalize(t) // fails for no tag that was parsed
	base, _ := t.Base()
	return base
}

// IsLanguage says that the page has been translated into it: one of [anteroom.Languages].
func IsLanguage(name string) bool { return library().prints[name] != nil }

// selfNames are the names of [anteroom.Languages] in themselves.
var selfNames = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, name := range anteroom.Languages {
		out[name] = html.EscapeString(wordsOf(name).Name)
	}
	return out
})

// switchTo is the link to the other languages at the foot of a page.
func switchTo(now string) string {
	return `<nav lang="en"><a href="?` + languagesQuery + `" rel="nofollow" lang="` + tagOf(now) + `" aria-label="Language: ` + selfNames()[now] + `">` + selfNames()[now] + `</a></nav>`
}

// AppendLanguages appends the page on which a visitor chooses a language: links to the same path with query, which is not escaped yet, and
// [LanguageQuery]. It has the style of the built-in page, and the policy [LeavePolicy].
func AppendLanguages(dst []byte, query string) []byte {
	dst = append(dst, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark"><link rel="icon" href="`...)
	dst = append(dst, icon+`"><style>`+bare("asset/page.css")+`</style><title>Language</title></head><body><div id="wrapper"><main><h1>Language</h1><nav id="languages" class="meta">`...)
	if query != "" {
		query = html.EscapeString(query) + "&amp;"
	}
	for _, name := range anteroom.Languages {
		dst = append(dst, `<a href="?`+query+LanguageQuery+name+`" lang="`+tagOf(name)+`">`+selfNames()[name]+`</a>`...)
	}
	return append(dst, `</nav></main></div><script>`+library().beside+`</script></body></html>`...)
}
