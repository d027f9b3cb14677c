// Package plan reads the plan of a sale: one YAML file that says what comes, what may
// enter, where, and what goes wrong, in an operator's words, and gives the [sim.Scenario]
// that says the same.
//
//	name: Autumn tour
//	length: 2h
//	limits: {total_active_users: 3000, new_users_per_minute: 400}
//	events:
//	  - {at: 0s, until: 30m, queue_all: true}   # doors open at half past
//	arrivals:
//	  - {to: 30m, per_minute: 100, to_per_minute: 800}
//	  - {at: 30m, over: 5m, visitors: 30000}
//
// The structs in this file are the manual (see package config/strict). [Read] checks the
// whole file, the files that it names and what their values mean together, and reports
// every fault at once with its file, line and column.
package plan

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

// document is the file.
type document struct {
	Name     string        `key:"name" required:"true" doc:"What the plan is called, at most 100 characters: the title of the report and the figures."`
	About    string        `key:"about" doc:"A line that says more, at most 1000 characters."`
	Length   time.Duration `key:"length" required:"true" min:"1m" max:"168h" doc:"How long visitors arrive and things happen."`
	Drain    bool          `key:"drain" default:"true" doc:"Whether the run continues after that until no visitor waits or browses."`
	Limits   settings      `key:"limits" doc:"The room's settings at the start: the keys and defaults of a room. Both limits are required, and above 0."`
	Events   []event       `key:"events" doc:"Times at which other settings are in force. Where two overlap, the later one wins."`
	Sites    []site        `key:"sites" doc:"Data centers. Default: one, with one node."`
	Arrivals []arrival     `key:"arrivals" required:"true" doc:"The arrivals: any number of rates (per_minute), bursts (visitors) and past sales (csv, log). They add up."`
	Lanes    []lane        `key:"lanes" doc:"Lanes of the room, and which visitors belong to them. None by default."`
	Visitors visitors      `key:"visitors" doc:"How visitors behave. Shares are of all visitors; a visitor can belong to several."`
	Faults   faults        `key:"faults" doc:"What goes wrong. Nothing by default."`
	Origin   origin        `key:"origin" doc:"The application behind the room. By default it answers everything at once, and no one watches it."`
}

// origin is the key "origin".
type origin struct {
	PerSecond float64       `key:"per_second" default:"0" min:"0" max:"1000000" doc:"Requests per second that it answers; further ones wait in its queue. 0 turns the model off."`
	Latency   time.Duration `key:"latency" default:"50ms" max:"1m" doc:"Response time of a request that need not wait."`
	Timeout   time.Duration `key:"timeout" default:"10s" min:"1s" max:"1h" doc:"A request that takes longer fails."`
	Faults    []originFault `key:"faults" doc:"Times at which it does not work as it should."`
}

type originFault struct {
	At   time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For  time.Duration `key:"for" required:"true" min:"1s" max:"168h" doc:"For how long."`
	What string        `key:"what" required:"true" enum:"dead,slow,failing,flapping" doc:"dead: it refuses connections. slow: it answers half of per_second. failing: every other request gets an error. flapping: dead and well by turns of 7 seconds."`
}

// settings are those of a room, as far as they are given.
type settings struct{ anteroom.Settings }

// Fields are those of a room's settings. Both limits are above 0 here: who wants to admit nobody
// for a while says queue_all.
func (settings) Fields() (of reflect.Type, out []field.Field) {
	out = field.Of(reflect.TypeFor[anteroom.Settings]())
	for i := range out {
		f := &out[i]
		if f.Required {
			f.Min = "1"
		}
		f.Required, f.HasDefault, f.Index = false, false, append([]int{0}, f.Index...)
	}
	return reflect.TypeFor[settings](), out
}

// event is a member of "events".
type event struct {
	At    time.Duration   `key:"at" required:"true" max:"168h" doc:"When the settings take effect, since the start."`
	Until time.Duration   `key:"until" max:"168h" doc:"When the former settings return. Never by default."`
	Ramp  []anteroom.Step `key:"ramp" doc:"Steps in which the limits rise from then on, as those of a room's event do. Before the first step the event's own hold."`
	settings
}

