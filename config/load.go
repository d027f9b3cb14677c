package config

import (
	"bytes"
	"io"
	"maps"
	"os"
	"reflect"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
)

// LoadOptions says where the configuration comes from. With the zero value, it has only defaults, and the fault that
// there is no origin.
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
	// cookieName is the one that the configuration says. Rooms with faults are among them; what it
	// says about a value that has a fault already is dropped.
	Check func(cookieName string, rooms []anteroom.Room) anteroom.Faults
	// CheckSecret returns an error for a secret of the cluster that is too weak, without the secret in
	// it; nil means that only the length counts.
	CheckSecret func(secret string, core bool) error
}

// Load reads, resolves and checks a configuration. On any fault it returns none, and an
// error of kind Invalid that wraps [anteroom.Faults] and whose message has a line for each:
// "anteroom.yaml:12:5: rooms[0].name: is missing (…)".
func Load(o LoadOptions) (Config, error) {
	texts := texts{}
	l := loader{Reader: strict.New(o.File, texts.keep(o.Open)), o: o}
	l.read()
	kept := maps.Clone(texts) // without what check reads: certificates, keys, pages
	var rooms []anteroom.Room
	if !l.Broken {
		l.check()
		rooms = l.rooms()
	}
	if err := l.Err(); err != nil {
		return Config{}, err
	}
	c := l.doc.Config
	c.Rooms, c.File, c.Files, c.Warnings = rooms, o.File, l.Files, l.Warnings
	c.shown = func() shown {
		again := loader{Reader: strict.New(o.File, kept.keep(o.Open)), o: o}
		again.read()
		return shown{doc: &again.doc, where: again.Where}
	}
	return c, nil
}

type loader struct {
	*strict.Reader
	o     LoadOptions
	doc   document
	quick quick
}

// read resolves the values, without checking them.
func (l *loader) read() {
	field.Fill(reflect.ValueOf(&l.doc).Elem())
	field.FillFields(quickFields(), reflect.ValueOf(&l.quick).Elem())
	if l.o.File != "" {
		l.Load(&l.doc)
	}
	l.environment()
	l.flags()
	if !l.Broken {
		l.expandQuick()
	}
}

// texts are files as they were read.
type texts map[string]*bytes.Buffer

// keep opens files as open does, keeps what is read of them, and gives the same later.
func (t texts) keep(open func(name string) (io.ReadCloser, error)) func(name string) (io.ReadCloser, error) {
	if open == nil {
		open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	return func(name string) (io.ReadCloser, error) {
		if text := t[name]; text != nil {
			return io.NopCloser(bytes.NewReader(text.Bytes())), nil
		}
		in, err := open(name)
		if err != nil {
			return nil, err
		}
		t[name] = &bytes.Buffer{}
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(in, t[name]), in}, nil
	}
}
