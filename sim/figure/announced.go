package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// within is the promise for announced waits: at most so far off, relative to the actual wait.
const within = 0.12

// leastWait is the shortest wait for which an announcement is judged, as sim.Numbers does.
const leastWait = 30 * time.Second

// told returns what was announced to the visitor and what it came to from then on.
func told(v sim.Visit) (announced, actual time.Duration, ok bool) {
	if v.Told <= 0 || v.Admitted <= 0 || v.Admitted < v.TellAt {
		return 0, 0, false
	}
	return v.Told, v.Admitted - v.TellAt, true
}

// announcedOrder shows the announced wait against the actual one, and how errors spread.
func announcedOrder(r *sim.Result) Figure {
	title := titled("Announced and actual wait", r)
	return Figure{Title: title, Width: width, Height: 500, draw: func(c *chart.Canvas) {
		var longest time.Duration
		for _, v := range r.Visits {
			if announced, actual, ok := told(v); ok {
				longest = max(longest, actual, min(announced, 3*actual))
			}
		}
		n, line := r.Numbers, about(r)
		if longest > 0 {
			line = fmt.Sprintf("of waits of %s and more: %s within ±12 %% · error %s (median) · bias %s%s · %s · seed %d",
				chart.Span(leastWait), chart.Percent(n.EtaWithin), chart.Percent(n.EtaError), sign(n.EtaBias), chart.Percent(math.Abs(n.EtaBias)), string(methodOf(r)), r.Seed)
		}
		c.Head(title, line)
		s := chart.Times(longest+longest/20, 6)
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: 400, Height: 355, X: s, Y: s}}
		p.Frame("Announced wait, "+s.Unit, "the band is ±12 %", true)
		p.XAxis("actual wait from then on")
		errors := panel{chart.Panel{On: c, Left: chart.MarginLeft + 400 + 66, Top: chart.HeadHeight, Width: width - chart.MarginLeft - 400 - 66 - 30, Height: 355}}
		if longest == 0 {
			p.Says("no data: nobody was told a wait")
			errors.X, errors.Y = offBy(), chart.Shares(1, 5)
			errors.Frame("Error of the announcement", "", false)
			errors.Says("no data")
			return
		}
		p.againstActual(r)
		errors.spread(r)
	}}
}

// sign says the direction of a bias in front of its size.
func sign(v float64) string {
	switch {
	case v > 0:
		return "+"
	case v < 0:
		return "−"
	}
	return ""
}

func (p panel) againstActual(r *sim.Result) {
	s := p.X
	edge := func(f float64) chart.Point { // where the line y = f*x leaves the panel
		if f > 1 {
			return chart.Point{p.PX(s.Max / f), p.Top}
		}
		return chart.Point{p.Right(), p.PY(s.Max * f)}
	}
	corner := chart.Point{p.Left, p.Bottom()}
	p.On.Fill(chart.Thin(chart.Green, 45), []chart.Point{corner, edge(1 + within), {p.Right(), p.Top}, edge(1 - within)})
	p.On.Stroke(chart.Green, 1, nil, []chart.Point{corner, {p.Right(), p.Top}})
	var good, off [][]chart.Point
	some(len(r.Visits), maxDots, func(i int) {
		announced, actual, ok := told(r.Visits[i])
		if !ok {
			return
		}
		x, y := p.PX(actual.Seconds()), p.PY(announced.Seconds())
		if math.Abs(announced.Seconds()-actual.Seconds()) <= within*actual.Seconds() {
			good = append(good, chart.Dash(chart.Point{x, y}, 2))
		} else {
			off = append(off, chart.Dash(chart.Point{x, y}, 2))
		}
	})
	p.On.Stroke(chart.Thin(chart.Blue, 150), 2, nil, good...)
	p.On.Stroke(chart.Thin(chart.Red, 150), 2, nil, off...)
	l := chart.Style{Size: 12, Color: chart.Dark}
	p.On.Label(l, chart.Point{p.Left + 10, p.Top + 18}, "longer than it took")
	l.Anchor = 1
	p.On.Label(l, chart.Point{p.Right() - 10, p.Bottom() - 10}, "shorter than it took")
}

// furthest is the largest error with a bar of its own; errorBins have edges at ±within.
const (
	furthest  = 0.48
	errorBins = 24
)

// offBy is the axis of relative errors, moved so that it begins at 0.
func offBy() chart.Scale {
	return chart.Scale{Max: 2 * furthest, Step: 0.24, Say: func(v float64) string {
		return sign(math.Round((v-furthest)*100)) + chart.Trimmed(math.Abs(v-furthest)*100, 0) + " %"
	}}
}

