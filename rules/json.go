package rules

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// lookup compiles lookup_json_string and lookup_json_integer.
func (c call) lookup() (value, bool) {
	first := c.args[0]
	if first.kind != strKind {
		return c.fail(first.start, fmt.Sprintf("argument 1 of %s is a string, not %s", c.name, first.kind))
	}
	if !c.field() || !c.literal(1) {
		return value{}, false
	}
	if len(c.args) < 2 {
		return c.fail(c.at, c.name+" needs a key")
	}
	n := jsonValue{of: first.s}
	for _, v := range c.args[1:] {
		if v.kind == intKind && v.number < 0 {
			return c.fail(v.start, "places in an array count from 0")
		}
		n.path = append(n.path, jsonKey{v.text, v.number, v.kind == intKind})
	}
	if c.name == "lookup_json_string" {
		return value{kind: strKind, s: jsonString{n}}, true
	}
	return value{kind: intKind, n: jsonInteger{n}}, true
}

// jsonKey is the name of a member or the place in an array.
type jsonKey struct {
	name  string
	place int64
	array bool
}

type jsonValue struct {
	of   strNode
	path []jsonKey
}

type (
	jsonString  struct{ jsonValue }
	jsonInteger struct{ jsonValue }
)

// find returns the text of the value. It walks over bytes, however deep they nest.
func (n jsonValue) find(r *Request, i int) (string, bool) {
	s, ok := n.of.get(r, i)
	if !ok || !r.spend(20+2*len(s)) || deep(s) || !json.Valid([]byte(s)) {
		return "", false
	}
	for _, key := range n.path {
		if !r.spend(2 + len(s)/2) {
			return "", false
		}
		if s, ok = key.in(s); !ok {
			return "", false
		}
	}
	return strings.Trim(s, " \t\r\n"), true
}

// maxJSONDepth bounds what nests: nobody asks for a value that lies deeper, and checking
// costs more the deeper it goes.
const maxJSONDepth = 64

func deep(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > maxJSONDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// in returns the text of a member or element of valid JSON.
func (k jsonKey) in(s string) (string, bool) {
	s = strings.TrimLeft(s, " \t\r\n")
	open := byte('{')
	if k.array {
		open = '['
	}
	if s == "" || s[0] != open {
		return "", false
	}
	at, place := 1, int64(0)
	found, there := "", false
	for {
		at = space(s, at)
		if s[at] == '}' || s[at] == ']' {
			return found, there
		}
		name := ""
		if !k.array {
			end := valueEnd(s, at)
			name = s[at:end]
			at = space(s, end) + 1 // behind the colon
			at = space(s, at)
		}
		end := valueEnd(s, at)
		if k.array && place == k.place {
			return s[at:end], true
		}
		if !k.array && unquote(name) == k.name {
			found, there = s[at:end], true // the last of equal names counts, as elsewhere
		}
		place++
		if at = space(s, end); s[at] == ',' {
			at++
		}
	}
}

func space(s string, at int) int {
	for strings.IndexByte(" \t\r\n", s[at]) >= 0 {
		at++
	}
	return at
}

// valueEnd returns where the value ends that begins at a byte of valid JSON.
func valueEnd(s string, at int) int {
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s[1 : len(s)-1]
	}
	var out string
	if json.Unmarshal([]byte(s), &out) != nil {
		return ""
	}
	return out
}

func (n jsonString) get(r *Request, i int) (string, bool) {
	s, ok := n.find(r, i)
	if !ok || s[0] != '"' {
		return "", false
	}
	return unquote(s), true
}

func (n jsonInteger) get(r *Request, i int) (int64, bool) {
	s, ok := n.find(r, i)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil
}
