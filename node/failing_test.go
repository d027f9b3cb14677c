package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// failing is a link whose journal cannot be written while broken is set, or does not answer for so long.
type failing struct {
	cluster.Link
	broken atomic.Bool
	stalls atomic.Int64 // ns
}

func (f *failing) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := f.Link.Journal(ctx, name)
	return &failingJournal{j, f}, err
}

type failingJournal struct {
	cluster.Journal
	of *failing
}

func (f *failingJournal) Append(ctx context.Context, b []byte) error {
	if f.of.broken.Load() {
		return errors.New("no space left")
	}
	if d := time.Duration(f.of.stalls.Load()); d != 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.Journal.Append(ctx, b)
}

var wide = anteroom.Room{Name: "wide", Routes: []anteroom.Route{{Host: "shop.example"}},
	Settings: anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 600, SessionDuration: 10 * time.Minute, FirstSession: 10 * time.Minute}}.WithDefaults()

func TestNobodyNewWhileTheJournalCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		name   string
		method anteroom.QueueingMethod
		admit  bool
		want   anteroom.Verdict
	}{
		{"held", anteroom.FIFO, false, anteroom.Wait},
		{"held by lot", anteroom.Random, false, anteroom.Wait},
		{"everybody is let in anyway", anteroom.Passthrough, false, anteroom.Admit},
		{"admit_new", anteroom.FIFO, true, anteroom.Admit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := &failing{Link: memlink.New()}
				room := wide
				room.QueueingMethod = c.method
				n, kill := begin(t, link, room)
				defer kill()
				n.AdmitUnrecorded(c.admit)
				r := n.Room(room.ID)
				inside := r.Decide(t.Context(), newcomer())
				time.Sleep(time.Millisecond) // admissions of one moment are not told apart
				link.broken.Store(true)
				began := time.Now()
				met := r.Decide(t.Context(), newcomer())
				if met.Verdict != c.want {
					t.Fatalf("the one that met the failure: %v, want %v", met.Verdict, c.want)
				}
				synctest.Wait()
				if took := time.Since(began); took > 2*commitWait {
					t.Errorf("it took %v", took)
				}
				if s := n.JournalStats(); !s.Failing || s.Late != 1 && c.method != anteroom.Passthrough {
					t.Errorf("stats %+v: want failing, one late", s)
				}
				late := r.Decide(t.Context(), newcomer())
				if late.Verdict != c.want {
					t.Errorf("a newcomer: %v, want %v", late.Verdict, c.want)
				}
				if d := r.Decide(t.Context(), with(inside.Ticket)); d.Verdict != anteroom.Admit {
					t.Errorf("a session: %v, want to go on", d.Verdict)
				}
				if s := r.Settings(); s.QueueAll {
					t.Error("the settings in force say queue_all, which nobody configured")
				}
				link.broken.Store(false)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if s := n.JournalStats(); s.Failing || s.Records == 0 {
					t.Errorf("stats %+v: want it written when the disk is back", s)
				}
				if d := r.Decide(t.Context(), with(met.Ticket)); d.Verdict != anteroom.Admit {
					t.Errorf("the one that met the failure, after the disk came back: %v, want to be let in", d.Verdict)
				}
				for range 5 {
					late = r.Decide(t.Context(), with(late.Ticket))
					time.Sleep(late.Refresh)
				}
				if late.Verdict != anteroom.Admit {
					t.Errorf("the newcomer after the disk came back: %v, want to be let in", late.Verdict)
				}
			})
		})
	}
}

// full is a link that takes no writes while it is full.
type full struct {
	cluster.Link
	on atomic.Bool
}

func (f *full) refuses() error {
	if f.on.Load() {
		return fmt.Errorf("%w: the disk", cluster.ErrFull)
	}
	return nil
}

func (f *full) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := f.refuses(); err != nil {
		return 0, err
	}
	return f.Link.Update(ctx, key, value, revision)
}

func (f *full) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := f.Link.Journal(ctx, name)
	return fullJournal{j, f}, err
}

type fullJournal struct {
	cluster.Journal
	of *full
}

func (j fullJournal) Append(ctx context.Context, record []byte) error {
	if err := j.of.refuses(); err != nil {
		return err
	}
	return j.Journal.Append(ctx, record)
}

