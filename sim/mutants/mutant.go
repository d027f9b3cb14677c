package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is a defect that the simulator must notice.
type mutant struct {
	name   string
	breaks string // a sentence: which rule the defect breaks
	worlds []worldID
	edits  []edit
	line   int // of its name in the list
}

// edit replaces text in one file. The old text occurs there exactly once.
type edit struct {
	file     string // from the root of the module
	old, new string
}

// worldID names a world and the seed that it runs with.
type worldID struct {
	name string
	seed uint64
}

func (w worldID) String() string { return fmt.Sprintf("%s %d", w.name, w.seed) }

func parseWorld(s string) (w worldID, err error) {
	name, seed, ok := strings.Cut(strings.TrimSpace(s), " ")
	if !ok {
		return w, fmt.Errorf("the world %q needs a name and a seed, as in \"drawn 12\"", s)
	}
	w.name = name
	if w.seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return w, fmt.Errorf("the world %q has no seed that is a number", s)
	}
	_, err = w.scenario()
	return w, err
}

// parse reads a list of mutants. See the head of mutants.txt for the format.
func parse(name, text string) (list []mutant, err error) {
	names := map[string]int{}
	var m *mutant
	var e *edit
	for i, line := range strings.Split(text, "\n") {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", name, i+1, fmt.Sprintf(format, args...))
		}
		key, rest, _ := strings.Cut(line, " ")
		switch {
		case key == "mutant":
			if before := names[rest]; rest == "" || before != 0 {
				return nil, bad("a mutant needs a name of its own, and %q has been used in line %d", rest, before)
			}
			names[rest] = i + 1
			list = append(list, mutant{name: rest, line: i + 1})
			m, e = &list[len(list)-1], nil
		case strings.HasPrefix(line, "#"), line == "":
			e = nil
		case m == nil:
			return nil, bad("expected \"mutant NAME\", found %q", line)
		case e != nil && line[0] == ' ':
			e.old, e.new = e.old+line[1:]+"\n", e.new+line[1:]+"\n"
		case e != nil && line[0] == '-':
			e.old += line[1:] + "\n"
		case e != nil && line[0] == '+':
			e.new += line[1:] + "\n"
		case key == "breaks":
			m.breaks = rest
		case key == "worlds":
			if m.worlds, err = parseWorlds(rest); err != nil {
				return nil, bad("%v", err)
			}
		case key == "file":
			m.edits = append(m.edits, edit{file: rest})
			e = &m.edits[len(m.edits)-1]
		default:
			return nil, bad("expected \"breaks\", \"worlds\", \"file\", or, after a file, lines that begin with a space, - or +; found %q", line)
		}
	}
	for _, m := range list {
		if m.breaks == "" || len(m.worlds) == 0 || len(m.edits) == 0 {
			return nil, fmt.Errorf("%s:%d: the mutant %q needs \"breaks\", \"worlds\" and \"file\"", name, m.line, m.name)
		}
		for _, e := range m.edits {
			if e.old == "" || e.old == e.new {
				return nil, fmt.Errorf("%s:%d: the mutant %q changes nothing in %s", name, m.line, m.name, e.file)
			}
		}
	}
	return list, nil
}

// apply returns the changed text of the mutant's files. It fails when the old text of an edit does
// not occur exactly once: the code has moved on, and the mutant must follow.
func (m *mutant) apply(root string) (changed map[string]string, err error) {
	changed = map[string]string{}
	for _, e := range m.edits {
		text, ok := changed[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, fmt.Errorf("the mutant %q: %w", m.name, err)
			}
			text = string(b)
		}
		if n := occurs("\n"+text, "\n"+e.old); n != 1 {
			return nil, fmt.Errorf("the mutant %q (line %d of the list) changes text that occurs %d times in %s, not once; update the mutant to the code as it is now:\n%s",
				m.name, m.line, n, e.file, e.old)
		}
		changed[e.file] = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+e.old, "\n"+e.new, 1), "\n")
	}
	return changed, nil
}

// occurs counts where a text occurs, also where two places overlap.
func occurs(text, part string) (n int) {
	for i := strings.Index(text, part); i >= 0; i = strings.Index(text, part) {
		n++
		text = text[i+1:]
	}
	return n
}
