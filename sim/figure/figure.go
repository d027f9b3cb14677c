// Package figure draws what a simulation came to, as PNG or SVG: the face of
// "anteroom simulate" and of docs/simulate.md.
//
// [Of] looks at the results and returns the figures that make sense for them; [Figure.Write]
// draws one. The same results give the same bytes. Whatever a result holds, a figure comes
// out: without data it says so, and text from a scenario cannot break the picture.
//
// Package chart does the drawing; what the figures have in common stands there.
package figure

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// Figure is one picture, not yet drawn.
type Figure struct {
	Name          string // for a file: lower-case letters and hyphens, unique among those of one call of Of
	Title         string // a line, also in the picture
	Width, Height int    // in CSS pixels; a PNG has twice as many each way

	draw func(*chart.Canvas)
}

// Write draws the figure. The error is the writer's, or says that there is no such format.
func (f Figure) Write(w io.Writer, format chart.Format) error {
	if f.draw == nil {
		return fmt.Errorf("figure %q: was not made by figure.Of, so there is nothing to draw", f.Name)
	}
	c, err := chart.New(f.Width, f.Height, format)
	if err != nil {
		return fmt.Errorf("figure %q: %w", f.Name, err)
	}
	f.draw(c)
	if err := c.Encode(w, f.Title); err != nil {
		return fmt.Errorf("figure %q: %w", f.Name, err)
	}
	return nil
}

// Of returns the figures that make sense for the results, in the order in which one would
// look at them; nil results are passed over, and no result gives no figure.
//
// The product's results are drawn one by one, the first of each queueing method; when there
// are several methods the names end in the method ("load-random"). Two of them, the same
// scenario with fifo and random, share the figures of waits. Results of several algorithms
// are compared, the first of each.
func Of(results []*sim.Result) []Figure {
	results = slices.DeleteFunc(slices.Clone(results), func(r *sim.Result) bool { return r == nil })
	if len(results) == 0 {
		return nil
	}
	ours := firstOfEach(results, func(r *sim.Result) string {
		if r.Algorithm != sim.Anteroom && r.Algorithm != "" {
			return ""
		}
		return string(methodOf(r))
	})
	if len(ours) == 0 {
		ours = results[:1]
	}
	var figs []Figure
	add := func(name string, f Figure, r *sim.Result) {
		f.Name = name
		if len(ours) > 1 {
			f.Name += "-" + string(methodOf(r))
		}
		figs = append(figs, f)
	}
	for _, r := range ours {
		add("load", load(r), r)
		if r.Origin != nil {
			add("origin", origin(r), r)
		}
	}
	pair := ours[:min(2, len(ours))]
	figs = append(figs, waits(pair), heat(pair))
	for _, r := range ours {
		switch methodOf(r) {
		case anteroom.FIFO:
			add("announced", announcedOrder(r), r)
		case anteroom.Random:
			add("announced", announcedDraw(r), r)
		case anteroom.Passthrough, anteroom.Reject, anteroom.ByLottery: // nobody is told of a wait
		}
		add("idle", idle(r), r)
		if siteCount(r) > 1 {
			add("sites", sites(r), r)
		}
	}
	if all := comparable(results); len(all) > 1 {
		figs = append(figs, algorithms(all))
	}
	return figs
}

// comparable returns the first result of each algorithm in the documented order, those with
// the method of the first result only: what differs must be the algorithm.
func comparable(results []*sim.Result) []*sim.Result {
	all := firstOfEach(results, func(r *sim.Result) string {
		if methodOf(r) != methodOf(results[0]) || r.Scenario.Name != results[0].Scenario.Name || !slices.Contains(sim.Algorithms, r.Algorithm) {
			return ""
		}
		return r.Algorithm
	})
	slices.SortStableFunc(all, func(a, b *sim.Result) int {
		return cmp.Compare(slices.Index(sim.Algorithms, a.Algorithm), slices.Index(sim.Algorithms, b.Algorithm))
	})
	return all
}

// firstOfEach returns the first result of each key, in their order; those with an empty key
// are left out.
func firstOfEach(results []*sim.Result, key func(*sim.Result) string) []*sim.Result {
	seen := map[string]bool{}
	var out []*sim.Result
	for _, r := range results {
		if k := key(r); k != "" && !seen[k] {
			seen[k] = true
			out = append(out, r)
		}
	}
	return out
}

func methodOf(r *sim.Result) anteroom.QueueingMethod {
	m := r.Scenario.WithDefaults().QueueingMethod
	if !slices.Contains(anteroom.QueueingMethods, m) {
		return anteroom.FIFO
	}
	return m
}