// site is a member of "sites".
type site struct {
	Name   string        `key:"name" required:"true" doc:"1 to 64 letters, digits, _ and -; unique."`
	Share  float64       `key:"share" default:"1" min:"0" max:"1000000" doc:"Share of the visitors, relative to the other sites."`
	Nodes  int           `key:"nodes" default:"1" min:"1" max:"100" doc:"Machines that serve visitors."`
	Loads  []float64     `key:"loads" min:"0" max:"1000000" doc:"How visitors spread over the nodes: a relative number for each. Evenly by default."`
	Delay  time.Duration `key:"delay" default:"5ms" max:"30s" doc:"One way between the site and the coordinator."`
	Jitter time.Duration `key:"jitter" default:"1ms" max:"30s" doc:"Additional delay of each message, at most."`
}

// arrival is a member of "arrivals": a rate, a burst or a file.
type arrival struct {
	From        time.Duration `key:"from" max:"168h" doc:"Start of a rate. Default: 0s."`
	To          time.Duration `key:"to" max:"168h" doc:"End of a rate. Default: the plan's length."`
	PerMinute   float64       `key:"per_minute" min:"0" max:"5000000" doc:"A rate: visitors per minute at from."`
	ToPerMinute float64       `key:"to_per_minute" min:"0" max:"5000000" doc:"The rate at to, rising or falling evenly from the rate at from. Default: the same."`
	At          time.Duration `key:"at" max:"168h" doc:"Start of a burst, or of the first row of a csv file or a log. Default: 0s."`
	Over        time.Duration `key:"over" default:"1m" min:"1s" max:"168h" doc:"Length of a burst."`
	Visitors    int           `key:"visitors" min:"1" max:"5000000" doc:"A burst: the number of visitors, at random times."`
	CSV         string        `key:"csv" doc:"A past sale: a file next to the plan with the columns time and visitors, see below."`
	Log         string        `key:"log" doc:"A past sale: an access log next to the plan, see below."`
	Path        string        `key:"path" doc:"Which requests of the log count: those to this path and everything below it. All by default."`
	Absence     time.Duration `key:"absence" default:"30m" min:"1m" max:"168h" doc:"A visitor of the log who sends no request for that long, and then one, arrives again."`
	Scale       float64       `key:"scale" default:"1" min:"0.001" max:"1000" doc:"How many come for each visitor in the csv file or the log."`
	Site        string        `key:"site" doc:"Name of the site where they arrive. By default they spread by the sites' shares."`
}

// browsing and think are random durations with defaults of their own.
type browsing struct {
	Mean  time.Duration `key:"mean" default:"1m30s" min:"1s" max:"24h" doc:"On average; the spread is exponential."`
	Least time.Duration `key:"least" default:"5s" max:"24h" doc:"At least."`
}

type think struct {
	Mean  time.Duration `key:"mean" default:"15s" min:"1s" max:"24h" doc:"On average; the spread is exponential."`
	Least time.Duration `key:"least" default:"1s" max:"24h" doc:"At least."`
}

// lane is a member of "lanes": what a room says of a lane, and how many belong to it.
type lane struct {
	Priority int     `key:"priority" default:"0" min:"0" max:"100" doc:"Visitors of a lane are called before those of lanes with a smaller number. 0 is the lane of all visitors who are in no other."`
	Share    int     `key:"share" default:"0" min:"0" max:"100" doc:"Percent of the turns that the lane gets at least, as long as visitors of it wait."`
	Reserved int     `key:"reserved" default:"0" min:"0" max:"90" doc:"Percent of both limits that only visitors of the lane can use."`
	Visitors float64 `key:"visitors" default:"0%" min:"0" max:"1" share:"true" doc:"Share of the visitors who belong to the lane. All others are in the lane of priority 0."`
}

