package anteroom

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // formats of a logo
	_ "image/jpeg"
	_ "image/png"
	"math"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/internal/field"
)

// Branding is how the built-in waiting page says whose line it is.
type Branding struct {
	SiteName  string `key:"page_site_name" label:"Name of the site" group:"Waiting page" max:"64" ours:"true" doc:"Name of the site, at the top of the built-in waiting page and in its title."`
	Title     string `key:"page_title" label:"What visitors wait for" group:"Waiting page" max:"120" ours:"true" doc:"What visitors wait for, like the name of the sale, at the top of the built-in waiting page."`
	LogoFile  string `key:"page_logo" label:"Logo" group:"Waiting page" max:"43692" ours:"true" doc:"Logo at the top of the built-in waiting page: a PNG, JPEG or GIF of at most 32 KiB and 1000 pixels a side, in base64."`
	Color     string `key:"page_color" label:"Color" group:"Waiting page" ours:"true" doc:"Color of buttons, links and the upper edge of the built-in waiting page, like #7a4a12. Its contrast with the light background has to be at least 4.5 to 1."`
	ColorDark string `key:"page_color_dark" label:"Color in dark mode" group:"Waiting page" ours:"true" doc:"The same for visitors who prefer dark pages. Its contrast with the dark background has to be at least 4.5 to 1."`
}

// Backgrounds of the built-in page, that of its card first.
var (
	LightBackgrounds = []string{"#fffdfa", "#f6f3ee"}
	DarkBackgrounds  = []string{"#1b242d", "#141b22"}
)

// leastContrast of text with its background (WCAG 2.2, 1.4.3, level AA).
const leastContrast = 4.5

// Logo returns the logo and its content type; nothing without one. An error says what is wrong with it.
func (b Branding) Logo() (data []byte, kind string, err error) {
	if b.LogoFile == "" {
		return nil, "", nil
	}
	data, err = base64.StdEncoding.DecodeString(b.LogoFile)
	if err != nil {
		return nil, "", errors.New("is not base64: it is what base64 -w0 logo.png prints")
	}
	if len(data) > MaxLogoBytes {
		return nil, "", fmt.Errorf("has %d bytes", len(data))
	}
	about, format, err := image.DecodeConfig(bytes.NewReader(data)) // reads no more than the head
	if err != nil {
		return nil, "", fmt.Errorf("is not a picture")
	}
	if about.Width > MaxLogoPixels || about.Height > MaxLogoPixels || about.Width < 1 || about.Height < 1 {
		return nil, "", fmt.Errorf("has %d by %d pixels", about.Width, about.Height)
	}
	return data, "image/" + format, nil
}

// check returns the faults of the branding, with paths relative to the room.
func (b Branding) check() (f Faults) {
	add := func(path, problem, fix string) { f = append(f, Fault{Path: path, Problem: problem, Fix: fix}) }
	for _, line := range []struct{ path, text string }{{"page_site_name", b.SiteName}, {"page_title", b.Title}} {
		if i := strings.IndexFunc(line.text, steers); i >= 0 {
			add(line.path, fmt.Sprintf("has a control character at byte %d", i), "plain text on one line")
		}
	}
	if _, _, err := b.Logo(); err != nil {
		add("page_logo", err.Error(), fmt.Sprintf("a PNG, JPEG or GIF of at most %d KiB and %d pixels a side, in base64", MaxLogoBytes>>10, MaxLogoPixels))
	}
	for _, c := range []struct {
		path, color string
		grounds     []string
	}{{"page_color", b.Color, LightBackgrounds}, {"page_color_dark", b.ColorDark, DarkBackgrounds}} {
		if c.color == "" {
			continue
		}
		if _, ok := luminance(c.color); !ok {
			add(c.path, fmt.Sprintf("%s is not a color", field.Quote(c.color)), "# and six hexadecimal digits, like #7a4a12")
			continue
		}
		for _, ground := range c.grounds {
			if ratio := contrast(c.color, ground); ratio < leastContrast {
				add(c.path, fmt.Sprintf("has a contrast of %.1f to 1 with the background %s", ratio, ground), "at least 4.5 to 1 (WCAG AA): a darker color, in dark mode a lighter one")
				break
			}
		}
	}
	return f
}

// contrast of two colors, 1 to 21 (WCAG 2.2, contrast ratio).
func contrast(a, b string) float64 {
	x, _ := luminance(a)
	y, _ := luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// luminance of a color like #7a4a12, 0 to 1 (WCAG 2.2, relative luminance).
func luminance(color string) (sum float64, ok bool) {
	if len(color) != 7 || color[0] != '#' {
		return 0, false
	}
	for i, weight := range [3]float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return 0, false
		}
		part := float64(n) / 255
		if part <= .04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum, true
}
