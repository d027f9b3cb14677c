package rig

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim"
)

// Outcome is what a run came to.
type Outcome struct {
	Case      Case
	Network   string
	Seed      uint64
	Scale     float64
	Took      time.Duration
	Report    judge.Report
	Numbers   sim.Numbers
	Simulated *sim.Numbers // nil where there is none
	Silence   time.Duration
	Faults    []string // of processes
	Warnings  map[string]int
	Moments   []Moment
	Marks     []Mark
	Pauses    []time.Duration // after each of them, see pauses
	Calm      time.Duration   // the longest such pause between them
	Sites     []string
	Dir       string
}

// broken are the rules that this run may not break and did.
func (o *Outcome) broken() []judge.Finding {
	return slices.DeleteFunc(slices.Clone(o.Report.Findings), func(f judge.Finding) bool {
		_, allowed := o.Case.Allowed[f.Rule]
		if f.Rule == "order" && method(o.Case.Room) != "fifo" {
			return true // who is drawn passes others
		}
		return f.Violations == 0 || allowed && o.bounded(&o.Numbers)
	})
}

// passable is the share of the queued that may be passed while a site is out of touch: the
// goal's, or, where a short world is hard, half as many again as the simulator has in it.
func (o *Outcome) passable() float64 {
	share := cmp.Or(o.Case.Passing.Share, 0.05)
	if o.Simulated == nil {
		return share
	}
	return max(share, 1.5*o.Simulated.Overtaken)
}

func (o *Outcome) bounded(n *sim.Numbers) bool {
	return n.Overtaken <= o.passable() && n.OvertakenMost <= o.Case.Passing.lead()
}

// OK reports whether every promise was kept and no process failed.
func (o *Outcome) OK() bool {
	return len(o.broken()) == 0 && len(o.Faults) == 0 && (o.Case.Pauses == Pause{} || o.brief())
}

// brief says that somebody was admitted soon after each fault.
func (o *Outcome) brief() bool {
	median, worst := o.paused()
	return median <= o.Case.Pauses.Median && worst <= o.Case.Pauses.Worst
}

