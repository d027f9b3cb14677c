package coordinator

import (
	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// Status returns the live figures of a room over all sites, as [Client.Status] does, if its coordinator runs in this
// process and knows them. Its InForce is nil.
func (h *Host) Status(id anteroom.RoomID) (st anteroom.Status, ok bool) {
	s := h.shardOf(id)
	if s == nil {
		return st, false
	}
	r, err := s.live(id)
	switch {
	case err != nil:
		return st, false
	case r == nil:
		return s.unused(id), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil {
		return st, false
	}
	st = r.machine.Status(r.follow())
	st.Room = id
	r.drain()
	return st, true
}

// unused returns the figures of a room without visitors.
func (s *shard) unused(id anteroom.RoomID) anteroom.Status {
	plan, _ := s.host.cfg.Plan(id)
	set := plan.WithDefaults().At(anteroom.TimeOf(s.host.cfg.Now())).Settings
	return anteroom.Status{Room: id, At: s.now(), Mode: engine.Open.String(), TotalActiveUsers: set.TotalActiveUsers, NewPerMinute: set.NewUsersPerMinute}
}
