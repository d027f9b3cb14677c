// Package anteroompass is a plugin of Traefik: requests with a good pass of Anteroom go on to the application, all others to Anteroom.
// Traefik interprets it, so it uses nothing but the standard library, as it was in Go 1.22.
package anteroompass

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config is the plugin's configuration.
type Config struct {
	Anteroom string   `json:"anteroom"` // address of Anteroom, like http://127.0.0.1:8080
	Host     string   `json:"host"`     // a host that Anteroom serves
	Zone     string   `json:"zone"`     // the room's zone
	Room     string   `json:"room"`     // the room's ID
	Issuer   string   `json:"issuer"`   // proof.issuer of the configuration
	Suffix   string   `json:"suffix"`   // the room's cookie_suffix
	Ends     []string `json:"ends"`     // paths at which the application ends sessions, with everything below them
}

// CreateConfig returns the defaults.
func CreateConfig() *Config { return &Config{Issuer: "anteroom"} }

// Edge verifies passes.
type Edge struct {
	want     Config
	cookie   string
	next     http.Handler
	anteroom http.Handler
	client   *http.Client
	now      func() time.Time

	mu    sync.Mutex
	asked time.Time                   // when the keys were fetched last
	keys  map[string]*ecdsa.PublicKey // by the encoded header of their passes
}

// New returns the middleware. Errors say what is missing.
func New(_ context.Context, next http.Handler, config *Config, _ string) (http.Handler, error) {
	to, err := url.Parse(config.Anteroom)
	if err != nil || to.Host == "" || config.Host == "" || config.Zone == "" || config.Room == "" {
		return nil, errors.New("anteroompass: set anteroom to its address, and host, zone and room: without them, passes of others would be accepted")
	}
	e := &Edge{want: *config, cookie: "__anteroom_pass", next: next, now: time.Now, client: &http.Client{Timeout: 5 * time.Second}, keys: map[string]*ecdsa.PublicKey{}}
	if config.Suffix != "" {
		e.cookie += "_" + config.Suffix
	}
	e.anteroom = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
		chain := r.In.Header["X-Forwarded-For"]
		if client, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
			chain = append(append([]string(nil), chain...), client)
		}
		r.Out.Header["X-Forwarded-For"] = []string{strings.Join(chain, ", ")}
		r.Out.Header.Set("X-Forwarded-Proto", r.In.Header.Get("X-Forwarded-Proto"))
	}}
	return e, nil
}

func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name := range r.Header {
		if folded := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name)); strings.HasPrefix(folded, "x-anteroom-") {
			delete(r.Header, name)
		}
	}
	if !e.admits(r) {
		e.anteroom.ServeHTTP(w, r)
		return
	}
	var others []string
	for _, line := range r.Header["Cookie"] {
		for _, pair := range strings.Split(line, ";") {
			if pair = strings.TrimSpace(pair); !strings.HasPrefix(pair, "__anteroom_pass") && !strings.HasPrefix(pair, "__cfwaitingroom") {
				others = append(others, pair)
			}
		}
	}
	r.Header.Del("Cookie")
	if len(others) > 0 {
		r.Header.Set("Cookie", strings.Join(others, "; "))
	}
	e.next.ServeHTTP(w, r)
}

// claims are what a pass says.
type claims struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Use       string `json:"use"`
	Room      string `json:"room"`
	Session   string `json:"sid"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expiry    int64  `json:"exp"`
}

// admits reports whether a request goes to the application. Every doubt leads to Anteroom.
func (e *Edge) admits(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" || strings.HasPrefix(r.URL.Path, "/.well-known/anteroom/") || r.URL.Query().Has("__anteroom") {
		return false
	}
	for _, end := range e.want.Ends {
		if r.URL.Path == end || strings.HasPrefix(r.URL.Path, end+"/") {
			return false
		}
	}
	token, found := "", 0
	for _, line := range r.Header["Cookie"] {
		for _, pair := range strings.Split(line, ";") {
			if pair = strings.TrimSpace(pair); strings.HasPrefix(pair, e.cookie+"=") {
				token = pair[len(e.cookie)+1:]
				found++
			}
		}
	}
	parts := strings.Split(token, ".")
	if found != 1 || len(token) > 1024 || len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	key := e.key(parts[0])
	if err != nil || err2 != nil || len(signature) != 64 || key == nil {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	var c claims
	if !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) || json.Unmarshal(payload, &c) != nil {
		return false
	}
	at := e.now().Unix()
	if c.Use != "pass" || c.Issuer != e.want.Issuer || c.Audience != e.want.Zone || c.Room != e.want.Room || c.Session == "" || at >= c.Expiry || at < c.NotBefore {
		return false
	}
	// Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || at < (c.IssuedAt+c.Expiry)/2
}

// key returns the key whose passes have this header. Keys are fetched every five minutes, and when a pass names another one, at most
// every ten seconds.
func (e *Edge) key(head string) *ecdsa.PublicKey {
	e.mu.Lock()
	key, age := e.keys[head], e.now().Sub(e.asked)
	fetch := age >= 5*time.Minute || key == nil && age >= 10*time.Second
	if fetch {
		e.asked = e.now()
	}
	e.mu.Unlock()
	if !fetch {
		return key
	}
	keys, err := e.fetch()
	if err != nil {
		return key
	}
	e.mu.Lock()
	e.keys = keys
	e.mu.Unlock()
	return keys[head]
}

// spki is what stands before the coordinates of a P-256 key in its DER form (RFC 5480).
const spki = "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04"

// fetch reads the public keys that Anteroom publishes.
func (e *Edge) fetch() (map[string]*ecdsa.PublicKey, error) {
	q, err := http.NewRequest(http.MethodGet, e.want.Anteroom+"/.well-known/anteroom/jwks.json", nil)
	if err != nil {
		return nil, err
	}
	q.Host = e.want.Host
	res, err := e.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 256<<10))
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, errors.New("no key set: " + res.Status)
	}
	var set struct {
		Keys []struct{ Kty, Crv, Kid, Alg, X, Y string }
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	keys := map[string]*ecdsa.PublicKey{}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		y, err2 := base64.RawURLEncoding.DecodeString(k.Y)
		if k.Kty != "EC" || k.Crv != "P-256" || k.Alg != "ES256" || err != nil || err2 != nil || len(x) != 32 || len(y) != 32 {
			continue
		}
		parsed, err := x509.ParsePKIXPublicKey(append(append([]byte(spki), x...), y...))
		key, ok := parsed.(*ecdsa.PublicKey)
		if err != nil || !ok {
			continue
		}
		head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT","kid":"` + k.Kid + `"}`))
		keys[head] = key
	}
	return keys, nil
}
