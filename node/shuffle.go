package node

// The shuffle at the start of an event: when it is due, and what is kept of it.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

const (
	// maxShuffles is how many shuffles of a room are kept; the oldest go first.
	maxShuffles = 20
	// maxKept is the space of all shuffles of all rooms in the store, which is wanted for more:
	// four million ids. The oldest go first; the newest is kept whatever it takes.
	maxKept = 64 << 20
	// maxLoaded is how many of them are in memory: up to 80 MB each, seldom more than one.
	maxLoaded = 3
	// idsInPart fill the value of a key.
	idsInPart = cluster.MaxValue / len(anteroom.ID{})

	keepAgain = 2 * time.Second // after a failure
)

// stage is how far the occurrence of an event has come: whether its prequeue was seen, and its
// start. It is kept in the store, so that a process that begins after the start knows that the
// line is still to be shuffled.
type stage struct {
	Event   anteroom.EventID `json:"event"`
	Number  int              `json:"number"`
	Started bool             `json:"started"`
}

// record is a shuffle that was done.
type record struct {
	*anteroom.Shuffle // nil: in the store only
	public            bool
	recorded          *batch // of the journal; public only when this is durable
	event             anteroom.EventID
	number            int
}

// shuffleHead is what the store has of a shuffle, beside the ids.
type shuffleHead struct {
	Event      anteroom.EventID `json:"event"`
	Number     int              `json:"number"`
	At         anteroom.Time    `json:"at"`
	Commitment string           `json:"commitment"`
	Seed       string           `json:"seed"`
	Entries    string           `json:"entries"`
	Count      int              `json:"count"`
}

// shuffleTag names the shuffle of an occurrence in the journal and in the store.
func shuffleTag(event anteroom.EventID, number int) anteroom.ID {
	sum := sha256.Sum256([]byte(string(event) + "/" + strconv.Itoa(number)))
	return anteroom.ID(sum[:16])
}

const (
	stagePrefix   = "prequeue."
	shufflePrefix = "shuffle."
)

func stageKey(room anteroom.RoomID) string { return stagePrefix + string(room) }

func shuffleKey(room anteroom.RoomID, tag anteroom.ID) string {
	return shufflePrefix + string(room) + "." + hex.EncodeToString(tag[:])
}

func partKey(head string, part int) string { return head + "." + strconv.Itoa(part) }

// keptKeys are the keys of stages and shuffles in the store.
type keptKeys struct {
	stages map[anteroom.RoomID]bool
	heads  map[anteroom.RoomID][]anteroom.ID
}

// keptOf lists what the store has, once for all rooms.
func keptOf(ctx context.Context, link cluster.Link) (k keptKeys, err error) {
	k = keptKeys{stages: map[anteroom.RoomID]bool{}, heads: map[anteroom.RoomID][]anteroom.ID{}}
	stages, err := link.Keys(ctx, stagePrefix)
	if err != nil {
		return k, err
	}
	for _, key := range stages {
		k.stages[anteroom.RoomID(strings.TrimPrefix(key, stagePrefix))] = true
	}
	shuffles, err := link.Keys(ctx, shufflePrefix)
	if err != nil {
		return k, err
	}
	for _, key := range shuffles {
		if room, tag, ok := shuffleOf(key); ok {
			k.heads[room] = append(k.heads[room], tag)
		}
	}
	return k, nil
}

// shuffleOf takes the key of a head apart; ok is false for that of a part.
func shuffleOf(key string) (room anteroom.RoomID, tag anteroom.ID, ok bool) {
	before, after, _ := strings.Cut(strings.TrimPrefix(key, shufflePrefix), ".")
	raw, err := hex.DecodeString(after)
	if err != nil || len(raw) != len(tag) {
		return "", tag, false
	}
	return anteroom.RoomID(before), anteroom.ID(raw), true
}

