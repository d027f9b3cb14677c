package rules

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// lower turns upper-case ASCII letters into lower-case ones and leaves everything else alone.
func lower(s string) string { return fold(s, 'A', 'Z') }

func upper(s string) string { return fold(s, 'a', 'z') }

// fold flips the case of the letters between first and last; it makes no copy when there
// are none.
func fold(s string, first, last byte) string {
	for i := range len(s) {
		if s[i] >= first && s[i] <= last {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= first && b[j] <= last {
					b[j] ^= 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// decodePercent decodes %XX; malformed escapes stay. With plus, "+" is a space; with
// unicode, %uXXXX is a character.
func decodePercent(s string, plus, unicode bool) string {
	if !strings.Contains(s, "%") && !(plus && strings.Contains(s, "+")) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+' && plus:
			b = append(b, ' ')
		case c == '%' && unicode && i+5 < len(s) && (s[i+1] == 'u' || s[i+1] == 'U'):
			if v, ok := hex(s[i+2 : i+6]); ok {
				b = utf8.AppendRune(b, v)
				i += 5
				continue
			}
			b = append(b, c)
		case c == '%' && i+2 < len(s):
			if v, ok := hex(s[i+1 : i+3]); ok {
				b = append(b, byte(v))
				i += 2
				continue
			}
			b = append(b, c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func hex(s string) (rune, bool) {
	v := rune(0)
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// glob is a pattern with * for any run of characters, for a whole value.
type glob struct {
	parts []string // between the stars; in lower case unless exact
	exact bool     // upper and lower case differ
}

// newGlob reads a pattern. The problem names the byte of the pattern that is wrong.
func newGlob(p string, exact bool) (g *glob, at int, problem, fix string) {
	g = &glob{exact: exact}
	var part []byte
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '*':
			if i+1 < len(p) && p[i+1] == '*' {
				return nil, i, "** is not valid", "one * stands for any run of characters; a literal star is \\*"
			}
			g.parts = append(g.parts, string(part))
			part = part[:0]
		case '\\':
			if i++; i >= len(p) || p[i] != '*' && p[i] != '\\' {
				return nil, i - 1, `a \ escapes nothing`, `\* is a literal star and \\ a backslash`
			}
			part = append(part, p[i])
		default:
			part = append(part, c)
		}
	}
	return globOf(append(g.parts, string(part)), exact), 0, "", ""
}

func globOf(parts []string, exact bool) *glob {
	parts = slices.Clone(parts)
	for i, s := range parts {
		if !exact {
			parts[i] = lower(s)
		}
	}
	return &glob{parts, exact}
}

// match takes the first fit of each part, which is as good as any other: what is left for
// the parts that follow is longest.
func (g *glob) match(r *Request, s string) bool {
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if !r.spend((len(first)+len(last))/4) || len(s) < len(first) || !g.same(s[:len(first)], first) {
		return false
	}
	if len(g.parts) == 1 {
		return len(s) == len(first)
	}
	if s = s[len(first):]; len(s) < len(last) || !g.same(s[len(s)-len(last):], last) {
		return false
	}
	s = s[:len(s)-len(last)]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		i := g.index(r, s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

func (g *glob) same(s, part string) bool {
	if g.exact {
		return s == part
	}
	for i := range len(part) {
		if lowerByte(s[i]) != part[i] {
			return false
		}
	}
	return true
}

func (g *glob) index(r *Request, s, part string) int {
	if g.exact {
		if !r.spend(1 + len(s)/4) {
			return -1
		}
		return strings.Index(s, part)
	}
	steps, most := 0, 2*r.work
	for at := 0; at+len(part) <= len(s); at++ {
		i := 0
		for i < len(part) && lowerByte(s[at+i]) == part[i] {
			i++
		}
		if i == len(part) {
			r.spend(steps/2 + 1)
			return at
		}
		if steps += i + 1; steps > most {
			break
		}
	}
	r.spend(steps/2 + 1)
	return -1
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
