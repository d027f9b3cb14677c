package gateway

import "strings"

// Header names that a client may not use. Two rules come before any list:
//
//   - A name has letters, digits and hyphens only. CGI, FastCGI, WSGI and PHP turn every other
//     character into the same "_" as a hyphen, so that X_Forwarded_For or Content_Length from a
//     client replace the gateway's own (CVE-2025-64484, CVE-2026-54763, CVE-2026-52845). This
//     holds for trusted proxies too: many pass on what a stranger sent.
//   - A header that tells where a request comes from, or who sent it, is only believed if a
//     trusted proxy sends it. Its name says so by how it begins, or by a word in it.
//
// Reserved headers are always deleted; those that Anteroom sends are set afterwards.

// ourPrefix begins every header that we speak ourselves.
const ourPrefix = "x-anteroom-"

// claimPrefixes begin headers in which proxies and platforms report the client's address, its
// location, its certificate, or the user that they have authenticated.
var claimPrefixes = [...]string{
	"x-forwarded", "x-original-", "x-envoy-", "x-appengine-", "x-azure-", "x-remote-", "x-ssl-", "x-client-cert",
	"x-auth-request-", "x-authenticated-", "x-webauth-", "x-amzn-oidc-", "x-goog-authenticated-", "x-goog-iap-", "x-ms-client-principal",
	"cf-", "cloudfront-", "fastly-", "fly-", "proxy-", "remote-", "ssl-", "wl-",
}

// claimWords are parts of a name, between hyphens, that make it a statement about an address.
var claimWords = map[string]bool{
	"ip": true, "ipv4": true, "ipv6": true, "clientip": true, "remoteip": true, "realip": true, "ipcountry": true, "addr": true,
}

// claims are the others: they say where a request comes from or what it really asks for.
var claims = map[string]bool{
	"forwarded":              true,
	"x-host":                 true,
	"x-scheme":               true,
	"x-url-scheme":           true,
	"front-end-https":        true,
	"x-rewrite-url":          true,
	"x-http-method":          true,
	"x-http-method-override": true,
	"x-method-override":      true,
	"x-arr-ssl":              true,
	"x-appservice-proto":     true,
	"x-waws-unencoded-url":   true,
}

// reserved reports whether the header must be deleted. From a trusted proxy claims may stay.
func (s *setup) reserved(name string, trusted bool) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Cookie",
		"If-Modified-Since", "If-None-Match", "Origin", "Priority", "Range", "Referer", "Sec-Ch-Ua", "Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform",
		"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User", "Upgrade-Insecure-Requests", "User-Agent":
		return false // what browsers send, without a closer look
	case "":
		return true
	}
	var buf [64]byte
	folded, n := buf[:], min(len(name), len(buf)) // no name of the lists is longer
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		default:
			return true
		}
		if i < n {
			folded[i] = c
		}
	}
	folded = folded[:n]
	switch {
	case string(folded) == s.proofFolded, string(folded) == "proxy", string(folded) == "cf-waiting-room-command", hasPrefix(folded, ourPrefix):
		return true // Proxy becomes HTTP_PROXY in CGI, which HTTP clients there obey
	case trusted:
		return false
	}
	return isClaim(folded)
}

// isClaim reports whether a lower-case name is that of a header which only proxies may send.
func isClaim(name []byte) bool {
	for hasPrefix(name, "http-") { // as applications spell the variables of CGI
		name = name[len("http-"):]
	}
	for _, p := range claimPrefixes {
		if hasPrefix(name, p) {
			return true
		}
	}
	if claims[string(name)] {
		return true
	}
	for begin, i := 0, 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '-' {
			if claimWords[string(name[begin:i])] {
				return true
			}
			begin = i + 1
		}
	}
	return false
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// fold lower-cases a header name and reads '_' and '.' as '-'.
func fold(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c == '_' || c == '.':
			return '-'
		}
		return c
	}, name)
}
