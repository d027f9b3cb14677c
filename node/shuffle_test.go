package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// lottery is a room for two with an event that shuffles.
func lottery() anteroom.Room {
	room := shop
	e := event("a", anteroom.FIFO)
	e.ShuffleAtStart = true
	room.Events = []anteroom.Event{e}
	return room
}

// queue lets n visitors arrive.
func queue(t *testing.T, r *Room, n int) (tickets []anteroom.Ticket) {
	t.Helper()
	for range n {
		d := expect(t, r, newcomer(), "wait prequeue prequeueing")
		if d.AheadKnown {
			t.Error("a place is told before the shuffle")
		}
		expect(t, r, with(d.Ticket), "wait early prequeueing") // the place is proven
		tickets = append(tickets, d.Ticket)
	}
	return tickets
}

// drawn is the order that the seed of an occurrence gives.
func drawn(e anteroom.Event, number int, tickets []anteroom.Ticket) (ids []anteroom.ID) {
	for _, t := range tickets {
		ids = append(ids, t.ID)
	}
	seed := e.OccurrenceSeed(number)
	order := engine.Order(engine.ShuffleKey(seed[:], engine.Entries(ids)), ids)
	out := make([]anteroom.ID, len(ids))
	for place, i := range order {
		out[place] = ids[i]
	}
	return out
}

// stand checks that the room has the ids in this order.
func stand(t *testing.T, r *Room, want []anteroom.ID) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.node.Now()
	last := anteroom.Time(0)
	for place, id := range want {
		v, ok := r.decider.(*near).single.Visitor(now, id)
		if !ok || v.Standing != engine.Waiting || v.Arrival <= last {
			t.Fatalf("place %d: %+v is not behind %v", place, v, last)
		}
		last = v.Arrival
	}
}

func TestAnEventShufflesAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, room := memlink.New(), lottery()
		e := room.Events[0]
		n, kill := begin(t, link, room)
		defer kill()
		r := n.Room(shop.ID)
		if _, ok := r.Shuffle(e.ID, 0); ok {
			t.Error("something is known of the shuffle before the prequeue")
		}
		sleepUntil(t, "09:59:50")
		tickets := queue(t, r, 20)
		if sh, ok := r.Shuffle(e.ID, 0); !ok || sh.Done || sh.Commitment != engine.Commitment(e.Seed[:]) || sh.Seed != [32]byte{} {
			t.Errorf("in the prequeue: %+v, %v", sh, ok)
		}
		if _, ok := r.Shuffle(e.ID, 1); ok {
			t.Error("an event that happens once has a second shuffle")
		}
		sleepUntil(t, "10:00:00")
		first := expect(t, r, newcomer(), "wait line started")
		if !first.AheadKnown || first.Ahead != 20 {
			t.Errorf("who comes at the start has %d ahead, want 20", first.Ahead)
		}
		want := drawn(e, 0, tickets)
		stand(t, r, append(slices.Clone(want), first.Ticket.ID))
		time.Sleep(time.Second)
		sh, ok := r.Shuffle(e.ID, 0)
		if !ok || !sh.Done || sh.Seed != e.Seed || len(sh.IDs) != 20 || sh.Entries != engine.Entries(sh.IDs) || !slices.IsSortedFunc(sh.IDs, func(a, b anteroom.ID) int { return strings.Compare(string(a[:]), string(b[:])) }) {
			t.Errorf("after the start: %+v, %v", sh, ok)
		}
		if v, _ := r.Find(t.Context(), want[3].Reference()); len(v) != 1 || v[0].Ahead != 3 {
			t.Errorf("the fourth of the draw: %+v", v)
		}
		for _, id := range want[:2] { // a room for two: those whom the draw put first
			i := slices.IndexFunc(tickets, func(t anteroom.Ticket) bool { return t.ID == id })
			expect(t, r, with(tickets[i]), "admit turn started")
		}
	})
}

// Killed in the prequeue, over the start, right after it, in the middle of the event: the line
// is shuffled once, and always the same.
func TestAShuffleIsDoneOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, kills := range map[string][]string{
		"in the prequeue":      {"09:59:52", "09:59:55"},
		"over the start":       {"09:59:52", "10:00:30"},
		"right after it":       {"10:00:00.000001", "10:00:01"},
		"a second after":       {"10:00:01", "10:00:02"},
		"again and again":      {"09:59:51", "09:59:52", "09:59:58", "10:00:03", "10:00:04", "10:00:05"},
		"when it was recorded": {"10:00:00.000001", "10:00:01", "10:00:02", "10:00:03"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link, room := memlink.New(), lottery()
				n, kill := begin(t, link, room)
				r := n.Room(shop.ID)
				sleepUntil(t, "09:59:50")
				tickets := queue(t, r, 30)
				var late anteroom.Ticket
				for i, at := range kills {
					sleepUntil(t, at)
					if i%2 == 0 {
						r.Settings() // the start is noticed, if it is past
						kill()
						continue
					}
					n, kill = begin(t, link, room)
					r = n.Room(shop.ID)
					if late.ID.IsZero() && time.Now().After(moment(t, "10:00:00")) {
						late = r.Decide(t.Context(), newcomer()).Ticket
						r.Decide(t.Context(), with(late)) // the place is proven
					}
				}
				defer kill()
				time.Sleep(max(time.Second, time.Until(moment(t, "10:00:06"))))
				want := drawn(room.Events[0], 0, tickets)
				if !late.ID.IsZero() {
					want = append(want, late.ID)
				}
				stand(t, r, want)
				if sh, ok := r.Shuffle(room.Events[0].ID, 0); !ok || !sh.Done || len(sh.IDs) != 30 {
					t.Errorf("its record: %+v, %v", sh, ok)
				}
			})
		})
	}
}

