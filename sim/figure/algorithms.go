package figure

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/sim"
)

// algorithms shows ways of sharing slots under the same scenario: active users over time with
// the same axes, and what each came to. The ideal, which cannot be built, is the reference.
func algorithms(results []*sim.Result) Figure {
	const tall, row, bars = 170, 24, 40
	title := titled("Algorithms side by side", results[0])
	height := headHeight + tall + footHeight + bars + row*len(results) + 16
	return Figure{Name: "algorithms", Title: title, Width: width, Height: height, draw: func(c *canvas) {
		key := "active users over time; dashed: the limit"
		var ideal *sim.Result
		shown := results
		if i := slices.IndexFunc(results, func(r *sim.Result) bool { return r.Algorithm == sim.Ideal }); i >= 0 {
			ideal = results[i]
			shown = slices.Delete(slices.Clone(results), i, i+1)
			key += "; thin grey: the ideal, which cannot be built"
		}
		head(c, title, fmt.Sprintf("%s arrived in %s · %s · %s",
			thousands(results[0].Numbers.Arrived), span(results[0].Scenario.Length), string(methodOf(results[0])), key))
		multiples(c, tall, shown, ideal)
		outcomes(c, headHeight+tall+footHeight+bars, row, results)
	}}
}

// algorithmColour is the same for an algorithm everywhere.
func algorithmColour(name string) colour {
	switch name {
	case sim.Anteroom:
		return blue
	case sim.Even:
		return amber
	case sim.Adapted:
		return plum
	case sim.Counters:
		return green
	}
	return faint
}

func active(q sim.Point) int { return q.Active }

// multiples draws a panel for each algorithm.
func multiples(c *canvas, tall float64, shown []*sim.Result, ideal *sim.Result) {
	const between = 16
	end, most, bound := ended(shown[0]), 0.0, 0.0
	for _, r := range shown {
		end = max(end, ended(r))
		m, _ := highest(r, count(active))
		b, _ := highest(r, count(func(q sim.Point) int { return q.Limit }))
		most, bound = max(most, m), max(bound, b)
	}
	near := bound <= 4*max(most, 1)
	top := most
	if near {
		top = max(most, bound)
	}
	n := float64(len(shown))
	wide := (width - marginLeft - 24 - (n-1)*between) / n
	for i, r := range shown {
		p := panel{c: c, left: marginLeft + float64(i)*(wide+between), top: headHeight, width: wide, height: tall,
			x: times(end, max(2, int(wide/55))), y: counts(top*1.12, 4)}
		p.grid()
		if i == 0 {
			p.yAxis()
		}
		p.xAxis("")
		c.text(style{size: 13, bold: true, clr: algorithmColour(r.Algorithm)}, point{p.left, p.top - 9}, r.Algorithm)
		if len(r.Points) == 0 {
			p.says("no data")
			continue
		}
		if ideal != nil {
			c.stroke(faint, 0.8, nil, p.steps(p.tops(over(ideal, count(active)))))
		}
		p.area(algorithmColour(r.Algorithm), p.tops(over(r, count(active))))
		if near {
			c.stroke(red, 1.4, []float64{6, 3}, p.steps(p.lasts(over(r, count(func(q sim.Point) int { return q.Limit })))))
		}
	}
}

// outcomes draws what each algorithm came to, as bars with their values.
func outcomes(c *canvas, top, row float64, results []*sim.Result) {
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
		s := style{size: 12.5, bold: r.Algorithm == sim.Anteroom, clr: algorithmColour(r.Algorithm), anchor: 1}
		c.text(s, point{names - 10, top + float64(j)*row + 15}, r.Algorithm)
	}
	for i, k := range kinds {
		left := names + float64(i)*(wide+between)
		heading := style{size: 12.5, bold: true, clr: dark}
		c.text(heading, point{left, top - 10}, c.fit(heading, k.name, wide+between-4))
		most := 0.0
		for _, r := range results {
			most = max(most, finite(k.share(r.Numbers)))
		}
		c.stroke(outline, 1, nil, []point{{left, top}, {left, top + row*float64(len(results))}})
		for j, r := range results {
			v := finite(k.share(r.Numbers))
			y := top + float64(j)*row
			long := 0.0
			if most > 0 {
				long = v / most * (wide - room)
			}
			if v > 0 {
				c.fill(algorithmColour(r.Algorithm), c.box(left, y+4, max(1.5, long), row-8))
			}
			c.text(style{size: 12, clr: dark}, point{left + long + 6, y + 16}, percent(v))
		}
	}
}
