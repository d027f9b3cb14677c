package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// few lets in a few, for long.
func few(n int) anteroom.Settings {
	return anteroom.Settings{TotalActiveUsers: n, NewUsersPerMinute: n, SessionDuration: time.Hour, FirstSession: time.Hour}
}

func verdicts(s *siteProc, ids []anteroom.ID) (admitted int) {
	for _, id := range ids {
		if s.decision(id).Verdict == anteroom.Admit {
			admitted++
		}
	}
	return admitted
}

func TestNewcomersAreAdmittedAndALineHasTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(20))
		w := newWorld(t, room)
		w.host("a", 1)
		dublin, sydney := w.site("dublin"), w.site("sydney")
		time.Sleep(engine.GuessAfter)
		early := dublin.line(room.ID, 15)
		late := sydney.line(room.ID, 15)
		for range 30 {
			time.Sleep(time.Second)
			dublin.enter(room.ID, early)
			sydney.enter(room.ID, late)
		}
		if n, m := verdicts(dublin, early), verdicts(sydney, late); n != 15 || m != 5 {
			t.Errorf("let in: %d of 15 who came first and %d of 15 later, want 15 and 5", n, m)
		}
		w.within(room.ID)
		// One leaves, and the next in line has a turn on the stream, once the minute is over.
		time.Sleep(time.Minute)
		dublin.mu.Lock()
		dublin.rooms[room.ID].Revoke(dublin.now(room.ID), early[0])
		dublin.settle(room.ID)
		dublin.mu.Unlock()
		time.Sleep(time.Second)
		turns := 0
		for _, id := range late {
			if sydney.decision(id).Verdict == anteroom.Wait && !sydney.pushed(id).IsZero() {
				turns++
			}
		}
		if turns != 1 {
			t.Errorf("%d have a turn when one session has ended", turns)
		}
	})
}

// A host whose process was told the room time speaks at the first report, and in that time; another one listens for later
// reports first.
func TestAHostThatKnowsTheTimeBeginsAtOnce(t *testing.T) {
	for _, knows := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			room := roomOf(1, few(5))
			w := newWorld(t, room)
			_, kill := w.host("a", 1)
			dublin := w.site("dublin")
			time.Sleep(engine.GuessAfter)
			dublin.enter(room.ID, dublin.line(room.ID, 15))
			time.Sleep(2*time.Second + engine.HeartbeatQueue/2) // between two reports, or the new host may hear one at once or not
			epoch := dublin.epoch(room.ID)
			kill()
			if knows {
				w.knows = func(int, time.Time) (anteroom.Time, bool) {
					dublin.mu.Lock()
					defer dublin.mu.Unlock()
					return dublin.now(room.ID), true
				}
			}
			w.host("b", 2)
			began := time.Now()
			for dublin.epoch(room.ID) == epoch {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			took := time.Since(began)
			if most := engine.HeartbeatQueue + 50*time.Millisecond; (took <= most) != knows {
				t.Errorf("the host knows the time: %v; it speaks after %v", knows, took)
			}
			if _, ahead := dublin.clock(room.ID); ahead.Abs() > time.Second {
				t.Errorf("the site's clock is off by %v", ahead)
			}
		})
	}
}

// Another host takes the shards over while the first still runs: the first is fenced, turns go on
// within two heartbeats, and no more are let in than the limits allow.
func TestAnotherHostTakesOver(t *testing.T) {
	for _, killed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			room := roomOf(1, few(40))
			w := newWorld(t, room)
			first, kill := w.host("a", 1)
			dublin, sydney := w.site("dublin"), w.site("sydney")
			time.Sleep(engine.GuessAfter)
			d, s := dublin.line(room.ID, 30), sydney.line(room.ID, 30)
			enter := func(d []anteroom.ID, s []anteroom.ID, seconds int) {
				for range seconds {
					time.Sleep(time.Second)
					dublin.enter(room.ID, d)
					sydney.enter(room.ID, s)
				}
			}
			enter(d, s, 70)
			before, epoch := w.admissions(room.ID), dublin.epoch(room.ID)
			if killed {
				kill()
			}
			second, _ := w.host("b", 2)
			// More are allowed from now on.
			more := room
			more.Settings = few(60)
			w.mu.Lock()
			w.plans[room.ID] = more.WithDefaults()
			w.mu.Unlock()
			began := time.Now()
			turns := func() (n int) {
				for i, ids := range [][]anteroom.ID{d, s} {
					for _, id := range ids {
						if at := [...]*siteProc{dublin, sydney}[i].pushed(id); at.After(began) {
							n++
						}
					}
				}
				return n
			}
			time.Sleep(2*engine.HeartbeatQueue + 200*time.Millisecond)
			if n := turns(); n == 0 || len(before)+n > 60 {
				t.Errorf("killed %v: %d turns within two heartbeats of the take-over, with %d inside", killed, n, len(before))
			}
			if e := dublin.epoch(room.ID); e <= epoch {
				t.Errorf("killed %v: epoch %d after %d", killed, e, epoch)
			}
			enter(d, s, 60)
			w.within(room.ID)
			if n := len(w.admissions(room.ID)); n != 60 {
				t.Errorf("killed %v: %d are inside in the end, want 60", killed, n)
			}
			if !killed && first.refused().Fenced == 0 {
				t.Error("the first host does not know that it is fenced")
			}
			if n := second.refused(); n != (refusals{}) {
				t.Errorf("the second: %+v", n)
			}
		})
	}
}

