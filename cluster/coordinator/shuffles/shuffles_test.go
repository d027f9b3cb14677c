package shuffles

import (
	"errors"
	"slices"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

const shop = anteroom.RoomID("00000000000000000000000000000001")

func draw(ids ...anteroom.ID) Record {
	e := &anteroom.Event{ID: "a", Seed: [32]byte{7}}
	return RecordOf(e, 2, engine.Shuffle{At: 5, IDs: ids, Entries: engine.Entries(ids)})
}

func TestAShuffleIsReadAsItWasKept(t *testing.T) {
	t.Parallel()
	link := memlink.New()
	s := New(link, nil)
	ids := make([]anteroom.ID, idsInPart+3)
	for i := range ids {
		ids[i] = anteroom.ID{byte(i >> 16), byte(i >> 8), byte(i)}
	}
	rec := draw(ids...)
	if _, err := s.Read(t.Context(), shop, Tag("a", 2)); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	if dropped, err := s.Keep(t.Context(), shop, rec); err != nil || dropped != nil {
		t.Fatal(dropped, err)
	}
	sh, err := s.Read(t.Context(), shop, Tag("a", 2))
	if err != nil || sh.Seed != rec.Seed || sh.At != 5 || sh.Commitment != rec.Commitment || sh.Entries != rec.Entries || !sh.Done || !slices.Equal(sh.IDs, ids) {
		t.Errorf("%v", err)
	}
	if tags, err := s.Tags(t.Context(), shop); err != nil || !slices.Equal(tags, []anteroom.ID{Tag("a", 2)}) {
		t.Errorf("tags: %v, %v", tags, err)
	}
	for _, harm := range []func(){
		func() { link.Put(t.Context(), partKey(headKey(shop, Tag("a", 2)), 1), make([]byte, 48)) },
		func() { link.Delete(t.Context(), partKey(headKey(shop, Tag("a", 2)), 1)) },
		func() {
			link.Put(t.Context(), headKey(shop, Tag("a", 2)), []byte(`{"commitment": "", "count": 1}`))
		},
	} {
		harm()
		if _, err := s.Read(t.Context(), shop, Tag("a", 2)); !damaged(err) {
			t.Errorf("a record that was changed: %v", err)
		}
	}
}

func damaged(err error) bool { _, ok := errors.AsType[*cluster.DamagedError](err); return ok }

func TestAStageIsReadAsItWasPut(t *testing.T) {
	t.Parallel()
	s := New(memlink.New(), nil)
	if st, err := s.Stage(t.Context(), shop); err != nil || st != (Stage{}) {
		t.Errorf("before: %+v, %v", st, err)
	}
	want := Stage{Event: "a", Number: 3, Started: true}
	if err := s.PutStage(t.Context(), shop, want); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stage(t.Context(), shop); err != nil || st != want {
		t.Errorf("%+v, %v", st, err)
	}
	if k, err := s.List(t.Context()); err != nil || !k.Stages[shop] {
		t.Errorf("%+v, %v", k, err)
	}
}

// What another process is writing is not taken for what nobody will finish.
func TestWhatOthersWriteIsLeftAlone(t *testing.T) {
	t.Parallel()
	link := memlink.New()
	others := partKey(headKey("00000000000000000000000000000002", Tag("a", 0)), 0)
	mine := partKey(headKey(shop, Tag("a", 0)), 0)
	for _, key := range []string{others, mine} {
		if _, err := link.Put(t.Context(), key, []byte("begun")); err != nil {
			t.Fatal(err)
		}
	}
	s := New(link, func(room anteroom.RoomID) bool { return room == shop })
	if _, err := s.Keep(t.Context(), shop, draw(anteroom.ID{1})); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Get(t.Context(), others); err != nil {
		t.Errorf("the other's part: %v", err)
	}
	if _, err := link.Get(t.Context(), mine); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("what was left behind: %v", err)
	}
}

// The store has space for other things, too: the oldest shuffles of all rooms go, and so does
// what a process that ended while it wrote has left.
func TestShufflesTakeABoundedSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	link := memlink.New()
	s := New(link, nil)
	ids := make([]anteroom.ID, maxKept/3/len(anteroom.ID{}))
	record := func(i int, ids []anteroom.ID) Record {
		return Record{Event: "a", Number: i, Shuffle: &anteroom.Shuffle{At: anteroom.Time(i), IDs: ids}}
	}
	var dropped []Dropped
	for i := range 4 {
		if _, err := link.Put(t.Context(), partKey(headKey("gone", Tag("a", i)), 3), []byte("left behind")); err != nil {
			t.Fatal(err)
		}
		gone, err := s.Keep(t.Context(), shop, record(i, ids))
		if err != nil {
			t.Fatal(err)
		}
		dropped = append(dropped, gone...)
	}
	kept, err := s.List(t.Context())
	if err != nil || len(kept.Shuffles[shop]) != 3 || slices.Contains(kept.Shuffles[shop], Tag("a", 0)) {
		t.Errorf("kept: %d shuffles, %v; want the newest three", len(kept.Shuffles[shop]), err)
	}
	if !slices.Equal(dropped, []Dropped{{shop, Tag("a", 0)}}) {
		t.Errorf("told as dropped: %v", dropped)
	}
	keys, err := link.Keys(t.Context(), headPrefix)
	if most := 3 * (1 + (len(ids)+idsInPart-1)/idsInPart); err != nil || len(keys) != most {
		t.Errorf("%d keys, %v; want %d", len(keys), err, most)
	}
	if _, err := s.Keep(t.Context(), shop, record(9, make([]anteroom.ID, anteroom.MaxLine))); err != nil {
		t.Fatal(err)
	}
	if kept, err = s.List(t.Context()); err != nil || len(kept.Shuffles[shop]) != 1 {
		t.Errorf("beside one of the longest line: %d, %v", len(kept.Shuffles[shop])-1, err)
	}
}
