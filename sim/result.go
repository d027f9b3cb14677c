package sim

import "time"

// Result is what a run came to.
type Result struct {
	Scenario  Scenario
	Algorithm string
	Seed      uint64
	Ran       time.Duration // virtual
	Took      time.Duration // of the machine running it
	Trace     string        // SHA-256 of the trace, hexadecimal: equal runs have equal ones

	Checks  []Check
	Numbers Numbers
	Points  []Point        // over time, ascending
	Visits  []Visit        // of those who arrived, in order of arrival; a uniform sample of at most MaxVisits
	Places  []string       // names of the sites, for Point.Sites
	Origin  *OriginNumbers // nil: the scenario has none
}

// MaxVisits bounds Result.Visits.
const MaxVisits = 20_000

// Check is one promise and how often it was broken.
type Check struct {
	Name   string
	Looked int    // how often it was looked at
	Broken int    // how often it did not hold
	First  string // the first time, in words; empty when it held
}

// Numbers are the outcome in numbers. Shares are of 0 to 1; a share of nothing is 0.
type Numbers struct {
	Arrived, Admitted, Left, Refused, Waiting int // Waiting: at the end
	Queued                                    int // were shown the waiting page

	PeakActive, PeakPerMinute int           // any moment; any 60 s
	PeakWaiting               int           // people
	LineEmpty                 time.Duration // when the line was empty for good; 0: it never was or never existed

	OverActive    float64 // the most above TotalActiveUsers, relative to it
	OverMinute    float64 // the same for calendar minutes
	OverAnyMinute float64 // the same for any 60 s
	Premature     float64 // of the arrivals: shown the page although a slot was free
	Overtaken     float64 // of the queued: passed by somebody who came more than 1 s later
	OvertakenMost time.Duration
	Idle          float64       // of the slots while people waited
	IdleP50       time.Duration // a freed slot until it was taken, while people waited
	IdleP95       time.Duration

	WaitP50, WaitP80, WaitP95, WaitMax time.Duration // of those admitted after waiting
	// FIFO: announced against actual, for waits of 30 s and more: median of |error|, median of
	// the error (bias), and the share within 12 %.
	EtaError, EtaBias, EtaWithin float64
	EtaTold                      int // of how many waits; 0: none was announced, and the three say nothing
	// Random: by how much the share of waits within the announced quartiles is off, mean over
	// the three quartiles in each third of the run, as far as it was to be known; and the mean
	// arrival rank of the winners among those waiting, less a half.
	LotteryError, LotteryRank float64
	LotteryTold               int // of how many quartiles; 0: LotteryError says nothing
	Draws                     int // of how many winners; 0: LotteryRank says nothing

	HeldMean, HeldP99 time.Duration // added latency of a decision
	Outside           float64       // of the decisions: called outside the site
	Messages          float64       // between sites and coordinator, per second and site
	Bytes             float64       // of them, per second and site
	Requests          float64       // per visitor, until admitted or gone
	SentBack          float64       // of the admitted: shown the page within their session

	VisitorHours float64 // waiting and browsing

	Lanes []LaneNumbers // the highest first; nil: the scenario has none
}

// Point is a moment of the run.
type Point struct {
	At              time.Duration
	Active, Waiting int
	Arrived         int     // so far
	Admitted        int     // so far
	LastMinute      int     // admitted in the 60 s before
	Limit, Rate     int     // in force
	Idle            float64 // mean number of slots idle while people waited, since the point before
	Sites           []int32 // active at each site

	// Of the origin, zero where the scenario has none: new users per minute that the room admits on its
	// account, the time that one in twenty answers exceeded since the point before, and the share of requests
	// that failed.
	Pace   int
	Took   time.Duration
	Failed float64
}

// Visit is one visitor's story. Durations are since the start; zero means never, and
// Admitted is at least a microsecond after Arrived.
type Visit struct {
	Arrived, Admitted, Left time.Duration
	Shown                   bool          // saw the waiting page
	Told                    time.Duration // the first announced wait; the median for random
	TellAt                  time.Duration // when that was said
	Told25, Told75          time.Duration
	Site                    int16
}
