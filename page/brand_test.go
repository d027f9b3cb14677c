package page

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// onePixel is a GIF.
const onePixel = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

func brandedRoom() *anteroom.Room {
	return &anteroom.Room{ID: "25756b2dfe6e378a06b033b670413757", Branding: anteroom.Branding{
		SiteName: "Dawn & Co", Title: "Tickets for <Spring>", LogoFile: onePixel, Color: "#00558c", ColorDark: "#7cc7ff"}}
}

// The page of a room with a brand says whose line it is, and is otherwise the same.
func TestBrandedPage(t *testing.T) {
	brand := NewBrand(brandedRoom())
	for _, s := range States() {
		v := View{Decision: s.Decision}
		plain := string(AppendPage(nil, &v, false))
		v.Brand = brand
		page := string(AppendPage(nil, &v, false))
		got := page
		for _, part := range []string{brand.name, brand.style, brand.header} {
			if strings.Count(got, part) != 1 {
				t.Fatalf("%s: %q is there %d times", s.Name, part, strings.Count(got, part))
			}
			got = strings.Replace(got, part, "", 1)
		}
		if got != plain {
			t.Errorf("%s: the brand changes more than it adds", s.Name)
		}
		if string(unzip(t, AppendPage(nil, &v, true))) != page {
			t.Errorf("%s: compressed, the page is another", s.Name)
		}
	}
	golden(t, "builtin/en-US/brand.html", sharedParts.ReplaceAllString(string(AppendPage(nil, &View{Decision: States()[0].Decision, Brand: brand}, false)), "$1…$2"))
	for kind := range ChallengeKind(numChallenges) {
		for _, unsent := range []bool{false, true} {
			without := ContentSecurityPolicy(View{Kind: kind, Unsent: unsent})
			with := ContentSecurityPolicy(View{Kind: kind, Unsent: unsent, Brand: brand})
			style := strings.TrimSuffix(strings.TrimPrefix(brand.style, "<style>"), "</style>")
			if got := strings.Replace(strings.Replace(with, " 'sha256-"+hash(style)+"'; script-src", "; script-src", 1), "data: 'self'", "data:", 1); got != without || got == with {
				t.Errorf("policy %s, without the brand %s", with, without)
			}
		}
	}
	if NewBrand(new(anteroom.Room)) != nil {
		t.Error("a room without a brand has one")
	}
}

func TestBrandedPagesAreSmall(t *testing.T) {
	brand := NewBrand(brandedRoom())
	views(func(name string, v View) {
		v.Brand = brand
		if size := len(AppendPage(nil, &v, true)); size > 8<<10 {
			t.Errorf("%s: %d bytes, at most %d", name, size, 8<<10)
		}
	})
}

// The backgrounds by which colors are checked are those of the page.
func TestColorsAreCheckedAgainstThePage(t *testing.T) {
	style := bare("asset/page.css")
	for i, grounds := range [][]string{anteroom.LightBackgrounds, anteroom.DarkBackgrounds} {
		root := strings.Split(style, ":root{")[i+1]
		if !strings.Contains(root, "--card:"+grounds[0]+";") || !strings.Contains(root, "--bg:"+grounds[1]+";") {
			t.Errorf("scheme %d has other backgrounds than %v", i, grounds)
		}
	}
}
