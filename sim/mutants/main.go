// Command mutants holds the simulator to its task: it breaks the engine on purpose, one defect at
// a time, and expects the simulator to notice each of them.
//
// The mutants of mutants.txt are built with "go build -overlay", so that nothing in the tree changes, most of them into one binary (together.go).
// Each runs the worlds that the list names for it. The command fails when the code without a
// defect breaks a promise in the world that killed a mutant, when a mutant survives all of its worlds, or when
// a mutant does not fit the code any more.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	listFile = "sim/mutants/mutants.txt" // from the root of the module
	self     = "./sim/mutants"
	// worldMost is how long a world may take: a defect can keep it from ending. A slow processor was seen to need 70 s for
	// the longest.
	worldMost = 4 * time.Minute
)

func main() { os.Exit(run()) }

func run() int {
	only := flag.String("only", "", "run only mutants whose name contains this text")
	jobs := flag.Int("jobs", 2, "how many mutants run at a time")
	in := flag.String("in", "", "run these worlds instead of those of the list: \"drawn 1-50, crash 1\"; for finding worlds that kill a new mutant")
	worlds := flag.String("worlds", "", "run these worlds with this binary and write a line of JSON for each; the command calls itself so")
	all := flag.Bool("all", false, "with -in or -worlds: go on after a world that breaks a promise")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case flag.NArg() > 0 || *jobs < 1:
		flag.Usage()
		return 2
	case *worlds != "":
		var list []worldID
		if list, err = parseWorlds(*worlds); err == nil {
			err = judge(ctx, os.Stdout, list, !*all)
		}
	default:
		err = gate(ctx, *only, *in, *jobs, *all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 1
	}
	return 0
}

// parseWorlds reads worlds as the flags have them: a seed may be a range.
func parseWorlds(s string) (list []worldID, err error) {
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		name, seeds, _ := strings.Cut(part, " ")
		first, last, ranged := strings.Cut(seeds, "-")
		w, err := parseWorld(name + " " + first)
		if err != nil {
			return nil, err
		}
		end := w.seed
		if ranged {
			if end, err = strconv.ParseUint(last, 10, 64); err != nil || end < w.seed {
				return nil, fmt.Errorf("the seeds in %q need to be two numbers, the lower one first", part)
			}
		}
		for ; w.seed <= end; w.seed++ {
			list = append(list, w)
		}
	}
	return list, nil
}

// gate runs the mutants.
func gate(ctx context.Context, only, in string, jobs int, all bool) error {
	began := time.Now()
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return err
	}
	list, err := parse(listFile, string(text))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m mutant) bool { return !strings.Contains(m.name, only) })
	if len(list) == 0 {
		return fmt.Errorf("no mutant of %s is called %q", listFile, only)
	}
	searching := in != ""
	if searching {
		worlds, err := parseWorlds(in)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].worlds = worlds
		}
	}
	for i := range list { // before anything takes time
		if _, err := list[i].apply(root); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g := &gater{root: root, dir: dir, jobs: jobs, all: all && searching}
	survived, killers, err := g.kill(ctx, list)
	if err != nil {
		return err
	}
	if !searching {
		if err := g.sound(ctx, killers); err != nil {
			return err
		}
	}
	fmt.Printf("%d of %d mutants killed in %v\n", len(list)-len(survived), len(list), time.Since(began).Round(time.Second))
	if len(survived) > 0 && !searching {
		return fmt.Errorf("the simulator does not notice: %s\nfind worlds that do with: scripts/mutants -only NAME -in \"drawn 1-100\"", strings.Join(survived, "; "))
	}
	return nil
}

// gater builds the engine with and without defects and runs worlds.
type gater struct {
	root, dir string
	jobs      int
	all       bool // run all worlds, and show each that kills
}

// sound holds the code without a defect to the worlds that killed a mutant.
func (g *gater) sound(ctx context.Context, worlds []worldID) error {
	began := time.Now()
	binary, err := g.build(ctx, "sound", nil)
	if err != nil {
		return err
	}
	err = each(worlds, g.jobs, func(_ int, w worldID) error {
		found, err := g.runs(ctx, binary, 0, []worldID{w})
		switch {
		case err != nil:
			return fmt.Errorf("the code without a defect, world %v: %w", w, err)
		case len(found) != 1 || len(found[0].Broken) > 0:
			return fmt.Errorf("the code without a defect breaks a promise in world %v: %+v", w, found)
		}
		return nil
	})
	if err == nil {
		fmt.Printf("the code as it is keeps every promise in the %d worlds that killed (%v)\n", len(worlds), time.Since(began).Round(time.Second))
	}
	return err
}

