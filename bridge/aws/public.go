package aws

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/manage"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// operation is one of an API.
type operation struct {
	method string
	params []string          // that the gateway before the functions requires: of the query, or members of the body
	needs  manage.Permission // empty: anyone may
	do     func(*call) answer
}

// call is a request whose parameters are there.
type call struct {
	*http.Request
	b      *Bridge
	room   Room // is served
	roomID anteroom.RoomID
	by     manage.Caller // of the private API
	event  string
	id     string // the request id
	more   body
}

// body is that of every operation. A pointer tells a member that was sent.
type body struct {
	Event     *string `json:"event_id"`
	ID        *string `json:"request_id"`
	Increment *int64  `json:"increment_by"`
	Status    *int64  `json:"status"`
	Issuer    string  `json:"issuer"`
	Validity  *int64  `json:"validity_period"`
}

var public = map[string]operation{
	"/assign_queue_num": {http.MethodPost, []string{"event_id"}, "", assign},
	"/queue_num":        {http.MethodGet, []string{"event_id", "request_id"}, "", queueNumber},
	"/serving_num":      {http.MethodGet, []string{"event_id"}, "", servingNumber},
	"/waiting_num":      {http.MethodGet, []string{"event_id"}, "", waitingNumber},
	"/queue_pos_expiry": {http.MethodGet, []string{"event_id", "request_id"}, "", positionExpiry},
	"/generate_token":   {http.MethodPost, []string{"event_id", "request_id"}, "", generateToken},
	"/public_key":       {http.MethodGet, []string{"event_id"}, "", publicKey},
}

// ServeHTTP serves the public API, below [Config.URL]. Paths are compared as they were sent.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), b.cfg.URL.Path)
	if !b.serveOpenID(w, r, path) {
		b.serve(w, r, public[path])
	}
}

// Covers reports whether a request is for the public API.
func (b *Bridge) Covers(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), b.cfg.URL.Path)
	return ok && strings.HasPrefix(rest, "/") && strings.EqualFold(host, b.cfg.URL.Hostname())
}

// serve answers an operation as the gateway before the functions of the original does.
func (b *Bridge) serve(w http.ResponseWriter, r *http.Request, op operation) {
	c := &call{Request: r, b: b}
	a := noRoute
	if c.room, c.roomID = b.cfg.Room(); op.do != nil && r.Method == http.MethodOptions {
		sendPreflight(w, op.method)
		return
	} else if op.do != nil && r.Method == op.method {
		a = c.answer(w, op)
	}
	a.send(w, jsonType)
}

