// Package analytics keeps what operators want to know afterwards: for each room and minute, how many visitors were
// active, waiting and admitted, how long they waited and stayed, and which limits were in force.
//
// A [Recorder] collects what happens in one room in one process, at the cost of a few atomic additions. Once per
// second, what has changed leaves as [Minute]s. They are cumulative, so a repeated or lost one is harmless. The minutes
// of all processes are added up, exactly, to the [Row] of the minute, and rows of minutes are rolled up to rows of
// longer spans. Package analytics/store keeps the rows. Query rows through a [Reader].
package analytics

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
)

// Metric is a number that a minute has. A gauge is sampled every second, a count is added up.
type Metric uint8

// The gauges.
const (
	ActiveUsers     Metric = iota // sessions that hold a seat
	QueuedUsers                   // in line and in touch
	Estimate                      // forecast for somebody who would join, in seconds; no sample while unknown
	ActiveLimit                   // total_active_users in force
	NewLimit                      // new_users_per_minute in force
	SessionDuration               // in force, in seconds
	gauges
)

// The counts.
const (
	NewUsers   Metric = iota + gauges // sessions that began
	Joined                            // visitors who took a place in line
	Abandoned                         // places given up or lapsed
	NoShows                           // turns that were not taken in time
	Overtakes                         // let in without a turn while somebody in touch was waiting at the same site
	Revoked                           // sessions ended by the origin or an operator
	Bypassed                          // requests that passed by a rule, as a crawler, or in shadow mode
	Refused                           // tickets that were not accepted, all reasons together
	TurnedAway                        // requests answered with Refuse
	// Of challenges, by request.
	ChallengesIssued   // put into a page
	ChallengesSolved   // tickets whose visitor has solved it
	ChallengesUnsolved // requests of visitors who were asked and have not answered, or whose answer could not be verified
	ChallengesFailed   // wrong answers
	ChallengesWaived   // tickets that have waited for so long that nothing is asked any more
	ChallengesHeld     // requests of visitors whom turnstile_action keeps waiting until they solve it
	Metrics            // the number of metrics
)

// IsGauge reports whether the metric is sampled.
func (m Metric) IsGauge() bool { return m < gauges }

// Span is a distribution of durations.
type Span uint8

// The distributions.
const (
	Waited           Span = iota // of those let in from the line: from arrival to admission
	InQueue                      // of those who wait, at each check-in: since arrival
	OnOrigin                     // of sessions that ended: from admission to the last request
	BetweenRefreshes             // of sessions: between renewals of the cookie
	Late                         // waited longer than the newcomers of the minute of arrival were told: by how much
	Early                        // waited less long, or as long
	Spans                        // the number of distributions
)

// Stat sums up values. The zero Stat has none.
type Stat struct {
	N        int64 // values
	Sum      int64
	Min, Max int64 // 0 when N is 0
}

// Quantiles are those published of a distribution, in this order.
var Quantiles = [...]float64{50, 75, 90, 95}

// Summary is a distribution in short. The zero Summary is of nothing.
type Summary struct {
	N         int64 // durations
	Quantiles [len(Quantiles)]time.Duration
}

// Weighted is a mean of the quantiles of minutes: each minute counts with its weight, as published:
// Waited with the new users of the minute, OnOrigin and BetweenRefreshes with the active users, InQueue, Late and Early with those in
// line.
type Weighted struct {
	Weight int64
	Sum    [len(Quantiles)]float64 // of weight times quantile in seconds
}

// Row is a room in a span of time: a minute, or several rolled up.
type Row struct {
	Room    anteroom.RoomID
	Start   time.Time  // UTC, a multiple of the resolution
	Every   Resolution // length of the span
	Minutes int64      // in which something was recorded
	// Stats of gauges are over the samples, those of counts over the minutes with a record.
	Stats    [Metrics]Stat
	Weighted [Spans]Weighted
	// Summaries are what Histograms have, in short. A row that is stored has them; of others they are empty
	// unless the query asks for them.
	Summaries [Spans]Summary
	// Histograms are nil unless the query asks for them, and where nothing was recorded.
	Histograms [Spans]*Histogram
	// Method is the last one in force in the span, with the queue_all and suspended of the moment.
	Method    anteroom.QueueingMethod
	QueueAll  bool
	Suspended bool
	// Event is the last one in force; empty means none.
	Event anteroom.EventID
	// Reasons are decisions by anteroom.Reason, TicketRefusals refused tickets by their word, BypassReasons
	// bypasses by theirs. Nil unless the query asks for details.
	Reasons        map[string]int64
	TicketRefusals map[string]int64
	BypassReasons  map[string]int64
}

// Resolution is the length of the spans that rows are for.
type Resolution time.Duration

// The resolutions that are kept.
const (
	EveryMinute  = Resolution(time.Minute)
	EveryQuarter = Resolution(15 * time.Minute)
	EveryHour    = Resolution(time.Hour)
	EveryDay     = Resolution(24 * time.Hour) // by UTC
)

// Query says which rows are wanted.
type Query struct {
	Rooms []anteroom.RoomID `json:"rooms"` // required; at most MaxQueryRooms
	From  time.Time         `json:"from"`  // of the first rows that may begin
	To    time.Time         `json:"to"`    // rows begin before it
	// Every is the resolution; zero chooses the finest of which a room has at most MaxPoints rows between From
	// and To, and all rooms together at most MaxAutoRows, or days.
	Every Resolution `json:"every,omitempty"`
	// Summaries asks for these of every row. Histograms asks for these and the summaries, which costs
	// more; Details for the maps of Row.
	Summaries  bool `json:"summaries,omitempty"`
	Histograms bool `json:"histograms,omitempty"`
	Details    bool `json:"details,omitempty"`
	// Total asks for one row for each room instead, over all the time.
	Total bool `json:"total,omitempty"`
}

// Answer is what a Query found.
type Answer struct {
	Every Resolution
	Rows  []Row // by room in the order of the query, then by time; minutes without a record have none
	// AsOf is how new the newest figures are.
	AsOf time.Time
	// Incomplete says in words what is missing, like rows that were dropped to limit the file; empty if nothing is.
	Incomplete string
}

// Reader answers queries. An error of kind Invalid says what of the query is wrong, Unavailable that
// nothing can be read now.
type Reader interface {
	Query(ctx context.Context, q Query) (Answer, error)
}

// Bounds of a query.
const (
	MaxQueryRooms = 10_000
	MaxPoints     = 750    // rows of a room that a query without a resolution gets at most
	MaxAutoRows   = 10_000 // rows of all rooms that such a query gets at most, but for days
	MaxRows       = 200_000
)
