package own

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// shownRoom is a room in short: where it is, what it covers, what is in force.
func (f *face) shownRoom(r anteroom.Room) schema.Room {
	s := f.manage.State()
	zone, _ := s.ZoneNamed(r.Zone)
	served := s.Room(r.ID)
	routes := make([]schema.Route, len(r.Routes))
	for i, rt := range r.Routes {
		routes[i] = schema.Route{Host: rt.Host, Path: rt.Path}
	}
	return schema.Room{ID: r.ID, Name: r.Name, Zone: schema.ZoneName{ID: zone.ID, Name: r.Zone}, File: served != nil && served.File, Routes: routes,
		TotalActiveUsers: r.TotalActiveUsers, NewUsersPerMinute: r.NewUsersPerMinute, QueueingMethod: r.QueueingMethod, QueueAll: r.QueueAll,
		Suspended: r.Suspended, Shadow: r.Shadow, LotteryPercent: r.LotteryPercent, Controls: shownControls(r.Controls), Events: len(r.Events), Rules: len(r.Rules)}
}

func shownControls(c anteroom.Controls) schema.Controls {
	out := schema.Controls{Paused: c.Paused, Draining: c.Draining, ResetAt: roomMoment(c.ResetAt), Message: schema.Optional(c.Message)}
	if c.Remaining.Told {
		out.Remaining = &c.Remaining.Count
	}
	return out
}

// sendCrowd sends simulated visitors to a room.
func (f *face) sendCrowd(r *api.Request, b schema.Crowd) (schema.CrowdStatus, error) {
	s, err := f.manage.SendCrowd(r.Context(), r.By, zoneID(r), roomID(r), manage.Crowd{Visitors: b.Visitors, Over: time.Duration(b.OverSeconds) * time.Second})
	return shownCrowd(s), err
}

// crowd makes an operation that returns how the crowd of a room does.
func (f *face) crowd(do func(by manage.Caller, zone anteroom.ZoneID, room anteroom.RoomID) (manage.CrowdStatus, error)) func(*api.Request) (schema.CrowdStatus, error) {
	return func(r *api.Request) (schema.CrowdStatus, error) {
		s, err := do(r.By, zoneID(r), roomID(r))
		return shownCrowd(s), err
	}
}

func shownCrowd(s manage.CrowdStatus) schema.CrowdStatus {
	return schema.CrowdStatus{Visitors: s.Visitors, OverSeconds: int(s.Over / time.Second), BeganAt: moment(s.Began), EndedAt: moment(s.Ended), Arrived: s.Arrived,
		Waiting: s.Waiting, Active: s.Active, Admitted: s.Admitted, GaveUp: s.GaveUp, Failed: s.Failed, Failure: schema.Optional(s.Failure)}
}

// putRemaining sets how many are left of what visitors wait for.
func (f *face) putRemaining(r *api.Request, b schema.Left) (schema.Controls, error) {
	return f.control(func(c *anteroom.Controls) { c.Remaining = anteroom.Remaining{Told: true, Count: b.Remaining} })(r)
}

// countSold takes from it.
func (f *face) countSold(r *api.Request, b schema.Sold) (schema.Controls, error) {
	if b.Sold < 1 || b.Sold > anteroom.MaxRemaining {
		return schema.Controls{}, api.Invalid("sold", fmt.Sprintf("is %d", b.Sold), fmt.Sprintf("1 to %d", anteroom.MaxRemaining))
	}
	c, err := f.manage.ChangeControls(r.Context(), r.By, zoneID(r), roomID(r), func(c *anteroom.Controls) error {
		if !c.Remaining.Told {
			return api.Invalid("sold", "cannot be subtracted: the number of items left is not set", "set the number with PUT first")
		}
		c.Remaining.Count = max(0, c.Remaining.Count-b.Sold)
		return nil
	})
	return shownControls(c), err
}

// putMessage sets what the waiting page says to everybody in line.
func (f *face) putMessage(r *api.Request, b schema.PageMessage) (schema.Controls, error) {
	text := strings.TrimSpace(b.Text)
	if text == "" {
		return schema.Controls{}, api.Invalid("text", "is missing", "one line of plain text; DELETE removes the message")
	}
	c, err := f.control(func(c *anteroom.Controls) { c.Message = text })(r)
	return c, api.Rename(err, func(string) string { return "text" })
}

