package report

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
)

// figure is a picture over time.
type figure struct {
	Title   string
	Summary string
	SVG     string // markup: what package chart has drawn of our numbers and words
}

// line is one of the things that a figure shows.
type line struct {
	name   string
	clr    color.NRGBA
	dashes []float64
	chart.Values
}

// over returns a value of the timeline by the seconds since it begins. Where its points do not touch,
// or have no value, there is a gap.
func (r *Report) over(value func(*Point) float64) chart.Values {
	every := time.Duration(r.Every) * time.Second
	var at, values []float64
	since := func(t time.Time) float64 { return t.Sub(r.Timeline[0].At).Seconds() }
	for i := range r.Timeline {
		p := &r.Timeline[i]
		at, values = append(at, since(p.At)), append(values, value(p))
		end := p.At.Add(every)
		switch {
		case i == len(r.Timeline)-1:
			at, values = append(at, since(end)), append(values, value(p))
		case r.Timeline[i+1].At.After(end):
			at, values = append(at, since(end)), append(values, math.NaN())
		}
	}
	return chart.Values{N: len(at), At: func(i int) float64 { return at[i] }, Value: func(i int) float64 { return values[i] }}
}

// The size of a figure, and the room for names at its right, in pixels.
const (
	figureWidth, figureHeight = 900, 240
	figureTop, figureNames    = 32, 150
)

// draw draws layers that are a stack, then lines, then a limit, which has no name for no limit. The
// vertical axis is made for the highest value.
func (r *Report) draw(f figure, heading string, axis func(most float64) chart.Scale, layers, lines []line, limit line) figure {
	c, err := chart.New(figureWidth, figureHeight, chart.SVG)
	if err != nil {
		panic(err) // only for an unknown format
	}
	from, to := r.Timeline[0].At, r.Timeline[len(r.Timeline)-1].At.Add(time.Duration(r.Every)*time.Second)
	p := chart.Panel{On: c, Left: chart.MarginLeft, Top: figureTop, Width: figureWidth - chart.MarginLeft - figureNames,
		Height: figureHeight - figureTop - chart.FootHeight, X: chart.Clock(from.In(r.zone), to, 6)}
	var stack [][]float64
	most := 0.0
	for i, l := range layers {
		columns := p.Tops(l.Values)
		for x := range columns {
			if i > 0 {
				columns[x] += stack[i-1][x]
			}
			most = max(most, chart.Finite(columns[x]))
		}
		stack = append(stack, columns)
	}
	for _, l := range lines {
		most = max(most, first(l.Highest()))
	}
	note := ""
	if limit.name != "" {
		most, note = chart.Near(most, first(limit.Highest()))
	}
	p.Y = axis(most * 1.1)
	p.Frame(heading, note, true)

	var labels []chart.SideLabel
	name := func(l line, columns []float64, share float64) {
		if i := lastKnown(columns); i >= 0 {
			labels = append(labels, chart.SideLabel{Name: l.name, Color: l.clr, Y: p.PY(columns[i] * share)})
		}
	}
	floor := make([]float64, int(p.Width)+1)
	for i, l := range layers {
		p.Layer(l.clr, floor, stack[i])
		name(l, stack[i], 0.5)
		floor = stack[i]
	}
	for _, l := range lines {
		columns := p.Tops(l.Values)
		p.Line(l.clr, 2, l.dashes, columns)
		name(l, columns, 1)
	}
	if limit.name != "" && note == "" {
		p.LimitLine(limit.Values)
		name(limit, p.Lasts(limit.Values), 1)
	}
	slices.SortStableFunc(labels, func(a, b chart.SideLabel) int { return cmp.Compare(b.Y, a.Y) }) // from the bottom up
	p.Beside(labels)
	var b strings.Builder
	if err := c.Encode(&b, f.Title+". "+f.Summary); err != nil {
		panic(err) // only for a writer that fails
	}
	// Inside of a page it needs no namespace, and the page names no address at all.
	f.SVG = strings.Replace(b.String(), ` xmlns="http://www.w3.org/2000/svg"`, "", 1)
	return f
}

func first(v, _ float64) float64 { return v }

// lastKnown is the index of the last column that is a number, -1 without one.
func lastKnown(columns []float64) int {
	for i := len(columns) - 1; i >= 0; i-- {
		if !math.IsNaN(columns[i]) {
			return i
		}
	}
	return -1
}

// figures are the pictures of the report.
func (r *Report) figures() []figure {
	if len(r.Timeline) == 0 {
		return nil
	}
	count := func(most float64) chart.Scale { return chart.Counts(most, 6) }
	limit := func(of func(*Point) *int64) line {
		return line{"limit", chart.Red, nil, r.over(func(p *Point) float64 { return number(of(p)) })}
	}
	all := []figure{
		r.draw(figure{Title: "Active users and queue", Summary: r.peopleSummary()}, "Visitors", count,
			[]line{{"active users", chart.Blue, nil, r.over(func(p *Point) float64 { return number(p.ActiveUsers) })},
				{"queue", chart.Orange, nil, r.over(func(p *Point) float64 { return number(p.QueuedUsers) })}},
			nil, limit(func(p *Point) *int64 { return p.ActiveLimit })),
		r.draw(figure{Title: "New users per minute", Summary: r.newSummary()}, "New users per minute", count,
			[]line{{"new users", chart.Green, nil, r.over(func(p *Point) float64 { return p.NewUsers })}},
			nil, limit(func(p *Point) *int64 { return p.NewLimit })),
	}
	waits := []line{
		{"95 % waited less", chart.Plum, []float64{2, 2}, r.over(func(p *Point) float64 { return seconds(p.WaitP95) })},
		{"half waited less", chart.Green, nil, r.over(func(p *Point) float64 { return seconds(p.WaitP50) })},
		{"estimated wait", chart.Amber, []float64{8, 3}, r.over(func(p *Point) float64 { return number(p.Estimate) })},
	}
	if longest := max(first(waits[0].Highest()), first(waits[2].Highest())); longest > 0 {
		axis := func(most float64) chart.Scale { return chart.Times(time.Duration(most*float64(time.Second)), 6) }
		all = append(all, r.draw(figure{Title: "Wait", Summary: r.waitSummary()}, "Wait, "+axis(longest).Unit, axis, nil, waits, line{}))
	}
	return all
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
