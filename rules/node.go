package rules

import (
	"net/netip"
	"strings"
)

// A compiled expression is a tree of these nodes. The index is that of the element when the
// node stands for each element of an array, and means nothing otherwise. The second result
// is false for a missing value: a header that was not sent, an unknown place.
type (
	boolNode interface {
		truth(r *Request, i int) bool
	}
	intNode interface {
		number(r *Request, i int) (int64, bool)
	}
	strNode interface {
		text(r *Request, i int) (string, bool)
	}
	ipNode interface {
		address(r *Request, i int) (netip.Addr, bool)
	}
	lengther interface {
		length(r *Request) (int, bool)
	}
	strArray interface {
		lengther
		strNode
	}
)

// Nodes that are functions of the request alone: fields.
type (
	boolField func(*Request) bool
	intField  func(*Request) (int64, bool)
	strField  func(*Request) (string, bool)
	ipField   func(*Request) (netip.Addr, bool)
)

func (f boolField) truth(r *Request, _ int) bool               { return r.spend(1) && f(r) }
func (f intField) number(r *Request, _ int) (int64, bool)      { return f(r) }
func (f strField) text(r *Request, _ int) (string, bool)       { return f(r) }
func (f ipField) address(r *Request, _ int) (netip.Addr, bool) { return f(r) }

type (
	intLiteral int64
	strLiteral string
)

func (n intLiteral) number(*Request, int) (int64, bool) { return int64(n), true }
func (s strLiteral) text(*Request, int) (string, bool)  { return string(s), true }

type allOf []boolNode

func (n allOf) truth(r *Request, i int) bool {
	for _, one := range n {
		if !one.truth(r, i) || r.work < 0 {
			return false
		}
	}
	return true
}

type anyOf []boolNode

func (n anyOf) truth(r *Request, i int) bool {
	for _, one := range n {
		if one.truth(r, i) {
			return true
		}
		if r.work < 0 {
			return false
		}
	}
	return false
}

type oddOf []boolNode

func (n oddOf) truth(r *Request, i int) bool {
	odd := false
	for _, one := range n {
		odd = odd != one.truth(r, i)
	}
	return odd
}

type notNode struct{ of boolNode }

func (n notNode) truth(r *Request, i int) bool { return !n.of.truth(r, i) }

// forAny and forAll walk over an array. A missing array is neither.
type forAny struct {
	over lengther
	each boolNode
}

func (n forAny) truth(r *Request, _ int) bool {
	length, _ := n.over.length(r)
	for i := range length {
		if n.each.truth(r, i) {
			return true
		}
		if !r.spend(3) {
			return false
		}
	}
	return false
}

type forAll struct {
	over lengther
	each boolNode
}

func (n forAll) truth(r *Request, _ int) bool {
	length, ok := n.over.length(r)
	for i := range length {
		if !n.each.truth(r, i) || !r.spend(3) {
			return false
		}
	}
	return ok
}

type strEqual struct {
	of   strNode
	want string
	not  bool
}

func (n strEqual) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return r.spend(1+len(n.want)/16) && ok && (s == n.want) != n.not
}

type intEqual struct {
	of   intNode
	want int64
	not  bool
}

func (n intEqual) truth(r *Request, i int) bool {
	v, ok := n.of.number(r, i)
	return r.spend(1) && ok && (v == n.want) != n.not
}

type ipEqual struct {
	of   ipNode
	want netip.Addr
	not  bool
}

func (n ipEqual) truth(r *Request, i int) bool {
	v, ok := n.of.address(r, i)
	return r.spend(1) && ok && (v == n.want) != n.not
}

// order is lt, le, gt or ge, as the signs of a comparison that satisfy it.
type order struct{ below, equal, above bool }

func (o order) holds(cmp int) bool {
	switch {
	case cmp < 0:
		return o.below
	case cmp > 0:
		return o.above
	}
	return o.equal
}

type strOrder struct {
	of   strNode
	want string
	order
}

func (n strOrder) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return r.spend(1+len(n.want)/16) && ok && n.holds(strings.Compare(s, n.want))
}

type intOrder struct {
	of   intNode
	want int64
	order
}

func (n intOrder) truth(r *Request, i int) bool {
	v, ok := n.of.number(r, i)
	cmp := 0
	if v < n.want {
		cmp = -1
	} else if v > n.want {
		cmp = 1
	}
	return r.spend(1) && ok && n.holds(cmp)
}

