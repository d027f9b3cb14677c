package aws

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/markup"
)

const (
	// codeTime is how long a code of the OpenID adapter is valid.
	codeTime = time.Minute
	// lookEvery is how often the adapter's page comes back.
	lookEvery = 4 * time.Second
	// maxAuthorize bounds the query of /authorize, in bytes.
	maxAuthorize = 4 << 10
)

// code is what a code of the adapter holds. It is sealed, and so needs no table.
type code struct {
	RequestID string `json:"i"`
	Redirect  string `json:"r"`
	Nonce     string `json:"n,omitempty"`
	Challenge string `json:"c,omitempty"` // of PKCE, by SHA-256
	Until     int64  `json:"u"`           // seconds since 1970
}

func (b *Bridge) codes() cipher.AEAD { return sealer(bridge.Derive(b.cfg.Secret, "code", 0)) }

// openID is what the adapter serves. An answer with the status 0 was written already.
var openID = map[string]struct {
	method string
	do     func(*Bridge, http.ResponseWriter, *http.Request, Room) answer
}{
	"/.well-known/openid-configuration": {http.MethodGet, (*Bridge).discovery},
	"/.well-known/jwks.json":            {http.MethodGet, (*Bridge).keySet},
	"/authorize":                        {http.MethodGet, (*Bridge).authorize},
	"/token":                            {http.MethodPost, (*Bridge).exchange},
	"/userInfo":                         {http.MethodGet, (*Bridge).userInfo},
}

// serveOpenID serves the adapter. It reports false for a path that is none of its own.
func (b *Bridge) serveOpenID(w http.ResponseWriter, r *http.Request, path string) bool {
	op, room := openID[path], b.room()
	if b.cfg.ClientSecret == "" || op.do == nil {
		return false
	}
	a := noRoute
	switch {
	case r.Method == http.MethodOptions:
		sendPreflight(w, op.method)
		return true
	case r.Method == op.method && room == nil:
		a = broken
	case r.Method == op.method:
		a = op.do(b, w, r, room)
	}
	if len(a.body) > 0 && a.body[0] == '{' {
		a.send(w, jsonType)
	} else if a.status != 0 {
		a.send(w, textType)
	}
	return true
}

func (b *Bridge) discovery(http.ResponseWriter, *http.Request, Room) answer {
	at := b.cfg.URL.String()
	return good(member{"authorization_endpoint", at + "/authorize"}, member{"code_challenge_methods_supported", []string{"S256"}},
		member{"id_token_signing_alg_values_supported", []string{"RS256"}}, member{"issuer", b.cfg.Issuer},
		member{"jwks_uri", at + "/.well-known/jwks.json"}, member{"response_types_supported", []string{"code"}},
		member{"scopes_supported", []string{"openid"}}, member{"subject_types_supported", []string{"public"}},
		member{"token_endpoint", at + "/token"}, member{"token_endpoint_auth_methods_supported", []string{"client_secret_basic", "client_secret_post"}},
		member{"userinfo_endpoint", at + "/userInfo"})
}

func (b *Bridge) keySet(_ http.ResponseWriter, r *http.Request, _ Room) answer {
	by, err := b.signing(r.Context())
	if err != nil {
		return broken
	}
	return answer{status: http.StatusOK, body: slices.Concat([]byte(`{"keys": [`), object(by.jwk()...), []byte("]}")), cache: "public, max-age=300"}
}

// authorizePolicy lets the page do nothing but reload itself.
const authorizePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// authorize is where a relying party sends a visitor. The page waits: it comes back with the request id until the visitor is
// admitted, and goes on to the relying party then.
func (b *Bridge) authorize(w http.ResponseWriter, r *http.Request, room Room) answer {
	q, err := url.ParseQuery(r.URL.RawQuery)
	challenge := q.Get("code_challenge")
	if err != nil || len(r.URL.RawQuery) > maxAuthorize || q.Get("client_id") != b.cfg.Event || !slices.Contains(b.cfg.RedirectURIs, q.Get("redirect_uri")) ||
		q.Get("response_type") != "code" || !slices.Contains(strings.Fields(q.Get("scope")), "openid") ||
		challenge != "" && (q.Get("code_challenge_method") != "S256" || len(challenge) != base64.RawURLEncoding.EncodedLen(sha256.Size)) ||
		strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch") {
		return badRequest
	}
	id := q.Get("request_id")
	if id != "" {
		s, no, ok := b.claim(r.Context(), room, id)
		switch {
		case ok:
			return b.sendCode(w, q, s, room.Now())
		case no.status == http.StatusAccepted:
			return b.sendPage(w, id)
		}
	}
	// A new place, also for one that is lost.
	if id, err = b.join(r, room); errors.Is(err, errTooMany) {
		return answer{status: http.StatusTooManyRequests, body: []byte("Too Many Requests")}
	} else if err != nil {
		return answer{status: http.StatusServiceUnavailable, body: []byte("Service Unavailable")}
	}
	q.Set("request_id", id)
	return redirect(w, b.cfg.URL.String()+"/authorize?"+q.Encode())
}

