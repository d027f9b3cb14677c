package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestForecastSteady runs a site with more demand than room for half an hour and compares
// what newcomers were told with when they entered.
func TestForecastSteady(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, c := range map[string]struct {
		s     anteroom.Settings
		stays time.Duration // mean time inside before the last request
		rate  float64       // arrivals per second
	}{
		"seats bound": {anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 300, SessionDuration: time.Minute}, time.Minute, 1},
		"rate bound":  {anteroom.Settings{TotalActiveUsers: 100_000, NewUsersPerMinute: 60, SessionDuration: time.Minute}, time.Minute, 1.2},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			w := newTrial(t, c.s)
			w.hasty = true
			leaves := map[*visitor]anteroom.Time{}
			told := map[*visitor]time.Duration{}
			for end := w.now.Add(30 * time.Minute); w.now < end; w.pass(100 * time.Millisecond) {
				if rng.Float64() < c.rate/10 {
					w.arrive()
				}
				for _, v := range w.people {
					if !v.inside {
						if v.held == 0 && !v.streams && v.entered == 0 { // the page has been shown
							if d := v.latest; d.WaitKnown && d.WaitTime >= 30*time.Second {
								told[v] = d.WaitTime + d.At.Sub(v.arrived)
							}
							w.open(v)
						}
						continue
					}
					if leaves[v] == 0 {
						leaves[v] = w.now.Add(time.Duration(2 * rng.Float64() * float64(c.stays)))
					}
					if w.now < leaves[v] && w.now.Sub(v.last) > w.set.SessionDuration/4 {
						w.visit(v)
					}
				}
			}
			var errors []float64
			bias := 0.0
			for v, told := range told {
				if v.entered != 0 {
					e := told.Seconds()/v.entered.Sub(v.arrived).Seconds() - 1
					errors = append(errors, math.Abs(e))
					bias += e
				}
			}
			if len(errors) < 200 {
				t.Fatalf("only %d waits were told and ended", len(errors))
			}
			slices.Sort(errors)
			median := errors[len(errors)/2]
			t.Logf("%d waits told: median error %.1f %%, 80 %% within %.1f %%, bias %+.1f %%", len(errors), 100*median,
				100*errors[len(errors)*8/10], 100*bias/float64(len(errors)))
			if median > 0.15 {
				t.Errorf("the median error is %.1f %%, 15 %% are allowed", 100*median)
			}
		})
	}
}

// TestForecastCohort: people who came together are expected to go together, which no
// average of past minutes can know.
func TestForecastCohort(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 50, NewUsersPerMinute: 1000, SessionDuration: 5 * time.Minute, DisableSessionRenewal: true, Unpaced: true})
	w.hasty = true
	for range 100 {
		v := w.arrive()
		w.openHeld(v)
	}
	w.pass(5*time.Minute + 10*time.Second)
	if n := len(w.entered); n != 100 {
		t.Fatalf("%d entered, the second fifty should be inside", n)
	}
	next := anteroom.Time(0)
	for at := range []int{0, 1, 2, 3} { // at any time until they leave, the wait ends with them
		w.pass(time.Minute)
		v := w.arrive()
		w.openHeld(v)
		if !v.latest.WaitKnown {
			t.Fatalf("minute %d: no wait is told", at)
		}
		next = w.entered[50].Add(w.set.SessionDuration)
		want := next.Sub(w.now)
		if diff := (v.latest.WaitTime - want).Abs(); diff > want*15/100+3*time.Second {
			t.Errorf("minute %d: told %v, the seats come free in %v", at, v.latest.WaitTime, want)
		}
	}
}

// TestForecastAfterRestart: a new process knows from the sessions when they will end, as
// soon as it has seen enough of them end.
func TestForecastAfterRestart(t *testing.T) {
	var f forecast
	f.configure(5 * time.Minute)
	f.seat(midnight, []AgeCount{{Age: 30, Count: 50}})
	f.endsAll = knownEnds
	out := &Figures{Waiting: 10}
	f.write(midnight, out, capacity{limit: [units]float64{50, 600}, free: [units]float64{0, 600}})
	out.CurveAt = midnight
	// 30 steps of 5 s old: the session duration is reached after another 30.
	if got := out.WaitOf(0, midnight); got < 150*time.Second || got > 180*time.Second {
		t.Errorf("the first seat is expected after %v, sessions reach their end after 150 s", got)
	}
}

