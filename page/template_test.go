package page

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func TestTemplateShowsEveryVariable(t *testing.T) {
	raw, err := os.ReadFile("testdata/templates/starter.html")
	if err != nil {
		t.Fatal(err)
	}
	for name := range variables(View{}) {
		if !strings.Contains(string(raw), "{{"+name+"}}") && !strings.Contains(string(raw), "{{#"+name+"}}") {
			t.Errorf("the starter does not show %s", name)
		}
	}
	starter, err := Compile(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range States() {
		v := View{Decision: s.Decision, Template: starter}
		plain := AppendPage(nil, &v, false)
		golden(t, "templates/"+s.Name+".html", string(plain))
		for range 2 { // the second time with the first one's writer
			if string(unzip(t, AppendPage(nil, &v, true))) != string(plain) {
				t.Errorf("%s: the compressed page differs", s.Name)
			}
		}
	}
}

// Apps read the JSON and pages the variables: both have the same 25 fields.
func TestVariablesAreTheJSONFields(t *testing.T) {
	for _, s := range States() {
		v := View{Decision: s.Decision}
		var object struct{ CfWaitingRoom map[string]any }
		if err := json.Unmarshal(AppendJSON(nil, &v), &object); err != nil {
			t.Fatal(err)
		}
		if n := len(object.CfWaitingRoom); n != 25 {
			t.Errorf("%s: %d fields, want 25", s.Name, n)
		}
		raw, err := json.Marshal(variables(v))
		if err != nil {
			t.Fatal(err)
		}
		var shown map[string]any
		if err := json.Unmarshal(raw, &shown); err != nil {
			t.Fatal(err)
		}
		for name, value := range object.CfWaitingRoom {
			if shown[name] != value {
				t.Errorf("%s: %s is %v in JSON and %v in a template", s.Name, name, value, shown[name])
			}
		}
	}
}

// A template is told what is wrong with it, where, and what to write instead.
func TestFaultsOfTemplates(t *testing.T) {
	for _, c := range []struct {
		name, page   string
		want         string
		line, column int
	}{
		{"partial", "a\n {{> /etc/passwd}}", "includes another template (write its text here: partials are not available)", 2, 2},
		{"partial without spaces", "{{>../../config}}", "includes another template", 1, 1},
		{"partial with spaces", "{{  >  x  }}", "includes another template", 1, 1},
		{"parent", "{{< x}}{{/x}}", "includes another template", 1, 1},
		{"block", "{{$ x}}{{/x}}", "includes another template", 1, 1},
		{"delimiters", "x\n\n{{=<% %>=}}<%> /etc/passwd %>", "changes the delimiters (use {{ and }})", 3, 1},
		{"unclosed tag", "a {{waitTime", "this tag is not closed (write }} behind the name)", 1, 3},
		{"unclosed raw tag", "a\n{{{waitTime}}", "this tag is not closed (write }}} behind the name)", 2, 1},
		{"empty tag", "{{}}", `"" is not a name`, 1, 1},
		{"empty section", "{{#}}{{/}}", `"" is not a name`, 1, 1},
		{"whole context", "{{.}}", `"." is not a name`, 1, 1},
		{"dots", "{{a.b}}", `"a.b" is not a name`, 1, 1},
		{"foreign expression", "{{ user | upper }}", `"user | upper" is not a name (1 to 64 letters, digits and _)`, 1, 1},
		{"raw with a space", "{{ {a} }}", "opens a raw variable with a space (write {{{name}}})", 1, 1},
		{"never closed", "x\n  {{#queueAll}}\ny", `section "queueAll" is never closed (write {{/queueAll}} where it ends)`, 2, 3},
		{"never opened", "x\n{{/queueAll}}", `closes section "queueAll", which is not open`, 2, 1},
		{"crossed", "{{#a}}\n{{#b}}\n{{/a}}{{/b}}", `closes section "a" while "b", opened on line 2, is open (write {{/b}} first)`, 3, 1},
		{"10,000 nested sections", strings.Repeat("{{#queueAll}}\n", 10_000), "nests sections deeper than 32 (nest less)", 33, 1},
		{"tags", strings.Repeat("{{waitTime}}\n", 2_001), "has more than 2000 tags (use fewer)", 2001, 1},
		{"2 MB", strings.Repeat("x", 2<<20), "has 2097152 bytes (at most 1048576", 1, 1},
		{"long name", "{{" + strings.Repeat("a", 65) + "}}", "is not a name", 1, 1},
		{"a name of dots", "{{" + strings.Repeat("a.", 200_000) + "}}", "is not a name", 1, 1},
		{"not UTF-8", "ok\nb\xffd", "is not UTF-8 (save it in UTF-8)", 2, 2},
		{"lambda", "{{#lambda}}{{waitTime}}{{/lambda}}{{/lambda}}", "which is not open", 1, 35},
	} {
		var err error
		if took := quickest(func() { _, err = Compile(c.page) }); took > budget {
			t.Errorf("%s: took %v, at most %v", c.name, took, budget)
		}
		var faults anteroom.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%s: %v is not a list of faults", c.name, err)
			continue
		}
		if anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: the kind is not Invalid", c.name)
		}
		if len(faults) > maxTemplateFaults {
			t.Errorf("%s: %d faults at once", c.name, len(faults))
		}
		if f := faults[0]; f.Path != "custom_page_html" || !strings.Contains(f.String(), c.want) || f.Line != c.line || f.Column != c.column {
			t.Errorf("%s: %d:%d %s, want %d:%d %s", c.name, f.Line, f.Column, f, c.line, c.column, c.want)
		}
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	var faults anteroom.Faults
	if _, err := Compile("{{>a}}\n{{=x y=}}\n{{#b}}"); !errors.As(err, &faults) || len(faults) != 3 {
		t.Errorf("%v", err)
	}
}

