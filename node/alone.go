package node

// What only a process alone does: its machine decides by itself, so the ledger and the journal
// are its own.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/shuffles"
	"github.com/anteroom/anteroom/walltime"
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

// open starts a room from its ledger record and its events.
func (n *Node) open(ctx context.Context, room anteroom.Room, events []engine.Event, kept shuffles.Kept) (*Room, error) {
	r := newRoom(n, room)
	r.alone = &alone{records: map[anteroom.ID]*record{}, staged: true, storing: true}
	var before engine.LedgerRecord
	entry, err := n.cfg.Link.Get(ctx, ledgerKey(room.ID))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("room %s: its ledger record cannot be read: %w", room.Name, err)
	default:
		if err := json.Unmarshal(entry.Value, &before); err != nil {
			return nil, fmt.Errorf("room %s: its ledger record cannot be read: %w", room.Name, err)
		}
		r.revision = entry.Revision
	}
	key := engine.SiteKey{Name: n.cfg.Name, Incarnation: 1}
	for _, s := range before.Sites {
		if s.Site.Name == key.Name {
			key.Incarnation = max(key.Incarnation, s.Site.Incarnation)
		}
	}
	if n.cfg.Forgot && len(before.Sites) > 0 {
		key.Incarnation++
	}
	seed := make([]byte, 32)
	rand.Read(seed)
	if err := r.recall(ctx, kept, events); err != nil {
		return nil, err
	}
	r.schedule.evaluate(walltime.Now())
	settings := r.schedule.inForce.Settings
	settings.Prequeueing = settings.Prequeueing || r.shuffleDue() // nobody is called before
	r.single = engine.NewSingle(n.Now(), key, settings, before, seed, events, 0)
	if n.broken {
		r.single.SeenUntil(n.Now())
	}
	r.single.KeepTally()
	r.machine = r.single
	r.mu.Lock()
	r.apply()
	r.mu.Unlock()
	if err := r.store(ctx); err != nil {
		return nil, fmt.Errorf("room %s: its ledger record cannot be stored: %w", room.Name, err)
	}
	r.storing = false
	return r, nil
}

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
			r.node.log.Error("the ledger record cannot be stored; no more is granted than the last one allows", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		r.storing = false
		r.mu.Unlock()
	}()
}
