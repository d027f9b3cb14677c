package rig

import (
	"context"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
)

const drawnWorlds = "the simulator's changes of roles are in drawn worlds: make sim"

// Who is passed when roles change: at most so many, while links are up.
var (
	oneChange  = Passing{Share: 0.005, Lead: 3 * time.Second}
	twoChanges = Passing{Share: 0.05, Lead: 10 * time.Second}
)

// changing are the runs in which roles change hands under a line: three cores and an edge in one data
// centre, 40 seats, and a line of 250.
func changing() []Case {
	holder := func(c *Cluster) *Node { return c.Holder("site") }
	run := func(name, about string, length time.Duration, passing Passing, script func(context.Context, *Cluster) error) Case {
		room := Room{Active: 40, PerMinute: 240, Session: 12 * time.Second}
		people := folks()
		people.Patience = 50 * time.Minute
		return Case{Name: name, About: "a line of 250; " + about, Length: length, Sites: []Site{{Name: "a", Nodes: 4, Cores: 3, Share: 1}}, Room: room, People: people,
			Flows:   []Flow{{To: length, PerMinute: 30}, {From: 5 * time.Second, To: 35 * time.Second, Visitors: 250}},
			Allowed: map[string]string{"order": "visitors who come back at the moment of a change may be passed: at most so many, and by so much"}, Passing: passing,
			Script: script, NoSimulation: drawnWorlds}
	}
	edge := func(name, about string, still time.Duration) Case {
		return run(name, about, 150*time.Second, twoChanges, func(ctx context.Context, c *Cluster) error {
			if !c.Sleep(ctx, 30*time.Second) {
				return nil
			}
			n := c.Node("a4")
			done := c.Mark(n.name + " cut off")
			c.CutNode(n, true)
			walltime.Sleep(ctx, still)
			c.CutNode(n, false)
			done()
			return nil
		})
	}
	slow := edge("cut-edge-slow", "an edge is cut off for a minute, in which everybody asks about once", time.Minute)
	// An edge goes on for half of a session after it has last heard of its site, which is up to a second before the cut.
	slow.Room.Session, slow.People.Think, slow.Length = 130*time.Second, time.Minute, 4*time.Minute
	slow.Room.First = slow.Room.Session // a second request often comes after more than half a minute
	slow.Flows = []Flow{{To: 30 * time.Second, Visitors: 120}}
	// No session ends because something was away for less than half of it.
	all, cut := run("kill-all", "kill -9 of all nodes at once, three times", 150*time.Second, twoChanges, killingAll), edge("cut-edge", "an edge is cut off for twenty seconds", 20*time.Second)
	for _, c := range []*Case{&all, &cut} {
		c.Room.Session, c.Room.Active = time.Minute, 100
		c.Room.First = c.Room.Session // who could not ask a second time meanwhile keeps the session, as the judge counts
	}
	cases := []Case{
		run("restart-twice", "every node is restarted in turn, twice", 150*time.Second, oneChange, rolling(8*time.Second, 1, func(*Node) {})),
		run("kill-site", "kill -9 of the node that holds the site's role, eight times", 165*time.Second, oneChange, killing(12*time.Second, holder)),
		run("stop-site", "the node that holds the site's role stands still for eight seconds, five times", 165*time.Second, oneChange, stopping(16*time.Second, 8*time.Second, holder)),
		all,
		run("wipe", "two cores lose their disks, one after the other", 150*time.Second, twoChanges, wiping),
		cut,
		slow,
	}
	// Half a second is judged by admissions that come every 50 ms, all of visitors with a stream: who asks at intervals is called
	// up to four seconds ahead of that, so that what comes free waits for one or another of them, and with ten a second, some
	// without a script, there were pauses of 0.5 s without any restart.
	restart := run("silent-restart", "every core is restarted in order, three times, while twenty visitors a second are admitted", 3*time.Minute, oneChange, silencing(9, 0, 10*time.Second,
		func(ctx context.Context, _ *Cluster, n *Node) (func() error, error) {
			return func() error { return n.Start(context.WithoutCancel(ctx)) }, n.Stop(ctx)
		}))
	restart.Room, restart.Pauses = Room{Active: 8000, PerMinute: 1200, Session: time.Minute}, Pause{Median: time.Second / 2, Worst: time.Second / 2}
	restart.Flows, restart.People.Plain = []Flow{{To: restart.Length, PerMinute: 1180}, {From: time.Minute, To: 65 * time.Second, Visitors: 300}}, 0
	cases = append(cases, restart)
	// silent is a run in which one core after the other has a fault for eight seconds.
	silent := func(name, about string, length, rest time.Duration, pauses Pause, fault func(context.Context, *Cluster, *Node) (undo func() error, err error)) {
		one := run(name, about, length, twoChanges, silencing(10, 8*time.Second, rest, fault))
		// Seats of sessions that a silent node may have let in stay taken on purpose, so here it is the rate
		// that holds the line up: evenly, for the first minute brings as many as it allows.
		one.Room, one.Pauses = Room{Active: 2000, PerMinute: 120, Session: time.Minute}, pauses
		one.Flows = []Flow{{To: one.Length, PerMinute: 118}, {From: time.Minute, To: 80 * time.Second, Visitors: 150}}
		cases = append(cases, one)
	}
	cutOff := func(_ context.Context, c *Cluster, n *Node) (func() error, error) {
		c.CutNode(n, true)
		return func() error { c.CutNode(n, false); return nil }, nil
	}
	for _, way := range []struct {
		name, about string
		fault       func(context.Context, *Cluster, *Node) (undo func() error, err error)
	}{
		{"silent-kill", "kill -9 of a core, which starts again after eight seconds", func(ctx context.Context, _ *Cluster, n *Node) (func() error, error) {
			return func() error { return n.Start(context.WithoutCancel(ctx)) }, n.Kill()
		}},
		{"silent-stop", "a core stands still for eight seconds", func(_ context.Context, _ *Cluster, n *Node) (func() error, error) {
			return func() error { return n.Signal(syscall.SIGCONT) }, n.Signal(syscall.SIGSTOP)
		}},
		{"silent-cut", "a core is cut off for eight seconds", cutOff},
		{"silent-deaf", "nothing that is sent reaches a core for eight seconds", func(_ context.Context, c *Cluster, n *Node) (func() error, error) {
			self := func(m *Node) bool { return m == n }
			c.across(self, false, true)
			return func() error { c.across(self, false, false); return nil }, nil
		}},
	} {
		silent(way.name, way.about+", ten times, one core after the other", 5*time.Minute, 14*time.Second, Pause{Median: 3 * time.Second, Worst: 5 * time.Second}, way.fault)
	}
	silent("silent-twice", "ten times, one core after the other, a core is cut off for eight seconds, two seconds after the one before is back", 3*time.Minute, 2*time.Second,
		Pause{Median: 8 * time.Second, Worst: 8 * time.Second}, cutOff)
	return cases
}

