package sim

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
)

// five are the data centres of the published comparison: 2 to 90 ms from the coordinator,
// four nodes each.
func five(nodes int, loads ...float64) []Site {
	var out []Site
	for i, d := range []time.Duration{2, 15, 40, 70, 90} {
		out = append(out, Site{Name: fmt.Sprintf("dc%d", i+1), Share: []float64{0.3, 0.2, 0.2, 0.18, 0.12}[i], Nodes: nodes, Loads: loads,
			Delay: d * time.Millisecond, Jitter: d * time.Millisecond / 10})
	}
	return out
}

func limits(l, r int, d time.Duration) anteroom.Settings {
	return anteroom.Settings{TotalActiveUsers: l, NewUsersPerMinute: r, SessionDuration: d}
}

func drawn(s anteroom.Settings) anteroom.Settings {
	s.QueueingMethod = anteroom.Random
	return s
}

func passing(s anteroom.Settings, life time.Duration) anteroom.Settings {
	s.Pass = life
	return s
}

func reporting(s anteroom.Settings) anteroom.Settings {
	s.PassReported = true
	return s
}

// steady is a flow of a constant rate for the whole length.
func steady(length time.Duration, perMinute float64) []Flow {
	return []Flow{{To: length, PerMinute: perMinute, ToPerMinute: perMinute}}
}