func (c *call) answer(w http.ResponseWriter, op operation) answer {
	text, err := io.ReadAll(http.MaxBytesReader(w, c.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return refusal(http.StatusRequestEntityTooLarge, "Request Too Long")
	} else if err != nil {
		return badBody
	}
	if op.needs != "" {
		if no := c.authorize(op.needs, text); no.status != 0 {
			return no
		}
	}
	if no := c.read(op, text); no.status != 0 {
		return no
	}
	if c.room == nil {
		return broken
	}
	return op.do(c)
}

// read takes the parameters from the query, or from the body of a POST. Its answer is none with the status 0.
func (c *call) read(op operation, text []byte) answer {
	q, _ := url.ParseQuery(c.URL.RawQuery) // what cannot be read is missing
	has := map[string]bool{"event_id": q.Get("event_id") != "", "request_id": q.Get("request_id") != ""}
	c.event, c.id = q.Get("event_id"), q.Get("request_id")
	if op.method == http.MethodPost && len(op.params) > 0 {
		if json.Unmarshal(text, &c.more) != nil {
			return badBody
		}
		has = map[string]bool{"event_id": c.more.Event != nil, "request_id": c.more.ID != nil, "increment_by": c.more.Increment != nil}
		c.event, c.id = value(c.more.Event), value(c.more.ID)
	}
	missing := slices.DeleteFunc(slices.Clone(op.params), func(name string) bool { return has[name] })
	switch {
	case len(missing) == 0:
		return answer{}
	case op.method == http.MethodPost:
		return badBody
	}
	return refusal(http.StatusBadRequest, "Missing required request parameters: ["+strings.Join(missing, ", ")+"]")
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// isOurs reports whether a call is for the event.
func (c *call) isOurs() bool { return c.event == c.b.cfg.Event }

func assign(c *call) answer {
	if !c.isOurs() {
		// The original learns of it after the answer, and the id never gets a number.
		var b [16]byte
		rand.Read(b[:])
		b[6], b[8] = b[6]&15|4<<4, b[8]&63|2<<6
		return good(member{"api_request_id", bridge.UUID(b)})
	}
	id, err := c.b.join(c.Request, c.room)
	switch kind := anteroom.KindOf(err); {
	case errors.Is(err, errTooMany):
		return tooMany
	case kind == anteroom.Denied:
		return answer{status: http.StatusBadRequest}
	case kind == anteroom.Unavailable:
		return answer{status: http.StatusInternalServerError}
	}
	return good(member{"api_request_id", id})
}

func queueNumber(c *call) answer {
	if !c.isOurs() || !idShape.MatchString(c.id) {
		return badEventOrID
	}
	p, _, ok := c.b.place(c.id)
	if !ok {
		return failure(http.StatusAccepted, "Request ID not found")
	}
	return good(member{"queue_number", p.number}, member{"entry_time", p.arrival.Std().Unix()}, member{"event_id", c.event}, member{"status", 1})
}

// shared lets the caches between visitors and Anteroom keep a counter as long as the original's did, and no browser.
const shared = "public, max-age=0, s-maxage=5"

func servingNumber(c *call) answer {
	if !c.isOurs() {
		return badEvent
	}
	a := good(member{"serving_counter", text(c.b.line.now().Serving)})
	a.cache = shared
	return a
}

func waitingNumber(c *call) answer {
	if !c.isOurs() {
		return badEvent
	}
	r := c.b.line.now()
	a := good(member{"waiting_num", r.waiting()})
	a.cache = shared
	return a
}

func positionExpiry(c *call) answer {
	if !c.isOurs() || !idShape.MatchString(c.id) {
		return badEventOrID
	}
	p, r, ok := c.b.place(c.id)
	switch {
	case !ok:
		return failure(http.StatusNotFound, "Invalid request ID")
	case int64(p.number) > r.Serving:
		return notServed
	}
	left := r.invitedAt(p).Add(c.room.Settings().PlaceHold).Sub(c.room.Now())
	if left <= 0 {
		return expiredPlace
	}
	return good(member{"expires_in", int64(left / time.Second)})
}

func generateToken(c *call) answer { return c.generate(c.b.cfg.Issuer, nil) }

// generate admits the caller, or repeats the tokens of the session. Validity, if there is one, is in seconds.
func (c *call) generate(issuer string, validity *int64) answer {
	if !c.isOurs() || !idShape.MatchString(c.id) {
		return badEventOrID
	}
	s, no, ok := c.b.claim(c.Context(), c.room, c.id)
	if !ok {
		return no
	}
	until := s.until
	if validity != nil {
		if *validity < 1 || *validity > s.until-s.from {
			return failure(http.StatusBadRequest, "validity_period must be between 1 and the session_duration of the room in seconds")
		}
		until = s.from + *validity
	}
	t, err := c.b.tokens(c.Context(), s, issuer, until, "")
	if err != nil {
		return broken
	}
	return t.answer(until, c.room.Now())
}

func publicKey(c *call) answer {
	if !c.isOurs() {
		return unknownID // the original's words
	}
	by, err := c.b.signing(c.Context())
	if err != nil {
		return broken
	}
	a := good(by.jwk()...)
	a.cache = "public, max-age=300"
	return a
}
