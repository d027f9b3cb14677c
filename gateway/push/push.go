// Package push tells visitors by web push that it is their turn: it keeps what they have subscribed to, encrypts messages (RFC 8291, in
// the coding of RFC 8188), and signs requests to their browsers' push services (RFC 8292). Package server sends.
package push

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
)

const (
	// maxEndpoint bounds the address at a push service, in bytes. Those of browsers have 150 to 600.
	maxEndpoint = 1024
	// MaxContact bounds what a visitor enters to be written to, in bytes.
	MaxContact = 254
	// maxMessage bounds what is encrypted: push services take requests of 4096 bytes (RFC 8030, section 7.2).
	maxMessage = recordSize - headerSize - 17

	recordSize = 4096
	pointSize  = 65
	headerSize = 16 + 4 + 1 + pointSize
	authSize   = 16
	// signedFor is how long a signature is valid; at most 24 h (RFC 8292, section 2).
	signedFor = 12 * time.Hour
)

var encoding = base64.RawURLEncoding

// Subscription is what a browser gives the page (PushSubscription). Who has it can send to the browser, if it can also sign.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	// P256DH is the browser's public key and Auth the secret shared with it, both as base64url without padding.
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Format writes "[subscription]" for every verb.
func (Subscription) Format(f fmt.State, _ rune) { io.WriteString(f, "[subscription]") }

// Check returns what is wrong with a subscription, an error of kind Invalid. Whether its endpoint may be reached is not looked at.
func (s *Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	switch {
	case len(s.Endpoint) > maxEndpoint:
		return anteroom.Errorf(anteroom.Invalid, "endpoint has %d bytes, at most %d are allowed", len(s.Endpoint), maxEndpoint)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return anteroom.Errorf(anteroom.Invalid, "endpoint is no URL of a push service")
	}
	_, _, err = s.keys()
	return err
}

func (s *Subscription) keys() (key *ecdh.PublicKey, auth []byte, err error) {
	point, err := encoding.DecodeString(s.P256DH)
	if err == nil {
		key, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return nil, nil, anteroom.Errorf(anteroom.Invalid, "p256dh is not a public key of the curve P-256, as base64url without padding")
	}
	if auth, err = encoding.DecodeString(s.Auth); err != nil || len(auth) != authSize {
		return nil, nil, anteroom.Errorf(anteroom.Invalid, "auth is not %d bytes, as base64url without padding", authSize)
	}
	return key, auth, nil
}

// encrypt returns the body of a request, for the browser alone to read.
func (s *Subscription) encrypt(message []byte) ([]byte, error) {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	var salt [16]byte
	rand.Read(salt[:])
	return s.encryptWith(message, private, salt)
}

func (s *Subscription) encryptWith(message []byte, private *ecdh.PrivateKey, salt [16]byte) ([]byte, error) {
	if len(message) > maxMessage {
		return nil, anteroom.Errorf(anteroom.Invalid, "push: a message has %d bytes, at most %d are allowed", len(message), maxMessage)
	}
	theirs, auth, err := s.keys()
	if err != nil {
		return nil, err
	}
	shared, err := private.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	ours := private.PublicKey().Bytes()
	ikm := expand(shared, auth, "WebPush: info\x00"+string(theirs.Bytes())+string(ours), sha256.Size)
	block, err := aes.NewCipher(expand(ikm, salt[:], "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, headerSize+len(message)+1+seal.Overhead()), salt[:]...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(append(out, pointSize), ours...)
	last := append(bytes.Clone(message), 2) // the delimiter of the last record
	return seal.Seal(out, expand(ikm, salt[:], "Content-Encoding: nonce\x00", seal.NonceSize()), last, nil), nil
}

// expand is HKDF-SHA256 (RFC 5869).
func expand(secret, salt []byte, info string, size int) []byte {
	out, err := hkdf.Key(sha256.New, secret, salt, info, size)
	if err != nil {
		panic(err) // only for a longer output than SHA-256 can expand to
	}
	return out
}

// Key signs requests to push services. Browsers bind subscriptions to its public half. Safe for concurrent use.
type Key struct {
	signer jose.Signer
	public string
}

// NewKey makes the key of a seed: the same for the same seed.
func NewKey(seed [32]byte) *Key {
	for try := 0; ; try++ { // one in four billion outputs is no key
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), expand(seed[:], nil, fmt.Sprintf("anteroom/1/push/es256/%d", try), 32))
		if err != nil {
			continue
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithType("JWT"))
		if err != nil {
			panic(err) // only for another kind of key
		}
		point, err := private.PublicKey.Bytes()
		if err != nil {
			panic(err) // only for a point that is not on the curve
		}
		return &Key{signer, encoding.EncodeToString(point)}
	}
}

// Public is the public key as browsers want it (applicationServerKey): an uncompressed point as base64url.
func (k *Key) Public() string { return k.public }

// Request returns the request by which a message reaches the browser of a subscription until a moment. Contact is a URL at which the push
// service finds who is responsible.
func (k *Key) Request(ctx context.Context, s Subscription, message []byte, contact string, now, until time.Time) (*http.Request, error) {
	body, err := s.encrypt(message)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expiry   int64  `json:"exp"`
		Contact  string `json:"sub"`
	}{r.URL.Scheme + "://" + r.URL.Host, now.Add(signedFor).Unix(), contact})
	if err != nil {
		return nil, err
	}
	signed, err := k.signer.Sign(claims)
	if err != nil {
		return nil, err
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return nil, err
	}
	h := r.Header
	h.Set("Authorization", "vapid t="+token+", k="+k.public)
	h.Set("Content-Encoding", "aes128gcm")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("TTL", strconv.FormatInt(max(0, int64(until.Sub(now)/time.Second)), 10))
	h.Set("Urgency", "high")
	h.Set("Topic", topic) // a later message replaces one that has not arrived
	return r, nil
}

const topic = "anteroom"

// Answer is what a push service's answer means.
type Answer int

const (
	Sent  Answer = iota
	Gone         // the browser has ended the subscription
	Later        // to be tried again
	Never        // no attempt will succeed
)

// AnswerOf reads an answer (RFC 8030, sections 5 to 8). after is how long the service wants to be left alone; 0 when it does not say.
func AnswerOf(status int, h http.Header) (a Answer, after time.Duration) {
	switch {
	case status >= 200 && status < 300:
		return Sent, 0
	case status == http.StatusNotFound, status == http.StatusGone:
		return Gone, 0
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		if n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After"))); err == nil && n > 0 {
			after = time.Duration(min(n, 24*3600)) * time.Second
		}
		return Later, after
	}
	return Never, 0
}
