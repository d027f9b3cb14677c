package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Geometry of a chart, in the units of its view box.
const (
	chartWidth, chartHeight = 720, 210
	left, right             = 52, 8
	top, bottom             = 8, 22
	yTicks, xTicks          = 4, 6
)

// chart is a picture over time. Its strings are numbers that we have written, and our own words.
type chart struct {
	ID      string
	Title   string
	Summary string
	Shapes  []shape
	X, Y    []tick
	Legend  []shape // Path is not set
	Bottom  string  // of the axis
}

// shape is a line or an area.
type shape struct {
	Class string // a class of the style
	Name  string
	Path  string
}

// tick is a place on an axis.
type tick struct {
	At   string // where, as an attribute
	Text string
}

// span is a value over a part of the time. NaN is none.
type span struct {
	from, to time.Time
	low      float64
	high     float64
}

// canvas places values on a chart.
type canvas struct {
	from, to time.Time
	highest  float64
	unit
}

// unit is how values are written, and between which ticks they stand.
type unit struct {
	word func(float64) string
	step func(atLeast float64) float64
}

func (c canvas) x(t time.Time) float64 {
	whole := c.to.Sub(c.from)
	part := min(max(t.Sub(c.from), 0), whole)
	return left + float64(part)/float64(whole)*(chartWidth-left-right)
}

func (c canvas) y(v float64) float64 {
	const height = chartHeight - top - bottom
	return top + height - min(max(v/c.highest, 0), 1)*height
}

// area draws steps between two values; line draws only the upper ones. Where spans do not touch, or
// have no value, there is a gap.
func (c canvas) area(spans []span) string {
	var b strings.Builder
	for start := 0; start < len(spans); {
		end := c.run(spans, start)
		if end == start {
			start++
			continue
		}
		run := spans[start:end]
		start = end
		b.WriteString("M" + coordinate(c.x(run[0].from)) + " " + coordinate(c.y(run[0].low)))
		for _, s := range run {
			b.WriteString("V" + coordinate(c.y(s.high)) + "H" + coordinate(c.x(s.to)))
		}
		for i := len(run) - 1; i >= 0; i-- {
			b.WriteString("V" + coordinate(c.y(run[i].low)) + "H" + coordinate(c.x(run[i].from)))
		}
		b.WriteString("Z")
	}
	return b.String()
}

func (c canvas) line(spans []span) string {
	var b strings.Builder
	for start := 0; start < len(spans); {
		end := c.run(spans, start)
		if end == start {
			start++
			continue
		}
		for i, s := range spans[start:end] {
			if i == 0 {
				b.WriteString("M" + coordinate(c.x(s.from)) + " " + coordinate(c.y(s.high)))
			} else {
				b.WriteString("V" + coordinate(c.y(s.high)))
			}
			b.WriteString("H" + coordinate(c.x(s.to)))
		}
		start = end
	}
	return b.String()
}

// run returns the end of the spans that follow on each other from a place on.
func (c canvas) run(spans []span, start int) int {
	end := start
	for end < len(spans) && !math.IsNaN(spans[end].high) && (end == start || spans[end].from.Equal(spans[end-1].to)) {
		end++
	}
	return end
}

func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// axes puts ticks on a chart.
func (c canvas) axes(to *chart) {
	step := c.step(c.highest / yTicks)
	for v := 0.0; v <= c.highest+step/1000; v += step {
		to.Y = append(to.Y, tick{coordinate(c.y(v)), c.word(v)})
	}
	whole := c.to.Sub(c.from)
	every := timeSteps[len(timeSteps)-1]
	for _, one := range timeSteps {
		if whole/one <= xTicks {
			every = one
			break
		}
	}
	layout := "15:04"
	switch {
	case every >= 24*time.Hour:
		layout = "2 Jan"
	case whole > 24*time.Hour:
		layout = "2 Jan 15:04"
	case every < time.Minute:
		layout = "15:04:05"
	}
	for t := c.from.Truncate(every); !t.After(c.to); t = t.Add(every) {
		// The words stand in the middle below their moment, and have to be inside.
		if x := c.x(t); !t.Before(c.from) && x >= left+10 && x <= chartWidth-30 {
			to.X = append(to.X, tick{coordinate(x), t.UTC().Format(layout)})
		}
	}
	to.Bottom = coordinate(c.y(0))
}

var timeSteps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 28 * 24 * time.Hour, 84 * 24 * time.Hour}

