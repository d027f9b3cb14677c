package gateway

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
)

// isSubresource reports whether the request is for a part of a page: an image, a script, a
// style. Such a request never takes a place in line (a foreign page could hold thousands
// of <img>), and HTML would be no answer to it: neither to a link with the attribute download,
// whose answer the browser saves under the name of the file that the visitor wants. Browsers say
// what they want in Sec-Fetch-Dest; for the others the first range of Accept decides.
func isSubresource(r *http.Request) bool {
	if dest, ok := r.Header["Sec-Fetch-Dest"]; ok && len(dest) == 1 {
		switch dest[0] {
		case "empty":
			mode := r.Header["Sec-Fetch-Mode"]
			return len(mode) == 1 && mode[0] == "navigate" && !namesHTML(r) // a download, which browsers accept anything for
		case "document", "iframe", "frame", "embed", "object", "fencedframe":
			return false
		case "audio", "audioworklet", "font", "image", "manifest", "paintworklet", "report",
			"script", "serviceworker", "sharedworker", "style", "track", "video", "webidentity",
			"websocket", "worker", "xslt", "json", "text":
			return true
		}
		return false
	}
	accept := r.Header["Accept"]
	if len(accept) == 0 {
		return false
	}
	first := strings.TrimLeft(accept[0], " \t")
	for _, kind := range [...]string{"image/", "video/", "audio/", "font/", "text/css"} {
		if len(first) >= len(kind) && strings.EqualFold(first[:len(kind)], kind) {
			return true
		}
	}
	return false
}

// isPrefetch reports whether the browser asks ahead of the visitor. Nobody is there yet,
// so such a request takes neither slot nor place.
func isPrefetch(r *http.Request) bool {
	return saysPrefetch(r.Header["Sec-Purpose"]) || saysPrefetch(r.Header["Purpose"]) || saysPrefetch(r.Header["X-Moz"])
}

func saysPrefetch(values []string) bool {
	for _, v := range values {
		if strings.Contains(v, "prefetch") || strings.Contains(v, "prerender") {
			return true
		}
	}
	return false
}

// isNavigation reports whether the answer will be shown as a page, or comes from a client that
// does not say (no browser of the last years): the requests whose answer may carry a
// renewed cookie without disturbing anything.
func isNavigation(r *http.Request) bool {
	mode, ok := r.Header["Sec-Fetch-Mode"]
	return !ok || len(mode) == 1 && mode[0] == "navigate"
}

// isHandedOn reports whether a service worker of the site hands a navigation on: the destination is "empty" then, as of what scripts
// ask for, and what the browser wrote for the page stays.
func isHandedOn(r *http.Request) bool {
	mode, upgrade := r.Header["Sec-Fetch-Mode"], r.Header["Upgrade-Insecure-Requests"]
	return (len(mode) == 1 && mode[0] == "navigate" || len(upgrade) == 1 && upgrade[0] == "1") && namesHTML(r)
}

// namesHTML reports whether the client names HTML among what it accepts, as browsers do for pages.
func namesHTML(r *http.Request) bool {
	for _, line := range r.Header["Accept"] {
		if strings.Contains(line, "text/html") {
			return true
		}
	}
	return false
}

// isPreflight reports whether the request is a CORS preflight. It never carries a cookie
// (Fetch §4.8), so that a gate before it would shut out admitted visitors too.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.ContentLength == 0 &&
		len(r.Header["Origin"]) == 1 && len(r.Header["Access-Control-Request-Method"]) == 1
}

// wantsJSON reports whether the waiting page of a request is JSON. Exact is the published rule:
// the header is exactly application/json. Otherwise scripts get it, as browsers mark their
// requests, and clients that prefer it to HTML by RFC 9110, section 12.5.1. At the same weight HTML
// goes first, unless the client names only JSON, as in "application/json, text/plain, */*".
func wantsJSON(r *http.Request, exact bool) bool {
	accept := r.Header["Accept"]
	if exact {
		return len(accept) == 1 && accept[0] == "application/json"
	}
	if dest := r.Header["Sec-Fetch-Dest"]; len(dest) == 1 && dest[0] == "empty" && !isHandedOn(r) {
		return true
	}
	var json, html preference
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			kind, params, _ := strings.Cut(part, ";")
			kind = textproto.TrimString(kind)
			json.hear(kind, params, "application/json")
			html.hear(kind, params, "text/html")
		}
	}
	return json.weight > html.weight || json.weight > 0 && json.weight == html.weight && json.named() && !html.named()
}

// preference is what Accept says about a media type: the weight of the most specific range that
// matches it.
type preference struct {
	exactness int // 1: */*, 2: type/*, 3: the type itself
	weight    float64
}

func (p *preference) named() bool { return p.exactness == 3 }

