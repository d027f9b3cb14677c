package server

import "github.com/prometheus/client_golang/prometheus"

// family is a metric with all its labels: what docs/monitoring.md has a row for.
type family struct {
	name, help string
	kind       string // counter, gauge or histogram
	labels     []string
	desc       *prometheus.Desc
}

// families are all of ours, in the order of the file below.
var families []*family

func declare(kind, name, help string, labels ...string) *family {
	f := &family{name: "wr_" + name, kind: kind, help: help, labels: labels}
	f.desc = prometheus.NewDesc(f.name, help, labels, nil)
	families = append(families, f)
	return f
}

func gauge(name, help string, labels ...string) *family {
	return declare("gauge", name, help, labels...)
}
func counter(name, help string, labels ...string) *family {
	return declare("counter", name, help, labels...)
}
func histogram(name, help string, labels ...string) *family {
	return declare("histogram", name, help, labels...)
}

// Of a room as a whole, shown by the process that answers for it: the one that is alone, or has its
// coordinator.
var (
	mRoomInfo    = gauge("room_info", "1, with the zone and the name of the room.", "room", "zone", "name")
	mActive      = gauge("active_sessions", "Sessions that hold a seat.", "room")
	mLimitActive = gauge("limit_active", "The maximum number of active users.", "room")
	mLimitNew    = gauge("limit_new_per_minute", "New sessions in any 60 seconds that the room allows.", "room")
	mRecent      = gauge("new_sessions_last_minute", "Sessions that began in the last 60 seconds.", "room")
	mWaiting     = gauge("waiting", "Visitors in line: present, in touch; away, with their place kept.", "room", "state")
	mOffered     = gauge("offered_turns", "Turns that were given and not taken yet.", "room")
	mOldest      = gauge("oldest_waiting_seconds", "How long the first in line has waited; 0 when nobody waits.", "room")
	mForecast    = gauge("wait_forecast_seconds", "Forecast of the wait of somebody who joins now; absent while unknown.", "room")
	mHeld        = gauge("held", "1 while the settings let nobody in from the line: queue_all, a pause, a prequeue, reject.", "room")
	mEvent       = gauge("event_phase", "Of the event in force: 0 none, 1 prequeueing, 2 started.", "room")
	mMethod      = gauge("queueing_method", "1 for the method in force.", "room", "method")
)

// Of a room in one process: the sum over the processes is the room's.
var (
	mDecisions     = counter("decisions_total", "Decisions about requests.", "room", "verdict", "reason")
	mAdmitted      = counter("admitted_total", "Admissions: from the line, direct, or adopted from a cookie that a lost memory did not know; by way of bypass, requests that passed untouched.", "room", "via")
	mEarly         = counter("early_polls_total", "Check-ins before their time, which change nothing.", "room")
	mBypassed      = counter("bypassed_total", "Requests that passed the room untouched and uncounted.", "room", "reason")
	mRejected      = counter("tickets_rejected_total", "Cookies that were not accepted as tickets.", "room", "reason")
	mSessions      = counter("sessions_total", "Sessions that began.", "room")
	mJoined        = counter("joined_total", "Visitors who took a place in line.", "room")
	mAbandoned     = counter("abandoned_total", "Places in line that were given up or lapsed.", "room")
	mNoShows       = counter("no_shows_total", "Turns that were not taken in time.", "room")
	mOvertakes     = counter("overtakes_total", "Visitors let in without a turn while somebody in touch was waiting at the same site.", "room")
	mRevoked       = counter("revoked_sessions_total", "Sessions ended by the origin or an operator.", "room")
	mWait          = histogram("wait_seconds", "Of those let in from the line: from arrival to admission.", "room")
	mSession       = histogram("session_seconds", "Of sessions that ended: from admission to the last request.", "room")
	mEstimateError = histogram("estimate_error_seconds", "How much longer those let in have waited than they were told on arrival; negative: less long.", "room")
)