// What looks dangerous and is not: nothing is read, called or shown.
func TestHarmlessTemplates(t *testing.T) {
	v := View{Decision: States()[0].Decision}
	for _, c := range []struct{ page, want string }{
		{"{{#lambda}}x{{/lambda}}{{^lambda}}none{{/lambda}}", "none"},
		{"{{lambda}}{{Error}}{{String}}{{GoString}}", ""},
		{"{{! {{> /etc/passwd}}", ""},
		{"{{!=<% %>=}}{{waitTime}}", "14"},
		{"<% waitTime %> { {waitTime} } {waitTime}", "<% waitTime %> { {waitTime} } {waitTime}"},
		{"{{{waitTime}}}{{& waitTime }}{{ waitTime }}", "141414"},
		{"{{#queueAll}}a{{/queueAll}}{{^queueAll}}b{{/queueAll}}", "b"},
		{"", ""},
		{"no tag", "no tag"},
	} {
		tmpl, err := Compile(c.page)
		if err != nil {
			t.Errorf("%q: %v", c.page, err)
			continue
		}
		v.Template = tmpl
		if got := string(AppendPage(nil, &v, false)); got != c.want {
			t.Errorf("%q shows %q, want %q", c.page, got, c.want)
		}
	}
}

// worstTemplates are as large, as deep and as full of tags as is allowed.
func worstTemplates() map[string]string {
	const sections = maxTemplateNesting - 1
	open, shut := strings.Repeat("{{#inWaitingRoom}}", sections), strings.Repeat("{{/inWaitingRoom}}", sections)
	deep := open + strings.Repeat("{{missing}}{{lastUpdated}}", (maxTemplateTags-2*sections)/2) + shut
	line := strings.Repeat("x", 200) + "\n"
	return map[string]string{
		"deep":  deep,
		"large": deep + strings.Repeat(line, (anteroom.MaxTemplateBytes-len(deep))/len(line)),
		"wide":  strings.Repeat("{{#inWaitingRoom}}{{{timeUntilEventStartFormatted}}}{{/inWaitingRoom}}", maxTemplateTags/3),
	}
}

func TestTheWorstTemplateIsQuick(t *testing.T) {
	for name, page := range worstTemplates() {
		tmpl, err := Compile(page)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out []byte
		if took := quickest(func() { out = AppendPage(nil, &View{Decision: States()[0].Decision, Template: tmpl}, true) }); took > budget {
			t.Errorf("%s: took %v, at most %v", name, took, budget)
		}
		if len(out) > anteroom.MaxTemplateBytes+64*maxTemplateTags {
			t.Errorf("%s: %d bytes", name, len(out))
		}
	}
}

// budget is the time in which any template has to be refused or rendered.
const budget = slowdown * 50 * time.Millisecond

// quickest times f without what else the machine does.
func quickest(f func()) time.Duration {
	best := time.Hour
	for range 5 {
		started := time.Now()
		f()
		best = min(best, time.Since(started))
	}
	return best
}

func BenchmarkWorstTemplate(b *testing.B) {
	for name, page := range worstTemplates() {
		tmpl, err := Compile(page)
		if err != nil {
			b.Fatal(err)
		}
		v := View{Decision: States()[0].Decision, Template: tmpl}
		for _, gzip := range []bool{false, true} {
			b.Run(name+map[bool]string{false: "/plain", true: "/gzip"}[gzip], func(b *testing.B) {
				var buf []byte
				for b.Loop() {
					buf = AppendPage(buf[:0], &v, gzip)
				}
			})
		}
	}
}

func BenchmarkStarterTemplate(b *testing.B) {
	raw, err := os.ReadFile("testdata/templates/starter.html")
	if err != nil {
		b.Fatal(err)
	}
	tmpl, err := Compile(string(raw))
	if err != nil {
		b.Fatal(err)
	}
	v := View{Decision: States()[0].Decision, Template: tmpl}
	var buf []byte
	for b.Loop() {
		buf = AppendPage(buf[:0], &v, true)
	}
}
