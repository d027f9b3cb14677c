package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// functionNames are the functions of the language, by name. docs/rules.md has a row for each.
var functionNames = []string{"all", "any", "cidr", "cidr6", "concat", "decode_base64", "ends_with", "is_timed_hmac_valid_v0", "len",
	"lookup_json_integer", "lookup_json_string", "lower", "remove_bytes", "starts_with", "substring", "upper", "url_decode"}

// otherFunctions are published ones that bypass rules do not have.
var otherFunctions = []string{"join", "regex_replace", "remove_query_args", "split", "to_string", "uuidv4", "wildcard_replace", "sha256", "encode_base64", "bit_slice", "has_key", "has_value"}

// maxArguments of a call; concat and the JSON functions take any number up to it.
const maxArguments = 32

// call reads name(arguments) and makes the node.
func (p *parser) call(name string, at int) (value, bool) {
	if !slices.Contains(functionNames, name) {
		return value{}, p.failFunction(name, at)
	}
	if !p.enter(at) {
		return value{}, false
	}
	open := p.at
	p.at++
	var args []value
	outer := p.spread
	for p.peek() != ')' {
		if len(args) > 0 && !p.take(",") {
			if p.peek() == 0 {
				return value{}, p.fail(open, "this ( is never closed", "add a )")
			}
			return value{}, p.fail(p.at, "expected , or ) in the arguments of "+name+", not "+p.here(), "")
		}
		if p.peek() == 0 {
			return value{}, p.fail(open, "this ( is never closed", "add a )")
		}
		if len(args) == maxArguments {
			return value{}, p.fail(p.at, name+" has too many arguments", fmt.Sprintf("at most %d", maxArguments))
		}
		p.spread = len(args) == 0
		v, ok := p.expression()
		if !ok {
			return value{}, false
		}
		args = append(args, v)
	}
	p.at++
	c := call{p, name, at, args}
	if len(args) == 0 {
		return value{}, p.fail(at, name+" has no arguments", "write "+usageOf(name))
	}
	p.spread = true // for the first argument, which only any, all and len take whole
	v, ok := c.compile()
	p.spread = outer
	p.leave()
	if !ok {
		return value{}, false
	}
	first := args[0]
	if !first.each() || name == "any" || name == "all" {
		return v, true
	}
	// A function of each element makes an array of as many.
	return value{kind: arrayKind, array: &array{base: first.array.base, size: first.array.size, kind: v.kind, b: v.b, n: v.n, s: v.s}}, true
}

func (p *parser) failFunction(name string, at int) bool {
	l := lower(name)
	switch {
	case slices.Contains(functionNames, l):
		return p.fail(at, clip(name)+" is not a function: names are in lower case", "write "+l)
	case slices.Contains(otherFunctions, l):
		return p.fail(at, name+" is not available to rules of waiting rooms", "of the functions there are "+strings.Join(functionNames, ", "))
	case l == "and" || l == "or" || l == "xor" || l == "not":
		return p.failName(name, at)
	case isComparison(l):
		return p.fail(at, name+" is an operator, not a function", `write http.request.uri.path `+l+` "…"`)
	}
	if _, ok := fieldOf(l); ok {
		return p.fail(at+len(name), name+" is a field, not a function", "remove the parentheses")
	}
	if near := nearest(l, functionNames); near != "" {
		return p.fail(at, clip(name)+" is not a function", "did you mean "+near+"?")
	}
	return p.fail(at, clip(name)+" is not a function", "there are "+strings.Join(functionNames, ", "))
}

func usageOf(name string) string {
	switch name {
	case "any", "all":
		return name + `(http.request.headers["accept"][*] eq "…")`
	case "starts_with", "ends_with":
		return name + `(http.request.uri.path, "…")`
	case "len", "lower", "upper", "decode_base64":
		return name + "(http.host)"
	case "concat":
		return `concat(http.host, http.request.uri.path)`
	case "substring":
		return "substring(http.request.uri.path, 0, 4)"
	case "url_decode":
		return `url_decode(http.request.uri.path, "r")`
	case "remove_bytes":
		return `remove_bytes(http.host, "-")`
	case "cidr":
		return "cidr(ip.src, 24, 48)"
	case "cidr6":
		return "cidr6(ip.src, 48)"
	case "lookup_json_string", "lookup_json_integer":
		return name + `(http.request.headers["x-data"][0], "key")`
	}
	return `is_timed_hmac_valid_v0("key", http.request.uri, 3600, http.request.timestamp.sec, 8)`
}

