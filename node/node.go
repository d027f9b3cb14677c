// Package node runs the rooms of one process: their machines, the lock of each room, the
// clock and the journal.
//
// A [Room] is an engine.Single behind a lock, and follows the room's plan: what is in force is
// found anew when an event begins to prequeue, starts or ends, before anything else is
// decided. Requests call [Room.Decide]; a loop calls the
// machines ten times a second while a room has visitors; held requests wait on channels.
// What must survive the process goes to the cluster.Link: the ledger record of each room
// before anything that relies on it leaves, and the journal of events in batches, which an
// admission waits for. The lock order is: a room's lock, then the journal's. Nothing is
// called while the journal's lock is held.
//
// That is a process alone. With Config.Cluster the rooms are doors (shard.go): an
// engine.Doorway lets in whom it knows and asks the site about the rest, through the link, the
// rooms of a shard together. The process that holds the site role of a shard (site_role.go,
// site_shard.go) has the machines of the site and the shard's journal; nothing leaves it
// before what it relies on is recorded, and taking the journal over fences a former holder
// off. The coordinators are those of package coordinator. ARCHITECTURE.md has the life of a
// report.
package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/internal/walltime"
)

// Config configures a node.
type Config struct {
	// Link keeps what survives the process. Required.
	Link cluster.Link
	// Name is the site's name in the ledger; empty means "local". A node with another name is another site: the units
	// of the old one stay charged until its sessions have ended.
	Name string
	// Forgot says that the journal was dropped, so there may be sessions that this node does not know. Rooms then start
	// as new incarnations, charged for all sessions that the old ones may have admitted, and take sessions over from
	// valid cookies.
	Forgot bool
	// Cluster says which part of a cluster the node is; nil for a standalone process. With it, Name is ignored.
	Cluster *Cluster
	// Minutes, if set, receives what was recorded about the rooms, in a cluster from all processes: once a second, each
	// minute that has changed, as a whole (see analytics.Minute.Newer). It must not block and must not change them.
	Minutes func([]*analytics.Minute)
	// Log; nil means none.
	Log *slog.Logger
}

// Node holds the rooms of one process. Safe for concurrent use.
type Node struct {
	cfg     Config
	log     *slog.Logger
	clock   clock
	part    part
	streams atomic.Int64
	figures figures
	lenient atomic.Bool // set by AdmitUnrecorded
	cutOff  atomic.Bool // no other core of the site is heard
	moves   moves

	kept time.Duration // retention of the journal; guarded by apply

	mu    sync.RWMutex // of rooms and past
	rooms map[anteroom.RoomID]*Room
	apply sync.Mutex // one Apply at a time

	shuffles *shuffles.Store
}

// New returns a node without rooms.
func New(ctx context.Context, cfg Config) (n *Node, err error) {
	if cfg.Link == nil {
		return nil, errors.New("node: Config.Link is missing")
	}
	cfg.Name = cmp.Or(cfg.Name, aloneSite)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	n = &Node{cfg: cfg, log: cfg.Log, rooms: map[anteroom.RoomID]*Room{}, shuffles: shuffles.New(cfg.Link, nil),
		figures: figures{process: uniqueProcess(), all: map[anteroom.RoomID]*analytics.Recorder{}}}
	if cfg.Cluster != nil {
		n.part, err = newMember(n)
	} else {
		n.part, err = newStandalone(ctx, n)
	}
	return n, err
}

// AdmitUnrecorded says what happens while the journal cannot be written, because the disk is full or broken. Off, the
// default: no new visitor is admitted, and the queue waits until admissions survive a crash again (rooms with
// passthrough continue). On: admissions continue, and a crash in that time would forget these sessions. Requests of
// recorded sessions continue either way.
//
// In a cluster it says what happens to new visitors while their site cannot be reached, or cannot record: off, they get
// the waiting page and a place; on, they pass uncounted.
func (n *Node) AdmitUnrecorded(on bool) { n.lenient.Store(on) }

// holds reports whether no new visitor may be admitted now.
func (n *Node) holds() bool { return n.part.stalled() && !n.lenient.Load() }

