package manage

import (
	"context"
	"fmt"

	"github.com/anteroom/anteroom"
)

func (m *Manager) doors() (Doors, error) {
	if m.cfg.Doors == nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "this process serves no rooms")
	}
	return m.cfg.Doors, nil
}

// act records something that is done to the doors and changes no document.
func (m *Manager) act(ctx context.Context, by Caller, operation string, zone anteroom.ZoneID, room anteroom.RoomID, object string, what any) error {
	return m.change(ctx, by, func(t *tx) error {
		name := ""
		if r := t.old.byID[room]; r != nil {
			name = r.Name
		}
		t.entry.Zone, t.entry.Room = zone, room
		t.note(operation, object, name, nil, what)
		return nil
	})
}

// Status returns a room's live numbers.
func (m *Manager) Status(by Caller, zone anteroom.ZoneID, room anteroom.RoomID) (anteroom.Status, error) {
	d, err := m.doorsOf(by, Read, zone, room)
	if err != nil {
		return anteroom.Status{}, err
	}
	st, ok := d.Status(room)
	if !ok {
		return st, anteroom.Errorf(anteroom.Unavailable, "the room is not being served yet")
	}
	return st, nil
}

func (m *Manager) doorsOf(by Caller, p Permission, zone anteroom.ZoneID, room anteroom.RoomID) (Doors, error) {
	if _, err := m.State().room(by, p, zone, room); err != nil {
		return nil, err
	}
	return m.doors()
}

// AdmitNow calls the first n visitors of the queue now, even while the room is paused, but never beyond its limits. It
// returns how many were called. It also works for rooms of the configuration file.
func (m *Manager) AdmitNow(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, n int) (admitted int, err error) {
	d, err := m.doorsOf(by, Edit, zone, room)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > MaxAdmitNow {
		return 0, anteroom.Faults{{Path: "count", Problem: fmt.Sprintf("%d is out of range", n), Fix: fmt.Sprintf("1 to %d", MaxAdmitNow)}}.Err()
	}
	if err := m.act(ctx, by, "room.admit_now", zone, room, string(room), map[string]int{"count": n}); err != nil {
		return 0, err
	}
	return d.AdmitNow(ctx, room, n)
}

// Find returns the visitors of a room with a reference code or a full id.
func (m *Manager) Find(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, reference string) ([]Visitor, error) {
	d, err := m.doorsOf(by, Read, zone, room)
	if err != nil {
		return nil, err
	}
	return d.Find(ctx, room, reference)
}

// Revoke ends a visitor's session, and reports whether there was one.
func (m *Manager) Revoke(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, visitor anteroom.ID) (bool, error) {
	d, err := m.doorsOf(by, Edit, zone, room)
	if err != nil {
		return false, err
	}
	if err := m.act(ctx, by, "session.revoke", zone, room, visitor.Reference(), nil); err != nil {
		return false, err
	}
	return d.Revoke(ctx, room, visitor)
}

// Touch takes requests that edges of a room have let in by a pass, and says what came of each. It requires the permission to read the
// room: a ticket proves its own session, which lasts a little longer, and nothing is changed that an operator sees.
func (m *Manager) Touch(by Caller, room anteroom.RoomID, touches []Touch) (results []string, err error) {
	d, err := m.doorsOf(by, Read, m.State().zoneOf(room), room)
	if err != nil {
		return nil, err
	}
	return d.Touch(room, touches)
}

// Shuffle returns the shuffle of an event's occurrence. It is public to everyone who knows the room and the event,
// so it takes no caller.
func (m *Manager) Shuffle(room anteroom.RoomID, event anteroom.EventID, number int) (*anteroom.Shuffle, error) {
	d, err := m.doors()
	if err != nil {
		return nil, err
	}
	sh, ok, err := d.Shuffle(room, event, number)
	if err == nil && !ok {
		err = notFound("shuffle of the event", string(event))
	}
	return sh, err
}
