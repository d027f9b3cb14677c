package house

import (
	"fmt"
	"go/ast"
	"go/printer"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// engineForbids are imports that would bring a clock, chance, I/O, locks or scheduling into
// the engine, which is a function of its arguments. The root package is held to the same.
var engineForbids = []string{"context", "sync", "sync/atomic", "log", "log/slog", "os", "os/signal", "io/fs",
	"math/rand", "math/rand/v2", "crypto/rand", "net", "runtime", "syscall", "unsafe", "testing"}

// clockMembers of package time read or wait for the clock; its types and constants are free.
var clockMembers = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func impureEngine(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if s.test || (s.pkg != "." && s.pkg != "internal/wire" && !under("engine/...", s.pkg)) {
			continue
		}
		for _, imp := range s.imports() {
			if slices.Contains(engineForbids, imp) {
				faults = append(faults, fmt.Sprintf("%s: imports %s; pass values and time in, hand decisions out", s.path, imp))
			}
		}
		s.selects("time", clockMembers, func(n ast.Node, member string) {
			faults = append(faults, fmt.Sprintf("%s: time.%s; the moment is an argument", s.at(n), member))
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				faults = append(faults, fmt.Sprintf("%s: concurrency; the caller owns goroutines and locks", s.at(n)))
			}
			return true
		})
	}
	return faults
}

// simulatorGoroutines: a run repeats from its seed, and the race detector is not run on the package.
func simulatorGoroutines(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if s.test || s.pkg != "sim" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				faults = append(faults, s.at(n)+": a goroutine in the simulator; a run repeats from its seed")
			}
			return true
		})
	}
	return faults
}

// wrongPackageComments: one package comment for each package, in one file, that begins as
// godoc expects it. It is the package's first page.
func wrongPackageComments(sources []source) []string {
	type found struct {
		name  string
		files []string
		docs  []string
	}
	packages := map[string]*found{}
	onlyTests := map[string]bool{}
	for _, s := range sources {
		if !s.test {
			onlyTests[s.pkg] = false
		} else if _, ok := onlyTests[s.pkg]; !ok {
			onlyTests[s.pkg] = true
		}
	}
	for _, s := range sources {
		if s.test && !onlyTests[s.pkg] {
			continue
		}
		p := packages[s.pkg]
		if p == nil {
			p = &found{name: strings.TrimSuffix(s.file.Name.Name, "_test")}
			packages[s.pkg] = p
		}
		if s.file.Doc != nil {
			p.files = append(p.files, s.path)
			p.docs = append(p.docs, s.file.Doc.Text())
		}
	}
	var faults []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		begins := "Package " + p.name + " "
		if p.name == "main" {
			begins = "Command " + path.Base(dir) + " "
		}
		switch {
		case len(p.docs) == 0:
			faults = append(faults, fmt.Sprintf("%s: has no package comment; say what it is for, beginning with %q", dir, begins))
		case len(p.docs) > 1:
			faults = append(faults, fmt.Sprintf("%s: has %d package comments (%s); keep one", dir, len(p.docs), strings.Join(p.files, ", ")))
		case !strings.HasPrefix(p.docs[0], begins):
			faults = append(faults, fmt.Sprintf("%s: the package comment does not begin with %q", p.files[0], begins))
		}
	}
	return faults
}

// drawers are names of packages that say nothing about what is inside. (A folder internal is none: it keeps
// what is in it from other modules.)
var drawers = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib", "pkg", "types", "models", "interfaces"}

func drawerNames(sources []source) []string {
	seen := map[string]bool{}
	for _, s := range sources {
		for part := range strings.SplitSeq(s.pkg, "/") {
			if slices.Contains(drawers, part) {
				seen[s.pkg] = true
			}
		}
		if slices.Contains(drawers, s.file.Name.Name) {
			seen[s.pkg] = true
		}
	}
	var faults []string
	for _, pkg := range slices.Sorted(maps.Keys(seen)) {
		faults = append(faults, pkg+": names a drawer; name the thing, or put the code in the file that calls it")
	}
	return faults
}

// initFunctions run before main for everybody who imports the package. Only Caddy demands one.
func initFunctions(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if under("caddy/...", s.pkg) {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				faults = append(faults, s.at(f)+": init; let the caller pass what the package needs")
			}
		}
	}
	return faults
}

// directorUses: ReverseProxy.Director runs before hop-by-hop headers are removed, so that a
// client can name our own headers in Connection and have them dropped. Rewrite runs after.
func directorUses(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if len(s.names("net/http/httputil")) == 0 {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var name *ast.Ident
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				name, _ = n.Key.(*ast.Ident)
			case *ast.SelectorExpr:
				name = n.Sel
			}
			if name != nil && name.Name == "Director" {
				faults = append(faults, s.at(n)+": ReverseProxy.Director; use Rewrite")
			}
			return true
		})
		s.selects("net/http/httputil", []string{"NewSingleHostReverseProxy"}, func(n ast.Node, member string) {
			faults = append(faults, s.at(n)+": "+member+" sets Director; use ReverseProxy with Rewrite")
		})
	}
	return faults
}

