package figure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{thousands(0), "0"},
		{thousands(999), "999"},
		{thousands(1000), "1,000"},
		{thousands(-1234567), "-1,234,567"},
		{thousands(math.MinInt64), "-9,223,372,036,854,775,808"},
		{short(2_147_483_647), "2.15 bn"},
		{short(12_500_000), "12.5 m"},
		{short(1_500_000), "1,500,000"},
		{short(0.5), "0.5"},
		{percent(0), "0 %"},
		{percent(0.00001), "< 0.01 %"},
		{percent(0.0034), "0.34 %"},
		{percent(0.0345), "3.5 %"},
		{percent(0.5), "50 %"},
		{percent(12), "1,200 %"},
		{percent(math.NaN()), "0 %"},
		{span(300 * time.Millisecond), "0.3 s"},
		{span(90 * time.Second), "90 s"},
		{span(150 * time.Second), "2.5 min"},
		{span(30 * time.Minute), "30 min"},
		{span(125 * time.Minute), "2 h 05 min"},
		{sign(-0.1) + sign(0) + sign(2), "−+"},
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
		{sim.MaxLength, "0:00,24:00,48:00,72:00,96:00,120:00,144:00,168:00 h"},
	} {
		s := times(c.length, 10)
		var says []string
		for _, v := range s.marks() {
			says = append(says, s.say(v))
		}
		if got := strings.Join(says, ",") + " " + s.unit; got != c.want {
			t.Errorf("%v: %s, want %s", c.length, got, c.want)
		}
	}
}

// TestMarks: at any size there are some marks and not too many, and they rise.
func TestMarks(t *testing.T) {
	t.Parallel()
	for v := 0.001; v < 1e18; v *= 1.7 {
		for name, s := range map[string]scale{"counts": counts(v, 6), "shares": shares(v, 6), "times": times(time.Duration(min(v*1e6, 9e18)), 6)} {
			if marks := s.marks(); len(marks) < 1 || len(marks) > 13 || !slices.IsSorted(marks) || marks[len(marks)-1] > s.max*1.001 {
				t.Errorf("%s to %g: marks %v", name, v, marks)
			}
		}
	}
}

// TestNoPeakHidden: one moment among many is seen at its height.
func TestNoPeakHidden(t *testing.T) {
	t.Parallel()
	p := panel{left: 10, top: 10, width: 100, height: 100, x: times(time.Hour, 10), y: counts(100, 5)}
	const n = 36_000
	at := func(i int) float64 { return float64(i) / 10 }
	value := func(i int) float64 {
		if i == 12_345 {
			return 99
		}
		return 1
	}
	tops := p.tops(n, at, value)
	if len(tops) < 100 || len(tops) > 101 {
		t.Fatalf("%d columns", len(tops))
	}
	for i, v := range tops {
		if want := map[bool]float64{true: 99, false: 1}[i == 34]; v != want {
			t.Errorf("column %d: %g, want %g", i, v, want)
		}
	}
	if last := p.lasts(n, at, func(i int) float64 { return float64(i) }); last[50] <= last[49] || last[50] != 18_359 {
		t.Errorf("last value of column 50: %g", last[50])
	}
}

// TestFewPoints: between two moments the earlier value holds.
func TestFewPoints(t *testing.T) {
	t.Parallel()
	p := panel{width: 10, height: 100, x: scale{max: 10}, y: scale{max: 10}}
	at := []float64{0, 4, 9}
	v := []float64{3, 7, 5}
	got := p.tops(3, func(i int) float64 { return at[i] }, func(i int) float64 { return v[i] })
	if want := []float64{3, 3, 3, 3, 7, 7, 7, 7, 7, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := p.tops(0, nil, nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestBands: at most twelve sites have names, the largest; nobody is lost among the others.
func TestBands(t *testing.T) {
	t.Parallel()
	r := &sim.Result{Places: []string{"first"}}
	q := sim.Point{}
	for i := range 15 {
		q.Sites = append(q.Sites, int32(100-i))
	}
	r.Points = []sim.Point{q, {Sites: q.Sites[:3]}}
	all := bands(r)
	if len(all) != 13 || all[0].name != "first" || all[1].name != "site 2" || all[12].name != "3 others" {
		t.Fatalf("bands %+v", all)
	}
	for _, q := range r.Points {
		n := 0.0
		for _, b := range all {
			n += b.at(q)
		}
		if n != sum(q) {
			t.Errorf("the layers have %g, the sites %g", n, sum(q))
		}
	}
}

// TestCells: the heat map counts everybody admitted once, and what the sample stands for.
func TestCells(t *testing.T) {
	t.Parallel()
	r := small(anteroom.Random, sim.Anteroom, 0)
	c, err := newCanvas(900, 500, SVG)
	if err != nil {
		t.Fatal(err)
	}
	p := sideBySide(c, []*sim.Result{r})[0]
	total := func() (n float64) {
		for _, column := range p.cells(r) {
			for _, v := range column {
				n += v
			}
		}
		return n
	}
	if got := total(); got != float64(r.Numbers.Admitted) || got == 0 {
		t.Errorf("%g in the cells, %d admitted", got, r.Numbers.Admitted)
	}
	r.Numbers.Arrived *= 2 // as if every second were in the sample
	if got := total(); math.Abs(got-2*float64(r.Numbers.Admitted)) > 1e-6 {
		t.Errorf("%g in the cells, want twice %d", got, r.Numbers.Admitted)
	}
	if level(1, 1) != heatLevels-1 || level(1, 1e9) != 0 || shade(0) == shade(heatLevels-1) {
		t.Error("levels are not from few to many")
	}
}

// TestSome spreads evenly and keeps the bound.
func TestSome(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 99, 100, 101, 12_345} {
		var got []int
		some(n, 100, func(i int) { got = append(got, i) })
		if len(got) > 101 || len(got) < min(n, 100) || (n > 0 && (got[0] != 0 || got[len(got)-1] >= n)) {
			t.Errorf("%d things: %d passed", n, len(got))
		}
	}
}

// TestCalibration: quartiles that are true lie on the line. Waits are even over 100 s, and the
// announcement knows it.
func TestCalibration(t *testing.T) {
	t.Parallel()
	r := &sim.Result{Algorithm: sim.Anteroom}
	r.Scenario.QueueingMethod = anteroom.Random
	for i := range 3000 {
		at := time.Duration(i) * time.Second
		wait := time.Duration(i*37%100)*time.Second + time.Microsecond
		r.Visits = append(r.Visits, sim.Visit{Arrived: at, TellAt: at, Admitted: at + wait, Shown: true, Told25: 25 * time.Second, Told: 50 * time.Second, Told75: 75 * time.Second})
	}
	r.Ran = time.Hour
	for third, shares := range calibrate(r) {
		for i, got := range shares {
			if want := 0.25 * float64(i+1); math.Abs(got-want) > 0.001 {
				t.Errorf("third %d: %.3f admitted within the quartile, want %.2f", third+1, got, want)
			}
		}
	}
	for i := range r.Visits { // who goes on waiting is outside every quartile that has passed
		r.Visits[i].Admitted = 0
	}
	if got := calibrate(r)[0]; got != [3]float64{} {
		t.Errorf("nobody admitted: %v", got)
	}
	for i := range r.Visits { // who gives up at once says nothing
		r.Visits[i].Left = r.Visits[i].Arrived + time.Second
	}
	if got := calibrate(r)[0]; !math.IsNaN(got[0]) {
		t.Errorf("all gave up: %v", got)
	}
}
