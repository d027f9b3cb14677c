// Package strict reads YAML files that people write, and reports everything that is wrong with one: each fault with its
// line and column, what is wrong, and what to write instead.
//
// A file is described by a struct whose tags give each key its name, default, bounds and description (see
// [field.Field]). The decoder ([Reader]), the JSON Schema ([Schema]) and the reference page ([Manual]) are made from
// these tags and nothing else. Unknown keys, keys given twice and values of the wrong type are faults; nothing is
// guessed. Everything is bounded: the file, its lists, what aliases expand to, and the number of faults.
package strict

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

const maxFaults = 1_000 // more help nobody

// Place is where a value came from: a position in the file, or a source that overrides the file.
type Place struct {
	Line, Column int    // 1-based; 0 when it is not from the file
	Source       string // "--listen" or "ANTEROOM_LISTEN"; empty for the file
}

// Reader reads one file into a struct and collects the faults, its own and those of its
// caller.
type Reader struct {
	// Where has, by path, everything that was set, and where. A caller that puts a value
	// over the file's adds it, and one that asks whether a key was given looks here.
	Where map[string]Place
	// Broken says that the file could not be read as a whole: what it lacks is unknown.
	Broken bool
	// Files are all files that were read, or tried, in order.
	Files []string
	// Warnings are what [Reader.Warn] noted, one per line, like those of [Reader.Err].
	Warnings []string

	file   string
	dir    string // relative paths start here
	open   func(name string) (io.ReadCloser, error)
	faults []located
	nodes  int
	shapes map[reflect.Type][]field.Field
}

// located is a fault and the file that its position is in.
type located struct {
	anteroom.Fault
	file string
}

// String is the fault with its file, line and column before it, where it has them.
func (l located) String() string {
	if l.Line == 0 {
		return l.Fault.String()
	}
	return fmt.Sprintf("%s:%d:%d: %s", l.file, l.Line, l.Column, l.Fault.String())
}

// New returns a reader of a file. Paths in the file are relative to its folder; open opens
// files, and nil means os.Open.
func New(file string, open func(name string) (io.ReadCloser, error)) *Reader {
	if open == nil {
		open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	return &Reader{
		Where: make(map[string]Place), file: file, dir: filepath.Dir(file), open: open, shapes: make(map[reflect.Type][]field.Field),
	}
}

// Load reads the file into the struct that doc points to, which has its defaults (see
// [field.Fill]).
func (r *Reader) Load(doc any) {
	data, ok := r.Read("file", r.file, maxFileBytes)
	if !ok {
		r.Broken = true
		return
	}
	r.decode(data, doc)
}

// At adds a fault of the value at a path, wherever that value came from. A path that
// already has a fault gets no second one.
func (r *Reader) At(path, problem, fix string) {
	f := r.locate(path, problem, fix)
	for _, old := range r.faults {
		if old.Path == f.Path || strings.HasPrefix(path, old.Path+".") || strings.HasPrefix(path, old.Path+"[") {
			return
		}
	}
	r.add(located{Fault: f, file: r.file})
}

// Warn notes something about the value at a path that is not a fault.
func (r *Reader) Warn(path, problem, fix string) {
	r.Warnings = append(r.Warnings, located{r.locate(path, problem, fix), r.file}.String())
}

// locate makes a fault with the place that the value at its path came from.
func (r *Reader) locate(path, problem, fix string) anteroom.Fault {
	f := anteroom.Fault{Path: path, Problem: problem, Fix: fix}
	for p := path; ; p = parent(p) {
		if from, known := r.Where[p]; known {
			f.Line, f.Column = from.Line, from.Column
			if from.Source != "" {
				f.Path = from.Source
			}
			break
		}
		if p == "" {
			break
		}
	}
	return f
}

// In adds a fault in another file that the value at a path names.
func (r *Reader) In(file string, line, column int, path, problem, fix string) {
	r.add(located{Fault: anteroom.Fault{Path: path, Problem: problem, Fix: fix, Line: line, Column: column}, file: file})
}

func (r *Reader) add(f located) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, f)
	}
}

// parent returns the path without its last member.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// Read returns a file of at most the given number of bytes, or adds a fault at path.
func (r *Reader) Read(path, name string, most int64) ([]byte, bool) {
	if !slices.Contains(r.Files, name) {
		r.Files = append(r.Files, name)
	}
	in, err := r.open(name)
	if err != nil {
		r.At(path, cannotRead(name, err), openHint(err))
		return nil, false
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		r.At(path, cannotRead(name, err), "it has to be a plain file")
		return nil, false
	}
	if int64(len(data)) > most {
		r.At(path, fmt.Sprintf("%s has more than %d bytes", field.Quote(name), most), "check that it is the right file")
		return nil, false
	}
	return data, true
}

// Readable adds a fault at path unless the file can be opened. Its reading is left to others.
func (r *Reader) Readable(path, name string) {
	if !slices.Contains(r.Files, name) {
		r.Files = append(r.Files, name)
	}
	in, err := r.open(name)
	if err != nil {
		r.At(path, cannotRead(name, err), openHint(err))
		return
	}
	in.Close()
}

// openHint says what helps against an error of opening a file. Services have users of their own, and operators write files as another.
func openHint(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return "check the path and its permissions; a relative path starts at the file it stands in"
	}
	who := fmt.Sprintf("user number %d", os.Geteuid())
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		who = "user " + u.Username
	}
	return "this process runs as " + who + ", who has to be able to read it: check the permissions of the file and its directories"
}

func cannotRead(name string, err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the name, which the message has
	}
	return fmt.Sprintf("%s cannot be read: %v", quotePath(name), err)
}

// quotePath shows the end of a path, where the file's own name is.
func quotePath(path string) string {
	if r := []rune(path); len(r) > 200 {
		return "…" + strconv.Quote(string(r[len(r)-200:]))
	}
	return strconv.Quote(path)
}

// OK reports whether there have been no faults.
func (r *Reader) OK() bool { return len(r.faults) == 0 }

// Err returns nil if there are no faults, otherwise an error of kind Invalid that wraps [anteroom.Faults] and whose
// message has a line for each: "anteroom.yaml:12:5: listen: is empty (…)". They are in the order of the file; faults in
// other files and faults without a position come last.
func (r *Reader) Err() error {
	if r.OK() {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b located) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		if (a.file == r.file) != (b.file == r.file) {
			return map[bool]int{true: -1, false: 1}[a.file == r.file]
		}
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	faults, lines := make(anteroom.Faults, len(r.faults)), make([]string, len(r.faults))
	for i, f := range r.faults {
		faults[i], lines[i] = f.Fault, f.String()
	}
	return &anteroom.Error{Kind: anteroom.Invalid, Msg: strings.Join(lines, "\n"), Err: faults}
}
