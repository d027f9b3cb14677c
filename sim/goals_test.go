//go:build !race

// A hundred worlds of one goroutine each would show the race detector nothing that those of
// TestSearch do not, and take it ten minutes.

package sim

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var goalSeeds = flag.Int("sim.goals", 1, "seeds of TestGoals, which looks only at the goals that every run reaches if there is one, and of TestAlgorithms")

// goal is a number that a group of scenarios has to reach.
type goal struct {
	name string
	of   func(*Result) float64
	// median and worst of the seeds may be at most so much; negative: not asked for.
	median, worst float64
	in            string // scenarios, separated by spaces
}

// shortfalls are the goals that are not reached: why, and what even so the median and the
// worst seed must not exceed.
var shortfalls = map[string]struct {
	why           string
	median, worst float64
}{
	"not within 12 %, %":              {"how many sessions end within a minute or two is up to chance, by some six percent", 12, -1},
	"the same, where nodes live 45 s": {"the seats of those are held whom a node that ended may have let in last", 0.1, 0.5},
}

const (
	connected = "steady uneven spike-one spike-new spike-world backlog random rate-open edge churn parallel lost-cookie skew roaming replay"
	queues    = "backlog churn parallel lost-cookie skew"
	announced = queues + " spike-one spike-world rate-open hundred-sites roaming replay"
	cutOff    = "partition crash"
	polling   = "backlog+polls churn+polls random+polls"
)

func percent(f func(*Result) float64) func(*Result) float64 {
	return func(r *Result) float64 { return 100 * f(r) }
}

func seconds(f func(*Result) time.Duration) func(*Result) float64 {
	return func(r *Result) float64 { return f(r).Seconds() }
}

var (
	idle      = percent(func(r *Result) float64 { return r.Numbers.Idle })
	freed50   = seconds(func(r *Result) time.Duration { return r.Numbers.IdleP50 })
	freed95   = seconds(func(r *Result) time.Duration { return r.Numbers.IdleP95 })
	tooEarly  = percent(func(r *Result) float64 { return r.Numbers.Premature })
	passed    = percent(func(r *Result) float64 { return r.Numbers.Overtaken })
	messages  = func(r *Result) float64 { return r.Numbers.Messages }
	everybody = connected + " " + cutOff + " part-open site-lost unruly hundred-sites spike-world-slow edge-slow backlog-slow"
)

// goals are those of the reference on admission, part 3.
var goals = []goal{
	{"active over the limit, %", percent(func(r *Result) float64 { return r.Numbers.OverActive }), 0, 0, everybody},
	{"new users over the limit in any 60 s, %", percent(func(r *Result) float64 { return r.Numbers.OverAnyMinute }), 0, 0, everybody},
	{"shown the page too early, % of arrivals", tooEarly, 0.1, 0.3, strings.Replace(connected, "churn ", "", 1)},
	{"the same, where nodes live 45 s", tooEarly, 0.1, 0.3, "churn"},
	{"overtaken by more than 1 s, % of the queued", passed, 0, 0, connected},
	{"the same, two minutes cut or 30 s without coordinator", passed, 5, -1, cutOff},
	{"and by how much, s", seconds(func(r *Result) time.Duration { return r.Numbers.OvertakenMost }), 60, -1, cutOff},
	{"a freed slot is taken, p50, s", freed50, 0.5, -1, queues},
	{"a freed slot is taken, p95, s", freed95, 1.5, -1, queues},
	{"the same, polls only, p50, s", freed50, 1.3, -1, "backlog+polls churn+polls"},
	{"slots idle while people wait, %", idle, 0.7, -1, queues + " spike-one spike-new spike-world edge random"},
	{"the same, polls only, %", idle, 1.5, -1, polling},
	{"the same, paced after a burst, %", idle, 4, -1, "rate-open"},
	{"announced waits (fifo), median error, %", percent(func(r *Result) float64 { return r.Numbers.EtaError }), 5, -1, announced},
	{"their bias, % off", percent(func(r *Result) float64 { return max(r.Numbers.EtaBias, -r.Numbers.EtaBias) }), 5, -1, announced},
	{"not within 12 %, %", percent(func(r *Result) float64 { return 1 - r.Numbers.EtaWithin }), 10, -1, announced},
	{"announced quartiles (random) off, points", percent(func(r *Result) float64 { return r.Numbers.LotteryError }), 6, -1, "random"},
	{"winners' rank of arrival off a half", func(r *Result) float64 { return max(r.Numbers.LotteryRank, -r.Numbers.LotteryRank) }, 0.05, 0.05, "random random+polls"},
	{"decisions outside the site, %", percent(func(r *Result) float64 { return r.Numbers.Outside }), 1, 1, "steady uneven"},
	{"messages per second and site, open", messages, 2.1, -1, "steady uneven"},
	{"messages per second and site, queueing", messages, 10, -1, queues + " random"},
	{"requests per visitor", func(r *Result) float64 { return r.Numbers.Requests }, 5, -1, "backlog"},
	{"sent back to the line within the session, %", percent(func(r *Result) float64 { return r.Numbers.SentBack }), 0.1, -1, connected},
}

