package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

// drawn is the name of the worlds that the search draws, see sim.Drawn.
const drawn = "drawn"

// scenario returns the world to run.
func (w worldID) scenario() (sim.Scenario, error) {
	if w.name == drawn {
		return sim.Drawn(w.seed), nil
	}
	if sc, ok := sim.Named(w.name); ok {
		return sc, nil
	}
	sc, rng := room(w), rand.New(rand.NewPCG(w.seed, 11))
	for name := range strings.SplitSeq(w.name, "+") {
		with := small[name]
		if with == nil {
			return sim.Scenario{}, fmt.Errorf("there is no world called %q: use %q, the name of a scenario, or one or more of %s, as in \"roams+shuffle\"",
				name, drawn, strings.Join(slices.Sorted(maps.Keys(small)), ", "))
		}
		with(&sc, rng)
	}
	return sc, nil
}

// room is what the small worlds share: a busy room of three data centers with short sessions, so that
// much happens in few requests. A run takes a fraction of a second. It ends after ten minutes, when
// everybody has gone, or would have without the defect.
func room(w worldID) sim.Scenario {
	sc := sim.Scenario{Name: w.String(), Length: 10 * time.Minute,
		Settings: anteroom.Settings{TotalActiveUsers: 30, NewUsersPerMinute: 90, SessionDuration: 20 * time.Second, Unpaced: true},
		Sites: []sim.Site{{Name: "near", Share: 0.4, Nodes: 2, Delay: 2 * time.Millisecond},
			{Name: "far", Share: 0.3, Nodes: 2, Delay: 100 * time.Millisecond, Jitter: 5 * time.Millisecond},
			{Name: "middle", Share: 0.3, Nodes: 1, Delay: 40 * time.Millisecond, Jitter: 2 * time.Millisecond}},
		Arrivals: []sim.Flow{{To: 3 * time.Minute, PerMinute: 70, ToPerMinute: 70}},
		Visitors: sim.Visitors{Browsing: sim.Spread{Mean: 20 * time.Second}, Think: sim.Spread{Mean: 6 * time.Second}, Streams: 0.7}}
	return sc
}

