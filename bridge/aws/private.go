package aws

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// Prefix is where the private APIs are at the admin address: below it, the event id and the operation.
const Prefix = "/aws"

// Event returns the event id and the rest of a path below [Prefix].
func Event(path string) (event, rest string) {
	event, rest, _ = strings.Cut(strings.TrimPrefix(path, Prefix+"/"), "/")
	return event, "/" + rest
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

type privileged struct {
	operation
	needs manage.Permission
	do    func(*call, manage.Caller, anteroom.RoomID) answer
}

var private = map[string]privileged{
	"/increment_serving_counter": {operation{method: http.MethodPost, params: []string{"event_id", "increment_by"}}, manage.Edit, increment},
	"/num_active_tokens":         {operation{method: http.MethodGet, params: []string{"event_id"}}, manage.Read, activeTokens},
	"/expired_tokens":            {operation{method: http.MethodGet, params: []string{"event_id"}}, manage.Read, expiredTokens},
	"/generate_token":            {operation{method: http.MethodPost, params: []string{"event_id", "request_id"}}, manage.Edit, privateToken},
	"/update_session":            {operation{method: http.MethodPost, params: []string{"event_id", "request_id"}}, manage.Edit, updateSession},
	"/reset_initial_state":       {operation{method: http.MethodPost, params: []string{"event_id"}}, manage.Edit, reset},
	"/access_key":                {operation{method: http.MethodPost}, manage.Read, accessKey},
}

// NoEvent answers a request to the private API of an event that there is none of.
func NoEvent(w http.ResponseWriter) { noRoute.send(w, jsonType) }

// ServePrivate serves the private API. Path is the operation with a slash before it. Callers sign their requests
// (Signature Version 4) with an access key of a token, or send the token as a bearer token.
func (b *Bridge) ServePrivate(w http.ResponseWriter, r *http.Request, path string) {
	op := private[path]
	if op.do == nil {
		noRoute.send(w, jsonType)
		return
	}
	_, room := b.cfg.Room()
	var by manage.Caller
	op.operation.do = func(c *call) answer { return op.do(c, by, room) }
	b.serve(w, r, op.operation, func(r *http.Request, body []byte) (no answer) {
		if by, no = b.caller(r, body); no.status != 0 {
			return no
		}
		if room == "" {
			return broken
		}
		if !b.cfg.Manager.MayOperate(by, op.needs, room) {
			return answer{status: http.StatusForbidden, body: []byte(`{"Message":"User is not authorized to access this resource"}`)}
		}
		return answer{}
	})
}

// caller says who asks.
func (b *Bridge) caller(r *http.Request, body []byte) (manage.Caller, answer) {
	authorization := r.Header.Get("Authorization")
	if strings.HasPrefix(authorization, signatureScheme) {
		return b.signedBy(r, body, authorization)
	}
	if authorization == "" {
		return manage.Caller{}, noRoute
	}
	by, err := api.Authenticate(b.cfg.Manager.Authenticate, r, "")
	if err != nil {
		return by, refusal(http.StatusForbidden, "The security token included in the request is invalid.")
	}
	return by, answer{}
}

func increment(c *call, by manage.Caller, room anteroom.RoomID) answer {
	n := *c.more.Increment
	r := c.b.room()
	switch {
	case !c.isOurs():
		return badEvent
	case n < 0:
		return failure(http.StatusBadRequest, "increment_by must not be negative: the serving counter never goes down")
	case n > manage.MaxAdmitNow:
		return failure(http.StatusBadRequest, "increment_by must be at most "+text(manage.MaxAdmitNow))
	case r == nil:
		return broken
	}
	if err := c.b.cfg.Manager.Operated(c.Context(), by, "bridge.increment", room, map[string]int64{"increment_by": n}); err != nil {
		return broken
	}
	now, hold := r.Now(), r.Settings().PlaceHold
	is, err := c.b.line.change(c.Context(), func(rec *record) error {
		rec.expire(now, hold)
		rec.serve(now, n, hold)
		return nil
	})
	if err != nil {
		return broken
	}
	return good(member{"serving_num", is.Serving})
}

func activeTokens(c *call, _ manage.Caller, _ anteroom.RoomID) answer {
	r := c.b.room()
	switch {
	case !c.isOurs():
		return badEvent
	case r == nil:
		return broken
	}
	return good(member{"active_tokens", r.Status().ActiveUsers})
}

func expiredTokens(c *call, _ manage.Caller, _ anteroom.RoomID) answer {
	r := c.b.room()
	switch {
	case !c.isOurs():
		return badEvent
	case r == nil:
		return broken
	}
	now := r.Now().Std().Unix()
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	list := []byte{'['}
	for _, id := range slices.Sorted(maps.Keys(c.b.issued)) {
		if c.b.issued[id] <= now {
			if len(list) > 1 {
				list = append(list, ", "...)
			}
			list = strconv.AppendQuote(list, id)
		}
	}
	return answer{status: http.StatusOK, body: append(list, ']')}
}

func privateToken(c *call, _ manage.Caller, _ anteroom.RoomID) answer {
	issuer := c.b.cfg.Issuer
	if c.more.Issuer != "" {
		issuer = c.more.Issuer
	}
	return c.generate(issuer, c.more.Validity)
}

// The values of status in /update_session.
const (
	completed = 1
	abandoned = -1
)

func updateSession(c *call, _ manage.Caller, _ anteroom.RoomID) answer {
	room := c.b.room()
	switch {
	case !c.isOurs() || !idShape.MatchString(c.id):
		return badEventOrID
	case c.more.Status == nil || *c.more.Status != completed && *c.more.Status != abandoned:
		return failure(http.StatusBadRequest, "status must be 1 (completed) or -1 (abandoned)")
	case room == nil:
		return broken
	}
	unknown := failure(http.StatusNotFound, "Request ID doesn't exist or status already set.")
	_, r, ok := c.b.place(c.id)
	if !ok {
		return unknown
	}
	id, _ := c.b.keys(r.Generation).ticketID(c.id)
	ended, err := room.EndSession(c.Context(), id)
	if err != nil {
		return broken
	}
	c.b.mu.Lock()
	was := c.b.issued[c.id] != 0 // it may have expired before
	delete(c.b.issued, c.id)
	delete(c.b.signed, c.id)
	c.b.mu.Unlock()
	if !ended && !was {
		return unknown
	}
	c.b.line.ended(*c.more.Status == completed)
	return good()
}

// reset begins the event anew: earlier request ids are unknown from now on. Sessions last as long as they do.
func reset(c *call, by manage.Caller, room anteroom.RoomID) answer {
	if c.isOurs() { // the original answers before it looks
		if err := c.b.cfg.Manager.Operated(c.Context(), by, "bridge.reset", room, nil); err != nil {
			return broken
		}
		_, err := c.b.line.change(c.Context(), func(r *record) error {
			*r = record{Generation: r.Generation + 1}
			return nil
		})
		if err != nil {
			return broken
		}
	}
	return good(member{"message", "It may take a minute or two to reset counters and recreate the database. Verify that token table is available and active in DynamoDB before using the waiting room."})
}

// accessKey returns the access key of the token that asks, for clients that sign their requests. It is derived, so there
// is nothing to store, and it ends with the token.
func accessKey(c *call, by manage.Caller, _ anteroom.RoomID) answer {
	if by.Token == "" {
		return failure(http.StatusBadRequest, "a token of the environment has no access key: create a token for the bridge")
	}
	return good(member{"access_key_id", string(by.Token)}, member{"secret_access_key", c.b.secretKey(by.Token)})
}
