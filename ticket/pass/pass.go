// Package pass issues and verifies passes: short-lived signed tokens by which an edge (a proxy, a CDN, an application) sends
// the requests of an active user straight to the origin.
//
// A pass is a JWT (RFC 7519) in JWS compact form (RFC 7515), signed with ES256, or with HS256 and a secret of one edge. Its
// header is exactly {"alg":…,"typ":"JWT","kid":…}, so that a [Verifier] knows the header of each of its keys by heart and
// reads no other: no token chooses its algorithm.
//
// A pass says: this session of this room may go to the origin until exp. Whoever copies it can do so too until then. It is
// not the proof of admission (package proof), which browsers never see: every pass says "use":"pass", and no verifier takes
// one for the other.
package pass

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

const (
	// MaxBytes bounds a pass. Longer ones are refused before anything of them is read.
	MaxBytes = 1024
	// Cookie is the name of the cookie; "_" and the room's cookie suffix follow, if it has one.
	Cookie = "__anteroom_pass"
	// Early is how long before it was issued a pass is valid, for edges whose clock is behind.
	Early = 5 * time.Second
	// DefaultIssuer is the "iss" of passes when the configuration names none: that of proofs.
	DefaultIssuer = "anteroom"

	use     = "pass"
	maxName = 256 // bytes of issuer and audience
	maxKey  = 100 // bytes of a key's name
)

// Seed is the secret from which a key is made. It does not print.
type Seed [32]byte

// Format writes "[secret]" for every verb.
func (Seed) Format(f fmt.State, _ rune) { io.WriteString(f, "[secret]") }

// Key is a seed with the name of its generation, of letters, digits, "-", "_" and ".".
type Key struct {
	ID   string
	Seed Seed
}

// Claims is what a pass says. Times are seconds since the Unix epoch.
type Claims struct {
	Issuer    string          `json:"iss"`
	Audience  string          `json:"aud"` // the room's zone
	Use       string          `json:"use"` // always "pass"
	Room      anteroom.RoomID `json:"room"`
	Session   string          `json:"sid"` // the "sub" of the session's proofs
	IssuedAt  int64           `json:"iat"`
	NotBefore int64           `json:"nbf"`
	Expiry    int64           `json:"exp"`
}

// Keys are the keys of all generations. Safe for concurrent use; new keys need new Keys.
type Keys struct {
	generations []generation // the first signs
	jwks, pem   []byte
}

type generation struct {
	Key
	private *ecdsa.PrivateKey
}

// NewKeys makes the keys: the first signs, all are published. Publish a key an hour before it signs, because edges keep
// key sets, and for as long after as passes may live. Errors are of kind Invalid.
func NewKeys(keys ...Key) (*Keys, error) {
	if len(keys) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: there is no key to sign with")
	}
	k := &Keys{}
	set := jwkSet{}
	seen := map[string]bool{}
	for i, one := range keys {
		if !isName(one.ID) || seen[one.ID] || one.Seed == (Seed{}) {
			return nil, anteroom.Errorf(anteroom.Invalid, "pass: keys[%d] (%.60q): needs a name of its own and a seed", i, one.ID)
		}
		seen[one.ID] = true
		g := generation{one, privateOf(one.Seed)}
		k.generations = append(k.generations, g)
		set.Keys = append(set.Keys, jwkOf(g.kid(), &g.private.PublicKey))
		der, err := x509.MarshalPKIXPublicKey(&g.private.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("pass: publishing the keys: %w", err)
		}
		// What stands before a block is a comment to whoever reads PEM.
		k.pem = append(k.pem, "kid: "+g.kid()+"\n"...)
		k.pem = append(k.pem, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	var err error
	if k.jwks, err = json.Marshal(set); err != nil {
		return nil, fmt.Errorf("pass: publishing the keys: %w", err)
	}
	return k, nil
}

// kid names the public key. The proof's keys have the names of the generations.
func (g *generation) kid() string { return "pass-" + g.ID }

// privateOf makes a P-256 key of a seed. One in four billion outputs is no key; then the next one is taken.
func privateOf(seed Seed) *ecdsa.PrivateKey {
	for try := 0; ; try++ {
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), expand(seed, fmt.Sprintf("anteroom/1/pass/es256/%d", try)))
		if err == nil {
			return key
		}
	}
}

// expand is HKDF-SHA256 (RFC 5869) without salt; a seed is uniformly random.
func expand(seed Seed, info string) []byte {
	out, err := hkdf.Key(sha256.New, seed[:], nil, info, 32)
	if err != nil {
		panic(err) // only for a longer output than SHA-256 can expand to
	}
	return out
}

// JWKS returns the public keys as a JWK set (RFC 7517), for application/jwk-set+json.
func (k *Keys) JWKS() []byte { return append([]byte(nil), k.jwks...) }

// PEM returns the public keys as PEM blocks, the one that signs first: edges that read one key take that.
func (k *Keys) PEM() []byte { return append([]byte(nil), k.pem...) }

// EdgeSecret is what an edge verifies HS256 with.
type EdgeSecret struct {
	ID string // the kid of passes
	// Text is the secret, 43 characters, to be used as they are: not decoded.
	Text string
}