// small are worlds of the gate: each is dense with one kind of trouble. Joined by +, they have it all: the later ones change what
// the earlier ones have made.
var small = map[string]func(sc *sim.Scenario, rng *rand.Rand){
	// Nothing goes wrong.
	"calm": func(sc *sim.Scenario, _ *rand.Rand) {},
	// The rate binds, not the seats.
	"rate": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 200, 40
	},
	// Winners are drawn.
	"draw": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.QueueingMethod = anteroom.Random
		sc.Arrivals = []sim.Flow{{To: 20 * time.Second, Visitors: 400}}
		sc.Visitors.Streams = 0.5
	},
	// Visitors sleep, leave, reload and lose cookies, and turns are missed.
	"habits": func(sc *sim.Scenario, _ *rand.Rand) {
		v := &sc.Visitors
		v.Sleeps, v.Tabs, v.Reloads, v.Early, v.LeavePerMinute, v.LostCookies, v.Replays = 0.2, 0.1, 0.1, 0.1, 0.3, 0.02, 0.3
	},
	// Pages are frozen when their turn is told, and their streams stay open.
	"frozen": func(sc *sim.Scenario, _ *rand.Rand) { sc.Visitors.Freezes = 0.3 },
	// Visitors go from data center to data center, share cookies, and come back with used ones.
	"roams": func(sc *sim.Scenario, rng *rand.Rand) {
		v := &sc.Visitors
		v.Roams, v.Clones, v.Replays, v.Parallel = 0.4, 0.1, 0.3, 0.2
		if rng.IntN(2) == 0 {
			sc.Faults.Cuts = every(30*time.Second, rng, func(at time.Duration) sim.Cut {
				return sim.Cut{At: at, For: span(rng, 5*time.Second, 25*time.Second), Site: siteOf(sc, rng)}
			})
		}
	},
	// Visitors go to nodes of other data centers that are cut off, which tell later who was there.
	"roams-nodes-cut": func(sc *sim.Scenario, rng *rand.Rand) {
		for i := range sc.Sites {
			sc.Sites[i].Nodes, sc.Sites[i].Share = 1, 1
		}
		sc.Visitors.Roams, sc.Visitors.Streams = 1, 0
		sc.Arrivals[0].To, sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 7*time.Minute, 100, 80
		for at := span(rng, 20*time.Second, 40*time.Second); at < 9*time.Minute; at += span(rng, 34*time.Second, 38*time.Second) {
			sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: span(rng, 4*time.Second, 8*time.Second), What: "node", Site: siteOf(sc, rng)})
		}
	},
	// Two clients share a cookie, at two data centers, in a room where turns follow each other at some distance.
	"shared": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute, sc.Unpaced = 400, 21, false
		sc.Visitors.Clones, sc.Visitors.Streams = 0.2, 0.2
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 40, 40
	},
	// Two clients share a cookie, at data centers that are cut off from each other, and those change hands meanwhile.
	"copies": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Clones = 0.5
		for at := 30 * time.Second; at < 3*time.Minute; at += time.Minute {
			cut := sim.Cut{At: at, For: span(rng, 15*time.Second, 25*time.Second), Site: siteOf(sc, rng)}
			sc.Faults.Cuts = append(sc.Faults.Cuts, cut)
			sc.Faults.Handovers = append(sc.Faults.Handovers, sim.Handover{At: at + span(rng, 5*time.Second, 14*time.Second), For: time.Second, Site: cut.Site})
		}
	},
	// Visitors who have been idle for longer than a session send several requests at once.
	"together": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.Visitors.Parallel, sc.Visitors.Browsing.Mean, sc.Visitors.Think.Mean = 0.6, time.Minute, 20*time.Second
	},
	// Visitors sleep for longer than their places are kept, and send several requests at once when they wake up.
	"wakes": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.PlaceHold, sc.Visitors.Sleeps, sc.Visitors.Parallel = 50*time.Second, 0.9, 0.6
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 150, 150
	},
	// Sessions are not much longer than word of a guest is under way to the home of the session. Visitors go on at another data center.
	"guests": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.SessionDuration = span(rng, time.Second, 2500*time.Millisecond)
		sc.Sites[1].Delay, sc.Sites[2].Delay = 240*time.Millisecond, span(rng, 150*time.Millisecond, 240*time.Millisecond)
		sc.Visitors = sim.Visitors{Browsing: sim.Spread{Mean: time.Minute}, Think: sim.Spread{Mean: time.Second}, Streams: 1, Roams: 1}
	},
	// A role changes hands once a minute, so that nothing excuses that somebody is passed.
	"changes": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Handovers = every(50*time.Second, rng, func(at time.Duration) sim.Handover {
			return handover(sc, rng, at)
		})
	},
	// The same, where few visitors hold a stream.
	"polling": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Streams = 0.1
		sc.Arrivals = append(sc.Arrivals, sim.Flow{To: time.Minute, Visitors: 150})
		sc.Faults.Handovers = every(50*time.Second, rng, func(at time.Duration) sim.Handover {
			return handover(sc, rng, at)
		})
	},
	// The origin of a busy room dies for a while, and visitors whom it has failed come again later.
	"outage": outage,
	// The same, and each site changes hands while they are away.
	"outage-changes": func(sc *sim.Scenario, rng *rand.Rand) {
		outage(sc, rng)
		for _, site := range sc.Sites {
			end := sc.Origin.Faults[0].At + sc.Origin.Faults[0].For
			sc.Faults.Handovers = append(sc.Faults.Handovers, sim.Handover{At: end + span(rng, 0, 20*time.Second), Site: site.Name, Orderly: true})
		}
	},
	// The room is shut again and again, by its limits or by hand, and opened when many wait who hold no stream.
	"opens": opens,
	// The same, with turns that take effect a quarter of a second after they are given: many hold a stream, and some check in meanwhile.
	"opens-far": func(sc *sim.Scenario, rng *rand.Rand) {
		opens(sc, rng)
		sc.Sites[1].Delay, sc.Visitors.Streams = 220*time.Millisecond, 0.6
	},
	// It is shut for longer than anything is under way, while data centers are cut off from the coordinator.
	"opens-cut": func(sc *sim.Scenario, rng *rand.Rand) {
		if rng.IntN(2) == 0 { // and nobody waits before
			sc.TotalActiveUsers, sc.NewUsersPerMinute = 300, 1500
		}
		opens(sc, rng)
		for i := range sc.Changes {
			if i%2 == 1 {
				sc.Changes[i].At = sc.Changes[i-1].At + span(rng, 30*time.Second, 50*time.Second)
			}
		}
		cutSites(sc, rng)
	},
	// A prequeue ends with a shuffle.
	"shuffle": shuffle,
	// The same, where visitors go to other data centers and lose cookies, and a role changes hands.
	"shuffle-changes": func(sc *sim.Scenario, rng *rand.Rand) {
		shuffle(sc, rng)
		sc.Visitors.Roams, sc.Visitors.LostCookies, sc.Visitors.Sleeps = 0.3, 0.1, 0.1
		sc.Faults.Handovers = every(20*time.Second, rng, func(at time.Duration) sim.Handover { return handover(sc, rng, at) })
		sc.Faults.Handovers = append(sc.Faults.Handovers, sim.Handover{At: sc.Acts[0].At + span(rng, 0, time.Second), For: time.Second})
	},
	// Visitors give up their places, and their cookies are used again.
	"quits": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Quits = 0.5
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 150, 150
		if rng.IntN(2) == 0 {
			sc.Faults.Handovers = every(30*time.Second, rng, func(at time.Duration) sim.Handover { return handover(sc, rng, at) })
		}
	},
	// The same, where cookies are shared all the time, and used at other data centers.
	"quits-roams": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Quits, sc.Visitors.Clones, sc.Visitors.Roams, sc.Visitors.Tabs = 0.5, 0.3, 0.3, 0.2
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 150, 150
	},
	// Most who wait give up their places when they are called, if not before.
	"quits-called": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.TotalActiveUsers, sc.Visitors.Quits, sc.Visitors.Streams = 6, 0.9, 1
		sc.Arrivals = []sim.Flow{{To: 3 * time.Minute, PerMinute: 150, ToPerMinute: 150}}
	},
	// The line is reset now and then.
	"resets": resets,
	// The same, where visitors go to other data centers and lose cookies, and roles change hands.
	"resets-changes": func(sc *sim.Scenario, rng *rand.Rand) {
		resets(sc, rng)
		sc.Visitors.Roams, sc.Visitors.LostCookies, sc.Visitors.Sleeps = 0.3, 0.1, 0.2
		sc.Faults.Handovers = every(20*time.Second, rng, func(at time.Duration) sim.Handover { return handover(sc, rng, at) })
	},
	// The room is shut, and the operator gives turns by hand.
	"by-hand": byHand,
	// The same, where visitors sleep, and roles change hands.
	"by-hand-changes": func(sc *sim.Scenario, rng *rand.Rand) {
		byHand(sc, rng)
		sc.Visitors.Sleeps = 0.2
		sc.Faults.Handovers = every(30*time.Second, rng, func(at time.Duration) sim.Handover { return handover(sc, rng, at) })
	},
	// The same, where winners are drawn.
	"by-hand-draw": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.QueueingMethod = anteroom.Random
		byHand(sc, rng)
	},
	// A room of one process, where nothing can be recorded now and then; sometimes nobody waits then.
	"held": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Sites = []sim.Site{{Name: "here"}}
		if rng.IntN(2) == 0 {
			sc.TotalActiveUsers, sc.NewUsersPerMinute = 300, 1500
		}
		sc.Acts = every(30*time.Second, rng, func(at time.Duration) sim.Act { return sim.Act{At: at, What: "hold", N: 2 + rng.IntN(9)} })
	},
	// Edges report whom they let in, and sessions become shorter than passes of before.
	"shortens": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.SessionDuration, sc.Pass, sc.PassReported = 2*time.Minute, time.Minute, true
		sc.Arrivals = []sim.Flow{{To: 5 * time.Minute, PerMinute: 40, ToPerMinute: 40}}
		after := sc.Settings
		after.SessionDuration, after.Pass = 20*time.Second, 10*time.Second
		sc.Changes = []sim.Change{{At: 3 * time.Minute, Settings: after}}
	},
	// Roles change hands all the time.
	"bouncing": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Handovers = every(5*time.Second, rng, func(at time.Duration) sim.Handover { return handover(sc, rng, at) })
	},
	// Processes that hold a role are stopped and replaced, and go on.
	"stopped": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Pauses = every(20*time.Second, rng, func(at time.Duration) sim.Pause {
			p := sim.Pause{At: at, For: span(rng, 4*time.Second, 12*time.Second), What: "coordinator", Replaced: 3 * time.Second}
			if rng.IntN(2) == 0 {
				p.What, p.Site = "site", siteOf(sc, rng)
			}
			return p
		})
	},
	// Journals stall, and the processes that write them end meanwhile.
	"stalled": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Stalls = every(20*time.Second, rng, func(at time.Duration) sim.Stall {
			s := sim.Stall{At: at, For: span(rng, 3*time.Second, 6*time.Second), Site: siteOf(sc, rng)}
			sc.Faults.Deaths = append(sc.Faults.Deaths, sim.Death{At: at + 2*time.Second, For: time.Second, What: "site", Site: s.Site})
			return s
		})
	},
	// Processes end and others take their place, some without memory.
	"ends": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Deaths = every(15*time.Second, rng, func(at time.Duration) sim.Death {
			d := sim.Death{At: at, For: span(rng, 500*time.Millisecond, 4*time.Second), What: []string{"site", "process", "coordinator", "all"}[rng.IntN(4)]}
			if d.What == "site" || d.What == "process" {
				d.Site, d.Forgets = siteOf(sc, rng), d.What == "site" && rng.IntN(3) == 0
			}
			return d
		})
	},
	// Nodes end all the time, and visitors click a lot. Nobody holds a stream, for seats are free for long
	// when a node that ended serves nobody again.
	"short-lived": func(sc *sim.Scenario, _ *rand.Rand) {
		sc.SessionDuration = time.Minute
		sc.Visitors.Think, sc.Visitors.Streams = sim.Spread{Mean: time.Second}, 0
		sc.Faults.NodeLife = 8 * time.Second
	},
	// Data centers lose their memory.
	"forgets": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Faults.Deaths = every(40*time.Second, rng, func(at time.Duration) sim.Death {
			return sim.Death{At: at, For: span(rng, 500*time.Millisecond, 4*time.Second), What: "site", Site: siteOf(sc, rng), Forgets: true}
		})
	},
	// The same, where visitors are idle for long, and their cookies older than what the room knows of them.
	"forgets-idle": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.SessionDuration, sc.TotalActiveUsers = time.Minute, 60
		sc.Visitors.Browsing.Mean, sc.Visitors.Think.Mean = 3*time.Minute, 25*time.Second
		sc.Faults.Deaths = every(40*time.Second, rng, func(at time.Duration) sim.Death {
			return sim.Death{At: at, For: span(rng, 500*time.Millisecond, 4*time.Second), What: "site", Site: siteOf(sc, rng), Forgets: true}
		})
	},
	// Nodes are cut off from their data center, some for longer than a session.
	"nodes-cut": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Browsing.Mean = time.Minute
		sc.Faults.Cuts = every(20*time.Second, rng, func(at time.Duration) sim.Cut {
			return sim.Cut{At: at, For: span(rng, 3*time.Second, 50*time.Second), What: "node", Site: siteOf(sc, rng)}
		})
	},
	// The links of nodes lose most messages for some seconds, or are slow. Visitors load the page again meanwhile, and streams break.
	"weak-links": func(sc *sim.Scenario, rng *rand.Rand) {
		opens(sc, rng)
		sc.Visitors.Reloads, sc.Visitors.Drops, sc.Visitors.Streams = 0.1, 0.4, 0.9
		for _, c := range sc.Changes {
			for i := range 5 {
				cut := sim.Cut{At: c.At - span(rng, 0, 4*time.Second), For: span(rng, 4*time.Second, 9*time.Second), What: "node", Site: siteOf(sc, rng)}
				if i%2 == 1 {
					cut.Slow = span(rng, 100*time.Millisecond, 400*time.Millisecond)
				} else {
					cut.Down, cut.Loses = true, 0.7+0.25*rng.Float64()
				}
				sc.Faults.Cuts = append(sc.Faults.Cuts, cut)
			}
		}
	},
	// The rate binds, and answers come to doors that have given them up: their visitors come again, and are let in then.
	"slow-links": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 400, 120
		sc.Sites[0].Nodes, sc.Sites[1].Nodes = 1, 1
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 200, 200
		for at := 20 * time.Second; at < 3*time.Minute; at += span(rng, 4*time.Second, 8*time.Second) {
			sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: 3 * time.Second, What: "node", Site: siteOf(sc, rng), Down: true, Slow: 3200 * time.Millisecond})
		}
	},
	// The links of nodes lose most messages, where most visitors send one request and leave.
	"one-request": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors = sim.Visitors{Browsing: sim.Spread{Mean: time.Second}, Think: sim.Spread{Mean: time.Second}, Streams: 0.5, Bare: 1}
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 20, 200
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 55, 55
		for at := 20 * time.Second; at < 3*time.Minute; at += span(rng, 2*time.Second, 6*time.Second) {
			sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: 5 * time.Second, What: "node", Site: siteOf(sc, rng), Down: true, Loses: 0.8})
		}
	},
	// Sessions are ended by the origin, and their cookies used again, while nodes are cut off.
	"log-outs": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.LogsOut = 0.7
		sc.Faults.Cuts = every(15*time.Second, rng, func(at time.Duration) sim.Cut {
			return sim.Cut{At: at, For: span(rng, 3*time.Second, 20*time.Second), What: "node", Site: siteOf(sc, rng)}
		})
	},
	// Visitors go on at data centers that are cut off from the home of their session for longer than it lasts.
	"guests-cut": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Roams, sc.Visitors.Browsing.Mean, sc.Visitors.Think.Mean = 0.9, 2*time.Minute, 2*time.Second
		for at := 40 * time.Second; at < 4*time.Minute; at += 90 * time.Second {
			sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: span(rng, 50*time.Second, 80*time.Second), Site: siteOf(sc, rng)})
		}
	},
	// A few visitors at many nodes, of which some are cut off: most of them know nobody.
	"idle-nodes": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.TotalActiveUsers, sc.Arrivals = 12, []sim.Flow{{To: 9 * time.Minute, PerMinute: 30, ToPerMinute: 30}}
		sc.Visitors = sim.Visitors{Browsing: sim.Spread{Mean: 30 * time.Second}, Think: sim.Spread{Mean: 10 * time.Second}}
		for i := range sc.Sites {
			sc.Sites[i].Nodes = 10
			for at := 20 * time.Second; at < 9*time.Minute; at += span(rng, 20*time.Second, 40*time.Second) {
				sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: 20 * time.Second, What: "node", Site: sc.Sites[i].Name, Node: rng.IntN(10)})
			}
		}
	},
	// Nodes are stopped for so long that sessions end meanwhile, and go on with what has come for them.
	"nodes-stopped": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Think.Mean = 2 * time.Second
		for at := 30 * time.Second; at < 3*time.Minute; at += span(rng, 5*time.Second, 15*time.Second) {
			sc.Faults.Pauses = append(sc.Faults.Pauses, sim.Pause{At: at, For: span(rng, 2*time.Second, 40*time.Second), What: "node", Site: siteOf(sc, rng)})
		}
	},
	// The rate binds, answers come late because nodes are cut off for some seconds, and sites change hands soon after.
	"late": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 400, 120
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 200, 200
		sc.Visitors.Streams, sc.Visitors.LostCookies = 0.3, 0.1
		for at := 20 * time.Second; at < 3*time.Minute; at += span(rng, 4*time.Second, 12*time.Second) {
			sc.Faults.Cuts = append(sc.Faults.Cuts, sim.Cut{At: at, For: span(rng, time.Second, 4*time.Second), What: "node", Site: siteOf(sc, rng)})
		}
		for at := 40 * time.Second; at < 3*time.Minute; at += span(rng, 10*time.Second, 20*time.Second) {
			sc.Faults.Handovers = append(sc.Faults.Handovers, sim.Handover{At: at, For: time.Second, Site: siteOf(sc, rng)})
		}
	},
	// The rate binds, and journals stall for a moment all the time: some answers come later than others.
	"hiccups": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 400, 120
		sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 200, 200
		for at := 10 * time.Second; at < 3*time.Minute; at += span(rng, 300*time.Millisecond, 2*time.Second) {
			sc.Faults.Stalls = append(sc.Faults.Stalls, sim.Stall{At: at, For: span(rng, 50*time.Millisecond, 240*time.Millisecond), Site: siteOf(sc, rng)})
		}
	},
	// Nodes are cut off from their data center, and another process takes its role meanwhile.
	"nodes-cut-changes": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.Visitors.Browsing.Mean = time.Minute
		for at := span(rng, 20*time.Second, 40*time.Second); at < 3*time.Minute; at += span(rng, 15*time.Second, 40*time.Second) {
			cut := sim.Cut{At: at, For: span(rng, 20*time.Second, 50*time.Second), What: "node", Site: siteOf(sc, rng)}
			sc.Faults.Cuts = append(sc.Faults.Cuts, cut)
			sc.Faults.Handovers = append(sc.Faults.Handovers, sim.Handover{At: at + span(rng, 0, 10*time.Second), For: time.Second, Site: cut.Site})
		}
	},
	// Data centers are cut off from the coordinator.
	"sites-cut": cutSites,
	// Nobody waits when a data center is cut off. Then many come everywhere: it lets in its own, who are far back in line
	// when the cut is over, and many of them have lost the cookie that said so.
	"unheard": func(sc *sim.Scenario, rng *rand.Rand) {
		sc.TotalActiveUsers, sc.NewUsersPerMinute = 300, 1500
		cut := sim.Cut{At: 40 * time.Second, For: span(rng, 15*time.Second, 40*time.Second), Site: "middle"}
		sc.Arrivals = []sim.Flow{{To: 3 * time.Minute, PerMinute: 300, ToPerMinute: 300}, {From: 45 * time.Second, To: 50 * time.Second, Visitors: 600, Site: "near"},
			{From: 48 * time.Second, To: 70 * time.Second, Visitors: 200, Site: "middle"}}
		sc.Sites[2].Nodes = 4
		sc.Visitors.Streams, sc.Visitors.LostCookies, sc.Visitors.Think.Mean = 0, 0.5, time.Second
		sc.Faults.Cuts = []sim.Cut{cut}
	},
	// Data centers are cut off from the coordinator again and again, and it ends when it cannot hear one.
	"sites-cut-crash": func(sc *sim.Scenario, rng *rand.Rand) {
		for at := span(rng, 20*time.Second, 30*time.Second); at < 3*time.Minute; at += span(rng, 5*time.Second, 25*time.Second) {
			cut := sim.Cut{At: at, For: span(rng, 4*time.Second, 10*time.Second), Site: siteOf(sc, rng)}
			sc.Faults.Cuts = append(sc.Faults.Cuts, cut)
			if rng.IntN(2) == 0 {
				sc.Faults.Deaths = append(sc.Faults.Deaths, sim.Death{At: at + span(rng, 0, 5*time.Second), For: span(rng, 500*time.Millisecond, 3*time.Second), What: "coordinator"})
			}
		}
	},
	// A site is new to its coordinator, which ends before it has stored what it granted; the site is
	// cut off then.
	"young": func(sc *sim.Scenario, rng *rand.Rand) {
		f := &sc.Faults
		f.SlowStore = 2 * time.Second
		f.Deaths = []sim.Death{{At: span(rng, 3*time.Second, 4*time.Second), For: 500 * time.Millisecond, What: "coordinator"}}
		f.Cuts = []sim.Cut{{At: f.Deaths[0].At - 100*time.Millisecond, For: time.Minute, Site: "far"}}
		sc.Arrivals = []sim.Flow{{To: 3 * time.Second, Visitors: 40, Site: "far"}, {From: 2 * time.Second, To: 30 * time.Second, Visitors: 60}}
	},
}

