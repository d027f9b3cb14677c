// Package outcome says what simulations came to: on a screen for the people who plan a
// sale ([Text]), as JSON ([JSON]) and as tables ([Points], [Visits]) for other programs.
//
// It also asks the question that a plan is made for: what would other limits change?
// [Variations] gives the scenarios to run for it.
package outcome

import (
	"fmt"
	"math"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

// Report is everything that a command has run.
type Report struct {
	// Results are the runs of the plan: at least one; those of an algorithm follow each
	// other, by ascending seed.
	Results []*sim.Result
	WhatIf  []Variation // with their results; may be empty
	Files   []string    // that were written, for the text; may be empty
}

// Variation is a scenario with one setting changed, throughout: at the start and in every
// change.
type Variation struct {
	Setting  string  // its key in the plan
	Factor   float64 // of the planned limit; 0 when the setting is no limit
	Scenario sim.Scenario
	Result   *sim.Result // nil until it has run
}

// factors are those by which [Variations] multiplies each limit.
var factors = [...]float64{0.5, 0.75, 1.5, 2}

// Variations returns what else could be planned: half, three quarters, one and a half and
// double of each limit, and, where the line is first come first served or drawn by lot, the
// other way.
func Variations(sc sim.Scenario) []Variation {
	var out []Variation
	vary := func(setting string, factor float64, change func(*anteroom.Settings)) {
		v := Variation{Setting: setting, Factor: factor, Scenario: sc}
		change(&v.Scenario.Settings)
		v.Scenario.Changes = slices.Clone(sc.Changes)
		for i := range v.Scenario.Changes {
			change(&v.Scenario.Changes[i].Settings)
		}
		out = append(out, v)
	}
	for _, f := range factors {
		vary("total_active_users", f, func(s *anteroom.Settings) { s.TotalActiveUsers = times(s.TotalActiveUsers, f) })
	}
	for _, f := range factors {
		vary("new_users_per_minute", f, func(s *anteroom.Settings) { s.NewUsersPerMinute = times(s.NewUsersPerMinute, f) })
	}
	lined := func(m anteroom.QueueingMethod) bool { return m == anteroom.FIFO || m == anteroom.Random || m == "" }
	if lined(sc.QueueingMethod) {
		vary("queueing_method", 0, func(s *anteroom.Settings) {
			if s.QueueingMethod == anteroom.Random {
				s.QueueingMethod = anteroom.FIFO
			} else if lined(s.QueueingMethod) {
				s.QueueingMethod = anteroom.Random
			}
		})
	}
	return out
}

// times multiplies a limit, within the bounds that limits have.
func times(limit int, factor float64) int {
	return int(min(max(math.Round(float64(limit)*factor), 1), anteroom.MaxUsers))
}

// Broken returns the promises of the product that a run broke: the checks of every result
// of [sim.Anteroom], those of the variations too. The other algorithms are expected to.
func (r Report) Broken() []Break {
	var out []Break
	look := func(res *sim.Result, with string) {
		if res == nil || res.Algorithm != sim.Anteroom && res.Algorithm != "" {
			return
		}
		for _, c := range res.Checks {
			if c.Broken > 0 {
				out = append(out, Break{Check: c, Seed: res.Seed, With: with})
			}
		}
	}
	for _, res := range r.Results {
		look(res, "")
	}
	for _, v := range r.WhatIf {
		look(v.Result, v.Setting+" "+v.value())
	}
	return out
}

// Break is a promise that did not hold, and in which run.
type Break struct {
	sim.Check
	Seed uint64
	With string // the setting that a variation changed, and to what; empty for the plan itself
}

// Run says which run it was, for a sentence.
func (b Break) Run() string {
	s := fmt.Sprintf("seed %d", b.Seed)
	if b.With != "" {
		s += ", with " + b.With
	}
	return s
}

// of returns the results of the first algorithm, which are those of the plan itself, and
// the first result of each.
func (r Report) of() (plan, firsts []*sim.Result) {
	for _, res := range r.Results {
		if res.Algorithm == r.Results[0].Algorithm {
			plan = append(plan, res)
		}
		if !slices.ContainsFunc(firsts, func(f *sim.Result) bool { return f.Algorithm == res.Algorithm }) {
			firsts = append(firsts, res)
		}
	}
	return plan, firsts
}
