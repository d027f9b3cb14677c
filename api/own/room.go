package own

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// shownRoom is a room in short: where it is, what it covers, what is in force.
func (f *face) shownRoom(r anteroom.Room) api.Members {
	s := f.manage.State()
	zone, _ := s.ZoneNamed(r.Zone)
	served := s.Room(r.ID)
	routes := make([]api.Members, len(r.Routes))
	for i, rt := range r.Routes {
		routes[i] = api.Members{{Name: "host", Value: rt.Host}, {Name: "path", Value: rt.Path}}
	}
	return api.Members{
		{Name: "id", Value: r.ID}, {Name: "name", Value: r.Name},
		{Name: "zone", Value: api.Members{{Name: "id", Value: zone.ID}, {Name: "name", Value: r.Zone}}},
		{Name: "file", Value: served != nil && served.File}, {Name: "routes", Value: routes},
		{Name: "total_active_users", Value: r.TotalActiveUsers}, {Name: "new_users_per_minute", Value: r.NewUsersPerMinute},
		{Name: "queueing_method", Value: r.QueueingMethod}, {Name: "queue_all", Value: r.QueueAll}, {Name: "suspended", Value: r.Suspended},
		{Name: "controls", Value: shownControls(r.Controls)}, {Name: "events", Value: len(r.Events)}, {Name: "rules", Value: len(r.Rules)},
	}
}

func shownControls(c anteroom.Controls) api.Members {
	return api.Members{{Name: "paused", Value: c.Paused}, {Name: "draining", Value: c.Draining}, {Name: "reset_at", Value: roomMoment(c.ResetAt)},
		{Name: "message", Value: optional(c.Message)}}
}

// putMessage sets what the waiting page says to everybody in line.
func (f *face) putMessage(r *api.Request) (api.Answer, error) {
	o, err := body(r, "text")
	if err != nil {
		return api.Answer{}, err
	}
	text, err := o.Get("text").Text()
	if err != nil {
		return api.Answer{}, err
	}
	if text = strings.TrimSpace(text); text == "" {
		return api.Answer{}, api.Invalid("text", "is missing", "one line of plain text; DELETE takes the message away")
	}
	a, err := f.control(func(c *anteroom.Controls) { c.Message = text })(r)
	return a, api.Rename(err, func(string) string { return "text" })
}

// listRooms knows the filters zone and name, by which a person names a room, and id.
func (f *face) listRooms(r *api.Request) (api.Answer, error) {
	all, err := f.manage.Rooms(r.By, "")
	if err != nil {
		return api.Answer{}, err
	}
	is := func(parameter, value string) bool {
		return !r.Query.Has(parameter) || r.Query.Get(parameter) == value
	}
	all = slices.DeleteFunc(all, func(one anteroom.Room) bool {
		return !is("zone", one.Zone) || !is("name", one.Name) || !is("id", string(one.ID))
	})
	return part(r, all, f.shownRoom)
}

func (f *face) room(r *api.Request) (anteroom.Room, error) {
	return f.manage.Room(r.By, zoneID(r), roomID(r))
}

func (f *face) getRoom(r *api.Request) (api.Answer, error) {
	room, err := f.room(r)
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: f.shownRoom(room)}, nil
}

func (f *face) getStatus(r *api.Request) (api.Answer, error) {
	st, err := f.manage.Status(r.By, zoneID(r), roomID(r))
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: shownStatus(st)}, nil
}

// shownStatus is the live numbers of a room. Durations are in seconds.
func shownStatus(st anteroom.Status) api.Members {
	var wait any
	if st.WaitKnown {
		wait = st.WaitOfNewcomer.Seconds()
	}
	return api.Members{
		{Name: "room_id", Value: st.Room}, {Name: "at", Value: roomMoment(st.At)}, {Name: "mode", Value: st.Mode},
		{Name: "active_users", Value: st.ActiveUsers}, {Name: "total_active_users", Value: st.TotalActiveUsers},
		{Name: "admitted_last_minute", Value: st.AdmittedLastMin}, {Name: "new_users_per_minute", Value: st.NewPerMinute},
		{Name: "waiting", Value: st.Waiting}, {Name: "dormant", Value: st.Dormant}, {Name: "offered", Value: st.Offered},
		{Name: "streams", Value: st.Streams}, {Name: "oldest_waiting_since", Value: roomMoment(st.OldestWaiting)},
		{Name: "wait_of_newcomer_seconds", Value: wait}, {Name: "in_force", Value: shownInForce(st.InForce)},
	}
}

