package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/pass"
	"github.com/anteroom/anteroom/ticket/proof"
)

const (
	// passPEMPath is the path of the public keys of passes as PEM blocks, on every host.
	passPEMPath = wellKnown + "pass.pem"
	// passPath is the path at which active users get a new pass, in a room that covers the whole host.
	passPath = wellKnown + "pass"
)

// passes are the keys of passes, and what their issuers need besides.
type passes struct {
	keys    *pass.Keys
	issuer  string
	subject proof.Seed
	jwks    []byte // with those of the proof, if there is one
}

func newPasses(cfg *Config) (*passes, error) {
	p := &passes{issuer: cfg.Issuer, subject: proof.Seed(cfg.Keys.Fixed(ticket.PurposeSubject))}
	var err error
	if p.keys, err = pass.Of(cfg.Keys); err != nil {
		return nil, err
	}
	if _, err = p.keys.Issuer(p.issuer, "zone", "room", ""); err != nil {
		return nil, err
	}
	p.jwks = p.keys.JWKS()
	if cfg.Proof != nil {
		p.jwks, err = joinSets(p.jwks, cfg.Proof.JWKS())
	}
	return p, err
}

// joinSets returns the keys of several JWK sets as one.
func joinSets(sets ...[]byte) ([]byte, error) {
	var all struct {
		Keys []json.RawMessage `json:"keys"`
	}
	for _, set := range sets {
		before := all.Keys
		all.Keys = nil
		if err := json.Unmarshal(set, &all); err != nil {
			return nil, err
		}
		all.Keys = append(before, all.Keys...)
	}
	return json.Marshal(all)
}

// issuerOf returns the issuer of a room's passes; nil if it issues none.
func (p *passes) issuerOf(r *anteroom.Room) *pass.Issuer {
	if r.Pass == 0 {
		return nil
	}
	// Zone, room and edge have passed Room.Check, and newPasses has tried the issuer: there is no error left.
	issuer, _ := p.keys.Issuer(p.issuer, r.Zone, r.ID, r.PassEdge)
	return issuer
}

// passCookie is the name of a room's pass.
func passCookie(suffix string) string {
	if suffix == "" {
		return pass.Cookie
	}
	return pass.Cookie + "_" + suffix
}

// issuesPasses reports whether some room does.
func (s *setup) issuesPasses() bool {
	return slices.ContainsFunc(s.rooms, func(r *room) bool { return r.passes != nil })
}

// mayPass reports whether the session of the request may get a pass: from its second request on. Before, it is on probation and
// may end sooner than a pass would. Sessions in a header are not a browser's, and get no cookies.
func (x *exchange) mayPass() bool {
	return x.room.passes != nil && x.room.session == nil && x.settled() && !x.websocket && x.verdict() == nil
}

// settled reports whether the session of the request is not on probation: it had an earlier one.
func (x *exchange) settled() bool {
	return x.decision.Verdict == anteroom.Admit && x.presented.Accepted() && x.presented.ID == x.decision.Ticket.ID
}

// offerPass adds a pass to the headers of the origin's answer when the visitor has none, or when half of it is over and a page
// is loaded. Parts of a page wait for the next request that is none, and answers that others may be given never carry one.
func (x *exchange) offerPass(h http.Header) {
	if !x.mayPass() || isSubresource(x.r) {
		return
	}
	life := x.passLife()
	if left := x.passLeft; left > life/2 || left > 0 && !isNavigation(x.r) || life < time.Second || isShared(h) {
		return
	}
	x.setPass(h, life)
	if len(h["Cache-Control"]) == 0 {
		h["Cache-Control"] = valuePrivate
	}
}

// passLife is how long a pass would be valid now. The engine holds the seat of a session without renewal to its end alone; so
// its last pass is over by then, also at an edge whose clock is behind.
func (x *exchange) passLife() time.Duration {
	in := x.room.door.Settings()
	life := in.PassLife()
	if in.DisableSessionRenewal {
		left := in.SessionEnd(x.decision.Ticket.AcceptedAt).Sub(x.decision.At)
		life = min(life, left-anteroom.PassSkew)
	}
	return life
}

// readPass notes how long the passes of the request seem to be valid still. The origin does not see them.
func (x *exchange) readPass() {
	shown := false
	eachCookie(x.cookies, x.room.passName, func(value string) {
		shown = true
		x.passLeft = max(x.passLeft, x.room.passes.Lasts(value, x.start))
	})
	if !shown {
		return
	}
	state := PassLate
	switch {
	case x.passLeft == 0:
		state = PassOver
	case x.passLeft > x.room.door.Settings().PassLife()/2:
		state = PassFresh
	}
	x.g.count.passesShown[state].Add(1)
	if x.verdict() == nil { // else the one in front has no use for passes, and is counted by its question
		x.g.edges.saw(edgeKey{kind: KindPass, zone: x.room.Zone, name: x.room.PassEdge}, state, x.start)
	}
}

// setPass sets the cookie. The pass begins when the request came, which is before the engine began to hold the seat for it.
func (x *exchange) setPass(h http.Header, life time.Duration) {
	token, err := x.room.passes.Issue(proof.Subject(x.s.passes.subject, x.room.ID, x.decision.Ticket.ID), x.start, life)
	if err != nil {
		x.logProof(err)
		return
	}
	x.g.count.passes.Add(1)
	h["Set-Cookie"] = append(h["Set-Cookie"], x.room.passName+"="+token+"; Max-Age="+strconv.Itoa(int(life/time.Second))+x.cookieTail())
}

// dropPass makes the browser forget the pass.
func (x *exchange) dropPass(h http.Header) {
	if x.room.passes != nil {
		h["Set-Cookie"] = append(h["Set-Cookie"], x.room.passName+"=; Max-Age=0"+x.cookieTail())
	}
}

// servePassKeys answers the reserved path of the public keys as PEM.
func (x *exchange) servePassKeys() {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/x-pem-file"}
	h["Cache-Control"] = valueKeys
	x.write(http.StatusOK, x.s.passes.keys.PEM())
}

// serveRenewal gives an active user a new pass, with 204. All others get 401: nobody joins the queue or is admitted here.
func (x *exchange) serveRenewal() {
	h := x.neverStored()
	status := http.StatusUnauthorized
	if v := x.visit(); v.Ticket.Accepted() && !x.isAnothers(&v.Ticket) {
		v.NoHold, v.NoJoin = true, true
		if x.decide(v); x.mayPass() {
			x.giveTicket(h)
			if life := x.passLife(); life >= time.Second {
				x.setPass(h, life)
				status = http.StatusNoContent
			}
		}
	}
	x.write(status, nil)
}
