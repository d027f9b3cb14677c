// Package report writes what happened in a room into one file: for the people who ran a sale, for those who ask
// afterwards whether it was fair, and for those who plan the next one.
//
// [Collect] asks package manage for what was recorded, changed and shuffled. makeReport turns that into a [Report], which
// is plain data: its JSON form, [Report.WriteHTML] and [Report.WriteCSV] show the same figures. The HTML is one file
// without scripts and external requests that can be kept, printed and sent; its charts are SVG. Every word in it that a
// user chose is escaped text, and every cell of the CSV that a spreadsheet would execute is quoted.
//
// Where to read on: make.go for the figures, order.go for what the report says about fairness, docs/report.md for
// operators.
package report

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Report is what happened in a room between two moments. The sentences of the tags are those of the
// OpenAPI document, as package api/own/schema describes. Nil means that something is not known.
type Report struct {
	_     struct{}       `doc:"What happened in a room. Times are in UTC, durations in seconds."`
	zone  *time.Location // in which texts say times; never nil
	Made  time.Time      `json:"made"`
	Room  Room           `json:"room"`
	Event *Event         `json:"event" doc:"The event that the report is about; null for any other time."`
	From  time.Time      `json:"from"`
	To    time.Time      `json:"to"`
	AsOf  time.Time      `json:"as_of" doc:"Time of the newest figures. The report has nothing after it."`
	Notes []string       `json:"notes" doc:"What is missing, and why."`

	Figures   Figures   `json:"figures"`
	Peaks     Peaks     `json:"peaks"`
	Limits    Limits    `json:"limits"`
	Durations []Spread  `json:"durations"`
	Estimates Estimates `json:"estimates"`
	Order     Order     `json:"order"`

	InForce []Stretch `json:"in_force"`
	Events  []Event   `json:"events" doc:"The room's events that were active in this time."`
	Draws   []Draw    `json:"draws"`
	Changes []Change  `json:"changes"`

	Decisions      map[string]int64 `json:"decisions" doc:"Number of decisions, by reason."`
	TicketRefusals map[string]int64 `json:"ticket_refusals" doc:"Number of refused tickets, by reason."`
	Bypasses       map[string]int64 `json:"bypasses" doc:"Number of requests that bypassed the room, by reason."`

	Every    int64   `json:"every_seconds" doc:"Length of a span of the timeline."`
	Timeline []Point `json:"timeline"`
}

// Room is what the report is about.
type Room struct {
	ID     anteroom.RoomID `json:"id"`
	Name   string          `json:"name"`
	Zone   string          `json:"zone"`
	Routes []string        `json:"routes" doc:"Host and path of each."`
}

// Event is an occurrence of an event.
type Event struct {
	ID       anteroom.EventID `json:"id"`
	Name     string           `json:"name"`
	Number   int              `json:"number" doc:"Number of the occurrence, from 0."`
	Prequeue *time.Time       `json:"prequeue"`
	Start    time.Time        `json:"start"`
	End      time.Time        `json:"end"`
	Shuffle  bool             `json:"shuffle"`
}

// Figures are sums over the time.
type Figures struct {
	LetIn       int64    `json:"let_in" doc:"Sessions that began."`
	AtOnce      int64    `json:"let_in_at_once" doc:"Sessions that began without a wait in the queue."`
	Joined      int64    `json:"joined" doc:"Visitors who joined the queue."`
	Abandoned   int64    `json:"abandoned" doc:"Places in the queue that were given up or expired."`
	AbandonedOf *float64 `json:"abandoned_share" min:"0" max:"1" doc:"null when there is nothing to compare with."`
	NoShows     int64    `json:"no_shows" doc:"Visitors who were called and did not come in time."`
	NoShowsOf   *float64 `json:"no_show_share" min:"0" max:"1" doc:"null when there is nothing to compare with."`
	TurnedAway  int64    `json:"turned_away" doc:"Requests that were refused a place in the queue."`
	Revoked     int64    `json:"revoked" doc:"Sessions ended by the origin or an operator."`
	Bypassed    int64    `json:"bypassed" doc:"Requests that bypassed the room by a rule, as a crawler, or in shadow mode."`
	Refused     int64    `json:"refused" doc:"Tickets that were not accepted."`
}

// Peaks are the highest values.
type Peaks struct {
	ActiveUsers *Peak `json:"active_users"`
	QueuedUsers *Peak `json:"queued_users"`
	NewUsers    *Peak `json:"new_users_per_minute"`
	Estimate    *Peak `json:"estimate_seconds"`
}

// Peak is a highest value.
type Peak struct {
	Value int64     `json:"value"`
	At    time.Time `json:"at" doc:"Start of the first span that reached it."`
}

