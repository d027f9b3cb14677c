package page

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// docs/templates.md lists every value that a template has, and no other; its example
// compiles and names only such.
func TestTheDocumentationOfTemplates(t *testing.T) {
	raw, err := os.ReadFile("../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "## Values\n")
	all := variables(View{Now: time.Now()})
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(all)); !slices.Equal(listed, want) {
		t.Errorf("listed are\n%v\nthere are\n%v", listed, want)
	}
	_, example, _ := strings.Cut(string(raw), "```html\n")
	example, _, _ = strings.Cut(example, "```")
	if _, err := Compile(example); err != nil {
		t.Error(err)
	}
	for _, tag := range regexp.MustCompile(`\{\{[#^/]?(\w+)\}\}`).FindAllStringSubmatch(example, -1) {
		if _, ok := all[tag[1]]; !ok {
			t.Errorf("the example asks for %s, which there is not", tag[1])
		}
	}
}
