package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// ErrRefused is in the chain of the error of a connection that a Guard has refused.
var ErrRefused = errors.New("it may not be reached; webhooks.allow_networks in the configuration allows more networks")

// Guard decides which addresses deliveries may go to. The zero Guard allows public addresses.
type Guard struct {
	// Allow are the networks that may be reached though they are not public, and over plain HTTP;
	// nil means none.
	Allow func() []netip.Prefix
	// Own are the addresses of this machine, which are refused like those that are not public; nil
	// means those of its network interfaces.
	Own func() []netip.Addr
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// refused are the networks that are not public, or lead to such: IANA's registries of special
// addresses. Of IPv6 they are those inside global; what carries an IPv4 address inside is looked at
// by that, too.
var refused = func() (all []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "3fff::/20",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}()

var (
	global = netip.MustParsePrefix("2000::/3")     // all that IANA gives out as public of IPv6
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // the IPv4 address is in the last four bytes
	sixTo4 = netip.MustParsePrefix("2002::/16")    // and here in bytes 2 to 5
)

// Check returns an error that wraps ErrRefused for an address that must not be reached. Plain says
// that the connection would not be encrypted: then only what Allow names may be.
func (g Guard) Check(a netip.Addr, plain bool) error {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return fmt.Errorf("%v cannot be the address of a receiver: %w", a, ErrRefused)
	}
	if g.Allow != nil && slices.ContainsFunc(g.Allow(), func(n netip.Prefix) bool { return n.Contains(a) }) {
		return nil
	}
	if plain {
		return fmt.Errorf("%v is a plain HTTP address: %w", a, ErrRefused)
	}
	inside := a
	if b := a.As16(); nat64.Contains(a) {
		inside = netip.AddrFrom4([4]byte(b[12:16]))
	} else if sixTo4.Contains(a) {
		inside = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if a.Is6() && inside == a && !global.Contains(a) {
		return fmt.Errorf("%v is not public: %w", a, ErrRefused)
	}
	for _, one := range []netip.Addr{a, inside} {
		if slices.ContainsFunc(refused, func(n netip.Prefix) bool { return n.Contains(one) }) {
			return fmt.Errorf("%v is not public: %w", a, ErrRefused)
		}
	}
	own := g.Own
	if own == nil {
		own = ownAddresses
	}
	if mine := own(); slices.Contains(mine, a) || slices.Contains(mine, inside) {
		return fmt.Errorf("%v is an address of this machine: %w", a, ErrRefused)
	}
	return nil
}

func ownAddresses() (all []netip.Addr) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, one := range addresses {
		if p, err := netip.ParsePrefix(one.String()); err == nil {
			all = append(all, p.Addr().Unmap())
		}
	}
	return all
}

// CheckURL returns what is wrong with the URL of a webhook, as far as that is known without a lookup: plain HTTP where
// it is not allowed, or a numeric address that is refused.
func (g Guard) CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("is not a URL")
	}
	plain := u.Scheme != "https"
	if plain && (g.Allow == nil || len(g.Allow()) == 0) {
		return errors.New("does not begin with https://; plain HTTP needs webhooks.allow_networks in the configuration")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.Check(a, plain)
	}
	return nil
}

// Times and sizes of one attempt.
const (
	attemptTime = 10 * time.Second
	dialTime    = 5 * time.Second
	maxHeader   = 64 << 10
	maxAnswer   = 64 << 10
)

// client returns what sends: it asks no proxy, follows no redirect, keeps no connection, and
// looks at the address of each connection after the name was resolved and before it is opened.
func (g Guard) client(plain bool) *http.Client {
	d := &net.Dialer{Timeout: dialTime, Resolver: g.Resolver, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%q cannot be the address of a receiver: %w", address, ErrRefused)
		}
		return g.Check(ap.Addr(), plain)
	}}
	return &http.Client{
		Timeout:       attemptTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: d.DialContext, TLSHandshakeTimeout: dialTime, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
	}
}

// Do sends a request, once. The answer's body is not returned: nobody must read by it what is behind an address. The error does not say
// the URL, which may be a secret.
func (g Guard) Do(r *http.Request) (status int, header http.Header, err error) {
	res, err := g.client(r.URL.Scheme != "https").Do(r)
	if errors.Is(err, ErrRefused) {
		return 0, nil, fmt.Errorf("the address: %w", ErrRefused)
	} else if err != nil {
		return 0, nil, bare(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, res.Header, nil
}

// Get returns what a URL answers to GET, of at most limit bytes: for what operators let Anteroom fetch.
func (g Guard) Get(ctx context.Context, url string, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	res, err := g.client(r.URL.Scheme != "https").Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("the answer is longer than %d bytes", limit)
	}
	return body, err
}
