package api

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Value is a JSON value of a body. The document that it is part of is well-formed and
// within the bounds: no name twice in an object, no invalid UTF-8, no deep nesting.
// The zero Value is one that was not sent.
type Value struct {
	path string // as in [anteroom.Fault]: a.b[0]
	raw  jsontext.Value
}

// Parse returns the JSON document. The error holds [anteroom.Faults].
func Parse(text []byte) (Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return Value{}, Invalid("", "body is empty", "send a JSON document")
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.ReadToken(); err == io.EOF {
			break
		} else if err != nil {
			return Value{}, syntaxFault(err)
		}
		if d.StackDepth() > maxBodyDepth {
			return Value{}, Invalid(pathOf(d.StackPointer()), "is nested too deeply", fmt.Sprintf("at most %d objects and arrays in each other", maxBodyDepth))
		}
		if d.StackDepth() == 0 && len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
			return Value{}, Invalid("", fmt.Sprintf("body continues after its end at byte %d", d.InputOffset()), "send one JSON document")
		}
	}
	return Value{raw: jsontext.Value(bytes.TrimSpace(text))}, nil
}

// Invalid makes an error of one fault.
func Invalid(path, problem, fix string) error {
	return anteroom.Faults{{Path: path, Problem: problem, Fix: fix}}.Err()
}

func syntaxFault(err error) error {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return Invalid("", "body is not JSON", "")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return Invalid(pathOf(e.JSONPointer), "is there twice", "send it once")
	}
	problem := "body is not JSON"
	if strings.Contains(e.Err.Error(), "UTF-8") {
		problem = "body is not UTF-8"
	}
	return Invalid(pathOf(e.JSONPointer), fmt.Sprintf("%s at byte %d", problem, e.ByteOffset), "send a JSON document")
}

// pathOf writes a JSON pointer as a fault's path. Long ones are cut: they are nobody's
// field, and come back to whoever sent them.
func pathOf(p jsontext.Pointer) string {
	const most = 200
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len()+len(token) > most {
			b.WriteString("…")
			break
		}
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

// Sent reports whether the value was sent at all.
func (v Value) Sent() bool { return v.raw != nil }

// Null reports whether the value was not sent, or is null.
func (v Value) Null() bool { return v.raw == nil || v.raw.Kind() == jsontext.KindNull }

// Empty reports whether the value is null, 0 or "": clients that cannot express "not set" send one of these.
func (v Value) Empty() bool {
	return v.Null() || string(v.raw) == `""` || string(v.raw) == "0"
}

// Fault returns an error about the value.
func (v Value) Fault(problem, fix string) error { return Invalid(v.path, problem, fix) }

func (v Value) is(want string) error {
	got := map[jsontext.Kind]string{jsontext.KindNull: "null", jsontext.KindFalse: "a boolean", jsontext.KindTrue: "a boolean",
		jsontext.KindString: "a text", jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "a list"}[v.raw.Kind()]
	if !v.Sent() {
		return v.Fault("is missing", "send "+want)
	}
	if v.path == "" {
		return v.Fault("body is "+got, "send "+want)
	}
	return v.Fault("is "+got, "send "+want)
}

// Object is the members of a JSON object.
type Object struct {
	path    string
	members map[string]Value
}

// Object returns the members of an object. A member's null, and one that was not sent, has none.
func (v Value) Object() (Object, error) {
	o := Object{path: v.path, members: map[string]Value{}}
	if v.path != "" && v.Null() {
		return o, nil
	}
	if v.raw.Kind() != jsontext.KindBeginObject {
		return o, v.is("an object")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(v.raw, &members); err != nil {
		return o, syntaxFault(err)
	}
	if len(members) > maxBodyMembers {
		return o, v.Fault(strings.TrimSpace(v.subject()+" has too many members"), fmt.Sprintf("at most %d", maxBodyMembers))
	}
	for name, raw := range members {
		o.members[name] = Value{path: o.at(name), raw: raw}
	}
	return o, nil
}

// names returns the names of the members, sorted.
func (o Object) names() []string { return slices.Sorted(maps.Keys(o.members)) }

// Get returns a member. One that was not sent keeps its name for faults.
func (o Object) Get(name string) Value {
	if v, ok := o.members[name]; ok {
		return v
	}
	return Value{path: o.at(name)}
}

// only returns faults for members with other names. It is for our own API, where an unknown name is a mistake.
func (o Object) only(names ...string) error {
	var faults anteroom.Faults
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !slices.Contains(names, name) && len(faults) < maxFaults {
			faults = append(faults, anteroom.Fault{Path: pathOf(jsontext.Pointer("").AppendToken(o.at(name))), Problem: "is not known here", Fix: "one of " + strings.Join(names, ", ")})
		}
	}
	return faults.Err()
}

func (o Object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (v Value) subject() string {
	if v.path == "" {
		return "body"
	}
	return ""
}

// Array returns the values of a list of at most most; null has none.
func (v Value) Array(most int) ([]Value, error) {
	if v.path != "" && v.Null() {
		return nil, nil
	}
	if v.raw.Kind() != jsontext.KindBeginArray {
		return nil, v.is("a list")
	}
	var values []jsontext.Value
	if err := json.Unmarshal(v.raw, &values); err != nil {
		return nil, syntaxFault(err)
	}
	if len(values) > most {
		return nil, v.Fault(strings.TrimSpace(v.subject()+" has too many values"), fmt.Sprintf("at most %d", most))
	}
	var out []Value
	for i, raw := range values {
		out = append(out, Value{path: fmt.Sprintf("%s[%d]", v.path, i), raw: raw})
	}
	return out, nil
}

// Text returns a text; null is "".
func (v Value) Text() (string, error) {
	if v.Null() {
		return "", nil
	}
	if v.raw.Kind() != jsontext.KindString {
		return "", v.is("a text")
	}
	text, err := jsontext.AppendUnquote(nil, v.raw)
	return string(text), err
}

// Bool returns a boolean; null is false.
func (v Value) Bool() (bool, error) {
	if v.Null() {
		return false, nil
	}
	switch v.raw.Kind() {
	case jsontext.KindTrue:
		return true, nil
	case jsontext.KindFalse:
		return false, nil
	}
	return false, v.is("true or false")
}

// Int returns a whole number in whatever notation; null is 0.
func (v Value) Int() (int, error) {
	if v.Null() {
		return 0, nil
	}
	if v.raw.Kind() != jsontext.KindNumber {
		return 0, v.is("a whole number")
	}
	if n, err := strconv.Atoi(string(v.raw)); err == nil {
		return n, nil
	}
	const exact = 1 << 53
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || math.Abs(f) > exact {
		return 0, v.Fault("is out of range", "send a whole number of a sensible size")
	}
	if f != math.Trunc(f) {
		return 0, v.Fault("is not whole", "send a whole number")
	}
	return int(f), nil
}

// Duration returns a duration written with units, like "5m0s"; null and "" are 0.
func (v Value) Duration() (time.Duration, error) {
	s, err := v.Text()
	if err != nil || s == "" {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if len(s) > 64 || err != nil {
		return 0, v.Fault("is not a duration", "write a number with a unit: 500ms, 30s, 5m, 2h")
	}
	return d, nil
}
