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
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
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
	// Networks returns the networks of the client that sent a request, by which joins are bounded; none are not.
	Networks func(*http.Request) anteroom.Networks
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
	cfg   Config
	line  line
	joins bridge.Budget

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
	// joinTime bounds how long a join waits for its number to be stored.
	joinTime = 5 * time.Second
)

// Open returns a bridge, which works while [Bridge.Run] does. It reads the counters, so that the first answers are right.
func Open(ctx context.Context, cfg Config) (_ *Bridge, err error) {
	cfg.Issuer = cmp.Or(cfg.Issuer, cfg.URL.String())
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	b := &Bridge{cfg: cfg, ids: newRequestIDs(cfg.Secret, 0), signed: map[string]tokens{}, issued: map[string]int64{}}
	b.line = line{space: cfg.Space, key: b.key("line"), room: b.room, custom: cfg.Custom, joins: make(chan chan<- joined)}
	b.line.known, _, err = b.line.load(ctx)
	return b, err
}

func (b *Bridge) key(of string) string { return "bridge.aws." + b.cfg.Event + "." + of }

func (b *Bridge) room() Room {
	r, _ := b.cfg.Room()
	return r
}

// Run numbers joins and moves the serving counter until ctx ends.
func (b *Bridge) Run(ctx context.Context) {
	b.line.run(ctx, func(err error) {
		b.cfg.Log.Error("the counters of a bridge cannot be stored; its visitors cannot join", "event", b.cfg.Event, "error", err)
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
func (b *Bridge) signing(ctx context.Context) (_ *signer, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.signer == nil {
		if b.signer, err = loadSigner(ctx, b.cfg.Space, b.key("key"), b.cfg.Secret); err != nil {
			b.cfg.Log.Error("the signing key of a bridge cannot be used", "event", b.cfg.Event, "error", err)
		}
	}
	return b.signer, err
}

// errTooMany is for a client whose network joins too often.
var errTooMany = anteroom.Errorf(anteroom.Unavailable, "too many joins from this network")

// join gives out a place in line. The error is of kind Denied if the room takes nobody, else Unavailable.
func (b *Bridge) join(r *http.Request, room Room) (requestID string, err error) {
	if set := room.Settings(); set.Draining || set.QueueingMethod == anteroom.Reject {
		return "", anteroom.Errorf(anteroom.Denied, "the room takes no new visitors")
	}
	if !b.joins.Spend(b.cfg.Networks(r), room.Now()) {
		return "", errTooMany
	}
	ctx, cancel := context.WithTimeout(r.Context(), joinTime)
	defer cancel()
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
func (b *Bridge) claim(ctx context.Context, room Room, requestID string) (s session, no answer, ok bool) {
	p, r, known := b.place(requestID)
	if !known {
		return s, unknownID, false
	} else if int64(p.number) > r.Serving {
		return s, notServed, false
	}
	set, now, invited := room.Settings(), room.Now(), r.invitedAt(p)
	id, _ := b.keys(r.Generation).ticketID(requestID)
	other := id
	other[0] ^= 1
	v := anteroom.Visit{NewID: other, NoHold: true, NoClaim: true, Unsolved: set.InfiniteQueue, Uninvited: true, // these clients can solve no challenge, and have no code
		// The place may be kept since the invitation. Next tells the room, which refuses a place that is over.
		Ticket: anteroom.Ticket{ID: id, Arrival: p.arrival, LastCheckIn: p.arrival, Next: invited}}
	// Without a claim first: where the ticket is used or its place lost, the visitor must not start anew.
	d := room.Decide(ctx, v)
	if d.Verdict == anteroom.Wait {
		v.NoClaim = false
		d = room.Decide(ctx, v)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case d.Verdict == anteroom.Wait:
		return s, notServed, false
	case d.Verdict == anteroom.Pass: // suspended
		s = session{requestID, p, d.At.Std().Unix(), 0}
	case d.Verdict == anteroom.Admit && d.Ticket.ID == id:
		s = session{requestID, p, d.Ticket.AcceptedAt.Std().Unix(), 0}
	case now > invited.Add(set.PlaceHold) && b.issued[requestID] == 0:
		return s, expiredPlace, false
	default:
		return s, expiredSession, false
	}
	// What was issued stays as it is, whatever the settings are now.
	if s.until = cmp.Or(b.issued[requestID], s.from+int64(set.SessionDuration/time.Second)); s.until <= now.Std().Unix() {
		return s, expiredSession, false
	}
	if d.Verdict == anteroom.Admit && d.Reason != anteroom.ReasonSession {
		b.line.claimed(p.number)
	}
	if b.issued[requestID] != 0 || len(b.issued) < maxIssued {
		b.issued[requestID] = s.until
	}
	return s, no, true
}

// tokens are the three of a session, as in uses.
type tokens [len(uses)]string

// tokens returns those of a session, the same each time. A nonce is for the id token alone.
func (b *Bridge) tokens(ctx context.Context, s session, issuer string, until int64, nonce string) (t tokens, err error) {
	same := issuer == b.cfg.Issuer && until == s.until && nonce == ""
	by, err := b.signing(ctx)
	if err != nil {
		return t, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t = b.signed[s.requestID]; same && t[0] != "" {
		return t, nil
	}
	b.mu.Unlock() // others need not wait
	for i, use := range uses {
		c := claims{Audience: b.cfg.Event, Subject: s.requestID, Position: s.number, Use: use, IssuedAt: s.from, NotFrom: s.from, Expires: until, Issuer: issuer}
		if use == useID {
			c.Nonce = nonce
		}
		if t[i], err = by.sign(c); err != nil {
			break
		}
	}
	b.mu.Lock()
	if same && err == nil {
		if len(b.signed) >= maxSigned {
			clear(b.signed)
		}
		b.signed[s.requestID] = t
	}
	return t, err
}

// answer writes tokens as /generate_token does.
func (t tokens) answer(until int64, now anteroom.Time) answer {
	return good(member{"access_token", t[0]}, member{"refresh_token", t[1]}, member{"id_token", t[2]},
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
	return c, err == nil && c.Use == useAccess && c.Audience == b.cfg.Event && c.Issuer == b.cfg.Issuer && c.NotFrom <= now && now < c.Expires
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
