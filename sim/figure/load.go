package figure

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// width is that of every figure, in pixels.
const width = 900

// titled puts the scenario's name behind what the figure shows.
func titled(what string, r *sim.Result) string {
	if name := chart.Clean(r.Scenario.Name, 80); name != "" {
		return what + ": " + name
	}
	return what
}

// about says in a line what ran.
func about(r *sim.Result) string {
	n := r.Numbers
	parts := []string{fmt.Sprintf("%s arrived in %s, %s admitted", chart.Thousands(n.Arrived), chart.Span(r.Scenario.Length), chart.Thousands(n.Admitted))}
	if n.Left > 0 {
		parts = append(parts, chart.Thousands(n.Left)+" gave up")
	}
	if k := siteCount(r); k > 1 {
		parts = append(parts, chart.Thousands(k)+" sites")
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
	height := chart.HeadHeight + tall + chart.GapHeight + low + chart.GapHeight + low + chart.FootHeight
	return Figure{Title: title, Width: width, Height: height, draw: func(c *chart.Canvas) {
		c.Head(title, about(r))
		x := chart.Times(ended(r), 10)
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - chart.MarginRight, Height: tall, X: x}}
		p.against(r, "Active users", chart.Blue, false,
			active, limit)
		p.Top, p.Height = p.Bottom()+chart.GapHeight, low
		p.line(r)
		p.Top = p.Bottom() + chart.GapHeight
		p.against(r, "Admitted in the last 60 s", chart.Green, true,
			func(q sim.Point) int { return q.LastMinute }, func(q sim.Point) int { return q.Rate })
	}}
}

// panel is a panel of a figure.
type panel struct{ chart.Panel }

// over returns a value of the points as the columns want it.
func over(r *sim.Result, value func(sim.Point) float64) chart.Values {
	return chart.Values{N: len(r.Points), At: func(i int) float64 { return r.Points[i].At.Seconds() },
		Value: func(i int) float64 { return chart.Finite(value(r.Points[i])) }}
}

func count(value func(sim.Point) int) func(sim.Point) float64 {
	return func(p sim.Point) float64 { return float64(value(p)) }
}

// against draws a count over time and the limit on it, with the peak.
func (p panel) against(r *sim.Result, heading string, clr color.NRGBA, xLabels bool, value, limit func(sim.Point) int) {
	values, limits := over(r, count(value)), over(r, count(limit))
	most, at := values.Highest()
	bound, _ := limits.Highest()
	top, note := chart.Near(most, bound)
	p.Y = chart.Counts(top*1.2, int(p.Height/35)+1)
	p.Frame(heading, note, xLabels)
	if len(r.Points) == 0 {
		p.Says("no data: the run recorded no moments")
		return
	}
	p.Area(clr, p.Tops(values))
	if note == "" {
		p.Limit(limits)
	}
	p.peak(clr, at, most, bound)
}

// peak marks the highest count, away from the line at bound.
func (p panel) peak(clr color.NRGBA, at, most, bound float64) {
	p.Peak(clr, at, most, bound, fmt.Sprintf("peak %s at %s", chart.Thousands(int(most)), p.X.Moment(at)))
}

// line draws the number of people waiting, its peak and its end.
func (p panel) line(r *sim.Result) {
	waiting := over(r, count(func(q sim.Point) int { return q.Waiting }))
	most, at := waiting.Highest()
	p.Y = chart.Counts(most*1.25, int(p.Height/35)+1)
	note := ""
	if e := r.Numbers.LineEmpty; e > 0 && most > 0 {
		note = "the line is empty for good at " + p.X.Moment(e.Seconds())
	}
	p.Frame("Waiting", note, false)
	switch {
	case len(r.Points) == 0:
		p.Says("no data: the run recorded no moments")
		return
	case most == 0:
		p.Says("nobody waited")
		return
	}
	p.Area(chart.Amber, p.Tops(waiting))
	p.peak(chart.Amber, at, most, 0)
	if e := r.Numbers.LineEmpty.Seconds(); e > 0 && e <= p.X.Max {
		p.On.Stroke(chart.Amber, 1, []float64{2, 3}, []chart.Point{{p.PX(e), p.Top}, {p.PX(e), p.Bottom()}})
	}
}

// idle shows the slots that nobody used while people waited.
func idle(r *sim.Result) Figure {
	const tall, low = 170, 100
	title := titled("Idle slots", r)
	height := chart.HeadHeight + tall + chart.GapHeight + low + chart.FootHeight
	return Figure{Title: title, Width: width, Height: height, draw: func(c *chart.Canvas) {
		n := r.Numbers
		c.Head(title, fmt.Sprintf("%s of the slots while people waited · a freed slot is taken after %s (half of them), %s (95 %%) · %s · seed %d",
			chart.Percent(n.Idle), chart.Span(n.IdleP50), chart.Span(n.IdleP95), string(methodOf(r)), r.Seed))
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - chart.MarginRight, Height: tall, X: chart.Times(ended(r), 10)}}
		empty := over(r, func(q sim.Point) float64 { return q.Idle })
		most, at := empty.Highest()
		p.Y = chart.Counts(max(1, most*1.25), 5)
		if p.Y.Max < 5 {
			p.Y.Step = chart.Round125(p.Y.Max / 5)
		}
		p.Frame("Slots idle while people waited", "mean since the moment before", false)
		waited, _ := over(r, count(func(q sim.Point) int { return q.Waiting })).Highest()
		switch {
		case len(r.Points) == 0:
			p.Says("no data: the run recorded no moments")
		case waited == 0 && most == 0:
			p.Says("nobody waited")
		case most == 0:
			p.Says("no slot was idle while somebody waited")
		default:
			p.Area(chart.Plum, p.Tops(empty))
			p.Peak(chart.Plum, at, most, 0, fmt.Sprintf("peak %s at %s", chart.Trimmed(most, decimals(most)), p.X.Moment(at)))
		}
		p.Top, p.Height = p.Bottom()+chart.GapHeight, low
		p.line(r)
		p.XAxis("")
	}}
}

// decimals returns how many decimals a number of that size deserves.
func decimals(v float64) int {
	return int(max(0, 2-math.Floor(math.Log10(max(v, 0.01)))))
}
