package own

import (
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// LiveRoom is a room in short with its live numbers.
type LiveRoom struct {
	ID    anteroom.RoomID
	Shown api.Members // as GET …/rooms/{room}, and "status" as GET …/status without "at"; null where it is not served
}

// Live returns all rooms that the caller may read: what a page shows every second.
func Live(m *manage.Manager, by manage.Caller) ([]LiveRoom, error) {
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
		out[i] = LiveRoom{ID: r.ID, Shown: append(f.shownRoom(r), api.Member{Name: "status", Value: status})}
	}
	return out, nil
}
