// Package chart draws pictures with axes over time and counts, as SVG and PNG: for the figures
// of a simulation, the report of an event, and the verdicts of load and cluster runs.
//
// The house's rules for figures: one idea each; labels at the things themselves instead of
// legends; units on every axis; the highest value of every column of pixels is drawn, so
// that no peak is hidden; colors that the color-blind tell apart, and never color alone;
// an opaque light ground, so that a page in dark mode shows the same.
//
// Whatever the values are, a picture comes out: a value that is not a number leaves a gap, other
// odd ones are drawn at the edge, and no text can break out of the picture.
package chart

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
	"sync"
	"unicode"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// Format is a way to write a picture.
type Format string

const (
	PNG Format = "png" // at twice the size, for dense screens
	SVG Format = "svg" // text stays text, in a sans-serif of the reader's
)

// Formats lists them in their documented order.
var Formats = []Format{PNG, SVG}

// Point is a place: CSS pixels from the left, and from the top.
type Point [2]float64

// Canvas is a picture being drawn, in CSS pixels from the upper left corner. Not safe for
// concurrent use.
type Canvas struct {
	Width, Height float64
	ink           ink
}

// ink is a format's way to draw. Points are in pixels, texts clean.
type ink interface {
	fill(clr color.NRGBA, areas [][]Point)
	stroke(clr color.NRGBA, width float64, dashes []float64, lines [][]Point)
	dot(clr color.NRGBA, p Point, radius float64)
	text(s Style, p Point, text string)
	// encode writes what was drawn.
	encode(w io.Writer, title string) error
}

// New returns an empty canvas with a white ground, of a size in CSS pixels. It fails for a
// format that is not one of [Formats].
func New(width, height int, format Format) (*Canvas, error) {
	c := &Canvas{Width: float64(width), Height: float64(height)}
	switch format {
	case PNG:
		c.ink = newRaster(c.Width, c.Height)
	case SVG:
		c.ink = &vector{width: c.Width, height: c.Height}
	default:
		return nil, fmt.Errorf("there is no format %q; use %q or %q", format, PNG, SVG)
	}
	c.Fill(White, Box(0, 0, c.Width, c.Height))
	return c, nil
}

// Encode writes the picture, of which title says in a line what it shows. The same drawing
// gives the same bytes.
func (c *Canvas) Encode(w io.Writer, title string) error {
	return c.ink.encode(w, Clean(title, maxText))
}

// Box returns the corners of a rectangle.
func Box(x, y, width, height float64) []Point {
	return []Point{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}
}

// Fill fills the areas; where areas of one call overlap, the color is not laid on twice.
func (c *Canvas) Fill(clr color.NRGBA, areas ...[]Point) {
	if len(areas) > 0 {
		c.ink.fill(clr, areas)
	}
}

// Stroke draws the lines, of a width in pixels; dashes are lengths of ink and gap in pixels,
// nil for a solid line.
func (c *Canvas) Stroke(clr color.NRGBA, width float64, dashes []float64, lines ...[]Point) {
	if len(lines) > 0 {
		c.ink.stroke(clr, width, dashes, lines)
	}
}

// Dash is a line as long as Stroke makes it wide: a square in half the bytes of one that is
// filled. Of thousands of visitors that is most of a file.
func Dash(at Point, width float64) []Point {
	return []Point{{at[0] - width/2, at[1]}, {at[0] + width/2, at[1]}}
}

// Dot draws a filled circle with a radius in pixels.
func (c *Canvas) Dot(clr color.NRGBA, p Point, radius float64) { c.ink.dot(clr, p, radius) }

// Style of a text; the zero Anchor is its left end, 0.5 the middle, 1 the right end.
type Style struct {
	Size   float64 // in pixels
	Bold   bool
	Color  color.NRGBA
	Anchor float64
}

// The fonts are those of the module go-fonts/liberation, compressed to half their size (gzip -9n).
var (
	//go:embed fonts/LiberationSans-Regular.ttf.gz
	regular []byte
	//go:embed fonts/LiberationSans-Bold.ttf.gz
	bold []byte
)

func unzipped(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// fonts are read when the first text is measured.
var fonts = sync.OnceValue(func() (both [2]*opentype.Font) {
	for i, zipped := range [][]byte{regular, bold} {
		ttf, err := unzipped(zipped)
		if err == nil {
			both[i], err = opentype.Parse(ttf)
		}
		if err != nil {
			panic(err) // only for a program that was built with a broken font
		}
	}
	return both
})

func (s Style) face() font.Face {
	f := font.Face{Font: font.Font{Size: vg.Length(s.Size)}, Face: fonts()[0]}
	if s.Bold {
		f.Font.Weight, f.Face = xfont.WeightBold, fonts()[1]
	}
	return f
}

// Wide returns the width of the text in pixels.
func (s Style) Wide(text string) float64 {
	f := s.face()
	return float64(f.Width(Clean(text, maxText)))
}

// Fit shortens the text until it is at most so many pixels wide.
func (s Style) Fit(text string, wide float64) string {
	runes := []rune(Clean(text, maxText))
	if s.Wide(string(runes)) <= wide {
		return string(runes)
	}
	for len(runes) > 0 && s.Wide(string(runes)+"…") > wide {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// Text writes one line, cleaned, on the base line that goes through p.
func (c *Canvas) Text(s Style, p Point, text string) {
	if text = Clean(text, maxText); text == "" {
		return
	}
	p[0] -= s.Anchor * s.Wide(text)
	c.ink.text(s, p, text)
}

// Label writes on a ground of its own, so that it stays readable over lines.
func (c *Canvas) Label(s Style, p Point, text string) {
	w := s.Wide(text)
	c.Fill(Halo, Box(p[0]-s.Anchor*w-2, p[1]-s.Size*0.85, w+4, s.Size*1.1))
	c.Text(s, p, text)
}

// Head writes the title of the picture and a line about it.
func (c *Canvas) Head(title, about string) {
	t := Style{Size: 17, Bold: true, Color: Dark}
	c.Text(t, Point{20, 29}, t.Fit(title, c.Width-40))
	a := Style{Size: 12, Color: Faint}
	c.Text(a, Point{20, 49}, a.Fit(about, c.Width-40))
}

// maxText bounds any text in a picture, in characters.
const maxText = 200

// Clean returns the text without what is not allowed in XML or would turn its direction, on
// one line, at most so many characters.
func Clean(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case !unicode.IsPrint(r):
			continue
		}
		if n++; n > most {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}

// tenths rounds to a tenth of a pixel: finer is not seen, and it keeps files small and the
// same on every machine.
func tenths(v float64) float64 { return math.Round(v*10) / 10 }
