package page

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// good is a page without barriers, around some more.
func good(more string) string {
	return "<!doctype html><html lang=\"en\"><head><title>Wait</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"></head><body><main><h1>In line</h1>\n" + more + "</main></body></html>"
}

func TestBarriers(t *testing.T) {
	for template, want := range map[string]string{
		good(""): "",
		good(`<img alt="" src="data:,"><img role=presentation src=x><a href="/"><img alt="Home" src=x></a><button>{{ahead}}</button>`):      "",
		good(`<label>Code <input name=a></label><label for=b>B</label><input id=b><input type=hidden><input id=c><label for="c">C</label>`): "",
		good(`<iframe title="Map" src=x></iframe><video autoplay muted></video><a name="top"></a><div tabindex="0"></div>`):                 "",
		good("\n<img src=x>"):                                     "4 image-alt",
		good(`<input name=a><input id=b>`):                        "3 label 3 label",
		good(`<a href="/x"> <i class=icon></i> </a>`):             "3 link-name",
		good("<button\nid=go><svg></svg></button>"):               "3 button-name",
		good(`<iframe src=x></iframe>`):                           "3 frame-title",
		good(`<div tabindex=3></div>`):                            "3 tabindex",
		good(`<marquee>Soon</marquee>`):                           "3 marquee",
		good(`<audio autoplay src=x></audio>`):                    "3 no-autoplay-audio",
		good(`<meta http-equiv="Refresh" content="20">`):          "3 meta-refresh",
		good(`<meta name=viewport content="user-scalable = no">`): "3 meta-viewport",
		"":                              "1 html-has-lang 1 document-title 1 page-has-heading-one 1 landmark-one-main",
		"<html>\n<title> </title>\n<p>": "1 html-has-lang 1 document-title 1 page-has-heading-one 1 landmark-one-main",
		good(strings.Repeat("<img>", maxBarriers+9)): strings.TrimSpace(strings.Repeat("3 image-alt ", maxBarriers)),
	} {
		var got []string
		for _, b := range Barriers(template) {
			if b.Message == "" {
				t.Errorf("%s says nothing", b.Rule)
			}
			got = append(got, fmt.Sprintf("%d %s", b.Line, b.Rule))
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%q\nhas %s\nwant %s", template, all, want)
		}
	}
}

// TestOurOwnPagesHaveNoBarriers: the built-in page in every state, and the example of the documentation.
func TestOurOwnPagesHaveNoBarriers(t *testing.T) {
	for _, s := range States() {
		if found := Barriers(string(AppendPage(nil, &View{Decision: s.Decision}, false))); len(found) > 0 {
			t.Errorf("%s: %v", s.Name, found)
		}
	}
	raw, err := os.ReadFile("../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(raw), "```html\n")
	example, _, _ = strings.Cut(example, "```")
	if found := Barriers(example); len(found) > 0 {
		t.Errorf("the example: %v", found)
	}
}

// FuzzBarriers: whatever a template is, the look at it ends, and tells lines that it has.
func FuzzBarriers(f *testing.F) {
	f.Add("<a href=x><button><img alt=y></a></label></title><label><input>")
	f.Add("<title>{{#a}}</title>\n<script>\n</a>\n<textarea>")
	f.Fuzz(func(t *testing.T, template string) {
		if len(template) > anteroom.MaxTemplateBytes {
			return
		}
		lines := 1 + strings.Count(template, "\n")
		all := Barriers(template)
		for _, b := range all {
			if b.Line < 1 || b.Line > lines {
				t.Errorf("%v of %d lines", b, lines)
			}
		}
		if len(all) > maxBarriers {
			t.Errorf("%d barriers", len(all))
		}
	})
}
