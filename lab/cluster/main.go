// Command cluster is the cluster rig: it runs the anteroom binary as a cluster of three data
// centres on this machine, sends visitors, breaks things, and lets the origin's own log judge.
// It ends with 0 when every promise was kept in every run, 1 when one was broken, 2 when there
// is no verdict. scripts/cluster builds what it needs; docs/rig.md explains it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/anteroom/anteroom/lab/cluster/rig"
)

func main() { os.Exit(run()) }

func run() int {
	o := rig.Options{Out: os.Stdout}
	flag.StringVar(&o.Binary, "binary", "bin/anteroom", "the anteroom `file` to run")
	flag.StringVar(&o.Next, "next", "", "another build of it, a `file`, for runs with mixed versions")
	flag.StringVar(&o.Dir, "out", "", "`directory` for what is kept (a temporary one)")
	flag.StringVar(&o.Network, "network", "auto", "namespaces, proxies, or auto: the first that works")
	flag.Float64Var(&o.Scale, "scale", 1, "of lengths and numbers of visitors; rates and limits stay")
	flag.Uint64Var(&o.Seed, "seed", 1, "of everything random")
	flag.BoolVar(&o.Single, "single", false, "one node without a cluster: proves the rig")
	always := flag.Bool("keep", false, "keep the files of runs that kept their promises, too")
	page := flag.String("page", "", "draw the runs into this `directory`")
	flag.Usage = usage
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		usage()
		return 2
	}
	if names[0] == "list" {
		list()
		return 0
	}
	cases, err := chosen(names, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	temporary := o.Dir == ""
	if temporary {
		if o.Dir, err = os.MkdirTemp("", "anteroom-rig-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	status := 0
	var done []*rig.Outcome
	for _, c := range cases {
		out, err := rig.Run(ctx, o, c)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 2
			if ctx.Err() != nil {
				break
			}
			continue
		}
		done = append(done, out)
		if !out.OK() {
			status = max(status, 1)
		} else if temporary && !*always {
			os.RemoveAll(filepath.Join(o.Dir, c.Name))
		}
	}
	if temporary && !*always {
		os.Remove(o.Dir) // works when nothing is left in it
	}
	if *page != "" {
		if err := rig.WritePage(*page, done); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 2
		}
	}
	summary(done, len(cases))
	return status
}

func summary(done []*rig.Outcome, all int) {
	fmt.Println()
	kept := 0
	for _, o := range done {
		word := "kept"
		if !o.OK() {
			word = "BROKEN"
		} else {
			kept++
		}
		fmt.Printf("%-18s %s\n", o.Case.Name, word)
	}
	fmt.Printf("%d of %d runs kept every promise\n", kept, all)
}

// chosen returns the cases of the names; "all" is every one that can run.
func chosen(names []string, o rig.Options) ([]rig.Case, error) {
	if slices.Equal(names, []string{"all"}) {
		return slices.DeleteFunc(rig.Cases(), func(c rig.Case) bool { return c.Mixed && o.Next == "" }), nil
	}
	var out []rig.Case
	var errs []error
	for _, name := range names {
		c, ok := rig.Named(name)
		if !ok {
			errs = append(errs, fmt.Errorf("cluster: there is no run %q; list shows them", name))
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: cluster [flags] list | all | run...\n\n")
	flag.PrintDefaults()
	fmt.Fprintln(os.Stderr)
	list()
}

func list() {
	for _, c := range rig.Cases() {
		fmt.Printf("  %-18s %s\n", c.Name, strings.TrimSpace(c.About))
	}
}
