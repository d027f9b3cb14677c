package h1

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

var errTarget = errors.New("h1: the address of the request contains a space or a control character")

// knows reports whether this package can send the request. The rest is net/http's: other protocols, unusual hosts,
// bodies of which nobody knows whether they exist.
func knows(r *http.Request, length int64) bool {
	switch {
	case r.URL == nil || r.Header == nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return false
	case r.URL.Opaque != "" && (r.URL.Opaque[0] != '/' || strings.HasPrefix(r.URL.Opaque, "//")):
		return false
	case !isToken(r.Method) || r.Method == http.MethodConnect || r.Header["Upgrade"] != nil || r.Header["Connection"] != nil:
		return false
	case len(r.Trailer) > 0 || len(r.TransferEncoding) > 0:
		return false
	case length < 0 && !carriesBody(r.Method):
		return false
	}
	return isPlainHost(r.URL.Host) && isPlainHost(r.Host)
}

// carriesBody reports whether requests of this method usually have a body.
func carriesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// isPlainHost reports whether a host, with or without a port, goes into the Host field as it is.
func isPlainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']':
		default:
			return false
		}
	}
	return true
}

// bodyLength is the length of a request's body: -1 when it is not known, 0 without one.
func bodyLength(r *http.Request) int64 {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return 0
	case r.ContentLength > 0:
		return r.ContentLength
	}
	return -1
}

// appendRequest appends the head of a request that this package knows, with a body of that length.
func appendRequest(b []byte, r *http.Request, length int64) ([]byte, error) {
	b = append(b, r.Method...)
	b = append(b, ' ')
	from := len(b)
	path := r.URL.Opaque
	if path == "" {
		path = r.URL.EscapedPath()
	}
	if path == "" {
		path = "/"
	}
	b = append(b, path...)
	if r.URL.ForceQuery || r.URL.RawQuery != "" {
		b = append(append(b, '?'), r.URL.RawQuery...)
	}
	for _, c := range b[from:] {
		if c <= 0x20 || c == 0x7f {
			return b, errTarget
		}
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	b = append(b, host...)
	b = append(b, "\r\n"...)
	switch {
	case length > 0 || length == 0 && carriesBody(r.Method):
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if r.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	for name, values := range r.Header {
		known := isCommon(name)
		if !known && !isCanonical(name) {
			name = http.CanonicalHeaderKey(name)
		}
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		case "User-Agent":
			// An empty one says that none shall be sent, as in net/http.
			if len(values) == 0 || values[0] == "" {
				continue
			}
		}
		if !known && !isToken(name) {
			return b, fmt.Errorf("h1: invalid field name %.60q", name)
		}
		for _, v := range values {
			if !isValue(v) {
				return b, fmt.Errorf("h1: invalid value of the field %.60q", name)
			}
			b = append(b, name...)
			b = append(b, ": "...)
			if v != "" && (isBlank(v[0]) || isBlank(v[len(v)-1])) {
				v = strings.Trim(v, " \t")
			}
			b = append(b, v...)
			b = append(b, "\r\n"...)
		}
	}
	return append(b, "\r\n"...), nil
}

// isRepeatable reports whether a request may be sent again when it is not known what became of it. The rule is that
// of net/http: PUT and DELETE are idempotent, but not every application knows.
func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