// Limits are those that were in force, and whether they were kept.
type Limits struct {
	ActiveUsers *Bounds `json:"total_active_users"`
	NewUsers    *Bounds `json:"new_users_per_minute"`
	OverActive  int64   `json:"spans_over_total_active_users" doc:"Spans with more active users than the limit, as after lowering it: sessions do not end early."`
	OverNew     *int64  `json:"minutes_over_new_users_per_minute" doc:"Minutes with more new users than the limit; null when the spans are longer than a minute."`
}

// Bounds are the lowest and the highest of a number.
type Bounds struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// Spread is a distribution of durations. Its name is a word of [analytics.Span].
type Spread struct {
	_     struct{} `doc:"A distribution of durations, in seconds."`
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Mean  float64  `json:"mean" min:"0"`
	P50   float64  `json:"p50" min:"0"`
	P75   float64  `json:"p75" min:"0"`
	P90   float64  `json:"p90" min:"0"`
	P95   float64  `json:"p95" min:"0"`
	P99   float64  `json:"p99" min:"0"`
	Max   float64  `json:"max" min:"0"`
}

// Estimates compares the estimated waits that visitors saw on arrival with their actual waits.
type Estimates struct {
	Compared int64    `json:"compared" doc:"Number of visitors admitted from the queue whose estimated wait is known."`
	LateOf   *float64 `json:"late_share" min:"0" max:"1" doc:"null when there is nothing to compare with."`
	Late     *Spread  `json:"late" doc:"How much longer than estimated visitors waited, of those who waited longer."`
	Early    *Spread  `json:"early" doc:"How much less than estimated the other visitors waited."`
}

// Order describes the order in which visitors were admitted.
type Order struct {
	Methods   []anteroom.QueueingMethod `json:"methods" doc:"Queueing methods in force, in order of time."`
	Overtakes int64                     `json:"overtakes" doc:"Visitors admitted without a turn while another one who was present waited at the same site."`
	Manual    []Manual                  `json:"manual_admissions" doc:"Turns that an operator gave to the first visitors in the queue."`
	Resets    int                       `json:"resets" doc:"How often an operator reset the queue."`
	Statement []string                  `json:"statement" doc:"All of this in sentences."`
}

// Manual is an admission that an operator asked for.
type Manual struct {
	At    time.Time `json:"at"`
	Count int64     `json:"count"`
	By    string    `json:"by" doc:"Empty when the token may not read the audit log."`
}

// Stretch is a time in which the same was in force.
type Stretch struct {
	From      time.Time               `json:"from"`
	To        time.Time               `json:"to"`
	Method    anteroom.QueueingMethod `json:"queueing_method"`
	QueueAll  bool                    `json:"queue_all"`
	Suspended bool                    `json:"suspended"`
	Event     string                  `json:"event" doc:"Name of the active event; empty when there is none."`
	Active    int64                   `json:"total_active_users"`
	New       int64                   `json:"new_users_per_minute"`
}

// Draw is a shuffle at the start of an event, and how to check it.
type Draw struct {
	Event      string     `json:"event"`
	Number     int        `json:"number" doc:"Number of the occurrence, from 0."`
	Start      time.Time  `json:"start"`
	Commitment string     `json:"commitment" doc:"SHA-256 of the seed, published before the start."`
	Done       bool       `json:"done"`
	At         *time.Time `json:"at"`
	Seed       string     `json:"seed"`
	Entries    string     `json:"entries" doc:"SHA-256 of the ids of the participants."`
	Count      int64      `json:"count"`
	Command    string     `json:"command" doc:"The command that recomputes the shuffle."`
}

// Change is something that was done to the room.
type Change struct {
	At        time.Time `json:"at"`
	By        string    `json:"by" doc:"Empty when the token may not read the audit log."`
	Operation string    `json:"operation"`
	Name      string    `json:"name"`
	Fields    []Field   `json:"fields"`
	Omitted   int       `json:"omitted" doc:"Number of fields that are left out."`
}

// Field is one field of a change, as JSON; empty means that it was not there. Secrets are masked and
// long values cut.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Point is a span of the timeline.
type Point struct {
	At          time.Time `json:"at"`
	ActiveUsers *int64    `json:"active_users" doc:"The highest value."`
	QueuedUsers *int64    `json:"queued_users" doc:"The highest value."`
	ActiveLimit *int64    `json:"total_active_users"`
	NewLimit    *int64    `json:"new_users_per_minute"`
	NewUsers    float64   `json:"new_users" min:"0" doc:"Per minute."`
	Joined      int64     `json:"joined"`
	Abandoned   int64     `json:"abandoned"`
	NoShows     int64     `json:"no_shows"`
	Overtakes   int64     `json:"overtakes"`
	WaitP50     *float64  `json:"waited_p50" min:"0"`
	WaitP95     *float64  `json:"waited_p95" min:"0"`
	Estimate    *int64    `json:"estimate_seconds" doc:"The longest."`
}
