package published

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var tenAtOnce = anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Minute}

// fill lets n people in at a worker of a data centre.
func fill(t *testing.T, r *Room, now anteroom.Time, site, worker, n int) (tickets []anteroom.Ticket) {
	t.Helper()
	for i := range n {
		d, _ := r.Visit(now, site, worker, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{1, byte(site), byte(worker), byte(i), byte(i >> 8)}}})
		if d.Verdict != anteroom.Admit {
			t.Fatalf("number %d at site %d, worker %d: %v (%v)", i, site, worker, d.Verdict, d.Reason)
		}
		tickets = append(tickets, d.Ticket)
	}
	return tickets
}

func newcomer(n byte) anteroom.Visit {
	return anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{9, n}}, NewID: anteroom.ID{8, n}}
}

// TestVerdicts says what becomes of a newcomer, of somebody who waits, and of a session.
func TestVerdicts(t *testing.T) {
	with := func(change func(*anteroom.Settings)) anteroom.Settings {
		s := tenAtOnce
		change(&s)
		return s
	}
	type outcome struct {
		verdict anteroom.Verdict
		reason  anteroom.Reason
	}
	for _, c := range []struct {
		name                      string
		settings                  anteroom.Settings
		newcomer, waiting, inside outcome
	}{
		{"full", with(func(s *anteroom.Settings) { s.TotalActiveUsers = 1 }),
			outcome{anteroom.Wait, anteroom.ReasonLine}, outcome{anteroom.Wait, anteroom.ReasonWaiting}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"free again", tenAtOnce,
			outcome{anteroom.Admit, anteroom.ReasonFreeSlot}, outcome{anteroom.Admit, anteroom.ReasonTurn}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"random", with(func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Random }),
			outcome{anteroom.Admit, anteroom.ReasonFreeSlot}, outcome{anteroom.Admit, anteroom.ReasonTurn}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"queue-all", with(func(s *anteroom.Settings) { s.QueueAll, s.QueueingMethod = true, anteroom.Reject }),
			outcome{anteroom.Wait, anteroom.ReasonQueueAll}, outcome{anteroom.Wait, anteroom.ReasonQueueAll}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"reject", with(func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Reject }),
			outcome{anteroom.Refuse, anteroom.ReasonReject}, outcome{anteroom.Refuse, anteroom.ReasonReject}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"passthrough", with(func(s *anteroom.Settings) { s.TotalActiveUsers, s.QueueingMethod = 0, anteroom.Passthrough }),
			outcome{anteroom.Admit, anteroom.ReasonPassthrough}, outcome{anteroom.Admit, anteroom.ReasonPassthrough}, outcome{anteroom.Admit, anteroom.ReasonSession}},
		{"suspended", with(func(s *anteroom.Settings) { s.Suspended = true }),
			outcome{anteroom.Pass, anteroom.ReasonSuspended}, outcome{anteroom.Pass, anteroom.ReasonSuspended}, outcome{anteroom.Pass, anteroom.ReasonSuspended}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := tenAtOnce
			first.TotalActiveUsers = 1
			r := New(Config{Settings: first})
			inside := fill(t, r, morning, 0, 0, 1)[0]
			waiting, _ := r.Visit(morning, 0, 0, newcomer(0))
			if waiting.Verdict != anteroom.Wait || waiting.Reason != anteroom.ReasonFull {
				t.Fatalf("full room: %+v", waiting)
			}
			now := morning.Add(25 * time.Second)
			r.Configure(now, c.settings)
			check := func(who string, v anteroom.Visit, want outcome) {
				t.Helper()
				if d, _ := r.Visit(now, 0, 0, v); d.Verdict != want.verdict || d.Reason != want.reason {
					t.Errorf("%s: %v, %v; want %v, %v", who, d.Verdict, d.Reason, want.verdict, want.reason)
				}
			}
			check("session", anteroom.Visit{Ticket: inside}, c.inside)
			check("waiting", anteroom.Visit{Ticket: waiting.Ticket}, c.waiting)
			check("newcomer", newcomer(1), c.newcomer)
		})
	}
}

