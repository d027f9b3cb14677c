package lottery

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

const round = 30 * time.Second

// start is a moment at which a round begins.
var start = anteroom.TimeOf(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC))

func id(n int) (out anteroom.ID) {
	// A permutation of 64 bits (splitmix64), twice: equal seeds give equal visitors, who have nothing in common.
	x := uint64(n) * 0x9e3779b97f4a7c15
	for i := range 2 {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		for j := range 8 {
			out[8*i+j] = byte(z >> (8 * j))
		}
	}
	return out
}

func room(percent int) (*Lottery, *anteroom.Settings) {
	r := anteroom.Room{Name: "sale", Routes: []anteroom.Route{{Host: "*"}}, Lottery: anteroom.Lottery{LotteryPercent: percent}}.WithDefaults()
	return &Lottery{Room: r.ID, Key: [32]byte{1, 2, 3}, Rules: r.Lottery}, &r.Settings
}

// The published vectors, and the one of the starter's signed text.
func TestTicketsMatureAfterTheNextFullRound(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		At, Eligible string
		Period       int
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 3 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	for _, v := range all {
		at, err := time.Parse(time.RFC3339, v.At)
		if err != nil {
			t.Fatal(err)
		}
		if got := matures(anteroom.TimeOf(at), time.Duration(v.Period)*time.Second).Std().UTC().Format(time.RFC3339); got != v.Eligible {
			t.Errorf("at %s with rounds of %d s: %s, want %s", v.At, v.Period, got, v.Eligible)
		}
	}
}

// Of n visitors with the chance p, about n·p win. Each is a coin of its own, so the number is binomial, and Hoeffding's
// inequality bounds how far it may be off: by sqrt(n·ln(2/e)/2) with the probability e. With e = 1e-9, over the 40 numbers of
// this test, a sound hash fails for one key in 25 million; the key is fixed.
func TestChancesAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	const n = 20_000
	off := math.Sqrt(n * math.Log(2/1e-9) / 2)
	l, _ := room(10)
	for _, p := range []float64{0.001, 0.05, 0.5, 0.9} {
		both := 0
		for r := range 5 {
			at := start.Add(time.Duration(r) * round)
			won := 0
			for i := range n {
				who := id(i)
				if wins(l.Key, l.Room, who[:], at, p) {
					won++
					if wins(l.Key, l.Room, who[:], at.Add(round), p) {
						both++
					}
				}
			}
			if math.Abs(float64(won)-n*p) > off {
				t.Errorf("chance %v, round %d: %d of %d win, want %.0f ± %.0f", p, r, won, n, n*p, off)
			}
		}
		// Who won says nothing about the next round.
		if n5 := 5. * n; math.Abs(float64(both)-n5*p*p) > math.Sqrt(n5*math.Log(2/1e-9)/2) {
			t.Errorf("chance %v: %d win twice in a row, want about %.0f", p, both, n5*p*p)
		}
	}
	// The numbers fill [0, 1) evenly: chi-square over 64 classes with 63 degrees of freedom stays below 63 + 2·sqrt(63·x) + 2x
	// but with the probability exp(-x) (Laurent and Massart 2000, lemma 1); x = 20.
	classes := make([]int, 64)
	for i := range n {
		who := id(i)
		class := 0
		for step := 32; step > 0; step /= 2 { // the class by halving: nobody tells the number itself
			if !wins(l.Key, l.Room, who[:], start, float64(class+step)/64) {
				class += step
			}
		}
		classes[class]++
	}
	chi := 0.
	for _, c := range classes {
		chi += (float64(c) - n/64.) * (float64(c) - n/64.) / (n / 64.)
	}
	if most := 63 + 2*math.Sqrt(63*20) + 40; chi > most {
		t.Errorf("chi-square is %.1f, want less than %.1f", chi, most)
	}
}

// Every part of the question counts.
func TestWinsDependsOnEverything(t *testing.T) {
	t.Parallel()
	same := [4]int{}
	const n = 400
	for i := range n {
		who, other := id(i), id(i+n)
		was := wins([32]byte{1}, "a", who[:], start, 0.5)
		for j, is := range []bool{wins([32]byte{2}, "a", who[:], start, 0.5), wins([32]byte{1}, "b", who[:], start, 0.5),
			wins([32]byte{1}, "a", other[:], start, 0.5), wins([32]byte{1}, "a", who[:], start.Add(round), 0.5)} {
			if is == was {
				same[j]++
			}
		}
	}
	// Half of them agree by chance: 200 ± sqrt(400·ln(2e9)/2).
	for j, s := range same {
		if math.Abs(float64(s)-n/2) > math.Sqrt(n*math.Log(2e9)/2) {
			t.Errorf("%d of %d outcomes stay the same without part %d", s, n, j)
		}
	}
}

