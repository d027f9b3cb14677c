package rig

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/anteroom/anteroom/sim"
)

// Case is one run: what there is, who comes, what goes wrong, and what may happen.
// All times are at scale 1; see Options.Scale.
type Case struct {
	Name   string
	About  string // a line
	Length time.Duration
	Sites  []Site // the first is the hub
	Room   Room
	Flows  []Flow
	People People
	Loss   float64 // of the packets between sites, 0 to 1

	// Script does to the cluster what the run is about, beside the visitors, and returns when it
	// has done. Nil: nothing happens.
	Script func(ctx context.Context, c *Cluster) error
	// Faults are the script's in the simulator's words, for a run of Length.
	Faults func(sc *sim.Scenario, scale float64)
	// NoSimulation says why the simulator has no such scenario; empty when it has.
	NoSimulation string
	// Allowed are rules of the judge that this run may break, with the reason; Passing how far
	// "order" may be. Zero means 5 % and a minute.
	Allowed map[string]string
	Passing Passing
	// Pauses bounds how long nobody is admitted after a fault; zero: not at all.
	Pauses Pause

	Rooms  bool // the room is made by the API and not by the files
	Spare  []string
	Clocks bool // nodes run with a clock that the rig can move
	Mixed  bool // needs a second build
}

// Site is a data centre.
type Site struct {
	Name  string
	Nodes int
	Cores int           // the first so many nodes
	Delay time.Duration // one way to the hub
	Share float64       // of the visitors without a site
}

// Room is what the one room of a run is set to.
type Room struct {
	Active, PerMinute int
	Session           time.Duration
	First             time.Duration // of a visitor who never sends a second request; 0 means the default
	Method            string        // empty means fifo
}

// Flow is a stretch of arrivals, evenly spread by chance.
type Flow struct {
	From, To  time.Duration
	Visitors  int     // or
	PerMinute float64 // so many
	Site      string  // empty: by the sites' shares
}

// Passing bounds those who are passed: their share of the queued, and by how much.
type Passing struct {
	Share float64
	Lead  time.Duration
}

func (p Passing) lead() time.Duration { return cmp.Or(p.Lead, time.Minute) }

// count is how many come at a scale. What comes at once stays as many in a shorter run.
func (f Flow) count(scale float64) int {
	if f.Visitors == 0 {
		return int(f.PerMinute*(f.To-f.From).Minutes()*scale + 0.5)
	}
	return int(float64(f.Visitors)*max(1, scale) + 0.5)
}

// People says how visitors behave. Shares are of 0 to 1.
type People struct {
	Pages    int           // seen on average
	Think    time.Duration // between two, on average
	Patience time.Duration // mean; zero: they never give up
	Parallel float64       // share that sends six requests at once, each to a node of its own
	Lost     float64       // of the Set-Cookie headers
	Plain    float64       // share without a script
	Roams    float64       // share that goes on at another site, once
	Anywhere float64       // share that goes to another site at every request
}

const (
	pages = 4
	think = 3 * time.Second
	stay  = 10 * time.Second // session duration
)

// folks are ordinary visitors: nearly all with a script.
func folks() People { return People{Pages: pages, Think: think, Plain: 0.1} }

// three sites of two nodes, one of them a core.
func three() []Site {
	return []Site{
		{Name: "a", Nodes: 2, Cores: 1, Delay: time.Millisecond, Share: 0.5},
		{Name: "b", Nodes: 2, Cores: 1, Delay: 15 * time.Millisecond, Share: 0.3},
		{Name: "c", Nodes: 2, Cores: 1, Delay: 75 * time.Millisecond, Share: 0.2},
	}
}

// firm is three with three cores at the hub, which survive the loss of one.
func firm() []Site {
	s := three()
	s[0].Nodes, s[0].Cores = 3, 3
	return s
}

// perSeat is how many visitors a minute a seat serves: a visit and the session's end.
func perSeat() float64 { return 60 / (float64(pages-1)*think.Seconds() + stay.Seconds()) }

