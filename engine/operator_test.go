package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// TestOperatorsDoAnything: whatever an operator does to a room while people come and go, is
// restarted, shuffled, reset, held, and lets people in by hand, the limits hold, nobody inside
// is shown the page, nobody is told a worse place but after a shuffle or restart, and site and coordinator
// agree on who waits in which order.
func TestOperatorsDoAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 30, SessionDuration: 20 * time.Second, PlaceHold: 30 * time.Second}
		w := newTrial(t, s)
		w.polite, w.hasty = rapid.Bool().Draw(t, "polite"), rapid.Bool().Draw(t, "hasty")
		whom := func() *visitor {
			if len(w.people) == 0 {
				return nil
			}
			if v := w.people[rapid.IntRange(0, len(w.people)-1).Draw(t, "who")]; v.held == 0 {
				return v
			}
			return nil
		}
		set := func(change func(*anteroom.Settings)) {
			change(&s)
			w.configure(s)
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(*rapid.T) { w.arrive() },
			"crowd": func(*rapid.T) {
				for range 8 {
					w.arrive()
				}
			},
			"visit": func(*rapid.T) {
				if v := whom(); v != nil {
					w.visit(v)
				}
			},
			"open": func(*rapid.T) {
				if v := whom(); v != nil && !v.inside && !v.streams {
					w.open(v)
				}
			},
			"close": func(*rapid.T) {
				if v := whom(); v != nil && v.streams {
					w.close(v)
				}
			},
			"pass": func(t *rapid.T) {
				w.pass(time.Duration(rapid.IntRange(1, 300).Draw(t, "tenths")) * 100 * time.Millisecond)
			},
			"restart": func(*rapid.T) {
				w.pass(100 * time.Millisecond) // the requests of the last tick are on record
				w.restart()
				for _, v := range w.people {
					v.ahead = -1 // an early look leaves no trace in a cookie
				}
			},
			"queueAll": func(*rapid.T) {
				set(func(s *anteroom.Settings) { s.QueueAll = !s.QueueAll })
			},
			"prequeue": func(*rapid.T) {
				set(func(s *anteroom.Settings) { s.Prequeueing = !s.Prequeueing })
			},
			"drain": func(*rapid.T) {
				set(func(s *anteroom.Settings) { s.Draining = !s.Draining })
			},
			"reset": func(*rapid.T) {
				w.now += 100 // a crowd of one microsecond has keys of the next ones
				set(func(s *anteroom.Settings) { s.ResetAt = w.now })
			},
			"method": func(t *rapid.T) {
				m := rapid.SampledFrom([]anteroom.QueueingMethod{anteroom.FIFO, anteroom.FIFO, anteroom.Random, anteroom.Reject}).Draw(t, "method")
				set(func(s *anteroom.Settings) { s.QueueingMethod = m })
			},
			"belong": func(t *rapid.T) { w.lane = rapid.SampledFrom([]uint8{0, 0, 1, 2, 5, 100}).Draw(t, "lane") },
			"lanes": func(t *rapid.T) {
				var lanes *anteroom.Lanes
				for _, priority := range rapid.SliceOfDistinct(rapid.SampledFrom([]int{0, 1, 2, 5}), rapid.ID).Draw(t, "lanes") {
					if lanes == nil {
						lanes = new(anteroom.Lanes)
					}
					lanes.List = append(lanes.List, anteroom.Lane{Priority: priority,
						Share: rapid.IntRange(0, 25).Draw(t, "share"), Reserved: rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "reserved")})
				}
				set(func(s *anteroom.Settings) { s.Lanes = lanes })
			},
			"limits": func(t *rapid.T) {
				l := rapid.IntRange(0, 9).Draw(t, "limit")
				if len(w.room.site.offers) > 0 { // turns that were given stand when a limit is lowered
					l = max(l, s.TotalActiveUsers)
				}
				set(func(s *anteroom.Settings) { s.TotalActiveUsers = l })
			},
			"admit": func(t *rapid.T) {
				n := rapid.IntRange(0, 9).Draw(t, "n")
				if given := w.room.AdmitNow(w.now, n); given > n {
					t.Fatalf("%d turns given, %d asked for", given, n)
				}
				w.collect()
			},
			"shuffle": func(t *rapid.T) {
				if !s.Prequeueing && !s.QueueAll {
					return
				}
				for _, v := range w.people {
					v.ahead = -1
				}
				sh := w.shuffle([]byte("seed"))
				w.now = sh.At + 1 // a cookie of the same microsecond says nothing
				if got := len(w.room.coordinator.Line()) + w.room.coordinator.Numbers().Offered; got != len(sh.IDs) {
					t.Fatalf("%d in line, %d took part", got, len(sh.IDs))
				}
			},
			"": func(t *rapid.T) { w.agree(t) },
		})
	})
}

