// Package load is the load run: thousands of visitors with cookies over HTTP against a real
// gateway before a real origin, with kill -9 in the middle, judged by the origin's own log.
//
// One process plays the origin (package shop), the visitors (package crowd) and the judge
// (package judge), on one monotonic clock; the gateway is the anteroom binary as a child
// process. Everything that happened is kept in a directory:
//
//	gateway.yaml    its configuration; gateway.log what it wrote; data/ its state
//	origin.jsonl    every request that the origin saw
//	visitors.jsonl  what every visitor was told
//	run.json        limits, outages and failed requests
//	report.txt      the verdict; figure.svg the picture
//
// [Rejudge] reads such a directory again.
//
// The rate limit bounds how many can get in during a run: 600 a minute are some 4,800 in
// eight minutes. Of 20,000 visitors the others give up, as people do, or are still in line
// at the end; their places are judged all the same.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// Options of a run. The zero value of a number means the value in parentheses; for fewer
// than 10,000 visitors, the second one.
type Options struct {
	Binary          string        // the anteroom binary; required
	Dir             string        // where everything is kept; empty means a new temporary directory
	Visitors        int           // (20,000)
	Active          int           // (500, 100) total_active_users
	PerMinute       int           // (600, 200) new_users_per_minute
	SessionDuration time.Duration // (30 s, 10 s)
	Duration        time.Duration // (8 min, 100 s) of the whole run
	Kills           int           // kill -9, spread evenly over the run
	Fault           string        // what comes before each of them, one of Faults; empty means nothing
	Down            time.Duration // (1 s) between a kill and the next start
	Edge            string        // a proxy that verifies passes and stands before the gateway, one of Edges; empty means none
	Streams         int           // (300, 100) visitors with a stream at once; -1 means none
	Seed            uint64        // of the crowd
	Out             io.Writer     // progress and verdict; nil means nowhere

	// dial replaces the network of the crowd in tests.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o Options) withDefaults() Options {
	large, small := Options{Active: 500, PerMinute: 600, SessionDuration: 30 * time.Second, Duration: 8 * time.Minute, Streams: 300},
		Options{Active: 100, PerMinute: 200, SessionDuration: 10 * time.Second, Duration: 100 * time.Second, Streams: 100}
	o.Visitors = cmp.Or(o.Visitors, 20_000)
	d := large
	if o.Visitors < 10_000 {
		d = small
	}
	o.Active = cmp.Or(o.Active, d.Active)
	o.PerMinute = cmp.Or(o.PerMinute, d.PerMinute)
	if o.Edge != "" {
		o.SessionDuration = cmp.Or(o.SessionDuration, 2*edgePass)
	}
	o.SessionDuration = cmp.Or(o.SessionDuration, d.SessionDuration)
	o.Duration = cmp.Or(o.Duration, d.Duration)
	o.Streams = cmp.Or(o.Streams, d.Streams)
	o.Down = cmp.Or(o.Down, time.Second)
	o.Out = cmp.Or(o.Out, io.Discard)
	return o
}

func (o Options) check() error {
	for _, c := range []struct {
		name string
		bad  bool
		fix  string
	}{
		{"visitors", o.Visitors < 1 || o.Visitors > 1_000_000, "1 to 1,000,000"},
		{"active", o.Active < 1, "at least 1"},
		{"per-minute", o.PerMinute < 1, "at least 1"},
		{"session", o.SessionDuration < time.Second, "at least 1s"},
		{"duration", o.Duration < time.Second || o.Duration > 24*time.Hour, "1s to 24h"},
		{"kills", o.Kills < 0 || o.Kills > 1000, "0 to 1000"},
		{"fault", o.Fault != "" && !slices.Contains(Faults, o.Fault), strings.Join(Faults, ", ")},
		{"edge", o.Edge != "" && !slices.Contains(Edges, o.Edge), strings.Join(Edges, ", ")},
		{"session", o.Edge != "" && o.SessionDuration < 2*edgePass, "at least 20s with an edge"},
		{"down", o.Down < 0 || o.Down > o.Duration, "less than the duration"},
	} {
		if c.bad {
			return fmt.Errorf("load: %s is out of range: %s", c.name, c.fix)
		}
	}
	return nil
}