// spread draws how errors spread: the share of the announcements by error.
func (p panel) spread(r *sim.Result) {
	var in [errorBins]float64
	total, beyond := 0.0, 0.0
	for _, v := range r.Visits {
		announced, actual, ok := told(v)
		if !ok || actual < leastWait {
			continue
		}
		total++
		e := announced.Seconds()/actual.Seconds() - 1
		if math.Abs(e) > furthest {
			beyond++
			continue
		}
		in[min(errorBins-1, int((e+furthest)/(2*furthest)*errorBins))]++
	}
	p.X = offBy()
	most := 0.0
	for _, n := range in {
		most = max(most, n)
	}
	p.Y = chart.Shares(most/max(1, total)*1.15, 6)
	p.Frame("Error of the announcement", "share of the visitors", true)
	p.XAxis("announced, compared with the actual wait")
	if total == 0 {
		p.Says("no data: nobody waited " + chart.Span(leastWait))
		return
	}
	from, to := p.PX(furthest-within), p.PX(furthest+within)
	p.On.Fill(chart.Thin(chart.Green, 45), chart.Box(from, p.Top, to-from, p.Height))
	var good, off [][]chart.Point
	w := p.Width / errorBins
	for i, n := range in {
		y := p.PY(n / total)
		bar := chart.Box(p.Left+float64(i)*w+0.5, y, w-1, p.Bottom()-y)
		switch {
		case n == 0:
		case bar[0][0] >= from && bar[1][0] <= to:
			good = append(good, bar)
		default:
			off = append(off, bar)
		}
	}
	p.On.Fill(chart.Thin(chart.Blue, 220), good...)
	p.On.Fill(chart.Thin(chart.Red, 220), off...)
	s := chart.Style{Size: 12, Color: chart.Dark}
	p.On.Label(s, chart.Point{to + 5, p.Top + 16}, "±12 %")
	if beyond > 0 {
		p.On.Label(s, chart.Point{p.Left + 6, p.Top + 34}, chart.Percent(beyond/total)+" further off")
	}
}

// announcedDraw shows whether the quartiles that a draw announces are the quartiles.
func announcedDraw(r *sim.Result) Figure {
	title := titled("Announced quartiles and the draw", r)
	return Figure{Title: title, Width: width, Height: 500, draw: func(c *chart.Canvas) {
		n, line := r.Numbers, about(r)
		if slices.ContainsFunc(r.Visits, func(v sim.Visit) bool { return v.Told > 0 }) {
			line = fmt.Sprintf("quartiles are off by %s percentage points (mean) · mean rank of winners %s%.3f from the middle · %s · seed %d",
				chart.Trimmed(chart.Finite(n.LotteryError)*100, 1), sign(n.LotteryRank), chart.Finite(math.Abs(n.LotteryRank)), string(methodOf(r)), r.Seed)
		}
		c.Head(title, line)
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: 355, Height: 355, X: chart.Shares(1, 4), Y: chart.Shares(1, 4)}}
		p.X.Step, p.Y.Step = 0.25, 0.25
		p.Frame("Admitted within the announced time", "", true)
		p.XAxis("announced share")
		p.calibration(r)
		q := panel{chart.Panel{On: c, Left: chart.MarginLeft + 355 + 76, Top: chart.HeadHeight, Width: width - chart.MarginLeft - 355 - 76 - 30, Height: 355}}
		q.quartiles(r)
	}}
}

// quartile is what a draw announced for the share: by when that part of the visitors is in.
func quartile(v sim.Visit, i int) time.Duration {
	return [3]time.Duration{v.Told25, v.Told, v.Told75}[i]
}

// calibrate returns for each third of the announcements' time which share was admitted within
// each announced quartile; not a number where too few were told. Whoever gave up before the
// announced time says nothing about it.
func calibrate(r *sim.Result) (shares [3][3]float64) {
	const few = 20
	end := max(ended(r), r.Ran)
	last := time.Duration(1)
	for _, v := range r.Visits {
		last = max(last, v.TellAt)
	}
	var in, all [3][3]float64
	for _, v := range r.Visits {
		if v.Told25 <= 0 || v.Told <= 0 || v.Told75 <= 0 {
			continue
		}
		third := min(2, max(0, int(3*v.TellAt.Seconds()/last.Seconds())))
		gone := end
		if v.Left > 0 {
			gone = v.Left
		}
		for i := range 3 {
			switch by := v.TellAt + quartile(v, i); {
			case v.Admitted > 0 && v.Admitted <= by:
				in[third][i]++
				all[third][i]++
			case v.Admitted > 0 || gone >= by:
				all[third][i]++
			}
		}
	}
	for third := range 3 {
		for i := range 3 {
			shares[third][i] = math.NaN()
			if all[third][i] >= few {
				shares[third][i] = in[third][i] / all[third][i]
			}
		}
	}
	return shares
}