// agree checks that the machines know the same.
func (w *trial) agree(t failer) {
	t.Helper()
	site, c := w.room.site, w.room.coordinator
	offers := 0
	site.here.each(func(slot uint32) {
		p := site.here.at(slot)
		if p.flags&hereOffered != 0 {
			offers++
		}
		id := site.here.id(slot)
		if place := c.line.places.find(&id); place != 0 && c.line.places.at(place).key != p.key {
			t.Fatalf("at %v a ticket has the key %v at the site and %v at the coordinator", w.now.Std(), p.key, c.line.places.at(place).key)
		}
		if place := c.line.places.find(&id); place != 0 && c.line.places.at(place).lane != p.lane {
			t.Fatalf("at %v a ticket is in lane %d at the site and %d at the coordinator", w.now.Std(), p.lane, c.line.places.at(place).lane)
		}
		if void(&w.set, p.key) {
			t.Fatalf("at %v a void place is left at the site", w.now.Std())
		}
		if site.seats.find(&id) != 0 {
			t.Fatalf("at %v somebody waits who is inside", w.now.Std())
		}
	})
	c.line.places.each(func(slot uint32) {
		if void(&w.set, c.line.places.at(slot).key) {
			t.Fatalf("at %v a void place is left in line", w.now.Std())
		}
	})
	if offers != len(site.offers) || len(site.offered(func(o offer) bool { return !o.ahead })) != int(site.balance.Offers) {
		t.Fatalf("at %v %d are called, %d offers stand, %d permits are set aside", w.now.Std(), offers, len(site.offers), site.balance.Offers)
	}
	if closed(&w.set) {
		for _, o := range site.offers {
			if !o.byHand {
				t.Fatalf("at %v a turn of the line stands in a closed room", w.now.Std())
			}
		}
	}
	for _, x := range c.line.lanes {
		for i, slot := range x.order.slots { // the heap
			if i > 0 && c.line.before(slot, x.order.slots[(i-1)/2]) || c.line.places.at(slot).pos != int32(i) {
				t.Fatalf("at %v the order is damaged", w.now.Std())
			}
		}
	}
	w.agreeOnLanes(t)
}

