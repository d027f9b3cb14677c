package account

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

var (
	rsaKey   = must(rsa.GenerateKey(rand.Reader, 2048))
	otherRSA = must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	edKey    = ed25519.NewKeyFromSeed(make([]byte, 32))
	mark     = MarkOf([32]byte{1}, "room")
	rules    = Rules{Issuer: "https://login.example.com", Audience: "shop", Claim: "sub"}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// good are the claims of a token that counts, with some changed; nil removes one.
func good(claims ...any) map[string]any {
	all := map[string]any{"iss": rules.Issuer, "aud": []string{"forum", "shop"}, "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i < len(claims); i += 2 {
		if all[claims[i].(string)] = claims[i+1]; claims[i+1] == nil {
			delete(all, claims[i].(string))
		}
	}
	return all
}

func sign(alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any, options ...func(*jose.SignerOptions)) string {
	o := &jose.SignerOptions{}
	for _, f := range options {
		f(o)
	}
	s := must(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, o))
	return must(must(s.Sign(must(json.Marshal(claims)))).CompactSerialize())
}

// byHand makes a token as no library would.
func byHand(header, claims any, mac func(text string) []byte) string {
	encode := func(v any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))) }
	text := encode(header) + "." + encode(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(text))
}

func public(keys ...jose.JSONWebKey) string {
	return string(must(json.Marshal(jose.JSONWebKeySet{Keys: keys})))
}

