// Package queueit serves the connectors of Queue-it, which run inside the operator's application or at its edge, over rooms of
// Anteroom.
//
// A connector redirects a visitor without a session to the queue's host, with the address of the page. There the visitor is in
// the room like any other: under a path of its own the room has its gate and its page, and in the place of an origin stands
// this package, which redirects who is admitted back to the page, with a signed token (return.go). The connector verifies the
// token once and lets the visitor in for some minutes without asking again; so the room holds the seat for as long as
// that can be ([anteroom.Settings].Redeem). Nothing about admission is decided here.
//
// docs/adr/0035-tokens-of-connectors-are-sessions.md has the mapping, and what cannot be mapped.
package queueit

import (
	"cmp"
	"context"
	"crypto/cipher"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/ticket"
)

// Event is a room as connectors know it.
type Event struct {
	// Customer and ID are what connectors call it, in lower case: letters, digits and -.
	Customer, ID string
	// URL is the queue's host, with nothing after it; several events may share it.
	URL *url.URL
	// Secret signs the tokens, and is what invitations are verified with.
	Secret string
	// Redeem is how long a visitor may take from the queue's host to the application, at least 10 s. The clocks of both may
	// differ by less.
	Redeem time.Duration
	// FreeCanceled frees the seat when a connector cancels the session. Cancellations are not signed, so the limit then holds only
	// as long as visitors make none by hand.
	FreeCanceled bool
	// InviteOnly admits only visitors with an enqueue token or an invite code, as [anteroom.Settings].InviteOnly does.
	InviteOnly bool
	// Room returns the room as it is for operators, and what serves it; nil while it is not served.
	Room func() (*anteroom.Room, Live)
}

// Live is what the bridge asks of a room that is served: node.Room.
type Live interface {
	EndSession(ctx context.Context, id anteroom.ID) (bool, error)
	Settings() anteroom.Settings
	Now() anteroom.Time
}

// Bridged returns the room as node and gateway serve it. Its entrance is the queue's host: what the room's routes cover is the
// connector's, and sessions last for as long as tokens let visitors in.
func (e *Event) Bridged(r anteroom.Room) anteroom.Room {
	r.Routes = []anteroom.Route{{Host: e.URL.Hostname(), Path: e.path()}}
	r.Redeem, r.InviteOnly = e.Redeem, r.InviteOnly || e.InviteOnly
	r.Pass, r.PassEdge, r.EnabledOriginCommands = 0, "", nil
	if r.CookieAttributes.SameSite == anteroom.SameSiteStrict {
		r.CookieAttributes.SameSite = anteroom.SameSiteLax // visitors come from the application's site
	}
	if r.SessionNetworksAction == anteroom.SharedRevoke {
		r.SessionNetworksAction = anteroom.SharedLog // a token cannot be taken back
	}
	return r
}

// path is where the room is at the queue's host. Connectors know the address of the host only.
func (e *Event) path() string { return "/" + e.ID }

// Config configures a bridge. All but Log are required.
type Config struct {
	Events []Event
	// Gateway serves the rooms, each as [Event.Bridged] says.
	Gateway func() *gateway.Gateway
	// Keys are those of the gateway, and CookieName is as in its Config. They are for invitations.
	Keys       func() *ticket.Keyring
	CookieName string
	// Space keeps the invitations that were used, under keys that begin with "bridge.queueit.".
	Space cluster.Space
	// Secret is what all other secrets of the bridge are derived from.
	Secret [32]byte
	// Log; nil means none.
	Log *slog.Logger
}

// Bridge serves the hosts of its events. Safe for concurrent use.
type Bridge struct {
	cfg     Config
	names   cipher.Block // from the id of a ticket to the queue id
	cancels bridge.Budget
	warned  atomic.Int64 // seconds since 1970
}

// New returns a bridge.
func New(cfg Config) *Bridge {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Bridge{cfg: cfg, names: bridge.Block(bridge.Derive(cfg.Secret, "queue-id", 0))}
}

