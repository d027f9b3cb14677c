package crawler

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a DNS server on a UDP socket of this machine.
type zone struct {
	conn net.PacketConn

	mu    sync.Mutex
	names map[string][]string // reverse name or name → its names or addresses
	mute  map[string]bool     // questions that get no answer
	fail  map[string]bool     // questions that are answered with SERVFAIL
	asked []string
}

func startZone(t testing.TB, names map[string][]string) *zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{conn: conn, names: names, mute: map[string]bool{}, fail: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		z.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return z
}

// resolver is the system's own code, asking this server.
func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", z.conn.LocalAddr().String())
	}}
}

func (z *zone) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if out := z.answer(buf[:n]); out != nil {
			z.conn.WriteTo(out, from)
		}
	}
}

func (z *zone) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	z.asked = append(z.asked, name)
	if z.mute[name] {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Authoritative = true, true, true
	m.Additionals = nil
	values, known := z.names[name]
	switch {
	case z.fail[name]:
		m.RCode = dnsmessage.RCodeServerFailure
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, v := range values {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}}
		a, err := netip.ParseAddr(v)
		switch {
		case q.Type == dnsmessage.TypePTR && err != nil:
			r.Body = &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(v + ".")}
		case q.Type == dnsmessage.TypeA && err == nil && a.Is4():
			r.Body = &dnsmessage.AResource{A: a.As4()}
		case q.Type == dnsmessage.TypeAAAA && err == nil && a.Is6():
			r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, r)
	}
	out, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return out
}

func (z *zone) behave(f func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	f()
}

func (z *zone) saw(name string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Contains(z.asked, name)
}

// start runs the verifier until the test ends.
func start(t testing.TB, v *Verifier) {
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go v.Run(ctx)
}

// idle waits until no look-up is under way.
func idle(t testing.TB, v *Verifier) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		v.mu.Lock()
		n := len(v.pending)
		v.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d look-ups did not end", n)
		}
	}
}

const (
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	bingbot   = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/136.0.0.0 Safari/537.36"
	firefox   = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
)

