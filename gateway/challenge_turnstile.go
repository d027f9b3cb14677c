package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of asking Turnstile. A visitor whose token could not be verified waits on, and the next request tries again: whoever
// makes Cloudflare unreachable, or sends more tokens than can be verified, gets nobody in.
const (
	verifyURL   = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
	verifyTime  = 3 * time.Second
	verifyBytes = 64 << 10
	verifyMost  = 64 // at once
	tokenBytes  = 2048
)

// verifier asks Turnstile about tokens.
type verifier struct {
	secret, url string
	client      http.Client
	slots       chan struct{}
	log         *slog.Logger
}

func newVerifier(c Challenge, log *slog.Logger) *verifier {
	v := &verifier{secret: c.Secret, url: cmp.Or(c.VerifyURL, verifyURL), slots: make(chan struct{}, verifyMost), log: log}
	v.client = http.Client{Transport: c.Transport, Timeout: verifyTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return v
}

// verify asks about a token for a question. Asked twice about the same, as of requests that come at once, Turnstile answers alike.
func (v *verifier) verify(ctx context.Context, question, token string, client netip.Addr) result {
	if token == "" || len(token) > tokenBytes {
		return failed
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	default:
		return unverified
	}
	sum := sha256.Sum256([]byte(question + token))
	key := hex.EncodeToString(sum[:16])
	form := url.Values{"secret": {v.secret}, "response": {token},
		"idempotency_key": {key[:8] + "-" + key[8:12] + "-" + key[12:16] + "-" + key[16:20] + "-" + key[20:]}}
	if client.IsValid() {
		form.Set("remoteip", client.String())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url, strings.NewReader(form.Encode()))
	if err != nil {
		return v.unsure(err.Error())
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := v.client.Do(r)
	if err != nil {
		return v.unsure(err.Error())
	}
	defer resp.Body.Close()
	var answer struct {
		Success bool     `json:"success"`
		Errors  []string `json:"error-codes"`
		Data    string   `json:"cdata"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, verifyBytes)).Decode(&answer); err != nil {
		return v.unsure("status " + resp.Status + ", and no JSON")
	}
	switch {
	case answer.Success && (answer.Data == "" || answer.Data == question):
		return solved
	case answer.Success:
		return failed
	case slices.ContainsFunc(answer.Errors, func(code string) bool {
		return code != "missing-input-response" && code != "invalid-input-response" && code != "timeout-or-duplicate"
	}):
		return v.unsure(strings.Join(answer.Errors, ", "))
	}
	return failed
}

func (v *verifier) unsure(why string) result {
	if v.log != nil {
		v.log.Warn("a token could not be verified: its visitor waits on", "url", v.url, "error", why)
	}
	return unverified
}
