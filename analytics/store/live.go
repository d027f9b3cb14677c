package store

import (
	"maps"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// liveOf returns the minutes of a room that are whole in memory, from one to before another,
// ascending, each with its parts. The caller changes nothing of them.
func (s *Store) liveOf(id anteroom.RoomID, from, to int64) (out []liveMinute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.live[id]
	var at []int64
	for m, e := range room {
		if e.whole && m >= from && m < to {
			at = append(at, m)
		}
	}
	slices.Sort(at)
	for _, m := range at {
		out = append(out, liveMinute{at: m, parts: slices.Collect(maps.Values(room[m].parts))})
	}
	return out
}

// sum adds the parts of a minute up. The row shares with a single part.
func sum(parts []*analytics.Minute) analytics.Row {
	if len(parts) == 1 {
		return parts[0].Row()
	}
	all := parts[0].Clone()
	for _, p := range parts[1:] {
		all.Add(p)
	}
	return all.Row()
}
