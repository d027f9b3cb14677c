package page

import (
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/markup"
)

// Bounds of an operator's template beside [anteroom.MaxTemplateBytes]. With them the worst
// template renders in half a millisecond, and is compressed in five (BenchmarkWorstTemplate).
const (
	maxTemplateNesting = 32
	maxTemplateTags    = 2000
	maxNameLength      = 64
	maxTemplateFaults  = 20 // reported at once
)

// Template is an operator's page, checked and compiled. Safe for concurrent use.
type Template struct{ parts []part }

// part is a piece of a template, in the order of the page.
type part struct {
	kind partKind
	text string // of a tag the name
	end  int    // of a section the index behind its last part
}

type partKind uint8

const (
	textPart partKind = iota
	valuePart
	rawPart
	sectionPart
	invertedPart
)

// Compile checks and compiles a mustache page. The error holds [anteroom.Faults] with line
// and column; their path is custom_page_html.
//
// Variables, sections ({{#a}}, {{^a}}, {{/a}}), raw variables ({{{a}}}, {{&a}}) and comments
// are understood. Partials are refused because they read files, a change of delimiters
// because it would hide tags from the checks, and names with dots because no value has parts.
// A name that no value has is empty. A section shows its content once or not at all, because no
// value is a list.
func Compile(page string) (*Template, error) {
	parts, faults := parse(page)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return &Template{parts}, nil
}

// CompileAt is [Compile] for the page of something that stands at a path of a larger document, like "rooms[0].": the
// faults have that path, and say in words where they are in the page. An empty page has no template.
func CompileAt(at, page string) (*Template, anteroom.Faults) {
	if page == "" {
		return nil, nil
	}
	t, err := Compile(page)
	found, _ := errors.AsType[anteroom.Faults](err)
	faults := slices.Clone(found)
	for i := range faults {
		f := &faults[i]
		if f.Line > 0 {
			f.Problem = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Problem)
		}
		f.Path, f.Line, f.Column = at+f.Path, 0, 0
	}
	return t, faults
}

const templatePath = "custom_page_html"

// parse cuts a page into its parts, which are of no use if there are faults.
func parse(page string) (parts []part, faults anteroom.Faults) {
	line, lineStart := 1, 0
	fault := func(at int, problem, fix string) {
		if len(faults) < maxTemplateFaults {
			faults = append(faults, anteroom.Fault{Path: templatePath, Problem: problem, Fix: fix, Line: line, Column: at - lineStart + 1})
		}
	}
	if len(page) > anteroom.MaxTemplateBytes {
		fault(0, fmt.Sprintf("has %d bytes", len(page)), fmt.Sprintf("at most %d; keep pictures and fonts on a host without a waiting room", anteroom.MaxTemplateBytes))
		return nil, faults
	}
	pos := 0
	advance := func(to int) {
		for i := pos; i < to; i++ {
			if page[i] == '\n' {
				line, lineStart = line+1, i+1
			}
		}
		pos = to
	}
	if !utf8.ValidString(page) {
		bad := strings.IndexFunc(page, func(r rune) bool { return r == utf8.RuneError })
		advance(bad)
		fault(bad, "is not UTF-8", "save it in UTF-8")
		return nil, faults
	}
	type section struct {
		name         string
		line, column int
		part         int // its index
	}
	var open []section
	add := func(kind partKind, text string) {
		if text != "" {
			parts = append(parts, part{kind: kind, text: text})
		}
	}
	for tags := 1; ; tags++ {
		next := strings.Index(page[pos:], "{{")
		if next < 0 {
			add(textPart, page[pos:])
			break
		}
		from := pos
		advance(pos + next)
		start := pos
		if tags > maxTemplateTags {
			fault(start, fmt.Sprintf("has more than %d tags", maxTemplateTags), "use fewer")
			return nil, faults
		}
		raw, end := strings.HasPrefix(page[start+2:], "{"), "}}"
		if raw {
			end = "}}}"
		}
		length := strings.Index(page[start+2:], end)
		if length < 0 {
			fault(start, "this tag is not closed", "write "+end+" behind the name")
			return nil, faults
		}
		name := strings.TrimSpace(page[start+2 : start+2+length])
		var sign byte
		if raw {
			name = strings.TrimSpace(name[1:])
		} else if name != "" && strings.IndexByte("#^/&!>={<$", name[0]) >= 0 {
			sign, name = name[0], strings.TrimSpace(name[1:])
		}
		until, behind := start, start+2+length+len(end)
		if sign != 0 && sign != '&' {
			until, behind = alone(page, from, until, behind)
		}
		add(textPart, page[from:until])
		switch {
		case sign == '!':
		case sign == '>' || sign == '<' || sign == '$':
			fault(start, "includes another template", "write its text here: partials are not available")
		case sign == '=':
			fault(start, "changes the delimiters", "use {{ and }}")
		case sign == '{':
			fault(start, "opens a raw variable with a space", "write {{{name}}}")
		case !isName(name):
			fault(start, fmt.Sprintf("%.80q is not a name", name), fmt.Sprintf("1 to %d letters, digits and _", maxNameLength))
		case sign == '#' || sign == '^':
			if len(open) == maxTemplateNesting {
				fault(start, fmt.Sprintf("nests sections deeper than %d", maxTemplateNesting), "nest less")
				return nil, faults
			}
			kind := sectionPart
			if sign == '^' {
				kind = invertedPart
			}
			open = append(open, section{name, line, start - lineStart + 1, len(parts)})
			add(kind, name)
		case sign == '/':
			switch {
			case len(open) == 0:
				fault(start, fmt.Sprintf("closes section %q, which is not open", name), "open it with {{#"+name+"}} or {{^"+name+"}}")
			case open[len(open)-1].name != name:
				last := open[len(open)-1]
				fault(start, fmt.Sprintf("closes section %q while %q, opened on line %d, is open", name, last.name, last.line), "write {{/"+last.name+"}} first")
				open = open[:len(open)-1]
			default:
				parts[open[len(open)-1].part].end = len(parts)
				open = open[:len(open)-1]
			}
		case raw || sign == '&':
			add(rawPart, name)
		default:
			add(valuePart, name)
		}
		advance(behind)
	}
	for _, s := range open {
		if len(faults) < maxTemplateFaults {
			faults = append(faults, anteroom.Fault{Path: templatePath, Problem: fmt.Sprintf("section %q is never closed", s.name),
				Fix: "write {{/" + s.name + "}} where it ends", Line: s.line, Column: s.column})
		}
	}
	return parts, faults
}

