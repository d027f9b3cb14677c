package manage

import (
	"context"
	"net/netip"

	"github.com/anteroom/anteroom"
)

// MayOperate reports whether the caller may do something in a room, whatever its zone. It is for bridges, whose clients
// name neither.
func (m *Manager) MayOperate(by Caller, p Permission, room anteroom.RoomID) bool {
	return by.May(p, m.State().zoneOf(room), room)
}

// Operated checks that the caller may change a room, and records what a client of a bridge does there. It changes nothing.
func (m *Manager) Operated(ctx context.Context, by Caller, operation string, room anteroom.RoomID, what any) error {
	zone := m.State().zoneOf(room)
	if _, err := m.State().room(by, Edit, zone, room); err != nil {
		return err
	}
	return m.act(ctx, by, operation, zone, room, string(room), what)
}

// CallerOf returns the caller of a stored token, for a request that proves in another way than by the secret that the
// token's owner sent it. The error has the kind Denied, and does not say why.
func (m *Manager) CallerOf(id TokenID, from netip.Addr) (Caller, error) {
	from = from.Unmap().WithZone("")
	t, err := m.State().token(id)
	if err != nil || !t.opensFrom(from, m.now()) {
		return Caller{}, anteroom.Errorf(anteroom.Denied, "no valid token")
	}
	m.used.note(t.ID, m.now())
	return Caller{Token: t.ID, Name: t.Name, Grants: t.Grants, Address: from}, nil
}
