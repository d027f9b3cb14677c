package manage

import (
	"context"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// Analytics returns what was recorded about rooms. The caller must be allowed to read each of them. Without rooms, the
// query is about all rooms that the caller may read, in the order of [State.Rooms]. Records outlive a room: a deleted
// one can be read by its id. An error has kind Unavailable if this process keeps no analytics and reaches no process
// that does.
func (m *Manager) Analytics(ctx context.Context, by Caller, q analytics.Query) (analytics.Answer, error) {
	s := m.State()
	if len(q.Rooms) == 0 {
		q.Rooms = s.readable(by)
	} else {
		for _, id := range q.Rooms {
			if err := by.need(Read, s.zoneOf(id), id); err != nil {
				return analytics.Answer{}, err
			}
		}
		q.Rooms = slices.Clone(q.Rooms)
	}
	if m.cfg.Analytics == nil {
		return analytics.Answer{}, anteroom.Errorf(anteroom.Unavailable, "this process keeps no analytics (see analytics.store in the configuration)")
	}
	if len(q.Rooms) == 0 {
		return analytics.Answer{Every: q.Every, AsOf: m.now()}, nil
	}
	return m.cfg.Analytics.Query(ctx, q)
}

// readable returns the rooms that the caller may read.
func (s *State) readable(by Caller) (ids []anteroom.RoomID) {
	zones := map[string]anteroom.ZoneID{}
	for _, z := range s.zones {
		zones[z.Name] = z.ID
	}
	for _, r := range s.rooms {
		if by.May(Read, zones[r.Zone], r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// zoneOf returns the zone of a room; empty when there is none.
func (s *State) zoneOf(id anteroom.RoomID) anteroom.ZoneID {
	if r := s.byID[id]; r != nil {
		z, _ := s.ZoneNamed(r.Zone)
		return z.ID
	}
	return ""
}
