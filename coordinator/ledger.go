package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// record is what the store has of a room's ledger. A process alone writes the first part.
type record struct {
	engine.LedgerRecord
	Term   uint64 `json:",omitempty"` // epoch of the role whose holder wrote it
	Writer string `json:",omitempty"` // its host
}

func ledgerKey(id anteroom.RoomID) string { return "ledger." + string(id) }

// standOff is how long a record of a later holder is respected: as long as it can take this one
// to notice that it is none. A store that was restored may give lower epochs than before.
const standOff = 3 * time.Second

var errFenced = errors.New("coordinator: another host has written the record")

// begin makes the coordinator from the record of its predecessor. It tries until it succeeds or
// the room has ended.
func (r *room) begin() {
	s := r.shard
	var stoodOff bool
	for {
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		before, revision, err := r.load(ctx)
		if err == nil && before.Term > s.epoch && !stoodOff {
			cancel()
			if s.fenced.Load() { // by somebody who lives: the role is another's
				s.lose()
				return
			}
			stoodOff = true
			if !s.sleep(standOff) {
				return
			}
			continue
		}
		var past recorded
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
		case errors.Is(err, cluster.ErrRevision): // another has written, or this one with an answer that was lost
			if !s.sleep(tickEvery / 2) {
				return
			}
			continue
		}
		s.complain("the coordinator of a room cannot start; retrying", "room", string(r.id), "error", err)
		if !s.sleep(storeAgain) {
			return
		}
	}
}

func (r *room) load(ctx context.Context) (rec record, revision uint64, err error) {
	entry, err := r.shard.host.cfg.Link.Site().Get(ctx, ledgerKey(r.id))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return rec, 0, nil
	case err != nil:
		return rec, 0, err
	}
	if err := json.Unmarshal(entry.Value, &rec); err != nil {
		return rec, 0, &cluster.DamagedError{What: ledgerKey(r.id), Err: err}
	}
	return rec, entry.Revision, nil
}

// start makes the coordinator, stores that it begins, and lets it speak.
func (r *room) start(ctx context.Context, before engine.LedgerRecord, revision uint64, past recorded) error {
	s := r.shard
	r.mu.Lock()
	r.evaluate(s.host.cfg.Now())
	r.stage, r.done = past.stage, anteroom.ID{}
	if past.shuffle != nil {
		r.done = past.tag
	}
	recorded := before.Epoch
	r.before.Time = s.roomTime()
	machine, older := r.before.Begin(s.now(), r.settings(), before, newSeed())
	if older {
		s.complain("the ledger record in the store is older than what a site was granted: was the store restored to an older state?",
			"room", string(r.id), "epoch", recorded, "next", machine.Epoch())
	}
	if past.shuffle != nil {
		past.redo(s.now(), machine)
	}
	rec, _ := machine.Needs()
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
	r.apply() // the plan may have changed meanwhile
	r.before.Done(r.follow(), r.machine, rec)
	r.drain()
	return nil
}

// update writes the record if nobody else has; no more than a few at once.
func (r *room) update(ctx context.Context, rec engine.LedgerRecord, revision uint64) (uint64, error) {
	h := r.shard.host
	value, err := json.Marshal(record{LedgerRecord: rec, Term: r.shard.epoch, Writer: h.writer})
	if err != nil {
		return 0, err
	}
	select {
	case h.stores <- struct{}{}:
		defer func() { <-h.stores }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return h.cfg.Link.Site().Update(ctx, ledgerKey(r.id), value, revision)
}

// store writes the ledger record if the machine needs it. The caller holds no lock. errFenced:
// another host has, and the room is dropped.
func (r *room) store(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	machine := r.machine
	if machine == nil {
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
		machine.StoreFailed()
		return err
	}
	r.revision = revision
	machine.Stored(r.shard.now(), rec)
	r.drain()
	return nil
}

// mine writes the record once more when the one that is in the way is this coordinator's own: the
// answer to an earlier write was lost.
func (r *room) mine(ctx context.Context, rec engine.LedgerRecord) (uint64, error) {
	there, revision, err := r.load(ctx)
	switch {
	case err != nil:
		return 0, err
	case there.Writer != r.shard.host.writer || there.Epoch != rec.Epoch || revision == 0:
		return 0, errFenced
	}
	revision, err = r.update(ctx, rec, revision)
	if errors.Is(err, cluster.ErrRevision) {
		return 0, cluster.ErrUnavailable // again, by the next
	}
	return revision, err
}

// storeSoon has the record written in the background, if it is needed. The caller holds the lock.
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
			s.sleep(storeAgain)
		}
		r.mu.Lock()
		r.storing = false
		r.storeSoon()
		r.mu.Unlock()
		s.flush()
	}()
}

// rest gives the coordinator up when nobody uses the room. The caller holds the lock.
func (r *room) rest(now anteroom.Time) {
	if r.machine == nil || r.storing || r.keeping || r.draw != nil || !r.staged {
		return
	}
	rec, ok := r.machine.Rest(now)
	if !ok {
		return
	}
	r.machine, r.storing = nil, true
	go func() {
		s := r.shard
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		defer cancel()
		r.writing.Lock()
		_, err := r.update(ctx, rec, r.revision)
		r.writing.Unlock()
		if err != nil { // the next begins with what is reserved ahead
			s.complain("the ledger record of a room that nobody uses cannot be stored", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		waiting := r.before.Waiting()
		r.mu.Unlock()
		s.drop(r)
		for _, report := range waiting {
			s.report(r.key, report)
		}
	}()
}
