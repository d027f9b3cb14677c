package route

import (
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/anteroom/anteroom"
)

// DefaultCookieName is the published name of the ticket cookie.
const DefaultCookieName = "__cfwaitingroom"

// Scope says where a ticket lives in the visitor's browser.
type Scope struct {
	Name string
	// Domain is where browsers may send the cookie; empty means the host that set it only.
	Domain string
	Path   string
	// HostOnly leaves out the Domain attribute, because Domain is the room's only host: the
	// ticket does not go to the hosts below it.
	HostOnly bool
}

// HostPrefix begins the name of a cookie that browsers take only over HTTPS, for "/" and without
// a Domain attribute, so that no other host and no plain HTTP can set one.
const HostPrefix = "__Host-"

// Covers reports whether a browser sends the cookie with a request for path, as it is
// spelled: it decodes nothing and knows upper and lower case (RFC 6265 section 5.1.4).
func (s Scope) Covers(path string) bool {
	return isWithinPath(path, strings.TrimSuffix(s.Path, "/"))
}

// Cookie derives the scope of a room's ticket from its routes. The name is the given one,
// or [DefaultCookieName] when that is empty, with "_" and the room's suffix. The domain is
// the host of the routes, or the longest domain that their hosts have in common; the path
// is the longest path that they have in common, at segment boundaries.
//
// A room with one host needs no Domain attribute, and there is none for "*", for an address, and for a host that is itself a
// public suffix (https://publicsuffix.org) like "localhost": browsers refuse it. Several
// hosts that have nothing more than such a suffix in common cannot share a cookie; that
// is an error of kind Invalid, and so is a room that a name with [HostPrefix] cannot serve.
func Cookie(room anteroom.Room, name string) (Scope, error) {
	s := Scope{Name: cookieName(room, name), Path: "/"}
	room = room.WithDefaults()
	host, path := canonical(room.Routes[0])
	several := false
	for _, rt := range room.Routes[1:] {
		h, p := canonical(rt)
		if h == "*" || host == "*" {
			host = "*"
		} else if h != host {
			several = true
			host = commonDomain(host, h)
		}
		path = commonPath(path, p)
	}
	if path != "" {
		s.Path = path
	}
	if strings.HasPrefix(name, HostPrefix) && (several || s.Path != "/") {
		return s, anteroom.Errorf(anteroom.Invalid, "browsers accept a cookie whose name begins with %s only for one host and the path /", HostPrefix)
	}
	if host == "*" {
		return s, nil
	}
	if isRegistrable(host) {
		s.Domain, s.HostOnly = host, !several
	} else if several {
		return s, anteroom.Errorf(anteroom.Invalid, "the hosts of the room have no domain in common that a cookie could be set for")
	}
	return s, nil
}

func cookieName(room anteroom.Room, name string) string {
	if name == "" {
		name = DefaultCookieName
	}
	if room.CookieSuffix != "" {
		name += "_" + room.CookieSuffix
	}
	return name
}

// isRegistrable reports whether a cookie can have the domain.
func isRegistrable(domain string) bool {
	if domain == "" || domain[0] == '[' || isNumber(domain[strings.LastIndexByte(domain, '.')+1:]) {
		return false
	}
	_, err := publicsuffix.EffectiveTLDPlusOne(domain)
	return err == nil
}

func commonDomain(a, b string) string {
	for !isWithinDomain(b, a) {
		_, parent, found := strings.Cut(a, ".")
		if !found {
			return ""
		}
		a = parent
	}
	return a
}

func isWithinDomain(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

func commonPath(a, b string) string {
	for !isWithinPath(b, a) {
		a = a[:strings.LastIndexByte(a, '/')]
	}
	return a
}

// isWithinPath reports whether p is the prefix or below it; "" is the prefix of all.
func isWithinPath(p, prefix string) bool {
	return strings.HasPrefix(p, prefix) && (len(p) == len(prefix) || p[len(prefix)] == '/')
}
