package rules

import (
	"cmp"
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
	node[T any] interface {
		get(r *Request, i int) (T, bool)
	}
	intNode = node[int64]
	strNode = node[string]
	ipNode  = node[netip.Addr]

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
	boolField      func(*Request) bool
	valueOf[T any] func(*Request) (T, bool)

	intField = valueOf[int64]
	strField = valueOf[string]
	ipField  = valueOf[netip.Addr]
)

func (f boolField) truth(r *Request, _ int) bool     { return r.spend(1) && f(r) }
func (f valueOf[T]) get(r *Request, _ int) (T, bool) { return f(r) }

// constant is a value as written.
type constant[T any] struct{ is T }

func (c constant[T]) get(*Request, int) (T, bool) { return c.is, true }

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

// equal is eq, and with not is ne.
type equal[T comparable] struct {
	of    node[T]
	want  T
	not   bool
	steps int // what a comparison costs
}

func (n equal[T]) truth(r *Request, i int) bool {
	v, ok := n.of.get(r, i)
	return r.spend(n.steps) && ok && (v == n.want) != n.not
}

// stepsFor is what a comparison with a text costs.
func stepsFor(text string) int { return 1 + len(text)/16 }

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

type ordered[T cmp.Ordered] struct {
	of   node[T]
	want T
	order
	steps int // what a comparison costs
}

func (n ordered[T]) truth(r *Request, i int) bool {
	v, ok := n.of.get(r, i)
	return r.spend(n.steps) && ok && n.holds(cmp.Compare(v, n.want))
}

type contains struct {
	of   strNode
	part string
}

func (n contains) truth(r *Request, i int) bool {
	s, ok := n.of.get(r, i)
	return ok && r.spend(1+len(s)/4) && strings.Contains(s, n.part)
}

type matches struct {
	of strNode
	re *pattern
}

func (n matches) truth(r *Request, i int) bool {
	s, ok := n.of.get(r, i)
	return ok && r.spend(1) && n.re.match(r, s)
}

type globs struct {
	of strNode
	*glob
}

func (n globs) truth(r *Request, i int) bool {
	s, ok := n.of.get(r, i)
	return ok && r.spend(1) && n.match(r, s)
}

// isIn is in, for a set or a list.
type isIn[T any] struct {
	of    node[T]
	set   interface{ has(T) bool }
	steps func(T) int // what a look costs
}

func (n isIn[T]) truth(r *Request, i int) bool {
	v, ok := n.of.get(r, i)
	return ok && r.spend(n.steps(v)) && n.set.has(v)
}

func stepsInTexts(s string) int { return 8 + len(s)/8 }
func stepsInHosts(s string) int { return 16 + len(s) }
func stepsInNumbers(int64) int  { return 8 }
func stepsInIPs(netip.Addr) int { return 16 }

// array is where elements come from; one of the nodes is set, by the kind of the elements.
type array struct {
	base string // the field and key that it comes from, as written: equal bases are of equal length
	size lengther
	kind kind
	b    boolNode
	n    intNode
	s    strNode
}

// element takes a fixed element of an array: of is the node of its kind.
type element[T any] struct {
	array *array
	of    node[T]
	index int
}

func (n element[T]) get(r *Request, _ int) (none T, ok bool) {
	if !n.array.has(r, n.index) {
		return none, false
	}
	return n.of.get(r, n.index)
}

type boolElement struct {
	array *array
	index int
}

func (n boolElement) truth(r *Request, _ int) bool {
	return n.array.has(r, n.index) && n.array.b.truth(r, n.index)
}

// has reports whether there is an element.
func (a *array) has(r *Request, index int) bool {
	length, ok := a.size.length(r)
	return ok && index < length
}

// headerValues is the array of one header's values.
type headerValues string // the canonical name

func (n headerValues) length(r *Request) (int, bool) {
	r.spend(4)
	values, ok := r.Header[string(n)]
	return len(values), ok
}

func (n headerValues) get(r *Request, i int) (string, bool) {
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

func (hostHeader) get(r *Request, _ int) (string, bool) { return r.Host, true }

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

func (n named) get(r *Request, i int) (string, bool) {
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

func (n column) get(r *Request, i int) (string, bool) {
	list := n.list(r)
	if !r.spend(1) || i >= len(list) {
		return "", false
	}
	if n.values {
		return list[i].value, true
	}
	return list[i].name, true
}
