// Package report is what happened in a room, in one file: for the people who ran a sale, for those
// who ask afterwards whether it was fair, and for those who plan the next.
//
// [Collect] asks package manage for what was recorded, what was changed and what was drawn; [Make]
// turns that into a [Report], which is plain data: its JSON form, [Report.WriteHTML] and
// [Report.WriteCSV] show the same figures. The HTML is one file without a script and without any
// further request, to be kept, printed and sent; its charts are SVG. Every word in it that somebody
// chose is text, and every cell of the CSV that a spreadsheet would run is quoted.
//
// Where to read on: make.go for what the figures are, order.go for what is said of fairness,
// docs/report.md for operators.
package report

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Report is what happened in a room between two moments. Moments are UTC, durations seconds.
// Nil means that something is not known.
type Report struct {
	Made time.Time `json:"made"`
	Room Room      `json:"room"`
	// Event is what the report is about; nil for any other time.
	Event *Event    `json:"event"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	// AsOf is how new the newest figures are; what is after it is not in the report.
	AsOf time.Time `json:"as_of"`
	// Notes say what is missing, and why.
	Notes []string `json:"notes"`

	Figures   Figures   `json:"figures"`
	Peaks     Peaks     `json:"peaks"`
	Limits    Limits    `json:"limits"`
	Durations []Spread  `json:"durations"`
	Estimates Estimates `json:"estimates"`
	Order     Order     `json:"order"`

	InForce []Stretch `json:"in_force"`
	Events  []Event   `json:"events"` // of the room that were active in the time
	Draws   []Draw    `json:"draws"`
	Changes []Change  `json:"changes"`

	// Decisions by reason, refused tickets and bypasses, by their words.
	Decisions      map[string]int64 `json:"decisions"`
	TicketRefusals map[string]int64 `json:"ticket_refusals"`
	Bypasses       map[string]int64 `json:"bypasses"`

	// Every is the length of the spans of Timeline, in seconds.
	Every    int64   `json:"every_seconds"`
	Timeline []Point `json:"timeline"`
}

// Room is what the report is about.
type Room struct {
	ID     anteroom.RoomID `json:"id"`
	Name   string          `json:"name"`
	Zone   string          `json:"zone"`
	Routes []string        `json:"routes"` // host and path
}

// Event is an occurrence of an event.
type Event struct {
	ID       anteroom.EventID `json:"id"`
	Name     string           `json:"name"`
	Number   int              `json:"number"` // of the occurrence
	Prequeue *time.Time       `json:"prequeue"`
	Start    time.Time        `json:"start"`
	End      time.Time        `json:"end"`
	Shuffle  bool             `json:"shuffle"`
}

// Figures are sums over the time.
type Figures struct {
	LetIn       int64    `json:"let_in"`         // sessions that began
	AtOnce      int64    `json:"let_in_at_once"` // of these, without waiting in line
	Joined      int64    `json:"joined"`         // places that were taken in line
	Abandoned   int64    `json:"abandoned"`      // places that were given up or lapsed
	AbandonedOf *float64 `json:"abandoned_share"`
	NoShows     int64    `json:"no_shows"` // turns that were not taken in time
	NoShowsOf   *float64 `json:"no_show_share"`
	TurnedAway  int64    `json:"turned_away"` // requests of those who were refused a place
	Revoked     int64    `json:"revoked"`     // sessions ended by the origin or an operator
	Bypassed    int64    `json:"bypassed"`    // requests that passed by a rule or as a crawler
	Refused     int64    `json:"refused"`     // tickets that were not accepted
}

// Peaks are the highest values, with the beginning of the span in which they were first reached.
type Peaks struct {
	ActiveUsers *Peak `json:"active_users"`
	QueuedUsers *Peak `json:"queued_users"`
	NewUsers    *Peak `json:"new_users_per_minute"`
	Estimate    *Peak `json:"estimate_seconds"`
}

// Peak is a highest value.
type Peak struct {
	Value int64     `json:"value"`
	At    time.Time `json:"at"`
}

// Limits are those that were in force, and whether they were kept.
type Limits struct {
	ActiveUsers *Bounds `json:"total_active_users"`
	NewUsers    *Bounds `json:"new_users_per_minute"`
	// OverActive is the number of spans in which more were inside than the limit; that happens when
	// a limit is lowered, for nobody is thrown out. OverNew is that of minutes in which more were let
	// in, nil where the spans are longer than a minute.
	OverActive int64  `json:"spans_over_total_active_users"`
	OverNew    *int64 `json:"minutes_over_new_users_per_minute"`
}

// Bounds are the lowest and the highest of a number.
type Bounds struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// Spread is a distribution of durations, in seconds.
type Spread struct {
	Name  string  `json:"name"` // word of [analytics.Span]
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P75   float64 `json:"p75"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Estimates tell how good the forecasts were that visitors were shown when they came.
type Estimates struct {
	Compared int64    `json:"compared"` // of those let in from the line whose forecast is known
	LateOf   *float64 `json:"late_share"`
	Late     *Spread  `json:"late"`  // waited longer than they were told: by how much
	Early    *Spread  `json:"early"` // waited less long, or as long
}

// Order is what can be said of the order in which people were let in.
type Order struct {
	Methods   []anteroom.QueueingMethod `json:"methods"` // in force, in their order
	Overtakes int64                     `json:"overtakes"`
	// Manual are the admissions that somebody asked for: they give turns to the first of the line.
	Manual []Manual `json:"manual_admissions"`
	Resets int      `json:"resets"` // how often all places were taken away
	// Statement says it in sentences.
	Statement []string `json:"statement"`
}

// Manual is an admission that somebody asked for.
type Manual struct {
	At    time.Time `json:"at"`
	Count int64     `json:"count"`
	By    string    `json:"by"` // empty where the caller may not know
}

// Stretch is a time in which the same was in force.
type Stretch struct {
	From      time.Time               `json:"from"`
	To        time.Time               `json:"to"`
	Method    anteroom.QueueingMethod `json:"queueing_method"`
	QueueAll  bool                    `json:"queue_all"`
	Suspended bool                    `json:"suspended"`
	Event     string                  `json:"event"` // name of the active one; empty means none
	Active    int64                   `json:"total_active_users"`
	New       int64                   `json:"new_users_per_minute"`
}

// Draw is a shuffle at the start of an event, and how to check it.
type Draw struct {
	Event      string     `json:"event"`
	Number     int        `json:"number"`
	Start      time.Time  `json:"start"`
	Commitment string     `json:"commitment"` // SHA-256 of the seed, published before the start
	Done       bool       `json:"done"`
	At         *time.Time `json:"at"`
	Seed       string     `json:"seed"`
	Entries    string     `json:"entries"` // SHA-256 of the ids of who took part
	Count      int64      `json:"count"`
	Command    string     `json:"command"` // recomputes the draw
}

// Change is something that was done to the room.
type Change struct {
	At        time.Time `json:"at"`
	By        string    `json:"by"` // empty where the caller may not know
	Operation string    `json:"operation"`
	Name      string    `json:"name"`
	Fields    []Field   `json:"fields"`
	Omitted   int       `json:"omitted"` // fields that are left out
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
	ActiveUsers *int64    `json:"active_users"` // the most
	QueuedUsers *int64    `json:"queued_users"` // the most
	ActiveLimit *int64    `json:"total_active_users"`
	NewLimit    *int64    `json:"new_users_per_minute"`
	NewUsers    float64   `json:"new_users"` // per minute
	Joined      int64     `json:"joined"`
	Abandoned   int64     `json:"abandoned"`
	NoShows     int64     `json:"no_shows"`
	Overtakes   int64     `json:"overtakes"`
	WaitP50     *float64  `json:"waited_p50"`
	WaitP95     *float64  `json:"waited_p95"`
	Estimate    *int64    `json:"estimate_seconds"` // the longest
}
