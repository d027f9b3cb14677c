package own

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// LiveRoom is a room in short with its live numbers.
type LiveRoom struct {
	ID anteroom.RoomID
	// Shown is the room as GET …/rooms/{room} has it, with "status" as GET …/status without "at",
	// null where it is not served, and "next_event", that which runs or comes next: id, name,
	// prequeue (or null), start and end; null where there is none.
	Shown api.Members
}

// Live returns all rooms that the caller may read: what a page shows every second.
func Live(m *manage.Manager, by manage.Caller, now time.Time) ([]LiveRoom, error) {
	rooms, err := m.Rooms(by, "")
	if err != nil {
		return nil, err
	}
	f := &face{manage: m}
	out := make([]LiveRoom, len(rooms))
	for i, r := range rooms {
		zone, _ := m.State().ZoneNamed(r.Zone)
		var status any
		if st, err := m.Status(by, zone.ID, r.ID); err == nil {
			// The moment would make every room look changed.
			status = slices.DeleteFunc(shownStatus(st), func(one api.Member) bool { return one.Name == "at" })
		}
		out[i] = LiveRoom{ID: r.ID, Shown: append(f.shownRoom(r), api.Member{Name: "status", Value: status}, api.Member{Name: "next_event", Value: shownNext(r, now)})}
	}
	return out, nil
}

func shownNext(r anteroom.Room, now time.Time) any {
	e, o := r.NextEvent(now)
	if e == nil {
		return nil
	}
	return api.Members{{Name: "id", Value: e.ID}, {Name: "name", Value: e.Name}, {Name: "prequeue", Value: moment(o.Prequeue)},
		{Name: "start", Value: moment(o.Start)}, {Name: "end", Value: moment(o.End)}}
}
