package aws

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

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

var private = map[string]operation{
	"/increment_serving_counter": {http.MethodPost, []string{"event_id", "increment_by"}, manage.Edit, increment},
	"/num_active_tokens":         {http.MethodGet, []string{"event_id"}, manage.Read, activeTokens},
	"/expired_tokens":            {http.MethodGet, []string{"event_id"}, manage.Read, expiredTokens},
	"/generate_token":            {http.MethodPost, []string{"event_id", "request_id"}, manage.Edit, privateToken},
	"/update_session":            {http.MethodPost, []string{"event_id", "request_id"}, manage.Edit, updateSession},
	"/reset_initial_state":       {http.MethodPost, []string{"event_id"}, manage.Edit, reset},
	"/access_key":                {http.MethodPost, nil, manage.Read, accessKey},
}

// NoEvent answers a request to the private API of an event that there is none of.
func NoEvent(w http.ResponseWriter) { noRoute.send(w, jsonType) }

// ServePrivate serves the private API. Path is the operation with a slash before it. Callers sign their requests
// (Signature Version 4) with an access key of a token, or send the token as a bearer token.
func (b *Bridge) ServePrivate(w http.ResponseWriter, r *http.Request, path string) {
	b.serve(w, r, private[path])
}

// authorize finds out who asks, and whether the caller may. Its answer is none with the status 0.
func (c *call) authorize(needs manage.Permission, body []byte) (no answer) {
	switch authorization := c.Header.Get("Authorization"); {
	case authorization == "":
		return noRoute
	case strings.HasPrefix(authorization, signatureScheme):
		if c.by, no = c.signedBy(body, authorization); no.status != 0 {
			return no
		}
	default:
		var err error
		if c.by, err = api.Authenticate(c.b.cfg.Manager.Authenticate, c.Request, ""); err != nil {
			return invalidToken
		}
	}
	if !c.b.cfg.Manager.MayOperate(c.by, needs, c.roomID) {
		return answer{status: http.StatusForbidden, body: []byte(`{"Message":"User is not authorized to access this resource"}`)}
	}
	return answer{}
}

func increment(c *call) answer {
	n := *c.more.Increment
	switch {
	case !c.isOurs():
		return badEvent
	case n < 0:
		return failure(http.StatusBadRequest, "increment_by must not be negative: the serving counter never goes down")
	case n > manage.MaxAdmitNow:
		return failure(http.StatusBadRequest, "increment_by must be at most "+text(manage.MaxAdmitNow))
	}
	if err := c.b.cfg.Manager.Operated(c.Context(), c.by, "bridge.increment", c.roomID, map[string]int64{"increment_by": n}); err != nil {
		return broken
	}
	now, hold := c.room.Now(), c.room.Settings().PlaceHold
	r, err := c.b.line.change(c.Context(), func(r *record) { r.serve(now, n, hold) })
	if err != nil {
		return broken
	}
	return good(member{"serving_num", r.Serving})
}

func activeTokens(c *call) answer {
	if !c.isOurs() {
		return badEvent
	}
	return good(member{"active_tokens", c.room.Status().ActiveUsers})
}

func expiredTokens(c *call) answer {
	if !c.isOurs() {
		return badEvent
	}
	now := c.room.Now().Std().Unix()
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

func privateToken(c *call) answer {
	return c.generate(cmp.Or(c.more.Issuer, c.b.cfg.Issuer), c.more.Validity)
}

func updateSession(c *call) answer {
	switch {
	case !c.isOurs() || !idShape.MatchString(c.id):
		return badEventOrID
	case c.more.Status == nil || *c.more.Status != 1 && *c.more.Status != -1:
		return failure(http.StatusBadRequest, "status must be 1 (completed) or -1 (abandoned)")
	}
	_, r, ok := c.b.place(c.id)
	id, _ := c.b.keys(r.Generation).ticketID(c.id)
	ended := false
	if ok {
		var err error
		if ended, err = c.room.EndSession(c.Context(), id); err != nil {
			return broken
		}
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if !ended && c.b.issued[c.id] == 0 { // else it has expired before
		return failure(http.StatusNotFound, "Request ID doesn't exist or status already set.")
	}
	delete(c.b.issued, c.id)
	delete(c.b.signed, c.id)
	return good()
}

// reset begins the event anew: earlier request ids are unknown from now on. Sessions last as long as they do.
func reset(c *call) answer {
	if c.isOurs() { // the original answers before it looks
		err := c.b.cfg.Manager.Operated(c.Context(), c.by, "bridge.reset", c.roomID, nil)
		if err == nil {
			_, err = c.b.line.change(c.Context(), func(r *record) { *r = record{Generation: r.Generation + 1} })
		}
		if err != nil {
			return broken
		}
	}
	return good(member{"message", "It may take a minute or two to reset counters and recreate the database. Verify that token table is available and active in DynamoDB before using the waiting room."})
}

// accessKey returns the access key of the token that asks, for clients that sign their requests. It is derived, so there
// is nothing to store, and it ends with the token.
func accessKey(c *call) answer {
	if c.by.Token == "" {
		return failure(http.StatusBadRequest, "a token of the environment has no access key: create a token for the bridge")
	}
	return good(member{"access_key_id", string(c.by.Token)}, member{"secret_access_key", c.b.secretKey(c.by.Token)})
}
