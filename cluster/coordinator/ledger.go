package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// record is what the store holds about a room's ledger. A standalone process writes only the first part.
type record struct {
	engine.LedgerRecord
	Term   uint64 `json:",omitempty"` // epoch of the role under which it was written
	Writer string `json:",omitempty"` // the host that wrote it
}

func ledgerKey(id anteroom.RoomID) string { return "ledger." + string(id) }

// standOff is how long the record of a later holder is respected: long enough for this host to notice that it no longer
// holds the role. It is not respected forever, because a restored store may hand out lower epochs than before.
const standOff = 3 * time.Second

var errFenced = errors.New("coordinator: another host has written the record")

// begin makes the coordinator from the record of its predecessor. It retries until it succeeds or the room has ended.
func (r *room) begin() {
	s := r.shard
	var stoodOff bool
	for {
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		before, revision, err := r.load(ctx)
		// A higher term means that a newer host may be running, so this one waits before it takes the room over: two
		// hosts that overwrite each other's records would grant nothing at all.
		if err == nil && before.Term > s.epoch && !stoodOff {
			cancel()
			if s.fenced.Load() { // the writer is alive, so the role is its
				s.lose()
				return
			}
			stoodOff = true
			if !walltime.Sleep(s.ctx, standOff) {
				return
			}
			continue
		}
		var past recorded
		// What is known about events comes before the coordinator starts: a coordinator that does not know of a shuffle
		// would call visitors in the old order.
		if err == nil {
			past, err = r.recall(ctx)
		}
		if err == nil {
			err = r.start(ctx, before.LedgerRecord, revision, past)
		}
		cancel()
		switch {
		case err == nil:
			s.flush()
			return
		case s.ctx.Err() != nil:
			return
		case errors.Is(err, cluster.ErrRevision): // another host has written, or this one did and lost the answer
			// Half a tick is enough to let the other write finish, and short against the seconds that visitors wait.
			if !walltime.Sleep(s.ctx, tickEvery/2) {
				return
			}
			continue
		}
		s.complain("the coordinator of a room cannot start; retrying", "room", string(r.id), "error", err)
		if !walltime.Sleep(s.ctx, storeAgain) {
			return
		}
	}
}

func (r *room) load(ctx context.Context) (rec record, revision uint64, err error) {
	entry, err := r.shard.host.cfg.Link.Site().Get(ctx, ledgerKey(r.id))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return rec, 0, nil
	// A room without a record is new. It starts with nothing granted.
	case err != nil:
		return rec, 0, err
	}
	// A damaged record is an error and not an empty one: starting from zero would grant units that sites already use.
	if err := json.Unmarshal(entry.Value, &rec); err != nil {
		return rec, 0, &cluster.DamagedError{What: ledgerKey(r.id), Err: err}
	}
	return rec, entry.Revision, nil
}

// start makes the coordinator, stores that it begins, and only then lets it send messages: its grants rest on that
// record.
func (r *room) start(ctx context.Context, before engine.LedgerRecord, revision uint64, past recorded) error {
	s := r.shard
	r.mu.Lock()
	r.evaluate(s.host.cfg.Now())
	r.stage, r.done = past.stage, anteroom.ID{}
	if past.shuffle != nil {
		r.done = past.tag
	}
	recorded := before.Epoch
	// The machine starts with every unit up to the stored bound counted as granted (engine T1), so it can be made
	// before any site has reported.
	r.before.Time = s.roomTime()
	machine, older := r.before.Begin(s.now(), r.settings(), before, newSeed())
	if older {
		s.complain("the ledger record in the store is older than what a site was granted: was the store restored to an older state?",
			"room", string(r.id), "epoch", recorded, "next", machine.Epoch())
	}
	if past.shuffle != nil {
		// Sites that bring visitors with keys from before the shuffle get the recorded order again.
		past.redo(s.now(), machine)
	}
	rec, _ := machine.Needs()
	// The lock is not held over the write: reports keep arriving, and r.before collects them.
	r.mu.Unlock()
	r.writing.Lock()
	defer r.writing.Unlock()
	revision, err := r.update(ctx, rec, revision)
	if err != nil {
		return err
	}
	r.revision = revision
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.machine, r.storing = machine, false
	r.apply() // the plan may have changed during the write
	// Reports that arrived during the write are handed over now, in their order.
	r.before.Done(r.follow(), r.machine, rec)
	r.drain()
	return nil
}

