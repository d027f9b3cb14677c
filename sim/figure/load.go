package figure

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anteroom/anteroom/sim"
)

// The measures that most figures share.
const (
	width       = 900
	marginLeft  = 68
	marginRight = 76 // for labels beside the panels
	headHeight  = 92 // title, a line below it, the first panel's heading
	gapHeight   = 40 // between panels that share an axis: the heading of the lower one
	footHeight  = 34 // marks of the time axis
)

// head writes the title and a line about it.
func head(c *canvas, title, about string) {
	t := style{size: 17, bold: true, clr: dark}
	c.text(t, point{20, 29}, c.fit(t, title, c.width-40))
	a := style{size: 12, clr: faint}
	c.text(a, point{20, 49}, c.fit(a, about, c.width-40))
}

// titled puts the scenario's name behind what the figure shows.
func titled(what string, r *sim.Result) string {
	if name := clean(r.Scenario.Name, 80); name != "" {
		return what + ": " + name
	}
	return what
}

// about says in a line what ran.
func about(r *sim.Result) string {
	n := r.Numbers
	parts := []string{fmt.Sprintf("%s arrived in %s, %s admitted", thousands(n.Arrived), span(r.Scenario.Length), thousands(n.Admitted))}
	if n.Left > 0 {
		parts = append(parts, thousands(n.Left)+" gave up")
	}
	if k := siteCount(r); k > 1 {
		parts = append(parts, thousands(k)+" sites")
	}
	parts = append(parts, string(methodOf(r)))
	if r.Algorithm != "" {
		parts = append(parts, r.Algorithm)
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", r.Seed)), " · ")
}

// ended is the length of the time axis.
func ended(r *sim.Result) time.Duration {
	end := time.Duration(0)
	for _, p := range r.Points {
		end = max(end, p.At)
	}
	if end <= 0 {
		end = max(r.Ran, r.Scenario.Length)
	}
	return min(end, 10*sim.MaxLength)
}

// load shows active sessions, the line, and admissions against the limits over time.
func load(r *sim.Result) Figure {
	const tall, low = 190, 120
	title := titled("Load", r)
	height := headHeight + tall + gapHeight + low + gapHeight + low + footHeight
	return Figure{Title: title, Width: width, Height: height, draw: func(c *canvas) {
		head(c, title, about(r))
		x := times(ended(r), 10)
		p := panel{c: c, left: marginLeft, top: headHeight, width: width - marginLeft - marginRight, height: tall, x: x}
		p.against(r, "Active users", blue, false,
			func(q sim.Point) int { return q.Active }, func(q sim.Point) int { return q.Limit })
		p.top, p.height = p.bottom()+gapHeight, low
		p.line(r)
		p.top = p.bottom() + gapHeight
		p.against(r, "Admitted in the last 60 s", green, true,
			func(q sim.Point) int { return q.LastMinute }, func(q sim.Point) int { return q.Rate })
	}}
}

// over returns a value of the points as the columns want it.
func over(r *sim.Result, value func(sim.Point) float64) (n int, at, v func(int) float64) {
	return len(r.Points), func(i int) float64 { return r.Points[i].At.Seconds() }, func(i int) float64 { return value(r.Points[i]) }
}

func count(value func(sim.Point) int) func(sim.Point) float64 {
	return func(p sim.Point) float64 { return float64(value(p)) }
}

// highest returns the largest value of the points and the first moment that had it.
func highest(r *sim.Result, value func(sim.Point) float64) (most float64, at time.Duration) {
	for _, p := range r.Points {
		if v := finite(value(p)); v > most {
			most, at = v, p.At
		}
	}
	return most, at
}

// against draws a count over time and the limit on it, with the peak.
func (p panel) against(r *sim.Result, heading string, clr colour, xLabels bool, value, limit func(sim.Point) int) {
	most, at := highest(r, count(value))
	bound, _ := highest(r, count(limit))
	top, note := max(most, bound), ""
	if bound > 4*max(most, 1) {
		// A limit that is never near would press the curve flat.
		top, note = most, "the limit of "+thousands(int(bound))+" is above the picture"
	}
	p.y = counts(top*1.2, int(p.height/35)+1)
	p.frame(heading, note, xLabels)
	if len(r.Points) == 0 {
		p.says("no data: the run recorded no moments")
		return
	}
	p.area(clr, p.tops(over(r, count(value))))
	if note == "" {
		p.limit(r, limit)
	}
	p.peak(clr, at, most, bound)
}

// limit draws the limit in force as a step line, names it at the right, and says what it
// was changed to where there is room.
func (p panel) limit(r *sim.Result, limit func(sim.Point) int) {
	columns := p.lasts(over(r, count(limit)))
	p.c.stroke(red, 1.5, []float64{6, 3}, p.steps(columns))
	last := finite(float64(limit(r.Points[len(r.Points)-1])))
	p.outOfPanel(red, last, "limit", short(last))
	free := 0.0
	for i, v := range columns {
		x := float64(i) + 5
		if i == 0 || v == columns[i-1] || v == last || x < free || x > p.width-60 {
			continue
		}
		p.c.label(style{size: 12, clr: red}, point{p.left + x, max(p.top+11, p.py(v)-6)}, short(v))
		free = x + 70
	}
}

// peak marks the highest value; its label keeps clear of the line at bound, if there is one.
func (p panel) peak(clr colour, at time.Duration, most, bound float64) {
	if most <= 0 {
		return
	}
	x, y := p.px(at.Seconds()), p.py(most)
	p.c.dot(white, point{x, y}, 4.5)
	p.c.dot(clr, point{x, y}, 3)
	s := style{size: 12, clr: dark}
	say := fmt.Sprintf("peak %s at %s", thousands(int(most)), p.x.moment(at))
	to := p.legible(s, x, say)
	to.y = y - 8
	if line := p.py(bound); bound > 0 && to.y > line-5 && to.y < line+14 {
		to.y = line - 6
	}
	to.y = max(p.top+11, to.y)
	p.c.label(s, to, say)
}

// line draws the number of people waiting, its peak and its end.
func (p panel) line(r *sim.Result) {
	waiting := count(func(q sim.Point) int { return q.Waiting })
	most, at := highest(r, waiting)
	p.y = counts(most*1.25, int(p.height/35)+1)
	note := ""
	if e := r.Numbers.LineEmpty; e > 0 && most > 0 {
		note = "the line is empty for good at " + p.x.moment(e)
	}
	p.frame("Waiting", note, false)
	switch {
	case len(r.Points) == 0:
		p.says("no data: the run recorded no moments")
		return
	case most == 0:
		p.says("nobody waited")
		return
	}
	p.area(amber, p.tops(over(r, waiting)))
	p.peak(amber, at, most, 0)
	if e := r.Numbers.LineEmpty.Seconds(); e > 0 && e <= p.x.max {
		p.c.stroke(amber, 1, []float64{2, 3}, []point{{p.px(e), p.top}, {p.px(e), p.bottom()}})
	}
}

// idle shows the slots that nobody used while people waited.
func idle(r *sim.Result) Figure {
	const tall, low = 170, 100
	title := titled("Idle slots", r)
	height := headHeight + tall + gapHeight + low + footHeight
	return Figure{Title: title, Width: width, Height: height, draw: func(c *canvas) {
		n := r.Numbers
		head(c, title, fmt.Sprintf("%s of the slots while people waited · a freed slot is taken after %s (half of them), %s (95 %%) · %s · seed %d",
			percent(n.Idle), span(n.IdleP50), span(n.IdleP95), string(methodOf(r)), r.Seed))
		p := panel{c: c, left: marginLeft, top: headHeight, width: width - marginLeft - marginRight, height: tall, x: times(ended(r), 10)}
		empty := func(q sim.Point) float64 { return q.Idle }
		most, at := highest(r, empty)
		p.y = counts(max(1, most*1.25), 5)
		if p.y.max < 5 {
			p.y.step = round125(p.y.max / 5)
		}
		p.frame("Slots idle while people waited", "mean since the moment before", false)
		waited, _ := highest(r, count(func(q sim.Point) int { return q.Waiting }))
		switch {
		case len(r.Points) == 0:
			p.says("no data: the run recorded no moments")
		case waited == 0 && most == 0:
			p.says("nobody waited")
		case most == 0:
			p.says("no slot was idle while somebody waited")
		default:
			p.area(plum, p.tops(over(r, empty)))
			x, y := p.px(at.Seconds()), p.py(most)
			p.c.dot(plum, point{x, y}, 3)
			s := style{size: 12, clr: dark}
			say := fmt.Sprintf("peak %s at %s", trimmed(most, decimals(most)), p.x.moment(at))
			to := p.legible(s, x, say)
			to.y = max(p.top+11, y-8)
			p.c.label(s, to, say)
		}
		p.top, p.height = p.bottom()+gapHeight, low
		p.line(r)
		p.xAxis("")
	}}
}

// decimals returns how many decimals a number of that size deserves.
func decimals(v float64) int {
	return int(max(0, 2-math.Floor(math.Log10(max(v, 0.01)))))
}
