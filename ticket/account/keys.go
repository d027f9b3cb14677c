package account

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxJWKS bounds a key set, in bytes, and maxKeys the keys in it.
	maxJWKS = 64 << 10
	maxKeys = 64
	// refresh is how often the keys of an issuer are fetched while its tokens come, and again how soon after the last attempt at the
	// earliest: when that has failed, or a token names a key that is not known.
	refresh = 10 * time.Minute
	again   = 30 * time.Second
	// fetchTime bounds a fetch.
	fetchTime = 10 * time.Second
	// maxSources bounds the URLs whose keys rooms share.
	maxSources = 1000
)

// Fetch gets what a URL answers, at most limit bytes.
type Fetch func(ctx context.Context, url string, limit int64) ([]byte, error)

// Sources are the key sets of issuers, each by its URL, as rooms share them.
type Sources struct {
	Fetch Fetch
	Log   *slog.Logger // nil: none

	mu   sync.Mutex
	keys map[string]*Keys
}

// Of returns the keys at a URL, and begins to fetch them.
func (s *Sources) Of(url string) *Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[url]
	if k == nil {
		if s.keys == nil || len(s.keys) >= maxSources { // rooms that have theirs keep them
			s.keys = map[string]*Keys{}
		}
		k = &Keys{url: url, from: s}
		s.keys[url] = k
	}
	k.current(time.Now())
	return k
}

// Keys are those of an issuer. Requests never wait for them: they are fetched beside, and the last good ones count until there are others.
type Keys struct {
	url  string
	from *Sources // nil: they never change

	mu    sync.Mutex
	set   *keySet // nil: not known yet
	text  []byte  // that it was read from
	got   time.Time
	tried time.Time
	busy  bool
}

// Fixed returns the keys in a JWK set.
func Fixed(jwks string) (*Keys, error) {
	set, err := readSet([]byte(jwks))
	if err != nil {
		return nil, err
	}
	return &Keys{set: set}, nil
}

// current returns the keys as they are known.
func (k *Keys) current(now time.Time) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != nil && (k.set == nil || now.Sub(k.got) >= refresh) {
		k.load(now)
	}
	return k.set
}

// missed says that a token names a key that is not among them.
func (k *Keys) missed(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != nil {
		k.load(now)
	}
}

// load fetches the keys in the background, unless that was tried a moment ago.
func (k *Keys) load(now time.Time) {
	if k.busy || !k.tried.IsZero() && now.Sub(k.tried).Abs() < again {
		return
	}
	k.busy, k.tried = true, now
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
		defer cancel()
		text, err := k.from.Fetch(ctx, k.url, maxJWKS)
		var set *keySet
		if err == nil {
			set, err = readSet(text)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.busy = false
		if err != nil {
			if k.from.Log != nil {
				k.from.Log.Warn("the keys for accounts cannot be fetched; the last good ones count", "url", k.url, "known", k.set != nil, "error", err)
			}
			return
		}
		if k.got = now; k.set == nil || !bytes.Equal(text, k.text) {
			k.set, k.text = set, text
		}
	}()
}

// keySet is a JWK set as far as it is usable here. It does not change.
type keySet struct{ keys []jose.JSONWebKey }

func readSet(text []byte) (*keySet, error) {
	if len(text) > maxJWKS {
		return nil, fmt.Errorf("the key set is longer than %d bytes", maxJWKS)
	}
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("it is not a JWK set: %w", err)
	}
	if len(raw.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys; at most %d", len(raw.Keys), maxKeys)
	}
	set := &keySet{}
	for _, one := range raw.Keys {
		var k jose.JSONWebKey
		// Keys of other kinds than ours are for somebody else.
		if json.Unmarshal(one, &k) == nil && (k.Use == "" || k.Use == "sig") && k.Valid() && len(fit(k.Key)) > 0 {
			set.keys = append(set.keys, k)
		}
	}
	if len(set.keys) == 0 {
		return nil, errors.New("the key set has no public key for signatures: RSA of at least 2048 bits, EC on P-256, or Ed25519")
	}
	return set, nil
}

// fit are the algorithms for which a public key is good: none for a private one, which must not be where others can read it.
func fit(key any) []jose.SignatureAlgorithm {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= 2048 && bits <= 8192 {
			return []jose.SignatureAlgorithm{jose.RS256, jose.PS256}
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return []jose.SignatureAlgorithm{jose.ES256}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// find returns the key with a name for an algorithm; without a name, the only one there is for it.
func (s *keySet) find(name, algorithm string) (found any) {
	for i := range s.keys {
		k := &s.keys[i]
		if name != "" && k.KeyID != name || k.Algorithm != "" && k.Algorithm != algorithm {
			continue
		}
		for _, one := range fit(k.Key) {
			if string(one) != algorithm {
				continue
			}
			if found != nil {
				return nil // which of them is not said
			}
			found = k.Key
		}
	}
	return found
}
