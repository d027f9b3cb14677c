// Package aws serves the clients of AWS Virtual Waiting Room, which was retired in 2025: its public and private API, the
// answers of the gateways before them, its tokens and its OpenID adapter, over rooms of Anteroom.
//
// A join gives a number and a request id, which is the place in line: a ticket, sealed into a UUID (requestid.go). The
// serving counter follows what the room could admit (line.go). The claim of a token is the visit that the room decides
// about, with the arrival of the join, so that both limits and the order are those of every room, and the counter is an
// invitation. A token stands for the session until it ends.
//
// docs/adr/0032-clients-of-aws-are-invited-by-number.md has the mapping, and what cannot be mapped.
package aws

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/manage"
)

// Room is what a bridge asks of the room that it stands for: node.Room.
type Room interface {
	Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision
	EndSession(ctx context.Context, id anteroom.ID) (bool, error)
	Settings() anteroom.Settings
	Status() anteroom.Status
	Now() anteroom.Time
}

// Config configures the bridge of one event. All but Custom, ClientSecret, RedirectURIs and Log are required.
type Config struct {
	// Event is the event id that clients send.
	Event string
	// URL is where the public API is served, without a slash at the end.
	URL *url.URL
	// Issuer is the iss of tokens; empty means URL.
	Issuer string
	// Custom leaves the serving counter to operators.
	Custom bool
	// ClientSecret and RedirectURIs turn the OpenID adapter on. The client id is Event.
	ClientSecret string
	RedirectURIs []string
	// Room returns the room with its id, or nil while it is not served.
	Room func() (Room, anteroom.RoomID)
	// Space keeps the counters and the signing key, under keys that begin with "bridge.aws." and Event.
	Space cluster.Space
	// Secret is what all secrets of the bridge are derived from. Whoever has it can make request ids.
	Secret [32]byte
	// Manager authenticates operators and keeps the audit log.
	Manager *manage.Manager
	// Log; nil means none.
	Log *slog.Logger
}

// Bridge serves one event. Safe for concurrent use.
type Bridge struct {
	cfg  Config
	line line
	path string // of Config.URL
	log  *slog.Logger

	mu     sync.Mutex
	ids    requestIDs
	of     uint32 // the generation of ids
	signer *signer
	signed map[string]tokens // by request id; bounded by maxSigned
	issued map[string]int64  // when tokens expire, by request id; bounded by maxIssued
}

const (
	// maxSigned bounds the tokens that are kept for clients that ask for them again: signing costs a millisecond each.
	maxSigned = 4_096
	// maxIssued bounds the tokens whose ends /expired_tokens knows.
	maxIssued = 100_000
)

