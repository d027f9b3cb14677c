package pass

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Why a pass was refused. What a [Verifier] returns wraps one of them. Whatever it is, send the request to Anteroom: the
// visitor may have a session all the same.
var (
	// ErrNone: there is no pass.
	ErrNone = errors.New("no pass")
	// ErrTwo: there is more than one cookie of the name, perhaps from another host of the domain.
	ErrTwo = errors.New("more than one pass")
	// ErrMalformed: not a JWS in compact form with the claims of a pass, or longer than [MaxBytes].
	ErrMalformed = errors.New("not a pass")
	// ErrKey: another header than that of one of the keys: of another algorithm, or of a key that is not known. Fetch
	// the key set again, at most once in a few seconds: it may have been rotated.
	ErrKey = errors.New("not signed with one of the keys")
	// ErrSignature: the signature is wrong.
	ErrSignature = errors.New("wrong signature")
	// ErrUse: signed for something else than a pass.
	ErrUse = errors.New("not for use as a pass")
	// ErrIssuer: made by another issuer.
	ErrIssuer = errors.New("from another issuer")
	// ErrAudience: made for another zone.
	ErrAudience = errors.New("made for another zone")
	// ErrRoom: made for another room.
	ErrRoom = errors.New("made for another room")
	// ErrExpired: past its expiry.
	ErrExpired = errors.New("expired")
	// ErrNotYet: valid later only.
	ErrNotYet = errors.New("not valid yet: the clocks differ")
)

const (
	maxJWKS = 256 << 10 // bytes of a key set
	p256    = 32        // bytes of a coordinate
)

// Want is what a pass must be for.
type Want struct {
	Issuer   string // empty means DefaultIssuer
	Audience string // the room's zone; required
	Room     anteroom.RoomID
}

// Verifier verifies the passes of a room, for edges and applications written in Go. It does not change and is safe for
// concurrent use; a new key set needs a new Verifier.
type Verifier struct {
	Want
	keys map[string]func(signed, signature []byte) bool // by encoded header
}

// NewVerifier returns a verifier with the keys that Anteroom publishes as a JWK set. Other keys than those for ES256 are
// left out. Errors are of kind Invalid.
func NewVerifier(jwks []byte, want Want) (*Verifier, error) {
	if len(jwks) > maxJWKS {
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: the key set is larger than %d bytes", maxJWKS)
	}
	var set jwkSet
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: not a JWK set: %w", err)
	}
	v := &Verifier{Want: want, keys: map[string]func(signed, signature []byte) bool{}}
	for _, k := range set.Keys {
		public, ok := k.public()
		if !ok {
			continue
		}
		head := headOf("ES256", k.Kid)
		if v.keys[head] != nil {
			return nil, anteroom.Errorf(anteroom.Invalid, "pass: the key set has two keys named %.60q", k.Kid)
		}
		v.keys[head] = func(signed, signature []byte) bool { return verifyES256(public, signed, signature) }
	}
	return v.checked()
}

// NewEdgeVerifier returns a verifier with the secrets of an edge. Errors are of kind Invalid.
func NewEdgeVerifier(secrets []EdgeSecret, want Want) (*Verifier, error) {
	v := &Verifier{Want: want, keys: map[string]func(signed, signature []byte) bool{}}
	for _, s := range secrets {
		if !isKeyName(s.ID) || len(s.Text) < 32 {
			return nil, anteroom.Errorf(anteroom.Invalid, "pass: the secret %.60q needs a name, and 32 characters or more", s.ID)
		}
		v.keys[headOf("HS256", s.ID)] = func(signed, signature []byte) bool {
			return hmac.Equal(signature, signHS256([]byte(s.Text), signed))
		}
	}
	return v.checked()
}

func (v *Verifier) checked() (*Verifier, error) {
	v.Issuer = cmp.Or(v.Issuer, DefaultIssuer)
	switch {
	case v.Audience == "" || v.Room == "":
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: name the zone and the room: without them, passes of others would be accepted")
	case len(v.keys) == 0:
		return nil, anteroom.Errorf(anteroom.Invalid, "pass: there is no key to verify with")
	}
	return v, nil
}

