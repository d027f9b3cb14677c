package rest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// roomFields are a room's members. Zero values stand for defaults, which shownRoom fills in.
var roomFields = api.Fields[anteroom.Room]{
	{Name: "id", Get: func(r *anteroom.Room) any { return r.ID }},
	{Name: "created_on", Get: func(r *anteroom.Room) any { return stamp(r.CreatedOn) }},
	{Name: "modified_on", Get: func(r *anteroom.Room) any { return stamp(r.ModifiedOn) }},
	required(text("name", func(r *anteroom.Room) *string { return &r.Name })),
	text("description", func(r *anteroom.Room) *string { return &r.Description }),
	{Name: "host", Required: true,
		Get: func(r *anteroom.Room) any { return r.Routes[0].Host },
		Set: func(r *anteroom.Room, v api.Value) (err error) {
			primary(r).Host, err = hostOf(v)
			return err
		}},
	{Name: "path",
		Get:   func(r *anteroom.Room) any { return r.Routes[0].Path },
		Reset: func(r *anteroom.Room) { primary(r).Path = "" },
		Set: func(r *anteroom.Room, v api.Value) (err error) {
			primary(r).Path, err = v.Text()
			return err
		}},
	{Name: "additional_routes",
		Get: func(r *anteroom.Room) any {
			out := []api.Members{}
			for _, rt := range r.Routes[1:] {
				out = append(out, api.Members{{Name: "host", Value: rt.Host}, {Name: "path", Value: rt.Path}})
			}
			return out
		},
		Reset: func(r *anteroom.Room) { primary(r); r.Routes = r.Routes[:1] },
		Set:   setAdditionalRoutes},
	text("cookie_suffix", func(r *anteroom.Room) *string { return &r.CookieSuffix }),
	{Name: "cookie_attributes",
		Get:   func(r *anteroom.Room) any { return cookieFields.Of(&r.CookieAttributes) },
		Reset: func(r *anteroom.Room) { r.CookieAttributes = anteroom.CookieAttributes{} },
		Set: func(r *anteroom.Room, v api.Value) error {
			o, err := v.Object()
			if err != nil {
				return err
			}
			return cookieFields.Merge(&r.CookieAttributes, o)
		}},
	required(number("total_active_users", func(r *anteroom.Room) *int { return &r.TotalActiveUsers })),
	required(number("new_users_per_minute", func(r *anteroom.Room) *int { return &r.NewUsersPerMinute })),
	{Name: "session_duration",
		Get:   func(r *anteroom.Room) any { return minutes(r.SessionDuration) },
		Reset: func(r *anteroom.Room) { r.SessionDuration = 0 },
		Set: func(r *anteroom.Room, v api.Value) (err error) {
			r.SessionDuration, err = minutesOf(v)
			return err
		}},
	flag("disable_session_renewal", func(r *anteroom.Room) *bool { return &r.DisableSessionRenewal }),
	{Name: "queueing_method",
		Get:   func(r *anteroom.Room) any { return r.QueueingMethod },
		Reset: func(r *anteroom.Room) { r.QueueingMethod = "" },
		Set: func(r *anteroom.Room, v api.Value) (err error) {
			r.QueueingMethod, err = methodOf(v)
			return err
		}},
	number("queueing_status_code", func(r *anteroom.Room) *int { return &r.QueueingStatusCode }),
	flag("queue_all", func(r *anteroom.Room) *bool { return &r.QueueAll }),
	flag("suspended", func(r *anteroom.Room) *bool { return &r.Suspended }),
	text("custom_page_html", func(r *anteroom.Room) *string { return &r.CustomPageHTML }),
	text("default_template_language", func(r *anteroom.Room) *string { return &r.DefaultTemplateLanguage }),
	flag("json_response_enabled", func(r *anteroom.Room) *bool { return &r.JSONResponse }),
	{Name: "enabled_origin_commands",
		Get:   func(r *anteroom.Room) any { return r.EnabledOriginCommands },
		Reset: func(r *anteroom.Room) { r.EnabledOriginCommands = nil },
		Set:   setOriginCommands},
	text("turnstile_mode", func(r *anteroom.Room) *string { return &r.TurnstileMode }),
	text("turnstile_action", func(r *anteroom.Room) *string { return &r.TurnstileAction }),

	// Ours. Clients that do not know them do not undo them: a replacement keeps what it does
	// not name.
	kept(duration("refresh", func(r *anteroom.Room) *time.Duration { return &r.Refresh })),
	kept(flag("unpaced", func(r *anteroom.Room) *bool { return &r.Unpaced })),
	kept(duration("place_hold", func(r *anteroom.Room) *time.Duration { return &r.PlaceHold })),
	kept(text("bind", func(r *anteroom.Room) *string { return &r.Bind })),
}