// redirect sends the visitor on, with nothing that could tell the next page of the request id.
func redirect(w http.ResponseWriter, to string) answer {
	w.Header().Set("Location", to)
	w.Header().Set("Referrer-Policy", "no-referrer")
	return answer{status: http.StatusFound}
}

func (b *Bridge) sendCode(w http.ResponseWriter, q url.Values, s session, now anteroom.Time) answer {
	to, err := url.Parse(q.Get("redirect_uri"))
	text, err2 := json.Marshal(code{RequestID: s.requestID, Redirect: q.Get("redirect_uri"), Nonce: q.Get("nonce"), Challenge: q.Get("code_challenge"),
		Until: now.Add(codeTime).Std().Unix()})
	if errors.Join(err, err2) != nil {
		return badRequest
	}
	back := to.Query()
	back.Set("code", encode(b.codes().Seal(nil, nil, text, nil)))
	if q.Has("state") {
		back.Set("state", q.Get("state"))
	}
	to.RawQuery = back.Encode()
	return redirect(w, to.String())
}

func (b *Bridge) sendPage(w http.ResponseWriter, requestID string) answer {
	p, r, _ := b.place(requestID)
	var page markup.Page
	number := int64(p.number)
	page.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>You are in line</title>
</head>
<body>
<main>
<h1>You are in line</h1>
<p>Your number is <strong>{}</strong>. Now serving: <strong>{}</strong>.</p>
<p>This page updates by itself. Keep it open: it continues when it's your turn.</p>
</main>
</body>
</html>
`, strconv.FormatInt(number, 10), strconv.FormatInt(min(r.Serving, number), 10))
	h := w.Header()
	h.Set("Content-Security-Policy", authorizePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Refresh", strconv.Itoa(int(lookEvery/time.Second)))
	answer{status: http.StatusOK, body: page.Bytes()}.send(w, "text/html; charset=utf-8")
	return answer{}
}

// exchange gives the tokens of a session for a code, once.
func (b *Bridge) exchange(w http.ResponseWriter, r *http.Request, room Room) answer {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if r.ParseForm() != nil {
		return badRequest
	}
	f := r.PostForm
	client, secret := f.Get("client_id"), f.Get("client_secret")
	if id, password, basic := r.BasicAuth(); basic {
		client, _ = url.QueryUnescape(id) // RFC 6749 §2.3.1
		secret, _ = url.QueryUnescape(password)
	}
	c, ok := b.openCode(f.Get("code"))
	if !ok || client != b.cfg.Event || subtle.ConstantTimeCompare([]byte(secret), []byte(b.cfg.ClientSecret)) != 1 ||
		f.Get("grant_type") != "authorization_code" || f.Has("redirect_uri") && f.Get("redirect_uri") != c.Redirect || !c.proven(f.Get("code_verifier")) ||
		room.Now().Std().Unix() >= c.Until || !b.useCode(r.Context(), f.Get("code")) {
		return badRequest
	}
	s, _, ok := b.claim(r.Context(), room, c.RequestID)
	if !ok {
		return badRequest
	}
	t, err := b.tokens(r.Context(), s, b.cfg.Issuer, s.until, c.Nonce)
	if err != nil {
		return broken
	}
	return t.answer(s.until, room.Now())
}

func (b *Bridge) openCode(text string) (c code, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return c, false
	}
	plain, err := b.codes().Open(nil, nil, raw, nil)
	return c, err == nil && json.Unmarshal(plain, &c) == nil
}

// proven reports whether a client knows what the challenge of its code was made of (RFC 7636).
func (c code) proven(verifier string) bool {
	if c.Challenge == "" {
		return true
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(encode(sum[:])), []byte(c.Challenge)) == 1
}

// useCode reports whether a code is used for the first time, at any node. The store forgets it after the code has expired.
func (b *Bridge) useCode(ctx context.Context, text string) bool {
	sum := sha256.Sum256([]byte(text))
	_, err := b.cfg.Space.Lease(ctx, b.key("code."+hex.EncodeToString(sum[:])), nil, 0, 2*codeTime)
	if err != nil && !errors.Is(err, cluster.ErrRevision) {
		b.cfg.Log.Error("a code cannot be recorded as used", "event", b.cfg.Event, "error", err)
	}
	return err == nil
}

// userInfo returns the claims of a bearer's access token.
func (b *Bridge) userInfo(_ http.ResponseWriter, r *http.Request, _ Room) answer {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c, ok := b.accessClaims(r.Context(), token)
	if !bearer || !ok {
		return badRequest
	}
	return good(member{"aud", c.Audience}, member{"sub", c.Subject}, member{"queue_position", c.Position}, member{"token_use", c.Use},
		member{"iat", c.IssuedAt}, member{"nbf", c.NotFrom}, member{"exp", c.Expires}, member{"iss", c.Issuer})
}
