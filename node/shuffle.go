package node

// The shuffle at the start of an event: when it is due, and what is stored about it.

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// maxLoaded is how many shuffles are kept in memory: each takes up to 80 MB, and there is seldom more than one.
	maxLoaded = 3

	keepAgain = 2 * time.Second // after a failure
)

// record is a completed shuffle.
type record struct {
	shuffles.Record // its Shuffle is nil while it is only in the store
	public          bool
	recorded        *batch // its journal batch; the shuffle is public only when this is durable
}

// recall finds out how far the room's events had come before this process started.
func (r *near) recall(ctx context.Context, kept shuffles.Kept, events []engine.Event) (err error) {
	for _, tag := range kept.Shuffles[r.id] {
		r.known(tag, &record{public: true})
	}
	if !kept.Stages[r.id] {
		return nil
	}
	if r.stage, err = r.node.shuffles.Stage(ctx, r.id); err != nil {
		return fmt.Errorf("room %s: the record of its events cannot be read: %w", r.schedule.plan.Name, err)
	}
	// A crash between journal and store leaves a shuffle that visitors may have seen. The journal has all that is
	// needed to store it now.
	tag := shuffles.Tag(r.stage.Event, r.stage.Number)
	if e := r.event(r.stage.Event); e != nil && r.records[tag] == nil {
		if sh, whole := shuffleIn(events, tag); whole {
			r.known(tag, &record{Record: shuffles.RecordOf(e, r.stage.Number, sh)})
			r.unkept = true
		}
	}
	return nil
}

func (r *near) known(tag anteroom.ID, rec *record) {
	if r.records == nil {
		r.records = map[anteroom.ID]*record{}
	}
	r.records[tag] = rec
}

// shuffleIn finds the newest complete shuffle with the tag among the events of a journal. An incomplete one was never
// shown to anyone.
func shuffleIn(events []engine.Event, tag anteroom.ID) (sh engine.Shuffle, whole bool) {
	var ids []anteroom.ID
	within := false
	for _, e := range events {
		switch {
		case e.Kind == engine.EventShuffle:
			within, ids = e.ID == tag, nil
		case e.Kind == engine.EventDrawn && within:
			ids = append(ids, e.ID)
		case e.Kind == engine.EventShuffled && within && e.ID == tag:
			slices.SortFunc(ids, func(a, b anteroom.ID) int { return cmp.Compare(string(a[:]), string(b[:])) })
			sh, whole, within = engine.Shuffle{At: e.Key, IDs: ids, Entries: engine.Entries(ids)}, true, false
		}
	}
	return sh, whole
}

func (r *Room) event(id anteroom.EventID) *anteroom.Event {
	for i := range r.schedule.plan.Events {
		if r.schedule.plan.Events[i].ID == id {
			return &r.schedule.plan.Events[i]
		}
	}
	return nil
}

// shuffleDue reports whether the event in force has just ended its prequeue and the queue is to be shuffled. The caller
// holds the lock.
func (r *near) shuffleDue() bool {
	f := r.schedule.inForce
	return f.Phase == anteroom.Started && f.Event.ShuffleAtStart &&
		r.stage == shuffles.Stage{Event: f.Event.ID, Number: f.Number} && r.records[shuffles.Tag(f.Event.ID, f.Number)] == nil
}

// advance follows the phase of the event in force. At the start it shuffles the queue, before the event's settings are
// in force. The caller holds the lock.
func (r *near) advance(now anteroom.Time) {
	if r.released {
		return // the successor does it
	}
	f, next := r.schedule.inForce, r.stage
	switch {
	case f.Phase == anteroom.Prequeueing:
		next = shuffles.Stage{Event: f.Event.ID, Number: f.Number}
	case r.stage != shuffles.Stage{}:
		next.Started = true // or the event was called off
	}
	if r.shuffleDue() {
		e := f.Event
		tag, seed := shuffles.Tag(e.ID, f.Number), e.OccurrenceSeed(f.Number)
		sh := r.single.Shuffle(now, tag, seed[:], f.Start.Sub(f.Prequeue))
		// No one may see the order before it is durable, so the record waits for this batch.
		r.known(tag, &record{Record: shuffles.RecordOf(e, f.Number, sh), recorded: r.recordAll()})
		r.settle(now)
		r.unkept = true
	}
	if next != r.stage {
		r.stage, r.staged = next, false
		r.unkept = true
	}
}

