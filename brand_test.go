package anteroom

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"
)

func logo(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// What the built-in page cannot show, or visitors cannot read, is refused with what to do.
func TestBrandingIsChecked(t *testing.T) {
	svg := base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`))
	for _, c := range []struct {
		name     string
		branding Branding
		fault    string // empty: none
	}{
		{"everything", Branding{SiteName: "Café <Dawn>", Title: "Tickets for “Spring” 2027", LogoFile: logo(t, 1000, 10), Color: "#7a4a12", ColorDark: "#FFC766"}, ""},
		{"a name of two lines", Branding{SiteName: "a\nb"}, "page_site_name: has a control character at byte 1 (plain text on one line)"},
		{"a title that turns around", Branding{Title: "a\u202eb"}, "page_title: has a control character"},
		{"a name that is too long", Branding{SiteName: strings.Repeat("x", 65)}, "page_site_name: has 65 bytes"},
		{"no base64", Branding{LogoFile: "§"}, "page_logo: is not base64: it is what base64 -w0 logo.png prints"},
		{"no picture", Branding{LogoFile: "bm8gcGljdHVyZQ=="}, "page_logo: is not a picture"},
		{"a picture with scripts", Branding{LogoFile: svg}, "page_logo: is not a picture"},
		{"a wide logo", Branding{LogoFile: logo(t, 1001, 10)}, "page_logo: has 1001 by 10 pixels"},
		{"a logo of many bytes", Branding{LogoFile: base64.StdEncoding.EncodeToString(make([]byte, MaxLogoBytes+1))}, "page_logo: has 32769 bytes (a PNG, JPEG or GIF"},
		{"no color", Branding{Color: "brown"}, `page_color: "brown" is not a color`},
		{"no color either", Branding{ColorDark: "#12345g"}, `page_color_dark: "#12345g" is not a color`},
		{"too light", Branding{Color: "#ffc766"}, "page_color: has a contrast of 1.5 to 1 with the background #fffdfa (at least 4.5 to 1"},
		{"too dark", Branding{ColorDark: "#7a4a12"}, "page_color_dark: has a contrast of 2.1 to 1"},
	} {
		r := Room{Name: "shop", Branding: c.branding, Settings: Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1}}
		got := ""
		if err := r.Check().Err(); err != nil {
			got = err.Error()
		}
		if c.fault == "" && got != "" || !strings.Contains(got, c.fault) {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
	}
	// A color that is said to be enough is: black on white is the most there can be.
	if got := contrast("#000000", "#ffffff"); got < 20.99 || got > 21.01 {
		t.Errorf("black on white: %v", got)
	}
}
