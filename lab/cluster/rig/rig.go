// Package rig runs a cluster of real processes and judges it: three data centres on one
// machine (package network), real visitors (package crowd), and an origin whose own log is
// the judge's evidence (package judge).
//
// A [Case] says what there is, who comes and what goes wrong. [Run] runs it and returns the
// numbers of the simulator for the same world beside those that were measured. Everything
// that happened is kept in a directory: each node's file, data and log, the origin's log, what
// every visitor was told, and the report.
package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/crowd"
)

// Options of a run.
type Options struct {
	Binary  string  // the anteroom binary; required
	Next    string  // another build of it, for mixed versions
	Dir     string  // where everything is kept; required
	Network string  // "auto", "namespaces" or "proxies"
	Scale   float64 // of lengths and numbers of visitors; rates and limits stay
	Seed    uint64
	Single  bool      // one node without a cluster: proves the rig, not the product
	Out     io.Writer // progress and verdict
}

// Run makes a run. An error means that there is no verdict.
func Run(ctx context.Context, o Options, kase Case) (*Outcome, error) {
	if o.Scale <= 0 || o.Scale > 100 {
		return nil, fmt.Errorf("rig: a scale of %g is not between 0 and 100", o.Scale)
	}
	if kase.Mixed && o.Next == "" {
		return nil, fmt.Errorf("rig: the run %q needs a second build", kase.Name)
	}
	var err error
	if o.Binary, err = filepath.Abs(o.Binary); err == nil && o.Next != "" {
		o.Next, err = filepath.Abs(o.Next)
	}
	if err == nil {
		o.Dir, err = filepath.Abs(o.Dir)
	}
	if err == nil {
		_, err = os.Stat(o.Binary)
	}
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	if o.Single {
		kase = kase.single()
	}
	o.Out = crowd.Lines(o.Out)
	c, err := newCluster(ctx, o, kase)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Out, "\n== %s: %s\n%v; %d nodes in %d sites; %s\n", kase.Name, kase.About, c.length, len(c.nodes), len(c.sites), c.net.Kind())
	s, err := c.run(ctx)
	faults, warnings := c.faults(), c.complaints()
	if err = cmp.Or(err, c.close(), ctx.Err()); err != nil {
		for _, f := range faults {
			err = errors.Join(err, errors.New(f))
		}
		return nil, fmt.Errorf("%w\nrig: no verdict for %s; see %s", err, kase.Name, c.dir)
	}
	out := &Outcome{Case: kase, Network: c.net.Kind(), Seed: o.Seed, Scale: o.Scale, Took: time.Since(c.start), Faults: faults, Warnings: warnings,
		Marks: s.marks, Sites: s.sites, Dir: c.dir, Report: s.kase.Judge(), Silence: s.silence(), Moments: s.moments()}
	out.Pauses, out.Calm = s.pauses()
	out.Numbers = s.numbers(out.Report)
	simulated, err := kase.simulate(ctx, o.Scale, o.Seed)
	if err != nil {
		return nil, err
	}
	if simulated != nil {
		out.Simulated = &simulated.Numbers
	}
	// The figure begins when the visitors come.
	for i := range out.Marks {
		out.Marks[i].From -= s.began
		if out.Marks[i].Until != 0 {
			out.Marks[i].Until -= s.began
		}
	}
	file, err := os.Create(filepath.Join(c.dir, "report.txt"))
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	return out, errors.Join(out.Write(io.MultiWriter(file, o.Out)), file.Close())
}

// single is the case for one process alone: what its sites were is one.
func (c Case) single() Case {
	c.Sites = []Site{{Name: c.Sites[0].Name, Nodes: 1, Cores: 1, Share: 1}}
	c.Spare, c.Loss = nil, 0
	c.Flows = slices.Clone(c.Flows)
	for i := range c.Flows {
		c.Flows[i].Site = ""
	}
	c.Faults, c.NoSimulation = nil, "one process alone"
	return c
}

// run is the time from the first process to the last.
func (c *Cluster) run(ctx context.Context) (*story, error) {
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.o.Out, "ready after %v\n", time.Since(c.start).Round(time.Millisecond))
	c.began = time.Now()
	began := c.now()
	carried := c.carried()
	// A script that fails ends the run.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var script sync.WaitGroup
	over, ended := context.WithCancel(ctx)
	if c.kase.Script != nil {
		script.Go(func() {
			if err := c.kase.Script(over, c); err != nil {
				stop(err)
			}
		})
	}
	result, err := c.come(ctx)
	end := c.now()
	ended()
	script.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		n.mu.Lock()
		if n.since != 0 && !n.orderly {
			c.outage(n, n.since)
		}
		n.mu.Unlock()
	}
	now := c.carried()
	seconds := float64(end-began) / 1e6
	s := &story{hits: c.origin.seen(), marks: c.marks, end: end, began: began,
		packets: float64(now.Packets-carried.Packets) / seconds / float64(len(c.sites)),
		bytes:   float64(now.Bytes-carried.Bytes) / seconds / float64(len(c.sites))}
	s.kase = judge.Case{Active: c.kase.Room.Active, PerMinute: c.kase.Room.PerMinute, SessionDuration: c.room.Session, Changes: c.changes,
		Visitors: result.Visitors, Failures: result.Failures, Outages: c.outages}
	for _, h := range s.hits {
		s.kase.Requests = append(s.kase.Requests, h.Request)
	}
	for _, site := range c.sites {
		s.sites = append(s.sites, site.Name)
	}
	for _, n := range c.nodes {
		s.nodeSite = append(s.nodeSite, n.site)
	}
	s.homes = c.homes()
	type about struct {
		Start   time.Time
		Seed    uint64
		Scale   float64
		Network string
	}
	return s, errors.Join(keep(filepath.Join(c.dir, "run.json"), []about{{c.start, c.o.Seed, c.o.Scale, c.net.Kind()}}), keep(filepath.Join(c.dir, "origin.jsonl"), s.hits), keep(filepath.Join(c.dir, "visitors.jsonl"), result.Visitors),
		keep(filepath.Join(c.dir, "failures.jsonl"), result.Failures), keep(filepath.Join(c.dir, "marks.jsonl"), s.marks))
}

// homes are the visitors' sites by number.
func (c *Cluster) homes() []int {
	out := []int{0}
	for _, f := range c.kase.Flows {
		for range f.count(c.o.Scale) {
			out = append(out, c.habitsOf(len(out), f.Site).home)
		}
	}
	return out
}
