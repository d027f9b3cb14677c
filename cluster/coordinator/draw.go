package coordinator

// The shuffle at the start of an event: admissions stop, the sites report everyone who is waiting, the participants are
// recorded where anyone can read them, and only then do the sites learn the order.

import (
	"context"
	"errors"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// keepFor bounds the writing of a shuffle; after a failure, keepAgain passes before the next attempt.
	keepFor   = 30 * time.Second
	keepAgain = 2 * time.Second
)

// draw is a shuffle in progress.
type draw struct {
	tag    anteroom.ID
	event  anteroom.Event
	number int
	span   time.Duration
	asked  bool // the sites were asked for everyone who waits there
	record *shuffles.Record
}

// recorded is what the store knows about a room's event.
type recorded struct {
	stage   shuffles.Stage
	tag     anteroom.ID
	shuffle *anteroom.Shuffle // of the event in force; nil when there is none
	span    time.Duration
}

// recall reads the phase of the room's event.
func (r *room) recall(ctx context.Context) (past recorded, err error) {
	r.mu.Lock()
	events := len(r.plan.Events)
	r.evaluate(r.shard.host.cfg.Now())
	f := r.inForce
	r.mu.Unlock()
	if events == 0 {
		return past, nil
	}
	store := r.shard.host.shuffles
	if past.stage, err = store.Stage(ctx, r.id); err != nil {
		return past, err
	}
	// Without a shuffle in this event, the stage alone decides.
	if f.Phase != anteroom.Started || !f.Event.ShuffleAtStart {
		return past, nil
	}
	past.tag, past.span = shuffles.Tag(f.Event.ID, f.Number), f.Start.Sub(f.Prequeue)
	past.shuffle, err = store.Read(ctx, r.id, past.tag)
	var damaged *cluster.DamagedError
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return past, nil
	case errors.As(err, &damaged):
		// Sites may already have the new keys. A second shuffle would contradict the order that visitors have seen, so
		// the order stays as it is.
		r.shard.complain("the record of a shuffle is damaged; the order of places that were not shuffled yet stays", "room", string(r.id), "error", err)
		past.stage.Started = true
		return past, nil
	}
	return past, err
}

// redo restores the recorded order for visitors whom a site reports with an older key.
func (p *recorded) redo(now anteroom.Time, c *engine.Coordinator) {
	sh := p.shuffle
	c.Reshuffle(now, engine.Shuffle{At: sh.At, IDs: sh.IDs, Entries: sh.Entries}, sh.Seed[:], p.span)
}

// shuffleDue reports whether the prequeue of the event in force has ended and its queue has not been shuffled yet. The
// caller holds the lock.
func (r *room) shuffleDue() bool {
	f := r.inForce
	return f.Phase == anteroom.Started && f.Event.ShuffleAtStart &&
		// Only if this event's prequeue was seen: an event that starts without one has no one to shuffle.
		r.stage == shuffles.Stage{Event: f.Event.ID, Number: f.Number} && r.done != shuffles.Tag(f.Event.ID, f.Number)
}

// advance follows the phase of the event in force. At the start it begins the shuffle, before the event's settings are
// in force. The caller holds the lock.
func (r *room) advance(now anteroom.Time) {
	f, next := r.inForce, r.stage
	// An event that was deleted or moved while visitors were gathered is not shuffled. Once the record exists, the
	// shuffle is completed, because the record may have been read.
	if r.draw != nil && (f.Phase != anteroom.Started || shuffles.Tag(f.Event.ID, f.Number) != r.draw.tag) && r.draw.record == nil {
		r.draw = nil // called off
	}
	switch {
	case f.Phase == anteroom.Prequeueing:
		next = shuffles.Stage{Event: f.Event.ID, Number: f.Number}
	case r.draw != nil:
	case r.shuffleDue():
		r.draw = &draw{tag: shuffles.Tag(f.Event.ID, f.Number), event: *f.Event, number: f.Number, span: f.Start.Sub(f.Prequeue)}
	case r.stage != shuffles.Stage{}:
		next.Started = true // no shuffle, or the event was called off
	}
	if next != r.stage {
		r.stage, r.staged = next, false
	}
}

