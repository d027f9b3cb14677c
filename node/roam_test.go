package node

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// TestATurnIsToldOnAStreamWhosePlaceWentElsewhere: a visitor whose stream is at one site is heard of
// at another one afterwards, where nobody waits for the turn.
func TestATurnIsToldOnAStreamWhosePlaceWentElsewhere(t *testing.T) {
	for _, c := range []struct{ name, page, status, stream string }{
		{"three sites", "tokyo-1", "dublin-1", "lima-1"},
		{"at the hub", "tokyo-1", "lima-1", "dublin-2"},
		{"and back", "lima-1", "lima-1", "tokyo-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			together(t, shop, "dublin-1 dublin-2 tokyo-1 lima-1", func(t *testing.T, g *group) {
				ann, bob, cid := newGuest(), newGuest(), newGuest()
				ann.want(t, g.node("dublin-1"), anteroom.Admit)
				bob.want(t, g.node("dublin-2"), anteroom.Admit)
				cid.want(t, g.node(c.page), anteroom.Wait)
				before := cid.visit()
				d, updates := g.node(c.stream).Room(shop.ID).Watch(t.Context(), cid.visit())
				if d.Verdict != anteroom.Wait || updates == nil {
					t.Fatalf("%v %v, want a stream", d.Verdict, d.Reason)
				}
				cid.take(d)
				pass(time.Second)
				// What was asked before the stream comes late.
				before.NoHold = true
				if d := g.node(c.status).Room(shop.ID).Decide(t.Context(), before); d.Verdict != anteroom.Wait {
					t.Fatalf("status: %v %v", d.Verdict, d.Reason)
				}
				pass(20 * time.Second)
				if ok, err := g.node("dublin-1").Room(shop.ID).EndSession(t.Context(), ann.ticket.ID); !ok || err != nil {
					t.Fatalf("ann's session was not ended: %v, %v", ok, err)
				}
				began := time.Now()
				told := false
				for !told {
					select {
					case u := <-updates:
						told = u.Verdict == anteroom.Admit
					case <-time.After(20 * time.Second):
						t.Fatal("the turn is not told on the stream")
					}
				}
				if late := time.Since(began); late > time.Second {
					t.Errorf("told after %v", late)
				}
				cid.want(t, g.node(c.page), anteroom.Admit)
			})
		})
	}
}

// TestQuestionsGoThroughTheHub: two sites that hear nobody but the hub find and end each other's
// sessions.
func TestQuestionsGoThroughTheHub(t *testing.T) {
	together(t, shop, "dublin-1 tokyo-1 lima-1", func(t *testing.T, g *group) {
		ann := newGuest()
		ann.want(t, g.node("tokyo-1"), anteroom.Admit)
		far := g.node("lima-1").Room(shop.ID)
		if found, err := far.Find(t.Context(), ann.id.Reference()); err != nil || len(found) != 1 || found[0].ID != ann.id {
			t.Errorf("lima finds %v: %v", found, err)
		}
		if ok, err := far.EndSession(t.Context(), ann.id); !ok || err != nil {
			t.Errorf("ann's session is not ended: %v, %v", ok, err)
		}
		if ok, err := far.EndSession(t.Context(), anteroom.ID{1}); ok || err != nil {
			t.Errorf("a session that nobody has: %v, %v", ok, err)
		}
		shard := cluster.ShardOf(string(shop.ID))
		for _, c := range []struct{ question, want string }{
			{"{", "cannot be read"}, {`{"op":"find","site":"a.b"}`, "not the name of a site"}, {`{"op":"find","site":"nowhere"}`, "does not answer the hub"},
			{`{"op":"dance","site":"tokyo","id":"00"}`, "unknown request"},
		} {
			raw, err := g.node("lima-1").link.Request(t.Context(), askViaHub(shard), []byte(c.question))
			if err != nil || !strings.Contains(string(raw), c.want) {
				t.Errorf("%s: %s, %v; want %q", c.question, raw, err, c.want)
			}
		}
		g.world.CutSite("tokyo", memlink.Both)
		if _, err := far.EndSession(t.Context(), anteroom.ID{1}); anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("without tokyo: %v, want an error that says so", err)
		}
	})
}

