package outcome

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// Text writes the report for people, on about a screen. Of several seeds it shows the
// median, with the least and the most behind it.
func Text(w io.Writer, r Report) error {
	if len(r.Results) == 0 {
		return nil
	}
	plan, firsts := r.of()
	var b strings.Builder
	head(&b, plan)
	numbers(&b, plan)
	promises(&b, r, plan)
	if len(firsts) > 1 {
		sideBySide(&b, firsts)
	}
	if len(r.WhatIf) > 0 {
		whatIf(&b, plan[0], r.WhatIf)
	}
	if len(r.Files) > 0 {
		fmt.Fprintf(&b, "\nWritten: %s\n", strings.Join(r.Files, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func head(b *strings.Builder, plan []*sim.Result) {
	sc := plan[0].Scenario
	b.WriteString(sc.Name)
	if sc.About != "" {
		b.WriteString(": " + sc.About)
	}
	fmt.Fprintf(b, "\n  %s", moment(sc.Length))
	if sc.Drain {
		fmt.Fprintf(b, ", and until everybody has left: %s", span(plan, func(r *sim.Result) time.Duration { return r.Ran }, moment))
	}
	if a := plan[0].Algorithm; a != sim.Anteroom && a != "" {
		fmt.Fprintf(b, " · %s", a)
	}
	if len(plan) == 1 {
		fmt.Fprintf(b, " · seed %d\n\n", plan[0].Seed)
	} else {
		fmt.Fprintf(b, " · %d seeds from %d: median (least to most)\n\n", len(plan), plan[0].Seed)
	}
}

// numbers writes what an operator asks first, a line each.
func numbers(b *strings.Builder, plan []*sim.Result) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	people := func(f func(sim.Numbers) int) string {
		return span(plan, func(r *sim.Result) int { return f(r.Numbers) }, chart.Thousands)
	}
	long := func(f func(sim.Numbers) time.Duration) string {
		return span(plan, func(r *sim.Result) time.Duration { return f(r.Numbers) }, wait)
	}
	part := func(f func(sim.Numbers) float64) string {
		return span(plan, func(r *sim.Result) float64 { return f(r.Numbers) }, percent)
	}
	n := plan[0].Numbers
	s := plan[0].Scenario.Settings
	line("limits", "%s at once, %s new in any minute, %s%s", chart.Thousands(s.TotalActiveUsers), chart.Thousands(s.NewUsersPerMinute), s.WithDefaults().QueueingMethod, changes(plan[0].Scenario))
	line("come", "%s, up to %s in a minute", people(func(n sim.Numbers) int { return n.Arrived }), span(plan, rush, chart.Thousands))
	line("inside", "%s at the peak, up to %s new in a minute", people(func(n sim.Numbers) int { return n.PeakActive }), people(func(n sim.Numbers) int { return n.PeakPerMinute }))
	most := slices.MaxFunc(plan, func(a, b *sim.Result) int { return cmp.Compare(a.Numbers.Queued, b.Numbers.Queued) })
	if most.Numbers.Queued == 0 {
		line("in line", "nobody")
	} else {
		line("in line", "%s at the peak; %s", people(func(n sim.Numbers) int { return n.PeakWaiting }), empty(plan))
		line("waited", "half up to %s, 80 %% up to %s, 95 %% up to %s, nobody above %s",
			long(func(n sim.Numbers) time.Duration { return n.WaitP50 }), long(func(n sim.Numbers) time.Duration { return n.WaitP80 }),
			long(func(n sim.Numbers) time.Duration { return n.WaitP95 }), long(func(n sim.Numbers) time.Duration { return n.WaitMax }))
	}
	out := []string{people(func(n sim.Numbers) int { return n.Admitted }) + " let in"}
	for _, o := range []struct {
		what string
		of   func(sim.Numbers) int
	}{
		{"left", func(n sim.Numbers) int { return n.Left }},
		{"were refused", func(n sim.Numbers) int { return n.Refused }},
		{"wait at the end", func(n sim.Numbers) int { return n.Waiting }},
	} {
		if slices.ContainsFunc(plan, func(r *sim.Result) bool { return o.of(r.Numbers) > 0 }) {
			out = append(out, people(o.of)+" "+o.what)
		}
	}
	line("end", "%s", strings.Join(out, ", "))
	line("requests", "%s for each visitor, until let in or gone", span(plan, func(r *sim.Result) float64 { return r.Numbers.Requests }, func(x float64) string { return fmt.Sprintf("%.1f", x) }))
	for i, l := range n.Lanes {
		of := func(f func(sim.LaneNumbers) time.Duration) string {
			return long(func(n sim.Numbers) time.Duration { return f(n.Lanes[i]) })
		}
		waited := "nobody waited"
		if slices.ContainsFunc(plan, func(r *sim.Result) bool { return r.Numbers.Lanes[i].WaitP95 > 0 }) {
			waited = fmt.Sprintf("half waited up to %s, 95 %% up to %s",
				of(func(l sim.LaneNumbers) time.Duration { return l.WaitP50 }), of(func(l sim.LaneNumbers) time.Duration { return l.WaitP95 }))
		}
		line(fmt.Sprintf("lane %d", l.Priority), "%s of %s let in; %s",
			people(func(n sim.Numbers) int { return n.Lanes[i].Admitted }), people(func(n sim.Numbers) int { return n.Lanes[i].Arrived }), waited)
	}
	if plan[0].Origin != nil {
		origin(line, plan)
	}
	if n.EtaTold > 0 {
		line("told", "half of the waits within %s of what was announced", part(func(n sim.Numbers) float64 { return n.EtaError }))
	} else if n.LotteryTold > 0 {
		line("told", "the announced quartiles are off by %s", part(func(n sim.Numbers) float64 { return n.LotteryError }))
	}
	if most.Numbers.Queued > 0 {
		line("idle", "%s of the slots while people waited", part(func(n sim.Numbers) float64 { return n.Idle }))
	}
}

// origin says how the origin did.
func origin(line func(name, format string, args ...any), plan []*sim.Result) {
	of := func(f func(*sim.OriginNumbers) int) string {
		return span(plan, func(r *sim.Result) int { return f(r.Origin) }, chart.Thousands)
	}
	line("origin", "%s of %s requests failed; %s admitted while it was dead, %s of them after its first second",
		of(func(o *sim.OriginNumbers) int { return o.Failed }), of(func(o *sim.OriginNumbers) int { return o.Requests }),
		of(func(o *sim.OriginNumbers) int { return o.AdmittedDead }), of(func(o *sim.OriginNumbers) int { return o.AdmittedDeadLate }))
}

// changes says in brackets what the plan changes and when.
func changes(sc sim.Scenario) string {
	var out []string
	before := sc.Settings.WithDefaults()
	if before.QueueAll {
		out = append(out, "all are held")
	}
	for _, c := range sc.Changes {
		now := c.Settings.WithDefaults()
		var what []string
		add := func(changed bool, format string, args ...any) {
			if changed {
				what = append(what, fmt.Sprintf(format, args...))
			}
		}
		add(now.TotalActiveUsers != before.TotalActiveUsers, "%s at once", chart.Thousands(now.TotalActiveUsers))
		add(now.NewUsersPerMinute != before.NewUsersPerMinute, "%s a minute", chart.Thousands(now.NewUsersPerMinute))
		add(now.QueueingMethod != before.QueueingMethod, "%s", now.QueueingMethod)
		add(now.QueueAll && !before.QueueAll, "all are held")
		add(!now.QueueAll && before.QueueAll, "open")
		add(now.SessionDuration != before.SessionDuration, "sessions of %s", wait(now.SessionDuration))
		if what == nil {
			what = []string{"other settings"}
		}
		out = append(out, fmt.Sprintf("from %s: %s", moment(c.At), strings.Join(what, ", ")))
		before = now
	}
	if len(out) == 0 {
		return ""
	}
	if len(out) > 4 {
		out = append(out[:3], fmt.Sprintf("and %d more changes", len(out)-3))
	}
	return "\n" + strings.Repeat(" ", 13) + strings.Join(out, "; ")
}

// empty says when the line was gone.
func empty(plan []*sim.Result) string {
	still := slices.MaxFunc(plan, func(a, b *sim.Result) int { return cmp.Compare(a.Numbers.Waiting, b.Numbers.Waiting) })
	if still.Numbers.Waiting > 0 || still.Numbers.LineEmpty == 0 {
		return "not gone at the end"
	}
	return "gone at " + span(plan, func(r *sim.Result) time.Duration { return r.Numbers.LineEmpty }, moment)
}

// rush is the most that arrived in a minute, or in the distance of two points where that is
// longer.
func rush(r *sim.Result) int {
	most, from := 0.0, 0
	for i, p := range r.Points {
		for from < i && p.At-r.Points[from].At > time.Minute {
			from++
		}
		start := max(0, min(from, i-1))
		if d := p.At - r.Points[start].At; d > 0 {
			most = max(most, float64(p.Arrived-r.Points[start].Arrived)/max(1, d.Minutes()))
		}
	}
	return int(most)
}

func promises(b *strings.Builder, r Report, plan []*sim.Result) {
	if a := plan[0].Algorithm; a == sim.Anteroom || a == "" {
		broken, looked := r.Broken(), 0
		for _, res := range plan {
			for _, c := range res.Checks {
				looked += c.Looked
			}
		}
		if len(broken) == 0 {
			fmt.Fprintf(b, "  %-10s all %d kept, looked at %s times\n", "promises", len(plan[0].Checks), chart.Thousands(looked))
		}
		for i, c := range broken {
			if i == 5 {
				fmt.Fprintf(b, "  %-10s and %d more\n", "", len(broken)-i)
				break
			}
			fmt.Fprintf(b, "  %-10s BROKEN: %s, %s of %s times, %s: %s\n", "promises", c.Name, chart.Thousands(c.Broken), chart.Thousands(c.Looked), c.Run(), c.First)
		}
	}
}

func sideBySide(b *strings.Builder, firsts []*sim.Result) {
	b.WriteString("\nWays of sharing the slots\n")
	rows := [][]string{{"", "above the limit", "in any minute", "page for nothing", "overtaken", "slots idle", "wait p50", "p95"}}
	for _, r := range firsts {
		n := r.Numbers
		rows = append(rows, []string{cmp.Or(r.Algorithm, sim.Anteroom), percent(n.OverActive), percent(n.OverAnyMinute),
			percent(n.Premature), percent(n.Overtaken), percent(n.Idle), wait(n.WaitP50), wait(n.WaitP95)})
	}
	table(b, rows)
}

func whatIf(b *strings.Builder, plan *sim.Result, variations []Variation) {
	b.WriteString("\nWhat if\n")
	rows := [][]string{{"", "", "inside", "in line", "wait p50", "p95", "let in", "line gone at"}}
	add := func(setting, value string, r *sim.Result) {
		gone := "–"
		if r.Numbers.Queued > 0 {
			gone = "not gone"
			if r.Numbers.Waiting == 0 && r.Numbers.LineEmpty > 0 {
				gone = moment(r.Numbers.LineEmpty)
			}
		}
		rows = append(rows, []string{setting, value, chart.Thousands(r.Numbers.PeakActive), chart.Thousands(r.Numbers.PeakWaiting),
			wait(r.Numbers.WaitP50), wait(r.Numbers.WaitP95), chart.Thousands(r.Numbers.Admitted), gone})
	}
	add("as planned", "", plan)
	last := ""
	for _, v := range variations {
		if v.Result == nil {
			continue
		}
		name := v.Setting
		if name == last {
			name = ""
		}
		last = v.Setting
		add(name, v.value(), v.Result)
	}
	table(b, rows)
}

// table writes rows with names at the left and numbers at the right of their columns.
func table(b *strings.Builder, rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			fill := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("  " + cell + fill)
			} else {
				b.WriteString("  " + fill + cell)
			}
		}
		b.WriteString("\n")
	}
}

