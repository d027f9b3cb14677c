// Package dashboard is what operators see in a browser: a page that asks the APIs, and what
// stands between a browser and them.
//
// A person logs in with an API token, or signs in at an OpenID provider, for which a secret is lent for as long as a
// session may last. The browser gets a cookie that names a session; the secret stays here and goes with each call to the
// APIs, so that permission, validation and audit are those of the token or the person. The APIs themselves never read cookies.
//
// The page is built by scripts/dashboard from app/ into dist/, which is in the binary.
//
// Where to read on: session.go for who is logged in, signin.go for providers, guard.go for what a browser may be made
// to do, calls.go for the way to the APIs, live.go for the stream of figures, assets.go for
// the files.
package dashboard

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// Paths that the dashboard owns besides the pages.
const (
	Prefix       = "/dash"   // sessions, live figures, the way to the APIs
	assetsPrefix = "/assets" // files of the page
)

// Config is what the dashboard stands on. All but SignIn and Now is required.
type Config struct {
	// API serves what is below the prefixes in APIs, with a bearer token.
	API  http.Handler
	APIs []string // like /client/v4
	// Authenticate tells who shows a secret: [manage.Manager.Authenticate].
	Authenticate func(secret string, from netip.Addr, requestID string) (manage.Caller, error)
	// Live returns the rooms that a caller may read with their figures of this moment. Each
	// has a member "id" with its own text.
	Live    func(by manage.Caller) ([]Room, error)
	SignIn  *SignIn          // a way to log in without a token; nil means none
	Version string           // of the program, to be shown
	Now     func() time.Time // the wall clock; nil means time.Now
	Log     *slog.Logger
}

// Room is a room with its figures, as the page gets them.
type Room struct {
	ID    anteroom.RoomID
	Value any // becomes JSON
}

// Dashboard is the handler of the pages and of what is below Prefix and assetsPrefix.
type Dashboard struct {
	Config
	sessions *sessions
	attempts attempts
	files    *files
	stop     func()
	stopped  <-chan struct{}
}

// New returns a dashboard.
func New(c Config) *Dashboard {
	if c.Now == nil {
		c.Now = time.Now
	}
	stopped := make(chan struct{})
	return &Dashboard{Config: c, sessions: &sessions{now: c.Now, all: map[[32]byte]session{}}, files: loadFiles(), stopped: stopped, stop: sync.OnceFunc(func() { close(stopped) })}
}

// Stop ends the streams of figures, which would hold up the end of the server.
func (d *Dashboard) Stop() { d.stop() }

// ServeHTTP compares paths as they were sent: no other spelling of one is understood.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, Prefix+"/"):
		if err := guard(r); err != nil && !comesBack(r) {
			api.SendError(w, err)
			return
		}
		d.dash(w, r, strings.TrimPrefix(path, Prefix))
	case strings.HasPrefix(path, assetsPrefix+"/"):
		d.files.serve(w, r, strings.TrimPrefix(path, assetsPrefix+"/"))
	default:
		d.files.page(w, r)
	}
}

func (d *Dashboard) dash(w http.ResponseWriter, r *http.Request, path string) {
	if called, ok := strings.CutPrefix(path, "/api"); ok && strings.HasPrefix(called, "/") {
		d.call(w, r, called)
		return
	}
	do := map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /login": d.login, "POST /logout": d.logout, "GET /session": d.session, "GET /live": d.live,
		"GET /ways": d.ways, "GET " + signInPath: d.signIn, "GET " + returnPath: d.signedIn,
	}[r.Method+" "+path]
	if do == nil || r.URL.RawPath != "" {
		api.SendError(w, api.Refuse(http.StatusNotFound, api.CodeNoRoute, "No route for that URI"))
		return
	}
	if err := do(w, r); err != nil {
		api.SendError(w, err)
	}
}