func TestVerify(t *testing.T) {
	set := public(jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "r", Algorithm: "RS256"}, jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "p"},
		jose.JSONWebKey{Key: &ecKey.PublicKey, KeyID: "e"}, jose.JSONWebKey{Key: edKey.Public(), KeyID: "d", Use: "sig"}, jose.JSONWebKey{Key: &otherRSA.PublicKey, KeyID: "x", Use: "enc"})
	v := NewVerifier(rules, mark, must(Fixed(set)))
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(&rsaKey.PublicKey))})
	hs := func(key []byte) func(string) []byte {
		return func(text string) []byte {
			h := hmac.New(sha256.New, key)
			h.Write([]byte(text))
			return h.Sum(nil)
		}
	}
	nothing := func(string) []byte { return nil }
	rs := sign(jose.RS256, rsaKey, "r", good())
	now := time.Now()
	for name, c := range map[string]struct {
		token string
		want  Result
	}{
		"RS256":                          {rs, Valid},
		"PS256":                          {sign(jose.PS256, rsaKey, "p", good()), Valid},
		"ES256":                          {sign(jose.ES256, ecKey, "e", good()), Valid},
		"EdDSA":                          {sign(jose.EdDSA, edKey, "d", good()), Valid},
		"without a kid, one key fits":    {sign(jose.ES256, ecKey, "", good()), Valid},
		"one audience as a text":         {sign(jose.EdDSA, edKey, "d", good("aud", "shop")), Valid},
		"expired a moment ago":           {sign(jose.EdDSA, edKey, "d", good("exp", now.Add(-20*time.Second).Unix())), Valid},
		"expired":                        {sign(jose.EdDSA, edKey, "d", good("exp", now.Add(-time.Minute).Unix())), Expired},
		"none":                           {"", None},
		"rubbish":                        {"a.b.c", None},
		"without a signature":            {rs[:strings.LastIndexByte(rs, '.')+1], None},
		"claims of another token":        {strings.Split(rs, ".")[0] + "." + strings.Split(sign(jose.RS256, otherRSA, "r", good("sub", "bob")), ".")[1] + "." + strings.Split(rs, ".")[2], None},
		"forged":                         {sign(jose.RS256, otherRSA, "r", good()), None},
		"unknown kid":                    {sign(jose.RS256, otherRSA, "../../r", good()), None},
		"kid of an algorithm, not ours":  {sign(jose.EdDSA, edKey, "e", good()), None},
		"key for encryption":             {sign(jose.RS256, otherRSA, "x", good()), None},
		"PS256 with a key for RS256":     {sign(jose.PS256, rsaKey, "r", good()), None},
		"RS384":                          {sign(jose.RS384, rsaKey, "p", good()), None},
		"alg none":                       {byHand(map[string]any{"alg": "none", "kid": "r"}, good(), nothing), None},
		"alg None":                       {byHand(map[string]any{"alg": "None"}, good(), nothing), None},
		"HS256 with the public key, PEM": {byHand(map[string]any{"alg": "HS256", "kid": "p"}, good(), hs(pemKey)), None},
		"HS256 with the modulus":         {byHand(map[string]any{"alg": "HS256", "kid": "p"}, good(), hs(rsaKey.N.Bytes())), None},
		"a key of its own in the header": {sign(jose.RS256, otherRSA, "", good(), func(o *jose.SignerOptions) { o.EmbedJWK = true }), None},
		"keys at a URL of its own":       {sign(jose.RS256, otherRSA, "r", good(), func(o *jose.SignerOptions) { o.WithHeader("jku", "https://evil.example/jwks") }), None},
		"critical header":                {sign(jose.EdDSA, edKey, "d", good(), func(o *jose.SignerOptions) { o.WithHeader("crit", []string{"x"}).WithHeader("x", 1) }), None},
		"another issuer":                 {sign(jose.EdDSA, edKey, "d", good("iss", rules.Issuer+"/")), None},
		"no issuer":                      {sign(jose.EdDSA, edKey, "d", good("iss", nil)), None},
		"another audience":               {sign(jose.EdDSA, edKey, "d", good("aud", "forum")), None},
		"no audience":                    {sign(jose.EdDSA, edKey, "d", good("aud", nil)), None},
		"audience of another kind":       {sign(jose.EdDSA, edKey, "d", good("aud", map[string]any{"shop": 1})), None},
		"not yet":                        {sign(jose.EdDSA, edKey, "d", good("nbf", now.Add(time.Minute).Unix())), None},
		"no expiry":                      {sign(jose.EdDSA, edKey, "d", good("exp", nil)), None},
		"expiry as a text":               {sign(jose.EdDSA, edKey, "d", good("exp", "9999999999")), None},
		"expiry beyond all numbers":      {sign(jose.EdDSA, edKey, "d", good("exp", 1e300)), None},
		"no name":                        {sign(jose.EdDSA, edKey, "d", good("sub", nil)), None},
		"an empty name":                  {sign(jose.EdDSA, edKey, "d", good("sub", "")), None},
		"a name that is no text":         {sign(jose.EdDSA, edKey, "d", good("sub", []string{"ann"})), None},
		"a long name":                    {sign(jose.EdDSA, edKey, "d", good("sub", strings.Repeat("a", 513))), None},
		"a huge token":                   {sign(jose.EdDSA, edKey, "d", good("x", strings.Repeat("a", maxToken))), None},
		"claims that are no object":      {must(must(must(jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: edKey, KeyID: "d"}}, nil)).Sign([]byte("null"))).CompactSerialize()), None},
	} {
		for range 2 { // the second one may be from memory
			who, _, got := v.Verify(c.token, now)
			if got != c.want || got >= Expired && who != mark.Of("ann") || got < Expired && who != (ID{}) {
				t.Errorf("%s: %v, not %v", name, ResultWords[got], ResultWords[c.want])
			}
		}
	}
	if who, _, _ := v.Verify(sign(jose.EdDSA, edKey, "d", good("sub", "Ann")), now); who == mark.Of("ann") {
		t.Error("two names are one account")
	}
	if len(v.young) != 9 { // those above that were good
		t.Errorf("%d tokens are remembered", len(v.young))
	}
	if _, _, got := v.Verify(rs, now.Add(2*time.Hour)); got != Expired {
		t.Errorf("a token in memory does not expire: %v", ResultWords[got])
	}
}

