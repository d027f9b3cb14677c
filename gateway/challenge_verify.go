package gateway

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/page"
)

// Bounds of asking others about tokens. A visitor whose token could not be verified waits on, and the next request tries again:
// whoever makes the other side unreachable, or sends more tokens than can be verified, gets nobody in (but see Challenge.FailOpen).
const (
	verifyTime  = 3 * time.Second
	verifyBytes = 64 << 10
	verifyMost  = 64 // at once
	verifyFew   = 8  // of these, tokens of one address (an IPv6 /64): whoever sends made-up ones takes the slots of no other address
	tokenBytes  = 2048
)

// verifier asks Turnstile, or the operator's hook, about tokens.
type verifier struct {
	Challenge
	client http.Client
	slots  chan struct{}
	under  *limiters[netip.Addr]
}

// token is what a visitor's browser answers, and of whom.
type token struct {
	question, text string
	client         netip.Addr
	many           bool // the address is that of many visitors
	room           *room
}

func newVerifier(c Challenge) *verifier {
	v := &verifier{Challenge: c, slots: make(chan struct{}, verifyMost), under: newLimiters[netip.Addr]()}
	v.client = http.Client{Transport: c.Transport, Timeout: verifyTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return v
}

// verify asks about a token. It says why when the other side could not be asked, or has not answered the question.
func (v *verifier) verify(ctx context.Context, t token) (came result, why string) {
	if t.text == "" || len(t.text) > tokenBytes {
		return failed, ""
	}
	if t.client.IsValid() && !t.many {
		key := addressKey(t.client)
		if !v.under.enter(key, verifyFew, patience{by: time.Now(), count: new(atomic.Int64)}) { // at once
			return unverified, ""
		}
		defer v.under.leave(key)
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	default:
		return unverified, ""
	}
	came, why = v.ask(ctx, t)
	switch {
	case came != unverified:
		return came, ""
	case ctx.Err() != nil: // the visitor has left, which is no fault of the other side
		return unverified, ""
	case v.FailOpen:
		return waived, why
	}
	return unverified, why
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
