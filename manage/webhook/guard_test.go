package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anteroom/anteroom"
)

func allow(networks ...string) func() []netip.Prefix {
	var all []netip.Prefix
	for _, n := range networks {
		all = append(all, netip.MustParsePrefix(n))
	}
	return func() []netip.Prefix { return all }
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	g := Guard{Own: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.216.34")} }}
	for _, a := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"192.0.0.170", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::7f00:1", "64:ff9b:1::1",
		"2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:c0a8:101::1", "2001::1", "2001:db8::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "100::1", "5f00::1", "3fff::1",
		"::ffff:0:127.0.0.1", "::ffff:0:169.254.169.254", "64:ff9b:1:7f00:0:100::", "64:ff9a::1", "1::1", "4000::1", "8000::1", "f000::1", "100:0:0:1::1", "2001:20::1",
		"93.184.216.34", "::ffff:93.184.216.34", "64:ff9b::93.184.216.34",
	} {
		if err := g.Check(netip.MustParseAddr(a), false); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := g.Check(netip.MustParseAddr("2a00::1").WithZone("eth0"), false); !errors.Is(err, ErrRefused) {
		t.Errorf("an address with a zone: %v", err)
	}
	if err := g.Check(netip.Addr{}, false); !errors.Is(err, ErrRefused) {
		t.Errorf("no address: %v", err)
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"} {
		if err := g.Check(netip.MustParseAddr(a), false); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		if err := g.Check(netip.MustParseAddr(a), true); !errors.Is(err, ErrRefused) {
			t.Errorf("%s over plain HTTP: %v", a, err)
		}
	}
	g.Allow = allow("10.1.0.0/16", "93.184.216.34/32")
	for a, ok := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "93.184.216.34": true, "10.2.0.1": false, "127.0.0.1": false} {
		for _, plain := range []bool{false, true} {
			if err := g.Check(netip.MustParseAddr(a), plain); (err == nil) != ok {
				t.Errorf("%s allowed, plain %v: %v", a, plain, err)
			}
		}
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "gopher://example.com/", "file:///etc/passwd", "https://user@example.com/", "https://user:secret@example.com/", "https://", "https:///x", "//example.com/",
		"https:example.com", "https://example.com/#x", "https://example.com/ x", "https://example.com/\n", "https://[fe80::1%25eth0]/", "ftp://example.com/", "https://example.com:port/",
		"https://example.com/" + strings.Repeat("x", anteroom.MaxWebhookURL)} {
		w := anteroom.Webhook{Name: "x", URL: u}.WithDefaults()
		f := w.Check()
		if len(f) != 1 || f[0].Path != "url" {
			t.Errorf("%.60q: %v", u, f)
		}
	}
	g := Guard{}
	for _, u := range []string{"http://example.com/", "https://169.254.169.254/", "https://[::ffff:169.254.169.254]/", "https://127.0.0.1:8081/", "https://[::1]/"} {
		if err := g.CheckURL(u); err == nil {
			t.Errorf("%s passes", u)
		}
	}
	for _, u := range []string{"https://example.com/x?y=z", "https://8.8.8.8/"} {
		if err := g.CheckURL(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	g.Allow = allow("127.0.0.0/8")
	for _, u := range []string{"http://127.0.0.1/", "http://inside.example/", "https://127.0.0.1/"} {
		if err := g.CheckURL(u); err != nil {
			t.Errorf("%s, allowed: %v", u, err)
		}
	}
}

// nameServer answers every question for an IPv4 address with the next of these, the last again and
// again, and returns who asks it.
func nameServer(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var asked atomic.Int64
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				i := min(int(asked.Add(1)), len(answers)) - 1
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: netip.MustParseAddr(answers[i]).As4()}}}
			}
			if b, err := m.Pack(); err == nil {
				c.WriteTo(b, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// receiver is a real one on the loopback interface; it counts what reaches it.
func receiver(t *testing.T, answer http.HandlerFunc) (url, port string, reached *atomic.Int64) {
	t.Helper()
	reached = &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	_, port, _ = net.SplitHostPort(srv.Listener.Addr().String())
	return srv.URL, port, reached
}

func ok(http.ResponseWriter, *http.Request) {}

func target(url string) Target {
	return Target{anteroom.Webhook{ID: "1", Name: "on call", URL: url}.WithDefaults(), []string{"secret"}}
}

// A name is looked at after it was resolved, for each connection: what it said before counts for
// nothing.
func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	_, port, reached := receiver(t, ok)
	for _, answer := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0"} {
		s := NewSender(Config{Guard: Guard{Resolver: nameServer(t, answer)}})
		out := s.Try(t.Context(), target("https://outside.example.com:"+port+"/"), Message{})
		if out.Err == nil || out.Status != 0 || !strings.Contains(out.Err.Error(), ErrRefused.Error()) {
			t.Errorf("%s: %+v", answer, out)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests came in", n)
	}
	// What is allowed the first time, and has moved the second time.
	s := NewSender(Config{Guard: Guard{Resolver: nameServer(t, "127.0.0.1", "127.0.0.2"), Allow: allow("127.0.0.1/32")}})
	to := target("http://rebound.example.com:" + port + "/")
	if out := s.Try(t.Context(), to, Message{}); out.Err != nil || out.Status != 200 {
		t.Errorf("%+v", out)
	}
	if out := s.Try(t.Context(), to, Message{}); out.Err == nil || out.Status != 0 {
		t.Errorf("after it has moved: %+v", out)
	}
	if n := reached.Load(); n != 1 {
		t.Errorf("%d requests came in", n)
	}
}

func TestPlainHTTPOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	url, _, reached := receiver(t, ok)
	s := NewSender(Config{Guard: Guard{Allow: allow("10.0.0.0/8")}})
	if out := s.Try(t.Context(), target(url), Message{}); out.Err == nil {
		t.Error("plain HTTP to where it is not allowed")
	}
	if reached.Load() != 0 {
		t.Error("it was reached")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	inside, _, reached := receiver(t, ok)
	url, _, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})
	s := NewSender(Config{Guard: Guard{Allow: allow("127.0.0.0/8")}})
	out := s.Try(t.Context(), target(url), Message{})
	if out.Status != 307 || out.Err == nil || !strings.Contains(out.Err.Error(), "does not follow redirects") || reached.Load() != 0 {
		t.Errorf("%+v, %d", out, reached.Load())
	}
}