// calibration draws the shares of calibrate against the announced ones.
func (p panel) calibration(r *sim.Result) {
	p.On.Stroke(chart.Green, 1, nil, []chart.Point{{p.Left, p.Bottom()}, {p.Right(), p.Top}})
	p.On.Label(chart.Style{Size: 12, Color: chart.Green, Anchor: 1}, chart.Point{p.PX(0.93), p.PY(0.96)}, "as announced")
	drawn := false
	names := []string{"told in the first third", "in the second", "in the last"}
	clrs := []color.NRGBA{chart.Blue, chart.Orange, chart.Purple}
	for third, shares := range calibrate(r) {
		var line []chart.Point
		for i, share := range shares {
			if !math.IsNaN(share) {
				line = append(line, chart.Point{p.PX(0.25 * float64(i+1)), p.PY(share)})
			}
		}
		if len(line) == 0 {
			continue
		}
		radius := 5 - float64(third) // so that one upon the other is seen
		p.On.Stroke(clrs[third], 1.2, nil, line)
		for _, at := range line {
			p.On.Dot(clrs[third], at, radius)
		}
		y := p.Bottom() - 48 + 17*float64(third)
		p.On.Dot(clrs[third], chart.Point{p.Right() - 138, y - 4}, radius)
		p.On.Text(chart.Style{Size: 12, Color: chart.Dark}, chart.Point{p.Right() - 126, y}, names[third])
		drawn = true
	}
	if !drawn {
		p.Says("no data: too few were told a wait")
	}
}

// quartiles draws announced and actual quartiles of the wait by the moment of the
// announcement.
func (p panel) quartiles(r *sim.Result) {
	const bins = 30
	var said, was [bins][3][]float64
	longest, last := 0.0, time.Duration(0)
	for _, v := range r.Visits {
		last = max(last, v.TellAt)
	}
	p.X = chart.Times(last, 6)
	for _, v := range r.Visits {
		_, actual, ok := told(v)
		if !ok || v.Told25 <= 0 || v.Told75 <= 0 {
			continue
		}
		b := min(bins-1, max(0, int(v.TellAt.Seconds()/p.X.Max*bins)))
		for i := range 3 {
			said[b][i] = append(said[b][i], quartile(v, i).Seconds())
		}
		was[b][0] = append(was[b][0], actual.Seconds())
	}
	var low, high, middle []chart.Point
	var actual [3][]chart.Point
	at := func(b int, v float64) chart.Point { return chart.Point{(float64(b) + 0.5) / bins, v} }
	for b := range bins {
		if len(was[b][0]) < 5 {
			continue
		}
		low = append(low, at(b, quantile(said[b][0], 0.5)))
		middle = append(middle, at(b, quantile(said[b][1], 0.5)))
		high = append(high, at(b, quantile(said[b][2], 0.5)))
		for i := range 3 {
			actual[i] = append(actual[i], at(b, quantile(was[b][0], 0.25*float64(i+1))))
		}
		longest = max(longest, high[len(high)-1][1], actual[2][len(actual[2])-1][1])
	}
	p.Y = chart.Times(time.Duration(longest*1.15*float64(time.Second)), 6)
	p.Frame("Wait, "+p.Y.Unit, "announced (band, line) and actual (dots)", true)
	p.XAxis("announced at")
	if len(low) == 0 {
		p.Says("no data: too few were told a wait")
		return
	}
	place := func(line []chart.Point) []chart.Point {
		out := make([]chart.Point, len(line))
		for i, q := range line {
			out[i] = chart.Point{p.Left + q[0]*p.Width, p.PY(q[1])}
		}
		return out
	}
	floor := place(low)
	ground := place(high)
	for i := len(floor) - 1; i >= 0; i-- {
		ground = append(ground, floor[i])
	}
	p.On.Fill(chart.Thin(chart.Blue, 45), ground)
	p.On.Stroke(chart.Blue, 1.5, nil, place(middle))
	for i, radius := range []float64{2, 3, 2} {
		for _, q := range place(actual[i]) {
			p.On.Dot(chart.Red, q, radius)
		}
	}
}
