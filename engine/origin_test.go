package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// TestThrottleStaysBetweenFloorAndLimit: whatever gateways report and operators set, and however long
// nobody looks, the pace is between floor and limit, is cut by half at most, and not twice within
// paceSettle unless the origin is down.
func TestThrottleStaysBetweenFloorAndLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x throttle
		now, cut := midnight, anteroom.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "later")))
			s := anteroom.Settings{Protect: rapid.Bool().Draw(t, "protect"), NewUsersPerMinute: rapid.IntRange(0, 10_000).Draw(t, "limit"),
				ProtectFloor: rapid.IntRange(0, 20_000).Draw(t, "floor"), ProtectErrors: rapid.IntRange(1, 100).Draw(t, "errors"), ProtectLatency: time.Second}
			requests := rapid.Uint32Range(0, 1000).Draw(t, "requests")
			f := OriginFacts{Known: rapid.Bool().Draw(t, "known"), Down: rapid.Bool().Draw(t, "down"), Requests: requests,
				Failed: rapid.Uint32Range(0, requests).Draw(t, "failed"), P95: time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "p95"))}
			before := x
			x.decide(now, &s, f, rapid.Float64Range(0, 10_000).Draw(t, "actual"))
			if !x.on() {
				continue
			}
			floor := max(1, float64(s.NewUsersPerMinute)/10)
			if s.ProtectFloor > 0 {
				floor = float64(s.ProtectFloor)
			}
			floor = min(floor, float64(s.NewUsersPerMinute))
			if x.perMinute > float64(s.NewUsersPerMinute) || x.perMinute < floor && before.perMinute >= floor {
				t.Fatalf("%v a minute, limit %d, floor %v", x.perMinute, s.NewUsersPerMinute, floor)
			}
			if !s.Protect {
				t.Fatal("a room that does not protect its origin admits fewer")
			}
			if x.why == anteroom.PaceOriginErrors || x.why == anteroom.PaceOriginSlow {
				if x.cut != before.cut {
					if before.cut != 0 && now.Sub(cut) < paceSettle {
						t.Fatalf("cut again after %v", now.Sub(cut))
					}
					cut = now
				}
			}
		}
	})
}

// TestThrottleRecovers: from the floor to the limit takes as many steps as promised, also when nobody
// looked in between.
func TestThrottleRecovers(t *testing.T) {
	t.Parallel()
	s := anteroom.Settings{Protect: true, NewUsersPerMinute: 1000, ProtectErrors: 10}
	for _, every := range []time.Duration{time.Second, PaceEvery, time.Minute} {
		var x throttle
		now := midnight
		x.decide(now, &s, OriginFacts{Known: true, Down: true}, 0)
		if x.perMinute != 100 || x.why != anteroom.PaceOriginDown {
			t.Fatalf("%v a minute while the origin is down: %v", x.perMinute, x.why)
		}
		for x.on() {
			now = now.Add(every)
			x.decide(now, &s, OriginFacts{Known: true, Requests: 50}, 0)
		}
		if took, most := now.Sub(midnight), (paceSteps-1)*PaceEvery+2*every; took > most || took < most-3*every-PaceEvery {
			t.Errorf("looked at every %v: recovered after %v, want about %v", every, took, most)
		}
	}
}

// TestThrottleFloor: an origin that is bad for ever brings the pace down to the floor that the operator has set, and no further.
func TestThrottleFloor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, floor int
		want         float64
	}{{1000, 0, 100}, {5, 0, 1}, {1000, 30, 30}, {1000, 1000, 1000}, {200, 300, 200}, {0, 5, 0}} {
		s := anteroom.Settings{Protect: true, NewUsersPerMinute: c.limit, ProtectErrors: 10, ProtectFloor: c.floor}
		var x throttle
		for now := midnight; now < midnight.Add(5*time.Minute); now = now.Add(PaceEvery) {
			x.decide(now, &s, OriginFacts{Known: true, Requests: 100, Failed: 50}, float64(c.limit))
		}
		if x.perMinute != c.want {
			t.Errorf("a limit of %d and a floor of %d: %v a minute, want %v", c.limit, c.floor, x.perMinute, c.want)
		}
	}
}

// TestThrottleNeedsEvidence: few requests, however slow, and those of a gateway that forwards nothing
// are no reason to admit fewer.
func TestThrottleNeedsEvidence(t *testing.T) {
	t.Parallel()
	s := anteroom.Settings{Protect: true, NewUsersPerMinute: 1000, ProtectErrors: 10, ProtectLatency: time.Second}
	for want, f := range map[anteroom.PaceReason]OriginFacts{
		anteroom.PaceLimits:       {Known: true, Requests: paceSample - 1, Failed: paceSample - 1, P95: time.Minute},
		anteroom.PaceOriginErrors: {Known: true, Requests: 100, Failed: 11, P95: time.Minute},
		anteroom.PaceOriginSlow:   {Known: true, Requests: 100, Failed: 10, P95: 1001 * time.Millisecond},
	} {
		if got := exceeded(&s, f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

func TestOriginFactsOfSeveral(t *testing.T) {
	t.Parallel()
	down, up := OriginFacts{Known: true, Down: true}, OriginFacts{Known: true, Requests: 1000, Failed: 10, P95: time.Second}
	few := OriginFacts{Known: true, Requests: 3, P95: time.Minute}
	for _, c := range []struct{ a, b, want OriginFacts }{
		{down, OriginFacts{}, down},
		{down, down, down},
		{down, up, up},
		{up, few, OriginFacts{Known: true, Requests: 1003, Failed: 10, P95: time.Second}},
	} {
		if got := c.a.Plus(c.b); got != c.want {
			t.Errorf("%+v and %+v: %+v", c.a, c.b, got)
		}
		if got := c.b.Plus(c.a); got != c.want {
			t.Errorf("%+v and %+v: %+v", c.b, c.a, got)
		}
	}
}
