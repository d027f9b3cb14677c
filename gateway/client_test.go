package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/ticket"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestClientAddress(t *testing.T) {
	many := strings.Repeat("10.0.0.9, ", 500) + "10.0.0.1"
	for _, c := range []struct {
		name    string
		peer    string
		headers []string // X-Forwarded-For lines
		want    string
	}{
		{"untrusted peer", "198.51.100.1", []string{"1.2.3.4"}, "198.51.100.1"},
		{"nothing said", "10.0.0.1", nil, "10.0.0.1"},
		{"one hop", "10.0.0.1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"left is never read", "10.0.0.1", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
		{"past our proxies", "10.0.0.1", []string{"6.6.6.6, 1.2.3.4, 10.0.0.7,\t10.0.0.8"}, "1.2.3.4"},
		{"two lines", "10.0.0.1", []string{"6.6.6.6", "1.2.3.4, 10.0.0.7"}, "1.2.3.4"},
		{"with a port", "10.0.0.1", []string{"1.2.3.4:5678"}, "1.2.3.4"},
		{"IPv6 with a port", "10.0.0.1", []string{"[::1]:80"}, "::1"},
		{"IPv6 in brackets", "10.0.0.1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 bare", "10.0.0.1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"zone", "10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"IPv4 in IPv6 is a trusted proxy", "10.0.0.1", []string{"1.2.3.4, ::ffff:10.0.0.1"}, "1.2.3.4"},
		{"peer as IPv4 in IPv6", "::ffff:10.0.0.1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"unknown", "10.0.0.1", []string{"1.2.3.4, unknown, 10.0.0.7"}, "10.0.0.7"},
		{"hidden", "10.0.0.1", []string{"_x"}, "10.0.0.1"},
		{"empty entry", "10.0.0.1", []string{"1.2.3.4, "}, "10.0.0.1"},
		{"spaces", "10.0.0.1", []string{" \t1.2.3.4 \t"}, "1.2.3.4"},
		{"500 hops of our own", "10.0.0.1", []string{many}, "10.0.0.9"},
		{"a long entry", "10.0.0.1", []string{strings.Repeat("9", 4000)}, "10.0.0.1"},
	} {
		s := &setup{trusted: prefixes("10.0.0.0/8")}
		h := http.Header{"X-Forwarded-For": c.headers, "Forwarded": {"for=9.9.9.9"}}
		peer := peerOf(netip.AddrPortFrom(netip.MustParseAddr(c.peer), 1234).String())
		got := peer
		if s.isTrusted(peer) {
			got = s.clientOf(h, peer)
		}
		if got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestPeer(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::1]:80": "::1", "[fe80::1%lo]:80": "fe80::1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"@": "invalid IP", "": "invalid IP", "192.0.2.1": "192.0.2.1",
	} {
		if got := peerOf(in).String(); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// A request has the networks of its client, whoever asks for them. A trusted proxy that names no client has none.
func TestNetworksOfARequest(t *testing.T) {
	keys := ticket.NewKeyring(time.Now())
	g := build(t, Config{Keys: keys, TrustedProxies: prefixes("10.0.0.0/8")}, nil)
	for _, c := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:80", "", "192.0.2.1"},
		{"192.0.2.1:80", "198.51.100.7", "192.0.2.1"},
		{"10.0.0.1:80", "6.6.6.6, 198.51.100.7", "198.51.100.7"},
		{"10.0.0.1:80", "", ""},
		{"10.0.0.1:80", "10.0.0.2", ""},
		{"@", "198.51.100.7", ""},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		if r.RemoteAddr = c.peer; c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		addr, _ := netip.ParseAddr(c.want)
		if got, want := g.Networks(r), keys.Networks(addr); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

func TestAddressKey(t *testing.T) {
	for in, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3::4": "2001:db8:1:2::"} {
		if got := addressKey(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestForwardingHeadersOfTheOrigin(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted bool
		headers []string
		want    map[string]string
	}{
		{"a visitor's own are dropped", false,
			[]string{"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil", "Forwarded", "for=6.6.6.6", "X-Real-Ip", "6.6.6.6"},
			map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": testHost, "X-Real-Ip": "127.0.0.1", "Forwarded": ""}},
		{"a trusted proxy's are continued", true,
			[]string{"X-Forwarded-For", "6.6.6.6, 1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "www.example.com"},
			map[string]string{"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.example.com", "X-Real-Ip": "1.2.3.4"}},
		{"Forwarded is dropped", true,
			[]string{"X-Forwarded-For", "1.2.3.4", "Forwarded", "for=6.6.6.6"},
			map[string]string{"X-Forwarded-For": "1.2.3.4, 127.0.0.1", "Forwarded": "", "X-Real-Ip": "1.2.3.4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit, withConfig(func(cfg *Config) {
				if c.trusted {
					cfg.TrustedProxies = prefixes("127.0.0.0/8")
				}
			}))
			w.do("GET", "/", header(c.headers...))
			got := w.origin.last(t)
			for name, want := range c.want {
				if v := strings.Join(got.Header[name], "|"); v != want {
					t.Errorf("%s: %q, want %q", name, v, want)
				}
			}
			if got.Host != testHost || !strings.HasPrefix(got.Header.Get(hopHeader), "anteroom-") {
				t.Errorf("Host %q, hops %q", got.Host, got.Header.Get(hopHeader))
			}
		})
	}
}
