package rig

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
)

// operated are the runs in which operators do something.
func operated(queueing func(string, string, func(*Case)) Case, room Room, base func(float64, time.Duration) Flow) []Case {
	return []Case{
		queueing("nodes", "queueing; a node is added to a site under load, another one is removed", func(c *Case) {
			c.Spare = []string{"b"}
			c.Script = adding
			c.NoSimulation = "the simulator's nodes do not change in number"
		}),
		queueing("keys", "queueing; the keys that seal tickets are rotated every five seconds", func(c *Case) {
			c.Script = rotating
			c.NoSimulation = "the simulator seals no tickets"
		}),
		queueing("limits", "queueing; the limits are lowered and raised again, in the files", func(c *Case) {
			c.Script = limiting
			c.NoSimulation = "the rig's moments of change are the machine's"
		}),
		queueing("limits-api", "queueing; the room is made, its limits are lowered and raised by the API of one node", func(c *Case) {
			c.Rooms = true
			c.Length = 4 * time.Minute
			// The published API counts sessions in minutes, and bounds the rate by the seats.
			c.Room = Room{Active: 300, PerMinute: 300, Session: time.Minute, First: time.Minute} // the judge knows no probation
			c.Flows = []Flow{{To: c.Length, PerMinute: 230}, {To: 20 * time.Second, Visitors: 400}}
			c.Script = limiting
			c.NoSimulation = "the rig's moments of change are the machine's"
		}),
		queueing("rolling", "queueing; every node is restarted in turn, as an upgrade does it, half of them twice", func(c *Case) {
			c.Sites = firm()
			c.Script = rolling(7*time.Second, 0.5, func(*Node) {})
			c.NoSimulation = drawnWorlds
		}),
		queueing("mixed", "queueing; every node is restarted in turn with another build, half of them go back", func(c *Case) {
			c.Sites = firm()
			c.Mixed = true
			c.Script = rolling(7*time.Second, 0.5, func(n *Node) { n.next = !n.next })
			c.NoSimulation = "the simulator has one build"
		}),
		{Name: "short", About: "the bounded part of make test: a spike, a kill, a cut and a change of limits in 75 seconds", Length: 75 * time.Second, Sites: three(), Room: room,
			Flows: []Flow{base(0.5, 75*time.Second), {From: 5 * time.Second, To: 10 * time.Second, Visitors: 200}}, People: folks(),
			Allowed: map[string]string{"order": unordered}, Script: everything, NoSimulation: "several scenarios in one"},
	}
}

func adding(ctx context.Context, c *Cluster) error {
	if !c.Sleep(ctx, 30*time.Second) {
		return nil
	}
	n := c.Spare()
	c.Mark("add " + n.name)()
	if err := n.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if !c.Sleep(ctx, 30*time.Second) {
		return nil
	}
	gone := c.Node("a2")
	c.Mark("remove " + gone.name)()
	return gone.Stop(ctx)
}

func rotating(ctx context.Context, c *Cluster) error {
	for walltime.Sleep(ctx, 5*time.Second) && c.Left() > 10*time.Second {
		c.Mark("new key")()
		if err := c.Call(ctx, c.AnyCore(), "POST", "/anteroom/v1/keys/rotate", "", nil); err != nil {
			return err
		}
	}
	return nil
}

func limiting(ctx context.Context, c *Cluster) error {
	was := c.room
	for _, share := range []float64{2. / 3, 1, 0, 1} {
		if !walltime.Sleep(ctx, c.length/6) {
			return nil
		}
		to := was
		to.Active, to.PerMinute = int(float64(was.Active)*share), int(float64(was.PerMinute)*share)
		c.Mark(fmt.Sprintf("%d seats", to.Active))()
		if err := c.Limit(ctx, c.AnyCore(), to); err != nil {
			return err
		}
	}
	return nil
}

// rolling restarts every node in turn, and a share of them once more.
func rolling(every time.Duration, again float64, change func(*Node)) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		nodes := c.Up()
		c.rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		back := nodes[:int(again*float64(len(nodes)))]
		for _, n := range append(nodes, back...) {
			if !walltime.Sleep(ctx, every) {
				return nil
			}
			done := c.Mark("restart " + n.name)
			if err := n.Stop(ctx); err != nil {
				return err
			}
			change(n)
			if err := n.Start(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			done()
		}
		return nil
	}
}

func everything(ctx context.Context, c *Cluster) error {
	if !c.Sleep(ctx, 15*time.Second) {
		return nil
	}
	if err := c.crash(ctx, c.Any()); err != nil {
		return err
	}
	if !c.Sleep(ctx, 8*time.Second) {
		return nil
	}
	done := c.Mark("site c cut off")
	c.Cut("c", true, true)
	c.Sleep(ctx, 12*time.Second)
	c.Heal("c")
	done()
	if !c.Sleep(ctx, 8*time.Second) {
		return nil
	}
	to := c.room
	to.Active = to.Active * 2 / 3
	c.Mark(fmt.Sprintf("%d seats", to.Active))()
	return c.Limit(ctx, c.AnyCore(), to)
}
