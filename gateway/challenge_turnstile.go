package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const turnstileURL = "https://challenges.cloudflare.com/turnstile/v0/siteverify"

// turnstileRequest asks Turnstile. Asked twice about the same, as of requests that come at once, it answers alike.
func turnstileRequest(ctx context.Context, c Challenge, t token) (*http.Request, error) {
	sum := sha256.Sum256([]byte(t.question + t.text))
	key := hex.EncodeToString(sum[:16])
	form := url.Values{"secret": {c.Secret}, "response": {t.text},
		"idempotency_key": {key[:8] + "-" + key[8:12] + "-" + key[12:16] + "-" + key[16:20] + "-" + key[20:]}}
	if t.client.IsValid() {
		form.Set("remoteip", t.client.String())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(c.VerifyURL, turnstileURL), strings.NewReader(form.Encode()))
	if err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r, err
}

func readTurnstile(body []byte, t token) (came result, why string) {
	var answer struct {
		Success bool     `json:"success"`
		Errors  []string `json:"error-codes"`
		Data    string   `json:"cdata"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return unverified, "the answer is no JSON"
	}
	switch {
	case answer.Success && (answer.Data == "" || answer.Data == t.question):
		return solved, ""
	case answer.Success:
		return failed, ""
	case slices.ContainsFunc(answer.Errors, func(code string) bool {
		return code != "missing-input-response" && code != "invalid-input-response" && code != "timeout-or-duplicate"
	}):
		return unverified, strings.Join(answer.Errors, ", ")
	}
	return failed, ""
}
