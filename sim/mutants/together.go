package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// numberVariable is the environment variable that says which of the mutants in a binary runs: its index in the list, plus one.
const numberVariable = "ANTEROOM_MUTANT"

// numberFile is the file by which a package knows it.
const numberFile = `package %s

import (
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("` + numberVariable + `"))
`

// variant is a function as a mutant has it.
type variant struct {
	number int
	text   string // without its name
	name   int    // where that belongs
}

// together returns the files of the module with all mutants that change nothing but the bodies of functions: each changed function stands
// beside the one that it replaces. One build of these takes as long as the build of one mutant. Alone says which do not fit in, by index.
func together(sources map[string]string, mutants []map[string]string) (files map[string]string, alone map[int]bool, err error) {
	parsed := map[string]*source{}
	for file, text := range sources {
		if parsed[file], err = read(file, text); err != nil {
			return nil, nil, err
		}
	}
	alone = map[int]bool{}
	variants := map[*ast.FuncDecl][]variant{}
	for i, changed := range mutants {
		found := map[*ast.FuncDecl]variant{}
		for file, text := range changed {
			mutated, err := read(file, text)
			if err != nil {
				return nil, nil, err
			}
			if !parsed[file].compare(mutated, i+1, found) {
				alone[i] = true
			}
		}
		if alone[i] {
			continue
		}
		for f, v := range found {
			variants[f] = append(variants[f], v)
		}
	}
	files = map[string]string{}
	for file, s := range parsed {
		if text, ok := s.with(variants); ok {
			files[file] = text
			files[path.Join(path.Dir(file), "mutant_number.go")] = fmt.Sprintf(numberFile, s.file.Name.Name)
		}
	}
	return files, alone, nil
}

// source is a file of the module.
type source struct {
	text string
	set  *token.FileSet
	file *ast.File
}

func read(name, text string) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{text, set, file}, nil
}

func (s *source) at(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) of(n ast.Node) string { return s.text[s.at(n.Pos()):s.at(n.End())] }

// compare adds the functions that differ in a mutated file to found. It reports false if anything else differs.
func (s *source) compare(mutated *source, number int, found map[*ast.FuncDecl]variant) bool {
	if len(s.file.Decls) != len(mutated.file.Decls) {
		return false
	}
	for i, d := range s.file.Decls {
		m := mutated.file.Decls[i]
		if s.of(d) == mutated.of(m) {
			continue
		}
		was, ok := d.(*ast.FuncDecl)
		is, also := m.(*ast.FuncDecl)
		if !ok || !also || was.Name.Name != is.Name.Name || was.Type.TypeParams != nil || was.Body == nil || was.Name.Name == "init" || was.Name.Name == "main" {
			return false
		}
		name := mutated.at(is.Name.Pos()) - mutated.at(is.Pos())
		text := mutated.of(is)
		found[was] = variant{number, text[:name] + text[name+len(is.Name.Name):], name}
	}
	return true
}

// with returns the text with the variants of its functions. It reports false if there are none.
func (s *source) with(variants map[*ast.FuncDecl][]variant) (text string, changed bool) {
	var b strings.Builder
	from := 0
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(variants[f]) == 0 {
			continue
		}
		at, name, end := s.at(f.Pos()), s.at(f.Name.Pos()), s.at(f.End())
		b.WriteString(s.text[from:at])
		s.choose(&b, f, variants[f])
		original := variant{0, s.text[at:name] + s.text[name+len(f.Name.Name):end], name - at}
		for _, v := range append(variants[f], original) {
			fmt.Fprintf(&b, "\n\n%s%s%s", v.text[:v.name], called(f, v.number), v.text[v.name:])
		}
		from = end
	}
	b.WriteString(s.text[from:])
	return b.String(), from > 0
}

// called is the name of a variant of a function; 0 is the original.
func called(f *ast.FuncDecl, number int) string {
	return fmt.Sprintf("%sMutant%d", f.Name.Name, number)
}

// choose writes the function that calls the variant of the mutant that runs.
func (s *source) choose(b *strings.Builder, f *ast.FuncDecl, variants []variant) {
	b.WriteString("func ")
	call := ""
	if f.Recv != nil {
		fmt.Fprintf(b, "(mutantOf %s) ", s.of(f.Recv.List[0].Type))
		call = "mutantOf."
	}
	var declared, passed []string
	for _, p := range f.Type.Params.List {
		for range max(1, len(p.Names)) {
			name := fmt.Sprintf("mutant%d", len(declared))
			declared = append(declared, name+" "+s.of(p.Type))
			if _, many := p.Type.(*ast.Ellipsis); many {
				name += "..."
			}
			passed = append(passed, name)
		}
	}
	results, gives := "", ""
	if f.Type.Results != nil {
		results, gives = s.of(f.Type.Results)+" ", "return "
	}
	fmt.Fprintf(b, "%s(%s) %s{\n\tswitch mutantNumber {\n", f.Name.Name, strings.Join(declared, ", "), results)
	for _, v := range variants {
		fmt.Fprintf(b, "\tcase %d:\n\t\t%s%s%s(%s)\n", v.number, gives, call, called(f, v.number), strings.Join(passed, ", "))
		if gives == "" {
			b.WriteString("\t\treturn\n")
		}
	}
	fmt.Fprintf(b, "\t}\n\t%s%s%s(%s)\n}", gives, call, called(f, 0), strings.Join(passed, ", "))
}
