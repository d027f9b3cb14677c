package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// maxDots bounds the dots of a figure: more cannot be told apart and make a file large.
const maxDots = 3000

// some passes at most so many of n things to each, spread evenly.
func some(n, most int, each func(i int)) {
	step := max(1, float64(n)/float64(most))
	for f := 0.0; int(f) < n; f += step {
		each(int(f))
	}
}

// waited returns how long the visitor waited to be admitted; false when that never happened.
func waited(v sim.Visit) (time.Duration, bool) {
	if v.Admitted <= 0 || v.Admitted < v.Arrived {
		return 0, false
	}
	return v.Admitted - v.Arrived, true
}

// sideBySide lays out a panel for each result with the same axes: when people arrived, and
// how long they waited.
func sideBySide(c *chart.Canvas, results []*sim.Result) []panel {
	var lastArrival, longest time.Duration
	for _, r := range results {
		lastArrival = max(lastArrival, r.Scenario.Length)
		for _, v := range r.Visits {
			lastArrival = max(lastArrival, v.Arrived)
			if w, ok := waited(v); ok {
				longest = max(longest, w)
			}
		}
	}
	const between = 26
	n := float64(len(results))
	wide := (c.Width - chart.MarginLeft - 30 - (n-1)*between) / n
	var out []panel
	for i := range results {
		out = append(out, panel{chart.Panel{On: c, Left: chart.MarginLeft + float64(i)*(wide+between), Top: chart.HeadHeight, Width: wide, Height: c.Height - chart.HeadHeight - 50,
			X: chart.Times(lastArrival, 10/len(results)), Y: chart.Times(longest+longest/12, 6)}})
	}
	return out
}

// frameWait draws ground and axes of a panel of sideBySide; the first has the marks for all.
func (p panel) frameWait(r *sim.Result, first, alone bool) {
	p.Grid()
	if first {
		p.YAxis()
	}
	p.XAxis("arrived at")
	heading := "Wait, " + p.Y.Unit
	if !alone {
		heading = string(methodOf(r)) + ": wait, " + p.Y.Unit
	}
	p.Heading(heading, fmt.Sprintf("median %s · 95 %% below %s", chart.Span(r.Numbers.WaitP50), chart.Span(r.Numbers.WaitP95)))
}

// aboutPair says what the results have in common.
func aboutPair(results []*sim.Result) string {
	if len(results) == 1 {
		return about(results[0])
	}
	n := results[0].Numbers
	return fmt.Sprintf("%s arrived in %s, the same under both methods · seed %d", chart.Thousands(n.Arrived), chart.Span(results[0].Scenario.Length), results[0].Seed)
}

// waits shows every visitor, or a sample, as a dot: arrival and wait.
func waits(results []*sim.Result) Figure {
	title := titled("Wait by arrival", results[0])
	return Figure{Name: "wait-by-arrival", Title: title, Width: width, Height: 470, draw: func(c *chart.Canvas) {
		c.Head(title, aboutPair(results)+" · a dot is a visitor")
		for i, p := range sideBySide(c, results) {
			p.frameWait(results[i], i == 0, len(results) == 1)
			p.scatter(results[i], maxDots/len(results))
		}
	}}
}

func (p panel) scatter(r *sim.Result, most int) {
	if len(r.Visits) == 0 {
		p.Says("no data: nobody arrived")
		return
	}
	var queued, direct, gone [][]chart.Point
	some(len(r.Visits), most, func(i int) {
		v := r.Visits[i]
		if w, ok := waited(v); ok {
			at := chart.Point{p.PX(v.Arrived.Seconds()), p.PY(w.Seconds())}
			dot := chart.Dash(at, 2.4)
			if v.Shown || w > time.Second {
				queued = append(queued, dot)
			} else {
				direct = append(direct, dot)
			}
		} else if v.Left > v.Arrived {
			at := chart.Point{p.PX(v.Arrived.Seconds()), p.PY((v.Left - v.Arrived).Seconds())}
			gone = append(gone, []chart.Point{{at[0] - 2, at[1] + 1.8}, {at[0] + 2, at[1] + 1.8}, {at[0], at[1] - 2}})
		}
	})
	p.On.Fill(chart.Thin(chart.Orange, 200), gone...)
	p.On.Stroke(chart.Green, 2.4, nil, direct...)
	p.On.Stroke(chart.Thin(chart.Blue, 165), 2.4, nil, queued...)
	if methodOf(r) == anteroom.Random { // in order of arrival, the dots are the line
		p.medianLine(r)
	}
	var key []string
	if len(direct) > 0 {
		key = append(key, "green: admitted at once")
	}
	if len(gone) > 0 {
		key = append(key, "orange triangles: gave up")
	}
	s := chart.Style{Size: 12, Color: chart.Dark}
	if say := strings.Join(key, ", "); say != "" {
		p.On.Label(s, chart.Point{p.Left + 8, p.Top + 16}, s.Fit(say, p.Width-16))
	}
	if len(queued) == 0 && len(gone) == 0 {
		p.Says("nobody waited")
	}
}