func TestForecastUnknown(t *testing.T) {
	full := anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60}
	w := newTrial(t, full)
	w.arrive()
	v := w.arrive()
	w.openHeld(v)
	if v.latest.WaitKnown {
		t.Errorf("told %v though no session has ever ended", v.latest.WaitTime)
	}
	all := anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 60, QueueAll: true}
	w = newTrial(t, all)
	v = w.arrive()
	if v.latest.WaitKnown || v.latest.Verdict != anteroom.Wait {
		t.Errorf("queue-all: %v, wait known: %v", v.latest.Verdict, v.latest.WaitKnown)
	}
	// Twenty sessions have ended, and now nobody may enter: no time is told.
	w = newTrial(t, anteroom.Settings{TotalActiveUsers: 30, NewUsersPerMinute: 60, SessionDuration: time.Second})
	for range 25 {
		w.arrive()
	}
	w.pass(2 * time.Second)
	none := w.set
	none.TotalActiveUsers = 0
	w.configure(none)
	v = w.arrive()
	w.openHeld(v)
	if v.latest.WaitKnown || !v.latest.QueueIsFull {
		t.Errorf("with a limit of 0: wait known %v (%v), line full %v", v.latest.WaitKnown, v.latest.WaitTime, v.latest.QueueIsFull)
	}
}

// TestLeaveRate: who closes the page counts as gone; who comes back was not.
func TestLeaveRate(t *testing.T) {
	w := newTrial(t, anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 60})
	for range 100 {
		w.open(w.arrive())
	}
	w.pass(time.Minute)
	for _, v := range w.people[:5] {
		w.close(v)
	}
	w.pass(time.Minute)
	f := &w.room.coordinator.forecast
	if got := f.leaveRate() * 60; got < 0.02 || got > 0.03 {
		t.Errorf("5 of 100 left within two minutes: %.4f per minute", got)
	}
	for _, v := range w.people[:5] {
		w.open(v)
	}
	w.pass(time.Second)
	if got := f.leaveRate() * 60; got > 0.001 {
		t.Errorf("everybody is back: %.4f per minute", got)
	}
}

// TestForecastQuartilesAscend: of a draw, whether its quartiles are found within the horizon,
// beyond it or on both sides, each is later than the one before.
func TestForecastQuartilesAscend(t *testing.T) {
	for _, c := range []struct {
		waiting   int
		perMinute float64
		joins     float64 // per second
	}{
		{100, 60, 0}, {5_000, 60, 0}, {9_000, 60, 0}, {12_000, 60, 5}, {20_000, 60, 0}, {1_000_000, 60, 100}, {38_000, 250, 60}, {1, 1, 0}, {50, 1, 0.5},
	} {
		var f forecast
		f.configure(time.Minute)
		f.endsAll, f.joins = knownEnds, c.joins
		out := &Figures{Waiting: c.waiting}
		f.write(midnight, out, capacity{limit: [units]float64{1e6, c.perMinute}, free: [units]float64{1e6, c.perMinute}, burst: max(5, c.perMinute/30), rate: 2 * c.perMinute / 60})
		t.Logf("%d waiting, %v a minute: %v", c.waiting, c.perMinute, out.Draw)
		if d := out.Draw; d[0] <= 0 || d[1] < d[0] || d[2] < d[1] {
			t.Errorf("%d waiting, %v a minute, %v join a second: the quartiles are %v", c.waiting, c.perMinute, c.joins, d)
		}
	}
}

// TestForecastKnowsTheStepUnderWay: slots that were taken a moment ago come free RateHold later, also
// where steps are long, and those that are not reported yet are known from the ledger.
func TestForecastKnowsTheStepUnderWay(t *testing.T) {
	for _, session := range []time.Duration{time.Minute, 30 * time.Minute} {
		for _, reported := range []uint32{0, 60} {
			var f forecast
			f.configure(session)
			now := midnight.Add(3 * time.Second)
			f.observe(now, reported, nil)
			out := &Figures{Waiting: 10, CurveAt: now}
			f.write(now, out, capacity{limit: [units]float64{1000, 60}, free: [units]float64{940, 0}})
			if got := out.WaitOf(0, now); got < RateHold-time.Second || got > RateHold+4*time.Second {
				t.Errorf("sessions of %v, %d reported: the first slot is expected after %v", session, reported, got)
			}
			if reach := time.Duration(len(out.Curve)) * out.Step; reach < leastCurve-out.Step {
				t.Errorf("the curve covers %v", reach)
			}
		}
	}
}

// TestLongLineAtTheRate: slots are held for a little more than a minute, and that is all of the margin. The
// curve of a long line has wider steps, not more of them.
func TestLongLineAtTheRate(t *testing.T) {
	for _, c := range []struct {
		waiting int
		minutes float64
	}{{waiting: 5000, minutes: 5}, {waiting: 20_000, minutes: 20}} {
		var f forecast
		f.configure(time.Minute)
		out := &Figures{Waiting: c.waiting, CurveAt: midnight}
		f.write(midnight, out, capacity{limit: [units]float64{1e6, 600}, free: [units]float64{1e6, 600}})
		want := time.Duration(c.minutes * float64(RateHold))
		if got := out.WaitOf(600*c.minutes, midnight); got < want-out.Step || got > want+out.Step {
			t.Errorf("%v minutes' worth of others are ahead, and the turn is expected after %v", c.minutes, got)
		}
		if len(out.Curve) >= mostPoints || !slices.IsSorted(out.Curve) || out.short(c.waiting, f.reach()) {
			t.Errorf("the curve of %d has %d points and ends at %v", c.waiting, len(out.Curve), out.Curve[len(out.Curve)-1])
		}
	}
}

