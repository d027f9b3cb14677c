package rules

import (
	"net/netip"
	"strings"

	"github.com/anteroom/anteroom"
)

type kind uint8

const (
	boolKind kind = iota + 1
	intKind
	strKind
	ipKind
	arrayKind
	mapKind
)

func (k kind) String() string {
	return [...]string{"", "true or false", "a number", "a string", "an address", "an array", "a map"}[k]
}

func stringField(f func(*Request) string) value {
	return value{kind: strKind, s: strField(func(r *Request) (string, bool) { return f(r), true })}
}

// placeField is a field of the visitor's place: an unknown one is missing.
func placeField(f func(*Place) string) value {
	return value{kind: strKind, s: strField(func(r *Request) (string, bool) {
		s := f(r.where())
		return s, s != ""
	})}
}

func mapField(list func(*Request) []pair) value {
	return value{kind: mapKind, keyed: func(key string) strArray {
		return named{list, key}
	}}
}

func arrayField(list func(*Request) []pair, values bool) value {
	all := column{list, values}
	return value{kind: arrayKind, array: &array{size: all, kind: strKind, s: all}}
}

// fieldOf returns the field of a name.
func fieldOf(name string) (value, bool) {
	if rest, ok := strings.CutPrefix(name, "ip.geoip."); ok {
		name = "ip.src." + rest
	}
	f, ok := fields[name]
	return f, ok
}

// fields are the names that expressions may use. docs/rules.md has a row for each.
var fields = map[string]value{
	"http.host":            stringField(func(r *Request) string { return r.Host }),
	"http.referer":         stringField(func(r *Request) string { return r.header("Referer", ", ") }),
	"http.user_agent":      stringField(func(r *Request) string { return r.header("User-Agent", ", ") }),
	"http.cookie":          stringField(func(r *Request) string { return r.header("Cookie", "; ") }),
	"http.x_forwarded_for": stringField(func(r *Request) string { return r.header("X-Forwarded-For", ", ") }),

	"http.request.method":   stringField(func(r *Request) string { return r.Method }),
	"http.request.version":  stringField(func(r *Request) string { return versionOf(r.Version) }),
	"http.request.full_uri": stringField(func(r *Request) string { return r.fullWith(r.Path) }),
	"http.request.uri":      stringField(func(r *Request) string { return r.uriWith(r.Path) }),

	"http.request.uri.path":           stringField(func(r *Request) string { return r.Path }),
	"http.request.uri.path.extension": stringField(func(r *Request) string { return extensionOf(r.Path) }),
	"http.request.uri.query":          stringField(func(r *Request) string { return r.Query }),
	"http.request.uri.args":           mapField((*Request).argPairs),
	"http.request.uri.args.names":     arrayField((*Request).argPairs, false),
	"http.request.uri.args.values":    arrayField((*Request).argPairs, true),

	"raw.http.request.full_uri":           stringField(func(r *Request) string { return r.fullWith(r.rawPath()) }),
	"raw.http.request.uri":                stringField(func(r *Request) string { return r.uriWith(r.rawPath()) }),
	"raw.http.request.uri.path":           stringField(func(r *Request) string { return r.rawPath() }),
	"raw.http.request.uri.path.extension": stringField(func(r *Request) string { return extensionOf(r.rawPath()) }),
	"raw.http.request.uri.query":          stringField(func(r *Request) string { return r.Query }),
	"raw.http.request.uri.args":           mapField((*Request).argPairs),
	"raw.http.request.uri.args.names":     arrayField((*Request).argPairs, false),
	"raw.http.request.uri.args.values":    arrayField((*Request).argPairs, true),

	"http.request.headers": {kind: mapKind, keyed: func(key string) strArray {
		if key == "host" {
			return hostHeader{}
		}
		return headerValues(canonicalName(key))
	}},
	"http.request.headers.names":  arrayField((*Request).headerPairs, false),
	"http.request.headers.values": arrayField((*Request).headerPairs, true),
	// A request with more headers than we read is refused, never cut.
	"http.request.headers.truncated":  {kind: boolKind, b: boolField(func(*Request) bool { return false })},
	"http.request.cookies":            mapField((*Request).cookiePairs),
	"http.request.accepted_languages": arrayField((*Request).languagePairs, false),

	"http.request.timestamp.sec": {kind: intKind, n: intField(func(r *Request) (int64, bool) {
		return r.Time.Unix(), !r.Time.IsZero()
	})},
	"http.request.timestamp.msec": {kind: intKind, n: intField(func(r *Request) (int64, bool) {
		return int64(r.Time.Nanosecond() / 1e6), !r.Time.IsZero()
	})},

	"ip.src": {kind: ipKind, ip: ipField(func(r *Request) (netip.Addr, bool) {
		return r.Client.Unmap().WithZone(""), r.Client.IsValid()
	})},
	"ip.src.asnum": {kind: intKind, n: intField(func(r *Request) (int64, bool) {
		n := r.where().ASN
		return int64(n), n != 0
	})},
	"ip.src.country":                placeField(func(p *Place) string { return p.Country }),
	"ip.src.continent":              placeField(func(p *Place) string { return p.Continent }),
	"ip.src.city":                   placeField(func(p *Place) string { return p.City }),
	"ip.src.region":                 placeField(func(p *Place) string { return p.Region }),
	"ip.src.region_code":            placeField(func(p *Place) string { return p.RegionCode }),
	"ip.src.postal_code":            placeField(func(p *Place) string { return p.PostalCode }),
	"ip.src.metro_code":             placeField(func(p *Place) string { return p.MetroCode }),
	"ip.src.lat":                    placeField(func(p *Place) string { return p.Lat }),
	"ip.src.lon":                    placeField(func(p *Place) string { return p.Lon }),
	"ip.src.subdivision_1_iso_code": placeField(func(p *Place) string { return p.Subdivision1 }),
	"ip.src.subdivision_2_iso_code": placeField(func(p *Place) string { return p.Subdivision2 }),
	"ip.src.is_in_european_union":   {kind: boolKind, b: boolField(func(r *Request) bool { return r.where().EU })},

	"ssl":                 {kind: boolKind, b: boolField(func(r *Request) bool { return r.SSL })},
	"cf.client.bot":       {kind: boolKind, b: boolField(func(r *Request) bool { return r.VerifiedBot })},
	"cf.edge.server_port": {kind: intKind, n: intField(func(r *Request) (int64, bool) { return int64(r.Port), r.Port != 0 })},
	"cf.zone.name":        stringField(func(r *Request) string { return r.Zone }),
}

