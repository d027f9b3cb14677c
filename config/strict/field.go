package strict

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Field is one key, as the tags of its struct field describe it:
//
//	key       its name in the file
//	doc       one or two sentences for the reference page
//	default   as it would be written in the file, lists with commas
//	enum      the values allowed, with commas; "languages" are those of a room
//	min, max  bounds, for numbers and durations; a duration's least is 0s without
//	required  the key must be given
//	file      the value is a path, relative to the file that it stands in
//	minutes   a bare number is minutes, as in the published API
//	share     a number that may also be written as a percentage: 0.25 or 25%
//	moment    a text that may be written without quotes although YAML takes it for a date
//
// The types that a key can have are bool, int, float64, string, time.Duration,
// netip.Prefix, a struct of such fields (a section) and a slice of any of these.
type Field struct {
	Key, Doc string
	Default  string // meaningless unless HasDefault
	Min, Max string
	Enum     []string

	HasDefault, Required, File, Minutes, Share, Moment bool

	Index []int // for reflect.Value.FieldByIndex
	Type  reflect.Type
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// FieldsOf returns the keys of a struct, those of embedded structs first.
func FieldsOf(t reflect.Type) []Field {
	var out []Field
	for sf := range t.Fields() {
		if sf.Anonymous {
			for _, f := range FieldsOf(sf.Type) {
				f.Index = append(slices.Clone(sf.Index), f.Index...)
				out = append(out, f)
			}
			continue
		}
		key, tagged := sf.Tag.Lookup("key")
		if !tagged {
			continue
		}
		f := Field{Key: key, Doc: sf.Tag.Get("doc"), Min: sf.Tag.Get("min"), Max: sf.Tag.Get("max"), Index: sf.Index, Type: sf.Type}
		f.Default, f.HasDefault = sf.Tag.Lookup("default")
		f.Required = sf.Tag.Get("required") != ""
		f.File = sf.Tag.Get("file") != ""
		f.Minutes = sf.Tag.Get("minutes") != ""
		f.Share = sf.Tag.Get("share") != ""
		f.Moment = sf.Tag.Get("moment") != ""
		if enum := sf.Tag.Get("enum"); enum == "languages" {
			f.Enum = anteroom.Languages
		} else if enum != "" {
			f.Enum = strings.Split(enum, ",")
		}
		out = append(out, f)
	}
	return out
}

// IsSection reports whether the key has keys of its own below it.
func (f Field) IsSection() bool { return f.Type.Kind() == reflect.Struct && f.Type != prefixType }

// IsList reports whether the key takes several values.
func (f Field) IsList() bool { return f.Type.Kind() == reflect.Slice }

// IsSections reports whether the key takes several sections.
func (f Field) IsSections() bool {
	return f.IsList() && f.Type.Elem().Kind() == reflect.Struct && f.Type.Elem() != prefixType
}

// Fill puts the defaults into a struct and the sections in it.
func Fill(v reflect.Value) {
	for _, f := range FieldsOf(v.Type()) {
		at := v.FieldByIndex(f.Index)
		if f.IsSection() {
			Fill(at)
		} else if f.HasDefault {
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
		return f.setOne(v, text)
	}
	list := reflect.MakeSlice(f.Type, 0, 1)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		one := reflect.New(f.Type.Elem()).Elem()
		if w := f.setOne(one, part); w != nil {
			return w
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

// setOne is Set for a single value or for one member of a list.
func (f Field) setOne(v reflect.Value, text string) *Wrong {
	if f.Enum != nil && !slices.Contains(f.Enum, text) {
		return &Wrong{fmt.Sprintf("%s is not known", Quote(text)), "one of " + strings.Join(f.Enum, ", ")}
	}
	switch v.Type() {
	case durationType:
		return f.setDuration(v, text)
	case prefixType:
		p, err := netip.ParsePrefix(text)
		if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return &Wrong{fmt.Sprintf("%s is not a network", Quote(text)), "an address or CIDR, like 10.0.0.0/8 or 2001:db8::1"}
		}
		if p != p.Masked() {
			return &Wrong{fmt.Sprintf("%s has bits beyond its length", Quote(text)), "write " + p.Masked().String()}
		}
		v.Set(reflect.ValueOf(p))
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || len(text) == 1 {
			return &Wrong{fmt.Sprintf("%s is not true or false", Quote(text)), "write true or false"}
		}
		v.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return &Wrong{fmt.Sprintf("%s is not a whole number", Quote(text)), f.Span()}
		}
		if least, err := strconv.Atoi(f.Min); err == nil && n < least {
			return &Wrong{fmt.Sprintf("%d is too small", n), f.Span()}
		}
		if most, err := strconv.Atoi(f.Max); err == nil && n > most {
			return &Wrong{fmt.Sprintf("%d is too large", n), f.Span()}
		}
		v.SetInt(int64(n))
	case reflect.Float64:
		return f.setFloat(v, text)
	default:
		v.SetString(text)
	}
	return nil
}

func (f Field) setFloat(v reflect.Value, text string) *Wrong {
	digits, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.Trim(digits, "0123456789.eE+-") != "" || percent && !f.Share {
		return &Wrong{fmt.Sprintf("%s is not a number", Quote(text)), f.Span()}
	}
	if percent {
		x /= 100
	}
	if least, err := strconv.ParseFloat(f.Min, 64); err == nil && x < least {
		return &Wrong{fmt.Sprintf("%s is too small", text), f.Span()}
	}
	if most, err := strconv.ParseFloat(f.Max, 64); err == nil && x > most {
		return &Wrong{fmt.Sprintf("%s is too large", text), f.Span()}
	}
	v.SetFloat(x)
	return nil
}

func (f Field) setDuration(v reflect.Value, text string) *Wrong {
	if f.Minutes && text != "" && strings.Trim(text, "0123456789") == "" {
		text += "m"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return &Wrong{fmt.Sprintf("%s is not a duration", Quote(text)), "a number with a unit: 500ms, 30s, 5m, 2h"}
	}
	least, _ := time.ParseDuration(f.Min)
	most, err := time.ParseDuration(f.Max)
	if d < least || err == nil && d > most {
		return &Wrong{fmt.Sprintf("%s is out of range", Short(d)), f.Span()}
	}
	v.SetInt(int64(d))
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

// DidYouMean returns the known word nearest to word, or "".
func DidYouMean(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Distance is the Levenshtein distance, for words of up to 64 bytes; longer ones are far.
func Distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
