package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
)

func TestRefusals(t *testing.T) {
	s := signer(t, keyA)
	v := verifier(t, s)
	good := assertion(t, s, alice, morning)
	claims := func(change func(*Claims)) Claims {
		c := Claims{Issuer: "anteroom", Audience: site, Subject: "s", Room: string(shop), IssuedAt: morning.Unix(), Expiry: morning.Unix() + 60, ID: "j"}
		change(&c)
		return c
	}
	privateA := ed25519.NewKeyFromSeed(keyA.Seed[:])
	publicA := privateA.Public().(ed25519.PublicKey)
	eddsa := func(payload any) string { return sign(t, jose.EdDSA, privateA, keyA.ID, payload, nil) }
	fine := claims(func(*Claims) {})
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct {
		name  string
		token string
		after time.Duration
		want  error // nil: accepted
	}{
		{"as sent", good, 0, nil},
		{"made by hand", eddsa(fine), 0, nil},
		{"no algorithm", b64([]byte(`{"alg":"none","kid":"aaaaaaaa"}`)) + "." + parts[1] + ".", 0, ErrAlgorithm},
		{"no algorithm, old signature", b64([]byte(`{"alg":"none","kid":"aaaaaaaa"}`)) + "." + parts[1] + "." + parts[2], 0, ErrAlgorithm},
		{"algorithm missing", b64([]byte(`{"kid":"aaaaaaaa"}`)) + "." + parts[1] + "." + parts[2], 0, ErrAlgorithm},
		{"algorithm in other letters", b64([]byte(`{"alg":"eddsa","kid":"aaaaaaaa"}`)) + "." + parts[1] + "." + parts[2], 0, ErrAlgorithm},
		{"HS256 with the public key", sign(t, jose.HS256, []byte(publicA), keyA.ID, fine, nil), 0, ErrAlgorithm},
		{"HS256 with the key set", sign(t, jose.HS256, s.JWKS(), keyA.ID, fine, nil), 0, ErrAlgorithm},
		{"RS256", sign(t, jose.RS256, rsaKey, keyA.ID, fine, nil), 0, ErrAlgorithm},
		{"unknown key", sign(t, jose.EdDSA, ed25519.NewKeyFromSeed(keyB.Seed[:]), keyB.ID, fine, nil), 0, ErrUnknownKey},
		{"no key name", sign(t, jose.EdDSA, privateA, "", fine, nil), 0, ErrUnknownKey},
		{"other key under this name", sign(t, jose.EdDSA, ed25519.NewKeyFromSeed(keyB.Seed[:]), keyA.ID, fine, nil), 0, ErrSignature},
		{"key in the header", embedded(t, keyB, fine), 0, ErrUnknownKey},
		{"critical header", sign(t, jose.EdDSA, privateA, keyA.ID, fine, map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}), 0, ErrSignature},
		{"wrong audience", eddsa(claims(func(c *Claims) { c.Audience = "evil.example" })), 0, ErrAudience},
		{"no audience", eddsa(claims(func(c *Claims) { c.Audience = "" })), 0, ErrAudience},
		{"list of audiences", eddsa(map[string]any{"iss": "anteroom", "aud": []string{site}, "sub": "s", "room": "r", "iat": morning.Unix(), "exp": morning.Unix() + 60}), 0, ErrMalformed},
		{"wrong issuer", eddsa(claims(func(c *Claims) { c.Issuer = "x" })), 0, ErrIssuer},
		{"no expiry", eddsa(claims(func(c *Claims) { c.Expiry = 0 })), 0, ErrExpired},
		{"no subject", eddsa(claims(func(c *Claims) { c.Subject = "" })), 0, ErrMalformed},
		{"no room", eddsa(claims(func(c *Claims) { c.Room = "" })), 0, ErrMalformed},
		{"valid for long", eddsa(claims(func(c *Claims) { c.Expiry += 3600 })), 0, ErrMalformed},
		{"no claims", eddsa([]int{1}), 0, ErrMalformed},
		{"at expiry and 4 s", good, 64 * time.Second, nil},
		{"at expiry and 5 s", good, 65 * time.Second, ErrExpired},
		{"at expiry and 6 s", good, 66 * time.Second, ErrExpired},
		{"a day later", good, 24 * time.Hour, ErrExpired},
		{"5 s early", good, -5 * time.Second, nil},
		{"6 s early", good, -6 * time.Second, ErrNotYet},
		{"empty", "", 0, ErrMalformed},
		{"dots", "..", 0, ErrAlgorithm},
		{"JSON form", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, 0, ErrMalformed},
		{"encrypted form", good + ".x.y", 0, ErrMalformed},
		{"too long", good + strings.Repeat("A", maxToken), 0, ErrMalformed},
		{"no signature", parts[0] + "." + parts[1] + ".", 0, ErrSignature},
		{"other header", b64([]byte(`{"alg":"EdDSA","kid":"aaaaaaaa"}`)) + "." + parts[1] + "." + parts[2], 0, ErrSignature},
		{"other payload", parts[0] + "." + b64([]byte(`{"sub":"me"}`)) + "." + parts[2], 0, ErrSignature},
	} {
		got, err := v.Verify(c.token, morning.Add(c.after))
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, c.want) || got != (Claims{}) || anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("%s: %+v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, payload any, extra map[jose.HeaderKey]any) string {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if alg == jose.HS256 { // by hand: the library wants longer secrets than attackers use
		head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + kid + `"}`))
		input := head + "." + base64.RawURLEncoding.EncodeToString(data)
		mac := hmac.New(sha256.New, key.([]byte))
		mac.Write([]byte(input))
		return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, &jose.SignerOptions{ExtraHeaders: extra})
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, s, data)
}

