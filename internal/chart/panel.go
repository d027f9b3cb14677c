package chart

import (
	"image/color"
	"math"
	"slices"
)

// Measures that pictures share, in pixels.
const (
	MarginLeft  = 68 // for the marks of the vertical axis
	MarginRight = 76 // for labels beside the panels
	HeadHeight  = 92 // title, a line below it, the first panel's heading
	GapHeight   = 40 // between panels that share an axis: the heading of the lower one
	FootHeight  = 34 // marks of the time axis
)

// Panel is a rectangle with axes on a canvas.
type Panel struct {
	On                       *Canvas
	Left, Top, Width, Height float64
	X, Y                     Scale
}

// Bottom and Right are the other edges.
func (p Panel) Bottom() float64 { return p.Top + p.Height }
func (p Panel) Right() float64  { return p.Left + p.Width }

// PX and PY place values; what lies outside is put at the edge.
func (p Panel) PX(v float64) float64 {
	return p.Left + p.Width*min(1, max(0, v/p.X.Max))
}

func (p Panel) PY(v float64) float64 {
	return p.Bottom() - p.Height*min(1, max(0, v/p.Y.Max))
}

// Frame draws ground and axes. Heading says what the vertical axis counts, note more about
// it. Without xLabels the horizontal axis has marks only: the panel below names them.
func (p Panel) Frame(heading, note string, xLabels bool) {
	p.Grid()
	p.YAxis()
	if xLabels {
		p.XAxis("")
	}
	p.Heading(heading, note)
}

// Heading writes above the panel, the note no wider than the panel.
func (p Panel) Heading(heading, note string) {
	h := Style{Size: 13, Bold: true, Color: Dark}
	p.On.Text(h, Point{p.Left, p.Top - 9}, heading)
	if note != "" {
		n := Style{Size: 12, Color: Faint}
		x := p.Left + h.Wide(heading) + 10
		p.On.Text(n, Point{x, p.Top - 9}, n.Fit(note, p.Right()-x))
	}
}

// YAxis writes the marks of the vertical axis.
func (p Panel) YAxis() {
	for _, v := range p.Y.marks() {
		p.On.Text(Style{Size: 12, Color: Faint, Anchor: 1}, Point{p.Left - 7, p.PY(v) + 4}, p.Y.Say(v))
	}
}

// Grid draws a line for each mark.
func (p Panel) Grid() {
	var lines [][]Point
	for _, v := range p.Y.marks() {
		lines = append(lines, []Point{{p.Left, p.PY(v)}, {p.Right(), p.PY(v)}})
	}
	for _, v := range p.X.marks() {
		lines = append(lines, []Point{{p.PX(v), p.Top}, {p.PX(v), p.Bottom()}})
	}
	p.On.Stroke(Grid, 1, nil, lines...)
	p.On.Stroke(Outline, 1, nil, []Point{{p.Left, p.Bottom()}, {p.Right(), p.Bottom()}})
}

// XAxis writes the marks of the horizontal axis, the unit at the first of them, where there is
// room for it beside another panel too, and what it measures below, if that is given.
func (p Panel) XAxis(what string) {
	for i, v := range p.X.marks() {
		say := p.X.Say(v)
		s := Style{Size: 12, Color: Faint, Anchor: 0.5}
		p.On.Text(s, Point{p.PX(v), p.Bottom() + 17}, say)
		if i == 0 {
			p.On.Text(Style{Size: 12, Color: Faint}, Point{p.PX(v) + s.Wide(say)/2 + 3, p.Bottom() + 17}, p.X.Unit)
		}
	}
	if what != "" {
		p.On.Text(Style{Size: 12, Color: Dark, Anchor: 0.5}, Point{p.Left + p.Width/2, p.Bottom() + 35}, what)
	}
}

// Says writes that there is nothing to draw, and why.
func (p Panel) Says(why string) {
	p.On.Text(Style{Size: 13, Color: Faint, Anchor: 0.5}, Point{p.Left + p.Width/2, p.Top + p.Height/2 + 4}, why)
}

// legible returns where a text around x is written so that it stays within the panel.
func (p Panel) legible(s Style, x float64, say string) Point {
	w := s.Wide(say)
	return Point{min(p.Right()-w-2, max(p.Left+2, x-w/2)), 0}
}

