package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
)

const (
	maxFileBytes   = 4 << 20
	maxListMembers = 10_000
	maxNodes       = 1_000_000 // values visited, each use of an alias counted
	maxMergeDepth  = 8         // "<<" inside what "<<" refers to
	maxFaults      = 1_000     // more help nobody
)

// place is where a value came from: a position in the file, or the flag or variable.
type place struct {
	line, column int
	source       string // "--listen" or "ANTEROOM_LISTEN"; empty for the file
}

// decoder reads a YAML tree into the structs of this package. The structs bound its depth
// whatever the file refers to; nothing is decoded that no key asks for.
type decoder struct {
	dir    string           // relative paths start here
	where  map[string]place // by path: what was set, and where
	faults anteroom.Faults
	nodes  int
	shapes map[reflect.Type][]field
	broken bool // the file could not be read as a whole: what it lacks is unknown
}

func (d *decoder) fault(n *yaml.Node, path, problem, fix string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, anteroom.Fault{Path: path, Problem: problem, Fix: fix, Line: n.Line, Column: n.Column})
	}
}

// decode reads one document.
func (d *decoder) decode(data []byte, doc *document) {
	top := &yaml.Node{Line: 1, Column: 1}
	in := yaml.NewDecoder(bytes.NewReader(data))
	var n, second yaml.Node
	err := in.Decode(&n)
	if errors.Is(err, io.EOF) {
		return // an empty file sets nothing
	}
	if err == nil {
		err = in.Decode(&second)
	}
	switch {
	case err == nil:
		d.fault(&second, "file", "has a second document", "remove everything from the second \"---\" on")
	case !errors.Is(err, io.EOF):
		d.faults = append(d.faults, syntaxFault(err))
	case len(n.Content) == 0 || isNull(n.Content[0]):
		return
	case n.Content[0].Kind != yaml.MappingNode:
		d.fault(top, "file", "is "+kindOf(n.Content[0])+" and not a section", "begin lines with keys, like \"listen: …\"")
	default:
		d.section(n.Content[0], reflect.ValueOf(doc).Elem(), "", n.Content[0])
		return
	}
	d.broken = true
}

// syntaxFault turns the parser's "yaml: line 3: what" into a fault.
func syntaxFault(err error) anteroom.Fault {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
	}
	return anteroom.Fault{Path: "file", Problem: "is not YAML: " + what, Fix: "check indentation, quotes and colons near the line", Line: line, Column: 1}
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// entries returns the keys of a mapping with those that "<<" brings in after its own.
func (d *decoder) entries(n *yaml.Node, path string, depth int) []entry {
	var own, merged []entry
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if d.nodes++; d.nodes > maxNodes {
			break
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, d.mergedEntries(value, path, depth)...)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.fault(key, under(path, key.Value), fmt.Sprintf("is given twice, first in line %d", line), "remove one")
			continue
		}
		seen[key.Value] = key.Line
		own = append(own, entry{key, value})
	}
	for _, e := range merged {
		if _, given := seen[e.key.Value]; !given {
			seen[e.key.Value] = e.key.Line
			own = append(own, e)
		}
	}
	return own
}

func (d *decoder) mergedEntries(value *yaml.Node, path string, depth int) []entry {
	from := []*yaml.Node{value}
	if target := resolve(value); target.Kind == yaml.SequenceNode {
		from = target.Content
	}
	var out []entry
	for _, n := range from {
		if d.nodes++; d.nodes > maxNodes {
			break
		}
		if n = resolve(n); n.Kind != yaml.MappingNode || depth >= maxMergeDepth {
			d.fault(value, under(path, "<<"), "does not refer to a section", "write <<: *name of an anchor that is a section")
			break
		}
		out = append(out, d.entries(n, path, depth+1)...)
	}
	return out
}

