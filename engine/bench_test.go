package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// inSession returns a door that knows a session, and a request of it.
func inSession(t testing.TB) (*Door, anteroom.Time, anteroom.Visit) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 1000})
	for range 500 {
		w.arrive()
	}
	v := w.arrive()
	if !v.inside {
		t.Fatal("not admitted")
	}
	return w.room.door, w.now, anteroom.Visit{Ticket: v.ticket}
}

func BenchmarkDoorDecideAdmitted(b *testing.B) {
	d, now, v := inSession(b)
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		if dec, ask := d.Decide(now, &v); ask || dec.Verdict != anteroom.Admit {
			b.Fatal("not admitted by the door")
		}
		if now%1_000_000 == 0 {
			batch, _ := d.TakeTouches()
			d.Confirmed(batch)
		}
	}
}

func TestDoorAdmitsWithoutAllocating(t *testing.T) {
	d, now, v := inSession(t)
	d.Decide(now, &v) // the first of a batch is noted
	if n := testing.AllocsPerRun(1000, func() {
		now += 1000
		if dec, ask := d.Decide(now, &v); ask || dec.Verdict != anteroom.Admit {
			t.Fatal("not admitted by the door")
		}
	}); n != 0 {
		t.Errorf("%v allocations per request of somebody admitted", n)
	}
}

// crowd returns a full room with n visitors in line, each shown the page, who arrived
// within a minute.
func crowd(t testing.TB, n int) (*Single, anteroom.Time, []anteroom.Ticket) {
	now := midnight
	x := NewSingle(now, hereKey, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 1 << 30, Unpaced: true, Refresh: 10 * time.Minute, QueueAll: true}, LedgerRecord{}, []byte("seed"), nil, 0, 0)
	store := func() {
		for rec, ok := x.Needs(); ok; rec, ok = x.Needs() {
			x.Stored(now, rec)
		}
	}
	store()
	w := trial{}
	tickets := make([]anteroom.Ticket, 0, n)
	for i := range n {
		now = midnight.Add(time.Duration(i) * time.Minute / time.Duration(n))
		d, held := x.Visit(now, anteroom.Visit{Fresh: true, NoHold: true, Ticket: anteroom.Ticket{ID: w.newID()}})
		if held != 0 {
			d = x.TakeAnswers(now)[0].Decision
		}
		if d.Verdict != anteroom.Wait {
			t.Fatal("admitted into a room of nobody")
		}
		x.Visit(now, anteroom.Visit{NoHold: true, Ticket: d.Ticket}) // the place is proven
		tickets = append(tickets, d.Ticket)
		if i%1000 == 0 {
			x.TakeEvents()
			x.Tick(now)
			store()
		}
	}
	x.TakeEvents()
	x.Tick(now.Add(flushEvery))
	store()
	x.TakeEvents()
	return x, now.Add(flushEvery), tickets
}

func BenchmarkSingleVisitNew(b *testing.B) {
	x, now, _ := crowd(b, 100_000)
	w := trial{ids: 1 << 40}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		now += 20 // 50,000 a second
		x.Visit(now, anteroom.Visit{Fresh: true, NoHold: true, Ticket: anteroom.Ticket{ID: w.newID()}})
		if n++; n%5000 == 0 {
			x.Tick(now)
			x.TakeEvents()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "joins/s")
}

func BenchmarkSingleVisitFar(b *testing.B) {
	x, now, tickets := crowd(b, 100_000)
	x.Configure(now, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 600})
	now = now.Add(MaxInterval * 120 / 100)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		t := tickets[len(tickets)/2+n%(len(tickets)/2)]
		t.Next = now // due just now
		if d, held := x.Visit(now, anteroom.Visit{Ticket: t, NoHold: true}); held != 0 || d.Verdict != anteroom.Wait {
			b.Fatal("not a queued check-in")
		}
		if n++; n%5000 == 0 {
			x.tell(now)
			x.TakeEvents()
		}
	}
}

