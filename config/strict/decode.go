package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

const (
	maxFileBytes   = 4 << 20
	maxListMembers = 10_000
	maxNodes       = 1_000_000 // values visited, each use of an alias counted
	maxMergeDepth  = 8         // "<<" inside what "<<" refers to
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

func (r *Reader) fault(n *yaml.Node, path, problem, fix string) {
	r.add(located{Fault: anteroom.Fault{Path: path, Problem: problem, Fix: fix, Line: n.Line, Column: n.Column}, file: r.file})
}

// decode reads one document.
func (r *Reader) decode(data []byte, doc any) {
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
		r.fault(&second, "file", "has a second document", "remove everything from the second \"---\" on")
	case !errors.Is(err, io.EOF):
		r.add(located{Fault: syntaxFault(data, err), file: r.file})
	case len(n.Content) == 0 || isNull(n.Content[0]):
		return
	case n.Content[0].Kind != yaml.MappingNode:
		r.fault(top, "file", "is "+kindOf(n.Content[0])+" and not a section", "begin lines with keys, like \""+r.fieldsOf(reflect.TypeOf(doc).Elem())[0].Key+": …\"")
	default:
		r.section(n.Content[0], reflect.ValueOf(doc).Elem(), "", n.Content[0])
		return
	}
	r.Broken = true
}

// syntaxFault turns the parser's "yaml: line 3: what" into a fault at the line that has to be changed. Of a list or section
// whose lines do not fit together the parser names the line before its first one, which may be a hundred lines up.
func syntaxFault(data []byte, err error) anteroom.Fault {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if unclosed := strings.Contains(what, "',' or '"); unclosed {
		line++ // of the bracket
	} else {
		line = faultyLine(lines, err)
	}
	line = min(line, len(lines))
	text := lines[line-1]
	start := len(text) - len(bytes.TrimLeft(text, " \t"))
	f := anteroom.Fault{Path: "file", Problem: "is not YAML: " + what, Fix: "check indentation, quotes and colons on this line", Line: line, Column: start + 1}
	above := indents(lines[:line-1])
	switch {
	case bytes.ContainsRune(text[:start], '\t'):
		f.Problem, f.Fix = "is indented with a tab", "use spaces"
	case len(above) > 0 && !slices.Contains(above, start):
		f.Problem, f.Fix = fmt.Sprintf("this line is indented by %d", start), fmt.Sprintf("the lines above that it can belong to are indented by %s", either(above))
	}
	return f
}

// faultyLine is the number of the line with which the lines from the first one on begin to give an error. The parser reads a
// few lines beyond it at most, unless a quote is not closed.
func faultyLine(lines [][]byte, err error) int {
	same := func(n int) bool {
		var to yaml.Node
		e := yaml.Unmarshal(bytes.Join(lines[:n], nil), &to)
		return e != nil && e.Error() == err.Error()
	}
	in := &lineReader{lines: lines}
	var to yaml.Node
	yaml.NewDecoder(in).Decode(&to) // err again
	const beyond = 4
	low, high := max(0, in.next-beyond), in.next
	if low > 0 && same(low) {
		low, high = 0, low
	}
	return 1 + low + sort.Search(max(0, high-low-1), func(i int) bool { return same(low + i + 1) })
}