// call is a call with its arguments read.
type call struct {
	p    *parser
	name string
	at   int
	args []value
}

func (c call) fail(at int, problem string) (value, bool) {
	return value{}, c.p.fail(at, problem, "write "+usageOf(c.name))
}

// takes checks the kinds of the arguments: the first ones must be there. A kind of 0 is not
// checked. Literals are marked by fixed.
func (c call) takes(required int, kinds ...kind) bool {
	for i, v := range c.args {
		if i >= len(kinds) {
			_, ok := c.fail(v.start, fmt.Sprintf("%s takes %d arguments at most", c.name, len(kinds)))
			return ok
		}
		if v.kind != kinds[i] && kinds[i] != 0 {
			what := c.p.written(v)
			problem := fmt.Sprintf("argument %d of %s is %s, not %s", i+1, c.name, kinds[i], v.kind)
			if v.kind == arrayKind && i == 0 && v.array.kind == kinds[i] {
				return c.p.fail(v.start, problem, fmt.Sprintf("each element: %s(%s[*]…), or one: %s[0]", c.name, short(what), short(what)))
			}
			_, ok := c.fail(v.start, problem)
			return ok
		}
	}
	if len(c.args) < required {
		_, ok := c.fail(c.at, fmt.Sprintf("%s takes %d arguments", c.name, required))
		return ok
	}
	return true
}

// field refuses a literal as the first argument.
func (c call) field() bool {
	if !c.args[0].literal {
		return true
	}
	_, ok := c.fail(c.args[0].start, "the first argument of "+c.name+" is a field, not a value")
	return ok
}

// literal refuses anything else from an argument on.
func (c call) literal(from int) bool {
	for i := from; i < len(c.args); i++ {
		if !c.args[i].literal {
			_, ok := c.fail(c.args[i].start, fmt.Sprintf("argument %d of %s must be a literal value, not a field", i+1, c.name))
			return ok
		}
	}
	return true
}

func (c call) compile() (value, bool) {
	first := c.args[0]
	str := func(n strNode) (value, bool) { return value{kind: strKind, s: n}, true }
	switch c.name {
	case "any", "all":
		return c.quantifier()
	case "starts_with", "ends_with":
		if !c.takes(2, strKind, strKind) || !c.field() {
			return value{}, false
		}
		has := strings.HasPrefix
		if c.name == "ends_with" {
			has = strings.HasSuffix
		}
		if part := c.args[1]; part.literal {
			return value{kind: boolKind, b: c.p.spelled(first, []string{part.text}, func(of strNode, texts []string) boolNode {
				return hasPart{of, constant[string]{texts[0]}, has}
			})}, true
		}
		return value{kind: boolKind, b: hasPart{first.s, c.args[1].s, has}}, true
	case "len":
		if first.kind == arrayKind && len(c.args) == 1 {
			return value{kind: intKind, n: arrayLength{first.array.size}}, true
		}
		if first.kind == mapKind {
			what := short(c.p.written(first))
			return value{}, c.p.fail(first.start, what+" is a map: its length is not known", fmt.Sprintf(`write len(%s["name"]) or len(%s.names)`, what, what))
		}
		if !c.takes(1, strKind) {
			return value{}, false
		}
		return value{kind: intKind, n: strLength{first.s}}, true
	case "lower", "upper":
		if !c.takes(1, strKind) || !c.field() {
			return value{}, false
		}
		if c.name == "lower" {
			return str(folded{first.s, lower})
		}
		return str(folded{first.s, upper})
	case "concat":
		var parts concat
		for i, v := range c.args {
			switch v.kind {
			case strKind:
				parts = append(parts, v.s)
			case intKind:
				parts = append(parts, decimal{v.n})
			default:
				return c.fail(v.start, fmt.Sprintf("argument %d of concat is a string or a number, not %s", i+1, v.kind))
			}
		}
		return str(parts)
	case "substring":
		if !c.takes(2, strKind, intKind, intKind) {
			return value{}, false
		}
		n := substring{of: first.s, start: c.args[1].n}
		if len(c.args) == 3 {
			n.end = c.args[2].n
		}
		return str(n)
	case "url_decode":
		if !c.takes(1, strKind, strKind) || !c.field() || !c.literal(1) {
			return value{}, false
		}
		n := urlDecode{of: first.s}
		if len(c.args) == 2 {
			if strings.Trim(c.args[1].text, "ru") != "" {
				return c.fail(c.args[1].start, "the options of url_decode are r (again and again) and u (%uXXXX)")
			}
			n.again, n.unicode = strings.Contains(c.args[1].text, "r"), strings.Contains(c.args[1].text, "u")
		}
		return str(n)
	case "decode_base64":
		if !c.takes(1, strKind) || !c.field() {
			return value{}, false
		}
		return str(decodeBase64{first.s})
	case "remove_bytes":
		if !c.takes(2, strKind, strKind) || !c.field() || !c.literal(1) {
			return value{}, false
		}
		n := removeBytes{of: first.s}
		for i := range len(c.args[1].text) {
			n.gone[c.args[1].text[i]] = true
		}
		return str(n)
	case "cidr", "cidr6":
		return c.network()
	case "lookup_json_string", "lookup_json_integer":
		return c.lookup()
	}
	return c.signed()
}