// medianLine draws the median wait of those who arrived in each stretch of time.
func (p panel) medianLine(r *sim.Result) {
	const bins = 30
	var in [bins][]float64
	for _, v := range r.Visits {
		if w, ok := waited(v); ok {
			b := min(bins-1, max(0, int(v.Arrived.Seconds()/p.X.Max*bins)))
			in[b] = append(in[b], w.Seconds())
		}
	}
	var line []chart.Point
	for i, b := range in {
		if len(b) >= 5 {
			line = append(line, chart.Point{p.PX((float64(i) + 0.5) / bins * p.X.Max), p.PY(quantile(b, 0.5))})
		}
	}
	if len(line) > 1 {
		p.On.Stroke(chart.Halo, 5, nil, line)
		p.On.Stroke(chart.Dark, 2, nil, line)
		at := line[len(line)*2/3]
		p.On.Label(chart.Style{Size: 12, Bold: true, Color: chart.Dark, Anchor: 0.5}, chart.Point{at[0], at[1] - 10}, "median")
	}
}

// quantile sorts the values and returns the one at q; of none it is 0.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// heat shows the same as waits for crowds: how many visitors share arrival and wait.
func heat(results []*sim.Result) Figure {
	title := titled("How many waited how long", results[0])
	return Figure{Name: "wait-heat", Title: title, Width: width, Height: 500, draw: func(c *chart.Canvas) {
		c.Head(title, aboutPair(results)+" · the darker, the more visitors")
		panels := sideBySide(c, results)
		cells := make([][][]float64, len(panels))
		most := 0.0
		for i, p := range panels {
			cells[i] = p.cells(results[i])
			for _, column := range cells[i] {
				most = max(most, slices.Max(column))
			}
		}
		for i, p := range panels {
			p.frameWait(results[i], i == 0, len(results) == 1)
			p.heatMap(cells[i], most)
		}
		heatKey(c, most)
	}}
}

// cells counts the visitors of each cell, for all that the sample stands for.
func (p panel) cells(r *sim.Result) [][]float64 {
	columns, rows := int(p.Width/14), int(p.Height/12)
	out := make([][]float64, columns)
	for i := range out {
		out[i] = make([]float64, rows)
	}
	each := 1.0
	if n := len(r.Visits); r.Numbers.Arrived > n {
		each = float64(r.Numbers.Arrived) / float64(n)
	}
	for _, v := range r.Visits {
		if w, ok := waited(v); ok {
			x := min(columns-1, max(0, int(v.Arrived.Seconds()/p.X.Max*float64(columns))))
			y := min(rows-1, max(0, int(w.Seconds()/p.Y.Max*float64(rows))))
			out[x][y] += each
		}
	}
	return out
}

// heatLevels is the number of colours of a heat map.
const heatLevels = 10

// level returns the colour of a count: by the square root, so that few are still seen.
func level(n, most float64) int {
	return min(heatLevels-1, int(math.Sqrt(n/most)*heatLevels))
}

// shade goes from a light yellow over green-blue to a dark blue: lighter is always fewer, in
// grey as well.
func shade(level int) color.NRGBA {
	stops := []color.NRGBA{{0xfb, 0xf3, 0xc4, 255}, {0xa5, 0xd6, 0xb5, 255}, {0x41, 0xa6, 0xc0, 255}, {0x2b, 0x5f, 0x8a, 255}, {0x12, 0x1f, 0x4d, 255}}
	f := float64(level) / (heatLevels - 1) * float64(len(stops)-1)
	i := min(len(stops)-2, int(f))
	mix := func(a, b uint8) uint8 {
		return uint8(math.Round(float64(a) + (float64(b)-float64(a))*(f-float64(i))))
	}
	a, b := stops[i], stops[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

func (p panel) heatMap(cells [][]float64, most float64) {
	if most == 0 {
		p.Says("no data: nobody was admitted")
		return
	}
	var areas [heatLevels][][]chart.Point
	w := p.Width / float64(len(cells))
	for x, column := range cells {
		h := p.Height / float64(len(column))
		for y, n := range column {
			if n > 0 {
				l := level(n, most)
				areas[l] = append(areas[l], chart.Box(p.Left+float64(x)*w+0.5, p.Bottom()-float64(y+1)*h+0.5, w-1, h-1))
			}
		}
	}
	for l, a := range areas {
		p.On.Fill(shade(l), a...)
	}
}

// heatKey explains the colours in the upper right corner.
func heatKey(c *chart.Canvas, most float64) {
	if most == 0 {
		return
	}
	const w, h = 12, 10
	x, y := c.Width-24-heatLevels*w, 38.0
	for l := range heatLevels {
		c.Fill(shade(l), chart.Box(x+float64(l)*w, y, w, h))
	}
	c.Text(chart.Style{Size: 12, Color: chart.Faint, Anchor: 1}, chart.Point{x - 6, y + 9}, "1")
	c.Text(chart.Style{Size: 12, Color: chart.Faint, Anchor: 1}, chart.Point{c.Width - 24, y + 24}, chart.Short(math.Round(most))+" visitors a cell")
}
