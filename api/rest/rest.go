// Package rest is the published API, /client/v4, over package manage: the 24 operations of waiting rooms, and what
// their clients need besides: zones, accounts, verification of a token, named lists. Official clients work with it
// unmodified.
//
// Each kind of object has one table of its fields (room.go, event.go, rule.go, list.go), which reads bodies and writes
// answers. docs/api.md says what we chose where the published API is silent.
package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// Prefix is where the API lives.
const Prefix = "/client/v4"

// Config configures the API. Everything except Now is required.
type Config struct {
	Manager *manage.Manager
	Now     func() time.Time // the wall clock; nil means time.Now
	Log     *slog.Logger
}

// API is the handlers of the published API. Safe for concurrent use.
type API struct {
	http.Handler // of everything below Prefix
	manage       *manage.Manager
	now          func() time.Time
	previews     previews
	operations   operations
}

// New returns the API.
func New(c Config) *API {
	a := &API{manage: c.Manager, now: c.Now}
	if a.now == nil {
		a.now = time.Now
	}
	a.Handler = api.New(api.Config{Authenticate: c.Manager.Authenticate, Log: c.Log}, a.routes())
	return a
}

func (a *API) routes() []api.Route {
	const (
		zone    = Prefix + "/zones/{zone}"
		rooms   = zone + "/waiting_rooms"
		room    = rooms + "/{room}"
		event   = room + "/events/{event}"
		account = Prefix + "/accounts/{account}"
		lists   = account + "/rules/lists"
		list    = lists + "/{list}"
	)
	routes := []api.Route{
		{Method: "GET", Path: rooms, Do: a.listRooms},
		{Method: "POST", Path: rooms, Do: a.inZone(a.createRoom)},
		{Method: "GET", Path: room, Do: a.getRoom},
		{Method: "PUT", Path: room, Do: a.changeRoom(roomFields.Replace)},
		{Method: "PATCH", Path: room, Do: a.changeRoom(roomFields.Merge)},
		{Method: "DELETE", Path: room, Do: a.deleteRoom},
		{Method: "GET", Path: room + "/status", Do: a.getStatus},

		{Method: "GET", Path: room + "/events", Do: a.listEvents},
		{Method: "POST", Path: room + "/events", Do: a.inZone(a.createEvent)},
		{Method: "GET", Path: event, Do: a.getEvent},
		{Method: "PUT", Path: event, Do: a.changeEvent(eventFields.Replace)},
		{Method: "PATCH", Path: event, Do: a.changeEvent(eventFields.Merge)},
		{Method: "DELETE", Path: event, Do: a.deleteEvent},
		{Method: "GET", Path: event + "/details", Do: a.getEventDetails},

		{Method: "GET", Path: room + "/rules", Do: a.listRules},
		{Method: "POST", Path: room + "/rules", Do: withBody(a.createRule)},
		{Method: "PUT", Path: room + "/rules", Do: a.replaceRules},
		{Method: "PATCH", Path: room + "/rules/{rule}", Do: withBody(a.changeRule)},
		{Method: "DELETE", Path: room + "/rules/{rule}", Do: a.deleteRule},

		{Method: "GET", Path: rooms + "/settings", Do: a.getSettings},
		{Method: "PUT", Path: rooms + "/settings", Do: a.changeSettings(settingFields.Replace)},
		{Method: "PATCH", Path: rooms + "/settings", Do: a.changeSettings(settingFields.Merge)},
		{Method: "POST", Path: rooms + "/preview", Do: a.createPreview},

		{Method: "GET", Path: Prefix + "/zones", Do: a.listZones},
		{Method: "POST", Path: Prefix + "/zones", Do: withBody(a.createZone)},
		{Method: "GET", Path: zone, Do: a.getZone},
		{Method: "DELETE", Path: zone, Do: a.deleteZone},

		{Method: "GET", Path: Prefix + "/user/tokens/verify", Do: a.verifyToken},
		{Method: "GET", Path: Prefix + "/accounts", Do: a.listAccounts},
		{Method: "GET", Path: account, Do: a.inAccount(a.getAccount)},
		{Method: "GET", Path: account + "/tokens/verify", Do: a.inAccount(a.verifyToken)},
		{Method: "GET", Path: account + "/waiting_rooms", Do: a.inAccount(a.listAllRooms)},

		{Method: "GET", Path: lists, Do: a.inAccount(a.listLists)},
		{Method: "POST", Path: lists, Do: a.inAccount(withBody(a.createList))},
		{Method: "GET", Path: list, Do: a.inAccount(a.getList)},
		{Method: "PUT", Path: list, Do: a.inAccount(withBody(a.changeList))},
		{Method: "DELETE", Path: list, Do: a.inAccount(a.deleteList)},
		{Method: "GET", Path: list + "/items", Do: a.inAccount(a.listItems)},
		{Method: "POST", Path: list + "/items", Do: a.inAccount(a.addItems)},
		{Method: "PUT", Path: list + "/items", Do: a.inAccount(a.replaceItems)},
		{Method: "DELETE", Path: list + "/items", Do: a.inAccount(withBody(a.deleteItems))},
		{Method: "GET", Path: list + "/items/{item}", Do: a.inAccount(a.getItem)},
		{Method: "GET", Path: lists + "/bulk_operations/{operation}", Do: a.inAccount(a.getOperation)},
	}
	return routes
}