// visitors is the key "visitors".
type visitors struct {
	Browsing       browsing `key:"browsing" doc:"Time from admission to the last request. The session ends session_duration later."`
	Think          think    `key:"think" doc:"Time between two requests of an active user."`
	LeavePerMinute float64  `key:"leave_per_minute" default:"2%" min:"0" max:"1" share:"true" doc:"Share of waiting visitors who give up each minute."`
	Streams        float64  `key:"streams" default:"90%" min:"0" max:"1" share:"true" doc:"Share whose browser keeps a stream open near the front; the others poll."`
	Parallel       float64  `key:"parallel" default:"5%" min:"0" max:"1" share:"true" doc:"Share that sends six requests at once, each time."`
	Tabs           float64  `key:"tabs" default:"5%" min:"0" max:"1" share:"true" doc:"Share that waits in three tabs."`
	Reloads        float64  `key:"reloads" default:"10%" min:"0" max:"1" share:"true" doc:"Share that reloads the page three times a minute."`
	Early          float64  `key:"early" default:"0%" min:"0" max:"1" share:"true" doc:"Share that checks in before the announced time."`
	Sleeps         float64  `key:"sleeps" default:"5%" min:"0" max:"1" share:"true" doc:"Share whose phone sleeps for some minutes while it waits."`
	Freezes        float64  `key:"freezes" default:"0%" min:"0" max:"1" share:"true" doc:"Share whose page freezes for some minutes when it is told its turn; its stream stays open."`
	Roams          float64  `key:"roams" default:"0%" min:"0" max:"1" share:"true" doc:"Share that moves to another site, once."`
	Clones         float64  `key:"clones" default:"0%" min:"0" max:"1" share:"true" doc:"Share whose cookie is used by a second client as well."`
	Replays        float64  `key:"replays" default:"0%" min:"0" max:"1" share:"true" doc:"Share that comes back with its waiting cookie after the session."`
	Bare           float64  `key:"bare" default:"5%" min:"0" max:"1" share:"true" doc:"Share whose browser loads nothing but the page itself."`
	Returns        float64  `key:"returns" default:"0%" min:"0" max:"1" share:"true" doc:"Share that leaves when the origin fails and returns after the session has ended."`
	NoCookies      float64  `key:"no_cookies" default:"0%" min:"0" max:"1" share:"true" doc:"Share that keeps no cookie: each request is a new visitor."`
	LostCookies    float64  `key:"lost_cookies" default:"0%" min:"0" max:"1" share:"true" doc:"Probability that a Set-Cookie is lost."`
}

// faults is the key "faults".
type faults struct {
	Loss      float64       `key:"loss" default:"0%" min:"0" max:"1" share:"true" doc:"Probability that a message between processes is lost."`
	Repeat    float64       `key:"repeat" default:"0%" min:"0" max:"1" share:"true" doc:"Probability that a message arrives twice."`
	Reorder   float64       `key:"reorder" default:"0%" min:"0" max:"1" share:"true" doc:"Probability that a message is overtaken."`
	Cuts      []cut         `key:"cuts" doc:"Links between a site and the coordinator, or between a node and its site, that carry nothing."`
	Deaths    []death       `key:"deaths" doc:"Processes that crash. Another takes the place, and the role, of each."`
	Handovers []handover    `key:"handovers" doc:"Roles that another process takes over from the journal or the record, orderly or while the previous holder keeps running for a while."`
	Stalls    []stall       `key:"stalls" doc:"Disks that do not answer for a while."`
	Pauses    []pause       `key:"pauses" doc:"Processes that freeze and continue as if nothing had happened."`
	NodeLife  time.Duration `key:"node_life" default:"0s" max:"168h" doc:"Mean lifetime of every node; 0s is forever."`
	Clock     time.Duration `key:"clock" default:"0s" max:"24h" doc:"How far the wall clock of every process is off, at most."`
	Jumps     []jump        `key:"jumps" doc:"Steps of wall clocks."`
	SlowStore time.Duration `key:"slow_store" default:"0s" max:"1h" doc:"How long a write of the coordinator's record takes."`
}

