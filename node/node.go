// Package node runs the rooms of one process: their machines, the lock of each room, the
// clock and the journal.
//
// A [Room] is an engine.Single behind a lock. Requests call [Room.Decide]; a loop calls the
// machines ten times a second while a room has visitors; held requests wait on channels.
// What must survive the process goes to the cluster.Link: the ledger record of each room
// before anything that relies on it leaves, and the journal of events in batches, which an
// admission waits for. The lock order is: a room's lock, then the journal's. Nothing is
// called while the journal's lock is held.
package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// Config says what a node works with.
type Config struct {
	// Link keeps what survives the process. Required.
	Link cluster.Link
	// Name is the site's name in the ledger; empty means "local". Changing it makes the node
	// another site: what the old one held stays charged until its sessions have ended.
	Name string
	// Forgot says that the journal was dropped: sessions may be alive that nothing here
	// knows. Rooms then start as new incarnations, charged for everything that the old ones
	// may have let in, and take sessions over from valid cookies.
	Forgot bool
	// Log; nil means none.
	Log *slog.Logger
}

// Node is one process's rooms. Safe for concurrent use.
type Node struct {
	cfg     Config
	log     *slog.Logger
	clock   clock
	journal *journal
	streams atomic.Int64

	mu    sync.RWMutex // of rooms and past
	rooms map[anteroom.RoomID]*Room
	apply sync.Mutex // one Apply at a time
}

// New returns a node without rooms. It reads how far the journal had come, to set the
// clock: room time never goes back, also over a restart.
func New(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Link == nil {
		return nil, errors.New("node: Config.Link is missing")
	}
	if cfg.Name == "" {
		cfg.Name = "local"
	}
	n := &Node{cfg: cfg, log: cfg.Log, rooms: map[anteroom.RoomID]*Room{}}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	last, err := lastMark(ctx, cfg.Link)
	if err != nil {
		return nil, err
	}
	var shift time.Duration
	n.clock, shift = startClock(last)
	n.journal = newJournal(cfg.Link, &n.clock, n.log)
	// The start is on record before any event of this process: events from before it are
	// moved by the part of the interruption that cannot be known to have passed.
	if err := n.journal.start(ctx, shift); err != nil {
		return nil, err
	}
	return n, nil
}

// Apply makes the node serve these rooms: new ones start from what the journal knows of
// them, those with a known ID take their new settings and keep line and sessions, others
// stop. The rooms have passed [anteroom.Room.Check].
func (n *Node) Apply(ctx context.Context, rooms []anteroom.Room) error {
	n.apply.Lock()
	defer n.apply.Unlock()
	fresh := map[anteroom.RoomID]bool{}
	hold := anteroom.DefaultPlaceHold
	longest := anteroom.DefaultSessionDuration
	n.mu.RLock()
	for i := range rooms {
		rooms[i] = rooms[i].WithDefaults()
		hold, longest = max(hold, rooms[i].PlaceHold), max(longest, rooms[i].SessionDuration)
		if n.rooms[rooms[i].ID] == nil {
			fresh[rooms[i].ID] = true
		}
	}
	n.mu.RUnlock()
	// Whoever waits is recorded again once per place hold, a session with each sixteenth of
	// its length: twice that long, nothing alive can be missing.
	if err := n.cfg.Link.Retain(ctx, 2*(longest+2*hold)+10*time.Minute); err != nil {
		return err
	}
	var past map[anteroom.RoomID][]engine.Event
	if len(fresh) > 0 {
		if err := n.journal.sync(ctx); err != nil {
			return err
		}
		var err error
		if past, err = readHistory(ctx, n.cfg.Link, fresh); err != nil {
			return err
		}
	}
	next := map[anteroom.RoomID]*Room{}
	for _, r := range rooms {
		n.mu.RLock()
		old := n.rooms[r.ID]
		n.mu.RUnlock()
		if old != nil {
			old.configure(r.Settings)
			next[r.ID] = old
			continue
		}
		made, err := n.open(ctx, r, past[r.ID])
		if err != nil {
			return err
		}
		next[r.ID] = made
	}
	n.mu.Lock()
	gone := n.rooms
	n.rooms = next
	n.mu.Unlock()
	for id, r := range gone {
		if next[id] == nil {
			r.close()
		}
	}
	return nil
}

// Room returns the room with the ID, or nil.
func (n *Node) Room(id anteroom.RoomID) *Room {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.rooms[id]
}

// Now returns room time.
func (n *Node) Now() anteroom.Time { return n.clock.now() }

// Streams returns the number of open streams.
func (n *Node) Streams() int { return int(n.streams.Load()) }

// JournalStats returns what the journal has done.
func (n *Node) JournalStats() JournalStats { return n.journal.stats() }

const (
	tickEvery  = 100 * time.Millisecond
	placeEvery = 2 * time.Second // updates on streams
	beatEvery  = 5 * time.Second // the journal's mark while somebody is there
)

// Run works until ctx ends: ticks, the journal, and at the end a last flush.
func (n *Node) Run(ctx context.Context) error {
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		n.journal.run(ctx)
	}()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var beat, place anteroom.Time
	for {
		select {
		case <-ctx.Done():
			<-writing
			return nil
		case <-tick.C:
		}
		now := n.Now()
		places := now.Sub(place) >= placeEvery
		if places {
			place = now
		}
		active := false
		n.mu.RLock()
		rooms := n.rooms
		n.mu.RUnlock()
		for _, r := range rooms {
			if r.active.Load() {
				active = true
				r.tick(places)
			}
		}
		if active && now.Sub(beat) >= beatEvery {
			beat = now
			n.journal.beat()
		}
	}
}
