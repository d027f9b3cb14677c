package coordinator

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// lottery is a room for nobody with an event that shuffles, in half an hour.
func lottery(start time.Time) anteroom.Room {
	room := roomOf(1, few(0))
	room.Events = []anteroom.Event{{ID: "00000000000000000000000000000001", Name: "sale", Seed: [32]byte{1, 2, 3}, ShuffleAtStart: true,
		Prequeue: anteroom.StampOf(start.Add(-10 * time.Minute)), Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour))}}
	return room
}

// order is how the sites have the ids.
func order(t *testing.T, room anteroom.RoomID, ids map[*siteProc][]anteroom.ID) (out []anteroom.ID) {
	t.Helper()
	at := map[anteroom.ID]anteroom.Time{}
	for s, mine := range ids {
		s.mu.Lock()
		for _, id := range mine {
			v, ok := s.rooms[room].Visitor(s.now(room), id)
			if !ok || v.Standing != engine.Waiting {
				t.Errorf("%v: %+v", id, v)
			}
			at[id] = v.Arrival
			out = append(out, id)
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b anteroom.ID) int { return int(at[a] - at[b]) })
	return out
}

// Two sites, and hosts that end in the middle: the line is shuffled once, by the record, and
// nobody is told before that is stored.
func TestAShuffleInTwoSites(t *testing.T) {
	type when struct {
		name   string
		refuse func(key string) bool // writes that fail before they are done: the host ends then
		after  func(key string) bool // the same, when they are done
		later  bool                  // or it ends some seconds after the start
		cut    bool                  // a site hears nothing of the start
	}
	head := func(key string) bool { return strings.HasPrefix(key, "shuffle.") && strings.Count(key, ".") == 2 }
	part := func(key string) bool { return strings.HasPrefix(key, "shuffle.") && strings.Count(key, ".") == 3 }
	for _, c := range []when{
		{name: "undisturbed"},
		{name: "ends before the ids are written", refuse: part},
		{name: "ends before the head is written", refuse: head},
		{name: "ends when it is written", after: head},
		{name: "ends later", later: true},
		{name: "a site is cut off", cut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now().Add(30 * time.Minute)
				room := lottery(start)
				w := newWorld(t, room)
				link := newStore(w.links.Join("hub", "a"))
				_, kill := w.hostOn(link, 1)
				dublin, sydney := w.site("dublin"), w.site("sydney")
				time.Sleep(time.Until(start) - time.Minute)
				ids := map[*siteProc][]anteroom.ID{dublin: dublin.line(room.ID, 20), sydney: sydney.line(room.ID, 20)}
				var before []anteroom.ID
				for _, s := range []*siteProc{dublin, sydney} {
					before = append(before, ids[s]...)
				}
				died := make(chan struct{})
				failing := func(hit func(string) bool) func(string) error {
					return func(key string) error {
						if hit == nil || !hit(key) {
							return nil
						}
						select {
						case <-died:
						default:
							close(died)
						}
						return errDisk
					}
				}
				time.Sleep(time.Until(start) - time.Second)
				link.shared.set(failing(c.refuse), failing(c.after), 0)
				if c.cut {
					w.links.CutSite("sydney", memlink.Both)
				}
				var late anteroom.ID
				switch {
				case c.refuse != nil || c.after != nil:
					<-died
					kill()
				case c.later:
					time.Sleep(6 * time.Second)
					kill()
				}
				if c.refuse != nil || c.after != nil || c.later {
					synctest.Wait()
					if !c.later {
						if got := order(t, room.ID, ids); !slices.Equal(got[:20], before[:20]) {
							t.Error("a site was told before the record was stored")
						}
					}
					w.host("b", 2)
				}
				if time.Sleep(3 * time.Second); c.cut {
					w.links.CutSite("sydney", memlink.None)
					time.Sleep(3 * time.Second)
				}
				late = dublin.visit(room.ID, anteroom.Ticket{}, false)
				time.Sleep(5 * time.Second)
				store := shuffles.New(w.links.Join("hub", "z"), nil)
				sh, err := store.Read(t.Context(), room.ID, shuffles.Tag(room.Events[0].ID, 0))
				if err != nil || len(sh.IDs) != 40 {
					t.Fatalf("the record: %+v, %v", sh, err)
				}
				sorted := slices.Clone(before)
				slices.SortFunc(sorted, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
				if !slices.Equal(sh.IDs, sorted) {
					t.Error("the record is not of those who waited")
				}
				var want []anteroom.ID
				for _, i := range engine.Order(engine.ShuffleKey(sh.Seed[:], sh.Entries), sh.IDs) {
					want = append(want, sh.IDs[i])
				}
				ids[dublin] = append(ids[dublin], late)
				if got := order(t, room.ID, ids); !slices.Equal(got, append(want, late)) {
					t.Errorf("the sites have the order\n%v, want\n%v", got, append(want, late))
				}
				if st, err := store.Stage(t.Context(), room.ID); err != nil || !st.Started {
					t.Errorf("the stage: %+v, %v", st, err)
				}
			})
		})
	}
}

// Who comes to a room after the start of its event is not shuffled.
func TestNobodyToShuffle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(30 * time.Minute)
		room := lottery(start)
		w := newWorld(t, room)
		w.host("a", 1)
		dublin := w.site("dublin")
		time.Sleep(time.Until(start) + time.Second)
		dublin.line(room.ID, 3)
		time.Sleep(5 * time.Second)
		link := w.links.Join("hub", "z")
		defer link.Close()
		if keys, err := cluster.Space(link).Keys(t.Context(), "shuffle."); err != nil || len(keys) != 0 {
			t.Errorf("%q, %v", keys, err)
		}
	})
}