// shuffle ends a prequeue with a shuffle.
func shuffle(sc *sim.Scenario, rng *rand.Rand) {
	open := sc.Settings
	sc.Prequeueing = true
	sc.Acts = []sim.Act{{At: span(rng, 40*time.Second, time.Minute), What: "shuffle"}}
	sc.Changes = []sim.Change{{At: sc.Acts[0].At, Settings: open}}
	sc.Arrivals = append(sc.Arrivals, sim.Flow{To: 30 * time.Second, Visitors: 120})
}

func byHand(sc *sim.Scenario, rng *rand.Rand) {
	opens(sc, rng)
	for i := range sc.Changes {
		if i%2 == 0 && rng.IntN(2) == 0 {
			sc.Changes[i].Settings = sc.Settings
			sc.Changes[i].Settings.QueueAll = true
		}
	}
	sc.Acts = every(8*time.Second, rng, func(at time.Duration) sim.Act { return sim.Act{At: at, What: "admit", N: 1 + rng.IntN(15)} })
	for i := range len(sc.Changes) / 2 { // and changes something else meanwhile
		shut, open := sc.Changes[2*i], sc.Changes[2*i+1].At
		for shut.At += span(rng, time.Second, 8*time.Second); shut.At < open; shut.At += span(rng, time.Second, 8*time.Second) {
			shut.Settings.NewUsersPerMinute++
			sc.Changes = append(sc.Changes, shut)
		}
	}
	slices.SortFunc(sc.Changes, func(a, b sim.Change) int { return cmp.Compare(a.At, b.At) })
}

