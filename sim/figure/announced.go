package figure

import (
	"fmt"
	"math"
	"slices"
	"time"

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
	return Figure{Title: title, Width: width, Height: 500, draw: func(c *canvas) {
		var longest time.Duration
		for _, v := range r.Visits {
			if announced, actual, ok := told(v); ok {
				longest = max(longest, actual, min(announced, 3*actual))
			}
		}
		n, line := r.Numbers, about(r)
		if longest > 0 {
			line = fmt.Sprintf("of waits of %s and more: %s within ±12 %% · error %s (median) · bias %s%s · %s · seed %d",
				span(leastWait), percent(n.EtaWithin), percent(n.EtaError), sign(n.EtaBias), percent(math.Abs(n.EtaBias)), string(methodOf(r)), r.Seed)
		}
		head(c, title, line)
		s := times(longest+longest/20, 6)
		p := panel{c: c, left: marginLeft, top: headHeight, width: 400, height: 355, x: s, y: s}
		p.frame("Announced wait, "+s.unit, "the band is ±12 %", true)
		p.xAxis("actual wait from then on")
		errors := panel{c: c, left: marginLeft + 400 + 66, top: headHeight, width: width - marginLeft - 400 - 66 - 30, height: 355}
		if longest == 0 {
			p.says("no data: nobody was told a wait")
			errors.x, errors.y = offBy(), shares(1, 5)
			errors.frame("Error of the announcement", "", false)
			errors.says("no data")
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
	s := p.x
	edge := func(f float64) point { // where the line y = f*x leaves the panel
		if f > 1 {
			return point{p.px(s.max / f), p.top}
		}
		return point{p.right(), p.py(s.max * f)}
	}
	corner := point{p.left, p.bottom()}
	p.c.fill(thin(green, 45), []point{corner, edge(1 + within), {p.right(), p.top}, edge(1 - within)})
	p.c.stroke(green, 1, nil, []point{corner, {p.right(), p.top}})
	var good, off [][]point
	some(len(r.Visits), maxDots, func(i int) {
		announced, actual, ok := told(r.Visits[i])
		if !ok {
			return
		}
		x, y := p.px(actual.Seconds()), p.py(announced.Seconds())
		if math.Abs(announced.Seconds()-actual.Seconds()) <= within*actual.Seconds() {
			good = append(good, dash(point{x, y}, 2))
		} else {
			off = append(off, dash(point{x, y}, 2))
		}
	})
	p.c.stroke(thin(blue, 150), 2, nil, good...)
	p.c.stroke(thin(red, 150), 2, nil, off...)
	l := style{size: 12, clr: dark}
	p.c.label(l, point{p.left + 10, p.top + 18}, "longer than it took")
	l.anchor = 1
	p.c.label(l, point{p.right() - 10, p.bottom() - 10}, "shorter than it took")
}

// furthest is the largest error with a bar of its own; errorBins have edges at ±within.
const (
	furthest  = 0.48
	errorBins = 24
)

// offBy is the axis of relative errors, moved so that it begins at 0.
func offBy() scale {
	return scale{max: 2 * furthest, step: 0.24, say: func(v float64) string {
		return sign(math.Round((v-furthest)*100)) + trimmed(math.Abs(v-furthest)*100, 0) + " %"
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
	p.x = offBy()
	most := 0.0
	for _, n := range in {
		most = max(most, n)
	}
	p.y = shares(most/max(1, total)*1.15, 6)
	p.frame("Error of the announcement", "share of the visitors", true)
	p.xAxis("announced, compared with the actual wait")
	if total == 0 {
		p.says("no data: nobody waited " + span(leastWait))
		return
	}
	from, to := p.px(furthest-within), p.px(furthest+within)
	p.c.fill(thin(green, 45), p.c.box(from, p.top, to-from, p.height))
	var good, off [][]point
	w := p.width / errorBins
	for i, n := range in {
		y := p.py(n / total)
		bar := p.c.box(p.left+float64(i)*w+0.5, y, w-1, p.bottom()-y)
		switch {
		case n == 0:
		case bar[0].x >= from && bar[1].x <= to:
			good = append(good, bar)
		default:
			off = append(off, bar)
		}
	}
	p.c.fill(thin(blue, 220), good...)
	p.c.fill(thin(red, 220), off...)
	s := style{size: 12, clr: dark}
	p.c.label(s, point{to + 5, p.top + 16}, "±12 %")
	if beyond > 0 {
		p.c.label(s, point{p.left + 6, p.top + 34}, percent(beyond/total)+" further off")
	}
}

// announcedDraw shows whether the quartiles that a draw announces are the quartiles.
func announcedDraw(r *sim.Result) Figure {
	title := titled("Announced quartiles and the draw", r)
	return Figure{Title: title, Width: width, Height: 500, draw: func(c *canvas) {
		n, line := r.Numbers, about(r)
		if slices.ContainsFunc(r.Visits, func(v sim.Visit) bool { return v.Told > 0 }) {
			line = fmt.Sprintf("quartiles are off by %s percentage points (mean) · mean rank of winners %s%.3f from the middle · %s · seed %d",
				trimmed(finite(n.LotteryError)*100, 1), sign(n.LotteryRank), finite(math.Abs(n.LotteryRank)), string(methodOf(r)), r.Seed)
		}
		head(c, title, line)
		p := panel{c: c, left: marginLeft, top: headHeight, width: 355, height: 355, x: shares(1, 4), y: shares(1, 4)}
		p.x.step, p.y.step = 0.25, 0.25
		p.frame("Admitted within the announced time", "", true)
		p.xAxis("announced share")
		p.calibration(r)
		q := panel{c: c, left: marginLeft + 355 + 76, top: headHeight, width: width - marginLeft - 355 - 76 - 30, height: 355}
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
	p.c.stroke(green, 1, nil, []point{{p.left, p.bottom()}, {p.right(), p.top}})
	p.c.label(style{size: 12, clr: green, anchor: 1}, point{p.px(0.93), p.py(0.96)}, "as announced")
	drawn := false
	names := []string{"told in the first third", "in the second", "in the last"}
	clrs := []colour{blue, orange, purple}
	for third, shares := range calibrate(r) {
		var line []point
		for i, share := range shares {
			if !math.IsNaN(share) {
				line = append(line, point{p.px(0.25 * float64(i+1)), p.py(share)})
			}
		}
		if len(line) == 0 {
			continue
		}
		radius := 5 - float64(third) // so that one upon the other is seen
		p.c.stroke(clrs[third], 1.2, nil, line)
		for _, at := range line {
			p.c.dot(clrs[third], at, radius)
		}
		y := p.bottom() - 48 + 17*float64(third)
		p.c.dot(clrs[third], point{p.right() - 138, y - 4}, radius)
		p.c.text(style{size: 12, clr: dark}, point{p.right() - 126, y}, names[third])
		drawn = true
	}
	if !drawn {
		p.says("no data: too few were told a wait")
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
	p.x = times(last, 6)
	for _, v := range r.Visits {
		_, actual, ok := told(v)
		if !ok || v.Told25 <= 0 || v.Told75 <= 0 {
			continue
		}
		b := min(bins-1, max(0, int(v.TellAt.Seconds()/p.x.max*bins)))
		for i := range 3 {
			said[b][i] = append(said[b][i], quartile(v, i).Seconds())
		}
		was[b][0] = append(was[b][0], actual.Seconds())
	}
	var low, high, middle []point
	var actual [3][]point
	at := func(b int, v float64) point { return point{(float64(b) + 0.5) / bins, v} }
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
		longest = max(longest, high[len(high)-1].y, actual[2][len(actual[2])-1].y)
	}
	p.y = times(time.Duration(longest*1.15*float64(time.Second)), 6)
	p.frame("Wait, "+p.y.unit, "announced (band, line) and actual (dots)", true)
	p.xAxis("announced at")
	if len(low) == 0 {
		p.says("no data: too few were told a wait")
		return
	}
	place := func(line []point) []point {
		out := make([]point, len(line))
		for i, q := range line {
			out[i] = point{p.left + q.x*p.width, p.py(q.y)}
		}
		return out
	}
	floor := place(low)
	ground := place(high)
	for i := len(floor) - 1; i >= 0; i-- {
		ground = append(ground, floor[i])
	}
	p.c.fill(thin(blue, 45), ground)
	p.c.stroke(blue, 1.5, nil, place(middle))
	for i, radius := range []float64{2, 3, 2} {
		for _, q := range place(actual[i]) {
			p.c.dot(red, q, radius)
		}
	}
}
