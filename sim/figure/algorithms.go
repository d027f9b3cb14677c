package figure

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// algorithms shows ways of sharing slots under the same scenario: active users over time with
// the same axes, and what each came to. The ideal, which cannot be built, is the reference.
func algorithms(results []*sim.Result) Figure {
	const tall, row, bars = 170, 24, 40
	title := titled("Algorithms side by side", results[0])
	height := chart.HeadHeight + tall + chart.FootHeight + bars + row*len(results) + 16
	return Figure{Name: "algorithms", Title: title, Width: width, Height: height, draw: func(c *chart.Canvas) {
		key := "active users over time; dashed: the limit"
		var ideal *sim.Result
		shown := results
		if i := slices.IndexFunc(results, func(r *sim.Result) bool { return r.Algorithm == sim.Ideal }); i >= 0 {
			ideal = results[i]
			shown = slices.Delete(slices.Clone(results), i, i+1)
			key += "; thin grey: the ideal, which cannot be built"
		}
		c.Head(title, fmt.Sprintf("%s arrived in %s · %s · %s",
			chart.Thousands(results[0].Numbers.Arrived), chart.Span(results[0].Scenario.Length), string(methodOf(results[0])), key))
		multiples(c, tall, shown, ideal)
		outcomes(c, chart.HeadHeight+tall+chart.FootHeight+bars, row, results)
	}}
}

// algorithmColour is the same for an algorithm everywhere.
func algorithmColour(name string) color.NRGBA {
	switch name {
	case sim.Anteroom:
		return chart.Blue
	case sim.Even:
		return chart.Amber
	case sim.Adapted:
		return chart.Plum
	case sim.Counters:
		return chart.Green
	}
	return chart.Faint
}

func active(q sim.Point) int { return q.Active }
func limit(q sim.Point) int  { return q.Limit }

// multiples draws a panel for each algorithm.
func multiples(c *chart.Canvas, tall float64, shown []*sim.Result, ideal *sim.Result) {
	const between = 16
	end, most, bound := ended(shown[0]), 0.0, 0.0
	for _, r := range shown {
		end = max(end, ended(r))
		m, _ := over(r, count(active)).Highest()
		b, _ := over(r, count(limit)).Highest()
		most, bound = max(most, m), max(bound, b)
	}
	top, note := chart.Near(most, bound)
	n := float64(len(shown))
	wide := (width - chart.MarginLeft - 24 - (n-1)*between) / n
	for i, r := range shown {
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft + float64(i)*(wide+between), Top: chart.HeadHeight, Width: wide, Height: tall,
			X: chart.Times(end, max(2, int(wide/55))), Y: chart.Counts(top*1.12, 4)}}
		p.Grid()
		if i == 0 {
			p.YAxis()
		}
		p.XAxis("")
		c.Text(chart.Style{Size: 13, Bold: true, Color: algorithmColour(r.Algorithm)}, chart.Point{p.Left, p.Top - 9}, r.Algorithm)
		if len(r.Points) == 0 {
			p.Says("no data")
			continue
		}
		if ideal != nil {
			p.Line(chart.Faint, 0.8, nil, p.Tops(over(ideal, count(active))))
		}
		p.Area(algorithmColour(r.Algorithm), p.Tops(over(r, count(active))))
		if note == "" {
			p.LimitLine(over(r, count(limit)))
		}
	}
}

// outcomes draws what each algorithm came to, as bars with their values.
func outcomes(c *chart.Canvas, top, row float64, results []*sim.Result) {
	kinds := []struct {
		name  string
		share func(sim.Numbers) float64
	}{
		{"most above the limit", func(n sim.Numbers) float64 { return n.OverActive }},
		{"page despite a free slot", func(n sim.Numbers) float64 { return n.Premature }},
		{"overtaken in the line", func(n sim.Numbers) float64 { return n.Overtaken }},
		{"slots idle while people wait", func(n sim.Numbers) float64 { return n.Idle }},
	}
	const names, between, room = 92, 16, 58 // room for the value behind the longest bar
	wide := (width - names - 20 - float64(len(kinds)-1)*between) / float64(len(kinds))
	for j, r := range results {
		s := chart.Style{Size: 12.5, Bold: r.Algorithm == sim.Anteroom, Color: algorithmColour(r.Algorithm), Anchor: 1}
		c.Text(s, chart.Point{names - 10, top + float64(j)*row + 15}, r.Algorithm)
	}
	for i, k := range kinds {
		left := names + float64(i)*(wide+between)
		heading := chart.Style{Size: 12.5, Bold: true, Color: chart.Dark}
		c.Text(heading, chart.Point{left, top - 10}, heading.Fit(k.name, wide+between-4))
		most := 0.0
		for _, r := range results {
			most = max(most, chart.Finite(k.share(r.Numbers)))
		}
		c.Stroke(chart.Outline, 1, nil, []chart.Point{{left, top}, {left, top + row*float64(len(results))}})
		for j, r := range results {
			v := chart.Finite(k.share(r.Numbers))
			y := top + float64(j)*row
			long := 0.0
			if most > 0 {
				long = v / most * (wide - room)
			}
			if v > 0 {
				c.Fill(algorithmColour(r.Algorithm), chart.Box(left, y+4, max(1.5, long), row-8))
			}
			c.Text(chart.Style{Size: 12, Color: chart.Dark}, chart.Point{left + long + 6, y + 16}, chart.Percent(v))
		}
	}
}
