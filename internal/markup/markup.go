// Package markup writes HTML pages whose markup stands in the program and whose words come from elsewhere. No word can
// break out of its place: markup has to be a constant, and what fills its holes is escaped for the place of the hole.
//
// It stands in for html/template, whose methods found by name keep the linker from dropping anything that might be
// called ([ADR 0039]).
//
// [ADR 0039]: https://github.com/anteroom/anteroom/blob/main/docs/adr/0039-nothing-is-called-by-name.md
package markup

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// constant is text of the program. Other packages cannot convert a variable to it.
type constant string

// Page is a page being written. The zero Page is empty. Not safe for concurrent use.
type Page struct{ b []byte }

// hole is where a value goes.
const hole = "{}"

// words are the attributes whose value is read by people, or by nothing that runs or fetches it.
var words = []string{"alt", "aria-label", "datetime", "id", "lang", "title", "value"}

// addresses are the attributes whose value is fetched or followed.
var addresses = []string{"action", "href", "src"}

// Put appends markup. Each {} in it is the place of the next value:
//
//   - between tags it is text,
//   - in a quoted attribute that is read, or begins with data-, likewise,
//   - in a quoted href, src or action that already begins with a path of this site, it is a segment of the path.
//
// Put panics for any other place and for a wrong number of values, whatever the values are.
func (p *Page) Put(markup constant, values ...string) {
	rest := string(markup)
	for _, v := range values {
		before, after, found := strings.Cut(rest, hole)
		if !found {
			panic(fmt.Sprintf("markup: more values than places: %s", markup))
		}
		p.b = append(p.b, before...)
		segment, err := placeOf(p.b)
		if err != nil {
			panic(fmt.Sprintf("markup: %v: %s", err, markup))
		}
		if segment {
			v = url.PathEscape(v)
		}
		p.b = append(p.b, Escape(v)...)
		rest = after
	}
	if strings.Contains(rest, hole) {
		panic(fmt.Sprintf("markup: fewer values than places: %s", markup))
	}
	p.b = append(p.b, rest...)
}

// placeOf reports whether what follows is a segment of an address. It fails where escaping would not be enough. Values
// have no <, > or quote any more, so all of these in the page are markup.
func placeOf(page []byte) (segment bool, err error) {
	open := bytes.LastIndexByte(page, '<')
	if open < 0 {
		return false, nil
	}
	tag := string(page[open:])
	if strings.ContainsRune(tag, '>') && !strings.HasPrefix(tag, "<!--") {
		for _, raw := range []string{"<script", "<style", "<iframe", "<noscript", "<plaintext", "<xmp"} {
			if len(tag) >= len(raw) && strings.EqualFold(tag[:len(raw)], raw) {
				return false, fmt.Errorf("a value inside of %s", raw[1:])
			}
		}
		return false, nil
	}
	if strings.Count(tag, `"`)%2 == 0 {
		return false, fmt.Errorf("a value in a tag, outside of quotes")
	}
	quote := strings.LastIndexByte(tag, '"')
	value := tag[quote+1:]
	name, isValue := strings.CutSuffix(tag[:quote], "=")
	name = strings.ToLower(name[strings.LastIndexAny(name, " \t\n")+1:])
	switch {
	case isValue && (slices.Contains(words, name) || strings.HasPrefix(name, "data-")):
		return false, nil
	case isValue && slices.Contains(addresses, name):
		if len(value) < 2 || value[0] != '/' || value[1] == '/' || value[1] == '\\' {
			return false, fmt.Errorf("an address that does not begin with a path of this site")
		}
		return true, nil
	}
	return false, fmt.Errorf("a value in the attribute %q", name)
}

// Raw appends what is markup already: an embedded file, or a drawing. Only the callers that package house lists may use
// it, and none with words from elsewhere.
func (p *Page) Raw(markup string) { p.b = append(p.b, markup...) }

// Bytes returns the page as far as it is written.
func (p *Page) Bytes() []byte { return p.b }

// Escape returns s as text between tags or in a quoted attribute.
func Escape(s string) string { return escaper.Replace(s) }

// escaper writes what html/template does; a NUL would end the page in some readers.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")