type contains struct {
	of   strNode
	part string
}

func (n contains) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return ok && r.spend(1+len(s)/4) && strings.Contains(s, n.part)
}

type matches struct {
	of strNode
	re *pattern
}

func (n matches) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return ok && r.spend(1) && n.re.match(r, s)
}

type globs struct {
	of strNode
	*glob
}

func (n globs) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return ok && r.spend(1) && n.match(r, s)
}

type strIn struct {
	of  strNode
	set *strSet
}

func (n strIn) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return ok && r.spend(8+len(s)/8) && n.set.has(s)
}

type intIn struct {
	of  intNode
	set intSet
}

func (n intIn) truth(r *Request, i int) bool {
	v, ok := n.of.number(r, i)
	return ok && r.spend(8) && n.set.has(v)
}

type ipIn struct {
	of  ipNode
	set ipSet
}

func (n ipIn) truth(r *Request, i int) bool {
	v, ok := n.of.address(r, i)
	return ok && r.spend(16) && n.set.has(v)
}

type hostIn struct {
	of  strNode
	set *hostSet
}

func (n hostIn) truth(r *Request, i int) bool {
	s, ok := n.of.text(r, i)
	return ok && r.spend(16+len(s)) && n.set.has(s)
}

// array is where elements come from; one of the nodes is set, by the kind of the elements.
type array struct {
	base string // the field and key that it comes from, as written: equal bases are of equal length
	size lengther
	kind kind
	b    boolNode
	n    intNode
	s    strNode
}

// element nodes take a fixed element of an array.
type (
	strElement struct {
		of    *array
		index int
	}
	intElement  struct{ strElement }
	boolElement struct{ strElement }
)

func (n strElement) there(r *Request) bool {
	length, ok := n.of.size.length(r)
	return ok && n.index < length
}

func (n strElement) text(r *Request, _ int) (string, bool) {
	if !n.there(r) {
		return "", false
	}
	return n.of.s.text(r, n.index)
}

func (n intElement) number(r *Request, _ int) (int64, bool) {
	if !n.there(r) {
		return 0, false
	}
	return n.of.n.number(r, n.index)
}

func (n boolElement) truth(r *Request, _ int) bool {
	return n.there(r) && n.of.b.truth(r, n.index)
}

// headerValues is the array of one header's values.
type headerValues string // the canonical name

func (n headerValues) length(r *Request) (int, bool) {
	r.spend(4)
	values, ok := r.Header[string(n)]
	return len(values), ok
}

func (n headerValues) text(r *Request, i int) (string, bool) {
	r.spend(4)
	values := r.Header[string(n)]
	if i >= len(values) {
		return "", false
	}
	return values[i], true
}

// hostHeader is the array of the Host header, which net/http keeps apart.
type hostHeader struct{}

func (hostHeader) length(r *Request) (int, bool) { return 1, r.Host != "" }

func (hostHeader) text(r *Request, _ int) (string, bool) { return r.Host, true }

// named is the array of the values that go by one name.
type named struct {
	list func(*Request) []pair
	name string
}

func (n named) length(r *Request) (int, bool) {
	count := 0
	list := n.list(r)
	if !r.spend(2*len(list) + 1) {
		return 0, false
	}
	for i := range list {
		if list[i].name == n.name {
			count++
		}
	}
	return count, count > 0
}

func (n named) text(r *Request, i int) (string, bool) {
	list := n.list(r)
	if len(list) == 0 {
		return "", false
	}
	c := &r.cursor
	if c.list != &list[0] || c.name != n.name || c.index > i {
		*c = cursor{list: &list[0], name: n.name, index: -1, at: -1}
	}
	for c.index < i {
		if c.at++; c.at >= len(list) || !r.spend(2) {
			*c = cursor{}
			return "", false
		}
		if list[c.at].name == n.name {
			c.index++
		}
	}
	return list[c.at].value, true
}

// column is the array of all names or all values.
type column struct {
	list   func(*Request) []pair
	values bool
}

func (n column) length(r *Request) (int, bool) { return len(n.list(r)), true }

func (n column) text(r *Request, i int) (string, bool) {
	list := n.list(r)
	if !r.spend(1) || i >= len(list) {
		return "", false
	}
	if n.values {
		return list[i].value, true
	}
	return list[i].name, true
}