// listRooms knows the filters zone and name, by which a person names a room, and id.
func (f *face) listRooms(r *api.Request) ([]anteroom.Room, func(anteroom.Room) schema.Room, error) {
	all, err := f.manage.Rooms(r.By, "")
	is := func(parameter, value string) bool {
		return !r.Query.Has(parameter) || r.Query.Get(parameter) == value
	}
	all = slices.DeleteFunc(all, func(one anteroom.Room) bool {
		return !is("zone", one.Zone) || !is("name", one.Name) || !is("id", string(one.ID))
	})
	return all, f.shownRoom, err
}

func (f *face) room(r *api.Request) (anteroom.Room, error) {
	return f.manage.Room(r.By, zoneID(r), roomID(r))
}

func (f *face) getRoom(r *api.Request) (schema.Room, error) {
	room, err := f.room(r)
	return f.shownRoom(room), err
}

func (f *face) getStatus(r *api.Request) (schema.Status, error) {
	st, err := f.manage.Status(r.By, zoneID(r), roomID(r))
	return shownStatus(st), err
}

// shownStatus is the live numbers of a room. Durations are in seconds.
func shownStatus(st anteroom.Status) schema.Status {
	return schema.Status{RoomID: st.Room, At: roomMoment(st.At), Mode: st.Mode, ActiveUsers: st.ActiveUsers, TotalActiveUsers: st.TotalActiveUsers,
		AdmittedLastMinute: st.AdmittedLastMin, NewUsersPerMinute: st.NewPerMinute, Waiting: st.Waiting, Dormant: st.Dormant, Offered: st.Offered,
		PacePerMinute: st.Pace, PaceReason: schema.Optional(string(st.PaceReason)),
		WaitOfNewcomer: secondsOf(st.WaitOfNewcomer, st.WaitKnown), WaitAtLeast: secondsOf(st.WaitAtLeast, st.WaitAtLeast > 0), WaitAtMost: secondsOf(st.WaitAtMost, st.WaitAtMost > 0),
		Streams: st.Streams, OldestWaitingSince: roomMoment(st.OldestWaiting), Lanes: shownLanes(&st), InForce: shownInForce(st.InForce)}
}