// BenchmarkDispatch raises the limit by one, again and again, before a million who wait; all
// but those who opened a stream are away. It reports the slowest of a hundred.
func BenchmarkDispatch(b *testing.B) {
	x, now, tickets := crowd(b, 1_000_000)
	s := anteroom.Settings{NewUsersPerMinute: 1 << 30, Unpaced: true, Refresh: 10 * time.Minute}
	var took []time.Duration
	i := 0
	for b.Loop() {
		x.Visit(now, anteroom.Visit{Ticket: tickets[i], Stream: true, NoHold: true})
		now = now.Add(flushEvery)
		x.Tick(now)
		x.TakePushes()
		s.TotalActiveUsers++
		began := time.Now()
		x.Configure(now, s)
		took = append(took, time.Since(began))
		x.TakeEvents()
		x.TakeAnswers(now)
		i++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkCoordinatorJoins: a hundred sites report a hundred joins each, in turn, while
// nobody may enter. The figures and the store are part of it.
func BenchmarkCoordinatorJoins(b *testing.B) {
	const sites, joins = 100, 100
	now := midnight
	c := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 1 << 20}, LedgerRecord{}, []byte("seed"))
	w := trial{ids: 1 << 41}
	seq := make([]uint64, sites)
	var n int
	b.ReportAllocs()
	for b.Loop() {
		i := n % sites
		now += 2000 // 50,000 joins a second
		seq[i]++
		r := Report{From: SiteKey{Name: fmt.Sprint("site", i), Incarnation: 1}, Epoch: 1, Seq: seq[i], Sent: now,
			Full: seq[i] == 1, Ask: seq[i]%8 == 0, Newcomers: joins, Arrivals: make([]Arrival, joins), Trip: 80 * time.Millisecond}
		for k := range r.Arrivals {
			r.Arrivals[k] = Arrival{ID: w.newID(), Key: now.Add(time.Duration(k)), Shown: true, Due: now.Add(MaxInterval)}
		}
		c.Receive(now, r)
		if rec, ok := c.Needs(); ok {
			c.Stored(now, rec)
		}
		if n++; n%50 == 0 {
			c.Tick(now)
		}
		c.Take()
		if n%10_000 == 0 { // a million wait: begin again
			b.StopTimer()
			c = NewCoordinator(now, c.settings, LedgerRecord{}, []byte("seed"))
			clear(seq)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(n*joins)/b.Elapsed().Seconds(), "joins/s")
}

// BenchmarkCoordinatorMillion: a million wait at ten sites, ten thousand enter a minute and
// as many check in each second. It reports the slowest hundredth of the ticks and of the reports.
func BenchmarkCoordinatorMillion(b *testing.B) {
	const sites, waiting = 10, 1_000_000
	now := midnight
	c := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 1_000_000, NewUsersPerMinute: 10_000, QueueAll: true}, LedgerRecord{}, []byte("seed"))
	w := trial{ids: 1 << 41}
	seq := [sites]uint64{}
	key := func(i int) SiteKey { return SiteKey{Name: fmt.Sprint("site", i), Incarnation: 1} }
	send := func(i int, arrivals []Arrival, departures []Departure) {
		seq[i]++
		c.Receive(now, Report{From: key(i), Epoch: 1, Seq: seq[i], Sent: now, Full: seq[i] == 1, Ask: true,
			Arrivals: arrivals, Departures: departures, Trip: 80 * time.Millisecond})
	}
	store := func() {
		for rec, ok := c.Needs(); ok; rec, ok = c.Needs() {
			c.Stored(now, rec)
		}
	}
	var ids []anteroom.ID
	next := 0
	for n := 0; n < waiting; n += 1000 {
		now = now.Add(time.Minute * 1000 / waiting)
		batch := make([]Arrival, 1000)
		for k := range batch {
			ids = append(ids, w.newID())
			batch[k] = Arrival{ID: ids[n+k], Key: now.Add(time.Duration(k)), Shown: true, Due: now.Add(time.Duration(n%120+10) * time.Second)}
		}
		send(n/1000%sites, batch, nil)
		store()
		c.Take()
	}
	s := c.settings
	s.QueueAll = false
	c.Configure(now, s)
	var took []time.Duration
	measure := func(f func()) {
		began := time.Now()
		f()
		took = append(took, time.Since(began))
	}
	entered := 0
	for b.Loop() {
		now = now.Add(flushEvery)
		measure(func() { c.Tick(now) })
		i := next / 1000 % sites // where they joined
		batch := make([]Arrival, 0, 1000)
		for k := range 1000 { // 10,000 check-ins a second, of those who came first
			if id := ids[(next+k)%waiting]; c.InLine(id) {
				batch = append(batch, Arrival{ID: id, Shown: true, Stream: true})
			}
		}
		next += 1000
		var gone []Departure
		for _, m := range c.Take() {
			if m.Offers != nil {
				for _, id := range m.Offers.IDs {
					gone = append(gone, Departure{ID: id, Why: Admitted})
				}
			}
		}
		entered += len(gone)
		for j := range sites {
			if j == i {
				measure(func() { send(j, batch, gone) })
			} else {
				measure(func() { send(j, nil, nil) })
			}
		}
		store()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
	b.ReportMetric(float64(entered), "entered")
}
