package aws

import (
	"context"
	"crypto"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
)

// keyBits is the size of the RSA keys, as in the original.
const keyBits = 2048

// sealer encrypts what only this bridge may read. A nonce is random, and of the few million values of one key none is likely
// to share another's.
func sealer(key [32]byte) cipher.AEAD {
	a, err := cipher.NewGCMWithRandomNonce(bridge.Block(key))
	if err != nil {
		panic(err) // only for a cipher with another block size than AES
	}
	return a
}

// signer signs and verifies the tokens of an event.
type signer struct {
	key *rsa.PrivateKey
	kid string // 32 hexadecimal digits
}

// jwk is the public key as the original exports it.
func (s *signer) jwk() []member {
	return []member{{"alg", "RS256"}, {"e", "AQAB"}, {"kid", s.kid}, {"kty", "RSA"}, {"n", encode(s.key.N.Bytes())}}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// claims are those of the original's tokens. Nonce is what a relying party of the OpenID adapter has sent.
type claims struct {
	Audience string `json:"aud"`
	Subject  string `json:"sub"` // the request id
	Position uint32 `json:"queue_position"`
	Use      string `json:"token_use"`
	IssuedAt int64  `json:"iat"`
	NotFrom  int64  `json:"nbf"`
	Expires  int64  `json:"exp"`
	Issuer   string `json:"iss"`
	Nonce    string `json:"nonce,omitempty"`
}

// The uses of a token.
const (
	useAccess  = "access"
	useRefresh = "refresh"
	useID      = "id"
)

var uses = [...]string{useAccess, useRefresh, useID}

func (s *signer) sign(c claims) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	text := encode([]byte(`{"alg":"RS256","kid":"`+s.kid+`","typ":"JWT"}`)) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	return text + "." + encode(signature), err
}

var errToken = errors.New("not a valid token of this event")

// maxToken bounds the tokens that are looked at, in bytes. Ours have about 700.
const maxToken = 4 << 10

// verify returns the claims of a token of ours with a valid signature, whatever they are.
func (s *signer) verify(token string) (c claims, err error) {
	parts := strings.Split(token[:min(len(token), maxToken)], ".")
	if len(parts) != 3 || len(token) > maxToken {
		return c, errToken
	}
	var raw [3][]byte
	for i, part := range parts {
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return c, errToken
		}
	}
	var head struct{ Alg, Kid, Typ string }
	if json.Unmarshal(raw[0], &head) != nil || head.Alg != "RS256" || head.Kid != s.kid {
		return c, errToken
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], raw[2]) != nil || json.Unmarshal(raw[1], &c) != nil {
		return c, errToken
	}
	return c, nil
}

// loadSigner returns the key of the event, and makes it where there is none yet. It is stored under the bridge's secret.
func loadSigner(ctx context.Context, space cluster.Space, name string, secret [32]byte) (*signer, error) {
	seal := sealer(bridge.Derive(secret, "signing-key", 0))
	for try := range changeTries {
		e, err := space.Get(ctx, name)
		if errors.Is(err, cluster.ErrNotFound) {
			var made *rsa.PrivateKey
			if made, err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
				return nil, err
			}
			_, err = space.Update(ctx, name, seal.Seal(nil, nil, x509.MarshalPKCS1PrivateKey(made), []byte(name)), 0)
			if (err == nil || errors.Is(err, cluster.ErrRevision)) && walltime.Sleep(ctx, time.Duration(try)*10*time.Millisecond) {
				continue // the one that is stored counts, whoever was first
			}
		}
		if err != nil {
			return nil, err
		}
		der, err := seal.Open(nil, nil, e.Value, []byte(name))
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "it was stored under other ticket keys: %w", err)
		}
		key, err := x509.ParsePKCS1PrivateKey(der)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))
		return &signer{key: key, kid: hex.EncodeToString(sum[:16])}, nil
	}
	return nil, anteroom.Errorf(anteroom.Unavailable, "it cannot be read yet; try again")
}
