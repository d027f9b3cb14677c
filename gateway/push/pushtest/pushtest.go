// Package pushtest has the other end of web push, for tests: a push service that holds every request to RFC 8030 and 8292, and browsers that
// decrypt by RFC 8291. It shares no code with package push.
package pushtest

import (
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
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Browser is a browser with a subscription.
type Browser struct {
	Endpoint, P256DH, Auth string // what the page gets; keys in base64url

	private *ecdh.PrivateKey
	secret  [16]byte
}

// NewBrowser returns a browser whose messages go to an endpoint.
func NewBrowser(t testing.TB, endpoint string) *Browser {
	t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{Endpoint: endpoint, private: private}
	rand.Read(b.secret[:])
	b.P256DH = base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes())
	b.Auth = base64.RawURLEncoding.EncodeToString(b.secret[:])
	return b
}

// Read decrypts the body of a message (RFC 8291, section 3; RFC 8188, section 2).
func (b *Browser) Read(body []byte) (string, error) {
	if len(body) < 16+4+1+65+17 || len(body) > 4096 {
		return "", fmt.Errorf("the body has %d bytes", len(body))
	}
	salt, size, id := body[:16], binary.BigEndian.Uint32(body[16:]), int(body[20])
	if id != 65 || int(size) < len(body)-86 {
		return "", fmt.Errorf("the header says a key of %d bytes and records of %d", id, size)
	}
	theirs, err := ecdh.P256().NewPublicKey(body[21:86])
	if err != nil {
		return "", err
	}
	shared, err := b.private.ECDH(theirs)
	if err != nil {
		return "", err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, _ := hkdf.Key(sha256.New, secret, salt, info, n) // the sizes are constants
		return out
	}
	ikm := derive(shared, b.secret[:], "WebPush: info\x00"+string(b.private.PublicKey().Bytes())+string(theirs.Bytes()), 32)
	block, err := aes.NewCipher(derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		return "", err
	}
	open, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := open.Open(nil, derive(ikm, salt, "Content-Encoding: nonce\x00", 12), body[86:], nil)
	if err != nil {
		return "", err
	}
	plain = []byte(strings.TrimRight(string(plain), "\x00"))
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		return "", errors.New("the last record has no delimiter")
	}
	return string(plain[:len(plain)-1]), nil
}

// Message is what a push service was given.
type Message struct {
	Text    string // decrypted
	TTL     int    // seconds
	Topic   string
	Contact string
	Key     string // the public key of who sent it
}

// Service is a push service.
type Service struct {
	*httptest.Server
	Got chan Message // those that were taken

	t        testing.TB
	mu       sync.Mutex
	browsers map[string]*Browser // by path
	answer   func(try int) (status, retryAfter int)
	tries    int
}

// Serve returns a push service that takes everything until the test ends.
func Serve(t testing.TB) *Service {
	s := &Service{t: t, Got: make(chan Message, 100), browsers: map[string]*Browser{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Browser returns a browser that has subscribed.
func (s *Service) Browser() *Browser {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := "/push/" + strconv.Itoa(len(s.browsers)+1)
	s.browsers[path] = NewBrowser(s.t, s.URL+path)
	return s.browsers[path]
}

// Add makes a browser whose keys are elsewhere known to the service, at a path of it.
func (s *Service) Add(b *Browser, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
}

// Answer lets a function say how requests are answered, the first of which is try 1.
func (s *Service) Answer(fn func(try int) (status, retryAfter int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.tries = fn, 0
}

// Tries is how many requests there have been since the last Answer.
func (s *Service) Tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

// ServeHTTP implements [http.Handler].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	b, answer := s.browsers[r.URL.Path], s.answer
	s.tries++
	try := s.tries
	s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m, err := s.check(r, b, body)
	if err != nil {
		s.t.Errorf("a push service was sent a wrong message: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if answer != nil {
		if status, after := answer(try); status != http.StatusCreated {
			if after > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(after))
			}
			w.WriteHeader(status)
			return
		}
	}
	w.Header().Set("Location", r.URL.Path+"/message")
	w.WriteHeader(http.StatusCreated)
	s.Got <- m
}

func (s *Service) check(r *http.Request, b *Browser, body []byte) (m Message, err error) {
	h := r.Header
	if r.Method != http.MethodPost || h.Get("Content-Encoding") != "aes128gcm" || h.Get("Urgency") != "high" {
		return m, fmt.Errorf("%s, Content-Encoding %q, Urgency %q", r.Method, h.Get("Content-Encoding"), h.Get("Urgency"))
	}
	if m.TTL, err = strconv.Atoi(h.Get("TTL")); err != nil || m.TTL < 0 {
		return m, fmt.Errorf("the TTL is %q", h.Get("TTL"))
	}
	// RFC 8030, section 5.4: 32 characters of base64url at most.
	if m.Topic = h.Get("Topic"); len(m.Topic) > 32 || strings.Trim(m.Topic, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return m, fmt.Errorf("the topic is %q", m.Topic)
	}
	if m.Contact, m.Key, err = s.signed(h.Get("Authorization")); err != nil {
		return m, err
	}
	m.Text, err = b.Read(body)
	return m, err
}

// signed verifies what RFC 8292 asks for.
func (s *Service) signed(authorization string) (contact, key string, err error) {
	var token string
	if _, err := fmt.Sscanf(strings.ReplaceAll(authorization, ",", " "), "vapid t=%s k=%s", &token, &key); err != nil {
		return "", "", fmt.Errorf("the authorization is %q: %w", authorization, err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", errors.New("the token has not three parts")
	}
	var raw [4][]byte
	for i, text := range append(parts, key) {
		if raw[i], err = base64.RawURLEncoding.DecodeString(text); err != nil {
			return "", "", err
		}
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := errors.Join(json.Unmarshal(raw[0], &head), json.Unmarshal(raw[1], &claims)); err != nil {
		return "", "", err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw[3])
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	end := time.Unix(claims.Exp, 0)
	switch {
	case head.Alg != "ES256" || len(raw[2]) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(raw[2][:32]), new(big.Int).SetBytes(raw[2][32:])):
		return "", "", errors.New("the signature is wrong")
	case claims.Aud != s.URL:
		return "", "", fmt.Errorf("aud is %q, the service is %q", claims.Aud, s.URL)
	case time.Until(end) <= 0 || time.Until(end) > 24*time.Hour:
		return "", "", fmt.Errorf("the token ends at %v", end)
	case !strings.HasPrefix(claims.Sub, "https://") && !strings.HasPrefix(claims.Sub, "mailto:"):
		return "", "", fmt.Errorf("sub is %q", claims.Sub)
	}
	return claims.Sub, key, nil
}
