package engine

import "github.com/anteroom/anteroom"

// holding says why everybody without a session is held, whatever the method; ReasonNone when
// they are not.
func holding(s *anteroom.Settings) anteroom.Reason {
	switch {
	case s.QueueAll:
		return anteroom.ReasonQueueAll
	case s.Prequeueing:
		return anteroom.ReasonPrequeue
	}
	return anteroom.ReasonNone
}

func held(s *anteroom.Settings) bool { return s.QueueAll || s.Prequeueing }

// closed reports that nobody who waits may enter, but by a turn that the operator gave.
func closed(s *anteroom.Settings) bool { return held(s) || s.QueueingMethod == anteroom.Reject }

// void says that a place of this arrival was taken away by a reset of the line.
func void(s *anteroom.Settings, arrival anteroom.Time) bool { return arrival < s.ResetAt }

// free says that whoever comes may go on at once.
func free(s *anteroom.Settings) bool {
	return s.Suspended || !held(s) && s.QueueingMethod == anteroom.Passthrough
}
