package server

import "github.com/anteroom/anteroom/internal/exposition"

// Metrics begin with the name of the program, as Prometheus advises. For one release they are there under their
// former prefix, too.
const (
	prefix    = "anteroom_"
	oldPrefix = "wr_"
)

// families are all of ours, in the order of the file below: what docs/monitoring.md has a row for.
var families []*exposition.Family

func declare(kind exposition.Kind, name, help string, labels ...string) *exposition.Family {
	f := exposition.New(kind, prefix+name, help, labels...)
	families = append(families, f)
	return f
}

func gauge(name, help string, labels ...string) *exposition.Family {
	return declare(exposition.Gauge, name, help, labels...)
}
func counter(name, help string, labels ...string) *exposition.Family {
	return declare(exposition.Counter, name, help, labels...)
}
func histogram(name, help string, labels ...string) *exposition.Family {
	return declare(exposition.Histogram, name, help, labels...)
}

// Metrics of a room as a whole, from the process that answers for the room: a standalone process, or the room's
// coordinator.
var (
	mRoomInfo    = gauge("room_info", "Always 1; the labels have the room's zone and name.", "room", "zone", "name")
	mActive      = gauge("active_sessions", "Number of active users.", "room")
	mLimitActive = gauge("limit_active", "Active user limit.", "room")
	mLimitNew    = gauge("limit_new_per_minute", "Limit of new users in any 60 seconds.", "room")
	mRecent      = gauge("new_sessions_last_minute", "New users in the last 60 seconds.", "room")
	mWaiting     = gauge("waiting", "Visitors in the queue. present: in touch. unproven: have yet to come back for the first time. away: not in touch, within the place hold.", "room", "state")
	mLane        = gauge("lane_waiting", "Visitors in the queue who are present, by the lane of the room.", "room", "lane")
	mOffered     = gauge("offered_turns", "Visitors who have been called and are not admitted yet.", "room")
	mOldest      = gauge("oldest_waiting_seconds", "How long the first visitor in the queue has waited; 0 while the queue is empty.", "room")
	mForecast    = gauge("wait_forecast_seconds", "Estimated wait of a visitor who joins the queue now; absent while unknown.", "room")
	mHeld        = gauge("held", "1 while all admissions from the queue are stopped: by queue_all, pause, a prequeue, reject, or protect while no origin is healthy.", "room")
	mEvent       = gauge("event_phase", "Phase of the current event: 0 none, 1 prequeueing, 2 started.", "room")
	mPace        = gauge("pace_per_minute", "New users per minute that the room admits at the moment: the limit, or less while it protects its origin.", "room")
	mPaceReason  = gauge("pace_reduced", "1 while the room protects its origin by admitting fewer than its limit, else 0 with the reason limits; otherwise the reason is origin_down, origin_errors, origin_slow or origin_recovering.", "room", "reason")
	mMethod      = gauge("queueing_method", "1 for the queueing method in force.", "room", "method")
)

// Metrics of a room at one process. Their sum over all processes is the room's.
var (
	mDecisions     = counter("decisions_total", "Decisions about requests.", "room", "verdict", "reason")
	mAdmitted      = counter("admitted_total", "Admissions. queue: from the queue. direct: without waiting. adopted: from a cookie that a restarted process did not know. bypass: requests that bypassed the room.", "room", "via")
	mEarly         = counter("early_polls_total", "Check-ins before the announced time; they change nothing.", "room")
	mBypassed      = counter("bypassed_total", "Requests that bypassed the room.", "room", "reason")
	mRejected      = counter("tickets_rejected_total", "Cookies that are not valid tickets.", "room", "reason")
	mSessions      = counter("sessions_total", "Sessions that started.", "room")
	mJoined        = counter("joined_total", "Visitors who joined the queue.", "room")
	mAbandoned     = counter("abandoned_total", "Visitors who left the queue, or did not return within the place hold.", "room")
	mNoShows       = counter("no_shows_total", "Visitors who were called and did not come in time.", "room")
	mOvertakes     = counter("overtakes_total", "Visitors admitted without being called while others in touch waited at the same site.", "room")
	mRevoked       = counter("revoked_sessions_total", "Sessions that the origin or an operator ended.", "room")
	mChallenges    = counter("challenges_total", "Challenges. issued: in a page. solved: visitors who solved theirs. unsolved: requests of visitors who were asked and have not answered. failed: wrong answers. waived: visitors who waited so long that they no longer have to solve one, or whose token a hook with fail_open could not verify. held: requests of visitors who are not admitted until they solve it.", "room", "result")
	mWait          = histogram("wait_seconds", "Time from arrival to admission, for visitors admitted from the queue.", "room")
	mSession       = histogram("session_seconds", "Time from admission to the last request, for sessions that ended.", "room")
	mEstimateError = histogram("estimate_error_seconds", "Actual wait minus the first estimate that the visitor saw; negative when the wait was shorter.", "room")
)