// TestProxyOfTheEnvironmentIsNotAsked: a proxy would reach what we must not.
func TestProxyOfTheEnvironmentIsNotAsked(t *testing.T) {
	proxy, _, asked := receiver(t, ok)
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("HTTPS_PROXY", proxy)
	s := NewSender(Config{Guard: Guard{Resolver: nameServer(t, "127.0.0.9"), Allow: allow("127.0.0.1/32")}})
	for _, u := range []string{"http://outside.example.com/", "https://outside.example.com/"} {
		if out := s.Try(t.Context(), target(u), Message{}); out.Err == nil {
			t.Errorf("%s: %+v", u, out)
		}
	}
	if asked.Load() != 0 {
		t.Error("the proxy was asked")
	}
}

// TestErrorsAreSilentAboutTheURL: it may be all that keeps a chat room closed.
func TestErrorsAreSilentAboutTheURL(t *testing.T) {
	t.Parallel()
	s := NewSender(Config{Guard: Guard{Resolver: nameServer(t, "127.0.0.1")}})
	for _, u := range []string{"https://outside.example.com/services/T0/B0/secretsecret", "https://127.0.0.1:1/secretsecret", "://secretsecret"} {
		if out := s.Try(t.Context(), target(u), Message{}); out.Err == nil || strings.Contains(out.Err.Error(), "secretsecret") {
			t.Errorf("%v", out.Err)
		}
	}
}

// What operators let Anteroom fetch is guarded like what it sends, and bounded.
func TestGet(t *testing.T) {
	t.Parallel()
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/keys":
			w.Write([]byte("keys"))
		case "/moved":
			http.Redirect(w, r, "/keys", http.StatusFound)
		case "/endless":
			for range 100 {
				w.Write(make([]byte, 1<<10))
			}
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer inside.Close()
	for _, closed := range []string{inside.URL + "/keys", strings.Replace(inside.URL, "127.0.0.1", "localhost", 1) + "/keys", "https://169.254.169.254/keys", "file:///etc/passwd"} {
		if text, err := (Guard{}).Get(t.Context(), closed, 1<<10); err == nil || text != nil {
			t.Errorf("%s: %q", closed, text)
		}
	}
	open := Guard{Allow: allow("127.0.0.0/8")}
	if text, err := open.Get(t.Context(), inside.URL+"/keys", 4); string(text) != "keys" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	for _, path := range []string{"/moved", "/endless", "/broken"} {
		if _, err := open.Get(t.Context(), inside.URL+path, 1<<10); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}