// agreeOnLanes checks what is counted for each lane.
func (w *trial) agreeOnLanes(t failer) {
	t.Helper()
	site, c := w.room.site, w.room.coordinator
	if !c.line.parted() {
		return
	}
	counts, seats := map[uint8][4]int{}, map[uint8]uint64{}
	c.line.places.each(func(slot uint32) {
		p := c.line.places.at(slot)
		x := c.line.laneOf(p.lane)
		n := counts[x.number]
		n[p.state]++
		counts[x.number] = n
		if p.pos >= 0 && (c.line.draws(p) && x.alive[p.pos] != slot || !c.line.draws(p) && x.order.slots[p.pos] != slot) {
			t.Fatalf("at %v a place of lane %d stands elsewhere", w.now.Std(), x.number)
		}
	})
	site.seats.each(func(slot uint32) { seats[site.seats.at(slot).lane]++ })
	for _, x := range c.line.lanes {
		if x.counts != counts[x.number] {
			t.Fatalf("at %v lane %d counts %v, there are %v", w.now.Std(), x.number, x.counts, counts[x.number])
		}
		waiting := 0
		for _, s := range x.seconds.list() {
			waiting += int(s.Count)
		}
		if waiting != x.waiting() {
			t.Fatalf("at %v %d in the seconds of lane %d, %d wait", w.now.Std(), waiting, x.number, x.waiting())
		}
		if x.credit < 0 || x.credit > maxCredit {
			t.Fatalf("at %v lane %d has a credit of %d", w.now.Std(), x.number, x.credit)
		}
	}
	for lane, u := range site.lanes {
		if u.seats != seats[lane] {
			t.Fatalf("at %v %d seats are counted in lane %d, there are %d", w.now.Std(), u.seats, lane, seats[lane])
		}
	}
}

// Whoever came to a door before the line was reset, and is decided about after that, has a place in the new line; so has whoever comes
// where the clock is behind.
func TestNoPlaceIsVoidFromTheStart(t *testing.T) {
	for name, ago := range map[string]time.Duration{"came before": 50 * time.Millisecond, "the clock is behind": 0} {
		now := midnight
		x := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60})
		x.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
		reset := x.settings
		reset.ResetAt = now.Add(20*time.Millisecond - ago)
		x.Configure(now, reset)
		var before anteroom.Time
		for i := range byte(2) {
			id := anteroom.ID{1 + i}
			x.came = now.Add(-ago)
			x.Visit(now, anteroom.Visit{Ticket: anteroom.Ticket{ID: id}, Fresh: true, Stream: true})
			slot := x.here.find(&id)
			if slot == 0 {
				t.Fatalf("%s: visitor %d does not wait", name, i)
			}
			key := x.here.at(slot).key
			if void(&reset, key) || key <= before {
				t.Errorf("%s: the place of visitor %d is void, or not behind the one before: %v after the reset", name, i, key.Sub(reset.ResetAt))
			}
			before = key
		}
	}
}

// No more visitors are drawn for turns by hand than there are units. Turns that the store does not allow yet are not given. Those on whom a draw has fallen for them keep the win: they are called
// as soon as there are units, without coming back first.
func TestWinnersWithoutATurnByHandAreCalled(t *testing.T) {
	t.Parallel()
	now, site := anteroom.Time(1e15), SiteKey{Name: "a", Incarnation: 1}
	set := open
	set.QueueingMethod, set.QueueAll, set.Unpaced, set.TotalActiveUsers = anteroom.Random, true, true, 3
	c := NewCoordinator(now, set, LedgerRecord{}, []byte("seed"))
	r := Report{From: site, Seq: 1, Sent: now, Full: true}
	for i := range 5 {
		r.Arrivals = append(r.Arrivals, Arrival{ID: anteroom.ID{byte(i + 1)}, Key: now, Shown: true, Stream: true})
	}
	c.Receive(now, r)
	rec, _ := c.Needs()
	if given := c.AdmitNow(now, 5); given != 0 || len(c.Drawn()) != 3 {
		t.Fatalf("%d turns without a record, %d drawn", given, len(c.Drawn()))
	}
	set.QueueAll = false
	c.Configure(now, set)
	c.Stored(now, rec)
	turns := 0
	for range 50 {
		now = now.Add(100 * time.Millisecond)
		r = Report{From: site, Epoch: 1, Seq: r.Seq + 1, Sent: now, Ask: true}
		c.Receive(now, r)
		c.Tick(now)
		for _, m := range c.Take() {
			if m.Offers != nil {
				turns += len(m.Offers.IDs)
			}
		}
	}
	if turns != 3 {
		t.Errorf("%d of 3 who were drawn are called", turns)
	}
}