var cookieFields = api.Fields[anteroom.CookieAttributes]{
	text("samesite", func(c *anteroom.CookieAttributes) *string { return &c.SameSite }),
	text("secure", func(c *anteroom.CookieAttributes) *string { return &c.Secure }),
}

// primary returns the first route of a room, the one with host and path. The routes become
// the room's own: they may have been shared with what is in force.
func primary(r *anteroom.Room) *anteroom.Route {
	r.Routes = slices.Clone(r.Routes)
	if len(r.Routes) == 0 {
		r.Routes = []anteroom.Route{{}}
	}
	return &r.Routes[0]
}

func hostOf(v api.Value) (string, error) {
	host, err := v.Text()
	return strings.ToLower(host), err
}

func setAdditionalRoutes(r *anteroom.Room, v api.Value) error {
	list, err := v.Array(anteroom.MaxRoutesPerRoom)
	if err != nil {
		return err
	}
	routes := []anteroom.Route{*primary(r)}
	for _, one := range list {
		o, err := one.Object()
		if err != nil {
			return err
		}
		var rt anteroom.Route
		if rt.Host, err = hostOf(o.Get("host")); err != nil {
			return err
		}
		if rt.Path, err = o.Get("path").Text(); err != nil {
			return err
		}
		routes = append(routes, rt)
	}
	r.Routes = routes
	return nil
}

func setOriginCommands(r *anteroom.Room, v api.Value) error {
	const most = 10 // there is one
	list, err := v.Array(most)
	if err != nil {
		return err
	}
	var commands []string
	for _, one := range list {
		command, err := one.Text()
		if err != nil {
			return err
		}
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	r.EnabledOriginCommands = commands
	return nil
}

// minutes shows a session's duration in whole minutes, as published. What a file says in
// seconds is rounded up.
func minutes(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

func minutesOf(v api.Value) (time.Duration, error) {
	n, err := v.Int()
	if err != nil || v.Empty() {
		return 0, err
	}
	if most := minutes(anteroom.MaxSessionDuration); n < 0 || n > most {
		return 0, v.Fault(fmt.Sprintf("%d is out of range", n), fmt.Sprintf("1 to %d minutes", most))
	}
	return time.Duration(n) * time.Minute, nil
}

func methodOf(v api.Value) (anteroom.QueueingMethod, error) {
	s, err := v.Text()
	return anteroom.QueueingMethod(strings.ToLower(s)), err
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
	rooms, err := a.manage.Rooms(r.By, z.ID)
	if err != nil {
		return api.Answer{}, err
	}
	return page(r, rooms, a.shownRoom)
}

func (a *API) listAllRooms(r *api.Request) (api.Answer, error) {
	rooms, err := a.manage.Rooms(r.By, "")
	if err != nil {
		return api.Answer{}, err
	}
	return page(r, rooms, a.shownRoom)
}

func (a *API) createRoom(r *api.Request) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	o, err := r.Object()
	if err != nil {
		return api.Answer{}, err
	}
	var room anteroom.Room
	if err := roomFields.Replace(&room, o); err != nil {
		return api.Answer{}, err
	}
	return a.oneRoom(a.manage.CreateRoom(r.Context(), r.By, z.ID, room))
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

func roomID(r *api.Request) anteroom.RoomID { return anteroom.RoomID(r.Param("room")) }

func (a *API) changeRoom(write func(*anteroom.Room, api.Object) error) func(*api.Request) (api.Answer, error) {
	return func(r *api.Request) (api.Answer, error) {
		z, err := a.zoneOf(r)
		if err != nil {
			return api.Answer{}, err
		}
		o, err := r.Object()
		if err != nil {
			return api.Answer{}, err
		}
		return a.oneRoom(a.manage.ChangeRoom(r.Context(), r.By, z.ID, roomID(r), func(room *anteroom.Room) error {
			if err := r.Match(roomTag(room)); err != nil {
				return err
			}
			return write(room, o)
		}))
	}
}

func (a *API) deleteRoom(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	if err := r.Match(roomTag(&room)); err != nil {
		return api.Answer{}, err
	}
	if err := a.manage.DeleteRoom(r.Context(), r.By, anteroom.ZoneID(r.Param("zone")), room.ID); err != nil {
		return api.Answer{}, err
	}
	return deleted(string(room.ID)), nil
}
