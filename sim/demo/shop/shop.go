// Package shop is the demo origin: a small shop that somebody would queue for.
//
// It has a list, products, a cart, a checkout, a live stock ticker (server-sent events), a
// WebSocket that echoes, and it tells visitors who came through a waiting room that they
// are inside and how many others are. What it knows of the waiting room is the signed
// proof that the gateway sets on admitted requests; it reads the proof's subject without
// checking the signature, which is enough to count people and nothing else.
//
//	/                      the list; JSON for "Accept: application/json"
//	/product/NAME          one product; /picture/NAME.svg its picture
//	/cart, /checkout       GET and POST; the cart lives in a cookie
//	/leave                 POST; asks the gateway to end the session (revoke)
//	/ticker                server-sent events: stock and people inside
//	/echo                  WebSocket; every message comes back
//	/headers               the request's headers as the origin got them, as JSON
//	/healthz               200 "ok"; neither counted nor logged
//
// Any address takes ?delay=250ms (at most maxDelay) and answers that much later.
//
// With a [Log] it writes down every request. Package judge reads that log.
package shop

import (
	"cmp"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

const (
	// maxDelay is the longest ?delay=.
	maxDelay = 30 * time.Second
	// maxInside is the number of sessions that the shop counts; more are not counted.
	maxInside = 1_000_000
	// Mark is a header of every answer of the shop: a client sees by it that the answer
	// came from the origin and not from the waiting room.
	Mark = "X-Demo-Shop"
	// VisitorHeader names the simulated visitor who sends the request.
	VisitorHeader = "X-Visitor"
	// SentHeader says when he sent it, in microseconds of the log's clock.
	SentHeader = "X-Visitor-Sent"

	maxBody  = 64 << 10
	maxProof = 8 << 10
)

// Config of a shop. The zero value is a shop that keeps no log.
type Config struct {
	// ProofHeader carries the gateway's proof of admission; empty means
	// "X-Anteroom-Assertion".
	ProofHeader string
	// SessionDuration is how long after the last request somebody counts as inside;
	// zero means five minutes.
	SessionDuration time.Duration
	// Tick is the pace of the stock ticker; zero means one second.
	Tick time.Duration
	// Log gets every request; nil means none.
	Log *Log
}

// Shop is the demo origin. Safe for concurrent use.
type Shop struct {
	cfg    Config
	mux    *http.ServeMux
	people *people
	stock  *stock
}

//go:embed assets
var assets embed.FS

// New returns a shop. It fails only if its own embedded files are broken.
func New(cfg Config) (*Shop, error) {
	cfg.ProofHeader = cmp.Or(cfg.ProofHeader, "X-Anteroom-Assertion")
	cfg.SessionDuration = cmp.Or(cfg.SessionDuration, 5*time.Minute)
	cfg.Tick = cmp.Or(cfg.Tick, time.Second)
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("shop: %w", err)
	}
	s := &Shop{cfg: cfg, mux: http.NewServeMux(), people: &people{stay: cfg.SessionDuration, last: map[string]time.Time{}}, stock: newStock()}
	s.routes(static)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Mark, "1")
	if r.URL.Path != "/healthz" {
		session := Subject(r.Header.Get(s.cfg.ProofHeader))
		s.people.saw(session)
		if s.cfg.Log != nil {
			s.cfg.Log.add(r, session)
		}
	}
	if d := r.URL.Query().Get("delay"); d != "" {
		if err := delay(r, d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	s.mux.ServeHTTP(w, r)
}

// Inside returns the number of sessions whose last request is younger than the session
// duration.
func (s *Shop) Inside() int { return s.people.inside() }

func delay(r *http.Request, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDelay {
		return fmt.Errorf("delay: %.40q is not a duration between 0s and %v: write something like 250ms", text, maxDelay)
	}
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
	return nil
}

// Subject returns the "sub" of a JSON Web Token without checking the token in any way, or
// "" when there is none. It identifies; it proves nothing.
func Subject(token string) string {
	if len(token) > maxProof {
		return ""
	}
	_, rest, ok := strings.Cut(token, ".")
	if !ok {
		return ""
	}
	payload, _, ok := strings.Cut(rest, ".")
	if !ok {
		return ""
	}
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Sub string `json:"sub"`
	}
	if json.Unmarshal(b, &claims) != nil {
		return ""
	}
	return claims.Sub
}