func TestChanceRises(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base    float64
		age     time.Duration // when the ticket matures
		longest time.Duration
		want    float64
	}{
		{0.2, time.Hour, 0, 0.2},
		{0.2, time.Minute, 10 * time.Minute, 0.28},
		{0.2, 5 * time.Minute, 10 * time.Minute, 0.6},
		{0.2, 9 * time.Minute, 10 * time.Minute, 0.92}, // one more round of two lengths fits
		{0.2, 9*time.Minute + time.Second, 10 * time.Minute, 1},
		{0.2, time.Hour, 10 * time.Minute, 1},
		{0, 5 * time.Minute, 10 * time.Minute, 0.5},
		{0.2, -time.Minute, 10 * time.Minute, 0.2}, // a clock that was set back
	} {
		if got := chance(c.base, start, start.Add(c.age), round, c.longest); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v after %v of %v: %v, want %v", c.base, c.age, c.longest, got, c.want)
		}
	}
}

// visitor is a browser: it keeps the ticket that it is given and comes back when it is told to.
func wait(t *testing.T, l *Lottery, s *anteroom.Settings, n int) time.Duration {
	t.Helper()
	now := start
	d := l.Decide(now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id(n)}}, s, float64(l.Rules.LotteryPercent)/100)
	for d.Verdict == anteroom.Wait {
		if now = now.Add(d.Refresh); now.Sub(start) > 24*time.Hour {
			t.Fatal("a day is over")
		}
		d = l.Decide(now, anteroom.Visit{Ticket: d.Ticket}, s, float64(l.Rules.LotteryPercent)/100)
	}
	return now.Sub(start)
}

func TestLongestWait(t *testing.T) {
	t.Parallel()
	l, s := room(1)
	l.Rules.LotteryMaxWait = 5 * time.Minute
	longest := time.Duration(0)
	for n := range 2000 {
		longest = max(longest, wait(t, l, s, n))
	}
	// The ticket of the last round matures within it; the page is a quarter of a round late at most.
	if longest > 5*time.Minute+round/4 || longest < 3*time.Minute {
		t.Errorf("the longest wait of 2000 visitors is %v", longest)
	}
}

// A decision is a function of the ticket: asked again, by whatever process, it is the same, and a promised chance stays.
func TestOutcomesAreFinal(t *testing.T) {
	t.Parallel()
	l, s := room(50)
	won := 0
	for n := range 200 {
		first := l.Decide(start, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id(n)}}, s, 0.5)
		if first.Reason != anteroom.ReasonFull || first.Ticket.Next != start.Add(2*round) || first.Ticket.Chance() != 0.5 {
			t.Fatalf("%+v", first)
		}
		if d := l.Decide(first.Ticket.Next-1, anteroom.Visit{Ticket: first.Ticket}, s, 0.5); d.Reason != anteroom.ReasonEarly || d.SetCookie || d.Ticket != first.Ticket {
			t.Fatalf("early: %+v", d)
		}
		want := l.Decide(first.Ticket.Next, anteroom.Visit{Ticket: first.Ticket}, s, 0.5).Verdict
		for _, late := range []time.Duration{time.Second, round, s.PlaceHold} {
			for _, base := range []float64{0, 0.5, 0.99} {
				if d := l.Decide(first.Ticket.Next.Add(late), anteroom.Visit{Ticket: first.Ticket}, s, base); d.Verdict != want {
					t.Fatalf("%v later with %v: %v, was %v", late, base, d.Verdict, want)
				}
			}
		}
		if want == anteroom.Admit {
			won++
		}
		if d := l.Decide(first.Ticket.Next.Add(s.PlaceHold+time.Microsecond), anteroom.Visit{Ticket: first.Ticket, NewID: id(-1)}, s, 0.5); d.Reason != anteroom.ReasonPlaceLost || d.Ticket.ID == first.Ticket.ID {
			t.Fatalf("too late: %+v", d)
		}
	}
	if won < 50 || won > 150 {
		t.Errorf("%d of 200 win", won)
	}
}

