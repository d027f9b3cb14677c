package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// holding says why everybody without a session is held, whatever the method; ReasonNone when
// they are not.
func holding(s *anteroom.Settings) anteroom.Reason {
	switch {
	case s.QueueAll:
		return anteroom.ReasonQueueAll
	case s.Prequeueing:
		return anteroom.ReasonPrequeue
	case s.OriginDown:
		return anteroom.ReasonOrigin
	}
	return anteroom.ReasonNone
}

func held(s *anteroom.Settings) bool { return s.QueueAll || s.Prequeueing || s.OriginDown }

// closed reports that nobody who waits may enter, but by a turn that the operator gave.
func closed(s *anteroom.Settings) bool { return held(s) || s.QueueingMethod == anteroom.Reject }

// void says that a place of this arrival was taken away by a reset of the line.
func void(s *anteroom.Settings, arrival anteroom.Time) bool { return arrival < s.ResetAt }

// free says that whoever comes may go on at once.
func free(s *anteroom.Settings) bool {
	return s.Suspended || !held(s) && s.QueueingMethod == anteroom.Passthrough
}

// shut says that nobody who waits may enter, for that reason or because a limit is 0.
func shut(s *anteroom.Settings) bool {
	return closed(s) || s.TotalActiveUsers == 0 || s.NewUsersPerMinute == 0
}

// opens says that other settings let in more than those who wait were told to expect: they are away for longer than the turns
// take to come now.
func opens(before, after *anteroom.Settings) bool {
	more := func(a, b int) bool { return b > a+a/10 }
	return !shut(after) && (shut(before) || more(before.TotalActiveUsers, after.TotalActiveUsers) || more(before.NewUsersPerMinute, after.NewUsersPerMinute))
}

// openedFor is how long those who were told to come back before an opening may still be away: all near the front of a room that is
// shut are told drawInterval, or a sixth more. Until then turns go to those who are due in order, and stand until they come; else
// whoever comes first would enter first, and newcomers before everybody.
const openedFor = drawInterval*7/6 + claimHorizon

// Opening is the planned end of a prequeue.
type Opening struct {
	At anteroom.Time // room time; zero when nothing is planned
	// Shuffled: nobody's place is known before.
	Shuffled bool
}

// openingEvery is how many may come back in a second when a prequeue ends, if that lasts no
// longer than drawInterval.
const openingEvery = time.Second / 1000

// Expect says when the prequeue will end, so that whoever has no stream comes back then: in
// order and a little before the turn can come, for whoever is not there is passed over.
func (s *Site) Expect(o Opening) { s.opening = o }

// untilOpening is when a visitor in the prequeue comes back, after an interval that would do
// otherwise.
func (s *Site) untilOpening(now anteroom.Time, id anteroom.ID, rank int, otherwise time.Duration) time.Duration {
	left := s.opening.At.Sub(now)
	if left <= 0 || left > otherwise+claimHorizon {
		return otherwise
	}
	spread := time.Duration(rank) * 15 * time.Second / time.Duration(max(1, s.settings.NewUsersPerMinute))
	if s.opening.Shuffled || s.settings.QueueingMethod != anteroom.FIFO {
		spread = time.Duration(float64(s.line()) * float64(openingEvery) * (jitter(id, now) - 0.85) / 0.3)
	}
	left += min(spread, drawInterval)
	return (left + time.Second - 1).Truncate(time.Second)
}