// recall finds out how far the room's events had come before this process.
func (r *Room) recall(ctx context.Context, kept keptKeys, events []engine.Event) error {
	for _, tag := range kept.heads[r.id] {
		r.records[tag] = &record{public: true}
	}
	if !kept.stages[r.id] {
		return nil
	}
	entry, err := r.node.cfg.Link.Get(ctx, stageKey(r.id))
	if err == nil {
		err = json.Unmarshal(entry.Value, &r.stage)
	}
	if err != nil {
		return fmt.Errorf("room %s: what it keeps of its events cannot be read: %w", r.schedule.plan.Name, err)
	}
	tag := shuffleTag(r.stage.Event, r.stage.Number)
	if e := r.event(r.stage.Event); e != nil && r.records[tag] == nil {
		if sh, whole := shuffleIn(events, tag); whole {
			r.records[tag] = recordOf(e, r.stage.Number, sh)
			r.unkept.Store(true)
		}
	}
	return nil
}

// shuffleIn finds the newest whole shuffle with the tag among the events of a journal.
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

// recordOf is a shuffle with its seed.
func recordOf(e *anteroom.Event, number int, sh engine.Shuffle) *record {
	seed := e.OccurrenceSeed(number)
	return &record{event: e.ID, number: number, Shuffle: &anteroom.Shuffle{
		Commitment: engine.Commitment(seed[:]), Done: true, At: sh.At, Seed: seed, Entries: sh.Entries, IDs: sh.IDs}}
}

func (r *Room) event(id anteroom.EventID) *anteroom.Event {
	for i := range r.schedule.plan.Events {
		if r.schedule.plan.Events[i].ID == id {
			return &r.schedule.plan.Events[i]
		}
	}
	return nil
}

// shuffleDue says that the event in force has just ended its prequeue and the line is to be
// shuffled. The caller holds the lock.
func (r *Room) shuffleDue() bool {
	f := r.schedule.inForce
	return f.Phase == anteroom.Started && f.Event.ShuffleAtStart &&
		r.stage == stage{Event: f.Event.ID, Number: f.Number} && r.records[shuffleTag(f.Event.ID, f.Number)] == nil
}

// advance follows the stage of the event in force and shuffles the line when it starts, before
// its settings are in force. The caller holds the lock.
func (r *Room) advance(now anteroom.Time) {
	if r.released {
		return // the successor does
	}
	f, next := r.schedule.inForce, r.stage
	switch {
	case f.Phase == anteroom.Prequeueing:
		next = stage{Event: f.Event.ID, Number: f.Number}
	case r.stage != stage{}:
		next.Started = true // or was called off
	}
	if r.shuffleDue() {
		e := f.Event
		tag, seed := shuffleTag(e.ID, f.Number), e.OccurrenceSeed(f.Number)
		sh := r.single.Shuffle(now, tag, seed[:], f.Start.Sub(f.Prequeue))
		r.records[tag] = recordOf(e, f.Number, sh)
		r.records[tag].recorded = r.settle()
		r.unkept.Store(true)
	}
	if next != r.stage {
		r.stage, r.staged = next, false
		r.unkept.Store(true)
	}
}