// gather asks the sites for everyone who waits there, once admissions have stopped. The caller holds the lock.
func (r *room) gather(now anteroom.Time) {
	if r.draw != nil && !r.draw.asked {
		r.draw.asked = true
		r.machine.Gather(now)
	}
}

// proceed continues a shuffle in progress. The caller holds the lock.
func (r *room) proceed(now anteroom.Time) {
	d := r.draw
	if d == nil || d.record != nil || !d.asked || !r.machine.GatherOver(now) {
		return
	}
	rec := shuffles.RecordOf(&d.event, d.number, r.machine.Entrants(now))
	d.record = &rec
	go r.keepDraw(d) // writing takes up to keepFor, and the room must go on answering reports
}

// keepDraw stores the shuffle and then tells the sites: an order that visitors have seen must survive a crash. The
// caller holds no lock.
func (r *room) keepDraw(d *draw) {
	s := r.shard
	for {
		err := r.writeDraw(d)
		if err == nil {
			break
		}
		// Another host has the room now and shuffles it itself.
		if errors.Is(err, errFenced) || s.ctx.Err() != nil {
			return
		}
		s.complain("a shuffle cannot be stored; no visitor is admitted until it is", "room", string(r.id), "error", err)
		if !walltime.Sleep(s.ctx, keepAgain) {
			return
		}
	}
	r.mu.Lock()
	// The room may have ended, or the event may have been called off, while the record was written.
	if r.machine != nil && r.draw == d {
		past := recorded{shuffle: d.record.Shuffle, span: d.span}
		past.redo(s.now(), r.machine)
		r.done, r.draw = d.tag, nil
		r.apply()
		r.drain()
	}
	r.mu.Unlock()
	s.flush()
	if err := r.prune(); err != nil && s.ctx.Err() == nil {
		s.complain("old shuffles cannot be deleted", "room", string(r.id), "error", err)
	}
}

// writeDraw stores the shuffle. The ledger record is written after it: if that succeeds, no other host has taken the
// room over, so there is no second shuffle.
func (r *room) writeDraw(d *draw) error {
	ctx, cancel := context.WithTimeout(r.shard.ctx, keepFor)
	defer cancel()
	if _, err := r.shard.host.shuffles.Keep(ctx, r.id, *d.record); err != nil {
		return err
	}
	r.mu.Lock()
	if r.machine != nil {
		r.machine.StoreFailed() // forces a write even if the bound has not changed
	}
	r.mu.Unlock()
	return r.store(ctx)
}

func (r *room) prune() error {
	ctx, cancel := context.WithTimeout(r.shard.ctx, keepFor)
	defer cancel()
	store := r.shard.host.shuffles
	tags, err := store.Tags(ctx, r.id)
	if err == nil {
		_, err = store.Prune(ctx, r.id, tags)
	}
	return err
}

// keepSoon stores the phase of the event in the background. The caller holds the lock.
func (r *room) keepSoon(wall time.Time) {
	if r.staged || r.keeping || wall.Before(r.keepAt) {
		return
	}
	r.keeping = true
	at := r.stage
	go func() {
		s := r.shard
		ctx, cancel := context.WithTimeout(s.ctx, storeFor)
		defer cancel()
		err := s.host.shuffles.PutStage(ctx, r.id, at)
		if err != nil && s.ctx.Err() == nil {
			s.complain("the phase of an event cannot be stored; retrying", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keeping = false
		if err != nil {
			r.keepAt = s.host.cfg.Now().Add(keepAgain)
		} else if r.stage == at { // the phase may have changed again during the write
			r.staged = true
		}
	}()
}