func (o *Outcome) paused() (median, worst time.Duration) {
	sorted := slices.Sorted(slices.Values(o.Pauses))
	if len(sorted) == 0 {
		return 0, 0
	}
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// goal is a row of the table of numbers.
type goal struct {
	what, want string
	show       func(n *sim.Numbers) string
	good       func(n *sim.Numbers) bool // nil: there is no goal here
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
func span(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(time.Second / 10).String()
	}
	return d.Round(time.Millisecond).String()
}

func (o *Outcome) goals() []goal {
	c := o.Case
	overtaken, lead := "0", ""
	switch {
	case method(c.Room) != "fifo":
		overtaken = ""
	case c.Allowed["order"] != "":
		overtaken, lead = fmt.Sprintf("≤ %g %%", 100*o.passable()), fmt.Sprintf(", by ≤ %g s", o.Case.Passing.lead().Seconds())
	}
	late := c.Faults != nil || c.NoSimulation != ""
	g := []goal{
		{"arrived, admitted, waiting at the end", "", func(n *sim.Numbers) string {
			return fmt.Sprintf("%d, %d, %d", n.Arrived, n.Admitted, n.Waiting)
		}, nil},
		{"most active at once", fmt.Sprintf("≤ %d", c.Room.Active), func(n *sim.Numbers) string { return fmt.Sprint(n.PeakActive) }, nil},
		{"most new in 60 s", fmt.Sprintf("≤ %d", c.Room.PerMinute), func(n *sim.Numbers) string { return fmt.Sprint(n.PeakPerMinute) }, nil},
		{"shown the page although a slot was free", "≤ 0.3 %", func(n *sim.Numbers) string { return percent(n.Premature) }, func(n *sim.Numbers) bool { return late || n.Premature <= 0.003 }},
		{"overtaken by more than 1 s", overtaken + lead, func(n *sim.Numbers) string {
			return percent(n.Overtaken) + ", most " + span(n.OvertakenMost)
		}, func(n *sim.Numbers) bool {
			return n.Overtaken == 0 || method(c.Room) != "fifo" || c.Allowed["order"] != "" && o.bounded(n)
		}},
		{"freed slot taken, p50", "< 0.6 s", func(n *sim.Numbers) string { return span(n.IdleP50) }, func(n *sim.Numbers) bool { return late || n.IdleP50 < 600*time.Millisecond }},
		{"freed slot taken, p95", "< 1.5 s", func(n *sim.Numbers) string { return span(n.IdleP95) }, func(n *sim.Numbers) bool { return late || n.IdleP95 < 1500*time.Millisecond }},
		{"idle slots while people wait", "< 4 %", func(n *sim.Numbers) string { return percent(n.Idle) }, func(n *sim.Numbers) bool { return late || n.Idle < 0.04 }},
		{"waits: median, 95 %, longest", "", func(n *sim.Numbers) string {
			return span(n.WaitP50) + ", " + span(n.WaitP95) + ", " + span(n.WaitMax)
		}, nil},
	}
	if method(c.Room) == "fifo" {
		g = append(g, goal{"forecast: median error, bias, within 12 %", "≤ 7 %, ±5 %, ≥ 80 %", func(n *sim.Numbers) string {
			if n.EtaWithin == 0 && n.EtaError == 0 {
				return "no wait of 30 s"
			}
			return fmt.Sprintf("%s, %s, %.0f %%", percent(n.EtaError), percent(n.EtaBias), 100*n.EtaWithin)
		}, nil})
	} else {
		g = append(g, goal{"winners' rank by arrival, less a half", "±0.05", func(n *sim.Numbers) string { return fmt.Sprintf("%.3f", n.LotteryRank) },
			func(n *sim.Numbers) bool { return n.LotteryRank < 0.05 && n.LotteryRank > -0.05 }})
	}
	if c.Pauses != (Pause{}) {
		g = append(g, goal{"nobody admitted after a fault, though the rate allowed it: median, longest", fmt.Sprintf("≤ %v, ≤ %v", c.Pauses.Median, c.Pauses.Worst), func(*sim.Numbers) string {
			median, worst := o.paused()
			return fmt.Sprintf("%s, %s (of %d; between the faults up to %s)", span(median), span(worst), len(o.Pauses), span(o.Calm))
		}, func(*sim.Numbers) bool { return o.brief() }})
	}
	return append(g,
		goal{"sent back within the session, of the admitted", "0", func(n *sim.Numbers) string { return percent(n.SentBack) }, nil},
		goal{"requests per visitor until inside", "≤ 5", func(n *sim.Numbers) string { return fmt.Sprintf("%.1f", n.Requests) }, func(n *sim.Numbers) bool { return late || n.Requests <= 5 }},
		goal{"request inside until the origin has it: mean, p99", "", func(n *sim.Numbers) string { return span(n.HeldMean) + ", " + span(n.HeldP99) }, nil},
		goal{"between sites, per second and site", "≤ 10 messages", func(n *sim.Numbers) string {
			return fmt.Sprintf("%.1f, %.1f KB", n.Messages, n.Bytes/1000)
		}, nil},
	)
}

// Write writes the outcome for people: numbers beside the simulator's, then the promises.
func (o *Outcome) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\nseed %d, scale %g, %v, %s\n\n", o.Case.Name, o.Case.About, o.Seed, o.Scale, o.Took.Round(time.Second), o.Network)
	t := tabwriter.NewWriter(&b, 0, 4, 3, ' ', 0)
	fmt.Fprintf(t, "number\tgoal\trig\tsimulator\t\n")
	for _, g := range o.goals() {
		simulated, verdict := "n/a", ""
		if o.Simulated != nil {
			simulated = g.show(o.Simulated)
		}
		if g.good != nil && !g.good(&o.Numbers) {
			verdict = "missed"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", g.what, g.want, g.show(&o.Numbers), simulated, verdict)
	}
	fmt.Fprintf(t, "longest time without any request at the origin\t\t%s\tn/a\t\n", span(o.Silence))
	t.Flush()
	if o.Simulated == nil {
		fmt.Fprintf(&b, "(no simulation: %s)\n", o.Case.NoSimulation)
	} else {
		b.WriteString("(between sites the rig counts packets, the simulator messages; inside the simulator a request takes no time but that of calls between processes)\n")
	}
	b.WriteString("\n")
	if err := o.Report.WriteTable(&b); err != nil {
		return err
	}
	for rule, why := range o.Case.Allowed {
		fmt.Fprintf(&b, "\n%q is judged by the table above: %s\n", rule, why)
	}
	for _, f := range o.Faults {
		fmt.Fprintf(&b, "\nFAULT: %s\n", f)
	}
	if len(o.Warnings) > 0 {
		b.WriteString("\nsaid by the nodes:\n")
		for _, msg := range slices.Sorted(maps.Keys(o.Warnings)) {
			fmt.Fprintf(&b, "%6d × %s\n", o.Warnings[msg], msg)
		}
	}
	if o.OK() {
		fmt.Fprintf(&b, "\n%s: kept\n", o.Case.Name)
	} else {
		fmt.Fprintf(&b, "\n%s: BROKEN; everything is in %s\n", o.Case.Name, o.Dir)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
