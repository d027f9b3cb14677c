package house

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestOtherSystems finds what does not compile for the systems that releases are made for and nobody here runs. It checks types,
// of dependencies too, which takes a tenth of the time of a build; scripts/release builds.
func TestOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			parts, err := partsFor(system)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range typeErrors(parts) {
				t.Error(err)
			}
		})
	}
}

// part is a package as go list tells it, and its types once they are checked.
type part struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	ImportMap       map[string]string
	Standard        bool

	checked chan struct{} // closed when types and faults are there
	types   *types.Package
	faults  []error
}

// partsFor lists what the command consists of on a system, each package after those that it imports.
func partsFor(system string) (parts []*part, err error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Standard", "./cmd/anteroom")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(out); ; {
		p := &part{checked: make(chan struct{})}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return parts, cmd.Wait()
		} else if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
}

// typeErrors checks packages at the same time, each when its imports are.
func typeErrors(parts []*part) (faults []error) {
	all := map[string]*part{}
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, p := range parts {
		all[p.ImportPath] = p
	}
	for _, p := range parts {
		go func() {
			defer close(p.checked)
			for _, path := range p.Imports {
				if of := all[path]; of != nil {
					<-of.checked
				}
			}
			turn <- struct{}{}
			p.check(all)
			<-turn
		}()
	}
	for _, p := range parts {
		<-p.checked
		faults = append(faults, p.faults...)
	}
	return faults
}

// check needs the types of the imports.
func (p *part) check(all map[string]*part) {
	if p.ImportPath == "unsafe" {
		p.types = types.Unsafe
		return
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			p.faults = append(p.faults, err)
			return
		}
		files = append(files, f)
	}
	conf := types.Config{
		Sizes:            types.SizesFor("gc", "amd64"),
		IgnoreFuncBodies: p.Standard, // Go's own releases are built for these systems
		Error:            func(err error) { p.faults = append(p.faults, err) },
		Importer: importing(func(path string) (*types.Package, error) {
			if real, ok := p.ImportMap[path]; ok {
				path = real
			}
			if of := all[path]; of != nil && of.types != nil {
				return of.types, nil
			}
			return nil, fmt.Errorf("%s cannot be imported", path)
		}),
	}
	p.types, _ = conf.Check(p.ImportPath, fset, files, nil) // Error has heard the errors
}

type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }

// TestTypeErrors has the check find a fault.
func TestTypeErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\nvar x int = missing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	faults := typeErrors([]*part{{ImportPath: "a", Dir: dir, GoFiles: []string{"a.go"}, checked: make(chan struct{})}})
	if len(faults) != 1 {
		t.Errorf("%v", faults)
	}
}
