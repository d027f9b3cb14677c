package anteroom_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// boundless are packages whose constants are no limits of the product.
var boundless = []string{"demo/...", "cmd/...", "examples/..."}

// limitsPageFaults compares docs/limits.md with the constants of limits.go and with every
// other exported constant of the product called Max… or Min…: each has one row, with the
// value, a reason and what happens at it.
func limitsPageFaults(sources []source, page string) []string {
	values := constants(sources)
	wanted := map[string]bool{}
	for name := range values {
		dir, short := path.Split(name)
		if ast.IsExported(short) && (dir == "" || strings.HasPrefix(short, "Max") || strings.HasPrefix(short, "Min")) {
			wanted[name] = true
		}
	}
	exists := map[string]bool{}
	for _, s := range sources {
		exists[s.pkg] = true
	}
	var faults []string
	rows := map[string]bool{}
	for i, cells := range tableRows(page) {
		name, ok := codeOf(cells[0])
		if !ok {
			continue
		}
		key := constantKey(name)
		where := fmt.Sprintf("docs/limits.md, row %d (%s)", i+1, name)
		if rows[key] {
			faults = append(faults, where+": stands there twice")
		}
		rows[key] = true
		if !wanted[key] {
			if pkg, _ := path.Split(key); pkg != "" && !exists[strings.TrimSuffix(pkg, "/")] {
				continue // the package is still to come
			}
			faults = append(faults, where+": there is no such constant")
			continue
		}
		if len(cells) != 4 || cells[2] == "" || cells[3] == "" {
			faults = append(faults, where+": needs four cells: name, value, reason, what happens at it")
			continue
		}
		if want := shown(values[key]); len(want) > 0 && !slices.Contains(want, cells[1]) {
			faults = append(faults, fmt.Sprintf("%s: says %q; the code says %s", where, cells[1], strings.Join(want, " or ")))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if !rows[key] {
			faults = append(faults, fmt.Sprintf("docs/limits.md: %s (%s) is missing; add a row with its reason and what happens at it",
				strings.ReplaceAll(key, "/", "."), strings.Join(shown(values[key]), " or ")))
		}
	}
	return faults
}

// value of a constant. A duration when it was written with units of package time.
type value struct {
	v        constant.Value // nil when it could not be computed
	duration bool
}

// constants returns the constants of limits.go by name, and the exported ones of all other
// packages as "folder/Name".
func constants(sources []source) map[string]value {
	out := map[string]value{}
	for range 2 { // a constant may refer to one of a file that comes later
		for _, s := range sources {
			if s.test || s.nested || anyUnder(boundless, s.pkg) || (s.pkg == "." && s.path != "limits.go") {
				continue
			}
			for _, d := range s.file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.CONST {
					continue
				}
				for _, spec := range g.Specs {
					vs := spec.(*ast.ValueSpec)
					for i, id := range vs.Names {
						key := id.Name
						if s.pkg != "." {
							key = s.pkg + "/" + id.Name
						}
						if !ast.IsExported(id.Name) {
							continue
						}
						out[key] = value{}
						if i < len(vs.Values) {
							out[key] = evaluate(vs.Values[i], s.pkg, out)
						}
					}
				}
			}
		}
	}
	return out
}

var timeUnits = map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// evaluate computes the few forms in which limits are written.
func evaluate(e ast.Expr, pkg string, known map[string]value) value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return value{v: constant.MakeFromLiteral(e.Value, e.Kind, 0)}
	case *ast.ParenExpr:
		return evaluate(e.X, pkg, known)
	case *ast.Ident:
		if pkg == "." {
			return known[e.Name]
		}
		return known[pkg+"/"+e.Name]
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok {
			return value{}
		}
		if x.Name == "time" {
			if unit, ok := timeUnits[e.Sel.Name]; ok {
				return value{v: constant.MakeInt64(int64(unit)), duration: true}
			}
		}
		if x.Name == "anteroom" {
			return known[e.Sel.Name]
		}
	case *ast.BinaryExpr:
		x, y := evaluate(e.X, pkg, known), evaluate(e.Y, pkg, known)
		if x.v == nil || y.v == nil || x.v.Kind() != constant.Int || y.v.Kind() != constant.Int {
			return value{}
		}
		switch e.Op {
		case token.SHL:
			n, _ := constant.Uint64Val(y.v)
			return value{v: constant.Shift(x.v, token.SHL, uint(n)), duration: x.duration}
		case token.ADD, token.SUB, token.MUL:
			return value{v: constant.BinaryOp(x.v, e.Op, y.v), duration: x.duration || y.duration}
		}
	}
	return value{}
}

// shown returns the forms in which the page may write a value: 5m, 10,000; and 64 KiB where
// that is exact. None when the value is unknown.
func shown(v value) []string {
	if v.v == nil {
		return nil
	}
	n, exact := constant.Int64Val(v.v)
	if v.v.Kind() != constant.Int || !exact {
		return []string{v.v.ExactString()}
	}
	if v.duration {
		s := time.Duration(n).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return []string{s}
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	forms := []string{digits}
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		forms = append(forms, fmt.Sprintf("%d MiB", n>>20))
	case n >= 1<<10 && n%(1<<10) == 0:
		forms = append(forms, fmt.Sprintf("%d KiB", n>>10))
	}
	return forms
}

// constantKey turns a name as the page writes it into a key of constants: "cluster.MaxValue"
// into "cluster/MaxValue"; names without a package are of the root.
func constantKey(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i] + "/" + name[i+1:]
	}
	return name
}

