// Package house holds the rules of the repository as tests: which package may import what, what Go files and
// documents must look like. A rule is a function from the files to the faults in them.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the repository, seen from this folder. (Moving there in TestMain would hide from the go command which files the
// tests read, and it would answer from its cache when one has changed.)
const root = "../.."

// TestHouse applies the rules to every Go file of the repository. A rule that stands in the way of a better
// design changes together with the design, and docs/adr gives the reason.
func TestHouse(t *testing.T) {
	t.Parallel()
	sources := readSources(t)
	if len(sources) == 0 {
		t.Fatal("found no Go file")
	}
	for _, rule := range []struct {
		name  string
		check func([]source) []string
	}{
		{"arrows", brokenArrows},
		{"net/http", strayHTTP},
		{"other modules", strayModules},
		{"engine is pure", impureEngine},
		{"the simulator starts no goroutine", simulatorGoroutines},
		{"package comments", wrongPackageComments},
		{"package names", drawerNames},
		{"no init", initFunctions},
		{"no Director", directorUses},
		{"nothing is called by name", calledByName},
		{"raw markup", strayRawMarkup},
		{"tests wait for events", sleepingTests},
		{"tests run", skippedTests},
		{"switches are whole", partialSwitches},
		{"fuzz targets have seeds", seedlessFuzzTargets},
	} {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range rule.check(sources) {
				t.Error(fault)
			}
		})
	}
	t.Run("limits page", func(t *testing.T) {
		t.Parallel()
		for _, fault := range limitsPageFaults(sources, limits, readText(t, root+"/docs/limits.md")) {
			t.Error(fault)
		}
	})
	t.Run("glossary", func(t *testing.T) {
		t.Parallel()
		for _, fault := range glossaryFaults(sources, readText(t, root+"/docs/glossary.md")) {
			t.Error(fault)
		}
	})
	t.Run("one word per thing", func(t *testing.T) {
		t.Parallel()
		for _, fault := range wordFaults(passages(t, sources), wordings) {
			t.Error(fault)
		}
	})
	t.Run("ADRs", func(t *testing.T) {
		t.Parallel()
		for _, fault := range adrPageFaults(t, sources, root) {
			t.Error(fault)
		}
	})
	t.Run("links", func(t *testing.T) {
		t.Parallel()
		for _, fault := range brokenLinks(t, root) {
			t.Error(fault)
		}
	})
	t.Run("recipes", func(t *testing.T) {
		t.Parallel()
		for _, fault := range strayRecipes(readPages(t, root), readExamples(t, root)) {
			t.Error(fault)
		}
	})
	t.Run("no large files", func(t *testing.T) {
		t.Parallel()
		for _, fault := range largeFiles(t, root) {
			t.Error(fault)
		}
	})
}

// source is one Go file as the rules see it.
type source struct {
	path   string // slash-separated, from the root of the repository
	pkg    string // directory; "." is the root package
	test   bool   // a _test.go file
	nested bool   // belongs to a module of its own below the root
	fset   *token.FileSet
	file   *ast.File
}

// imports returns the file's import paths.
func (s source) imports() []string {
	var out []string
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// at names a position for a message.
func (s source) at(n ast.Node) string { return s.fset.Position(n.Pos()).String() }

// names returns the local names under which the file imports the package, so that a
// renamed import hides nothing. A dot import yields ".".
func (s source) names(importPath string) []string {
	var out []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != importPath {
			continue
		}
		if spec.Name != nil {
			out = append(out, spec.Name.Name)
		} else {
			out = append(out, path.Base(importPath))
		}
	}
	return out
}

// selects calls found for every use of one of the package's members.
func (s source) selects(importPath string, members []string, found func(n ast.Node, member string)) {
	names := s.names(importPath)
	if len(names) == 0 {
		return
	}
	if slices.Contains(names, ".") {
		found(s.file.Name, "the whole package, by a dot import")
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names, x.Name) && slices.Contains(members, sel.Sel.Name) {
			found(sel, sel.Sel.Name)
		}
		return true
	})
}

// skippedDir says which folders hold no source of ours.
func skippedDir(name string) bool {
	return name == "testdata" || name == "node_modules" || name == "bin" || name == "dist" ||
		(strings.Trim(name, ".") != "" && (name[0] == '.' || name[0] == '_'))
}

// readSources parses every Go file of the repository.
func readSources(t *testing.T) []source {
	t.Helper()
	var out []source
	repository, fset := os.DirFS(root), token.NewFileSet()
	nested := map[string]bool{}
	err := fs.WalkDir(repository, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedDir(d.Name()) {
				return fs.SkipDir
			}
			_, statErr := fs.Stat(repository, path.Join(p, "go.mod"))
			nested[p] = p != "." && (statErr == nil || nested[path.Dir(p)])
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := fs.ReadFile(repository, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := path.Dir(p)
		out = append(out, source{path: p, pkg: dir, test: strings.HasSuffix(p, "_test.go"), nested: nested[dir], fset: fset, file: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parseSource makes a source out of text, for the tests of the rules themselves.
func parseSource(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), fset: fset, file: file}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// maxFileBytes is the size from which a file does not belong into the history.
const maxFileBytes = 1 << 20

// largeFiles looks at what git knows or would add; without git, at everything.
func largeFiles(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		names = strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	} else {
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && skippedDir(d.Name()) {
				return filepath.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				names = append(names, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var faults []string
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			continue // deleted and not yet committed
		}
		if info.Mode().IsRegular() && info.Size() > maxFileBytes {
			faults = append(faults, name+": has "+strconv.FormatInt(info.Size(), 10)+" bytes; keep files in the repository below 1 MiB")
		}
	}
	return faults
}