func resets(sc *sim.Scenario, rng *rand.Rand) {
	sc.Acts = every(50*time.Second, rng, func(at time.Duration) sim.Act { return sim.Act{At: at, What: "reset"} })
	sc.Arrivals[0].PerMinute, sc.Arrivals[0].ToPerMinute = 150, 150
	sc.Visitors.Streams = 0.4
}

// outage has the origin die for a while.
func outage(sc *sim.Scenario, rng *rand.Rand) {
	sc.Sites = []sim.Site{{Name: "near", Share: 2, Nodes: 2, Delay: 2 * time.Millisecond}, {Name: "far", Share: 1, Nodes: 1, Delay: 30 * time.Millisecond}}
	sc.TotalActiveUsers, sc.NewUsersPerMinute, sc.SessionDuration = 500, 400, 30*time.Second
	sc.Protect, sc.ProtectReturn = true, 10*time.Minute
	if rng.IntN(2) == 0 {
		sc.QueueingMethod = anteroom.Random
	}
	sc.Arrivals = []sim.Flow{{To: 5 * time.Minute, PerMinute: 300, ToPerMinute: 300}, {From: time.Minute, To: 2 * time.Minute, Visitors: 600}}
	sc.Visitors.Browsing.Mean, sc.Visitors.Streams, sc.Visitors.Returns = time.Minute, 0.9, 0.4
	sc.Origin = sim.Origin{PerSecond: 120, Latency: 50 * time.Millisecond,
		Faults: []sim.OriginFault{{At: 2 * time.Minute, For: span(rng, time.Minute, 2*time.Minute), What: []string{"dead", "failing"}[rng.IntN(2)]}}}
}

