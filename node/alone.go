package node

// What only a standalone process does: its machine decides by itself, so it writes the ledger and the journal itself.

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

// alone is the part of a room that decides for itself. Guarded by the room's lock.
type alone struct {
	single   *engine.Single          // the machine
	revision uint64                  // of the ledger record
	storing  bool                    // the ledger record is being written
	stored   chan struct{}           // closes when it is; nil while none is written in the background
	visited  bool                    // since the machine began: until then nothing is granted, and no record is needed
	stage    shuffles.Stage          // of the event in force, or of the last one
	staged   bool                    // stage is in the store
	records  map[anteroom.ID]*record // of shuffles, by their tag
	keeping  bool
	keepAt   anteroom.Time // no attempt before this, after a failure
	loading  sync.Mutex    // taken before the room's lock; a shuffle is being read from the store
	unkept   atomic.Bool   // the store lacks something about an event
	sampled  anteroom.Time // when the live figures were last recorded
}

func ledgerKey(id anteroom.RoomID) string { return ledgerPrefix + string(id) }

// forgottenKey exists from the moment a journal is given up until all rooms have started as new incarnations.
const forgottenKey = "forgotten"

// Forget notes in a store that its journal cannot be trusted, before the journal is dropped: the next node on this
// store starts as with [Config.Forgot].
func Forget(ctx context.Context, store cluster.Space) error {
	_, err := store.Put(ctx, forgottenKey, []byte(time.Now().UTC().Format(time.RFC3339)))
	return err
}

// open opens a room from its ledger record and its events.
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

// begin starts the machine, or replaces it: as a new incarnation if the memory of the previous one is lost. The room's
// storing flag is set before and cleared after. The ledger record of the new machine is stored once somebody comes,
// or at once if the memory was lost.
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
	// Accounts of earlier incarnations are in the record, too. Going back to one of them would make its charged units
	// usable again.
	for _, s := range before.Sites {
		if s.Site.Name == key.Name {
			key.Incarnation = max(key.Incarnation, s.Site.Incarnation)
		}
	}
	// Without sites in the record nothing was ever granted, so there is nothing to be charged for.
	if forgot && len(before.Sites) > 0 {
		key.Incarnation++
	}
	seed := make([]byte, 32)
	rand.Read(seed)
	r.mu.Lock()
	r.revision = entry.Revision
	r.schedule.evaluate(walltime.Now())
	settings := r.schedule.inForce.Settings
	settings.Prequeueing = settings.Prequeueing || r.shuffleDue() // no one is called before the shuffle
	r.single = engine.NewSingle(n.Now(), key, settings, before, seed, events, 0)
	// What the journal does not reach may have happened all the same: the machine asks cookies about it.
	if !forgot {
		r.single.Recorded(n.until, n.Now())
	}
	// Sessions of a process that crashed may have been used until just now, unrecorded.
	if n.broken {
		r.single.SeenUntil(n.Now())
	}
	r.single.KeepTally()
	r.machine = r.single
	r.single.Origin(n.Now(), r.origin)
	r.abandonAll()
	r.apply()
	r.active.Store(!r.single.Idle())
	r.mu.Unlock()
	if !forgot {
		return nil
	}
	err = r.store(ctx)
	if errors.Is(err, cluster.ErrFull) { // sessions continue, and no one is admitted before it is stored
		n.log.Error("the ledger record cannot be stored; no new visitor is admitted", "room", name, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("room %s: its ledger record cannot be stored: %w", name, err)
	}
	return nil
}

// outdated restarts all rooms after a cookie has proved that the journal is older than what happened. They are charged
// for every session that may exist, and take sessions over from cookies. It returns when all have restarted.
func (n *Node) outdated(ctx context.Context) error {
	// The request that found this may be gone before the rooms are back; the work goes on for all others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	n.apply.Lock()
	defer n.apply.Unlock()
	if n.forgot { // another request was first
		return nil // another request has
	}
	n.log.Error("a visitor's cookie proves that the data directory is outdated (was a snapshot restored?): recovering sessions and places from the visitors' cookies, " +
		"and admitting no new visitor until every session that may exist has come back or expired")
	// First on record: a crash half-way would otherwise start the remaining rooms from the outdated journal.
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
	// A write in progress belongs to the old machine and would overwrite what the new one starts from.
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

// storesNothing keeps the room from storing its ledger record, or allows it again. It returns false if a record is
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

// errStoring: a room's ledger record is being stored; the next request tries again.
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
		// The machine falls back to the bound of the last stored record, and asks again.
		r.single.StoreFailed()
		return err
	}
	r.revision = revision
	// Only now may it grant up to the new bound.
	r.single.Stored(r.now(), rec)
	r.settle()
	return nil
}

// storeSoon writes the ledger record in the background. The caller holds the lock.
func (r *Room) storeSoon() {
	if !r.visited || r.storing || r.closed || !r.single.MustStore() {
		return
	}
	r.storing, r.stored = true, make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.store(ctx); err != nil {
			r.node.log.Error("the ledger record cannot be stored; no more is granted than the last one allows; retrying", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		// The next call of settle finds out whether another record is due.
		close(r.stored)
		r.storing, r.stored = false, nil
		r.mu.Unlock()
	}()
}