// silencing takes one core after the other out of touch for a while, with a rest in between.
func silencing(times int, still, rest time.Duration, fault func(context.Context, *Cluster, *Node) (undo func() error, err error)) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		if !walltime.Sleep(ctx, 65*time.Second) {
			return nil
		}
		for i := range times {
			if !walltime.Sleep(ctx, rest) {
				return nil
			}
			n := c.nodes[i%3]
			done := c.Mark(n.name + " is silent")
			undo, err := fault(ctx, c, n)
			if err != nil {
				return err
			}
			walltime.Sleep(ctx, still)
			if err := undo(); err != nil {
				return err
			}
			done()
		}
		return nil
	}
}

// killingAll kills all nodes at once and starts them again.
func killingAll(ctx context.Context, c *Cluster) error {
	for range 3 {
		if !c.Sleep(ctx, 35*time.Second) {
			return nil
		}
		nodes := c.Up()
		done := c.Mark("kill -9 of all")
		for _, n := range nodes {
			if err := n.Kill(); err != nil {
				return err
			}
		}
		if err := startAll(ctx, nodes); err != nil {
			return err
		}
		done()
	}
	return nil
}

func startAll(ctx context.Context, nodes []*Node) error {
	ctx = context.WithoutCancel(ctx)
	for _, n := range nodes {
		if err := n.launch(); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wiping takes their disks from two cores, the second when the first has caught up.
func wiping(ctx context.Context, c *Cluster) error {
	for _, name := range []string{"a1", "a2"} {
		if !c.Sleep(ctx, 30*time.Second) {
			return nil
		}
		n := c.Node(name)
		done := c.Mark("kill -9 " + n.name + ", and wipe it")
		if err := n.Kill(); err != nil {
			return err
		}
		if err := n.Wipe(); err != nil {
			return err
		}
		if err := n.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		done()
	}
	return nil
}
