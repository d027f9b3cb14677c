package proof

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	shop = anteroom.RoomID("0123456789abcdef0123456789abcdef")
	site = "shop.example"
)

var (
	morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	keyA    = Key{"aaaaaaaa", Seed{1}}
	keyB    = Key{"bbbbbbbb", Seed{2}}
	alice   = anteroom.ID{1}
	bob     = anteroom.ID{2}
)

func signer(t testing.TB, keys ...Key) *Signer {
	t.Helper()
	s, err := New(Config{Keys: keys, SubjectKey: Seed{9}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verifier(t testing.TB, s *Signer) *Verifier {
	t.Helper()
	v, err := NewVerifier(s.JWKS(), "", site)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func assertion(t testing.TB, s *Signer, id anteroom.ID, now time.Time) string {
	t.Helper()
	token, err := s.Assertion(shop, site, id, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestProofSaysWhatItShould(t *testing.T) {
	s := signer(t, keyA)
	token := assertion(t, s, alice, morning.Add(300*time.Millisecond))
	c, err := verifier(t, s).Verify(token, morning)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID == "" {
		t.Error("there is no jti")
	}
	want := Claims{
		Issuer: "anteroom", Audience: site, Subject: s.Subject(shop, alice), Room: string(shop),
		IssuedAt: morning.Unix(), Expiry: morning.Unix() + 60, ID: c.ID,
	}
	if c != want {
		t.Errorf("claims %+v, want %+v", c, want)
	}
	header, _ := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if string(header) != `{"alg":"EdDSA","kid":"aaaaaaaa","typ":"JWT"}` {
		t.Errorf("header %s", header)
	}
}

// The signature is the one that RFC 8032 and RFC 7515 describe, by the standard library.
func TestSignatureIsPlainEd25519(t *testing.T) {
	s := signer(t, keyA)
	parts := strings.Split(assertion(t, s, alice, morning), ".")
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []struct{ Kty, Crv, Kid, Alg, Use, X, D string }
	}
	if err := json.Unmarshal(s.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	k := set.Keys[0]
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid != keyA.ID || k.Alg != "EdDSA" || k.Use != "sig" || k.D != "" {
		t.Fatalf("key set %s: %v", s.JWKS(), err)
	}
	if !ed25519.Verify(ed25519.PublicKey(x), []byte(parts[0]+"."+parts[1]), sig) {
		t.Error("the signature does not verify")
	}
}

func TestSubjectTellsNothing(t *testing.T) {
	s := signer(t, keyA)
	rotated := signer(t, keyB, keyA)
	other, err := New(Config{Keys: []Key{keyA}, SubjectKey: Seed{8}})
	if err != nil {
		t.Fatal(err)
	}
	sub := s.Subject(shop, alice)
	if sub != rotated.Subject(shop, alice) {
		t.Error("a rotation changes the subject")
	}
	for name, different := range map[string]string{
		"another session":  s.Subject(shop, bob),
		"another room":     s.Subject("1"+shop[1:], alice),
		"another key":      other.Subject(shop, alice),
		"no room, same id": s.Subject("", alice),
	} {
		if sub == different {
			t.Errorf("%s has the same subject", name)
		}
	}
	token := assertion(t, s, alice, morning)
	payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	for _, leak := range []string{fmt.Sprintf("%x", alice), base64.RawURLEncoding.EncodeToString(alice[:]), alice.Reference()} {
		if strings.Contains(string(payload), leak) {
			t.Errorf("the proof shows the ticket: %s", payload)
		}
	}
}

// A proof is signed once per half minute, and what is sent has half a minute left.
func TestReuse(t *testing.T) {
	s := signer(t, keyA)
	v := verifier(t, s)
	start := morning.Add(700 * time.Millisecond)
	last, signed := "", 0
	for now := start; now.Before(start.Add(5 * time.Minute)); now = now.Add(500 * time.Millisecond) {
		token := assertion(t, s, alice, now)
		if token != last {
			last = token
			signed++
		}
		c, err := v.Verify(token, now)
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Unix(c.Expiry, 0).Sub(now); left < Lifetime-Reuse || left > Lifetime {
			t.Fatalf("a proof is sent with %v left", left)
		}
	}
	if signed < 9 || signed > 11 {
		t.Errorf("signed %d times in five minutes", signed)
	}
	// Set back, the clock must not bring proofs from the future.
	if back := assertion(t, s, alice, morning); back == last {
		t.Error("a proof from the future was sent")
	}
}

func TestCacheKeepsSessionsRoomsAndSitesApart(t *testing.T) {
	s := signer(t, keyA)
	seen := map[string]string{}
	for _, room := range []anteroom.RoomID{shop, "1" + shop[1:]} {
		for _, aud := range []string{site, "other.example"} {
			for _, id := range []anteroom.ID{alice, bob} {
				name := fmt.Sprint(room, aud, id)
				for range 2 {
					token, err := s.Assertion(room, aud, id, morning)
					if err != nil {
						t.Fatal(err)
					}
					if other, ok := seen[token]; ok && other != name {
						t.Errorf("%s and %s share a proof", name, other)
					}
					seen[token] = name
				}
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("8 sessions got %d proofs", len(seen))
	}
}

func TestCacheIsBounded(t *testing.T) {
	const size = 1024
	c := newCache(size)
	for i := range 100_000 {
		c.put(anteroom.ID{byte(i), byte(i >> 8), byte(i >> 16), 1}, cached{shop, site, "x", morning})
	}
	held := 0
	for i := range c.shards {
		held += len(c.shards[i].young) + len(c.shards[i].old)
	}
	if held > size || held < size/2 {
		t.Errorf("a cache of %d holds %d", size, held)
	}
	none := newCache(-1)
	none.put(alice, cached{shop, site, "x", morning})
	if _, ok := none.get(shop, site, alice, morning); ok {
		t.Error("a cache that keeps nothing kept something")
	}
	// The last one put is there whatever the size.
	one := newCache(1)
	one.put(alice, cached{shop, site, "x", morning})
	if _, ok := one.get(shop, site, alice, morning); !ok {
		t.Error("the last one is not there")
	}
	// Nor is it the proof of another room or site.
	_, room := one.get("1"+shop[1:], site, alice, morning)
	_, aud := one.get(shop, site+".", alice, morning)
	if room || aud {
		t.Errorf("the proof was given to another room: %t, to another site: %t", room, aud)
	}
}

func TestConfigFaults(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no key":         {SubjectKey: Seed{9}},
		"no subject key": {Keys: []Key{keyA}},
		"unnamed key":    {Keys: []Key{{"", Seed{1}}}, SubjectKey: Seed{9}},
		"empty seed":     {Keys: []Key{{"a", Seed{}}}, SubjectKey: Seed{9}},
		"same name":      {Keys: []Key{keyA, {keyA.ID, Seed{5}}}, SubjectKey: Seed{9}},
		"long issuer":    {Keys: []Key{keyA}, SubjectKey: Seed{9}, Issuer: strings.Repeat("x", maxName+1)},
	} {
		if s, err := New(cfg); s != nil || anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := signer(t, keyA)
	for name, err := range map[string]error{
		"no audience":   second(s.Assertion(shop, "", alice, morning)),
		"long audience": second(s.Assertion(shop, strings.Repeat("x", maxName+1), alice, morning)),
		"no ticket":     second(s.Assertion(shop, site, anteroom.ID{}, morning)),
	} {
		if anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %x", keyA, Config{Keys: []Key{keyA}}, keyA); strings.Contains(text, "1 0 0") || strings.Contains(text, "0100") {
		t.Errorf("seeds print: %s", text)
	}
}

func second(_ string, err error) error { return err }

func TestSigningAtOnce(t *testing.T) {
	s := signer(t, keyA)
	v := verifier(t, s)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				token, err := s.Assertion(shop, site, anteroom.ID{byte(g % 2), byte(i), 1}, morning)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := v.Verify(token, morning); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestNoAllocationFromMemory(t *testing.T) {
	s := signer(t, keyA)
	assertion(t, s, alice, morning)
	if n := testing.AllocsPerRun(1000, func() { s.Assertion(shop, site, alice, morning) }); n != 0 {
		t.Errorf("a proof from memory allocates %v times", n)
	}
}

func BenchmarkAssertion(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		s := signer(b, keyA)
		b.ReportAllocs()
		for b.Loop() {
			s.Assertion(shop, site, alice, morning)
		}
	})
	b.Run("signed", func(b *testing.B) {
		s, err := New(Config{Keys: []Key{keyA}, SubjectKey: Seed{9}, CacheSize: -1})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			s.Assertion(shop, site, alice, morning)
		}
	})
}