// Tickets that are bound to a network share its outcome, so another ticket gains nothing there.
func TestNetworksShareAnOutcome(t *testing.T) {
	t.Parallel()
	l, s := room(30)
	for network := range uint16(100) {
		var was anteroom.Verdict
		for n := range 20 {
			d := l.Decide(start, anteroom.Visit{Fresh: true, Bind: network + 1, Ticket: anteroom.Ticket{ID: id(n)}}, s, 0.3)
			d = l.Decide(d.Ticket.Next, anteroom.Visit{Bind: network + 1, Ticket: d.Ticket}, s, 0.3)
			if n > 0 && d.Verdict != was {
				t.Fatalf("network %d: %v and %v", network, was, d.Verdict)
			}
			was = d.Verdict
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	waiting := anteroom.Ticket{ID: id(1), Arrival: start.Add(-time.Minute), LastCheckIn: start.Add(-time.Minute), Next: start, Told: anteroom.ChanceOfOne, Bind: 7}
	loser := waiting
	loser.Told = 0
	in := anteroom.Ticket{ID: id(2), Arrival: start.Add(-time.Hour), AcceptedAt: start.Add(-time.Hour), LastCheckIn: start.Add(-time.Minute), Bind: 7}
	set := func(f func(*anteroom.Settings)) *anteroom.Settings {
		_, s := room(30)
		f(s)
		return s
	}
	plain := set(func(*anteroom.Settings) {})
	fixed := set(func(s *anteroom.Settings) { s.DisableSessionRenewal = true })
	paused := set(func(s *anteroom.Settings) { s.QueueAll = true })
	reject := set(func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Reject })
	drain := set(func(s *anteroom.Settings) { s.Draining = true })
	reset := set(func(s *anteroom.Settings) { s.ResetAt = start })
	off := set(func(s *anteroom.Settings) { s.Suspended = true })
	fresh := anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id(3)}}
	of := func(t anteroom.Ticket) anteroom.Visit { return anteroom.Visit{Ticket: t, NewID: id(4), Bind: 7} }
	with := func(v anteroom.Visit, f func(*anteroom.Visit)) anteroom.Visit { f(&v); return v }
	noClaim := func(v *anteroom.Visit) { v.NoClaim = true }
	noJoin := func(v *anteroom.Visit) { v.NoJoin = true }
	other := func(v *anteroom.Visit) { v.Bind = 8 }
	for _, c := range []struct {
		name    string
		v       anteroom.Visit
		s       *anteroom.Settings
		base    float64
		after   time.Duration
		verdict anteroom.Verdict
		reason  anteroom.Reason
		cookie  bool
	}{
		{"anonymous", fresh, plain, 0.3, 0, anteroom.Wait, anteroom.ReasonFull, true},
		{"anonymous with 100 percent", fresh, plain, 1, 0, anteroom.Admit, anteroom.ReasonFreeSlot, true},
		{"anonymous with 100 percent, paused", fresh, paused, 1, 0, anteroom.Wait, anteroom.ReasonFull, true},
		{"an image", with(fresh, noJoin), plain, 0.3, 0, anteroom.Refuse, anteroom.ReasonNotJoining, false},
		{"a prefetch", with(fresh, noClaim), plain, 1, 0, anteroom.Refuse, anteroom.ReasonNotJoining, false},
		{"wins", of(waiting), plain, 0, 0, anteroom.Admit, anteroom.ReasonTurn, true},
		{"wins for an image", with(of(waiting), noJoin), plain, 0, 0, anteroom.Admit, anteroom.ReasonTurn, true},
		{"would win for a prefetch", with(of(waiting), noClaim), plain, 0, 0, anteroom.Refuse, anteroom.ReasonNotJoining, false},
		{"does not win", of(loser), plain, 0.3, 0, anteroom.Wait, anteroom.ReasonWaiting, true},
		{"from another network", with(of(waiting), other), plain, 0.3, 0, anteroom.Wait, anteroom.ReasonBound, true},
		{"would win, paused", of(waiting), paused, 0.3, 0, anteroom.Wait, anteroom.ReasonQueueAll, true},
		{"denied", of(waiting), reject, 0.3, 0, anteroom.Refuse, anteroom.ReasonReject, false},
		{"anonymous, denied", fresh, reject, 0.3, 0, anteroom.Refuse, anteroom.ReasonReject, false},
		{"anonymous, draining", fresh, drain, 0.3, 0, anteroom.Refuse, anteroom.ReasonReject, false},
		{"wins, draining", of(waiting), drain, 0.3, 0, anteroom.Admit, anteroom.ReasonTurn, true},
		{"before a reset", of(waiting), reset, 0.3, 0, anteroom.Wait, anteroom.ReasonPlaceLost, true},
		{"session", of(in), plain, 0, 0, anteroom.Admit, anteroom.ReasonSession, true},
		{"session, just renewed", of(in), plain, 0, -time.Minute, anteroom.Admit, anteroom.ReasonSession, false},
		{"session, denied to others", of(in), reject, 0, 0, anteroom.Admit, anteroom.ReasonSession, true},
		{"session, paused", of(in), paused, 0, 0, anteroom.Admit, anteroom.ReasonSession, true},
		{"session of another network", with(of(in), other), plain, 0, 0, anteroom.Wait, anteroom.ReasonBound, true},
		{"session, its last moment", of(in), plain, 0, 4*time.Minute - time.Microsecond, anteroom.Admit, anteroom.ReasonSession, true},
		{"session, over", of(in), plain, 0, 4 * time.Minute, anteroom.Wait, anteroom.ReasonSessionOver, true},
		{"session, over since its admission", of(in), fixed, 0, 0, anteroom.Wait, anteroom.ReasonSessionOver, true},
		{"suspended", of(loser), off, 0, 0, anteroom.Pass, anteroom.ReasonSuspended, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := room(30)
			now := start.Add(c.after)
			d := l.Decide(now, c.v, c.s, c.base)
			if d.Verdict != c.verdict || d.Reason != c.reason || d.SetCookie != c.cookie || d.At != now || d.Reason.Verdict() != d.Verdict {
				t.Fatalf("%v %v, cookie %v", d.Verdict, d.Reason, d.SetCookie)
			}
			k := d.Ticket
			switch {
			case d.Verdict == anteroom.Admit && (k.ID != c.v.Ticket.ID || !k.Accepted() || k.Next != 0 || k.Told != 0 || c.cookie && k.LastCheckIn != now):
				t.Errorf("admitted with %+v", k)
			case d.Verdict == anteroom.Wait && (k.Accepted() || k.Next != start.Add(c.after-c.after%round+2*round) || d.Refresh < k.Next.Sub(now) || d.Refresh > k.Next.Sub(now)+round/4 || k.Refresh != k.Next.Sub(now)):
				t.Errorf("waits with %+v for %v", k, d.Refresh)
			case d.Verdict == anteroom.Wait && math.Abs(k.Chance()-c.base) > 1e-9:
				t.Errorf("the ticket has the chance %v", k.Chance())
			}
		})
	}
}

