package gateway

import (
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// peerOf returns the address at the other end of the connection; the zero Addr for a Unix
// socket and for what cannot be read. IPv4 in IPv6 clothes is undressed and zones go.
func peerOf(remote string) netip.Addr {
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	if a, err := netip.ParseAddr(remote); err == nil {
		return a.Unmap().WithZone("")
	}
	return netip.Addr{}
}

// isTrusted reports whether the address is one of the operator's proxies.
func (s *setup) isTrusted(a netip.Addr) bool { return containsAddr(s.trusted, a) }

func containsAddr(in []netip.Prefix, a netip.Addr) bool {
	for _, p := range in {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// unlistedProxy is a peer that brings requests of others, and is not in [Config.TrustedProxies].
type unlistedProxy struct {
	peer     netip.Addr
	at, told time.Time // seen, and in the log
}

// proxyAgain is how soon the log tells of such a peer again, and proxySeen how long it counts as seen.
const proxyAgain, proxySeen = time.Hour, time.Minute

// noteProxy remembers a peer that seems to be a proxy, if it is on an internal network: anybody else can seem to be one.
func (x *exchange) noteProxy() {
	if x.trusted || !x.peer.IsPrivate() && !x.peer.IsLoopback() {
		return
	}
	old, seen := x.g.unlisted.Load(), &unlistedProxy{peer: x.peer, at: x.start, told: x.start}
	if old != nil {
		if x.start.Sub(old.at) < time.Second {
			return
		}
		if x.start.Sub(old.told) < proxyAgain {
			seen.told = old.told
		}
	}
	if x.g.unlisted.CompareAndSwap(old, seen) && seen.told == x.start && x.s.log != nil {
		x.s.log.Warn("a proxy that is not in trusted_proxies brings visitors: they all count as one address", "proxy", x.peer)
	}
}

// UnlistedProxy returns a peer on an internal network that brought requests of others in the last minute, and is not in
// [Config.TrustedProxies].
func (g *Gateway) UnlistedProxy() (peer netip.Addr, ok bool) {
	if one := g.unlisted.Load(); one != nil && time.Since(one.at) < proxySeen && !g.live.Load().isTrusted(one.peer) {
		return one.peer, true
	}
	return netip.Addr{}, false
}

// clientOf walks the forwarding header from the right, past our own proxies, to the first
// address that is not one of them. What stands further left was written by strangers and
// is never read. Where an entry is no address ("unknown", "_hidden") the walk ends at the
// proxy that wrote it.
//
// Forwarded (RFC 7239) is never read: a proxy that maintains X-Forwarded-For passes it on as the client sent it.
func (s *setup) clientOf(h http.Header, peer netip.Addr) netip.Addr {
	client := peer
	for _, line := range slices.Backward(h["X-Forwarded-For"]) {
		for {
			i := strings.LastIndexByte(line, ',')
			a, ok := parseHop(line[i+1:])
			if !ok {
				return client
			}
			if client = a; !s.isTrusted(a) {
				return client
			}
			if i < 0 {
				break
			}
			line = line[:i]
		}
	}
	return client
}

// parseHop reads one entry: an address, with or without port and brackets.
func parseHop(s string) (netip.Addr, bool) {
	s = textproto.TrimString(s)
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		s = s[1 : len(s)-1]
	}
	if len(s) > 64 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// isHTTPS reports whether the visitor speaks HTTPS: to us, or to the trusted proxy that says so.
func isHTTPS(r *http.Request, trusted bool) bool {
	if r.TLS != nil {
		return true
	}
	if !trusted {
		return false
	}
	v := r.Header["X-Forwarded-Proto"]
	return len(v) == 1 && strings.EqualFold(v[0], "https")
}

// addressKey is what budgets count by: an IPv4 address, or the /64 of an IPv6 address,
// which is what one subscriber has.
func addressKey(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
