package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

var shop = anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "shop.example"}},
	Settings: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: time.Minute, FirstSession: time.Hour}}.WithDefaults()

// begin starts a node on the link; the returned function ends it as kill -9 would: nothing
// more is written.
func begin(t *testing.T, link cluster.Link, rooms ...anteroom.Room) (*Node, func()) {
	t.Helper()
	_, forgot := link.(dropped)
	return beginWith(t, Config{Link: link, Forgot: forgot}, rooms...)
}

func beginWith(t *testing.T, cfg Config, rooms ...anteroom.Room) (*Node, func()) {
	t.Helper()
	n, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Apply(t.Context(), rooms); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	return n, func() { stop(); <-done }
}

var nextID byte

func newcomer() anteroom.Visit {
	nextID++
	return anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{nextID, 1}}, NewID: anteroom.ID{nextID, 2}}
}

func with(t anteroom.Ticket) anteroom.Visit {
	nextID++
	return anteroom.Visit{Ticket: t, NewID: anteroom.ID{nextID, 3}}
}

func TestRestartKeepsSessionsAndLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		r := n.Room(shop.ID)
		ann, bob := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		cid, dan := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		if ann.Verdict != anteroom.Admit || bob.Verdict != anteroom.Admit || cid.Verdict != anteroom.Wait || dan.Verdict != anteroom.Wait {
			t.Fatalf("got %v %v %v %v", ann.Verdict, bob.Verdict, cid.Verdict, dan.Verdict)
		}
		time.Sleep(300 * time.Millisecond)
		kill()

		n, kill = begin(t, link, shop)
		defer kill()
		r = n.Room(shop.ID)
		if s := r.Status(); s.ActiveUsers != 2 || s.Waiting != 2 {
			t.Fatalf("after the restart: %d active, %d waiting; want 2 and 2", s.ActiveUsers, s.Waiting)
		}
		if d := r.Decide(t.Context(), with(ann.Ticket)); d.Reason != anteroom.ReasonSession {
			t.Errorf("ann: %v %v, want her session", d.Verdict, d.Reason)
		}
		if eve := r.Decide(t.Context(), newcomer()); eve.Verdict != anteroom.Wait || eve.Ahead != 2 {
			t.Errorf("eve: %v, %d ahead; want to wait behind two", eve.Verdict, eve.Ahead)
		}
		_, stream := r.Watch(t.Context(), with(dan.Ticket))
		_, first := r.Watch(t.Context(), with(cid.Ticket))
		r.Revoke(bob.Ticket.ID)
		d := <-first
		for d.Verdict != anteroom.Admit {
			d = <-first
		}
		select {
		case d := <-stream:
			if d.Verdict == anteroom.Admit {
				t.Error("dan was called before cid had come in")
			}
		default:
		}
		if d := r.Decide(t.Context(), with(cid.Ticket)); d.Reason != anteroom.ReasonTurn {
			t.Errorf("cid: %v %v, want the turn", d.Verdict, d.Reason)
		}
	})
}

func TestAdmissionIsDurableBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		defer kill()
		d := n.Room(shop.ID).Decide(t.Context(), newcomer())
		h, _, err := readHistory(t.Context(), n.part.(*standalone).journal.to, func(id anteroom.RoomID) bool { return id == shop.ID })
		if err != nil || len(h[shop.ID]) != 1 || h[shop.ID][0].ID != d.Ticket.ID {
			t.Fatalf("journal: %v, %v; want the admission of %v", h, err, d.Ticket.ID.Reference())
		}
	})
}

func TestForgottenJournalNeverExceedsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		ann, bob := n.Room(shop.ID).Decide(t.Context(), newcomer()), n.Room(shop.ID).Decide(t.Context(), newcomer())
		kill()
		n, kill = begin(t, dropped{link}, shop)
		defer kill()
		r := n.Room(shop.ID)
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait {
			t.Errorf("a newcomer: %v, want to wait: two unknown sessions may be alive", d.Verdict)
		}
		for _, d := range []anteroom.Decision{ann, bob} {
			if got := r.Decide(t.Context(), with(d.Ticket)); got.Reason != anteroom.ReasonAdopted {
				t.Errorf("%v %v, want the session adopted", got.Verdict, got.Reason)
			}
		}
		time.Sleep(2 * time.Minute)
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Admit {
			t.Errorf("after the sessions must have ended: %v, want to be let in", d.Verdict)
		}
	})
}