// hear takes note of a range of Accept.
func (p *preference) hear(kind, params, of string) {
	exactness := 0
	switch n := strings.IndexByte(of, '/') + 1; {
	case strings.EqualFold(kind, of):
		exactness = 3
	case len(kind) == n+1 && kind[n] == '*' && strings.EqualFold(kind[:n], of[:n]):
		exactness = 2
	case kind == "*/*":
		exactness = 1
	}
	if exactness > p.exactness {
		p.exactness, p.weight = exactness, weightOf(params)
	}
}

// acceptsGzip reads Accept-Encoding as far as gzip goes (RFC 9110 §12.5.3).
func acceptsGzip(r *http.Request) bool {
	any := false
	for _, line := range r.Header["Accept-Encoding"] {
		for part := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(part, ";")
			coding = textproto.TrimString(coding)
			switch {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return weightOf(params) > 0
			case coding == "*":
				any = weightOf(params) > 0
			}
		}
	}
	return any
}

// weightOf is the weight among parameters, 0 to 1. What is missing or no weight is 1.
func weightOf(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, ok := strings.Cut(textproto.TrimString(p), "=")
		if ok && strings.EqualFold(name, "q") {
			if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
				return q
			}
		}
	}
	return 1
}

// Values of the reserved query parameter.
const (
	askNone = iota
	askStatus
	askStream
	askHold
	askReceipt
	askLanguages
	askLanguage
	askLeave
	askLeft
	askInvite
	askMove
	askPush
	askBack
	askUnknown
)

// reservedParam is the query parameter by which the waiting page asks us, at the path that
// the visitor wants. On covered paths it is always answered here and never forwarded.
const reservedParam = "__anteroom"

// What a page has shown that says no number.
const (
	seenNothing = -1
	seenPlace   = -2
)

// askOf finds the reserved parameter in a raw query, anywhere in it. Spelled with
// percent-encoding it is found too: what an origin could read as our parameter is ours.
// seen is the place that the page has shown, when it says so ("status.12"): streams leave
// no trace in the cookie, and a shown place never gets worse. A page that has a place and shows no
// number says "status.", which is seenPlace, and one without a place "status", which is seenNothing.
// Whoever lies about it fools nobody else: it is shown, and decides about nobody else.
func askOf(query string) (ask, seen int) {
	if query == "" || !strings.Contains(query, "__") && !strings.Contains(query, "%") {
		return askNone, seenNothing
	}
	for pair := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		if name != reservedParam && !equalsDecoded(name, reservedParam) {
			continue
		}
		seen = seenNothing
		if strings.HasPrefix(value, "language.") {
			return askLanguage, seenNothing
		}
		if strings.HasPrefix(value, "invite.") {
			return askInvite, seenNothing
		}
		if strings.HasPrefix(value, "move.") {
			return askMove, seenNothing
		}
		if strings.HasPrefix(value, "back.") {
			return askBack, seenNothing
		}
		if what, place, ok := strings.Cut(value, "."); ok {
			n, err := strconv.ParseUint(place, 10, 32)
			if place == "" {
				n, err = 0, nil
			}
			if err != nil || n > anteroom.MaxLine || what == "hold" || what == "receipt" {
				return askUnknown, seenNothing
			}
			if value, seen = what, int(n); place == "" {
				seen = seenPlace
			}
		}
		switch value {
		case "status":
			return askStatus, seen
		case "stream":
			return askStream, seen
		case "hold":
			return askHold, seen
		case "receipt":
			return askReceipt, seen
		case "languages":
			return askLanguages, seen
		case "leave":
			return askLeave, seen
		case "left":
			return askLeft, seen
		case "invite":
			return askInvite, seen
		case "move":
			return askMove, seen
		case "push":
			return askPush, seen
		}
		return askUnknown, seenNothing
	}
	return askNone, seenNothing
}

// equalsDecoded reports whether s, percent-decoded, is want. It decodes without allocating.
func equalsDecoded(s, want string) bool {
	n := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi < 0 || lo < 0 {
				return false
			}
			c = byte(hi<<4 | lo)
			i += 2
		}
		if n >= len(want) || want[n] != c {
			return false
		}
		n++
	}
	return n == len(want)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// withoutAsk returns the query without the reserved parameter, the rest byte for byte.
func withoutAsk(query string) string {
	var b strings.Builder
	for query != "" {
		pair, end := query, len(query)
		if i := strings.IndexAny(query, "&;"); i >= 0 {
			pair, end = query[:i], i+1
		}
		if name, _, _ := strings.Cut(pair, "="); name != reservedParam && !equalsDecoded(name, reservedParam) {
			b.WriteString(query[:end])
		}
		query = query[end:]
	}
	return strings.TrimRight(b.String(), "&;")
}