// update writes the record unless another host has written one, and limits how many writes run at the same time.
func (r *room) update(ctx context.Context, rec engine.LedgerRecord, revision uint64) (uint64, error) {
	h := r.shard.host
	value, err := json.Marshal(record{LedgerRecord: rec, Term: r.shard.epoch, Writer: h.writer})
	if err != nil {
		return 0, err
	}
	// After a takeover, thousands of rooms write at once. More writes than this would only queue in the store, and time
	// out there.
	select {
	case h.stores <- struct{}{}:
		defer func() { <-h.stores }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return h.cfg.Link.Site().Update(ctx, ledgerKey(r.id), value, revision)
}

// store writes the ledger record if the machine needs it. The caller holds no lock. After errFenced, another host has
// written one and the room is dropped.
func (r *room) store(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	machine := r.machine
	if machine == nil {
		// The room was dropped or given up: the caller must not grant anything on its behalf.
		r.mu.Unlock()
		return errFenced
	}
	rec, ok := machine.Needs()
	r.mu.Unlock()
	if !ok {
		return nil
	}
	revision, err := r.update(ctx, rec, r.revision)
	if errors.Is(err, cluster.ErrRevision) {
		// A revision that does not match may be this host's own write, whose answer was lost.
		revision, err = r.mine(ctx, rec)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.machine == nil:
		return errFenced
	case errors.Is(err, errFenced):
		r.fenced("its record was written")
		return err
	case err != nil:
		// The machine falls back to the bound of the last stored record, and asks again.
		machine.StoreFailed()
		return err
	}
	r.revision = revision
	// Only now may grants up to the new bound leave.
	machine.Stored(r.shard.now(), rec)
	r.drain()
	return nil
}

// mine writes the record again if the record in the way was written by this coordinator itself, because the answer to
// that write was lost.
func (r *room) mine(ctx context.Context, rec engine.LedgerRecord) (uint64, error) {
	there, revision, err := r.load(ctx)
	switch {
	case err != nil:
		return 0, err
	// Writer and epoch together identify this coordinator: a host that lost the role and regained it has another epoch.
	case there.Writer != r.shard.host.writer || there.Epoch != rec.Epoch || revision == 0:
		return 0, errFenced
	}
	revision, err = r.update(ctx, rec, revision)
	if errors.Is(err, cluster.ErrRevision) {
		return 0, cluster.ErrUnavailable // a third writer raced; the next attempt finds out who
	}
	return revision, err
}

// storeSoon writes the record in the background if it is needed. The caller holds the lock.
func (r *room) storeSoon() {
	if r.storing || r.machine == nil || !r.machine.MustStore() {
		return
	}
	r.storing = true
	go func() {
		s := r.shard
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		defer cancel()
		if err := r.store(ctx); err != nil && !errors.Is(err, errFenced) {
			s.complain("a ledger record cannot be stored; the coordinator grants no more than the last one allows", "room", string(r.id), "error", err)
			// Without this pause, a store that fails at once would be asked in a loop.
			walltime.Sleep(s.ctx, storeAgain)
		}
		r.mu.Lock()
		r.storing = false
		// The machine may have asked for more while this record was being written.
		r.storeSoon()
		r.mu.Unlock()
		s.flush()
	}()
}

// rest gives the coordinator up when the room is unused. The caller holds the lock.
func (r *room) rest(now anteroom.Time) {
	// Work in progress needs the machine: a write, a shuffle, or an event whose phase is not stored.
	if r.machine == nil || r.storing || r.keeping || r.draw != nil || !r.staged {
		return
	}
	rec, ok := r.machine.Rest(now)
	if !ok {
		return
	}
	// The machine goes first, so that a report from now on is kept for the next coordinator instead of changing this
	// one.
	r.machine, r.storing = nil, true
	go func() {
		s := r.shard
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		defer cancel()
		r.writing.Lock()
		_, err := r.update(ctx, rec, r.revision)
		r.writing.Unlock()
		if err != nil { // the next coordinator then starts with the reserved bound, which is safe but lends fewer units at first
			s.complain("the ledger record of a room that nobody uses cannot be stored", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		waiting := r.before.Waiting()
		r.mu.Unlock()
		s.drop(r)
		// Reports that arrived meanwhile open the room again.
		for _, report := range waiting {
			s.report(r.key, report)
		}
	}()
}
