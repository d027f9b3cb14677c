package own

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/rules"
)

// testRule tells what an expression, which is that of no rule yet, would do with a request.
func (f *face) testRule(r *api.Request, b schema.RuleTest) (schema.RuleResult, error) {
	request, err := f.described(b.Request)
	if err != nil {
		return schema.RuleResult{}, err
	}
	tried, err := f.manage.TryRule(r.By, b.Room, b.Expression, request)
	if faults, ok := api.FaultsOf(err); ok && len(faults) > 0 && faults[0].Path == "expression" {
		return schema.RuleResult{Error: &schema.RuleError{Message: faults[0].Problem, Fix: faults[0].Fix, Position: positionOf(b.Expression, faults[0].Column)}}, nil
	}
	out := schema.RuleResult{Valid: true, Matches: &tried.Matches, Exhausted: tried.Exhausted, Wide: tried.Wide, Fields: tried.Fields}
	for _, one := range tried.Readings {
		out.Readings = append(out.Readings, schema.Reading{Path: one.Path, Matches: one.Matches})
	}
	return out, err
}

// positionOf is a column, in bytes from 1, in characters; nil without one.
func positionOf(text string, column int) *int {
	if column < 1 {
		return nil
	}
	n := len([]rune(text[:min(column-1, len(text))])) + 1
	return &n
}

// described is the request that somebody describes. What is left out is an ordinary visit of
// the start page.
func (f *face) described(b schema.TestRequest) (*rules.Request, error) {
	whole := cmp.Or(b.URL, "https://example.com/")
	u, err := url.Parse(whole)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(whole) > anteroom.MaxTargetBytes {
		return nil, api.Invalid("request.url", "is not a whole URL", "like https://example.com/path?query")
	}
	q := &rules.Request{Method: cmp.Or(b.Method, "GET"), Version: cmp.Or(b.Version, "HTTP/2.0"), Scheme: u.Scheme, Host: u.Host, RawPath: cmp.Or(u.EscapedPath(), "/"), Query: u.RawQuery,
		Header: map[string][]string{}, SSL: u.Scheme == "https", Port: map[string]int{"http": 80, "https": 443}[u.Scheme], Time: f.now(), Zone: u.Hostname(), VerifiedBot: b.Bot}
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		q.Port = int(p)
	}
	if q.Client, err = netip.ParseAddr(cmp.Or(b.IP, "192.0.2.1")); err != nil {
		return nil, api.Invalid("request.ip", "is not an address", "like 192.0.2.1 or 2001:db8::1")
	}
	if b.Time != nil {
		q.Time = *b.Time
	}
	if len(b.Headers) > anteroom.MaxHeaderLines {
		return nil, api.Invalid("request.headers", "has too many headers", "at most "+strconv.Itoa(anteroom.MaxHeaderLines))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Headers)) {
		values := b.Headers[name]
		if name == "" || strings.ContainsAny(name, " \t\r\n:") {
			return nil, api.Invalid("request.headers", fmt.Sprintf("%.40q is not the name of a header", name), "like user-agent")
		}
		if !strings.EqualFold(name, "host") {
			key := http.CanonicalHeaderKey(name)
			q.Header[key] = append(q.Header[key], values...)
		} else if len(values) > 0 {
			q.Host = values[len(values)-1]
		}
	}
	q.Geo = sayPlace{f.geo, rules.Place{Country: b.Country, Continent: b.Continent, ASN: uint32(b.ASN)}}
	return q, nil
}

// sayPlace is a place as the request says it, over what is known of the address.
type sayPlace struct {
	known rules.Geo
	said  rules.Place
}

// Place implements rules.Geo.
func (p sayPlace) Place(a netip.Addr) rules.Place {
	var at rules.Place
	if p.known != nil {
		at = p.known.Place(a)
	}
	return p.said.Over(at)
}