// TestACookieProvesAnOldJournal: a store that is older than what happened since is noticed by the first
// session that it does not know; then it is as if the journal was lost.
func TestACookieProvesAnOldJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		ann := n.Room(shop.ID).Decide(t.Context(), newcomer())
		kill()
		old, err := link.Journal(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		records := 0
		if err := old.Replay(t.Context(), func(time.Time, []byte) error { records++; return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		n, kill = begin(t, link, shop)
		bob := n.Room(shop.ID).Decide(t.Context(), newcomer())
		kill()
		time.Sleep(time.Second)
		n, kill = begin(t, shortened{link, records}, shop)
		defer kill()
		r := n.Room(shop.ID)
		if got := r.Decide(t.Context(), with(ann.Ticket)); got.Reason != anteroom.ReasonSession {
			t.Errorf("ann: %v %v, want her session, which is on record", got.Verdict, got.Reason)
		}
		for _, d := range []anteroom.Decision{bob, ann} {
			if got := r.Decide(t.Context(), with(d.Ticket)); got.Reason != anteroom.ReasonAdopted {
				t.Errorf("%v %v, want the session adopted", got.Verdict, got.Reason)
			}
		}
		r.Revoke(ann.Ticket.ID)
		time.Sleep(time.Second)
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait {
			t.Errorf("a newcomer: %v, want to wait: others may be alive of whom nobody knows", d.Verdict)
		}
		if _, err := link.Get(t.Context(), forgottenKey); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("the note that the rooms are to begin anew: %v, want none", err)
		}
		time.Sleep(2 * time.Minute)
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Admit {
			t.Errorf("after the sessions must have ended: %v, want to be let in", d.Verdict)
		}
	})
}

// shortened is a link whose journal has its first records only.
type shortened struct {
	cluster.Link
	records int
}

func (s shortened) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := s.Link.Journal(ctx, name)
	return shortJournal{j, s.records}, err
}

type shortJournal struct {
	cluster.Journal
	records int
}

func (j shortJournal) Replay(ctx context.Context, fn func(time.Time, []byte) error) error {
	n := 0
	return j.Journal.Replay(ctx, func(at time.Time, record []byte) error {
		if n++; n > j.records {
			return nil
		}
		return fn(at, record)
	})
}

// dropped is a link whose old journal is gone.
type dropped struct{ cluster.Link }

func (d dropped) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := d.Link.Journal(ctx, name)
	return empty{j}, err
}

type empty struct{ cluster.Journal }

func (empty) Replay(context.Context, func(time.Time, []byte) error) error { return nil }

func TestDamagedJournalIsRefused(t *testing.T) {
	link := memlink.New()
	j, err := link.Journal(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), []byte("no record")); err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), Config{Link: link})
	if _, ok := errors.AsType[*cluster.DamagedError](err); !ok {
		t.Errorf("got %v, want a DamagedError", err)
	}
}

func TestHeldNewcomerIsAnsweredWithinHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		r.Decide(t.Context(), newcomer())
		r.Decide(t.Context(), newcomer())
		began := time.Now()
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait || time.Since(began) > 700*time.Millisecond {
			t.Errorf("%v after %v", d.Verdict, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began = time.Now()
		if d := r.Decide(ctx, newcomer()); d.Verdict != anteroom.Wait || time.Since(began) > 60*time.Millisecond {
			t.Errorf("with a context: %v after %v", d.Verdict, time.Since(began))
		}
	})
}

func TestTunnelsHearTheEndOfTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		ann, bob := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		began := time.Now()
		a, b := r.Ended(t.Context(), ann.Ticket.ID), r.Ended(t.Context(), bob.Ticket.ID)
		r.Revoke(ann.Ticket.ID)
		<-a
		<-b
		if took := time.Since(began); took < time.Minute || took > 62*time.Second {
			t.Errorf("bob's session lapsed after %v, want a minute", took)
		}
		<-r.Ended(t.Context(), anteroom.ID{9}) // nobody's: closed already
	})
}

func TestApplyKeepsChangesAndRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		r := n.Room(shop.ID)
		r.Decide(t.Context(), newcomer())
		r.Decide(t.Context(), newcomer())
		cid := r.Decide(t.Context(), newcomer())
		_, stream := r.Watch(t.Context(), with(cid.Ticket))
		bigger := shop
		bigger.TotalActiveUsers = 3
		if err := n.Apply(t.Context(), []anteroom.Room{bigger}); err != nil {
			t.Fatal(err)
		}
		if d := <-stream; d.Verdict != anteroom.Admit {
			t.Errorf("after the limit was raised: %v, want to be called", d.Verdict)
		}
		if err := n.Apply(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n.Room(shop.ID) != nil {
			t.Error("the room is still there")
		}
		if err := n.Apply(t.Context(), []anteroom.Room{bigger}); err != nil {
			t.Fatal(err)
		}
		if s := n.Room(shop.ID).Status(); s.ActiveUsers != 2 {
			t.Errorf("the room came back with %d sessions, want 2", s.ActiveUsers)
		}
		if n.Streams() != 0 {
			t.Errorf("%d streams counted, want 0", n.Streams())
		}
	})
}

