package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// The list of revoked sessions has a bound: beyond it, the newest are on it, and it says that there are more.
func TestRevokedHasABound(t *testing.T) {
	t.Parallel()
	set := anteroom.Settings{TotalActiveUsers: 2 * MaxRevoked, NewUsersPerMinute: 2 * MaxRevoked, SessionDuration: time.Minute, Pass: 10 * time.Second}
	s := Takeover{Key: SiteKey{Name: "a", Incarnation: 1}, Term: 7, Settings: set}.Desk(midnight).Site()
	number := func(n int) anteroom.ID { return anteroom.ID{1, byte(n), byte(n >> 8)} }
	end := func(n int) {
		s.Restore(Event{Kind: EventEnded, ID: number(n), Lane: laneRevoked, At: midnight, Key: midnight.Add(15 * time.Second)}, 0, 0)
	}
	for n := range MaxRevoked {
		end(n)
	}
	if ids, complete := s.Revoked(); len(ids) != MaxRevoked || !complete || ids[0] != number(MaxRevoked-1) {
		t.Errorf("%d revoked, complete: %v", len(ids), complete)
	}
	end(MaxRevoked)
	if ids, complete := s.Revoked(); len(ids) != MaxRevoked || complete || ids[0] != number(MaxRevoked) || ids[len(ids)-1] != number(1) {
		t.Errorf("%d revoked of one more, complete: %v", len(ids), complete)
	}
}
