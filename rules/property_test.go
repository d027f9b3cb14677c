package rules

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// condition is a tree of logic with the answer that it must have.
type condition struct {
	text  string
	level int // 0 or, 1 xor, 2 and, 3 not or a leaf
	truth bool
}

func drawCondition(t *rapid.T, depth int) condition {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		if rapid.Bool().Draw(t, "truth") {
			return condition{"ssl", 3, true}
		}
		return condition{"cf.client.bot", 3, false}
	}
	op := rapid.IntRange(0, 3).Draw(t, "operator")
	word := func(english, sign string) string {
		if rapid.Bool().Draw(t, "notation") {
			return english
		}
		return sign
	}
	// A part needs parentheses when its operator is weaker; others may have them.
	part := func(c condition, least int) string {
		if c.level < least || rapid.IntRange(0, 9).Draw(t, "parentheses") == 0 {
			return "(" + c.text + ")"
		}
		return c.text
	}
	a := drawCondition(t, depth-1)
	if op == 3 {
		return condition{word("not ", "!") + part(a, 3), 3, !a.truth}
	}
	b := drawCondition(t, depth-1)
	sign := [...]string{word(" or ", "||"), word(" xor ", "^^"), word(" and ", "&&")}[op]
	truth := [...]bool{a.truth || b.truth, a.truth != b.truth, a.truth && b.truth}[op]
	return condition{part(a, op) + sign + part(b, op), op, truth}
}

// TestPrecedence: a tree of logic, written with as few parentheses as precedence allows,
// means what the tree means.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t, 6)
		if len(c.text) > 4000 {
			t.Skip("too long to be an expression")
		}
		e, err := Compile(c.text, nil)
		if err != nil {
			if strings.Contains(err.Error(), "too many parts") || strings.Contains(err.Error(), "too deeply") {
				t.Skip("too large to be an expression")
			}
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := e.Match(&Request{SSL: true}); got != c.truth {
			t.Fatalf("%s is %v, want %v", c.text, got, c.truth)
		}
	})
}

// TestPatternsAreRegexps: reading Rust's syntax and skipping to the literal changes no answer of package regexp.
func TestPatternsAreRegexps(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "é", ".", "[ab]", "[^a]", "(a|b)", "(?i:A)", "^", "$", `\b`, `\B`, `\d`, `\A`, `\z`, "a*", "b+", "(ab)?", "a{2,3}", "|", "(?m:^b$)", "(?s:.)", "(|a)+", `\x{e9}`})
	text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "A", "é", "1", "\n", " ", "\xff", "ab"}))
	rapid.Check(t, func(t *rapid.T) {
		expr := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pattern"), "")
		want, err := regexp.Compile(expr)
		p, _, problem, _ := newPattern(expr)
		if (err == nil) != (problem == "") {
			t.Fatalf("%q: %v, but %q", expr, err, problem)
		}
		if err != nil {
			return
		}
		s := strings.Join(text.Draw(t, "text"), "")
		if got := p.match(&Request{work: maxWork}, s); got != want.MatchString(s) {
			t.Fatalf("%q in %q: %v", expr, s, got)
		}
	})
}

// TestGlobsAreRegexps: a pattern with stars is a regular expression with .* for each.
func TestGlobsAreRegexps(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "B", "ab", `\*`, `\\`, "*", "."})
	text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "A", "B", "*", `\`, ".", "ab"}))
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(piece, 0, 8).Draw(t, "pattern")
		exact := rapid.Bool().Draw(t, "exact")
		source := "(?is)^"
		if exact {
			source = "(?s)^"
		}
		for _, p := range pieces {
			if p == "*" {
				source += ".*"
			} else {
				source += regexp.QuoteMeta(strings.TrimPrefix(p, `\`))
			}
		}
		glob := strings.Join(pieces, "")
		g, _, problem, _ := newGlob(glob, exact)
		if problem != "" {
			if !strings.Contains(glob, "**") {
				t.Fatalf("%q: %s", glob, problem)
			}
			return
		}
		s := strings.Join(text.Draw(t, "text"), "")
		if got, want := g.match(&Request{work: maxWork}, s), regexp.MustCompile(source+"$").MatchString(s); got != want {
			t.Fatalf("%q of %q: %v, want %v", glob, s, got, want)
		}
	})
}

// TestSetsHoldTheirSpans: looking a value up is asking every span.
func TestSetsHoldTheirSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ints []span[int64]
		var ips []span[netip.Addr]
		var asked []netip.Prefix
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			low := rapid.Int64Range(0, 60).Draw(t, "low")
			ints = append(ints, span[int64]{low, low + rapid.Int64Range(0, 9).Draw(t, "length")})
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(low)})
			bits := rapid.IntRange(24, 32).Draw(t, "bits")
			if rapid.Bool().Draw(t, "six") {
				a, bits = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", low)), 96+bits
			}
			asked = append(asked, netip.PrefixFrom(a, bits))
			ips = append(ips, spanOf(netip.PrefixFrom(a, bits)))
		}
		v := rapid.Int64Range(-1, 80).Draw(t, "value")
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(v)})
		if rapid.Bool().Draw(t, "ask six") {
			addr = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", v&0xff))
		}
		wantInt, wantIP := false, false
		for _, s := range ints {
			wantInt = wantInt || s.low <= v && v <= s.high
		}
		for _, p := range asked {
			wantIP = wantIP || p.Contains(addr)
		}
		if got := newIntSet(ints).has(v); got != wantInt {
			t.Fatalf("%d in %v: %v", v, ints, got)
		}
		if got := newIPSet(ips).has(addr); got != wantIP {
			t.Fatalf("%v in %v: %v", addr, asked, got)
		}
	})
}