// Values are what a panel shows over its horizontal axis: N values, each from its moment to the
// next one. One that is not a number is not known, which leaves a gap.
type Values struct {
	N     int
	At    func(i int) float64 // ascending; what is not is passed over
	Value func(i int) float64
}

// Constant is one value from 0 to an end.
func Constant(value, end float64) Values {
	return Values{N: 2, At: func(i int) float64 { return float64(i) * end }, Value: func(int) float64 { return value }}
}

// Highest returns the largest of the values and the first moment that had it; 0 and 0 without any.
func (v Values) Highest() (most, at float64) {
	for i := range v.N {
		if one := Finite(v.Value(i)); one > most {
			most, at = one, v.At(i)
		}
	}
	return most, at
}

// Crests returns for each column of pixels the index of the highest value in it; in a column
// without values the one before goes on. Past the last moment there is no column.
func (p Panel) Crests(v Values) []int {
	if v.N == 0 {
		return nil
	}
	out := make([]int, 1, int(p.Width)+1)
	for i := range v.N {
		to := int(p.PX(Finite(v.At(i))) - p.Left)
		if to < len(out)-1 {
			continue // not ascending
		}
		first := to > len(out)-1
		for len(out) <= to {
			out = append(out, max(0, i-1))
		}
		if before := v.Value(out[to]); first || math.IsNaN(before) || v.Value(i) >= before {
			out[to] = i
		}
	}
	return out
}

// Tops returns the highest value in each column of pixels.
func (p Panel) Tops(v Values) []float64 { return Pick(p.Crests(v), v.Value) }

// Lasts returns the last value in each column: for limits.
func (p Panel) Lasts(v Values) []float64 {
	return Pick(p.Crests(Values{v.N, v.At, func(i int) float64 { return float64(i) }}), v.Value)
}

// Pick returns the values of the columns that Crests returned.
func Pick(columns []int, value func(int) float64) []float64 {
	out := make([]float64, len(columns))
	for i, c := range columns {
		if out[i] = value(c); !math.IsNaN(out[i]) {
			out[i] = Finite(out[i])
		}
	}
	return out
}

// steps returns the corners of the columns' outline, a line for each run of columns that are known.
func (p Panel) steps(columns []float64) (lines [][]Point) {
	for i := 0; i < len(columns); i++ {
		if math.IsNaN(columns[i]) {
			continue
		}
		line := []Point{{p.Left + float64(i), p.PY(columns[i])}}
		for i++; i < len(columns) && !math.IsNaN(columns[i]); i++ {
			if columns[i] != columns[i-1] {
				x := p.Left + float64(i)
				line = append(line, Point{x, p.PY(columns[i-1])}, Point{x, p.PY(columns[i])})
			}
		}
		lines = append(lines, append(line, Point{p.Left + float64(i-1), p.PY(columns[i-1])}))
	}
	return lines
}

// Line draws the columns as a line.
func (p Panel) Line(clr color.NRGBA, width float64, dashes []float64, columns []float64) {
	p.On.Stroke(clr, width, dashes, p.steps(columns)...)
}

// Area draws the columns as a filled area with a line on top.
func (p Panel) Area(clr color.NRGBA, columns []float64) {
	lines := p.steps(columns)
	var grounds [][]Point
	for _, line := range lines {
		ground := append([]Point{{line[0][0], p.Bottom()}}, line...)
		grounds = append(grounds, append(ground, Point{line[len(line)-1][0], p.Bottom()}))
	}
	p.On.Fill(Thin(clr, 40), grounds...)
	p.On.Stroke(clr, 1.4, nil, lines...)
}

// Layer fills between two rows of columns with a white line on top: one layer of a stack. The floor is
// known wherever the top is.
func (p Panel) Layer(clr color.NRGBA, floor, top []float64) {
	lines := p.steps(top)
	var areas [][]Point
	for _, line := range lines {
		from, to := int(math.Round(line[0][0]-p.Left)), int(math.Round(line[len(line)-1][0]-p.Left))
		q := p
		q.Left = line[0][0]
		below := q.steps(floor[from : to+1])[0]
		slices.Reverse(below)
		areas = append(areas, slices.Concat(line, below))
	}
	p.On.Fill(clr, areas...)
	p.On.Stroke(White, 0.8, nil, lines...)
}

// LimitLine draws a limit as a dashed line of steps.
func (p Panel) LimitLine(v Values) {
	p.Line(Red, 1.5, []float64{6, 3}, p.Lasts(v))
}

