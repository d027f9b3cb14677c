package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/dashboard/signin"
	"github.com/anteroom/anteroom/manage"
)

// SignIn is a way to log in without a token.
type SignIn struct {
	// Label is what the button says where to sign in.
	Label string
	// Provider signs people in.
	Provider interface {
		Begin(ctx context.Context) (to string, a signin.Attempt, err error)
		End(ctx context.Context, a signin.Attempt, code string) (signin.Person, error)
	}
	// Grants are what somebody with these values of the claim may do; none if nothing.
	Grants func(has []string) []manage.Grant
	// Lend gives a person a secret to use the APIs with, for so long; see [manage.Manager.Lend].
	Lend func(name string, grants []manage.Grant, life time.Duration) (secret string, err error)
}

// Paths below Prefix.
const (
	signInPath = "/sign-in"
	returnPath = "/sign-in/return"
)

// Return is the path at which a provider has to send browsers back.
const Return = Prefix + returnPath

// Bounds of sign-ins that have begun.
const (
	attemptLife = 10 * time.Minute
	maxAttempts = 1000
	// attemptCookie ties an attempt to the browser that has begun it. A request from the provider's page brings it along,
	// which the session's cookie, SameSite=Strict, would not be.
	attemptCookie = "anteroom_sign_in"
)

// attempts are the sign-ins that have begun, by the digest of what the browser has.
type attempts struct {
	mu  sync.Mutex
	all map[[32]byte]attempt
}

type attempt struct {
	signin.Attempt
	began time.Time
}

func (as *attempts) begin(a signin.Attempt, now time.Time) (id string) {
	var random [32]byte
	rand.Read(random[:])
	id = base64.RawURLEncoding.EncodeToString(random[:])
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.all == nil {
		as.all = map[[32]byte]attempt{}
	}
	for key, one := range as.all {
		if now.Sub(one.began) >= attemptLife {
			delete(as.all, key)
		}
	}
	for key := range as.all { // any: whoever begins thousands is not waited for
		if len(as.all) < maxAttempts {
			break
		}
		delete(as.all, key)
	}
	as.all[sha256.Sum256([]byte(id))] = attempt{a, now}
	return id
}

// end returns an attempt, once.
func (as *attempts) end(id string, now time.Time) (signin.Attempt, bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	key := sha256.Sum256([]byte(id))
	one, ok := as.all[key]
	delete(as.all, key)
	return one.Attempt, ok && now.Sub(one.began) < attemptLife
}

// ways answers by which ways one can log in, besides with a token.
func (d *Dashboard) ways(w http.ResponseWriter, _ *http.Request) error {
	label := ""
	if d.SignIn != nil {
		label = d.SignIn.Label
	}
	api.SendAnswer(w, api.Answer{Result: api.Members{{Name: "sign_in", Value: optional(label)}}})
	return nil
}

// signIn sends the browser to the provider.
func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) error {
	if d.SignIn == nil {
		return d.signInFailed(w, r, "there is no provider: set sign_in", nil)
	}
	to, a, err := d.SignIn.Provider.Begin(r.Context())
	if err != nil {
		return d.signInFailed(w, r, "the provider does not answer", err)
	}
	http.SetCookie(w, d.attemptCookie(r, d.attempts.begin(a, d.Now()), int(attemptLife/time.Second)))
	leave(w, to)
	return nil
}

// signedIn takes the browser back from the provider and begins a session.
func (d *Dashboard) signedIn(w http.ResponseWriter, r *http.Request) error {
	if d.SignIn == nil {
		return d.signInFailed(w, r, "there is no provider: set sign_in", nil)
	}
	http.SetCookie(w, d.attemptCookie(r, "", -1))
	query, id := r.URL.Query(), ""
	if c, err := r.Cookie(attemptCookie); err == nil {
		id = c.Value
	}
	a, ok := d.attempts.end(id, d.Now())
	switch said := query.Get("error"); {
	case !ok || query.Get("state") != a.State:
		return d.signInFailed(w, r, "this browser has not begun it, or more than 10 minutes ago", nil)
	case said != "":
		return d.signInFailed(w, r, "the provider says: "+cut(said+" "+query.Get("error_description"), 200), nil)
	}
	who, err := d.SignIn.Provider.End(r.Context(), a, query.Get("code"))
	if err != nil {
		text := "the provider's answer is not valid"
		if anteroom.KindOf(err) == anteroom.Unavailable {
			text = "the provider does not answer"
		}
		return d.signInFailed(w, r, text, err)
	}
	grants := d.SignIn.Grants(who.Has)
	if len(grants) == 0 {
		return d.signInFailed(w, r, who.Name+" has none of the roles in sign_in.roles", nil)
	}
	secret, err := d.SignIn.Lend(who.Name, grants, sessionLife)
	if err != nil {
		return d.signInFailed(w, r, "the session cannot begin", err)
	}
	d.sessions.end(sessionID(r))
	session, _ := d.sessions.begin(secret)
	http.SetCookie(w, cookie(r, session, int(sessionLife/time.Second)))
	d.Log.Info("sign-in to the dashboard", "person", who.Name, "address", api.AddressOf(r))
	leave(w, "/")
	return nil
}

// signInFailed goes back to the page, which says why. The log says more.
func (d *Dashboard) signInFailed(w http.ResponseWriter, r *http.Request, text string, err error) error {
	d.Log.Warn("a sign-in to the dashboard failed", "address", api.AddressOf(r), "reason", text, "error", err)
	leave(w, "/?sign_in_failed="+url.QueryEscape(text))
	return nil
}

func leave(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (d *Dashboard) attemptCookie(r *http.Request, id string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: attemptCookie, Value: id, Path: Prefix + signInPath, MaxAge: maxAge, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode}
}

// comesBack reports whether a request is that of a browser which a provider sends back: the one that another website may
// cause. Its state and the cookie of the attempt say whether the browser has begun it.
func comesBack(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == Return && slices.Contains([]string{"", "navigate"}, r.Header.Get("Sec-Fetch-Mode"))
}

// cut shortens a text to whole letters within so many bytes.
func cut(text string, most int) string {
	for i := range text {
		if i > most {
			return text[:i]
		}
	}
	return text
}
