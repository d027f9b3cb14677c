package figure

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The package uses the canvases of gonum/plot and draws its own axes: package plot itself
// would bring PDF, EPS and TeX writers and twelve fonts into the program (6 MB) and load
// them at the start of every process.

// A point in CSS pixels from the upper left corner.
type point struct{ x, y float64 }

// canvas draws in CSS pixels from the upper left corner; one pixel is one point of gonum's.
type canvas struct {
	to            vg.CanvasWriterTo
	format        Format
	width, height float64
	regular, bold *opentype.Font
}

func newCanvas(width, height int, format Format) (*canvas, error) {
	c := &canvas{format: format, width: float64(width), height: float64(height)}
	w, h := vg.Length(width), vg.Length(height)
	switch format {
	case PNG:
		c.to = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(2*int(vg.Inch)))}
	case SVG:
		c.to = vgsvg.New(w, h)
	default:
		return nil, fmt.Errorf("there is no format %q; use %q or %q", format, PNG, SVG)
	}
	var errs [2]error
	c.regular, errs[0] = opentype.Parse(liberationsansregular.TTF)
	c.bold, errs[1] = opentype.Parse(liberationsansbold.TTF)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	c.fill(white, c.box(0, 0, c.width, c.height))
	return c, nil
}

// svgFont is how gonum names the font at every text. The figure names it once, with others
// of the same widths for readers that do not have it.
const (
	svgFont  = "\n\t" + `style="font-family:Liberation Sans;font-variant:none;font-weight:%s;font-style:normal;`
	svgFonts = `'Liberation Sans',Arimo,Helvetica,Arial,sans-serif`
)

func (c *canvas) encode(w io.Writer, title string) error {
	if c.format == PNG {
		_, err := c.to.WriteTo(w)
		return err
	}
	var b bytes.Buffer
	if _, err := c.to.WriteTo(&b); err != nil {
		return err
	}
	_, body, ok := strings.Cut(b.String(), "<g ")
	if !ok {
		return errors.New("the SVG writer wrote no group; its version is not the one that this package was written for")
	}
	// Text of a scenario holds no quotation mark after escaping, so it is never replaced.
	body = strings.NewReplacer(
		fmt.Sprintf(svgFont, "normal"), ` style="`,
		fmt.Sprintf(svgFont, "bold"), ` style="font-weight:bold;`,
	).Replace(body)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]g" viewBox="0 0 %[1]g %[2]g" role="img" font-family="%[3]s">`+
		"\n<title>%[4]s</title>\n<g %[5]s", c.width, c.height, svgFonts, html.EscapeString(clean(title, maxText)), body)
	return err
}

// at turns a point upside down for gonum, on a grid of a tenth of a pixel: finer is not seen,
// and it keeps files small and the same on every machine.
func (c *canvas) at(p point) vg.Point {
	return vg.Point{X: vg.Length(math.Round(p.x*10) / 10), Y: vg.Length(math.Round((c.height-p.y)*10) / 10)}
}

func (c *canvas) path(closed bool, lines ...[]point) vg.Path {
	var path vg.Path
	for _, line := range lines {
		for i, p := range line {
			if i == 0 {
				path.Move(c.at(p))
			} else {
				path.Line(c.at(p))
			}
		}
		if closed && len(line) > 0 {
			path.Close()
		}
	}
	return path
}

// box returns the corners of a rectangle.
func (c *canvas) box(x, y, w, h float64) []point {
	return []point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}
}

// fill fills the areas; where areas of one call overlap, the colour is not laid on twice.
func (c *canvas) fill(clr color.Color, areas ...[]point) {
	if len(areas) == 0 {
		return
	}
	c.to.SetColor(clr)
	c.to.Fill(c.path(true, areas...))
}

// stroke draws the lines; dashes are lengths of ink and gap in pixels.
func (c *canvas) stroke(clr color.Color, width float64, dashes []float64, lines ...[]point) {
	if len(lines) == 0 {
		return
	}
	var d []vg.Length
	for _, l := range dashes {
		d = append(d, vg.Length(l))
	}
	c.to.SetColor(clr)
	c.to.SetLineWidth(vg.Length(width))
	c.to.SetLineDash(d, 0)
	c.to.Stroke(c.path(false, lines...))
}

