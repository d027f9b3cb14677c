package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
	"github.com/anteroom/anteroom/sim/figure"
	"github.com/anteroom/anteroom/sim/outcome"
	"github.com/anteroom/anteroom/sim/plan"
)

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	seed        uint64
	runs        int
	algorithms  []string
	whatIf      bool
	form        *output
	quiet       bool
	points      string
	visits      string
	figures     string
	format      string
	progressOut *os.File
}

// maxRuns bounds --runs: each run is kept until the end.
const maxRuns = 1_000

func simulateCommand() *cobra.Command {
	o := simulateOptions{progressOut: os.Stderr}
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Simulate a sale: how long the queue will be, and what other limits would change",
		Long: `Simulate a sale from its plan, a YAML file, with the code that admits visitors in production, in
simulated time. The same plan and seed give the same result. examples/simulate has plans to start from.`,
		Example: `  anteroom simulate sale.yaml
  anteroom simulate sale.yaml --runs 10 --figures figures
  anteroom simulate sale.yaml --algorithm all --json > sale.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one argument, the file of the plan; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seed, "seed", 1, "seed of all random numbers")
	f.IntVar(&o.runs, "runs", 1, "number of seeds to run, starting with --seed")
	f.StringSliceVar(&o.algorithms, "algorithm", []string{sim.Anteroom}, "`name` of a way to share slots among sites; repeatable: "+strings.Join(sim.Algorithms, ", ")+"; or all")
	f.BoolVar(&o.whatIf, "whatif", true, "also run with other limits and compare; off by default with --json")
	o.form = outputFlags(f)
	f.BoolVar(&o.quiet, "quiet", false, "print no progress and no report")
	f.StringVar(&o.points, "csv", "", "write the numbers over time to `file`")
	f.StringVar(&o.visits, "visits", "", "write the outcome for each visitor (a sample of 20,000) to `file`")
	f.StringVar(&o.figures, "figures", "", "write figures into `directory`")
	f.StringVar(&o.format, "format", "svg", "format of the figures: svg, png or both")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		if (!o.form.people() || o.quiet) && !cmd.Flags().Changed("whatif") {
			o.whatIf = false
		}
		sc, err := plan.Read(args[0])
		if err != nil {
			return err
		}
		if err := o.ready(); err != nil {
			return err
		}
		err = simulate(cmd.Context(), sc, o, cmd.OutOrStdout())
		if err != nil && cmd.Context().Err() != nil {
			return exitError{exitInterrupted, errors.New("interrupted; there is no result")}
		}
		return err
	}
	return cmd
}

// check refuses what flags cannot mean, and resolves "all".
func (o *simulateOptions) check() error {
	if o.runs < 1 || o.runs > maxRuns {
		return fmt.Errorf("--runs %d: 1 to %d", o.runs, maxRuns)
	}
	if slices.Contains(o.algorithms, "all") {
		o.algorithms = sim.Algorithms
	}
	seen := map[string]bool{}
	for _, a := range o.algorithms {
		if !slices.Contains(sim.Algorithms, a) || seen[a] {
			return fmt.Errorf("--algorithm %q: use %s, each at most once, or all", a, strings.Join(sim.Algorithms, ", "))
		}
		seen[a] = true
	}
	if len(o.algorithms) == 0 {
		return errors.New("--algorithm is empty: omit it to simulate Anteroom itself")
	}
	if !slices.Contains([]string{"svg", "png", "both"}, o.format) {
		return fmt.Errorf("--format %q: svg, png or both", o.format)
	}
	return nil
}

// ready makes the files to write, empty, and the directory of the figures: what cannot be
// written is known before a run of minutes and not after it. Files that exist stay as they are.
func (o *simulateOptions) ready() error {
	for _, name := range []string{o.points, o.visits} {
		if name == "" {
			continue
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		file.Close()
	}
	if o.figures == "" {
		return nil
	}
	return os.MkdirAll(o.figures, 0o777)
}

// job is one run.
type job struct {
	scenario  sim.Scenario
	seed      uint64
	algorithm string
}

func simulate(ctx context.Context, sc sim.Scenario, o simulateOptions, out io.Writer) error {
	var jobs []job
	for _, a := range o.algorithms {
		for i := range o.runs {
			jobs = append(jobs, job{sc, o.seed + uint64(i), a})
		}
	}
	var report outcome.Report
	if o.whatIf {
		report.WhatIf = outcome.Variations(sc)
		for _, v := range report.WhatIf {
			jobs = append(jobs, job{v.Scenario, o.seed, o.algorithms[0]})
		}
	}
	show, clear := progress(o, len(jobs))
	results, err := runAll(ctx, jobs, show)
	clear()
	if err != nil {
		return err
	}
	planned := len(jobs) - len(report.WhatIf)
	report.Results = results[:planned]
	for i := range report.WhatIf {
		report.WhatIf[i].Result = results[planned+i]
	}
	if report.Files, err = write(report, o); err != nil {
		return err
	}
	switch {
	case !o.form.people():
		var text bytes.Buffer
		if err = outcome.JSON(&text, report); err == nil {
			err = o.form.data(out, json.RawMessage(text.Bytes()))
		}
	case !o.quiet:
		err = outcome.Text(out, report)
	}
	if err != nil {
		return err
	}
	if broken := report.Broken(); len(broken) > 0 {
		return fmt.Errorf("a guarantee was broken: %s, %s: %s; please report this with the plan", broken[0].Name, broken[0].Run(), broken[0].First)
	}
	return nil
}

// runAll runs the jobs, a few at a time, and returns their results in the same order. The
// first error stops all.
func runAll(ctx context.Context, jobs []job, show func(done float64)) ([]*sim.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]*sim.Result, len(jobs))
	var next atomic.Int64
	var parts progressParts
	parts.of = make([]float64, len(jobs))
	var workers sync.WaitGroup
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) || ctx.Err() != nil {
					return
				}
				r, err := sim.Run(ctx, jobs[i].scenario, jobs[i].seed, sim.Options{Algorithm: jobs[i].algorithm,
					Progress: func(done, total time.Duration) { parts.set(i, done.Seconds()/max(total.Seconds(), 1), show) }})
				if err != nil {
					stop(err)
					return
				}
				parts.set(i, 1, show)
				results[i] = r
			}
		})
	}
	workers.Wait()
	return results, context.Cause(ctx)
}

// progressParts adds up how far the jobs are.
type progressParts struct {
	mu  sync.Mutex
	of  []float64
	sum float64
}

func (p *progressParts) set(i int, part float64, show func(float64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	part = min(part, 1)
	p.sum += part - p.of[i]
	p.of[i] = part
	show(p.sum)
}

// progress returns what shows how many of the jobs are done, a line on a terminal once a
// second has passed, else nothing; and what takes it away, done or not.
func progress(o simulateOptions, jobs int) (show func(float64), clear func()) {
	st, err := o.progressOut.Stat()
	if o.quiet || err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return func(float64) {}, func() {}
	}
	const (
		width = 40
		line  = "\r\x1b[K" // to the start of the line, and nothing right of it
	)
	began := time.Now()
	var shown time.Time
	show = func(done float64) {
		share, took := done/float64(jobs), time.Since(began)
		if took < time.Second || time.Since(shown) < 100*time.Millisecond || share <= 0 || share > 1 {
			return
		}
		shown = time.Now()
		left := time.Duration(float64(took) * (1 - share) / share).Round(time.Second)
		full := int(share * width)
		fmt.Fprintf(o.progressOut, "%ssimulating %3.0f%% |%s%s| %v left", line, share*100, strings.Repeat("█", full), strings.Repeat(" ", width-full), left)
	}
	clear = func() {
		if !shown.IsZero() {
			fmt.Fprint(o.progressOut, line)
		}
	}
	return show, clear
}

// write writes the files that were asked for, and returns their names.
func write(report outcome.Report, o simulateOptions) ([]string, error) {
	var files []string
	save := func(name string, content func(io.Writer) error) error {
		files = append(files, name)
		return saveFile(name, content)
	}
	if o.points != "" {
		if err := save(o.points, func(w io.Writer) error { return outcome.Points(w, report.Results) }); err != nil {
			return nil, err
		}
	}
	if o.visits != "" {
		if err := save(o.visits, func(w io.Writer) error { return outcome.Visits(w, report.Results) }); err != nil {
			return nil, err
		}
	}
	if o.figures == "" {
		return files, nil
	}
	formats := []chart.Format{chart.Format(o.format)}
	if o.format == "both" {
		formats = chart.Formats
	}
	for _, f := range figure.Of(drawn(report)) {
		for _, format := range formats {
			if err := save(filepath.Join(o.figures, f.Name+"."+string(format)), func(w io.Writer) error { return f.Write(w, format) }); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// drawn are the results for the figures: the plan's, and with the other queueing method, so
// that waits can be compared.
func drawn(report outcome.Report) []*sim.Result {
	results := slices.Clone(report.Results)
	for _, v := range report.WhatIf {
		if v.Setting == "queueing_method" {
			results = append(results, v.Result)
		}
	}
	return results
}

// saveFile writes a file. Its error says which.
func saveFile(name string, content func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	err = errors.Join(content(w), w.Flush(), file.Close())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
