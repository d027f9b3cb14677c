package page

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Barrier is something in a template that keeps somebody from using the page.
type Barrier struct {
	Rule    string // name of the rule, as axe calls it where that has one
	Message string // what is wrong and what to write instead
	Line    int    // of the template, from 1
}

// maxBarriers is how many barriers are told of one template.
const maxBarriers = 50

// Barriers returns what a look at the text of a template finds that is in the way of people who
// use a screen reader, a keyboard or magnification, in the order of their lines. It sees no
// colours, no styles and nothing that a script does.
func Barriers(template string) []Barrier {
	f := finder{labels: map[string]bool{}, lines: 1, top: 1}
	z := html.NewTokenizer(strings.NewReader(template))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		f.top = f.lines
		f.lines += bytes.Count(z.Raw(), []byte("\n"))
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			f.start(z.Token())
		case html.EndTagToken:
			f.end(z.Token())
		case html.TextToken:
			f.text(string(z.Text()))
		}
	}
	return f.done()
}

// finder walks over a template once.
type finder struct {
	found      []Barrier
	lines, top int // the line that is read, and that on which the token began

	html, title, heading, main, inTitle bool

	named   []named // open elements that need words
	labels  map[string]bool
	fields  []labelled
	inLabel int
}

// named is an open element whose content names it.
type named struct {
	tag  string
	line int
	ok   bool
}

// labelled is a field that a label may name that comes later.
type labelled struct {
	id   string
	line int
}

func (f *finder) tell(rule, message string) { f.tellAt(f.top, rule, message) }

func (f *finder) tellAt(line int, rule, message string) {
	if len(f.found) < maxBarriers {
		f.found = append(f.found, Barrier{rule, message, line})
	}
}

func (f *finder) start(t html.Token) {
	attr := func(name string) (string, bool) {
		for _, a := range t.Attr {
			if a.Key == name {
				return strings.TrimSpace(a.Val), true
			}
		}
		return "", false
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { v, ok := attr(n); return ok && v != "" })
	}
	if v, ok := attr("tabindex"); ok {
		if n, err := strconv.Atoi(v); err == nil && n > 0 {
			f.tell("tabindex", "tabindex above 0 changes the order of the keyboard; use 0, or the order of the page")
		}
	}
	switch t.DataAtom {
	case atom.Html:
		f.html = true
		if !has("lang") {
			f.tell("html-has-lang", "the page does not say its language: write <html lang=\"en\">")
		}
	case atom.Title:
		f.inTitle = true
	case atom.Main:
		f.main = true
	case atom.H1:
		f.heading = true
	case atom.Meta:
		f.meta(attr)
	case atom.Img, atom.Area:
		alt, ok := attr("alt")
		role, _ := attr("role")
		switch {
		case !ok && !has("aria-label", "aria-labelledby") && role != "presentation" && role != "none":
			f.tell("image-alt", "a picture has no text: write alt=\"…\", or alt=\"\" for one that only decorates")
		case alt != "" || has("aria-label"):
			f.words()
		}
	case atom.Iframe, atom.Frame:
		if !has("title", "aria-label", "aria-labelledby") {
			f.tell("frame-title", "a frame has no title: write title=\"…\"")
		}
	case atom.Video, atom.Audio:
		_, auto := attr("autoplay")
		_, muted := attr("muted")
		if auto && !muted {
			f.tell("no-autoplay-audio", "sound starts by itself: leave autoplay out, or add muted")
		}
	case atom.Blink, atom.Marquee:
		f.tell(t.Data, "<"+t.Data+"> moves and cannot be stopped")
	case atom.Label:
		f.inLabel++
		if id, _ := attr("for"); id != "" {
			f.labels[id] = true
		}
	case atom.Input, atom.Select, atom.Textarea:
		kind, _ := attr("type")
		switch {
		case has("aria-label", "aria-labelledby", "title") || f.inLabel > 0:
		case t.DataAtom == atom.Input && (kind == "hidden" || kind == "submit" || kind == "reset"):
		case kind == "image" && has("alt"), kind == "button" && has("value"):
		default:
			id, _ := attr("id")
			f.fields = append(f.fields, labelled{id, f.top})
		}
	case atom.A, atom.Button:
		_, link := attr("href")
		if t.Type == html.StartTagToken && (link || t.DataAtom == atom.Button) {
			f.named = append(f.named, named{t.Data, f.top, has("aria-label", "aria-labelledby", "title")})
		}
	}
}

// meta looks at what a page tells the browser.
func (f *finder) meta(attr func(string) (string, bool)) {
	name, _ := attr("name")
	content, _ := attr("content")
	content = strings.ToLower(strings.ReplaceAll(content, " ", ""))
	if equiv, _ := attr("http-equiv"); strings.EqualFold(equiv, "refresh") {
		f.tell("meta-refresh", "the page reloads by itself, which takes a reader back to its beginning; leave it out, for Anteroom sends a Refresh header that keeps the place")
	}
	if !strings.EqualFold(name, "viewport") {
		return
	}
	for part := range strings.SplitSeq(content, ",") {
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseFloat(value, 64)
		if key == "user-scalable" && (value == "no" || value == "0") || key == "maximum-scale" && err == nil && n < 2 {
			f.tell("meta-viewport", "the page cannot be made larger: leave "+part+" out")
		}
	}
}

func (f *finder) end(t html.Token) {
	switch t.DataAtom {
	case atom.Title:
		f.inTitle = false
	case atom.Label:
		f.inLabel = max(0, f.inLabel-1)
	case atom.A, atom.Button:
		last := len(f.named) - 1
		if last < 0 || f.named[last].tag != t.Data {
			return
		}
		one := f.named[last]
		f.named = f.named[:last]
		switch {
		case one.ok:
			f.words()
		case t.DataAtom == atom.A:
			f.tellAt(one.line, "link-name", "a link has no words: write some between <a> and </a>, or aria-label")
		default:
			f.tellAt(one.line, "button-name", "a button has no words: write some between <button> and </button>, or aria-label")
		}
	}
}

// words says that there is something to read aloud where the finder is.
func (f *finder) words() {
	if n := len(f.named); n > 0 {
		f.named[n-1].ok = true
	}
}

func (f *finder) text(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	f.words()
	if f.inTitle {
		f.title = true
	}
}

func (f *finder) done() []Barrier {
	for _, one := range f.fields {
		if !f.labels[one.id] || one.id == "" {
			f.tellAt(one.line, "label", "a field has no label: write <label for=\"id\">…</label>, or aria-label")
		}
	}
	if !f.html {
		f.tellAt(1, "html-has-lang", "the page does not say its language: begin it with <!doctype html><html lang=\"en\">")
	}
	if !f.title {
		f.tellAt(1, "document-title", "the page has no title: write <title>…</title>")
	}
	if !f.heading {
		f.tellAt(1, "page-has-heading-one", "the page has no main heading: write <h1>…</h1>")
	}
	if !f.main {
		f.tellAt(1, "landmark-one-main", "the page does not say where its content is: put it into <main>…</main>")
	}
	slices.SortStableFunc(f.found, func(a, b Barrier) int { return a.Line - b.Line })
	return f.found
}
