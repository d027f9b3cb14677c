package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
)

// refusal is the answer to a request that must never pass. The zero value refuses nothing.
type refusal struct {
	status int
	text   string
	// close ends the connection: what follows on it cannot be trusted or should not cost us
	// anything more.
	close bool
}

// methods are those of RFC 9110 §9 and RFC 5789 that an origin may see.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// checkTarget refuses what must not reach room or origin by method or request target. It
// runs before anything else is looked at: CONNECT, above all, must not come near the
// transport, which wrote its body as raw bytes to a pooled socket in Go 1.26.8
// (CVE-2026-71324 is the same fault elsewhere).
func (s *setup) checkTarget(r *http.Request) refusal {
	switch r.Method {
	case "GET", "HEAD", "POST":
	default:
		// Everything unknown as well: 501 would be a failure of ours for what a client did.
		if !slices.Contains(methods, r.Method) {
			return refusal{http.StatusMethodNotAllowed, "This method is not served here", true}
		}
	}
	target := r.RequestURI
	if len(target) > anteroom.MaxTargetBytes && !isLongAsk(target) {
		return refusal{http.StatusRequestURITooLong, "The address is too long", true}
	}
	switch {
	case target == "":
		// Only a request that was made inside this process has none.
		if !strings.HasPrefix(r.URL.Path, "/") {
			return refusal{http.StatusBadRequest, "The address is not a path", true}
		}
	case target[0] != '/':
		// The absolute form is for HTTP/1.1 alone (RFC 9112 §3.2.2); in HTTP/2 it is a second
		// opinion about scheme and host beside the pseudo-headers.
		if r.ProtoMajor != 1 || r.URL.Host == "" || (r.URL.Scheme != "http" && r.URL.Scheme != "https") {
			return refusal{http.StatusBadRequest, "The address is not a path", true}
		}
	}
	// A space cannot arrive in HTTP/1.1. In HTTP/2 it can, and would end the address on the origin's request line.
	if hasControl(r.URL.Path) || hasControl(target) || strings.Contains(target, " ") {
		return refusal{http.StatusBadRequest, "The address contains spaces or control characters", true}
	}
	if r.ProtoMajor >= 2 {
		// HTTP/2 has :authority; a Host field beside it must agree (RFC 9113 §8.3.1).
		for _, h := range r.Header["Host"] {
			if h != r.Host {
				return refusal{http.StatusBadRequest, "Host and :authority differ", true}
			}
		}
	}
	return refusal{}
}

// isLongAsk reports whether a target is too long only by a question of the waiting page: the page stands at whatever address it was
// shown at, and asks there.
func isLongAsk(target string) bool {
	if len(target) > anteroom.MaxTargetBytes+anteroom.MaxAskBytes {
		return false
	}
	path, query, _ := strings.Cut(target, "?")
	rest := len(path)
	if left := withoutAsk(query); left != "" {
		rest += 1 + len(left)
	}
	return rest <= anteroom.MaxTargetBytes
}

// checkHeaders counts lines, bytes and cookies and deletes what a client may not say. The
// two are one pass because every request pays for it. It finds the cookies on the way.
//
// More than MaxCookies pairs are refused rather than ignored: net/http parses none of them
// then, and a visitor with a place would look like a new one. Foreign says that something
// was deleted: the peer forwards for others, or lies.
func (x *exchange) checkHeaders() (no refusal, foreign bool) {
	r := x.r
	lines, size := 0, len(r.RequestURI)
	for name, values := range r.Header {
		lines += len(values)
		for _, v := range values {
			size += len(name) + len(v) + 4
		}
		if x.s.reserved(name, x.trusted) {
			delete(r.Header, name)
			foreign = true
		} else if name == "Cookie" {
			x.cookies = values
		}
	}
	switch {
	case lines > anteroom.MaxHeaderLines:
		return refusal{http.StatusRequestHeaderFieldsTooLarge, "Too many header lines", true}, foreign
	case size > anteroom.MaxHeaderBytes:
		return refusal{http.StatusRequestHeaderFieldsTooLarge, "The headers are too large", true}, foreign
	}
	pairs := 0
	for _, line := range x.cookies {
		pairs += strings.Count(line, ";") + 1
	}
	if pairs > anteroom.MaxCookies {
		return refusal{http.StatusRequestHeaderFieldsTooLarge, "Too many cookies: please delete the cookies of this website and try again", true}, foreign
	}
	return refusal{}, foreign
}

// fixFraming decides whether the connection may carry another request. net/http hides
// what it repaired (a Content-Length beside chunked, a Transfer-Encoding in HTTP/1.0), so
// every request that could have been repaired is the last on its connection, which is
// what RFC 9112 §6.1 and §6.3 ask for.
func fixFraming(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		return
	}
	if r.ProtoMinor == 0 || len(r.TransferEncoding) > 0 {
		w.Header()["Connection"] = valueClose
	}
}

// fixUpgrade leaves "Upgrade: websocket" alone and removes every other wish to change the
// protocol: httputil.ReverseProxy tunnels any token that the origin repeats, and what
// follows in the tunnel has passed no gate (golang.org/issue/80416). It reports whether the
// request asks for a WebSocket.
func fixUpgrade(r *http.Request) bool {
	h := r.Header
	values, ok := h["Upgrade"]
	if ok && len(values) == 1 && strings.EqualFold(values[0], "websocket") &&
		r.ProtoMajor == 1 && r.ProtoMinor >= 1 && r.Method == http.MethodGet && r.ContentLength == 0 &&
		hasToken(h["Connection"], "upgrade") {
		delete(h, "Http2-Settings")
		return true
	}
	if ok {
		delete(h, "Upgrade")
	}
	delete(h, "Http2-Settings")
	return false
}

// hasToken reports whether a comma-separated list, spread over any number of lines,
// contains the lower-case token in any case.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(part), token) {
				return true
			}
		}
	}
	return false
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// answer writes a refusal: plain text, never stored, nothing of the request in it.
func (x refusal) answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = valueTextPlain
	h["Cache-Control"] = valueNoStore
	h["X-Content-Type-Options"] = valueNosniff
	if x.status == http.StatusServiceUnavailable || x.status == http.StatusTooManyRequests {
		h["Retry-After"] = valueRetrySoon
	}
	if x.close && r.ProtoMajor == 1 {
		h["Connection"] = valueClose
	}
	w.WriteHeader(x.status)
	if r.Method != http.MethodHead {
		w.Write([]byte(x.text + "\n"))
	}
}
