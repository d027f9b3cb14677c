package analytics

var metricWords = [Metrics]string{ActiveUsers: "active_users", QueuedUsers: "queued_users", Estimate: "estimate_seconds",
	ActiveLimit: "active_limit", NewLimit: "new_limit", SessionDuration: "session_duration_seconds",
	NewUsers: "new_users", Joined: "joined", Abandoned: "abandoned", NoShows: "no_shows", Overtakes: "overtakes",
	Revoked: "revoked", Bypassed: "bypassed", Refused: "refused", TurnedAway: "turned_away",
	ChallengesIssued: "challenges_issued", ChallengesSolved: "challenges_solved", ChallengesUnsolved: "challenges_unsolved",
	ChallengesFailed: "challenges_failed", ChallengesWaived: "challenges_waived", ChallengesHeld: "challenges_held"}

// String returns the metric's word, as used in series.
func (m Metric) String() string {
	if m < Metrics {
		return metricWords[m]
	}
	return "invalid"
}

var spanWords = [Spans]string{Waited: "waited", InQueue: "in_queue", OnOrigin: "on_origin",
	BetweenRefreshes: "between_refreshes", Late: "late", Early: "early"}

// String returns the distribution's word, as used in series.
func (s Span) String() string {
	if s < Spans {
		return spanWords[s]
	}
	return "invalid"
}