// tagOf returns the entity tag of an object whose JSON form changes only with the object.
func tagOf(form any) string {
	text, err := json.Marshal(form, json.Deterministic(true))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// stamp writes a moment of ours; null when there is none, as for what a file defines.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// operation is what a route does.
type operation = func(*api.Request) (api.Answer, error)

// page returns what answers with the asked-for part of a list, in its JSON form.
func page[T any](r *api.Request, form func(*T) api.Members) func(all []T, err error) (api.Answer, error) {
	return func(all []T, err error) (api.Answer, error) {
		if err != nil {
			return api.Answer{}, err
		}
		p, err := api.PageOf(r.Query)
		if err != nil {
			return api.Answer{}, err
		}
		part, info := api.Part(all, p)
		out := make([]api.Members, len(part))
		for i := range part {
			out[i] = form(&part[i])
		}
		return api.Answer{Result: out, Info: info}, nil
	}
}

// withBody is an operation with an object as its body.
func withBody(do func(*api.Request, api.Object) (api.Answer, error)) operation {
	return func(r *api.Request) (api.Answer, error) {
		o, err := r.Object()
		if err != nil {
			return api.Answer{}, err
		}
		return do(r, o)
	}
}

// inZone is an operation with an object as its body in the zone that the path names.
func (a *API) inZone(do func(*api.Request, anteroom.ZoneID, api.Object) (api.Answer, error)) operation {
	return func(r *api.Request) (api.Answer, error) {
		z, err := a.zoneOf(r)
		if err != nil {
			return api.Answer{}, err
		}
		return withBody(func(r *api.Request, o api.Object) (api.Answer, error) { return do(r, z.ID, o) })(r)
	}
}

// matched is a change that is only made to the state that the request names, if it names one.
func matched[T any](r *api.Request, tag func(*T) string, change func(*T, api.Object) error, o api.Object) func(*T) error {
	return func(t *T) error {
		if err := r.Match(tag(t)); err != nil {
			return err
		}
		return change(t, o)
	}
}

// remove deletes an object that was looked up, or answers with the error of that. It is only deleted in the state that the request
// names, if it names one.
func remove[T any](r *api.Request, id string, err error, tag func(*T) string, do func(sure func(*T) error) error) (api.Answer, error) {
	if err == nil {
		err = do(func(t *T) error { return r.Match(tag(t)) })
	}
	if err != nil {
		return api.Answer{}, err
	}
	return deleted(id), nil
}

// deleted is the result of a deletion.
func deleted(id string) api.Answer { return api.Answer{Result: api.Members{{Name: "id", Value: id}}} }

// zoneOf returns the zone that the path names.
func (a *API) zoneOf(r *api.Request) (anteroom.Zone, error) {
	z, err := a.manage.Zone(r.By, anteroom.ZoneID(r.PathValue("zone")))
	if anteroom.KindOf(err) == anteroom.NotFound {
		return z, noZone(r)
	}
	return z, err
}

func noZone(r *api.Request) error {
	return api.Refuse(http.StatusNotFound, api.CodeNoZone, fmt.Sprintf("Could not route to %.200s, perhaps your object identifier is invalid?", r.URL.Path[len(Prefix):]))
}
