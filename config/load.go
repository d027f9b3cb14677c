package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
)

// LoadOptions says where the configuration comes from. The zero value gives the defaults
// and the fault that there is no site.
type LoadOptions struct {
	// File is the path of the YAML file; empty means none.
	File string
	// Env is the environment as os.Environ gives it. A variable with an empty value
	// counts as not set.
	Env []string
	// Flags are the flags that were given, by name without dashes; [Flags] lists all.
	Flags map[string]string
	// Open opens a file for reading; nil means os.Open.
	Open func(name string) (io.ReadCloser, error)
	// Check returns the faults that only show when the rooms stand together, with paths
	// like "rooms[0].routes[1].host"; nil means none. The rooms have their defaults, and
	// cookieName is the one that the configuration says.
	Check func(cookieName string, rooms []anteroom.Room) anteroom.Faults
}

// Load reads, resolves and checks a configuration. On any fault it returns none, and an
// error of kind Invalid that wraps [anteroom.Faults] and whose message has a line for each:
// "anteroom.yaml:12:5: rooms[0].name: is missing (…)".
func Load(o LoadOptions) (Config, error) {
	l := loader{o: o, decoder: decoder{dir: filepath.Dir(o.File), where: make(map[string]place), shapes: make(map[reflect.Type][]field)}}
	if l.o.Open == nil {
		l.o.Open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	fill(reflect.ValueOf(&l.doc).Elem())
	fill(reflect.ValueOf(&l.quick).Elem())
	if o.File != "" {
		if data, ok := l.read("file", o.File, maxFileBytes); ok {
			l.decode(data, &l.doc)
		} else {
			l.broken = true
		}
	}
	l.environment()
	l.flags()
	var rooms []anteroom.Room
	if !l.broken {
		l.expandQuick()
		l.check()
		rooms = l.rooms()
	}
	if len(l.faults) > 0 {
		return Config{}, l.failure()
	}
	c := l.doc.Config
	c.Rooms, c.Files = rooms, l.files
	c.shown = shown{doc: &l.doc, where: l.where}
	return c, nil
}

type loader struct {
	decoder
	o     LoadOptions
	doc   document
	quick Quick
	files []string
}

// at adds a fault of the value at a path, wherever that value came from. A path that
// already has a fault gets no second one.
func (l *loader) at(path, problem, fix string) {
	f := anteroom.Fault{Path: path, Problem: problem, Fix: fix}
	for p := path; ; p = parent(p) {
		if from, known := l.where[p]; known {
			f.Line, f.Column = from.line, from.column
			if from.source != "" {
				f.Path = from.source
			}
			break
		}
		if p == "" {
			break
		}
	}
	for _, old := range l.faults {
		if old.Path == f.Path || strings.HasPrefix(path, old.Path+".") || strings.HasPrefix(path, old.Path+"[") {
			return
		}
	}
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, f)
	}
}

// parent returns the path without its last member.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// read returns a whole file, or adds a fault at path.
func (l *loader) read(path, name string, most int64) ([]byte, bool) {
	if !slices.Contains(l.files, name) {
		l.files = append(l.files, name)
	}
	in, err := l.o.Open(name)
	if err != nil {
		l.at(path, cannotRead(name, err), "check the path and its permissions; a relative path starts at the file it stands in")
		return nil, false
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		l.at(path, cannotRead(name, err), "it has to be a plain file")
		return nil, false
	}
	if int64(len(data)) > most {
		l.at(path, fmt.Sprintf("%s has more than %d bytes", quote(name), most), "check that it is the right file")
		return nil, false
	}
	return data, true
}

func cannotRead(name string, err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the name, which the message has
	}
	return fmt.Sprintf("%s cannot be read: %v", quote(name), err)
}

// failure puts the faults in the order of the file, with those from elsewhere last.
func (l *loader) failure() error {
	slices.SortStableFunc(l.faults, func(a, b anteroom.Fault) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	lines := make([]string, len(l.faults))
	for i, f := range l.faults {
		if lines[i] = f.String(); f.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", l.o.File, f.Line, f.Column, lines[i])
		}
	}
	return &anteroom.Error{Kind: anteroom.Invalid, Msg: strings.Join(lines, "\n"), Err: l.faults}
}
