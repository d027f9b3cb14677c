package figure

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"

	"github.com/anteroom/anteroom/sim"
)

// colour is what every mark has.
type colour = color.NRGBA

// maxNamed is the number of sites that a figure names; the rest are "others".
const maxNamed = 12

// siteCount returns how many sites the points tell of.
func siteCount(r *sim.Result) int {
	n := 0
	for _, p := range r.Points {
		n = max(n, len(p.Sites))
	}
	return n
}

func siteName(r *sim.Result, i int) string {
	if i < len(r.Places) {
		if name := clean(r.Places[i], 40); name != "" {
			return name
		}
	}
	return "site " + strconv.Itoa(i+1)
}

// band is one layer of the stack: the sites in it.
type band struct {
	name  string
	sites []int
	total float64
}

// at returns the active users of the layer at the moment.
func (b band) at(p sim.Point) float64 {
	n := 0.0
	for _, s := range b.sites {
		if s < len(p.Sites) {
			n += finite(float64(p.Sites[s]))
		}
	}
	return n
}

// sum returns the active users of all sites at the moment.
func sum(p sim.Point) float64 {
	n := 0.0
	for _, s := range p.Sites {
		n += finite(float64(s))
	}
	return n
}

// bands returns the layers, the largest first, "others" last.
func bands(r *sim.Result) []band {
	all := make([]band, siteCount(r))
	for i := range all {
		all[i] = band{name: siteName(r, i), sites: []int{i}}
	}
	for i := range r.Points {
		for s, n := range r.Points[i].Sites {
			all[s].total += finite(float64(n))
		}
	}
	slices.SortStableFunc(all, func(a, b band) int { return cmp.Compare(b.total, a.total) })
	if len(all) <= maxNamed {
		return all
	}
	others := band{name: strconv.Itoa(len(all)-maxNamed) + " others"}
	for _, b := range all[maxNamed:] {
		others.sites = append(others.sites, b.sites...)
		others.total += b.total
	}
	return append(all[:maxNamed:maxNamed], others)
}

// bandColour alternates hues whose neighbours differ in lightness too.
func bandColour(i int, others bool) color.NRGBA {
	if others {
		return color.NRGBA{0xc4, 0xc4, 0xc4, 255}
	}
	hues := []color.NRGBA{blue, sky, green, {0xd9, 0xc8, 0x2b, 255}, orange, {0xd5, 0x5e, 0x00, 255}, purple}
	c := hues[i%len(hues)]
	if i/len(hues)%2 == 1 {
		mix := func(v uint8) uint8 { return uint8((int(v) + 2*255) / 3) }
		c = color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 255}
	}
	return c
}

// sites shows the active users of each site, one upon the other, against the limit.
func sites(r *sim.Result) Figure {
	const tall, named = 340, 150
	title := titled("Active users by site", r)
	return Figure{Title: title, Width: width, Height: headHeight + tall + footHeight, draw: func(c *canvas) {
		head(c, title, about(r))
		p := panel{c: c, left: marginLeft, top: headHeight, width: width - marginLeft - named, height: tall, x: times(ended(r), 9)}
		limit := func(q sim.Point) int { return q.Limit }
		bound, since := highest(r, count(limit))
		stacked, _ := highest(r, sum)
		near := bound <= 4*max(stacked, 1)
		p.y = counts(stacked*1.15, 7)
		if near {
			p.y = counts(max(stacked, bound)*1.15, 7)
		}
		note := ""
		if !near {
			note = "the limit of " + thousands(int(bound)) + " is above the picture"
		}
		p.frame("Active users", note, true)
		// Every layer of a column shows the same moment: their sum is what was.
		crests := p.crests(over(r, sum))
		floor := make([]float64, int(p.width)+1)
		var labels []sideLabel
		for i, b := range bands(r) {
			columns := pick(crests, func(i int) float64 { return b.at(r.Points[i]) })
			widest, at := 0.0, 0
			top := make([]float64, len(columns))
			for x, v := range columns {
				top[x] = floor[x] + v
				if v >= widest {
					widest, at = v, x
				}
			}
			clr := bandColour(i, len(b.sites) > 1)
			if line := p.steps(top); len(line) > 0 {
				below := p.steps(floor[:len(columns)])
				slices.Reverse(below)
				c.fill(clr, slices.Concat(line, below))
				c.stroke(white, 0.8, nil, line)
			}
			labels = append(labels, sideLabel{b.name, clr, p.py(floor[at] + widest/2)})
			copy(floor, top)
		}
		if near {
			p.c.stroke(red, 1.5, []float64{6, 3}, p.steps(p.lasts(over(r, count(limit)))))
			s := style{size: 12, clr: red}
			say := "limit " + short(bound)
			p.c.label(s, point{min(p.px(since.Seconds())+8, p.right()-p.c.wide(s, say)-4), max(p.top+11, p.py(bound)-6)}, say)
		}
		p.beside(labels)
	}}
}

// sideLabel names a layer at the right of the panel, near the height y.
type sideLabel struct {
	name string
	clr  color.NRGBA
	y    float64
}

// beside writes the labels at the right, from the bottom up as the layers lie, each with its
// colour and none upon another.
func (p panel) beside(labels []sideLabel) {
	const line = 17
	y := math.Inf(1)
	ys := make([]float64, len(labels))
	for i, l := range labels {
		y = min(y-line, l.y)
		ys[i] = y
	}
	// Those that were pushed out at the top push the others down again.
	least := p.top + 6
	for i := len(ys) - 1; i >= 0; i-- {
		ys[i] = max(ys[i], least)
		least = ys[i] + line
	}
	s := style{size: 12, clr: dark}
	for i, l := range labels {
		p.c.fill(l.clr, p.c.box(p.right()+10, ys[i]-6, 12, 12))
		p.c.text(s, point{p.right() + 27, ys[i] + 4}, p.c.fit(s, l.name, p.c.width-p.right()-32))
	}
}