func (c call) quantifier() (value, bool) {
	first := c.args[0]
	if len(c.args) > 1 {
		return c.fail(c.args[1].start, c.name+" takes one argument")
	}
	if first.kind == arrayKind && first.array.kind == boolKind {
		first, _ = c.p.truth(first)
	}
	if !first.each() || first.kind != boolKind {
		what := short(c.p.written(first))
		switch {
		case first.kind == boolKind:
			return value{}, c.p.fail(first.start, fmt.Sprintf("there is no [*] in the argument of %s", c.name), "write "+usageOf(c.name)+", or the condition without "+c.name)
		case first.each():
			return value{}, c.p.fail(first.end, what+" is not compared", fmt.Sprintf("write %s(%s %s)", c.name, what, exampleOf(first.kind)))
		}
		return c.fail(first.start, what+" is "+first.kind.String()+", and not true or false for each element")
	}
	if c.name == "any" {
		return value{kind: boolKind, b: forAny{first.array.size, first.b}}, true
	}
	return value{kind: boolKind, b: forAll{first.array.size, first.b}}, true
}

// hasPart is starts_with and ends_with.
type hasPart struct {
	of, part strNode
	has      func(s, part string) bool
}

func (n hasPart) truth(r *Request, i int) bool {
	s, ok := n.of.get(r, i)
	part, there := n.part.get(r, i)
	return r.spend(1+len(part)/16) && ok && there && n.has(s, part)
}

type strLength struct{ of strNode }

func (n strLength) get(r *Request, i int) (int64, bool) {
	s, ok := n.of.get(r, i)
	return int64(len(s)), ok
}

type arrayLength struct{ of lengther }

func (n arrayLength) get(r *Request, _ int) (int64, bool) {
	length, ok := n.of.length(r)
	return int64(length), ok
}

type folded struct {
	of strNode
	to func(string) string
}

func (n folded) get(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	if !ok || !r.spend(1+len(s)/2) {
		return "", false
	}
	return n.to(s), true
}

type decimal struct{ of intNode }

func (n decimal) get(r *Request, i int) (string, bool) {
	v, ok := n.of.get(r, i)
	return strconv.FormatInt(v, 10), ok && r.spend(10)
}

type concat []strNode

