package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/anteroom/anteroom/page"
)

// Bounds of asking others about tokens. A visitor whose token could not be verified waits on, and the next request tries again:
// whoever makes the other side unreachable, or sends more tokens than can be verified, gets nobody in (but see Challenge.FailOpen).
const (
	verifyTime  = 3 * time.Second
	verifyBytes = 64 << 10
	verifyMost  = 64 // at once
	tokenBytes  = 2048
)

// verifier asks Turnstile, or the operator's hook, about tokens.
type verifier struct {
	Challenge
	client http.Client
	slots  chan struct{}
	log    *slog.Logger
}

// token is what a visitor's browser answers, and of whom.
type token struct {
	question, text string
	client         netip.Addr
	room           *room
}

func newVerifier(c Challenge, log *slog.Logger) *verifier {
	v := &verifier{Challenge: c, slots: make(chan struct{}, verifyMost), log: log}
	v.client = http.Client{Transport: c.Transport, Timeout: verifyTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return v
}

// verify asks about a token.
func (v *verifier) verify(ctx context.Context, t token) result {
	if t.text == "" || len(t.text) > tokenBytes {
		return failed
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	default:
		return unverified
	}
	came, why := v.ask(ctx, t)
	if came != unverified {
		return came
	}
	open := v.FailOpen && ctx.Err() == nil // not for a visitor who has left, which is no fault of the other side
	if v.log != nil {
		v.log.Warn("a token could not be verified", "url", v.VerifyURL, "error", why, "solved", open)
	}
	if open {
		return waived
	}
	return unverified
}

// ask does. It says why when the result is unverified.
func (v *verifier) ask(ctx context.Context, t token) (came result, why string) {
	build, read := turnstileRequest, readTurnstile
	if v.Kind == page.Hook {
		build, read = hookRequest, readHook
	}
	r, err := build(ctx, v.Challenge, t)
	if err != nil {
		return unverified, err.Error()
	}
	resp, err := v.client.Do(r)
	if err != nil {
		return unverified, err.Error()
	}
	defer resp.Body.Close()
	if v.Kind == page.Hook && resp.StatusCode != http.StatusOK {
		return unverified, "status " + resp.Status
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, verifyBytes+1))
	if err == nil && len(body) > verifyBytes {
		return unverified, "the answer is too long"
	}
	if err != nil {
		return unverified, err.Error()
	}
	return read(body, t)
}
