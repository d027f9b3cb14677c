// Package proof makes and checks the signed proof of admission that goes to the origin
// with every request that passed the room, so that the origin can refuse those that came
// around it.
//
// The proof is a JWT (RFC 7519) in JWS compact form (RFC 7515), signed with EdDSA over
// Ed25519 (RFC 8037) and nothing else. A [Signer] makes proofs and publishes its public
// keys as a JWK set (RFC 7517); a [Verifier] is for origins written in Go, and shows what
// others have to check.
//
// A proof says: this session of this room passed within the last minute. It does not say
// what was requested and is sent with several requests of a session, so it is not to be
// used up: a "jti" that was seen before is normal.
package proof

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
)

const (
	// Lifetime is how long a proof is valid from the moment it was signed.
	Lifetime = 60 * time.Second
	// Reuse is how long a proof goes on being sent. Every proof that leaves is valid for
	// Lifetime - Reuse at least.
	Reuse = 30 * time.Second
	// Skew is how far the clocks of node and origin may differ.
	Skew = 5 * time.Second

	// DefaultIssuer is the "iss" of proofs when the configuration names none.
	DefaultIssuer = "anteroom"
	// DefaultCacheSize is the number of proofs kept for use again when the configuration
	// gives none. A proof is about 600 bytes.
	DefaultCacheSize = 1 << 16

	maxName = 256 // bytes of issuer and audience
)

// Seed is the private half of a signing key (RFC 8032). It does not print.
type Seed [ed25519.SeedSize]byte

// Format writes "[secret]" for every verb.
func (Seed) Format(f fmt.State, _ rune) { io.WriteString(f, "[secret]") }

// Key is a signing key with the name that it has in proofs ("kid").
type Key struct {
	ID   string
	Seed Seed
}

// Config says how proofs are made.
type Config struct {
	// Issuer is the "iss" of every proof, at most 256 bytes; empty means DefaultIssuer.
	Issuer string
	// Keys: the first signs, all are published. Publish a key before it signs and for as
	// long after as origins may hold proofs of it (a minute). At least one.
	Keys []Key
	// SubjectKey names sessions to the origin. It should outlive the keys: a change gives
	// every session another "sub". Required.
	SubjectKey Seed
	// CacheSize bounds the proofs kept for use again; zero means DefaultCacheSize, and
	// negative keeps none.
	CacheSize int
}

// Claims is what a proof says. Times are seconds since the Unix epoch.
type Claims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`  // the site, as the operator named it
	Subject  string `json:"sub"`  // the session: same for all its proofs, says nothing else
	Room     string `json:"room"` // the room's ID
	IssuedAt int64  `json:"iat"`
	Expiry   int64  `json:"exp"`
	ID       string `json:"jti"`
}

// Signer makes proofs. Safe for concurrent use. New keys need a new Signer.
type Signer struct {
	issuer  string
	key     ed25519.PrivateKey
	head    string // of every proof: the encoded header, and the dot
	subject Seed
	jwks    []byte
	cache   *cache
}

// New returns a signer. Errors are of kind Invalid.
func New(cfg Config) (*Signer, error) {
	cfg.Issuer = cmp.Or(cfg.Issuer, DefaultIssuer)
	if len(cfg.Issuer) > maxName {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: the issuer has %d bytes, and %d is the most", len(cfg.Issuer), maxName)
	}
	if len(cfg.Keys) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: there is no key to sign with")
	}
	if cfg.SubjectKey == (Seed{}) {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: there is no subject key")
	}
	cfg.CacheSize = cmp.Or(cfg.CacheSize, DefaultCacheSize)
	var set jose.JSONWebKeySet
	var sign ed25519.PrivateKey
	for i, k := range cfg.Keys {
		if k.ID == "" || len(set.Key(k.ID)) > 0 || k.Seed == (Seed{}) {
			return nil, anteroom.Errorf(anteroom.Invalid, "proof: keys[%d] (%q): needs a name of its own and a seed", i, k.ID)
		}
		private := ed25519.NewKeyFromSeed(k.Seed[:])
		if i == 0 {
			sign = private
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: private.Public(), KeyID: k.ID, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	jwks, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("proof: publishing the keys: %w", err)
	}
	head, err := json.Marshal(map[string]string{"alg": string(jose.EdDSA), "kid": cfg.Keys[0].ID, "typ": "JWT"})
	if err != nil {
		return nil, fmt.Errorf("proof: %w", err)
	}
	return &Signer{issuer: cfg.Issuer, key: sign, head: base64.RawURLEncoding.EncodeToString(head) + ".", subject: cfg.SubjectKey, jwks: jwks, cache: newCache(cfg.CacheSize)}, nil
}

// JWKS returns the public keys as a JWK set, for application/jwk-set+json. The caller may
// change what it gets.
func (s *Signer) JWKS() []byte { return slices.Clone(s.jwks) }

// Assertion returns the proof that the session of the ticket id is in the room, for the
// site aud (1 to 256 bytes). It signs once per session and half minute, and answers from
// memory in between. The error, of kind Invalid, is about the arguments alone.
func (s *Signer) Assertion(room anteroom.RoomID, aud string, id anteroom.ID, now time.Time) (string, error) {
	if token, ok := s.cache.get(room, aud, id, now); ok {
		return token, nil
	}
	if aud == "" || len(aud) > maxName {
		return "", anteroom.Errorf(anteroom.Invalid, "proof: the audience has %d bytes, and it needs 1 to %d", len(aud), maxName)
	}
	if id.IsZero() {
		return "", anteroom.Errorf(anteroom.Invalid, "proof: the zero ticket has no session")
	}
	var jti [16]byte
	rand.Read(jti[:]) // never fails: the process ends instead (crypto/rand)
	payload, err := json.Marshal(Claims{
		Issuer: s.issuer, Audience: aud, Subject: s.Subject(room, id), Room: string(room),
		IssuedAt: now.Unix(), Expiry: now.Add(Lifetime).Unix(),
		ID: base64.RawURLEncoding.EncodeToString(jti[:]),
	})
	if err != nil {
		return "", fmt.Errorf("proof: %w", err)
	}
	b := append(make([]byte, 0, 512), s.head...)
	b = append(base64.RawURLEncoding.AppendEncode(b, payload), '.')
	token := string(base64.RawURLEncoding.AppendEncode(b, ed25519.Sign(s.key, b[:len(b)-1])))
	s.cache.put(id, cached{room, aud, token, now})
	return token, nil
}

// Subject returns the "sub" of a session: a keyed hash of room and ticket ID, 22
// characters, from which neither can be told and which no other room shares.
func (s *Signer) Subject(room anteroom.RoomID, id anteroom.ID) string {
	return Subject(s.subject, room, id)
}

// Subject returns what [Signer.Subject] does, for a subject key.
func Subject(key Seed, room anteroom.RoomID, id anteroom.ID) string {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(id[:]) // of fixed length, so that nothing else gives the same bytes
	io.WriteString(mac, string(room))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}