func (n concat) get(r *Request, i int) (string, bool) {
	var b strings.Builder
	for _, part := range n {
		s, ok := part.get(r, i)
		if !ok || !r.spend(4+len(s)) {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), true
}

type substring struct {
	of         strNode
	start, end intNode // bytes, from the end when negative; no end is all
}

func (n substring) get(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	if !ok || !r.spend(1) {
		return "", false
	}
	place := func(v int64) int {
		if v < 0 {
			v += int64(len(s))
		}
		return int(max(0, min(v, int64(len(s)))))
	}
	start, ok := n.start.get(r, i)
	if !ok {
		return "", false
	}
	end := int64(len(s))
	if n.end != nil {
		if end, ok = n.end.get(r, i); !ok {
			return "", false
		}
	}
	low, high := place(start), place(end)
	if low > high {
		return "", true
	}
	return s[low:high], true
}

type urlDecode struct {
	of             strNode
	again, unicode bool
}

func (n urlDecode) get(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	for ok {
		if !r.spend(1 + len(s)) {
			return "", false
		}
		decoded := decodePercent(s, true, n.unicode)
		if !n.again || len(decoded) == len(s) {
			return decoded, true
		}
		s = decoded
	}
	return "", false
}

type decodeBase64 struct{ of strNode }

func (n decodeBase64) get(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	if !ok || !r.spend(4+len(s)) {
		return "", false
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return string(b), err == nil
}

type removeBytes struct {
	of   strNode
	gone [256]bool
}

func (n removeBytes) get(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	if !ok || !r.spend(4+len(s)) {
		return "", false
	}
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if !n.gone[s[i]] {
			b = append(b, s[i])
		}
	}
	return string(b), true
}

func (c call) network() (value, bool) {
	kinds := []kind{ipKind, intKind, intKind}
	if c.name == "cidr6" {
		kinds = kinds[:2]
	}
	if !c.takes(len(kinds), kinds...) || !c.literal(1) {
		return value{}, false
	}
	n := network{of: c.args[0].ip, four: 32, six: int(min(c.args[len(c.args)-1].number, 129))}
	if c.name == "cidr" {
		n.four = int(min(c.args[1].number, 33))
	}
	if n.four < 1 || n.four > 32 || n.six < 1 || n.six > 128 {
		return c.fail(c.args[1].start, "a network has 1 to 32 bits in IPv4 and 1 to 128 in IPv6")
	}
	return value{kind: ipKind, ip: n}, true
}

type network struct {
	of        ipNode
	four, six int
}

func (n network) get(r *Request, i int) (netip.Addr, bool) {
	a, ok := n.of.get(r, i)
	if !ok || !r.spend(2) {
		return netip.Addr{}, false
	}
	bits := n.six
	if a.Is4() {
		bits = n.four
	}
	p, err := a.Prefix(bits)
	return p.Addr(), err == nil
}

func (c call) signed() (value, bool) {
	if !c.takes(4, strKind, strKind, intKind, intKind, intKind, strKind) || !c.literal(4) {
		return value{}, false
	}
	for _, i := range []int{0, 2} {
		if !c.args[i].literal {
			return c.fail(c.args[i].start, fmt.Sprintf("argument %d of %s must be a literal value, not a field", i+1, c.name))
		}
	}
	n := signed{key: []byte(c.args[0].text), message: c.args[1].s, ttl: c.args[2].number, now: c.args[3].n}
	switch {
	case len(n.key) == 0:
		return c.fail(c.args[0].start, "the key is empty")
	case n.ttl <= 0 || n.ttl > 1<<40:
		return c.fail(c.args[2].start, "the time to live is not a number of seconds above 0")
	}
	if len(c.args) > 4 {
		if v := c.args[4].number; v < 0 || v > 1024 {
			return c.fail(c.args[4].start, "the length of the separator is 0 to 1024")
		}
		n.separator = int(c.args[4].number)
	}
	if len(c.args) > 5 {
		if f := c.args[5].text; f != "" && f != "s" {
			return c.fail(c.args[5].start, `of the flags there is "s": base64 that is safe in URLs`)
		}
		n.urlSafe = c.args[5].text == "s"
	}
	return value{kind: boolKind, b: n}, true
}

// signed checks a signed link: message, separator, ten digits of time, "-", and the MAC of
// message and time.
type signed struct {
	key       []byte
	message   strNode
	ttl       int64 // seconds
	now       intNode
	separator int
	urlSafe   bool
}

func (n signed) truth(r *Request, i int) bool {
	s, ok := n.message.get(r, i)
	now, there := n.now.get(r, i)
	if !ok || !there || !r.spend(1000+len(s)) {
		return false
	}
	// The MAC has no "-" unless it is safe in URLs; the digits before the dash decide.
	for dash := len(s) - 1; dash >= 10; dash-- {
		if s[dash] != '-' {
			continue
		}
		stamp, mac := s[dash-10:dash], s[dash+1:]
		issued, err := strconv.ParseUint(stamp, 10, 63)
		if err != nil || len(mac) < 43 || dash-10-n.separator < 1 {
			continue
		}
		return now-int64(issued) <= n.ttl && n.valid(s[:dash-10-n.separator], stamp, mac)
	}
	return false
}

func (n signed) valid(message, stamp, mac string) bool {
	var sum []byte
	var err error
	if n.urlSafe {
		sum, err = base64.RawURLEncoding.DecodeString(mac)
	} else {
		sum, err = base64.StdEncoding.DecodeString(decodePercent(mac, false, false))
	}
	if err != nil {
		return false
	}
	h := hmac.New(sha256.New, n.key)
	h.Write([]byte(message))
	h.Write([]byte(stamp))
	return hmac.Equal(sum, h.Sum(nil))
}