// kill runs every mutant and returns the names of those that no world notices, and the worlds that killed the others, each once. It shows
// each mutant as soon as it is done.
func (g *gater) kill(ctx context.Context, list []mutant) (survived []string, killers []worldID, err error) {
	widest := 0
	for _, m := range list {
		widest = max(widest, len(m.name))
	}
	binaries, err := g.buildAll(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	done := 0
	fmt.Printf("%8s  %-*s  %-8s %-14s %s\n", "", widest, "mutant", "check", "world", "time")
	err = each(list, g.jobs, func(i int, m mutant) error {
		began := time.Now()
		found, crash := g.runs(ctx, binaries[i], i+1, m.worlds)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		row := func(check, world string, took time.Duration, why string) {
			fmt.Printf("%3d/%-3d   %-*s  %-8s %-14s %4.1fs  %s\n", done, len(list), widest, m.name, check, world, took.Seconds(), why)
		}
		killed := false
		by := func(i int) {
			if killed = true; !slices.Contains(killers, m.worlds[i]) {
				killers = append(killers, m.worlds[i])
			}
		}
		for i, v := range found {
			if len(v.Broken) == 0 {
				continue
			}
			took := time.Since(began)
			if g.all {
				took = v.Took
			}
			row(v.Broken[0].Check, v.World, took, v.Broken[0].First)
			if by(i); !g.all {
				break
			}
		}
		if crash != nil && !killed {
			var c crashed
			if !errors.As(crash, &c) {
				return crash
			}
			last := min(len(found), len(m.worlds)-1)
			row("panic", m.worlds[last].String(), time.Since(began), c.Error())
			by(last)
		}
		if !killed {
			row("SURVIVED", "-", time.Since(began), m.breaks)
			survived = append(survived, m.name)
		}
		return nil
	})
	return survived, killers, err
}

// each calls fn for every element, several at a time, and returns the first error.
func each[T any](list []T, jobs int, fn func(i int, v T) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(list))
	next := make(chan int)
	for range jobs {
		wg.Go(func() {
			for i := range next {
				errs[i] = fn(i, list[i])
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildAll returns the binary of each mutant.
func (g *gater) buildAll(ctx context.Context, list []mutant) (binaries []string, err error) {
	began := time.Now()
	sources, mutants := map[string]string{}, make([]map[string]string, len(list))
	for i := range list {
		if mutants[i], err = list[i].apply(g.root); err != nil {
			return nil, err
		}
		for file := range mutants[i] {
			text, err := os.ReadFile(filepath.Join(g.root, filepath.FromSlash(file)))
			if err != nil {
				return nil, err
			}
			sources[file] = string(text)
		}
	}
	files, alone, err := together(sources, mutants)
	if err != nil {
		return nil, err
	}
	most, err := g.build(ctx, "together", files)
	if err != nil {
		return nil, fmt.Errorf("the mutants together, of which fooMutant12 is the twelfth: %w", err)
	}
	binaries = make([]string, len(list))
	for i, m := range list {
		if binaries[i] = most; alone[i] {
			if binaries[i], err = g.build(ctx, fmt.Sprint("m", i), mutants[i]); err != nil {
				return nil, fmt.Errorf("the mutant %q: %w", m.name, err)
			}
		}
	}
	fmt.Printf("%d mutants in one binary, %d in one each (%v)\n", len(list)-len(alone), len(alone), time.Since(began).Round(time.Second))
	return binaries, nil
}

// build makes this command with changed files of the module.
func (g *gater) build(ctx context.Context, name string, changed map[string]string) (binary string, err error) {
	replace := map[string]string{}
	for file, text := range changed {
		to := filepath.Join(g.dir, name+"-"+strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(g.root, filepath.FromSlash(file))] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	to := filepath.Join(g.dir, name+".json")
	if err := os.WriteFile(to, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(g.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", to, "-ldflags", "-s -w", "-o", binary, self)
	cmd.Dir = g.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not build: %w\n%s", err, out)
	}
	return binary, nil
}

// crashed is a run that ended by a panic, in a few words.
type crashed string

func (c crashed) Error() string { return string(c) }

// runs has a binary run worlds with one of its mutants, 0 for none, and returns the verdicts, and a crashed when it ended before the last
// of them by a panic.
func (g *gater) runs(ctx context.Context, binary string, number int, worlds []worldID) (found []verdict, err error) {
	names := make([]string, len(worlds))
	for i, w := range worlds {
		names[i] = w.String()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(worlds))*worldMost)
	defer cancel()
	args := []string{"-worlds", strings.Join(names, ",")}
	if g.all {
		args = append(args, "-all")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=200", fmt.Sprintf("%s=%d", numberVariable, number))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	lines := bufio.NewScanner(&stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return found, fmt.Errorf("cannot read the verdict %q: %w", lines.Text(), err)
		}
		found = append(found, v)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return found, nil
	case strings.HasPrefix(stderr.String(), "panic: "):
		why, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "panic: "), "\n")
		return found, crashed(why)
	}
	return found, fmt.Errorf("%w: %s", err, stderr.String())
}