// maxLogin bounds the body of a login, in bytes: a token has at most 80.
const maxLogin = 1 << 10

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token string `json:"token"`
		Link  bool   `json:"link"` // the token came in the page's address
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxLogin+1))
	if err != nil || len(text) > maxLogin || json.Unmarshal(text, &body) != nil {
		return api.Invalid("token", "cannot be read", `a JSON object like {"token": "…"}`)
	}
	by, err := d.authenticate(strings.TrimSpace(body.Token), r)
	if err != nil {
		d.Log.Warn("a login to the dashboard failed", "address", api.AddressOf(r), "error", err)
		return err
	}
	// A link of somebody else's must not put a person to work under another token.
	if body.Link {
		if s, now, err := d.who(r); err == nil && now.Name == by.Name && now.Token == by.Token {
			d.show(w, now, s)
			return nil
		} else if err == nil {
			return api.Refuse(http.StatusConflict, api.CodeDenied, "You are logged in as "+now.Name+". To use the token of the link, log out and open the link again")
		}
	}
	// Whoever logs in anew is done with the session before.
	d.sessions.end(sessionID(r))
	id, s := d.sessions.begin(strings.TrimSpace(body.Token))
	http.SetCookie(w, cookie(r, id, int(sessionLife/time.Second)))
	d.Log.Info("login to the dashboard", "token", by.Name, "address", by.Address)
	d.show(w, by, s)
	return nil
}

func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) error {
	d.sessions.end(sessionID(r))
	http.SetCookie(w, cookie(r, "", -1))
	api.SendAnswer(w, api.Answer{})
	return nil
}

func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) error {
	s, by, err := d.who(r)
	if err != nil {
		return err
	}
	d.show(w, by, s)
	return nil
}

// show answers who is logged in and what they may do.
func (d *Dashboard) show(w http.ResponseWriter, by manage.Caller, s session) {
	grants := make([]api.Members, len(by.Grants))
	for i, g := range by.Grants {
		grants[i] = api.Members{{Name: "permission", Value: g.Permission}, {Name: "zone", Value: optional(g.Zone)}, {Name: "room", Value: optional(g.Room)}}
	}
	api.SendAnswer(w, api.Answer{Result: api.Members{
		{Name: "name", Value: by.Name}, {Name: "token", Value: optional(by.Token)}, {Name: "grants", Value: grants},
		{Name: "ends", Value: s.began.Add(sessionLife).UTC().Format(time.RFC3339)}, {Name: "version", Value: d.Version},
	}})
}

func optional[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return s
}

// who returns the session of a request and whose it is. The token is looked at each time: with
// the token ends the session.
func (d *Dashboard) who(r *http.Request) (session, manage.Caller, error) {
	id := sessionID(r)
	s, ok := d.sessions.use(id)
	if !ok {
		return session{}, manage.Caller{}, api.Refuse(http.StatusUnauthorized, api.CodeDenied, "You are not logged in, or your session has ended")
	}
	by, err := d.authenticate(s.secret, r)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusUnauthorized {
		d.sessions.end(id)
	}
	return s, by, err
}

// authenticate asks who a secret belongs to. Its errors do not say what was wrong.
func (d *Dashboard) authenticate(secret string, r *http.Request) (manage.Caller, error) {
	var random [16]byte
	rand.Read(random[:])
	by, err := d.Authenticate(secret, api.AddressOf(r), hex.EncodeToString(random[:]))
	switch {
	case errors.Is(err, manage.ErrTooManyFailures):
		p := api.Refuse(http.StatusTooManyRequests, api.CodeThrottled, "Please wait a minute: there were "+manage.ErrTooManyFailures.Error())
		p.Header = [2]string{"Retry-After", "60"}
		return by, p
	case anteroom.KindOf(err) == anteroom.Denied:
		return by, api.Refuse(http.StatusUnauthorized, api.CodeDenied, "Invalid token, or not allowed from this address")
	}
	return by, err
}
