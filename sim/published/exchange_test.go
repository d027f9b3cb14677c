package published

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func pass(r *Room, from, to time.Duration) {
	for at := from; at <= to; at += 100 * time.Millisecond {
		r.Tick(morning.Add(at))
	}
}

func (r *Room) knows(site int) int { return r.sites[site].workers[0].view.active.sum(0, 1<<62) }

// TestNewsTravels: what a worker did is known everywhere after two exchanges and the way
// there and back; across a cut, and while the global object is dead, only later.
func TestNewsTravels(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(r *Room, broken bool)
	}{
		{"", func(*Room, bool) {}},
		{"cut at the source", func(r *Room, b bool) { r.Cut(0, b) }},
		{"cut at the other", func(r *Room, b bool) { r.Cut(1, b) }},
		{"global object dead", func(r *Room, b bool) { r.CoordinatorDown(b) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tenAtOnce
			s.SessionDuration = time.Hour
			r := New(Config{Sites: []int{2, 2}, Delays: []time.Duration{50 * time.Millisecond, 90 * time.Millisecond}, Settings: s})
			c.fail(r, true)
			r.Tick(morning)
			fill(t, r, morning, 0, 0, 2)
			in := r.knows(0)
			pass(r, 0, 3100*time.Millisecond)
			if got := r.sites[0].workers[1].view.active.sum(0, 1<<62); got != in {
				t.Errorf("the next worker knows of %d", got)
			}
			pass(r, 3200*time.Millisecond, 7*time.Second)
			if got := r.knows(1); (got == in) != (c.name == "") {
				t.Errorf("%d of %d are known at the other data centre", got, in)
			}
			c.fail(r, false)
			pass(r, 7100*time.Millisecond, 14*time.Second)
			for _, site := range []int{0, 1} {
				if got := r.knows(site); got != in {
					t.Errorf("in the end %d of %d are known at %d", got, in, site)
				}
			}
			if got := r.global.active.sum(0, 1<<62); got != in {
				t.Errorf("%d of %d are known to the global object", got, in)
			}
		})
	}
}

// TestAnywhereCounter: a round trip to the global object when it can be reached, nothing
// from it when not.
func TestAnywhereCounter(t *testing.T) {
	for _, c := range []struct {
		name    string
		fail    func(r *Room)
		verdict anteroom.Verdict
		latency time.Duration
	}{
		{"reachable", func(*Room) {}, anteroom.Admit, 102 * time.Millisecond},
		{"cut", func(r *Room) { r.Cut(0, true) }, anteroom.Wait, time.Millisecond},
		{"dead", func(r *Room) { r.CoordinatorDown(true) }, anteroom.Wait, time.Millisecond},
	} {
		r := New(Config{Method: Counters, Delays: []time.Duration{50 * time.Millisecond}, Settings: tenAtOnce})
		c.fail(r)
		if d, latency := r.Visit(morning, 0, 0, newcomer(0)); d.Verdict != c.verdict || latency != c.latency {
			t.Errorf("%s: %v after %v, want %v after %v", c.name, d.Verdict, latency, c.verdict, c.latency)
		}
	}
}

// TestWorkersKnowWhatTheyDid: whatever is under way, and for however long, the only worker
// of a data centre has counted all of its own visitors once.
func TestWorkersKnowWhatTheyDid(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := tenAtOnce
		r := New(Config{Sites: []int{1, 1, 1}, Seed: seed, Settings: s,
			Delays: []time.Duration{0, 700 * time.Millisecond, time.Duration(rng.IntN(5000)) * time.Millisecond}})
		var came [3]int
		for tick := range 600 {
			now := morning.Add(time.Duration(tick) * 100 * time.Millisecond)
			if rng.IntN(10) == 0 {
				r.Cut(rng.IntN(3), rng.IntN(2) == 0)
				r.CoordinatorDown(rng.IntN(4) == 0)
			}
			if rng.IntN(4) == 0 {
				site := rng.IntN(3)
				came[site]++
				r.Visit(now, site, 0, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{byte(tick), byte(tick >> 8)}}})
			}
			r.Tick(now)
			for site, want := range came {
				if got := r.sites[site].workers[0].view.visitors.get(key{minuteOf(morning), int64(site)}); got != want {
					t.Fatalf("seed %d, tick %d: site %d knows of %d visitors of its own, want %d", seed, tick, site, got, want)
				}
			}
		}
	}
}

