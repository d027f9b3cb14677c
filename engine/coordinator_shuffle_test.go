package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var prequeue = anteroom.Settings{TotalActiveUsers: 50, NewUsersPerMinute: 3000, SessionDuration: 5 * time.Minute, Prequeueing: true}

// shuffled is what the seed makes of the ids.
func shuffled(seed []byte, ids []anteroom.ID) []anteroom.ID {
	var out []anteroom.ID
	for _, i := range Order(ShuffleKey(seed, Entries(ids)), ids) {
		out = append(out, ids[i])
	}
	return out
}

// gather is a line of n in a prequeue: some in touch, some overdue, some away.
func gather(t *testing.T, n int) *trial {
	w := newTrial(t, prequeue)
	for range n {
		w.now = w.now.Add(50 * time.Millisecond)
		w.visit(w.arrive()) // the place is proven
	}
	for i, v := range w.people {
		switch i % 4 {
		case 0:
			w.open(v)
		case 1:
			w.now = max(w.now, v.ticket.Next)
			w.visit(v)
		}
	}
	for range 120 {
		w.now = w.now.Add(100 * time.Millisecond)
		w.room.Tick(w.now)
		w.collect()
	}
	return w
}

func (w *trial) shuffle(seed []byte) Shuffle {
	sh := w.room.Shuffle(w.now, anteroom.ID{1}, seed, 5*time.Minute)
	w.collect()
	return sh
}

func TestAShuffleIsTheOrderOfItsSeed(t *testing.T) {
	w, seed := gather(t, 400), []byte("a seed that nobody knew")
	in := w.room.coordinator.Line()
	if n := w.room.coordinator.Numbers(); len(in) < 200 || n.Dormant == 0 {
		t.Fatalf("%d in line, %d away: want some of each", len(in), n.Dormant)
	}
	sh := w.shuffle(seed)
	want := shuffled(seed, in)
	if got := w.room.coordinator.Line(); !slices.Equal(got, want) {
		t.Fatal("the line is not in the order of the seed")
	}
	if sh.Entries != Entries(in) || len(sh.IDs) != len(in) || !slices.Equal(shuffled(seed, sh.IDs), want) {
		t.Error("what is published does not give the order again")
	}
	far := 0
	f, ahead := w.room.site.Figures(), 0
	for _, id := range want {
		slot := w.room.site.here.find(&id)
		c := w.room.coordinator.line
		place := c.places.find(&id)
		if slot == 0 || w.room.site.here.at(slot).key != c.places.at(place).key {
			t.Fatal("the site has another key than the coordinator")
		}
		if c.places.at(place).state != dormant {
			far = max(far, f.Rank(w.room.site.here.at(slot).key)-ahead, ahead-f.Rank(w.room.site.here.at(slot).key))
			ahead++
		}
	}
	if far > 1 {
		t.Errorf("places are told up to %d wrong", far)
	}
	last := w.arrive() // behind all of them
	set := prequeue
	set.Prequeueing = false
	w.configure(set)
	w.now = w.now.Add(flushEvery)
	w.room.Tick(w.now)
	w.collect()
	line := w.room.coordinator.Line()
	if line[len(line)-1] != last.ticket.ID {
		t.Error("a newcomer is not behind the shuffled")
	}
	called, passed := 0, false
	for _, id := range want {
		switch v := w.byID[id]; {
		case !w.room.Called(id):
			passed = passed || v.streams
		case passed:
			t.Fatal("somebody was called before somebody who is here and in front")
		default:
			called++
		}
	}
	if called != set.TotalActiveUsers {
		t.Errorf("%d were called", called)
	}
}

// Whatever part of the shuffle was on record when the process ended, it comes to the same.
func TestAShuffleSurvivesTheEndOfTheProcess(t *testing.T) {
	w, seed := gather(t, 100), []byte("seed")
	before := len(w.journal)
	sh := w.shuffle(seed)
	want := w.room.coordinator.Line()
	after := w.journal[before:]
	first := slices.IndexFunc(after, func(e Event) bool { return e.Kind == EventShuffle })
	if first < 0 || after[len(after)-1].Kind != EventShuffled || len(after)-first != len(want)+2 {
		t.Fatalf("%d events, the shuffle begins at %d", len(after), first)
	}
	full := w.journal
	for n := first; n < len(after); n += 7 {
		w.journal = slices.Clone(full[:before+n])
		w.restart()
		if w.room.site.shuffled != 0 {
			t.Fatal("half a shuffle counts as one")
		}
		if again := w.shuffle(seed); again.Entries != sh.Entries || !slices.Equal(w.room.coordinator.Line(), want) {
			t.Fatalf("with %d of %d events the order is another one", n, len(after))
		}
	}
	w.journal = full
	w.restart()
	if !slices.Equal(w.room.coordinator.Line(), want) || w.room.site.shuffled != sh.At || w.room.coordinator.shuffled != sh.At {
		t.Error("after the whole shuffle the order is another one")
	}
}