// TestOnlyBothDirectionsVerify asks a real server by UDP, with the resolver that production
// has.
func TestOnlyBothDirectionsVerify(t *testing.T) {
	z := startZone(t, map[string][]string{
		// The real one.
		"1.66.249.66.in-addr.arpa":         {"crawl-66-249-66-1.googlebot.com"},
		"crawl-66-249-66-1.googlebot.com":  {"66.249.66.1"},
		"1.0.55.157.in-addr.arpa":          {"other.example", "msnbot-157-55-0-1.search.msn.com"},
		"msnbot-157-55-0-1.search.msn.com": {"157.55.9.9", "157.55.0.1"},
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.0.8.4.0.6.8.4.1.0.0.2.ip6.arpa": {"crawl-v6.googlebot.com"},
		"crawl-v6.googlebot.com": {"2001:4860:4804::1", "66.249.66.7"},

		// A reverse name that its owner has made up: the engine knows nothing of the address.
		"1.2.0.192.in-addr.arpa": {"crawl-66-249-66-1.googlebot.com"},
		"2.2.0.192.in-addr.arpa": {"crawl-none.googlebot.com"},
		// Names that only look so, and that do have the address.
		"3.2.0.192.in-addr.arpa":           {"evilgooglebot.com"},
		"evilgooglebot.com":                {"192.0.2.3"},
		"4.2.0.192.in-addr.arpa":           {"crawl.googlebot.com.evil.example"},
		"crawl.googlebot.com.evil.example": {"192.0.2.4"},
		"5.2.0.192.in-addr.arpa":           {"googlebot.com"},
		"googlebot.com":                    {"192.0.2.5"},
		// A proxy of Google's that anybody can use, and a machine that anybody can rent.
		"6.2.0.192.in-addr.arpa":             {"google-proxy-192-0-2-6.google.com"},
		"google-proxy-192-0-2-6.google.com":  {"192.0.2.6"},
		"7.2.0.192.in-addr.arpa":             {"7.2.0.192.bc.googleusercontent.com"},
		"7.2.0.192.bc.googleusercontent.com": {"192.0.2.7"},
		"8.2.0.192.in-addr.arpa":             {"a.googlebot.com", "b.googlebot.com", "c.googlebot.com", "d.googlebot.com", "late.googlebot.com"},
		"late.googlebot.com":                 {"192.0.2.8"},
		"9.2.0.192.in-addr.arpa":             {"CRAWL.GoogleBot.COM"},
		"crawl.googlebot.com":                {"192.0.2.9"},
	})
	z.behave(func() {
		z.fail["10.2.0.192.in-addr.arpa"] = true
		z.fail["broken.googlebot.com"] = true
		z.names["11.2.0.192.in-addr.arpa"] = []string{"broken.googlebot.com"}
	})
	v := New(z.resolver())
	start(t, v)
	for _, c := range []struct {
		addr, agent string
		want        bool
	}{
		{"66.249.66.1", googlebot, true},
		{"::ffff:66.249.66.1", "SAMSUNG-SGH-E250/1.0 (compatible; GOOGLEBOT-Mobile/2.1)", true},
		{"2001:4860:4804::1", googlebot, true},
		{"157.55.0.1", bingbot, true},
		{"192.0.2.9", googlebot, true},
		{"66.249.66.1", bingbot, false},
		{"66.249.66.1", firefox, false},
		{"66.249.66.1", "", false},
		{"66.249.66.2", googlebot, false},
		{"192.0.2.1", googlebot, false},
		{"192.0.2.2", googlebot, false},
		{"192.0.2.3", googlebot, false},
		{"192.0.2.4", googlebot, false},
		{"192.0.2.5", googlebot, false},
		{"192.0.2.6", googlebot, false},
		{"192.0.2.7", googlebot, false},
		{"192.0.2.8", googlebot, false}, // a fifth name is not asked for
		{"192.0.2.10", googlebot, false},
		{"192.0.2.11", googlebot, false},
		{"10.0.0.1", googlebot, false},
		{"127.0.0.1", googlebot, false},
		{"fe80::1", googlebot, false},
		{"0.0.0.0", googlebot, false},
	} {
		addr := netip.MustParseAddr(c.addr)
		v.Verified(addr, c.agent) // begins the look-up
		if idle(t, v); v.Verified(addr, c.agent) != c.want {
			t.Errorf("%s as %.60q: %v, want %v", c.addr, c.agent, !c.want, c.want)
		}
	}
	if v.Verified(netip.Addr{}, googlebot) {
		t.Error("no address is verified")
	}
	for _, never := range []string{"1.0.0.10.in-addr.arpa", "1.0.0.127.in-addr.arpa", "evilgooglebot.com", "late.googlebot.com"} {
		if z.saw(never) {
			t.Errorf("%s was asked for", never)
		}
	}
	if s := v.Stats(); s.Failed == 0 || s.Refuted == 0 || s.Confirmed == 0 || s.Verified != 4 {
		t.Errorf("stats %+v", s)
	}
}

// TestFirstRequestDoesNotWait: not even when the DNS says nothing at all.
func TestFirstRequestDoesNotWait(t *testing.T) {
	z := startZone(t, nil)
	z.behave(func() { z.mute["1.66.249.66.in-addr.arpa"] = true })
	v := New(z.resolver())
	start(t, v)
	addr := netip.MustParseAddr("66.249.66.1")
	began := time.Now()
	for range 1000 {
		if v.Verified(addr, googlebot) {
			t.Fatal("nobody has answered yet")
		}
	}
	if took := time.Since(began); took > lookupTime/2 {
		t.Errorf("a thousand questions took %v", took)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.pending) != 1 {
		t.Errorf("%d look-ups for one address", len(v.pending))
	}
}