// The record is read from the store by a later process; what another process changed in it is
// not given out.
func TestAShuffleIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, room := memlink.New(), lottery()
		e := room.Events[0]
		n, kill := begin(t, link, room)
		sleepUntil(t, "09:59:50")
		queue(t, n.Room(shop.ID), 10)
		sleepUntil(t, "10:00:05")
		before, _ := n.Room(shop.ID).Shuffle(e.ID, 0)
		kill()
		sleepUntil(t, "23:00:00")
		room.Events = nil // deleted since
		n, kill = begin(t, link, room)
		after, ok := n.Room(shop.ID).Shuffle(e.ID, 0)
		if !ok || after.At != before.At || after.Seed != before.Seed || after.Entries != before.Entries || !slices.Equal(after.IDs, before.IDs) {
			t.Errorf("kept: %+v, was %+v", after, before)
		}
		if again, _ := n.Room(shop.ID).Shuffle(e.ID, 0); again != after {
			t.Error("it is read twice")
		}
		kill()
		keys, err := link.Keys(t.Context(), "shuffle.")
		if err != nil || len(keys) != 2 {
			t.Fatalf("%q, %v; want a head and a part", keys, err)
		}
		if _, err := link.Put(t.Context(), keys[1], make([]byte, 160)); err != nil {
			t.Fatal(err)
		}
		n, kill = begin(t, link, room)
		defer kill()
		if sh, ok := n.Room(shop.ID).Shuffle(e.ID, 0); ok {
			t.Errorf("a record that was changed: %+v", sh)
		}
	})
}

// putless is a link whose keys cannot be written while broken is set.
type putless struct {
	cluster.Link
	broken atomic.Bool
}

func (p *putless) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if p.broken.Load() && !strings.HasPrefix(key, "ledger.") {
		return 0, errors.New("no space left")
	}
	return p.Link.Put(ctx, key, value)
}

// The store comes back, or the process goes first: the journal has the shuffle all the same.
func TestAShuffleThatCannotBeStored(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link, room := &putless{Link: memlink.New()}, lottery()
			e := room.Events[0]
			n, kill := begin(t, link, room)
			r := n.Room(shop.ID)
			sleepUntil(t, "09:59:50")
			tickets := queue(t, r, 10)
			link.broken.Store(true)
			sleepUntil(t, "10:00:05")
			if sh, ok := r.Shuffle(e.ID, 0); !ok || sh.Done {
				t.Errorf("before it is stored: %+v, %v", sh, ok)
			}
			if restart {
				kill()
				n, kill = begin(t, link, room)
				r = n.Room(shop.ID)
				time.Sleep(time.Second)
			}
			link.broken.Store(false)
			stand(t, r, drawn(e, 0, tickets))
			time.Sleep(3 * time.Second)
			if sh, ok := r.Shuffle(e.ID, 0); !ok || !sh.Done || len(sh.IDs) != 10 {
				t.Errorf("after it was stored: %+v, %v", sh, ok)
			}
			kill()
		})
	}
}

// Only the end of the event's own prequeue shuffles.
func TestWhatDoesNotShuffle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, room := memlink.New(), lottery()
		e := room.Events[0]
		apply := func(n *Node, change func(*anteroom.Event)) {
			t.Helper()
			e := room.Events[0]
			change(&e)
			room.Events = []anteroom.Event{e}
			if err := n.Apply(t.Context(), []anteroom.Room{room}); err != nil {
				t.Fatal(err)
			}
		}
		room.Events[0].ShuffleAtStart = false
		n, kill := begin(t, link, room)
		r := n.Room(shop.ID)
		sleepUntil(t, "09:59:50")
		var tickets []anteroom.Ticket
		var order []anteroom.ID
		for range 10 {
			d := expect(t, r, newcomer(), "wait prequeue prequeueing")
			expect(t, r, with(d.Ticket), "wait early prequeueing")
			tickets, order = append(tickets, d.Ticket), append(order, d.Ticket.ID)
		}
		sleepUntil(t, "10:00:01")
		stand(t, r, order)
		apply(n, func(e *anteroom.Event) { e.ShuffleAtStart = true }) // too late
		stand(t, r, order)
		time.Sleep(time.Second)
		kill()
		n, kill = begin(t, link, room)
		r = n.Room(shop.ID)
		stand(t, r, order)
		apply(n, func(e *anteroom.Event) { e.Suspended = true })
		apply(n, func(e *anteroom.Event) { e.Suspended = false })
		stand(t, r, order)
		if _, ok := r.Shuffle(e.ID, 0); ok {
			t.Error("a shuffle is known that was none")
		}
		// Put off by half an hour, it has another start. Once it was shuffled, it is not again.
		apply(n, func(e *anteroom.Event) { e.Prequeue, e.Start = "2000-01-01T09:31:00Z", "2000-01-01T10:00:20Z" })
		sleepUntil(t, "10:00:20")
		r.Settings()
		want := drawn(e, 0, tickets)
		stand(t, r, want)
		sleepUntil(t, "10:00:25")
		apply(n, func(e *anteroom.Event) { e.Start = "2000-01-01T10:00:30Z"; e.Seed[0]++ })
		sleepUntil(t, "10:00:31")
		stand(t, r, want)
		kill()
	})
}

