package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Scale is an axis: values from 0 to Max, with marks from First on at every Step.
type Scale struct {
	Max, Step, First float64
	Say              func(float64) string // a value on the axis
	Unit             string               // said once, at the first mark; empty when every mark says it
}

// marks returns the values that are marked, at most 40.
func (s Scale) marks() []float64 {
	var out []float64
	for i := range 40 {
		v := s.First + float64(i)*s.Step
		if v > s.Max*1.0001 {
			break
		}
		out = append(out, v)
	}
	return out
}

// Counts is a scale of things that come in whole numbers, with about so many marks.
func Counts(most float64, marks int) Scale {
	most = max(1, Finite(most))
	return Scale{Max: most, Step: max(1, Round125(most/float64(marks))), Say: Short}
}

// Shares is a scale of shares of 0 to 1, said in percent.
func Shares(most float64, marks int) Scale {
	most = max(0.001, Finite(most))
	return Scale{Max: most, Step: Round125(most / float64(marks)), Say: Percent}
}

// Times is a scale of seconds for a run or a wait of the length, with about so many marks.
func Times(length time.Duration, marks int) Scale {
	s := Scale{Max: max(1, length.Seconds())}
	s.Step = timeStep(s.Max, marks)
	for s.Max/s.Step > float64(2*marks) {
		s.Step *= 2
	}
	switch {
	case s.Max < 180 && s.Step < 60:
		s.Unit, s.Say = "s", func(v float64) string { return Trimmed(v, 0) }
	case s.Max < 2*3600:
		s.Unit, s.Say = "min", func(v float64) string { return Trimmed(v/60, 1) }
	default:
		s.Unit, s.Say = "h", func(v float64) string {
			m := int(math.Round(v / 60))
			return fmt.Sprintf("%s:%02d", Thousands(m/60), m%60)
		}
	}
	return s
}

// Clock is a scale of the seconds since from, for the time until to, said in the zone of from as the clock and the
// calendar show it, with about so many marks.
func Clock(from, to time.Time, marks int) Scale {
	s := Times(to.Sub(from), marks)
	step := time.Duration(s.Step * float64(time.Second))
	_, east := from.Zone()
	local := from.Add(time.Duration(east) * time.Second) // so that marks stand at whole hours and days of the zone
	s.First = local.Truncate(step).Sub(local).Seconds()
	if s.First < 0 {
		s.First += s.Step
	}
	layout := "15:04"
	switch {
	case step >= 24*time.Hour:
		layout = "2 Jan"
	case to.Sub(from) > 24*time.Hour:
		layout = "2 Jan 15:04"
	case step < time.Minute:
		layout = "15:04:05"
	}
	s.Unit, s.Say = "", func(v float64) string {
		return from.Add(time.Duration(math.Round(v)) * time.Second).Format(layout)
	}
	return s
}

// timeSteps are the distances between marks that people read at a glance.
var timeSteps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// timeStep is the distance in seconds, of which at most so many fit into a length, or the longest.
func timeStep(length float64, marks int) float64 {
	for _, step := range timeSteps {
		if length/step.Seconds() <= float64(marks) {
			return step.Seconds()
		}
	}
	return timeSteps[len(timeSteps)-1].Seconds()
}

// Moment says a value of a scale of times with its unit.
func (s Scale) Moment(seconds float64) string {
	return s.Say(seconds) + " " + s.Unit
}

// Round125 rounds up to 1, 2 or 5 times a power of ten.
func Round125(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*1.0001 {
			return m * p
		}
	}
	return 10 * p
}

// Finite returns v, or 0 for what cannot be drawn, and not more than fits beside an axis.
func Finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return min(v, 1e13)
}

// Trimmed writes v with at most so many decimals.
func Trimmed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Thousands writes n with separators.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Short writes a count for an axis.
func Short(v float64) string {
	switch {
	case v >= 1e9:
		return Trimmed(v/1e9, 2) + " bn"
	case v >= 1e7:
		return Trimmed(v/1e6, 1) + " m"
	case v != math.Trunc(v):
		return Trimmed(v, 2)
	}
	return Thousands(int(v))
}

// Percent writes a share of 0 to 1 with what decimals it needs.
func Percent(share float64) string {
	p := Finite(share) * 100
	switch {
	case p == 0:
		return "0 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 1:
		return Trimmed(p, 2) + " %"
	case p < 10:
		return Trimmed(p, 1) + " %"
	}
	return Thousands(int(math.Round(min(p, 1e12)))) + " %"
}

// Span says a duration for people.
func Span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 10:
		return Trimmed(s, 1) + " s"
	case s < 120:
		return Trimmed(s, 0) + " s"
	case s < 600:
		return Trimmed(s/60, 1) + " min"
	case s < 2*3600:
		return Trimmed(s/60, 0) + " min"
	}
	m := int(math.Round(d.Minutes()))
	return fmt.Sprintf("%s h %02d min", Thousands(m/60), m%60)
}
