package chart

import (
	"bytes"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// raster draws as PNG on a canvas of gonum/plot, whose point is our pixel. The axes are ours:
// package plot itself would bring PDF, EPS and TeX writers and twelve fonts into the program
// (6 MB) and load them at the start of every process.
type raster struct {
	height float64
	to     vgimg.PngCanvas
}

func newRaster(width, height float64) *raster {
	return &raster{height, vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(2*int(vg.Inch)))}}
}

// at turns a point upside down for gonum.
func (r *raster) at(p Point) vg.Point {
	return vg.Point{X: vg.Length(tenths(p[0])), Y: vg.Length(tenths(r.height - p[1]))}
}

func (r *raster) path(lines [][]Point, closed bool) (path vg.Path) {
	for _, line := range lines {
		for i, p := range line {
			if i == 0 {
				path.Move(r.at(p))
			} else {
				path.Line(r.at(p))
			}
		}
		if closed && len(line) > 0 {
			path.Close()
		}
	}
	return path
}

func (r *raster) fill(clr color.NRGBA, areas [][]Point) {
	r.to.SetColor(clr)
	r.to.Fill(r.path(areas, true))
}

func (r *raster) stroke(clr color.NRGBA, width float64, dashes []float64, lines [][]Point) {
	var d []vg.Length
	for _, l := range dashes {
		d = append(d, vg.Length(l))
	}
	r.to.SetColor(clr)
	r.to.SetLineWidth(vg.Length(width))
	r.to.SetLineDash(d, 0)
	r.to.Stroke(r.path(lines, false))
}

func (r *raster) dot(clr color.NRGBA, p Point, radius float64) {
	at := r.at(p)
	var path vg.Path
	path.Move(vg.Point{X: at.X + vg.Length(radius), Y: at.Y})
	path.Arc(at, vg.Length(radius), 0, 2*math.Pi)
	path.Close()
	r.to.SetColor(clr)
	r.to.Fill(path)
}

func (r *raster) text(s Style, p Point, text string) {
	r.to.SetColor(s.Color)
	r.to.FillString(s.face(), r.at(p), text)
}

func (r *raster) encode(w io.Writer, _ string) error {
	var b bytes.Buffer
	if _, err := r.to.WriteTo(&b); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}
