package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is what expressions look at. Fill in the exported fields, evaluate as often as needed, and [Request.Reset] it
// for the next request: derived values are kept inside and reuse their memory. Path may change between evaluations, the
// other fields may not. Not safe for concurrent use.
type Request struct {
	Method  string
	Version string // "HTTP/1.1", "HTTP/2.0"
	Scheme  string // "http" or "https"
	Host    string // canonical, as route.Host makes it
	Path    string // the reading of the path that is tested
	RawPath string // the path as sent; empty means that it is Path
	Query   string // as sent, without "?"

	Header map[string][]string // by canonical names, as net/http makes them

	Client      netip.Addr // the visitor's address; the zero value is unknown
	Port        int        // of the listener
	SSL         bool       // the visitor's connection is encrypted
	Time        time.Time  // of arrival
	Zone        string     // name of the zone
	Geo         Geo        // nil: no place is known
	VerifiedBot bool       // a crawler that is who it says it is

	work      int  // what is left of the evaluation's budget; below 0 it has failed
	used      int  // of the budget of all rules
	exhausted bool // an evaluation used its budget up

	uri, full     string
	uriOf, fullOf uriParts
	plainOf       string
	plain         string // plainOf, unescaped
	cookies, args pairs
	languages     pairs
	headers       pairs
	argsOf        string
	place         Place
	placed        bool
	cursor        cursor
}

// Geo knows where addresses are.
type Geo interface {
	Place(netip.Addr) Place
}

// Place is where an address is. Empty members are unknown: comparisons with them are false.
type Place struct {
	Country      string // ISO 3166-1, "DE"
	Continent    string // "EU"; "T1" is the Tor network
	City         string
	Region       string // "Bavaria"
	RegionCode   string // "BY"
	PostalCode   string
	MetroCode    string
	Lat, Lon     string // decimal degrees
	Subdivision1 string // ISO 3166-2 of the first level, "GB-ENG"
	Subdivision2 string // of the second level
	ASN          uint32 // number of the autonomous system; 0 is unknown
	EU           bool   // the country is in the European Union
}

// over returns at with the country, continent and ASN of p where p has them: an explicit location overrides that of the
// address.
func (p Place) over(at Place) Place {
	if p.Country != "" {
		at.Country, at.EU = p.Country, slices.Contains(strings.Fields(union), p.Country)
	}
	at.Continent = cmp.Or(p.Continent, at.Continent)
	at.ASN = cmp.Or(p.ASN, at.ASN)
	return at
}

// union lists the members of the European Union.
const union = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"

// Reset empties the request and keeps its memory for the next one.
func (r *Request) Reset() {
	*r = Request{cookies: r.cookies.empty(), args: r.args.empty(), headers: r.headers.empty(), languages: r.languages.empty()}
}

// Exhausted reports whether an evaluation since the last Reset used its budget up, and so
// did not match whatever it says.
func (r *Request) Exhausted() bool { return r.exhausted }

// spend takes steps from the evaluation's budget and reports whether it lasts.
func (r *Request) spend(steps int) bool {
	r.work -= steps
	return r.work >= 0
}

// pair is a name and a value, in the order of the request.
type pair struct{ name, value string }

// pairs are kept for all evaluations of a request, and so always whole: what one of them pays
// for reading may end it, and must not hide a cookie from the next.
type pairs struct {
	list []pair
	made bool
}

// keptPairs bounds the memory that a request keeps for the next one.
const keptPairs = 256

func (p pairs) empty() pairs {
	if cap(p.list) > keptPairs {
		return pairs{}
	}
	clear(p.list)
	return pairs{list: p.list[:0]}
}

// cursor remembers where the last look for a name among pairs ended, so that a walk over all
// values of a name is one walk over the pairs.
type cursor struct {
	list  *pair // first of the pairs that were walked
	name  string
	index int // of the value found
	at    int // its place in the list
}

type uriParts struct{ path, query string }

func (r *Request) rawPath() string {
	if r.RawPath == "" {
		return r.Path
	}
	return r.RawPath
}

