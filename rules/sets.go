package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// strSet is a set of strings; a short one is walked.
type strSet struct {
	few  []string
	many map[string]struct{}
}

func newStrSet(items []string) *strSet {
	if len(items) <= 8 {
		return &strSet{few: items}
	}
	s := &strSet{many: make(map[string]struct{}, len(items))}
	for _, one := range items {
		s.many[one] = struct{}{}
	}
	return s
}

func (s *strSet) has(v string) bool {
	if s.many != nil {
		_, ok := s.many[v]
		return ok
	}
	return slices.Contains(s.few, v)
}

// span is a closed interval.
type span[T any] struct{ low, high T }

type (
	intSet []span[int64]
	ipSet  []span[netip.Addr]
)

// merged sorts spans and joins those that overlap, so that a binary search finds the only
// one that can hold a value.
func merged[T any](spans []span[T], compare func(a, b T) int) []span[T] {
	slices.SortFunc(spans, func(a, b span[T]) int { return compare(a.low, b.low) })
	out := spans[:0]
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && compare(s.low, out[last].high) <= 0 {
			if compare(s.high, out[last].high) > 0 {
				out[last].high = s.high
			}
			continue
		}
		out = append(out, s)
	}
	return slices.Clip(out)
}

func newIntSet(spans []span[int64]) intSet { return merged(spans, cmp.Compare[int64]) }

// newIPSet orders by family first: an address of one is never inside a span of the other.
func newIPSet(spans []span[netip.Addr]) ipSet { return merged(spans, netip.Addr.Compare) }

func (s intSet) has(v int64) bool { return covers(s, v, cmp.Compare[int64]) }

func (s ipSet) has(v netip.Addr) bool { return covers(s, v, netip.Addr.Compare) }

// covers reports whether one of the spans that merged returned has a value.
func covers[T any](spans []span[T], v T, compare func(a, b T) int) bool {
	i, _ := slices.BinarySearchFunc(spans, v, func(s span[T], v T) int { return compare(s.high, v) })
	return i < len(spans) && compare(spans[i].low, v) <= 0
}

// spanOf returns the addresses of a network. A network of IPv4 addresses written as IPv6
// becomes one of IPv4, as the visitors' addresses do.
func spanOf(p netip.Prefix) span[netip.Addr] {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(last); bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	high, _ := netip.AddrFromSlice(last)
	return span[netip.Addr]{p.Addr(), high}
}

// hostSet holds host names, and domains all of whose subdomains belong to it.
type hostSet struct {
	exact   map[string]struct{}
	domains map[string]struct{} // "example.com" of "*.example.com"
}

func (s *hostSet) has(host string) bool {
	host = lower(strings.TrimSuffix(host, "."))
	if _, ok := s.exact[host]; ok {
		return true
	}
	if len(s.domains) == 0 {
		return false
	}
	for range 127 { // labels of the longest host name
		_, rest, ok := strings.Cut(host, ".")
		if !ok {
			return false
		}
		if _, ok := s.domains[rest]; ok {
			return true
		}
		host = rest
	}
	return false
}
