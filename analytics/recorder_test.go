package analytics_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// at is a moment some time after start.
func at(d time.Duration) anteroom.Time { return anteroom.TimeOf(start).Add(d) }

// recorded is a Recorder with a clock that is set by hand.
type recorded struct {
	*analytics.Recorder
	now atomic.Int64
}

// recorder returns one whose clock stands at start.
func recorder(process uint64) *recorded {
	r := &recorded{}
	r.now.Store(int64(at(0)))
	r.Recorder = analytics.NewRecorder(room, process, func() anteroom.Time { return anteroom.Time(r.now.Load()) })
	return r
}

// take takes at a moment.
func (r *recorded) take(now anteroom.Time, again bool) []*analytics.Minute {
	r.now.Store(int64(now))
	return r.Take(again)
}

// session is the answer to a request within a session, and the ticket that was presented.
func session(now anteroom.Time) (anteroom.Decision, anteroom.Ticket) {
	t := anteroom.Ticket{ID: anteroom.ID{1}, AcceptedAt: at(-time.Hour), LastCheckIn: now.Add(-time.Minute)}
	return anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonSession, Ticket: t, At: now}, t
}

func TestWhatIsRecordedOfDecisions(t *testing.T) {
	t.Parallel()
	r := recorder(1)
	d, presented := session(at(1))
	r.Decided(&d, &presented)
	d.SetCookie = true // the cookie is renewed
	d.Ticket.LastCheckIn = d.At
	r.Decided(&d, &presented)

	waiting := anteroom.Ticket{ID: anteroom.ID{2}, Arrival: at(-10 * time.Minute), LastCheckIn: at(-time.Minute), Next: at(0)}
	w := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonWaiting, Ticket: waiting, At: at(2), SetCookie: true}
	r.Decided(&w, &waiting) // a check-in
	w.Reason, w.SetCookie = anteroom.ReasonEarly, false
	r.Decided(&w, &waiting)                                                     // is none
	w.Reason, w.SetCookie, w.Ticket.ID = anteroom.ReasonUsed, true, [16]byte{3} // a new place
	r.Decided(&w, &waiting)
	newcomer := anteroom.Ticket{ID: anteroom.ID{4}}
	w = anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonLine, Ticket: anteroom.Ticket{ID: newcomer.ID, Arrival: at(2)}, At: at(2), SetCookie: true}
	r.Decided(&w, &newcomer)
	refused := anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, At: at(3)}
	r.Decided(&refused, &newcomer)

	got := r.take(at(time.Second), false)
	if len(got) != 1 {
		t.Fatalf("%d minutes", len(got))
	}
	m := got[0]
	for word, n := range map[string]int64{"session": 2, "waiting": 1, "early": 1, "used": 1, "line": 1, "reject": 1} {
		if m.Reasons[word] != n {
			t.Errorf("%s: %d, want %d", word, m.Reasons[word], n)
		}
	}
	between, waits := m.Histograms[analytics.BetweenRefreshes], m.Histograms[analytics.InQueue]
	if between.Count() != 1 || between.Quantile(50).Round(time.Second) != time.Minute || waits.Count() != 1 || waits.Quantile(50).Round(10*time.Second) != 10*time.Minute {
		t.Errorf("between refreshes %d, in queue %d", between.Count(), waits.Count())
	}
	if m.Count(analytics.TurnedAway) != 1 || m.Process != 1 || !m.Start.Equal(start) {
		t.Errorf("%+v", m)
	}
}

func TestWhatIsRecordedOfGatewayAndSite(t *testing.T) {
	t.Parallel()
	r := recorder(1)
	r.Bypassed(analytics.ByRule)
	r.Bypassed(analytics.ByCrawler)
	r.Bypassed(analytics.ByCrawler)
	r.RefusedTicket("forged")
	r.RefusedTicket("expired")
	r.RefusedTicket("forged")
	for c := range analytics.Metrics { // gauges are not counted
		r.Count(at(1), c, 0)
		if c == analytics.NewUsers || c == analytics.Joined || c.IsGauge() {
			r.Count(at(1), c, 5)
		}
	}
	r.Spans(at(2), analytics.Waited, time.Minute, time.Hour)
	m := r.take(at(3), false)[0]
	if m.BypassReasons["rule"] != 1 || m.BypassReasons["crawler"] != 2 || m.Count(analytics.Bypassed) != 3 ||
		m.TicketRefusals["forged"] != 2 || m.TicketRefusals["expired"] != 1 || m.Count(analytics.Refused) != 3 ||
		m.Count(analytics.NewUsers) != 5 || m.Count(analytics.Joined) != 5 || m.Count(analytics.Abandoned) != 0 ||
		m.Histograms[analytics.Waited].Count() != 2 {
		t.Errorf("%+v", m)
	}
}

func TestSamplesSayWhatIsInForce(t *testing.T) {
	t.Parallel()
	r := recorder(1)
	s := anteroom.Status{At: at(time.Second), ActiveUsers: 7, Waiting: 3, WaitKnown: true, WaitOfNewcomer: 90 * time.Second,
		InForce: &anteroom.InForce{Settings: anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 50, SessionDuration: time.Minute, QueueingMethod: anteroom.Random, QueueAll: true}}}
	r.Sample(&s)
	s.At, s.ActiveUsers, s.WaitKnown, s.InForce.Event = at(2*time.Second), 9, false, &anteroom.Event{ID: "e1"}
	r.Sample(&s)
	r.Sample(&anteroom.Status{At: at(3 * time.Second)}) // says nothing
	row := r.take(at(4*time.Second), false)[0].Row()
	want := map[analytics.Metric]analytics.Stat{
		analytics.ActiveUsers: {N: 2, Sum: 16, Min: 7, Max: 9}, analytics.QueuedUsers: {N: 2, Sum: 6, Min: 3, Max: 3},
		analytics.Estimate: {N: 1, Sum: 90, Min: 90, Max: 90}, analytics.ActiveLimit: {N: 2, Sum: 200, Min: 100, Max: 100},
		analytics.NewLimit: {N: 2, Sum: 100, Min: 50, Max: 50}, analytics.SessionDuration: {N: 2, Sum: 120, Min: 60, Max: 60}}
	for g, w := range want {
		if row.Stats[g] != w {
			t.Errorf("%v: %+v, want %+v", g, row.Stats[g], w)
		}
	}
	if row.Method != anteroom.Random || !row.QueueAll || row.Event != "e1" {
		t.Errorf("%+v", row)
	}
}

