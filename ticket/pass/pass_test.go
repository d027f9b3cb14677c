package pass

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/proof"
)

const (
	shop = anteroom.RoomID("0123456789abcdef0123456789abcdef")
	zone = "shop.example.com"
	sid  = "AAAAAAAAAAAAAAAAAAAAAA"
	half = 30 * time.Second
)

var (
	morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	keyA    = Key{"aaaaaaaa", Seed{1}}
	keyB    = Key{"bbbbbbbb", Seed{2}}
	forShop = Want{Audience: zone, Room: shop}
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func keysOf(t testing.TB, keys ...Key) *Keys { t.Helper(); return must(NewKeys(keys...))(t) }

func issuerOf(t testing.TB, k *Keys, edge string) *Issuer {
	t.Helper()
	return must(k.Issuer("", zone, shop, edge))(t)
}

func verifierOf(t testing.TB, k *Keys, edge string) *Verifier {
	t.Helper()
	if edge == "" {
		return must(NewVerifier(k.JWKS(), forShop))(t)
	}
	return must(NewEdgeVerifier(must(k.Edge(edge))(t), forShop))(t)
}

func TestPassSaysWhatItShould(t *testing.T) {
	keys := keysOf(t, keyA)
	for edge, header := range map[string]string{
		"":    `{"alg":"ES256","typ":"JWT","kid":"pass-aaaaaaaa"}`,
		"cdn": `{"alg":"HS256","typ":"JWT","kid":"cdn-aaaaaaaa"}`,
	} {
		token := must(issuerOf(t, keys, edge).Issue(sid, morning.Add(900*time.Millisecond), half))(t)
		got, err := verifierOf(t, keys, edge).Verify(token, morning)
		want := Claims{Issuer: "anteroom", Audience: zone, Use: "pass", Room: shop, Session: sid,
			IssuedAt: morning.Unix(), NotBefore: morning.Unix() - 5, Expiry: morning.Unix() + 30}
		if err != nil || got != want {
			t.Errorf("edge %q: %+v, %v, want %+v", edge, got, err, want)
		}
		head, _, _ := strings.Cut(token, ".")
		if got := string(must(base64.RawURLEncoding.DecodeString(head))(t)); got != header {
			t.Errorf("edge %q: header %s", edge, got)
		}
		if len(token) > 500 {
			t.Errorf("edge %q: a pass has %d bytes", edge, len(token))
		}
	}
}

// A pass is never valid for longer than its life, whatever part of a second it begins in.
func TestPassLivesNoLongerThanPromised(t *testing.T) {
	keys := keysOf(t, keyA)
	issuer, verifier := issuerOf(t, keys, ""), verifierOf(t, keys, "")
	for at := morning; at.Before(morning.Add(time.Second)); at = at.Add(100 * time.Millisecond) {
		token := must(issuer.Issue(sid, at, half))(t)
		if _, err := verifier.Verify(token, at.Add(half-time.Second)); err != nil {
			t.Errorf("at %v: %v a second before its end", at, err)
		}
		if _, err := verifier.Verify(token, at.Add(half)); err == nil {
			t.Errorf("at %v: is valid after %v", at, half)
		}
		if _, err := verifier.Verify(token, at.Add(-Early)); err != nil {
			t.Errorf("at %v: %v at an edge whose clock is behind", at, err)
		}
	}
}

// The signature and the published keys are what the standards say, read without this package.
func TestKeysArePlainES256(t *testing.T) {
	keys := keysOf(t, keyA, keyB)
	parts := strings.Split(must(issuerOf(t, keys, "").Issue(sid, morning, half))(t), ".")
	signature := must(base64.RawURLEncoding.DecodeString(parts[2]))(t)
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	block, rest := pem.Decode(keys.PEM())
	public := must(x509.ParsePKIXPublicKey(block.Bytes))(t).(*ecdsa.PublicKey)
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the first key of the PEM does not verify")
	}
	if block, _ = pem.Decode(rest); block == nil {
		t.Error("the PEM lacks the second key")
	}
	var set jwkSet
	if err := json.Unmarshal(keys.JWKS(), &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%s: %v", keys.JWKS(), err)
	}
	if got, ok := set.Keys[0].public(); !ok || !got.Equal(public) {
		t.Errorf("the set %s has another key", keys.JWKS())
	}
	if bytes.Contains(keys.JWKS(), []byte(`"d"`)) {
		t.Error("the set has a private key")
	}
}

// While keys are rotated, passes of the old key are accepted and new ones are of the new key.
func TestRotation(t *testing.T) {
	before, after := keysOf(t, keyA, keyB), keysOf(t, keyB, keyA) // keyB is next, then current
	for _, edge := range []string{"", "cdn"} {
		old := must(issuerOf(t, before, edge).Issue(sid, morning, half))(t)
		young := must(issuerOf(t, after, edge).Issue(sid, morning, half))(t)
		for _, v := range []*Verifier{verifierOf(t, before, edge), verifierOf(t, after, edge)} {
			for _, token := range []string{old, young} {
				if _, err := v.Verify(token, morning); err != nil {
					t.Error(err)
				}
			}
		}
		if left := issuerOf(t, after, edge).Lasts(old, morning); left != 0 {
			t.Errorf("the issuer takes a pass of the previous key for one that lasts %v", left)
		}
	}
}