func sleepingTests(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if !s.test || len(s.names("testing/synctest")) > 0 {
			continue // in a bubble time.Sleep is the way to move the clock and costs nothing
		}
		s.selects("time", []string{"Sleep"}, func(n ast.Node, _ string) {
			faults = append(faults, s.at(n)+": time.Sleep in a test; wait for the event, or use testing/synctest")
		})
	}
	return faults
}

func skippedTests(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if !s.test {
			continue
		}
		guards := longTests(s)
		s.selects("testing", []string{"Short"}, func(n ast.Node, _ string) {
			if !slices.ContainsFunc(guards, func(g ast.Node) bool { return g.Pos() <= n.Pos() && n.End() <= g.End() }) {
				faults = append(faults, s.at(n)+`: testing.Short; a long test begins with if testing.Short() { t.Skip("long") }, and nothing else asks`)
			}
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			if slices.Contains(guards, n) {
				return false
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) || !isTestingValue(s, sel.X) {
				return true
			}
			faults = append(faults, s.at(n)+": "+sel.Sel.Name+"; a test that does not run proves nothing: make it run or remove it with a reason")
			return true
		})
	}
	return faults
}

// longTests returns the guards with which tests begin that make check leaves out and make test does not.
func longTests(s source) (guards []ast.Node) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Body == nil || len(f.Body.List) == 0 {
			continue
		}
		guard, ok := f.Body.List[0].(*ast.IfStmt)
		if !ok {
			continue
		}
		var text strings.Builder
		if printer.Fprint(&text, s.fset, guard) == nil && longGuard.MatchString(text.String()) {
			guards = append(guards, guard)
		}
	}
	return guards
}

var longGuard = regexp.MustCompile(`^if testing\.Short\(\) \{\s+\w+\.Skip\("long"\)\s+\}$`)

// seedlessFuzzTargets: "go test" runs the seeds of every target each time, so that they are
// the memory of what was found; a target without any tests nothing there.
func seedlessFuzzTargets(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			dir := path.Join(s.pkg, "testdata", "fuzz", f.Name.Name)
			if seeds, err := os.ReadDir(path.Join(root, dir)); err != nil || len(seeds) == 0 {
				faults = append(faults, s.at(f)+": "+f.Name.Name+" has no seeds in "+dir)
			}
		}
	}
	return faults
}

// calledByName: the template packages call methods by names from elsewhere, with which the linker keeps every exported method of the
// binary (ADR 0039).
func calledByName(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if s.test || s.nested {
			continue
		}
		for _, p := range []string{"html/template", "text/template"} {
			s.selects(p, []string{"New", "Must"}, func(n ast.Node, member string) {
				faults = append(faults, s.at(n)+": "+p+"."+member+" adds megabytes to the binary (ADR 0039): write pages with internal/markup")
			})
		}
	}
	return faults
}

// rawMarkup are the files that may add markup to a page that is no constant: what they add is an embedded style and drawings of ours.
var rawMarkup = []string{"analytics/report/page.go"}

// strayRawMarkup: the words of users do not get past the escaping.
func strayRawMarkup(sources []source) []string {
	var faults []string
	for _, s := range sources {
		if s.test || len(s.names(modulePath+"/internal/markup")) == 0 || slices.Contains(rawMarkup, s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Raw" {
				faults = append(faults, s.at(n)+": Raw escapes nothing; use Put, or list the file here with the reason")
			}
			return true
		})
	}
	return faults
}

// isTestingValue reports whether the expression is a parameter of type *testing.T, B or F, or
// testing.TB. (A generator's own T, as rapid's, may skip: it discards a draw, not a test.)
func isTestingValue(s source, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok || id.Obj == nil {
		return false
	}
	field, ok := id.Obj.Decl.(*ast.Field)
	if !ok {
		return false
	}
	typ := field.Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains(s.names("testing"), x.Name)
}