// keepSoon writes what the store has to know about events, in the background. The caller holds the lock.
func (r *near) keepSoon(now anteroom.Time) {
	if !r.unkept || r.keeping || r.closed || now < r.keepAt {
		return
	}
	r.keeping = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		done, err := r.keep(ctx)
		if err != nil {
			r.node.log.Error("the record of an event cannot be stored; retrying", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keeping = false
		if err != nil {
			r.keepAt = r.now().Add(keepAgain)
		} else if done && !r.mustKeep() {
			r.unkept = false
		}
	}()
}

// mustKeep reports whether something is not in the store yet. The caller holds the lock.
func (r *near) mustKeep() bool {
	if !r.staged {
		return true
	}
	for _, rec := range r.records {
		if !rec.public {
			return true
		}
	}
	return false
}

// keep writes shuffles, and then the stage, which says that they are complete. done is false if the journal has to be
// written first.
func (r *near) keep(ctx context.Context) (done bool, err error) {
	r.mu.Lock()
	at, staged := r.stage, r.staged
	var unkept []*record
	for _, rec := range r.records {
		if !rec.public {
			unkept = append(unkept, rec)
		}
	}
	r.mu.Unlock()
	for _, rec := range unkept {
		if rec.recorded != nil {
			select {
			case <-rec.recorded.done:
			default:
				return false, nil // readers must be able to rely on a public record
			}
		}
		dropped, err := r.node.shuffles.Keep(ctx, r.id, rec.Record)
		r.of.forgetShuffles(dropped)
		if err != nil {
			return false, err
		}
		r.mu.Lock()
		rec.public = true
		r.unload(rec)
		r.mu.Unlock()
		if err := r.prune(ctx); err != nil {
			return false, err
		}
	}
	// The stage last: it says that the shuffle of its event is in the store.
	if staged {
		return true, nil
	}
	if err := r.node.shuffles.PutStage(ctx, r.id, at); err != nil {
		return false, err
	}
	r.mu.Lock()
	// The phase may have changed again during the write.
	r.staged = r.stage == at
	r.mu.Unlock()
	return true, nil
}

// prune deletes the oldest shuffles beyond the bounds of store and memory.
func (r *near) prune(ctx context.Context) error {
	r.mu.Lock()
	var tags []anteroom.ID
	for tag, rec := range r.records {
		if rec.public {
			tags = append(tags, tag)
		}
	}
	r.mu.Unlock()
	dropped, err := r.node.shuffles.Prune(ctx, r.id, tags)
	r.of.forgetShuffles(dropped)
	return err
}

// forgetShuffles notes which shuffles are no longer in the store.
func (n *standalone) forgetShuffles(dropped []shuffles.Dropped) {
	for _, d := range dropped {
		if r := n.Room(d.Room); r != nil {
			r.mu.Lock()
			delete(r.decider.(*near).records, d.Tag)
			r.mu.Unlock()
		}
	}
}

// Shuffle returns the public part of the shuffle of an event's occurrence: the commitment from the prequeue on, and
// everything once the order survives the process. It returns false before the prequeue, if there was no shuffle, and if
// it is no longer known: the newest 20 of a room are kept. The result is shared and must not be changed.
func (r *Room) Shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
	return r.decider.shuffle(event, number)
}

func (r *near) shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
	tag := shuffles.Tag(event, number)
	r.mu.Lock()
	r.follow()
	rec, e, at := r.records[tag], r.event(event), r.schedule.at
	if rec != nil && rec.public {
		sh := rec.Shuffle
		r.mu.Unlock()
		if sh != nil {
			return sh, true
		}
		return r.load(tag)
	}
	r.mu.Unlock()
	late := time.Duration(0)
	if rec != nil { // it is complete, and on its way to the store
		late = anteroom.MaxSessionDuration
	}
	return committed(e, number, max(at, anteroom.TimeOf(walltime.Now())), late)
}