// versionOf writes HTTP/2 and HTTP/3 as the language does.
func versionOf(v string) string {
	switch v {
	case "HTTP/2.0":
		return "HTTP/2"
	case "HTTP/3.0":
		return "HTTP/3"
	}
	return v
}

// extensionOf returns what follows the last dot of the last segment, in lower case.
func extensionOf(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.LastIndexByte(last, '.'); i > 0 { // .png is a name
		return lower(last[i+1:])
	}
	return ""
}

// canonicalName writes a lower-case name of a header as net/http does.
func canonicalName(name string) string {
	b := []byte(name)
	start := true
	for i, c := range b {
		if start && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		start = c == '-'
	}
	return string(b)
}

// elsewhere are published names that mean nothing here, by prefix, with what to do instead.
var elsewhere = []struct{ prefix, reason, fix string }{
	{"cf.threat_score", "is not available to waiting rooms", "list the addresses: ip.src in $blocked"},
	{"cf.bot_management.verified_bot", "is not available to waiting rooms", "use cf.client.bot"},
	{"cf.bot_management", "is not available to waiting rooms", "cf.client.bot tells verified crawlers"},
	{"cf.verified_bot_category", "is not available here", "use cf.client.bot"},
	{"http.response", "is not known yet: rules look at the request before there is a response", "use fields of http.request"},
	{"http.request.body", "is not available: rules do not wait for the body", "use the path, a header or a cookie"},
	{"http.request.jwt", "is not available here", "check the token at the origin, or use is_timed_hmac_valid_v0"},
	{"cf.waf", "is not available: there is no firewall here", "use fields of http.request and ip.src"},
	{"cf.tls", "is not available here", "use ssl"},
	{"cf.ray_id", "is not available here", `pass on an identifier in a header and use http.request.headers["x-request-id"]`},
	{"cf.zone.plan", "is not available: there are no plans here", "use cf.zone.name"},
	{"cf.", "is not available here", "of cf. there are cf.client.bot, cf.edge.server_port and cf.zone.name"},
}

// misnamed are names that people write for another one.
var misnamed = map[string]string{
	"src.ip": "ip.src", "ip": "ip.src", "ip.address": "ip.src", "client.ip": "ip.src", "remote_addr": "ip.src", "ip.source": "ip.src",
	"http.path": "http.request.uri.path", "path": "http.request.uri.path", "http.request.path": "http.request.uri.path", "uri.path": "http.request.uri.path",
	"uri": "http.request.uri", "url": "http.request.full_uri", "http.url": "http.request.full_uri", "http.uri": "http.request.uri",
	"host": "http.host", "http.request.host": "http.host", "hostname": "http.host",
	"method": "http.request.method", "http.method": "http.request.method",
	"query": "http.request.uri.query", "http.query": "http.request.uri.query", "http.request.query": "http.request.uri.query",
	"user_agent": "http.user_agent", "useragent": "http.user_agent", "http.useragent": "http.user_agent", "http.request.user_agent": "http.user_agent",
	"referer": "http.referer", "http.referrer": "http.referer", "cookie": "http.cookie", "cookies": "http.request.cookies",
	"headers": "http.request.headers", "http.headers": "http.request.headers", "http.cookies": "http.request.cookies",
	"country": "ip.src.country", "ip.country": "ip.src.country", "asn": "ip.src.asnum", "ip.asn": "ip.src.asnum", "ip.src.asn": "ip.src.asnum",
	"https": "ssl", "tls": "ssl", "scheme": "ssl", "http.request.scheme": "ssl",
}

// nearest returns the known name that a misspelled one was probably meant to be; "" for none.
func nearest(name string, known []string) string {
	return anteroom.Nearest(name, known, max(2, len(name)/5))
}
