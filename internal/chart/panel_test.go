package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Thousands(0), "0"},
		{Thousands(999), "999"},
		{Thousands(1000), "1,000"},
		{Thousands(-1234567), "-1,234,567"},
		{Thousands(math.MinInt64), "-9,223,372,036,854,775,808"},
		{Short(2_147_483_647), "2.15 bn"},
		{Short(12_500_000), "12.5 m"},
		{Short(1_500_000), "1,500,000"},
		{Short(0.5), "0.5"},
		{Percent(0), "0 %"},
		{Percent(0.00001), "< 0.01 %"},
		{Percent(0.0034), "0.34 %"},
		{Percent(0.0345), "3.5 %"},
		{Percent(0.5), "50 %"},
		{Percent(12), "1,200 %"},
		{Percent(math.NaN()), "0 %"},
		{Span(300 * time.Millisecond), "0.3 s"},
		{Span(90 * time.Second), "90 s"},
		{Span(150 * time.Second), "2.5 min"},
		{Span(30 * time.Minute), "30 min"},
		{Span(125 * time.Minute), "2 h 05 min"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestTimeMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length time.Duration
		want   string
	}{
		{0, "0,1 s"},
		{45 * time.Second, "0,5,10,15,20,25,30,35,40,45 s"},
		{10 * time.Minute, "0,1,2,3,4,5,6,7,8,9,10 min"},
		{30 * time.Minute, "0,5,10,15,20,25,30 min"},
		{90 * time.Minute, "0,10,20,30,40,50,60,70,80,90 min"},
		{3 * time.Hour, "0:00,0:20,0:40,1:00,1:20,1:40,2:00,2:20,2:40,3:00 h"},
		{24 * time.Hour, "0:00,3:00,6:00,9:00,12:00,15:00,18:00,21:00,24:00 h"},
		{7 * 24 * time.Hour, "0:00,24:00,48:00,72:00,96:00,120:00,144:00,168:00 h"},
	} {
		s := Times(c.length, 10)
		var says []string
		for _, v := range s.marks() {
			says = append(says, s.Say(v))
		}
		if got := strings.Join(says, ",") + " " + s.Unit; got != c.want {
			t.Errorf("%v: %s, want %s", c.length, got, c.want)
		}
	}
}

// TestClockMarksOfAZone: marks stand at whole hours of the zone, where it is half an hour off.
func TestClockMarksOfAZone(t *testing.T) {
	from := time.Date(2026, 11, 26, 9, 10, 0, 0, time.FixedZone("IST", 5*3600+1800))
	s := Clock(from, from.Add(6*time.Hour), 6)
	if s.First != 50*60 || s.Say(s.First) != "10:00" {
		t.Errorf("the first mark is at %v s: %s", s.First, s.Say(s.First))
	}
}

// TestClockMarks: marks stand at whole hours or days of the clock, wherever the time begins.
func TestClockMarks(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 27, 9, 55, 0, 0, time.UTC)
	for _, c := range []struct {
		length time.Duration
		want   string
	}{
		{20 * time.Second, "09:55:00,09:55:05,09:55:10,09:55:15,09:55:20"},
		{3 * time.Hour, "10:00,10:30,11:00,11:30,12:00,12:30"},
		{30 * time.Hour, "27 Nov 12:00,27 Nov 18:00,28 Nov 00:00,28 Nov 06:00,28 Nov 12:00"},
		{5 * 24 * time.Hour, "28 Nov,29 Nov,30 Nov,1 Dec,2 Dec"},
	} {
		s := Clock(from, from.Add(c.length), 6)
		var says []string
		for _, v := range s.marks() {
			says = append(says, s.Say(v))
		}
		if got := strings.Join(says, ","); got != c.want {
			t.Errorf("%v: %s, want %s", c.length, got, c.want)
		}
	}
}

// TestMarks: at any size there are some marks and not too many, and they rise.
func TestMarks(t *testing.T) {
	t.Parallel()
	for v := 0.001; v < 1e18; v *= 1.7 {
		for name, s := range map[string]Scale{"counts": Counts(v, 6), "shares": Shares(v, 6), "times": Times(time.Duration(min(v*1e6, 9e18)), 6)} {
			if marks := s.marks(); len(marks) < 1 || len(marks) > 13 || !slices.IsSorted(marks) || marks[len(marks)-1] > s.Max*1.001 {
				t.Errorf("%s to %g: marks %v", name, v, marks)
			}
		}
	}
}

// TestNoPeakHidden: one moment among many is seen at its height.
func TestNoPeakHidden(t *testing.T) {
	t.Parallel()
	p := Panel{Left: 10, Top: 10, Width: 100, Height: 100, X: Times(time.Hour, 10), Y: Counts(100, 5)}
	const n = 36_000
	at := func(i int) float64 { return float64(i) / 10 }
	value := func(i int) float64 {
		if i == 12_345 {
			return 99
		}
		return 1
	}
	tops := p.Tops(Values{n, at, value})
	if len(tops) < 100 || len(tops) > 101 {
		t.Fatalf("%d columns", len(tops))
	}
	for i, v := range tops {
		if want := map[bool]float64{true: 99, false: 1}[i == 34]; v != want {
			t.Errorf("column %d: %g, want %g", i, v, want)
		}
	}
	if last := p.Lasts(Values{n, at, func(i int) float64 { return float64(i) }}); last[50] <= last[49] || last[50] != 18_359 {
		t.Errorf("last value of column 50: %g", last[50])
	}
}

// TestFewPoints: between two moments the earlier value holds.
func TestFewPoints(t *testing.T) {
	t.Parallel()
	p := Panel{Width: 10, Height: 100, X: Scale{Max: 10}, Y: Scale{Max: 10}}
	at := []float64{0, 4, 9}
	v := []float64{3, 7, 5}
	got := p.Tops(Values{3, func(i int) float64 { return at[i] }, func(i int) float64 { return v[i] }})
	if want := []float64{3, 3, 3, 3, 7, 7, 7, 7, 7, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	v[1] = math.NaN()
	gap := p.steps(p.Tops(Values{3, func(i int) float64 { return at[i] }, func(i int) float64 { return v[i] }}))
	if len(gap) != 2 || gap[0][1] != (Point{3, 70}) || gap[1][0] != (Point{9, 50}) {
		t.Errorf("a value that is not known: lines %v, want a gap", gap)
	}
	if got := p.Tops(Values{}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