// embedded brings its own key along in the header, as RFC 7515 §4.1.3 allows.
func embedded(t *testing.T, k Key, payload any) string {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: ed25519.NewKeyFromSeed(k.Seed[:])}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, s, data)
}

func compact(t *testing.T, s jose.Signer, data []byte) string {
	t.Helper()
	jws, err := s.Sign(data)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// said returns the bytes that the three parts of a token stand for.
func said(token string) string {
	var out []string
	for _, part := range strings.Split(token, ".") {
		b, err := base64.RawURLEncoding.DecodeString(part)
		out = append(out, fmt.Sprint(b, err))
	}
	return strings.Join(out, ".")
}

// Any changed character makes a proof worthless, unless it stands for the same bytes (the
// spare bits of a part's last character).
func TestTampering(t *testing.T) {
	s := signer(t, keyA)
	v := verifier(t, s)
	token := assertion(t, s, alice, morning)
	for i := range token {
		for bit := range 7 {
			b := []byte(token)
			b[i] ^= 1 << bit
			_, err := v.Verify(string(b), morning)
			if err == nil && said(string(b)) != said(token) {
				t.Errorf("accepted with bit %d of character %d changed", bit, i)
			}
		}
	}
	for n := range len(token) {
		if _, err := v.Verify(token[:n], morning); err == nil {
			t.Errorf("accepted cut at %d", n)
		}
	}
}

// Rotated twice: whoever holds a set that knows the key accepts, whoever does not says so.
func TestRotation(t *testing.T) {
	keyC := Key{"cccccccc", Seed{3}}
	before, middle, after := signer(t, keyA), signer(t, keyB, keyA), signer(t, keyC, keyB, keyA)
	old := assertion(t, before, alice, morning)
	for _, s := range []*Signer{before, middle, after} {
		if _, err := verifier(t, s).Verify(old, morning); err != nil {
			t.Errorf("a proof of before the rotation: %v", err)
		}
	}
	fresh := assertion(t, after, alice, morning)
	if _, err := verifier(t, before).Verify(fresh, morning); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a proof of a key that is not known yet: %v", err)
	}
	// Published before it signs, the next key is known in time.
	if _, err := verifier(t, signer(t, keyA, keyC)).Verify(fresh, morning); err != nil {
		t.Errorf("a proof of a key that was announced: %v", err)
	}
}

func TestKeySetFaults(t *testing.T) {
	good := signer(t, keyA).JWKS()
	rsaOnly, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: mustRSA(t).Public(), KeyID: "r"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, jwks := range map[string][]byte{
		"empty":       nil,
		"no JSON":     []byte("<html>"),
		"no key":      []byte(`{"keys":[]}`),
		"RSA only":    rsaOnly,
		"private key": []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`),
		"same name":   bytes.Replace(good, []byte("["), append([]byte("["), append(bytes.TrimSuffix(bytes.TrimPrefix(good, []byte(`{"keys":[`)), []byte("]}")), ',')...), 1),
		"too large":   bytes.Repeat([]byte(" "), maxJWKS+1),
	} {
		if v, err := NewVerifier(jwks, "", site); v != nil || anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewVerifier(good, "", ""); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("no audience: %v", err)
	}
}

func mustRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func FuzzVerify(f *testing.F) {
	s := signer(f, keyA)
	v := verifier(f, s)
	public := ed25519.NewKeyFromSeed(keyA.Seed[:]).Public().(ed25519.PublicKey)
	token := assertion(f, s, alice, morning)
	f.Add(token)
	f.Add("")
	f.Add("..")
	f.Add(token[:strings.LastIndexByte(token, '.')+1])
	f.Add("eyJhbGciOiJub25lIn0." + strings.Split(token, ".")[1] + ".")
	f.Fuzz(func(t *testing.T, in string) {
		if _, err := v.Verify(in, morning); err != nil {
			return
		}
		// What is accepted has a signature that the standard library accepts too.
		var parts [][]byte
		for _, part := range strings.Split(in, ".") {
			b, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil {
				t.Fatalf("accepted %q: %v", in, err)
			}
			parts = append(parts, b)
		}
		signed := base64.RawURLEncoding.EncodeToString(parts[0]) + "." + base64.RawURLEncoding.EncodeToString(parts[1])
		if len(parts) != 3 || !ed25519.Verify(public, []byte(signed), parts[2]) {
			t.Fatalf("accepted %q", in)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	s := signer(b, keyA)
	v := verifier(b, s)
	token := assertion(b, s, alice, morning)
	b.ReportAllocs()
	for b.Loop() {
		v.Verify(token, morning)
	}
}