// TestCutStopsAnswers: what is on its way up arrives, and the answer does not.
func TestCutStopsAnswers(t *testing.T) {
	s := tenAtOnce
	s.SessionDuration = time.Hour
	r := New(Config{Sites: []int{1, 1}, Delays: []time.Duration{time.Second, time.Second}, Settings: s})
	r.Tick(morning)
	fill(t, r, morning, 1, 0, 1)
	pass(r, 0, 7*time.Second)
	if got := r.knows(0); got != 1 {
		t.Fatalf("%d are known", got)
	}
	fill(t, r, morning.Add(7*time.Second), 0, 0, 1)
	at := 7 * time.Second
	for len(r.sites[0].workers[0].delta.active) > 0 {
		at += 100 * time.Millisecond
		pass(r, at, at)
	}
	r.Cut(0, true)
	pass(r, at, at+20*time.Second)
	if got := r.global.active.sum(0, 1<<62); got != 2 {
		t.Errorf("the global object knows of %d", got)
	}
	if len(r.sites[0].unacked) == 0 {
		t.Error("the data centre heard that through a cut link")
	}
}

// TestNothingIsCountedTwice cuts links and stops the global object at random moments and then
// adds up.
func TestNothingIsCountedTwice(t *testing.T) {
	for seed := range uint64(20) {
		c := world(Method(seed%3), 300, 300, fiveSites, seed)
		c.config.Settings.SessionDuration = time.Hour
		s := c.config.Settings
		s.TotalActiveUsers, s.NewUsersPerMinute = 1<<20, 1<<20
		c.room.Configure(morning, s)
		c.arrive(0, 50*time.Second, 300, -1)
		for range 50 {
			c.room.Cut(c.rng.IntN(5), c.rng.IntN(2) == 0)
			c.room.CoordinatorDown(c.rng.IntN(4) == 0)
			c.run(time.Second)
		}
		for site := range fiveSites {
			c.room.Cut(site, false)
		}
		c.room.CoordinatorDown(false)
		c.events = nil
		c.run(10 * time.Second)
		for site := range fiveSites {
			if got := c.room.knows(site); got != c.admitted {
				t.Errorf("seed %d: %d are known at %d, want %d", seed, got, site, c.admitted)
			}
		}
	}
}

// TestRestartForgets: a new worker has its whole share again, and what the old one had not
// reported is lost. A counter in the data centre forgets nothing.
func TestRestartForgets(t *testing.T) {
	enter := func(r *Room, from byte) (in int) {
		for n := range byte(10) {
			if d, _ := r.Visit(morning, 0, 0, newcomer(from+n)); d.Verdict == anteroom.Admit {
				in++
			}
		}
		return in
	}
	for _, c := range []struct {
		method        Method
		before, after int
	}{{Even, 5, 5}, {Counters, 10, 0}} {
		r := New(Config{Method: c.method, Sites: []int{2}, Settings: tenAtOnce})
		if got := enter(r, 0); got != c.before {
			t.Errorf("%v: %d enter, want %d", c.method, got, c.before)
		}
		r.Restart(0, 0)
		if got := enter(r, 100); got != c.after {
			t.Errorf("%v: %d enter after the restart, want %d", c.method, got, c.after)
		}
	}
}

// TestWrongClockNamesAnotherBucket: whoever comes later elsewhere is in an older bucket.
func TestWrongClockNamesAnotherBucket(t *testing.T) {
	s := tenAtOnce
	s.TotalActiveUsers = 0
	r := New(Config{Sites: []int{1, 1}, Settings: s})
	r.Skew(0, 5*time.Second)
	first, _ := r.Visit(morning.Add(57*time.Second), 0, 0, newcomer(0))
	second, _ := r.Visit(morning.Add(59*time.Second), 1, 0, newcomer(1))
	if first.Ticket.Bucket() <= second.Ticket.Bucket() {
		t.Errorf("buckets %v and %v", first.Ticket.Bucket(), second.Ticket.Bucket())
	}
	if first.Ticket.LastCheckIn != morning.Add(57*time.Second) {
		t.Error("a wrong clock moved a check-in")
	}
}

// TestMessages: a report and an answer for each data centre and exchange.
func TestMessages(t *testing.T) {
	r := New(Config{Sites: fiveSites, Delays: fiveDelays, Settings: tenAtOnce})
	pass(r, 0, 30*time.Second)
	if got := r.Messages(); got < 90 || got > 100 {
		t.Errorf("%d messages in 30 s of five data centres", got)
	}
}

func TestSameSeedSameDecisions(t *testing.T) {
	run := func(m Method, seed uint64) (out []anteroom.Decision) {
		r := New(Config{Method: m, Sites: fiveSites, Delays: fiveDelays, Settings: tenAtOnce, Seed: seed})
		for n := range byte(100) {
			now := morning.Add(time.Duration(n) * 500 * time.Millisecond)
			r.Tick(now)
			d, _ := r.Visit(now, int(n)%5, int(n)%4, newcomer(n))
			out = append(out, d)
		}
		return out
	}
	for _, m := range []Method{Even, Adapted, Counters} {
		a, b, other := run(m, 1), run(m, 1), run(m, 2)
		same := true
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("%v: decision %d differs", m, i)
			}
			same = same && a[i] == other[i]
		}
		if same {
			t.Errorf("%v: another seed changes nothing", m)
		}
	}
}
