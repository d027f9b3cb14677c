package house

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scriptImport matches an import, or an export from another file, of a file of ours; types count, too.
var scriptImport = regexp.MustCompile(`(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]*)['"]`)

// importCircles: a file of the dashboard does not import itself, directly or through others: who reads it could not begin
// anywhere, and what runs first would depend on which file the page asks for.
func importCircles(files map[string]string) (faults []string) {
	imports := map[string][]string{}
	for name, text := range files {
		for _, m := range scriptImport.FindAllStringSubmatch(text, -1) {
			to := path.Join(path.Dir(name), m[1])
			for _, found := range []string{to, to + ".ts", to + ".tsx", to + "/index.ts"} {
				if _, ok := files[found]; ok {
					imports[name] = append(imports[name], found)
					break
				}
			}
		}
		slices.Sort(imports[name])
	}
	done := map[string]bool{}
	var visit func(name string, on []string)
	visit = func(name string, on []string) {
		if at := slices.Index(on, name); at >= 0 {
			faults = append(faults, strings.Join(append(slices.Clone(on[at:]), name), " imports ")+": put what they share into a file of its own")
			return
		}
		if done[name] {
			return
		}
		for _, to := range imports[name] {
			visit(to, append(slices.Clone(on), name))
		}
		done[name] = true
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		visit(name, nil)
	}
	return faults
}

// dashboardScripts returns the sources of the dashboard by their paths.
func dashboardScripts(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(path.Join(root, "dashboard")), "app", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skippedDir(d.Name()):
			return fs.SkipDir
		case path.Ext(p) == ".ts" || path.Ext(p) == ".tsx":
			files["dashboard/"+p] = readText(t, path.Join(root, "dashboard", p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestDashboardImportsInNoCircle(t *testing.T) {
	t.Parallel()
	files := dashboardScripts(t)
	if len(files) < 20 {
		t.Fatalf("found only %d files of the dashboard", len(files))
	}
	for _, fault := range importCircles(files) {
		t.Error(fault)
	}
}

// TestImportCircleRuleBites: a circle through a folder's index or through a type is a fault, and so is a file that imports
// itself; a file that two others import is none.
func TestImportCircleRuleBites(t *testing.T) {
	t.Parallel()
	good := map[string]string{"a.ts": "import { b } from './b'\nimport './c'", "b.tsx": `export * from "./c"`, "c.ts": "import { h } from 'preact'\nimport './c.css'"}
	if got := importCircles(good); len(got) != 0 {
		t.Errorf("no circle: %q", got)
	}
	for name, files := range map[string]map[string]string{
		"a type":   {"a.ts": "import type { B } from './p/b'", "p/b.ts": "import { a } from '../a'"},
		"an index": {"a.ts": "export * from './p'", "p/index.ts": "import('../a')"},
		"itself":   {"a.ts": "import './a'"},
	} {
		if got := importCircles(files); len(got) != 1 {
			t.Errorf("%s: %d faults, want 1: %q", name, len(got), got)
		}
	}
}
