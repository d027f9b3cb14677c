package node

// A room about which this process decides: it writes the ledger record and the journal itself.

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// near is who decides about a room of a standalone process. Guarded by the room's lock.
type near struct {
	*Room
	of       *standalone
	single   *engine.Single          // the machine; nil until somebody comes
	opened   anteroom.Time           // when the room was opened
	revision uint64                  // of the ledger record
	storing  bool                    // the ledger record is being written
	stored   chan struct{}           // closes when it is; nil while none is written in the background
	visited  bool                    // since the machine began: until then nothing is granted, and no record is needed
	stage    shuffles.Stage          // of the event in force, or of the last one
	staged   bool                    // stage is in the store
	records  map[anteroom.ID]*record // of shuffles, by their tag; nil: none
	keeping  bool
	keepAt   anteroom.Time // no attempt before this, after a failure
	loading  sync.Mutex    // taken before the room's lock; a shuffle is being read from the store
	unkept   bool          // the store lacks something about an event
	sampled  anteroom.Time // when the live figures were last recorded
}

func ledgerKey(id anteroom.RoomID) string { return ledgerPrefix + string(id) }

// openNear opens a room from its ledger record and its events. Most rooms of a large installation have neither, and nothing planned:
// their machine is made when somebody comes.
func (s *standalone) openNear(ctx context.Context, plan *anteroom.Room, events []engine.Event, kept shuffles.Kept) (*Room, error) {
	r := &near{Room: newRoom(s.Node, plan), of: s, opened: s.Now(), staged: true}
	r.Room.decider = r
	if err := r.recall(ctx, kept, events); err != nil {
		return nil, err
	}
	if s.forgot {
		events = nil
	}
	before, revision, err := r.ledger(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(events) == 0 && revision == 0 && len(plan.Events) == 0 {
		r.schedule.evaluate(walltime.Now())
		return r.Room, nil
	}
	if r.start(before, revision, events, s.forgot); s.forgot {
		r.mu.Unlock()
		err = r.storeAnew(ctx)
		r.mu.Lock()
	}
	return r.Room, err
}

// ledger reads the ledger record; revision 0: there is none.
func (r *near) ledger(ctx context.Context) (before engine.LedgerRecord, revision uint64, err error) {
	entry, err := r.node.cfg.Link.Get(ctx, ledgerKey(r.id))
	if errors.Is(err, cluster.ErrNotFound) {
		return before, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &before)
	}
	if err != nil {
		err = fmt.Errorf("room %s: its ledger record cannot be read: %w", r.schedule.plan.Name, err)
	}
	return before, entry.Revision, err
}

func (r *near) begin() { r.start(engine.LedgerRecord{}, 0, nil, false) }

// start makes the machine, or replaces it: as a new incarnation if the memory of the previous one is lost. The ledger record of
// the new machine is stored once somebody comes. The caller holds the lock.
func (r *near) start(before engine.LedgerRecord, revision uint64, events []engine.Event, forgot bool) {
	key := engine.SiteKey{Name: r.node.cfg.Name, Incarnation: 1}
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
	r.revision = revision
	r.schedule.evaluate(walltime.Now())
	settings := r.schedule.inForce.Settings
	settings.Prequeueing = settings.Prequeueing || r.shuffleDue() // no one is called before the shuffle
	now := r.now()
	// Sessions of a process that crashed may have been used until this one started, unrecorded, for as long as its disk was full.
	seen := anteroom.Time(0)
	switch {
	case r.of.broken && forgot:
		seen = now
	case r.of.broken:
		seen = r.opened
	}
	r.single = engine.NewSingle(now, key, settings, before, seed, events, 0, seen)
	// What the journal does not reach may have happened all the same: the machine asks cookies about it.
	if !forgot {
		r.single.Recorded(r.of.until, r.opened)
	}
	r.single.KeepTally()
	r.use(r.single)
	r.single.Origin(now, r.facts)
	r.abandonAll()
	r.Room.apply()
	r.active.Store(!r.idle())
}

