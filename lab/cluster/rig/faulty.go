package rig

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/sim"
)

const (
	down = 3 * time.Second // of a node that was killed
	cut  = 2 * time.Minute // of a site
	// unordered is why a run with a site out of touch may let somebody pass: admission.md 2.1
	// promises order only while links are up.
	unordered = "order across a cut link is not promised: at most 5 % of the queued (or half as many again as in the simulator), by at most 60 s"
)

// faulty are the runs in which something breaks.
func faulty(queueing func(string, string, func(*Case)) Case) []Case {
	out := []Case{
		queueing("kill", "queueing; kill -9 of a random node every six seconds, back after three", func(c *Case) {
			c.Script = killing(6*time.Second, (*Cluster).Any)
			c.Faults = func(sc *sim.Scenario, _ float64) { sc.Faults.NodeLife = 36 * time.Second }
		}),
		queueing("kill-coordinator", "queueing; three cores at the hub; kill -9 of the node that holds the coordinator's role every fifteen seconds", func(c *Case) {
			c.Sites = firm()
			c.Script = killing(15*time.Second, func(c *Cluster) *Node { return c.Holder("coordinator") })
			c.Faults = func(sc *sim.Scenario, scale float64) {
				for at := 15 * time.Second; at < scaled(c.Length, scale)-15*time.Second; at += 15 * time.Second {
					sc.Faults.Deaths = append(sc.Faults.Deaths, sim.Death{At: at, For: down, What: "coordinator"})
				}
			}
		}),
		queueing("kill-hub", "queueing; the hub's only core is killed every thirty seconds and comes back after three", func(c *Case) {
			c.Script = killing(30*time.Second, func(c *Cluster) *Node { return c.Node(c.sites[0].Name + "1") })
			c.Faults = func(sc *sim.Scenario, scale float64) {
				for at := 30 * time.Second; at < scaled(c.Length, scale)-15*time.Second; at += 30 * time.Second {
					sc.Faults.Deaths = append(sc.Faults.Deaths, sim.Death{At: at, For: down, What: "coordinator"})
				}
			}
		}),
		queueing("stop", "queueing; a random node stands still for five seconds (SIGSTOP) every ten", func(c *Case) {
			c.Script = stopping(10*time.Second, 5*time.Second, (*Cluster).Any)
			c.NoSimulation = "the simulator stops sites, not single nodes"
		}),
	}
	for _, k := range []struct {
		name, about string
		up, down    bool
	}{
		{"cut-queue", "queueing; a site is cut off for two minutes", true, true},
		{"cut-up", "queueing; for two minutes nothing gets out of a site to the others", true, false},
		{"cut-down", "queueing; for two minutes nothing gets from the others into a site", false, true},
	} {
		out = append(out, queueing(k.name, k.about, func(c *Case) { cutting(c, k.up, k.down) }))
	}
	open := queueing("cut-open", "70 % load, no queue; a site is cut off for two minutes, and 150 in 10 s hit everybody then", func(c *Case) {
		cutting(c, true, true)
		c.Flows = []Flow{{To: c.Length, PerMinute: 0.6 * float64(c.Room.Active) * perSeat()}, {From: 50 * time.Second, To: 60 * time.Second, Visitors: 150}}
	})
	return append(out, open,
		queueing("clocks", "queueing; wall clocks are off by up to five seconds and jump", func(c *Case) {
			c.Clocks = true
			c.Script = jumping
			c.Faults = func(sc *sim.Scenario, _ float64) { sc.Faults.Clock = 5 * time.Second }
		}))
}

// cutting makes a case in which site c is out of touch, from 20 s on.
func cutting(c *Case, up, downwards bool) {
	c.Length = 20*time.Second + cut + 40*time.Second
	for i := range c.Flows {
		if c.Flows[i].Visitors == 0 {
			c.Flows[i].To = c.Length
		}
	}
	c.Allowed = map[string]string{"order": unordered}
	c.Script = func(ctx context.Context, c *Cluster) error {
		if !c.Sleep(ctx, 20*time.Second) {
			return nil
		}
		done := c.Mark("site c " + cutWord(up, downwards))
		c.Cut("c", up, downwards)
		c.Sleep(ctx, cut)
		c.Heal("c")
		done()
		return nil
	}
	c.Faults = func(sc *sim.Scenario, scale float64) {
		// In the simulator up is what the site sends.
		sc.Faults.Cuts = []sim.Cut{{At: scaled(20*time.Second, scale), For: scaled(cut, scale), Site: "c", Up: up, Down: downwards}}
	}
}

func cutWord(up, downwards bool) string {
	switch {
	case up && downwards:
		return "cut off"
	case up:
		return "not heard"
	}
	return "hears nothing"
}

// crash kills a node and starts it again.
func (c *Cluster) crash(ctx context.Context, n *Node) error {
	done := c.Mark("kill -9 " + n.name)
	if err := n.Kill(); err != nil {
		return err
	}
	walltime.Sleep(ctx, down)
	if err := n.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	done()
	return nil
}

// killing kills a node again and again; the last one is back well before the end.
func killing(every time.Duration, which func(*Cluster) *Node) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		for walltime.Sleep(ctx, every) && c.Left() > 2*every {
			n := which(c)
			if n == nil {
				return fmt.Errorf("rig: no node to kill")
			}
			if err := c.crash(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}
}

// stopping has a node stand still for a while, again and again.
func stopping(every, still time.Duration, which func(*Cluster) *Node) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		for walltime.Sleep(ctx, every) && c.Left() > every+2*still {
			n := which(c)
			done := c.Mark("SIGSTOP " + n.name)
			if err := n.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			walltime.Sleep(ctx, still)
			if err := n.Signal(syscall.SIGCONT); err != nil {
				return err
			}
			done()
		}
		return nil
	}
}

func jumping(ctx context.Context, c *Cluster) error {
	for i := 0; walltime.Sleep(ctx, 7*time.Second) && c.Left() > 10*time.Second; i++ {
		n := c.Any()
		by := c.wrong()
		if i%4 == 3 {
			by *= 720 // an hour and more
		}
		c.Mark(fmt.Sprintf("%s's clock is off by %v", n.name, by.Round(time.Second/10)))()
		if err := n.Clock(by); err != nil {
			return err
		}
	}
	return nil
}
