// Package field describes the fields of what people write: settings of rooms and events, keys of
// configuration files, plans of sales. A struct's tags say each field's name, default, bounds and
// meaning; files, the API, the command line, forms, schemas and reference pages are all made from
// that and nothing else. So a setting stands once, and every face of the product has it.
package field

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Field is one field, as the tags of its struct field describe it:
//
//	key       its name, everywhere
//	doc       one or two sentences about it
//	default   as it would be written in a file, lists with commas
//	enum      the values allowed, with commas; a type with a method Values names its own
//	min, max  bounds, for numbers and durations; a duration's least is 0s without.
//	          For a text, max bounds its bytes
//	required  it must be given
//	file      the value is a path, relative to the file that it stands in
//	minutes   a bare number is minutes, as in the published API
//	share     a number that may also be written as a percentage: 0.25 or 25%
//	moment    a text that may be written without quotes although YAML takes it for a date
//	word      a text of letters, digits, _ and -
//	label     its name in forms
//	group     where it stands in forms
//	unit      what a number counts, in forms
//	ours      clients of the published API do not know it: a replacement keeps it
//	event     an event may set it in the place of its room
//	since     the release that brought it; empty means the first
//	after     the key that it follows, where it does not stand in its struct's order
//	optional  of an embedded struct: its fields need not be given and have no defaults
//
// The types that a field can have are bool, int, float64, string, time.Duration, netip.Prefix, a
// struct of such fields (a section), a slice of any of these, and a pointer to any but a slice,
// which is nil while the field is not given.
type Field struct {
	Key, Doc           string
	Label, Group, Unit string
	Since              string
	Default            string // meaningless unless HasDefault
	Min, Max           string
	Enum               []string

	HasDefault, Required, File, Minutes, Share, Moment, Word, Ours, Event bool

	Index   []int        // for reflect.Value.FieldByIndex
	Type    reflect.Type // what a pointer points to
	Pointer bool

	preset reflect.Value // the default, where it is one value and no pointer
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// lister is a struct type that lists its fields itself. It says of which type they are because what
// embeds it has the method, too.
type lister interface {
	Fields() (of reflect.Type, fields []Field)
}

// known are the fields of the types that somebody asked about: reading tags takes longer than filling in defaults.
var known sync.Map // of []Field by reflect.Type

// Of returns the fields of a struct, those of embedded structs where they stand.
func Of(t reflect.Type) []Field { return slices.Clone(of(t)) }

// of is Of for those who change nothing.
func of(t reflect.Type) []Field {
	if fields, ok := known.Load(t); ok {
		return fields.([]Field)
	}
	fields := read(t)
	known.Store(t, fields)
	return fields
}

func read(t reflect.Type) []Field {
	if l, ok := reflect.Zero(t).Interface().(lister); ok {
		if of, fields := l.Fields(); of == t {
			return fields
		}
	}
	var out []Field
	for sf := range t.Fields() {
		var add []Field
		if key, tagged := sf.Tag.Lookup("key"); tagged {
			add = []Field{one(key, sf)}
		} else if sf.Anonymous {
			for _, f := range of(sf.Type) {
				f.Index = append(slices.Clone(sf.Index), f.Index...)
				if sf.Tag.Get("optional") != "" {
					f.Required, f.HasDefault = false, false
				}
				add = append(add, f)
			}
		}
		at := len(out)
		if key, ok := sf.Tag.Lookup("after"); ok {
			at = slices.IndexFunc(out, func(f Field) bool { return f.Key == key }) + 1
		}
		out = slices.Insert(out, at, add...)
	}
	return out
}

func one(key string, sf reflect.StructField) Field {
	tag := sf.Tag.Get
	f := Field{Key: key, Doc: tag("doc"), Label: tag("label"), Group: tag("group"), Unit: tag("unit"), Since: tag("since"), Min: tag("min"), Max: tag("max"), Index: sf.Index, Type: sf.Type}
	f.Default, f.HasDefault = sf.Tag.Lookup("default")
	for name, is := range map[string]*bool{"required": &f.Required, "file": &f.File, "minutes": &f.Minutes, "share": &f.Share,
		"moment": &f.Moment, "word": &f.Word, "ours": &f.Ours, "event": &f.Event} {
		*is = tag(name) != ""
	}
	if f.Type.Kind() == reflect.Pointer {
		f.Type, f.Pointer = f.Type.Elem(), true
	}
	if enum := tag("enum"); enum != "" {
		f.Enum = strings.Split(enum, ",")
	} else if v, ok := reflect.Zero(f.Type).Interface().(interface{ Values() []string }); ok {
		f.Enum = v.Values()
	}
	if f.HasDefault && !f.Pointer && !f.IsList() && !f.IsSection() {
		if v := reflect.New(f.Type).Elem(); f.SetOne(v, f.Default) == nil {
			f.preset = v
		}
	}
	return f
}

// IsSection reports whether the field has fields of its own below it.
func (f Field) IsSection() bool { return f.Type.Kind() == reflect.Struct && f.Type != prefixType }

// IsList reports whether the field takes several values.
func (f Field) IsList() bool { return f.Type.Kind() == reflect.Slice }

// IsSections reports whether the field takes several sections.
func (f Field) IsSections() bool {
	return f.IsList() && f.Type.Elem().Kind() == reflect.Struct && f.Type.Elem() != prefixType
}

// IsDuration reports whether the field, or each of its values, is a duration.
func (f Field) IsDuration() bool {
	return f.Type == durationType || f.IsList() && f.Type.Elem() == durationType
}

// In returns the field's value in a struct, and whether it has one: a pointer that is nil has not.
func (f Field) In(v reflect.Value) (value reflect.Value, ok bool) {
	v = v.FieldByIndex(f.Index)
	if f.Pointer {
		return v.Elem(), !v.IsNil()
	}
	return v, true
}

// Make returns the field's value in a struct, to be set: a pointer gets something to point to.
func (f Field) Make(v reflect.Value) reflect.Value {
	v = v.FieldByIndex(f.Index)
	if f.Pointer {
		v.Set(reflect.New(f.Type))
		return v.Elem()
	}
	return v
}

// Clear sets the field back to nothing: nil, or the zero value.
func (f Field) Clear(v reflect.Value) { v.FieldByIndex(f.Index).SetZero() }

// Fill puts the defaults into a struct and the sections in it, wherever the zero value stands.
func Fill(v reflect.Value) { FillFields(of(v.Type()), v) }

// FillFields is [Fill] for those who have the struct's fields.
func FillFields(fields []Field, v reflect.Value) {
	for i := range fields {
		f := &fields[i] // a field is large, and this runs several times for every room
		if f.Pointer {
			continue
		}
		at := v.FieldByIndex(f.Index)
		switch {
		case f.IsSection():
			Fill(at)
		case !f.HasDefault || !at.IsZero():
		case f.preset.IsValid():
			at.Set(f.preset)
		default:
			f.Set(at, f.Default)
		}
	}
}

// Wrong is what is wrong with a value and what to write instead.
type Wrong struct{ Problem, Fix string }

// Set puts a value, as text, into v, or says why not. The members of a list are separated
// by commas.
func (f Field) Set(v reflect.Value, text string) *Wrong {
	if !f.IsList() {
		return f.SetOne(v, text)
	}
	list := reflect.MakeSlice(f.Type, 0, 1)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		one := reflect.New(f.Type.Elem()).Elem()
		if w := f.SetOne(one, part); w != nil {
			return w
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

// SetOne is Set for a single value or for one member of a list.
func (f Field) SetOne(v reflect.Value, text string) *Wrong {
	if f.Enum != nil && !slices.Contains(f.Enum, text) {
		return f.unknown(Quote(text))
	}
	was := reflect.New(v.Type()).Elem()
	if w := f.parse(was, text); w != nil {
		return w
	}
	if text == f.Default && text != "" && !f.IsList() {
		v.Set(was) // also one outside of the bounds, which stands for something else
		return nil
	}
	if w := f.checkOne(was); w != nil {
		return w
	}
	v.Set(was)
	return nil
}

func (f Field) unknown(shown string) *Wrong {
	return &Wrong{shown + " is not known", "one of " + strings.Join(f.Enum, ", ")}
}

func (f Field) parse(v reflect.Value, text string) *Wrong {
	switch v.Type() {
	case durationType:
		if f.Minutes && text != "" && strings.Trim(text, "0123456789") == "" {
			text += "m"
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return &Wrong{Quote(text) + " is not a duration", "a number with a unit: 500ms, 30s, 5m, 2h"}
		}
		v.SetInt(int64(d))
		return nil
	case prefixType:
		p, err := netip.ParsePrefix(text)
		if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return &Wrong{Quote(text) + " is not a network", "an address or CIDR, like 10.0.0.0/8 or 2001:db8::1"}
		}
		if p != p.Masked() {
			return &Wrong{Quote(text) + " has bits beyond its length", "write " + p.Masked().String()}
		}
		v.Set(reflect.ValueOf(p))
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || len(text) == 1 {
			return &Wrong{Quote(text) + " is not true or false", "write true or false"}
		}
		v.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return &Wrong{Quote(text) + " is not a whole number", f.Span()}
		}
		v.SetInt(int64(n))
	case reflect.Float64:
		digits, percent := strings.CutSuffix(text, "%")
		x, err := strconv.ParseFloat(digits, 64)
		if err != nil || strings.Trim(digits, "0123456789.eE+-") != "" || percent && !f.Share {
			return &Wrong{Quote(text) + " is not a number", f.Span()}
		}
		if percent {
			x /= 100
		}
		v.SetFloat(x)
	default:
		v.SetString(text)
	}
	return nil
}

// Check says what is wrong with the field's value in a struct, and, of a list, with which value of
// it, like "[2]". The zero value stands for the default, or for nothing, and is right unless the
// field is a required text.
func (f Field) Check(v reflect.Value) (at string, w *Wrong) {
	v, ok := f.In(v)
	switch {
	case !ok:
		return "", nil
	case v.IsZero() && !f.Pointer:
		if f.Required && v.Kind() == reflect.String {
			return "", &Wrong{"is missing", f.Doc}
		}
		return "", nil
	case f.IsList():
		for i := range v.Len() {
			if one := v.Index(i); !one.IsZero() {
				if w := f.checkOne(one); w != nil {
					return fmt.Sprintf("[%d]", i), w
				}
			}
		}
		return "", nil
	}
	return "", f.checkOne(v)
}

func (f Field) checkOne(v reflect.Value) *Wrong {
	if f.Enum != nil {
		text := fmt.Sprint(v.Interface())
		if slices.Contains(f.Enum, text) {
			return nil
		}
		if v.Kind() == reflect.String {
			text = Quote(text)
		}
		return f.unknown(text)
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		least, _ := time.ParseDuration(f.Min)
		most, err := time.ParseDuration(f.Max)
		if x < least || err == nil && x > most {
			return &Wrong{Short(x) + " is out of range", f.Span()}
		}
	case int:
		return f.bounded(float64(x), strconv.Itoa(x))
	case float64:
		return f.bounded(x, strconv.FormatFloat(x, 'g', -1, 64))
	default:
		if v.Kind() == reflect.String {
			return f.checkText(v.String())
		}
	}
	return nil
}

func (f Field) bounded(x float64, text string) *Wrong {
	if f.Share {
		text = strconv.FormatFloat(x*100, 'g', 6, 64) + "%"
	}
	if least, err := strconv.ParseFloat(f.Min, 64); err == nil && x < least {
		return &Wrong{text + " is too small", f.Span()}
	}
	if most, err := strconv.ParseFloat(f.Max, 64); err == nil && x > most {
		return &Wrong{text + " is too large", f.Span()}
	}
	return nil
}

func (f Field) checkText(s string) *Wrong {
	if most, err := strconv.Atoi(f.Max); err == nil && len(s) > most {
		return &Wrong{fmt.Sprintf("has %d bytes", len(s)), "at most " + f.Max}
	}
	if f.Word && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return &Wrong{Quote(s) + " has other characters than letters, digits, _ and -", "use only those"}
	}
	return nil
}

// Span says the bounds; empty when there are none.
func (f Field) Span() string {
	switch {
	case f.Max == "":
		return ""
	case f.Min == "":
		return "up to " + f.Max
	case f.Share:
		return f.Min + " to " + f.Max + ", or a percentage like 2%"
	}
	return f.Min + " to " + f.Max
}

// Short writes a duration as people do: 5m, not 5m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Quote shows a value in an error without letting it fill the screen.
func Quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		return strconv.Quote(string(r[:60])) + "…"
	}
	return strconv.Quote(s)
}
