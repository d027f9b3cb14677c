package rules

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// pattern is a regular expression that says only whether it is somewhere in a text. Package
// regexp is linear as well, but cannot be stopped: a text of 32 KiB and a pattern of 2,000
// instructions are tens of milliseconds. Here each instruction is counted.
type pattern struct {
	prog     *syntax.Prog
	literal  string // the text begins with it where the pattern does; searched for when no thread is alive
	whole    bool   // the literal is the whole pattern
	anchored bool   // matches at the beginning of the text or not at all
	looks    bool   // has \b, ^, $: the neighbours of a position matter
	first    [256]bool
}

// threads is the memory of a running pattern: two sets of instructions and a stack.
type threads struct {
	now, next threadSet
	stack     []uint32
}

// threadSet is a sparse set: emptied and asked in constant time.
type threadSet struct {
	dense  []uint32
	sparse []uint32
}

func (s *threadSet) has(pc uint32) bool {
	i := s.sparse[pc]
	return int(i) < len(s.dense) && s.dense[i] == pc
}

func (s *threadSet) add(pc uint32) {
	s.sparse[pc] = uint32(len(s.dense))
	s.dense = append(s.dense, pc)
}

func (t *threads) grow(n int) {
	if len(t.now.sparse) < n {
		t.now.sparse, t.next.sparse = make([]uint32, n), make([]uint32, n)
		t.now.dense, t.next.dense = make([]uint32, 0, n), make([]uint32, 0, n)
		t.stack = make([]uint32, 0, 2*n)
	}
}

// newPattern compiles Rust's syntax as far as it is Go's. The problem names the byte of the
// pattern that is wrong, where that is known.
func newPattern(expr string) (p *pattern, at int, problem, fix string) {
	if len(expr) > MaxRegexpLength {
		return nil, 0, fmt.Sprintf("the regular expression has %d bytes", len(expr)), fmt.Sprintf("at most %d", MaxRegexpLength)
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
	if instructions(tree) > MaxRegexpProgram {
		return nil, 0, "the regular expression is too large once its repetitions are written out", fmt.Sprintf("at most %d instructions: repeat less, or use + and *", MaxRegexpProgram)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > MaxRegexpProgram {
		return nil, 0, "the regular expression is too large", fmt.Sprintf("at most %d instructions: repeat less", MaxRegexpProgram)
	}
	p = &pattern{prog: prog}
	p.literal, p.whole = prog.Prefix()
	p.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	for i := range prog.Inst {
		p.looks = p.looks || prog.Inst[i].Op == syntax.InstEmptyWidth
	}
	p.findFirst()
	return p, 0, "", ""
}

// instructions bounds the size of the program before anything is copied. It saturates.
func instructions(re *syntax.Regexp) int {
	const enough = MaxRegexpProgram + 1
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

// findFirst notes the bytes with which a match can begin.
func (p *pattern) findFirst() {
	for c := utf8.RuneSelf; c < 256; c++ {
		p.first[c] = true
	}
	seen := make([]bool, len(p.prog.Inst))
	stack := []uint32{uint32(p.prog.Start)}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &p.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			stack = append(stack, inst.Out)
		case syntax.InstMatch:
			for c := range p.first {
				p.first[c] = true
			}
		case syntax.InstFail:
		default:
			for c := range rune(utf8.RuneSelf) {
				if inst.MatchRune(c) {
					p.first[c] = true
				}
			}
		}
	}
}

// match reports whether the pattern is in s. It spends a step for each instruction and
// stops, without a match, when the budget is gone.
func (p *pattern) match(r *Request, s string) bool {
	if p.whole {
		return r.spend(1+len(s)/4) && strings.Contains(s, p.literal)
	}
	t := &r.threads
	t.grow(len(p.prog.Inst))
	t.now.dense, t.next.dense = t.now.dense[:0], t.next.dense[:0]
	before := rune(-1)
	for at := 0; ; {
		if len(t.now.dense) == 0 {
			if p.anchored && at > 0 {
				return false
			}
			if p.literal != "" && !p.anchored {
				i := strings.Index(s[at:], p.literal)
				if i < 0 || !r.spend(1+i/4) {
					r.spend(1 + (len(s)-at)/4)
					return false
				}
				if i > 0 {
					at += i
					before, _ = utf8.DecodeLastRuneInString(s[:at])
				}
			}
		}
		here, width := rune(-1), 0
		if at < len(s) {
			here, width = rune(s[at]), 1
			if here >= utf8.RuneSelf {
				here, width = utf8.DecodeRuneInString(s[at:])
			}
		}
		if (at == 0 || !p.anchored) && (width == 0 || p.first[s[at]]) {
			if p.follow(r, &t.now, uint32(p.prog.Start), before, here) {
				return true
			}
		}
		if width == 0 {
			return false
		}
		after := rune(-1)
		if p.looks && at+width < len(s) {
			after, _ = utf8.DecodeRuneInString(s[at+width:])
		}
		if !r.spend(1 + len(t.now.dense)) {
			return false
		}
		for _, pc := range t.now.dense {
			inst := &p.prog.Inst[pc]
			fits := false
			switch inst.Op {
			case syntax.InstRune1:
				fits = here == inst.Rune[0]
			case syntax.InstRuneAny:
				fits = true
			case syntax.InstRuneAnyNotNL:
				fits = here != '\n'
			case syntax.InstRune:
				fits = inst.MatchRune(here)
			}
			if fits && p.follow(r, &t.next, inst.Out, here, after) {
				return true
			}
		}
		t.now, t.next = t.next, t.now
		t.next.dense = t.next.dense[:0]
		before, at = here, at+width
	}
}

// follow adds what can be reached from an instruction without reading, and reports whether
// that includes the end of the pattern.
func (p *pattern) follow(r *Request, set *threadSet, pc uint32, before, here rune) bool {
	stack := append(r.threads.stack[:0], pc)
	steps := 0
	for len(stack) > 0 {
		pc = stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if set.has(pc) {
			continue
		}
		set.add(pc)
		steps++
		switch inst := &p.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Arg, inst.Out)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^syntax.EmptyOpContext(before, here) == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstMatch:
			return r.spend(steps)
		}
	}
	r.spend(steps)
	return false
}
