package chart

import "image/color"

// Colors for grounds, texts and axes, and colors for things, which the color-blind tell apart: most
// are from the palette of Okabe and Ito (jfly.uni-koeln.de/color).
var (
	White   = color.NRGBA{255, 255, 255, 255}
	Halo    = color.NRGBA{255, 255, 255, 215}
	Dark    = color.NRGBA{0x33, 0x33, 0x33, 255}
	Faint   = color.NRGBA{0x6b, 0x6b, 0x6b, 255}
	Outline = color.NRGBA{0xbb, 0xbb, 0xbb, 255}
	Grid    = color.NRGBA{0xea, 0xea, 0xea, 255}
	Blue    = color.NRGBA{0x2b, 0x5f, 0x8a, 255}
	Red     = color.NRGBA{0xb4, 0x45, 0x2c, 255}
	Orange  = color.NRGBA{0xe6, 0x9f, 0x00, 255}
	Amber   = color.NRGBA{0x9a, 0x66, 0x00, 255} // orange, dark enough for text and thin lines
	Green   = color.NRGBA{0x00, 0x9e, 0x73, 255}
	Purple  = color.NRGBA{0xcc, 0x79, 0xa7, 255}
	Plum    = color.NRGBA{0xa3, 0x4f, 0x7c, 255} // purple, dark enough for text
	Sky     = color.NRGBA{0x56, 0xb4, 0xe9, 255}
)

// Thin returns the color with the opacity, 0 to 255.
func Thin(c color.NRGBA, opacity uint8) color.NRGBA {
	c.A = opacity
	return c
}