// alone returns what the tag at page[start:end] takes with it: a tag that shows nothing itself takes its whole line if nothing
// but blanks stand beside it. The page before from is taken already.
func alone(page string, from, start, end int) (int, int) {
	first := from + len(strings.TrimRight(page[from:start], " \t"))
	if first > 0 && page[first-1] != '\n' {
		return start, end
	}
	rest := strings.TrimLeft(page[end:], " \t")
	switch {
	case end == len(page):
		return first, end
	case strings.HasPrefix(rest, "\n"):
		return first, len(page) - len(rest) + 1
	case strings.HasPrefix(rest, "\r\n"):
		return first, len(page) - len(rest) + 2
	}
	return start, end
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || s[i] == '_') {
			return false
		}
	}
	return s != "" && len(s) <= maxNameLength
}

// appender is a writer that appends.
type appender struct{ dst []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.dst = append(a.dst, p...)
	return len(p), nil
}

func (t *Template) appendPage(dst []byte, v View, compress bool) []byte {
	if !compress {
		return t.render(dst, variables(v))
	}
	return appendZipped(dst, t.render(nil, variables(v)))
}

var zippers sync.Pool // of *gzip.Writer

// appendZipped compresses a page that is made for one visit.
func appendZipped(dst, plain []byte) []byte {
	out := &appender{dst: dst}
	w, _ := zippers.Get().(*gzip.Writer)
	if w == nil {
		w, _ = gzip.NewWriterLevel(out, gzip.BestSpeed) // a valid level
	} else {
		w.Reset(out)
	}
	_, _ = w.Write(plain) // an appender takes everything
	_ = w.Close()
	w.Reset(nil)
	zippers.Put(w)
	return out.dst
}

func (t *Template) render(dst []byte, values map[string]any) []byte {
	for i := 0; i < len(t.parts); i++ {
		switch p := &t.parts[i]; p.kind {
		case textPart:
			dst = append(dst, p.text...)
		case valuePart:
			dst = append(dst, markup.Escape(shown(values[p.text]))...)
		case rawPart:
			dst = append(dst, shown(values[p.text])...)
		case sectionPart:
			if !isSet(values[p.text]) {
				i = p.end - 1
			}
		case invertedPart:
			if isSet(values[p.text]) {
				i = p.end - 1
			}
		}
	}
	return dst
}

// shown is a value as a template shows it; empty for none.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// isSet reports whether a section of a value is shown: not for a number that is 0, nor for blanks.
func isSet(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v) != ""
	case bool:
		return v
	case int:
		return v != 0
	case int64:
		return v != 0
	}
	return false
}