// anew starts the room as a new incarnation, and allows it to store its ledger record again.
func (r *near) anew(ctx context.Context) error {
	defer r.storesNothing(false)
	before, revision, err := r.ledger(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.start(before, revision, nil, true)
	r.mu.Unlock()
	return r.storeAnew(ctx)
}

// storeAnew stores the ledger record of a new incarnation: what it is charged for must survive the process.
func (r *near) storeAnew(ctx context.Context) error {
	err := r.store(ctx)
	if errors.Is(err, cluster.ErrFull) { // sessions continue, and no one is admitted before it is stored
		r.node.log.Error("the ledger record cannot be stored; no new visitor is admitted", "room", r.schedule.plan.Name, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("room %s: its ledger record cannot be stored: %w", r.schedule.plan.Name, err)
	}
	return nil
}

func (r *near) now() anteroom.Time                  { return r.node.clock.now() }
func (r *near) timeAt(wall time.Time) anteroom.Time { return r.node.clock.at(wall) }

func (r *near) visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	d, held = r.single.Visit(now, v)
	r.visited = r.visited || held != 0 || d.Reason != anteroom.ReasonSession
	return d, held
}

// restart: a cookie proves that the journal is older than the visitor's session (ADR 0016), so every room has to start again.
func (r *near) restart() func(context.Context) error {
	if r.single.Older() {
		return r.of.outdated
	}
	return nil
}

func (r *near) apply(now anteroom.Time, wall time.Time) {
	// The stage first: it may begin a shuffle, and the settings then stop admissions until it is done.
	r.advance(now)
	r.single.Hold(now, r.holding || r.released)
	// Visitors of a prequeue learn when it ends, so that those without a stream come back in time for their turn.
	r.single.Expect(r.schedule.opening(now, wall))
}

func (r *near) origin(now anteroom.Time, f engine.OriginFacts) { r.single.Origin(now, f) }

func (r *near) record() { r.recordAll() }

// recordAll queues what has happened for the journal, and returns the batch that it is part of; nil: nothing has.
func (r *near) recordAll() (b *batch) {
	if events := r.single.TakeEvents(); len(events) > 0 {
		b = r.of.journal.add(r.id, events)
	}
	return b
}

func (r *near) settled() { r.storeSoon() }

func (r *near) ticked(now anteroom.Time) {
	r.keepSoon(now)
	r.sample(now)
}

func (r *near) idle() bool { return r.single.Idle() && !r.unkept }

func (r *near) recorded(began anteroom.Time) bool { return r.of.journal.recorded(began) }

// onRecord returns a decision that admits a visitor once the session is recorded. If nothing can be written, it is the
// waiting page: without a record, a crash would give the same seat to another visitor. The session stays the visitor's,
// and the next request finds it.
func (r *near) onRecord(ctx context.Context, d anteroom.Decision) anteroom.Decision {
	if r.recorded(d.Ticket.AcceptedAt) {
		return d
	}
	r.mu.Lock()
	everybody := r.schedule.inForce.QueueingMethod == anteroom.Passthrough
	r.mu.Unlock()
	// Passthrough has no limit that a forgotten session could break.
	if everybody || r.of.journal.wait(ctx, d.Ticket.AcceptedAt) || r.node.lenient.Load() {
		return d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := d.Ticket
	// The page's ticket must not claim an admission that is not recorded, and its refresh is short, because the record
	// may follow in a moment.
	t.AcceptedAt, t.LastCheckIn, t.Refresh, t.Home = 0, d.At, engine.MinInterval, 0
	t.Arrival, t.Next = cmp.Or(t.Arrival, d.At), d.At.Add(t.Refresh)
	page := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonFull, At: d.At, Refresh: t.Refresh, Ticket: t, SetCookie: d.SetCookie,
		KeptUntil: t.Next.Add(r.schedule.inForce.PlaceHold)}
	r.complete(&page)
	return page
}

func (r *near) status() anteroom.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	if r.single == nil {
		return engine.Unvisited(now, r.schedule.inForce.Settings)
	}
	return r.single.Status(now)
}

// storesNothing keeps the room from storing its ledger record, or allows it again. It returns false if a record is
// being stored.
func (r *near) storesNothing(on bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on && r.storing {
		return false
	}
	r.storing = on
	return true
}

// store writes the ledger record if the machine needs it. The caller holds no lock.
func (r *near) store(ctx context.Context) error {
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
	now := r.now()
	r.single.Stored(now, rec)
	r.settle(now)
	return nil
}

// storeSoon writes the ledger record in the background. The caller holds the lock.
func (r *near) storeSoon() {
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

// sample records the live figures once per second. The caller holds the lock.
func (r *near) sample(now anteroom.Time) {
	const second = anteroom.Time(time.Second / time.Microsecond)
	if now/second == r.sampled/second {
		return
	}
	r.sampled = now
	s := r.single.Status(now)
	s.InForce = r.schedule.inForce
	r.recorder.Sample(&s)
}

func (r *near) admitNow(ctx context.Context, n int) (int, error) {
	given := 0
	for range admitTries {
		more, stored, err := r.admit(n - given)
		if given += more; err != nil || given == n || stored == nil {
			return given, err
		}
		select {
		case <-stored:
		case <-ctx.Done():
			return given, nil
		}
	}
	return given, nil
}

// admitTries is how often AdmitNow tries: once with what is reserved, and then after the record of a room that nobody had
// visited, and after one that reserves more.
const admitTries = 3

// admit gives turns; it returns a channel that closes when a ledger record is stored after which more may be admitted; nil if there is none.
func (r *near) admit(n int) (given int, stored <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	switch {
	case r.released || r.closed:
		return 0, nil, anteroom.Errorf(anteroom.Unavailable, "the room is being handed over to another process: try again in a moment")
	case r.holding:
		return 0, nil, anteroom.Errorf(anteroom.Unavailable, "admissions cannot be recorded, so no new visitor is admitted: the log says what is wrong with the disk")
	}
	r.wake()
	r.visited = true
	given = r.single.AdmitNow(now, n)
	r.active.Store(true)
	r.settle(now)
	return given, r.stored, nil
}

func (r *near) find(ctx context.Context, prefix []byte) ([]engine.Visitor, error) {
	ids, err := matching(prefix, func(at engine.Place) (some []anteroom.ID, next engine.Place, more bool, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wake()
		some, next, more = r.single.Search(prefix, at)
		return some, next, more, ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	var found []engine.Visitor
	for _, id := range ids {
		if v, ok := r.single.Visitor(now, id); ok {
			v.AheadKnown = v.AheadKnown && !r.shuffles()
			found = append(found, v)
		}
	}
	return found, nil
}

func (r *near) revoked(context.Context) ([]anteroom.ID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.single == nil {
		return nil, true
	}
	return r.single.Revoked()
}

func (r *near) endSession(_ context.Context, id anteroom.ID) (bool, error) { return r.Revoke(id), nil }