// Limit draws a limit as LimitLine does, names it at the right, and says what it was changed to
// where there is room.
func (p Panel) Limit(v Values) {
	columns := p.Lasts(v)
	end := len(columns) - 1
	for end >= 0 && math.IsNaN(columns[end]) {
		end--
	}
	if end < 0 {
		return
	}
	p.LimitLine(v)
	last := columns[end]
	y := p.PY(last) - 3
	for i, l := range []string{"limit", Short(last)} {
		p.On.Text(Style{Size: 12, Color: Red}, Point{p.Right() + 6, y + float64(i)*14}, l)
	}
	free := 0.0
	for i, one := range columns {
		x := float64(i) + 5
		if i == 0 || one == columns[i-1] || one == last || math.IsNaN(one) || x < free || x > p.Width-60 {
			continue
		}
		p.On.Label(Style{Size: 12, Color: Red}, Point{p.Left + x, max(p.Top+11, p.PY(one)-6)}, Short(one))
		free = x + 70
	}
}

// far is how many times higher than everything else a limit may be to be drawn: one that is never
// near would press the curve flat.
const far = 4

// Near returns the top of the vertical axis for values up to most below a limit, and what to note
// about a limit that is above the picture; an empty note says that it is in it.
func Near(most, limit float64) (top float64, note string) {
	if limit > far*max(most, 1) {
		return most, "the limit of " + Short(limit) + " is above the picture"
	}
	return max(most, limit), ""
}

// Peak marks the highest value, which say names; the label keeps clear of the line at a limit, if
// there is one.
func (p Panel) Peak(clr color.NRGBA, at, most, limit float64, say string) {
	if most <= 0 {
		return
	}
	x, y := p.PX(at), p.PY(most)
	p.On.Dot(White, Point{x, y}, 4.5)
	p.On.Dot(clr, Point{x, y}, 3)
	s := Style{Size: 12, Color: Dark}
	to := p.legible(s, x, say)
	to[1] = y - 8
	if line := p.PY(limit); limit > 0 && to[1] > line-5 && to[1] < line+14 {
		to[1] = line - 6
	}
	to[1] = max(p.Top+11, to[1])
	p.On.Label(s, to, say)
}

// Mark is a time in which something was broken, in the horizontal axis's unit.
type Mark struct {
	From, Until float64
	What        string
}

// Shade colors the times, at least a pixel and a half wide.
func (p Panel) Shade(marks []Mark) {
	for _, m := range marks {
		x := p.PX(m.From)
		p.On.Fill(Thin(Red, 60), Box(x, p.Top, max(1.5, p.PX(m.Until)-x), p.Height))
	}
}

// Name writes what each time was at its beginning, in the first of some rows from the top in which it
// covers no other.
func (p Panel) Name(marks []Mark) {
	s := Style{Size: 11, Color: Red}
	var ends [8]float64
	for _, m := range marks {
		wide := s.Wide(m.What)
		x := max(p.Left+2, min(p.PX(m.From)+4, p.Right()-wide-2))
		row := max(0, slices.IndexFunc(ends[:], func(end float64) bool { return end < x }))
		ends[row] = x + wide + 8
		p.On.Label(s, Point{x, p.Top + 13 + float64(row)*14}, m.What)
	}
}

// SideLabel names a layer or a line at the right of the panel, near the height Y.
type SideLabel struct {
	Name  string
	Color color.NRGBA
	Y     float64
}

// Beside writes the labels at the right, from the bottom up as the layers lie, each with its
// color and none upon another.
func (p Panel) Beside(labels []SideLabel) {
	const line = 17
	y := math.Inf(1)
	ys := make([]float64, len(labels))
	for i, l := range labels {
		y = min(y-line, l.Y)
		ys[i] = y
	}
	// Those that were pushed out at the top push the others down again.
	least := p.Top + 6
	for i := len(ys) - 1; i >= 0; i-- {
		ys[i] = max(ys[i], least)
		least = ys[i] + line
	}
	s := Style{Size: 12, Color: Dark}
	for i, l := range labels {
		p.On.Fill(l.Color, Box(p.Right()+10, ys[i]-6, 12, 12))
		p.On.Text(s, Point{p.Right() + 27, ys[i] + 4}, s.Fit(l.Name, p.On.Width-p.Right()-32))
	}
}