// TestHeldRequestsOfARoomThatEnds: whoever is asked to wait for a moment when the room is deleted, or the node ends, gets an answer.
func TestHeldRequestsOfARoomThatEnds(t *testing.T) {
	for name, end := range map[string]func(n *Node, kill func()){
		"it is deleted": func(n *Node, _ func()) {
			if err := n.Apply(t.Context(), nil); err != nil {
				t.Error(err)
			}
		},
		"the node ends": func(_ *Node, kill func()) { kill() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, kill := begin(t, memlink.New(), shop)
				defer kill()
				r := n.Room(shop.ID)
				for range shop.TotalActiveUsers {
					r.Decide(t.Context(), newcomer())
				}
				ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
				defer giveUp()
				held := make(chan anteroom.Decision)
				go func() { held <- r.Decide(ctx, newcomer()) }()
				synctest.Wait()
				end(n, kill)
				began := time.Now()
				if d := <-held; d.Verdict != anteroom.Wait || time.Since(began) > 0 {
					t.Errorf("answered %v after %v", d.Verdict, time.Since(began))
				}
				// A request that has found the room before comes a moment later.
				if d := r.Decide(ctx, newcomer()); d.Verdict != anteroom.Wait || time.Since(began) > 0 {
					t.Errorf("a later one: %v after %v", d.Verdict, time.Since(began))
				}
			})
		})
	}
}

// TestRoomsOfOneName: two rooms with one ID would share one machine.
func TestRoomsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		one := anteroom.Room{Name: "a", Routes: []anteroom.Route{{Host: "a.example", Path: "/one"}}}
		other := one
		other.Routes = []anteroom.Route{{Host: "a.example", Path: "/other"}}
		if err := n.Apply(t.Context(), []anteroom.Room{shop, one, other}); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "rooms[1] and rooms[2]") {
			t.Errorf("applied: %v", err)
		}
		if n.Room(one.WithDefaults().ID) != nil || n.Room(shop.ID) == nil {
			t.Error("something has changed")
		}
	})
}

func TestClockNeverGoesBack(t *testing.T) {
	wall := anteroom.TimeOf(time.Now())
	boot, up := bootClock()
	for _, c := range []struct {
		name  string
		last  mark
		shift func(time.Duration) bool
		ahead bool
	}{
		{"first start", mark{}, func(d time.Duration) bool { return d == 0 }, false},
		{"same boot, a minute ago", mark{at: wall.Add(-time.Minute), boot: boot, up: up - time.Minute}, func(d time.Duration) bool { return d < time.Second }, false},
		{"same boot, wall clock set back a day", mark{at: wall.Add(24 * time.Hour), boot: boot, up: up - time.Minute}, func(d time.Duration) bool { return d < time.Second }, true},
		{"same boot, wall clock set ahead a day", mark{at: wall.Add(-24 * time.Hour), boot: boot, up: up - time.Minute}, func(d time.Duration) bool { return d > 23*time.Hour }, false},
		{"another boot, an hour ago", mark{at: wall.Add(-time.Hour), boot: [16]byte{1}, up: time.Second}, func(d time.Duration) bool { return d > 59*time.Minute }, false},
		{"another boot, clock in the past", mark{at: wall.Add(time.Hour), boot: [16]byte{1}, up: time.Second}, func(d time.Duration) bool { return d < time.Second }, true},
	} {
		clk, shift := startClock(c.last)
		if clk.now() <= c.last.at {
			t.Errorf("%s: room time went back from %v to %v", c.name, c.last.at.Std(), clk.now().Std())
		}
		if !c.shift(shift) {
			t.Errorf("%s: shift %v", c.name, shift)
		}
		if ahead := clk.now() > wall.Add(time.Minute); ahead != c.ahead {
			t.Errorf("%s: ahead of the wall clock: %v", c.name, ahead)
		}
	}
}

// blocked is a link whose journal waits until the gate opens.
type blocked struct {
	cluster.Link
	gate atomic.Pointer[chan struct{}]
}

func (b *blocked) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := b.Link.Journal(ctx, name)
	return &blockedJournal{j, b}, err
}

type blockedJournal struct {
	cluster.Journal
	of *blocked
}

func (b *blockedJournal) Append(ctx context.Context, rec []byte) error {
	if g := b.of.gate.Load(); g != nil {
		select {
		case <-*g:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.Journal.Append(ctx, rec)
}

// Two requests of one visitor at once: neither is let in before the session is on record.
func TestParallelRequestWaitsForTheRecordToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &blocked{Link: memlink.New()}
		n, kill := begin(t, link, shop)
		defer kill()
		gate := make(chan struct{})
		link.gate.Store(&gate)
		began, visit := time.Now(), newcomer()
		took := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				if d := n.Room(shop.ID).Decide(t.Context(), visit); d.Verdict != anteroom.Admit {
					t.Errorf("got %v, want to be let in", d.Verdict)
				}
				took <- time.Since(began)
			}()
		}
		time.Sleep(300 * time.Millisecond)
		close(gate)
		for range 2 {
			if d := <-took; d < 300*time.Millisecond {
				t.Errorf("let in after %v, before the record was written", d)
			}
		}
	})
}
