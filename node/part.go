package node

// What differs between a standalone process and a member of a cluster, and nothing else does: what a node is ([part]), and who
// decides about a room ([decider]).

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster/coordinator"
	"github.com/anteroom/anteroom/engine"
)

// part is what a node is: a standalone process (standalone.go), or a member of a cluster (member.go).
type part interface {
	// open opens rooms that the node does not serve yet. The caller holds Node.apply.
	open(ctx context.Context, rooms []*anteroom.Room) ([]*Room, error)
	// configure puts the plan of a room in force, and forget ends a room, wherever else than in Node.rooms this process
	// decides about it.
	configure(room *anteroom.Room)
	forget(id anteroom.RoomID)
	// keep sets how long the journal keeps records.
	keep(ctx context.Context, d time.Duration) error
	bequeath(ctx context.Context)
	release()
	run(ctx context.Context) error
	// tick is called after every tick of the rooms. active: at least one has visitors.
	tick(now anteroom.Time, active bool)
	// stalled reports that admissions which this process decides cannot be recorded now.
	stalled() bool
	// cutOff reports that no other core of the site is heard.
	cutOff() bool
	// roomTime returns the clock of a room.
	roomTime(id anteroom.RoomID) func() anteroom.Time
	// shares reports whether others get what this node records, and share tells them.
	shares() bool
	share(minutes []*analytics.Minute)

	journalStats() JournalStats
	leases(fn func(Lease))
	skew() time.Duration
	known(r *Room) (anteroom.Status, bool)
	status(ctx context.Context) (ClusterStatus, bool)
	decided(ctx context.Context) bool
	forgetSite(ctx context.Context, site string, sure func() error) (coordinator.Forgotten, error)
}

// decider is who decides about a room: this process (near.go), or the site of its cluster (far.go). The caller of the first
// methods holds the room's lock, the caller of the others does not.
type decider interface {
	// begin makes the machine of a room that somebody visits for the first time.
	begin()
	// now returns room time, timeAt that of a reading of the process's clock.
	now() anteroom.Time
	timeAt(wall time.Time) anteroom.Time
	visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64)
	// restart returns what has to be done before the visit can be judged; nil: nothing.
	restart() func(context.Context) error
	// apply puts in force what besides the settings depends on the plan.
	apply(now anteroom.Time, wall time.Time)
	origin(now anteroom.Time, f engine.OriginFacts)
	// record is called after every call of the machine, before its results are carried out, and settled afterwards.
	record()
	settled()
	// ticked is called after every tick of the machine, and idle reports that no further one is needed.
	ticked(now anteroom.Time)
	idle() bool

	// recorded reports whether a crash can no longer undo a session that began at that time.
	recorded(began anteroom.Time) bool
	// onRecord returns a decision that admits a visitor once a crash cannot undo it.
	onRecord(ctx context.Context, d anteroom.Decision) anteroom.Decision
	status() anteroom.Status
	admitNow(ctx context.Context, n int) (int, error)
	find(ctx context.Context, prefix []byte) ([]engine.Visitor, error)
	endSession(ctx context.Context, id anteroom.ID) (bool, error)
	revoked(ctx context.Context) (ids []anteroom.ID, complete bool)
	shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool)
}