// Format writes the name and hides the secret, for every verb.
func (s EdgeSecret) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "{%s [secret]}", s.ID) }

// Edge returns the secrets of an edge, the one that signs first. The name is a word of letters, digits, "-", "_" and ".";
// anything else is an error of kind Invalid.
func (k *Keys) Edge(name string) ([]EdgeSecret, error) {
	if !isName(name) {
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: %.60q is not the name of an edge: use 1 to 64 letters, digits, \"-\", \"_\" and \".\"", name)
	}
	out := make([]EdgeSecret, 0, len(k.generations))
	for _, g := range k.generations {
		out = append(out, EdgeSecret{name + "-" + g.ID, base64.RawURLEncoding.EncodeToString(expand(g.Seed, "anteroom/1/pass/hs256/"+name))})
	}
	return out, nil
}

func isName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}) < 0
}

// Issuer issues the passes of a room. Safe for concurrent use.
type Issuer struct {
	issuer, audience string
	room             anteroom.RoomID
	head             string // encoded header, and the dot after it
	sign             func(signed []byte) ([]byte, error)
}

// Issuer returns the issuer of a room's passes, for its zone. An edge that is named gets passes that its secret verifies;
// an empty one means ES256. An empty issuer means [DefaultIssuer]. Errors are of kind Invalid.
func (k *Keys) Issuer(issuer, zone string, room anteroom.RoomID, edge string) (*Issuer, error) {
	issuer = cmp.Or(issuer, DefaultIssuer)
	if len(issuer) > maxName || zone == "" || len(zone) > maxName || room == "" {
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: issuer and zone have at most %d bytes, and zone and room are not empty", maxName)
	}
	first := &k.generations[0]
	i := &Issuer{issuer: issuer, audience: zone, room: room, head: headOf("ES256", first.kid()) + "."}
	i.sign = func(signed []byte) ([]byte, error) { return signES256(first.private, signed) }
	if edge != "" {
		secrets, err := k.Edge(edge)
		if err != nil {
			return nil, err
		}
		i.head = headOf("HS256", secrets[0].ID) + "."
		key := []byte(secrets[0].Text)
		i.sign = func(signed []byte) ([]byte, error) { return signHS256(key, signed), nil }
	}
	return i, nil
}

// Issue returns a pass of a session (a word without spaces, as [proof.Signer.Subject] gives it), valid from [Early] before
// now until the whole second at or before now and life. Life is more than a second.
func (i *Issuer) Issue(session string, now time.Time, life time.Duration) (string, error) {
	payload, err := json.Marshal(Claims{Issuer: i.issuer, Audience: i.audience, Use: use, Room: i.room, Session: session,
		IssuedAt: now.Unix(), NotBefore: now.Add(-Early).Unix(), Expiry: now.Add(life).Unix()})
	if err != nil {
		return "", fmt.Errorf("pass: %w", err)
	}
	token := make([]byte, 0, 512)
	token = append(token, i.head...)
	token = base64.RawURLEncoding.AppendEncode(token, payload)
	signature, err := i.sign(token)
	if err != nil {
		return "", fmt.Errorf("pass: signing: %w", err)
	}
	token = append(token, '.')
	return string(base64.RawURLEncoding.AppendEncode(token, signature)), nil
}

// Lasts returns how long a token that this issuer seems to have issued is valid still; 0 when it is over, of another key,
// or no pass. It does not look at the signature: use it only to decide whether to issue another.
func (i *Issuer) Lasts(token string, now time.Time) time.Duration {
	rest, ok := strings.CutPrefix(token, i.head)
	if !ok || len(token) > MaxBytes {
		return 0
	}
	payload, _, _ := strings.Cut(rest, ".")
	c, err := readClaims(payload)
	if err != nil || c.Room != i.room {
		return 0
	}
	return max(0, time.Unix(c.Expiry, 0).Sub(now))
}

func headOf(alg, kid string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","typ":"JWT","kid":"` + kid + `"}`))
}

// signES256 returns r and s of 32 bytes each (RFC 7518 §3.4).
func signES256(key *ecdsa.PrivateKey, signed []byte) ([]byte, error) {
	sum := sha256.Sum256(signed)
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return nil, err
	}
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	s.FillBytes(out[32:])
	return out, nil
}

func signHS256(key, signed []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(signed)
	return mac.Sum(nil)
}

func readClaims(payload string) (c Claims, err error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil {
		return c, err
	}
	err = json.Unmarshal(data, &c)
	return c, err
}

// Of returns the keys that a ring makes, of all its generations.
func Of(ring *ticket.Keyring) (*Keys, error) {
	var keys []Key
	for _, d := range ring.Derive(ticket.PurposePass) {
		keys = append(keys, Key{ID: d.ID, Seed: Seed(d.Secret)})
	}
	return NewKeys(keys...)
}

// IDs returns the names of the public keys, the one that signs first.
func (k *Keys) IDs() []string {
	out := make([]string, len(k.generations))
	for i := range k.generations {
		out[i] = k.generations[i].kid()
	}
	return out
}