func TestRequestsThatTakeNothing(t *testing.T) {
	s := tenAtOnce
	s.TotalActiveUsers = 1
	r := New(Config{Settings: s})
	v := newcomer(0)
	v.NoClaim = true
	if d, _ := r.Visit(morning, 0, 0, v); d.Verdict != anteroom.Refuse || d.Reason != anteroom.ReasonNotJoining {
		t.Errorf("prefetch: %v", d.Reason)
	}
	fill(t, r, morning, 0, 0, 1)
	v = newcomer(1)
	v.NoJoin = true
	if d, _ := r.Visit(morning, 0, 0, v); d.Verdict != anteroom.Refuse || d.Reason != anteroom.ReasonNotJoining || d.Waiting != 0 {
		t.Errorf("sub-resource: %+v", d)
	}
	if d, _ := r.Visit(morning, 0, 0, newcomer(2)); d.Waiting != 1 {
		t.Errorf("%d wait", d.Waiting)
	}
}

func TestSessionEndsAndRenews(t *testing.T) {
	for _, renew := range []bool{true, false} {
		s := tenAtOnce
		s.TotalActiveUsers, s.DisableSessionRenewal = 1, !renew
		r := New(Config{Settings: s})
		ticket := fill(t, r, morning, 0, 0, 1)[0]
		for at := 20 * time.Second; at <= 2*time.Minute; at += 20 * time.Second {
			now := morning.Add(at)
			r.Tick(now)
			d, _ := r.Visit(now, 0, 0, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{7}})
			if kept := d.Reason == anteroom.ReasonSession; kept != (renew || at < time.Minute) {
				t.Errorf("renewal %v, after %v: %v, %v", renew, at, d.Verdict, d.Reason)
			}
			if active := r.refresh(now, r.sites[0].workers[0]).slots; renew && active != 0 {
				t.Errorf("after %v a slot is free", at)
			}
			if ticket = d.Ticket; d.Reason != anteroom.ReasonSession {
				break
			}
		}
		now := ticket.LastCheckIn.Add(65*time.Second + time.Microsecond)
		if d, _ := r.Visit(now, 0, 0, newcomer(1)); renew && d.Verdict != anteroom.Admit {
			t.Errorf("a minute and a cell after the last request no slot is free: %v", d.Reason)
		}
	}
}

func TestEarlyCheckInIsNoAttempt(t *testing.T) {
	s := tenAtOnce
	s.TotalActiveUsers = 0
	r := New(Config{Settings: s})
	first, _ := r.Visit(morning, 0, 0, newcomer(0))
	if first.Refresh < 18*time.Second || first.Refresh > 22*time.Second || first.Ticket.Next != morning.Add(first.Refresh) {
		t.Errorf("told to come back in %v", first.Refresh)
	}
	s.TotalActiveUsers = 10
	r.Configure(morning, s)
	early := first.Ticket.Next - 1
	d, _ := r.Visit(early, 0, 0, anteroom.Visit{Ticket: first.Ticket})
	if d.Reason != anteroom.ReasonEarly || d.SetCookie || d.Ticket != first.Ticket {
		t.Errorf("early: %+v", d)
	}
	if d, _ = r.Visit(early+1, 0, 0, anteroom.Visit{Ticket: first.Ticket}); d.Verdict != anteroom.Admit {
		t.Errorf("in time: %v", d.Reason)
	}
}

func TestPlaceIsKeptFiveMinutes(t *testing.T) {
	s := tenAtOnce
	s.TotalActiveUsers = 0
	r := New(Config{Settings: s})
	first, _ := r.Visit(morning, 0, 0, newcomer(0))
	ends := morning.Add(5 * time.Minute)
	d, _ := r.Visit(ends, 0, 0, anteroom.Visit{Ticket: first.Ticket})
	if d.Reason != anteroom.ReasonWaiting || d.Ticket.Arrival != first.Ticket.Arrival {
		t.Errorf("after five minutes: %v", d.Reason)
	}
	d, _ = r.Visit(ends+1, 0, 0, anteroom.Visit{Ticket: first.Ticket, NewID: anteroom.ID{7}})
	if d.Reason != anteroom.ReasonPlaceLost || d.Ticket.ID != (anteroom.ID{7}) || d.Ticket.Arrival != ends+1 {
		t.Errorf("later: %v, %+v", d.Reason, d.Ticket)
	}
}

