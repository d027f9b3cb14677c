package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/field"
)

// roomFields are a room's members. Zero values stand for defaults, which shownRoom fills in.
var roomFields = func() api.Fields[anteroom.Room] {
	out := api.Fields[anteroom.Room]{
		{Name: "id", Get: func(r *anteroom.Room) any { return r.ID }},
		{Name: "created_on", Get: func(r *anteroom.Room) any { return stamp(r.CreatedOn) }},
		{Name: "modified_on", Get: func(r *anteroom.Room) any { return stamp(r.ModifiedOn) }},
	}
	covers := members[anteroom.Coverage](field.Of(reflect.TypeFor[anteroom.Coverage]()))
	for _, f := range anteroom.RoomFields() {
		if i := slices.IndexFunc(covers, func(c api.Field[anteroom.Coverage]) bool { return c.Name == f.Key }); i >= 0 {
			out = append(out, ofCoverage(covers[i]))
			continue
		}
		out = append(out, member[anteroom.Room](f))
	}
	return out
}()

// ofCoverage makes a member of a room's coverage one of the room. The routes become the room's
// own: they may have been shared with what is in force.
func ofCoverage(f api.Field[anteroom.Coverage]) api.Field[anteroom.Room] {
	through := func(r *anteroom.Room, do func(*anteroom.Coverage) error) error {
		c := r.Coverage()
		err := do(&c)
		r.Routes = c.AsRoutes()
		for i := range r.Routes {
			r.Routes[i].Host = strings.ToLower(r.Routes[i].Host)
		}
		return err
	}
	out := api.Field[anteroom.Room]{Name: f.Name, Required: f.Required,
		Get: func(r *anteroom.Room) any { c := r.Coverage(); return f.Get(&c) },
		Set: func(r *anteroom.Room, v api.Value) error {
			return through(r, func(c *anteroom.Coverage) error { return f.Set(c, v) })
		}}
	if f.Reset != nil {
		out.Reset = func(r *anteroom.Room) {
			through(r, func(c *anteroom.Coverage) error { f.Reset(c); return nil })
		}
	}
	return out
}

// shownRoom is a room's JSON form.
func (a *API) shownRoom(r *anteroom.Room) api.Members {
	full := r.WithDefaults()
	start, prequeue := nextEvent(r, a.now())
	return append(roomFields.Of(&full),
		api.Member{Name: "next_event_prequeue_start_time", Value: prequeue},
		api.Member{Name: "next_event_start_time", Value: start})
}

// nextEvent returns when the event that runs, or else comes next, starts and begins to hold:
// null where there is none.
func nextEvent(r *anteroom.Room, now time.Time) (start, prequeue any) {
	e, o := r.NextEvent(now)
	switch {
	case e == nil:
		return nil, nil
	case o.Number == 0: // as it was written
		if e.Prequeue != "" {
			prequeue = string(e.Prequeue)
		}
		return string(e.Start), prequeue
	case !o.Prequeue.IsZero():
		prequeue = string(anteroom.StampOf(o.Prequeue))
	}
	return string(anteroom.StampOf(o.Start)), prequeue
}

func roomTag(r *anteroom.Room) string { return `"` + strconv.FormatUint(r.Revision, 10) + `"` }

func (a *API) oneRoom(r anteroom.Room, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, api.Rename(err, inRoom)
	}
	return api.Answer{Result: a.shownRoom(&r), ETag: roomTag(&r)}, nil
}

// inRoom is the name that a field of a room has in its JSON form.
func inRoom(path string) string {
	if path == "routes" {
		return "additional_routes"
	}
	n, field, ok := indexed("routes", path)
	switch {
	case !ok:
		return path
	case n > 0:
		return strings.TrimSuffix(fmt.Sprintf("additional_routes[%d].%s", n-1, field), ".")
	case field == "":
		return "host"
	}
	return field
}

// indexed takes "list[index]." from the beginning of a path.
func indexed(list, path string) (index int, field string, ok bool) {
	rest, ok := strings.CutPrefix(path, list+"[")
	number, field, ok2 := strings.Cut(rest, "]")
	index, err := strconv.Atoi(number)
	return index, strings.TrimPrefix(field, "."), ok && ok2 && err == nil
}

func (a *API) listRooms(r *api.Request) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	return page(r, a.shownRoom)(a.manage.Rooms(r.By, z.ID))
}

func (a *API) listAllRooms(r *api.Request) (api.Answer, error) {
	return page(r, a.shownRoom)(a.manage.Rooms(r.By, ""))
}

func (a *API) createRoom(r *api.Request, zone anteroom.ZoneID, o api.Object) (api.Answer, error) {
	var room anteroom.Room
	if err := roomFields.Replace(&room, o); err != nil {
		return api.Answer{}, err
	}
	return a.oneRoom(a.manage.CreateRoom(r.Context(), r.By, zone, room))
}

func (a *API) getRoom(r *api.Request) (api.Answer, error) {
	return a.oneRoom(a.roomOf(r))
}

// roomOf returns the room that the path names.
func (a *API) roomOf(r *api.Request) (anteroom.Room, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return anteroom.Room{}, err
	}
	return a.manage.Room(r.By, z.ID, roomID(r))
}

func roomID(r *api.Request) anteroom.RoomID { return anteroom.RoomID(r.PathValue("room")) }

func (a *API) changeRoom(write func(*anteroom.Room, api.Object) error) operation {
	return a.inZone(func(r *api.Request, zone anteroom.ZoneID, o api.Object) (api.Answer, error) {
		return a.oneRoom(a.manage.ChangeRoom(r.Context(), r.By, zone, roomID(r), matched(r, roomTag, write, o)))
	})
}

func (a *API) deleteRoom(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	return remove(r, string(room.ID), err, roomTag, func(sure func(*anteroom.Room) error) error {
		return a.manage.DeleteRoom(r.Context(), r.By, anteroom.ZoneID(r.PathValue("zone")), room.ID, sure)
	})
}