// committed returns the public part of a shuffle from the prequeue until the given time after the start.
func committed(e *anteroom.Event, number int, at anteroom.Time, late time.Duration) (*anteroom.Shuffle, bool) {
	if e == nil || !e.ShuffleAtStart {
		return nil, false
	}
	o, ok := e.Occurrence(number)
	if !ok || at < anteroom.TimeOf(o.From) || at >= anteroom.TimeOf(o.Start).Add(late) {
		return nil, false
	}
	seed := e.OccurrenceSeed(number)
	return &anteroom.Shuffle{Commitment: engine.Commitment(seed[:])}, true
}

// draws holds the shuffles of a room that a node of a cluster has read.
type draws struct {
	mu     sync.Mutex // one is read at a time, because they are large
	tags   []anteroom.ID
	read   map[anteroom.ID]*anteroom.Shuffle
	missed map[anteroom.ID]time.Time // shuffles that were not found, and when
}

const (
	missedFor  = time.Second // how long a shuffle that was not found is not looked up again
	maxMissed  = 100
	keptWithin = time.Minute // how long after the start a shuffle may still be on its way to the store
)

// shuffle reads what the coordinator has stored: in a cluster, it shuffles.
func (r *far) shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
	r.mu.Lock()
	r.follow()
	e, at := r.event(event), max(r.schedule.at, anteroom.TimeOf(walltime.Now()))
	r.mu.Unlock()
	if sh, before := committed(e, number, at, 0); before {
		return sh, true
	}
	tag, x := shuffles.Tag(event, number), &r.drawn
	x.mu.Lock()
	defer x.mu.Unlock()
	if sh := x.read[tag]; sh != nil {
		return sh, true
	}
	if time.Since(x.missed[tag]) >= missedFor {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		sh, err := r.node.shuffles.Read(ctx, r.id, tag)
		if err == nil {
			x.keep(tag, sh)
			return sh, true
		}
		if !errors.Is(err, cluster.ErrNotFound) {
			r.node.log.Error("a shuffle cannot be read", "room", string(r.id), "tag", hex.EncodeToString(tag[:]), "error", err)
		}
		// Anyone may ask for made-up shuffles; what they missed must not grow without bound.
		if x.missed == nil || len(x.missed) >= maxMissed {
			x.missed = map[anteroom.ID]time.Time{}
		}
		x.missed[tag] = time.Now()
	}
	return committed(e, number, at, keptWithin)
}

// keep remembers a shuffle, and forgets the oldest.
func (x *draws) keep(tag anteroom.ID, sh *anteroom.Shuffle) {
	if x.read == nil {
		x.read = map[anteroom.ID]*anteroom.Shuffle{}
	}
	x.read[tag] = sh
	if x.tags = append(x.tags, tag); len(x.tags) > maxLoaded {
		delete(x.read, x.tags[0])
		x.tags = x.tags[1:]
	}
}

// load reads a shuffle from the store.
func (r *near) load(tag anteroom.ID) (*anteroom.Shuffle, bool) {
	r.loading.Lock() // one at a time, because they are large
	defer r.loading.Unlock()
	r.mu.Lock()
	rec := r.records[tag]
	// Another request may have loaded it while this one was waiting.
	if rec == nil || rec.Shuffle != nil {
		defer r.mu.Unlock()
		return rec.loaded()
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sh, err := r.node.shuffles.Read(ctx, r.id, tag)
	if err != nil {
		r.node.log.Error("a shuffle cannot be read", "room", string(r.id), "tag", hex.EncodeToString(tag[:]), "error", err)
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.Shuffle = sh
	r.unload(rec)
	return sh, true
}

// unload drops shuffles beyond the bound from memory if the store has them, but not the given one. The caller holds the
// lock.
func (r *near) unload(but *record) {
	loaded := 1
	for _, other := range r.records {
		if other != but && other.public && other.Shuffle != nil {
			if loaded++; loaded > maxLoaded {
				other.Shuffle = nil
			}
		}
	}
}

func (rec *record) loaded() (*anteroom.Shuffle, bool) {
	if rec == nil {
		return nil, false
	}
	return rec.Shuffle, true
}