// Verify returns what a pass says, if it is good at now. The error, of kind Denied, wraps one of the errors above.
func (v *Verifier) Verify(token string, now time.Time) (Claims, error) {
	c, err := v.verify(token, now)
	if err != nil {
		return Claims{}, anteroom.Errorf(anteroom.Denied, "pass refused: %w", err)
	}
	return c, nil
}

// Cookies is Verify for the pass in the Cookie header lines of a request, under the cookie name (see [Cookie]). Two cookies
// of the name are an error: which of them the origin's other readers would take is not known.
func (v *Verifier) Cookies(lines []string, name string, now time.Time) (Claims, error) {
	token, found := "", 0
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			if key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "="); ok && key == name {
				token = value
				found++
			}
		}
	}
	switch found {
	case 0:
		return Claims{}, anteroom.Errorf(anteroom.Denied, "pass refused: %w", ErrNone)
	case 1:
		return v.Verify(token, now)
	}
	return Claims{}, anteroom.Errorf(anteroom.Denied, "pass refused: %w", ErrTwo)
}

func (v *Verifier) verify(token string, now time.Time) (c Claims, err error) {
	if len(token) > MaxBytes {
		return c, ErrMalformed
	}
	head, rest, ok := strings.Cut(token, ".")
	payload, encoded, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return c, ErrMalformed
	}
	good := v.keys[head]
	if good == nil {
		return c, ErrKey
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return c, ErrMalformed
	}
	if !good([]byte(token[:len(head)+1+len(payload)]), signature) {
		return c, ErrSignature
	}
	if c, err = readClaims(payload); err != nil {
		return c, ErrMalformed
	}
	switch at := now.Unix(); {
	case c.Use != use:
		return c, ErrUse
	case c.Issuer != v.Issuer:
		return c, ErrIssuer
	case c.Audience != v.Audience:
		return c, ErrAudience
	case c.Room != v.Room:
		return c, ErrRoom
	case at >= c.Expiry:
		return c, ErrExpired
	case at < c.NotBefore:
		return c, ErrNotYet
	case c.Session == "":
		return c, ErrMalformed
	}
	return c, nil
}

func verifyES256(key *ecdsa.PublicKey, signed, signature []byte) bool {
	if len(signature) != 2*p256 {
		return false
	}
	sum := sha256.Sum256(signed)
	return ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:p256]), new(big.Int).SetBytes(signature[p256:]))
}

// jwkSet is a JWK set with keys on a curve.
type jwkSet struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	Kid string `json:"kid"`
	Use string `json:"use"`
	Alg string `json:"alg"`
}

func jwkOf(kid string, key *ecdsa.PublicKey) jwk {
	point, err := key.Bytes() // 4, x, y
	if err != nil {
		panic(err) // only for a key that is not on its curve
	}
	text := base64.RawURLEncoding.EncodeToString
	return jwk{Kty: "EC", Crv: "P-256", X: text(point[1 : 1+p256]), Y: text(point[1+p256:]), Kid: kid, Use: "sig", Alg: "ES256"}
}

// public returns the key if it is one for ES256.
func (k *jwk) public() (*ecdsa.PublicKey, bool) {
	if k.Kty != "EC" || k.Crv != "P-256" || !isKeyName(k.Kid) || k.Alg != "" && k.Alg != "ES256" || k.Use != "" && k.Use != "sig" {
		return nil, false
	}
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	y, err2 := base64.RawURLEncoding.DecodeString(k.Y)
	if err != nil || err2 != nil || len(x) != p256 || len(y) != p256 {
		return nil, false
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	return key, err == nil
}

// isKeyName reports whether a kid may stand in a header as it is.
func isKeyName(kid string) bool {
	return kid != "" && len(kid) <= maxKey && !strings.ContainsFunc(kid, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}