type cut struct {
	At        time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For       time.Duration `key:"for" required:"true" min:"1ms" max:"168h" doc:"For how long."`
	What      string        `key:"what" default:"site" enum:"site,node" doc:"Whose link: a site's to the coordinator, or a node's to its site."`
	Site      string        `key:"site" doc:"Name of the site; required with several."`
	Node      int           `key:"node" default:"1" min:"1" max:"100" doc:"Which node of the site, from 1."`
	Direction string        `key:"direction" default:"both" enum:"both,up,down" doc:"What is cut: up is to the coordinator."`
}

type death struct {
	At      time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For     time.Duration `key:"for" required:"true" min:"1ms" max:"168h" doc:"For how long."`
	What    string        `key:"what" required:"true" enum:"coordinator,site,node,process,all" doc:"Which process; process is a node that holds its site's role, all is everything at once."`
	Site    string        `key:"site" doc:"Name of the site; required with several, unless it is the coordinator."`
	Node    int           `key:"node" default:"1" min:"1" max:"100" doc:"Which node of the site, from 1."`
	Forgets bool          `key:"forgets" default:"false" doc:"Whether a site comes back without its memory."`
}

type pause struct {
	At   time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For  time.Duration `key:"for" required:"true" min:"1ms" max:"168h" doc:"For how long."`
	What string        `key:"what" required:"true" enum:"coordinator,site,node" doc:"Which process."`
	Site string        `key:"site" doc:"Name of the site; required with several, unless it is the coordinator."`
	Node int           `key:"node" default:"1" min:"1" max:"100" doc:"Which node of the site, from 1."`
	// Replaced is a duration because 0s means that no other process takes the role.
	Replaced time.Duration `key:"replaced" default:"0s" max:"168h" doc:"After how long another process takes the role; 0s means never."`
}

type stall struct {
	At   time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For  time.Duration `key:"for" required:"true" min:"1ms" max:"168h" doc:"For how long."`
	Site string        `key:"site" doc:"The site whose journal stalls; empty means the coordinator's store."`
}

type handover struct {
	At      time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	For     time.Duration `key:"for" default:"3s" min:"1ms" max:"3s" doc:"How long the previous process still considers itself the holder."`
	What    string        `key:"what" default:"site" enum:"coordinator,site" doc:"Whose role."`
	Site    string        `key:"site" doc:"Name of the site; required with several, unless it is the coordinator's role."`
	Orderly bool          `key:"orderly" default:"false" doc:"Whether the previous process finishes its work and gives the role up."`
}

type jump struct {
	At   time.Duration `key:"at" required:"true" max:"168h" doc:"When, since the start."`
	Site string        `key:"site" doc:"Name of the site. The coordinator's clock by default."`
	By   time.Duration `key:"by" required:"true" min:"-24h" max:"24h" doc:"How far, backward or forward."`
}

// Read reads the plan in a file. Files that it names lie in the folder of the file or
// below: a plan from somebody else reads nothing else. On any fault it returns an error of
// kind Invalid that wraps [anteroom.Faults] and whose message has a line for each.
func Read(file string) (sim.Scenario, error) {
	return read(file, nil, func() (fs.FS, func(), error) {
		root, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, nil, err
		}
		return root.FS(), func() { root.Close() }, nil
	})
}

// read is Read with what it reads from: open the plan itself, beside the files next to it.
func read(file string, open func(string) (io.ReadCloser, error), beside func() (fs.FS, func(), error)) (sim.Scenario, error) {
	b := builder{Reader: strict.New(file, open), beside: beside, file: file}
	field.Fill(reflect.ValueOf(&b.doc).Elem())
	b.Load(&b.doc)
	if b.Broken {
		return sim.Scenario{}, b.Err()
	}
	sc := b.scenario()
	if err := b.Err(); err != nil {
		return sim.Scenario{}, err
	}
	return sc, nil
}
