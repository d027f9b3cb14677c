package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A newcomer whose turn is due within a second does not see the page before that second is over.
func TestNewcomerWhoseTurnIsDueIsHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served float32 // in the next five seconds, by the forecast
		hot    int64
		change func(*anteroom.Settings)
		visit  anteroom.Visit
		held   time.Duration
	}{
		"due":                      {served: 500, held: HoldSoon},
		"not due":                  {served: 100},
		"a permit is on its way":   {served: 100, hot: 41, held: HoldSoon},
		"permits for those before": {served: 100, hot: 40, held: holdMax},
		"may not be held":          {served: 500, visit: anteroom.Visit{NoHold: true}},
		"has a stream":             {served: 500, visit: anteroom.Visit{Stream: true}},
		"no turns are given":       {served: 500, change: func(s *anteroom.Settings) { s.QueueAll = true }},
		"turns are drawn":          {served: 500, change: func(s *anteroom.Settings) { s.QueueingMethod = anteroom.Random }},
	} {
		t.Run(name, func(t *testing.T) {
			set := anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 60}
			if c.change != nil {
				c.change(&set)
			}
			now := midnight
			s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, set)
			s.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Sites: 2, Figures: &Figures{At: now, Waiting: 40, Hot: c.hot,
				Known: true, CurveAt: now, Step: baseStep, Curve: []float32{c.served}}})
			c.visit.Fresh, c.visit.NewID = true, anteroom.ID{1}
			c.visit.Ticket.ID = c.visit.NewID
			d, held := s.Visit(now, c.visit)
			if (held != 0) != (c.held > 0) {
				t.Fatalf("the newcomer hears %v", d.Verdict)
			}
			for end := now.Add(2 * time.Second); held != 0 && now < end; now = now.Add(50 * time.Millisecond) {
				if s.Tick(now); len(s.TakeAnswers()) == 0 {
					continue
				}
				if took := now.Sub(midnight); took != c.held {
					t.Errorf("the page is shown after %v", took)
				}
				return
			}
			if held != 0 {
				t.Error("the page is never shown")
			}
		})
	}
}
