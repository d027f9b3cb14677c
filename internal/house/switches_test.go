package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// enumerated are types of the root package whose constants a switch names all, or has a default for the others: a
// new method, verdict, reason or phase must not fall through code that has never heard of it.
var enumerated = []string{"QueueingMethod", "Verdict", "Reason", "Phase"}

// enumeratedConstants returns the constants of the enumerated types, by type, in the order of their declaration.
func enumeratedConstants(sources []source) map[string][]string {
	out := map[string][]string{}
	for _, s := range sources {
		if s.pkg != "." || s.test {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			typ := ""
			for _, spec := range g.Specs {
				vs := spec.(*ast.ValueSpec)
				if vs.Type != nil || len(vs.Values) > 0 { // otherwise it repeats the line before, type and all
					typ = ""
					if id, ok := vs.Type.(*ast.Ident); ok {
						typ = id.Name
					}
				}
				if !slices.Contains(enumerated, typ) {
					continue
				}
				for _, id := range vs.Names {
					if ast.IsExported(id.Name) { // the others count or bound them
						out[typ] = append(out[typ], id.Name)
					}
				}
			}
		}
	}
	return out
}

// partialSwitches finds switches over an enumerated type that neither name all of its constants nor have a default. The
// type of a switch is that of the constants in its cases: one without any cannot be told, and says nothing.
func partialSwitches(sources []source) []string {
	constants := enumeratedConstants(sources)
	types := map[string]string{}
	for typ, names := range constants {
		for _, name := range names {
			types[name] = typ
		}
	}
	var faults []string
	for _, s := range sources {
		imported := s.names(modulePath)
		ast.Inspect(s.file, func(n ast.Node) bool {
			sw, ok := n.(*ast.SwitchStmt)
			if !ok || sw.Tag == nil {
				return true
			}
			var typ string
			var named []string
			for _, clause := range sw.Body.List {
				values := clause.(*ast.CaseClause).List
				if values == nil {
					return true // the default
				}
				for _, e := range values {
					var name string
					switch e := e.(type) {
					case *ast.Ident:
						if s.pkg == "." || slices.Contains(imported, ".") {
							name = e.Name
						}
					case *ast.SelectorExpr:
						if x, ok := e.X.(*ast.Ident); ok && slices.Contains(imported, x.Name) {
							name = e.Sel.Name
						}
					}
					if t := types[name]; t != "" {
						typ = t
						named = append(named, name)
					}
				}
			}
			missing := slices.DeleteFunc(slices.Clone(constants[typ]), func(name string) bool { return slices.Contains(named, name) })
			if len(missing) > 0 {
				faults = append(faults, fmt.Sprintf("%s: a switch over %s without %s; add the cases, or a default", s.at(sw), typ, strings.Join(missing, ", ")))
			}
			return true
		})
	}
	return faults
}

// TestSwitchRuleBites: a constant that a switch forgets is a fault, unless it has a default; switches over other things are none.
func TestSwitchRuleBites(t *testing.T) {
	t.Parallel()
	nouns := parseSource(t, "room.go", `package anteroom
type Verdict uint8
const (
	Wait Verdict = iota
	Admit
	Refuse
	count
	Limit = 5
	Other
)
type QueueingMethod string
const FIFO, Random QueueingMethod = "fifo", "random"
`)
	for _, c := range []struct {
		name, file, text string
		faults           int
	}{
		{"all", "node/a.go", `switch v { case anteroom.Wait, anteroom.Admit: case anteroom.Refuse: }`, 0},
		{"one forgotten", "node/a.go", `switch v { case anteroom.Wait, anteroom.Admit: }`, 1},
		{"a default", "node/a.go", `switch v { case anteroom.Wait: default: }`, 0},
		{"within another", "node/a.go", `switch { case true: switch v { case anteroom.Wait: } }`, 1},
		{"within a default", "node/a.go", `switch v { case anteroom.Wait: default: switch m { case anteroom.FIFO: } }`, 1},
		{"a string type", "node/a.go", `switch m { case anteroom.FIFO: }`, 1},
		{"a test", "node/a_test.go", `switch m { case anteroom.FIFO: }`, 1},
		{"other values", "node/a.go", `switch v { case 1, 2: }`, 0},
		{"names of its own", "node/a.go", `switch v { case Wait: }`, 0},
		{"another package's", "node/a.go", `switch v { case other.Wait: }`, 0},
		{"constants of no such type", "node/a.go", `switch v { case anteroom.Limit: }`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parseSource(t, c.file, "package "+packageName(c.file)+"\nimport \""+modulePath+"\"\nfunc f() { "+c.text+" }\n")
			if got := partialSwitches([]source{nouns, s}); len(got) != c.faults {
				t.Errorf("faults: %q, want %d", got, c.faults)
			}
		})
	}
	inside := parseSource(t, "decision.go", "package anteroom\nfunc f() { switch v { case Wait: } }\n")
	if got := partialSwitches([]source{nouns, inside}); len(got) != 1 {
		t.Errorf("in the root package: %q, want one fault", got)
	}
}