// crowd is who comes: a tenth stand at the door when it opens, most come in the first
// quarter, the rest until three quarters.
func (o Options) crowd() crowd.Config {
	opening := o.Visitors / 10
	surge := o.Visitors * 6 / 10
	pages, think := 4, o.SessionDuration/4
	if o.Edge != "" { // several requests with each pass
		pages, think = 16, edgePass/5
	}
	return crowd.Config{
		Paths: []string{"/", "/product/dawn-mug", "/product/moss-vase", "/cart", "/checkout"},
		Arrivals: []crowd.Arrivals{
			{Visitors: opening},
			{Visitors: surge, Over: o.Duration / 4},
			{Visitors: o.Visitors - opening - surge, Over: o.Duration / 2},
		},
		Mix:      crowd.Mix{Leaving: 0.5, Early: 0.05, Parallel: 0.05, Bots: 0.01, Plain: 0.25, Apps: 0.15},
		Patience: o.Duration / 3,
		// Seats and rate should bind both, in turn: a visitor takes a seat for about
		// 1.75 session durations.
		Pages:      pages,
		Think:      think,
		LoseCookie: 0.01,
		Streams:    max(0, o.Streams),
		Seed:       o.Seed,
		Workers:    512,
		Addresses:  crowd.Loopback(49),
		Dial:       o.dial,
		Record:     true,
	}
}

// gateway is what stands between: a child process, or a toy in tests.
type gateway interface {
	// open starts it before the origin and returns when it is ready, with its address.
	open(ctx context.Context, origin http.Handler) (url string, err error)
	// disaster ends it without warning, after whatever the run does to it, and says when; restart starts it
	// again with what it kept, and after ends the fault.
	disaster(ctx context.Context) (ended time.Time, err error)
	restart(ctx context.Context) error
	after(ctx context.Context) error
	// close ends it for good and says what it cost.
	close() (cpu time.Duration, err error)
}

// Run makes a load run and returns the verdict. An error means that there is none.
func Run(ctx context.Context, o Options) (judge.Report, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return judge.Report{}, err
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "anteroom-load-")
		if err != nil {
			return judge.Report{}, fmt.Errorf("load: %w", err)
		}
		o.Dir = dir
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return judge.Report{}, fmt.Errorf("load: %w", err)
	}
	return run(ctx, o, newProcess(o))
}

