package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A restored site counts what its journal holds until it hears how late it is; then what is
// over ends at once. Whoever was seen before that was seen at most then.
func TestRestoredSiteLearnsTheTime(t *testing.T) {
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: time.Minute})
	over, seen := anteroom.ID{1}, anteroom.ID{2}
	for _, id := range []anteroom.ID{over, seen} {
		s.Restore(Event{Kind: EventAdmitted, ID: id, At: midnight}, 0, 0)
	}
	s.Restored(midnight)
	s.Touch(midnight.Add(time.Second), []anteroom.ID{seen})
	now := midnight.Add(time.Hour)
	s.Receive(now, State{Epoch: 1, Now: now, Granted: Units{2, 2}, Mode: Queue, Figures: &Figures{At: now, Step: baseStep}})
	if _, here := s.Session(over); here || s.balance.Used != (Units{1, 0}) {
		t.Errorf("after the first word the site uses %v", s.balance.Used)
	}
	if got, here := s.Session(seen); !here || got.LastSeen != now {
		t.Errorf("the session that was seen is %+v", got)
	}
	events := s.TakeEvents()
	if n := len(events); n == 0 || events[n-1].Kind != EventTouched || events[n-1].At != now {
		t.Errorf("recorded: %+v", events)
	}
}
