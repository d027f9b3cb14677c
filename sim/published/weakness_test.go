package published

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// The documented weaknesses of each generation, in worlds of the reference's study: five data
// centres, sessions of a minute, about a minute and a half of browsing. The bounds are wide;
// go test -v shows the numbers.

var (
	fiveSites  = []int{4, 4, 4, 4, 4}
	fiveDelays = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 75 * time.Millisecond, 90 * time.Millisecond}
	fiveShares = []float64{30, 28, 20, 12, 10}
)

func world(m Method, limit, rate int, sites []int, seed uint64) *crowd {
	c := newCrowd(Config{Method: m, Sites: sites, Delays: fiveDelays, Seed: seed,
		Settings: anteroom.Settings{TotalActiveUsers: limit, NewUsersPerMinute: rate, SessionDuration: time.Minute}})
	c.shares = fiveShares
	return c
}

// outcomes of a world, by method; all as shares of 0 to 1.
type outcomes struct{ overActive, overMinute, premature, overtaken, held float64 }

func each(t *testing.T, build func(m Method) *crowd, length time.Duration) (o [3]outcomes) {
	t.Helper()
	for _, m := range []Method{Even, Adapted, Counters} {
		c := build(m)
		c.run(length)
		s := c.config.Settings
		o[m] = outcomes{
			overActive: share(max(0, c.peak-s.TotalActiveUsers), s.TotalActiveUsers),
			overMinute: share(max(0, c.peakMinute-s.NewUsersPerMinute), s.NewUsersPerMinute),
			premature:  share(c.premature, c.arrived),
			overtaken:  share(c.overtaken, c.queued),
			held:       c.latency.Seconds() / float64(c.arrived),
		}
		t.Logf("%-8v %d came, %d entered, %d queued; over active %.1f %%, over minute %.1f %%, premature %.2f %%, overtaken %.0f %% of the queued, held %.1f ms", m,
			c.arrived, c.admitted, c.queued, 100*o[m].overActive, 100*o[m].overMinute, 100*o[m].premature, 100*o[m].overtaken, 1000*o[m].held)
	}
	return o
}

// bound checks that a number is between two.
func bound(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s is %.4f, want between %v and %v", what, got, low, high)
	}
}

// At 70 % of both limits nobody should wait. Division evenly among workers makes some wait;
// a counter costs every newcomer a call, across oceans for Anywhere.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	o := each(t, func(m Method) *crowd {
		c := world(m, 1000, 400, fiveSites, 1)
		c.arrive(0, 15*time.Minute, 4129, -1)
		return c
	}, 15*time.Minute)
	bound(t, "even: premature", o[Even].premature, 0.01, 0.08)
	bound(t, "adapted: premature", o[Adapted].premature, 0, 0.005)
	bound(t, "counters: premature", o[Counters].premature, 0, 0)
	bound(t, "counters: held", o[Counters].held, 0.010, 0.030)
	bound(t, "even: held", o[Even].held, 0, 0)
}

// Two workers that get seven eighths and one eighth of the requests.
func TestUnevenWorkersQueueEarly(t *testing.T) {
	t.Parallel()
	o := each(t, func(m Method) *crowd {
		c := world(m, 400, 400, []int{2, 2, 2, 2, 2}, 1)
		c.loads = []float64{7, 1}
		c.arrive(0, 15*time.Minute, 2029, -1)
		return c
	}, 15*time.Minute)
	bound(t, "even: premature", o[Even].premature, 0.15, 0.45)
	bound(t, "adapted: premature", o[Adapted].premature, 0.005, o[Even].premature/2)
	bound(t, "counters: premature", o[Counters].premature, 0, 0.005)
}

// 1,200 visitors come in 30 s where 12 % are usual.
func TestSpikeInOneDataCentreQueuesEarly(t *testing.T) {
	t.Parallel()
	o := each(t, func(m Method) *crowd {
		c := world(m, 1000, 1000, fiveSites, 1)
		c.arrive(0, 15*time.Minute, 1771, -1)
		c.arrive(5*time.Minute, 5*time.Minute+30*time.Second, 1200, 3)
		return c
	}, 15*time.Minute)
	bound(t, "even: premature", o[Even].premature, 0.15, 0.35)
	bound(t, "adapted: premature", o[Adapted].premature, 0.10, o[Even].premature)
	bound(t, "counters: premature", o[Counters].premature, 0.03, 0.10)
	bound(t, "counters: overtaken", o[Counters].overtaken, 0.5, 1)
	bound(t, "counters: over active", o[Counters].overActive, 0, 0.01)
}

