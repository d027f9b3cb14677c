package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
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
func sideBySide(c *canvas, results []*sim.Result) []panel {
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
	wide := (c.width - marginLeft - 30 - (n-1)*between) / n
	var out []panel
	for i := range results {
		out = append(out, panel{c: c, left: marginLeft + float64(i)*(wide+between), top: headHeight, width: wide, height: c.height - headHeight - 50,
			x: times(lastArrival, 10/len(results)), y: times(longest+longest/12, 6)})
	}
	return out
}

// frameWait draws ground and axes of a panel of sideBySide; the first has the marks for all.
func (p panel) frameWait(r *sim.Result, first, alone bool) {
	p.grid()
	if first {
		p.yAxis()
	}
	p.xAxis("arrived at")
	heading := "Wait, " + p.y.unit
	if !alone {
		heading = string(methodOf(r)) + ": wait, " + p.y.unit
	}
	p.head(heading, fmt.Sprintf("median %s · 95 %% below %s", span(r.Numbers.WaitP50), span(r.Numbers.WaitP95)))
}

// aboutPair says what the results have in common.
func aboutPair(results []*sim.Result) string {
	if len(results) == 1 {
		return about(results[0])
	}
	n := results[0].Numbers
	return fmt.Sprintf("%s arrived in %s, the same under both methods · seed %d", thousands(n.Arrived), span(results[0].Scenario.Length), results[0].Seed)
}

// waits shows every visitor, or a sample, as a dot: arrival and wait.
func waits(results []*sim.Result) Figure {
	title := titled("Wait by arrival", results[0])
	return Figure{Name: "wait-by-arrival", Title: title, Width: width, Height: 470, draw: func(c *canvas) {
		head(c, title, aboutPair(results)+" · a dot is a visitor")
		for i, p := range sideBySide(c, results) {
			p.frameWait(results[i], i == 0, len(results) == 1)
			p.scatter(results[i], maxDots/len(results))
		}
	}}
}

func (p panel) scatter(r *sim.Result, most int) {
	if len(r.Visits) == 0 {
		p.says("no data: nobody arrived")
		return
	}
	var queued, direct, gone [][]point
	some(len(r.Visits), most, func(i int) {
		v := r.Visits[i]
		if w, ok := waited(v); ok {
			at := point{p.px(v.Arrived.Seconds()), p.py(w.Seconds())}
			dot := dash(at, 2.4)
			if v.Shown || w > time.Second {
				queued = append(queued, dot)
			} else {
				direct = append(direct, dot)
			}
		} else if v.Left > v.Arrived {
			at := point{p.px(v.Arrived.Seconds()), p.py((v.Left - v.Arrived).Seconds())}
			gone = append(gone, []point{{at.x - 2, at.y + 1.8}, {at.x + 2, at.y + 1.8}, {at.x, at.y - 2}})
		}
	})
	p.c.fill(thin(orange, 200), gone...)
	p.c.stroke(green, 2.4, nil, direct...)
	p.c.stroke(thin(blue, 165), 2.4, nil, queued...)
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
	s := style{size: 12, clr: dark}
	if say := strings.Join(key, ", "); say != "" {
		p.c.label(s, point{p.left + 8, p.top + 16}, p.c.fit(s, say, p.width-16))
	}
	if len(queued) == 0 && len(gone) == 0 {
		p.says("nobody waited")
	}
}

// medianLine draws the median wait of those who arrived in each stretch of time.
func (p panel) medianLine(r *sim.Result) {
	const bins = 30
	var in [bins][]float64
	for _, v := range r.Visits {
		if w, ok := waited(v); ok {
			b := min(bins-1, max(0, int(v.Arrived.Seconds()/p.x.max*bins)))
			in[b] = append(in[b], w.Seconds())
		}
	}
	var line []point
	for i, b := range in {
		if len(b) >= 5 {
			line = append(line, point{p.px((float64(i) + 0.5) / bins * p.x.max), p.py(quantile(b, 0.5))})
		}
	}
	if len(line) > 1 {
		p.c.stroke(halo, 5, nil, line)
		p.c.stroke(dark, 2, nil, line)
		at := line[len(line)*2/3]
		p.c.label(style{size: 12, bold: true, clr: dark, anchor: 0.5}, point{at.x, at.y - 10}, "median")
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
	return Figure{Name: "wait-heat", Title: title, Width: width, Height: 500, draw: func(c *canvas) {
		head(c, title, aboutPair(results)+" · the darker, the more visitors")
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
		c.heatKey(most)
	}}
}

// cells counts the visitors of each cell, for all that the sample stands for.
func (p panel) cells(r *sim.Result) [][]float64 {
	columns, rows := int(p.width/14), int(p.height/12)
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
			x := min(columns-1, max(0, int(v.Arrived.Seconds()/p.x.max*float64(columns))))
			y := min(rows-1, max(0, int(w.Seconds()/p.y.max*float64(rows))))
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
		p.says("no data: nobody was admitted")
		return
	}
	var areas [heatLevels][][]point
	w := p.width / float64(len(cells))
	for x, column := range cells {
		h := p.height / float64(len(column))
		for y, n := range column {
			if n > 0 {
				l := level(n, most)
				areas[l] = append(areas[l], p.c.box(p.left+float64(x)*w+0.5, p.bottom()-float64(y+1)*h+0.5, w-1, h-1))
			}
		}
	}
	for l, a := range areas {
		p.c.fill(shade(l), a...)
	}
}

// heatKey explains the colours in the upper right corner.
func (c *canvas) heatKey(most float64) {
	if most == 0 {
		return
	}
	const w, h = 12, 10
	x, y := c.width-24-heatLevels*w, 38.0
	for l := range heatLevels {
		c.fill(shade(l), c.box(x+float64(l)*w, y, w, h))
	}
	c.text(style{size: 12, clr: faint, anchor: 1}, point{x - 6, y + 9}, "1")
	c.text(style{size: 12, clr: faint, anchor: 1}, point{c.width - 24, y + 24}, short(math.Round(most))+" visitors a cell")
}
