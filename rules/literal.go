package rules

import (
	"strings"
)

// literal is a string as written.
type literal struct {
	text  string
	start int   // where its first byte stands in the expression
	skips []int // bytes of text before which the expression has one byte more
}

// place returns where a byte of the text stands in the expression.
func (l literal) place(at int) int {
	more := 0
	for _, s := range l.skips {
		if s <= at {
			more++
		}
	}
	return l.start + at + more
}

// isRaw reports whether an r that stands next begins a raw string.
func (p *parser) isRaw() bool {
	rest := strings.TrimLeft(p.src[p.at+1:], "#")
	return strings.HasPrefix(rest, `"`)
}

// str reads a quoted or raw string. The operator before it says how escapes are read: a
// regular expression keeps its own, a pattern with stars keeps \*.
func (p *parser) str(op string) (literal, bool) {
	c := p.peek()
	start := p.at
	switch {
	case c == 'r' && p.isRaw():
		return p.raw()
	case c == '\'':
		return literal{}, p.fail(start, "strings need double quotes", `write "…"`)
	case c != '"':
		fix := `write "…"`
		if w := p.word(); w != "" {
			if _, ok := fieldOf(w); ok {
				fix = "the right side is a value, not a field"
			} else {
				fix = `strings need double quotes: "` + short(w) + `"`
			}
		}
		return literal{}, p.fail(start, "expected a string, not "+p.here(), fix)
	}
	lit := literal{start: start + 1}
	var b strings.Builder
	skip := func(n int) {
		for range n {
			lit.skips = append(lit.skips, b.Len())
		}
	}
	for i := start + 1; i < len(p.src); i++ {
		c := p.src[i]
		if c == '"' {
			p.at = i + 1
			lit.text = b.String()
			return lit, true
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i+1 >= len(p.src) {
			break
		}
		next := p.src[i+1]
		switch {
		case next == '"':
			skip(1)
			b.WriteByte('"')
		case op == "matches":
			b.WriteByte('\\')
			b.WriteByte(next)
		case next == '\\':
			skip(1)
			b.WriteByte('\\')
		case next == '*' && strings.HasSuffix(op, "wildcard"):
			b.WriteString(`\*`)
		case next == 'x' && i+3 < len(p.src):
			v, ok := hex(p.src[i+2 : i+4])
			if !ok {
				return literal{}, p.fail(i, `\x needs two hexadecimal digits`, `write \x2e`)
			}
			skip(3)
			b.WriteByte(byte(v))
			i += 2
		default:
			return literal{}, p.fail(i, `\`+clipByte(next)+" is not an escape", `of these there are \" \\ and \x2e; or write a raw string: r"…"`)
		}
		i++
	}
	return literal{}, p.fail(start, "this string is never closed", `add a "; a quote inside a string is \"`)
}

func clipByte(c byte) string {
	if c > ' ' && c < 0x7f {
		return string(rune(c))
	}
	return "…"
}

// raw reads r"…" or r#"…"# with up to 255 #.
func (p *parser) raw() (literal, bool) {
	start := p.at
	hashes := 0
	for p.src[start+1+hashes] == '#' {
		hashes++
	}
	if hashes > 255 {
		return literal{}, p.fail(start, "a raw string begins with too many #", "at most 255")
	}
	begin := start + 1 + hashes + 1
	closing := `"` + p.src[start+1:start+1+hashes]
	end := strings.Index(p.src[begin:], closing)
	if end < 0 {
		return literal{}, p.fail(start, "this raw string is never closed", "add "+short(closing))
	}
	p.at = begin + end + len(closing)
	return literal{text: p.src[begin : begin+end], start: begin}, true
}