func run(ctx context.Context, o Options, gate gateway) (judge.Report, error) {
	o.Out = crowd.Lines(o.Out) // the crowd reports while the killer does
	fmt.Fprintf(o.Out, "%d visitors in %v; at most %d inside, %d new in any 60 s; sessions end %v after the last request; %d × %s\n",
		o.Visitors, o.Duration, o.Active, o.PerMinute, o.SessionDuration, o.Kills, cmp.Or(o.Fault, "kill -9"))
	fmt.Fprintf(o.Out, "at most %d can get in during this time; the others give up or are still in line at the end\neverything is kept in %s\n\n",
		int(float64(o.PerMinute)*(1+o.Duration.Minutes())), o.Dir)

	start := time.Now()
	file, err := os.Create(filepath.Join(o.Dir, originFile))
	if err != nil {
		return judge.Report{}, fmt.Errorf("load: %w", err)
	}
	defer file.Close()
	log := shop.NewLog(file, start)
	origin, err := shop.New(shop.Config{Log: log, SessionDuration: o.SessionDuration})
	if err != nil {
		return judge.Report{}, err
	}
	seen := &counts{next: origin}
	url, err := gate.open(ctx, seen)
	if err != nil {
		return judge.Report{}, err
	}
	f := runFile{Active: o.Active, PerMinute: o.PerMinute, SessionDuration: o.SessionDuration}
	if o.Edge != "" {
		f.Pass = edgePass
	}
	result, outages, err := evening(ctx, o, gate, url, start, origin)
	before := ownCPU()
	cost, closeErr := gate.close()
	if err = cmp.Or(err, closeErr, log.Flush(), ctx.Err()); err != nil {
		return judge.Report{}, fmt.Errorf("load: no verdict: %w", err)
	}
	f.Outages, f.Failures = outages, result.Failures
	took := time.Since(start)
	if o.Edge != "" {
		fmt.Fprintf(o.Out, "\n%d of %d requests at the origin came straight from %s\n", seen.straight.Load(), seen.all.Load(), o.Edge)
		if seen.straight.Load() == 0 {
			return judge.Report{}, errors.New("load: no verdict: no request came straight from the edge, so this was a run without one")
		}
	}
	fmt.Fprintf(o.Out, "\n%d requests; CPU: gateway %v, crowd and origin together %v, of %v\n\n",
		result.Stats.Requests, cost.Round(time.Second/10), before.Round(time.Second/10), took.Round(time.Second))
	if err := writeRun(o.Dir, f, result.Visitors); err != nil {
		return judge.Report{}, err
	}
	return Rejudge(o.Dir, o.Out)
}

// evening lets the crowd come while the gateway is killed now and then.
func evening(ctx context.Context, o Options, gate gateway, url string, start time.Time, origin *shop.Shop) (crowd.Result, []judge.Outage, error) {
	ctx, over := context.WithTimeoutCause(ctx, o.Duration, nil)
	defer over()
	cfg := o.crowd()
	cfg.Target, cfg.Start = url, start
	cfg.Every = max(o.Duration/40, time.Second)
	cfg.Progress = func(s crowd.Stats) {
		fmt.Fprintf(o.Out, "%6s  arrived %6d  waiting %6d  inside %4d (origin %4d)  admitted %6d  gave up %6d  streams %4d  requests %8d  failed %d  late %v\n",
			s.At.Round(time.Second), s.Arrived, s.Waiting, s.Inside, origin.Inside(), s.Admitted, s.GaveUp, s.Streams, s.Requests, s.Failures, s.Late.Round(time.Millisecond))
	}
	var outages []judge.Outage
	killed := make(chan error, 1)
	go func() {
		var err error
		outages, err = killer(ctx, o, gate, start)
		if err != nil {
			over()
		}
		killed <- err
	}()
	result, err := crowd.Run(ctx, cfg)
	over()
	if killErr := <-killed; err == nil {
		err = killErr
	}
	return result, outages, err
}

// killer kills the gateway as often as asked, evenly over the run.
func killer(ctx context.Context, o Options, gate gateway, start time.Time) ([]judge.Outage, error) {
	var outages []judge.Outage
	began := time.Now()
	for i := range o.Kills {
		at := began.Add(o.Duration * time.Duration(i+1) / time.Duration(o.Kills+1))
		if !walltime.Sleep(ctx, time.Until(at)) {
			return outages, nil
		}
		ended, err := gate.disaster(ctx)
		if err != nil {
			return outages, err
		}
		from := ended.Sub(start).Microseconds()
		fmt.Fprintf(o.Out, "        %s\n", cmp.Or(o.Fault, "kill -9"))
		// A run that ends during an outage ends with the gateway up, so that it can be
		// closed and its log is whole.
		walltime.Sleep(ctx, o.Down)
		if err := gate.restart(context.WithoutCancel(ctx)); err != nil {
			return outages, err
		}
		outages = append(outages, judge.Outage{From: from, Until: time.Since(start).Microseconds()})
		fmt.Fprintf(o.Out, "        ready again after %.2f s\n", float64(outages[i].Until-from)/1e6)
		if err := gate.after(ctx); err != nil {
			return outages, err
		}
	}
	return outages, nil
}
