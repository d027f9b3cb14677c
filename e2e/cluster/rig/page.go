package rig

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WritePage draws the runs into a directory: index.html and one figure a run.
func WritePage(dir string, runs []*Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Cluster runs</title>\n" +
		"<style>body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto;font-size:13px;background:#f6f6f6;padding:1rem}img{max-width:100%}</style>\n" +
		"<h1>Cluster runs</h1>\n<p>Real processes, real visitors; the origin's own log is the judge. Each figure shows, over time and by data centre, who is inside, who waits and who was let in; red is when something was broken.</p>\n<ul>\n")
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
		o.draw(f)
		if err := f.Close(); err != nil {
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

// The figure's measures, in pixels.
const (
	width, panelHeight = 960, 170
	left, right, top   = 60, 90, 40
	panelGap           = 46
)

// inks tell sites apart, for the colour-blind too; names stand at the lines' ends.
var inks = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// draw writes the figure: three panels over the same time.
func (o *Outcome) draw(w io.Writer) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	panels := []struct {
		title string
		limit int
		of    func(Moment) []int
	}{
		{"inside, by the origin's log", o.Case.Room.Active, func(m Moment) []int { return m.Active }},
		{"waiting", 0, func(m Moment) []int { return m.Waiting }},
		{"let in, per second (mean of five)", 0, func(m Moment) []int { return m.Admitted }},
	}
	height := top + len(panels)*(panelHeight+panelGap)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="12" fill="#333">`+"\n<title>%s</title>\n", width, height, html.EscapeString(o.Case.Name))
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	seconds := max(1, len(o.Moments)-1)
	x := func(second float64) float64 { return left + second/float64(seconds)*(width-left-right) }
	for k, p := range panels {
		series := make([][]float64, len(o.Sites)+1) // the last is all
		for i := range o.Moments {
			all := 0.0
			for s := range o.Sites {
				v := 0.0
				if k == 2 {
					v = mean(o.Moments, i, func(m Moment) int { return p.of(m)[s] })
				} else {
					v = float64(p.of(o.Moments[i])[s])
				}
				series[s] = append(series[s], v)
				all += v
			}
			series[len(o.Sites)] = append(series[len(o.Sites)], all)
		}
		o.panel(b, top+k*(panelHeight+panelGap), p.title, p.limit, series, x, k == 0)
	}
	b.WriteString("</svg>\n")
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

func (o *Outcome) panel(b io.Writer, y0 int, title string, limit int, series [][]float64, x func(float64) float64, words bool) {
	most := max(1, float64(limit))
	for _, s := range series {
		for _, v := range s {
			most = max(most, v)
		}
	}
	most *= 1.08
	y := func(v float64) float64 { return float64(y0+panelHeight) - v/most*panelHeight }
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", left, y0-8, title)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#ccc"/>`+"\n", left, y0, width-left-right, panelHeight)
	for i, m := range o.Marks {
		from, until := float64(m.From)/1e6, float64(m.Until)/1e6
		if m.Until == 0 {
			until = float64(len(o.Moments) - 1)
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#d33" opacity=".2"/>`+"\n", x(from), y0, max(1.5, x(until)-x(from)), panelHeight)
		if words {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" font-size="9" fill="#a11">%s</text>`+"\n", x(from)+2, y0+10+i%4*10, html.EscapeString(m.What))
		}
	}
	if limit > 0 {
		fmt.Fprintf(b, `<path stroke="#b4452c" stroke-dasharray="5 4" d="M%d %.1fH%d"/>`+"\n", left, y(float64(limit)), width-right)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", left-6, y(float64(limit))+4, limit)
	} else {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%.0f</text>`+"\n", left-6, y0+10, most/1.08)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">0</text>`+"\n", left-6, y0+panelHeight)
	taken := map[int]bool{}
	for s, values := range series {
		ink, stroke, name := "#999", 1.0, "all"
		if s < len(o.Sites) {
			ink, stroke, name = inks[s%len(inks)], 1.5, o.Sites[s]
		}
		if len(values) == 0 {
			continue
		}
		fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="%g" d="`, ink, stroke)
		for i, v := range values {
			letter := "L"
			if i == 0 {
				letter = "M"
			}
			fmt.Fprintf(b, "%s%.1f %.1f", letter, x(float64(i)), y(v))
		}
		b.Write([]byte("\"/>\n"))
		// Names keep clear of each other.
		at := int(y(values[len(values)-1])) / 13
		for taken[at] {
			at--
		}
		taken[at] = true
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-right+6, at*13+9, ink, html.EscapeString(name))
	}
	step := 10
	for seconds := len(o.Moments); seconds/step > 12; step *= 2 {
	}
	for at := 0; at < len(o.Moments); at += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d:%02d</text>`+"\n", x(float64(at)), y0+panelHeight+15, at/60, at%60)
	}
}
