package node

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket/account"
)

// A move is one device's, at any node; all processes hear of it, also those that begin later, until nobody needs it any more.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		other, killOther := begin(t, link, shop)
		defer killOther()
		t1 := anteroom.Ticket{ID: anteroom.ID{7}}
		if n.Moved(t1.ID) != 0 {
			t.Error("moved before")
		}
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = []*Node{n, other}[i%2].Move(t.Context(), shop.ID, &t1, string(rune('a'+i/4))) })
		}
		all.Wait()
		won := 0
		for i, err := range errs {
			switch {
			case err == nil:
				won++
			case anteroom.KindOf(err) != anteroom.Denied:
				t.Errorf("%d: %v", i, err)
			}
		}
		if won != 4 || (errs[0] == nil) == (errs[7] == nil) {
			t.Errorf("%v: each of two devices has tried four times, and one of them has won", errs)
		}
		synctest.Wait()
		if a, b := n.Moved(t1.ID), other.Moved(t1.ID); a != 1 || b != 1 {
			t.Errorf("moved %d and %d times, want 1", a, b)
		}
		t1.Moved = 1
		if err := other.Move(t.Context(), shop.ID, &t1, "c"); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if err := other.Move(t.Context(), shop.ID, &t1, "c"); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("again, long after: %v", err)
		}
		kill()
		again, killAgain := begin(t, link, shop)
		defer killAgain()
		synctest.Wait()
		if a, b := again.Moved(t1.ID), other.Moved(t1.ID); a != 2 || b != 2 {
			t.Errorf("moved %d and %d times, want 2", a, b)
		}
		t1.Moved = 255
		if err := again.Move(t.Context(), shop.ID, &t1, "c"); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("the 256th move: %v", err)
		}
		time.Sleep(movesFor + time.Minute)
		synctest.Wait()
		if again.Moved(t1.ID) != 0 || again.moves.count.Load() != 0 || len(again.moves.by) != 0 {
			t.Errorf("remembered for longer than %v: %v", movesFor, again.moves.by)
		}
	})
}

// At the bound, places stay where they are. A store that does not answer moves none.
func TestMovesAreBounded(t *testing.T) {
	link := memlink.New()
	n, err := New(t.Context(), Config{Link: link})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxMoves {
		n.moved(shop.ID, anteroom.ID{byte(i), byte(i >> 8), byte(i >> 16), 1}, 1)
	}
	t1 := anteroom.Ticket{ID: anteroom.ID{7}}
	if err := n.Move(t.Context(), shop.ID, &t1, "a"); anteroom.KindOf(err) != anteroom.Unavailable || n.Moved(t1.ID) != 0 {
		t.Errorf("beyond the bound: %v", err)
	}
	if keys, _ := link.Keys(t.Context(), movesPrefix); len(keys) != 0 {
		t.Errorf("written: %v", keys)
	}
	id := anteroom.ID{1, 0, 0, 1}
	if allocs := testing.AllocsPerRun(100, func() { n.Moved(id) }); allocs != 0 {
		t.Errorf("a look allocates %v times", allocs)
	}

	n, err = New(t.Context(), Config{Link: memlink.New()})
	if err != nil {
		t.Fatal(err)
	}
	n.cfg.Link.Close()
	if err := n.Move(t.Context(), shop.ID, &t1, "a"); anteroom.KindOf(err) != anteroom.Unavailable || n.Moved(t1.ID) != 0 {
		t.Errorf("without a store: %v", err)
	}
}

// Keys that are none are passed over.
func TestMoveKeys(t *testing.T) {
	id := anteroom.ID{1, 15: 2}
	key := moveKey("0123456789abcdef0123456789abcdef", id, 255)
	if err := cluster.CheckKey(key); err != nil {
		t.Error(err)
	}
	if room, got, number, ok := readMove(key); !ok || room != "0123456789abcdef0123456789abcdef" || got != id || number != 255 {
		t.Errorf("%v %v %v %v", room, got, number, ok)
	}
	for _, bad := range []string{"", "moves.", "moves.a.b.c", "moves.a.01.1", key + "1", key + ".1", "moves.a.01000000000000000000000000000002.-1", "moves.a.01000000000000000000000000000002."} {
		if _, _, _, ok := readMove(bad); ok {
			t.Errorf("%q is read", bad)
		}
	}
}

// A process that becomes a cluster takes moves and the places of accounts along, and forgets them in time.
func TestMovesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, grown := memlink.New(), memlink.NewWorld().Join("dublin", "dublin-1")
		n, kill := begin(t, old, shop)
		t1 := anteroom.Ticket{ID: anteroom.ID{7}}
		if err := n.Move(t.Context(), shop.ID, &t1, "a"); err != nil {
			t.Fatal(err)
		}
		places := account.Places{Space: old}
		who := account.MarkOf([32]byte{1}, shop.ID).Of("ann")
		if _, err := places.Raise(t.Context(), shop.ID, who, account.Place{Number: 3, Arrival: 5}, time.Hour); err != nil {
			t.Fatal(err)
		}
		kill()
		if err := Grow(t.Context(), old, grown, "dublin"); err != nil {
			t.Fatal(err)
		}
		places.Space = grown
		if p, err := places.Get(t.Context(), shop.ID, who); p != (account.Place{Number: 3, Arrival: 5}) || err != nil {
			t.Errorf("%+v %v", p, err)
		}
		for _, left := range []int{1, 0} {
			for _, prefix := range []string{movesPrefix, account.KeyPrefix} {
				if keys, err := grown.Keys(t.Context(), prefix); len(keys) != left || err != nil {
					t.Errorf("%s: %v %v", prefix, keys, err)
				}
			}
			time.Sleep(movesFor + time.Minute)
		}
	})
}
