package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Bounds of a filter.
const (
	maxConditions   = 100
	maxFilterValues = 1000 // in lists like waitingRoomId_in
	maxFilterDepth  = 8    // of AND and OR in each other
	maxPatternBytes = 256
)

// filter is conditions that all hold, each of and, and one of or.
type filter struct {
	conditions []condition
	and, or    []*filter
}

// condition compares a field with values.
type condition struct {
	key      key
	operator string // a suffix without its underscore
	values   []value
}

// value is what a field is compared with; which part of it counts is the key's kind.
type value struct {
	text   string
	number float64
	time   time.Time
}

// facts are what is known of a row; what is not known might be anything.
type facts struct {
	at   time.Time // the beginning of its minute; zero is unknown
	room *room     // nil is unknown
	cell *cell     // nil is unknown
}

// match reports whether a row of which this is known can pass.
func (f *filter) match(known facts) bool {
	for i := range f.conditions {
		if !f.conditions[i].match(known) {
			return false
		}
	}
	for _, one := range f.and {
		if !one.match(known) {
			return false
		}
	}
	return len(f.or) == 0 || slices.ContainsFunc(f.or, func(one *filter) bool { return one.match(known) })
}

func (c *condition) match(known facts) bool {
	switch {
	case c.key.unit > 0:
		if known.at.IsZero() {
			return true
		}
		at := known.at.Truncate(c.key.unit)
		return holds(c.operator, c.values, func(v value) int { return at.Compare(v.time) })
	case c.key.text != nil:
		if known.room == nil {
			return true
		}
		text := c.key.text(known.room)
		switch c.operator {
		case "like":
			return like(text, c.values[0].text)
		case "notlike":
			return !like(text, c.values[0].text)
		}
		return holds(c.operator, c.values, func(v value) int { return cmp.Compare(text, v.text) })
	}
	if known.cell == nil {
		return true
	}
	number := c.key.number(known.cell)
	return holds(c.operator, c.values, func(v value) int { return cmp.Compare(number, v.number) })
}

func holds(operator string, values []value, compare func(value) int) bool {
	switch operator {
	case "in", "notin":
		return (operator == "in") == slices.ContainsFunc(values, func(v value) bool { return compare(v) == 0 })
	}
	c := compare(values[0])
	switch operator {
	case "neq":
		return c != 0
	case "gt":
		return c > 0
	case "geq":
		return c >= 0
	case "lt":
		return c < 0
	case "leq":
		return c <= 0
	}
	return c == 0
}

// like reports whether a text fits a pattern, in which % stands for any signs, _ for one, and \
// makes the next sign stand for itself. Its time is at most the product of the two lengths.
func like(text, pattern string) bool {
	s, p := []rune(text), []rune(pattern)
	i, j, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(p) && p[j] == '%':
			star, from = j, i
			j++
			continue
		case j+1 < len(p) && p[j] == '\\':
			if p[j+1] == s[i] {
				i, j = i+1, j+2
				continue
			}
		case j < len(p) && (p[j] == '_' || p[j] == s[i]):
			i, j = i+1, j+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		i, j = from, star+1
	}
	for j < len(p) && p[j] == '%' {
		j++
	}
	return j == len(p)
}

// filterReader makes a filter of an input object.
type filterReader struct {
	keys               map[string]key
	conditions, values int
}

func (r *filterReader) read(input any, path string, depth int) (*filter, error) {
	object, ok := input.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %s is not an object", path, printed(input))
	}
	if depth > maxFilterDepth {
		return nil, fmt.Errorf("%s: AND and OR are nested too deeply (at most %d)", path, maxFilterDepth)
	}
	f := &filter{}
	for _, name := range sorted(object) {
		in := object[name]
		at := path + "." + name
		if in == nil {
			continue // a variable without a value
		}
		if name == "AND" || name == "OR" {
			all, err := r.readAll(in, at, depth)
			if err != nil {
				return nil, err
			}
			if name == "AND" {
				f.and = all
			} else {
				f.or = all
			}
			continue
		}
		c, err := r.condition(name, in, at)
		if err != nil {
			return nil, err
		}
		f.conditions = append(f.conditions, c)
	}
	return f, nil
}

// listOf returns a list's items; a single value is a list of one.
func listOf(input any) []any {
	if list, ok := input.([]any); ok {
		return list
	}
	return []any{input}
}

func (r *filterReader) readAll(input any, path string, depth int) (all []*filter, err error) {
	for i, one := range listOf(input) {
		f, err := r.read(one, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if err != nil {
			return nil, err
		}
		// An empty one holds always, and counts: nobody needs a list of them.
		if r.conditions++; r.conditions > maxConditions {
			return nil, fmt.Errorf("%s: the filter has too many conditions (at most %d)", path, maxConditions)
		}
		all = append(all, f)
	}
	return all, nil
}

func (r *filterReader) condition(name string, input any, path string) (condition, error) {
	field, operator, _ := strings.Cut(name, "_")
	k, ok := r.keys[field]
	if ok {
		_, ok = inputType(k, name[len(field):])
	}
	if !ok {
		return condition{}, fmt.Errorf("%s: there is no such field", path)
	}
	if r.conditions++; r.conditions > maxConditions {
		return condition{}, fmt.Errorf("%s: the filter has too many conditions (at most %d)", path, maxConditions)
	}
	c := condition{key: k, operator: operator}
	inputs := []any{input}
	if operator == "in" || operator == "notin" {
		inputs = listOf(input)
	}
	if r.values += len(inputs); r.values > maxFilterValues {
		return c, fmt.Errorf("%s: the filter has too many values (at most %d)", path, maxFilterValues)
	}
	for _, in := range inputs {
		v, err := k.read(in)
		if err == nil && (operator == "like" || operator == "notlike") && len(v.text) > maxPatternBytes {
			err = fmt.Errorf("the pattern has more than %d bytes", maxPatternBytes)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", path, err)
		}
		c.values = append(c.values, v)
	}
	return c, nil
}

// read takes a value that the field is to be compared with.
func (k key) read(input any) (v value, err error) {
	switch k.kind {
	case "Time", "Date":
		text, ok := input.(string)
		if !ok {
			return v, fmt.Errorf("%s is not a text", printed(input))
		}
		layout, example := time.RFC3339, "2026-11-27T09:00:00Z"
		if k.kind == "Date" {
			layout, example = time.DateOnly, "2026-11-27"
		}
		if v.time, err = time.Parse(layout, text); err != nil || v.time.Year() < 1970 || v.time.Year() > 9999 {
			return v, fmt.Errorf("%s is not a time (write it like %s)", printed(input), example)
		}
		v.time = v.time.UTC()
	case "string":
		text, ok := input.(string)
		if !ok {
			return v, fmt.Errorf("%s is not a text", printed(input))
		}
		v.text = text
	default:
		n, ok := whole(input)
		if !ok {
			return v, fmt.Errorf("%s is not a whole number", printed(input))
		}
		v.number = float64(n)
	}
	return v, nil
}

// readFilter makes a filter over keys of an input object.
func readFilter(keys map[string]key, input any) (*filter, error) {
	f, err := (&filterReader{keys: keys}).read(input, "filter", 1)
	if err != nil {
		return nil, fault{code: codeInvalid, message: err.Error()}
	}
	return f, nil
}

// whole returns an input's whole number.
func whole(input any) (int64, bool) {
	switch n := input.(type) {
	case int64:
		return n, true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	}
	return 0, false
}

// printed shows an input in an error, cut.
func printed(input any) string {
	const most = 60
	text := fmt.Sprintf("%v", input)
	if s, ok := input.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
