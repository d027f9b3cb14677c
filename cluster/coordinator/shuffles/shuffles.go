// Package shuffles stores what was shuffled at the starts of events, in the cluster's store, where the records are
// public and where a process that takes a room over finds them.
//
// A shuffle is a head (commitment, seed, digest, count) and parts with the ids; without its head it does not count. The
// store also has the phase of each room's event, so that a process that starts after the event knows that the queue
// still has to be shuffled.
package shuffles

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
	"sync"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

const (
	// Most is how many shuffles of a room are kept; the oldest go first.
	Most = 20
	// maxKept is the space of all shuffles of all rooms in the store, which is wanted for
	// more: four million ids. The oldest go first; the newest is kept whatever it takes.
	maxKept = 64 << 20
	// idsInPart fill the value of a key.
	idsInPart = cluster.MaxValue / len(anteroom.ID{})
)

const (
	stagePrefix = "prequeue."
	headPrefix  = "shuffle."
)

// Keys is the part of cluster.Link that is used here.
type Keys interface {
	Get(ctx context.Context, key string) (cluster.Entry, error)
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Stage is how far the occurrence of an event has come: whether its prequeue was seen, and its
// start. The zero Stage: no event was.
type Stage struct {
	Event   anteroom.EventID `json:"event"`
	Number  int              `json:"number"`
	Started bool             `json:"started"`
}

// Record is a shuffle that was done, and whose it is.
type Record struct {
	*anteroom.Shuffle
	Event  anteroom.EventID
	Number int // of the occurrence
}

// RecordOf is a shuffle of an event's occurrence with its seed.
func RecordOf(e *anteroom.Event, number int, sh engine.Shuffle) Record {
	seed := e.OccurrenceSeed(number)
	return Record{Event: e.ID, Number: number, Shuffle: &anteroom.Shuffle{
		Commitment: engine.Commitment(seed[:]), Done: true, At: sh.At, Seed: seed, Entries: sh.Entries, IDs: sh.IDs}}
}

// Tag names the shuffle of an occurrence, in the journal and in the store.
func Tag(event anteroom.EventID, number int) anteroom.ID {
	sum := sha256.Sum256([]byte(string(event) + "/" + strconv.Itoa(number)))
	return anteroom.ID(sum[:16])
}

// head is what the store has of a shuffle, beside the ids.
type head struct {
	Event      anteroom.EventID `json:"event"`
	Number     int              `json:"number"`
	At         anteroom.Time    `json:"at"`
	Commitment string           `json:"commitment"`
	Seed       string           `json:"seed"`
	Entries    string           `json:"entries"`
	Count      int              `json:"count"`
}

func stageKey(room anteroom.RoomID) string { return stagePrefix + string(room) }

func headKey(room anteroom.RoomID, tag anteroom.ID) string {
	return headPrefix + string(room) + "." + hex.EncodeToString(tag[:])
}

func partKey(head string, part int) string { return head + "." + strconv.Itoa(part) }

// headOf takes the key of a head apart; ok is false for that of a part.
func headOf(key string) (room anteroom.RoomID, tag anteroom.ID, ok bool) {
	before, after, _ := strings.Cut(strings.TrimPrefix(key, headPrefix), ".")
	raw, err := hex.DecodeString(after)
	if err != nil || len(raw) != len(tag) {
		return "", tag, false
	}
	return anteroom.RoomID(before), anteroom.ID(raw), true
}

// Store keeps stages and shuffles. Safe for concurrent use.
type Store struct {
	keys    Keys
	mine    func(anteroom.RoomID) bool
	keeping sync.Mutex // one shuffle is written at a time
}

// New returns a store. mine reports whether only this process now writes the shuffles of a room: then its unfinished
// ones are deleted. If nil, it writes those of all rooms.
func New(keys Keys, mine func(anteroom.RoomID) bool) *Store {
	if mine == nil {
		mine = func(anteroom.RoomID) bool { return true }
	}
	return &Store{keys: keys, mine: mine}
}

// Kept says which rooms have a stage, and the tags of their shuffles.
type Kept struct {
	Stages   map[anteroom.RoomID]bool
	Shuffles map[anteroom.RoomID][]anteroom.ID
}

// List returns what the store has of all rooms.
func (s *Store) List(ctx context.Context) (Kept, error) {
	k := Kept{Stages: map[anteroom.RoomID]bool{}, Shuffles: map[anteroom.RoomID][]anteroom.ID{}}
	stages, err := s.keys.Keys(ctx, stagePrefix)
	if err != nil {
		return k, err
	}
	for _, key := range stages {
		k.Stages[anteroom.RoomID(strings.TrimPrefix(key, stagePrefix))] = true
	}
	heads, err := s.keys.Keys(ctx, headPrefix)
	if err != nil {
		return k, err
	}
	for _, key := range heads {
		if room, tag, ok := headOf(key); ok {
			k.Shuffles[room] = append(k.Shuffles[room], tag)
		}
	}
	return k, nil
}

// Stage returns the stage of a room's event; the zero Stage when the store has none.
func (s *Store) Stage(ctx context.Context, room anteroom.RoomID) (st Stage, err error) {
	entry, err := s.keys.Get(ctx, stageKey(room))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return st, nil
	case err != nil:
		return st, err
	}
	return st, json.Unmarshal(entry.Value, &st)
}

