package rules

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Described is a request as a person describes it, to try an expression on. What is left out is an ordinary visit of the
// start page of example.com.
type Described struct {
	Method, Version string
	URL             string // with scheme and host
	Address         string // of the visitor
	Header          map[string][]string
	Place           Place     // overrides that of the address
	Time            time.Time // required
	Zone            string    // empty means the host of URL
	Bot             bool      // the visitor is a verified crawler
}

// Request returns the request. Its Host is as written and its Path is empty: see package route. Geo locates the address; nil
// means that nothing is known of it. The error is a fault with the path url, ip or headers.
func (d Described) Request(geo Geo) (*Request, error) {
	fail := func(path, problem, fix string) (*Request, error) {
		return nil, anteroom.Faults{{Path: path, Problem: problem, Fix: fix}}.Err()
	}
	whole := cmp.Or(d.URL, "https://example.com/")
	u, err := url.Parse(whole)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(whole) > anteroom.MaxTargetBytes {
		return fail("url", fmt.Sprintf("%.60q is not a whole URL", whole), "like https://example.com/path?query")
	}
	// The path as it is written, which is what a visitor sends.
	r := &Request{Method: cmp.Or(d.Method, "GET"), Version: cmp.Or(d.Version, "HTTP/2.0"), Scheme: u.Scheme, Host: u.Host, RawPath: cmp.Or(u.EscapedPath(), "/"), Query: u.RawQuery,
		Header: map[string][]string{}, SSL: u.Scheme == "https", Port: map[string]int{"http": 80, "https": 443}[u.Scheme], Time: d.Time, Zone: cmp.Or(d.Zone, u.Hostname()),
		VerifiedBot: d.Bot, Geo: placed{geo, d.Place}}
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		r.Port = int(p)
	}
	if r.Client, err = netip.ParseAddr(cmp.Or(d.Address, "192.0.2.1")); err != nil {
		return fail("ip", fmt.Sprintf("%.60q is not an address", d.Address), "like 192.0.2.1 or 2001:db8::1")
	}
	if len(d.Header) > anteroom.MaxHeaderLines {
		return fail("headers", "has too many headers", "at most "+strconv.Itoa(anteroom.MaxHeaderLines))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		values := d.Header[name]
		if name == "" || strings.ContainsAny(name, " \t\r\n:") {
			return fail("headers", fmt.Sprintf("%.40q is not the name of a header", name), "like user-agent")
		}
		if !strings.EqualFold(name, "host") {
			key := textproto.CanonicalMIMEHeaderKey(name)
			r.Header[key] = append(r.Header[key], values...)
		} else if len(values) > 0 {
			r.Host = values[len(values)-1]
		}
	}
	return r, nil
}

// placed is a place that was described, over what is known of the address.
type placed struct {
	known Geo
	said  Place
}

// Place implements Geo.
func (p placed) Place(a netip.Addr) Place {
	var at Place
	if p.known != nil {
		at = p.known.Place(a)
	}
	return p.said.over(at)
}
