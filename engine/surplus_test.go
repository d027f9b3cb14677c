package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// While nobody waits, units that a site does not need travel with its heartbeat. As soon as somebody
// waits anywhere they travel at once, those of before included.
func TestSurplusOfAnOpenRoomTravelsWithTheHeartbeat(t *testing.T) {
	t.Parallel()
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 100})
	hear := func(mode Mode, target uint64) {
		s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{20, 20}, Mode: mode, Target: target,
			Figures: &Figures{At: now, Step: baseStep}, Sites: 2})
	}
	hear(Open, 20)
	if _, any := s.Report(now); !any {
		t.Fatal("the site does not report")
	}
	hear(Open, 5)
	for beat := now.Add(heartbeatOpen); now < beat; now = now.Add(flushEvery) {
		s.Tick(now)
		if r, any := s.Report(now); any {
			t.Fatalf("after %v the site reports %v returned", now.Sub(midnight), r.Returned)
		}
	}
	if r, any := s.Report(now); !any || r.Returned != (Units{15, 15}) {
		t.Fatalf("the heartbeat says that %v were returned", r.Returned)
	}
	hear(Open, 2)
	if _, any := s.Report(now); any {
		t.Fatal("the site does not wait for the heartbeat")
	}
	hear(Queue, 2)
	if r, any := s.Report(now); !any || r.Returned != (Units{20, 20}) {
		t.Fatalf("somebody waits, and the site says that %v were returned", r.Returned)
	}
	hear(Open, 0)
	s.Report(now.Add(time.Hour))
	hear(Queue, 0)
	if _, any := s.Report(now); any {
		t.Error("the site repeats at once what it has reported")
	}
}