// PutStage writes the stage of a room's event.
func (s *Store) PutStage(ctx context.Context, room anteroom.RoomID, st Stage) error {
	value, err := json.Marshal(st)
	if err != nil {
		return err
	}
	_, err = s.keys.Put(ctx, stageKey(room), value)
	return err
}

// Dropped names a shuffle that is no longer in the store.
type Dropped struct {
	Room anteroom.RoomID
	Tag  anteroom.ID
}

// Keep writes a shuffle: when it returns, the record is durable and public. First it makes space: it deletes the oldest
// shuffles of all rooms, and unfinished ones of its own rooms. It returns which were deleted, even with an error.
func (s *Store) Keep(ctx context.Context, room anteroom.RoomID, rec Record) ([]Dropped, error) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	key := headKey(room, Tag(rec.Event, rec.Number))
	dropped, err := s.makeRoom(ctx, key, len(rec.IDs)*len(anteroom.ID{}))
	if err != nil {
		return dropped, err
	}
	return dropped, s.write(ctx, key, rec)
}

// write puts the ids into the store, and then the head, without which they are nothing.
func (s *Store) write(ctx context.Context, key string, rec Record) error {
	part := 0
	for ids := range slices.Chunk(rec.IDs, idsInPart) {
		value := make([]byte, 0, len(ids)*len(anteroom.ID{}))
		for i := range ids {
			value = append(value, ids[i][:]...)
		}
		if _, err := s.keys.Put(ctx, partKey(key, part), value); err != nil {
			return err
		}
		part++
	}
	value, err := json.Marshal(head{Event: rec.Event, Number: rec.Number, At: rec.At, Count: len(rec.IDs),
		Commitment: hex.EncodeToString(rec.Commitment[:]), Seed: hex.EncodeToString(rec.Seed[:]), Entries: hex.EncodeToString(rec.Entries[:])})
	if err != nil {
		return err
	}
	_, err = s.keys.Put(ctx, key, value)
	return err
}

// Prune drops the oldest of a room's shuffles with these tags beyond Most, and returns which.
func (s *Store) Prune(ctx context.Context, room anteroom.RoomID, tags []anteroom.ID) (dropped []Dropped, err error) {
	if len(tags) <= Most {
		return nil, nil
	}
	tags = slices.Clone(tags)
	at := map[anteroom.ID]anteroom.Time{}
	for _, tag := range tags {
		h, err := s.head(ctx, headKey(room, tag))
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return nil, err
		}
		at[tag] = h.At
	}
	slices.SortFunc(tags, func(a, b anteroom.ID) int { return cmp.Compare(at[a], at[b]) })
	for _, tag := range tags[:len(tags)-Most] {
		if err := s.drop(ctx, headKey(room, tag)); err != nil {
			return dropped, err
		}
		dropped = append(dropped, Dropped{room, tag})
	}
	return dropped, nil
}