func TestAShuffleRightAfterAResetVoidsNobody(t *testing.T) {
	w := newTrial(t, prequeue)
	w.arrive()
	w.now++
	set := prequeue
	set.ResetAt = w.now
	w.configure(set)
	for range 50 {
		w.arrive()
	}
	w.shuffle([]byte("seed"))
	keys := map[anteroom.Time]bool{}
	w.room.site.here.each(func(slot uint32) { keys[w.room.site.here.at(slot).key] = true })
	if len(keys) != 50 {
		t.Errorf("%d keys for 50 tickets", len(keys))
	}
	for key := range keys {
		if key < set.ResetAt {
			t.Fatal("a key of the shuffle is void")
		}
	}
	if v := w.arrive(); w.room.site.here.at(w.room.site.here.find(&v.ticket.ID)).key < w.room.site.shuffled {
		t.Error("a newcomer is among the shuffled")
	}
	w.restart()
	if n := w.room.site.Here(); n != 51 {
		t.Errorf("%d of 51 places after a restart", n)
	}
}

func TestNobodyIsShuffled(t *testing.T) {
	w := newTrial(t, prequeue)
	if sh := w.shuffle([]byte("seed")); len(sh.IDs) != 0 || sh.At != w.now {
		t.Errorf("%+v", sh)
	}
}

// With several sites the coordinator's keys reach all of them, also where a message was lost.
func TestAShuffleReachesEverySite(t *testing.T) {
	w := newWorld(t, 3, 3, prequeue, faults{})
	w.pass(100)
	for i := range 90 {
		g := &walker{site: i % 3, ticket: anteroom.Ticket{ID: w.id()}}
		w.request(g, anteroom.Visit{Fresh: true})
		w.people = append(w.people, g)
		w.request(g, anteroom.Visit{Stream: true})
	}
	w.pass(100)
	in := w.coord.Line()
	w.coord.Shuffle(w.now, []byte("seed"), 5*time.Minute)
	if got := w.coord.Line(); len(in) != 90 || !slices.Equal(got, shuffled([]byte("seed"), in)) {
		t.Fatalf("%d in line, not in the order of the seed", len(got))
	}
	lost := w.sites[2]
	for _, m := range w.coord.Take() {
		if m.Site != lost.key {
			w.sites[w.index(m.Site)].Deliver(w.now, m)
		}
	}
	for _, s := range w.sites {
		s.resync, s.urgent = true, true // as after a lost message
	}
	w.pass(200)
	for _, g := range w.people {
		s := w.sites[g.site]
		slot, place := s.here.find(&g.ticket.ID), w.coord.line.places.find(&g.ticket.ID)
		if slot == 0 || place == 0 || s.here.at(slot).key != w.coord.line.places.at(place).key {
			t.Fatalf("site %d has another key than the coordinator", g.site)
		}
		if s.shuffled != w.coord.shuffled {
			t.Fatalf("site %d does not know of the shuffle", g.site)
		}
	}
}

// pass lets so many hundredths of a second go by.
func (w *world) pass(steps int) {
	for range steps {
		w.step()
	}
}

func (w *world) index(key SiteKey) int {
	return slices.IndexFunc(w.sites, func(s *worldSite) bool { return s.key == key })
}

// BenchmarkShuffle is the time for which the start of an event holds the room's lock.
func BenchmarkShuffle(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(map[int]string{100_000: "100k", 1_000_000: "1M"}[n], func(b *testing.B) {
			x, now, _ := crowd(b, n)
			x.TakeEvents()
			for b.Loop() {
				if sh := x.Shuffle(now, anteroom.ID{1}, []byte("seed"), 30*time.Minute); len(sh.IDs) != n {
					b.Fatalf("%d tickets", len(sh.IDs))
				}
				x.TakeEvents()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
		})
	}
}