// dash is a line as long as stroke makes it wide: a square in half the bytes of one that is
// filled. Of thousands of visitors that is most of a file.
func dash(at point, width float64) []point {
	return []point{{at.x - width/2, at.y}, {at.x + width/2, at.y}}
}

// dot draws a filled circle.
func (c *canvas) dot(clr color.Color, p point, radius float64) {
	at := c.at(p)
	var path vg.Path
	path.Move(vg.Point{X: at.X + vg.Length(radius), Y: at.Y})
	path.Arc(at, vg.Length(radius), 0, 2*math.Pi)
	path.Close()
	c.to.SetColor(clr)
	c.to.Fill(path)
}

// style of a text; the zero anchor is its left end, 0.5 the middle, 1 the right end.
type style struct {
	size   float64
	bold   bool
	clr    color.Color
	anchor float64
}

func (c *canvas) face(s style) font.Face {
	f := font.Face{Font: font.Font{Size: vg.Length(s.size)}, Face: c.regular}
	if s.bold {
		f.Font.Weight, f.Face = xfont.WeightBold, c.bold
	}
	return f
}

// wide returns the width of the text in pixels.
func (c *canvas) wide(s style, text string) float64 {
	f := c.face(s)
	return float64(f.Width(clean(text, maxText)))
}

// text writes on the base line that goes through p, one line, cleaned.
func (c *canvas) text(s style, p point, text string) {
	text = clean(text, maxText)
	if text == "" {
		return
	}
	p.x -= s.anchor * c.wide(s, text)
	c.to.SetColor(s.clr)
	c.to.FillString(c.face(s), c.at(p), text)
}

// label writes on a ground of its own, so that it stays readable over lines.
func (c *canvas) label(s style, p point, text string) {
	w := c.wide(s, text)
	c.fill(halo, c.box(p.x-s.anchor*w-2, p.y-s.size*0.85, w+4, s.size*1.1))
	c.text(s, p, text)
}

// fit shortens the text until it is at most so wide.
func (c *canvas) fit(s style, text string, wide float64) string {
	runes := []rune(clean(text, maxText))
	if c.wide(s, string(runes)) <= wide {
		return string(runes)
	}
	for len(runes) > 0 && c.wide(s, string(runes)+"…") > wide {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// maxText bounds any text in a figure, in characters.
const maxText = 200

// clean returns the text without what is not allowed in XML or would turn its direction, on
// one line, at most so many characters.
func clean(text string, most int) string {
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

// Colours: blue and vermilion are those of the judge's figure; the others are from the
// palette of Okabe and Ito (jfly.uni-koeln.de/color), which the colour-blind tell apart.
var (
	white   = color.NRGBA{255, 255, 255, 255}
	halo    = color.NRGBA{255, 255, 255, 215}
	dark    = color.NRGBA{0x33, 0x33, 0x33, 255}
	faint   = color.NRGBA{0x6b, 0x6b, 0x6b, 255}
	outline = color.NRGBA{0xbb, 0xbb, 0xbb, 255}
	grid    = color.NRGBA{0xea, 0xea, 0xea, 255}
	blue    = color.NRGBA{0x2b, 0x5f, 0x8a, 255}
	red     = color.NRGBA{0xb4, 0x45, 0x2c, 255}
	orange  = color.NRGBA{0xe6, 0x9f, 0x00, 255}
	amber   = color.NRGBA{0x9a, 0x66, 0x00, 255} // orange, dark enough for text and thin lines
	green   = color.NRGBA{0x00, 0x9e, 0x73, 255}
	purple  = color.NRGBA{0xcc, 0x79, 0xa7, 255}
	plum    = color.NRGBA{0xa3, 0x4f, 0x7c, 255} // purple, dark enough for text
	sky     = color.NRGBA{0x56, 0xb4, 0xe9, 255}
)

// thin returns the colour with the opacity, 0 to 255.
func thin(c color.NRGBA, opacity uint8) color.NRGBA {
	c.A = opacity
	return c
}
