package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// grouped writes a number with its thousands apart. Less than ten has a digit after the point.
func grouped(v float64) string {
	if v != math.Trunc(v) && math.Abs(v) < 10 {
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	digits := strconv.FormatInt(int64(math.Round(math.Abs(v))), 10)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// duration writes seconds as people say them.
func duration(s float64) string {
	switch {
	case s < 10:
		return strconv.FormatFloat(math.Round(s*10)/10, 'f', -1, 64) + " s"
	case s < 90:
		return strconv.FormatFloat(math.Round(s), 'f', -1, 64) + " s"
	case s < 600:
		n := int64(math.Round(s))
		if n%60 == 0 {
			return fmt.Sprintf("%d min", n/60)
		}
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	case s < 5400:
		return fmt.Sprintf("%d min", int64(math.Round(s/60)))
	}
	m := int64(math.Round(s / 60))
	if m%60 == 0 {
		return fmt.Sprintf("%d h", m/60)
	}
	return fmt.Sprintf("%d h %d min", m/60, m%60)
}

func percent(share *float64) string {
	if share == nil {
		return "not known"
	}
	v := *share * 100
	switch {
	case v > 0 && v < 0.1:
		return "less than 0.1 %"
	case v < 10:
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " %"
	}
	return strconv.FormatFloat(math.Round(v), 'f', -1, 64) + " %"
}

// people writes a number with the word for it.
func people(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(float64(n)) + " " + many
}

// clock writes a moment in the report's zone, without seconds.
func (r *Report) clock(t time.Time) string { return t.In(r.zone).Format("2 Jan 2006, 15:04 MST") }

// summary says the most important in sentences.
func (r *Report) summary() []string {
	var out []string
	say := func(text string, args ...any) { out = append(out, fmt.Sprintf(text, args...)) }
	f := r.Figures
	say("%s admitted, %s of them without waiting.", people(f.LetIn, "visitor was", "visitors were"), grouped(float64(f.AtOnce)))
	if p := r.Peaks.QueuedUsers; p != nil && p.Value > 0 {
		say("At most %s in the queue at the same time (%s).", people(p.Value, "visitor was", "visitors were"), r.clock(p.At))
	}
	if d := r.spread("waited"); d != nil {
		say("Of the visitors who waited, half were admitted within %s and 95 %% within %s; the longest wait was %s.", duration(d.P50), duration(d.P95), duration(d.Max))
	}
	if f.Joined > 0 {
		say("%s of %s gave up (%s).", grouped(float64(f.Abandoned)), people(f.Joined, "visitor in the queue", "visitors in the queue"), percent(f.AbandonedOf))
	}
	if e := r.Estimates; e.Compared > 0 {
		say("%s waited longer than the first estimate said.", percent(e.LateOf))
	}
	return out
}

func (r *Report) spread(name string) *Spread {
	for i := range r.Durations {
		if r.Durations[i].Name == name {
			return &r.Durations[i]
		}
	}
	return nil
}

func (r *Report) peopleSummary() string {
	a, q := r.Peaks.ActiveUsers, r.Peaks.QueuedUsers
	if a == nil || q == nil {
		return "Not known."
	}
	return fmt.Sprintf("At most %s active users (%s) and %s visitors in the queue (%s).", grouped(float64(a.Value)), r.clock(a.At), grouped(float64(q.Value)), r.clock(q.At))
}

func (r *Report) newSummary() string {
	n := r.Peaks.NewUsers
	if n == nil {
		return "Not known."
	}
	return fmt.Sprintf("%s in the busiest minute (%s).", people(n.Value, "visitor", "visitors"), r.clock(n.At))
}

func (r *Report) waitSummary() string {
	d := r.spread("waited")
	if d == nil {
		return "No visitor was admitted from the queue."
	}
	return fmt.Sprintf("Of %s admitted from the queue, half waited less than %s.", people(d.Count, "visitor", "visitors"), duration(d.P50))
}