func TestAnnouncedWait(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 30, SessionDuration: time.Minute}
	r := New(Config{Settings: s})
	for i := range byte(3) { // 30 enter in each of three minutes
		fill(t, r, morning+anteroom.Time(i)*minute, 0, 0, 30)
	}
	now := morning + 3*minute
	s.NewUsersPerMinute = 0
	r.Configure(now, s)
	var d anteroom.Decision
	for i := range byte(60) {
		d, _ = r.Visit(now-1, 0, 0, newcomer(i))
	}
	if d.Ahead != 60 || !d.AheadKnown || d.WaitTime.Round(time.Millisecond) != 2*time.Minute {
		t.Errorf("60 ahead at 30 per minute: %d, %v", d.Ahead, d.WaitTime)
	}
	s.QueueingMethod = anteroom.Random
	r.Configure(now, s)
	d, _ = r.Visit(now-1, 0, 0, newcomer(61))
	if !d.WaitKnown || d.AheadKnown || !(0 < d.Wait25 && d.Wait25 < d.WaitTime && d.WaitTime < d.Wait75) {
		t.Errorf("random: %+v", d)
	}
	if want := time.Duration(waitRandom(61, 30, 0.5) * float64(time.Minute)); d.WaitTime.Round(time.Millisecond) != want.Round(time.Millisecond) {
		t.Errorf("random: %v, want %v", d.WaitTime, want)
	}
}

// TestUnknownBucket: a worker that has not heard of a visitor's bucket goes by those that it
// knows to be older.
func TestUnknownBucket(t *testing.T) {
	s := tenAtOnce
	s.TotalActiveUsers = 0
	r := New(Config{Sites: []int{1, 1}, Settings: s})
	first, _ := r.Visit(morning, 1, 0, newcomer(0))
	for n := range byte(2) {
		r.Visit(morning+minute, 0, 0, newcomer(1+n))
	}
	last, _ := r.Visit(morning+2*minute, 1, 0, newcomer(3))
	s.TotalActiveUsers = 2
	r.Configure(morning+2*minute, s)
	now := morning + 2*minute + minute/2
	if d, _ := r.Visit(now, 0, 0, anteroom.Visit{Ticket: last.Ticket}); d.Verdict != anteroom.Wait {
		t.Errorf("the youngest of three: %v by two slots", d.Verdict)
	}
	if d, _ := r.Visit(now, 0, 0, anteroom.Visit{Ticket: first.Ticket}); d.Verdict != anteroom.Admit {
		t.Errorf("the oldest: %v", d.Verdict)
	}
}

// TestAnyTicketIsAnswered shows tickets with any moments in them to rooms with any settings.
func TestAnyTicketIsAnswered(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		moment := func() anteroom.Time {
			return []anteroom.Time{0, 1, -1, morning, morning + minute, -1 << 60, 1 << 60, anteroom.Time(rng.Int64()), morning - anteroom.Time(rng.Int64N(int64(10*minute)))}[rng.IntN(9)]
		}
		r := New(Config{Method: Method(seed % 3), Sites: []int{2, 1}, Seed: seed, Curve: float64(seed % 4)})
		now := morning
		for range 2000 {
			now += anteroom.Time(rng.Int64N(int64(minute / 60)))
			if rng.IntN(50) == 0 {
				r.Configure(now, anteroom.Settings{TotalActiveUsers: rng.IntN(100), NewUsersPerMinute: rng.IntN(100),
					QueueingMethod: anteroom.QueueingMethods[rng.IntN(4)], QueueAll: rng.IntN(5) == 0, DisableSessionRenewal: rng.IntN(2) == 0})
				r.Skew(rng.IntN(2), time.Duration(rng.Int64N(int64(time.Hour)))-30*time.Minute)
				r.Restart(0, rng.IntN(2))
			}
			r.Tick(now)
			d, latency := r.Visit(now, rng.IntN(2), 0, anteroom.Visit{Fresh: rng.IntN(3) == 0, NoClaim: rng.IntN(9) == 0, NoJoin: rng.IntN(9) == 0,
				Ticket: anteroom.Ticket{Arrival: moment(), LastCheckIn: moment(), Next: moment(), AcceptedAt: moment() * anteroom.Time(rng.IntN(2))}})
			if d.Reason == anteroom.ReasonNone || latency < 0 || d.WaitTime < 0 || d.Ahead < 0 || d.Waiting < 0 {
				t.Fatalf("seed %d: %+v after %v", seed, d, latency)
			}
		}
	}
}
