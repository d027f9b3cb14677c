package node

// What only a process alone does: its machine decides by itself, so the ledger and the journal
// are its own.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// alone is the side of a room that decides for itself. Guarded by the room's lock.
type alone struct {
	single   *engine.Single          // the machine
	revision uint64                  // of the ledger record
	storing  bool                    // the ledger record
	stage    shuffles.Stage          // of the event in force or the last one
	staged   bool                    // and in the store
	records  map[anteroom.ID]*record // of shuffles, by their tag
	keeping  bool
	keepAt   anteroom.Time // not before, after a failure
	loading  sync.Mutex    // before the room's lock: a shuffle is read from the store
	unkept   atomic.Bool   // the store has to know something of an event
	sampled  anteroom.Time // when the live numbers were recorded last
}

func ledgerKey(id anteroom.RoomID) string { return ledgerPrefix + string(id) }

// forgottenKey is there from when a memory is given up until all rooms have begun anew.
const forgottenKey = "forgotten"

// Forget notes in a store that its journal is not to be believed, before it is dropped: the next node on it
// begins as with [Config.Forgot].
func Forget(ctx context.Context, store cluster.Space) error {
	_, err := store.Put(ctx, forgottenKey, []byte(time.Now().UTC().Format(time.RFC3339)))
	return err
}

// open starts a room from its ledger record and its events.
func (n *Node) open(ctx context.Context, room anteroom.Room, events []engine.Event, kept shuffles.Kept) (*Room, error) {
	r := newRoom(n, room)
	r.alone = &alone{records: map[anteroom.ID]*record{}, staged: true, storing: true}
	if err := r.recall(ctx, kept, events); err != nil {
		return nil, err
	}
	if n.forgot {
		events = nil
	}
	return r, r.begin(ctx, events, n.forgot)
}

// begin starts the machine, or another in its place: as a new incarnation when the memory of the one before
// is lost. The room's storing is on, and off afterwards.
func (r *Room) begin(ctx context.Context, events []engine.Event, forgot bool) error {
	defer r.storesNothing(false)
	n, name := r.node, r.schedule.plan.Name
	var before engine.LedgerRecord
	entry, err := n.cfg.Link.Get(ctx, ledgerKey(r.id))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return fmt.Errorf("room %s: its ledger record cannot be read: %w", name, err)
	default:
		if err := json.Unmarshal(entry.Value, &before); err != nil {
			return fmt.Errorf("room %s: its ledger record cannot be read: %w", name, err)
		}
	}
	key := engine.SiteKey{Name: n.cfg.Name, Incarnation: 1}
	for _, s := range before.Sites {
		if s.Site.Name == key.Name {
			key.Incarnation = max(key.Incarnation, s.Site.Incarnation)
		}
	}
	if forgot && len(before.Sites) > 0 {
		key.Incarnation++
	}
	seed := make([]byte, 32)
	rand.Read(seed)
	r.mu.Lock()
	r.revision = entry.Revision
	r.schedule.evaluate(walltime.Now())
	settings := r.schedule.inForce.Settings
	settings.Prequeueing = settings.Prequeueing || r.shuffleDue() // nobody is called before
	r.single = engine.NewSingle(n.Now(), key, settings, before, seed, events, 0)
	if !forgot {
		r.single.Recorded(n.until, n.Now())
	}
	if n.broken {
		r.single.SeenUntil(n.Now())
	}
	r.single.KeepTally()
	r.machine = r.single
	r.single.Origin(n.Now(), r.origin)
	r.abandonAll()
	r.apply()
	r.mu.Unlock()
	err = r.store(ctx)
	if errors.Is(err, cluster.ErrFull) { // sessions go on, and nobody is admitted before it is stored
		n.log.Error("the ledger record cannot be stored; no new visitor is admitted", "room", name, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("room %s: its ledger record cannot be stored: %w", name, err)
	}
	return nil
}

// outdated has all rooms begin anew when a cookie has proved that the journal is older than what happened:
// charged for everything that may be alive, they take sessions over from cookies. It returns when they have.
func (n *Node) outdated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	n.apply.Lock()
	defer n.apply.Unlock()
	if n.forgot {
		return nil // another request has
	}
	n.log.Error("a visitor's cookie proves that the data directory is outdated (was a snapshot restored?): recovering sessions and places from the visitors' cookies, " +
		"and admitting no new visitor until every session that may exist has come back or expired")
	if err := Forget(ctx, n.cfg.Link); err != nil {
		return err
	}
	n.mu.RLock()
	rooms := slices.Collect(maps.Values(n.rooms))
	n.mu.RUnlock()
	goOn := func(rooms []*Room) {
		for _, r := range rooms {
			r.storesNothing(false)
		}
	}
	for i, r := range rooms {
		if !r.storesNothing(true) {
			goOn(rooms[:i])
			return errStoring
		}
	}
	for i, r := range rooms {
		if err := r.begin(ctx, nil, true); err != nil {
			goOn(rooms[i+1:])
			return err
		}
	}
	n.forgot = true
	return n.cfg.Link.Delete(ctx, forgottenKey)
}

// storesNothing keeps the room from storing its ledger record, or lets it again. It is false when a record is
// being stored.
func (r *Room) storesNothing(on bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on && r.storing {
		return false
	}
	r.storing = on
	return true
}

// errStoring: a room's ledger record is being stored; it is tried again with the next request.
var errStoring = errors.New("node: a ledger record is being stored")

// store writes the ledger record if the machine needs it. The caller holds no lock.
func (r *Room) store(ctx context.Context) error {
	r.mu.Lock()
	rec, ok := r.single.Needs()
	revision := r.revision
	r.mu.Unlock()
	if !ok {
		return nil
	}
	value, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	revision, err = r.node.cfg.Link.Update(ctx, ledgerKey(r.id), value, revision)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.single.StoreFailed()
		return err
	}
	r.revision = revision
	r.single.Stored(r.now(), rec)
	r.settle()
	return nil
}

// storeSoon has the ledger record written in the background. The caller holds the lock.
func (r *Room) storeSoon() {
	if r.storing || r.closed || !r.single.MustStore() {
		return
	}
	r.storing = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.store(ctx); err != nil {
			r.node.log.Error("the ledger record cannot be stored; no more is granted than the last one allows; retrying", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		r.storing = false
		r.mu.Unlock()
	}()
}