// A crowd counts visitors, not requests, within three standard errors.
func TestCrowd(t *testing.T) {
	t.Parallel()
	var a, b crowd
	for i := range 200_000 {
		a.add(id(i))
		a.add(id(i))
		if i%2 == 0 {
			b.add(id(i + 100_000)) // half of the second half are in both
		}
	}
	near := func(got, want int) {
		t.Helper()
		load := float64(want) / crowdBits
		if off := 3 * math.Sqrt(crowdBits*(math.Exp(load)-load-1)); math.Abs(float64(got-want)) > off {
			t.Errorf("%d, want %d ± %.0f", got, want, off)
		}
	}
	near(a.with(&a), 200_000)
	near(b.with(&b), 100_000)
	near(a.with(&b), 250_000)
	b.take(&a)
	near(b.with(&b), 200_000)
	if n := a.with(&a); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// Visitors come all the time, far more than the room bears. The chance settles where both limits are about kept.
func TestControlFollowsLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for _, c := range []struct{ perMinute, active, wantNew, wantActive int }{
		{200, 100_000, 200, 0},
		{100_000, 700, 0, 700},
	} {
		l, s := room(50)
		s.NewUsersPerMinute, s.TotalActiveUsers, s.SessionDuration = c.perMinute, c.active, 2*time.Minute
		var control Control
		type browser struct {
			v     anteroom.Visit
			until anteroom.Time
		}
		var all []browser
		in, lately, peak := map[anteroom.ID]bool{}, 0, 0
		n := 0
		for step := range 120 { // an hour, round by round
			now := start.Add(time.Duration(step) * round)
			for range 250 { // arrive in each
				n++
				all = append(all, browser{v: anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id(n)}}})
			}
			left := all[:0]
			for _, b := range all {
				base := control.Base(now, s, round, 0.5)
				d := l.Decide(now, b.v, s, base)
				control.Seen(&d)
				b.v = anteroom.Visit{Ticket: d.Ticket}
				if d.Reason == anteroom.ReasonTurn {
					b.until = now.Add(5 * time.Minute) // how long they stay, with a request in each round
					in[d.Ticket.ID] = true
					if step >= 60 {
						lately++
					}
				}
				if b.until == 0 || now < b.until {
					left = append(left, b)
				} else {
					delete(in, d.Ticket.ID)
				}
			}
			all = left
			if step >= 60 {
				peak = max(peak, len(in))
			}
		}
		// "About": a quarter off, of the rate over half an hour. A proportional control settles below the limit of active
		// users: what it admits per round, gain·(limit-x), is what leaves, x/n, when the control sees a visitor for n rounds,
		// here 10 and another 4 to 8. So x seen is at least 0.5 of the limit, of whom 10 of 18 rounds are really there.
		if got := lately / 30; c.wantNew > 0 && (got < c.wantNew*3/4 || got > c.wantNew*5/4) {
			t.Errorf("%d new visitors per minute, want about %d", got, c.wantNew)
		}
		if c.wantActive > 0 && (peak < c.wantActive/4 || peak > c.wantActive) {
			t.Errorf("at most %d active visitors with a limit of %d", peak, c.wantActive)
		}
	}
}