// opens shuts the room now and then and opens it again.
func opens(sc *sim.Scenario, rng *rand.Rand) {
	sc.Visitors.Streams = 0.3
	for at := 40 * time.Second; at < 3*time.Minute; at += 70 * time.Second {
		shut := sc.Settings
		switch rng.IntN(3) {
		case 0:
			shut.QueueAll = true
		case 1:
			shut.Prequeueing = true
		default:
			shut.TotalActiveUsers, shut.NewUsersPerMinute = 0, 0
		}
		sc.Changes = append(sc.Changes, sim.Change{At: at, Settings: shut}, sim.Change{At: at + span(rng, 10*time.Second, 50*time.Second), Settings: sc.Settings})
	}
}

func cutSites(sc *sim.Scenario, rng *rand.Rand) {
	sc.Faults.Cuts = every(30*time.Second, rng, func(at time.Duration) sim.Cut {
		c := sim.Cut{At: at, For: span(rng, 3*time.Second, 25*time.Second), Site: siteOf(sc, rng)}
		c.Up, c.Down = rng.IntN(3) == 0, rng.IntN(3) == 0
		return c
	})
}

func span(rng *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(rng.Int64N(int64(b-a)+1))
}

func siteOf(sc *sim.Scenario, rng *rand.Rand) string { return sc.Sites[rng.IntN(len(sc.Sites))].Name }