// Of a room's site in a cluster, shown by the process that has its role.
var (
	mLeaseSlots = gauge("lease_slots", "Seats that this site has of the room: used by sessions, set aside for turns that were offered, free.", "room", "state")
	mLeaseAge   = gauge("lease_age_seconds", "How long the coordinator of the room has not answered this site; 0: it does.", "room")
)

// Of a process.
var (
	mRequests      = counter("requests_total", "Requests of visitors.")
	mUncovered     = counter("uncovered_requests_total", "Requests outside every room.")
	mPreflights    = counter("preflight_requests_total", "CORS preflights that passed uncounted.")
	mRefused       = counter("refused_requests_total", "Requests refused before any decision, by status.", "status")
	mForeignHops   = counter("ignored_forwarding_headers_total", "Requests with forwarding headers from a peer that is not among trusted_proxies.")
	mExhausted     = counter("rules_exhausted_total", "Requests for which rules did not match because they would have taken too long.")
	mLookups       = counter("crawler_lookups_total", "Addresses of claimed search-engine crawlers, by what the DNS said; dropped ones were not asked for because there were too many.", "result")
	mCrawlers      = gauge("crawlers_verified", "Addresses known as search-engine crawlers.")
	mInFlight      = gauge("requests_in_flight", "Requests being served.")
	mStreams       = gauge("streams_open", "Waiting pages with an open stream.")
	mTunnels       = gauge("tunnels_open", "WebSocket connections.")
	mSuppressed    = counter("log_lines_suppressed_total", "Lines of the access log that its bound held back.")
	mGate          = histogram("gate_seconds", "From the start of a request to its decision.")
	mOrigin        = histogram("origin_seconds", "From sending a request to an origin to the headers of its answer.")
	mOriginAnswers = counter("origin_answers_total", "Requests that an origin answered, whatever it said.")
	mOriginErrors  = counter("origin_errors_total", "Requests that an origin did not answer.", "kind")
	mRecords       = counter("journal_records_total", "Journal records written.")
	mBytes         = counter("journal_bytes_total", "Bytes of journal records written.")
	mFailures      = counter("journal_failures_total", "Journal writes that failed and were tried again.")
	mLate          = counter("journal_late_total", "Admissions whose journal record was not written within a second: the visitors saw the page, or were let in by on_failure.")
	mLost          = counter("journal_lost_events_total", "Events dropped because the journal could not be written for too long.")
	mFailing       = gauge("journal_failing", "1 while the journal cannot be written.")
	mReload        = gauge("config_reload_success", "1 unless the last reload was refused.")
	mReloads       = counter("config_reloads_total", "Reloads since the start.")
	mReady         = gauge("ready", "1 while the process serves.")
	mStarted       = gauge("start_time_seconds", "When the process started.")
	mBuild         = gauge("build_info", "1, with the version.", "version", "go")
	mSkew          = gauge("clock_skew_seconds", "How far this machine's clock is ahead of the median of its site's nodes; of a process alone, how far it was stepped back since the start.")
	mKeyAge        = gauge("key_age_seconds", "Age of the key that seals new tickets.")
	mCertificate   = gauge("certificate_expiry_seconds", "When the first of the configured certificates runs out.")
	mTraceFailures = counter("trace_exports_failed_total", "Batches of spans that the receiver of traces did not take.")
)

// Of the store of analytics, shown by the processes that have one.
var (
	mAnalyticsFailing  = gauge("analytics_failing", "1 while analytics cannot be written or read.")
	mAnalyticsBytes    = gauge("analytics_bytes", "Size of the file of analytics and its log.")
	mAnalyticsMaxBytes = gauge("analytics_max_bytes", "What the file of analytics may become.")
	mAnalyticsWaiting  = gauge("analytics_waiting", "Minutes of processes that are not in the file yet.")
	mAnalyticsLost     = counter("analytics_lost_total", "Minutes of processes that were dropped because the file could not be written for too long.")
	mAnalyticsRefused  = counter("analytics_refused_total", "Minutes of processes that came too late, or from the future.")
)
