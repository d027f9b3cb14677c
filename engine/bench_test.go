package engine

import (
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
		if dec, ask := d.Decide(now, v); ask || dec.Verdict != anteroom.Admit {
			b.Fatal("not admitted by the door")
		}
		if now%1_000_000 == 0 {
			d.TakeTouches()
		}
	}
}

func TestDoorAdmitsWithoutAllocating(t *testing.T) {
	d, now, v := inSession(t)
	d.Decide(now, v) // the first of a batch is noted
	if n := testing.AllocsPerRun(1000, func() {
		now += 1000
		if dec, ask := d.Decide(now, v); ask || dec.Verdict != anteroom.Admit {
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
	x := NewSingle(now, hereKey, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 1 << 30, Unpaced: true, Refresh: 10 * time.Minute}, LedgerRecord{}, []byte("seed"), nil, 0)
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
		tickets = append(tickets, d.Ticket)
		if i%1000 == 0 {
			x.TakeEvents()
			x.Tick(now)
			store()
		}
	}
	x.TakeEvents()
	x.Tick(now.Add(FlushEvery))
	store()
	x.TakeEvents()
	return x, now.Add(FlushEvery), tickets
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
			x.door.TakePolls()
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
		now = now.Add(FlushEvery)
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
