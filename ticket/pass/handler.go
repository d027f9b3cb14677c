package pass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	keysLast  = 5 * time.Minute  // how long keys are used before they are fetched again
	keysPause = 10 * time.Second // between two fetches for keys that are not known
	keysTime  = 5 * time.Second  // for one
)

// Handler is an edge in Go, by the rules of docs/edges.md: a request with a good pass goes to Origin, every other one to Anteroom, which
// decides about it. Set its fields before the first request. Anteroom's origin must be a listener without this handler; otherwise
// requests would go in circles.
type Handler struct {
	// Origin is the application. It sees neither passes and tickets nor headers that visitors must not send.
	Origin http.Handler
	// Anteroom is where Anteroom listens for visitors. It has to trust the address of this process (trusted_proxies).
	Anteroom *url.URL
	// Want is what a pass must be for.
	Want Want
	// Host is one that Anteroom serves, for its public keys; empty means the room's zone.
	Host string
	// Suffix is the room's cookie_suffix.
	Suffix string
	// Ends are the paths at which the application ends sessions, with everything below them.
	Ends []string
	// Revoked refuses passes of revoked sessions: while requests come, the handler fetches Anteroom's list of them each second.
	// Otherwise a pass is valid until it ends, as it is while the list cannot be fetched.
	Revoked bool
	// Reports is the address of Anteroom's API (https://…), to which the handler reports whom it lets in: for a room with pass_reported. Nil:
	// it reports nobody.
	Reports *url.URL
	// Token is one of that API that may read the room.
	Token string
	// CookieName is cookie_name of Anteroom's configuration; empty means __cfwaitingroom.
	CookieName string

	// Log is told when the list cannot be fetched, or nobody takes the reports; nil means slog.Default.
	Log *slog.Logger
	// Now is the time; nil means time.Now.
	Now func() time.Time

	mu       sync.Mutex
	revoked  revoked
	reports  reports
	after    func(time.Duration, func()) // nil: time.AfterFunc; tests say when themselves
	verifier *Verifier
	asked    time.Time // when the keys were fetched last
}

// ServeHTTP sends the request on. Without Anteroom, those that it has to see get 502.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name := range r.Header {
		if strings.HasPrefix(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name)), "x-anteroom-") {
			delete(r.Header, name)
		}
	}
	now := h.now()
	sid, ok := h.admits(r, now)
	if !ok {
		h.proxy().ServeHTTP(w, r)
		return
	}
	h.saw(r, sid, now)
	h.dropCookies(r.Header)
	h.Origin.ServeHTTP(&straight{ResponseWriter: w}, r)
}

// admits reports whether a request goes to the origin, and of which session it is.
func (h *Handler) admits(r *http.Request, now time.Time) (sid string, ok bool) {
	if r.Header.Get("Upgrade") != "" || strings.HasPrefix(r.URL.Path, "/.well-known/anteroom/") || r.URL.Query().Has("__anteroom") {
		return "", false
	}
	for _, end := range h.Ends {
		if r.URL.Path == end || strings.HasPrefix(r.URL.Path, end+"/") {
			return "", false
		}
	}
	name := Cookie
	if h.Suffix != "" {
		name += "_" + h.Suffix
	}
	c, err := h.keys(r.Context(), now, false).Cookies(r.Header["Cookie"], name, now)
	if errors.Is(err, ErrKey) {
		c, err = h.keys(r.Context(), now, true).Cookies(r.Header["Cookie"], name, now)
	}
	// Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
	return c.Session, err == nil && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || now.Unix() < (c.IssuedAt+c.Expiry)/2) &&
		!(h.Revoked && h.isRevoked(c.Session, now))
}

// keys returns a verifier with the newest keys that are known. Missing says that a pass names another one. While one request
// fetches them, others go on with those that are there.
func (h *Handler) keys(ctx context.Context, now time.Time, missing bool) *Verifier {
	h.mu.Lock()
	if h.verifier == nil {
		h.verifier = &Verifier{Want: h.Want}
		missing = true
	}
	v, age := h.verifier, now.Sub(h.asked)
	fetch := age >= keysLast || missing && age >= keysPause
	if fetch {
		h.asked = now
	}
	h.mu.Unlock()
	if !fetch {
		return v
	}
	fresh, err := h.fetch(ctx)
	if err != nil {
		return v
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verifier = fresh
	return fresh
}

// fetch reads the public keys that Anteroom publishes.
func (h *Handler) fetch(ctx context.Context) (*Verifier, error) {
	text, err := h.get(ctx, "jwks.json", nil, keysTime, maxJWKS)
	if err != nil {
		return nil, err
	}
	return NewVerifier(text, h.Want)
}

// get reads what Anteroom publishes under a name.
func (h *Handler) get(ctx context.Context, name string, query url.Values, within time.Duration, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	from := h.Anteroom.JoinPath("/.well-known/anteroom/" + name)
	from.RawQuery = query.Encode()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	if q.Host = h.Host; q.Host == "" {
		q.Host = h.Want.Audience
	}
	res, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", name, res.Status)
	}
	return text, err
}

// proxy sends requests to Anteroom as they came.
func (h *Handler) proxy() http.Handler {
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(h.Anteroom)
		r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		r.SetXForwarded()
	}}
}

// dropCookies removes passes and tickets.
func (h *Handler) dropCookies(header http.Header) {
	ticket := h.ticketCookie()
	var others []string
	for _, line := range header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			if pair = strings.Trim(pair, " \t"); !strings.HasPrefix(pair, Cookie) && !strings.HasPrefix(pair, ticket) {
				others = append(others, pair)
			}
		}
	}
	if header.Del("Cookie"); len(others) > 0 {
		header.Set("Cookie", strings.Join(others, "; "))
	}
}

// straight keeps the application's word to Anteroom from the visitor.
type straight struct {
	http.ResponseWriter
	began bool
}

func (s *straight) begin() {
	if !s.began {
		s.began = true
		s.Header().Del("Cf-Waiting-Room-Command")
	}
}

func (s *straight) WriteHeader(status int) {
	if status >= 200 {
		s.begin()
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *straight) Write(b []byte) (int, error) {
	s.begin()
	return s.ResponseWriter.Write(b)
}

// Flush is for applications that know no [http.ResponseController].
func (s *straight) Flush() {
	s.begin()
	http.NewResponseController(s.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (s *straight) Unwrap() http.ResponseWriter { return s.ResponseWriter }
