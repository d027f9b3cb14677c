package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A shuffle replaces the arrivals: what is counted is the time since it, and no forecast is compared.
func TestWaitsOfTheShuffled(t *testing.T) {
	const at = anteroom.Time(1_000_000_000)
	s := NewSite(at, SiteKey{Name: "here"}, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1})
	s.KeepTally()
	told := &anteroom.Decision{WaitKnown: true, WaitTime: time.Minute}
	early, late := at.Add(-5*time.Minute), at.Add(time.Minute)
	s.shown(early, 0, told)
	s.shown(late, 0, told)
	s.shuffled = at
	now := at.Add(3 * time.Minute)
	s.entered(now, early, true)
	s.entered(now, late, true)
	got := s.TakeTally()
	if want := []time.Duration{3 * time.Minute, 2 * time.Minute}; !slices.Equal(got.Waited, want) {
		t.Errorf("waited %v, want %v", got.Waited, want)
	}
	if want := []time.Duration{time.Minute}; !slices.Equal(got.Late, want) || len(got.Early) > 0 {
		t.Errorf("late %v, early %v, want late %v", got.Late, got.Early, want)
	}
}
