package chart

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"strconv"
)

// vector draws as SVG. Everything is an attribute: a page that allows no styles but its own can
// have the picture in it.
type vector struct {
	width, height float64
	b             []byte
}

// svgFonts have the widths of the one that texts are measured in.
const svgFonts = `'Liberation Sans',Arimo,Helvetica,Arial,sans-serif`

func (v *vector) number(n float64) { v.b = strconv.AppendFloat(v.b, tenths(n)+0, 'f', -1, 64) }

// attribute begins one whose value is a number.
func (v *vector) attribute(name string, n float64) {
	v.b = fmt.Appendf(v.b, " %s=\"", name)
	v.number(n)
	v.b = append(v.b, '"')
}

func (v *vector) paint(name string, clr color.NRGBA) {
	v.b = fmt.Appendf(v.b, ` %s="#%02X%02X%02X"`, name, clr.R, clr.G, clr.B)
	if clr.A < 255 {
		v.b = fmt.Appendf(v.b, ` %s-opacity="%.2f"`, name, float64(clr.A)/255)
	}
}

// path writes the lines, straight ones across or down in fewer bytes.
func (v *vector) path(lines [][]Point, closed bool) {
	v.b = append(v.b, ` d="`...)
	for _, line := range lines {
		var before Point
		for i, p := range line {
			p = Point{tenths(p[0]), tenths(p[1])}
			switch {
			case i == 0:
				v.b = append(v.b, 'M')
				v.number(p[0])
				v.b = append(v.b, ' ')
				v.number(p[1])
			case p == before:
			case p[1] == before[1]:
				v.b = append(v.b, 'H')
				v.number(p[0])
			case p[0] == before[0]:
				v.b = append(v.b, 'V')
				v.number(p[1])
			default:
				v.b = append(v.b, 'L')
				v.number(p[0])
				v.b = append(v.b, ' ')
				v.number(p[1])
			}
			before = p
		}
		if closed && len(line) > 0 {
			v.b = append(v.b, 'Z')
		}
	}
	v.b = append(v.b, "\"/>\n"...)
}

func (v *vector) fill(clr color.NRGBA, areas [][]Point) {
	v.b = append(v.b, "<path"...)
	v.paint("fill", clr)
	v.path(areas, true)
}

func (v *vector) stroke(clr color.NRGBA, width float64, dashes []float64, lines [][]Point) {
	v.b = append(v.b, `<path fill="none"`...)
	v.paint("stroke", clr)
	if width != 1 {
		v.attribute("stroke-width", width)
	}
	for i, d := range dashes {
		v.b = append(v.b, [2]string{` stroke-dasharray="`, " "}[min(i, 1)]...)
		v.number(d)
	}
	if len(dashes) > 0 {
		v.b = append(v.b, '"')
	}
	v.path(lines, false)
}

func (v *vector) dot(clr color.NRGBA, p Point, radius float64) {
	v.b = append(v.b, "<circle"...)
	v.paint("fill", clr)
	v.attribute("cx", p[0])
	v.attribute("cy", p[1])
	v.attribute("r", radius)
	v.b = append(v.b, "/>\n"...)
}

func (v *vector) text(s Style, p Point, text string) {
	v.b = append(v.b, "<text"...)
	v.attribute("x", p[0])
	v.attribute("y", p[1])
	v.attribute("font-size", s.Size)
	if s.Bold {
		v.b = append(v.b, ` font-weight="bold"`...)
	}
	v.paint("fill", s.Color)
	v.b = fmt.Appendf(v.b, ">%s</text>\n", html.EscapeString(text))
}

func (v *vector) encode(w io.Writer, title string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]g" viewBox="0 0 %[1]g %[2]g" role="img" font-family="%[3]s">`+
		"\n<title>%[4]s</title>\n%[5]s</svg>\n", v.width, v.height, svgFonts, html.EscapeString(title), v.b)
	_, err := b.WriteTo(w)
	return err
}
