// Package coordinator hosts the coordinators of rooms: one for each room, on the node that holds the coordinator role
// of the room's shard. It connects engine.Coordinator to the cluster.Link: reports come in, messages to sites go out,
// and ledger records are stored before anything that relies on them leaves.
//
// A coordinator is made from the record of its predecessor when the first report of its room arrives, and given up when
// the room is unused. It relies on sites to answer messages even for rooms without visitors: such a site may hold units
// that other sites need.
//
// Each shard has its room time, which this process defines. After a takeover it continues the time in which the sites
// live. If two hosts hold a shard for a moment, the ledger record decides: the host that finds another one's record
// stops. Lock order: a room's lock, then the lock of its shard's rooms or of the messages to send.
package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/internal/walltime"
)

// reportsSubject is the subject, in the shared space, of the reports to the coordinators of a shard:
// frames of engine.Report.
func reportsSubject(shard int) string { return fmt.Sprintf("coordinator.%02d", shard) }

// siteSubject is the subject, in the shared space, of the coordinators' messages to a site: frames of engine.ToSite.
func siteSubject(site string, shard int) string { return fmt.Sprintf("to.%s.%02d", site, shard) }

// asking is the subject of operators' requests.
func asking(shard int) string { return fmt.Sprintf("ask.coordinator.%02d", shard) }

// Config says what a host works with.
type Config struct {
	// Link carries messages, and keeps ledger records in its site's space. Required. The
	// host runs on nodes of the hub site only.
	Link cluster.Link
	// Plan returns a room as configured: settings, events, controls. Required. It is called
	// often and from several goroutines; it must not block.
	Plan func(anteroom.RoomID) (anteroom.Room, bool)
	// Recorder, if set, returns what records a room: once a second it gets the room's figures.
	Recorder func(anteroom.RoomID) *analytics.Recorder
	// Time, if set, returns the room time of a shard at a reading of Now, if another clock of this process was told it
	// lately. It must not block.
	Time func(shard int, at time.Time) (room anteroom.Time, ok bool)
	// Now is the process's clock, with its monotonic reading; nil means walltime.Now.
	Now func() time.Time
	// Log; nil means none.
	Log *slog.Logger
}

const (
	tickEvery = 100 * time.Millisecond
	// storing is how many records are written at once: after a take-over many rooms have one.
	storing = 32
	// storeFor bounds one write; storeAgain is how long after a failure the next begins.
	storeFor   = 5 * time.Second
	storeAgain = 500 * time.Millisecond
	// maxAsked is how many requests of operators are answered at once.
	maxAsked = 64
	// complainEvery bounds what is logged of one kind of trouble.
	complainEvery = time.Minute
)

// Host runs the coordinators of the rooms whose shards this process holds. Safe for
// concurrent use.
type Host struct {
	cfg      Config
	log      *slog.Logger
	writer   string // names this host in records
	start    time.Time
	stores   chan struct{} // a place for each write under way
	asked    chan struct{}
	shuffles *shuffles.Store
	counts   counters

	mu     sync.Mutex
	shards [cluster.Shards]atomic.Pointer[shard] // written under mu
	closed bool
}

// New returns a host without shards.
func New(cfg Config) *Host {
	if cfg.Now == nil {
		cfg.Now = walltime.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	h := &Host{cfg: cfg, log: cfg.Log, stores: make(chan struct{}, storing), asked: make(chan struct{}, maxAsked), start: cfg.Now()}
	var id [8]byte
	rand.Read(id[:])
	h.writer = hex.EncodeToString(id[:])
	h.shuffles = shuffles.New(cfg.Link, func(room anteroom.RoomID) bool { return h.shardOf(room) != nil })
	return h
}

// local is the process's own monotonic clock, which shows its wall clock of the start.
func (h *Host) local(t time.Time) anteroom.Time { return anteroom.TimeOf(h.start).Add(t.Sub(h.start)) }

// shardOf is the shard of a room, nil when this host does not have it.
func (h *Host) shardOf(room anteroom.RoomID) *shard {
	return h.shards[cluster.ShardOf(string(room))].Load()
}

// Gain takes the coordinator role of a shard: from now on its rooms are coordinated here.
// epoch is the role's: the higher, the later. It does not wait for anything.
func (h *Host) Gain(number int, epoch uint64) {
	if number < 0 || number >= cluster.Shards {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.shards[number].Swap(nil); before != nil {
		before.lose()
	}
	if h.closed {
		return
	}
	s := newShard(h, number, epoch)
	h.shards[number].Store(s)
	go s.run()
}

// Lose gives the role of a shard up: when Lose returns, nothing of the shard leaves this process any more.
func (h *Host) Lose(number int) {
	if number < 0 || number >= cluster.Shards {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shards[number].Swap(nil); s != nil {
		s.lose()
	}
}

// Configure puts the plan of a room in force, as Config.Plan returns it now; a room that the plan no longer has is
// dropped. An unused room costs nothing.
func (h *Host) Configure(id anteroom.RoomID) {
	s := h.shardOf(id)
	if s == nil {
		return
	}
	r := s.room(id)
	if r == nil {
		return
	}
	plan, ok := h.cfg.Plan(id)
	if !ok {
		s.drop(r)
		return
	}
	r.configure(plan)
	s.flush()
}

// Run works until ctx ends; then every shard is lost, and none can be gained again.
func (h *Host) Run(ctx context.Context) error {
	<-ctx.Done()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for number := range cluster.Shards {
		h.Lose(number)
	}
	return nil
}

// counters count what a host has refused since it began: frames and messages that are none, reports of rooms that do not exist or
// belong to another shard, rooms that another host had taken over.
type counters struct{ undecodable, misplaced, fenced atomic.Uint64 }