// New returns a bridge, which works while [Bridge.Run] does.
func New(cfg Config) *Bridge {
	if cfg.Issuer == "" {
		cfg.Issuer = cfg.URL.String()
	}
	b := &Bridge{cfg: cfg, path: cfg.URL.Path, log: cfg.Log, ids: newRequestIDs(cfg.Secret, 0), signed: map[string]tokens{}, issued: map[string]int64{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.line = line{space: cfg.Space, key: b.key("line"), room: b.room, custom: cfg.Custom, joins: make(chan chan<- joined, maxJoins)}
	return b
}

func (b *Bridge) key(of string) string { return "bridge.aws." + b.cfg.Event + "." + of }

func (b *Bridge) room() Room {
	r, _ := b.cfg.Room()
	return r
}

// Run numbers joins and moves the serving counter until ctx ends.
func (b *Bridge) Run(ctx context.Context) {
	b.line.run(ctx, func(err error) {
		b.log.Error("the counters of a bridge cannot be stored; its visitors cannot join", "event", b.cfg.Event, "error", err)
	})
}

// keys returns what opens the request ids of a generation.
func (b *Bridge) keys(generation uint32) requestIDs {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of != generation {
		b.ids, b.of = newRequestIDs(b.cfg.Secret, generation), generation
	}
	return b.ids
}

// signing returns the event's key, which is made at the first use.
func (b *Bridge) signing(ctx context.Context) (*signer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.signer == nil {
		s, err := loadSigner(ctx, b.cfg.Space, b.key("key"), b.cfg.Secret)
		if err != nil {
			b.log.Error("the signing key of a bridge cannot be used", "event", b.cfg.Event, "error", err)
			return nil, err
		}
		b.signer = s
	}
	return b.signer, nil
}

// join gives out a place in line, or says that the room takes nobody.
func (b *Bridge) join(ctx context.Context) (requestID string, err error) {
	room := b.room()
	if room == nil {
		return "", anteroom.Errorf(anteroom.Unavailable, "the room is not served")
	}
	if set := room.Settings(); set.Draining || set.QueueingMethod == anteroom.Reject {
		return "", anteroom.Errorf(anteroom.Denied, "the room takes no new visitors")
	}
	j, err := b.line.join(ctx)
	if err != nil {
		return "", err
	}
	return b.keys(j.generation).of(j.position), nil
}

// place returns the position of a request id with the counters that it belongs to.
func (b *Bridge) place(requestID string) (position, record, bool) {
	r := b.line.now()
	p, ok := b.keys(r.Generation).open(requestID)
	return p, r, ok && int64(p.number) <= r.Queue
}

// session is a visitor who was admitted.
type session struct {
	requestID string
	position
	from, until int64 // seconds since 1970
}

// claim asks the room to admit a position that the serving counter has reached. The answer counts if ok is false.
func (b *Bridge) claim(ctx context.Context, requestID string) (s session, no answer, ok bool) {
	p, r, known := b.place(requestID)
	room := b.room()
	switch {
	case room == nil:
		return s, broken, false
	case !known:
		return s, unknownID, false
	case int64(p.number) > r.Serving:
		return s, notServed, false
	}
	set, now := room.Settings(), room.Now()
	invited := r.invitedAt(p)
	gone := expiredSession
	if now > invited.Add(set.PlaceHold) && !b.hasIssued(requestID) {
		gone = expiredPlace
	}
	id, _ := b.keys(r.Generation).ticketID(requestID)
	v := anteroom.Visit{NoHold: true, NoClaim: true, Unsolved: set.InfiniteQueue, // these clients can solve no challenge
		// The place may be kept since the invitation. Next tells the room, which refuses a place that is over.
		Ticket: anteroom.Ticket{ID: id, Arrival: p.arrival, LastCheckIn: p.arrival, Next: invited}}
	// Without a claim first: where the ticket is used or its place lost, the visitor must not start anew.
	d := room.Decide(ctx, v)
	if d.Verdict == anteroom.Wait {
		v.NoClaim = false
		d = room.Decide(ctx, v)
	}
	switch {
	case d.Verdict == anteroom.Refuse, d.Verdict == anteroom.Admit && d.Ticket.ID != id:
		return s, gone, false
	case d.Verdict == anteroom.Wait:
		return s, notServed, false
	}
	s = session{requestID: requestID, position: p, from: d.At.Std().Unix()}
	if d.Verdict == anteroom.Admit {
		s.from = d.Ticket.AcceptedAt.Std().Unix()
		if d.Reason != anteroom.ReasonSession {
			b.line.claimed(p.number)
		}
	}
	if s.until = s.from + int64(set.SessionDuration/time.Second); s.until <= now.Std().Unix() {
		return s, expiredSession, false
	}
	b.noteIssued(s)
	return s, no, true
}

func (b *Bridge) noteIssued(s session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.issued[s.requestID]; known || len(b.issued) < maxIssued {
		b.issued[s.requestID] = s.until
	}
}

func (b *Bridge) hasIssued(requestID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.issued[requestID] != 0
}

// tokens are the three of a session.
type tokens struct{ access, refresh, id string }

// tokens returns those of a session, the same each time. A nonce is for the id token alone.
func (b *Bridge) tokens(ctx context.Context, s session, issuer string, until int64, nonce string) (t tokens, err error) {
	same := issuer == b.cfg.Issuer && until == s.until && nonce == ""
	if same {
		b.mu.Lock()
		t = b.signed[s.requestID]
		b.mu.Unlock()
		if t.access != "" {
			return t, nil
		}
	}
	by, err := b.signing(ctx)
	if err != nil {
		return t, err
	}
	c := claims{Audience: b.cfg.Event, Subject: s.requestID, Position: s.number, IssuedAt: s.from, NotFrom: s.from, Expires: until, Issuer: issuer}
	if t.access, err = by.sign(c, useAccess); err != nil {
		return t, err
	}
	if t.refresh, err = by.sign(c, useRefresh); err != nil {
		return t, err
	}
	c.Nonce = nonce
	if t.id, err = by.sign(c, useID); err != nil || !same {
		return t, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.signed) >= maxSigned {
		clear(b.signed)
	}
	b.signed[s.requestID] = t
	return t, nil
}

// answer writes tokens as /generate_token does.
func (t tokens) answer(until int64, now anteroom.Time) answer {
	return good(member{"access_token", t.access}, member{"refresh_token", t.refresh}, member{"id_token", t.id},
		member{"token_type", "Bearer"}, member{"expires_in", max(0, until-now.Std().Unix())})
}

// accessClaims returns the claims of an access token that is valid now.
func (b *Bridge) accessClaims(ctx context.Context, token string) (c claims, ok bool) {
	by, err := b.signing(ctx)
	room := b.room()
	if err != nil || room == nil {
		return c, false
	}
	c, err = by.verify(token)
	now := room.Now().Std().Unix()
	return c, err == nil && c.Use == useAccess && c.Audience == b.cfg.Event && c.NotFrom <= now && now < c.Expires &&
		subtle.ConstantTimeCompare([]byte(c.Issuer), []byte(b.cfg.Issuer)) == 1
}

// Ticket returns the ticket of the session that the header Authorization names: an access token, without a scheme as the
// original's authorizer takes it, or as a bearer token.
func (b *Bridge) Ticket(ctx context.Context, authorization string) (anteroom.Ticket, bool) {
	c, ok := b.accessClaims(ctx, strings.TrimPrefix(authorization, "Bearer "))
	if !ok {
		return anteroom.Ticket{}, false
	}
	id, ok := b.keys(b.line.now().Generation).ticketID(c.Subject)
	at := anteroom.TimeOf(time.Unix(c.IssuedAt, 0))
	return anteroom.Ticket{ID: id, Arrival: at, LastCheckIn: at, AcceptedAt: at}, ok
}
