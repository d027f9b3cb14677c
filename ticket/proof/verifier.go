package proof

import (
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
)

// Why a proof was refused. What [Verifier.Verify] returns wraps one of them.
var (
	// ErrMalformed: not a JWS in compact form with the claims of a proof.
	ErrMalformed = errors.New("not a proof")
	// ErrAlgorithm: signed with anything but EdDSA, or not at all.
	ErrAlgorithm = errors.New("signed with another algorithm than EdDSA")
	// ErrUnknownKey: the key is not in the set. Fetch the set anew, at most once in a few
	// seconds, and try again: it may have been rotated.
	ErrUnknownKey = errors.New("signed with a key that is not in the set")
	// ErrSignature: the signature is wrong.
	ErrSignature = errors.New("wrong signature")
	// ErrIssuer: made by another issuer.
	ErrIssuer = errors.New("of another issuer")
	// ErrAudience: made for another site.
	ErrAudience = errors.New("made for another website")
	// ErrExpired: past its expiry by more than Skew.
	ErrExpired = errors.New("expired")
	// ErrNotYet: issued in the future by more than Skew.
	ErrNotYet = errors.New("issued in the future: the clocks differ")
)

const (
	maxToken = 4 << 10   // bytes of a proof
	maxJWKS  = 256 << 10 // bytes of a key set
)

// Verifier checks proofs against a key set, for origins written in Go. It does not
// change and is safe for concurrent use; a new key set needs a new Verifier.
type Verifier struct {
	keys             map[string]ed25519.PublicKey
	issuer, audience string
}

// NewVerifier returns a verifier for the proofs of an issuer (empty means DefaultIssuer)
// for one site. Jwks is the JWK set as the gateway publishes it; keys of other kinds than
// Ed25519 are left out. Errors are of kind Invalid.
func NewVerifier(jwks []byte, issuer, audience string) (*Verifier, error) {
	issuer = cmp.Or(issuer, DefaultIssuer)
	if audience == "" {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: no audience to check: without it, proofs for any other website would be accepted")
	}
	if len(jwks) > maxJWKS {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: the key set is larger than %d bytes", maxJWKS)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: not a JWK set: %w", err)
	}
	v := &Verifier{keys: map[string]ed25519.PublicKey{}, issuer: issuer, audience: audience}
	for _, k := range set.Keys {
		public, ok := k.Key.(ed25519.PublicKey)
		if !ok || k.KeyID == "" || k.Algorithm != "" && k.Algorithm != string(jose.EdDSA) || k.Use != "" && k.Use != "sig" {
			continue
		}
		if _, twice := v.keys[k.KeyID]; twice {
			return nil, anteroom.Errorf(anteroom.Invalid, "proof: the key set has two keys named %.60q", k.KeyID)
		}
		v.keys[k.KeyID] = public
	}
	if len(v.keys) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, "proof: the key set has no Ed25519 key")
	}
	return v, nil
}

// Verify returns what a proof says, if it is good at now: signed with EdDSA by a key of
// the set, of the issuer, for the site, and valid. The error, of kind Denied, wraps one
// of the errors above; answer such a request with 403.
func (v *Verifier) Verify(token string, now time.Time) (Claims, error) {
	c, err := v.verify(token, now)
	if err != nil {
		return Claims{}, anteroom.Errorf(anteroom.Denied, "proof of admission refused: %w", err)
	}
	return c, nil
}

func (v *Verifier) verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, ErrMalformed
	}
	// The list is what keeps "none" and a switch to a symmetric algorithm out.
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return Claims{}, ErrAlgorithm
	}
	if err != nil || len(jws.Signatures) != 1 {
		return Claims{}, ErrMalformed
	}
	key, ok := v.keys[jws.Signatures[0].Protected.KeyID]
	if !ok {
		return Claims{}, ErrUnknownKey
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return Claims{}, ErrSignature
	}
	var c Claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Claims{}, ErrMalformed
	}
	switch at := now.Unix(); {
	case c.Issuer != v.issuer:
		return Claims{}, ErrIssuer
	case c.Audience != v.audience:
		return Claims{}, ErrAudience
	case at-int64(Skew/time.Second) >= c.Expiry:
		return Claims{}, ErrExpired
	case at+int64(Skew/time.Second) < c.IssuedAt:
		return Claims{}, ErrNotYet
	case c.Subject == "" || c.Room == "" || c.Expiry-c.IssuedAt > int64(Lifetime/time.Second):
		return Claims{}, ErrMalformed
	}
	return c, nil
}