// A process starts on a disk that takes nothing at all, serves active sessions, and admits new visitors when there
// is space, with the start on record.
func TestStartOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &full{Link: memlink.New()}
		n, kill := begin(t, link, wide)
		ann := n.Room(wide.ID).Decide(t.Context(), newcomer())
		kill()
		for _, orderly := range []bool{true, false} {
			link.on.Store(true)
			n, kill = begin(t, link, wide)
			r := n.Room(wide.ID)
			if d := r.Decide(t.Context(), with(ann.Ticket)); d.Verdict != anteroom.Admit {
				t.Errorf("an active session: %v %v", d.Verdict, d.Reason)
			}
			d := r.Decide(t.Context(), newcomer())
			if d.Verdict != anteroom.Wait {
				t.Errorf("a new visitor while the disk is full: %v", d.Verdict)
			}
			time.Sleep(10 * time.Second)
			if orderly {
				link.on.Store(false)
				time.Sleep(20 * time.Second)
				if d = r.Decide(t.Context(), with(d.Ticket)); d.Verdict != anteroom.Admit {
					t.Errorf("the same visitor when there is space: %v %v", d.Verdict, d.Reason)
				}
			}
			kill()
		}
	})
}

// A disk that does not answer is noticed by the time that it takes: nobody enters without a record, so that a
// crash gives no seat twice; and it ends by itself.
func TestNobodyEntersWhileTheJournalStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &failing{Link: memlink.New()}
		room := wide
		room.TotalActiveUsers = 3
		n, kill := begin(t, link, room)
		r := n.Room(room.ID)
		tickets := []anteroom.Ticket{r.Decide(t.Context(), newcomer()).Ticket}
		time.Sleep(time.Millisecond)
		link.stalls.Store(int64(8 * time.Second))
		for i := range 3 { // one meets the stall
			d := r.Decide(t.Context(), newcomer())
			if d.Verdict != anteroom.Wait || d.Ticket.ID.IsZero() || !d.SetCookie {
				t.Fatalf("newcomer %d: %+v", i, d)
			}
			tickets = append(tickets, d.Ticket)
		}
		if s := n.JournalStats(); !s.Failing || s.Failures != 0 {
			t.Errorf("stats %+v: want it said without an error", s)
		}
		if d := r.Decide(t.Context(), with(tickets[1])); d.Verdict != anteroom.Wait {
			t.Errorf("who met the stall comes again: %v", d.Verdict)
		}
		if d := r.Decide(t.Context(), with(tickets[0])); d.Verdict != anteroom.Admit {
			t.Errorf("a session: %v", d.Verdict)
		}
		kill()
		link.stalls.Store(0)
		n, kill = begin(t, link, room)
		defer kill()
		r = n.Room(room.ID)
		for range 4 {
			r.Decide(t.Context(), newcomer())
		}
		if d := r.Decide(t.Context(), with(tickets[0])); d.Verdict != anteroom.Admit {
			t.Errorf("a session after the crash: %v", d.Verdict)
		}
		if s := r.Status(); s.ActiveUsers > 3 {
			t.Errorf("%d are active", s.ActiveUsers)
		}
		link.stalls.Store(int64(2 * time.Second))
		late := r.Decide(t.Context(), newcomer())
		link.stalls.Store(0)
		time.Sleep(5 * time.Second)
		if s := n.JournalStats(); s.Failing || late.Verdict != anteroom.Wait {
			t.Errorf("after a stall: %+v, a newcomer %v", s, late.Verdict)
		}
	})
}

// Whoever was inside while nothing could be recorded has the session still after a crash, and nobody else its
// seat; after an orderly end, what is on record counts.
func TestSessionsThatNobodyCouldRecord(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link := &failing{Link: memlink.New()}
			room := wide
			room.TotalActiveUsers, room.SessionDuration, room.FirstSession = 1, time.Minute, time.Minute
			n, end := begin(t, link, room)
			ann := n.Room(room.ID).Decide(t.Context(), newcomer())
			if !orderly {
				time.Sleep(50 * time.Second)
				link.broken.Store(true)
				time.Sleep(time.Second)
				ann = n.Room(room.ID).Decide(t.Context(), with(ann.Ticket)) // nothing of this is on record
			}
			end()
			link.broken.Store(false)
			n, end = begin(t, link, room)
			defer end()
			time.Sleep(40 * time.Second)
			if d := n.Room(room.ID).Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait {
				t.Errorf("orderly %v: a newcomer gets the seat: %v", orderly, d.Verdict)
			}
			if orderly {
				time.Sleep(30 * time.Second)
			}
			if d := n.Room(room.ID).Decide(t.Context(), with(ann.Ticket)); (d.Verdict == anteroom.Admit && d.Reason == anteroom.ReasonSession) == orderly {
				t.Errorf("orderly %v: the visitor after the restart: %v %v", orderly, d.Verdict, d.Reason)
			}
		})
	}
}

func TestStreamIsCalledWhenTheJournalIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &failing{Link: memlink.New()}
		n, kill := begin(t, link, wide)
		defer kill()
		r := n.Room(wide.ID)
		link.broken.Store(true)
		r.Decide(t.Context(), newcomer()) // meets the failure
		late := r.Decide(t.Context(), newcomer())
		_, stream := r.Watch(t.Context(), with(late.Ticket))
		if stream == nil {
			t.Fatal("no stream")
		}
		link.broken.Store(false)
		for d := range stream {
			if d.Verdict == anteroom.Admit {
				return
			}
		}
		t.Error("the stream ended without a turn")
	})
}

func TestReleasedRoomLetsNobodyNewIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		n, kill := begin(t, link, shop)
		r := n.Room(shop.ID)
		ann, _, cid := r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer()), r.Decide(t.Context(), newcomer())
		answered := make(chan anteroom.Decision, 1)
		r.Revoke(ann.Ticket.ID)
		go func() { answered <- r.Decide(t.Context(), newcomer()) }()
		synctest.Wait()
		n.Release()
		kill()
		<-answered // whatever it says: held requests do not outlive the room
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Wait || d.SetCookie {
			t.Errorf("a newcomer: %+v, want to be told to come again", d)
		}
		if d := r.Decide(t.Context(), with(cid.Ticket)); d.Verdict != anteroom.Wait || d.Ticket.ID != cid.Ticket.ID {
			t.Errorf("who waits: %+v, want the old place", d)
		}
		before := n.JournalStats().Events
		next, kill := begin(t, link, shop)
		defer kill()
		if got := n.JournalStats().Events; got != before {
			t.Errorf("%d events after the release", got-before)
		}
		if d := next.Room(shop.ID).Decide(t.Context(), with(cid.Ticket)); d.Verdict == anteroom.Refuse {
			t.Errorf("at the successor: %v", d.Verdict)
		}
	})
}

func TestPreparedRoomsCanBeGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, kill := begin(t, memlink.New(), shop)
		defer kill()
		changed := shop
		changed.TotalActiveUsers = 50
		if err := n.Prepare(t.Context(), []anteroom.Room{changed, wide}); err != nil {
			t.Fatal(err)
		}
		if got := n.Room(shop.ID).Settings().TotalActiveUsers; got != shop.TotalActiveUsers {
			t.Errorf("preparing changed a limit to %d", got)
		}
		if n.Room(wide.ID) == nil {
			t.Fatal("the new room is not prepared")
		}
		n.Settle(t.Context(), []anteroom.Room{shop})
		if n.Room(wide.ID) != nil || n.Room(shop.ID).Settings() != shop.Settings {
			t.Error("settling with the old rooms did not bring the old state back")
		}
	})
}

func TestARushSharesTheWritesOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := wide
		room.TotalActiveUsers, room.NewUsersPerMinute, room.Unpaced = 10_000, 1_000_000, true
		n, kill := begin(t, memlink.New(), room)
		defer kill()
		r := n.Room(room.ID)
		time.Sleep(time.Second + tickEvery/2) // the node writes nothing of its own now
		began := time.Now()
		if d := r.Decide(t.Context(), newcomer()); d.Verdict != anteroom.Admit || time.Since(began) != 0 {
			t.Errorf("a visitor who comes alone: %v after %v, want admitted at once", d.Verdict, time.Since(began))
		}
		before := n.JournalStats().Records
		const visitors, rush = 200, 20 * time.Millisecond
		for range visitors {
			time.Sleep(rush / visitors)
			go r.Decide(t.Context(), newcomer())
		}
		time.Sleep(2 * time.Millisecond)
		if wrote := n.JournalStats().Records - before; wrote > 22 {
			t.Errorf("%d writes for %d visitors in %v, want one each millisecond", wrote, visitors, rush)
		}
		if inside := r.Status().ActiveUsers; inside != 1+visitors {
			t.Errorf("%d of %d are inside", inside, 1+visitors)
		}
	})
}
