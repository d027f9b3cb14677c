package rules

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
)

// parser reads an expression from left to right and builds its nodes as it goes. The first
// fault ends it: methods then return false, and fault says what it was.
type parser struct {
	src    string
	at     int // the byte to read next
	lists  *Lists
	depth  int
	nodes  int
	items  int  // of all sets
	res    int  // regular expressions
	spread bool // [*] may stand here: in the first argument of a call
	fault  *anteroom.Fault
}

// value is a part of an expression, or what a name of the language stands for, with its kind and the node that makes it:
// one of b, n, s and ip for the simple kinds.
type value struct {
	kind  kind
	start int // where it stands
	end   int
	b     boolNode
	n     intNode
	s     strNode
	ip    ipNode

	literal bool // a string or a number as written
	text    string
	number  int64

	array *array                    // arrayKind: the array; else: the array for each of whose elements the value stands
	keyed func(key string) strArray // mapKind: the array under a key
}

// each reports whether the value stands for each element of an array.
func (v value) each() bool { return v.kind != arrayKind && v.array != nil }

func parse(src string, lists *Lists) (boolNode, *anteroom.Fault) {
	p := &parser{src: src, lists: lists}
	if len(src) > anteroom.MaxExpressionLength {
		p.fail(anteroom.MaxExpressionLength, fmt.Sprintf("has %d bytes", len(src)), fmt.Sprintf("at most %d; long sets belong into a list", anteroom.MaxExpressionLength))
		return nil, p.fault
	}
	v, ok := p.expression()
	if !ok {
		return nil, p.fault
	}
	if p.skip(); p.at < len(p.src) {
		p.failRest(v)
		return nil, p.fault
	}
	if v, ok = p.truth(v); !ok {
		return nil, p.fault
	}
	return v.b, nil
}

// fail notes the fault at a byte of the expression. It returns false, for its callers to
// return.
func (p *parser) fail(at int, problem, fix string) bool {
	if p.fault == nil {
		p.fault = &anteroom.Fault{Path: "expression", Problem: problem, Fix: fix, Column: at + 1}
	}
	return false
}

func (p *parser) count(at int) bool {
	if p.nodes++; p.nodes > maxNodes {
		return p.fail(at, "the expression has too many parts", fmt.Sprintf("at most %d fields, values and operators; use in {…}, or several rules", maxNodes))
	}
	return true
}

// enter counts what stands inside each other, so that reading cannot exhaust the stack.
func (p *parser) enter(at int) bool {
	if p.depth++; p.depth > maxDepth {
		return p.fail(at, "the expression is nested too deeply", fmt.Sprintf("at most %d parentheses, calls and nots inside each other", maxDepth))
	}
	return true
}

func (p *parser) leave() { p.depth-- }

func (p *parser) skip() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

// peek returns the next byte that is no space; 0 at the end.
func (p *parser) peek() byte {
	if p.skip(); p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *parser) take(sign string) bool {
	p.skip()
	if strings.HasPrefix(p.src[p.at:], sign) {
		p.at += len(sign)
		return true
	}
	return false
}