func resolve(n *yaml.Node) *yaml.Node {
	for range maxMergeDepth {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// fieldsOf reads the tags of each struct once: a file may have ten thousand rooms.
func (d *decoder) fieldsOf(t reflect.Type) []field {
	fields, known := d.shapes[t]
	if !known {
		fields = fieldsOf(t)
		d.shapes[t] = fields
	}
	return fields
}

// section reads a mapping into a struct. Faults of the whole are placed at head.
func (d *decoder) section(n *yaml.Node, v reflect.Value, path string, head *yaml.Node) {
	fields := d.fieldsOf(v.Type())
	n = resolve(n)
	if isNull(n) {
		n = &yaml.Node{Kind: yaml.MappingNode}
	}
	if n.Kind != yaml.MappingNode {
		d.fault(head, path, "is "+kindOf(n)+" and not a section", "write its keys below it, like "+fields[0].key+": …")
		return
	}
	given := make(map[string]bool)
	for _, e := range d.entries(n, path, 0) {
		f := find(fields, e.key.Value)
		if e.key.Kind != yaml.ScalarNode || f == nil {
			d.fault(e.key, under(path, printable(e.key.Value)), "is not a key here", suggestion(e.key.Value, fields))
			continue
		}
		if isNull(resolve(e.value)) {
			continue // as if not given
		}
		given[f.key] = true
		d.value(e.value, v.FieldByIndex(f.index), *f, under(path, f.key), e)
	}
	for _, f := range fields {
		if f.required && !given[f.key] {
			d.fault(head, under(path, f.key), "is missing", f.doc)
		}
	}
}

// value reads what a key has. Positions are those of the value where it stands, which for
// an alias is the alias.
func (d *decoder) value(n *yaml.Node, v reflect.Value, f field, path string, e entry) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fault(n, path, fmt.Sprintf("is beyond %d values, aliases counted each time", maxNodes), "use fewer aliases")
		}
		return
	}
	at := n
	d.where[path] = place{line: at.Line, column: at.Column}
	n = resolve(n)
	switch {
	case f.isSection():
		d.section(n, v, path, e.key)
	case !f.isList():
		if w := d.scalar(n, v, f); w != nil {
			d.fault(at, path, w.problem, w.fix)
		}
	case n.Kind == yaml.SequenceNode:
		d.list(n, v, f, path)
	case f.isSections():
		d.fault(at, path, "is "+kindOf(n)+" and not a list", "begin each member with \"- \"")
	default: // a list of one may be written without brackets
		d.list(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{at}, Line: at.Line, Column: at.Column}, v, f, path)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, f field, path string) {
	if len(n.Content) > maxListMembers {
		d.fault(n, path, fmt.Sprintf("has %d members", len(n.Content)), fmt.Sprintf("at most %d", maxListMembers))
		return
	}
	list := reflect.MakeSlice(f.typ, len(n.Content), len(n.Content))
	blank := reflect.New(f.typ.Elem()).Elem()
	if f.isSections() {
		fill(blank)
	}
	for i, member := range n.Content {
		if d.nodes++; d.nodes > maxNodes {
			d.fault(member, path, fmt.Sprintf("is beyond %d values, aliases counted each time", maxNodes), "use fewer aliases")
			return
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		d.where[at] = place{line: member.Line, column: member.Column}
		if f.isSections() {
			list.Index(i).Set(blank)
			d.section(member, list.Index(i), at, member)
		} else if w := d.scalar(resolve(member), list.Index(i), f); w != nil {
			d.fault(member, at, w.problem, w.fix)
		}
	}
	v.Set(list)
}

// scalar reads one value. YAML's own idea of its type must agree with ours, so that no
// text is guessed into a number or the other way round.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, f field) *wrong {
	if n.Kind != yaml.ScalarNode {
		return &wrong{"is " + kindOf(n) + " and not " + f.wants(v.Type()), ""}
	}
	tag, text := n.ShortTag(), n.Value
	ok := tag == "!!str"
	switch {
	case v.Type() == durationType:
		ok = ok || tag == "!!int"
	case v.Kind() == reflect.Bool:
		ok = tag == "!!bool"
	case v.Kind() == reflect.Int:
		ok = tag == "!!int"
		text = strings.ReplaceAll(text, "_", "")
	case !ok && v.Kind() == reflect.String:
		return &wrong{fmt.Sprintf("%s is %s and not text", quote(n.Value), kindOf(n)), "put it in quotes: \"" + printable(n.Value) + "\""}
	}
	if !ok {
		return &wrong{fmt.Sprintf("%s is %s and not %s", quote(n.Value), kindOf(n), f.wants(v.Type())), f.span()}
	}
	if f.file && text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(d.dir, text)
	}
	return f.setOne(v, text)
}

// wants names the kind of value in a fault.
func (f field) wants(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration like 30s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	}
	return "text"
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a section"
	case yaml.AliasNode:
		return "a chain of aliases"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "empty"
	case "!!binary":
		return "binary"
	}
	return "text"
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

func suggestion(word string, fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if k := didYouMean(word, keys); k != "" {
		return "did you mean " + k + "?"
	}
	return "known here: " + strings.Join(keys, ", ")
}

func under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// printable is a key as part of a path: short, without control characters.
func printable(s string) string {
	q := quote(s)
	return strings.Trim(q, `"`)
}
