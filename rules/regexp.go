package rules

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a regular expression that only reports whether it occurs in a text. Package regexp
// cannot be interrupted, so [pattern.match] asks for the worst case in advance.
type pattern struct {
	re      *regexp.Regexp
	literal string // every match begins with it
	whole   bool   // the literal is the whole pattern
	perByte int    // steps for each byte of a text at most
}

// newPattern compiles Rust's syntax as far as it is Go's. The problem names the byte of the
// pattern that is wrong, where that is known.
func newPattern(expr string) (p *pattern, at int, problem, fix string) {
	if len(expr) > maxRegexpLength {
		return nil, 0, fmt.Sprintf("the regular expression has %d bytes", len(expr)), fmt.Sprintf("at most %d", maxRegexpLength)
	}
	expr, at, problem, fix = fromRust(expr)
	if problem != "" {
		return nil, at, problem, fix
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		problem = strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		fix = "regular expressions are those of RE2: no look-around and no back-references"
		if e, ok := err.(*syntax.Error); ok {
			at = max(0, strings.Index(expr, e.Expr))
			if e.Code == syntax.ErrInvalidRepeatOp || e.Code == syntax.ErrMissingRepeatArgument {
				fix = `a literal sign is escaped: \* \+ \?`
			}
		}
		return nil, at, "the regular expression is not valid: " + problem, fix
	}
	if instructions(tree) > maxRegexpProgram {
		return nil, 0, "the regular expression is too large once its repetitions are written out", fmt.Sprintf("at most %d instructions: repeat less, or use + and *", maxRegexpProgram)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxRegexpProgram {
		return nil, 0, "the regular expression is too large", fmt.Sprintf("at most %d instructions: repeat less", maxRegexpProgram)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, 0, "the regular expression is not valid: " + err.Error(), ""
	}
	p = &pattern{re: re, perByte: len(prog.Inst)}
	p.literal, p.whole = prog.Prefix()
	for i := range prog.Inst {
		if len(prog.Inst[i].Rune) > 8 { // a class that is searched by halves
			p.perByte++
		}
	}
	return p, 0, "", ""
}

// instructions bounds the size of the program before anything is copied. It saturates.
func instructions(re *syntax.Regexp) int {
	const enough = maxRegexpProgram + 1
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Min, re.Max, 1)
		return min(enough, times*(instructions(re.Sub[0])+1))
	}
	for _, sub := range re.Sub {
		if n += instructions(sub) + 1; n > enough {
			return enough
		}
	}
	return n
}

// fromRust refuses what Rust and Go read differently, and drops the flag u, which is how
// Go always reads.
func fromRust(expr string) (out string, at int, problem, fix string) {
	var b strings.Builder
	class := false
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		rest := expr[i:]
		switch {
		case c == '\\' && i+1 < len(expr):
			if expr[i+1] == 'u' || expr[i+1] == 'U' {
				return "", i, "the regular expression has an escape that is not known", `write a character as \x{263A}`
			}
			b.WriteString(expr[i : i+2])
			i++
			continue
		case !class && c == '[':
			class = true
			b.WriteByte(c)
			if strings.HasPrefix(expr[i+1:], "^") {
				i++
				b.WriteByte('^')
			}
			if strings.HasPrefix(expr[i+1:], "]") {
				i++
				b.WriteByte(']')
			}
			continue
		case class && c == ']':
			class = false
		case class && strings.HasPrefix(rest, "[:"):
			if end := strings.Index(rest, ":]"); end > 0 {
				b.WriteString(rest[:end+2])
				i += end + 1
				continue
			}
			return "", i, "the regular expression has a class inside a class", `a literal bracket is \[`
		case class && (c == '[' || strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "~~")):
			return "", i, "the regular expression has a class inside a class", `write one class; literal signs are \[ \& \- \~`
		case !class && strings.HasPrefix(rest, "(?"):
			flags := rest[2:]
			if end := strings.IndexAny(flags, ":)"); end >= 0 && strings.Trim(flags[:end], "imsUxuR-") == "" {
				flags = flags[:end]
				if strings.ContainsAny(flags, "xR") || strings.Contains(flags, "-") && strings.Contains(flags[strings.Index(flags, "-"):], "u") {
					return "", i, "the regular expression has flags that are not known here", "of the flags there are i, m, s and U"
				}
				kept := strings.ReplaceAll(flags, "u", "")
				if kept == "" && flags != "" && expr[i+2+end] == ')' {
					i += 2 + end
					continue
				}
				b.WriteString("(?" + kept)
				i += 1 + end
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String(), 0, "", ""
}

// match reports whether the pattern is in s. Package regexp looks at each instruction at most once
// for each byte of the text: a text for which the budget may not last uses it up unread.
func (p *pattern) match(r *Request, s string) bool {
	if p.literal != "" {
		at := strings.Index(s, p.literal)
		if !r.spend(1+len(s)/4) || at < 0 {
			return false
		}
		if p.whole {
			return true
		}
		s = s[at:] // nothing in the pattern looks further back than its own literal
	}
	return r.spend(min(p.perByte*(len(s)+1), r.work+1)) && p.re.MatchString(s)
}