// always says that every run has to reach the goal, so that one run can miss it.
func (g goal) always() bool { return g.worst >= 0 && g.worst == g.median }

// goalsAsked are all goals, or, in a single seed, those that every run has to reach. hundred-sites is left out then, because
// TestHundredSites runs it.
func goalsAsked() (asked []goal) {
	for _, g := range goals {
		if *goalSeeds == 1 {
			if !g.always() {
				continue
			}
			g.in = strings.ReplaceAll(g.in, "hundred-sites", "")
		}
		asked = append(asked, g)
	}
	return asked
}

// noisy are scenarios in which the median of a few seeds says little: their announced waits differ by two
// percent from seed to seed, or a handful of visitors is all that is counted. They have so many times the seeds.
var noisy = map[string]int{"parallel": 5, "spike-world": 10, "lost-cookie": 5, "skew": 5, "churn": 5, "churn+polls": 5, "edge": 3}

// goalScenario is a scenario by name; "+polls" lets nobody hold a stream.
func goalScenario(name string) (Scenario, bool) {
	base, polls := strings.CutSuffix(name, "+polls")
	sc, ok := Named(base)
	if polls {
		sc.Name, sc.Visitors.Streams = name, 0
	}
	return sc, ok
}

// TestGoals runs the published comparison's scenarios and holds the product to the goals.
// go test ./sim -run TestGoals -v -sim.goals=20 prints the table of docs/simulate.md.
func TestGoals(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	asked := goalsAsked()
	results := map[string][]*Result{}
	var mu sync.Mutex
	t.Run("runs", func(t *testing.T) {
		for _, name := range goalNames(asked) {
			sc, ok := goalScenario(name)
			if !ok {
				t.Fatalf("there is no scenario %q", name)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				seeds := *goalSeeds
				if seeds > 1 {
					seeds *= max(1, noisy[name])
				}
				for seed := range uint64(seeds) {
					r, err := Run(context.Background(), sc, seed+1, Options{})
					if err != nil {
						t.Fatal(err)
					}
					r.Points, r.Visits = nil, nil
					mu.Lock()
					results[name] = append(results[name], r)
					mu.Unlock()
				}
			})
		}
	})
	for _, g := range asked {
		worstMedian, worstOf, where, whereWorst := 0.0, 0.0, "", ""
		for _, name := range strings.Fields(g.in) {
			var v []float64
			for _, r := range results[name] {
				v = append(v, g.of(r))
			}
			slices.Sort(v)
			if m := v[len(v)/2]; m > worstMedian || where == "" {
				worstMedian, where = m, name
			}
			if w := v[len(v)-1]; w > worstOf || whereWorst == "" {
				worstOf, whereWorst = w, name
			}
		}
		over := func(median, worst float64) bool {
			return median >= 0 && worstMedian > median+1e-9 || worst >= 0 && whereWorst != "" && worstOf > worst+1e-9
		}
		ask := fmt.Sprintf("%g", g.median)
		if g.worst > g.median {
			ask = fmt.Sprintf("%g, worst %g", g.median, g.worst)
		}
		outcome, broken := "met", over(g.median, g.worst)
		if broken {
			outcome = "MISSED"
			if s, known := shortfalls[g.name]; known {
				outcome, broken = "missed: "+s.why, over(s.median, s.worst)
			}
		}
		t.Logf("| %s | %s | %.3g (%s) | %.3g (%s) | %s |", g.name, ask, worstMedian, where, worstOf, whereWorst, outcome)
		if broken {
			t.Errorf("%s: %.3g in the median of %s, %.3g in the worst of %s; the goal is %s", g.name, worstMedian, where, worstOf, whereWorst, ask)
		}
	}
}

func goalNames(asked []goal) (names []string) {
	for _, g := range asked {
		for _, name := range strings.Fields(g.in) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
