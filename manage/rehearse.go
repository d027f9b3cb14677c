package manage

import (
	"context"
	"log/slog"
)

// Rehearsal returns a manager that begins with the state in force. Its changes are checked like those of m and are in its own state only:
// nothing is stored, recorded or served. Use it for zones, rooms, events, rules and lists.
func (m *Manager) Rehearsal(ctx context.Context) (*Manager, error) {
	if err := m.lock(ctx); err != nil { // the configuration file is not read again meanwhile
		return nil, err
	}
	defer m.unlock()
	r := &Manager{cfg: m.cfg, log: slog.New(slog.DiscardHandler), changing: make(chan struct{}, 1), original: m}
	r.cfg.Prepare, r.cfg.Doors = nil, nil
	r.put(m.State())
	return r, nil
}