// scenarios are the worlds in which the published ways and ours were compared (the study's
// list), and some more. Each can be run with any algorithm.
func scenarios() []Scenario {
	const minutes = time.Minute
	people := Visitors{Browsing: Spread{Mean: 90 * time.Second}, Streams: 0.9}
	// queueing is the line that the fault scenarios share: half as many again as fit.
	queueing := func(name, about string, change func(*Scenario)) Scenario {
		sc := Scenario{Name: name, About: about, Length: 15 * minutes, Settings: limits(600, 600, time.Minute), Sites: five(4),
			Arrivals: append(steady(15*minutes, 230), Flow{From: minutes, To: 2 * minutes, Visitors: 700}), Visitors: people}
		sc.Visitors.LeavePerMinute = 0.02
		change(&sc)
		return sc
	}
	all := []Scenario{
		{Name: "steady", About: "steady traffic at 70 % of the seats and of the rate; no visitor should wait", Length: 15 * minutes,
			Settings: limits(1000, 400, time.Minute), Sites: five(4), Arrivals: steady(15*minutes, 275), Visitors: people},
		{Name: "uneven", About: "two nodes per data center that get 7/8 and 1/8 of the requests; 85 % of the seats", Length: 15 * minutes,
			Settings: limits(400, 400, time.Minute), Sites: five(2, 7, 1), Arrivals: steady(15*minutes, 135), Visitors: people},
		{Name: "spike-one", About: "base load 30 %, then 1,200 visitors in 30 s in the data center that usually has 12 %", Length: 15 * minutes,
			Settings: limits(1000, 1000, time.Minute), Sites: five(4),
			Arrivals: append(steady(15*minutes, 118), Flow{From: 5 * minutes, To: 5*minutes + 30*time.Second, Visitors: 1200, Site: "dc5"}), Visitors: people},
		{Name: "spike-new", About: "base load 50 %, then 600 visitors in 20 s in a data center without any history", Length: 15 * minutes,
			Settings: limits(1000, 1000, time.Minute),
			Sites:    append(five(4), Site{Name: "dc6", Share: 0, Nodes: 4, Delay: 110 * time.Millisecond, Jitter: 11 * time.Millisecond}),
			Arrivals: append(steady(15*minutes, 197), Flow{From: 5 * minutes, To: 5*minutes + 20*time.Second, Visitors: 600, Site: "dc6"}), Visitors: people},
		{Name: "spike-world", About: "base load 8 %, then 3,000 visitors in 10 s everywhere at once", Length: 15 * minutes,
			Settings: limits(1000, 1000, time.Minute), Sites: five(4),
			Arrivals: append(steady(15*minutes, 32), Flow{From: 5 * minutes, To: 5*minutes + 10*time.Second, Visitors: 3000}), Visitors: people},
		{Name: "backlog", About: "5,000 visitors in 5 minutes for 600 seats, fifo, 5 % of waiting visitors give up every minute", Length: 30 * minutes,
			Settings: limits(600, 600, time.Minute), Sites: five(4), Arrivals: append(steady(30*minutes, 60), Flow{From: minutes, To: 6 * minutes, Visitors: 5000}),
			Visitors: Visitors{Browsing: people.Browsing, Streams: 0.9, LeavePerMinute: 0.05}},
		{Name: "random", About: "random order: 10,000 visitors over 30 minutes, about a minute of browsing", Length: 55 * minutes,
			Settings: drawn(limits(400, 400, time.Minute)), Sites: five(4), Arrivals: []Flow{{To: 30 * minutes, Visitors: 10000}},
			Visitors: Visitors{Browsing: Spread{Mean: 70 * time.Second}, Streams: 0.9}},
		{Name: "rate-open", About: "the rate is the bottleneck: 2,400 visitors within 60 s, 300 new users per minute, ample seats", Length: 10 * minutes,
			Settings: limits(5000, 300, time.Minute), Sites: five(4), Arrivals: append(steady(10*minutes, 48), Flow{To: minutes, Visitors: 2400}), Visitors: people},
		{Name: "passes", About: "visitors behind edges that accept passes of 30 s, with clocks that are off by up to 5 s; lost and copied cookies", Length: 20 * minutes,
			Settings: passing(limits(400, 400, time.Minute), 30*time.Second), Sites: five(2), Arrivals: append(steady(20*minutes, 130), Flow{From: 2 * minutes, To: 3 * minutes, Visitors: 600}),
			Visitors: Visitors{Browsing: Spread{Mean: 2 * minutes}, Think: Spread{Mean: 8 * time.Second}, Streams: 0.8, LostCookies: 0.02, Clones: 0.05, LeavePerMinute: 0.05}},
		{Name: "edge", About: "demand swings around the limit: 60 to 125 % of the seats in 6-minute waves", Length: 24 * minutes,
			Settings: limits(400, 600, time.Minute), Sites: five(4), Arrivals: waves(24*minutes, 6*minutes, 95, 197), Visitors: people},
		queueing("partition", "queueing; the data center with 20 % of the traffic cannot reach the others for 2 minutes", func(sc *Scenario) {
			sc.Faults.Cuts = []Cut{{At: 5 * minutes, For: 2 * minutes, Site: "dc3"}}
		}),
		{Name: "part-open", About: "75 % load, no queue; one data center is cut off for 2 minutes, during which 500 visitors arrive everywhere in 20 s", Length: 15 * minutes,
			Settings: limits(1000, 1000, time.Minute), Sites: five(4),
			Arrivals: append(steady(15*minutes, 295), Flow{From: 5*minutes + 30*time.Second, To: 5*minutes + 50*time.Second, Visitors: 500}), Visitors: people,
			Faults: Faults{Cuts: []Cut{{At: 5 * minutes, For: 2 * minutes, Site: "dc3"}}}},
		queueing("crash", "queueing; the coordinator is down for 30 s and then restarts", func(sc *Scenario) {
			sc.Faults.Deaths = []Death{{At: 5 * minutes, For: 30 * time.Second, What: "coordinator"}}
		}),
		queueing("churn", "queueing; every node lives 45 s on average", func(sc *Scenario) { sc.Faults.NodeLife = 45 * time.Second }),
		queueing("parallel", "queueing; 40 % of the visitors send six requests at once with the same cookie, or none", func(sc *Scenario) { sc.Visitors.Parallel = 0.4 }),
		queueing("lost-cookie", "queueing; 1 % of all Set-Cookie headers are lost", func(sc *Scenario) { sc.Visitors.LostCookies = 0.01 }),
		queueing("skew", "queueing; clocks are off by up to 5 s", func(sc *Scenario) { sc.Faults.Clock = 5 * time.Second }),

		{Name: "reports", About: "visitors behind edges that accept passes of 30 s and report whom they saw, or lose reports, with clocks that are off by up to 5 s", Length: 20 * minutes,
			Settings: reporting(passing(limits(400, 400, time.Minute), 30*time.Second)), Sites: five(2), Arrivals: append(steady(20*minutes, 130), Flow{From: 2 * minutes, To: 3 * minutes, Visitors: 600}),
			Visitors: Visitors{Browsing: Spread{Mean: 2 * minutes}, Think: Spread{Mean: 15 * time.Second}, Streams: 0.8, LostCookies: 0.02, Clones: 0.05, LeavePerMinute: 0.05}},
		queueing("roaming", "queueing; 15 % of the visitors move to another data center, waiting or with a session", func(sc *Scenario) { sc.Visitors.Roams = 0.15 }),
		queueing("replay", "queueing; 10 % come back with their waiting cookie after the session, 5 % share their cookie with a second client", func(sc *Scenario) {
			sc.Visitors.Replays, sc.Visitors.Clones = 0.1, 0.05
		}),
		queueing("unruly", "queueing; tabs, reloads, early check-ins, sleeping phones, bots without cookies", func(sc *Scenario) {
			v := &sc.Visitors
			v.Tabs, v.Reloads, v.Early, v.Sleeps, v.NoCookies, v.Parallel = 0.1, 0.1, 0.1, 0.1, 0.1, 0.1
		}),
		queueing("site-lost", "queueing; a data center's site loses its memory for 10 s, later another restarts and keeps it", func(sc *Scenario) {
			sc.Faults.Deaths = []Death{{At: 4 * minutes, For: 10 * time.Second, What: "site", Site: "dc2", Forgets: true},
				{At: 8 * minutes, For: 5 * time.Second, What: "site", Site: "dc1"}}
		}),
		queueing("handover", "queueing; a data center's site moves from process to process, and the old one keeps running for 3 s; 10 % roam", func(sc *Scenario) {
			sc.Visitors.Roams = 0.1
			for i := range 10 {
				sc.Faults.Handovers = append(sc.Faults.Handovers, Handover{At: time.Duration(90+70*i) * time.Second, For: MaxHandover, Site: sc.Sites[i%5].Name})
			}
		}),
		hundred(),
		million(),
		day(),
	}
	for _, name := range []string{"spike-world", "edge", "backlog"} {
		for _, sc := range all {
			if sc.Name == name {
				sc.Name, sc.About = name+"-slow", sc.About+"; all delays three times as long"
				sc.Sites = append([]Site(nil), sc.Sites...)
				for i := range sc.Sites {
					sc.Sites[i].Delay *= 3
					sc.Sites[i].Jitter *= 3
				}
				all = append(all, sc)
				break
			}
		}
	}
	return all
}

