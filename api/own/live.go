package own

import (
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// LiveRoom is a room in short with its live numbers.
type LiveRoom struct {
	schema.Room
	Status    *schema.Status  `json:"status"`     // without its moment; nil where the room is not served
	Origins   []manage.Origin `json:"origins"`    // of its hosts, as this node sees them
	NextEvent *NextEvent      `json:"next_event"` // that which runs or comes next; nil where there is none
}

// NextEvent is an occurrence of an event.
type NextEvent struct {
	ID       anteroom.EventID `json:"id"`
	Name     string           `json:"name"`
	Prequeue *time.Time       `json:"prequeue"`
	Start    *time.Time       `json:"start"`
	End      *time.Time       `json:"end"`
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
		out[i] = LiveRoom{Room: f.shownRoom(r), Origins: m.OriginsOf(by, r), NextEvent: shownNext(r, now)}
		if st, err := m.Status(by, out[i].Zone.ID, r.ID); err == nil {
			shown := shownStatus(st)
			shown.At = nil // it would make every room look changed
			out[i].Status = &shown
		}
	}
	return out, nil
}

func shownNext(r anteroom.Room, now time.Time) *NextEvent {
	e, o := r.NextEvent(now)
	if e == nil {
		return nil
	}
	return &NextEvent{ID: e.ID, Name: e.Name, Prequeue: moment(o.Prequeue), Start: moment(o.Start), End: moment(o.End)}
}