// Cases are all runs, in the order of the list.
func Cases() []Case {
	room := Room{Active: 150, PerMinute: 600, Session: stay}
	full := float64(room.Active) * perSeat() // visitors a minute that just fit
	base := func(share float64, length time.Duration) Flow {
		return Flow{To: length, PerMinute: share * full}
	}
	const length = 2 * time.Minute
	// queueing is the line that runs with faults share: somewhat more than fit.
	queueing := func(name, about string, change func(*Case)) Case {
		c := Case{Name: name, About: about, Length: length, Sites: three(), Room: room, People: folks(),
			Flows: []Flow{base(0.9, length), {From: 5 * time.Second, To: 20 * time.Second, Visitors: 250}}}
		c.People.Patience = 50 * time.Minute
		change(&c)
		return c
	}
	cases := []Case{
		{Name: "steady", About: "steady traffic at 70 % of the seats; nobody should wait", Length: length, Sites: three(), Room: room,
			Flows: []Flow{base(0.7, length)}, People: folks()},
		{Name: "spike-one", About: "base load 30 %, then 240 visitors in 5 s in the site with the fewest", Length: length, Sites: three(), Room: room,
			Flows: []Flow{base(0.3, length), {From: 30 * time.Second, To: 35 * time.Second, Visitors: 240, Site: "c"}}, People: folks()},
		{Name: "spike-new", About: "base load 50 %, then 150 visitors in 5 s in a site without any history", Length: length, Sites: withoutHistory(), Room: room,
			Flows: []Flow{base(0.5, length), {From: 40 * time.Second, To: 45 * time.Second, Visitors: 150, Site: "c"}}, People: folks()},
		{Name: "spike-world", About: "base load 8 %, then 600 visitors in 3 s everywhere at once", Length: length, Sites: three(), Room: room,
			Flows: []Flow{base(0.08, length), {From: 20 * time.Second, To: 23 * time.Second, Visitors: 600}}, People: folks()},
		{Name: "backlog", About: "1,200 visitors in 40 s, fifo, 5 % of those waiting give up every minute", Length: 150 * time.Second, Sites: three(), Room: room,
			Flows: []Flow{base(0.1, 150*time.Second), {From: 5 * time.Second, To: 45 * time.Second, Visitors: 1200}}, People: patient(20 * time.Minute)},
		{Name: "random", About: "random method: 1,200 visitors over a minute and a half", Length: length, Sites: three(), Room: drawn(room),
			Flows: []Flow{{To: 90 * time.Second, Visitors: 1200}}, People: folks()},
		{Name: "rate-open", About: "the rate binds: doors open on 500 visitors within 15 s, 120 new users per minute, ample seats", Length: 150 * time.Second,
			Sites: three(), Room: Room{Active: 2000, PerMinute: 120, Session: stay},
			Flows: []Flow{{To: 15 * time.Second, Visitors: 500}, {To: 150 * time.Second, PerMinute: 30}}, People: folks()},
		queueing("parallel", "queueing; 40 % of the visitors send six requests at once, each to a node of its own", func(c *Case) { c.People.Parallel = 0.4 }),
		queueing("roaming", "queueing; 15 % go on at another site, 5 % at another one with every request", func(c *Case) {
			c.People.Roams, c.People.Anywhere = 0.15, 0.05
		}),
		queueing("lost-cookie", "queueing; 1 % of all Set-Cookie headers are lost", func(c *Case) { c.People.Lost = 0.01 }),
		queueing("loss", "queueing; 1 % of the packets between sites are lost", func(c *Case) {
			c.Loss = 0.01
			c.Faults = func(sc *sim.Scenario, _ float64) { sc.Faults.Loss = 0.01 }
		}),
	}
	return slices.Concat(cases, faulty(queueing), changing(), operated(queueing, room, base))
}

// withoutHistory is three with a site to which nobody comes by himself.
func withoutHistory() []Site {
	s := three()
	s[2].Share = 0
	return s
}

func patient(mean time.Duration) People {
	p := folks()
	p.Patience = mean
	return p
}

func drawn(r Room) Room {
	r.Method = "random"
	return r
}

// Named returns the case of the name.
func Named(name string) (Case, bool) {
	for _, c := range Cases() {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

// Pause is how long nobody may be admitted after each fault: in the median, and at worst.
type Pause struct{ Median, Worst time.Duration }