// glossaryFaults: every Go name in docs/glossary.md (second column) exists, once its package
// does. A word that lost its type, or was renamed in one place only, shows here.
func glossaryFaults(sources []source, page string) []string {
	types := map[string]bool{}
	exists := map[string]bool{}
	for _, s := range sources {
		if s.test {
			continue
		}
		exists[s.file.Name.Name] = true
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					types[s.file.Name.Name+"."+spec.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	var faults []string
	words := map[string]bool{}
	for _, cells := range tableRows(page) {
		if len(cells) != 3 || cells[2] == "" {
			faults = append(faults, fmt.Sprintf("docs/glossary.md: %q needs three cells: word, type, meaning", cells[0]))
			continue
		}
		if words[cells[0]] {
			faults = append(faults, fmt.Sprintf("docs/glossary.md: %q stands there twice", cells[0]))
		}
		words[cells[0]] = true
		for part := range strings.SplitSeq(cells[1], ",") {
			name, ok := codeOf(strings.TrimSpace(part))
			if !ok {
				continue
			}
			pkg, _, _ := strings.Cut(name, ".")
			if exists[pkg] && !types[name] {
				faults = append(faults, fmt.Sprintf("docs/glossary.md: %q names %s, and there is no such type", cells[0], name))
			}
		}
	}
	if len(words) == 0 {
		faults = append(faults, "docs/glossary.md: has no table")
	}
	return faults
}

// markdownLink matches an inline link and takes its target up to the anchor.
var markdownLink = regexp.MustCompile(`\]\(([^)#\s]*)[^)]*\)`)

// brokenLinks: a link in a page that leads to a file of the repository leads to one that is
// there.
func brokenLinks(t *testing.T, root string) []string {
	t.Helper()
	var faults []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedDir(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".md" {
			return nil
		}
		for _, m := range markdownLink.FindAllStringSubmatch(readText(t, p), -1) {
			target := m[1]
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), target)); err != nil {
				faults = append(faults, fmt.Sprintf("%s: links to %s, which is not there", p, target))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestLinkRuleBites: a link to a missing file is a fault; to a file, a page elsewhere or an
// anchor is none.
func TestLinkRuleBites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.md", "[b](b.md) [part](b.md#x) [here](#y) [web](https://example.com/c.md)")
	write("b.md", "")
	if got := brokenLinks(t, dir); len(got) != 0 {
		t.Errorf("good links: %q", got)
	}
	write("b.md", "[gone](c.md)")
	if got := brokenLinks(t, dir); len(got) != 1 {
		t.Errorf("one broken link: %q", got)
	}
}

// tableRows returns the cells of the rows of all Markdown tables, without headings.
func tableRows(page string) [][]string {
	var rows [][]string
	body := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			body = false
			continue
		}
		if strings.Trim(line, "|-: ") == "" {
			body = true
			continue
		}
		if !body {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

// codeOf returns the text of a cell that is one piece of code.
func codeOf(cell string) (string, bool) {
	if len(cell) > 2 && cell[0] == '`' && cell[len(cell)-1] == '`' {
		return cell[1 : len(cell)-1], true
	}
	return "", false
}

// TestLimitsPageRuleBites: a missing row, a wrong value, an unknown name and an empty reason
// are faults; a right page is none.
func TestLimitsPageRuleBites(t *testing.T) {
	t.Parallel()
	sources := []source{
		parseSource(t, "limits.go", "package anteroom\nimport \"time\"\nconst (\n\tDefaultX = 5*time.Minute\n\tMaxBodyBytes = 64 << 10\n\tMaxUsers = 1<<31 - 1\n)\n"),
		parseSource(t, "ticket/a.go", "package ticket\nconst MaxLife = anteroom.DefaultX + time.Hour\nconst Version = 1\n"),
	}
	const head = "| bound | value | reason | at it |\n|---|---|---|---|\n"
	const x, body, users, life = "| `DefaultX` | 5m | r | a |\n", "| `MaxBodyBytes` | 64 KiB | r | a |\n", "| `MaxUsers` | 2,147,483,647 | r | a |\n", "| `ticket.MaxLife` | 1h5m | r | a |\n"
	for _, c := range []struct {
		name, page string
		faults     int
	}{
		{"right", head + x + body + users + life, 0},
		{"row missing", head + x + body + users, 1},
		{"wrong value", head + x + strings.Replace(body, "64", "65", 1) + users + life, 1},
		{"no such constant", head + x + body + users + life + "| `MaxOld` | 1 | r | a |\n", 1},
		{"no such constant of a package", head + x + body + users + life + "| `ticket.MaxOld` | 1 | r | a |\n", 1},
		{"package to come", head + x + body + users + life + "| `sims.MaxOld` | 1 | r | a |\n", 0},
		{"twice", head + x + x + body + users + life, 1},
		{"no reason", head + "| `DefaultX` | 5m | | a |\n" + body + users + life, 1},
		{"empty page", "", 4},
	} {
		if got := limitsPageFaults(sources, c.page); len(got) != c.faults {
			t.Errorf("%s: %d faults, want %d: %q", c.name, len(got), c.faults, got)
		}
	}
}

// TestGlossaryRuleBites: a type that is gone is a fault; one of a package to come is none.
func TestGlossaryRuleBites(t *testing.T) {
	t.Parallel()
	sources := []source{parseSource(t, "room.go", "package anteroom\ntype Room struct{}\n")}
	const head = "| word | type | meaning |\n|---|---|---|\n"
	if got := glossaryFaults(sources, head+"| room | `anteroom.Room` | m |\n| door | `engine.Door` | m |\n| slot | | m |\n"); len(got) != 0 {
		t.Errorf("right page: %q", got)
	}
	if got := glossaryFaults(sources, head+"| hall | `anteroom.Hall` | m |\n"); len(got) != 1 {
		t.Errorf("unknown type: %q", got)
	}
}