// Metrics of a room at one site of a cluster, from the process that has the site's role.
var (
	mLeaseSlots = gauge("lease_slots", "Seats that the coordinator has lent to this site. used: by sessions. offered: reserved for visitors who were called. free: neither.", "room", "state")
	mLeaseAge   = gauge("lease_age_seconds", "Time since the coordinator last answered this site; 0 while it answers.", "room")
)

// Metrics of a process.
var (
	mRequests      = counter("requests_total", "Requests from visitors.")
	mUncovered     = counter("uncovered_requests_total", "Requests that no room covers.")
	mPasses        = counter("passes_issued_total", "Passes issued to active users, with which edges send their requests straight to the origin.")
	mTouches       = counter("edge_touches_total", "Requests that edges admitted by a pass and reported, by result: taken, ticket (not a ticket of the room, or its visitor waits), age (more than 10 s ago), session (has ended, or the node cannot ask), rate (too many).", "result")
	mPassesShown   = counter("passes_presented_total", "Requests that reached Anteroom with a pass. fresh: more than half of its time was left. late: half or less. over: it had expired, or was for another key or room.", "left")
	mQuestions     = counter("edge_questions_total", "Questions of proxies that keep the traffic and ask about each request (forward_auth).", "edge")
	mShared        = counter("shared_sessions_total", "Sessions used from more networks than session_networks, by what was done about them.", "action")
	mMoves         = counter("moves_total", "Places that visitors wanted to move to another device, by result: accepted, refused (the link was used or is too old, or the place no longer exists), limited (too many from the address) and failed (the store did not answer).", "result")
	mPushes        = counter("push_messages_total", "Web push messages about visitors' turns, by result: sent, gone (the browser had ended the subscription) and failed (the push service did not accept it before the turn ended).", "result")
	mSubscriptions = gauge("push_subscriptions", "Visitors subscribed to web push, in all rooms.")
	mAccounts      = counter("account_tokens_total", "Requests in rooms with accounts, by their token: none (missing or not valid), unchecked (the issuer's keys are not known yet), expired (accepted with a ticket of the account) and valid.", "result")
	mInvites       = counter("invite_codes_total", "Invite codes from visitors, by result: accepted, refused (unknown, spent, expired), limited (too many wrong codes from the address) and failed (the store did not answer).", "result")
	mPreflights    = counter("preflight_requests_total", "CORS preflight requests; they bypass rooms and are not counted.")
	mRefused       = counter("refused_requests_total", "Requests refused by Anteroom: malformed, oversized, or too many.", "status")
	mForeignHops   = counter("ignored_forwarding_headers_total", "Requests with forwarding headers from an address that is not in trusted_proxies.")
	mExhausted     = counter("rules_exhausted_total", "Requests whose rules exceeded their time budget and therefore did not match.")
	mLookups       = counter("crawler_lookups_total", "DNS lookups for addresses that claim to be search-engine crawlers. dropped: too many in flight, not looked up.", "result")
	mCrawlers      = gauge("crawlers_verified", "Addresses verified as search-engine crawlers.")
	mInFlight      = gauge("requests_in_flight", "Requests in flight.")
	mHeldBack      = gauge("requests_held_back", "Requests of active users that wait because too many of their address, session or origin are under way.")
	mStreams       = gauge("streams_open", "Waiting pages with an open stream.")
	mTunnels       = gauge("tunnels_open", "Open WebSocket connections.")
	mSuppressed    = counter("log_lines_suppressed_total", "Access log lines dropped by the rate limit of the log.")
	mGate          = histogram("gate_seconds", "Time from the start of a request to its decision.")
	mOrigin        = histogram("origin_seconds", "Time from sending a request to the origin to its response headers.")
	mOriginAnswers = counter("origin_answers_total", "Requests that an origin answered, with any status.")
	mOriginErrors  = counter("origin_errors_total", "Requests that no origin answered.", "kind")
	mRecords       = counter("journal_records_total", "Journal records written.")
	mBytes         = counter("journal_bytes_total", "Bytes of journal records written.")
	mFailures      = counter("journal_failures_total", "Journal writes that failed and were retried.")
	mLate          = counter("journal_late_total", "Admissions that the journal did not record within a second: the visitors got the waiting page, or were admitted by on_failure.")
	mLost          = counter("journal_lost_events_total", "Events dropped because the journal could not be written for too long.")
	mFailing       = gauge("journal_failing", "1 while the journal cannot be written.")
	mReload        = gauge("config_reload_success", "1 unless the last reload failed.")
	mReloads       = counter("config_reloads_total", "Configuration reloads since the process started.")
	mReady         = gauge("ready", "1 while the process serves requests.")
	mStarted       = gauge("start_time_seconds", "Start time of the process, as a Unix timestamp.")
	mBuild         = gauge("build_info", "Always 1; the labels have the version.", "version", "go")
	mSkew          = gauge("clock_skew_seconds", "How far this machine's clock is ahead of the median of its site; for a standalone process, how far it was set back since the start.")
	mKeyAge        = gauge("key_age_seconds", "Age of the key that seals new tickets.")
	mCertificate   = gauge("certificate_expiry_seconds", "Expiry of the first certificate from a file that expires, as a Unix timestamp.")
	mTraceFailures = counter("trace_exports_failed_total", "Batches of spans that the receiver did not accept.")
)