// waves swings between two rates.
func waves(length, period time.Duration, low, high float64) (out []Flow) {
	for at := time.Duration(0); at < length; at += period {
		half := at + period/2
		out = append(out, Flow{From: at, To: half, PerMinute: low, ToPerMinute: high}, Flow{From: half, To: min(at+period, length), PerMinute: high, ToPerMinute: low})
	}
	return out
}

func hundred() Scenario {
	sc := Scenario{Name: "hundred-sites", About: "100 data centers, 20,000 visitors in 3 minutes for 4,000 seats", Length: 15 * time.Minute,
		Settings: limits(4000, 6000, time.Minute), Visitors: Visitors{Browsing: Spread{Mean: 90 * time.Second}, Streams: 0.9, LeavePerMinute: 0.02},
		Arrivals: append(steady(15*time.Minute, 400), Flow{From: time.Minute, To: 4 * time.Minute, Visitors: 20000})}
	for i := range 100 {
		d := time.Duration(2+i) * time.Millisecond
		sc.Sites = append(sc.Sites, Site{Name: fmt.Sprintf("dc%d", i+1), Share: 1 + float64(i%10), Nodes: 2, Delay: d, Jitter: d / 10})
	}
	return sc
}

func million() Scenario {
	return Scenario{Name: "million", About: "1,000,000 visitors in 20 minutes for 50,000 seats, 50,000 new users per minute", Length: 45 * time.Minute,
		Settings: limits(50_000, 50_000, time.Minute), Sites: five(8),
		Visitors: Visitors{Browsing: Spread{Mean: 90 * time.Second}, Think: Spread{Mean: 30 * time.Second}, Streams: 0.9, LeavePerMinute: 0.01},
		Arrivals: []Flow{{From: 10 * time.Second, To: 20 * time.Minute, Visitors: 1_000_000}}}
}

// day is a line that lasts for hours: what the speed of the simulator is quoted for.
func day() Scenario {
	return Scenario{Name: "day", About: "200,000 visitors in an hour for 2,500 seats; the queue lasts all day", Length: 9 * time.Hour,
		Settings: limits(2500, 1000, 5*time.Minute), Sites: five(4),
		Visitors: Visitors{Browsing: Spread{Mean: 2 * time.Minute}, Think: Spread{Mean: 30 * time.Second}, Streams: 0.9},
		Arrivals: []Flow{{To: time.Hour, Visitors: 200_000}}}
}

// Named returns the scenario of the name.
func Named(name string) (Scenario, bool) {
	for _, sc := range scenarios() {
		if sc.Name == name {
			return sc, true
		}
	}
	return Scenario{}, false
}