// keepSoon writes in the background what the store has to know of events. The caller holds the
// lock.
func (r *Room) keepSoon(now anteroom.Time) {
	if !r.unkept.Load() || r.keeping || r.closed || now < r.keepAt {
		return
	}
	r.keeping = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		done, err := r.keep(ctx)
		if err != nil {
			r.node.log.Error("what is to be kept of an event cannot be stored; it is tried again", "room", string(r.id), "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keeping = false
		if err != nil {
			r.keepAt = r.now().Add(keepAgain)
		} else if done && !r.mustKeep() {
			r.unkept.Store(false)
		}
	}()
}

// mustKeep says that something is not in the store yet. The caller holds the lock.
func (r *Room) mustKeep() bool {
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

// keep writes shuffles and then the stage, which says that they are there. done is false when
// the journal comes first.
func (r *Room) keep(ctx context.Context) (done bool, err error) {
	r.mu.Lock()
	at, staged := r.stage, r.staged
	unkept := map[anteroom.ID]*record{}
	for tag, rec := range r.records {
		if !rec.public {
			unkept[tag] = rec
		}
	}
	r.mu.Unlock()
	for tag, rec := range unkept {
		if rec.recorded != nil {
			select {
			case <-rec.recorded.done:
			default:
				return false, nil // whoever reads the record must be able to rely on it
			}
		}
		if err := r.node.keepShuffle(ctx, r, tag, rec); err != nil {
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
	if staged {
		return true, nil
	}
	value, err := json.Marshal(at)
	if err != nil {
		return false, err
	}
	if _, err := r.node.cfg.Link.Put(ctx, stageKey(r.id), value); err != nil {
		return false, err
	}
	r.mu.Lock()
	r.staged = r.stage == at
	r.mu.Unlock()
	return true, nil
}

// write puts the ids into the store, and then the head, without which they are nothing.
func (r *Room) write(ctx context.Context, tag anteroom.ID, rec *record) error {
	link, key := r.node.cfg.Link, shuffleKey(r.id, tag)
	part := 0
	for ids := range slices.Chunk(rec.IDs, idsInPart) {
		value := make([]byte, 0, len(ids)*len(anteroom.ID{}))
		for i := range ids {
			value = append(value, ids[i][:]...)
		}
		if _, err := link.Put(ctx, partKey(key, part), value); err != nil {
			return err
		}
		part++
	}
	head, err := json.Marshal(shuffleHead{Event: rec.event, Number: rec.number, At: rec.At, Count: len(rec.IDs),
		Commitment: hex.EncodeToString(rec.Commitment[:]), Seed: hex.EncodeToString(rec.Seed[:]), Entries: hex.EncodeToString(rec.Entries[:])})
	if err != nil {
		return err
	}
	_, err = link.Put(ctx, key, head)
	return err
}

// prune forgets the oldest shuffles beyond the bounds of store and memory.
func (r *Room) prune(ctx context.Context) error {
	r.mu.Lock()
	var tags []anteroom.ID
	for tag, rec := range r.records {
		if rec.public {
			tags = append(tags, tag)
		}
	}
	r.mu.Unlock()
	if len(tags) <= maxShuffles {
		return nil
	}
	at := map[anteroom.ID]anteroom.Time{}
	for _, tag := range tags {
		head, err := r.head(ctx, tag)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		at[tag] = head.At
	}
	slices.SortFunc(tags, func(a, b anteroom.ID) int { return cmp.Compare(at[a], at[b]) })
	for _, tag := range tags[:len(tags)-maxShuffles] {
		if err := r.node.dropShuffle(ctx, r.id, tag); err != nil {
			return err
		}
	}
	return nil
}

// keepShuffle makes space in the store for a shuffle and writes it. One at a time.
func (n *Node) keepShuffle(ctx context.Context, r *Room, tag anteroom.ID, rec *record) error {
	n.keeping.Lock()
	defer n.keeping.Unlock()
	if err := n.makeRoom(ctx, shuffleKey(r.id, tag), len(rec.IDs)*len(anteroom.ID{})); err != nil {
		return err
	}
	return r.write(ctx, tag, rec)
}

// makeRoom drops the oldest shuffles of all rooms until there is space for one more, and what
// was written of one that was never finished.
func (n *Node) makeRoom(ctx context.Context, key string, need int) error {
	keys, err := n.cfg.Link.Keys(ctx, shufflePrefix)
	if err != nil {
		return err
	}
	heads, parts := map[string]int{}, 0 // the number of parts by head
	for _, k := range keys {
		if strings.Count(k, ".") == 2 {
			heads[k] += 0
		}
	}
	for _, k := range keys {
		if strings.Count(k, ".") == 2 {
			continue
		}
		head := k[:strings.LastIndexByte(k, '.')]
		if _, whole := heads[head]; !whole && head != key {
			if err := n.cfg.Link.Delete(ctx, k); err != nil {
				return err
			}
			continue
		}
		heads[head]++
		parts++
	}
	if parts*cluster.MaxValue+need <= maxKept {
		return nil // they are no larger than that
	}
	type old struct {
		room  anteroom.RoomID
		tag   anteroom.ID
		at    anteroom.Time
		bytes int
	}
	var all []old
	total := need
	for k := range heads {
		room, tag, ok := shuffleOf(k)
		if !ok || k == key {
			continue
		}
		head, err := headAt(ctx, n.cfg.Link, k)
		if err != nil {
			return err
		}
		one := old{room, tag, head.At, head.Count * len(anteroom.ID{})}
		all, total = append(all, one), total+one.bytes
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		if total <= maxKept {
			break
		}
		if err := n.dropShuffle(ctx, one.room, one.tag); err != nil {
			return err
		}
		total -= one.bytes
	}
	return nil
}

// dropShuffle deletes the record of a shuffle: the head first, without which the rest is
// nothing.
func (n *Node) dropShuffle(ctx context.Context, room anteroom.RoomID, tag anteroom.ID) error {
	key := shuffleKey(room, tag)
	if err := n.cfg.Link.Delete(ctx, key); err != nil {
		return err
	}
	if r := n.Room(room); r != nil {
		r.mu.Lock()
		delete(r.records, tag)
		r.mu.Unlock()
	}
	parts, err := n.cfg.Link.Keys(ctx, key+".")
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := n.cfg.Link.Delete(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (r *Room) head(ctx context.Context, tag anteroom.ID) (shuffleHead, error) {
	return headAt(ctx, r.node.cfg.Link, shuffleKey(r.id, tag))
}

func headAt(ctx context.Context, link cluster.Link, key string) (head shuffleHead, err error) {
	entry, err := link.Get(ctx, key)
	if err != nil {
		return head, err
	}
	return head, json.Unmarshal(entry.Value, &head)
}

// Shuffle returns what is public of the shuffle of an event's occurrence: the commitment from
// the prequeue on, and everything once the order survives the process. It is false before the
// prequeue, when there was no shuffle, and when it is not known any more: the newest 20 of a
// room are. The result is shared and must not be changed.
func (r *Room) Shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
	tag := shuffleTag(event, number)
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
	if e == nil || !e.ShuffleAtStart {
		return nil, false
	}
	at = max(at, anteroom.TimeOf(time.Now()))
	o, ok := e.Occurrence(number)
	if !ok || at < anteroom.TimeOf(o.From) || rec == nil && at >= anteroom.TimeOf(o.Start) {
		return nil, false
	}
	seed := e.OccurrenceSeed(number)
	return &anteroom.Shuffle{Commitment: engine.Commitment(seed[:])}, true
}

// load reads a shuffle from the store.
func (r *Room) load(tag anteroom.ID) (*anteroom.Shuffle, bool) {
	r.loading.Lock() // one at a time: they are large
	defer r.loading.Unlock()
	r.mu.Lock()
	rec := r.records[tag]
	if rec == nil || rec.Shuffle != nil {
		defer r.mu.Unlock()
		return rec.loaded()
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sh, err := r.read(ctx, tag)
	if err != nil {
		r.node.log.Error("a shuffle cannot be read", "room", string(r.id), "key", shuffleKey(r.id, tag), "error", err)
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.Shuffle = sh
	r.unload(rec)
	return sh, true
}

// unload drops from memory what the store has, beyond the bound; but not that one. The caller
// holds the lock.
func (r *Room) unload(but *record) {
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

func (r *Room) read(ctx context.Context, tag anteroom.ID) (*anteroom.Shuffle, error) {
	head, err := r.head(ctx, tag)
	if err != nil {
		return nil, err
	}
	sh := &anteroom.Shuffle{Done: true, At: head.At}
	for _, m := range []struct {
		text string
		to   *[32]byte
	}{{head.Commitment, &sh.Commitment}, {head.Seed, &sh.Seed}, {head.Entries, &sh.Entries}} {
		raw, err := hex.DecodeString(m.text)
		if err != nil || len(raw) != len(m.to) {
			return nil, &cluster.DamagedError{What: "shuffle", Err: errors.New("its head does not parse")}
		}
		*m.to = [32]byte(raw)
	}
	for part := 0; len(sh.IDs) < head.Count; part++ {
		entry, err := r.node.cfg.Link.Get(ctx, partKey(shuffleKey(r.id, tag), part))
		if err != nil {
			return nil, err
		}
		for raw := range slices.Chunk(entry.Value, len(anteroom.ID{})) {
			if len(raw) == len(anteroom.ID{}) {
				sh.IDs = append(sh.IDs, anteroom.ID(raw))
			}
		}
		if len(entry.Value) == 0 {
			break
		}
	}
	if len(sh.IDs) != head.Count || engine.Entries(sh.IDs) != sh.Entries {
		return nil, &cluster.DamagedError{What: "shuffle", Err: fmt.Errorf("%d ids that are not those of its head", len(sh.IDs))}
	}
	return sh, nil
}