// Metrics of an origin at one process. The host is the first of its proxied site.
var (
	mOriginUp       = gauge("origin_up", "1 while the origin passes its health check; without one, while it can be reached.", "host", "origin")
	mOriginInFlight = gauge("origin_requests_in_flight", "Requests that the origin is working on.", "host", "origin")
	mOriginRequests = gauge("origin_requests_last_minute", "Requests sent to the origin in the last minute.", "host", "origin")
	mOriginFailed   = gauge("origin_failed_last_minute", "Of these, requests that failed: no connection, no answer, or a status of 500 or above.", "host", "origin")
	mOriginMedian   = gauge("origin_median_seconds", "Median time to the response headers in the last minute; absent without an answer.", "host", "origin")
	mOriginTail     = gauge("origin_tail_seconds", "95th percentile of the time to the response headers in the last minute; absent without an answer.", "host", "origin")
)

// Metrics of the analytics store, from processes that have one.
var (
	mAnalyticsFailing  = gauge("analytics_failing", "1 while the analytics file cannot be written or read.")
	mAnalyticsBytes    = gauge("analytics_bytes", "Size of the analytics file, including its log.")
	mAnalyticsMaxBytes = gauge("analytics_max_bytes", "Maximum size of the analytics file.")
	mAnalyticsWaiting  = gauge("analytics_waiting", "Minutes of processes that are not in the analytics file yet.")
	mAnalyticsLost     = counter("analytics_lost_total", "Minutes of processes dropped because the analytics file could not be written for too long.")
	mAnalyticsRefused  = counter("analytics_refused_total", "Minutes of processes that arrived too late, or from the future.")
)