// lineReader gives at most one line a read.
type lineReader struct {
	lines [][]byte
	next  int // first line of which nothing was read
	rest  []byte
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next == len(r.lines) {
			return 0, io.EOF
		}
		r.rest = r.lines[r.next]
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// indents are the indentations, smallest first, of the lines that another one below them can belong to. A key behind "- "
// counts as a line of its own.
func indents(lines [][]byte) []int {
	var open []int
	for _, line := range lines {
		text := bytes.TrimLeft(line, " ")
		at := len(line) - len(text)
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		for len(open) > 0 && open[len(open)-1] >= at {
			open = open[:len(open)-1]
		}
		for open = append(open, at); bytes.HasPrefix(text, []byte("- ")); {
			inner := bytes.TrimLeft(text[1:], " ")
			at, text = at+len(text)-len(inner), inner
			if bytes.HasPrefix(text, []byte("- ")) || bytes.ContainsRune(text, ':') {
				open = append(open, at)
			}
		}
	}
	return open
}

// either writes numbers as in "0, 2 or 4".
func either(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// entries returns the keys of a mapping with those that "<<" brings in after its own.
func (r *Reader) entries(n *yaml.Node, path string, depth int) []entry {
	var own, merged []entry
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if r.nodes++; r.nodes > maxNodes {
			break
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, r.mergedEntries(value, path, depth)...)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.fault(key, Under(path, key.Value), fmt.Sprintf("is given twice, first on line %d", line), "remove one")
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

func (r *Reader) mergedEntries(value *yaml.Node, path string, depth int) []entry {
	from := []*yaml.Node{value}
	if target := resolve(value); target.Kind == yaml.SequenceNode {
		from = target.Content
	}
	var out []entry
	for _, n := range from {
		if r.nodes++; r.nodes > maxNodes {
			break
		}
		if n = resolve(n); n.Kind != yaml.MappingNode || depth >= maxMergeDepth {
			r.fault(value, Under(path, "<<"), "does not refer to a section", "write <<: *name of an anchor that is a section")
			break
		}
		out = append(out, r.entries(n, path, depth+1)...)
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
func (r *Reader) fieldsOf(t reflect.Type) []field.Field {
	fields, known := r.shapes[t]
	if !known {
		fields = field.Of(t)
		r.shapes[t] = fields
	}
	return fields
}

// section reads a mapping into a struct. Faults of the whole are placed at head.
func (r *Reader) section(n *yaml.Node, v reflect.Value, path string, head *yaml.Node) {
	fields := r.fieldsOf(v.Type())
	n = resolve(n)
	if isNull(n) {
		n = &yaml.Node{Kind: yaml.MappingNode}
	}
	if n.Kind != yaml.MappingNode {
		r.fault(head, path, "is "+kindOf(n)+" and not a section", "write its keys below it, like "+fields[0].Key+": …")
		return
	}
	given := make(map[string]bool)
	for _, e := range r.entries(n, path, 0) {
		f := find(fields, e.key.Value)
		if e.key.Kind != yaml.ScalarNode || f == nil {
			r.fault(e.key, Under(path, printable(e.key.Value)), "is not a key here", suggestion(e.key.Value, fields))
			continue
		}
		if isNull(resolve(e.value)) {
			continue // as if not given
		}
		given[f.Key] = true
		r.value(e.value, f.Make(v), *f, Under(path, f.Key), e)
	}
	for _, f := range fields {
		if f.Required && !given[f.Key] {
			r.fault(head, Under(path, f.Key), "is missing", f.Doc)
		}
	}
}

// value reads what a key has. Positions are those of the value where it stands, which for
// an alias is the alias.
func (r *Reader) value(n *yaml.Node, v reflect.Value, f field.Field, path string, e entry) {
	if r.nodes++; r.nodes > maxNodes {
		if r.nodes == maxNodes+1 {
			r.fault(n, path, fmt.Sprintf("is beyond %d values, aliases counted each time", maxNodes), "use fewer aliases")
		}
		return
	}
	at := n
	r.Where[path] = Place{Line: at.Line, Column: at.Column}
	n = resolve(n)
	switch {
	case f.IsSection():
		r.section(n, v, path, e.key)
	case !f.IsList():
		if w := r.scalar(n, v, f); w != nil {
			r.fault(at, path, w.Problem, w.Fix)
		}
	case n.Kind == yaml.SequenceNode:
		r.list(n, v, f, path)
	case f.IsSections():
		r.fault(at, path, "is "+kindOf(n)+" and not a list", "begin each member with \"- \"")
	default: // a list of one may be written without brackets
		r.list(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{at}, Line: at.Line, Column: at.Column}, v, f, path)
	}
}

func (r *Reader) list(n *yaml.Node, v reflect.Value, f field.Field, path string) {
	if len(n.Content) > maxListMembers {
		r.fault(n, path, fmt.Sprintf("has %d members", len(n.Content)), fmt.Sprintf("at most %d", maxListMembers))
		return
	}
	list := reflect.MakeSlice(f.Type, len(n.Content), len(n.Content))
	blank := reflect.New(f.Type.Elem()).Elem()
	if f.IsSections() {
		field.Fill(blank)
	}
	for i, member := range n.Content {
		if r.nodes++; r.nodes > maxNodes {
			r.fault(member, path, fmt.Sprintf("is beyond %d values, aliases counted each time", maxNodes), "use fewer aliases")
			return
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		r.Where[at] = Place{Line: member.Line, Column: member.Column}
		if f.IsSections() {
			list.Index(i).Set(blank)
			r.section(member, list.Index(i), at, member)
		} else if w := r.scalar(resolve(member), list.Index(i), f); w != nil {
			r.fault(member, at, w.Problem, w.Fix)
		}
	}
	v.Set(list)
}

// scalar reads one value. YAML's own idea of its type must agree with ours, so that no
// text is guessed into a number or the other way round.
func (r *Reader) scalar(n *yaml.Node, v reflect.Value, f field.Field) *field.Wrong {
	if n.Kind != yaml.ScalarNode {
		return &field.Wrong{Problem: "is " + kindOf(n) + " and not " + wants(v.Type()), Fix: ""}
	}
	tag, text := n.ShortTag(), n.Value
	ok := tag == "!!str" || f.Moment && tag == "!!timestamp"
	switch {
	case v.Type() == durationType:
		ok = ok || tag == "!!int"
	case v.Kind() == reflect.Bool:
		ok = tag == "!!bool"
	case v.Kind() == reflect.Float64:
		ok = tag == "!!int" || tag == "!!float" || ok && f.Share && strings.HasSuffix(text, "%")
		text = strings.ReplaceAll(text, "_", "")
	case v.Kind() == reflect.Int:
		ok = tag == "!!int"
		text = strings.ReplaceAll(text, "_", "")
	case !ok && v.Kind() == reflect.String:
		return &field.Wrong{Problem: fmt.Sprintf("%s is %s and not text", field.Quote(n.Value), kindOf(n)), Fix: "put it in quotes: \"" + printable(n.Value) + "\""}
	}
	if !ok {
		return &field.Wrong{Problem: fmt.Sprintf("%s is %s and not %s", field.Quote(n.Value), kindOf(n), wants(v.Type())), Fix: f.Span()}
	}
	if f.File && text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(r.dir, text)
	}
	return f.SetOne(v, text)
}

// wants names the kind of value in a fault.
func wants(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration like 30s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
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

func find(fields []field.Field, key string) *field.Field {
	for i := range fields {
		if fields[i].Key == key {
			return &fields[i]
		}
	}
	return nil
}

func suggestion(word string, fields []field.Field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	if k := DidYouMean(word, keys); k != "" {
		return "did you mean " + k + "?"
	}
	return "known here: " + strings.Join(keys, ", ")
}

// Under is the path of a key below another.
func Under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// printable is a key as part of a path: short, without control characters.
func printable(s string) string {
	q := field.Quote(s)
	return strings.Trim(q, `"`)
}
