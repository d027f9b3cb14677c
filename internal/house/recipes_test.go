package house

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipeBlock is a block of configuration on a page.
var recipeBlock = regexp.MustCompile("(?ms)^```(yaml|nginx|haproxy)\n(.*?)^```$")

// strayRecipes finds blocks of configuration on pages that are not, line by line, in a file below examples/, where tests
// run them.
func strayRecipes(pages, examples map[string]string) []string {
	var faults []string
	for name, page := range pages {
		for _, block := range recipeBlock.FindAllStringSubmatch(page, -1) {
			found := false
			for _, text := range examples {
				found = found || strings.Contains("\n"+text, "\n"+block[2])
			}
			if !found {
				first, _, _ := strings.Cut(block[2], "\n")
				faults = append(faults, fmt.Sprintf("%s: the %s block that begins with %q is in no file below examples/", name, block[1], first))
			}
		}
	}
	return faults
}

// readPages reads the documents for users.
func readPages(t *testing.T, root string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages := map[string]string{}
	for _, name := range append(names, filepath.Join(root, "README.md")) {
		pages[name] = readText(t, name)
	}
	return pages
}

// readExamples reads the files below examples/.
func readExamples(t *testing.T, root string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		texts[p] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestRecipeRuleBites(t *testing.T) {
	t.Parallel()
	examples := map[string]string{"a.yaml": "x: 1\ny:\n  z: 2\nlast: 3\n"}
	for block, faults := range map[string]int{
		"```yaml\ny:\n  z: 2\n```":               0,
		"```yaml\nx: 1\nlast: 3\n```":            1,
		"```yaml\n  z: 2\n```\n```yaml\nq\n```":  1,
		"```json\n{}\n```":                       0,
		"```nginx\nlisten 80;\n```":              1,
		"text\n\n```yaml\nz: 2\n```\n":           1,
		"```haproxy\nlast: 3\n```\n\nMore text.": 0,
		"```sh\nls\n```\n\n```yaml\nx: 1\n```\n": 0,
	} {
		if got := strayRecipes(map[string]string{"p.md": block}, examples); len(got) != faults {
			t.Errorf("%q: %q, want %d", block, got, faults)
		}
	}
}
