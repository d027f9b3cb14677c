package rig

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

// scenario is the same world for the simulator.
func (c Case) scenario(scale float64) sim.Scenario {
	length := scaled(c.Length, scale)
	sc := sim.Scenario{Name: c.Name, About: c.About, Length: length,
		Settings: anteroom.Settings{TotalActiveUsers: c.Room.Active, NewUsersPerMinute: c.Room.PerMinute, SessionDuration: c.Room.Session, QueueingMethod: anteroom.QueueingMethod(method(c.Room))},
		Visitors: sim.Visitors{Browsing: sim.Spread{Mean: time.Duration(c.People.Pages-1) * c.People.Think}, Think: sim.Spread{Mean: c.People.Think},
			Streams: 1 - c.People.Plain, Parallel: c.People.Parallel, LostCookies: c.People.Lost,
			Roams: min(1, c.People.Roams+c.People.Anywhere)},
	}
	if p := c.People.Patience; p > 0 {
		sc.Visitors.LeavePerMinute = float64(time.Minute) / float64(p)
	}
	for _, s := range c.Sites {
		sc.Sites = append(sc.Sites, sim.Site{Name: s.Name, Share: s.Share, Nodes: s.Nodes, Delay: s.Delay, Jitter: s.Delay / 10})
	}
	for _, f := range c.Flows {
		if n := f.count(scale); n > 0 {
			sc.Arrivals = append(sc.Arrivals, sim.Flow{From: scaled(f.From, scale), To: scaled(f.To, scale), Visitors: n, Site: f.Site})
		}
	}
	if c.Faults != nil {
		c.Faults(&sc, scale)
	}
	return sc
}

// simulate runs the case in the simulator; nil where it has none.
func (c Case) simulate(ctx context.Context, scale float64, seed uint64) (*sim.Result, error) {
	if c.NoSimulation != "" {
		return nil, nil
	}
	r, err := sim.Run(ctx, c.scenario(scale), seed, sim.Options{})
	if err != nil {
		return nil, fmt.Errorf("rig: the simulator: %w", err)
	}
	return r, nil
}
