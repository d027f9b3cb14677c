package rig

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
)

// WritePage draws the runs into a directory: index.html and one figure a run.
func WritePage(dir string, runs []*Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Cluster runs</title>\n" +
		"<style>body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto;font-size:13px;background:#f6f6f6;padding:1rem}img{max-width:100%}</style>\n" +
		"<h1>Cluster runs</h1>\n<p>Real processes, real visitors; the origin's own log is the judge. Each figure shows, over time and by data centre, the active users, the queue and the admissions; red is when something was broken.</p>\n<ul>\n")
	for _, o := range runs {
		word := "kept"
		if !o.OK() {
			word = "<strong>broken</strong>"
		}
		fmt.Fprintf(&b, "<li><a href=\"#%[1]s\">%[1]s</a>: %[2]s</li>\n", o.Case.Name, word)
	}
	b.WriteString("</ul>\n")
	for _, o := range runs {
		name := o.Case.Name + ".svg"
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("rig: %w", err)
		}
		if err := errors.Join(o.draw(f), f.Close()); err != nil {
			return fmt.Errorf("rig: %w", err)
		}
		var table strings.Builder
		if err := o.Write(&table); err != nil {
			return err
		}
		fmt.Fprintf(&b, "<h2 id=\"%[1]s\">%[1]s</h2>\n<p>%[2]s</p>\n<img src=\"%[3]s\" alt=\"active, waiting and admitted over time\">\n<pre>%[4]s</pre>\n",
			o.Case.Name, html.EscapeString(o.Case.About), name, html.EscapeString(strings.TrimSpace(table.String())))
	}
	b.WriteString("</html>\n")
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	return nil
}

// inks tell sites apart, for the color-blind too; names stand beside the panels.
var inks = []color.NRGBA{chart.Blue, chart.Orange, chart.Green, chart.Purple, chart.Sky, chart.Amber}

// draw writes the figure: three panels over the same time.
func (o *Outcome) draw(w io.Writer) error {
	const width, height, names = 960, 170, 110
	panels := []struct {
		title string
		limit int
		of    func(i, site int) float64
	}{
		{"Active users, by the origin's log", o.Case.Room.Active, func(i, site int) float64 { return float64(o.Moments[i].Active[site]) }},
		{"Queue", 0, func(i, site int) float64 { return float64(o.Moments[i].Waiting[site]) }},
		{"Admitted per second (mean of five)", 0, func(i, site int) float64 {
			return mean(o.Moments, i, func(m Moment) int { return m.Admitted[site] })
		}},
	}
	c, err := chart.New(width, chart.HeadHeight+len(panels)*(height+chart.GapHeight), chart.SVG)
	if err != nil {
		return err
	}
	c.Head(o.Case.Name, "red where something was broken")
	seconds := max(1, len(o.Moments)-1)
	var marks []chart.Mark
	for _, m := range o.Marks {
		one := chart.Mark{From: float64(m.From) / 1e6, Until: float64(m.Until) / 1e6, What: m.What}
		if m.Until == 0 {
			one.Until = float64(seconds)
		}
		marks = append(marks, one)
	}
	p := chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - names, Height: height,
		X: chart.Times(time.Duration(seconds)*time.Second, 12)}
	for k, one := range panels {
		o.panel(p, one.title, one.limit, one.of, marks, k == 0, k == len(panels)-1)
		p.Top = p.Bottom() + chart.GapHeight
	}
	return c.Encode(w, o.Case.Name)
}

// mean of the five seconds around one.
func mean(m []Moment, i int, of func(Moment) int) float64 {
	from, until := max(0, i-2), min(len(m), i+3)
	sum := 0
	for _, one := range m[from:until] {
		sum += of(one)
	}
	return float64(sum) / float64(until-from)
}

// panel draws what of gives for each site at each second, and the sum in grey, with a limit above 0.
func (o *Outcome) panel(p chart.Panel, title string, limit int, of func(i, site int) float64, marks []chart.Mark, named, xLabels bool) {
	values := func(site int) chart.Values {
		return chart.Values{N: len(o.Moments), At: func(i int) float64 { return float64(i) }, Value: func(i int) (sum float64) {
			for s := range o.Sites {
				if s == site || site == len(o.Sites) {
					sum += of(i, s)
				}
			}
			return sum
		}}
	}
	most, _ := values(len(o.Sites)).Highest()
	p.Y = chart.Counts(max(most, float64(limit))*1.08, 5)
	p.Frame(title, "", xLabels)
	p.Shade(marks)
	var labels []chart.SideLabel
	for site := len(o.Sites); site >= 0; site-- { // the sum is the lowest
		clr, wide, name := chart.Faint, 1.0, "all"
		if site < len(o.Sites) {
			clr, wide, name = inks[site%len(inks)], 1.5, o.Sites[site]
		}
		columns := p.Tops(values(site))
		p.Line(clr, wide, nil, columns)
		if len(columns) > 0 {
			labels = append(labels, chart.SideLabel{Name: name, Color: clr, Y: p.PY(columns[len(columns)-1])})
		}
	}
	if limit > 0 {
		p.LimitLine(chart.Constant(float64(limit), p.X.Max))
	}
	if named {
		p.Name(marks)
	}
	slices.SortStableFunc(labels, func(a, b chart.SideLabel) int { return cmp.Compare(b.Y, a.Y) }) // from the bottom up
	p.Beside(labels)
}