// shownInForce is what a room is at the moment; null while nobody has said.
func shownInForce(in *anteroom.InForce) any {
	if in == nil {
		return nil
	}
	var event any
	if in.Event != nil {
		event = api.Members{
			{Name: "id", Value: in.Event.ID}, {Name: "name", Value: in.Event.Name}, {Name: "occurrence", Value: in.Number},
			{Name: "prequeue", Value: moment(in.Prequeue)}, {Name: "start", Value: moment(in.Start)}, {Name: "end", Value: moment(in.End)},
		}
	}
	return api.Members{
		{Name: "phase", Value: in.Phase.String()}, {Name: "event", Value: event}, {Name: "until", Value: roomMoment(in.Until)},
		{Name: "queueing_method", Value: in.QueueingMethod}, {Name: "queue_all", Value: in.QueueAll}, {Name: "draining", Value: in.Draining},
		{Name: "suspended", Value: in.Suspended}, {Name: "session_duration_seconds", Value: in.SessionDuration.Seconds()},
		{Name: "disable_session_renewal", Value: in.DisableSessionRenewal}, {Name: "message", Value: optional(in.Message)},
	}
}

// isReference reports whether a text is what a visitor can read on the page, or a whole id.
func isReference(s string) bool {
	a, b, short := strings.Cut(s, "-")
	return (short && len(a) == 5 && len(b) == 5 || !short && len(s) == 32) && strings.Trim(s, "0123456789abcdef-") == ""
}

func (f *face) findVisitors(r *api.Request) (api.Answer, error) {
	reference := strings.ToLower(r.Param("reference"))
	if !isReference(reference) {
		return api.Answer{}, api.Invalid("reference", "is not the code of a visitor", "two groups of five hexadecimal digits, like 3f9a1-c07be, or an id of 32")
	}
	found, err := f.manage.Find(r.Context(), r.By, zoneID(r), roomID(r), reference)
	if err != nil {
		return api.Answer{}, err
	}
	if len(found) == 0 {
		return api.Answer{}, api.Refuse(http.StatusNotFound, api.CodeNotFound, "No visitor with the code "+reference+" has a place or a session: it has expired, or belongs to another room")
	}
	out := make([]api.Members, len(found))
	for i, v := range found {
		out[i] = shownVisitor(v)
	}
	return api.Answer{Result: out}, nil
}

func shownVisitor(v manage.Visitor) api.Members {
	var ahead any
	if v.AheadKnown {
		ahead = v.Ahead
	}
	return api.Members{
		{Name: "id", Value: hex.EncodeToString(v.ID[:])}, {Name: "reference", Value: v.Reference}, {Name: "standing", Value: v.Standing},
		{Name: "arrived_at", Value: roomMoment(v.Arrival)}, {Name: "accepted_at", Value: roomMoment(v.AcceptedAt)},
		{Name: "last_seen_at", Value: roomMoment(v.LastSeen)}, {Name: "ahead", Value: ahead},
	}
}

func (f *face) revokeSession(r *api.Request) (api.Answer, error) {
	text := r.Param("session")
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(anteroom.ID{}) {
		return api.Answer{}, api.Invalid("session", "is not the id of a session", "32 hexadecimal digits; a look-up by the visitor's code tells it")
	}
	ended, err := f.manage.Revoke(r.Context(), r.By, zoneID(r), roomID(r), anteroom.ID(b))
	if err != nil {
		return api.Answer{}, err
	}
	if !ended {
		return api.Answer{}, api.Refuse(http.StatusNotFound, api.CodeNotFound, "No visitor with this id has a session in the room")
	}
	return deleted(strings.ToLower(text)), nil
}

func (f *face) admit(r *api.Request) (api.Answer, error) {
	o, err := body(r, "count")
	if err != nil {
		return api.Answer{}, err
	}
	n, err := o.Get("count").Int()
	if err != nil {
		return api.Answer{}, err
	}
	admitted, err := f.manage.AdmitNow(r.Context(), r.By, zoneID(r), roomID(r), n)
	return api.Answer{Result: api.Members{{Name: "admitted", Value: admitted}}}, err
}

// control makes an operation that changes the operator's hand on a room.
func (f *face) control(change func(*anteroom.Controls)) func(*api.Request) (api.Answer, error) {
	return func(r *api.Request) (api.Answer, error) {
		c, err := f.manage.ChangeControls(r.Context(), r.By, zoneID(r), roomID(r), func(c *anteroom.Controls) error {
			change(c)
			return nil
		})
		return api.Answer{Result: shownControls(c)}, err
	}
}

// reset takes all places in line away. The body names the room once more, so that a slip in
// the path harms nobody.
func (f *face) reset(r *api.Request) (api.Answer, error) {
	room, err := f.room(r)
	if err != nil {
		return api.Answer{}, err
	}
	o, err := body(r, "confirm")
	if err != nil {
		return api.Answer{}, err
	}
	confirm, err := o.Get("confirm").Text()
	if err != nil {
		return api.Answer{}, err
	}
	if confirm != room.Name {
		return api.Answer{}, api.Invalid("confirm", "does not name the room", fmt.Sprintf("%q, if all places of that line shall be void", room.Name))
	}
	// The door's own clock: places are compared with it, and the wall clock may have been set.
	at := anteroom.TimeOf(f.now())
	if st, err := f.manage.Status(r.By, zoneID(r), roomID(r)); err == nil && st.At != 0 {
		at = st.At.Add(time.Microsecond)
	}
	return f.control(func(c *anteroom.Controls) { c.ResetAt = max(c.ResetAt, at) })(r)
}