// TestRevokedSessionsOfAllSites: any node lists the revoked sessions of all sites until their passes are over, and says if one of them
// does not answer.
func TestRevokedSessionsOfAllSites(t *testing.T) {
	room := shop
	room.Pass, room.SessionDuration = 10*time.Second, time.Minute
	together(t, room, "dublin-1 tokyo-1 lima-1", func(t *testing.T, g *group) {
		ann, bob := newGuest(), newGuest()
		ann.want(t, g.node("tokyo-1"), anteroom.Admit)
		bob.want(t, g.node("dublin-1"), anteroom.Admit)
		far := g.node("lima-1").Room(shop.ID)
		revoked := func(complete bool, want ...anteroom.ID) {
			t.Helper()
			byID := func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) }
			slices.SortFunc(want, byID)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, all := far.Revoked(ctx)
			if slices.SortFunc(got, byID); !slices.Equal(got, want) || all != complete {
				t.Errorf("%x, complete: %v; want %x, %v", got, all, want, complete)
			}
		}
		revoked(true)
		for _, id := range []anteroom.ID{ann.ticket.ID, bob.ticket.ID} {
			if ok, err := far.EndSession(t.Context(), id); !ok || err != nil {
				t.Fatalf("%v, %v", ok, err)
			}
		}
		revoked(true, ann.ticket.ID, bob.ticket.ID)
		g.world.CutSite("tokyo", memlink.Both)
		revoked(false, bob.ticket.ID)
		g.world.CutSite("tokyo", memlink.None)
		pass(16 * time.Second)
		revoked(true)
	})
}

// TestOnlyAJournalThatHadRecordsIsLost: a holder that is replaced before its first record, as at the
// very first start, has lost nothing.
func TestOnlyAJournalThatHadRecordsIsLost(t *testing.T) {
	together(t, shop, "dublin-1", func(t *testing.T, g *group) {
		p := g.node("dublin-1")
		const shard = 3
		for _, c := range []struct {
			name  string
			empty bool
			want  uint64
			begun bool
		}{
			{"with records", false, 1, false},
			{"lost", true, 2, true},
			{"replaced before the first record", true, 2, true},
			{"again", true, 2, true},
			{"with records again", false, 2, false},
			{"lost once more", true, 3, true},
		} {
			s, err := p.member().standing(t.Context(), shard, c.empty)
			if err != nil || s.Incarnation != c.want || s.Begun != c.begun {
				t.Errorf("%s: %+v, %v; want incarnation %d, begun %v", c.name, s, err, c.want, c.begun)
			}
		}
		for i := range cluster.Shards {
			if i == shard {
				continue
			}
			if e, err := p.link.Site().Get(t.Context(), standingKey(i)); err != nil || strings.Contains(string(e.Value), "begun") {
				t.Errorf("shard %d, which serves: %s, %v", i, e.Value, err)
			}
		}
	})
}

// A session goes on by reports, whichever node of whichever site takes them, and none begins or comes back.
func TestReportsAtAnyNode(t *testing.T) {
	room := shop
	room.SessionDuration, room.Pass, room.PassReported = time.Minute, 30*time.Second, true
	together(t, room, "dublin-1 dublin-2 tokyo-1 lima-1", func(t *testing.T, g *group) {
		ann, bob := newGuest(), newGuest()
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("lima-1"), anteroom.Admit)
		pass(time.Second)
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("lima-1"), anteroom.Admit)
		session := func(v *guest, node string) bool {
			d := g.node(node).Room(shop.ID).Decide(t.Context(), v.visit())
			v.take(d)
			return d.Verdict == anteroom.Admit && d.Reason == anteroom.ReasonSession
		}
		for _, name := range []string{"dublin-1", "dublin-2", "tokyo-1", "lima-1"} {
			pass(40 * time.Second)
			if !g.node(name).Room(shop.ID).Reported(ann.ticket) {
				t.Errorf("%s takes no report of ann", name)
			}
			pass(45 * time.Second)
			if !session(ann, "dublin-1") {
				t.Errorf("ann, whom %s has reported, has no session any more", name)
			}
		}
		if session(bob, "lima-1") {
			t.Error("bob, whom nobody has reported, has the session still")
		}
		waiting := ann.ticket
		waiting.AcceptedAt = 0
		if g.node("dublin-1").Room(shop.ID).Reported(waiting) {
			t.Error("a ticket of the queue is taken")
		}
		if ok, err := g.node("tokyo-1").Room(shop.ID).EndSession(t.Context(), ann.ticket.ID); !ok || err != nil {
			t.Fatalf("ann's session was not ended: %v, %v", ok, err)
		}
		for _, name := range []string{"dublin-1", "dublin-2", "tokyo-1"} {
			g.node(name).Room(shop.ID).Reported(ann.ticket)
		}
		pass(2 * time.Second)
		if found, err := g.node("lima-1").Room(shop.ID).Find(t.Context(), ann.ticket.ID.Reference()); err != nil || len(found) > 0 && found[0].Standing == engine.Seated {
			t.Errorf("ann is found: %+v, %v", found, err)
		}
	})
}
