package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// breaking is a link to a cluster that fails after some writes.
type breaking struct {
	cluster.Link
	left int
}

func (b *breaking) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if b.left--; b.left < 0 {
		return 0, errors.New("the power is gone")
	}
	return b.Link.Update(ctx, key, value, revision)
}

func TestAProcessAloneBecomesACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := memlink.New()
		n, kill := begin(t, old, shop)
		alone := &peer{Node: n, name: "alone", group: &group{t: t, room: shop}}
		ann, bob, cid, dan := newGuest(), newGuest(), newGuest(), newGuest()
		ann.want(t, alone, anteroom.Admit)
		bob.want(t, alone, anteroom.Admit)
		cid.want(t, alone, anteroom.Wait)
		dan.want(t, alone, anteroom.Wait)
		time.Sleep(time.Second)
		kill()
		if _, err := old.Put(t.Context(), "manage.something", []byte("kept")); err != nil {
			t.Fatal(err)
		}

		g := &group{t: t, world: memlink.NewWorld(), room: shop, rooms: []anteroom.Room{shop}, nodes: map[string]*peer{}}
		t.Cleanup(func() {
			for _, p := range g.nodes {
				p.kill()
			}
		})
		link := g.world.Join("dublin", "dublin-1")
		for range 2 { // the second finds that there is nothing left to do
			if err := Grow(t.Context(), old, link, "dublin"); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := link.Get(t.Context(), "manage.something"); err != nil || string(e.Value) != "kept" {
			t.Errorf("what is shared was not taken over: %q, %v", e.Value, err)
		}
		link.Close()
		p := g.start("dublin-1")
		g.start("dublin-2")
		g.settled()
		time.Sleep(5 * time.Second)
		eve := newGuest()
		eve.want(t, p, anteroom.Wait)
		for _, v := range []*guest{ann, bob} {
			if d := v.want(t, p, anteroom.Admit); d.Ticket.ID != v.id {
				t.Error("a session was not taken over")
			}
		}
		for _, v := range []*guest{cid, dan} {
			if d := v.want(t, p, anteroom.Wait); d.Ticket.ID != v.id {
				t.Errorf("a place was not taken over: %v", d.Reason)
			}
		}
		if s := p.Room(shop.ID).Status(); s.ActiveUsers != 2 || s.Waiting+s.Dormant != 3 {
			t.Errorf("%d active and %d in line, want 2 and 3", s.ActiveUsers, s.Waiting+s.Dormant)
		}
		if ok, err := p.Room(shop.ID).EndSession(t.Context(), bob.ticket.ID); !ok || err != nil {
			t.Fatal(ok, err)
		}
		ann.want(t, p, anteroom.Admit)
		if !g.patient([]*guest{cid, dan, eve}, func(int) *peer { return p }, 50*time.Second,
			func(_ int, d anteroom.Decision) bool { return d.Verdict == anteroom.Admit }) {
			t.Errorf("nobody gets the seat: %+v", p.Room(shop.ID).Status())
		}
	})
}

func TestGrowingGoesOnAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := memlink.New()
		n, kill := begin(t, old, shop)
		alone := &peer{Node: n, name: "alone", group: &group{t: t, room: shop}}
		for range 3 {
			newGuest().at(t, alone)
		}
		kill()
		for _, key := range []string{"a", "b", "c"} {
			if _, err := old.Put(t.Context(), key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		link := memlink.NewWorld().Join("dublin", "dublin-1")
		broken := &breaking{Link: link, left: 1}
		if err := Grow(t.Context(), old, broken, "dublin"); err == nil {
			t.Fatal("it did not notice that it was interrupted")
		}
		if err := Grow(t.Context(), old, link, "dublin"); err != nil {
			t.Fatal(err)
		}
		own, err := link.Journal(t.Context(), fmt.Sprintf("%s%02d", siteRolePrefix, cluster.ShardOf(string(shop.ID))))
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		events, _, err := readHistory(t.Context(), own, func(anteroom.RoomID) bool { return true })
		for _, list := range events {
			total += len(list)
		}
		if err != nil || total != 3 {
			t.Errorf("%d events, want 3: %v", total, err)
		}
		other := memlink.NewWorld().Join("dublin", "dublin-1")
		if _, err := other.Put(t.Context(), "b", []byte("another cluster's")); err != nil {
			t.Fatal(err)
		}
		if err := Grow(t.Context(), old, other, "dublin"); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("into a cluster that has something else: %v", err)
		}
	})
}