// 3,000 visitors come in 10 s everywhere, to a room that is used by 8 %. A tenth of the
// workers may each take nearly everything; counters keep the limit.
func TestAdaptedOverAdmitsInAWorldwideSpike(t *testing.T) {
	t.Parallel()
	o := each(t, func(m Method) *crowd {
		c := world(m, 1000, 1000, fiveSites, 1)
		c.arrive(0, 12*time.Minute, 400, -1)
		c.arrive(5*time.Minute, 5*time.Minute+10*time.Second, 3000, -1)
		return c
	}, 12*time.Minute)
	bound(t, "adapted: over active", o[Adapted].overActive, 0.25, 0.7)
	bound(t, "adapted: over minute", o[Adapted].overMinute, 0.25, 0.7)
	for _, m := range []Method{Even, Counters} {
		bound(t, m.String()+": over active", o[m].overActive, 0, 0.01)
		bound(t, m.String()+": over minute", o[m].overMinute, 0, 0.005)
	}
}

// Doors open on 2,400 visitors and 300 may enter per minute. Inside a minute's bucket the
// first to poll wins.
func TestRateBoundOpening(t *testing.T) {
	t.Parallel()
	o := each(t, func(m Method) *crowd {
		c := world(m, 5000, 300, fiveSites, 1)
		c.arrive(0, time.Minute, 2400, -1)
		return c
	}, 8*time.Minute)
	bound(t, "adapted: over minute", o[Adapted].overMinute, 0.2, 0.9)
	bound(t, "counters: over minute", o[Counters].overMinute, 0, 0.02)
	for _, m := range []Method{Even, Adapted, Counters} {
		bound(t, m.String()+": overtaken", o[m].overtaken, 0.5, 1)
	}
}

// People who have left keep their places for five minutes; the next bucket waits for them
// while slots are free.
func TestThoseWhoLeftBlockTheNextBucket(t *testing.T) {
	t.Parallel()
	s := tenAtOnce
	s.TotalActiveUsers = 0
	r := New(Config{Settings: s})
	r.Tick(morning)
	for n := range byte(10) {
		r.Visit(morning.Add(30*time.Second), 0, 0, newcomer(n)) // and none of them comes back
	}
	patient, _ := r.Visit(morning.Add(61*time.Second), 0, 0, newcomer(10))
	s.TotalActiveUsers = 10
	r.Configure(morning.Add(61*time.Second), s)
	entered := time.Duration(0)
	for at := 62 * time.Second; at < 10*time.Minute && entered == 0; at += time.Second {
		now := morning.Add(at)
		r.Tick(now)
		if now < patient.Ticket.Next {
			continue
		}
		if patient, _ = r.Visit(now, 0, 0, anteroom.Visit{Ticket: patient.Ticket}); patient.Verdict == anteroom.Admit {
			entered = at
		}
	}
	bound(t, "minutes until the next bucket enters", entered.Minutes(), 4.9, 6.5)
}

// Requests at the same time with one cookie are each counted: the cookie is the memory.
func TestParallelRequestsCountAgain(t *testing.T) {
	t.Parallel()
	r := New(Config{Settings: tenAtOnce})
	ticket := fill(t, r, morning, 0, 0, 1)[0]
	for _, at := range []time.Duration{40 * time.Second, 80 * time.Second, 120 * time.Second} {
		now := morning.Add(at)
		r.Tick(now)
		var d anteroom.Decision
		for range 6 {
			d, _ = r.Visit(now, 0, 0, anteroom.Visit{Ticket: ticket})
		}
		ticket = d.Ticket
	}
	if got := r.refresh(morning.Add(121*time.Second), r.sites[0].workers[0]).slots; got != 4 {
		t.Errorf("%d slots are free: one user, six requests, ten seats; want 4", got)
	}
}