// Covers reports whether a request is for the host of an event, and not for what every host has.
func (b *Bridge) Covers(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/.well-known/") && !strings.HasPrefix(r.URL.Path, "/-/") && b.find(r, func(*Event) bool { return true }) != nil
}

// find returns an event at the host of the request.
func (b *Bridge) find(r *http.Request, is func(*Event) bool) *Event {
	host, err := route.Host(r.Host)
	if err != nil {
		return nil
	}
	for i := range b.cfg.Events {
		if e := &b.cfg.Events[i]; strings.EqualFold(e.URL.Hostname(), host) && is(e) {
			return e
		}
	}
	return nil
}

// named returns the event that a connector names.
func (b *Bridge) named(r *http.Request, customer, id string) *Event {
	return b.find(r, func(e *Event) bool { return strings.EqualFold(e.Customer, customer) && strings.EqualFold(e.ID, id) })
}

// ServeHTTP serves what connectors ask for, and their visitors.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if e := b.find(r, func(e *Event) bool { return e.ID == first }); e != nil {
		b.serveRoom(e, w, r)
		return
	}
	b.cfg.Gateway().Beside(http.HandlerFunc(b.serveOther)).ServeHTTP(w, r)
}

// serveOther serves what is not below the path of an event.
func (b *Bridge) serveOther(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	serve := map[string]http.HandlerFunc{"": b.enqueue, "error": b.failed, "cancel": b.cancel, "status": b.integrations}[first]
	switch {
	case serve == nil:
		say(w, http.StatusNotFound, "There is no such page here", "")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "This method is not served here", "")
	case len(r.RequestURI) > anteroom.MaxTargetBytes:
		say(w, http.StatusRequestURITooLong, "The address is too long", "")
	default:
		serve(w, r)
	}
}

// enqueue sends a visitor from a connector to the room.
func (b *Bridge) enqueue(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	e := b.named(r, q.Get("c"), q.Get("e"))
	if e == nil {
		say(w, http.StatusNotFound, "There is no such event here", "")
		return
	}
	target, ok := e.target(q.Get("t"))
	if !ok {
		say(w, http.StatusBadRequest, badTarget, "")
		return
	}
	to := url.Values{"t": {target}}
	if invitation := q.Get(invitationParameter); invitation != "" {
		to.Set(invitationParameter, invitation)
	}
	redirect(w, e.path()+"?"+to.Encode())
}

// failed serves the error routes: visitors whose token or cookie a connector did not accept. They are sent to the room, and from
// there back with another token if their session lasts. That is counted, like every return.
func (b *Bridge) failed(w http.ResponseWriter, r *http.Request) {
	code := strings.Trim(strings.TrimPrefix(r.URL.Path, "/error/"), "/")
	switch code {
	case "hash", "timestamp", "eventid", "ip", "connector/sessionstate":
		b.warn("a connector refuses a token", "code", code, "event", r.URL.Query().Get("e"))
		b.enqueue(w, r)
	case "qidlimit":
		say(w, http.StatusForbidden, "Your place was used too often", "")
	default:
		say(w, http.StatusNotFound, "There is no such page here", "")
	}
}

// warn logs what an operator has to know, once a minute at most.
func (b *Bridge) warn(text string, args ...any) {
	now, last := time.Now().Unix(), b.warned.Load()
	if now-last >= 60 && b.warned.CompareAndSwap(last, now) {
		b.cfg.Log.Warn(text, args...)
	}
}

// redirect goes to an address that was checked.
func redirect(w http.ResponseWriter, address string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", address)
	w.WriteHeader(http.StatusFound)
}

// say answers with a page of one sentence, and a link if there is an address to try again.
func say(w http.ResponseWriter, status int, sentence, again string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	page := "<!doctype html><html lang=en><meta name=viewport content=\"width=device-width\"><title>" + sentence + "</title><p>" + sentence + ".</p>"
	if again != "" {
		page += "<p><a href=\"" + html.EscapeString(again) + "\">Try again</a></p>"
	}
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	w.Write([]byte(page))
}
