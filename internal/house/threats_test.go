package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is a test in docs/threats.md: the folder of its package, a dot, its name.
var testName = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz)\w+)$`)

// threatsPageFaults: every row of docs/threats.md has three cells, the last of which names
// tests or scenario files that exist, or says why there are none.
func threatsPageFaults(sources []source, root, page string) []string {
	tests := map[string]bool{}
	for _, s := range sources {
		if !s.test {
			continue
		}
		pkg := s.pkg
		if pkg == "." {
			pkg = "anteroom"
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[pkg+"."+f.Name.Name] = true
			}
		}
	}
	var faults []string
	rows := map[string]bool{}
	for _, cells := range tableRows(page) {
		at := fmt.Sprintf("docs/threats.md: %.60q", cells[0])
		if rows[cells[0]] {
			faults = append(faults, at+" is there twice")
		}
		rows[cells[0]] = true
		if len(cells) != 3 || cells[1] == "" {
			faults = append(faults, at+" needs three cells: what, what happens here, shown by")
			continue
		}
		shown := false
		for _, code := range strings.Split(cells[2], "`") {
			switch {
			case testName.MatchString(code):
				shown = true
				if !tests[code] {
					faults = append(faults, at+" names "+code+", and there is no such test")
				}
			case strings.Contains(code, "/testdata/"):
				shown = true
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(code))); err != nil {
					faults = append(faults, at+" names "+code+", which is not there")
				}
			case strings.Contains(code, "not here yet"), strings.HasPrefix(code, "by design"), strings.HasPrefix(code, "gap: "):
				shown = true
			}
		}
		if !shown {
			faults = append(faults, at+` names no test and does not say "not here yet", "by design" or "gap: …"`)
		}
	}
	if len(rows) == 0 {
		faults = append(faults, "docs/threats.md: has no table")
	}
	return faults
}

func TestThreatsPage(t *testing.T) {
	t.Parallel()
	for _, fault := range threatsPageFaults(readSources(t), root, readText(t, root+"/docs/threats.md")) {
		t.Error(fault)
	}
}

// TestThreatsPageRuleBites: a test or file that is gone, a row without any and a row twice are
// faults.
func TestThreatsPageRuleBites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "engine/testdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "engine/testdata/x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sources := []source{parseSource(t, "ticket/a_test.go", "package ticket\nfunc TestX() {}\n"), parseSource(t, "ticket/a.go", "package ticket\nfunc TestY() {}\n")}
	const head = "| a | b | c |\n|---|---|---|\n"
	for _, c := range []struct {
		rows   string
		faults int
	}{
		{"| forge | no | `ticket.TestX` |\n| guess | no | not here yet: issue 9 |\n| wait | yes | `engine/testdata/x` |\n", 0},
		{"| forge | no | `ticket.TestY` |\n", 1},
		{"| forge | no | `ticket.TestX`, `gate.TestX` |\n", 1},
		{"| forge | no | `engine/testdata/y` |\n", 1},
		{"| forge | no | `ticket` |\n", 1},
		{"| forge | no | |\n", 1},
		{"| forge | | `ticket.TestX` |\n", 1},
		{"| forge | no | `ticket.TestX` |\n| forge | no | `ticket.TestX` |\n", 1},
		{"", 1},
	} {
		if got := threatsPageFaults(sources, dir, head+c.rows); len(got) != c.faults {
			t.Errorf("%q: %d faults, want %d: %q", c.rows, len(got), c.faults, got)
		}
	}
}