// word returns the name that stands next, without taking it.
func (p *parser) word() string {
	p.skip()
	end := p.at
	for end < len(p.src) && isWordByte(p.src[end]) {
		end++
	}
	return p.src[p.at:end]
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// takeEither takes one of the two notations of an operator.
func (p *parser) takeEither(english, sign string) bool {
	if p.word() == english {
		p.at += len(english)
		return true
	}
	return p.take(sign)
}

// written returns the value as it stands in the expression.
func (p *parser) written(v value) string { return strings.TrimSpace(p.src[v.start:v.end]) }

// here quotes what stands next, for a message.
func (p *parser) here() string {
	if w := p.word(); w != "" {
		return clip(w)
	}
	if p.at >= len(p.src) {
		return "the end"
	}
	rest := p.src[p.at:]
	if rest[0] == '"' {
		return "a string"
	}
	for i := range rest {
		if i > 0 {
			return clip(rest[:i])
		}
	}
	return clip(rest)
}

// expression is: either { "or" either }. The operators, weakest first, are or, xor, and.
func (p *parser) expression() (value, bool) {
	return p.chain("or", "||", (*parser).either, func(n []boolNode) boolNode { return anyOf(n) })
}

func (p *parser) either() (value, bool) {
	return p.chain("xor", "^^", (*parser).both, func(n []boolNode) boolNode { return oddOf(n) })
}

func (p *parser) both() (value, bool) {
	return p.chain("and", "&&", (*parser).unary, func(n []boolNode) boolNode { return allOf(n) })
}

func (p *parser) chain(english, sign string, part func(*parser) (value, bool), join func([]boolNode) boolNode) (value, bool) {
	first, ok := part(p)
	if !ok {
		return value{}, false
	}
	var nodes []boolNode
	for p.takeEither(english, sign) {
		at := p.at
		if nodes == nil {
			if first, ok = p.truth(first); !ok {
				return value{}, false
			}
			nodes = append(nodes, first.b)
		}
		next, ok := part(p)
		if !ok || !p.count(at) {
			return value{}, false
		}
		if next, ok = p.truth(next); !ok {
			return value{}, false
		}
		if first.each() != next.each() || first.each() && first.array.base != next.array.base {
			return value{}, p.fail(next.start, "one side does not cover each element of the same array", "write any(…) "+english+" any(…)")
		}
		nodes = append(nodes, next.b)
	}
	if nodes == nil {
		return first, true
	}
	return value{kind: boolKind, start: first.start, end: p.at, b: join(nodes), array: first.array}, true
}

func (p *parser) unary() (value, bool) {
	p.skip()
	start := p.at
	if p.word() != "not" && (p.peek() != '!' || strings.HasPrefix(p.src[p.at:], "!=")) {
		return p.comparison()
	}
	p.takeEither("not", "!")
	if !p.enter(start) || !p.count(start) {
		return value{}, false
	}
	v, ok := p.unary()
	if !ok {
		return value{}, false
	}
	p.leave()
	if v, ok = p.truth(v); !ok {
		return value{}, false
	}
	return value{kind: boolKind, start: start, end: p.at, b: notNode{v.b}, array: v.array}, true
}

// truth takes a value where something is true or false: an array of these stands for each
// of its elements.
func (p *parser) truth(v value) (value, bool) {
	if v.kind == arrayKind && v.array.kind == boolKind && p.spread {
		return value{kind: boolKind, start: v.start, end: v.end, b: v.array.b, array: v.array}, true
	}
	if v.kind == boolKind {
		return v, true
	}
	return value{}, p.failBare(v)
}

// failBare: a value stands where a condition is needed.
func (p *parser) failBare(v value) bool {
	what := p.written(v)
	switch {
	case v.literal:
		return p.fail(v.start, "a value alone is not a condition", "begin with a field: http.host eq "+short(what))
	case v.kind == mapKind:
		return p.fail(v.start, clip(what)+" is a map, not a condition", fmt.Sprintf(`look at one of its values: any(%s["name"][*] eq "…"), or test that it is there: len(%s["name"]) >= 0`, short(what), short(what)))
	case v.kind == arrayKind && v.array.kind == boolKind:
		return p.fail(v.start, clip(what)+" is true or false for each element", "write any(…) or all(…) around it")
	case v.kind == arrayKind:
		return p.fail(v.start, clip(what)+" is an array, not a condition", fmt.Sprintf("any(%s[*] eq …), or len(%s) >= 0 to test that it is there", short(what), short(what)))
	}
	return p.fail(v.end, clip(what)+" is "+v.kind.String()+", not a condition", "compare it: "+short(what)+" "+exampleOf(v.kind))
}

func exampleOf(k kind) string {
	switch k {
	case intKind:
		return "eq 443"
	case ipKind:
		return "in {192.0.2.0/24}"
	}
	return `eq "…"`
}

// short keeps a piece of the expression in a message readable.
func short(s string) string {
	if len(s) > 60 {
		return "…"
	}
	return s
}

// failRest: something stands behind a whole expression.
func (p *parser) failRest(v value) bool {
	w := p.word()
	switch {
	case p.src[p.at] == ')':
		return p.fail(p.at, "this ) closes nothing", "remove it, or open a ( before")
	case p.src[p.at] == '[':
		return p.fail(p.at, clip(p.written(v))+" has no elements", "remove the brackets")
	case strings.EqualFold(w, "and") || strings.EqualFold(w, "or") || strings.EqualFold(w, "xor") || strings.EqualFold(w, "not"):
		if w == "not" {
			return p.fail(p.at, `"not" is between two conditions`, "write and not, or or not")
		}
		return p.fail(p.at, clip(w)+" is not known: operators are in lower case", "write "+lower(w))
	case strings.HasPrefix(p.src[p.at:], "&"):
		return p.fail(p.at, "& is not an operator", "write and, or &&")
	case strings.HasPrefix(p.src[p.at:], "|"):
		return p.fail(p.at, "| is not an operator", "write or, or ||")
	case strings.HasPrefix(p.src[p.at:], "^"):
		return p.fail(p.at, "^ is not an operator", "write xor, or ^^")
	case v.kind == boolKind && (isComparison(lower(w)) || strings.IndexByte("=!<>~", p.src[p.at]) >= 0):
		return p.fail(p.at, "a true or false value is not compared", "it is a condition by itself: write only the field, or not and the field")
	}
	return p.fail(p.at, "expected and, or, xor or the end, not "+p.here(), "")
}

var comparisons = []string{"eq", "ne", "lt", "le", "gt", "ge", "contains", "matches", "wildcard", "strict", "in"}

func isComparison(w string) bool { return slices.Contains(comparisons, w) }

var signs = []struct{ sign, word string }{
	{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}, {"~", "matches"},
}

// comparison is: operand [ operator value ].
func (p *parser) comparison() (value, bool) {
	if p.peek() == '(' {
		start := p.at
		p.at++
		if !p.enter(start) {
			return value{}, false
		}
		v, ok := p.expression()
		if !ok {
			return value{}, false
		}
		if v, ok = p.truth(v); !ok {
			return value{}, false
		}
		if !p.take(")") {
			if p.skip(); p.at < len(p.src) {
				return value{}, p.failRest(v)
			}
			return value{}, p.fail(start, "this ( is never closed", "add a )")
		}
		p.leave()
		v.start, v.end = start, p.at
		return v, true
	}
	left, ok := p.operand()
	if !ok {
		return value{}, false
	}
	op, at, ok := p.operator(left)
	if !ok || op == "" {
		return left, ok
	}
	return p.compare(left, op, at)
}

// operator takes a comparison operator; "" when there is none.
func (p *parser) operator(left value) (op string, at int, ok bool) {
	p.skip()
	at = p.at
	w := p.word()
	if w == "" {
		for _, s := range signs {
			if p.take(s.sign) {
				if s.sign == "==" && p.take("=") {
					return "", at, p.fail(at, "=== is not an operator", "write eq, or ==")
				}
				return s.word, at, true
			}
		}
		if p.take("=~") || p.take("!~") {
			return "", at, p.fail(at, p.src[at:p.at]+" is not an operator", `write matches, or ~; for the opposite, not field matches "…"`)
		}
		if p.take("=") {
			return "", at, p.fail(at, "= is not an operator", "write eq, or ==")
		}
		return "", at, true
	}
	if isComparison(w) {
		p.at += len(w)
		if w == "strict" {
			if p.word() != "wildcard" {
				return "", at, p.fail(p.at, "expected wildcard after strict, not "+p.here(), "write strict wildcard")
			}
			p.at += len("wildcard")
			w = "strict wildcard"
		}
		return w, at, true
	}
	name := short(p.written(left))
	switch l := lower(w); {
	case l == "and" || l == "or" || l == "xor":
		if w != l {
			return "", at, p.fail(at, clip(w)+" is not known: operators are in lower case", "write "+l)
		}
		return "", at, true
	case isComparison(l):
		return "", at, p.fail(at, clip(w)+" is not known: operators are in lower case", "write "+l)
	case l == "starts_with" || l == "ends_with":
		return "", at, p.fail(at, w+" is a function, not an operator", fmt.Sprintf(`write %s(%s, "…")`, l, name))
	case l == "not" && left.kind == boolKind:
		return "", at, true
	case l == "not":
		p.at += len(w)
		next := lower(p.word())
		if !isComparison(next) {
			next = "eq"
		}
		return "", at, p.fail(at, "put not before the condition, not inside it", fmt.Sprintf("write not %s %s …", name, next))
	case l == "is" || l == "equals" || l == "equal":
		return "", at, p.fail(at, clip(w)+" is not an operator", "write eq, or ==")
	case l == "like" || l == "glob":
		return "", at, p.fail(at, clip(w)+" is not an operator", `write wildcard: http.host wildcard "*.example.com"`)
	}
	if near := nearest(lower(w), comparisons); near != "" {
		return "", at, p.fail(at, clip(w)+" is not an operator", "did you mean "+near+"?")
	}
	return "", at, true
}

// compare reads the right side and makes the node.
func (p *parser) compare(left value, op string, at int) (value, bool) {
	if !p.count(at) {
		return value{}, false
	}
	out := value{kind: boolKind, start: left.start, array: left.array}
	name := short(p.written(left))
	fail := func(problem, fix string) (value, bool) { return value{}, p.fail(at, problem, fix) }
	if left.literal {
		return value{}, p.fail(left.start, "a comparison begins with a field or a function", "exchange the two sides")
	}
	var ok bool
	switch left.kind {
	case boolKind:
		return fail("a true or false value is not compared", fmt.Sprintf("write %s, or not %s", name, name))
	case mapKind:
		return fail(clip(name)+" is a map: it cannot be compared", fmt.Sprintf(`any(%s["name"][*] %s …)`, name, op))
	case arrayKind:
		return fail(clip(name)+" is an array: it cannot be compared", fmt.Sprintf("any(%s[*] %s …), all(…), or one element: %s[0]", name, op, name))
	case intKind:
		out.b, ok = p.compareInt(left, op, at)
	case ipKind:
		out.b, ok = p.compareIP(left, op, at)
	case strKind:
		out.b, ok = p.compareStr(left, op, at)
	}
	out.end = p.at
	return out, ok
}

func orderOf(op string) (order, bool) {
	switch op {
	case "lt":
		return order{below: true}, true
	case "le":
		return order{below: true, equal: true}, true
	case "gt":
		return order{above: true}, true
	case "ge":
		return order{above: true, equal: true}, true
	}
	return order{}, false
}

func (p *parser) compareInt(left value, op string, at int) (boolNode, bool) {
	if op == "in" {
		return p.inInts(left)
	}
	o, isOrder := orderOf(op)
	if !isOrder && op != "eq" && op != "ne" {
		return nil, p.fail(at, fmt.Sprintf("%s does not work with numbers", op), "use eq, ne, lt, le, gt, ge or in")
	}
	n, ok := p.integer()
	if !ok {
		return nil, false
	}
	if isOrder {
		return ordered[int64]{left.n, n, o, 1}, true
	}
	return equal[int64]{left.n, n, op == "ne", 1}, true
}

func (p *parser) compareIP(left value, op string, at int) (boolNode, bool) {
	if op == "in" {
		return p.inIPs(left)
	}
	if op != "eq" && op != "ne" {
		return nil, p.fail(at, fmt.Sprintf("%s does not work with addresses", op), "use eq, ne or in: ip.src in {192.0.2.0/24}")
	}
	p.skip()
	start := p.at
	s, text, ok := p.addresses()
	if !ok {
		return nil, false
	}
	if s.low != s.high || strings.ContainsRune(text, '/') {
		not := ""
		if op == "ne" {
			not = "not "
		}
		return nil, p.fail(start, "use a network or range only after in", fmt.Sprintf("write %s%s in {%s}", not, short(p.written(left)), text))
	}
	return equal[netip.Addr]{left.ip, s.low, op == "ne", 1}, true
}

func (p *parser) compareStr(left value, op string, at int) (boolNode, bool) {
	if op == "in" {
		return p.inStrings(left)
	}
	lit, ok := p.str(op)
	if !ok {
		return nil, false
	}
	if o, isOrder := orderOf(op); isOrder {
		return ordered[string]{left.s, lit.text, o, stepsFor(lit.text)}, true
	}
	switch op {
	case "contains":
		return p.spelled(left, []string{lit.text}, func(of strNode, texts []string) boolNode { return contains{of, texts[0]} }), true
	case "matches":
		if p.res++; p.res > maxRegexps {
			return nil, p.fail(at, "the expression has too many regular expressions", fmt.Sprintf("at most %d; join them with |", maxRegexps))
		}
		re, off, problem, fix := newPattern(lit.text)
		if problem != "" {
			return nil, p.fail(lit.place(off), problem, fix)
		}
		return matches{left.s, re}, true
	case "wildcard", "strict wildcard":
		g, off, problem, fix := newGlob(lit.text, op == "strict wildcard")
		if problem != "" {
			return nil, p.fail(lit.place(off), problem, fix)
		}
		return p.spelled(left, g.parts, func(of strNode, parts []string) boolNode { return globs{of, globOf(parts, g.exact)} }), true
	}
	is := p.spelled(left, []string{lit.text}, func(of strNode, texts []string) boolNode {
		return equal[string]{of, texts[0], false, stepsFor(texts[0])}
	})
	if op == "eq" {
		return is, true
	}
	if _, path := is.(anySpelling); path {
		return notNode{is}, true // a path is never missing
	}
	return equal[string]{left.s, lit.text, true, stepsFor(lit.text)}, true
}

// operand is a field or a call with its brackets, or a value.
func (p *parser) operand() (value, bool) {
	c := p.peek()
	start := p.at
	if !p.count(start) {
		return value{}, false
	}
	var v value
	w := p.word()
	switch {
	case c == 0:
		if start == 0 || strings.TrimSpace(p.src) == "" {
			return value{}, p.fail(0, "the expression is empty", "write a condition like ip.src eq 192.0.2.1")
		}
		return value{}, p.fail(start, "something is missing at the end", "a condition like ip.src eq 192.0.2.1")
	case c == '"' || c == 'r' && p.isRaw():
		lit, ok := p.str("")
		if !ok {
			return value{}, false
		}
		v = value{kind: strKind, literal: true, text: lit.text, s: constant[string]{lit.text}}
	case isDigit(c) || c == '-' && p.at+1 < len(p.src) && isDigit(p.src[p.at+1]):
		n, ok := p.integer()
		if !ok {
			return value{}, false
		}
		v = value{kind: intKind, literal: true, number: n, n: constant[int64]{n}}
	case c == '\'':
		return value{}, p.fail(start, "strings need double quotes", `write "…"`)
	case c == '$':
		return value{}, p.fail(start, "use a list only after in", "write ip.src in "+short(p.src[p.at:min(len(p.src), p.at+20)]))
	case c == '{':
		return value{}, p.fail(start, "use a set only after in", "write ip.src in {192.0.2.0/24}")
	case w == "":
		return value{}, p.fail(start, "expected a field or a function, not "+p.here(), "a condition is like ip.src eq 192.0.2.1")
	default:
		p.at += len(w)
		var ok bool
		if p.peek() == '(' {
			v, ok = p.call(w, start)
		} else {
			v, ok = p.field(w, start)
		}
		if !ok {
			return value{}, false
		}
	}
	v.start, v.end = start, start+len(strings.TrimRight(p.src[start:p.at], " \t\r\n"))
	for p.peek() == '[' {
		var ok bool
		if v, ok = p.index(v); !ok {
			return value{}, false
		}
	}
	p.at = v.end
	return v, true
}

func (p *parser) field(name string, at int) (value, bool) {
	v, ok := fieldOf(name)
	if !ok {
		p.at = at + len(name)
		return value{}, p.failName(name, at)
	}
	if v.kind == arrayKind {
		named := *v.array
		named.base = name
		v.array = &named
	}
	return v, true
}

// failName: a name that is no field.
func (p *parser) failName(name string, at int) bool {
	l := lower(name)
	switch {
	case l == "and" || l == "or" || l == "xor":
		return p.fail(at, "expected a condition before "+name, "write one: ssl "+l+" …")
	case l == "not":
		return p.fail(at, clip(name)+" is not known: operators are in lower case", "write not")
	case l == "true" || l == "false":
		return p.fail(at, clip(name)+" is not a value here", "a true or false field is a condition by itself: ssl, or not ssl")
	case isComparison(l):
		return p.fail(at, "expected a field before "+name, "write one: http.host "+l+" …")
	case slices.Contains(functionNames, l):
		return p.fail(at, name+" is a function", "write "+l+"(…)")
	}
	if right := misnamed[l]; right != "" {
		return p.fail(at, clip(name)+" is not a field", "the field is "+right)
	}
	for _, e := range elsewhere {
		if strings.HasPrefix(l, e.prefix) {
			if near := nearest(l, slices.Sorted(maps.Keys(fields))); near != "" && e.prefix == "cf." {
				return p.fail(at, clip(name)+" is not a field", "did you mean "+near+"?")
			}
			return p.fail(at, clip(name)+" "+e.reason, e.fix)
		}
	}
	if _, ok := fieldOf(l); ok {
		return p.fail(at, clip(name)+" is not a field: names are in lower case", "write "+l)
	}
	if near := nearest(l, slices.Sorted(maps.Keys(fields))); near != "" {
		return p.fail(at, clip(name)+" is not a field", "did you mean "+near+"?")
	}
	return p.fail(at, clip(name)+" is not a field", "docs/rules.md lists the fields; a string stands in double quotes")
}

// index reads one pair of brackets behind a value.
func (p *parser) index(v value) (value, bool) {
	at := p.at
	p.at++
	out := value{start: v.start}
	what := p.written(v)
	switch c := p.peek(); {
	case c == '*':
		if v.kind != arrayKind {
			return value{}, p.fail(at, clip(what)+" is "+v.kind.String()+", and has no elements to go through", "use [*] after an array")
		}
		if !p.spread {
			return value{}, p.fail(at, "use [*] only in the first argument of a function", "write any("+short(what)+"[*] …) or all(…)")
		}
		p.at++
		out.kind, out.array = v.array.kind, v.array
		out.b, out.n, out.s = v.array.b, v.array.n, v.array.s
	case c == '"' || c == 'r' && p.isRaw():
		keyAt := p.at
		key, ok := p.str("")
		if !ok {
			return value{}, false
		}
		if v.kind != mapKind {
			return value{}, p.fail(at, clip(what)+" is "+v.kind.String()+": it has no names", "remove the brackets, or write a number")
		}
		if l := lower(key.text); what == "http.request.headers" && l != key.text {
			return value{}, p.fail(keyAt, "names of headers are in lower case here", fmt.Sprintf("write %q", l))
		}
		node := v.keyed(key.text)
		out.kind = arrayKind
		out.array = &array{base: what + fmt.Sprintf("[%q]", key.text), size: node, kind: strKind, s: node}
	case isDigit(c):
		n, ok := p.integer()
		if !ok {
			return value{}, false
		}
		if v.kind == mapKind {
			return value{}, p.fail(at, clip(what)+" is a map: its values have names", fmt.Sprintf(`write %s["name"]`, short(what)))
		}
		if v.kind != arrayKind {
			return value{}, p.fail(at, clip(what)+" is "+v.kind.String()+", and has no elements", "remove the brackets")
		}
		if n > 1<<30 {
			return value{}, p.fail(at+1, "there is no element with that number", "elements count from 0")
		}
		out.kind = v.array.kind
		switch out.kind {
		case strKind:
			out.s = element[string]{v.array, v.array.s, int(n)}
		case intKind:
			out.n = element[int64]{v.array, v.array.n, int(n)}
		case boolKind:
			out.b = boolElement{v.array, int(n)}
		}
	default:
		return value{}, p.fail(p.at, "expected a number, a string or * in the brackets, not "+p.here(), `write [0], ["name"] or [*]`)
	}
	if !p.take("]") {
		return value{}, p.fail(at, "this [ is never closed", "add a ]")
	}
	out.end = p.at
	return out, true
}

func (p *parser) integer() (int64, bool) {
	p.skip()
	start := p.at
	end := start
	if end < len(p.src) && p.src[end] == '-' {
		end++
	}
	digits := end
	for end < len(p.src) && (isDigit(p.src[end]) || end == digits+1 && p.src[digits] == '0' && p.src[end]|' ' == 'x' || isHex(p.src[digits:end]) && isHexDigit(p.src[end])) {
		end++
	}
	if end == start {
		fix := "write a number without quotes"
		if w := p.word(); w != "" && w[0] >= 'a' && w[0] <= 'z' {
			fix = "the right side is a value, not a field"
		}
		return 0, p.fail(start, "expected a number, not "+p.here(), fix)
	}
	if end < len(p.src) && isWordByte(p.src[end]) && !strings.HasPrefix(p.src[end:], "..") {
		return 0, p.fail(start, p.here()+" is not a whole number", "write digits only, or 0x1f for hexadecimal")
	}
	base := 10
	if digits+1 < end && p.src[digits] == '0' {
		base = 0 // 0x1f is hexadecimal, and 017 octal, as published
	}
	n, err := strconv.ParseInt(p.src[start:end], base, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, p.fail(start, clip(p.src[start:end])+" is not a number", "0 in front means octal and 0x hexadecimal")
	}
	if err != nil {
		return 0, p.fail(start, clip(p.src[start:end])+" is not a 64-bit number", "write a smaller one")
	}
	p.at = end
	return n, true
}

// isHex reports whether the digits so far are those of a hexadecimal number.
func isHex(digits string) bool { return len(digits) >= 2 && digits[0] == '0' && digits[1]|' ' == 'x' }

func isHexDigit(c byte) bool { return isDigit(c) || c|' ' >= 'a' && c|' ' <= 'f' }

// addresses reads an address, a network or a range, and returns its text.
func (p *parser) addresses() (span[netip.Addr], string, bool) {
	p.skip()
	start := p.at
	end := start
	for end < len(p.src) && (isWordByte(p.src[end]) || strings.IndexByte(":/%", p.src[end]) >= 0) {
		end++
	}
	text := p.src[start:end]
	fix := "write 192.0.2.1, 2001:db8::1, or after in a network like 192.0.2.0/24"
	if end == start {
		if p.peek() == '"' {
			fix = "write addresses without quotes: " + fix[len("write "):]
		}
		return span[netip.Addr]{}, "", p.fail(start, "expected an address, not "+p.here(), fix)
	}
	p.at = end
	if low, high, isRange := strings.Cut(text, ".."); isRange {
		a, okLow := parseAddr(low)
		b, okHigh := parseAddr(high)
		switch {
		case !okLow || !okHigh || a.Is4() != b.Is4():
			return span[netip.Addr]{}, "", p.fail(start, clip(text)+" is not a range of addresses", "write 192.0.2.1..192.0.2.9")
		case b.Less(a):
			return span[netip.Addr]{}, "", p.fail(start, "the range "+clip(text)+" ends before it begins", "exchange its ends")
		}
		return span[netip.Addr]{a, b}, text, true
	}
	s, ok := parseNetwork(text)
	if !ok {
		return s, "", p.fail(start, clip(text)+" is not an address", fix)
	}
	return s, text, true
}

// set reads in {…} or in $list; item reads one element.
func (p *parser) set(left value, wantList string, item func() bool) (*list, bool) {
	name := short(p.written(left))
	switch c := p.peek(); {
	case c == '$':
		return p.named(left, wantList)
	case c != '{':
		fix := "write in {…} with values between, or in $list"
		if c == '"' || isDigit(c) {
			end := p.at
			for end < len(p.src) && strings.IndexByte(" )", p.src[end]) < 0 {
				end++
			}
			fix = fmt.Sprintf("write %s in {%s}", name, short(p.src[p.at:end]))
		}
		return nil, p.fail(p.at, "expected { or $ after in, not "+p.here(), fix)
	}
	open := p.at
	p.at++
	for n := 0; ; n++ {
		switch p.peek() {
		case 0:
			return nil, p.fail(open, "this { is never closed", "add a }")
		case ',':
			return nil, p.fail(p.at, "values of a set are separated by spaces", "remove the comma")
		case '}':
			if n == 0 {
				return nil, p.fail(open, "the set is empty", "write at least one value")
			}
			p.at++
			return nil, true
		}
		if p.items++; p.items > maxSetItems {
			return nil, p.fail(p.at, "the sets have too many values", fmt.Sprintf("at most %d in one expression; make a list", maxSetItems))
		}
		if !item() {
			return nil, false
		}
	}
}

func (p *parser) named(left value, want string) (*list, bool) {
	at := p.at
	p.at++
	name := p.word()
	if strings.HasPrefix(name, "cf.") {
		return nil, p.fail(at, "$"+name+" is a list of another service", "make a list of your own")
	}
	var l *list
	var names []string
	if p.lists != nil {
		l = p.lists.byName[name]
		names = slices.Sorted(maps.Keys(p.lists.byName))
	}
	if l == nil {
		fix := "create it first"
		if near := nearest(name, names); near != "" {
			fix = "did you mean $" + near + "?"
		} else if len(names) > 0 {
			fix += "; there are $" + strings.Join(names[:min(5, len(names))], ", $")
		}
		return nil, p.fail(at, "there is no list $"+short(name), fix)
	}
	if l.kind != want {
		return nil, p.fail(at, fmt.Sprintf("$%s is a list of kind %s", name, l.kind), fmt.Sprintf("%s needs one of kind %s", short(p.written(left)), want))
	}
	p.at += len(name)
	return l, true
}

func (p *parser) inInts(left value) (boolNode, bool) {
	var spans []span[int64]
	l, ok := p.set(left, anteroom.ListOfASNs, func() bool {
		start := p.at
		low, ok := p.integer()
		if !ok {
			return false
		}
		high := low
		if p.take("..") {
			if high, ok = p.integer(); !ok {
				return false
			}
			if high < low {
				return p.fail(start, "the range "+p.src[start:p.at]+" ends before it begins", "exchange its ends")
			}
		}
		spans = append(spans, span[int64]{low, high})
		return true
	})
	if !ok {
		return nil, false
	}
	if l != nil {
		return isIn[int64]{left.n, l.asns, stepsInNumbers}, true
	}
	return isIn[int64]{left.n, newIntSet(spans), stepsInNumbers}, true
}

func (p *parser) inIPs(left value) (boolNode, bool) {
	var spans []span[netip.Addr]
	l, ok := p.set(left, anteroom.ListOfIPs, func() bool {
		s, _, ok := p.addresses()
		spans = append(spans, s)
		return ok
	})
	if !ok {
		return nil, false
	}
	if l != nil {
		return isIn[netip.Addr]{left.ip, l.ips, stepsInIPs}, true
	}
	return isIn[netip.Addr]{left.ip, newIPSet(spans), stepsInIPs}, true
}

func (p *parser) inStrings(left value) (boolNode, bool) {
	var items []string
	l, ok := p.set(left, anteroom.ListOfHostnames, func() bool {
		lit, ok := p.str("in")
		items = append(items, lit.text)
		return ok
	})
	if !ok {
		return nil, false
	}
	if l != nil {
		return isIn[string]{left.s, l.hosts, stepsInHosts}, true
	}
	return p.spelled(left, items, func(of strNode, texts []string) boolNode { return isIn[string]{of, newStrSet(texts), stepsInTexts} }), true
}
