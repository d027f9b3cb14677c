package figure

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"time"
)

// scale is an axis: values from 0 to max, with marks.
type scale struct {
	max  float64
	step float64
	say  func(float64) string // a value on the axis
	unit string               // said once, at 0; empty when every mark says it
}

// marks returns the values that are marked.
func (s scale) marks() []float64 {
	var out []float64
	for i := range 40 {
		v := float64(i) * s.step
		if v > s.max*1.0001 {
			break
		}
		out = append(out, v)
	}
	return out
}

// counts is a scale of things that come in whole numbers, with about so many marks.
func counts(most float64, marks int) scale {
	most = max(1, finite(most))
	return scale{max: most, step: max(1, round125(most/float64(marks))), say: func(v float64) string { return short(v) }}
}

// shares is a scale of shares of 0 to 1, said in percent.
func shares(most float64, marks int) scale {
	most = max(0.001, finite(most))
	return scale{max: most, step: round125(most / float64(marks)), say: percent}
}

// times is a scale of seconds for a run or a wait of the length, with about so many marks.
func times(length time.Duration, marks int) scale {
	s := scale{max: max(1, length.Seconds())}
	for _, step := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		if s.step = step.Seconds(); s.max/s.step <= float64(marks) {
			break
		}
	}
	for s.max/s.step > float64(2*marks) {
		s.step *= 2
	}
	switch {
	case s.max < 180 && s.step < 60:
		s.unit, s.say = "s", func(v float64) string { return trimmed(v, 0) }
	case s.max < 2*3600:
		s.unit, s.say = "min", func(v float64) string { return trimmed(v/60, 1) }
	default:
		s.unit, s.say = "h", func(v float64) string {
			m := int(math.Round(v / 60))
			return fmt.Sprintf("%s:%02d", thousands(m/60), m%60)
		}
	}
	return s
}

// moment says a value of a scale of times with its unit.
func (s scale) moment(d time.Duration) string {
	return s.say(d.Seconds()) + " " + s.unit
}

// round125 rounds up to 1, 2 or 5 times a power of ten.
func round125(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*1.0001 {
			return m * p
		}
	}
	return 10 * p
}

// finite returns v, or 0 for what cannot be drawn, and not more than fits beside an axis.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return min(v, 1e13)
}

// trimmed writes v with at most so many decimals.
func trimmed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// thousands writes n with separators.
func thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// short writes a count for an axis.
func short(v float64) string {
	switch {
	case v >= 1e9:
		return trimmed(v/1e9, 2) + " bn"
	case v >= 1e7:
		return trimmed(v/1e6, 1) + " m"
	case v != math.Trunc(v):
		return trimmed(v, 2)
	}
	return thousands(int(v))
}

// percent writes a share of 0 to 1 with what decimals it needs.
func percent(share float64) string {
	p := finite(share) * 100
	switch {
	case p == 0:
		return "0 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 1:
		return trimmed(p, 2) + " %"
	case p < 10:
		return trimmed(p, 1) + " %"
	}
	return thousands(int(math.Round(min(p, 1e12)))) + " %"
}

// span says a duration for people.
func span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 10:
		return trimmed(s, 1) + " s"
	case s < 120:
		return trimmed(s, 0) + " s"
	case s < 600:
		return trimmed(s/60, 1) + " min"
	case s < 2*3600:
		return trimmed(s/60, 0) + " min"
	}
	m := int(math.Round(d.Minutes()))
	return fmt.Sprintf("%s h %02d min", thousands(m/60), m%60)
}

// panel is a rectangle with axes.
type panel struct {
	c                        *canvas
	left, top, width, height float64
	x, y                     scale
}

func (p panel) bottom() float64 { return p.top + p.height }
func (p panel) right() float64  { return p.left + p.width }

// px and py place values; what lies outside is put at the edge.
func (p panel) px(v float64) float64 {
	return p.left + p.width*min(1, max(0, v/p.x.max))
}

func (p panel) py(v float64) float64 {
	return p.bottom() - p.height*min(1, max(0, v/p.y.max))
}

// frame draws ground and axes. heading says what the vertical axis counts, note more about
// it. Without xLabels the horizontal axis has marks only: the panel below names them.
func (p panel) frame(heading, note string, xLabels bool) {
	p.grid()
	p.yAxis()
	if xLabels {
		p.xAxis("")
	}
	p.head(heading, note)
}

// head writes above the panel, the note no wider than the panel.
func (p panel) head(heading, note string) {
	h := style{size: 13, bold: true, clr: dark}
	p.c.text(h, point{p.left, p.top - 9}, heading)
	if note != "" {
		n := style{size: 12, clr: faint}
		x := p.left + p.c.wide(h, heading) + 10
		p.c.text(n, point{x, p.top - 9}, p.c.fit(n, note, p.right()-x))
	}
}

