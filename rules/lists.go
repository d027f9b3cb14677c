package rules

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
)

// Bounds of named lists.
const (
	MaxLists     = 100
	MaxListItems = 10_000
)

// Lists are the named lists that expressions may use as $name. It does not change.
type Lists struct {
	byName map[string]*list
}

type list struct {
	kind  string
	ips   ipSet
	asns  intSet
	hosts *hostSet
}

// NewLists reads the lists. The faults of an error have paths like "lists[0].items[3].value".
func NewLists(lists []anteroom.List) (*Lists, error) {
	var faults anteroom.Faults
	add := func(path, problem, fix string) {
		faults = append(faults, anteroom.Fault{Path: path, Problem: problem, Fix: fix})
	}
	if len(lists) > MaxLists {
		add("lists", fmt.Sprintf("has %d lists", len(lists)), fmt.Sprintf("at most %d", MaxLists))
		return nil, faults.Err()
	}
	all := &Lists{byName: make(map[string]*list, len(lists))}
	for i, l := range lists {
		path := fmt.Sprintf("lists[%d]", i)
		switch {
		case !isListName(l.Name):
			add(path+".name", fmt.Sprintf("%s is not the name of a list", clip(l.Name)), "1 to 50 lower-case letters, digits and _")
		case all.byName[l.Name] != nil:
			add(path+".name", fmt.Sprintf("%q is the name of another list", l.Name), "names are unique")
		}
		if len(l.Items) > MaxListItems {
			add(path+".items", fmt.Sprintf("has %d items", len(l.Items)), fmt.Sprintf("at most %d; networks and ranges count as one", MaxListItems))
			continue
		}
		values := make([]string, len(l.Items))
		for j, item := range l.Items {
			values[j] = item.Value
		}
		one, problem := newList(l.Kind, values)
		if problem != nil {
			if problem.item < 0 {
				add(path+".kind", problem.problem, problem.fix)
			} else {
				add(fmt.Sprintf("%s.items[%d].value", path, problem.item), problem.problem, problem.fix)
			}
		}
		all.byName[l.Name] = one
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// Networks are those of a named list of addresses or ASNs. It does not change.
type Networks struct{ of *list }

// Networks returns those of the list with a name, or what is wrong with the name. l may be nil, which has no lists.
func (l *Lists) Networks(name string) (*Networks, *anteroom.Fault) {
	var one *list
	if l != nil {
		one = l.byName[name]
	}
	switch {
	case one == nil:
		return nil, &anteroom.Fault{Problem: "there is no list " + clip(name), Fix: "create it first"}
	case one.kind == anteroom.ListOfHostnames:
		return nil, &anteroom.Fault{Problem: clip(name) + " is a list of kind " + one.kind, Fix: "use one of kind ip or asn"}
	}
	return &Networks{one}, nil
}

// Has reports whether an address is in one of the networks. Without geo, no address belongs to an ASN. n may be nil, which has
// no networks.
func (n *Networks) Has(client netip.Addr, geo Geo) bool {
	switch {
	case n == nil || !client.IsValid():
		return false
	case n.of.kind == anteroom.ListOfIPs:
		return n.of.ips.has(client)
	case geo == nil:
		return false
	}
	asn := geo.Place(client).ASN
	return asn != 0 && n.of.asns.has(int64(asn))
}

// listProblem is the first fault of a list: of its kind (item -1) or of an item.
type listProblem struct {
	item         int
	problem, fix string
}

func newList(kind string, values []string) (*list, *listProblem) {
	l := &list{kind: kind}
	switch kind {
	case anteroom.ListOfIPs:
		var spans []span[netip.Addr]
		for i, v := range values {
			s, ok := parseNetwork(v)
			if !ok {
				return l, &listProblem{i, clip(v) + " is not an address or a network", "192.0.2.1, 192.0.2.0/24 or 2001:db8::/32"}
			}
			spans = append(spans, s)
		}
		l.ips = newIPSet(spans)
	case anteroom.ListOfASNs:
		var spans []span[int64]
		for i, v := range values {
			n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(v), "AS"), 10, 32)
			if err != nil {
				return l, &listProblem{i, clip(v) + " is not the number of an autonomous system", "64496 or AS64496"}
			}
			spans = append(spans, span[int64]{int64(n), int64(n)})
		}
		l.asns = newIntSet(spans)
	case anteroom.ListOfHostnames:
		l.hosts = &hostSet{exact: map[string]struct{}{}, domains: map[string]struct{}{}}
		for i, v := range values {
			name := lower(strings.TrimSuffix(v, "."))
			domain, wild := strings.CutPrefix(name, "*.")
			if domain == "" || len(domain) > 253 || strings.ContainsAny(domain, "*/:@?#%\\ \t\r\n\"'") || strings.HasPrefix(domain, ".") || strings.Contains(domain, "..") {
				return l, &listProblem{i, clip(v) + " is not a host name", "shop.example.com, or *.example.com for all subdomains; no scheme, port or path"}
			}
			if wild {
				l.hosts.domains[domain] = struct{}{}
			} else {
				l.hosts.exact[domain] = struct{}{}
			}
		}
	default:
		return l, &listProblem{-1, clip(kind) + " is not a kind of list", "ip, asn or hostname"}
	}
	return l, nil
}

// parseNetwork reads an address or a network. Host bits of a network may be set, as in the
// published language; zones are refused.
func parseNetwork(v string) (span[netip.Addr], bool) {
	if strings.Contains(v, "/") {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			return span[netip.Addr]{}, false
		}
		return spanOf(p), true
	}
	a, ok := parseAddr(v)
	return span[netip.Addr]{a, a}, ok
}

func parseAddr(v string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(v)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

func isListName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return s != "" && len(s) <= 50
}

// clip quotes what somebody wrote, without letting it fill the screen.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q…", most, s)
	}
	return fmt.Sprintf("%q", s)
}