// value says what the setting is at the start.
func (v Variation) value() string {
	switch s := v.Scenario.Settings; v.Setting {
	case "total_active_users":
		return chart.Thousands(s.TotalActiveUsers)
	case "new_users_per_minute":
		return chart.Thousands(s.NewUsersPerMinute)
	default:
		return string(cmp.Or(s.QueueingMethod, anteroom.FIFO))
	}
}

// span shows a number of several runs.
func span[T cmp.Ordered](plan []*sim.Result, of func(*sim.Result) T, show func(T) string) string {
	all := make([]T, len(plan))
	for i, r := range plan {
		all[i] = of(r)
	}
	slices.Sort(all)
	least, middle, most := show(all[0]), show(all[len(all)/2]), show(all[len(all)-1])
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s to %s)", middle, least, most)
}

func percent(x float64) string {
	switch {
	case x != 0 && x < 0.001 && x > -0.001:
		return "<0.1 %"
	case x < 0.1 && x > -0.1 && x != 0:
		return fmt.Sprintf("%.1f %%", 100*x)
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// wait writes how long something took, as exactly as it matters.
func wait(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", max(d.Seconds(), 1))
	case d < 10*time.Minute:
		d = d.Round(10 * time.Second)
		if s := int(d.Seconds()) % 60; s > 0 {
			return fmt.Sprintf("%dm%02ds", int(d.Minutes()), s)
		}
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return moment(d)
}

// moment writes a time since the start, to the minute.
func moment(d time.Duration) string {
	d = d.Round(time.Minute)
	h, m := int(d.Hours()), int(d.Minutes())%60
	switch {
	case h == 0:
		return fmt.Sprintf("%dm", m)
	case m == 0:
		return fmt.Sprintf("%dh", h)
	}
	return fmt.Sprintf("%dh%02dm", h, m)
}