func TestMinutesAreTakenWhenTheyChangeAndAgain(t *testing.T) {
	t.Parallel()
	count := func(r *recorded, when time.Duration) { r.Count(at(when), analytics.NewUsers, 1) }
	r := recorder(1)
	for _, c := range []struct {
		record, take time.Duration
		want         string
	}{
		{5 * time.Second, 6 * time.Second, "0:1"},
		{-1, 7 * time.Second, ""},
		{59 * time.Second, 61 * time.Second, "0:2"},
		{62 * time.Second, 63 * time.Second, "1:1"},
		{59 * time.Second, 64 * time.Second, "0:3"}, // late, for its own minute
		{-1, 119 * time.Second, ""},
		{-1, 2 * time.Minute, "0:3"}, // again
		{-1, 2*time.Minute + time.Second, ""},
		{-1, 3 * time.Minute, "0:3 1:1"},
		{-1, 4 * time.Minute, "1:1"},
		{-1, 33 * time.Minute, "0:3 1:1"}, // several at once are one
		{-1, 33*time.Minute + time.Second, ""},
	} {
		if c.record >= 0 {
			count(r, c.record)
		}
		got := ""
		for _, m := range r.take(at(c.take), true) {
			if got != "" {
				got += " "
			}
			got += string('0'+rune(m.Start.Sub(start)/time.Minute)) + ":" + string('0'+rune(m.Count(analytics.NewUsers)))
		}
		if got != c.want {
			t.Errorf("after %v: %q, want %q", c.take, got, c.want)
		}
	}
	if got := r.take(at(34*time.Minute), true); len(got) != 1 || !r.Idle() {
		t.Errorf("the last time: %d", len(got))
	}
	count(r, 0) // its minute is forgotten, and would not be heard
	if got := r.take(at(35*time.Minute), true); len(got) != 1 || got[0].Start.Sub(start) != 2*time.Minute || got[0].Count(analytics.NewUsers) != 1 {
		t.Errorf("what comes late: %+v", got)
	}

	alone := recorder(1)
	count(alone, 0)
	if got := alone.take(at(time.Minute), false); len(got) != 1 || alone.Idle() {
		t.Errorf("%d", len(got))
	}
	if got := alone.take(at(2*time.Minute), false); len(got) != 0 || !alone.Idle() {
		t.Errorf("%d, kept for nobody", len(got))
	}
}

func TestNothingIsLostWhileItIsTaken(t *testing.T) {
	t.Parallel()
	r := recorder(1)
	const each, clients = 2000, 4
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range each {
				now := at(time.Duration(i) * 50 * time.Millisecond)
				d, presented := session(now)
				d.SetCookie = i%10 == 0
				r.Decided(&d, &presented)
				r.Bypassed(analytics.ByRule)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	newest := map[analytics.Key]*analytics.Minute{}
	take := func() {
		for _, m := range r.take(at(0), true) {
			if old := newest[m.Key()]; old == nil || m.Newer(old) {
				newest[m.Key()] = m
			} else {
				t.Error("what was taken later is not newer")
			}
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			take()
		}
	}
	take()
	var sum analytics.Minute
	for _, m := range newest {
		sum.Add(m)
	}
	if sum.Reasons["session"] != each*clients || sum.Count(analytics.Bypassed) != each*clients || sum.Histograms[analytics.BetweenRefreshes].Count() != each*clients/10 {
		t.Errorf("%+v", sum)
	}
}

func TestNoRecorderRecordsNothing(t *testing.T) {
	t.Parallel()
	var r *analytics.Recorder
	d, presented := session(at(0))
	r.Decided(&d, &presented)
	r.Bypassed(analytics.ByRule)
	r.RefusedTicket("forged")
	r.Count(0, analytics.NewUsers, 1)
	r.Spans(0, analytics.Waited, 1)
	r.Sample(&anteroom.Status{InForce: &anteroom.InForce{}})
	if !r.Idle() || r.Take(true) != nil {
		t.Error("something")
	}
}

func TestAnAdmittedRequestIsRecordedWithoutAllocation(t *testing.T) {
	r := recorder(1)
	d, presented := session(at(1))
	r.Decided(&d, &presented)
	if n := testing.AllocsPerRun(1000, func() { r.Decided(&d, &presented) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecided(b *testing.B) {
	r := recorder(1)
	d, presented := session(at(1))
	b.ReportAllocs()
	for b.Loop() {
		r.Decided(&d, &presented)
	}
}

func BenchmarkDecidedByAll(b *testing.B) {
	r := recorder(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		d, presented := session(at(1))
		for pb.Next() {
			r.Decided(&d, &presented)
		}
	})
}

func BenchmarkRenewal(b *testing.B) {
	r := recorder(1)
	d, presented := session(at(1))
	d.SetCookie = true
	b.ReportAllocs()
	for b.Loop() {
		r.Decided(&d, &presented)
	}
}
