package judge

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anteroom/anteroom/internal/chart"
)

// WriteTable writes the verdict for people.
func (r Report) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	rows := [][4]string{{"rule", "allowed", "seen", "violations"}}
	for _, f := range r.Findings {
		rows = append(rows, [4]string{f.Rule, f.Bound, f.Seen, chart.Thousands(f.Violations)})
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
				fmt.Fprintf(b, "\nVIOLATED: %s (%s times)\n", f.Rule, chart.Thousands(f.Violations))
			}
			fmt.Fprintf(b, "  %s\n", e)
		}
	}
	if r.OK() {
		b.WriteString("\nEvery promise was kept.\n")
	}
	return b.Flush()
}

// WriteSVG draws active sessions and new sessions in 60 s over time against their limits,
// with the outages. Every column of pixels shows its highest count, so no peak is hidden.
func (r Report) WriteSVG(w io.Writer) error {
	const width, height = 960, 240
	end := int64(1)
	for _, q := range r.c.Requests {
		end = max(end, q.Seen)
	}
	for _, o := range r.c.Outages {
		end = max(end, o.Until)
	}
	c, err := chart.New(width, chart.HeadHeight+2*height+chart.GapHeight+chart.FootHeight, chart.SVG)
	if err != nil {
		return err
	}
	const title = "Sessions against their limits"
	c.Head(title, "as the origin counts them, red where a process was killed")
	p := chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - chart.MarginRight, Height: height,
		X: chart.Times(time.Duration(end)*time.Microsecond, 10)}
	r.panel(p, "Active sessions", r.active, end, r.c.Active, false)
	p.Top = p.Bottom() + chart.GapHeight
	r.panel(p, "New sessions in the last 60 s", r.decayed(), end, r.c.PerMinute, true)
	return c.Encode(w, title)
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

// panel draws counts and their limit from the beginning to the end.
func (r Report) panel(p chart.Panel, heading string, counted []point, end int64, limit int, xLabels bool) {
	line := []point{{}}
	for _, p := range counted {
		if p.at <= end {
			line = append(line, p)
		}
	}
	line = append(line, point{end, line[len(line)-1].n})
	at := func(us int64) float64 { return float64(us) / float64(second) }
	counts := chart.Values{N: len(line), At: func(i int) float64 { return at(line[i].at) }, Value: func(i int) float64 { return float64(line[i].n) }}
	most, when := counts.Highest()
	p.Y = chart.Counts(max(most, float64(limit))*1.125, 6)
	p.Frame(heading, "", xLabels)
	var marks []chart.Mark
	for _, o := range r.c.Outages {
		marks = append(marks, chart.Mark{From: at(o.From), Until: at(o.Until), What: "kill -9"})
	}
	p.Shade(marks)
	p.Area(chart.Blue, p.Tops(counts))
	p.Limit(chart.Constant(float64(limit), p.X.Max))
	p.Name(marks)
	p.Peak(chart.Blue, when, most, float64(limit), fmt.Sprintf("peak %s at %s", chart.Thousands(int(most)), p.X.Moment(when)))
}