// every makes a fault about so often.
func every[T any](apart time.Duration, rng *rand.Rand, one func(at time.Duration) T) (all []T) {
	for at := span(rng, 20*time.Second, 40*time.Second); at < 3*time.Minute; at += span(rng, apart/2, apart*3/2) {
		all = append(all, one(at))
	}
	return all
}

// handover gives a role to another process; in one of three the coordinator's.
func handover(sc *sim.Scenario, rng *rand.Rand, at time.Duration) sim.Handover {
	h := sim.Handover{At: at, For: span(rng, time.Millisecond, sim.MaxHandover), Orderly: rng.IntN(3) == 0}
	if rng.IntN(3) > 0 {
		h.Site = siteOf(sc, rng)
	}
	return h
}

// verdict is what a run of a world found.
type verdict struct {
	World  string
	Broken []broken // none: every check held
	Took   time.Duration
}

type broken struct {
	Check string
	Times int
	First string
}

// judge runs worlds one after the other and writes a verdict for each, as a line of JSON. With
// until it stops at the first world that breaks a promise.
func judge(ctx context.Context, out io.Writer, worlds []worldID, until bool) error {
	say := json.NewEncoder(out)
	for _, w := range worlds {
		sc, err := w.scenario()
		if err != nil {
			return err
		}
		v := verdict{World: w.String()}
		began := time.Now()
		r, err := sim.Run(ctx, sc, w.seed, sim.Options{})
		v.Took = time.Since(began)
		if err != nil { // such a world says nothing of a mutant
			return fmt.Errorf("the world %q cannot be run: %w", w, err)
		}
		for _, c := range r.Checks {
			if c.Broken > 0 {
				v.Broken = append(v.Broken, broken{c.Name, c.Broken, c.First})
			}
		}
		if err := say.Encode(v); err != nil {
			return err
		}
		if until && len(v.Broken) > 0 {
			return nil
		}
	}
	return nil
}