// TestSourceRulesBite shows that each rule of this file finds what it is there for.
func TestSourceRulesBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, text string
		rule             func([]source) []string
		faulty           bool
	}{
		{"clock in the engine", "engine/a.go", `import "time"; var x = time.Now`, impureEngine, true},
		{"clock by another name", "engine/a.go", `import tm "time"; var x = tm.Since`, impureEngine, true},
		{"clock by a dot", "engine/a.go", `import . "time"; var x = Now`, impureEngine, true},
		{"duration in the engine", "engine/a.go", `import "time"; const x = time.Second`, impureEngine, false},
		{"goroutine in the engine", "engine/a.go", `func f() { go f() }`, impureEngine, true},
		{"goroutine in the simulator", "sim/a.go", `func f() { go f() }`, simulatorGoroutines, true},
		{"goroutine beside the simulator", "sim/mutants/a.go", `func f() { go f() }`, simulatorGoroutines, false},
		{"lock in the engine", "engine/a.go", `import "sync"; var x sync.Mutex`, impureEngine, true},
		{"clock in node", "node/a.go", `import "time"; var x = time.Now`, impureEngine, false},
		{"clock in an engine test", "engine/a_test.go", `import "time"; var x = time.Now`, impureEngine, false},
		{"no package comment", "engine/a.go", ``, wrongPackageComments, true},
		{"package called util", "node/util/a.go", ``, drawerNames, true},
		{"utility is not util", "node/utility/a.go", ``, drawerNames, false},
		{"init", "node/a.go", `func init() {}`, initFunctions, true},
		{"method called init", "node/a.go", `type T int; func (T) init() {}`, initFunctions, false},
		{"Director", "gateway/a.go", `import "net/http/httputil"; var x = httputil.ReverseProxy{Director: nil}`, directorUses, true},
		{"Director set later", "gateway/a.go", `import "net/http/httputil"; func f(p *httputil.ReverseProxy) { p.Director = nil }`, directorUses, true},
		{"Director by the constructor", "gateway/a.go", `import "net/http/httputil"; var x = httputil.NewSingleHostReverseProxy(nil)`, directorUses, true},
		{"Rewrite", "gateway/a.go", `import "net/http/httputil"; var x = httputil.ReverseProxy{Rewrite: nil}`, directorUses, false},
		{"sleep", "node/a_test.go", `import "time"; func f() { time.Sleep(1) }`, sleepingTests, true},
		{"sleep in a bubble", "node/a_test.go", `import ("testing/synctest"; "time"); func f() { synctest.Test(nil, nil); time.Sleep(1) }`, sleepingTests, false},
		{"skip", "node/a_test.go", `import "testing"; func TestX(t *testing.T) { t.Skip("later") }`, skippedTests, true},
		{"skip in a subtest", "node/a_test.go", `import "testing"; func TestX(t *testing.T) { t.Run("", func(u *testing.T) { u.SkipNow() }) }`, skippedTests, true},
		{"skip by TB", "node/a_test.go", `import "testing"; func need(tb testing.TB) { tb.Skipf("no") }`, skippedTests, true},
		{"short", "node/a_test.go", `import "testing"; var x = testing.Short()`, skippedTests, true},
		{"long", "node/a_test.go", `import "testing"; func TestX(t *testing.T) { if testing.Short() { t.Skip("long") }; t.Fail() }`, skippedTests, false},
		{"long for another reason", "node/a_test.go", `import "testing"; func TestX(t *testing.T) { if testing.Short() { t.Skip("flaky") } }`, skippedTests, true},
		{"long further below", "node/a_test.go", `import "testing"; func TestX(t *testing.T) { t.Log(); if testing.Short() { t.Skip("long") } }`, skippedTests, true},
		{"fuzz target without seeds", "node/a_test.go", `import "testing"; func FuzzX(f *testing.F) {}`, seedlessFuzzTargets, true},
		{"template", "gateway/a.go", `import "text/template"; var x = template.New("")`, calledByName, true},
		{"template by another name", "gateway/a.go", `import t "html/template"; var x = t.Must(nil, nil)`, calledByName, true},
		{"template in a test", "gateway/a_test.go", `import "text/template"; var x = template.New("")`, calledByName, false},
		{"raw markup", "sim/demo/a.go", `import "github.com/anteroom/anteroom/internal/markup"; func f(p *markup.Page) { p.Raw("") }`, strayRawMarkup, true},
		{"raw markup of the report", "analytics/report/page.go", `import "github.com/anteroom/anteroom/internal/markup"; func f(p *markup.Page) { p.Raw("") }`, strayRawMarkup, false},
		{"another Raw", "sim/demo/a.go", `import "io"; func f(p io.Writer) { p.Raw("") }`, strayRawMarkup, false},
		{"a generator's skip", "node/a_test.go", `import "pgregory.net/rapid"; func f(t *rapid.T) { t.Skip("no draw") }`, skippedTests, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parseSource(t, c.file, "package "+packageName(c.file)+"\n"+c.text+"\n")
			if got := c.rule([]source{s}); (len(got) > 0) != c.faulty {
				t.Errorf("faults: %q, want some: %v", got, c.faulty)
			}
		})
	}
}

// TestPackageCommentRuleBites: none, two and a wrong beginning are faults.
func TestPackageCommentRuleBites(t *testing.T) {
	t.Parallel()
	good := parseSource(t, "node/a.go", "// Package node runs.\npackage node\n")
	again := parseSource(t, "node/b.go", "// Package node runs, too.\npackage node\n")
	wrong := parseSource(t, "node/a.go", "// node runs.\npackage node\n")
	command := parseSource(t, "cmd/anteroom/main.go", "// Command anteroom is the program.\npackage main\n")
	if got := wrongPackageComments([]source{good, command}); len(got) != 0 {
		t.Errorf("good comments: %q", got)
	}
	if got := wrongPackageComments([]source{good, again}); len(got) != 1 {
		t.Errorf("two comments: %q", got)
	}
	if got := wrongPackageComments([]source{wrong}); len(got) != 1 {
		t.Errorf("wrong beginning: %q", got)
	}
}
