package gateway

import "strings"

// Header names that a client may not use. A name is compared after folding: lower case,
// and '_' and '.' read as '-', because origins fold in these ways and have then taken a
// client's X_Forwarded_For for the proxy's own (CVE-2025-64484, CVE-2026-54763,
// CVE-2026-52845). They are deleted always; what we have to say is set afterwards.

// ourPrefix begins every header that we speak ourselves.
const ourPrefix = "x-anteroom-"

// claims are headers that say where a request comes from or what it really asks for. From
// an untrusted peer they are a claim and nothing more. Every name that begins with
// x-forwarded- or x-original- belongs here too.
var claims = map[string]bool{
	"forwarded":                true,
	"x-forwarded":              true,
	"x-real-ip":                true,
	"x-client-ip":              true,
	"client-ip":                true,
	"x-cluster-client-ip":      true,
	"true-client-ip":           true,
	"cf-connecting-ip":         true,
	"cf-connecting-ipv6":       true,
	"cf-pseudo-ipv4":           true,
	"fastly-client-ip":         true,
	"fly-client-ip":            true,
	"x-azure-clientip":         true,
	"x-azure-socketip":         true,
	"x-appengine-user-ip":      true,
	"x-envoy-external-address": true,
	"x-envoy-original-path":    true,
	"x-envoy-internal":         true,
	"x-proxyuser-ip":           true,
	"x-remote-ip":              true,
	"x-remote-addr":            true,
	"x-host":                   true,
	"x-scheme":                 true,
	"x-url-scheme":             true,
	"front-end-https":          true,
	"x-rewrite-url":            true,
	"x-http-method":            true,
	"x-http-method-override":   true,
	"x-method-override":        true,
	"x-ssl-client-cert":        true,
	"x-ssl-client-verify":      true,
	"cf-waiting-room-command":  true,
	"x-arr-ssl":                true,
	"x-appservice-proto":       true,
	"x-waws-unencoded-url":     true,
}

// maybeReserved is a quick look at the first byte; net/http has made it upper case.
func maybeReserved(name string) bool {
	switch name {
	case "":
		return true
	case "Cookie", "Connection", "Cache-Control":
		return false
	}
	switch name[0] {
	case 'X', 'F', 'C', 'T', 'x', 'f', 'c', 't':
		return true
	}
	return false
}

// reserved reports whether the header must be deleted. From a trusted proxy only our own
// names go, and forwarding headers in a spelling that no proxy uses.
func (s *setup) reserved(name string, trusted bool) bool {
	var buf [64]byte
	if len(name) == 0 || len(name) > len(buf) {
		// No header of ours or of the list is that long; a folded prefix of ours might be.
		return len(name) > len(buf) && hasFoldedPrefix(name, ourPrefix)
	}
	folded := buf[:0]
	alias := false
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '_' || c == '.':
			c, alias = '-', true
		}
		folded = append(folded, c)
	}
	if string(folded) == s.proofFolded || hasPrefix(folded, ourPrefix) {
		return true
	}
	if !hasPrefix(folded, "x-forwarded-") && !hasPrefix(folded, "x-original-") && !claims[string(folded)] {
		return false
	}
	return !trusted || alias || string(folded) == "cf-waiting-room-command"
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func hasFoldedPrefix(name, prefix string) bool {
	return fold(name[:len(prefix)]) == prefix
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