// shownLanes are the lanes of a room, with what the settings in force say of each. Nobody has counted those of a room without visitors.
func shownLanes(st *anteroom.Status) []schema.LaneStatus {
	var set []anteroom.Lane
	if st.InForce != nil && st.InForce.Lanes != nil {
		set = st.InForce.Lanes.List
	}
	lanes := st.Lanes
	if len(lanes) == 0 {
		for _, l := range set {
			lanes = append(lanes, anteroom.LaneStatus{Name: l.Name, Priority: l.Priority, WaitKnown: st.WaitKnown, WaitOfNewcomer: st.WaitOfNewcomer})
		}
		slices.SortFunc(lanes, func(a, b anteroom.LaneStatus) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	out := make([]schema.LaneStatus, len(lanes))
	for i, l := range lanes {
		out[i] = schema.LaneStatus{Name: schema.Optional(l.Name), Priority: l.Priority, Waiting: l.Waiting, ActiveUsers: l.ActiveUsers, WaitOfNewcomer: secondsOf(l.WaitOfNewcomer, l.WaitKnown)}
		for _, of := range set {
			if of.Priority == l.Priority {
				out[i].Share, out[i].Reserved = of.Share, of.Reserved
			}
		}
	}
	return out
}

// secondsOf is a duration, or nothing.
func secondsOf(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	return new(d.Seconds())
}

// shownInForce is what a room is at the moment; nil while nobody has said.
func shownInForce(in *anteroom.InForce) *schema.InForce {
	if in == nil {
		return nil
	}
	out := &schema.InForce{Phase: in.Phase.String(), Until: roomMoment(in.Until), QueueingMethod: in.QueueingMethod, QueueAll: in.QueueAll, Draining: in.Draining,
		Suspended: in.Suspended, SessionDurationSeconds: in.SessionDuration.Seconds(), DisableSessionRenewal: in.DisableSessionRenewal, Message: schema.Optional(in.Message)}
	if in.Event != nil {
		out.Event = &schema.ActiveEvent{ID: in.Event.ID, Name: in.Event.Name, Occurrence: in.Number,
			Prequeue: moment(in.Prequeue), Start: in.Start.UTC(), End: in.End.UTC()}
	}
	return out
}

// isReference reports whether a text is what a visitor can read on the page, or a whole id.
func isReference(s string) bool {
	a, b, short := strings.Cut(s, "-")
	return (short && len(a) == 5 && len(b) == 5 || !short && len(s) == 32) && strings.Trim(s, "0123456789abcdef-") == ""
}

func (f *face) findVisitors(r *api.Request) ([]schema.Visitor, error) {
	reference := strings.ToLower(r.PathValue("reference"))
	if !isReference(reference) {
		return nil, api.Invalid("reference", "is not the code of a visitor", "two groups of five hexadecimal digits, like 3f9a1-c07be, or an id of 32 digits")
	}
	found, err := f.manage.Find(r.Context(), r.By, zoneID(r), roomID(r), reference)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, api.Refuse(http.StatusNotFound, api.CodeNotFound, "No visitor with the code "+reference+" has a place or a session: it has expired, or belongs to another room")
	}
	out := make([]schema.Visitor, len(found))
	for i, v := range found {
		out[i] = shownVisitor(v)
	}
	return out, nil
}

func shownVisitor(v manage.Visitor) schema.Visitor {
	out := schema.Visitor{ID: hex.EncodeToString(v.ID[:]), Reference: v.Reference, Standing: v.Standing,
		ArrivedAt: roomMoment(v.Arrival), AcceptedAt: roomMoment(v.AcceptedAt), LastSeenAt: roomMoment(v.LastSeen)}
	if v.AheadKnown {
		out.Ahead = &v.Ahead
	}
	return out
}

func (f *face) revokeSession(r *api.Request) (schema.Deleted, error) {
	text := r.PathValue("session")
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(anteroom.ID{}) {
		return schema.Deleted{}, api.Invalid("session", "is not the id of a session", "32 hexadecimal digits; find the visitor by its code to get it")
	}
	ended, err := f.manage.Revoke(r.Context(), r.By, zoneID(r), roomID(r), anteroom.ID(b))
	if err != nil {
		return schema.Deleted{}, err
	}
	if !ended {
		return schema.Deleted{}, api.Refuse(http.StatusNotFound, api.CodeNotFound, "No visitor with this id has a session in the room")
	}
	return deleted(strings.ToLower(text)), nil
}

func (f *face) admit(r *api.Request, b schema.Admission) (schema.Admitted, error) {
	n, err := f.manage.AdmitNow(r.Context(), r.By, zoneID(r), roomID(r), b.Count)
	return schema.Admitted{Admitted: n}, err
}

// control makes an operation that changes the operator's hand on a room.
func (f *face) control(change func(*anteroom.Controls)) func(*api.Request) (schema.Controls, error) {
	return func(r *api.Request) (schema.Controls, error) {
		c, err := f.manage.ChangeControls(r.Context(), r.By, zoneID(r), roomID(r), func(c *anteroom.Controls) error {
			change(c)
			return nil
		})
		return shownControls(c), err
	}
}

// reset takes all places in line away. The body names the room once more, so that a slip in
// the path harms nobody.
func (f *face) reset(r *api.Request, b schema.Reset) (schema.Controls, error) {
	room, err := f.room(r)
	if err != nil {
		return schema.Controls{}, err
	}
	if b.Confirm != room.Name {
		return schema.Controls{}, api.Invalid("confirm", "does not name the room", fmt.Sprintf("use %q to void all places in the queue of that room", room.Name))
	}
	// The door's own clock: places are compared with it, and the wall clock may have been set.
	at := anteroom.TimeOf(f.now())
	if st, err := f.manage.Status(r.By, zoneID(r), roomID(r)); err == nil && st.At != 0 {
		at = st.At.Add(time.Microsecond)
	}
	return f.control(func(c *anteroom.Controls) { c.ResetAt = max(c.ResetAt, at) })(r)
}