// yAxis writes the marks of the vertical axis.
func (p panel) yAxis() {
	for _, v := range p.y.marks() {
		p.c.text(style{size: 12, clr: faint, anchor: 1}, point{p.left - 7, p.py(v) + 4}, p.y.say(v))
	}
}

func (p panel) grid() {
	var lines [][]point
	for _, v := range p.y.marks() {
		lines = append(lines, []point{{p.left, p.py(v)}, {p.right(), p.py(v)}})
	}
	for _, v := range p.x.marks() {
		lines = append(lines, []point{{p.px(v), p.top}, {p.px(v), p.bottom()}})
	}
	p.c.stroke(grid, 1, nil, lines...)
	p.c.stroke(outline, 1, nil, []point{{p.left, p.bottom()}, {p.right(), p.bottom()}})
}

// xAxis writes the marks of the horizontal axis, the unit at the first of them, where there is
// room for it beside another panel too, and what it measures below, if that is given.
func (p panel) xAxis(what string) {
	for i, v := range p.x.marks() {
		say := p.x.say(v)
		s := style{size: 12, clr: faint, anchor: 0.5}
		p.c.text(s, point{p.px(v), p.bottom() + 17}, say)
		if i == 0 {
			p.c.text(style{size: 12, clr: faint}, point{p.px(v) + p.c.wide(s, say)/2 + 3, p.bottom() + 17}, p.x.unit)
		}
	}
	if what != "" {
		p.c.text(style{size: 12, clr: dark, anchor: 0.5}, point{p.left + p.width/2, p.bottom() + 35}, what)
	}
}

// says writes that there is nothing to draw, and why.
func (p panel) says(why string) {
	p.c.text(style{size: 13, clr: faint, anchor: 0.5}, point{p.left + p.width/2, p.top + p.height/2 + 4}, why)
}

// outOfPanel writes at the right of the panel, at the height of the value.
func (p panel) outOfPanel(clr color.Color, v float64, lines ...string) {
	y := p.py(v) + 4 - float64(len(lines)-1)*7
	for i, l := range lines {
		p.c.text(style{size: 12, clr: clr}, point{p.right() + 6, y + float64(i)*14}, l)
	}
}

// legible returns where a text around x is written so that it stays within the panel.
func (p panel) legible(s style, x float64, say string) point {
	w := p.c.wide(s, say)
	return point{min(p.right()-w-2, max(p.left+2, x-w/2)), 0}
}

// crests returns for each column of pixels the index of the point with the highest value in
// it; in a column without points the one before goes on. Past the last moment there is no
// column.
func (p panel) crests(n int, at, value func(int) float64) []int {
	if n == 0 {
		return nil
	}
	out := make([]int, 1, int(p.width)+1)
	for i := range n {
		to := int(p.px(finite(at(i))) - p.left)
		if to < len(out)-1 {
			continue // not ascending
		}
		first := to > len(out)-1
		for len(out) <= to {
			out = append(out, max(0, i-1))
		}
		if first || value(i) >= value(out[to]) {
			out[to] = i
		}
	}
	return out
}

// tops returns the highest value in each column of pixels.
func (p panel) tops(n int, at, value func(int) float64) []float64 {
	return pick(p.crests(n, at, value), value)
}

// lasts returns the last value in each column: for limits.
func (p panel) lasts(n int, at, value func(int) float64) []float64 {
	return pick(p.crests(n, at, func(i int) float64 { return float64(i) }), value)
}

func pick(columns []int, value func(int) float64) []float64 {
	out := make([]float64, len(columns))
	for i, c := range columns {
		out[i] = finite(value(c))
	}
	return out
}

// steps returns the corners of the columns' outline.
func (p panel) steps(columns []float64) []point {
	var out []point
	for i, v := range columns {
		x, y := p.left+float64(i), p.py(v)
		switch {
		case i == 0:
			out = append(out, point{x, y})
		case v != columns[i-1]:
			out = append(out, point{x, p.py(columns[i-1])}, point{x, y})
		}
	}
	if len(columns) > 0 {
		out = append(out, point{p.left + float64(len(columns)-1), p.py(columns[len(columns)-1])})
	}
	return out
}

// area draws the columns as a filled area with a line on top.
func (p panel) area(clr color.NRGBA, columns []float64) {
	line := p.steps(columns)
	if len(line) == 0 {
		return
	}
	ground := append([]point{{line[0].x, p.bottom()}}, line...)
	p.c.fill(thin(clr, 40), append(ground, point{line[len(line)-1].x, p.bottom()}))
	p.c.stroke(clr, 1.4, nil, line)
}
