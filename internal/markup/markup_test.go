package markup

import (
	"html"
	"html/template"
	"strings"
	"testing"
)

// hostile are values that somebody may have chosen to be run where a page shows them.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`, `</title><script>alert(1)</script>`,
	`" onmouseover="alert(1)`, `' onmouseover='alert(1)`, "`${alert(1)}`", `<!--`, `-->`, `]]>`, `&lt;script&gt;`, `&#60;`, `javascript:alert(1)`,
	`//evil.example`, `/\evil.example`, `..`, `?x=1&y=2#z`, "a\x00b", "\u2028", "\xff<", `{}`, `{}{}`, `\`, "\t\r\n", "",
}

// written puts a value into every kind of place.
func written(value string) string {
	var p Page
	p.Put(`<!doctype html><title>{}</title><p class="x">{} and {}</p><a href="/product/{}" title="{}">`, value, value, value, value, value)
	p.Put("{}", value)
	p.Put(`</a><i data-of="a {} b">x</i>`, value)
	return string(p.Bytes())
}

// markupOf is a page without what was put into it.
func markupOf(page string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>"'`, r) {
			return r
		}
		return -1
	}, page)
}

func TestHostileValuesStayWhereTheyArePut(t *testing.T) {
	want := markupOf(written("x"))
	for _, value := range hostile {
		page := written(value)
		if got := markupOf(page); got != want {
			t.Errorf("%q changes the markup: %s", value, page)
		}
		if strings.Contains(page, `href="/product/`+value) && strings.ContainsAny(value, `/\?#&"<`) {
			t.Errorf("%q is more than a segment: %s", value, page)
		}
		_, title, _ := strings.Cut(page, `title="`)
		title, _, _ = strings.Cut(title, `"`)
		if got := html.UnescapeString(title); got != strings.ReplaceAll(value, "\x00", "\uFFFD") {
			t.Errorf("%q is read as %q", value, got)
		}
		if got, want := Escape(value), template.HTMLEscapeString(value); got != want {
			t.Errorf("%q is %q, html/template writes %q", value, got, want)
		}
	}
}

func FuzzPut(f *testing.F) {
	for _, value := range hostile {
		f.Add(value)
	}
	want := markupOf(written("x"))
	f.Fuzz(func(t *testing.T, value string) {
		if page := written(value); markupOf(page) != want {
			t.Errorf("%q changes the markup: %s", value, page)
		}
		if Escape(value) != template.HTMLEscapeString(value) {
			t.Errorf("%q is %q", value, Escape(value))
		}
	})
}

// TestPlacesWhereEscapingIsNotEnough: they are refused, even with harmless values.
func TestPlacesWhereEscapingIsNotEnough(t *testing.T) {
	for _, c := range []struct {
		markup constant
		values int
		want   string
	}{
		{`<script>var x = "{}"</script>`, 1, "a value inside of script"},
		{`<SCRIPT type="module">{}`, 1, "a value inside of script"},
		{`<style>{}</style>`, 1, "a value inside of style"},
		{`<!-- {} -->`, 1, "outside of quotes"},
		{`<!-- > {} -->`, 1, "outside of quotes"},
		{`<p {}>`, 1, "outside of quotes"},
		{`<p id={}>`, 1, "outside of quotes"},
		{`<p id='{}'>`, 1, "outside of quotes"},
		{`<{}>`, 1, "outside of quotes"},
		{`<p onclick="{}">`, 1, `the attribute "onclick"`},
		{`<p style="{}">`, 1, `the attribute "style"`},
		{`<iframe srcdoc="{}">`, 1, `the attribute "srcdoc"`},
		{`<meta content="{}">`, 1, `the attribute "content"`},
		{`<img srcset="{}">`, 1, `the attribute "srcset"`},
		{`<a href="{}">`, 1, "does not begin with a path"},
		{`<a href="/{}">`, 1, "does not begin with a path"},
		{`<a href="//{}">`, 1, "does not begin with a path"},
		{`<a HREF="javascript:{}">`, 1, "does not begin with a path"},
		{`<p>{}</p>`, 0, "fewer values"},
		{`<p>{}{}</p>`, 1, "fewer values"},
		{`<p>{}</p>`, 2, "more values"},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, c.want) {
					t.Errorf("%s: %q, want %q", c.markup, said, c.want)
				}
			}()
			new(Page).Put(c.markup, make([]string, c.values)...)
		}()
	}
}

// TestMarkupAcrossCalls: a place is what all of the page makes it.
func TestMarkupAcrossCalls(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "inside of style") {
			t.Errorf("%q", said)
		}
	}()
	var p Page
	p.Put(`<style>`)
	p.Put(`p { color: {} }`, "red")
}

func TestRawStaysAsItIs(t *testing.T) {
	var p Page
	p.Put("<p>")
	p.Raw(`<svg viewBox="0 0 1 1"></svg>`)
	p.Put("{}</p>", "<")
	if got := string(p.Bytes()); got != `<p><svg viewBox="0 0 1 1"></svg>&lt;</p>` {
		t.Error(got)
	}
}
