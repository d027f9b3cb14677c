package node

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

func TestAdmitNowInAHeldRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.Controls.Paused = true
		link := &failing{Link: memlink.New()}
		n, kill := begin(t, link, room)
		defer kill()
		r := n.Room(shop.ID)
		ann, bob := expect(t, r, newcomer(), "wait queue_all none"), expect(t, r, newcomer(), "wait queue_all none")
		expect(t, r, with(ann.Ticket), "wait early none") // both have come back, so that it is in order
		expect(t, r, with(bob.Ticket), "wait early none")
		_, stream := r.Watch(t.Context(), newcomer())
		if given, err := r.AdmitNow(t.Context(), 1); given != 1 || err != nil {
			t.Fatalf("%d turns, %v", given, err)
		}
		expect(t, r, with(bob.Ticket), "wait early none")
		expect(t, r, with(ann.Ticket), "admit turn none")
		if given, err := r.AdmitNow(t.Context(), 5); given != 1 || err != nil { // the room is for two
			t.Fatalf("%d turns, %v", given, err)
		}
		expect(t, r, with(bob.Ticket), "admit turn none")
		time.Sleep(2 * time.Minute)
		if given, err := r.AdmitNow(t.Context(), 5); given != 1 || err != nil {
			t.Fatalf("%d turns, %v", given, err)
		}
		for d := range stream {
			if d.Verdict == anteroom.Admit {
				break
			}
		}
		link.broken.Store(true)
		expect(t, r, newcomer(), "wait queue_all none")
		time.Sleep(time.Second)
		if _, err := r.AdmitNow(t.Context(), 1); anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("while nothing can be recorded: %v", err)
		}
	})
}

// What is reserved ahead is no bound of how many can be let in by hand.
func TestAdmitNowReservesWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.QueueAll, room.TotalActiveUsers, room.NewUsersPerMinute = true, 3000, 3000
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		for i := range 2500 {
			v := newcomer()
			v.Ticket.ID = anteroom.ID{byte(i), byte(i >> 8), 7}
			r.Decide(t.Context(), v)
		}
		if given, err := r.AdmitNow(t.Context(), 2400); given != 2400 || err != nil {
			t.Errorf("%d turns, %v", given, err)
		}
	})
}

func TestFindByReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		find := func(reference string) []engine.Visitor {
			t.Helper()
			found, err := r.Find(t.Context(), reference)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		ann, bob := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		cid := r.Decide(t.Context(), newcomer())
		time.Sleep(time.Second)
		r.Decide(t.Context(), with(bob.Ticket))
		if got := find(ann.Ticket.ID.Reference()); len(got) != 1 || got[0].ID != ann.Ticket.ID || got[0].Standing != engine.Seated || got[0].AcceptedAt != ann.Ticket.AcceptedAt {
			t.Errorf("ann: %+v", got)
		}
		if got := find(hex.EncodeToString(bob.Ticket.ID[:])); len(got) != 1 || got[0].LastSeen <= bob.At {
			t.Errorf("bob: %+v", got)
		}
		if got := find(cid.Ticket.ID.Reference()); len(got) != 1 || got[0].Standing != engine.Waiting || got[0].Arrival != cid.Ticket.Arrival || !got[0].AheadKnown || got[0].Ahead != 0 {
			t.Errorf("cid: %+v", got)
		}
		r.Revoke(ann.Ticket.ID)
		if got := find(ann.Ticket.ID.Reference()); len(got) != 1 || got[0].Standing != engine.Used {
			t.Errorf("ann after her session: %+v", got)
		}
		if got := find("00000-00000"); len(got) != 0 {
			t.Errorf("nobody: %+v", got)
		}
		for _, bad := range []string{"", "ann", "00000", "00000-0000g", "000000000000000000000000000000000000"} {
			if _, err := r.Find(t.Context(), bad); anteroom.KindOf(err) != anteroom.Invalid {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

// Among many thousands a reference finds its owner, and a caller who has gone ends the search.
func TestFindAmongMany(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	synctest.Test(t, func(t *testing.T) {
		room := shop
		room.QueueAll = true
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(shop.ID)
		for i := range 10_000 {
			v := newcomer()
			v.Ticket.ID = anteroom.ID{byte(i), byte(i >> 8), byte(i >> 16), 1, 2, 3}
			r.Decide(t.Context(), v)
		}
		last := anteroom.ID{9999 & 0xff, 9999 >> 8, 0, 1, 2, 3}
		if got, err := r.Find(t.Context(), last.Reference()); err != nil || len(got) != 1 || got[0].ID != last {
			t.Errorf("%+v, %v", got, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Find(gone, last.Reference()); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller has gone: %v", err)
		}
	})
}
