package fastly

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// The published vectors: of the VCL pattern at 1700000023 with a wait of 30 s, and of the Compute starter.
const (
	vclKeys   = "key1 c2VjcmV0LWtleS1ieXRlcw=="
	vclCookie = "dec=wait&exp=1700000070&uid=203.0.113.7&kid=key1&sig=" +
		"0x3f9a10bd512b985bfb26afe5be96909271c9a2ba0774a7c2a25832bc8e21197799577ba49aec0dbd587d254f02e5ee450d985054c0f03eaf972f139474594dde"
	jwtSecret = "sample-jwt-secret"
	jwtCookie = "eyJhbGciOiJIUzI1NiJ9.eyJwb3NpdGlvbiI6NDIsImV4cGlyeSI6IjIxMDAtMDEtMDFUMDA6MDA6MDAuMDAwWiJ9.3hMz2_DD3NR_LUKKyUfRSRJnVWiSQrxrQKcZTYxLc-0"
)

var (
	since  = time.Unix(1700000030, 0)
	now    = since.Add(time.Minute)
	client = netip.MustParseAddr("203.0.113.7")
)

func reader(t testing.TB, starter, secret string, length int) *Reader {
	t.Helper()
	r, err := New(starter, []byte(secret), since, length, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func vcl(text, key string) string {
	h := hmac.New(sha512.New, []byte(key))
	h.Write([]byte(text))
	return text + "&sig=0x" + hex.EncodeToString(h.Sum(nil))
}

func jwt(header, claims, secret string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func TestVCL(t *testing.T) {
	t.Parallel()
	r := reader(t, VCL, vclKeys+"\n\nkey2 b3RoZXI=\n", 0)
	const key = "secret-key-bytes"
	if got := vcl("dec=wait&exp=1700000070&uid=203.0.113.7&kid=key1", key); got != vclCookie {
		t.Fatalf("the test signs %s", got)
	}
	text := func(dec string, exp int64, uid, kid string) string {
		return fmt.Sprintf("dec=%s&exp=%d&uid=%s&kid=%s", dec, exp, uid, kid)
	}
	at := now.Unix()
	for _, c := range []struct {
		name, cookie, user string
		from               string
		at                 time.Time
		ok, admitted       bool
	}{
		{name: "the vector", cookie: vclCookie, ok: true},
		{name: "allowed", cookie: vcl(text("allow", at, "203.0.113.7", "key1"), key), ok: true, admitted: true},
		{name: "allowed, expired", cookie: vcl(text("allow", at-1, "203.0.113.7", "key1"), key)},
		{name: "another key of the table", cookie: vcl(text("wait", at, "203.0.113.7", "key2"), "other"), ok: true},
		{name: "a user", cookie: vcl(text("wait", at, "ann&uid=x", "key1"), key), user: "x"},
		{name: "a user's own", cookie: vcl(text("wait", at, "ann", "key1"), key), user: "ann", ok: true},
		{name: "another user", cookie: vcl(text("wait", at, "ann", "key1"), key), user: "bob"},
		{name: "a user without the header", cookie: vcl(text("wait", at, "ann", "key1"), key)},
		{name: "an address with a user", cookie: vclCookie, user: "ann"},
		{name: "another address", cookie: vclCookie, from: "203.0.113.8"},
		{name: "the address as IPv6", cookie: vclCookie, from: "::ffff:203.0.113.7", ok: true},
		{name: "IPv6 in another spelling", cookie: vcl(text("wait", at, "2001:db8:0::1", "key1"), key), from: "2001:db8::1", ok: true},
		{name: "no address", cookie: vclCookie, from: "-"},
		{name: "unknown key", cookie: vcl(text("wait", at, "203.0.113.7", "key3"), key)},
		{name: "the key of another", cookie: vcl(text("wait", at, "203.0.113.7", "key2"), key)},
		{name: "unknown decision", cookie: vcl(text("deny", at, "203.0.113.7", "key1"), key)},
		{name: "expiry is no number", cookie: vcl("dec=wait&exp=soon&uid=203.0.113.7&kid=key1", key)},
		{name: "an expiry that overflows", cookie: vcl(text("wait", -1<<63, "203.0.113.7", "key1"), key)},
		{name: "another order", cookie: vcl("exp=1700000070&dec=wait&uid=203.0.113.7&kid=key1", key)},
		{name: "no 0x", cookie: strings.Replace(vclCookie, "0x", "", 1)},
		{name: "upper case, as no starter writes it", cookie: strings.Replace(vclCookie, "dec=wait", "dec=WAIT", 1)},
		{name: "wait made allow", cookie: strings.Replace(vclCookie, "wait", "allow", 1)},
		{name: "half a signature", cookie: vclCookie[:len(vclCookie)-64]},
		{name: "before the cut-over", cookie: vclCookie, at: since.Add(-time.Second)},
		{name: "at the cut-over", cookie: vclCookie, at: since, ok: true},
		{name: "an hour later", cookie: vclCookie, at: since.Add(validFor), ok: true},
		{name: "after that", cookie: vclCookie, at: since.Add(validFor + 1)},
		{name: "too long", cookie: vcl(text("wait", at, strings.Repeat("a", maxCookie), "key1"), key), user: strings.Repeat("a", maxCookie)},
		{name: "empty"},
	} {
		from, when := client, now
		if c.from != "" {
			from, _ = netip.ParseAddr(c.from)
		}
		if !c.at.IsZero() {
			when = c.at
		}
		k, admitted, ok := r.Read(c.cookie, from, c.user, when)
		if ok != c.ok || admitted != c.admitted {
			t.Errorf("%s: %v, admitted %v", c.name, ok, admitted)
		}
		if !ok && k != (anteroom.Ticket{}) || ok && (k.Accepted() || k.ID.IsZero() || k.Arrival >= anteroom.TimeOf(since) || k.Next != anteroom.TimeOf(when)) {
			t.Errorf("%s: %+v", c.name, k)
		}
	}
	waits, _, _ := r.Read(vclCookie, client, "", now)
	again, _, _ := r.Read(vclCookie, client, "", now.Add(time.Minute))
	inside, _, _ := r.Read(vcl(text("allow", at, "203.0.113.7", "key1"), key), client, "", now)
	if waits.ID != again.ID || waits.Arrival != again.Arrival {
		t.Error("the same cookie is another visitor")
	}
	if inside.Arrival >= waits.Arrival || inside.ID != waits.ID {
		t.Error("an admitted visitor does not come first, or is another than the one who waited")
	}
}

func TestCompute(t *testing.T) {
	t.Parallel()
	r := reader(t, Compute, jwtSecret+"\n", 100)
	const header = `{"alg":"HS256"}`
	claims := func(position any, expiry string) string {
		return fmt.Sprintf(`{"position":%v,"expiry":"%s"}`, position, expiry)
	}
	const later = "2100-01-01T00:00:00.000Z"
	if got := jwt(header, claims(42, later), jwtSecret); got != jwtCookie {
		t.Fatalf("the test signs %s", got)
	}
	for _, c := range []struct {
		name, cookie string
		ok           bool
	}{
		{"the vector", jwtCookie, true},
		{"the first", jwt(header, claims(1, later), jwtSecret), true},
		{"the last", jwt(header, claims(100, later), jwtSecret), true},
		{"beyond the last", jwt(header, claims(101, later), jwtSecret), false},
		{"none", jwt(header, claims(0, later), jwtSecret), false},
		{"negative", jwt(header, claims(-1, later), jwtSecret), false},
		{"too large for a number", jwt(header, claims("1e30", later), jwtSecret), false},
		{"a text", jwt(header, claims(`"7"`, later), jwtSecret), false},
		{"expired", jwt(header, claims(42, now.UTC().Format(time.RFC3339)), jwtSecret), false},
		{"not yet expired", jwt(header, claims(42, now.UTC().Add(time.Second).Format(time.RFC3339)), jwtSecret), true},
		{"no expiry", jwt(header, `{"position":42}`, jwtSecret), false},
		{"another secret", jwt(header, claims(42, later), "other"), false},
		{"alg none", jwt(`{"alg":"none"}`, claims(42, later), jwtSecret), false},
		{"alg RS256", jwt(`{"alg":"RS256"}`, claims(42, later), jwtSecret), false},
		{"no signature", jwtCookie[:strings.LastIndexByte(jwtCookie, '.')+1], false},
		{"two parts", jwtCookie[:strings.LastIndexByte(jwtCookie, '.')], false},
		{"no JSON", jwt("x", "y", jwtSecret), false},
		{"empty", "", false},
	} {
		if k, admitted, ok := r.Read(c.cookie, netip.Addr{}, "", now); ok != c.ok || admitted || ok && (k.Accepted() || k.Arrival >= anteroom.TimeOf(since)) {
			t.Errorf("%s: %v, %+v", c.name, ok, k)
		}
	}
	// The order of the positions is that of the arrivals, and nobody who comes after the cut-over is ahead of the last.
	any := reader(t, Compute, jwtSecret, 0)
	last := anteroom.Time(0)
	for _, p := range []int{1, 2, 3, 42, 100_000, anteroom.MaxLine} {
		k, _, ok := any.Read(jwt(header, claims(p, later), jwtSecret), netip.Addr{}, "", now)
		if !ok || k.Arrival <= last || k.Arrival >= anteroom.TimeOf(since) {
			t.Errorf("position %d: %v, %v after %v", p, ok, k.Arrival, last)
		}
		last = k.Arrival
	}
	if _, _, ok := any.Read(jwt(header, claims(anteroom.MaxLine+1, later), jwtSecret), netip.Addr{}, "", now); ok {
		t.Error("a position beyond the longest queue is accepted")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{
		"":                                       "no key",
		"key1":                                   "line 1",
		"key1 !":                                 "line 1",
		"\nkey1 YQ==\nkey2 \n":                   "line 3",
		strings.Repeat("key YQ==\n", 2) + "key1": "line 3",
	} {
		if _, err := New(VCL, []byte(secret), since, 0, [32]byte{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "YQ==") {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if _, err := New(Compute, []byte(" \n"), since, 0, [32]byte{}); err == nil {
		t.Error("an empty secret is accepted")
	}
}

// FuzzRead: no cookie makes a reader panic, and only what is signed gives a place.
func FuzzRead(f *testing.F) {
	v, c := reader(f, VCL, vclKeys, 0), reader(f, Compute, jwtSecret, 0)
	f.Fuzz(func(t *testing.T, cookie, user, from string) {
		addr, _ := netip.ParseAddr(from)
		if _, _, ok := v.Read(cookie, addr, user, now); ok && !strings.EqualFold(cookie, vclCookie) {
			t.Errorf("%q gives a place", cookie)
		}
		if _, _, ok := c.Read(cookie, addr, user, now); ok && cookie != jwtCookie {
			t.Errorf("%q gives a place", cookie)
		}
		// Signed, whatever it says: no panic either, and what has a place is in the past.
		for _, one := range []struct {
			r      *Reader
			cookie string
		}{{v, vcl(cookie+"&kid=key1", "secret-key-bytes")}, {c, jwt(`{"alg":"HS256"}`, cookie, jwtSecret)}} {
			if k, _, ok := one.r.Read(one.cookie, addr, user, now); ok && k.Arrival >= anteroom.TimeOf(since) {
				t.Errorf("%q: %+v", one.cookie, k)
			}
		}
	})
}