// Tags returns the tags of a room's shuffles.
func (s *Store) Tags(ctx context.Context, room anteroom.RoomID) (tags []anteroom.ID, err error) {
	keys, err := s.keys.Keys(ctx, headPrefix+string(room)+".")
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if _, tag, ok := headOf(key); ok {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// makeRoom drops the oldest shuffles of all rooms until there is space for one more, and what
// was written of one of mine that was never finished.
func (s *Store) makeRoom(ctx context.Context, key string, need int) (dropped []Dropped, err error) {
	keys, err := s.keys.Keys(ctx, headPrefix)
	if err != nil {
		return nil, err
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
			if room, _, ok := headOf(head); ok && !s.mine(room) {
				parts++ // being written
				continue
			}
			if err := s.keys.Delete(ctx, k); err != nil {
				return nil, err
			}
			continue
		}
		heads[head]++
		parts++
	}
	if parts*cluster.MaxValue+need <= maxKept {
		return nil, nil // they are no larger than that
	}
	type old struct {
		Dropped
		at    anteroom.Time
		bytes int
	}
	var all []old
	total := need
	for k := range heads {
		room, tag, ok := headOf(k)
		if !ok || k == key {
			continue
		}
		h, err := s.head(ctx, k)
		if errors.Is(err, cluster.ErrNotFound) {
			continue // another process has made space, too
		}
		if err != nil {
			return nil, err
		}
		one := old{Dropped{room, tag}, h.At, h.Count * len(anteroom.ID{})}
		all, total = append(all, one), total+one.bytes
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		if total <= maxKept {
			break
		}
		if err := s.drop(ctx, headKey(one.Room, one.Tag)); err != nil {
			return dropped, err
		}
		dropped, total = append(dropped, one.Dropped), total-one.bytes
	}
	return dropped, nil
}

// drop deletes the record of a shuffle: the head first, without which the rest is nothing.
func (s *Store) drop(ctx context.Context, key string) error {
	if err := s.keys.Delete(ctx, key); err != nil {
		return err
	}
	parts, err := s.keys.Keys(ctx, key+".")
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := s.keys.Delete(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) head(ctx context.Context, key string) (h head, err error) {
	entry, err := s.keys.Get(ctx, key)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(entry.Value, &h)
}

// Read returns a room's shuffle, cluster.ErrNotFound if there is none with the tag, or a cluster.DamagedError if it is
// not what was written.
func (s *Store) Read(ctx context.Context, room anteroom.RoomID, tag anteroom.ID) (*anteroom.Shuffle, error) {
	key := headKey(room, tag)
	h, err := s.head(ctx, key)
	if err != nil {
		return nil, err
	}
	damaged := func(err error) error { return &cluster.DamagedError{What: "shuffle " + key, Err: err} }
	sh := &anteroom.Shuffle{Done: true, At: h.At}
	for _, m := range []struct {
		text string
		to   *[32]byte
	}{{h.Commitment, &sh.Commitment}, {h.Seed, &sh.Seed}, {h.Entries, &sh.Entries}} {
		raw, err := hex.DecodeString(m.text)
		if err != nil || len(raw) != len(m.to) {
			return nil, damaged(errors.New("its head cannot be parsed"))
		}
		*m.to = [32]byte(raw)
	}
	if h.Count < 0 || h.Count > anteroom.MaxLine {
		return nil, damaged(fmt.Errorf("its head announces %d ids", h.Count))
	}
	for part := 0; len(sh.IDs) < h.Count; part++ {
		entry, err := s.keys.Get(ctx, partKey(key, part))
		if errors.Is(err, cluster.ErrNotFound) {
			return nil, damaged(fmt.Errorf("part %d of its ids is missing", part))
		}
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
	if len(sh.IDs) != h.Count || engine.Entries(sh.IDs) != sh.Entries {
		return nil, damaged(fmt.Errorf("its %d ids do not match its head", len(sh.IDs)))
	}
	return sh, nil
}