// The time of the sites goes on, whatever the host's clock shows.
func TestTheTimeOfTheSitesGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(5))
		w := newWorld(t, room)
		_, kill := w.host("a", 1)
		dublin := w.site("dublin")
		time.Sleep(engine.GuessAfter)
		dublin.line(room.ID, 10)
		time.Sleep(5 * time.Second)
		_, before := dublin.clock(room.ID)
		kill()
		link := w.links.Join("hub", "b")
		h := New(Config{Link: link, Plan: w.plan, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
		defer link.Close()
		for shard := range cluster.Shards {
			h.Gain(shard, 2)
			defer h.Lose(shard)
		}
		time.Sleep(5 * time.Second)
		if _, after := dublin.clock(room.ID); (after - before).Abs() > 10*time.Millisecond {
			t.Errorf("room time moved by %v", after-before)
		}
		if dublin.epoch(room.ID) != 2 {
			t.Errorf("epoch %d", dublin.epoch(room.ID))
		}
	})
}

func TestLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(5))
		w := newWorld(t, room)
		h, _ := w.host("a", 1)
		dublin, sydney := w.site("dublin"), w.site("sydney")
		time.Sleep(engine.GuessAfter)
		ids := append(dublin.line(room.ID, 5), sydney.line(room.ID, 10)...)
		set := func(n int) {
			room.Settings = few(n)
			w.mu.Lock()
			w.plans[room.ID] = room.WithDefaults()
			w.mu.Unlock()
			h.Configure(room.ID)
			for range 90 {
				time.Sleep(time.Second)
				dublin.enter(room.ID, ids)
				sydney.enter(room.ID, ids)
			}
		}
		for _, c := range []struct{ limit, inside int }{{8, 8}, {3, 8}, {10, 10}} {
			set(c.limit)
			if n := len(w.admissions(room.ID)); n != c.inside {
				t.Errorf("with a limit of %d, %d are inside, want %d", c.limit, n, c.inside)
			}
		}
		w.mu.Lock()
		delete(w.plans, room.ID)
		w.mu.Unlock()
		h.Configure(room.ID)
		if r := h.shardOf(room.ID).room(room.ID); r != nil {
			t.Error("a room that is no more has a coordinator")
		}
	})
}

// An event begins at its moment, not at the next tick, also when the clock was ahead for some time and has been set right.
func TestAnEventBeginsOnTime(t *testing.T) {
	for _, ahead := range []time.Duration{0, 30 * time.Second, 2 * time.Minute, 24 * time.Hour} {
		beginsOnTime := func(t *testing.T) {
			start := time.Now().Add(30*time.Minute + 37*time.Millisecond)
			room := roomOf(1, few(0))
			raised := 50
			e := anteroom.Event{ID: "00000000000000000000000000000001", Name: "sale", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour))}
			e.TotalActiveUsers, e.NewUsersPerMinute = &raised, &raised
			room.Events = []anteroom.Event{e}
			w := newWorld(t, room)
			w.ahead.Store(int64(ahead))
			w.host("a", 1)
			dublin := w.site("dublin")
			ids := dublin.line(room.ID, 10)
			time.Sleep(time.Minute)
			w.ahead.Store(0)
			time.Sleep(time.Until(start) - time.Millisecond)
			for _, id := range ids {
				if !dublin.pushed(id).IsZero() {
					t.Fatal("a turn before the event")
				}
			}
			time.Sleep(300 * time.Millisecond)
			first := time.Time{}
			for _, id := range ids {
				if at := dublin.pushed(id); !at.IsZero() && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
			if first.IsZero() || first.Sub(start) > 10*time.Millisecond {
				t.Errorf("the first turn came %v after the start (at %v)", first.Sub(start), first)
			}
		}
		t.Run(ahead.String(), func(t *testing.T) { synctest.Test(t, beginsOnTime) })
	}
}

// Ten thousand rooms that nobody uses are nothing, and one that nobody uses any more becomes
// nothing; who comes then is let in though another site is silent.
func TestIdleRoomsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rooms []anteroom.Room
		for i := range 10_000 {
			rooms = append(rooms, roomOf(i, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: 10 * time.Second}))
		}
		w := newWorld(t, rooms...)
		h, kill := w.host("a", 1)
		open := func() (n int) {
			for i := range h.shards {
				if s := h.shards[i].Load(); s != nil {
					n += len(s.all())
				}
			}
			return n
		}
		dublin, sydney := w.site("dublin"), w.site("sydney")
		time.Sleep(engine.GuessAfter)
		if n := open(); n != 0 {
			t.Errorf("%d rooms are open before anybody came", n)
		}
		id := rooms[77].ID
		dublin.visit(id, anteroom.Ticket{}, false)
		sydney.visit(id, anteroom.Ticket{}, false)
		time.Sleep(2 * time.Second)
		if n := open(); n != 1 || len(w.admissions(id)) != 2 {
			t.Errorf("%d rooms are open, %d were let in", n, len(w.admissions(id)))
		}
		time.Sleep(2*time.Minute + engine.RestAfter)
		if n := open(); n != 0 {
			t.Errorf("%d rooms are open when everybody has gone", n)
		}
		sydney.end()
		before := len(w.admissions(id))
		for range 4 {
			dublin.visit(id, anteroom.Ticket{}, false)
		}
		time.Sleep(2 * time.Second)
		if n := len(w.admissions(id)) - before; n != 4 {
			t.Errorf("%d of 4 were let in while the other site, which had given up little, is down", n)
		}
		kill()
	})
}

// refusals are what a host has refused since it began.
type refusals struct {
	Undecodable uint64 // frames and messages that are none
	Misplaced   uint64 // reports of rooms that do not exist, or belong to another shard
	Fenced      uint64 // rooms that another host had taken over
}

// refused returns what the host has refused.
func (h *Host) refused() refusals {
	return refusals{h.counts.undecodable.Load(), h.counts.misplaced.Load(), h.counts.fenced.Load()}
}