// Apply makes the node serve these rooms: [Node.Prepare], then [Node.Settle].
func (n *Node) Apply(ctx context.Context, rooms []anteroom.Room) error {
	if err := n.Prepare(ctx, rooms); err != nil {
		return err
	}
	n.Settle(ctx, rooms)
	return nil
}

// Prepare opens the rooms that the node does not serve yet, from what the journal knows about them. Rooms that it
// already serves stay as they are until [Node.Settle]: a caller that fails later can go back by settling with the old
// rooms. After an error nothing has changed. The rooms have passed [anteroom.Room.Check].
func (n *Node) Prepare(ctx context.Context, rooms []anteroom.Room) error {
	n.apply.Lock()
	defer n.apply.Unlock()
	next := map[anteroom.RoomID]*Room{}
	n.mu.RLock()
	maps.Copy(next, n.rooms)
	n.mu.RUnlock()
	var fresh []*anteroom.Room
	taken := make(map[anteroom.RoomID]int, len(rooms))
	for i, r := range rooms {
		r = r.WithDefaults()
		if first, twice := taken[r.ID]; twice { // they would share one machine, with the limits of either
			return anteroom.Errorf(anteroom.Invalid, "rooms[%d] and rooms[%d] have the ID %s: give rooms of one zone different names", first, i, r.ID)
		}
		if taken[r.ID] = i; next[r.ID] == nil {
			fresh = append(fresh, &r)
		}
	}
	// A longer retention first: until it is in force, the store may delete what the rooms will need after a restart.
	if keep := retention(rooms); keep > n.kept {
		if err := n.keep(ctx, keep); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	opened, err := n.part.open(ctx, fresh)
	if err != nil {
		return err
	}
	for _, r := range opened {
		next[r.id] = r
	}
	n.mu.Lock()
	n.rooms = next
	n.mu.Unlock()
	return nil
}

// Settle puts settings, events and controls of prepared rooms in force. Queues and sessions stay. Rooms that are not
// listed end; what they knew stays in the journal.
func (n *Node) Settle(ctx context.Context, rooms []anteroom.Room) {
	n.apply.Lock()
	defer n.apply.Unlock()
	next := map[anteroom.RoomID]*Room{}
	for _, r := range rooms {
		r = r.WithDefaults()
		if one := n.Room(r.ID); one != nil {
			n.configure(one, r)
			next[r.ID] = one
		}
	}
	n.mu.Lock()
	// Requests find the new set from here on; rooms that are gone are closed outside the lock, because closing ends
	// streams.
	gone := n.rooms
	n.rooms = next
	n.mu.Unlock()
	for id, r := range gone {
		if next[id] == nil {
			r.close()
			n.part.forget(id)
		}
	}
	// A shorter retention last: now no room needs the old one.
	if keep := retention(rooms); keep < n.kept {
		if err := n.keep(ctx, keep); err != nil {
			n.log.Warn("the journal is kept for longer than the rooms need", "error", err)
		}
	}
}

// configure puts the plan of a room in force. The caller holds apply.
func (n *Node) configure(r *Room, plan anteroom.Room) {
	n.part.configure(r.configure(plan))
}

// keep sets how long the journal keeps records. The caller holds apply.
func (n *Node) keep(ctx context.Context, d time.Duration) error {
	if err := n.part.keep(ctx, d); err != nil {
		return err
	}
	n.kept = d
	return nil
}

// PrepareRoom is Prepare for a room that the node already serves and whose settings, events or controls change. It
// costs what the one room costs.
func (n *Node) PrepareRoom(ctx context.Context, room anteroom.Room) error {
	n.apply.Lock()
	defer n.apply.Unlock()
	keep := retention([]anteroom.Room{room})
	if keep <= n.kept {
		return nil
	}
	return n.keep(ctx, keep)
}

// SettleRoom is Settle for one room. The journal keeps records as long as before, even if the room needs less.
func (n *Node) SettleRoom(room anteroom.Room) {
	n.apply.Lock()
	defer n.apply.Unlock()
	if one := n.Room(room.ID); one != nil {
		n.configure(one, room.WithDefaults())
	}
}

// retention is how long the journal must know what happens in the rooms. A waiting visitor is recorded again once per
// place hold, a session with each sixteenth of its length: after twice that time, everything that is still alive has
// been recorded again. An outage of the origin is on record until it gives no more credit.
func retention(rooms []anteroom.Room) time.Duration {
	hold, longest, back := anteroom.DefaultPlaceHold, anteroom.DefaultSessionDuration, time.Duration(0)
	for _, r := range rooms {
		r = r.WithDefaults()
		hold, longest, back = max(hold, r.PlaceHold), max(longest, r.SessionDuration), max(back, r.ProtectReturn)
		// An event may run any time, so its sessions count now: a retention that grows at its start would come too late
		// for sessions from before.
		for _, e := range r.Events {
			if e.SessionDuration != nil {
				longest = max(longest, *e.SessionDuration)
			}
		}
	}
	return max(2*(longest+2*hold), back) + 10*time.Minute
}

// Bequeath has other nodes of a cluster prepare for the roles that this one is about to hand over, and waits for that, at
// the longest until ctx ends. Until Release, or the end of Run, this node holds them.
func (n *Node) Bequeath(ctx context.Context) { n.part.bequeath(ctx) }

// Release gives the rooms up for a successor that takes over the link: active sessions continue, but no visitor is
// admitted and no place is given any more. Then end the context of Run, which writes the rest of the journal. In a
// cluster the roles are handed over, and the doors stay open.
func (n *Node) Release() { n.part.release() }

func (n *Node) releaseRooms() {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, r := range n.rooms {
		r.release()
	}
}

// Room returns the room with the ID, or nil.
func (n *Node) Room(id anteroom.RoomID) *Room {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.rooms[id]
}

// Now returns room time; in a cluster, where each shard has its own, the time of this process.
func (n *Node) Now() anteroom.Time { return n.clock.now() }

// Streams returns the number of open streams.
func (n *Node) Streams() int { return int(n.streams.Load()) }

// JournalStats returns what the journal has done; in a cluster, the journals of the site roles held here.
func (n *Node) JournalStats() JournalStats { return n.part.journalStats() }

const (
	tickEvery  = 100 * time.Millisecond
	placeEvery = 2 * time.Second // interval of updates on streams
	beatEvery  = 5 * time.Second // interval of the journal's mark while a room is active
)

// Run works until ctx ends: ticks, the journal, and a last flush. An error means that not everything that happened is
// recorded. After it, visitors are asked to wait, and active sessions continue.
func (n *Node) Run(ctx context.Context) (err error) {
	var work sync.WaitGroup
	work.Go(func() { err = n.part.run(ctx) })
	work.Go(func() { n.tellAlways(ctx) })
	work.Go(func() { n.followMoves(ctx) })
	tick := time.NewTimer(walltime.NextBeat(tickEvery))
	defer tick.Stop()
	var place anteroom.Time
	wall := walltime.Now()
	for {
		select {
		case <-ctx.Done():
			// The journal first: figures that are told below count only what is recorded.
			work.Wait()
			n.tellFigures() // figures of the last second
			return err
		case <-tick.C:
		}
		tick.Reset(walltime.NextBeat(tickEvery))
		before := wall
		wall = walltime.Now()
		if step := wall.Round(0).Sub(before.Round(0)) - wall.Sub(before); step.Abs() > walltime.SetBack {
			n.log.Warn("the clock of this machine was set: events follow it, sessions and places do not", "by", step.Round(time.Second).String())
		}
		now := n.clock.at(wall)
		// Places change with every admission. Sending each change would cost more than all decisions, and a visitor
		// reads one in two seconds.
		cut := n.part.cutOff()
		places := n.cutOff.Swap(cut) != cut || now.Sub(place) >= placeEvery
		if places {
			place = now
		}
		active := false
		n.mu.RLock()
		rooms := n.rooms
		n.mu.RUnlock()
		for _, r := range rooms {
			switch {
			case r.active.Load():
				active = true
				r.tick(wall, places)
			// An idle room costs nothing until its next event.
			case r.schedule.due(wall):
				r.tick(wall, places)
			}
		}
		n.part.tick(now, active)
	}
}