// A claim names a lane by its text, or by one of its list of texts, and the highest lane counts; that of an expired token is none.
func TestTokensNameLanes(t *testing.T) {
	r := rules
	r.LaneClaim, r.Lanes = "tier", []anteroom.Lane{{Name: "gold", Priority: 80, Claim: "g"}, {Name: "silver", Priority: 40, Claim: "s"}, {Name: "codes", Priority: 90}, {Name: "everyone"}}
	keys := must(Fixed(public(jose.JSONWebKey{Key: edKey.Public(), KeyID: "d"})))
	v, now := NewVerifier(r, mark, keys), time.Now()
	token := func(claims ...any) string { return sign(jose.EdDSA, edKey, "d", good(claims...)) }
	for name, c := range map[string]struct {
		token string
		want  uint8
	}{
		"a text":               {token("tier", "s"), 40},
		"a list":               {token("tier", []string{"x", "s", "g"}), 80},
		"a list of all kinds":  {token("tier", []any{5, nil, map[string]any{"s": 1}, []string{"g"}, "s"}), 40},
		"none":                 {token(), 0},
		"an unknown one":       {token("tier", "gold"), 0},
		"an empty one":         {token("tier", ""), 0},
		"an empty one, listed": {token("tier", []string{""}), 0},
		"an object":            {token("tier", map[string]any{"g": "g"}), 0},
		"another claim":        {token("tiers", "g"), 0},
		"expired":              {token("tier", "g", "exp", now.Add(-time.Minute).Unix()), 0},
		"forged":               {sign(jose.RS256, otherRSA, "d", good("tier", "g")), 0},
		"another audience":     {token("tier", "g", "aud", "forum"), 0},
	} {
		for range 2 { // the second one may be from memory
			if _, lane, _ := v.Verify(c.token, now); lane != c.want {
				t.Errorf("%s: %d", name, lane)
			}
		}
	}
	r.LaneClaim = ""
	if _, lane, _ := NewVerifier(r, mark, keys).Verify(token("", "g"), now); lane != 0 {
		t.Errorf("without a claim to look at: %d", lane)
	}
}

func TestKeySets(t *testing.T) {
	small := must(rsa.GenerateKey(rand.Reader, 2048))
	small.N.Rsh(small.N, 1100)
	many := jose.JSONWebKeySet{}
	for i := range maxKeys + 1 {
		many.Keys = append(many.Keys, jose.JSONWebKey{Key: edKey.Public(), KeyID: fmt.Sprint(i)})
	}
	for name, text := range map[string]string{
		"no JSON":        "https://login.example.com/jwks",
		"no keys":        `{"keys":[]}`,
		"a private key":  public(jose.JSONWebKey{Key: edKey, KeyID: "1"}),
		"a secret":       public(jose.JSONWebKey{Key: []byte("secret"), KeyID: "1"}),
		"a small key":    public(jose.JSONWebKey{Key: &small.PublicKey, KeyID: "1"}),
		"another curve":  public(jose.JSONWebKey{Key: &must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)).PublicKey, KeyID: "1"}),
		"many keys":      string(must(json.Marshal(many))),
		"a long key set": `{"keys":[` + strings.Repeat(" ", maxJWKS) + `]}`,
	} {
		if _, err := Fixed(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := Fixed(`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"X"},5,` + public(jose.JSONWebKey{Key: edKey.Public()})[len(`{"keys":[`):]); err != nil {
		t.Error("keys of other kinds are in the way:", err)
	}
	twice := must(Fixed(public(jose.JSONWebKey{Key: edKey.Public(), KeyID: "d"}, jose.JSONWebKey{Key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("a", 32))).Public(), KeyID: "d"})))
	if _, _, got := NewVerifier(rules, mark, twice).Verify(sign(jose.EdDSA, edKey, "d", good()), time.Now()); got != None {
		t.Error("one of two keys with a name is chosen")
	}
}

// Keys are fetched beside requests: at the start, from time to time, and when a token names another one, never often. The last good ones count
// until there are others; what one of those signed that was withdrawn does not.
func TestKeysAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, second := public(jose.JSONWebKey{Key: edKey.Public(), KeyID: "1"}), public(jose.JSONWebKey{Key: &ecKey.PublicKey, KeyID: "2"})
		answer, failure, asked := old, errors.New("no answer"), 0
		s := &Sources{Fetch: func(_ context.Context, url string, _ int64) ([]byte, error) {
			if asked++; url != "https://login.example.com/jwks" {
				t.Error(url)
			}
			return []byte(answer), failure
		}}
		keys := s.Of("https://login.example.com/jwks")
		if s.Of("https://login.example.com/jwks") != keys {
			t.Error("two rooms do not share the keys")
		}
		v := NewVerifier(rules, mark, keys)
		late := time.Now().Add(100 * time.Hour).Unix()
		first, other := sign(jose.EdDSA, edKey, "1", good("exp", late)), sign(jose.ES256, ecKey, "2", good("exp", late))
		check := func(what, token string, want Result, fetches int) {
			t.Helper()
			_, _, got := v.Verify(token, time.Now())
			synctest.Wait()
			if got != want || asked != fetches {
				t.Errorf("%s: %v after %d fetches, not %v after %d", what, ResultWords[got], asked, ResultWords[want], fetches)
			}
		}
		synctest.Wait()
		for range 100 {
			check("the issuer does not answer", first, Unchecked, 1)
		}
		failure = nil
		time.Sleep(again)
		check("again", first, Unchecked, 2)
		check("then", first, Valid, 2)
		for i := range 100 {
			check("unknown key", sign(jose.EdDSA, edKey, fmt.Sprint("x", i), good()), None, 2)
		}
		time.Sleep(again)
		answer = second
		check("a key that is not known yet", other, None, 3)
		check("then", other, Valid, 3)
		check("withdrawn", first, None, 3)
		time.Sleep(refresh)
		failure = errors.New("no answer")
		check("while it does not answer", other, Valid, 4)
		failure, answer = nil, "<html>"
		time.Sleep(again)
		check("while it answers rubbish", other, Valid, 5)
		time.Sleep(again - 1)
		check("not again yet", other, Valid, 5)
	})
}

