package sim

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Scenario is a world before it runs. Times are durations since its start.
type Scenario struct {
	Name  string
	About string // a line
	// Length is how long visitors arrive and things happen, up to MaxLength. With Drain the
	// run goes on until nobody waits or browses any more, up to MaxLength in all.
	Length time.Duration
	Drain  bool

	anteroom.Settings          // at the start
	Changes           []Change // ascending
	Acts              []Act

	Sites    []Site // none: one site with one node
	Arrivals []Flow
	Visitors Visitors
	Lanes    []Lane // put into Settings and all Changes
	Faults   Faults
	Origin   Origin
}

// Change puts other settings in force.
type Change struct {
	At       time.Duration
	Settings anteroom.Settings
	// Planned says that the change is known from the start: waits are estimated with its limits.
	Planned bool
}

// Act is what an operator does by hand, or an event.
type Act struct {
	At   time.Duration
	What string // "admit": N turns for the next in line; "hold": nothing can be recorded for N seconds, in a room of one process; "reset": nobody has a place any more; "shuffle": a change at the same moment ends a prequeue, and places are by chance
	N    int
}

// Site is a data centre.
type Site struct {
	Name   string
	Share  float64       // of the visitors, relative to the other sites
	Nodes  int           // 0: one
	Loads  []float64     // how visitors spread over the nodes, relative; none: evenly
	Delay  time.Duration // one way to the coordinator
	Jitter time.Duration // up to so much more, per message
}

// Flow is a stretch of arrivals: Visitors people spread evenly over it at random, or a
// rate that goes from PerMinute to ToPerMinute in a straight line.
type Flow struct {
	From, To    time.Duration
	Visitors    int
	PerMinute   float64
	ToPerMinute float64
	Site        string // empty: by the sites' shares
}

// Spread is a random duration: exponential with the mean, not below Least.
type Spread struct{ Least, Mean time.Duration }

// Visitors says how people behave. Shares are of 0 to 1.
type Visitors struct {
	Browsing Spread // from the admission to the last request
	Think    Spread // between two requests inside
	// LeavePerMinute is the rate at which somebody who waits gives up.
	LeavePerMinute float64
	Streams        float64 // share whose browser holds a stream
	Parallel       float64 // share that sends six requests at once, each time
	Tabs           float64 // share that waits in three tabs
	Reloads        float64 // share that reloads the page three times a minute
	Early          float64 // share that asks before the time it was told
	Sleeps         float64 // share whose phone sleeps for some minutes while it waits
	Freezes        float64 // share whose page is frozen for some minutes when it is told its turn; its stream stays open
	Roams          float64 // share that goes on at another site, once, waiting or inside
	Clones         float64 // share whose cookie is used by a second client as well
	Replays        float64 // share that comes back with its waiting cookie after the session
	Quits          float64 // share that gives up the place by the page's button, after which its cookie is used again
	LogsOut        float64 // share that ends the session when it leaves, after which the cookie is used again
	Bare           float64 // share that loads nothing but the page itself
	Returns        float64 // share that leaves when the origin fails, and comes back when the session is over
	NoCookies      float64 // share that keeps no cookie: each request is a new visitor
	Drops          float64 // chance of every stream to break after some seconds; the browser opens another by itself
	LostCookies    float64 // chance of every Set-Cookie to be lost
}

// Faults says what goes wrong. Chances are per message.
type Faults struct {
	Loss, Repeat, Reorder float64
	Cuts                  []Cut
	Deaths                []Death
	Pauses                []Pause
	Stalls                []Stall
	Handovers             []Handover
	NodeLife              time.Duration // mean life of every node; 0: for ever
	// Clock is how far the wall clock of every process is off, at most; Jumps are steps of one.
	Clock     time.Duration
	Jumps     []Jump
	SlowStore time.Duration // how long a write of the coordinator's record takes
}

// Cut is a link between a site and the coordinator, or between a node and its site, that carries
// nothing, or loses messages, or is slow.
type Cut struct {
	At, For  time.Duration
	What     string // "" or "site": from the coordinator; "node": from its site
	Site     string
	Node     int
	Up, Down bool          // which direction; neither means both
	Loses    float64       // share of the messages that are lost; 0: all, unless it is slow
	Slow     time.Duration // how much longer messages take
}

// Death ends a process; another takes its place, and its role, after For.
type Death struct {
	At, For time.Duration
	What    string // "coordinator", "site", "node", "process" (a node that holds its site's role) or "all"
	Site    string
	Node    int
	Forgets bool // a site that comes back without its memory
}

// Pause stops a process that then goes on as if nothing had been. Another takes its role after
// Replaced; 0: none does.
type Pause struct {
	At, For  time.Duration
	What     string // "coordinator", "site" or "node"
	Site     string
	Node     int
	Replaced time.Duration
}

// Stall is a journal, or the coordinator's store, that answers nobody for a while.
type Stall struct {
	At, For time.Duration
	Site    string // empty: the coordinator's store
}

// Handover gives a role to another process, which goes on from the journal or the record. The one
// before takes itself for the holder for as long as For, at most MaxHandover; or it hands over in
// good order.
type Handover struct {
	At, For time.Duration
	Site    string // empty: the coordinator's role
	Orderly bool
}

// Jump is a step of the wall clock of a site's machine.
type Jump struct {
	At   time.Duration
	Site string // empty: the first
	By   time.Duration
}

// Algorithms that a scenario runs with. The first is the product.
const (
	Anteroom = "anteroom"
	Even     = "even"     // published 2021: shares of shares, split evenly among workers
	Adapted  = "adapted"  // published: split by a worker count that follows utilisation
	Counters = "counters" // published: a counter per data centre, then an Anywhere counter
	Ideal    = "ideal"    // knows everything at once everywhere; cannot be built
)

// Algorithms lists them in their documented order.
var Algorithms = []string{Anteroom, Even, Adapted, Counters, Ideal}

// Bounds of a scenario.
const (
	MaxLength   = 7 * 24 * time.Hour
	MaxVisitors = 5_000_000
	MaxSites    = 1_000
	MaxNodes    = 100 // of a site
	MaxFlows    = 100_000
	MaxChanges  = 1_000
	MaxFaults   = 10_000 // cuts, deaths, pauses, hand-overs and jumps together
	MaxHandover = 3 * time.Second
)
