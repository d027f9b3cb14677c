package route

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const (
	maxHostLength  = 253 // RFC 1035 section 2.3.4, without the trailing dot
	maxLabelLength = 63
)

// Host returns the canonical form of a host as it stands in a request: lower case,
// without port and without one trailing dot, international names as A-labels (RFC 5891),
// IPv6 literals in brackets in their shortest form (RFC 5952). Applied twice it gives the
// same. A name that is canonical but for a port costs no allocation.
//
// It refuses with [ErrHost] everything that somebody else could take for another host:
// empty names and labels, percent-encoding, user information, lists, spaces, zones,
// numbers that are not a dotted IPv4 address, A-labels that do not round-trip, ports that
// are not 1 to 65535.
func Host(raw string) (string, error) {
	if strings.HasPrefix(raw, "[") {
		return ipv6(raw)
	}
	name, err := cutPort(raw)
	if err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", badHost("it is empty")
	}
	if !isASCII(name) {
		// Before the mapping, so that no fullwidth "/" or "%" becomes a plain one unseen.
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", badHost("it is not an international name")
		}
	}
	if name = lowerASCII(name); len(name) > maxHostLength {
		return "", badHost("it has more than 253 bytes")
	}
	return name, checkName(name)
}

// checkName looks at a lower-case ASCII name label by label.
func checkName(name string) error {
	international, last := false, ""
	for rest, more := name, true; more; {
		var label string
		label, rest, more = strings.Cut(rest, ".")
		if label == "" {
			return badHost("it has an empty label")
		}
		if len(label) > maxLabelLength {
			return badHost("it has a label of more than 63 bytes")
		}
		for i := range len(label) {
			c := label[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return badHost("it has a character that no host name has")
			}
		}
		international = international || strings.HasPrefix(label, "xn--")
		last = label
	}
	// WHATWG URL, "ends in a number": many resolvers read 127.1 or 0x7f.1 as an address.
	if last[0] >= '0' && last[0] <= '9' && isNumber(last) {
		if a, err := netip.ParseAddr(name); err != nil || !a.Is4() {
			return badHost("it is a number and not an IPv4 address")
		}
	}
	if international {
		if again, err := idna.Lookup.ToASCII(name); err != nil || again != name {
			return badHost("it has an A-label that is not canonical")
		}
	}
	return nil
}

func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return strings.Trim(label[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// ipv6 returns the canonical form of "[address]" or "[address]:port".
func ipv6(raw string) (string, error) {
	end := strings.IndexByte(raw, ']')
	if end < 0 {
		return "", badHost("an IPv6 literal has no closing bracket")
	}
	if port := raw[end+1:]; port != "" && (port[0] != ':' || !isPort(port[1:])) {
		return "", badHost("the port is not valid")
	}
	addr, err := netip.ParseAddr(raw[1:end])
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", badHost("it is not an IPv6 address without a zone")
	}
	var space [64]byte
	short := addr.AppendTo(space[:0])
	if string(short) == raw[1:end] {
		return raw[:end+1], nil
	}
	return "[" + string(short) + "]", nil
}

// cutPort removes the port. RFC 3986 section 3.2.3 allows an empty one.
func cutPort(raw string) (string, error) {
	name, port, found := strings.Cut(raw, ":")
	if found && !isPort(port) {
		return "", badHost("the port is not valid")
	}
	return name, nil
}

func isPort(port string) bool {
	if port == "" {
		return true
	}
	if port[0] < '1' || port[0] > '9' {
		return false
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lowerASCII returns s itself when there is nothing to change.
func lowerASCII(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}
