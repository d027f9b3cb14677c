package own

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/rules"
)

// testRule tells what an expression, which is that of no rule yet, would do with a request.
func (f *face) testRule(r *api.Request) (api.Answer, error) {
	o, err := body(r, "expression", "action", "room", "request")
	if err != nil {
		return api.Answer{}, err
	}
	var texts [3]string
	for i, name := range []string{"expression", "action", "room"} {
		if texts[i], err = o.Get(name).Text(); err != nil {
			return api.Answer{}, err
		}
	}
	if a := texts[1]; a != "" && a != anteroom.ActionBypass {
		return api.Answer{}, api.Invalid("action", "is not known", anteroom.ActionBypass)
	}
	request, err := f.described(o.Get("request"))
	if err != nil {
		return api.Answer{}, err
	}
	tried, err := f.manage.TryRule(r.By, anteroom.RoomID(texts[2]), texts[0], request)
	if faults, ok := api.FaultsOf(err); ok && len(faults) > 0 && faults[0].Path == "expression" {
		return api.Answer{Result: api.Members{{Name: "valid", Value: false}, {Name: "matches", Value: nil}, {Name: "exhausted", Value: false}, {Name: "wide", Value: false},
			{Name: "error", Value: api.Members{{Name: "message", Value: faults[0].Problem}, {Name: "fix", Value: faults[0].Fix}, {Name: "position", Value: positionOf(texts[0], faults[0].Column)}}},
			{Name: "readings", Value: []any{}}, {Name: "fields", Value: map[string]any{}}}}, nil
	}
	if err != nil {
		return api.Answer{}, err
	}
	readings := make([]api.Members, len(tried.Readings))
	for i, one := range tried.Readings {
		readings[i] = api.Members{{Name: "path", Value: one.Path}, {Name: "matches", Value: one.Matches}}
	}
	return api.Answer{Result: api.Members{{Name: "valid", Value: true}, {Name: "matches", Value: tried.Matches}, {Name: "exhausted", Value: tried.Exhausted},
		{Name: "wide", Value: tried.Wide}, {Name: "error", Value: nil}, {Name: "readings", Value: readings}, {Name: "fields", Value: tried.Fields}}}, nil
}

// positionOf is a column, in bytes from 1, in characters; null without one.
func positionOf(text string, column int) any {
	if column < 1 {
		return nil
	}
	return len([]rune(text[:min(column-1, len(text))])) + 1
}

// described is the request that an object describes. What is left out is an ordinary visit of
// the start page.
func (f *face) described(v api.Value) (*rules.Request, error) {
	o, err := v.Object()
	if err != nil {
		return nil, err
	}
	if err := o.Only("method", "version", "url", "headers", "ip", "country", "continent", "asn", "time", "bot"); err != nil {
		return nil, err
	}
	said := map[string]string{"method": "GET", "version": "HTTP/2.0", "url": "https://example.com/", "ip": "192.0.2.1", "country": "", "continent": "", "time": ""}
	for name := range said {
		text, err := o.Get(name).Text()
		if err != nil {
			return nil, err
		}
		if text != "" {
			said[name] = text
		}
	}
	u, err := url.Parse(said["url"])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(said["url"]) > anteroom.MaxTargetBytes {
		return nil, o.Get("url").Fault("is not a whole URL", "like https://example.com/path?query")
	}
	q := &rules.Request{Method: said["method"], Version: said["version"], Scheme: u.Scheme, Host: u.Hostname(), RawPath: u.EscapedPath(), Query: u.RawQuery,
		Header: map[string][]string{}, SSL: u.Scheme == "https", Port: map[string]int{"http": 80, "https": 443}[u.Scheme], Time: f.now(), Zone: u.Hostname()}
	if q.RawPath == "" {
		q.RawPath = "/"
	}
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		q.Port = int(p)
	}
	if q.Client, err = netip.ParseAddr(said["ip"]); err != nil {
		return nil, o.Get("ip").Fault("is not an address", "like 192.0.2.1 or 2001:db8::1")
	}
	if said["time"] != "" {
		if q.Time, err = time.Parse(time.RFC3339Nano, said["time"]); err != nil {
			return nil, o.Get("time").Fault("is not a moment", "like 2026-11-27T10:00:00Z")
		}
	}
	if q.VerifiedBot, err = o.Get("bot").Bool(); err != nil {
		return nil, err
	}
	if err := headers(q, o.Get("headers")); err != nil {
		return nil, err
	}
	asn, err := o.Get("asn").Int()
	if err != nil {
		return nil, err
	}
	if asn < 0 || asn > 1<<32-1 {
		return nil, o.Get("asn").Fault("is not the number of an autonomous system", "0 to 4294967295")
	}
	q.Geo = sayPlace{f.geo, rules.Place{Country: said["country"], Continent: said["continent"], ASN: uint32(asn)}}
	return q, nil
}

// headers reads an object of headers: each a text or a list of them.
func headers(q *rules.Request, v api.Value) error {
	o, err := v.Object()
	if err != nil {
		return err
	}
	names := o.Names()
	if len(names) > anteroom.MaxHeaderLines {
		return v.Fault("has too many headers", "at most "+strconv.Itoa(anteroom.MaxHeaderLines))
	}
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") {
			return o.Get(name).Fault("is not the name of a header", "like user-agent")
		}
		values := []api.Value{o.Get(name)}
		if list, err := values[0].Array(anteroom.MaxHeaderLines); err == nil {
			values = list
		}
		for _, one := range values {
			text, err := one.Text()
			if err != nil {
				return err
			}
			if strings.EqualFold(name, "host") {
				q.Host = text
				continue
			}
			key := http.CanonicalHeaderKey(name)
			q.Header[key] = append(q.Header[key], text)
		}
	}
	return nil
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
