package graph

import (
	"fmt"
	"slices"
	"strings"
)

// document is a query that has passed the first bounds, with the types of its variables spelled as
// in the schema.
type document struct {
	text  string
	edits []edit
}

// edit is text that became longer.
type edit struct {
	line, column int // of its first character
	was, is      int // characters
}

// original returns the place in the query as it was sent.
func (d *document) original(at place) place {
	for _, e := range slices.Backward(d.edits) {
		switch {
		case e.line != at.line || at.column <= e.column:
		case at.column >= e.column+e.is:
			at.column -= e.is - e.was
		default:
			at.column = min(at.column, e.column+e.was-1)
		}
	}
	return at
}

// spellings are the names that clients give to our scalars.
var spellings = map[string]string{
	"string": "string", "String": "string", "ID": "string", "Time": "Time", "time": "Time", "DateTime": "Time", "Date": "Date", "date": "Date",
	"int": "int64", "Int": "int64", "int64": "int64", "Int64": "int64", "uint64": "uint64", "Uint64": "uint64", "UInt64": "uint64", "uint32": "uint32", "Uint32": "uint32",
	"int32": "int64", "uint16": "uint64", "uint8": "uint64", "float64": "float64", "Float64": "float64", "float": "float64", "Float": "float64",
	"bool": "Boolean", "Bool": "Boolean", "boolean": "Boolean", "Boolean": "Boolean",
}

// variable is a definition of one.
type variable struct {
	name       string
	kind       []token // the tokens of its type
	hasDefault bool
}

// reading walks over the tokens and checks what the library would spend too long on: brackets in
// each other, introspection in many places, names that are not there, for each of which it
// looks for one that is alike.
type reading struct {
	tokens    []token
	at        int
	field     string // the one whose arguments are read
	variables []variable
	uses      map[string]string // the type of the first place of a variable
}

// bracket is one that is open.
type bracket struct {
	kind tokenKind
	key  string // what the value is for: an argument or a member
}

// read checks a query and spells its types. The values of its variables say which are given.
func read(text string, values map[string]any) (*document, error) {
	if len(text) > MaxQueryBytes {
		return nil, fault{codeLimit, "query is longer than 16384 bytes"}
	}
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	r := &reading{tokens: tokens, uses: map[string]string{}}
	if err := r.walk(); err != nil {
		return nil, err
	}
	for _, v := range r.variables {
		if members := inputs[v.base()]; members != nil {
			if err := known(members, values[v.name], "variables."+v.name); err != nil {
				return nil, err
			}
		}
	}
	return r.spell(text, values), nil
}

// base returns the name in a variable's type.
func (v variable) base() string {
	for _, t := range v.kind {
		if t.kind == aName {
			return t.text
		}
	}
	return ""
}