// A repeated event shuffles each time by another seed.
func TestARepeatedEventShufflesByItsOwnSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := lottery()
		e := &room.Events[0]
		e.Prequeue, e.Start, e.End = "1999-12-31T09:30:00Z", "1999-12-31T10:00:00Z", "1999-12-31T11:00:00Z"
		e.Repeat = anteroom.Repeat{Every: anteroom.EveryDay}
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		sleepUntil(t, "09:59:50")
		tickets := queue(t, r, 10)
		sleepUntil(t, "10:00:01")
		stand(t, r, drawn(*e, 1, tickets))
		if sh, ok := r.Shuffle(e.ID, 1); !ok || sh.Seed != e.OccurrenceSeed(1) || sh.Seed == e.Seed {
			t.Errorf("%+v, %v", sh, ok)
		}
		if _, ok := r.Shuffle(e.ID, 0); ok {
			t.Error("a shuffle is known of a day on which nobody was there")
		}
		if _, ok := r.Shuffle(e.ID, 2); ok {
			t.Error("something is known of tomorrow")
		}
	})
}

// The oldest records go.
func TestTheNewestShufflesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, room := memlink.New(), lottery()
		room.Events = nil
		begins := func(i int) time.Time { return moment(t, "09:05:00").Add(time.Duration(i) * 6 * time.Minute) }
		for i := range shuffles.Most + 2 {
			e := event(string(rune('a'+i)), anteroom.FIFO)
			e.ShuffleAtStart = true
			e.Prequeue, e.Start, e.End = anteroom.StampOf(begins(i).Add(-5*time.Minute)), anteroom.StampOf(begins(i)), anteroom.StampOf(begins(i).Add(time.Minute))
			room.Events = append(room.Events, e)
		}
		n, kill := begin(t, link, room)
		defer kill()
		r := n.Room(shop.ID)
		for i, e := range room.Events {
			time.Sleep(time.Until(begins(i).Add(-10 * time.Second)))
			queue(t, r, 3)
			time.Sleep(time.Until(begins(i).Add(time.Second)))
			if sh, ok := r.Shuffle(e.ID, 0); !ok || !sh.Done {
				t.Fatalf("event %d: %+v, %v", i, sh, ok)
			}
		}
		if _, ok := r.Shuffle(room.Events[1].ID, 0); ok {
			t.Error("the second of many is still known")
		}
		if sh, ok := r.Shuffle(room.Events[2].ID, 0); !ok || !sh.Done {
			t.Errorf("one of the newest is not known: %+v, %v", sh, ok)
		}
		keys, err := link.Keys(t.Context(), "shuffle.")
		if err != nil || len(keys) != 2*shuffles.Most {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		loaded := 0
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, rec := range r.decider.(*near).records {
			if rec.Shuffle != nil {
				loaded++
			}
		}
		if loaded > maxLoaded {
			t.Errorf("%d shuffles are in memory", loaded)
		}
	})
}

func TestHalfAShuffleInTheJournalIsNone(t *testing.T) {
	tag, other := shuffles.Tag("a", 0), shuffles.Tag("b", 0)
	a, b := anteroom.ID{2}, anteroom.ID{1}
	whole := []engine.Event{{Kind: engine.EventShuffle, ID: tag}, {Kind: engine.EventDrawn, ID: a}, {Kind: engine.EventDrawn, ID: b}, {Kind: engine.EventShuffled, ID: tag, Key: 7}}
	for n := range whole {
		if sh, ok := shuffleIn(whole[:n], tag); ok {
			t.Errorf("%d events of four: %+v", n, sh)
		}
		again := append(slices.Clone(whole[:n]), whole...)
		if sh, ok := shuffleIn(again, tag); !ok || !slices.Equal(sh.IDs, []anteroom.ID{b, a}) || sh.At != 7 || sh.Entries != engine.Entries([]anteroom.ID{a, b}) {
			t.Errorf("begun %d events before: %+v, %v", n, sh, ok)
		}
	}
	if sh, ok := shuffleIn(whole, other); ok {
		t.Errorf("another event's: %+v", sh)
	}
}