// What the axes count.
var (
	inNumbers = unit{grouped, round}
	inTime    = unit{duration, roundTime}
)

// round rounds up to 1, 2, 2.5 or 5 times a power of ten, and to whole numbers.
func round(v float64) float64 {
	if v <= 1 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, one := range []float64{1, 2, 2.5, 5} {
		if v <= one*power*1.000001 && (one != 2.5 || power > 1) {
			return one * power
		}
	}
	return 10 * power
}

// roundTime rounds seconds up to what a clock shows.
func roundTime(v float64) float64 {
	for _, one := range timeSteps {
		if s := one.Seconds(); v <= s*1.000001 {
			return s
		}
	}
	return timeSteps[len(timeSteps)-1].Seconds()
}

// limitless is how many times higher than everything else a limit may be to be drawn.
const limitless = 3

// charts are the pictures of the report.
func (r *Report) charts() []chart {
	if len(r.Timeline) == 0 {
		return nil
	}
	every := time.Duration(r.Every) * time.Second
	var active, queued, activeLimit, fresh, newLimit, p50, p95, told []span
	for _, p := range r.Timeline {
		to := p.At.Add(every)
		a, q := number(p.ActiveUsers), number(p.QueuedUsers)
		active = append(active, span{p.At, to, 0, a})
		queued = append(queued, span{p.At, to, a, a + q})
		activeLimit = append(activeLimit, span{p.At, to, 0, number(p.ActiveLimit)})
		fresh = append(fresh, span{p.At, to, 0, p.NewUsers})
		newLimit = append(newLimit, span{p.At, to, 0, number(p.NewLimit)})
		p50, p95 = append(p50, span{p.At, to, 0, seconds(p.WaitP50)}), append(p95, span{p.At, to, 0, seconds(p.WaitP95)})
		told = append(told, span{p.At, to, 0, number(p.Estimate)})
	}
	from, to := r.Timeline[0].At, r.Timeline[len(r.Timeline)-1].At.Add(every)
	draw := func(c chart, u unit, areas, lines []series) chart {
		v := canvas{from: from, to: to, unit: u}
		for _, s := range append(areas, lines...) {
			if !s.limit {
				v.highest = max(v.highest, highest(s.spans))
			}
		}
		for _, s := range lines {
			if h := highest(s.spans); s.limit && h <= limitless*max(v.highest, 1) {
				v.highest = max(v.highest, h)
			}
		}
		v.highest = v.ceiling()
		for i, s := range append(areas, lines...) {
			one := shape{Class: s.class, Name: s.name}
			if s.limit && highest(s.spans) > v.highest {
				one.Name += " (above the chart)"
				one.Class = "above"
			}
			c.Legend = append(c.Legend, one)
			if one.Class == "above" {
				continue
			}
			if one.Path = v.line(s.spans); i < len(areas) {
				one.Path = v.area(s.spans)
			}
			c.Shapes = append(c.Shapes, one)
		}
		v.axes(&c)
		return c
	}
	all := []chart{
		draw(chart{ID: "people", Title: "Inside and in line", Summary: r.peopleSummary()}, inNumbers,
			[]series{{"active", "inside", active, false}, {"queued", "in line", queued, false}}, []series{{"limit", "limit of those inside", activeLimit, true}}),
		draw(chart{ID: "new", Title: "Admitted per minute", Summary: r.newSummary()}, inNumbers,
			[]series{{"active", "let in", fresh, false}}, []series{{"limit", "limit", newLimit, true}}),
	}
	if highest(p95) > 0 || highest(told) > 0 {
		all = append(all, draw(chart{ID: "waits", Title: "How long people waited", Summary: r.waitSummary()}, inTime,
			nil, []series{{"p95", "95 of 100 waited less", p95, false}, {"p50", "half waited less", p50, false}, {"told", "forecast for newcomers", told, false}}))
	}
	return all
}

// series is one of the things that a chart shows.
type series struct {
	class, name string
	spans       []span
	limit       bool // it does not make the chart higher than a few times of the rest
}

func number(v *int64) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(*v)
}

func seconds(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func highest(spans []span) (v float64) {
	for _, s := range spans {
		if !math.IsNaN(s.high) {
			v = max(v, s.high)
		}
	}
	return v
}

// ceiling is a top of the axis that has a tick.
func (c canvas) ceiling() float64 {
	step := c.step(c.highest / yTicks)
	return max(step, math.Ceil(c.highest/step-1e-9)*step)
}