// known refuses a value that has a member which its type has not. The depth of values is bounded.
func known(members map[string]string, value any, path string) error {
	switch value := value.(type) {
	case []any:
		for i, one := range value {
			if err := known(members, one, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range sorted(value) {
			if _, ok := members[name]; !ok {
				return fault{codeInvalid, fmt.Sprintf("%s: there is no field %s", path, printed(name))}
			}
			if err := known(members, value[name], path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reading) walk() error {
	var open []bracket
	key := ""
	operations, lists, schemas, types := 0, 0, 0, 0
	for ; r.at < len(r.tokens); r.at++ {
		t := r.tokens[r.at]
		inArguments := slices.ContainsFunc(open, func(b bracket) bool { return b.kind == '(' })
		inObject := inArguments && open[len(open)-1].kind == '{'
		switch t.kind {
		case '(', '[', '{':
			if t.kind == '(' && !inArguments {
				if lists++; lists > MaxArguments {
					return t.refuse(codeLimit, "query has more than %d lists of arguments", MaxArguments)
				}
				r.field = r.name(-1)
			}
			if len(open) == 0 && t.kind == '{' {
				operations++
			}
			open = append(open, bracket{t.kind, key})
			if len(open) > MaxNesting {
				return t.refuse(codeLimit, "brackets are too deep in each other (at most %d)", MaxNesting)
			}
			if len(open) == 1 && t.kind == '(' && r.definesVariables() {
				if err := r.definitions(); err != nil {
					return err
				}
				open = open[:0] // definitions ends at the closing bracket
			}
		case ')', ']', '}':
			if n := len(open); n > 0 {
				key, open = open[n-1].key, open[:n-1]
			}
		case '$':
			if inArguments && r.name(1) != "" {
				r.use(r.name(1), key, open)
				r.at++
			}
		case aName:
			switch {
			case t.text == "__schema":
				schemas++
			case t.text == "__type":
				types++
			}
			if schemas > 1 || types > 5 {
				return t.refuse(codeLimit, "query asks for the schema too often (__schema once, __type 5 times)")
			}
			switch {
			case !inArguments:
			case r.is(1, ':'):
				if key = t.text; inObject {
					if err := r.isMember(arguments[r.field].filter); err != nil {
						return err
					}
				}
			case t.text != "true" && t.text != "false" && t.text != "null":
				if _, _, ok := orderOf(arguments[r.field].orders, t.text); !ok {
					return t.refuse(codeInvalid, "There is no value %q for %s of %s.", t.text, key, r.field)
				}
			}
		}
		if operations > maxOperations {
			return t.refuse(codeLimit, "query has more than %d operations and fragments", maxOperations)
		}
	}
	return nil
}

// name returns the name that stands n tokens further on, or nothing.
func (r *reading) name(n int) string {
	if i := r.at + n; i >= 0 && i < len(r.tokens) && r.tokens[i].kind == aName {
		return r.tokens[i].text
	}
	return ""
}

func (r *reading) is(n int, kind tokenKind) bool {
	i := r.at + n
	return i >= 0 && i < len(r.tokens) && r.tokens[i].kind == kind
}

// definesVariables reports whether the bracket here follows the head of an operation.
func (r *reading) definesVariables() bool {
	isHead := func(name string) bool { return name == "query" || name == "mutation" || name == "subscription" }
	return isHead(r.name(-1)) && !r.is(-2, '@') || r.name(-1) != "" && isHead(r.name(-2)) && !r.is(-1, '@')
}

// definitions reads those of variables, up to the bracket that ends them.
func (r *reading) definitions() error {
	for r.at++; r.at < len(r.tokens) && !r.is(0, ')'); r.at++ {
		if !r.is(0, '$') || r.name(1) == "" || !r.is(2, ':') {
			if r.is(0, '(') || r.is(0, '{') || r.is(0, '[') {
				of := ""
				if n := len(r.variables); n > 0 {
					of = r.variables[n-1].base()
				}
				if err := r.skip(of); err != nil {
					return err
				}
			}
			continue
		}
		v := variable{name: r.name(1)}
		for r.at += 3; r.at < len(r.tokens) && (r.is(0, '[') || r.is(0, aName) || r.is(0, ']') || r.is(0, '!')); r.at++ {
			v.kind = append(v.kind, r.tokens[r.at])
		}
		v.hasDefault = r.is(0, '=')
		if r.variables = append(r.variables, v); len(r.variables) > MaxVariables {
			return r.tokens[r.at-1].refuse(codeLimit, "query has more than %d variables", MaxVariables)
		}
		r.at--
	}
	return nil
}

// skip passes a bracket with what is in it: a default of a type, or the argument of a directive.
func (r *reading) skip(of string) error {
	depth := 0
	for ; r.at < len(r.tokens); r.at++ {
		switch t := r.tokens[r.at]; t.kind {
		case '(', '[', '{':
			if depth++; depth > MaxNesting {
				return t.refuse(codeLimit, "brackets are too deep in each other (at most %d)", MaxNesting)
			}
		case ')', ']', '}':
			if depth--; depth == 0 {
				return nil
			}
		case aName:
			if r.is(1, ':') && inputs[of] != nil {
				if err := r.isMember(of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isMember refuses the name here unless an input object has it.
func (r *reading) isMember(of string) error {
	t := r.tokens[r.at]
	if _, ok := inputs[of][t.text]; !ok {
		if of == "" {
			return t.refuse(codeInvalid, "Field %q is not defined here.", t.text)
		}
		return t.refuse(codeInvalid, "Field %q is not defined by type %q.", t.text, of)
	}
	return nil
}

// use notes the type of the place that a variable stands in.
func (r *reading) use(name, key string, open []bracket) {
	kind := positions[key]
	if n := len(open); n > 0 && open[n-1].kind == '[' {
		kind = strings.TrimSuffix(strings.TrimPrefix(kind, "["), "!]")
	}
	if r.uses[name] == "" {
		r.uses[name] = kind
	}
}

// spell writes the types of variables as the schema has them: a scalar as that of the place where
// the variable stands, and with an exclamation mark when it has a value.
func (r *reading) spell(text string, values map[string]any) *document {
	d := &document{}
	from := 0
	var b strings.Builder
	for _, v := range r.variables {
		want, ok := v.spelled(r.uses[v.name], values[v.name])
		if !ok {
			continue
		}
		first, last := v.kind[0], v.kind[len(v.kind)-1]
		was := text[first.start:last.end]
		// What follows stays in its place where it can: on a line of its own, or after spaces.
		line, rest, lines := strings.Cut(was, "\n")
		is := max(len(want), len([]rune(line)))
		b.WriteString(text[from:first.start])
		b.WriteString(want + strings.Repeat(" ", is-len(want)))
		if lines {
			for _, c := range "\n" + rest {
				if c != '\n' {
					c = ' '
				}
				b.WriteRune(c)
			}
		}
		if width := len([]rune(line)); is > width {
			// The columns of edits are those of the new text.
			column := first.column
			for _, e := range d.edits {
				if e.line == first.line {
					column += e.is - e.was
				}
			}
			d.edits = append(d.edits, edit{first.line, column, width, is})
		}
		from = last.end
	}
	b.WriteString(text[from:])
	d.text = b.String()
	return d
}

// spelled returns a variable's type, unless it is to stay as it is.
func (v variable) spelled(position string, value any) (string, bool) {
	var base, before, after string
	for _, t := range v.kind {
		switch {
		case t.kind == aName && base != "":
			return "", false
		case t.kind == aName:
			base = t.text
		case base == "":
			before += string(t.kind)
		default:
			after += string(t.kind)
		}
	}
	kind, scalar := spellings[base]
	switch {
	case base == "" || before != "" && before != "[":
		return "", false
	case scalar && strings.Trim(position, "[!]") != "":
		kind = strings.Trim(position, "[!]")
	case !scalar:
		kind = base
	}
	list := before == "["
	outer := strings.HasSuffix(after, "!") || value != nil && !v.hasDefault
	if list {
		outer = strings.HasSuffix(after, "]!") || value != nil && !v.hasDefault
		items, _ := value.([]any)
		if strings.HasPrefix(after, "!") || value != nil && !slices.Contains(items, nil) {
			kind += "!"
		}
		kind = "[" + kind + "]"
	}
	if outer {
		kind += "!"
	}
	was := before + base + after
	return kind, kind != was
}