func TestLasts(t *testing.T) {
	issuer := issuerOf(t, keysOf(t, keyA), "")
	token := must(issuer.Issue(sid, morning, half))(t)
	for after, want := range map[time.Duration]time.Duration{0: half, 10 * time.Second: 20 * time.Second, half: 0, time.Hour: 0} {
		if got := issuer.Lasts(token, morning.Add(after)); got != want {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	for _, other := range []string{"", ".", "x.y.z", token[:len(issuer.head)], issuer.head + "!", strings.Repeat("x", 5000)} {
		if got := issuer.Lasts(other, morning); got != 0 {
			t.Errorf("%.40q lasts %v", other, got)
		}
	}
}

// No edge's secret verifies or makes passes of another edge, and none is the same in another generation.
func TestSecretsOfEdgesAreApart(t *testing.T) {
	keys := keysOf(t, keyA, keyB)
	seen := map[string]bool{}
	for _, edge := range []string{"cdn", "cdn2", "nginx"} {
		for _, s := range must(keys.Edge(edge))(t) {
			if seen[s.Text] || len(s.Text) != 43 {
				t.Errorf("%s: the secret has %d characters, or is another's", s.ID, len(s.Text))
			}
			seen[s.Text] = true
			if text := fmt.Sprintf("%v %+v %s", s, s, s); strings.Contains(text, s.Text) {
				t.Errorf("%s prints", s.ID)
			}
		}
	}
	token := must(issuerOf(t, keys, "nginx").Issue(sid, morning, half))(t)
	if _, err := verifierOf(t, keys, "cdn").Verify(token, morning); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("another edge's pass: %v", err)
	}
}

// The proof and the pass come from the same key file and are not taken for each other.
func TestPassIsNoProof(t *testing.T) {
	signer := must(proof.New(proof.Config{Keys: []proof.Key{{ID: keyA.ID, Seed: proof.Seed(keyA.Seed)}}, SubjectKey: proof.Seed{9}}))(t)
	assertion := must(signer.Assertion(shop, zone, anteroom.ID{1}, morning))(t)
	keys := keysOf(t, keyA)
	if _, err := verifierOf(t, keys, "").Verify(assertion, morning); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("a proof as a pass: %v", err)
	}
	token := must(issuerOf(t, keys, "").Issue(sid, morning, half))(t)
	if _, err := must(proof.NewVerifier(signer.JWKS(), "", zone))(t).Verify(token, morning); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("a pass as a proof: %v", err)
	}
}

func TestFaults(t *testing.T) {
	keys := keysOf(t, keyA)
	fails := func(name string, err error) {
		if anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, k := range map[string][]Key{
		"no key": nil, "unnamed key": {{"", Seed{1}}}, "empty seed": {{"a", Seed{}}}, "same name": {keyA, {keyA.ID, Seed{5}}}, "quoted name": {{`a"`, Seed{1}}},
	} {
		_, err := NewKeys(k...)
		fails(name, err)
	}
	for _, edge := range []string{"a b", "é", `"`, strings.Repeat("x", 65)} {
		_, err := keys.Issuer("", zone, shop, edge)
		fails(edge, err)
	}
	for name, args := range map[string][3]string{"long issuer": {strings.Repeat("x", 257), zone, "r"}, "no zone": {"", "", "r"}, "no room": {"", zone, ""}} {
		_, err := keys.Issuer(args[0], args[1], anteroom.RoomID(args[2]), "")
		fails(name, err)
	}
	for name, want := range map[string]Want{"no audience": {Room: shop}, "no room": {Audience: zone}} {
		_, err := NewVerifier(keys.JWKS(), want)
		fails(name, err)
	}
	for name, set := range map[string]string{
		"no JSON": "x", "no key": `{"keys":[]}`, "too large": `{"keys":[]}` + strings.Repeat(" ", maxJWKS),
		"not on the curve": `{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}]}`,
		"twice":            strings.Replace(string(keys.JWKS()), "]", ","+string(keys.JWKS()[len(`{"keys":[`):len(keys.JWKS())-2])+"]", 1),
	} {
		_, err := NewVerifier([]byte(set), forShop)
		fails(name, err)
	}
	_, err := NewEdgeVerifier([]EdgeSecret{{"k", "short"}}, forShop)
	fails("short secret", err)
	if text := fmt.Sprintf("%v %+v %x", keyA, keyA, keyA); strings.Contains(text, "1 0 0") || strings.Contains(text, "0100") {
		t.Errorf("seeds print: %s", text)
	}
}

func BenchmarkIssue(b *testing.B) {
	for _, edge := range []string{"", "cdn"} {
		b.Run("edge="+edge, func(b *testing.B) {
			issuer := issuerOf(b, keysOf(b, keyA), edge)
			b.ReportAllocs()
			for b.Loop() {
				issuer.Issue(sid, morning, half)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, edge := range []string{"", "cdn"} {
		b.Run("edge="+edge, func(b *testing.B) {
			keys := keysOf(b, keyA)
			token, v := must(issuerOf(b, keys, edge).Issue(sid, morning, half))(b), verifierOf(b, keys, edge)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(token, morning); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
