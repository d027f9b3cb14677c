package graph

import (
	"bytes"
	"encoding/csv"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"strings"
)

// table is an answer flattened: a line for each row, a column for each field with the names of the objects
// that it is in before it.
type table struct {
	columns []string
	index   map[string]int
	lines   []map[int]string
}

// writeTable writes the data of an answer as CSV.
func writeTable(w http.ResponseWriter, data jsontext.Value) error {
	t := tableOf(data)
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="analytics.csv"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	out := csv.NewWriter(w)
	if len(t.columns) > 0 {
		out.Write(t.columns)
	}
	for _, line := range t.lines {
		cells := make([]string, len(t.columns))
		for i, cell := range line {
			cells[i] = cell
		}
		out.Write(cells)
	}
	out.Flush()
	return nil
}

// member is a value of an object, in the order of the answer.
type member struct {
	name  string
	value jsontext.Value
}

func tableOf(data jsontext.Value) *table {
	t := &table{index: map[string]int{}}
	t.object(data, "", nil)
	return t
}

// pair is a cell with its column.
type pair struct{ column, cell string }

// object adds the rows of an object. What stands beside its lists is repeated in each of their rows;
// without a list it is a row itself.
func (t *table) object(v jsontext.Value, prefix string, before []pair) {
	var lists []member
	cells := flatten(v, prefix, before[:len(before):len(before)], &lists)
	if len(lists) == 0 {
		t.add(cells)
	}
	for _, list := range lists {
		with := cells
		name := list.name[strings.LastIndexByte(list.name, '.')+1:]
		below := prefix + name + "."
		if isLast(list.value) {
			// The rows themselves: their columns need no prefix, and say from which node they are where
			// there are several.
			below = ""
			if len(lists) > 1 {
				with = append(with[:len(with):len(with)], pair{"node", name})
			}
		}
		for _, item := range items(list.value) {
			t.object(item, below, with)
		}
	}
}

// flatten collects the cells of an object and of the objects in it, and the lists of objects.
func flatten(v jsontext.Value, prefix string, cells []pair, lists *[]member) []pair {
	for _, m := range members(v) {
		name := prefix + m.name
		switch m.value.Kind() {
		case jsontext.KindBeginObject:
			cells = flatten(m.value, name+".", cells, lists)
		case jsontext.KindBeginArray:
			if all := items(m.value); len(all) == 0 || all[0].Kind() == jsontext.KindBeginObject {
				*lists = append(*lists, member{name, m.value})
			} else {
				var words []string
				for _, one := range all {
					words = append(words, cellOf(one))
				}
				cells = append(cells, pair{name, strings.Join(words, " ")})
			}
		default:
			cells = append(cells, pair{name, cellOf(m.value)})
		}
	}
	return cells
}

// isLast reports whether the objects of a list have no lists of objects.
func isLast(list jsontext.Value) bool {
	for _, item := range items(list) {
		var lists []member
		if flatten(item, "", nil, &lists); len(lists) > 0 {
			return false
		}
	}
	return true
}

func (t *table) add(cells []pair) {
	line := make(map[int]string, len(cells))
	for _, c := range cells {
		i, ok := t.index[c.column]
		if !ok {
			i = len(t.columns)
			t.index[c.column], t.columns = i, append(t.columns, c.column)
		}
		line[i] = c.cell
	}
	t.lines = append(t.lines, line)
}

// cellOf writes a value as it stands in a cell. A spreadsheet takes a text that begins like a
// formula for one, so it begins with an apostrophe instead; numbers stay numbers.
func cellOf(v jsontext.Value) string {
	switch v.Kind() {
	case jsontext.KindNull:
		return ""
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return ""
		}
		if len(text) > 0 && strings.IndexByte("=+-@\t\r\n|", text[0]) >= 0 {
			return "'" + string(text)
		}
		return string(text)
	}
	return string(v)
}

func members(v jsontext.Value) (all []member) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if d.PeekKind() != jsontext.KindBeginObject {
		return nil
	}
	d.ReadToken()
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadToken()
		if err != nil {
			return all
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return all
		}
		all = append(all, member{text, value.Clone()})
	}
	return all
}

// items are the elements of an array; there are none in anything else.
func items(v jsontext.Value) (all []jsontext.Value) {
	_ = json.Unmarshal(v, &all)
	return all
}
