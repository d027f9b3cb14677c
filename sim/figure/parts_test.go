package figure

import (
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// TestSign says which way something is off.
func TestSign(t *testing.T) {
	t.Parallel()
	if got := sign(-0.1) + sign(0) + sign(2); got != "−+" {
		t.Errorf("%q", got)
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
	c, err := chart.New(900, 500, chart.SVG)
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