// A coordinator that begins after a shuffle, and sites that have missed it: the order is that of
// the record, and whoever did not take part is behind.
func TestARecordedShuffleIsTheSameForEveryCoordinator(t *testing.T) {
	now, seed := anteroom.Time(1e15), []byte("seed")
	site := SiteKey{Name: "a", Incarnation: 1}
	ids := []anteroom.ID{{1}, {2}, {3}, {4}, {5}}
	report := func(n uint64, full bool, ids ...anteroom.ID) Report {
		r := Report{From: site, Seq: n, Sent: now, Full: full}
		for i, id := range ids {
			r.Arrivals = append(r.Arrivals, Arrival{ID: id, Key: now.Add(-time.Minute + time.Duration(i)*time.Second), Stream: true})
		}
		return r
	}
	c := NewCoordinator(now, prequeue, LedgerRecord{}, seed)
	c.Receive(now, report(1, true, ids...))
	sh := c.Entrants(now)
	if !slices.Equal(c.Line(), ids) {
		t.Fatal("who would take part is known, and the line has changed")
	}
	c.Receive(now, report(2, false, anteroom.ID{9})) // comes while the record is written
	c.Reshuffle(now, sh, seed, time.Minute)
	want := append(shuffled(seed, sh.IDs), anteroom.ID{9})
	if got := c.Line(); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	keys := map[anteroom.ID]anteroom.Time{}
	for _, id := range want {
		keys[id] = c.line.places.at(c.line.places.find(&id)).key
	}
	now = now.Add(time.Hour)
	late := anteroom.ID{8}
	next := NewCoordinator(now, prequeue, LedgerRecord{Epoch: 1}, seed)
	next.Reshuffle(now, sh, seed, time.Minute)
	next.Receive(now, Report{From: site, Seq: 1, Sent: now, Full: true, Arrivals: []Arrival{{ID: late, Key: now, Stream: true},
		{ID: ids[0], Key: 1, Stream: true}, {ID: ids[1], Key: keys[ids[1]], Stream: true}, {ID: anteroom.ID{7}, Key: 2, Stream: true}}})
	var told []Placed
	for _, m := range next.Take() {
		if m.Keys != nil {
			told = append(told, m.Keys.Places...)
		}
	}
	if len(told) != 2 || told[0] != (Placed{ids[0], keys[ids[0]]}) || told[1] != (Placed{anteroom.ID{7}, sh.At}) {
		t.Errorf("told: %v; want the one that missed the shuffle and the one that took no part", told)
	}
	if got := next.Line(); got[3] != late || got[2] != (anteroom.ID{7}) {
		t.Errorf("the line is %v", got)
	}
}

// A cookie that was made while the record of a shuffle was being written says the place of before, though it is younger than the shuffle.
func TestACookieOfWhileAShuffleWasRecorded(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10}.WithDefaults()
	now := midnight.Add(time.Hour)
	figures := func(at, shuffled anteroom.Time) *Figures {
		return &Figures{At: at, Waiting: 1000, Front: at.Add(-time.Hour), Shuffled: shuffled, Known: true, Step: baseStep,
			Seconds: []SecondCount{{Second: int64(at.Add(-time.Hour)) / 1e6, Count: 900}}}
	}
	t.Run("a door", func(t *testing.T) {
		d := NewDoor(s)
		d.Apply(now, Queue, figures(now, 0))
		v := anteroom.Visit{Ticket: anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Minute), LastCheckIn: now.Add(-10 * time.Second), Next: now.Add(3 * time.Second)}}
		told, asks := d.Decide(now.Add(4*time.Second), &v) // the line was shuffled a second ago
		if asks {
			t.Fatal("the door asks about every cookie")
		}
		d.Apply(now.Add(5*time.Second), Queue, figures(now.Add(5*time.Second), now.Add(3*time.Second)))
		v.Ticket = told.Ticket
		if _, asks := d.Decide(v.Ticket.Next, &v); !asks {
			t.Error("the door sends visitors away by the place of before")
		}
		v.Ticket.LastCheckIn = now.Add(5 * time.Second)
		if _, asks := d.Decide(v.Ticket.Next, &v); asks {
			t.Error("the door asks about every cookie of after the shuffle")
		}
	})
	t.Run("a site", func(t *testing.T) {
		x := NewSite(now, SiteKey{Name: "here", Incarnation: 1}, s)
		x.figures, x.figured = figures(now, 0), true
		cookie := x.waitDecision(now.Add(2*time.Second), anteroom.Ticket{ID: anteroom.ID{1}, Arrival: now.Add(-time.Minute)}, anteroom.ReasonWaiting).Ticket
		x.shuffled = now.Add(time.Second)
		if !x.unshuffled(cookie) {
			t.Error("what a cookie of before the site heard says counts")
		}
		if x.unshuffled(anteroom.Ticket{LastCheckIn: now.Add(2 * time.Second)}) {
			t.Error("what a cookie of after the shuffle says does not count")
		}
	})
}
