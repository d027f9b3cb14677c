package judge

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the verdict for people.
func (r Report) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	rows := [][4]string{{"rule", "allowed", "seen", "violations"}}
	for _, f := range r.Findings {
		rows = append(rows, [4]string{f.Rule, f.Bound, f.Seen, thousands(f.Violations)})
	}
	var width [4]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range rows {
		for j, cell := range row {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(cell))
			if j == 3 {
				fmt.Fprintf(b, "%s%s\n", pad, cell)
			} else {
				fmt.Fprintf(b, "%s%s   ", cell, pad)
			}
		}
		if i == 0 {
			for j := range row {
				b.WriteString(strings.Repeat("─", width[j]))
				if j < 3 {
					b.WriteString("   ")
				}
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, f := range r.Facts {
		fmt.Fprintf(b, "%s: %s\n", f.What, f.Value)
	}
	for _, f := range r.Findings {
		for i, e := range f.Examples {
			if i == 0 {
				fmt.Fprintf(b, "\nVIOLATED: %s (%s times)\n", f.Rule, thousands(f.Violations))
			}
			fmt.Fprintf(b, "  %s\n", e)
		}
	}
	if r.OK() {
		b.WriteString("\nEvery promise was kept.\n")
	}
	return b.Flush()
}

// The figure's measures.
const (
	figWidth, figPanel  = 960, 240
	figLeft, figTop     = 64, 34
	figGap, figBottom   = 56, 40
	figPlot             = figWidth - figLeft - 20
	figHeight           = figTop + 2*figPanel + figGap + figBottom
	figInk, figLimit    = "#2b5f8a", "#b4452c"
	figText, figOutline = "#333", "#ccc"
)

// WriteSVG draws active sessions and new sessions in 60 s over time against their limits,
// with the outages. Every column of pixels shows its highest count, so no peak is hidden.
func (r Report) WriteSVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	end := int64(1)
	for _, q := range r.c.Requests {
		end = max(end, q.Seen)
	}
	for _, o := range r.c.Outages {
		end = max(end, o.Until)
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="13" fill="%s">`+"\n", figWidth, figHeight, figText)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", figWidth, figHeight)
	r.panel(b, figTop, "Active sessions, as the origin counts them", r.active, r.c.Active, end)
	r.panel(b, figTop+figPanel+figGap, "New sessions in the last 60 s", r.decayed(), r.c.PerMinute, end)
	b.WriteString("</svg>\n")
	return b.Flush()
}

// decayed is the rate with the moments at which sessions leave the window, too.
func (r Report) decayed() []point {
	out := make([]point, 0, 2*len(r.minute))
	gone := 0
	for i, p := range r.minute {
		for ; gone < i && r.minute[gone].at+60*second < p.at; gone++ {
			out = append(out, point{r.minute[gone].at + 60*second, i - gone - 1})
		}
		out = append(out, p)
	}
	for ; gone < len(r.minute); gone++ {
		out = append(out, point{r.minute[gone].at + 60*second, len(r.minute) - gone - 1})
	}
	return out
}

func (r Report) panel(b *bufio.Writer, top int, title string, line []point, limit int, end int64) {
	most := limit
	for _, p := range line {
		most = max(most, p.n)
	}
	most = max(1, most+most/8)
	x := func(at int64) float64 { return figLeft + float64(at)/float64(end)*figPlot }
	y := func(n int) float64 { return float64(top+figPanel) - float64(n)/float64(most)*figPanel }

	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", figLeft, top-12, title)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="%s"/>`+"\n", figLeft, top, figPlot, figPanel, figOutline)
	for _, o := range r.c.Outages {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#d33" opacity=".35"/>`+"\n", x(o.From), top, max(1.5, x(o.Until)-x(o.From)), figPanel)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#d33" font-size="11">kill -9</text>`+"\n", x(o.From)+5, top+14)
	}
	columns := make([]int, figPlot+1)
	now, col := 0, 0
	for _, p := range line {
		if p.at > end {
			break
		}
		for at := int(x(p.at)) - figLeft; col < at; {
			col++
			columns[col] = now
		}
		now = p.n
		columns[col] = max(columns[col], now)
	}
	for col < figPlot {
		col++
		columns[col] = now
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.3" d="M%d %.1f`, figInk, figLeft, y(columns[0]))
	for i, n := range columns {
		if i > 0 && (n != columns[i-1] || i == figPlot) {
			fmt.Fprintf(b, "H%dV%.1f", figLeft+i, y(n))
		}
	}
	b.WriteString("\"/>\n")
	fmt.Fprintf(b, `<path stroke="%s" stroke-dasharray="5 4" d="M%d %.1fH%d"/>`+"\n", figLimit, figLeft, y(limit), figLeft+figPlot)
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`+"\n", figLeft-6, y(limit)+4, figLimit, thousands(limit))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">0</text>`+"\n", figLeft-6, top+figPanel+4)
	step := tick(end)
	for at := int64(0); at <= end; at += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d:%02d</text>`+"\n", x(at), top+figPanel+18, at/(60*second), at/second%60)
	}
}

// tick returns the distance between the marks of the time axis: at most some ten marks.
func tick(end int64) int64 {
	for _, s := range []int64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} {
		if end/(s*second) <= 10 {
			return s * second
		}
	}
	return end/10 + 1
}