func (r *Request) uriWith(path string) string {
	if r.Query == "" {
		return path
	}
	of := uriParts{path, r.Query}
	if r.uriOf != of {
		r.spend(len(path)/8 + len(r.Query)/8)
		r.uri, r.uriOf = path+"?"+r.Query, of
	}
	return r.uri
}

func (r *Request) fullWith(path string) string {
	of := uriParts{path, r.Query}
	if r.fullOf != of || r.full == "" {
		uri := r.uriWith(path)
		r.spend(len(uri) / 8)
		r.full, r.fullOf = r.Scheme+"://"+r.Host+uri, of
	}
	return r.full
}

// header returns all values of a header, which many write as lines of their own.
func (r *Request) header(canonical, separator string) string {
	r.spend(4)
	switch lines := r.Header[canonical]; len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	default:
		all := strings.Join(lines, separator)
		r.spend(len(all) / 8)
		return all
	}
}

// where looks the visitor's address up once.
func (r *Request) where() *Place {
	if !r.placed {
		r.placed = true
		if r.Geo != nil && r.Client.IsValid() {
			r.spend(200)
			r.place = r.Geo.Place(r.Client)
		}
	}
	return &r.place
}

func (r *Request) cookiePairs() []pair {
	if r.cookies.made {
		return r.cookies.list
	}
	r.cookies.made = true
	for _, line := range r.Header["Cookie"] {
		r.spend(len(line)/2 + 1)
		for part := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if name == "" && value == "" {
				continue
			}
			if strings.Contains(name, "%") {
				name = decodePercent(name, false, false)
			}
			r.cookies.list = append(r.cookies.list, pair{name, value})
		}
	}
	return r.cookies.list
}

func (r *Request) argPairs() []pair {
	if r.args.made && r.argsOf == r.Query {
		return r.args.list
	}
	r.args = r.args.empty()
	r.args.made, r.argsOf, r.cursor = true, r.Query, cursor{}
	r.spend(len(r.Query)/2 + 1)
	for part := range strings.SplitSeq(r.Query, "&") {
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			r.args.list = append(r.args.list, pair{name, value})
		}
	}
	return r.args.list
}

// languagePairs have the tags of Accept-Language as names, the heaviest first.
func (r *Request) languagePairs() []pair {
	if r.languages.made {
		return r.languages.list
	}
	r.languages.made = true
	for _, line := range r.Header["Accept-Language"] {
		r.spend(len(line)/2 + 1)
		for part := range strings.SplitSeq(line, ",") {
			tag, weight, _ := strings.Cut(part, ";")
			if tag = strings.Trim(tag, " \t"); tag != "" {
				_, weight, _ = strings.Cut(weight, "=")
				r.languages.list = append(r.languages.list, pair{tag, strings.Trim(weight, " \t")})
			}
		}
	}
	r.spend(60 * len(r.languages.list))
	slices.SortStableFunc(r.languages.list, func(a, b pair) int { return cmp.Compare(weightOf(b.value), weightOf(a.value)) })
	return r.languages.list
}

// weightOf reads a weight of RFC 9110 section 12.4.2; none, or one that is none, is 1.
func weightOf(q string) float64 {
	if w, err := strconv.ParseFloat(q, 64); err == nil && w >= 0 && w <= 1 {
		return w
	}
	return 1
}

// headerPairs are sorted by name: net/http does not keep the order in which they were sent.
func (r *Request) headerPairs() []pair {
	if r.headers.made {
		return r.headers.list
	}
	r.headers.made = true
	if r.Host != "" {
		r.headers.list = append(r.headers.list, pair{"host", r.Host})
	}
	for name, values := range r.Header {
		r.spend(30)
		name = lower(name)
		for _, v := range values {
			r.headers.list = append(r.headers.list, pair{name, v})
		}
	}
	r.spend(60 * len(r.headers.list))
	slices.SortStableFunc(r.headers.list, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return r.headers.list
}