// TestBoundsOfARush: before any session has ended, everybody in the line of an opening hears what the
// limits say, and enters within it: those for whom a seat is free a forecast by the rate, the others when
// it can be at the earliest and, where sessions end by themselves, at the latest.
func TestBoundsOfARush(t *testing.T) {
	for name, s := range map[string]anteroom.Settings{
		"seats, renewed":         {TotalActiveUsers: 40, NewUsersPerMinute: 20},
		"seats, ended":           {TotalActiveUsers: 20, NewUsersPerMinute: 20, SessionDuration: 5 * time.Minute, DisableSessionRenewal: true},
		"seats, ended at once":   {TotalActiveUsers: 20, NewUsersPerMinute: 200, SessionDuration: 2 * time.Minute, DisableSessionRenewal: true, Unpaced: true},
		"rate, ended":            {TotalActiveUsers: 60, NewUsersPerMinute: 20, SessionDuration: time.Minute, DisableSessionRenewal: true},
		"seats for all, renewed": {TotalActiveUsers: 1000, NewUsersPerMinute: 30, SessionDuration: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, s)
			w.hasty = true
			type told struct {
				v           *visitor
				at          anteroom.Time
				least, most time.Duration
			}
			var all []told
			for range 120 {
				v := w.arrive()
				w.openHeld(v)
				w.pass(50 * time.Millisecond)
				switch d := v.latest; {
				case v.inside:
				case d.WaitKnown:
					if d.Ahead >= s.TotalActiveUsers {
						t.Fatalf("%d ahead, and a forecast before anybody has left: %v", d.Ahead, d.WaitTime)
					}
					all = append(all, told{v, w.now, d.WaitTime - d.WaitTime/7 - 3*time.Second, d.WaitTime + d.WaitTime/4 + 3*time.Second})
				case d.Wait25 == 0:
					t.Fatalf("%d ahead: nothing is told", d.Ahead)
				default:
					if (d.Wait75 != 0) != s.DisableSessionRenewal {
						t.Fatalf("%d ahead: at most %v", d.Ahead, d.Wait75)
					}
					all = append(all, told{v, w.now, d.Wait25, d.Wait75})
				}
			}
			if n := len(all); n < 60 {
				t.Fatalf("%d wait", n)
			}
			w.pass(40 * time.Minute)
			for _, c := range all {
				took := c.v.entered.Sub(c.at)
				switch {
				case !c.v.inside && c.v.entered == 0:
					if c.most != 0 {
						t.Errorf("%d has not entered, told at most %v", c.v.n, c.most)
					}
				case took < c.least, c.most != 0 && took > c.most:
					t.Errorf("%d entered after %v, told %v to %v", c.v.n, took, c.least, c.most)
				}
			}
		})
	}
}

// TestForecastOfANewCoordinator: where the rate bounds admission, the next turns come when the admissions of the last minute
// are a minute old, and a coordinator that takes over hears when that is.
func TestForecastOfANewCoordinator(t *testing.T) {
	e := newTrio(t)
	e.set.TotalActiveUsers, e.set.FirstSession = 1000, time.Minute
	for _, s := range e.sites {
		s.Configure(e.now, e.set)
	}
	e.c.Configure(e.now, e.set)
	for n := range byte(60) {
		id := anteroom.ID{n + 1}
		e.sites[n%3].Visit(e.now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: id}, NewID: id})
		e.run(time.Second)
	}
	for n := range byte(30) {
		e.sites[n%3].Polls(e.now, []Poll{{ID: anteroom.ID{100 + n}, Key: e.now.Add(time.Duration(n)), Due: e.now.Add(time.Minute)}})
	}
	e.run(3 * time.Second)
	told := func() time.Duration {
		wait, known := e.c.figures.Told(9, e.now)
		if !known || e.c.figures.Waiting < 15 {
			t.Fatalf("%d wait, wait known: %v", e.c.figures.Waiting, known)
		}
		return wait
	}
	before := told()
	e.c = NewCoordinator(e.now, e.set, e.record, []byte("seed"))
	for i, s := range e.sites { // its first word from a site is a heartbeat that was meant for the one before
		s.urgent = true
		e.up(i)
	}
	e.run(3 * time.Second)
	// Nobody in line is here, so that units come free meanwhile, one per second.
	if after := told(); before < 5*time.Second || before > 12*time.Second || after < before-4*time.Second || after > before {
		t.Errorf("the tenth in line is told %v, and %v three seconds later by another coordinator", before, after)
	}
}