func TestMarks(t *testing.T) {
	ann, other := mark.Of("ann"), MarkOf([32]byte{1}, "other")
	if ann == other.Of("ann") || ann == MarkOf([32]byte{2}, "room").Of("ann") {
		t.Error("an account has the same id elsewhere")
	}
	seen := map[anteroom.ID]bool{}
	for _, number := range []uint32{1, 2, 255, 256, 1 << 23} {
		id := mark.Ticket(ann, number)
		if of, n, ok := mark.Read(id); !ok || of != ann || n != number || seen[id] {
			t.Errorf("%d: %x %d %v", number, of, n, ok)
		}
		if _, _, ok := other.Read(id); ok {
			t.Error("another room reads it")
		}
		for i := range id {
			id[i] ^= 1
			if _, _, ok := mark.Read(id); ok {
				t.Errorf("a changed byte %d is not noticed", i)
			}
			id[i] ^= 1
		}
		seen[id] = true
	}
}

// However many raise at once, the store has the highest number, and of two with one number the first.
func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		defer link.Close()
		places, ann := Places{link}, mark.Of("ann")
		if p, err := places.Get(t.Context(), "room", ann); err != nil || p != (Place{}) {
			t.Errorf("%+v %v", p, err)
		}
		var all sync.WaitGroup
		var first atomic.Int32
		for i := range 8 {
			all.Go(func() {
				mine := Place{1, anteroom.Time(100 + i)}
				p, err := places.Raise(t.Context(), "room", ann, mine, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if p == mine {
					first.Add(1)
				}
			})
		}
		all.Wait()
		if first.Load() != 1 {
			t.Errorf("%d of 8 were first", first.Load())
		}
		was := must(places.Get(t.Context(), "room", ann))
		if p, err := places.Raise(t.Context(), "room", ann, Place{3, 7}, time.Hour); err != nil || p != (Place{3, 7}) {
			t.Errorf("%+v %v", p, err)
		}
		if p, err := places.Raise(t.Context(), "room", ann, Place{2, 9}, time.Hour); err != nil || p != (Place{3, 7}) || p == was {
			t.Errorf("%+v %v", p, err)
		}
		if p := must(places.Get(t.Context(), "other", ann)); p != (Place{}) {
			t.Error("another room knows it")
		}
		for key := range keysOf(t, link) {
			if strings.Contains(key, "ann") {
				t.Error("the store has the account's name")
			}
		}
		time.Sleep(time.Hour + 10*time.Second)
		if n := len(keysOf(t, link)); n > 0 {
			t.Errorf("%d places are kept for ever", n)
		}
		if _, err := (Places{}).Get(t.Context(), "room", ann); err == nil {
			t.Error("no store is one")
		}
	})
}

func keysOf(t *testing.T, link interface {
	Keys(context.Context, string) ([]string, error)
}) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, key := range must(link.Keys(t.Context(), "accounts.")) {
		out[key] = true
	}
	return out
}

func FuzzVerify(f *testing.F) {
	v := NewVerifier(rules, mark, must(Fixed(public(jose.JSONWebKey{Key: edKey.Public(), KeyID: "d"}))))
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, got := v.Verify(token, time.Unix(0, 0)); got != None {
			t.Errorf("%q is %v", token, ResultWords[got])
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	v := NewVerifier(rules, mark, must(Fixed(public(jose.JSONWebKey{Key: &rsaKey.PublicKey, KeyID: "r"}))))
	token, now := sign(jose.RS256, rsaKey, "r", good("filler", strings.Repeat("a", 600))), time.Now()
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			v.Verify(token, now)
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			v.verify(v.keys.set, token, now)
		}
	})
}
