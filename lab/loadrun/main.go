// Command loadrun sends thousands of visitors through the anteroom binary, kills it in the
// middle, and lets the origin's own log judge. It ends with 0 when every promise was kept, 1
// when one was broken, 2 when there is no verdict. See package load.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/lab/load"
)

func main() { os.Exit(run()) }

func run() int {
	o := load.Options{Out: os.Stdout}
	flag.StringVar(&o.Binary, "binary", "bin/anteroom", "the anteroom `file` to run")
	flag.StringVar(&o.Dir, "out", "", "`directory` that keeps everything (a temporary one)")
	flag.IntVar(&o.Visitors, "visitors", 20_000, "how many come; below 10,000 the other defaults are the smaller ones")
	flag.IntVar(&o.Active, "active", 0, "total_active_users (500; small: 100)")
	flag.IntVar(&o.PerMinute, "per-minute", 0, "new_users_per_minute (600; small: 200)")
	flag.DurationVar(&o.SessionDuration, "session", 0, "session_duration (30s; small: 10s)")
	flag.DurationVar(&o.Duration, "duration", 0, "of the run (8m; small: 100s)")
	flag.IntVar(&o.Kills, "kills", 1, "how often the gateway is killed")
	flag.StringVar(&o.Fault, "fault", "", "`fault` before each kill: "+strings.Join(load.Faults, ", ")+"; all but the last need root")
	flag.StringVar(&o.Edge, "edge", "", "a `proxy` that verifies passes, before the gateway: "+strings.Join(load.Edges, ", ")+"; the gateway's CPU time is then that of both")
	flag.DurationVar(&o.Down, "down", 0, "between a kill and the next start (1s)")
	flag.IntVar(&o.Streams, "streams", 0, "visitors with a stream at once, -1 for none (300; small: 100)")
	flag.Uint64Var(&o.Seed, "seed", 1, "of everything random in the crowd")
	again := flag.String("judge", "", "judge what an earlier run left in this `directory`, and run nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "loadrun: %q is not understood; -h shows the flags\n", flag.Arg(0))
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var r judge.Report
	var err error
	if *again != "" {
		r, err = load.Rejudge(*again, o.Out)
	} else {
		r, err = load.Run(ctx, o)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 2
	case !r.OK():
		return 1
	}
	return 0
}
