package figure

import (
	"cmp"
	"image/color"
	"slices"
	"strconv"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

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
		if name := chart.Clean(r.Places[i], 40); name != "" {
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
			n += chart.Finite(float64(p.Sites[s]))
		}
	}
	return n
}

// sum returns the active users of all sites at the moment.
func sum(p sim.Point) float64 {
	n := 0.0
	for _, s := range p.Sites {
		n += chart.Finite(float64(s))
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
			all[s].total += chart.Finite(float64(n))
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
	hues := []color.NRGBA{chart.Blue, chart.Sky, chart.Green, {0xd9, 0xc8, 0x2b, 255}, chart.Orange, {0xd5, 0x5e, 0x00, 255}, chart.Purple}
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
	return Figure{Title: title, Width: width, Height: chart.HeadHeight + tall + chart.FootHeight, draw: func(c *chart.Canvas) {
		c.Head(title, about(r))
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - named, Height: tall, X: chart.Times(ended(r), 9)}}
		bound, since := over(r, count(limit)).Highest()
		stacked, _ := over(r, sum).Highest()
		top, note := chart.Near(stacked, bound)
		p.Y = chart.Counts(top*1.15, 7)
		p.Frame("Active users", note, true)
		// Every layer of a column shows the same moment: their sum is what was.
		crests := p.Crests(over(r, sum))
		floor := make([]float64, int(p.Width)+1)
		var labels []chart.SideLabel
		for i, b := range bands(r) {
			columns := chart.Pick(crests, func(i int) float64 { return b.at(r.Points[i]) })
			widest, at := 0.0, 0
			top := make([]float64, len(columns))
			for x, v := range columns {
				top[x] = floor[x] + v
				if v >= widest {
					widest, at = v, x
				}
			}
			clr := bandColour(i, len(b.sites) > 1)
			p.Layer(clr, floor, top)
			labels = append(labels, chart.SideLabel{Name: b.name, Color: clr, Y: p.PY(floor[at] + widest/2)})
			copy(floor, top)
		}
		if note == "" {
			p.LimitLine(over(r, count(limit)))
			s := chart.Style{Size: 12, Color: chart.Red}
			say := "limit " + chart.Short(bound)
			c.Label(s, chart.Point{min(p.PX(since)+8, p.Right()-s.Wide(say)-4), max(p.Top+11, p.PY(bound)-6)}, say)
		}
		p.Beside(labels)
	}}
}
